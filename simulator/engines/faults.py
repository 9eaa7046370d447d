"""Mistakes to switch on, and the engine that makes them.

Each fault is one line of the online softmax done wrong, as it is done wrong in practice. With a
fault on, this engine computes; the CUDA kernels have none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.base.cache import BoundedCache
from simulator.base.dtypes import F32, frozen, round_to
from simulator.base.matmul import matmul
from simulator.engines.numerics import exp_below
from simulator.engines.numpy_engine import MIB, Engine, NumpyEngine, RowBlock, Tile
from simulator.problem.scenario import Faults
from simulator.problem.workload import Inputs, Workload
from simulator.program.algorithms import ALGORITHMS, algorithm_of, worked_columns
from simulator.program.tile_program import Visit

_ALL = tuple(ALGORITHMS)
_FLASH = tuple(name for name in _ALL if not ALGORITHMS[name].stores_scores)
STRETCH = 16
"""Tiles between two checkpoints of O."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One mistake.

    Attributes
    ----------
    name : str
        Its key in the scenario's table ``[faults]``.
    title : str
        As it is written in pictures.
    words : str
        What goes wrong, in one sentence.
    cites : str
        The paper's line that is done wrong.
    algorithms : tuple of str
        Those that can make it; in the others it is without effect.
    instead : str
        Why the others cannot; empty where all can.
    """

    name: str
    title: str
    words: str
    cites: str
    algorithms: tuple[str, ...]
    instead: str = ""


_ONE_MAXIMUM = "naive takes one maximum over the whole row"

FAULTS = (
    Fault(
        "forget_alpha", "forget alpha",
        "ℓ and O are not rescaled when the maximum rises, so tiles count relative to different "
        "maxima.",
        "Milakov & Gimelshein 2018, Algorithm 3, line 5; Dao 2023, Algorithm 1, lines 9 and 10",
        _FLASH, f"{_ONE_MAXIMUM} and never rescales",
    ),
    Fault(
        "no_maximum", "no maximum",
        "m stays 0 and P is exp(S): right until exp overflows, in float32 at S = 88.7.",
        "Dao 2023, Algorithm 1, line 9; Milakov & Gimelshein 2018, section 2",
        _ALL,
    ),
    Fault(
        "drop_previous_maximum", "drop previous maximum",
        "m is the maximum of this tile alone: alpha makes up for it, until it overflows or a row "
        "sees nothing in a tile.",
        "Dao 2023, Algorithm 1, line 9; Dao et al. 2022, Algorithm 1, line 11",
        _FLASH, _ONE_MAXIMUM,
    ),
    Fault(
        "late_scale", "scale after the softmax",
        "The softmax takes unscaled scores, and its weights are multiplied by the scale.",
        "Vaswani et al. 2017, equation 1",
        _ALL,
    ),
    Fault(
        "late_mask", "mask after the softmax",
        "The mask only zeroes P: the maximum and the sum still hold hidden keys.",
        "Dao et al. 2022, Algorithm 2, line 11",
        _ALL,
    ),
    Fault(
        "half_accumulator", "fp16 accumulator",
        "ℓ and O are rounded to float16 after every tile instead of kept in float32.",
        "Micikevicius et al. 2018, section 3.3",
        _ALL,
    ),
)  # fmt: skip
"""All faults, in the order of the scenario's keys."""


def fault_labels(faults: Faults) -> tuple[str, ...]:
    """Return what marks a picture made with faults, longest first; empty without any.

    ``FAULT: forget alpha``, then shorter ways to say it for small places.
    """
    titles = [fault.title for fault in FAULTS if fault.name in faults.on]
    if not titles:
        return ()
    word = "FAULT" if len(titles) == 1 else "FAULTS"
    return f"{word}: {', '.join(titles)}", f"{len(titles)} {word}", word


def without_effect(fault: Fault, w: Workload) -> str:
    """Return why a fault does nothing in a workload, in words; empty where it can."""
    if w.algorithm not in fault.algorithms:
        return fault.instead
    if fault.name == "late_mask" and not w.mask.hides:
        return "there is no mask here"
    if fault.name == "late_scale" and w.logit_scale == 1:
        return "the scale is 1 here"
    return ""


