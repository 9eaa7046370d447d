"""Query heads packed into rows: in one block the heads of a KV head follow each other.

A decoding step has one query for each head. Packed, the queries that read the same K and V are the
rows of one block, which loads them once.

References: Dao-AILab/flash-attention, hopper/pack_gqa.h.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.base.errors import SCENARIO, refuse
from simulator.problem.facts import PACKED
from simulator.problem.hardware import Gpu
from simulator.problem.intervals import I64, Intervals
from simulator.problem.masks import Mask
from simulator.problem.values import MAX_SPLITS

if TYPE_CHECKING:
    from simulator.problem.workload import Workload


@dataclass(frozen=True, slots=True)
class PackedMask(Mask):
    """A mask of packed rows: row `r` sees what row ``r mod queries`` of its head sees."""

    queries: int = 1  # rows of one head; `seqlen_q` counts all rows of a KV head's heads

    @property
    def _rows_of_head(self) -> int:
        return self.queries

    def _of_one_head(self, rows: range) -> I64:
        return np.arange(rows.start, rows.stop) % self.queries

    def _parts(self, rows: int) -> tuple[tuple[I64, I64], tuple[I64, I64]]:
        """Return ``i'`` of the first and last row of each row block, in its one or two heads.

        A block that reaches from one head into the next has a part in each; if a block contains
        whole heads, both parts are all rows of a head.
        """
        first = np.arange(-(-self.seqlen_q // rows)) * rows
        last = np.minimum(first + rows, self.seqlen_q) - 1
        start, stop = first % self.queries, last % self.queries
        one = first // self.queries == last // self.queries
        whole = (last - first + 1 >= self.queries) | (~one & (stop + 1 >= start))
        end = self.queries - 1
        begins = np.where(whole, 0, start), np.where(whole | ~one, 0, start)
        ends = np.where(whole | ~one, end, stop), np.where(whole, end, stop)
        shift = self.shift
        return (begins[0] + shift, ends[0] + shift), (begins[1] + shift, ends[1] + shift)

    def _apart(self, rows: int) -> tuple[tuple[I64, I64], ...]:
        """Return the parts of row blocks; only one part if both see the same keys."""
        one, other = self._parts(rows)
        same = not self.hides or all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
        return (one,) if same else (one, other)

    def visited_columns(self, rows: int, cols: int | I64) -> Intervals:
        """Return the column blocks in which each row block sees anything."""
        if not self.simple:
            return self._visited(rows, cols)
        one, *other = (self._visited_between(*part, cols) for part in self._apart(rows))
        return one.joined(*other) if other else one

    def full_columns(self, rows: int, cols: int) -> Intervals:
        if not self.simple:
            return self._full(rows, cols)
        one, *other = (self._full_between(*part, cols) for part in self._apart(rows))
        return one.common(*other) if other else one

    def visited_rows(self, rows: int | I64, cols: int) -> Intervals:
        """Return the row blocks that see anything of each column block."""
        assert isinstance(rows, int)
        return self.visited_columns(rows, cols).turned(-(-self.seqlen_k // cols))

    def full_rows(self, rows: int, cols: int) -> Intervals:
        return self.full_columns(rows, cols).turned(-(-self.seqlen_k // cols))


def packed(mask: Mask, group: int) -> PackedMask:
    """Return the mask of the rows of `group` heads in one block."""
    queries = mask.seqlen_q
    return PackedMask(**_said(mask) | {"seqlen_q": queries * group}, queries=queries)


def unpacked(mask: Mask) -> Mask:
    """Return the mask of one head's rows."""
    queries = mask.queries if isinstance(mask, PackedMask) else mask.seqlen_q
    return Mask(**_said(mask) | {"seqlen_q": queries})


def _said(mask: Mask) -> dict[str, Any]:
    """Return the fields of a mask, packed or not."""
    return {field.name: getattr(mask, field.name) for field in fields(Mask)}


