"""The engine of backward passes: a tile depends on its column block and on its rows.

A forward pass leaves O and LSE, or P, of each row block. Numbers that launches make of rows alone
(D, or dP and dS) are kept by row blocks. A launch over column blocks adds to sums of keys, which
stay on chip, and may add to sums of rows, which are in HBM. So a tile finds sums over the earlier
tiles of its outer block, and sums over the tiles of its rows in earlier column blocks. Both are
kept after some tiles, and computed again from the nearest kept sums.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import product

import numpy as np

from simulator.base.cache import ARRAY, MIB, TABLE, BoundedCache
from simulator.base.dtypes import F32, frozen, round_to
from simulator.base.errors import refuse
from simulator.engines.protocol import (
    Again,
    Engine,
    RowBlock,
    Tile,
    blank,
    pairs_of,
    scaled_scores,
    tile_of,
)
from simulator.problem.workload import Inputs, Workload
from simulator.program.algorithms import TENSORS, tile_program
from simulator.program.algorithms.gradients import OF_QUERIES
from simulator.program.faults import apply_with_faults
from simulator.program.group_launch import GroupLaunch
from simulator.program.op import Op
from simulator.program.state import Numbers, TileMove, Values
from simulator.program.tile_program import TileProgram, Visit

_APART = 16
"""Sums are kept after every so many tiles, and before the tile that was asked for last."""


_MOST_PAIRS = 2**28
"""Most pairs of a head whose numbers are stored: 1 GiB for each of P, dP and dS."""


class GradientEngine:
    """Runs a backward pass op by op, in float32 or float64, and with faults.

    Raises InputError: the pass would store numbers of more pairs than memory has room for.
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
        check_stored_pairs(self._program)
        self._number = number
        launches = self._program.launches
        self._groups = {n: one for n, one in enumerate(launches) if isinstance(one, GroupLaunch)}
        added = {
            n: own for n, one in self._groups.items() if (own := one.reads.keys() & one.writes)
        }
        # The launch that adds to sums of rows in HBM, and the names of these sums.
        self._owner, self._added = next(iter(added.items()), (len(launches), set[str]()))
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
        found = self._forward.row_block(head, i)
        nothing = np.broadcast_to(np.float32(np.nan), (len(found.lse), w.grid.Tc))
        size = found.o.nbytes + found.lse.nbytes + 2 * ARRAY
        return RowBlock(nothing, nothing, found.o, found.lse, None, size)

    def row_blocks(self, head: int) -> Iterator[RowBlock]:
        """Return all row blocks of a head, in their order."""
        for i in range(self.workload.grid.Tr):
            yield self.row_block(head, i)

    def tile(self, visit: Visit, block: RowBlock) -> Tile:
        """Return the numbers of one visit, computed again from the sums that it finds."""

        def make() -> Tile:
            w, ops = self.workload, self._program.ops(visit.index)
            found = self._sum(visit, on_chip=True) | self._sum(visit, on_chip=False)
            states = list(self._through(visit, found))
            nothing = blank(w, visit.head, visit.rows, self._number)
            seen = w.mask.of_head(visit.head).visible(visit.rows, visit.cols)
            stored = self._program.launches[visit.launch].forms
            stored = stored and not any(op.makes_scores for op in ops)
            s = scaled_scores(w, self.inputs, visit, self._number) if stored else None
            return tile_of(ops, seen, states, nothing, s)

        return self._tiles.get(visit.index, make)

    def row_matrices(self, head: int, i: int, block: RowBlock) -> tuple[F32, F32]:
        """Return S and P of a row block."""
        pairs = self.row_pairs(head, i)
        return pairs["S"], pairs["P"]

    def row_pairs(self, head: int, i: int) -> dict[str, F32]:
        """Return S, P, dP and dS of a row block, (rows, Nk) each; NaN in skipped tiles."""
        found = self._in_hbm(head, i)
        algorithm = self._program.algorithm
        made = [spec.name for spec in (*algorithm.tensors, *algorithm.chip) if spec.of_pairs]
        if found.keys() >= set(made):
            s, p = self._forward.row_matrices(head, i, self._forward.row_block(head, i))
            return {"S": s, "P": p, **{name: np.asarray(found[name]) for name in made}}
        without = self._names(self._owner) | self._added
        return pairs_of(self._program, head, i, lambda visit: self._done(visit, {}, without))

    def left(self, head: int, i: int) -> Numbers:
        """Return a row block's part of the tensors that the forward pass has left, by name."""
        return left_by(self._forward, self._program, head, i)

    def gradients(self, kv_head: int) -> dict[str, F32]:
        """Return the gradients of a KV head and of the query heads that share it.

        Terms are added row block by row block, in the same order as by column blocks.

        Returns: ``dQ`` (its query heads, Nq, d), ``dK`` (Nk, d), ``dV`` (Nk, dv), float32 numbers
            that the dtype can represent.
        """
        w, program = self.workload, self._program
        heads = next(iter(self._groups.values())).members(kv_head)
        widths = {"dK": w.head_dim, "dV": w.value_dim}
        whole = {
            name: np.zeros((w.seqlen_k, width), self._number) for name, width in widths.items()
        }
        sums: dict[tuple[int, int], Numbers] = {}
        parts = []
        for head, i in product(heads, range(w.grid.Tr)):
            total = self._zeros(w.grid.row_range(i))
            for number in self._groups:
                for index in self._of_rows(head, i, number):
                    visit = program.visit(index)
                    done = self._done(visit, {**sums.get((number, visit.j), {}), **total})
                    total = {name: done[name] for name in total}
                    sums[number, visit.j] = {name: done[name] for name in self._names(number)}
                    if visit.last:
                        for name, values in sums.pop((number, visit.j)).items():
                            whole[name][visit.cols.start : visit.cols.stop] = values
            found = self._in_hbm(head, i)
            if OF_QUERIES.name not in found:
                last = program.index(head, i, 0, len(program.launches) - 1)
                assert last is not None
                found = self._done(program.visit(last), total)
            parts.append(found["dQ"])
        dq = np.concatenate(parts).reshape(len(heads), w.seqlen_q, w.head_dim)
        whole = {"dQ": dq, **whole}
        return {name: frozen(round_to(x.astype(np.float32), w.dtype)) for name, x in whole.items()}

    # --- pieces ----------------------------------------------------------------------------

    def _names(self, launch: int) -> set[str]:
        """Return the names of the sums that a launch keeps on chip from a visit to the next."""
        if launch == len(self._program.launches):
            return set()
        visit = self._program.visit(sum(self._program.sizes[:launch]))
        return self._held(visit)

    def _held(self, visit: Visit) -> set[str]:
        """Return the names of the sums on chip that stay for the next visit of the outer block."""
        staying = {tile.name for tile in self._program.staying(visit)}
        return staying & set(self._program.algorithm.left)

    def _zeros(self, rows: range) -> Numbers:
        """Return the sums of some rows in HBM to which nothing has been added."""
        zero = frozen(np.zeros((len(rows), self.workload.head_dim), self._number))
        return dict.fromkeys(self._added, zero)

    def _in_hbm(self, head: int, i: int) -> Numbers:
        """Return a row block's numbers in HBM: left by the forward pass, or made of rows alone."""

        def make() -> Numbers:
            found, program = dict(self.left(head, i)), self._program
            shape = len(self.workload.grid.row_range(i)), self.workload.seqlen_k
            if self.workload.faults.on:
                found["m"] = frozen(self._forward.row_block(head, i).m[:, -1].copy())
            summed = {name for launch in self._groups.values() for name in launch.writes}
            for number, launch in enumerate(program.launches):
                if not launch.by_rows or not summed.isdisjoint(launch.reads):
                    continue
                chip: Numbers = {}
                for j in launch.visited(i):
                    index = program.index(head, i, int(j), number)
                    assert index is not None
                    visit = program.visit(index)
                    *_, last = self._through(visit, chip, found)
                    chip = {name: last[name] for name in self._held(visit)}
                    for move in _stored(program.ops(index)):
                        if not TENSORS[move.tensor].of_pairs:
                            found[move.tensor] = frozen(last[move.tensor])
                            continue
                        empty = np.full(shape, np.nan, self._number)
                        matrix = found.setdefault(move.tensor, empty)
                        matrix[:, visit.cols.start : visit.cols.stop] = last[move.tensor]
            return found

        return self._rows.get((head, i), make)

    def _sum(self, visit: Visit, *, on_chip: bool) -> dict[str, Values]:
        """Return the sums that a visit finds: sums on chip, or sums of its rows in HBM."""
        program, others = self._program, self._added
        names = self._held(visit)
        left: Numbers = {}
        chain: Sequence[int] = ()
        if on_chip and names:
            chain = range(program.block_bounds(visit.index)[0], visit.index)
        elif not on_chip:
            names, others = self._added, self._names(self._owner)
            left = self._zeros(visit.rows)
            if visit.launch >= self._owner:
                before = visit.j if visit.launch == self._owner else None
                chain = self._of_rows(visit.head, visit.i, self._owner, before)
        kept = (n for n in range(len(chain), 0, -1) if (on_chip, chain[n - 1]) in self._sums)
        at = next(kept, 0)
        if at:
            left = self._sums.get((on_chip, chain[at - 1]), dict)
        for n in range(at, len(chain)):
            chip = self._done(program.visit(chain[n]), left, others)
            left = {name: frozen(chip[name]) for name in names}
            if n % _APART == 0 or n == len(chain) - 1:
                self._sums.get((on_chip, chain[n]), lambda now=left: now)  # type: ignore[misc]
        return dict(left)

    def _of_rows(self, head: int, i: int, launch: int, before: int | None = None) -> list[int]:
        """Return a launch's visits to a row block, in the column blocks before one or in all."""
        blocks = np.arange(self.workload.grid.Tc if before is None else before)
        seen = blocks[self._program.launches[launch].visits.contains(blocks, i)]
        places = (self._program.index(head, i, int(j), launch) for j in seen)
        return [index for index in places if index is not None]

    def _done(self, visit: Visit, found: Numbers, without: Collection[str] = ()) -> Numbers:
        """Return the numbers on chip after a visit, without the ops of the numbers in `without`."""
        *_, last = self._through(visit, found, without=without)
        return last

    def _through(
        self,
        visit: Visit,
        found: Numbers,
        left: Numbers | None = None,
        without: Collection[str] = (),
    ) -> Iterator[Numbers]:
        """Yield the numbers on chip before a visit's first op, and after each op."""
        w, program = self.workload, self._program
        left = self._in_hbm(visit.head, visit.i) if left is None else left
        here = slice(visit.cols.start, visit.cols.stop)
        tiles = {name: x[:, here] if TENSORS[name].of_pairs else x for name, x in left.items()}
        state = Again(w, self.inputs, {**tiles, **found}, self._number)
        on_chip = {name: found[name] for name in self._held(visit) if name in found}
        state.chip = {**on_chip, **{name: left[name] for name in ("m",) if name in left}}
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


