"""Whole runs of the compared algorithms as a race by simulated time, at a realistic length.

Nothing here has a clock: all positions follow from a time on the GPU. One head does not fill a GPU,
so as many copies of the run go side by side as published figures measure.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate

from simulator.problem.masks import Mask
from simulator.problem.scenario import Algorithm
from simulator.problem.workload import Workload
from simulator.program.algorithms import tile_program
from simulator.program.tile_program import Counters, TileProgram
from simulator.study.compare import Comparison, Totals, comparison_of, long_workload
from simulator.timing.duration import Duration, duration_of
from simulator.timing.run_time import Bound

RUN_SECONDS = 6.0
"""Seconds that the slowest run takes on show at speed 1."""
START_SECONDS, FINISH_SECONDS = 0.5, 1.5
"""Seconds that a film shows the start, and the result."""
FILM_SECONDS = START_SECONDS + RUN_SECONDS + FINISH_SECONDS
HIDDEN = 2048
"""Heads times head dimension in which attention is measured with 16 384 tokens (Dao 2023, 4.1)."""
_MOST_COPIES = 64


@dataclass(frozen=True, slots=True)
class RunLaunch:
    """A launch of a run."""

    name: str  # what the launch computes
    stop: int  # visits that are done when it ends
    end: float  # simulated seconds since the start when it ends
    # the share of its time in which matrix units have nothing to multiply; None without a model
    idle: float | None
    bound_by: Bound | None  # None without a model


@dataclass(frozen=True, slots=True)
class RaceLane:
    """An algorithm in the race."""

    total: Totals  # figures of a single run
    duration: Duration  # the duration of all copies
    launches: tuple[RunLaunch, ...]  # its launches
    place: int  # 1 for the first; lanes that take equally long share a place

    @property
    def algorithm(self) -> Algorithm:
        """The algorithm's name in scenarios."""
        return self.total.algorithm

    @property
    def seconds(self) -> float:
        """Simulated seconds from start to finish."""
        return self.duration.seconds

    @property
    def idle(self) -> float | None:
        """The share of the run in which matrix units have nothing to multiply; None: no model."""
        model = self.duration.model
        if model is None:
            return None
        return 1 - sum(each.products for each in model.launches) / model.seconds

    @property
    def bound_by(self) -> Bound | None:
        """The resource that bounds the run; None without a model."""
        return None if self.duration.model is None else self.duration.model.bound_by


@dataclass(frozen=True, slots=True)
class Standing:
    """The place of an algorithm in the race."""

    share: float  # the share of its run that is done, of its time, 0 to 1
    counters: Counters  # requested bytes and FLOPs of the visits of one copy that are done
    launch: int | None  # the launch under way; None before the start and at the finish
    # the share of the time in which matrix units have nothing to multiply: of the launch under way,
    # at the finish of the whole run. None before the start, and without a model
    idle: float | None
    finished: bool  # whether its run is over


@dataclass(frozen=True, slots=True)
class Race:
    """The whole runs, which start together."""

    comparison: Comparison  # their programs
    copies: int  # of each, side by side
    lanes: tuple[RaceLane, ...]  # in the order in which algorithms are shown
    left_out: tuple[Algorithm, ...]  # algorithms without a model, where others have one
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
        """The lane that finishes first; of several the one that is shown first."""
        return min(self.lanes, key=lambda lane: lane.seconds)

    @property
    def last(self) -> RaceLane:
        """The lane that finishes last."""
        return max(self.lanes, key=lambda lane: lane.seconds)

    @property
    def time_factor(self) -> float:
        """The time of the last lane over the time of the first."""
        return self.last.seconds / self.first.seconds

    @property
    def mask_factor(self) -> float:
        """The rest of `time_factor`: the effect of hidden tiles that the first lane skips."""
        return self.time_factor / self.tiles_factor

    @property
    def byte_factor(self) -> float:
        """The requested bytes of the last lane over the bytes of the first."""
        return self.last.total.counters.bytes / self.first.total.counters.bytes

    def at(self, seconds: float) -> tuple[Standing, ...]:
        """Return the standings some simulated seconds after the start."""
        return tuple(self._standing(lane, seconds) for lane in self.lanes)

    def _standing(self, lane: RaceLane, seconds: float) -> Standing:
        program = self.comparison.programs[lane.algorithm]
        if seconds >= lane.seconds:
            return Standing(1.0, program.totals, None, lane.idle, finished=True)
        visits = lane.duration.visits_within(seconds)
        done = program.counters(visits)
        if seconds <= 0:
            return Standing(0.0, done, None, None, finished=False)
        launch = bisect_left(lane.launches, visits + 1, key=lambda one: one.stop)
        idle = lane.launches[launch].idle
        return Standing(seconds / lane.seconds, done, launch, idle, finished=False)


def seconds_after(race: Race, watched: float, length: float = RUN_SECONDS) -> float:
    """Return the simulated time after somebody has watched for a while."""
    return race.seconds * min(max(watched / length, 0.0), 1.0)


@lru_cache(maxsize=1)
def race_of(program: TileProgram) -> Race:
    """Return the race for the program that is shown, at a realistic length if it is short.

    Only algorithms with the same result run: forward passes, or backward passes. Times by model are
    not compared with times of data sheets, so if some have a model, only these run.
    """
    long = long_workload(program.workload)
    comparison = comparison_of(program) if long is None else Comparison(tile_program(long))
    copies = _copies(comparison.programs[comparison.shown].workload)
    alike = [each for each in comparison.totals if each.algorithm in comparison.alike]
    spent = {
        each.algorithm: duration_of(comparison.programs[each.algorithm], copies) for each in alike
    }
    modelled = any(each.model for each in spent.values())
    running = [each for each in alike if spent[each.algorithm].model or not modelled]
    left_out = tuple(each.algorithm for each in alike if each not in running)
    times = [spent[each.algorithm].seconds for each in running]
    lanes = tuple(
        RaceLane(
            total, spent[total.algorithm], _launches(spent[total.algorithm]),
            1 + sum(t < mine for t in times),
        )
        for total, mine in zip(running, times, strict=True)
    )  # fmt: skip
    race = Race(comparison, copies, lanes, left_out, 1.0)
    if not race.workload.mask.hides:
        return replace(race, tiles_factor=race.time_factor)
    first, last = (
        _unmasked(comparison.programs[lane.algorithm].workload, copies)
        for lane in (race.first, race.last)
    )
    return replace(race, tiles_factor=last / first)


def _copies(w: Workload) -> int:
    """Return how many runs side by side have `HIDDEN` dimensions together, at most 64."""
    return min(max(1, round(HIDDEN / (len(w.picked) * w.head_dim))), _MOST_COPIES)


def _unmasked(w: Workload, copies: int) -> float:
    """Return the seconds of runs in which every pair is visible."""
    every = replace(w, mask=Mask(w.mask.seqlen_q, w.mask.seqlen_k))
    return duration_of(tile_program(every), copies).seconds


def _launches(duration: Duration) -> tuple[RunLaunch, ...]:
    program, model = duration.program, duration.model
    launches = []
    stops = accumulate(program.sizes)
    for n, (launch, stop) in enumerate(zip(program.launches, stops, strict=True)):
        own = [each for each in model.launches if each.number == n] if model else []
        spent = sum(each.seconds for each in own)
        launches.append(
            RunLaunch(
                launch.name, stop, duration.ends[n],
                1 - sum(each.products for each in own) / spent if own else None,
                max(own, key=lambda each: each.seconds).bound_by if own else None,
            )
        )  # fmt: skip
    return tuple(launches)
