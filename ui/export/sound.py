"""The sound of a film: a tick wherever a tile lands.

The times of ticks are arithmetic on the timeline, as the pictures are. Samples of any part of a
film are computed when they are encoded.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from simulator.base.dtypes import F32
from simulator.lesson.steps import Lesson
from simulator.program.op import Op
from simulator.program.playback import MOVING
from simulator.run.motion import flights_of
from simulator.study.captions import program_of
from ui.export.storyboard import Storyboard
from ui.export.timeline import Timeline
from ui.session.ticks import LENGTH, RATE, limited, tick

_APART = 0.05  # least seconds between two ticks of a tensor: more of them would be a noise


class Landing(NamedTuple):
    """A tile that lands, on the chip or in HBM."""

    seconds: float  # time in the film
    tensor: str  # the tile's tensor


def landings_of_run(timeline: Timeline) -> list[Landing]:
    """Return when tiles land in the film of a run; by tile, when the tile is first shown."""
    if timeline.until is None:
        return _apart(_by_tile(timeline))
    stretch = timeline.seconds / int(timeline.until[-1])
    return _apart(
        landing
        for place, visit in enumerate(timeline.visits)
        for landing in _of_visit(timeline, visit, int(timeline.until[place]), stretch)
    )


def _of_visit(timeline: Timeline, visit: int, begin: int, stretch: float) -> Iterator[Landing]:
    lasts = timeline.durations(visit)
    begins = accumulate(lasts, initial=begin)
    ops = timeline.program.ops(visit)
    for n, (op, first, length) in enumerate(zip(ops, begins, lasts, strict=False)):
        # The state after the first op of a run is shown at once: there is no state before it.
        yield from _of_op(op, first * stretch, length * stretch if visit or n else 0.0)


def _by_tile(timeline: Timeline) -> Iterator[Landing]:
    last = -1
    for k in range(timeline.frames):
        visit = timeline.moment(k).cursor.visit
        if visit != last:
            last = visit
            for op in timeline.program.ops(visit):
                yield from _of_op(op, k / timeline.fps, 0.0)


def landings_of_lesson(lesson: Lesson, board: Storyboard) -> list[Landing]:
    """Return when tiles land in the film of a lesson, in order of time."""
    return _apart(_of_shots(lesson, board))


def _of_shots(lesson: Lesson, board: Storyboard) -> Iterator[Landing]:
    stretch = board.frames / board.fps / board.ends[-1]
    for shot, end in zip(board.shots, board.ends, strict=True):
        if shot.before is not None:
            program = program_of(lesson.steps[shot.step].scenario)
            op = program.ops(shot.cursor.visit)[shot.cursor.op]
            yield from _of_op(op, (end - shot.seconds) * stretch, shot.seconds * stretch)


def _of_op(op: Op, begin: float, seconds: float) -> Iterator[Landing]:
    """Yield the landings of an op's tiles; at the end of the op's time everything rests."""
    for flight in flights_of(op.moves, loads=op.loads):
        yield Landing(begin + seconds * MOVING * flight.end, flight.move.tensor)


def _apart(landings: Iterable[Landing]) -> list[Landing]:
    """Return landings in order of time, without any too close to another of the same tensor."""
    out: list[Landing] = []
    last: dict[str, float] = {}
    for landing in sorted(landings):
        if landing.seconds - last.get(landing.tensor, -_APART) >= _APART - 1e-9:
            last[landing.tensor] = landing.seconds
            out.append(landing)
    return out


class Sound:
    """The samples of a film."""

    def __init__(self, landings: Iterable[Landing]) -> None:
        self._landings = sorted(landings)
        self._begins = [round(landing.seconds * RATE) for landing in self._landings]
        self._ticks = {name: tick(name) for name in {each.tensor for each in self._landings}}

    def samples(self, start: int, stop: int) -> F32:
        """Return some samples, -1 to 1."""
        out = np.zeros(stop - start, dtype=np.float32)
        first = bisect_left(self._begins, start - round(LENGTH * RATE))
        for n in range(first, bisect_left(self._begins, stop)):
            begin, wave = self._begins[n], self._ticks[self._landings[n].tensor]
            low, high = max(begin, start), min(begin + len(wave), stop)
            if low < high:
                out[low - start : high - start] += wave[low - begin : high - begin]
        return limited(out)
