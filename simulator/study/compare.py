"""The algorithms side by side on the same Q, K, V, tiles, mask and hardware.

Everything here is arithmetic on tile programs, so the state at any place of a run of millions of
visits takes microseconds; only `run_all` starts engines.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any

from simulator.problem.scenario import Algorithm, scenario_tables
from simulator.problem.workload import Workload
from simulator.program.algorithms import BASELINE, TENSORS, alike, beside, tile_program
from simulator.program.tile_program import Counters, TileProgram, Visit
from simulator.program.traffic import compulsory_bytes
from simulator.run.snapshot import Snapshot
from simulator.run.trace import EngineFactory, Progress, Trace, trace_of
from simulator.study.sweep import figures_of, rule_tiles, workload_at
from simulator.timing.duration import Duration, duration_of, least_duration


@dataclass(frozen=True, slots=True)
class Position:
    """The progress of one algorithm."""

    algorithm: Algorithm  # its name in scenarios
    visits: int  # visits that are done
    # the current visit, or between two visits the last one done; None before the first
    visit: Visit | None
    counters: Counters  # requested bytes and FLOPs so far
    seconds: float  # time of these on the chosen GPU
    on_chip: int  # most shared memory, bytes, that the tiles of `visit` take at once
    finished: bool  # whether its run is over


@dataclass(frozen=True, slots=True)
class Totals:
    """Figures of one algorithm's whole run."""

    algorithm: Algorithm  # its name in scenarios
    visits: int  # of all launches: naive's scores, softmax and output visits each count
    counters: Counters  # requested bytes and FLOPs
    compulsory: int  # distinct bytes that each launch reads or writes
    duration: Duration  # on the chosen GPU
    peak: int  # most shared memory, bytes, that tiles of full size take at once
    # bytes in HBM of the numbers of pairs that it makes; 0 where none leaves the chip
    square: int

    @property
    def intensity(self) -> float:
        """Matmul FLOPs for each requested byte."""
        return self.counters.flops / self.counters.bytes


@dataclass(frozen=True, slots=True)
class Lockstep:
    """The progress of all algorithms while one is at a cursor."""

    # all have done as many visits as the one that is shown, or are finished
    by_tile: tuple[Position, ...]
    # the others have done the visits that fit into the simulated time of the one that is shown
    by_time: tuple[Position, ...]
    spent: Duration  # the duration of the one that is shown
    seconds: float  # the simulated time of the one that is shown


@dataclass(frozen=True, slots=True)
class EngineRun:
    """The result of an engine's whole run of one algorithm."""

    engine: str  # its name
    max_abs_error: float  # largest difference of O from float64, over `checked_rows` rows
    checked_rows: int  # rows that were compared
    seconds: float  # the engine's time, without the check


class Comparison:
    """Tile programs that differ only in the algorithm.

    program: the program that is shown; the others are made here.
    """

    def __init__(self, program: TileProgram) -> None:
        self.shown = program.workload.algorithm
        self.programs = {
            name: program
            if name == self.shown
            else tile_program(program.workload.as_algorithm(name))
            for name in beside(self.shown)
        }

    @property
    def alike(self) -> tuple[Algorithm, ...]:
        """Algorithms that make the same result as the one on show, which are ranked."""
        return alike(self.shown)

    @cached_property
    def totals(self) -> tuple[Totals, ...]:
        """Figures of the whole runs."""
        return tuple(_totals(name, program) for name, program in self.programs.items())

    @cached_property
    def clocks(self) -> dict[Algorithm, Duration]:
        """The durations by which all keep pace: by model, or data sheets if some have no model."""
        own = {name: duration_of(program) for name, program in self.programs.items()}
        if all(each.model for each in own.values()):
            return own
        return {name: least_duration(program) for name, program in self.programs.items()}

    def at(self, snapshot: Snapshot) -> Lockstep:
        """Return the positions of all while the one that is shown is at a snapshot's cursor.

        Of the one that is shown every op that is done counts; the others are between two visits.
        """
        shown = position_of(snapshot)
        clock, cursor = self.clocks[self.shown], snapshot.cursor
        seconds = clock.after(cursor.visit, (cursor.op + 1) / len(snapshot.ops))
        by_tile, by_time = [], []
        for name in self.programs:
            if name == self.shown:
                by_tile.append(shown)
                by_time.append(shown)
                continue
            by_tile.append(self.after(name, min(shown.visits, len(self.programs[name]))))
            by_time.append(self.after(name, self.clocks[name].visits_within(seconds)))
        return Lockstep(tuple(by_tile), tuple(by_time), clock, seconds)

    def after(self, name: Algorithm, visits: int) -> Position:
        """Return the position of an algorithm after some number of its visits."""
        program = self.programs[name]
        counters = program.counters(visits)
        visit = program.visit(visits - 1) if visits else None
        return Position(
            algorithm=name,
            visits=visits,
            visit=visit,
            counters=counters,
            seconds=duration_of(program).after(visits),
            on_chip=0 if visit is None else visit_shared_bytes(program, visit.index),
            finished=visits == len(program),
        )


def position_of(snapshot: Snapshot) -> Position:
    """Return the position of a snapshot's run."""
    program = snapshot.program
    whole = snapshot.cursor.op == len(snapshot.ops) - 1
    done = snapshot.cursor.visit + whole
    return Position(
        algorithm=program.workload.algorithm,
        visits=done,
        visit=snapshot.visit,
        counters=snapshot.counters,
        seconds=snapshot.seconds,
        on_chip=visit_shared_bytes(program, snapshot.visit.index),
        finished=done == len(program),
    )


