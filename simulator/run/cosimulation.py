"""An engine and the float64 interpreter side by side, op by op, up to the first difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from simulator.base.dtypes import F32, F64
from simulator.base.tolerance import allowed, shares
from simulator.engines.interpreter import Interpreter
from simulator.problem.workload import Inputs
from simulator.program.gate_ops import ApplyGate
from simulator.program.op import Op
from simulator.program.state import Numbers, State
from simulator.program.tile_program import TileProgram, Visit
from simulator.run.trace import Trace

MAX_VISITS = 4_000
"""Visits that are checked at most unless told otherwise: a check ends within a minute or so."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first number whose error is larger than rounding explains."""

    visit: Visit  # where
    op: str  # the op after which it differs
    quantity: str  # the number that differs, such as ``P[3, 7]``, counted inside the tile
    # engine, exact: the engine's number and float64's
    engine: float
    exact: float
    allowed: float  # the tolerance that it exceeds

    def __str__(self) -> str:
        at = self.visit
        return (
            f"differs first at visit {at.index} (head {at.head}, row block {at.i}, column block "
            f"{at.j}), {self.op}: {self.quantity} = {self.engine:.9g}, float64 {self.exact:.9g}, "
            f"allowed {self.allowed:.1e}"
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a check."""

    # visits, of: visits checked, of how many
    visits: int
    of: int
    difference: Difference | None  # the first one, if any
    largest: float  # largest share of its tolerance that any number used, 0 to 1 when all agree
    # in how many rows of tiles float64 took the engine's side: up to rounding, m grew by the
    # rescale threshold, or a number lay halfway between two numbers of its type
    settled: int = 0
    ties: bool = False  # whether numbers that lay halfway are counted

    def __str__(self) -> str:
        if self.difference is not None:
            return str(self.difference)
        agree = f"{self.visits} of {self.of} visits agree with float64"
        if not self.settled:
            return agree
        rows = "1 row" if self.settled == 1 else f"{self.settled} rows"
        what = "numbers lay halfway" if self.ties else "m grew by the threshold"
        return f"{agree}; in {rows} {what} but for rounding, decided as the engine"


def verify(
    trace: Trace, progress: Callable[[float], None] | None = None, most: int = MAX_VISITS
) -> Verdict:
    """Compare every op of a run, or of whole row blocks spread over it, with float64.

    most: visits to check if the run has more; whole row blocks may make it a few more.
    """
    program, ties = trace.program, trace.workload.pair_dtype is not None
    interpreter = Interpreter(program, trace.inputs, trace.left)
    checked, settled, largest = 0, 0, 0.0
    bound, sizes = _bound(trace.inputs), _TermSizes(program)
    for index in visits_to_check(program, most):
        visit = program.visit(index)
        sizes.begin(visit)
        tile = trace.engine.tile(visit, trace.row_block(visit.head, visit.i))
        for number, op in enumerate(program.ops(index)):
            op.apply(interpreter.state)
            chip = interpreter.state.chip
            scores = sizes.after(op, interpreter.state)
            before, after = tile.states[number : number + 2]
            settled += op.settle(interpreter.state, before, after, _rounding(scores))
            for name, ours, exact in _compared(op, before, after, chip):
                if program.algorithm.error_size is None:
                    summed = program.algorithm.normalises_last
                    size = scores * (_terms(chip, summed) if name == "O" else 1.0)
                    if isinstance(op, ApplyGate):
                        size *= float(np.max(np.abs(chip["gate"]), initial=1.0))
                else:
                    known = {**chip, "S": np.array([[scores]])}
                    size = program.algorithm.error_size(name, known, bound)
                found, share = _difference(visit, op, name, ours, exact, size)
                largest = max(largest, share)
                if found is not None:
                    return Verdict(checked + 1, len(program), found, largest, settled, ties)
        checked += 1
        if progress and checked % 16 == 0:
            progress(min(1.0, checked / min(len(program), most)))
    if progress:
        progress(1.0)
    return Verdict(checked, len(program), None, largest, settled, ties)


def visits_to_check(program: TileProgram, most: int = MAX_VISITS) -> Iterator[int]:
    """Yield the visits to check: all, or whole row blocks, which depend on nothing else."""
    total = len(program)
    launch = program.launches[0]
    if total <= most or len(program.launches) > 1 or launch.carries or not launch.by_rows:
        yield from range(min(total, most))
        return
    start, left = 0, most
    w = program.workload
    of_a_block = max(1, total // (w.heads * w.grid.Tr))
    stride = total // max(1, most // of_a_block)
    while start < total and left > 0:
        first, stop = program.block_bounds(start)
        yield from range(first, stop)
        left -= stop - first
        start = max(stop, start + stride)


_NAMES = {"m_tile": "m of the tile", "l_tile": "l of the tile"}


def _compared(
    op: Op, before: Numbers, after: Numbers, chip: Mapping[str, F64]
) -> Iterator[tuple[str, F32, F64]]:
    """Yield name, engine's values and exact values of each number that an op has made."""
    for name in op.recorded or op.changed:
        ours = after.get(name)
        if ours is not None and ours is not before.get(name):
            yield _NAMES.get(name, name), ours, chip[name]


class _TermSizes:
    """The size of the largest terms of scores so far, of each block of rows and of keys.

    m, l and O hold the errors of all tiles that a row has seen, gradients of keys the errors of all
    rows.
    """

    def __init__(self, program: TileProgram) -> None:
        self._both = program.algorithm.backward
        self._kv_head_of = program.workload.kv_head_of
        self._so_far: dict[tuple[str, int, int], float] = {}
        self._own: tuple[tuple[str, int, int], ...] = ()
        self._terms: F64 | None = None
        self._size = 1.0

    def begin(self, visit: Visit) -> None:
        """Turn to a visit."""
        for key in self._own:
            self._so_far[key] = self._size
        rows = ("rows", visit.head, visit.i)
        keys = ("keys", self._kv_head_of[visit.head], visit.j)
        self._own = (rows, keys) if self._both else (rows,)
        self._terms = None

    def after(self, op: Op, state: State) -> float:
        """Return the size of the largest term, at least 1, once an op of the visit was done."""
        self._terms = op.terms(state, self._terms)
        self._size = max(1.0, *(self._so_far.get(key, 1.0) for key in self._own))
        if self._terms is not None:
            seen = np.isfinite(state.chip["S"])
            self._size = max(self._size, float(np.max(self._terms, initial=1.0, where=seen)))
        return self._size


def _bound(inputs: Inputs) -> float:
    """Return an upper bound of |V|, or with a gradient of O of the products of dO and V."""
    largest = float(np.abs(inputs.v).max())
    if inputs.upstream is None:
        return largest
    return largest * float(np.abs(inputs.upstream).sum(axis=-1).max())


def _rounding(size: float) -> Callable[[F64], F64]:
    """Return the function that says how far maxima of scores may be off."""
    return lambda m: allowed(m, size)


def _terms(chip: Mapping[str, F64], summed: bool) -> float:
    """Return the size of the terms of O, which may cancel; `summed`: not divided by l yet."""
    values = float(np.max(np.abs(chip["V"]), initial=1.0))
    return values * (float(np.max(chip["l"], initial=1.0)) if summed else 1.0)


def _difference(
    visit: Visit, op: Op, name: str, ours: F32, exact: F64, size: float
) -> tuple[Difference | None, float]:
    """Compare; NaN and a wrong infinity never agree."""
    used = shares(ours, exact, size)
    worst = float(used.max())
    if worst <= 1:
        return None, worst
    place = tuple(int(n) for n in np.unravel_index(int(np.argmax(used > 1)), used.shape))
    found = Difference(
        visit,
        op.name,
        f"{name}{list(place)}",
        float(ours[place]),
        float(exact[place]),
        float(allowed(exact, size)[place]),
    )
    return found, worst
