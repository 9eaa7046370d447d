"""What an engine answers, and the engine that answers with NumPy."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from simulator.base.cache import BoundedCache
from simulator.base.dtypes import F32, round_to
from simulator.base.matmul import matmul
from simulator.engines.numerics import exp_below, score_keys
from simulator.engines.row_walk import RowBlockWalk, walk_row_block
from simulator.problem.workload import Inputs, Workload
from simulator.program.algorithms import algorithm_of, worked_columns
from simulator.program.tile_program import Visit

MIB = 2**20


@dataclass(frozen=True, slots=True)
class RowBlock:
    """What an engine knows of one row block once it has run to its end.

    Attributes
    ----------
    m : ndarray
        (rows, Tc) float32, running maximum after each column block.
    l : ndarray
        (rows, Tc) float32, running sum of exponentials after each column block.
    o : ndarray
        (rows, dv) float32, the output as it lies in HBM: rounded to the dtype, except that
        flash1 keeps it in float32.
    lse : ndarray
        (rows,) float32, ``m + ln l``; -inf for a row that saw nothing.
    extra : object
        What the engine itself keeps to answer for single tiles quickly.
    bytes : int
        Memory that all of it takes.
    """

    m: F32
    l: F32
    o: F32
    lse: F32
    extra: object
    bytes: int


@dataclass(frozen=True, slots=True)
class Tile:
    """The numbers of one visit, read-only; r and c are its valid rows and columns.

    In naive's softmax launch the tile is the whole row block. What a launch does not touch
    holds the values it found: nothing seen (``m = -inf``, ``l = 0``, ``O = 0``).

    Attributes
    ----------
    s : ndarray
        (r, c) float32, scaled scores before the mask.
    seen : ndarray
        (r, c) bool, which pairs are visible.
    m_prev, m : ndarray
        (r,) float32, running maximum before and after.
    l_prev, l : ndarray
        (r,) float32, running sum before and after.
    m_tile, l_tile : ndarray
        (r,) float32, maximum and sum of exponentials of this tile alone. `l_tile` is relative
        to `m` in flash2, to `m_tile` in flash1.
    alpha, beta : ndarray
        (r,) float32, ``exp(m_prev - m)`` and ``exp(m_tile - m)``.
    p : ndarray
        (r, c) float32, exponentials of the visible scores: relative to `m` in flash2, to
        `m_tile` in flash1; divided by l in naive's output launch.
    o_prev, o : ndarray
        (r, dv) float32, O before and after: as a sum in flash2 and naive, normalised in flash1.
    p_late : ndarray or None
        (r, c) float32, what is multiplied by V where a fault scales or masks P after it was
        summed; None where that is `p`.
    """

    s: F32
    seen: NDArray[np.bool_]
    m_prev: F32
    m: F32
    l_prev: F32
    l: F32
    m_tile: F32
    l_tile: F32
    alpha: F32
    beta: F32
    p: F32
    o_prev: F32
    o: F32
    p_late: F32 | None = None

    def __post_init__(self) -> None:
        for attribute in fields(self):
            array = getattr(self, attribute.name)
            if array is not None:
                array.flags.writeable = False

    @property
    def p_used(self) -> F32:
        """What is multiplied by V, (r, c)."""
        return self.p if self.p_late is None else self.p_late


class Engine(Protocol):
    """Computes the numbers of a workload, a row block or a tile at a time."""

    name: str
    device: str

    def row_block(self, head: int, i: int) -> RowBlock:
        """Return row block `i` of a head, run to its end."""

    def row_blocks(self, head: int) -> Iterator[RowBlock]:
        """Return all row blocks of a head, in their order."""

    def tile(self, visit: Visit, block: RowBlock) -> Tile:
        """Return the numbers of one visit of that row block."""

    def row_matrices(self, head: int, i: int, block: RowBlock) -> tuple[F32, F32]:
        """Return S (masked) and P of a row block, (rows, Nk) each; NaN in skipped tiles.

        Every tile's P is as that tile computes it; naive's is divided by l.
        """

    def forget(self) -> None:
        """Keep nothing that can be worked out again."""


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A few tiles of a row block between two checkpoints, walked again with everything kept."""

    first: int  # how many visited tiles came before
    columns: tuple[int, ...]  # column block of each tile
    starts: tuple[int, ...]  # where each tile's keys begin in s, and the end
    s: F32  # (keys, rows) before the mask
    masked: F32  # (keys, rows)
    sums: F32  # (tiles + 1, rows, dv), unnormalised O before and after each tile

    @property
    def bytes(self) -> int:
        return self.s.nbytes + self.masked.nbytes + self.sums.nbytes


