"""Which state a frame of a film shows, by arithmetic on the frame's number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.base.errors import refuse
from simulator.program.playback import SECONDS_PER_OP, Cursor, Granularity, eased, end_of_visit
from simulator.program.tile_program import TileProgram
from ui.look.units import count_text, plural

LONGEST = 60.0
"""Most seconds of a film if its length is not given."""
MOST_FRAMES = 200_000
OPS_BY_DEFAULT = 600
"""Most ops of a film that goes op by op if the step is not given."""
VISITS_BY_OP = 100_000
"""Visits whose ops are counted one visit after another, which takes a few seconds."""
MOTION = 0.3
"""Seconds that tiles move, as in the window."""
MOTION_SHARE = 0.6
"""Share of a short step in which tiles move, so that they are seen to arrive."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What a frame shows.

    Attributes
    ----------
    cursor : Cursor
        The state.
    phase : float
        The share of its op's moves that is done, 0 to 1.
    """

    cursor: Cursor
    phase: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """The frames of a film.

    Attributes
    ----------
    program : TileProgram
        The run.
    visits : range
        What is shown of it.
    by : Granularity
        What one step is: an op or a tile.
    fps, frames : int
        Frames a second, and in all.
    ops_before : ndarray or None
        (len(visits) + 1,) int64, ops before each visit; None by tile.
    """

    program: TileProgram
    visits: range
    by: Granularity
    fps: int
    frames: int
    ops_before: NDArray[np.int64] | None

    @property
    def steps(self) -> int:
        """Ops or tiles."""
        return len(self.visits) if self.ops_before is None else int(self.ops_before[-1])

    @property
    def seconds(self) -> float:
        """How long it takes."""
        return self.frames / self.fps

    def moment(self, k: int) -> Moment:
        """Return what frame `k` shows."""
        step = ((k + 1) * self.steps - 1) // self.frames
        if self.ops_before is None:
            # A step of a tile jumps over its ops and does not show their moves, as in the window.
            return Moment(end_of_visit(self.program, self.visits[step]), 1.0)
        place = int(np.searchsorted(self.ops_before, step, side="right")) - 1
        cursor = Cursor(self.visits[place], step - int(self.ops_before[place]))
        start = step * self.frames // self.steps
        count = (step + 1) * self.frames // self.steps - start
        moving = round(min(MOTION * self.fps, MOTION_SHARE * count))
        done = k - start + 1
        return Moment(cursor, eased(done / moving) if done < moving else 1.0)

    @property
    def words(self) -> str:
        """What it is, for users."""
        what = "op" if self.by is Granularity.OP else "tile"
        text = f"{plural(self.frames, 'frame')}, {self.seconds:.1f} s at {self.fps} fps, "
        if self.frames >= self.steps:
            pace = self.seconds / self.steps
            return text + f"{plural(self.steps, what)} of {pace:.2f} s"
        return text + f"{count_text(self.frames)} of {plural(self.steps, what)}"


def make_timeline(
    program: TileProgram,
    visits: range,
    *,
    fps: int,
    by: Granularity | None = None,
    pace: float | None = None,
    length: float | None = None,
) -> Timeline:
    """Return the frames of a part of a run.

    Parameters
    ----------
    program : TileProgram
        The run.
    visits : range
        The part; not empty.
    fps : int
        Frames a second.
    by : Granularity, optional
        Op or tile; by default ops while they are few.
    pace : float, optional
        Seconds for each op or tile.
    length : float, optional
        Seconds in all. With neither, `SECONDS_PER_OP` for each step, `LONGEST` in all.

    Raises
    ------
    InputError
        It would be endless.
    """
    before = None
    if by is not Granularity.TILE and (by or len(visits) <= OPS_BY_DEFAULT):
        if len(visits) > VISITS_BY_OP:
            raise refuse(
                "export", "--by", "op",
                f"at most {count_text(VISITS_BY_OP)} visits, here {count_text(len(visits))}: "
                "--visits or --by tile",
            )  # fmt: skip
        counts = [0, *(len(program.ops(visit)) for visit in visits)]
        before = np.cumsum(counts, dtype=np.int64)
        if by is None and before[-1] > OPS_BY_DEFAULT:
            before = None
    steps = len(visits) if before is None else int(before[-1])
    if length is None:
        length = pace * steps if pace else min(SECONDS_PER_OP * steps, LONGEST)
    frames = max(1, round(length * fps))
    if frames > MOST_FRAMES:
        key, value = ("--pace", pace) if pace else ("--length", length)
        raise refuse(
            "export", key, value,
            f"at most {count_text(MOST_FRAMES)} frames, these are {count_text(frames)}: "
            "--visits, --length or a lower --fps",
        )  # fmt: skip
    kind = Granularity.TILE if before is None else Granularity.OP
    return Timeline(program, visits, kind, fps, frames, before)
