"""The steps of a lesson as a reader steps through them: drawn by the real window on the stage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QWidget

from simulator.lesson.steps import Lesson, waiting
from simulator.problem.scenario import Scenario
from ui.board.panel import BoardPanel
from ui.export.cell_sheets import CellSheets, place_of
from ui.export.frames import FrameSource
from ui.export.lesson_frames import LessonFrames
from ui.export.stepping import FPS, PageStep, PictureLayer, Values
from ui.export.storyboard import REST, LessonFrame, Shot, Storyboard, make_storyboard
from ui.export.unseen_window import Look, WindowFactory
from ui.look.units import plural

MOST_SHOTS = 8  # most states on the way to the place of a step
BETWEEN = (0.3, 0.6)  # shares of an op that are done in its pictures under way


class LessonPages:
    """Some steps of a lesson, each computed when it is asked for; `size`: size of its pictures."""

    in_gui = True

    def __init__(
        self,
        lesson: Lesson,
        steps: range,
        size: tuple[int, int],
        new_window: WindowFactory,
        engine: str = "auto",
    ) -> None:
        self.size = size
        self.title, self.summary = lesson.title, lesson.summary
        self._entries = [
            (n, asks)
            for n in steps
            for asks in (True, False)
            if not asks or lesson.steps[n].said.predict is not None
        ]
        self.words = f"{plural(len(self._entries), 'step')} of a lesson"
        self.sheets: list[CellSheets] = []
        self._lesson = lesson
        self._new_window, self._engine = new_window, engine
        self._board = make_storyboard(lesson, steps, fps=FPS)
        self._moments = [_moments(self._board, n, asks) for n, asks in self._entries]
        self._frames: tuple[str, LessonFrames] | None = None
        self._runs: dict[Scenario, int] = {}
        self._view = (0.0, 0.0, float(size[0]), float(size[1]))

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def view(self) -> tuple[float, float, float, float]:
        """The scene, between the line at the top and the caption, once something was drawn."""
        return self._view

    def _drawn_in(self, theme: str) -> LessonFrames:
        if self._frames is None or self._frames[0] != theme:
            self.close()
            frames = LessonFrames(
                self._lesson, self._board, theme, self.size, self._new_window, self._engine
            )
            self._frames = theme, frames
        return self._frames[1]

    def step(self, n: int, theme: str, look: Look) -> PageStep:
        """Return step `n`."""
        moments, asks = self._moments[n], self._entries[n][1]
        step = self._drawn_in(theme).resolved(moments[-1].shot, look)
        if asks and step.prediction is not None:
            asked = step.prediction
            text = "\n\n".join(filter(None, (asked.ask, asked.hint)))
            return PageStep(waiting(self._lesson, step).title, text, prediction=asked)
        seconds = sum(moment.shot.seconds for moment in moments[:-1]) / max(len(moments) - 1, 1)
        return PageStep(
            step.title, step.caption, len(moments), min(seconds, 0.7) * len(moments),
            step.notes, step.question, step.answer,
        )  # fmt: skip

    def values(self, n: int) -> Values | None:
        """Return the numbers under the pointer at step `n`, whose last picture is drawn."""
        assert self._frames is not None
        window = self._frames[1].unseen.window
        board, view = window.findChild(BoardPanel, "board"), window.session.view
        if board is None or not board.isVisible() or view is None:
            return None
        scenario = view.snapshot.program.workload.scenario
        run = self._runs.setdefault(scenario, len(self.sheets))
        if run == len(self.sheets):
            self.sheets.append(CellSheets(view.snapshot.program.workload))
        if not self.sheets[run].small:
            return None
        corner, scale = board.mapTo(window, QPoint()), self.size[0] / window.width()
        place = place_of(board.board_layout(), (corner.x() * scale, corner.y() * scale), scale)
        return Values(place, run, self.sheets[run].take(view.snapshot))

    def description(self, n: int) -> str:
        """Return the descriptions of the board and the panels at step `n`."""
        assert self._frames is not None
        window = self._frames[1].unseen.window
        bar = window.lessons.bar
        said = (
            each.accessibleDescription()
            for each in window.findChildren(QWidget)
            if each.isVisible() and not bar.isAncestorOf(each)
        )
        return ". ".join(dict.fromkeys(filter(None, said)))

    def make_ready(self, n: int, k: int, theme: str, look: Look) -> None:
        """Bring the window to picture `k` of step `n`."""
        frames = self._drawn_in(theme)
        frames.show(self._moments[n][k], look)
        window = frames.unseen.window
        scale = self.size[0] / window.width()
        top = window.findChild(QWidget, "stage_title")
        high = 0.0
        if top is not None and top.isVisible():
            high = top.mapTo(window, QPoint(0, top.height())).y() * scale
        low = window.lessons.bar.mapTo(window, QPoint()).y() * scale
        self._view = (0.0, high, float(self.size[0]), low - high)

    def layers(self, n: int, k: int, theme: str) -> Sequence[PictureLayer]:
        """Return picture `k` of step `n`, which the window shows; its words are left out."""
        return (PictureLayer(partial(self._drawn_in(theme).unseen.paint, scene=True)),)

    def film(self, n: int, theme: str) -> FrameSource | None:
        """Return the way to the place of step `n`, as the film of the lesson shows it."""
        if len(self._moments[n]) == 1:
            return None
        shots = _shots(self._board, self._entries[n][0])
        place = next(k for k, shot in enumerate(shots) if shot.arrived)
        shown = (*shots[:place], replace(shots[place], seconds=REST))
        ends = tuple(accumulate(shot.seconds for shot in shown))
        board = Storyboard(shown, ends, FPS, max(1, round(ends[-1] * FPS)), 1)
        return LessonFrames(
            self._lesson, board, theme, self.size, self._new_window, self._engine
        )  # fmt: skip

    def close(self) -> None:
        """End the window."""
        if self._frames is not None:
            self._frames[1].close()
            self._frames = None


def _shots(board: Storyboard, number: int) -> list[Shot]:
    """Return the pictures of a step without the picture of a question before it."""
    shots = (shot for shot in board.shots if shot.step == number)
    return [shot for shot in shots if not shot.ended and not shot.asks]


def _moments(board: Storyboard, number: int, asks: bool) -> list[LessonFrame]:
    """Return the pictures of a step, its place last; `asks`: the question's before it instead."""
    if asks:
        found = next(shot for shot in board.shots if shot.step == number and shot.asks)
        return [LessonFrame(found, 1.0, math.inf)]
    shots = _shots(board, number)
    place = next(n for n, shot in enumerate(shots) if shot.arrived)
    way = shots[:place]
    if len(way) > MOST_SHOTS:
        way = [way[(n + 1) * len(way) // MOST_SHOTS - 1] for n in range(MOST_SHOTS)]
    out = []
    for shot in way:
        between = BETWEEN if shot.before is not None and len(way) <= MOST_SHOTS // 2 else ()
        out += [LessonFrame(shot, phase, math.inf) for phase in between]
        out.append(LessonFrame(shot, 1.0, math.inf))
    if out and out[-1].shot.cursor == shots[place].cursor:
        out.pop()  # the next picture shows the same state
    return [*out, LessonFrame(shots[place], 1.0, math.inf)]