SCALE_N = 2**14
"""Keys at which a short run is compared with a longer one."""
_LONGEST = 2**17


@dataclass(frozen=True, slots=True)
class AtScale:
    """The figures that a short run would have if it were long, in tiles of published kernels."""

    keys: int  # N of the long run
    rows: int  # rows, cols: its tiles, by the rule ``fa2``
    cols: int
    # requested bytes of each algorithm's long run, in the order in which they are shown
    bytes: Mapping[str, int]
    last: str  # the algorithm that saves least
    # N from which `last` requests less than `baseline` in these tiles; None: it never does
    since: int | None

    @property
    def baseline(self) -> str:
        """The algorithm with which the others are compared: the first one."""
        return next(iter(self.bytes))

    def times(self, name: str) -> float:
        """Return the bytes that the baseline requests, divided by an algorithm's bytes."""
        return self.bytes[self.baseline] / self.bytes[name]


@lru_cache(maxsize=4)
def at_scale(program: TileProgram) -> AtScale | None:
    """Return the long run to compare a short one with; None if the run itself is long enough.

    A run is short if the baseline's bytes over the bytes of the algorithm that saves most are less
    than half of this ratio at `SCALE_N` keys in the tiles of published kernels. Only algorithms
    with the same result are compared: O, or gradients.
    """
    w = program.workload
    long = long_workload(w)
    if long is None:
        return None
    others = long.as_algorithm(BASELINE.name)  # the baseline's tiles are told, not single tokens
    rows, cols = others.rows, others.cols
    there = _requested(long)
    here = _requested(w)
    baseline, *rest = there
    best = min(there, key=there.__getitem__)
    if 2 * here[baseline] / here[best] >= there[baseline] / there[best]:
        return None
    last = max(rest, key=there.__getitem__)

    def saves(keys: int) -> bool:
        found = _requested(workload_at(long, "N", keys))
        return found[last] < found[baseline]

    return AtScale(SCALE_N, rows, cols, there, last, _since(saves))


def long_workload(w: Workload) -> Workload | None:
    """Return a shorter workload at `SCALE_N` keys in the tiles of published kernels, else None.

    A mask of documents or blocks is not defined for more keys.
    """
    if w.seqlen_k >= SCALE_N or w.mask.of_these_lengths:
        return None
    rows, cols = rule_tiles(w)["fa2"]
    return workload_at(replace(w, rows=rows, cols=cols), "N", SCALE_N)


def _requested(w: Workload) -> dict[str, int]:
    return {name: figures_of(w.as_algorithm(name)).bytes for name in alike(w.algorithm)}


def _since(saves: Callable[[int], bool]) -> int | None:
    """Return the least N from which something is true at every doubling."""
    most = _LONGEST
    if not saves(most):
        return None
    while most > 1 and saves(most // 2):
        most //= 2
    return most // 2 + 1 + bisect_left(range(most // 2 + 1, most), True, key=saves)


@lru_cache(maxsize=4)
def comparison_of(program: TileProgram) -> Comparison:
    """Return the comparison for the program that is shown, made once for each program."""
    return Comparison(program)


def visit_shared_bytes(program: TileProgram, index: int) -> int:
    """Return the most shared memory that the tiles on chip take at once during a visit."""
    _, *rest = program.ops(index)
    held = {t.name: t.bytes for t in program.on_chip(index, 0) if t.place == "shared"}
    most = sum(held.values())
    for op in rest:
        for name in op.frees:
            held.pop(name, None)
        held |= {tile.name: tile.bytes for tile in op.allocates if tile.place == "shared"}
        most = max(most, sum(held.values()))
    return most


def same_numbers_key(trace: Trace) -> tuple[dict[str, Any], int]:
    """Return a key that tells whether results of `run_all` still fit a trace.

    The key is the same for traces of scenarios that differ in the algorithm alone and run on the
    same arrays, while these are alive.
    """
    tables = scenario_tables(trace.workload.scenario)
    attention = {k: v for k, v in tables.get("attention", {}).items() if k != "algorithm"}
    return {**tables, "title": "", "attention": attention}, id(trace.inputs)


def run_all(trace: Trace, factory: EngineFactory, progress: Progress) -> dict[str, EngineRun]:
    """Run all compared algorithms on their engines, from the first tile to the last.

    progress: told the share done, 0 to 1; may raise to stop.
    Returns: the runs by algorithm.
    """
    out: dict[str, EngineRun] = {}
    names = beside(trace.workload.algorithm)
    for n, name in enumerate(names):
        workload = trace.workload.as_algorithm(name)
        run = trace_of(workload, workload.posed(trace.inputs), factory)
        summary = run.summary(partial(_part, progress, n, len(names)))
        error = summary["max_abs_error"]
        out[name] = EngineRun(
            engine=summary["engine"],
            # None: a fault has made it infinite or NaN, which JSON cannot express.
            max_abs_error=math.nan if error is None else error,
            checked_rows=summary["checked_rows"],
            seconds=summary["seconds"],
        )
    return out


def _part(progress: Progress, number: int, runs: int, share: float) -> None:
    """Report the share of all runs that is done, from the share of run `number`."""
    progress((number + share) / runs)


def _totals(name: Algorithm, program: TileProgram) -> Totals:
    counters = program.totals
    return Totals(
        algorithm=name,
        visits=len(program),
        counters=counters,
        compulsory=compulsory_bytes(program.workload),
        duration=duration_of(program),
        peak=program.peak_shared_bytes,
        # Each cell is written once, so the written bytes are the bytes of the pairs.
        square=sum(n for name, n in counters.write.items() if TENSORS[name].of_pairs),
    )
