"""The sources of numbers in captions of lessons: a step's scenario, cursor and run.

A study's own numbers stand in its folder's ``captions``; `FUNCTIONS` has the numbers of all
imported modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeVar, TypeVarTuple
from weakref import WeakKeyDictionary

from simulator.base.cache import MIB
from simulator.base.errors import refuse
from simulator.base.limits import RUN_SCORES
from simulator.engines.numpy_engine import numpy_engine
from simulator.problem.hardware import Gpu, gpus
from simulator.problem.scenario import Scenario
from simulator.problem.workload import Workload, read_inputs, resolve
from simulator.program.algorithms import ALGORITHMS, algorithm_of, tile_program
from simulator.program.playback import Cursor
from simulator.program.tile_program import TileProgram
from simulator.program.traffic import stored_bytes
from simulator.run.cell_values import cell_shape, exists
from simulator.run.snapshot import Cell, Snapshot
from simulator.run.trace import Trace, trace_of
from simulator.study.attention_map import AttentionMaps, HeadScores
from simulator.study.attention_part import MapPart
from simulator.study.barrier import Watch, recorded_race
from simulator.study.sweep import Figures, figures_of

Value = float | int | str
T = TypeVar("T")
Ts = TypeVarTuple("Ts")
V = TypeVar("V", bound=str | int)
Function = Callable[..., Value]
FUNCTIONS: dict[str, Function] = {}
"""Functions by name; the first parameter is the step's `Numbers`."""


def known(function: Function) -> Function:
    """Let expressions call a function by its name."""
    FUNCTIONS[function.__name__] = function
    return function


def once_a_run(make: Callable[[Trace, *Ts], T]) -> Callable[[Trace, *Ts], T]:
    """Remember a function's results for a run for as long as the run lives."""
    found: WeakKeyDictionary[Trace, dict[tuple[*Ts], T]] = WeakKeyDictionary()

    def remembered(trace: Trace, *args: *Ts) -> T:
        own = found.setdefault(trace, {})
        if args not in own:
            own[args] = make(trace, *args)
        return own[args]

    return remembered


def named(key: str, name: str, table: Mapping[str, T], between: str = ", ") -> T:
    """Return the entry of a table by its name; names that are not there are refused."""
    if name not in table:
        raise refuse("", key, name, f"one of {between.join(table)}")
    return table[name]


def chosen(key: str, value: str | int, values: Iterable[V]) -> V:
    """Return the one of `values` that is written as `value`; any other is refused."""
    return named(key, str(value), {str(each): each for each in values})


def whole(key: str, value: float, least: int, most: int) -> int:
    """Return a whole number that is within its bounds; others are refused."""
    if not isinstance(value, int) or not least <= value <= most:
        raise refuse("", key, value, f"a whole number from {least} to {most}")
    return value


@lru_cache(maxsize=8)
def program_of(scenario: Scenario) -> TileProgram:
    """Return the tile program of a scenario, reading no more than a file's header."""
    return tile_program(resolve(scenario))


_WITH_CELLS = ("Q", "K", "V", "C", "S", "m", "l", "O")
_LARGE = 16 * MIB
"""Bytes of Q, K and V from which a run is not kept beyond the step that asks for it."""


def _trace(scenario: Scenario) -> Trace:
    workload = program_of(scenario).workload
    return trace_of(workload, read_inputs(workload), numpy_engine)


_kept_trace = lru_cache(maxsize=2)(_trace)


def usual_run(scenario: Scenario) -> Trace:
    """Return the run of a scenario on NumPy, for callers that have no run."""
    stored = stored_bytes(program_of(scenario).workload, ("Q", "K", "V"))
    return _trace(scenario) if sum(stored.values()) >= _LARGE else _kept_trace(scenario)


@dataclass(frozen=True)
class Numbers:
    """The numbers that expressions of a step may ask for; each is computed when it is needed."""

    scenario: Scenario  # the scenario of the step
    cursor: Cursor  # the place of the step
    most_scores: int = RUN_SCORES  # scores of a run whose end may be asked for
    watch: Watch = recorded_race  # shows the race in the run's kernel without a barrier
    run: Callable[[Scenario], Trace] = usual_run  # gives the run of the scenario

    @property
    def workload(self) -> Workload:
        """The scenario with every blank filled in."""
        return program_of(self.scenario).workload

    @cached_property
    def trace(self) -> Trace:
        """The run."""
        return self.run(self.scenario)

    @cached_property
    def snapshot(self) -> Snapshot:
        """The state at the cursor."""
        return self.trace.snapshot(self.cursor.visit, self.cursor.op)

    @cached_property
    def head(self) -> int:
        """Query head at the cursor."""
        return program_of(self.scenario).visit(self.cursor.visit).head

    @property
    def first_head(self) -> int:
        """The head at the cursor; the first of the heads that are packed into it."""
        return self.head * self.workload.group

    @cached_property
    def maps(self) -> AttentionMaps:
        """Weights of the head at the cursor; of all heads that are packed into it."""
        algorithm = algorithm_of(self.workload)
        if not algorithm.softmax:
            raise refuse("", "weight", algorithm.in_a_sentence, "a run with a softmax")
        group, (single, inputs) = self.workload.group, self.trace.single_heads
        heads = range(self.head * group, (self.head + 1) * group)
        part = MapPart(tuple(heads), range(single.seqlen_q))
        return HeadScores(single, inputs, part).maps()

    def single(self, row: int) -> tuple[int, int]:
        """Return the head of a row, and the row's number in this head, where heads are packed."""
        return self.workload.single(self.head, row)

    def as_if(self, algorithm: str) -> Workload:
        """Return the workload with another algorithm; "" for its own."""
        if not algorithm:
            return self.workload
        return self.workload.as_algorithm(named("algorithm", algorithm, ALGORITHMS).name)

    def figures(self, algorithm: str) -> Figures:
        """Return the figures of an algorithm's whole run."""
        return figures_of(self.as_if(algorithm))


def gpu_named(n: Numbers, name: str) -> Gpu:
    """Return a GPU preset; the scenario's if there is no name."""
    return named("GPU", name, gpus()) if name else n.workload.gpu


def cell_of(w: Workload, tensor: str, row: int, col: int) -> Cell:
    """Return a cell that exists, or refuse it."""
    if tensor not in _WITH_CELLS:
        raise refuse("", "tensor", tensor, f"one of {', '.join(_WITH_CELLS)}")
    cell = Cell(tensor, row, col)
    if not exists(w, cell):
        rows, cols = cell_shape(w, tensor)
        raise refuse("", tensor, f"[{row}, {col}]", f"a cell of a matrix of {rows} x {cols}")
    return cell
