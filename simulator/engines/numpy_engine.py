"""The engine that computes with NumPy, many tiles at a time."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from simulator.base.cache import ARRAY, MIB, BoundedCache
from simulator.base.dtypes import F32, round_to
from simulator.base.matmul import matmul
from simulator.engines.gradient_engine import GradientEngine
from simulator.engines.numerics import change_of, score_keys, visible_to
from simulator.engines.op_engine import OpEngine
from simulator.engines.protocol import Engine, RowBlock, Tile, gone_through
from simulator.engines.row_walk import RowBlockWalk, walk_row_block
from simulator.engines.split_engine import SplitEngine
from simulator.engines.state_engine import StateEngine
from simulator.problem.workload import Inputs, Workload
from simulator.program.algorithms import algorithm_of, worked_columns
from simulator.program.faults import honest
from simulator.program.ops import exp_shift, over
from simulator.program.tile_program import Visit


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A few tiles of a row block between two checkpoints, computed again with all numbers."""

    first: int  # how many visited tiles came before
    columns: tuple[int, ...]  # column block of each tile
    starts: tuple[int, ...]  # where each tile's keys begin in s, and the end
    s: F32  # (keys, rows) before the mask
    masked: F32  # (keys, rows)
    sums: F32  # (tiles + 1, rows, dv), unnormalised O before and after each tile

    @property
    def bytes(self) -> int:
        return 3 * ARRAY + self.s.nbytes + self.masked.nbytes + self.sums.nbytes


