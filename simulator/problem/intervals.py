"""Which inner blocks each block of a loop visits: sorted intervals, one list for each block."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Intervals:
    """For each block, ascending disjoint half-open intervals of inner blocks, none of them empty.

    A question about one block takes time that grows with the logarithm of the number of its
    intervals, never with the number of blocks or the length of the intervals.
    """

    # (blocks + 1,) int64: block `b` has the intervals ``offsets[b]`` to ``offsets[b + 1]``
    offsets: I64
    bounds: I64  # (intervals, 2) int64: the first inner block of each, and the one after its last

    def __post_init__(self) -> None:
        for array in (self.offsets, self.bounds):
            array.flags.writeable = False

    @staticmethod
    def of(blocks: Iterable[Sequence[tuple[int, int]]]) -> Intervals:
        """Return the intervals that are given as lists, one list for each block."""
        lists = [list(each) for each in blocks]
        offsets = sums(np.array([len(each) for each in lists], dtype=np.int64))
        pairs = [pair for each in lists for pair in each]
        return Intervals(offsets, np.array(pairs, dtype=np.int64).reshape(-1, 2))

    @staticmethod
    def between(*bounds: I64) -> Intervals:
        """Return ``[bounds[0], bounds[1])``, ``[bounds[2], bounds[3])``, ... of every block.

        *bounds: an even number of arrays of one shape, int64, ascending from each to the next.
            Arrays of several loops may be stacked: their blocks then follow each other. Empty
            intervals are left out.
        """
        flat = [np.broadcast_to(each, bounds[0].shape).ravel() for each in bounds]
        sides = list(zip(flat[::2], flat[1::2], strict=True))
        kept = [start < stop for start, stop in sides]
        number = kept[0].astype(np.int64)
        for more in kept[1:]:
            number += more
        offsets = sums(number)
        out = np.empty((int(offsets[-1]), 2), dtype=np.int64)
        place = offsets[:-1]
        for (start, stop), keep in zip(sides, kept, strict=True):
            if keep.all():
                out[place, 0], out[place, 1] = start, stop
            else:
                here = place[keep]
                out[here, 0], out[here, 1] = start[keep], stop[keep]
            place = place + keep
        return Intervals(offsets, out)

    @staticmethod
    def where(table: Bools) -> Intervals:
        """Return the true places of each row of a table, (blocks, inner) bool."""
        turns = np.diff(table, axis=1, prepend=False, append=False)
        block, at = turns.nonzero()
        counts = np.bincount(block[::2], minlength=len(table))
        return Intervals(sums(counts), at.reshape(-1, 2))

    @staticmethod
    def stacked(parts: Sequence[Intervals]) -> Intervals:
        """Return the blocks of several loops, loop after loop."""
        if len(parts) == 1:
            return parts[0]
        counts = np.concatenate([np.diff(each.offsets) for each in parts])
        return Intervals(sums(counts), np.concatenate([each.bounds for each in parts]))

    @staticmethod
    @lru_cache(maxsize=8)
    def every(blocks: int, inner: int) -> Intervals:
        """Return intervals in which each of `blocks` visits all of `inner` blocks."""
        return Intervals(np.arange(blocks + 1), np.tile(np.array([[0, inner]]), (blocks, 1)))

    def dealt(self, splits: int, run: int) -> Intervals:
        """Return the intervals cut into runs of `run`: run `s` of block `b` is b · splits + s."""
        block = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        parts = []
        for split in range(splits):
            low = np.maximum(self.bounds[:, 0], split * run)
            high = np.minimum(self.bounds[:, 1], (split + 1) * run)
            some = low < high
            parts.append(np.stack([block[some] * splits + split, low[some], high[some]]))
        outer, low, high = np.concatenate(parts, axis=1)
        order = np.lexsort((low, outer))
        counts = np.bincount(outer, minlength=len(self) * splits)
        return Intervals(sums(counts), np.stack([low[order], high[order]], axis=1))

    def joined(self, other: Intervals) -> Intervals:
        """Return the inner blocks that one or the other visits."""
        return self._where(other, lambda here: here > 0)

    def common(self, other: Intervals) -> Intervals:
        """Return the inner blocks that both visit."""
        return self._where(other, lambda here: here == 3)

    def turned(self, inner: int) -> Intervals:
        """Return which blocks visit each of `inner` inner blocks.

        The time grows with the number of intervals in the result, not with the number of visits.
        """
        size = np.zeros(1, dtype=np.int64)
        now = Intervals(np.append(self.offsets, self.offsets[-1]), self.bounds)
        before = Intervals(np.append(size, self.offsets), self.bounds)
        firsts, ends = (one._alone(other) for one, other in ((now, before), (before, now)))
        offsets = sums(np.bincount(firsts[:, 1], minlength=inner))
        return Intervals(offsets, np.stack([firsts[:, 0], ends[:, 0]], axis=1))

    def _alone(self, other: Intervals) -> I64:
        """Return the visits, (block, inner block), that `other` does not have, by inner block."""
        only = self._where(other, lambda here: here == 1)
        length = only.bounds[:, 1] - only.bounds[:, 0]
        block = np.repeat(np.repeat(np.arange(len(only)), np.diff(only.offsets)), length)
        inner = np.arange(len(block)) + np.repeat(only.bounds[:, 0] - sums(length)[:-1], length)
        order = np.lexsort((block, inner))
        return np.stack([block[order], inner[order]], axis=1)

    def _where(self, other: Intervals, wanted: Callable[[I64], Bools]) -> Intervals:
        """Return where a number is wanted: 1 for a visit here, plus 2 for a visit of `other`."""
        reach = 1 + max((int(each.bounds.max()) for each in (self, other) if len(each.bounds)),
                        default=0)  # fmt: skip
        places, steps = [], []
        for each, step in ((self, 1), (other, 2)):
            begin = np.repeat(np.arange(len(each)) * reach, np.diff(each.offsets))
            for side, sign in ((0, 1), (1, -1)):
                places.append(begin + each.bounds[:, side])
                steps.append(np.full(len(begin), sign * step))
        every, which = np.unique(np.concatenate(places), return_inverse=True)
        change = np.zeros(len(every), dtype=np.int64)
        np.add.at(change, which, np.concatenate(steps))
        turns = np.diff(wanted(np.cumsum(change)), prepend=False, append=False)
        starts, stops = every[turns.nonzero()[0]].reshape(-1, 2).T
        counts = np.bincount(starts // reach, minlength=len(self))
        return Intervals(sums(counts), np.stack([starts, stops], axis=1) % reach)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    # --- all blocks at once -----------------------------------------------------------------

    @cached_property
    def sums(self) -> I64:
        """How many inner blocks the blocks before each block visit, then all: (blocks + 1,)."""
        return self._before[self.offsets]

    @cached_property
    def counts(self) -> I64:
        """How many inner blocks each block visits, (blocks,)."""
        return np.diff(self.sums)

    @cached_property
    def ends(self) -> I64:
        """The inner block after the last that each block visits, 0 for none: (blocks,)."""
        ends = np.zeros(len(self), dtype=np.int64)
        some = self.offsets[1:] > self.offsets[:-1]
        ends[some] = self.bounds[self.offsets[1:][some] - 1, 1]
        return ends

    def before_each(self, inner: I64) -> I64:
        """Return how many inner blocks below ``inner[block]`` each block visits, (blocks,)."""
        below = np.minimum(np.repeat(inner, np.diff(self.offsets)), self.bounds[:, 1])
        return np.diff(sums(np.maximum(below - self.bounds[:, 0], 0))[self.offsets])

    def visitors(self, inner: int) -> I64:
        """Return how many blocks visit each of `inner` inner blocks, (inner,)."""
        change = np.zeros(inner + 1, dtype=np.int64)
        np.add.at(change, self.bounds[:, 0], 1)
        np.add.at(change, self.bounds[:, 1], -1)
        return np.cumsum(change[:-1])

    def among(self, blocks: I64, inner: I64) -> Bools:
        """Return whether each of `blocks` visits each of `inner`, ascending, (blocks, inner)."""
        first, last = self.offsets[blocks], self.offsets[blocks + 1]
        count = last - first
        row = np.repeat(np.arange(len(blocks)), count)
        each = np.arange(len(row)) + np.repeat(first - sums(count)[:-1], count)
        # Add one at an interval's start and subtract one at its end: the sums are then 0 or 1.
        change = np.zeros((len(blocks), len(inner) + 1), dtype=np.int8)
        for side, step in ((0, 1), (1, -1)):
            np.add.at(change, (row, np.searchsorted(inner, self.bounds[each, side])), step)
        return np.cumsum(change[:, :-1], axis=1, dtype=np.int8).view(np.bool_)

    def contains(self, block: int | I64, inner: int | I64) -> Bools:
        """Return whether each block visits the inner block beside it; both arrays are broadcast."""
        starts, stops, reach = self._line
        if not reach:
            return np.zeros(np.broadcast(block, inner).shape, dtype=np.bool_)
        inner = np.asarray(inner)
        place = np.asarray(block) * reach + np.clip(inner, 0, reach - 1)
        found = np.searchsorted(starts, place, side="right") - 1
        return np.asarray((place < stops[found]) & (found >= 0) & (inner >= 0))

    @cached_property
    def _line(self) -> tuple[I64, I64, int]:
        """All intervals on one line, and the distance between two blocks on this line."""
        reach = int(self.bounds[:, 1].max()) + 1 if len(self.bounds) else 0
        begins = np.repeat(np.arange(len(self)) * reach, np.diff(self.offsets))
        return begins + self.bounds[:, 0], begins + self.bounds[:, 1], reach

    # --- one block --------------------------------------------------------------------------

    def pairs(self, block: int) -> list[tuple[int, int]]:
        """Return the intervals of a block."""
        low, high = self._own(block)
        return [(start, stop) for start, stop in self.bounds[low:high].tolist()]

    def locate(self, n: int) -> tuple[int, int, int]:
        """Return (block, inner block, nth visit of the block) of visit `n` of all, 0 to all - 1."""
        seek = self._seek
        block = bisect_right(seek.sums, n) - 1
        low, high = seek.offsets[block], seek.offsets[block + 1]
        found = bisect_right(seek.before, n, low, high) - 1
        return block, seek.starts[found] + n - seek.before[found], n - seek.sums[block]

    def visited(self, block: int) -> I64:
        """Return the inner blocks that a block visits, ascending, (count,) int64."""
        runs = [np.arange(start, stop) for start, stop in self.pairs(block)]
        return np.concatenate(runs) if runs else np.zeros(0, dtype=np.int64)

    def count(self, block: int) -> int:
        """Return how many inner blocks a block visits."""
        return self._seek.sums[block + 1] - self._seek.sums[block]

    def nth(self, block: int, n: int) -> int:
        """Return the inner block that a block visits after `n` others."""
        low, high = self._own(block)
        seek = self._seek
        place = seek.before[low] + n
        if n < 0 or place >= seek.before[high]:
            raise IndexError(f"visit {n} of block {block}, which has {self.count(block)}")
        found = bisect_right(seek.before, place, low, high) - 1
        return seek.starts[found] + place - seek.before[found]

    def place(self, block: int, inner: int) -> int | None:
        """Return how many visits a block makes before it visits `inner`; None if it never does."""
        low, high = self._own(block)
        seek = self._seek
        found = bisect_right(seek.starts, inner, low, high) - 1
        if found < low or inner >= seek.stops[found]:
            return None
        return seek.before[found] - seek.before[low] + inner - seek.starts[found]

    def before(self, block: int, inner: int) -> int:
        """Return how many inner blocks below `inner` a block visits."""
        low, high = self._own(block)
        seek = self._seek
        found = bisect_right(seek.starts, inner, low, high) - 1
        if found < low:
            return 0
        reached = min(inner, seek.stops[found]) - seek.starts[found]
        return seek.before[found] - seek.before[low] + reached

    def covers(self, block: int, inner: range) -> bool:
        """Return whether one interval of a block contains a whole range of inner blocks."""
        low, high = self._own(block)
        found = bisect_right(self._seek.starts, inner.start, low, high) - 1
        return found >= low and inner.stop <= self._seek.stops[found]

    def first(self, block: int) -> int | None:
        """Return the first inner block that a block visits, None if it visits none."""
        low, high = self._own(block)
        return self._seek.starts[low] if low < high else None

    def last(self, block: int) -> int | None:
        """Return the last inner block that a block visits, None if it visits none."""
        low, high = self._own(block)
        return self._seek.stops[high - 1] - 1 if low < high else None

    def _own(self, block: int) -> tuple[int, int]:
        """Return the first interval of a block, and the one after its last."""
        if not 0 <= block < len(self):
            raise IndexError(f"block {block} of {len(self)}")
        return self._seek.offsets[block], self._seek.offsets[block + 1]

    @cached_property
    def _seek(self) -> _Seek:
        arrays = (self.offsets, self.sums, *self.bounds.T, self._before)
        return _Seek(*(memoryview(array) for array in arrays))

    @cached_property
    def _before(self) -> I64:
        """How many inner blocks the intervals before each have, then all: (intervals + 1,)."""
        return sums(self.bounds[:, 1] - self.bounds[:, 0])


@dataclass(frozen=True, slots=True)
class _Seek:
    """The arrays as lists for bisect: NumPy would make an object for each number, which is slow."""

    offsets: Sequence[int]
    sums: Sequence[int]
    starts: Sequence[int]
    stops: Sequence[int]
    before: Sequence[int]


def sums(sizes: NDArray[np.integer[Any]]) -> I64:
    """Return the sum of the sizes before each place, and the sum of all last."""
    out = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=out[1:])
    return out