def check_stored_pairs(program: TileProgram) -> None:
    """Refuse runs whose launches pass on numbers of more pairs than memory has room for.

    Raises InputError: the error names the length and the most pairs.
    """
    w = program.workload
    stored = {*program.kept, *(spec.name for spec in program.algorithm.tensors)}
    pairs = sorted(name for name in stored if TENSORS[name].of_pairs)
    if pairs and w.seqlen_q * w.seqlen_k > _MOST_PAIRS:
        most = f"at most {_MOST_PAIRS} pairs of a row and a key, as {w.algorithm} stores"
        raise refuse(
            "scenario", "attention.seqlen_k", w.seqlen_k, f"{most} {', '.join(pairs)} of all"
        )


def left_by(forward: Engine, program: TileProgram, head: int, i: int) -> Numbers:
    """Return a row block's part of the tensors that a forward pass leaves, by name."""
    block, kept = forward.row_block(head, i), program.kept
    left: Numbers = {"O": block.o, "LSE": block.lse}
    if any(TENSORS[name].of_pairs for name in kept):
        s, p = forward.row_matrices(head, i, block)
        left = {**left, "S": s, "P": p}
    return {name: left[name] for name in kept}


def _stored(ops: Sequence[Op]) -> Iterator[TileMove]:
    """Yield the moves of stores, except starting values."""
    for op in ops:
        if op.stores and not op.starts:
            yield from op.moves


def _bytes_of(numbers: Numbers) -> int:
    return TABLE + sum(ARRAY + each.nbytes for each in numbers.values())
