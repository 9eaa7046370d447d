"""Pieces of work on lanes over time: a schedule, or a trace that was measured elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simulator.base.dtypes import F64
from simulator.problem.intervals import I64
from simulator.study.schedule.schedule import Schedule


@dataclass(frozen=True, eq=False)
class Events:
    """Events on lanes, with start and end; one entry for each event."""

    lanes: tuple[str, ...]  # names of the lanes, from top to bottom
    lane: I64  # (events,) int64
    # above, height: (events,) float64: which part of its lane it takes, 0 to 1 from the top
    above: F64
    height: F64
    # start, end: (events,) float64, seconds; turns, if it is not `timed`
    start: F64
    end: F64
    weight: F64  # (events,) float64, 0 to 1: how much work it is beside the largest
    names: tuple[str, ...]  # name of each event
    timed: bool = True  # whether times are known, or only the order on each lane

    @cached_property
    def used(self) -> int:
        """How many lanes there are down to the last one with an event that takes time."""
        return int(self.lane[self.end > self.start].max(initial=-1)) + 1

    @cached_property
    def seconds(self) -> float:
        """When the last event ends: seconds, or turns."""
        return float(self.end.max(initial=0.0))

    @property
    def top(self) -> F64:
        """The place of each event, in lanes from the top."""
        return self.lane + self.above

    def at(self, down: float, seconds: float) -> int | None:
        """Return the event at a time that is so many lanes from the top; None if there is none."""
        here = (self.top <= down) & (down < self.top + self.height)
        here &= (self.start <= seconds) & (seconds < self.end)
        found = np.flatnonzero(here)
        return int(found[-1]) if found.size else None


def events_of(schedule: Schedule) -> Events:
    """Return the thread blocks of a schedule: a lane is a multiprocessor, with its places."""
    lanes = tuple(f"SM {sm}" for sm in range(schedule.gpu.sms))
    # A lane is divided by the places that are used: few blocks do not use all places.
    slots = [max(each.placed.slot, default=0) + 1 for each in schedule.launches]
    parts = [
        (
            np.array(each.placed.sm),
            np.array(each.placed.slot) / used,
            np.full(len(each.blocks), 1 / used),
            each.begins + np.array(each.placed.start, dtype=np.float64),
            each.begins + np.array(each.placed.end, dtype=np.float64),
            np.array(each.works) / (max(each.works, default=0.0) or 1.0),
        )
        for used, each in zip(slots, schedule.launches, strict=True)
    ]
    columns = [np.concatenate(each) for each in zip(*parts, strict=True)]
    several = len(schedule.launches) > 1
    names = tuple(
        (f"{each.blocks.launch.name}, " if several else "") + each.blocks.title(n)
        for each in schedule.launches
        for n in range(len(each.blocks))
    )
    lane, above, height, start, end, weight = columns
    return Events(lanes, lane, above, height, start, end, weight, names)


def at_work(schedule: Schedule, visit: int) -> range:
    """Return which events of `events_of` do a visit."""
    launch, blocks = schedule.at(visit)
    before = schedule.launches[: schedule.launches.index(launch)]
    first = sum(len(each.blocks) for each in before)
    return range(first + blocks.start, first + blocks.stop)
