"""The engine that does every op as it is written, in float32 or float64, and with faults.

The engine runs any algorithm and is simple rather than fast. It computes a row block visit by
visit and keeps the state before every `STRETCH`-th visit (fewer states in long row blocks). A
single visit is computed again from the nearest kept state.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from simulator.base.cache import ARRAY, MIB, TABLE, BoundedCache
from simulator.base.dtypes import F32, frozen, round_to
from simulator.engines.protocol import RowBlock, Tile, blank, scaled_scores, tile_of
from simulator.problem.workload import Inputs, Workload
from simulator.program.algorithms import algorithm_of, tile_program
from simulator.program.faults import apply_with_faults, late_op
from simulator.program.op import Op
from simulator.program.ops import LoadSink, StoreConstants, log_sum_exp
from simulator.program.state import State, TileMove, Values
from simulator.program.tile_program import Visit

STRETCH, MOST_STATES = 16, 512
"""Fewest visits from one kept state to the next, and most kept states of a row block: a state is
some 45 small objects, and a row block may have 100 000 visits of one key."""


@dataclass(frozen=True, slots=True)
class _Walk:
    """The visits of a row block, and its states before every `stretch`-th of them."""

    visits: NDArray[np.int64]
    states: tuple[State, ...]
    stretch: int

    def stretch_at(self, number: int) -> list[int]:
        """Return the visits from one kept state to the next."""
        first = number * self.stretch
        visits: list[int] = self.visits[first : first + self.stretch].tolist()
        return visits


class OpEngine:
    """Runs a workload op by op. Numbers that overflow become infinite or NaN without a warning.

    number: the type of all numbers. With float64 and without faults, this engine is the reference
        of the others; arrays are then float64 where their descriptions say float32.
    """

    name = "numpy"

    def __init__(
        self, workload: Workload, inputs: Inputs, number: type[np.floating] = np.float32
    ) -> None:
        self.workload = workload
        self.inputs = inputs
        self.device = "CPU, faults on" if workload.faults.on else "CPU"
        self._program = tile_program(workload)
        self._number = number
        self._stretches: BoundedCache[dict[int, Tile]] = BoundedCache(48 * MIB, _bytes_of)

    @property
    def kept_bytes(self) -> int:
        """Memory of the tiles that are kept."""
        return self._stretches.bytes

    def forget(self) -> None:
        """Forget all tiles."""
        self._stretches.clear()

    # --- the engine protocol ---------------------------------------------------------------

    def row_block(self, head: int, i: int) -> RowBlock:
        """Compute the visits of a row block."""
        w, grid = self.workload, self.workload.grid
        rows = grid.row_range(i)
        nothing = blank(w, head, rows, self._number)
        m, l = (np.repeat(nothing[name][:, None], grid.Tc, axis=1) for name in ("m", "l"))
        visits = np.fromiter(self._program.of_row_block(head, i), np.int64)
        stretch, kept = max(STRETCH, math.ceil(len(visits) / MOST_STATES)), []
        state, last = self._start(head, rows), 0
        with np.errstate(all="ignore"):
            for nth, index in enumerate(map(int, visits)):
                if nth % stretch == 0:
                    kept.append(state.copy())
                visit = self._program.visit(index)
                for _ in self._steps(state, visit, self._program.ops(index)):
                    pass
                if not self._program.launches[visit.launch].combines:
                    # m and l hold until the next visit. Later columns are not written yet: to write
                    # them each time would take time with the square of the number of visits.
                    until = visit.j if visit.j > last else grid.Tc
                    m[:, last + 1 : until] = m[:, last : last + 1]
                    l[:, last + 1 : until] = l[:, last : last + 1]
                    last = visit.j
                    m[:, last] = state.chip.get("m", nothing["m"])
                    l[:, last] = state.chip.get("l", nothing["l"])
            m[:, last + 1 :], l[:, last + 1 :] = m[:, last : last + 1], l[:, last : last + 1]
            stored = state.hbm.get("LSE")
            lse = log_sum_exp(m[:, -1], l[:, -1]) if stored is None else stored[0]
            o = state.hbm.get("O", nothing["O"][None])[0]
            if not algorithm_of(w).normalises_each_tile:
                o = round_to(o.astype(np.float32), w.dtype)
        walk = _Walk(visits, tuple(kept), stretch)
        size = sum(array.nbytes for array in (m, l, o, lse)) + _kept_bytes(walk)
        return RowBlock(frozen(m), frozen(l), frozen(o), frozen(lse), walk, size)

    def row_blocks(self, head: int) -> Iterator[RowBlock]:
        """Compute all row blocks of a head, in their order."""
        for i in range(self.workload.grid.Tr):
            yield self.row_block(head, i)

    def tile(self, visit: Visit, block: RowBlock) -> Tile:
        """Return the numbers of one visit, computed again from the state kept before it."""
        walk = block.extra
        assert isinstance(walk, _Walk)
        number = int(np.flatnonzero(walk.visits == visit.index)[0]) // walk.stretch
        return self._stretch(visit.head, visit.i, walk, number)[visit.index]

    def row_matrices(self, head: int, i: int, block: RowBlock) -> tuple[F32, F32]:
        """Return S and P of a row block; P as it was multiplied by V."""
        walk = block.extra
        assert isinstance(walk, _Walk)
        s = np.full((len(block.o), self.workload.seqlen_k), np.nan, dtype=self._number)
        p = np.full_like(s, np.nan)
        # No tile is kept: the tiles of a whole head would be a million small objects.
        with np.errstate(all="ignore"):
            for number, first in enumerate(walk.states):
                state = first.copy()
                for index in walk.stretch_at(number):
                    visit = self._program.visit(index)
                    tile = self._tile(state, visit)
                    for matrix, name in ((s, "S"), (p, "P")):
                        values = tile.last(name)
                        if values is not None:
                            matrix[:, visit.cols.start : visit.cols.stop] = values
        return s, p

    # --- pieces ----------------------------------------------------------------------------

    def _start(self, head: int, rows: range) -> State:
        """Return a row block's state before its first visit, cleared by the head's first ops."""
        q, k, v = self.inputs.q, self.inputs.k, self.inputs.v
        state = State(
            q, k, v, self._number, head=head, rows=rows,
            tensors=self._program.algorithm.tensors, splits=self.workload.splits,
            features=self.workload.sizes["feature"], projection=self.inputs.projection,
            sinks=self.workload.sinks, given=self.inputs.given(self.workload),
            inputs=self._program.algorithm.inputs,
            pages=self.workload.pages,
        )  # fmt: skip
        for index in self._program.opening(head):
            visit, w = self._program.visit(index), self.workload
            for op in self._program.ops(index):
                # Other algorithms clear nothing, and unwritten tensors must stay as they are.
                if isinstance(op, StoreConstants):
                    own = tuple(_within(move, rows) for move in op.moves if rows.start in move.rows)
                    replace(op, moves=own).apply(state)
                elif isinstance(op, LoadSink) and w.faults.on:
                    apply_with_faults(op, state, w, visit, last_use=False)
                elif isinstance(op, LoadSink):
                    op.apply(state)
        return state

    def _steps(self, state: State, visit: Visit, ops: tuple[Op, ...]) -> Iterator[None]:
        """Do the ops of a visit one by one."""
        w = self.workload
        state.chip = self._found(state, visit)
        state.chip |= {move.tensor: state.load(move) for move in self._program.held(visit)}
        late = late_op(ops) if w.faults.on else None
        for n, op in enumerate(ops):
            if isinstance(op, StoreConstants):
                pass  # done at the start, also for other row blocks
            elif w.faults.on:
                apply_with_faults(op, state, w, visit, last_use=n == late)
            else:
                op.apply(state)
            yield

    def _stretch(self, head: int, i: int, walk: _Walk, number: int) -> dict[int, Tile]:
        """Return the tiles between one kept state and the next."""

        def go_through() -> dict[int, Tile]:
            state = walk.states[number].copy()
            with np.errstate(all="ignore"):
                return {
                    index: self._tile(state, self._program.visit(index))
                    for index in walk.stretch_at(number)
                }

        return self._stretches.get((head, i, number), go_through)

    def _tile(self, state: State, visit: Visit) -> Tile:
        w, states = self.workload, [self._found(state, visit)]
        ops = algorithm_of(w).ops(w, visit)
        for _ in self._steps(state, visit, ops):
            states.append(dict(state.chip))
        seen = w.mask.of_head(visit.head).visible(visit.rows, visit.cols)
        makes_scores = any(op.makes_scores for op in ops)
        scores = self._program.algorithm.softmax
        scores = scores and not self._program.launches[visit.launch].combines
        stored = scores and not makes_scores
        unmasked = scaled_scores(w, self.inputs, visit, self._number) if stored else None
        nothing = blank(w, visit.head, visit.rows, self._number, visit.split)
        return tile_of(ops, seen, states, nothing, unmasked)

    def _found(self, state: State, visit: Visit) -> dict[str, Values]:
        """Return the numbers that a visit finds of its rows, on chip or in HBM."""
        launch, found = self._program.launches[visit.launch], dict(state.constants)
        begins = visit.first and launch.by_rows and not launch.continues
        if begins and (visit.opens or not launch.carries):
            return found
        return found | _carried(state, self._program.algorithm.left)


def _within(move: TileMove, rows: range) -> TileMove:
    """Return the part of a move that moves some rows."""
    return replace(
        move, rows=range(max(move.rows.start, rows.start), min(move.rows.stop, rows.stop))
    )


def _carried(state: State, names: tuple[str, ...]) -> dict[str, Values]:
    found: dict[str, Values] = {}
    for name in names:
        if name in state.chip:
            found[name] = state.chip[name]
        elif name in state.hbm:
            found[name] = state.hbm[name][0].copy()  # it changes with the next store
    return found


def _kept_bytes(walk: _Walk) -> int:
    arrays: dict[int, Values] = {}
    for state in walk.states:
        written = (values for name, values in state.hbm.items() if name in state.written)
        for values in (*state.chip.values(), *written):
            arrays[id(values)] = values
    held = ARRAY * len(arrays) + 3 * TABLE * len(walk.states) + walk.visits.nbytes
    return held + sum(values.nbytes for values in arrays.values())


def _bytes_of(tiles: dict[int, Tile]) -> int:
    return sum(tile.bytes for tile in tiles.values())
