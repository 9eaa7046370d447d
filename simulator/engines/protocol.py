"""The results of engines: row blocks, and the numbers of a visit after each of its ops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from simulator.base.cache import ARRAY, TABLE
from simulator.base.dtypes import F32, frozen
from simulator.base.matmul import matmul
from simulator.problem.workload import Inputs, Workload
from simulator.program.algorithms import algorithm_of
from simulator.program.op import Op
from simulator.program.state import Numbers, State, TileMove, Values
from simulator.program.tile_program import TileProgram, Visit


@dataclass(frozen=True, slots=True)
class RowBlock:
    """An engine's numbers of one row block after the last visit."""

    m: F32  # (rows, Tc) float32, running maximum after each column block
    l: F32  # (rows, Tc) float32, running sum of exponentials after each column block
    # (rows, dv) float32, the output as it is in HBM: rounded to the dtype, except that flash1 keeps
    # it in float32
    o: F32
    lse: F32  # (rows,) float32, ``m + ln l``; -inf for a row that saw nothing
    extra: object  # data of the engine itself, to return the numbers of single tiles quickly
    bytes: int  # memory of all fields


@dataclass(frozen=True, slots=True)
class Tile:
    """The numbers of one visit, read-only; r and c are its rows and columns."""

    ops: tuple[Op, ...]  # the ops of the visit
    seen: NDArray[np.bool_]  # (r, c) bool, which pairs are visible
    # The newest numbers by name before the first op, and after each op: m and l (r,), O (r, dv) and
    # S and P (r, c) where they exist, the loaded tiles, and the other numbers of ops (such as
    # ``alpha`` and ``m_tile``). In naive's softmax launch the tile is the whole row block.
    states: tuple[Numbers, ...]
    blank: Numbers  # m, l and O of rows that have seen nothing
    # (r, c) float32, the scores before the mask, if the visit itself does not make them
    unmasked: F32 | None = None

    @property
    def bytes(self) -> int:
        """Memory of numbers and containers; an array that several states share counts once."""
        arrays = {id(values): values for state in self.states for values in state.values()}
        held = ARRAY * len(arrays) + TABLE * len(self.states)
        return self.seen.nbytes + held + sum(values.nbytes for values in arrays.values())

    def recorded(self, name: str) -> Values | None:
        """Return a number after the op whose result engines record; None without one."""
        for op, state in zip(self.ops, self.states[1:], strict=True):
            if name in op.makes and name in state:
                return state[name]
        return None

    def last(self, name: str) -> Values | None:
        """Return a number at the end of the visit; None if there is none."""
        return self.states[-1].get(name)

    def first(self, name: str) -> Values:
        """Return the first values of a number in the visit."""
        return next(state[name] for state in self.states if name in state)

    def before(self, name: str) -> F32:
        """Return m, l or O of the rows before the visit."""
        return self.states[0].get(name, self.blank[name])

    @property
    def s(self) -> F32:
        """(r, c), scaled scores before the mask."""
        made = self.recorded("S") if self.unmasked is None else self.unmasked
        assert made is not None, "a visit without scores"
        return made

    @property
    def p(self) -> F32:
        """(r, c), exponentials of the scores; divided by l in naive's output launch."""
        made = self.recorded("P")
        return self.p_used if made is None else made

    @property
    def p_used(self) -> F32:
        """The P that V is multiplied by, (r, c): a fault may scale or mask P after the sum."""
        last = self.last("P")
        return frozen(np.zeros_like(self.s)) if last is None else last

    @property
    def m_prev(self) -> F32:
        """(r,), running maximum before the visit."""
        return self.before("m")

    @property
    def m(self) -> F32:
        """(r,), running maximum after the visit."""
        return self.states[-1].get("m", self.blank["m"])

    @property
    def l_prev(self) -> F32:
        """(r,), running sum before the visit."""
        return self.before("l")

    @property
    def l(self) -> F32:  # noqa: E743
        """(r,), running sum after the visit."""
        return self.states[-1].get("l", self.blank["l"])

    @property
    def m_tile(self) -> F32:
        """(r,), maximum of this tile alone."""
        return self.states[-1].get("m_tile", self.blank["m"])

    @property
    def l_tile(self) -> F32:
        """(r,), sum of exponentials of this tile alone, relative to the same maximum as P."""
        return self.states[-1].get("l_tile", self.blank["l"])

    @property
    def alpha(self) -> F32:
        """(r,), ``exp(m_prev - m)``; 1 if nothing is rescaled."""
        return self.states[-1].get("alpha", self.blank["one"])

    @property
    def beta(self) -> F32:
        """(r,), ``exp(m_tile - m)``; 1 if P is relative to m."""
        return self.states[-1].get("beta", self.blank["one"])

    @property
    def o_prev(self) -> F32:
        """(r, dv), O before the visit: as a sum in flash2 and naive, normalised in flash1."""
        return self.before("O")

    @property
    def o(self) -> F32:
        """(r, dv), O after the tile has been added; also a sum, or normalised in flash1."""
        made = self.recorded("O")
        return self.o_prev if made is None else made


class _Recorded(dict[str, Values]):
    """Numbers on chip: an engine's records replace numbers that ops make."""

    now: Numbers = MappingProxyType({})

    def __setitem__(self, name: str, values: Values) -> None:
        super().__setitem__(name, self.now.get(name, values))


