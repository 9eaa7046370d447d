"""The state that a frame of a film shows, by arithmetic on the frame's number."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from simulator.base.errors import refuse
from simulator.program.op import Gesture
from simulator.program.playback import (
    SECONDS_PER_MOVE,
    SECONDS_PER_OP,
    SECONDS_PER_RESCALE,
    Cursor,
    Granularity,
    end_of_visit,
    seconds_of,
    step,
)
from simulator.program.tile_program import TileProgram
from simulator.run.rescales import rescale_seconds_at
from simulator.run.trace import Trace
from ui.look.units import count_text, plural

LONGEST = 60.0  # most seconds of a film if its length is not given
MOST_FRAMES = 200_000
OPS_BY_DEFAULT = 600  # most ops of a film that goes op by op if the step is not given
VISITS_BY_OP = 100_000
"""Visits whose ops are counted one visit after another, which takes a few seconds."""
_UNKNOWN: Mapping[int, float] = {}
_MS = 1000
"""Durations are summed in whole milliseconds, so that no rounding moves the bounds of an op."""


@dataclass(frozen=True, slots=True)
class FrameMoment:
    """The content of a frame."""

    cursor: Cursor  # the state
    phase: float  # the share of its op that has been done, over 0 to 1, in proportion to time
    # the state one op earlier, from which it moves; None where there is none, and by tile
    before: Cursor | None = None
    seconds: float = 0.0  # how long the op is shown


@dataclass(frozen=True, slots=True)
class Still:
    """A film of one frame, which shows a state."""

    cursor: Cursor
    frames = 1

    def moment(self, k: int) -> FrameMoment:
        """Return the content of the frame."""
        return FrameMoment(self.cursor, 1.0)


@dataclass(frozen=True, slots=True)
class Timeline:
    """The frames of a film."""

    program: TileProgram  # the run
    visits: range  # the visits that are shown
    by: Granularity  # length of a step: an op or a tile
    fps: int  # fps, frames: frames a second, and in all
    frames: int
    ops: int | None  # number of ops shown; None by tile
    # (len(visits) + 1,) int64, milliseconds before each visit at speed 1; None by tile
    until: NDArray[np.int64] | None
    rescales: Mapping[int, float]  # seconds of the rescale of visits at speed 1, where known

    @property
    def steps(self) -> int:
        """Number of ops or tiles shown."""
        return len(self.visits) if self.ops is None else self.ops

    @property
    def seconds(self) -> float:
        """Length of the film in seconds."""
        return self.frames / self.fps

    def moment(self, k: int) -> FrameMoment:
        """Return the content of frame `k`."""
        if self.until is None:
            # A step of a tile jumps over its ops and does not show their moves, as in the window.
            place = ((k + 1) * len(self.visits) - 1) // self.frames
            return FrameMoment(end_of_visit(self.program, self.visits[place]), 1.0)
        # The frame shows the first op that lasts until the frame's end.
        total = int(self.until[-1])
        now = -(-(k + 1) * total // self.frames)
        place = int(np.searchsorted(self.until, now)) - 1
        visit = self.visits[place]
        bounds = [*accumulate(self.durations(visit), initial=int(self.until[place]))]
        op = bisect_left(bounds, now) - 1
        first, stop = (bound * self.frames // total for bound in bounds[op : op + 2])
        cursor = Cursor(visit, op)
        before = step(self.program, cursor, Granularity.OP, forward=False)
        phase = (k + 1 - first) / (stop - first)
        seconds = (stop - first) / self.fps
        return FrameMoment(cursor, phase, before if before != cursor else None, seconds)

    def durations(self, visit: int) -> list[int]:
        """Return how long each op of a visit lasts at speed 1, in milliseconds."""
        return _durations(self.program, visit, self.rescales)

    @property
    def words(self) -> str:
        """Length of the film, for users."""
        what = "tile" if self.until is None else "op"
        text = f"{plural(self.frames, 'frame')}, {self.seconds:.1f} s at {self.fps} fps, "
        steps = plural(self.steps, what)
        if self.until is None:
            if self.frames < self.steps:
                return text + f"{count_text(self.frames)} of {steps}"
            return text + f"{steps} of {self.seconds / self.steps:.2f} s"
        pace = self.seconds * _MS / int(self.until[-1])
        op, move = pace * SECONDS_PER_OP, pace * SECONDS_PER_MOVE
        if op * self.fps < 1:
            return text + f"some of {steps}"
        text += f"{steps} of {op:.2f} s, loads and stores of {move:.2f} s"
        slow = round(_MS * SECONDS_PER_RESCALE)
        if any(slow in self.durations(visit) for visit in self.visits[:OPS_BY_DEFAULT]):
            text += f", rescales of {pace * SECONDS_PER_RESCALE:.2f} s"
        return text


def _durations(program: TileProgram, visit: int, rescales: Mapping[int, float]) -> list[int]:
    """Return how long each op of a visit lasts at speed 1, in milliseconds."""
    usual = ((op, seconds_of(op)) for op in program.ops(visit))
    return [
        round(_MS * (rescales.get(visit, lasts) if op.gesture is Gesture.SHRINK else lasts))
        for op, lasts in usual
    ]


def rescales_of(trace: Trace, visits: range) -> dict[int, float]:
    """Return the seconds of each visit's rescale at speed 1; unknown for a long run."""
    out: dict[int, float] = {}
    for visit in visits if len(visits) <= OPS_BY_DEFAULT else ():
        for op in range(len(trace.program.ops(visit))):
            lasts = rescale_seconds_at(trace, Cursor(visit, op))
            if lasts is not None:
                out[visit] = lasts
    return out


