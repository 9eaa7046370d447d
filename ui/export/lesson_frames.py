"""The frames of a lesson: the real window with the caption, step after step."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from PySide6.QtGui import QImage, QPainter

from simulator.lesson.reader import resolve_step
from simulator.lesson.steps import Lesson, ResolvedStep, place_of_question, waiting
from simulator.program.op import Gesture
from simulator.program.playback import eased, moved, played
from simulator.study.captions import program_of
from ui.export.storyboard import LessonFrame, Shot, Storyboard
from ui.export.unseen_window import (
    CAMERA_SECONDS,
    CaptionState,
    Look,
    Moving,
    Sight,
    UnseenWindow,
    WindowFactory,
    WindowFrames,
    WindowPlace,
)
from ui.look.lesson_text import FORMATS
from ui.safety.faults import Errand
from ui.talk.lesson_player import end_of
from ui.talk.prediction import printed

R = TypeVar("R")

_NAP = 0.01
_FADE_SECONDS = 0.4  # how long the picture before a step fades


class LessonFrames(WindowFrames):
    """A lesson as frames; each of its steps is computed when its first frame is needed.

    Ops are seen to move, the camera glides to the part that a step frames, and the last picture of
    a step fades into the next. The frame's number alone decides all of this.

    headed: whether the lesson's title comes before each step's title, and the caption is shown
        whole, for pages that are used alone.
    """

    def __init__(
        self,
        lesson: Lesson,
        board: Storyboard,
        theme: str,
        size: tuple[int, int],
        new_window: WindowFactory,
        engine: str = "auto",
        *,
        headed: bool = False,
    ) -> None:
        super().__init__(lambda: UnseenWindow(size, theme, new_window, engine), size)
        self._lesson = lesson
        self._board = board
        self._head = f"{lesson.title}: " if headed else ""
        self._headed = headed
        self._step: ResolvedStep | None = None
        self._old: tuple[Shot, QImage] | None = None
        """The last picture of a step, which fades into the next."""

    def __len__(self) -> int:
        return self._board.frames

    def step_number(self, k: int) -> int:
        """Return which step frame `k` shows, from 0."""
        return self._board.moment(k).shot.step

    @property
    def step(self) -> ResolvedStep:
        """The step of the frame that was last made ready."""
        assert self._step is not None
        return self._step

    def key(self, k: int) -> Hashable:
        """Return the step, the state, the share of each motion, and whether the answer is shown."""
        moment = self._board.moment(k)
        shot = moment.shot
        share = self._share(moment) if shot.before is not None else 1.0
        fades = moment.since < _FADE_SECONDS and self._board.shot_before(shot) is not None
        sight = self._view(moment)
        glides = sight.share if sight.start != sight.end else 1.0
        passing = moment.since if fades else None, glides
        said = shot.arrived, shot.revealed, shot.ended, shot.asks
        return shot.step, shot.cursor, *said, share, passing

    def make_ready(self, k: int, look: Look) -> None:
        """Bring the window to the state of frame `k`, and keep the picture that fades over it."""
        moment = self._board.moment(k)
        last = self._board.shot_before(moment.shot)
        if last is None or moment.since >= _FADE_SECONDS:
            self._old = None
        elif self._old is None or self._old[0] != last:
            self.show(LessonFrame(last, 1.0, math.inf), look)
            picture = QImage(*self.size, QImage.Format.Format_RGB32)
            with QPainter(picture) as painter:
                self.unseen.paint(painter)
            self._old = last, picture
        self.show(moment, look)

    def paint(self, painter: QPainter, k: int) -> None:
        super().paint(painter, k)
        if self._old is not None:
            painter.setOpacity(1 - eased(self._board.moment(k).since / _FADE_SECONDS))
            painter.drawImage(0, 0, self._old[1])
            painter.setOpacity(1.0)

    def close(self) -> None:
        super().close()
        self._old = None

    def show(self, moment: LessonFrame, look: Look) -> None:
        """Bring the window to a moment."""
        shot = moment.shot
        step = self.resolved(shot, look)
        if shot.asks and step.prediction is not None:
            step = replace(waiting(self._lesson, step), caption=printed(step.prediction))
        place = WindowPlace(
            step.scenario, shot.cursor, step.row, step.layout, step.panel,
            step.points if shot.arrived else (), step.choices, self._view(moment),
        )  # fmt: skip
        end = None
        if shot.ended:
            end = replace(end_of(step, Path(self._lesson.source)), film=True)
        step = replace(step, title=self._head + step.title)
        said = CaptionState(step, shot.revealed, end, self._headed)
        moving = None if shot.before is None else Moving(shot.before, self._share(moment))
        self.unseen.show(place, look, said, moving)

    def _share(self, moment: LessonFrame) -> float:
        """Return the share of the motion that is done; a fast rescale shows the press alone."""
        at = moment.shot.cursor
        program = program_of(self._lesson.steps[moment.shot.step].scenario)
        if program.ops(at.visit)[at.op].gesture is Gesture.SHRINK:
            return moved(played(moment.phase, moment.shot.seconds))
        return moved(moment.phase)

    def _view(self, moment: LessonFrame) -> Sight:
        """Return the part of the score matrix in sight, on the way from the part before."""
        steps, number = self._lesson.steps, moment.shot.step
        step, before = steps[number], steps[number - 1] if number else None
        share = 1.0 if moment.shot.ended else min(moment.since / CAMERA_SECONDS, 1.0)
        if moment.shot.asks:
            step = place_of_question(self._lesson, number)
        if before is None or before.scenario != step.scenario or before.layout != step.layout:
            return Sight(step.camera, step.camera, 1.0)
        return Sight(before.camera, step.camera, share)

    def resolved(self, shot: Shot, look: Look) -> ResolvedStep:
        """Return the step of a picture, with its numbers."""
        if self._step is None or self._step.number != shot.step:
            run = self.unseen.run_of
            job = partial(resolve_step, self._lesson, shot.step, FORMATS, run=run)
            self._step = _beside(job, look)
        return self._step


def _beside(job: Callable[[], R], look: Look) -> R:
    """Do some work in another thread, and call `look` in the meantime."""
    errand = Errand("resolve", job)
    errand.start()
    while errand.is_alive():
        look()
        errand.join(_NAP)
    return errand.result()
