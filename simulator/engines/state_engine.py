"""The engine of algorithms whose row blocks depend on earlier row blocks through a state.

The engine does every op as it is written. After some visits it keeps the numbers that a visit
leaves to the next (`TileAlgorithm.left`), so a row block far into a run starts nearby.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.base.cache import ARRAY, MIB, TABLE, BoundedCache
from simulator.base.dtypes import F32, frozen, round_to
from simulator.engines.op_engine import OpEngine
from simulator.engines.protocol import RowBlock, Tile, blank
from simulator.problem.workload import Inputs, Workload
from simulator.program.algorithms import algorithm_of
from simulator.program.ops import log_sum_exp
from simulator.program.state import Numbers, State, Values
from simulator.program.tile_program import Visit

_APART = 16
"""Numbers left are kept after every so many visits, and after the visit before the wanted one."""


class StateEngine(OpEngine):
    """Runs a workload op by op; a visit starts with the numbers that earlier visits have left."""

    def __init__(
        self, workload: Workload, inputs: Inputs, number: type[np.floating] = np.float32
    ) -> None:
        super().__init__(workload, inputs, number)
        self._left: BoundedCache[Numbers] = BoundedCache(
            64 * MIB, lambda left: TABLE + sum(ARRAY + each.nbytes for each in left.values())
        )
        self._tiles: BoundedCache[Tile] = BoundedCache(48 * MIB, lambda tile: tile.bytes)

    @property
    def kept_bytes(self) -> int:
        """Memory of the numbers that are kept."""
        return self._left.bytes + self._tiles.bytes

    def forget(self) -> None:
        """Forget all tiles, and the numbers that visits have left."""
        self._left.clear()
        self._tiles.clear()

    def row_block(self, head: int, i: int) -> RowBlock:
        """Compute the visits of a row block that have not been computed for another."""
        w, rows = self.workload, self.workload.grid.row_range(i)
        chain = self._chain_to(head, i)
        state = self._before(chain)
        with np.errstate(all="ignore"):
            self._do(state, chain[-1])
            nothing = blank(w, head, rows, self._number)
            l = state.chip.get("l", nothing["l"])
            lse = log_sum_exp(np.zeros_like(l), l)
            o = round_to(state.hbm["O"][0].astype(np.float32), w.dtype)
        # No row has an m, and after every column block a row has its final l.
        m, l = (np.repeat(x[:, None], w.grid.Tc, axis=1) for x in (nothing["m"], l))
        size = sum(array.nbytes + ARRAY for array in (m, l, o, lse))
        return RowBlock(frozen(m), frozen(l), frozen(o), frozen(lse), None, size)

    def tile(self, visit: Visit, block: RowBlock) -> Tile:
        """Return the numbers of one visit, computed again from the state that the visit finds."""

        def make() -> Tile:
            with np.errstate(all="ignore"):
                return self._tile(self._before(self._chain(visit)), visit)

        return self._tiles.get(visit.index, make)

    def row_matrices(self, head: int, i: int, block: RowBlock) -> tuple[F32, F32]:
        """Return S and P of the chunk of a row block; no other pair is ever formed."""
        w = self.workload
        s = np.full((len(w.grid.row_range(i)), w.seqlen_k), np.nan, dtype=np.float32)
        p = np.full_like(s, np.nan)
        index = self._program.index(head, i, i)
        if w.chunked and index is not None:
            visit = self._program.visit(index)
            tile = self.tile(visit, block)
            for matrix, name, hidden in ((s, "S", -np.inf), (p, "P", 0.0)):
                values = tile.last(name)
                if values is not None:
                    own = np.where(tile.seen, values, np.float32(hidden))
                    matrix[:, visit.cols.start : visit.cols.stop] = own
        return s, p

    # --- pieces ----------------------------------------------------------------------------

    def _chain(self, visit: Visit) -> Sequence[int]:
        """Return the visits that lead to a visit, the visit itself last."""
        launch = self._program.launches[visit.launch]
        if launch.of_keys or launch.carries:
            return range(self._program.head_bounds(visit.index)[0], visit.index + 1)
        return list(self._program.of_row_block(visit.head, visit.i))

    def _chain_to(self, head: int, i: int) -> Sequence[int]:
        """Return the visits that a row block depends on."""
        last = self._program.index(head, i, i) if self.workload.chunked else None
        if last is None:
            return list(self._program.of_row_block(head, i))
        return self._chain(self._program.visit(last))

    def _before(self, chain: Sequence[int]) -> State:
        """Return the state that the last visit of a chain finds, after all visits before."""
        kept = range(len(chain) - 1, 0, -1)
        at = next((n for n in kept if chain[n - 1] in self._left), 0)
        left = self._left.get(chain[at - 1], dict) if at else {}
        for n in range(at, len(chain) - 1):
            state = self._found_by(chain[n], left)
            self._do(state, chain[n])
            left = self._leaves(state)
            if n % _APART == 0 or n == len(chain) - 2:
                self._left.get(chain[n], lambda now=left: now)  # type: ignore[misc]
        return self._found_by(chain[-1], left)

    def _found_by(self, index: int, left: Numbers) -> State:
        """Return the state that a visit finds."""
        visit = self._program.visit(index)
        state = self._start(visit.head, visit.rows)
        state.chip |= left
        for spec in self._program.algorithm.tensors:
            if visit.launch and spec.name in left:  # an earlier launch has stored it
                state.tensor(spec.name)[self.workload.kv_head_of[visit.head]] = left[spec.name]
        return state

    def _leaves(self, state: State) -> dict[str, Values]:
        names = algorithm_of(self.workload).left
        return {name: frozen(state.chip[name]) for name in names if name in state.chip}

    def _do(self, state: State, index: int) -> None:
        with np.errstate(all="ignore"):
            for _ in self._steps(state, self._program.visit(index), self._program.ops(index)):
                pass