class Again(State):
    """A state in which a visit is computed again; nothing is stored.

    loads: by tensor, numbers that the visit loads instead of the numbers in HBM.
    """

    def __init__(
        self,
        w: Workload,
        inputs: Inputs,
        loads: Numbers,
        number: type[np.floating] = np.float32,
    ) -> None:
        super().__init__(
            inputs.q, inputs.k, inputs.v, number,
            tensors=algorithm_of(w).tensors, projection=inputs.projection, sinks=w.sinks,
            given=inputs.given(w), inputs=algorithm_of(w).inputs, pages=w.pages,
        )  # fmt: skip
        self._loads = loads

    def view(self, move: TileMove) -> Values:
        found = self._loads.get(move.tensor)
        return super().view(move) if found is None else found

    def store(self, move: TileMove, values: Values | float) -> None:
        """Write nothing: the engine has the numbers of HBM."""


def blank(
    w: Workload,
    head: int,
    rows: range,
    number: type[np.floating] = np.float32,
    split: int = 0,
) -> dict[str, Values]:
    """Return m, l and O of some rows that have seen nothing, and factors of 1.

    Without a softmax m is NaN; without a sum of weights l is NaN.
    """
    r, algorithm = len(rows), algorithm_of(w)
    m, l = w.start(head, rows, split)
    return {
        "m": m.astype(number) if algorithm.softmax else np.full(r, np.nan, number),
        "l": l.astype(number) if algorithm.sums else np.full(r, np.nan, number),
        "O": np.zeros((r, w.value_dim), number),
        "one": np.ones(r, number),
    }


def gone_through(
    w: Workload,
    inputs: Inputs,
    visit: Visit,
    *,
    before: Numbers,
    recorded: Numbers,
    loads: Numbers = MappingProxyType({}),
    unmasked: F32 | None = None,
) -> Tile:
    """Return a visit's numbers after each op, from the numbers that an engine has recorded.

    before: the numbers of the visit's rows that exist before the visit.
    recorded: the numbers that the engine has recorded (`Op.recorded`). The ops compute the other
        numbers from these, in float32.
    unmasked: (r, c) float32, scores before the mask, if no op of the visit makes them.
    """
    algorithm = algorithm_of(w)
    ops = algorithm.ops(w, visit)
    state = Again(w, inputs, {**before, **loads})
    state.chip = chip = _Recorded({**state.constants, **before})
    states: list[Numbers] = [dict(chip)]
    for op in ops:
        chip.now = {name: recorded[name] for name in op.makes if name in recorded}
        if len(op.recorded) == len(chip.now) == 1:  # the only number of the op is known
            chip.update(chip.now)
        else:
            op.apply(state)
        states.append(dict(chip))
    seen = w.mask.of_head(visit.head).visible(visit.rows, visit.cols)
    nothing = blank(w, visit.head, visit.rows, split=visit.split)
    return tile_of(ops, seen, states, nothing, unmasked)


def tile_of(
    ops: tuple[Op, ...],
    seen: NDArray[np.bool_],
    states: Sequence[Numbers],
    nothing: Numbers,
    unmasked: F32 | None = None,
) -> Tile:
    """Make the arrays of some states read-only and return them as a tile."""
    for numbers in (*states, nothing, {} if unmasked is None else {"S": unmasked}):
        for values in numbers.values():
            values.flags.writeable = False
    return Tile(ops, frozen(seen), tuple(states), nothing, unmasked)


def scaled_scores(
    w: Workload, inputs: Inputs, visit: Visit, number: type[np.floating] = np.float32
) -> Values:
    """Return the scores before the mask, for a visit that loads its scores or weights from HBM."""
    rows, cols = visit.rows, visit.cols
    q = inputs.q[visit.head, rows.start : rows.stop].astype(number)
    k = inputs.k[w.kv_head_of[visit.head], cols.start : cols.stop].astype(number)
    return frozen(matmul(w.scoring_before_softmax.queries(q), k.T))


class Engine(Protocol):
    """Computes the numbers of a workload, a row block or a tile at a time."""

    name: str
    device: str

    def row_block(self, head: int, i: int) -> RowBlock:
        """Return row block `i` of a head, run to its end."""

    def row_blocks(self, head: int) -> Iterator[RowBlock]:
        """Return all row blocks of a head, in their order."""

    def tile(self, visit: Visit, block: RowBlock) -> Tile:
        """Return the numbers of one visit of a row block."""

    def row_matrices(self, head: int, i: int, block: RowBlock) -> tuple[F32, F32]:
        """Return S (masked) and P of a row block, (rows, Nk) each; NaN in skipped tiles.

        P of a tile is as the tile's visit computes it; P of naive is divided by l.
        """

    def forget(self) -> None:
        """Forget everything that can be computed again."""


@runtime_checkable
class BackwardEngine(Protocol):
    """An engine that also computes gradients."""

    def left(self, head: int, i: int) -> Numbers:
        """Return a row block's part of the tensors that the forward pass has left, by name."""

    def gradients(self, kv_head: int) -> dict[str, F32]:
        """Return dQ of the query heads that share a KV head, and its dK and dV."""

    def row_pairs(self, head: int, i: int) -> dict[str, F32]:
        """Return the numbers of pairs of a row block by name, (rows, Nk) each."""


def pairs_of(
    program: TileProgram, head: int, i: int, numbers: Callable[[Visit], Numbers]
) -> dict[str, F32]:
    """Return S, P, dP and dS of a row block of a backward pass.

    Returns: (rows, Nk) each; NaN in skipped tiles.
    """
    w = program.workload
    shape = len(w.grid.row_range(i)), w.seqlen_k
    out = {name: np.full(shape, np.nan, np.float32) for name in ("S", "P", "dP", "dS")}
    for index in program.of_row_block(head, i):
        visit = program.visit(index)
        if program.launches[visit.launch].forms:
            made = numbers(visit)
            for name, matrix in out.items():
                matrix[:, visit.cols.start : visit.cols.stop] = made[name]
    return out