def make_timeline(
    program: TileProgram,
    visits: range,
    *,
    fps: int,
    by: Granularity | None = None,
    pace: float | None = None,
    length: float | None = None,
    rescales: Mapping[int, float] = _UNKNOWN,
) -> Timeline:
    """Return the frames of a part of a run.

    by: op or tile; by default ops while they are few.
    pace: seconds for each tile, or for each op that moves no tiles; other ops take longer in
        proportion.
    length: seconds in all. With neither, the time of playing at speed 1, `LONGEST` in all.
    rescales: seconds of the rescale of visits at speed 1; a rescale that changes nothing has none.
    """
    until, ops = None, None
    if by is not Granularity.TILE and (by or len(visits) <= OPS_BY_DEFAULT):
        if len(visits) > VISITS_BY_OP:
            raise refuse(
                "export", "--by", "op",
                f"at most {count_text(VISITS_BY_OP)} visits, here {count_text(len(visits))}: "
                "--visits or --by tile",
            )  # fmt: skip
        lasting = [_durations(program, visit, rescales) for visit in visits]
        ops = sum(map(len, lasting))
        if by or ops <= OPS_BY_DEFAULT:
            until = np.cumsum([0, *map(sum, lasting)], dtype=np.int64)
        else:
            ops = None
    if length is None:
        whole = SECONDS_PER_OP * len(visits) if until is None else int(until[-1]) / _MS
        length = pace / SECONDS_PER_OP * whole if pace else min(whole, LONGEST)
    key, value = ("--pace", pace) if pace else ("--length", length)
    frames = frames_in(length, fps, key, value, "--visits, --length or a lower --fps")
    kind = Granularity.TILE if until is None else Granularity.OP
    return Timeline(program, visits, kind, fps, frames, ops, until, rescales)


def frames_in(
    length: float, fps: int, key: str, value: object, instead: str = "a lower --fps"
) -> int:
    """Return the number of frames of a film of some seconds."""
    frames = max(1, round(length * fps))
    if frames > MOST_FRAMES:
        raise refuse(
            "export", key, value,
            f"at most {count_text(MOST_FRAMES)} frames, these are {count_text(frames)}: {instead}",
        )  # fmt: skip
    return frames
