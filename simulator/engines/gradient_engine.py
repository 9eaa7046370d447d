"""The engine of backward passes: a tile depends on its column block and on its rows.

A forward pass leaves O and LSE of each row block. A tile adds to dK and dV of its column block,
which stay on chip, and to dQ of its rows, which is in HBM. So what a tile finds are the sums over
the tiles of its column block before it, and over those of its rows in earlier column blocks; both
are kept after some tiles, and computed again from the nearest of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from simulator.base.cache import ARRAY, MIB, TABLE, BoundedCache
from simulator.base.dtypes import F32, frozen, round_to
from simulator.engines.protocol import Again, Engine, RowBlock, Tile, blank, pairs_of, tile_of
from simulator.problem.workload import Inputs, Workload
from simulator.program.algorithms import tile_program
from simulator.program.faults import apply_with_faults
from simulator.program.group_launch import GroupLaunch
from simulator.program.op import Op
from simulator.program.state import Numbers, Values
from simulator.program.tile_program import Visit

_APART = 16
"""Tiles between two after which sums are kept; those after the last that was asked for are, too."""
_OF_KEYS, _OF_ROWS = ("dK", "dV"), ("dQ_acc",)
"""What a tile adds to: sums of its column block, and of its rows."""


class GradientEngine:
    """Runs a backward pass op by op, in float32 or float64, and with faults.

    Parameters
    ----------
    workload : Workload
        Shapes, mask, tiles and faults.
    inputs : Inputs
        Q, K, V and the gradient of O.
    forward : Engine
        What computes O and LSE, without faults.
    number : dtype, optional
        What it computes in.
    """

    name = "numpy"

    def __init__(
        self,
        workload: Workload,
        inputs: Inputs,
        forward: Engine,
        number: type[np.floating] = np.float32,
    ) -> None:
        self.workload = workload
        self.inputs = inputs
        self.device = "CPU, faults on" if workload.faults.on else "CPU"
        self._forward = forward
        self._program = tile_program(workload)
        self._number = number
        owner = next(n for n, each in enumerate(self._program.launches) if each.forms)
        self._launch = owner
        self._rows: BoundedCache[Numbers] = BoundedCache(128 * MIB, _bytes_of)
        self._sums: BoundedCache[Numbers] = BoundedCache(96 * MIB, _bytes_of)
        self._tiles: BoundedCache[Tile] = BoundedCache(48 * MIB, lambda tile: tile.bytes)

    def forget(self) -> None:
        """Forget everything that can be computed again."""
        for cache in (self._rows, self._sums, self._tiles):
            cache.clear()
        self._forward.forget()

    # --- the engine protocol ---------------------------------------------------------------

    def row_block(self, head: int, i: int) -> RowBlock:
        """Return O and LSE of the forward pass; the rows have no running m and l."""
        w = self.workload
        found = self._left(head, i)
        nothing = np.broadcast_to(np.float32(np.nan), (len(found["LSE"]), w.grid.Tc))
        size = found["O"].nbytes + found["LSE"].nbytes + 2 * ARRAY
        return RowBlock(nothing, nothing, found["O"], found["LSE"], None, size)

    def row_blocks(self, head: int) -> Iterator[RowBlock]:
        """Return all row blocks of a head, in their order."""
        for i in range(self.workload.grid.Tr):
            yield self.row_block(head, i)

    def tile(self, visit: Visit, block: RowBlock) -> Tile:
        """Return the numbers of one visit, computed again from the sums that it finds."""

        def make() -> Tile:
            found = self._sum(visit, of_keys=True) | self._sum(visit, of_keys=False)
            states = list(self._through(visit, found))
            nothing = blank(self.workload, visit.head, visit.rows, self._number)
            seen = self.workload.mask.visible(visit.rows, visit.cols)
            return tile_of(self._program.ops(visit.index), seen, states, nothing)

        return self._tiles.get(visit.index, make)

    def row_matrices(self, head: int, i: int, block: RowBlock) -> tuple[F32, F32]:
        """Return S and P of a row block."""
        pairs = self.row_pairs(head, i)
        return pairs["S"], pairs["P"]

    def row_pairs(self, head: int, i: int) -> dict[str, F32]:
        """Return S, P, dP and dS of a row block, (rows, Nk) each; NaN in skipped tiles."""
        without = (*_OF_KEYS, *_OF_ROWS)
        return pairs_of(self._program, head, i, lambda visit: self._done(visit, {}, without))

    def gradients(self, kv_head: int) -> dict[str, F32]:
        """Return the gradients of a KV head and of the query heads that share it.

        Returns
        -------
        dict
            ``dQ`` (query heads of it, Nq, d), ``dK`` (Nk, d), ``dV`` (Nk, dv), float32 numbers
            that the dtype can represent.
        """
        w, grid = self.workload, self.workload.grid
        launch = self._program.launches[self._launch]
        assert isinstance(launch, GroupLaunch)
        heads = launch.members(kv_head)
        sums = {
            (head, i): np.zeros((len(grid.row_range(i)), w.head_dim), self._number)
            for head in heads
            for i in range(grid.Tr)
        }
        dk = np.zeros((w.seqlen_k, w.head_dim), self._number)
        dv = np.zeros((w.seqlen_k, w.value_dim), self._number)
        found: Numbers = {}
        for index in range(*self._program.head_bounds(self._first(heads[0]))):
            visit = self._program.visit(index)
            at = visit.head, visit.i
            left = self._done(visit, {**found, "dQ_acc": sums[at]})
            sums[at], found = left["dQ_acc"], {name: left[name] for name in _OF_KEYS}
            if visit.last:
                dk[visit.cols.start : visit.cols.stop] = left["dK"]
                dv[visit.cols.start : visit.cols.stop] = left["dV"]
        dq = np.stack([
            np.concatenate([self._converted(head, i, sums[head, i]) for i in range(grid.Tr)])
            for head in heads
        ])  # fmt: skip
        whole = {"dQ": dq, "dK": dk, "dV": dv}
        return {name: frozen(round_to(x.astype(np.float32), w.dtype)) for name, x in whole.items()}

    # --- pieces ----------------------------------------------------------------------------

    def _first(self, head: int) -> int:
        """Return the first visit of a head's KV head in the launch that goes over tiles."""
        return list(self._program.opening(head))[self._launch]

    def _converted(self, head: int, i: int, total: Values) -> Values:
        index = self._program.index(head, i, 0, len(self._program.launches) - 1)
        assert index is not None
        return self._done(self._program.visit(index), {"dQ_acc": total})["dQ"]

    def _left(self, head: int, i: int) -> Numbers:
        """Return what HBM has of the rows of a row block: O, LSE, m and D."""

        def make() -> Numbers:
            block = self._forward.row_block(head, i)
            left = {"O": block.o, "LSE": block.lse, "m": frozen(block.m[:, -1].copy())}
            index = self._program.index(head, i, 0, 0)
            assert index is not None
            visit = self._program.visit(index)
            *_, last = self._through(visit, {}, left)
            return left | {"D": frozen(last["D"])}

        return self._rows.get((head, i), make)

    def _sum(self, visit: Visit, *, of_keys: bool) -> dict[str, Values]:
        """Return the sums that a visit finds, of its column block or of its rows."""
        launch, program = self._program.launches[visit.launch], self._program
        chain: Sequence[int] = ()
        if not of_keys and visit.launch >= self._launch:
            chain = self._of_rows(visit.head, visit.i, visit.j if launch.forms else None)
        elif of_keys and launch.forms:
            chain = range(program.block_bounds(visit.index)[0], visit.index)
        names, other = (_OF_KEYS, _OF_ROWS) if of_keys else (_OF_ROWS, _OF_KEYS)
        kept = (n for n in range(len(chain), 0, -1) if (of_keys, chain[n - 1]) in self._sums)
        at = next(kept, 0)
        zero = np.zeros((len(visit.rows), self.workload.head_dim), self._number)
        left: Numbers = {} if of_keys else {"dQ_acc": frozen(zero)}
        if at:
            left = self._sums.get((of_keys, chain[at - 1]), dict)
        for n in range(at, len(chain)):
            chip = self._done(program.visit(chain[n]), left, other)
            left = {name: frozen(chip[name]) for name in names}
            if n % _APART == 0 or n == len(chain) - 1:
                self._sums.get((of_keys, chain[n]), lambda now=left: now)  # type: ignore[misc]
        return dict(left)

    def _of_rows(self, head: int, i: int, before: int | None) -> list[int]:
        """Return the visits of some rows in column blocks before one, or in all."""
        blocks = np.arange(self.workload.grid.Tc if before is None else before)
        owner = self._program.launches[self._launch]
        seen = blocks[owner.visits.contains(blocks, i)]
        places = (self._program.index(head, i, int(j), self._launch) for j in seen)
        return [index for index in places if index is not None]

    def _done(self, visit: Visit, found: Numbers, without: Collection[str] = ()) -> Numbers:
        """Return what is on chip after a visit; without what ops make that are not asked for."""
        *_, last = self._through(visit, found, without=without)
        return last

    def _through(
        self,
        visit: Visit,
        found: Numbers,
        left: Numbers | None = None,
        without: Collection[str] = (),
    ) -> Iterator[Numbers]:
        """Yield what is on chip before a visit's first op, and after each."""
        w, program = self.workload, self._program
        left = self._left(visit.head, visit.i) if left is None else left
        state = Again(w, self.inputs, {**left, **found}, self._number)
        on_chip = {name: found[name] for name in _OF_KEYS if name in found}
        state.chip = {**on_chip, **({"m": left["m"]} if w.faults.on else {})}
        state.chip |= {move.tensor: state.load(move) for move in program.held(visit)}
        yield dict(state.chip)
        with np.errstate(all="ignore"):
            for op in program.ops(visit.index):
                if not _is_of(op, without):
                    if w.faults.on:
                        apply_with_faults(op, state, w, visit, last_use=False)
                    else:
                        op.apply(state)
                yield dict(state.chip)


def _is_of(op: Op, names: Collection[str]) -> bool:
    """Return whether an op makes, scales, loads or stores some of these numbers."""
    made = {*op.recorded, *op.changed, *(move.tensor for move in op.moves)}
    return not made.isdisjoint(names)


def _bytes_of(numbers: Numbers) -> int:
    return TABLE + sum(ARRAY + each.nbytes for each in numbers.values())
