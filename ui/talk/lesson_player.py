"""Steps of a lesson shown in a session: computed beside the window, and left without a trace."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from simulator.base.assets import LESSONS
from simulator.base.errors import InputError, refuse
from simulator.lesson.reader import lesson_after, load_lesson, resolve_step
from simulator.lesson.steps import Lesson, ResolvedStep
from simulator.program.playback import SECONDS_PER_OP, Cursor, path_between, seconds_between
from simulator.run.trace import Trace
from ui.look.layouts import LAYOUT_PANELS
from ui.look.lesson_text import FORMATS
from ui.session.history import Aside
from ui.session.motion import TICK_MS
from ui.session.session import Session
from ui.session.worker import Worker
from ui.talk.caption import LessonEnd
from ui.talk.caption_text import typeset_text

WALK_STEPS, WALK_SECONDS = 24, 0.9
"""Most pictures and seconds of the way from one step to the next."""
PLAY_STEPS = 96
"""Most pictures of a step that plays; a longer range is played tile by tile."""


def load(path: Path) -> Lesson:
    """Read a lesson for the player.

    Raises
    ------
    InputError
        The file cannot be read.
    """
    return load_lesson(path, LAYOUT_PANELS)


def end_of(step: ResolvedStep, path: Path) -> LessonEnd:
    """Return what comes after the last step of the lesson in a file."""
    following = lesson_after(path)
    last = following is None and path.parent == LESSONS
    return LessonEnd(step.lesson, following.title if following else "", last)


class LessonPlayer(QObject):
    """Takes a session through the steps of a lesson.

    When the lesson is left, the session shows again what it showed before.

    Parameters
    ----------
    session : Session
        The session that shows the steps.
    """

    step_changed = Signal(object)
    """The `ResolvedStep` that will be shown next; None when the lesson has been left."""
    revealed_changed = Signal(bool)
    """Whether the answer to the step's question is shown."""
    ended_changed = Signal(bool)
    """Whether the end of the lesson is shown instead of its last step's caption."""
    prepared = Signal(object)
    """A `ResolvedStep` that has been computed, the current one or the next."""
    told = Signal(str)
    """One line about what is wrong with the lesson."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.session = session
        self.path: Path | None = None
        self.lesson: Lesson | None = None
        self.step: ResolvedStep | None = None
        self.revealed = False
        self.ended = False
        self._kept: Aside | None = None
        self._wanted = 0
        self._known: dict[int, ResolvedStep] = {}
        self._path: list[Cursor] = []
        self._at = Cursor(0, 0)
        self._pace: float | None = None
        """Seconds for each picture of a walk; None while a step plays, at the session's speed."""
        self._worker = Worker(self)
        self._worker.finished.connect(self._resolved)
        self._worker.failed.connect(self._failed)
        session.attend(self._worker)
        self._clock = QTimer(self)
        self._clock.timeout.connect(self._walk)

    # --- which step -----------------------------------------------------------------------

    def open(self, path: Path, number: int = 0) -> None:
        """Read a lesson and show it from one of its steps on.

        Raises
        ------
        InputError
            The file cannot be read, or nothing in it can be shown.
        """
        self.begin(path, load(path), number)

    def begin(self, path: Path, lesson: Lesson, number: int = 0) -> None:
        """Show a lesson that has been read; its broken steps are reported and left out.

        Raises
        ------
        InputError
            Nothing in it can be shown.
        """
        if not lesson.steps:
            found = lesson.mistakes
            raise (
                InputError(str(path), [found[0].mistake])
                if found
                else refuse(str(path), "", "", 'a step, which begins with "## " and its title')
            )
        if self.lesson is None:
            self._kept = self.session.set_aside()
        self._stop()
        self.path, self.lesson, self.step, self.ended = path, lesson, None, False
        self._known.clear()
        if lesson.mistakes:
            more = len(lesson.mistakes) - 1
            self.told.emit(f"{lesson.mistakes[0]}" + (f" (and {more} more)" if more else ""))
        self.go(number)

    def go(self, number: int) -> None:
        """Show a step, or the nearest that exists."""
        if self.lesson is None:
            return
        self.ended = False
        self._wanted = min(max(number, 0), len(self.lesson.steps) - 1)
        if self._wanted in self._known:
            self._show(self._known[self._wanted])
        else:
            self._resolve(self._wanted)

    def next(self) -> None:
        """Show the next step, or first the answer if a question waits for it.

        After the last step the end of the lesson is shown, and only then does the next lesson open,
        so that one press too many does no harm.
        """
        if self.step is not None and self.step.answer and not self.revealed:
            self.reveal()
        elif self.end is None or self._wanted != self.step_number:
            self.go(self._wanted + 1)
        elif not self.ended:
            self.ended = True
            self.ended_changed.emit(True)
        else:
            self._open_following()

    def back(self) -> None:
        """Show the previous step; from the end of the lesson, its last step."""
        if self.ended:
            self.ended = False
            self.ended_changed.emit(False)
        else:
            self.go(self._wanted - 1)

    def _open_following(self) -> None:
        following = lesson_after(self.path) if self.path is not None else None
        if following is not None:
            try:
                self.open(following.path)
            except InputError as error:
                self.told.emit(str(error))

    @property
    def step_number(self) -> int:
        """Number of the current step, from 0; -1 if there is none."""
        return self.step.number if self.step is not None else -1

    @property
    def end(self) -> LessonEnd | None:
        """What comes after the current step if it is the last one."""
        step = self.step
        if step is None or self.path is None or step.number + 1 < step.count:
            return None
        return end_of(step, self.path)

    def reveal(self, on: bool = True) -> None:
        """Show the answer of the step's question, or hide it."""
        if self.step is not None and self.step.answer and on != self.revealed and not self.ended:
            self.revealed = on
            self.revealed_changed.emit(on)

    def leave(self) -> None:
        """Show again what was shown before the lesson."""
        if self.lesson is None:
            return
        self._stop()
        self.path = self.lesson = self.step = None
        self.ended = False
        kept, self._kept = self._kept, None
        self.step_changed.emit(None)
        if kept is not None:
            self.session.put_back(kept)
        else:  # the lesson was the first thing shown: its scenario stays
            self.session.point_at_nothing()

    # --- working it out -------------------------------------------------------------------

    def _resolve(self, number: int) -> None:
        lesson = self.lesson
        assert lesson is not None

        def job() -> tuple[Lesson, int, ResolvedStep | str]:
            try:
                step = resolve_step(lesson, number, FORMATS)
            except InputError as error:
                return lesson, number, str(error)
            except MemoryError:
                return lesson, number, f"step {number + 1}: expected one that fits in memory"
            typeset_text(step.title, step.caption, step.question, step.answer)
            return lesson, number, step

        self._worker.submit("step", job)

    def _resolved(self, kind: str, result: tuple[Lesson, int, ResolvedStep | str]) -> None:
        lesson, number, step = result
        if lesson is not self.lesson:
            return
        wanted = number == self._wanted != self.step_number
        if isinstance(step, ResolvedStep):
            self._known[number] = step
            self.prepared.emit(step)
            if wanted:
                self._show(step)
        elif wanted:
            self._wanted = self.step.number if self.step is not None else 0
            self.told.emit(step)

    def _failed(self, kind: str, error: Exception) -> None:
        raise error

    # --- showing --------------------------------------------------------------------------

    def _show(self, step: ResolvedStep) -> None:
        before, session = self.step, self.session
        forward = before is None or step.number >= before.number
        self._stop()
        self.step = step
        if before is None or before.number != step.number:
            self.revealed = bool(step.answer) and not forward
        self.step_changed.emit(step)
        here = session.cursor if session.trace and session.scenario == step.scenario else None
        if not session.motion:
            self._arrive()
        elif step.start is not None and forward:
            self._walk_from(step.start, PLAY_STEPS, None)
        elif before is not None and here is not None and here != step.cursor:
            self._walk_from(here, WALK_STEPS, WALK_SECONDS)
        else:
            self._arrive()
        after = step.number + 1
        if self.lesson is not None and after < step.count and after not in self._known:
            self._resolve(after)  # so that it is ready when it is asked for

    def _arrive(self) -> None:
        """Show the place of the step."""
        step = self.step
        assert step is not None
        self.session.show_place(
            step.scenario, step.cursor, step.row, step.points, camera=step.camera
        )

    def _walk_from(self, start: Cursor, most: int, longest: float | None) -> None:
        """Show `start`, and move on from there to the place of the step.

        Parameters
        ----------
        start : Cursor
            Where the way starts.
        most : int
            Most pictures.
        longest : float or None
            Most seconds that they all take; None: each takes as long as it takes to play it.
        """
        step = self.step
        assert step is not None

        def begin(trace: Trace) -> None:
            if self.step is step:
                path = path_between(trace.program, start, step.cursor, most)
                self._path, self._at = list(path), start
                usual = SECONDS_PER_OP / self.session.speed
                self._pace = longest and min(longest / max(len(path), 1), SECONDS_PER_OP / 2, usual)
                self._clock.start(round(1000 * (self._pace or usual)))

        self.session.show_place(step.scenario, start, step.row, then=begin, camera=step.camera)

    def _walk(self) -> None:
        """Show one more picture, unless the last one is still to come or the user has left."""
        step, session = self.step, self.session
        if session.busy or session.share < 1:
            self._clock.start(TICK_MS)
            return
        elsewhere = session.cursor != self._at or session.playing
        if step is None or elsewhere or session.scenario != step.scenario:
            self._stop()
            return
        before, self._at = self._at, self._path.pop(0) if self._path else step.cursor
        if self._at == step.cursor:
            self._stop()
            self._arrive()
        else:
            seconds = self._pace or self._seconds(before)
            self._clock.start(round(1000 * seconds))
            session.go(self._at, seconds)

    def _seconds(self, before: Cursor) -> float:
        """Return how long it takes to play the way from a cursor to the current one."""
        trace = self.session.trace
        assert trace is not None
        pace = self.step.pace if self.step is not None else 1.0
        lasts = seconds_between(trace.program, before, self._at)
        return lasts / (self.session.speed * pace)

    def _stop(self) -> None:
        self._clock.stop()
        self._path.clear()

    @property
    def aside(self) -> Aside | None:
        """What was shown before the lesson and is shown again when it is left."""
        return self._kept

    @property
    def following(self) -> ResolvedStep | None:
        """The next step, when it has been computed; None after the last."""
        return self._known.get(self.step.number + 1) if self.step is not None else None

    @property
    def walking(self) -> bool:
        """Whether it is still moving to the place of the step."""
        return self._clock.isActive()