def numpy_engine(workload: Workload, inputs: Inputs) -> Engine:
    """Return the engine that computes with NumPy: the one with faults where any is on."""
    kind = FaultyEngine if workload.faults.on else NumpyEngine
    return kind(workload, inputs)


@dataclass(frozen=True, slots=True)
class _State:
    """m, l (rows,) and O (rows, dv) of a row block between two tiles."""

    m: F32
    l: F32
    o: F32


@dataclass(frozen=True, slots=True)
class _Walk:
    """States of a row block before every `STRETCH`-th of its tiles."""

    checkpoints: tuple[_State, ...]


class FaultyEngine:
    """Runs a workload tile by tile as the papers write it, with its faults.

    Plain rather than fast: every tile is one call of `_flash_tile` or `_naive_output_tile`. What
    overflows becomes infinite or NaN without a warning.

    Parameters
    ----------
    workload : Workload
        Shapes, mask, tiles and faults.
    inputs : Inputs
        Q, K and V.
    number : dtype, optional
        What it computes in. With float64 and without faults it is what the others are held
        against; arrays are then float64 where their descriptions say float32.
    """

    name = "numpy"

    def __init__(
        self, workload: Workload, inputs: Inputs, number: type[np.floating] = np.float32
    ) -> None:
        self.workload = workload
        self.inputs = inputs
        self.device = "CPU, faults on" if workload.faults.on else "CPU"
        self._number = number
        self._bad = workload.faults
        self._stretches: BoundedCache[tuple[Tile, ...]] = BoundedCache(
            48 * MIB, lambda tiles: sum(t.s.nbytes * 2 + t.o.nbytes for t in tiles)
        )

    # --- the engine protocol ---------------------------------------------------------------

    def forget(self) -> None:
        """Keep no tiles."""
        self._stretches.clear()

    def row_block(self, head: int, i: int) -> RowBlock:
        """Walk one row block, tile by tile."""
        with np.errstate(all="ignore"):
            if algorithm_of(self.workload).stores_scores:
                return self._naive_block(head, i)
            return self._flash_block(head, i)

    def row_blocks(self, head: int) -> Iterator[RowBlock]:
        """Walk all row blocks of a head, in their order."""
        for i in range(self.workload.grid.Tr):
            yield self.row_block(head, i)

    def tile(self, visit: Visit, block: RowBlock) -> Tile:
        """Return the numbers of one visit, computed again from the checkpoint before it."""
        with np.errstate(all="ignore"):
            if algorithm_of(self.workload).stores_scores and visit.launch < 2:
                return self._naive_scores_tile(visit, block)
            nth = self._columns(visit.i).index(visit.j)
            return self._stretch(visit.head, visit.i, block, nth // STRETCH)[nth % STRETCH]

    def row_matrices(self, head: int, i: int, block: RowBlock) -> tuple[F32, F32]:
        """Return S and P of a row block; P is what was multiplied by V."""
        rows = self.workload.grid.row_range(i)
        s = np.full((len(rows), self.workload.seqlen_k), np.nan, dtype=self._number)
        p = np.full_like(s, np.nan)
        for nth, j in enumerate(self._columns(i)):
            with np.errstate(all="ignore"):
                tile = self._stretch(head, i, block, nth // STRETCH)[nth % STRETCH]
            keys = self.workload.grid.col_range(j)
            s[:, keys.start : keys.stop] = self._in_softmax(tile.s, tile.seen)
            p[:, keys.start : keys.stop] = tile.p_used
        return s, p

    # --- FlashAttention --------------------------------------------------------------------

    def _flash_block(self, head: int, i: int) -> RowBlock:
        w, columns = self.workload, self._columns(i)
        state = self._blank(i)
        m = np.empty((len(state.m), w.grid.Tc), dtype=self._number)
        l = np.empty_like(m)
        checkpoints, at = [], 0
        for nth, j in enumerate([*columns, w.grid.Tc]):
            m[:, at:j], l[:, at:j] = state.m[:, None], state.l[:, None]
            if j == w.grid.Tc:
                break
            if nth % STRETCH == 0:
                checkpoints.append(state)
            tile = self._flash_tile(head, i, j, state)
            state, at = _State(tile.m, tile.l, tile.o), j
        o = state.o
        if algorithm_of(w).normalises_last:
            o = round_to(_over(o, state.l).astype(np.float32), w.dtype)
        return self._block(m, l, o, _Walk(tuple(checkpoints)))

    def _flash_tile(self, head: int, i: int, j: int, before: _State) -> Tile:
        """Return one tile's numbers: the online softmax, every fault a flag."""
        bad, keys = self._bad, self.workload.grid.col_range(j)
        s, seen = self._scores(head, i, keys)
        scores = self._in_softmax(s, seen)
        m_tile = np.zeros_like(before.m) if bad.no_maximum else scores.max(axis=1)
        alone = bad.no_maximum or bad.drop_previous_maximum
        m = m_tile.copy() if alone else np.maximum(before.m, m_tile)
        alpha, beta = exp_below(before.m, m), exp_below(m_tile, m)
        carried = np.ones_like(alpha) if bad.forget_alpha else alpha
        if algorithm_of(self.workload).normalises_each_tile:
            p = exp_below(scores, m_tile[:, None])
            l_tile = p.sum(axis=1)
            l = self._stored(carried * before.l + beta * l_tile)
            old, new = _over(carried * before.l, l), _over(beta, l)
        else:
            p = exp_below(scores, m[:, None])
            l_tile = p.sum(axis=1)
            l = self._stored(carried * before.l + l_tile)
            old, new = carried, np.ones_like(carried)
        p_late = self._late(p, seen)
        product = matmul(p if p_late is None else p_late, self._values(head, keys))
        o = self._stored(self._stored(old[:, None] * before.o) + new[:, None] * product)
        return Tile(
            s, seen, before.m, m, before.l, l, m_tile, l_tile, alpha, beta, p, before.o, o, p_late
        )

    # --- naive attention -------------------------------------------------------------------

    def _naive_block(self, head: int, i: int) -> RowBlock:
        w = self.workload
        start = self._blank(i)
        m, l = start.m, start.l
        for j in range(w.grid.Tc):
            m = np.maximum(m, self._row_scores(head, i, j)[0].max(axis=1))
        if self._bad.no_maximum:
            m = np.zeros_like(m)
        for j in range(w.grid.Tc):
            scores, _ = self._row_scores(head, i, j)
            l = self._stored(l + exp_below(scores, m[:, None]).sum(axis=1))
        state, checkpoints = _State(m, l, start.o), []
        for j in range(w.grid.Tc):
            if j % STRETCH == 0:
                checkpoints.append(state)
            state = _State(m, l, self._naive_output_tile(head, i, j, state).o)
        o = round_to(state.o.astype(np.float32), w.dtype)
        m, l = (np.repeat(each[:, None], w.grid.Tc, axis=1) for each in (m, l))
        return self._block(m, l, o, _Walk(tuple(checkpoints)))

    def _naive_output_tile(self, head: int, i: int, j: int, before: _State) -> Tile:
        """Return a tile of the last launch: P as it lies in HBM, and O."""
        keys = self.workload.grid.col_range(j)
        s, seen = self._scores(head, i, keys)
        p = exp_below(self._in_softmax(s, seen), before.m[:, None])
        late = self._late(p, seen)
        p = _over(p if late is None else late, before.l)
        o = self._stored(before.o + matmul(p, self._values(head, keys)))
        m, l, one = before.m, before.l, np.ones_like(before.m)
        return Tile(s, seen, m, m, l, l, m, l, one, one, p, before.o, o)

    def _naive_scores_tile(self, visit: Visit, block: RowBlock) -> Tile:
        """Return a tile of the first launch, or the row block of the second."""
        blank = self._blank(visit.i)
        s, seen = self._scores(visit.head, visit.i, visit.cols)
        m, zero, o = blank.m, blank.l, blank.o
        if visit.launch == 0:
            p = np.zeros_like(s)
            return Tile(s, seen, m, m, zero, zero, m, zero, zero, zero, p, o, o)
        m_end, l_end = block.m[:, -1], block.l[:, -1]
        p = exp_below(self._in_softmax(s, seen), m_end[:, None])
        late = self._late(p, seen)
        return Tile(s, seen, m, m_end, zero, l_end, m_end, l_end, zero, zero + 1, p, o, o, late)

    def _row_scores(self, head: int, i: int, j: int) -> tuple[F32, NDArray[np.bool_]]:
        s, seen = self._scores(head, i, self.workload.grid.col_range(j))
        return self._in_softmax(s, seen), seen

    # --- pieces ----------------------------------------------------------------------------

    def _scores(self, head: int, i: int, keys: range) -> tuple[F32, NDArray[np.bool_]]:
        """Return S of some keys before the mask, and which pairs are visible."""
        w = self.workload
        rows = w.grid.row_range(i)
        q = self.inputs.q[head, rows.start : rows.stop].astype(self._number)
        k = self.inputs.k[w.kv_head_of[head], keys.start : keys.stop].astype(self._number)
        return matmul(q * self._number(w.softmax_scale), k.T), w.mask.visible(rows, keys)

    def _in_softmax(self, s: F32, seen: NDArray[np.bool_]) -> F32:
        return s if self._bad.late_mask else np.where(seen, s, self._number(-np.inf))

    def _late(self, p: F32, seen: NDArray[np.bool_]) -> F32 | None:
        """Return P once it is scaled and masked too late; None where nothing is late."""
        late = p
        if self._bad.late_scale:
            late = late * self._number(self.workload.logit_scale)
        if self._bad.late_mask:
            late = np.where(seen, late, self._number(0))
        return None if late is p else late

    def _stored(self, values: F32) -> F32:
        """Return l or O as its accumulator holds it."""
        if not self._bad.half_accumulator:
            return values
        return values.astype(np.float16).astype(self._number)

    def _values(self, head: int, keys: range) -> F32:
        v = self.inputs.v[self.workload.kv_head_of[head], keys.start : keys.stop]
        return v.astype(self._number)

    def _columns(self, i: int) -> list[int]:
        """Return the column blocks that row block `i` visits."""
        columns: list[int] = worked_columns(self.workload).visited(i).tolist()
        return columns

    def _blank(self, i: int) -> _State:
        rows = len(self.workload.grid.row_range(i))
        o = np.zeros((rows, self.workload.value_dim), dtype=self._number)
        m = np.full(rows, -np.inf, dtype=self._number)
        return _State(m, np.zeros_like(m), o)

    def _block(self, m: F32, l: F32, o: F32, walk: _Walk) -> RowBlock:
        with np.errstate(divide="ignore"):
            lse = m[:, -1] + np.log(l[:, -1])
        lse = np.where(l[:, -1] == 0, -np.inf, lse).astype(self._number)
        size = sum(array.nbytes for array in (m, l, o, lse))
        size += sum(state.o.nbytes for state in walk.checkpoints)
        return RowBlock(frozen(m), frozen(l), frozen(o), frozen(lse), walk, size)

    def _stretch(self, head: int, i: int, block: RowBlock, number: int) -> tuple[Tile, ...]:
        """Return the tiles between checkpoint `number` and the next."""

        def walk() -> tuple[Tile, ...]:
            kept = block.extra
            assert isinstance(kept, _Walk)
            state, tiles = kept.checkpoints[number], []
            step = (
                self._naive_output_tile
                if algorithm_of(self.workload).stores_scores
                else self._flash_tile
            )
            for j in self._columns(i)[number * STRETCH : (number + 1) * STRETCH]:
                tiles.append(step(head, i, j, state))
                state = _State(tiles[-1].m, tiles[-1].l, tiles[-1].o)
            return tuple(tiles)

        return self._stretches.get((head, i, number), walk)


def _over(values: F32, total: F32) -> F32:
    """Return rows of `values` divided by `total` (r,), 0 where that is 0; NaN stays NaN."""
    by = total if values.ndim == 1 else total[:, None]
    return np.divide(values, by, out=np.zeros_like(values), where=by != 0)