class NumpyEngine:
    """Runs a workload on the CPU, in float32, with NumPy.

    A row block is walked once, many tiles at a time, and keeps m and l after every tile and
    O at a few of them; a single tile is recomputed from the nearest of those. That is the
    algorithm's own idea: recompute rather than store.

    S and P of the naive algorithm keep float32 values although their bytes are counted at the
    width of the dtype: rounding them is the one step of its CUDA kernels that is not
    imitated.

    Parameters
    ----------
    workload : Workload
        Shapes, mask, tiles.
    inputs : Inputs
        Q, K and V.
    """

    name = "numpy"
    device = "CPU"

    def __init__(self, workload: Workload, inputs: Inputs) -> None:
        self.workload = workload
        self.inputs = inputs
        self._visits = worked_columns(workload)
        # The walk brings its own threads; those of BLAS would only wait for them, spinning.
        threadpool_limits(1, user_api="blas")
        self._threads = min(2, os.cpu_count() or 1)
        self._stretches: BoundedCache[_Stretch] = BoundedCache(48 * MIB, lambda s: s.bytes)

    def forget(self) -> None:
        """Keep no tiles."""
        self._stretches.clear()

    def row_block(self, head: int, i: int) -> RowBlock:
        """Walk one row block; see `simulator.engines.row_walk`."""
        return self._walk(head, i, self._threads)

    def row_blocks(self, head: int) -> Iterator[RowBlock]:
        """Walk all row blocks of a head, in their order, as many at once as there are threads."""
        blocks = range(self.workload.grid.Tr)
        with ThreadPoolExecutor(self._threads) as pool:
            # A few ahead and no more: what is not taken yet stays small.
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
        visible = partial(self._visible, i)
        visits = self._visits.pairs(i)
        walk = walk_row_block(q, k, v, w.logit_scale, w.cols, visits, visible, threads)
        o = walk.o if algorithm_of(w).normalises_each_tile else round_to(walk.o, w.dtype)
        o.flags.writeable = False
        arrays = (walk.m, walk.l, walk.o, walk.lse, walk.checkpoints)
        return RowBlock(walk.m, walk.l, o, walk.lse, walk, sum(a.nbytes for a in arrays))

    def tile(self, visit: Visit, block: RowBlock) -> Tile:
        """Return the numbers of one visit, m and l being those of the row block."""
        if algorithm_of(self.workload).stores_scores and visit.launch == 1:
            return self._softmax_row(visit, block)
        walk = block.extra
        assert isinstance(walk, RowBlockWalk)
        nth = self._visits.before(visit.i, visit.j)
        number = int(np.searchsorted(walk.checkpoint_at, nth, side="right")) - 1
        stretch = self._stretch(visit.head, visit.i, walk, number)
        place = nth - stretch.first
        keys = slice(stretch.starts[place], stretch.starts[place + 1])
        s, masked = stretch.s[keys].T, stretch.masked[keys].T
        m, l = block.m[:, visit.j], block.l[:, visit.j]
        before = self._column_before(visit.i, visit.j)
        m_prev = np.full_like(m, -np.inf) if before is None else block.m[:, before]
        l_prev = np.zeros_like(l) if before is None else block.l[:, before]
        m_tile = masked.max(axis=1)
        alpha, beta = exp_below(m_prev, m), exp_below(m_tile, m)
        o_prev, o = stretch.sums[place], stretch.sums[place + 1]
        if algorithm_of(self.workload).normalises_each_tile:
            p = exp_below(masked, m_tile[:, None])
            o_prev, o = _over(o_prev, l_prev), _over(o, l)
        elif algorithm_of(self.workload).stores_scores:
            return self._naive_tile(visit, block, s, masked, o_prev, o, m_prev, m)
        else:
            p = exp_below(masked, m[:, None])
        l_tile = p.sum(axis=1)
        seen = self._seen(visit)
        return Tile(s, seen, m_prev, m, l_prev, l, m_tile, l_tile, alpha, beta, p, o_prev, o)

    def row_matrices(self, head: int, i: int, block: RowBlock) -> tuple[F32, F32]:
        """Return S and P of a row block, a stretch of tiles at a time."""
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
                p[:, keys] = _over(exp_below(masked, block.m[:, -1:]), block.l[:, -1])
                continue
            tops = block.m[:, columns]
            if algorithm_of(self.workload).normalises_each_tile:
                tops = np.maximum.reduceat(masked, stretch.starts[:-1], axis=1)
            p[:, keys] = exp_below(masked, np.repeat(tops, np.diff(stretch.starts), axis=1))
        return s, p

    def _naive_tile(
        self,
        visit: Visit,
        block: RowBlock,
        s: F32,
        masked: F32,
        o_prev: F32,
        o: F32,
        m_prev: F32,
        m: F32,
    ) -> Tile:
        rows, dv = len(visit.rows), self.workload.value_dim
        nothing, zero = np.full(rows, -np.inf, dtype=np.float32), np.zeros(rows, dtype=np.float32)
        empty = np.zeros((rows, dv), dtype=np.float32)
        seen = self._seen(visit)
        if visit.launch == 0:
            p = np.zeros_like(s)
            return Tile(
                s, seen, nothing, nothing, zero, zero, nothing, zero, zero, zero, p, empty, empty
            )
        m_end, l_end = block.m[:, -1], block.l[:, -1]
        p = _over(exp_below(masked, m_end[:, None]), l_end)
        o_prev = _over(o_prev * exp_below(m_prev, m_end)[:, None], l_end)
        o = _over(o * exp_below(m, m_end)[:, None], l_end)
        return Tile(
            s, seen, m_end, m_end, l_end, l_end, m_end, l_end, zero + 1, zero + 1, p, o_prev, o
        )

    def _softmax_row(self, visit: Visit, block: RowBlock) -> Tile:
        w = self.workload
        q, k, _ = self._operands(visit.head, visit.i)
        s, masked = score_keys(
            q, k, w.logit_scale, [(0, w.seqlen_k)], partial(self._visible, visit.i)
        )
        m, l = block.m[:, -1], block.l[:, -1]
        p = exp_below(masked.T, m[:, None])
        rows = len(visit.rows)
        nothing, zero = np.full(rows, -np.inf, dtype=np.float32), np.zeros(rows, dtype=np.float32)
        empty = np.zeros((rows, w.value_dim), dtype=np.float32)
        seen = self._seen(visit)
        return Tile(s.T, seen, nothing, m, zero, l, m, l, zero, zero + 1, p, empty, empty)

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
        s, masked = score_keys(q, k, w.logit_scale, ranges, partial(self._visible, i))
        sums = np.empty((stop - first + 1, *walk.checkpoints.shape[1:]), dtype=np.float32)
        sums[0] = walk.checkpoints[number]
        before = self._column_before(i, columns[0])
        blank = np.full(len(q), -np.inf, dtype=np.float32)
        m_prev = blank if before is None else walk.m[:, before]
        starts = [0]
        for n, (j, (k0, k1)) in enumerate(zip(columns, ranges, strict=True)):
            at, m = starts[-1], walk.m[:, j]
            starts.append(at + k1 - k0)
            p = exp_below(masked[at : starts[-1]], m[None, :])
            matmul(p.T, v[k0:k1], out=sums[n + 1])
            sums[n + 1] += exp_below(m_prev, m)[:, None] * sums[n]
            m_prev = m
        sums[-1] = walk.checkpoints[number + 1]  # the same to rounding; one number, one source
        return _Stretch(first, columns, tuple(starts), s, masked, sums)

    def _operands(self, head: int, i: int) -> tuple[F32, F32, F32]:
        rows, kv_head = self.workload.grid.row_range(i), self.workload.kv_head_of[head]
        q = self.inputs.q[head, rows.start : rows.stop]
        return q, self.inputs.k[kv_head], self.inputs.v[kv_head]

    def _column_before(self, i: int, j: int) -> int | None:
        nth = self._visits.before(i, j)
        return self._visits.nth(i, nth - 1) if nth else None

    def _visible(self, i: int, k0: int, k1: int) -> NDArray[np.bool_] | None:
        """Return the mask of some keys for a row block, None where it hides nothing."""
        grid = self.workload.grid
        if not self.workload.mask.hides:
            return None
        if grid.full_columns.covers(i, range(k0 // grid.cols, -(-k1 // grid.cols))):
            return None
        return self.workload.mask.visible(grid.row_range(i), range(k0, k1))

    def _seen(self, visit: Visit) -> NDArray[np.bool_]:
        return self.workload.mask.visible(visit.rows, visit.cols)


def _over(values: F32, total: F32) -> F32:
    """Return rows of `values` (r, n) divided by `total` (r,), 0 where that is 0."""
    out = np.zeros_like(values)
    np.divide(values, total[:, None], out=out, where=total[:, None] > 0)
    return out