class NumpyEngine:
    """Runs a workload on the CPU, in float32, with NumPy.

    A row block is walked once, many tiles at a time, and keeps m and l after every tile and O after
    a few tiles; a single tile is recomputed from the nearest kept O. This is the idea of the
    algorithm itself: recompute rather than store.

    S and P of the naive algorithm are float32 although their bytes are counted at the width of the
    dtype. Where they are to be rounded (`Workload.pair_dtype`), `OpEngine` runs.
    """

    name = "numpy"
    device = "CPU"

    def __init__(self, workload: Workload, inputs: Inputs) -> None:
        self.workload = workload
        self.inputs = inputs
        self._visits = worked_columns(workload)
        # The walk has its own threads; BLAS threads would only wait for them and use a processor.
        threadpool_limits(1, user_api="blas")
        self._threads = min(2, os.cpu_count() or 1)
        self._stretches: BoundedCache[_Stretch] = BoundedCache(48 * MIB, lambda s: s.bytes)

    def forget(self) -> None:
        """Forget all tiles."""
        self._stretches.clear()

    def row_block(self, head: int, i: int) -> RowBlock:
        """Walk one row block; see `simulator.engines.row_walk`."""
        return self._walk(head, i, self._threads)

    def row_blocks(self, head: int) -> Iterator[RowBlock]:
        """Walk all row blocks of a head, in their order, as many at once as there are threads."""
        blocks = range(self.workload.grid.Tr)
        with ThreadPoolExecutor(self._threads) as pool:
            # Only a few ahead, so that few finished row blocks wait in memory.
            waiting: deque[Future[RowBlock]] = deque()
            for i in blocks:
                waiting.append(pool.submit(self._walk, head, i, 1))
                if len(waiting) > 2 * self._threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def _walk(self, head: int, i: int, threads: int) -> RowBlock:
        w = self.workload
        q, k, v = self._operands(head, i)
        visits = self._visits.pairs(i)
        walk = walk_row_block(
            q, k, v, w.scoring.factor, w.cols, visits, visible_to(w, head, i), threads,
            change_of(w, head, i), self._start(head, i) if w.sink_logits else None, w.keeps,
        )  # fmt: skip
        o = self._gated(walk.o, head, i)
        o = o if algorithm_of(w).normalises_each_tile else round_to(o, w.dtype)
        o.flags.writeable = False
        arrays = (walk.m, walk.l, walk.o, walk.lse, walk.checkpoints)
        return RowBlock(walk.m, walk.l, o, walk.lse, walk, sum(a.nbytes + ARRAY for a in arrays))

    def tile(self, visit: Visit, block: RowBlock) -> Tile:
        """Return the numbers of one visit, with m and l as the row block has them."""
        w, algorithm = self.workload, algorithm_of(self.workload)
        again = partial(gone_through, w, self.inputs, visit)
        ends = {"m": block.m[:, -1], "l": block.l[:, -1]}
        if algorithm.stores_scores and visit.launch == 1:
            s, masked = self._scores(visit)
            # With a sink these are not m and l of the tile alone; the ops compute the tile's.
            tiles = {} if w.sink_logits else {"m_tile": ends["m"], "l_tile": ends["l"]}
            return again(before={}, loads={"S": masked}, recorded={**tiles, **ends}, unmasked=s)
        walk = block.extra
        assert isinstance(walk, RowBlockWalk)
        nth = self._visits.before(visit.i, visit.j)
        number = int(np.searchsorted(walk.checkpoint_at, nth, side="right")) - 1
        stretch = self._stretch(visit.head, visit.i, walk, number)
        place = nth - stretch.first
        keys = slice(stretch.starts[place], stretch.starts[place + 1])
        s, masked = stretch.s[keys].T, stretch.masked[keys].T
        if algorithm.stores_scores and visit.launch == 0:
            return again(before={}, recorded={"S": s})
        m, l = block.m[:, visit.j], block.l[:, visit.j]
        o_prev, o = stretch.sums[place], stretch.sums[place + 1]
        before = self._column_before(visit.i, visit.j)
        m_prev, l_prev = self._start(visit.head, visit.i)
        if before is not None:
            m_prev, l_prev = block.m[:, before], block.l[:, before]
        if algorithm.stores_scores:
            p = over(exp_shift(masked, ends["m"][:, None]), ends["l"][:, None])
            o_prev, o = (
                over(o_then * exp_shift(m_then, ends["m"])[:, None], ends["l"][:, None])
                for o_then, m_then in ((o_prev, m_prev), (o, m))
            )
            found = ends if visit.first else {**ends, "O": o_prev}
            return again(before=found, loads={"P": p}, recorded={"O": o}, unmasked=s)
        if algorithm.normalises_each_tile:
            o_prev, o = over(o_prev, l_prev[:, None]), over(o, l[:, None])
        starts = visit.first and algorithm.normalises_last
        found = {} if starts else {"m": m_prev, "l": l_prev, "O": o_prev}
        return again(before=found, recorded={"S": s, "m": m, "l": l, "O": o})

    def row_matrices(self, head: int, i: int, block: RowBlock) -> tuple[F32, F32]:
        """Return S and P of a row block, a few tiles at a time."""
        walk, grid = block.extra, self.workload.grid
        assert isinstance(walk, RowBlockWalk)
        s = np.full((len(grid.row_range(i)), self.workload.seqlen_k), np.nan, dtype=np.float32)
        p = np.full_like(s, np.nan)
        for number in range(len(walk.checkpoint_at) - 1):
            stretch = self._stretch(head, i, walk, number)
            columns, masked = list(stretch.columns), stretch.masked.T
            keys = np.concatenate([grid.col_range(j) for j in columns])
            s[:, keys] = masked
            if algorithm_of(self.workload).stores_scores:
                p[:, keys] = over(exp_shift(masked, block.m[:, -1:]), block.l[:, -1:])
                continue
            tops = block.m[:, columns]
            if algorithm_of(self.workload).normalises_each_tile:
                tops = np.maximum.reduceat(masked, stretch.starts[:-1], axis=1)
            p[:, keys] = exp_shift(masked, np.repeat(tops, np.diff(stretch.starts), axis=1))
        return s, p

    def _scores(self, visit: Visit) -> tuple[F32, F32]:
        """Return the scores of whole rows before and after the mask."""
        w = self.workload
        q, k, _ = self._operands(visit.head, visit.i)
        s, masked = score_keys(
            q, k, w.scoring.factor, [(0, w.seqlen_k)], visible_to(w, visit.head, visit.i),
            change_of(w, visit.head, visit.i),
        )  # fmt: skip
        return s.T, masked.T

    def _stretch(self, head: int, i: int, walk: RowBlockWalk, number: int) -> _Stretch:
        """Return the tiles between checkpoint `number` and the next."""
        key = (head, i, number)
        return self._stretches.get(key, lambda: self._walk_again(head, i, walk, number))

    def _walk_again(self, head: int, i: int, walk: RowBlockWalk, number: int) -> _Stretch:
        w, grid = self.workload, self.workload.grid
        first, stop = (int(n) for n in walk.checkpoint_at[number : number + 2])
        columns = tuple(self._visits.nth(i, n) for n in range(first, stop))
        ranges = [(grid.col_range(j).start, grid.col_range(j).stop) for j in columns]
        q, k, v = self._operands(head, i)
        s, masked = score_keys(
            q, k, w.scoring.factor, ranges, visible_to(w, head, i), change_of(w, head, i)
        )
        sums = np.empty((stop - first + 1, *walk.checkpoints.shape[1:]), dtype=np.float32)
        sums[0] = walk.checkpoints[number]
        before = self._column_before(i, columns[0])
        m_prev = self._start(head, i)[0] if before is None else walk.m[:, before]
        tops = np.ascontiguousarray(walk.m[:, columns].T)
        shrinks = exp_shift(np.concatenate([m_prev[None], tops[:-1]]), tops)  # of all tiles at once
        starts = [0]
        for n, (k0, k1) in enumerate(ranges):
            at = starts[-1]
            starts.append(at + k1 - k0)
            p = exp_shift(masked[at : starts[-1]], tops[n])
            matmul(p.T, v[k0:k1], out=sums[n + 1])
            sums[n + 1] += shrinks[n][:, None] * sums[n]
        sums[-1] = walk.checkpoints[number + 1]  # so that O has the same bits everywhere
        return _Stretch(first, columns, tuple(starts), s, masked, sums)

    def _operands(self, head: int, i: int) -> tuple[F32, F32, F32]:
        rows, kv_head = self.workload.grid.row_range(i), self.workload.kv_head_of[head]
        q = self.inputs.q[head, rows.start : rows.stop]
        return q, self.inputs.k[kv_head], self.inputs.v[kv_head]

    def _gated(self, o: F32, head: int, i: int) -> F32:
        """Return O of a row block as it is stored: times its gate, if there is one."""
        if not self.workload.gated:
            return o
        assert self.inputs.output_gate is not None
        rows = self.workload.grid.row_range(i)
        return o * self.inputs.output_gate[head, rows.start : rows.stop]

    def _start(self, head: int, i: int) -> tuple[F32, F32]:
        """Return m and l of a row block before its first tile."""
        m, l = self.workload.start(head, self.workload.grid.row_range(i))
        return m.astype(np.float32), l.astype(np.float32)

    def _column_before(self, i: int, j: int) -> int | None:
        nth = self._visits.before(i, j)
        return self._visits.nth(i, nth - 1) if nth else None


def numpy_engine(workload: Workload, inputs: Inputs) -> Engine:
    """Return the NumPy engine of a workload.

    The engine goes op by op if tiles cannot be walked, a fault is on or P and S are rounded.
    """
    own = algorithm_of(workload)
    if own.walks and not workload.faults.on and workload.pair_dtype is None:
        return (SplitEngine if own.splits else NumpyEngine)(workload, inputs)
    return op_engine(workload, inputs)


def op_engine(workload: Workload, inputs: Inputs, number: type[np.floating] = np.float32) -> Engine:
    """Return the engine that does every op of a workload as it is written."""
    if algorithm_of(workload).backward:
        forward = forward_engine(workload, inputs, number)
        return GradientEngine(workload, inputs, forward, number)
    kind = OpEngine if algorithm_of(workload).softmax else StateEngine
    return kind(workload, inputs, number)


def forward_engine(
    workload: Workload, inputs: Inputs, number: type[np.floating] = np.float32
) -> Engine:
    """Return the engine of the forward pass that a backward pass starts with."""
    name = algorithm_of(workload).forward
    assert name is not None
    before = honest(workload).as_algorithm(name)
    if number is np.float32:
        return numpy_engine(before, inputs)
    return op_engine(before, inputs, number)
