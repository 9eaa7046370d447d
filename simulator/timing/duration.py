"""How long a run takes on its GPU, up to any of its visits: the one time that all panels show."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate

from simulator.problem.hardware import time_estimate
from simulator.program.tile_program import TileProgram
from simulator.timing.run_time import RunTime, run_time, why_no_time


@dataclass(frozen=True, eq=False)
class Duration:
    """The time of a run: by model, or without a model the least that the data sheet allows."""

    program: TileProgram
    copies: int  # of the run, side by side
    model: RunTime | None
    why: str  # why there is no model, as a sentence; empty if there is one

    @cached_property
    def ends(self) -> tuple[float, ...]:
        """Seconds at which each launch ends, from the start of the run."""
        program = self.program
        if self.model is None:
            stops = list(accumulate(program.sizes))
            return tuple(self._least(stop) for stop in stops)
        spent = [0.0] * len(program.launches)
        for launch in self.model.launches:
            spent[launch.number] += launch.seconds
        return tuple(accumulate(spent))

    @property
    def seconds(self) -> float:
        """Seconds of the whole run."""
        return self.ends[-1]

    @property
    def dram_bytes(self) -> int | None:
        """Bytes between L2 and DRAM; None without a model."""
        return None if self.model is None else self.model.dram_bytes

    def after(self, visits: int, part: float = 0.0) -> float:
        """Return the seconds until some visits are done, and a part of the next, 0 to 1.

        The visits of a launch share its time equally, though a GPU has many at work at once.
        """
        if self.model is None:
            own = self._least(visits)
            return own if not part else own + part * (self._least(visits + 1) - own)
        begin = stop = 0
        start = 0.0
        for size, end in zip(self.program.sizes, self.ends, strict=True):
            begin, stop = stop, stop + size
            if visits + part <= stop:
                return start + (end - start) * (visits + part - begin) / size if size else end
            start = end
        return self.seconds

    def visits_within(self, seconds: float) -> int:
        """Return how many whole visits are done within some seconds."""
        # Without this margin, sums of floats may miss a visit that ends at that very moment.
        late = seconds * (1 + 1e-12)
        return bisect_right(range(1, len(self.program) + 1), late, key=self.after)

    def _least(self, visits: int) -> float:
        w, counters = self.program.workload, self.program.counters(visits)
        one = time_estimate(w.gpu, counters.bytes, counters.flops, w.dtype).seconds
        return self.copies * one


def least_duration(program: TileProgram) -> Duration:
    """Return the least time that the data sheet allows a run, model or not."""
    return Duration(program, 1, None, why_no_time(program))


ROUGH_VISITS = 1 << 12  # visits that go through the cache where many runs are timed at once


def rough_duration(program: TileProgram) -> Duration:
    """Return how long a run takes, with less exact DRAM bytes: some milliseconds of work."""
    why = why_no_time(program)
    return Duration(program, 1, None if why else run_time(program, most=ROUGH_VISITS), why)


@lru_cache(maxsize=32)
def duration_of(program: TileProgram, copies: int = 1) -> Duration:
    """Return how long a run takes, or several copies side by side; computed once a program."""
    why = why_no_time(program)
    return Duration(program, copies, None if why else run_time(*[program] * copies), why)
