"""Whole runs of the compared algorithms as a race by simulated time, at a realistic length.

Nothing here has a clock: where everybody is follows from a time on the GPU. Times, bytes and FLOPs
are those of the comparison, so the one who is first in the race is first in its table.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, pairwise

from simulator.problem.hardware import TimeEstimate, time_estimate
from simulator.problem.scenario import Algorithm
from simulator.problem.workload import Workload
from simulator.program.algorithms import tile_program
from simulator.program.tile_program import Counters, TileProgram
from simulator.study.compare import Comparison, Totals, comparison_of, long_workload
from simulator.study.sweep import unmasked

RUN_SECONDS = 6.0
"""How long the slowest runs at speed 1, for those who watch."""
START_SECONDS, FINISH_SECONDS = 0.5, 1.5
"""How long a film shows everybody at the start, and the result."""
FILM_SECONDS = START_SECONDS + RUN_SECONDS + FINISH_SECONDS


@dataclass(frozen=True, slots=True)
class RunLaunch:
    """A launch of a run."""

    name: str  # what the launch computes
    stop: int  # visits that are done when it ends
    end: float  # simulated seconds since the start when it ends
    time: TimeEstimate  # of the launch alone


@dataclass(frozen=True, slots=True)
class RaceLane:
    """An algorithm in the race."""

    total: Totals  # figures of its whole run
    launches: tuple[RunLaunch, ...]  # its launches
    place: int  # 1 for the first; those who take equally long share a place

    @property
    def algorithm(self) -> Algorithm:
        """The algorithm's name in scenarios."""
        return self.total.algorithm

    @property
    def seconds(self) -> float:
        """Simulated seconds from start to finish."""
        return self.total.time.seconds


@dataclass(frozen=True, slots=True)
class Standing:
    """The place of an algorithm in the race."""

    share: float  # the share of its run that is done, of its time, 0 to 1
    counters: Counters  # requested bytes and FLOPs of the visits that are done
    launch: int | None  # the launch under way; None before the start and at the finish
    # the share of the time in which the matrix units wait for memory: of the launch under way, at
    # the finish of the whole run. None before the start, and if there is no rate for the dtype
    waits: float | None
    finished: bool  # whether its run is over


@dataclass(frozen=True, slots=True)
class Race:
    """The whole runs, which start together."""

    comparison: Comparison  # their programs
    lanes: tuple[RaceLane, ...]  # in the order in which algorithms are shown
    tiles_factor: float  # what `time_factor` would be if every pair were visible

    @property
    def workload(self) -> Workload:
        """The problem of all lanes, as the algorithm on show computes it."""
        return self.comparison.programs[self.comparison.shown].workload

    @property
    def seconds(self) -> float:
        """Simulated seconds until the last has finished."""
        return max(lane.seconds for lane in self.lanes)

    @property
    def first(self) -> RaceLane:
        """The one that finishes first; of several the one that is shown first."""
        return min(self.lanes, key=lambda lane: lane.seconds)

    @property
    def last(self) -> RaceLane:
        """The one that finishes last."""
        return max(self.lanes, key=lambda lane: lane.seconds)

    @property
    def time_factor(self) -> float:
        """How many times as long as the first the last takes."""
        return self.last.seconds / self.first.seconds

    @property
    def mask_factor(self) -> float:
        """How much of `time_factor` is there because the first skips hidden tiles: the rest."""
        return self.time_factor / self.tiles_factor

    @property
    def byte_factor(self) -> float:
        """How many times the bytes of the first the last requests."""
        return self.last.total.counters.bytes / self.first.total.counters.bytes

    def at(self, seconds: float) -> tuple[Standing, ...]:
        """Return where everybody is some simulated seconds after the start."""
        return tuple(self._standing(lane, seconds) for lane in self.lanes)

    def _standing(self, lane: RaceLane, seconds: float) -> Standing:
        program = self.comparison.programs[lane.algorithm]
        if seconds >= lane.seconds:
            return Standing(1.0, program.totals, None, waiting(lane.total.time), finished=True)
        visits = self.comparison.visits_within(lane.algorithm, seconds)
        done = program.counters(visits)
        if seconds <= 0:
            return Standing(0.0, done, None, None, finished=False)
        launch = bisect_left(lane.launches, visits + 1, key=lambda one: one.stop)
        waits = waiting(lane.launches[launch].time)
        return Standing(seconds / lane.seconds, done, launch, waits, finished=False)


def waiting(time: TimeEstimate) -> float | None:
    """Return the share of some work's time in which the matrix units wait for memory.

    By the roofline they compute while bytes move, and the rest of the time they have nothing to do.
    None if the data sheet has no rate for the dtype.
    """
    if time.compute is None or not time.seconds:
        return None
    return 1 - time.compute / time.seconds


def seconds_after(race: Race, watched: float, length: float = RUN_SECONDS) -> float:
    """Return the simulated time after somebody has watched for a while."""
    return race.seconds * min(max(watched / length, 0.0), 1.0)


@lru_cache(maxsize=1)
def race_of(program: TileProgram) -> Race:
    """Return the race for the program that is shown, at a realistic length if it is short.

    Those run that make the same: forward passes, or backward passes.
    """
    long = long_workload(program.workload)
    comparison = comparison_of(program) if long is None else Comparison(tile_program(long))
    running = [total for total in comparison.totals if total.algorithm in comparison.alike]
    times = [total.time.seconds for total in running]
    lanes = tuple(
        RaceLane(total, _launches(comparison, total.algorithm), 1 + sum(t < mine for t in times))
        for total, mine in zip(running, times, strict=True)
    )
    race = Race(comparison, lanes, 1.0)
    if not race.workload.mask.hides:
        return replace(race, tiles_factor=race.time_factor)
    first, last = (
        unmasked(comparison.programs[lane.algorithm].workload) for lane in (race.first, race.last)
    )
    return replace(race, tiles_factor=last.time.seconds / first.time.seconds)


def _launches(comparison: Comparison, name: Algorithm) -> tuple[RunLaunch, ...]:
    program = comparison.programs[name]
    w = program.workload
    bounds = pairwise(accumulate(program.sizes, initial=0))
    launches = []
    for launch, (start, stop) in zip(program.launches, bounds, strict=True):
        before, after = program.counters(start), program.counters(stop)
        own = time_estimate(w.gpu, after.bytes - before.bytes, after.flops - before.flops, w.dtype)
        end = time_estimate(w.gpu, after.bytes, after.flops, w.dtype).seconds
        launches.append(RunLaunch(launch.name, stop, end, own))
    return tuple(launches)
