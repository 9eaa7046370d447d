"""The tiles of one split, many per NumPy call, with the same bits as one by one.

The numbers of a tile alone (its scores, their maximum, its exponentials, their sum and their
product with V) are made for a stack of tiles at once: NumPy does the same with each tile as with
one alone. Few numbers go from tile to tile: m, and O with l as one more column. They are made tile
by tile, in the order and with the roundings of the ops.

References
----------
T. Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning", 2023,
Algorithm 1, lines 8-10.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from simulator.base.cache import ARRAY
from simulator.base.dtypes import F32
from simulator.base.matmul import matmul
from simulator.engines.numerics import Change, Visible
from simulator.problem.intervals import I64
from simulator.program.ops import exp_shift, kept_unless_larger

T = TypeVar("T", np.float32, np.bool_)
STACK_KEYS = 2048
"""Keys of a stack: its tiles of K and V stay in cache."""
KEPT_BYTES = 4 * 2**20
"""Bytes of a split's kept sums; the sums between two kept ones are added up again."""


@dataclass(frozen=True, slots=True)
class Split:
    """The inputs of the tiles of a split."""

    q: F32  # (rows, d) float32, queries times the scale
    # k, v: (Nk, d) and (Nk, dv) float32
    k: F32
    v: F32
    cols: int  # keys of a column block; the last one may have fewer
    columns: I64  # the visited column blocks, ascending
    visible: Visible  # as `numerics.mask_into` takes it
    change: Change | None  # as `numerics.change_in` takes it
    keeps: float | None  # by how much m must grow to move; None: by anything

    def stacks(self, first: int, stop: int) -> Iterator[TileStack]:
        """Yield the tiles from number `first` to before number `stop`, in stacks of one width."""
        most, n_keys = max(1, STACK_KEYS // self.cols), len(self.k)
        whole = n_keys // self.cols
        while first < stop:
            n, start = 1, int(self.columns[first]) * self.cols
            while (
                n < min(most, stop - first)
                and self.columns[first + n] == self.columns[first] + n
                and self.columns[first + n] < whole
            ):
                n += 1
            keys = range(start, min(start + n * self.cols, n_keys))
            yield TileStack(first, n, keys)
            first += n

    def scores(self, stack: TileStack) -> F32:
        """Return the masked scores of a stack, (tiles, rows, width)."""
        start, stop = stack.keys.start, stack.keys.stop
        k = self.k[start:stop].reshape(stack.tiles, stack.width, -1)
        s: F32 = matmul(self.q[None], k.transpose(0, 2, 1))
        if self.change is not None:
            s = _in_tiles(self.change(start, stop, _in_rows(s)), stack.tiles)
        seen = self.visible(start, stop)
        if seen is not None:
            np.copyto(s, -np.inf, where=_in_tiles(~seen, stack.tiles))
        return s

    def maxima(self, s: F32, before: F32) -> F32:
        """Return m before the first tile of a stack and after each, (tiles + 1, rows)."""
        m = np.concatenate([before[None], s.max(axis=2)])
        if self.keeps is None:
            return np.maximum.accumulate(m)
        for n in range(1, len(m)):
            m[n] = kept_unless_larger(m[n - 1], m[n], self.keeps)
        return m

    def added(self, stack: TileStack, s: F32, m: F32) -> F32:
        """Return each tile's terms of O and, in the last column, of l: (tiles, rows, dv + 1)."""
        p = exp_shift(s, m[1:, :, None])
        v = self.v[stack.keys.start : stack.keys.stop].reshape(stack.tiles, stack.width, -1)
        return np.concatenate([matmul(p, v), p.sum(axis=2)[:, :, None]], axis=2)


@dataclass(frozen=True, slots=True)
class TileStack:
    """Tiles of one split that follow each other and have equally many keys."""

    first: int  # how many tiles of the split come before
    tiles: int  # how many tiles the stack has
    keys: range  # keys of all tiles

    @property
    def width(self) -> int:
        """Keys of each tile."""
        return len(self.keys) // self.tiles


@dataclass(frozen=True, slots=True)
class SplitWalk:
    """The numbers of a split after no tile, one tile, two tiles and so on to all."""

    split: Split  # the inputs
    # m, l: (tiles + 1, rows) float32
    m: F32
    l: F32
    # (kept, rows, dv + 1) float32: O, not divided, and l as the last column, after every `apart`-th
    # tile and last after all tiles
    sums: F32
    apart: int  # tiles from one kept sum to the next

    @property
    def bytes(self) -> int:
        """Memory of the walk without its inputs."""
        own = self.m, self.l, self.sums, self.split.columns
        return sum(array.nbytes + ARRAY for array in own)

    def o_after(self, tiles: int) -> F32:
        """Return O, not divided, after so many tiles."""
        if tiles == len(self.split.columns):
            return np.asarray(self.sums[-1, :, :-1])
        nearest = tiles // self.apart
        total: F32 = self.sums[nearest]
        for stack in self.split.stacks(nearest * self.apart, tiles):
            m = self.m[stack.first : stack.first + stack.tiles + 1]
            added = self.split.added(stack, self.split.scores(stack), m)
            *_, total = _running(total, added, m)
        return total[:, :-1]

    def pairs(self) -> Iterator[tuple[range, F32, F32]]:
        """Yield S (masked) and P of some keys, (rows, keys) each, until all tiles are done."""
        for stack in self.split.stacks(0, len(self.split.columns)):
            s = self.split.scores(stack)
            m = self.m[stack.first + 1 : stack.first + stack.tiles + 1]
            yield stack.keys, _in_rows(s), _in_rows(exp_shift(s, m[:, :, None]))


def walk_split(split: Split, m: F32, l: F32) -> SplitWalk:
    """Go through all tiles of a split, from m and l before the first tile."""
    tiles, shape = len(split.columns), (len(m), split.v.shape[1] + 1)
    apart = max(1, ceil(tiles * shape[0] * shape[1] * m.itemsize / KEPT_BYTES))
    tops, totals = (np.empty((tiles + 1, len(m)), np.float32) for _ in range(2))
    total = np.zeros(shape, np.float32)
    total[:, -1] = l
    tops[0], totals[0], kept = m, l, [total]
    for stack in split.stacks(0, tiles):
        s = split.scores(stack)
        now = split.maxima(s, tops[stack.first])
        after = slice(stack.first + 1, stack.first + stack.tiles + 1)
        tops[after] = now[1:]
        running = _running(total, split.added(stack, s, now), now)
        for n, total in enumerate(running, after.start):
            totals[n] = total[:, -1]
            if n % apart == 0:
                kept.append(total)
    sums = np.stack([*kept, total])
    for array in (tops, totals, sums):
        array.flags.writeable = False
    return SplitWalk(split, tops, totals, sums, apart)


def _running(total: F32, added: F32, m: F32) -> Iterator[F32]:
    """Yield O and l after each tile of a stack: ``alpha`` times the old sum, plus new terms."""
    alpha = exp_shift(m[:-1], m[1:])[:, :, None]
    for factor, own in zip(alpha, added, strict=True):
        total = factor * total
        total += own
        yield total


def _in_rows(s: F32) -> F32:
    """Return the scores of a stack as (rows, keys)."""
    return s.transpose(1, 0, 2).reshape(s.shape[1], -1)


def _in_tiles(rows: NDArray[T], tiles: int) -> NDArray[T]:
    """Return an array (rows, keys) in the shape of a stack, (tiles, rows, width)."""
    return np.ascontiguousarray(rows.reshape(len(rows), tiles, -1).transpose(1, 0, 2))
