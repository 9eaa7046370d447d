"""The frames of a lesson: the real window with the caption, step after step."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import TypeVar

from simulator.lesson.reader import Lesson, ResolvedStep, resolve_step
from ui.export.storyboard import Storyboard
from ui.export.unseen_window import Look, Place, Said, UnseenWindow, WindowFactory, WindowFrames
from ui.look.lesson_text import FORMATS
from ui.safety.faults import Errand

R = TypeVar("R")

_NAP = 0.01


class LessonFrames(WindowFrames):
    """A lesson as frames; each of its steps is computed when its first frame is needed.

    Parameters
    ----------
    lesson : Lesson
        The lesson.
    board : Storyboard
        What the frames show.
    theme : str
        Name of the theme.
    size : tuple of int
        Width and height in pixels.
    new_window : callable
        Makes the window of a session.
    engine : str
        What computes.
    headed : bool
        Whether the lesson's title is before that of each step, for pages that are used alone.
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
        self._step: ResolvedStep | None = None

    def __len__(self) -> int:
        return self._board.frames

    def key(self, k: int) -> Hashable:
        """Return the step, the state and whether the answer is shown."""
        shot = self._board.shot(k)
        return shot.step, shot.cursor, shot.arrived, shot.revealed

    def make_ready(self, k: int, look: Look) -> None:
        """Bring the window to the state of frame `k`."""
        shot = self._board.shot(k)
        if self._step is None or self._step.number != shot.step:
            self._step = _beside(lambda: resolve_step(self._lesson, shot.step, FORMATS), look)
        step = self._step
        points = step.points if shot.arrived else ()
        place = Place(
            step.scenario, shot.cursor, step.row, step.layout, step.panel, points, step.choices
        )
        said = Said(replace(step, title=self._head + step.title), shot.revealed)
        self.unseen.show(place, look, said)


def _beside(job: Callable[[], R], look: Look) -> R:
    """Do some work in another thread, and call `look` in the meantime."""
    errand = Errand("resolve", job)
    errand.start()
    while errand.is_alive():
        look()
        errand.join(_NAP)
    return errand.result()