def group_of(picked: tuple[int, ...], kv_picked: tuple[int, ...]) -> int:
    """Return how many query heads share each KV head, all of them next to each other."""
    counts = [kv_picked.count(kv) for kv in sorted(set(kv_picked))]
    if len(set(counts)) > 1 or list(kv_picked) != sorted(kv_picked):
        expected = "as many query heads of each KV head, in their order: they are packed"
        raise refuse(SCENARIO, "input.head", list(picked), expected)
    return counts[0]


FILLED = 0.8  # from this share of the SMs on, thread blocks fill a GPU
FEW_BLOCKS = 4  # this many column blocks or fewer are not divided
NEARLY = 0.85  # a last wave is full enough from this share of the fullest on
MOST_SPLITS = 128


@dataclass(frozen=True, slots=True)
class SplitChoice:
    """Into how many runs ``splits = "auto"`` divides the column blocks, and why."""

    splits: int  # the number
    answer: str  # the number in words, with the reason that decides
    reasons: tuple[str, ...]  # line by line, the questions before that reason


def chosen_splits(
    blocks: int, thread_blocks: int, gpu: Gpu, limit: int = MOST_SPLITS
) -> SplitChoice:
    """Return the number of splits for ``splits = "auto"``, with its reasons.

    blocks: column blocks; in a batch, the most that one sequence has.
    thread_blocks: row blocks of all KV heads and all sequences: thread blocks without splits.

    References: Dao-AILab/flash-attention, hopper/heuristics.h, ``num_splits_heuristic``: 1 where
    the thread blocks fill 0.8 of the SMs or there are 4 column blocks or fewer; else the fewest
    splits whose last wave is at least 0.85 as full as the best.
    """
    share = thread_blocks / gpu.sms
    alone = f"{thread_blocks} thread block{'s' * (thread_blocks != 1)}"
    asked = f"without splits {alone} for {gpu.sms} SMs: {share:.3f} of them"
    if share >= FILLED:
        answer = "1 split, because without splits the GPU is full enough"
        return SplitChoice(1, answer, (f"{asked}, at least {FILLED}",))
    reasons = [f"{asked}, fewer than {FILLED}"]
    if blocks <= FEW_BLOCKS:
        answer = "1 split, because the column blocks are too few to divide"
        return SplitChoice(1, answer, (*reasons, f"{blocks} column blocks, at most {FEW_BLOCKS}"))
    most = min(limit, gpu.sms, blocks)
    reasons.append(f"{blocks} column blocks, more than {FEW_BLOCKS}: they can be divided")
    reasons.append(f"at most {most} splits: of {limit}, {gpu.sms} SMs, {blocks} column blocks")
    waves = [thread_blocks * n / gpu.sms for n in range(1, most + 1)]
    full = [float(wave / np.ceil(wave)) for wave in waves]
    best = max(full)
    splits = next(n for n, each in enumerate(full, start=1) if each >= NEARLY * best)
    number, fullest = (f"{n} split{'s' * (n != 1)}" for n in (splits, full.index(best) + 1))
    if number == fullest:
        why = (
            f"whose waves are the fullest ({best:.3f} full): no fewer are at least {NEARLY} as full"
        )
    else:
        why = (
            f"the fewest whose waves ({full[splits - 1]:.3f} full) are at least {NEARLY} as full "
            f"as the fullest ({best:.3f}, {fullest})"
        )
    answer = f"{number}, {why}"
    return SplitChoice(splits, answer, tuple(reasons))


def check_split_size(w: Workload) -> None:
    """Refuse splits that cut a tile, or more splits than can be joined."""
    size = w.scenario.tiling.split_size
    if not size or w.algorithm not in PACKED:
        return
    expected = f"a multiple of Bc = {w.cols}: a split is a whole number of tiles"
    if not size % w.cols:
        least = math.ceil(w.grid.Tc / MAX_SPLITS) * w.cols
        expected = f"at least {least}: {w.seqlen_k} keys in at most {MAX_SPLITS} splits"
    if size % w.cols or w.splits > MAX_SPLITS:
        raise refuse(SCENARIO, "tiling.split_size", size, expected)
