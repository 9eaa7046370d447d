"""The steps of a run for a reader, each with its words, pictures and numbers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from PySide6.QtGui import QPainter

from simulator.lesson.predict import Prediction
from simulator.program.op import Gesture
from simulator.program.playback import (
    MOVING,
    Cursor,
    Granularity,
    end_of_visit,
    moved,
    seconds_of,
    step,
)
from simulator.program.tile_program import TileProgram
from simulator.run.motion import Motion
from simulator.run.trace import Trace
from ui.board.words import header_choices
from ui.export.cell_sheets import CellSheets, Place, place_of
from ui.export.frames import FrameSource, RunFrames, RunStates
from ui.export.scenes import scene_moment
from ui.export.timeline import make_timeline
from ui.look.run_words import scenario_words
from ui.look.theme import THEMES
from ui.look.units import count_text, plural
from ui.panels.formula.lines import formula_model

OPS_UP_TO, MOST, MOST_SLIDES = 24, 240, 60
"""Visits up to which every op is a step; most steps of a run by tile or row block: on a page, and
as slides."""
FPS = 30  # frames a second of its films
BETWEEN = 4  # pictures of an op under way


@dataclass(frozen=True, slots=True)
class Values:
    """The numbers under the pointer at a step."""

    place: Place  # places of its cells in the picture
    run: int  # run, sheet: number of one of the source's sheets, and of the step in this sheet
    sheet: int


@dataclass(frozen=True, slots=True)
class PageStep:
    """One step; its texts are Markdown with formulas."""

    title: str
    text: str
    pictures: int = 1  # number of pictures: of the motion, and last of the state that is reached
    seconds: float = 0.7  # length of the motion
    notes: str = ""  # notes, question, answer: "" where there is none
    question: str = ""
    answer: str = ""
    prediction: Prediction | None = None  # the question before the next step is shown


@dataclass(frozen=True, slots=True)
class PictureLayer:
    """A part of a picture, over the parts before it."""

    paint: Callable[[QPainter], None]
    key: Hashable = None  # layers of the same key look the same; None: nothing is known


class PageSource(Protocol):
    """The steps of a run or of a lesson, drawn one after another.

    in_gui: whether the pictures are drawn in the GUI thread.
    size: width and height of a picture.
    title, summary, words: the title, a sentence more, and a few words about the file.
    sheets: the numbers of the source's runs.
    """

    in_gui: bool
    size: tuple[int, int]
    title: str
    summary: str
    words: str
    sheets: list[CellSheets]

    @property
    def view(self) -> tuple[float, float, float, float]:
        """The part of a picture that is seen: left, top, width and height."""

    def __len__(self) -> int: ...

    def step(self, n: int, theme: str, look: Callable[[], None]) -> PageStep:
        """Return step `n`; `look` is called often and may raise to end the work."""

    def values(self, n: int) -> Values | None:
        """Return the numbers under the pointer at step `n`, once its last picture is drawn."""

    def make_ready(self, n: int, k: int, theme: str, look: Callable[[], None]) -> None:
        """Do the slow work for picture `k` of step `n`."""

    def description(self, n: int) -> str:
        """Return step `n` in words for screen readers, once its last picture is drawn."""

    def layers(self, n: int, k: int, theme: str) -> Sequence[PictureLayer]:
        """Return the layers of picture `k` of step `n`, the lowest one first."""

    def close(self) -> None:
        """Release all memory and threads."""


@dataclass(frozen=True, slots=True)
class RunStop:
    """One step of a run."""

    cursor: Cursor  # the state that is reached
    before: Cursor | None = None  # the state from which it moves; None: no motion
    seconds: float = 0.7

    @property
    def pictures(self) -> int:
        """The number of pictures: of the motion, and of the state that is reached."""
        return 1 + BETWEEN * (self.before is not None)


def stops_of(
    program: TileProgram,
    visits: range,
    by: Granularity | None,
    *,
    slides: bool = False,
    moving: bool = True,
) -> tuple[list[RunStop], Granularity]:
    """Return the steps of a part of a run: by op while it is short, then by tile, by row block.

    slides: whether the steps are slides: by tile while there are few, then by row block.
    moving: whether ops are seen under way.
    """
    most = MOST_SLIDES if slides else MOST
    if by is None:
        few = len(visits) <= OPS_UP_TO and not slides
        by = Granularity.OP if few else Granularity.TILE
        if len(visits) > most:
            by = Granularity.ROW_BLOCK
    if by is Granularity.OP:
        out = []
        for visit in visits:
            for n, op in enumerate(program.ops(visit)):
                cursor = Cursor(visit, n)
                before = step(program, cursor, Granularity.OP, forward=False)
                still = before == cursor or (op.gesture is Gesture.STATE and not op.moves)
                still = still or not moving
                out.append(RunStop(cursor, None if still else before, seconds_of(op)))
        return out, by
    found: list[Cursor] = []
    if by is Granularity.TILE:
        found = [end_of_visit(program, visit) for visit in _thinned(visits, most)]
    else:
        at, end = Cursor(visits.start, 0), end_of_visit(program, visits[-1])
        while at < end and len(found) <= most:
            at = min(step(program, at, by), end)
            # The end of a row block is the last tile before the next block's first.
            last = at if at == end else end_of_visit(program, max(at.visit - 1, visits.start))
            found += [last] if not found or last > found[-1] else []
        if at < end:
            by = Granularity.TILE
            found = [end_of_visit(program, visit) for visit in _thinned(visits, most)]
    return [RunStop(cursor) for cursor in found], by


def steps_words(stops: list[RunStop], by: Granularity, visits: int) -> str:
    """Return the number of steps and their kind, for users."""
    steps = plural(len(stops), "step")
    if by is Granularity.OP:
        return f"{steps}, one for each op"
    if len(stops) == visits:
        return f"{steps}, one for each tile"
    ends = ", where row blocks end" if by is Granularity.ROW_BLOCK else ""
    return f"{steps}, of {count_text(visits)} tiles{ends}"


def _thinned(visits: range, most: int) -> Iterator[int]:
    count = min(len(visits), most)
    return (visits[(n + 1) * len(visits) // count - 1] for n in range(count))


class RunPages:
    """The steps of a run; nobody else may use its trace in the meantime."""

    in_gui = False

    def __init__(
        self,
        trace: Trace,
        visits: range,
        scene: str,
        size: tuple[int, int],
        *,
        by: Granularity | None = None,
        row: int | None = None,
        slides: bool = False,
        moving: bool = True,
    ) -> None:
        self.trace, self.size = trace, size
        self.view = (0.0, 0.0, float(size[0]), float(size[1]))
        self._scene, self._row = scene, row
        self._stops, by = stops_of(trace.program, visits, by, slides=slides, moving=moving)
        self._by = by
        w = trace.workload
        self.title = w.scenario.title or trace.program.algorithm.title
        self.summary = " · ".join((trace.program.algorithm.title, *scenario_words(w)))
        self.words = steps_words(self._stops, by, len(visits))
        if len(self._stops) < len(visits):
            self.summary += f" · {self.words}"
        self.sheets = [CellSheets(trace.workload)]
        self._state = RunStates(trace, row)
        self._motion: Motion | None = None

    def __len__(self) -> int:
        return len(self._stops)

    def visit(self, n: int) -> int:
        """Return the visit of step `n`."""
        return self._stops[n].cursor.visit

    def step(self, n: int, theme: str, look: Callable[[], None]) -> PageStep:
        """Return step `n`."""
        stop = self._stops[n]
        snapshot, report = self._state(stop.cursor)
        model = formula_model(snapshot, report)
        total, at = count_text(len(self.trace)), count_text(stop.cursor.visit + 1)
        said = [snapshot.op.says] if snapshot.op.says else []
        for one in model.lines:
            if one.current:
                numbers = "".join(piece.text for piece in one.choices[0]).strip()
                said.append(f"${one.latex}$" + (f"  `{numbers}`" if numbers else ""))
        said.append(f"Visit {at} of {total}; {model.cites[0]}.")
        return PageStep(
            model.title[0], "\n\n".join(said), stop.pictures, stop.seconds,
        )  # fmt: skip

    def values(self, n: int) -> Values | None:
        """Return the numbers under the pointer at step `n`."""
        sheets, (snapshot, report) = self.sheets[0], self._state(self._stops[n].cursor)
        if not sheets.small:
            return None
        shown = scene_moment(self._scene, snapshot, report, THEMES["dark"], self.size)
        return Values(place_of(shown.board), 0, sheets.take(snapshot))

    def description(self, n: int) -> str:
        """Return the board's header at step `n`."""
        return header_choices(self._state(self._stops[n].cursor)[0])[0]

    def make_ready(self, n: int, k: int, theme: str, look: Callable[[], None]) -> None:
        """Do nothing, because a picture takes little time."""
        look()

    def layers(self, n: int, k: int, theme: str) -> Sequence[PictureLayer]:
        """Return the layers of picture `k` of step `n`: still parts, and moving or new parts."""
        stop = self._stops[n]
        before, _ = self._state(stop.before or stop.cursor)
        after, report = self._state(stop.cursor)
        shown = scene_moment(self._scene, after, report, THEMES[theme], self.size)
        still = PictureLayer(shown.paint_still, (theme, stop.cursor))
        if stop.before is None or k == BETWEEN:
            return still, PictureLayer(shown.paint_live)
        if self._motion is None or self._motion.after is not after:
            self._motion = Motion(before, after)
        share = moved(MOVING * (k + 0.5) / BETWEEN)
        return still, PictureLayer(
            partial(shown.paint_moving, motion=self._motion, share=share, over=True)
        )

    def film(self, n: int, theme: str) -> FrameSource | None:
        """Return the film of step `n`: all ops of a tile; None where steps are not tiles."""
        at, program = self._stops[n].cursor.visit, self.trace.program
        if self._by is not Granularity.TILE:
            return None
        times = make_timeline(program, range(at, at + 1), fps=FPS, by=Granularity.OP)
        return RunFrames(self.trace, times, self._scene, THEMES[theme], self.size, row=self._row)

    def close(self) -> None:
        """Forget the states."""
        self._state.clear()
        self._motion = None
