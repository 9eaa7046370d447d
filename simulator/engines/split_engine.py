"""The engine of algorithms that deal keys out to splits, many tiles at a time.

Its results have the same bits as `OpEngine`'s: only the tiles of a split are computed at once
(`simulator.engines.split_walk`). Everything else is done op by op: the ops after a split's last
tile, the visit that joins the splits, and a single visit that is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from simulator.base.dtypes import F32, frozen, round_to
from simulator.engines.numerics import change_of, visible_to
from simulator.engines.op_engine import OpEngine
from simulator.engines.protocol import RowBlock, Tile, blank
from simulator.engines.split_walk import Split, SplitWalk, walk_split
from simulator.problem.workload import Inputs, Workload
from simulator.program.state import State
from simulator.program.tile_program import Visit


@dataclass(frozen=True, slots=True)
class _Walked:
    """The splits of a row block, and the HBM that they have left for the visit that joins them."""

    splits: tuple[SplitWalk, ...]
    left: State

    @property
    def bytes(self) -> int:
        partials = sum(array.nbytes for name, array in self.left.hbm.items()
                       if name in self.left.written)  # fmt: skip
        return partials + sum(walk.bytes for walk in self.splits)


class SplitEngine(OpEngine):
    """Runs a workload of splits in float32, without faults."""

    def __init__(self, workload: Workload, inputs: Inputs) -> None:
        super().__init__(workload, inputs)
        threadpool_limits(1, user_api="blas")  # tiles of a few rows are too small to share

    def row_block(self, head: int, i: int) -> RowBlock:
        """Compute all splits of a row block, and join them."""
        w, rows = self.workload, self.workload.grid.row_range(i)
        splits = tuple(self._walk(head, i, number) for number in range(w.splits))
        with np.errstate(all="ignore"):
            left = self._start(head, rows)
            for number, walk in enumerate(splits):
                self._end(left, walk, head, i, number)
            state = left.copy()
            joins = self._program.joining(head, i)
            assert joins is not None
            for _ in self._steps(state, self._program.visit(joins), self._program.ops(joins)):
                pass
        o = round_to(state.hbm["O"][0].astype(np.float32), w.dtype)
        lse, (m, l) = state.hbm["LSE"][0], self._after_columns(head, i, splits)
        extra = _Walked(splits, left)
        size = extra.bytes + sum(array.nbytes for array in (m, l, o, lse))
        return RowBlock(frozen(m), frozen(l), frozen(o), frozen(lse), extra, size)

    def tile(self, visit: Visit, block: RowBlock) -> Tile:
        """Return the numbers of one visit, computed again from the state that it finds."""
        walked = block.extra
        assert isinstance(walked, _Walked)
        state = walked.left.copy()
        if not self._program.launches[visit.launch].combines:
            walk, nth = walked.splits[visit.split], self._nth(visit)
            state.chip = {"m": walk.m[nth], "l": walk.l[nth], "O": walk.o_after(nth)}
        with np.errstate(all="ignore"):
            return self._tile(state, visit)

    @np.errstate(all="ignore")
    def row_matrices(self, head: int, i: int, block: RowBlock) -> tuple[F32, F32]:
        """Return S and P of a row block, some tiles at a time."""
        walked = block.extra
        assert isinstance(walked, _Walked)
        s = np.full((len(block.o), self.workload.seqlen_k), np.nan, dtype=np.float32)
        p = np.full_like(s, np.nan)
        for walk in walked.splits:
            for keys, scores, weights in walk.pairs():
                s[:, keys.start : keys.stop] = scores
                p[:, keys.start : keys.stop] = weights
        return s, p

    # --- pieces ----------------------------------------------------------------------------

    @np.errstate(all="ignore")
    def _walk(self, head: int, i: int, number: int) -> SplitWalk:
        w, inputs, rows = self.workload, self.inputs, self.workload.grid.row_range(i)
        kv_head = w.kv_head_of[head]
        split = Split(
            q=w.scoring.queries(inputs.q[head, rows.start : rows.stop]),
            k=inputs.k[kv_head],
            v=inputs.v[kv_head],
            cols=w.cols,
            columns=self._program.launches[0].visits.visited(i * w.splits + number),
            visible=visible_to(w, head, i),
            change=change_of(w, head, i),
            keeps=w.keeps,
        )
        m, l = w.start(head, rows, number)
        return walk_split(split, m.astype(np.float32), l.astype(np.float32))

    def _end(self, state: State, walk: SplitWalk, head: int, i: int, number: int) -> None:
        """Do the ops after the last tile of a split: O is divided and stored."""
        tiles = len(walk.split.columns)
        if tiles:  # a split that sees nothing has been cleared at the start
            index = self._program.index(head, i, int(walk.split.columns[-1]))
            assert index is not None
            visit, ops_of = self._program.visit(index), self._program.algorithm.ops
            of_any = ops_of(self.workload, replace(visit, last=False))
            state.chip |= {"m": walk.m[-1], "l": walk.l[-1], "O": walk.o_after(tiles)}
            for op in ops_of(self.workload, visit)[len(of_any) :]:
                op.apply(state)

    def _after_columns(self, head: int, i: int, splits: tuple[SplitWalk, ...]) -> tuple[F32, F32]:
        """Return m and l after every column block, each in the split of the block."""
        w = self.workload
        columns = np.concatenate([walk.split.columns for walk in splits])
        seen = np.searchsorted(columns, np.arange(w.grid.Tc), side="right")
        nothing = blank(w, head, w.grid.row_range(i))
        m = np.concatenate([nothing["m"][None], *(walk.m[1:] for walk in splits)])
        l = np.concatenate([nothing["l"][None], *(walk.l[1:] for walk in splits)])
        return np.ascontiguousarray(m[seen].T), np.ascontiguousarray(l[seen].T)

    def _nth(self, visit: Visit) -> int:
        """Return how many tiles of its split come before a visit."""
        return visit.index - self._program.block_bounds(visit.index)[0]
