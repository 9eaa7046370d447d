"""Shows steps of a lesson in a session: computed beside the window, and undone at the end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from simulator.base.assets import LESSONS
from simulator.base.errors import InputError, refuse
from simulator.lesson.course import lesson_after, lesson_before
from simulator.lesson.predict import GuessOutcome, outcome
from simulator.lesson.steps import Lesson, LessonTitle, ResolvedStep, waiting
from simulator.problem.scenario import Scenario
from simulator.program.playback import SECONDS_PER_OP, Cursor, path_between, seconds_along
from simulator.run.rescales import rescale_seconds_at
from simulator.run.trace import Trace
from ui.look.layouts import LAYOUT_PANELS
from ui.session.calm import Calm
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

    Raises InputError: the file cannot be read.
    """
    from simulator.lesson.reader import load_lesson

    return load_lesson(path, LAYOUT_PANELS)


def end_of(step: ResolvedStep, path: Path) -> LessonEnd:
    """Return the end of the lesson in a file, after its last step."""
    following = lesson_after(path)
    last = following is None and path.parent == LESSONS
    return LessonEnd(step.lesson, following.title if following else "", last)


class LessonPlayer(QObject):
    """Takes a session through the steps of a lesson.

    The next step, with its run, is computed before it is needed. When the lesson is left, the
    session shows again what it showed before.
    """

    asked = Signal()
    """Another step is wanted; `whole` says when it is shown."""
    step_changed = Signal(object)
    """The `ResolvedStep` that will be shown next; None when the lesson has been left."""
    whole_changed = Signal(bool)
    """Whether the wanted step is shown whole, with the results of all panels."""
    away_changed = Signal(bool)
    """Whether the run has left the place of the step."""
    revealed_changed = Signal(bool)
    """Whether the answer to the step's question is shown."""
    ended_changed = Signal(bool)
    """Whether the end of the lesson is shown instead of its last step's caption."""
    arrived = Signal()
    """The place of a step is shown, after the way there has been played."""
    prepared = Signal(object)
    """A `ResolvedStep` that has been computed, the current one or the next."""
    told = Signal(str)
    """One line about a mistake in the lesson."""

    asks = True
    """Whether questions before steps wait for an answer."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.session = session
        self.path: Path | None = None
        self.lesson: Lesson | None = None
        self.step: ResolvedStep | None = None
        self.revealed = False
        self.ended = False
        self.whole = True
        """Whether the wanted step is shown whole."""
        self.away = False
        """Whether the user has left the place of the step."""
        self._kept: Aside | None = None
        self._wanted = 0
        self._pending = False
        """Whether the wanted step is still to be computed."""
        self._came = -1
        """Number of the step from which the lesson was entered: -1 from before its first."""
        self._good: ResolvedStep | None = None
        """The step that was last shown whole."""
        self._refused = False
        """Whether the run of the wanted step cannot be built."""
        self._known: dict[int, ResolvedStep] = {}
        self._guesses: dict[int, float | None] = {}
        """Guesses by number of the step, for questions that were answered; None: skipped."""
        self._coming: int | None = None
        """The step that is being computed ahead."""
        self._next_run: Trace | None = None
        """The run of the next step, built ahead."""
        self._path: list[tuple[Cursor, float]] = []
        """The places still to be shown, each with its seconds at speed 1."""
        self._at = Cursor(0, 0)
        self._worker, self._ahead = Worker(self), Worker(self)
        for worker in (self._worker, self._ahead):
            worker.finished.connect(self._finished)
            worker.failed.connect(self._failed)
        session.attend(self)
        session.refused.connect(self._note_refused)
        session.view_changed.connect(self._note_place)
        self._calm = Calm(session)
        self._waiting = QTimer(self, interval=0)
        self._waiting.timeout.connect(self._look)
        self._clock = QTimer(self)
        self._clock.timeout.connect(self._walk)

    # --- which step -----------------------------------------------------------------------

    def open(self, path: Path, number: int = 0) -> None:
        """Read a lesson and show it from one of its steps on.

        Raises InputError: the file cannot be read, or nothing in it can be shown.
        """
        self.begin(path, load(path), number)

    def begin(self, path: Path, lesson: Lesson, number: int = 0) -> None:
        """Show a lesson that has been read; its broken steps are reported and left out.

        A negative number counts from the end; that step is entered from after the last step.

        Raises InputError: nothing in it can be shown.
        """
        if not lesson.steps:
            found = lesson.mistakes
            raise (
                InputError(str(path), [found[0].mistake])
                if found
                else refuse(str(path), "", "", 'a step, which begins with "## " and its title')
            )
        self._await()
        if self.lesson is None:
            self._kept = self.session.set_aside()
        self._stop()
        self.path, self.lesson, self.step, self.ended = path, lesson, None, False
        self._good, self._coming, self._next_run = None, None, None
        self._known.clear()
        self._guesses.clear()
        count = len(lesson.steps)
        self._came = count if number < 0 else -1
        if lesson.mistakes:
            more = len(lesson.mistakes) - 1
            self.told.emit(f"{lesson.mistakes[0]}" + (f" (and {more} more)" if more else ""))
        self.go(number + count if number < 0 else number)

    def go(self, number: int) -> None:
        """Show a step, or the nearest that exists."""
        if self.lesson is None:
            return
        self.ended = False
        self._wanted, self._pending = min(max(number, 0), len(self.lesson.steps) - 1), True
        self._await()
        if self._wanted == self._coming:
            return  # the step is shown as soon as it is computed
        if self._wanted in self._known:
            self._show(self._known[self._wanted])
        else:
            self._resolve(self._wanted, self._worker)

    def next(self) -> None:
        """Show the next step, or first the answer if a question waits for it.

        A question that waits for a guess is skipped.

        After the last step the end of the lesson is shown, and only then does the next lesson open,
        so that one press too many does no harm.
        """
        if self.waits:
            self.guess(None)
        elif self.step is not None and self.step.answer and not self.revealed:
            self.reveal()
        elif self.end is None or self._wanted != self.step_number:
            self.go(self._wanted + 1)
        elif not self.ended:
            self.ended = True
            if self.whole:  # otherwise the end is told when the last step is shown
                self.ended_changed.emit(True)
        else:
            self._open_beside(lesson_after, 0)

    @property
    def waits(self) -> bool:
        """Whether the step's question waits for a guess."""
        return self.step is not None and self.step.waits

    @property
    def outcome(self) -> GuessOutcome | None:
        """How the guess of the current step's question compares with its answer."""
        asked = self.step.prediction if self.step is not None else None
        guess = self._guesses.get(self.step_number)
        return outcome(asked, guess) if asked is not None and guess is not None else None

    def guess(self, guess: float | None) -> None:
        """Take a guess, None to skip the question, and let the step begin."""
        step = self.step
        if step is not None and step.waits and not self._pending:
            self._guesses[step.number] = guess
            self._await()
            self._show(self._known[step.number])

    def ask_again(self) -> None:
        """Ask the question of the current step once more."""
        step = self.step
        if step is not None and step.prediction is not None and self._guesses:
            self._guesses.pop(step.number, None)
            self._await()
            self._show(self._known[step.number])

    def back(self) -> None:
        """Show the previous step; from the end of the lesson, the last step.

        Before the first step comes the last step of the lesson before.
        """
        if self.ended:
            self.ended = False
            self.ended_changed.emit(False)
        elif self._wanted > 0:
            self.go(self._wanted - 1)
        else:
            self._open_beside(lesson_before, -1)

    def return_to_step(self) -> None:
        """Show the place of the step again, from wherever the user has gone."""
        step = self.step
        if step is not None and self.whole:
            self.ended = False
            self._await()
            self._stop()
            self.step_changed.emit(step)
            self._arrive()

    def _open_beside(self, which: Callable[[Path], LessonTitle | None], number: int) -> None:
        """Open the lesson after this one, or the lesson before."""
        beside = which(self.path) if self.path is not None else None
        if beside is not None:
            try:
                self.open(beside.path, number)
            except InputError as error:
                self.told.emit(str(error))

    @property
    def step_number(self) -> int:
        """Number of the current step, from 0; -1 if there is none."""
        return self.step.number if self.step is not None else -1

    @property
    def end(self) -> LessonEnd | None:
        """The end of the lesson if the current step is the last one, else None."""
        step = self.step
        if step is None or self.path is None or step.number + 1 < step.count:
            return None
        return end_of(step, self.path)

    def reveal(self, on: bool = True) -> None:
        """Show the answer of the step's question, or hide it; a question that waits is skipped."""
        if self.waits:
            self.guess(None)
        elif self.step is not None and self.step.answer and on != self.revealed and not self.ended:
            self.revealed = on
            self.revealed_changed.emit(on)

    def leave(self) -> None:
        """Show the state from before the lesson again."""
        if self.lesson is None:
            return
        self._stop()
        self._await()
        self.path = self.lesson = self.step = self._good = self._next_run = None
        self.ended = self._pending = False
        self._set_away(False)
        kept, self._kept = self._kept, None
        self.step_changed.emit(None)
        if kept is not None:
            self.session.put_back(kept)
        else:  # the lesson was the first thing shown: its scenario stays
            self.session.point_at_nothing()

    # --- working it out -------------------------------------------------------------------

    def _resolve(self, number: int, worker: Worker) -> None:
        """Compute a step beside the window; ahead of time also its run, if that is another run."""
        lesson, session = self.lesson, self.session
        assert lesson is not None
        known, shown, ahead = self._known.get(number), session.scenario, worker is self._ahead
        runs: list[Trace] = []

        def run_of(scenario: Scenario) -> Trace:
            if not runs:
                runs.append(session.run_of(scenario))
            return runs[0]

        def job() -> tuple[Lesson, int, ResolvedStep | str, Trace | None]:
            try:
                step = known or _resolved(lesson, number, run_of, session.engines.name)
            except InputError as error:
                return lesson, number, str(error), None
            except MemoryError:
                wanted = f"step {number + 1}: expected one that fits in memory"
                return lesson, number, wanted, None
            if ahead and step.scenario != shown:
                at = step.start or step.cursor
                with suppress(InputError, MemoryError):  # the error is shown with the step
                    run_of(step.scenario).snapshot(at.visit, at.op)
            return lesson, number, step, runs[0] if runs and step.scenario != shown else None

        worker.submit("step", job)

    def _finished(
        self, kind: str, result: tuple[Lesson, int, ResolvedStep | str, Trace | None]
    ) -> None:
        lesson, number, step, run = result
        if lesson is not self.lesson:
            return
        if isinstance(step, ResolvedStep) and number not in self._known:
            self._known[number] = step
            self.prepared.emit(step)
        ahead = number == self._coming
        if ahead:
            self._coming = None
        if self._pending and number == self._wanted:
            if isinstance(step, ResolvedStep):
                self._next_run = run
                self._show(step)
            else:
                self._wanted, self._pending = max(self.step_number, 0), False
                self.told.emit(step)
        elif ahead and number == self.step_number + 1:
            self._next_run = run
        elif ahead and self.whole:
            self._prepare()

    def _prepare(self) -> None:
        """Compute the next step, and its run, so that they are ready when they are asked for."""
        step = self.step
        if step is None or step.number + 1 >= step.count or self._coming is not None or self.waits:
            return
        known = self._known.get(step.number + 1)
        ready = known is not None and known.scenario == self.session.scenario
        if not ready and self._next_run is None:
            self._coming = step.number + 1
            self._resolve(self._coming, self._ahead)

    def _failed(self, kind: str, error: Exception) -> None:
        raise error

    # --- showing --------------------------------------------------------------------------

    def _show(self, step: ResolvedStep) -> None:
        before, session = self.step, self.session
        forward = step.number >= (self._came if before is None else before.number)
        self._stop()
        trace, self._next_run = self._next_run, None
        asks = self.asks and step.prediction is not None and not step.waits and forward
        if asks and step.number not in self._guesses:
            self._next_run = trace  # the run of this step, which is shown later
            assert self.lesson is not None
            step = waiting(self.lesson, step)
        self.step, self._pending = step, False
        run = trace if trace and trace.workload.scenario == step.scenario else None
        self._set_away(False)
        if before is None or before.number != step.number:
            self.revealed = bool(step.answer) and not forward
        self.step_changed.emit(step)
        here = session.cursor if session.trace and session.scenario == step.scenario else None
        if not session.motion:
            self._arrive(run)
        elif step.start is not None and forward:
            self._walk_from(step.start, PLAY_STEPS, None, run)
        elif before is not None and here is not None and here != step.cursor:
            self._walk_from(here, WALK_STEPS, WALK_SECONDS)
        else:
            self._arrive(run)

    def _arrive(self, run: Trace | None = None) -> None:
        """Show the place of the step; the run may have been built ahead."""
        step = self.step
        assert step is not None
        self.session.show_place(
            step.scenario, step.cursor, step.row, step.points, camera=step.camera, trace=run
        )
        self.arrived.emit()

    def _walk_from(
        self, start: Cursor, most: int, longest: float | None, run: Trace | None = None
    ) -> None:
        """Show `start`, and move on from there to the place of the step.

        longest: most seconds of all pictures; None: each is shown as long as in playing.
        run: the run, if it has been built ahead.
        """
        step = self.step
        assert step is not None

        def begin(trace: Trace) -> None:
            if self.step is step:
                path = path_between(trace.program, start, step.cursor, most)
                speed = self.session.speed
                opening, *lasts = seconds_along(
                    trace.program, start, path, step.pace,
                    partial(rescale_seconds_at, trace, speed=step.pace * speed),
                )  # fmt: skip
                if longest is not None:
                    most_each = min(SECONDS_PER_OP / 2, SECONDS_PER_OP / speed)
                    opening = min(longest / max(len(path), 1), most_each) * speed
                    lasts = [opening] * len(path)
                self._path, self._at = list(zip(path, lasts, strict=True)), start
                self._clock.start(round(1000 * opening / speed))

        self.session.show_place(
            step.scenario, start, step.row, then=begin, camera=step.camera, trace=run
        )

    def _walk(self) -> None:
        """Show one more picture, unless the last one is still to come or the user has left."""
        step, session = self.step, self.session
        if session.busy or session.share < 1 or not self.whole:
            self._clock.start(TICK_MS)
            return
        elsewhere = session.cursor != self._at or session.playing
        if step is None or elsewhere or session.scenario != step.scenario:
            self._stop()
            self._note_place()
            return
        self._at, seconds = self._path.pop(0) if self._path else (step.cursor, 0.0)
        if self._at == step.cursor:
            self._stop()
            self._arrive()
        else:
            seconds /= session.speed
            self._clock.start(round(1000 * seconds))
            session.go(self._at, seconds)

    def _stop(self) -> None:
        self._clock.stop()
        self._path.clear()

    # --- whether the step is shown --------------------------------------------------------

    def _await(self) -> None:
        """Note that another step is wanted than the one that is shown."""
        self._refused = False
        self.asked.emit()
        if self.whole:
            self.whole = False
            self.whole_changed.emit(False)
        self._calm = Calm(self.session)
        self._waiting.start(0)

    def _look(self) -> None:
        """Say that the wanted step is shown, as soon as it is shown whole."""
        calm, step, session = self._calm.turn(), self.step, self.session
        goes_on = session.playing and step is not None and session.scenario == step.scenario
        at_work = self._pending or not (session.shown or goes_on)
        self._waiting.setInterval(TICK_MS if at_work else 0)
        if at_work or not (calm or goes_on):
            return
        self._waiting.stop()
        if step is not None and self._refused and session.scenario != step.scenario:
            self._step_back()
            return
        self._good, self.whole = step, True
        if self.ended:
            self.ended_changed.emit(True)
        self.whole_changed.emit(True)
        self._note_place()
        self._prepare()

    def _step_back(self) -> None:
        """Show the last good step again, because the run of the wanted one was refused."""
        if self._good is None:
            self.leave()
        else:
            self._wanted = self._good.number
            self._await()
            self._show(self._good)

    def _note_refused(self) -> None:
        self._refused = True

    def _note_place(self) -> None:
        """Note whether the user has left the place of the step."""
        step, session = self.step, self.session
        if step is not None and self.whole and not self.walking and not step.waits:
            here = session.scenario, session.cursor, session.row
            self._set_away(here != (step.scenario, step.cursor, step.row))

    def _set_away(self, away: bool) -> None:
        if away != self.away:
            self.away = away
            self.away_changed.emit(away)

    @property
    def settled(self) -> bool:
        """Whether the wanted step is shown, and nothing is computed ahead."""
        return self.whole and self._worker.settled and self._ahead.settled

    def stop(self) -> None:
        """End all work for good."""
        self._stop()
        self._waiting.stop()
        for worker in (self._worker, self._ahead):
            worker.stop()

    @property
    def aside(self) -> Aside | None:
        """The state from before the lesson, which is shown again when the lesson is left."""
        return self._kept

    @property
    def following(self) -> ResolvedStep | None:
        """The next step, when it has been computed; None after the last step.

        While a question waits, its own step comes next. If the next step asks, its question does.
        """
        if self.step is None or self.lesson is None:
            return None
        if self.step.waits:
            return self._known.get(self.step.number)
        step = self._known.get(self.step.number + 1)
        if step is None or step.prediction is None or not self.asks:
            return step
        return step if step.number in self._guesses else waiting(self.lesson, step)

    @property
    def walking(self) -> bool:
        """Whether the run is still moving to the place of the step."""
        return self._clock.isActive()


def _resolved(
    lesson: Lesson, number: int, run_of: Callable[[Scenario], Trace], engine: str
) -> ResolvedStep:
    """Return a step with its numbers and formulas, from NumPy's run where a device has failed."""
    from kernels.devices.barriers import race_without
    from simulator.lesson.reader import resolve_step
    from ui.look.lesson_text import FORMATS

    try:
        step = resolve_step(lesson, number, FORMATS, race_without, run_of)
    except InputError:
        if engine == "numpy":
            raise
        step = resolve_step(lesson, number, FORMATS, race_without)
    typeset_text(step.title, step.caption, step.question, step.answer)
    if step.prediction is not None:
        typeset_text(step.prediction.ask, step.prediction.hint, *step.prediction.choices)
    return step
