"""The effect of the last changes of a run on its figures, and the way back before them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from simulator.lesson.places import Framing, Pointer
from simulator.problem.scenario import Scenario
from simulator.problem.workload import Workload
from simulator.program.playback import Cursor
from simulator.program.tile_program import TileProgram
from simulator.run.snapshot import Cell
from simulator.run.trace import Trace
from simulator.study.what_if import RunFigures, WhatIf, figures_of, plain
from ui.session.history import File, Steps
from ui.session.view import View
from ui.session.worker import Worker

if TYPE_CHECKING:
    from ui.session.session import Session

SHOWN_SECONDS, FADE_SECONDS = 3.0, 0.2
"""How long a run is compared with the run before, and how long the comparison then fades."""
_TICK_MS = 33


@dataclass(frozen=True, slots=True)
class Before:
    """The state before a change: a scenario, its file and the place in its run."""

    scenario: Scenario
    file: File
    cursor: Cursor
    row: int
    cell: Cell | None
    points: tuple[Pointer, ...]  # a lesson's pointers, and its camera
    camera: Framing | None
    workload: Workload
    program: TileProgram
    steps: Steps
    index: int  # of the undo stack


class WhatIfs(QObject):
    """Compares a run that somebody has changed with the run before, for three seconds.

    Changes that follow each other within that time are compared with the run before the first.

    wanted: the scenario that has been asked for here and is awaited.
    figures: the figures of the run on show; None until they are known.
    before: the state to which `restore` goes back.
    compared: the question and its answer, while both are shown.
    """

    changed = Signal()  # any of these attributes has changed
    moved = Signal()  # the comparison's time has gone on: `left` or `faded`

    def __init__(self, session: Session, now: Callable[[], float]) -> None:
        super().__init__(session)
        self._session, self._now = session, now
        self.wanted: Scenario | None = None
        self.figures: RunFigures | None = None
        self.before: Before | None = None
        self.compared: WhatIf | None = None
        self._noted = self._awaited = self._sought = False
        self._since = 0.0
        self._worker = Worker(self)
        self._worker.finished.connect(self._found)
        self._worker.failed.connect(self._failed)
        session.attend(self)
        session.trace_changed.connect(self._take)
        session.view_changed.connect(self._seek)
        session.refused.connect(self._refused)
        self._clock = QTimer(self, interval=_TICK_MS)
        self._clock.timeout.connect(self._tick)

    # --- changes ----------------------------------------------------------------------------

    @property
    def scenario(self) -> Scenario | None:
        """The scenario that the next change begins with: the awaited one, else the one on show."""
        return self.wanted or self._session.scenario

    def ask(self, scenario: Scenario, what: str) -> None:
        """Show another scenario, as a what-if where it disagrees with its file."""
        shown = self._session.scenario
        if shown is None or (self.wanted is None and scenario == plain(shown)):
            return
        self.wanted = scenario
        self._session.propose(scenario, what, what_if=True)
        self.changed.emit()

    def restore(self) -> bool:
        """Go back before the last changes, or call off an awaited one; return whether it can."""
        before, waits = self.before, self.wanted is not None
        self.wanted = None
        if before is not None and before.steps is not self._session.undo_stack:
            before = None
        if before is not None or waits:
            self._session.return_to(before)
            self.changed.emit()
        return before is not None or waits

    def note(self, before: Before) -> None:
        """Keep the state on show: a change of the scenario follows."""
        if self.before is None or (self.compared is None and not self._awaited):
            self.before = before
        self._noted = True

    def _take(self, trace: Trace) -> None:
        """Forget the comparison; and the way back if the run was not changed here."""
        self._awaited, self._noted = self._noted, False
        self.wanted = self.compared = self.figures = None
        self._clock.stop()
        if not self._awaited:
            self.before = None
        self._sought = False
        self.changed.emit()

    def _seek(self, view: View) -> None:
        """Find the figures of a run once it is shown: by then its time is known."""
        program = view.snapshot.program
        if self._sought:
            return
        self._sought = True
        was = None if self.before is None else self.before.program

        def job() -> tuple[TileProgram, RunFigures | None, RunFigures]:
            return program, None if was is None else figures_of(was), figures_of(program)

        self._worker.submit("figures", job)

    def _refused(self) -> None:
        if self.wanted is not None:
            self.wanted = None
            self.changed.emit()

    def _failed(self, kind: str, error: Exception) -> None:
        raise error

    def _found(self, kind: str, result: tuple[TileProgram, RunFigures | None, RunFigures]) -> None:
        program, was, now = result
        trace, before = self._session.trace, self.before
        if trace is None or trace.program is not program:
            return
        self.figures = now
        if self._awaited and before is not None and was is not None:
            scenario = trace.workload.scenario
            if scenario.model_copy(update={"title": before.scenario.title}) != before.scenario:
                self.compared = WhatIf(before.scenario, scenario, was, now)
                self._since = self._now()
                if self._session.motion:
                    self._clock.start()
        self._awaited = False
        self.changed.emit()

    # --- time -------------------------------------------------------------------------------

    @property
    def left(self) -> float:
        """Share of the comparison's time that is left, 1 to 0."""
        if not self._clock.isActive():
            return 1.0
        return max(0.0, 1.0 - (self._now() - self._since) / SHOWN_SECONDS)

    @property
    def faded(self) -> float:
        """How far the figures from before have faded, 0 to 1."""
        if not self._clock.isActive():
            return 0.0
        late = self._now() - self._since - SHOWN_SECONDS
        return min(max(late / FADE_SECONDS, 0.0), 1.0)

    def _tick(self) -> None:
        if self.faded >= 1.0:
            self.end()
        else:
            self.moved.emit()

    def end(self) -> None:
        """End the comparison; the way back stays."""
        self._clock.stop()
        if self.compared is not None:
            self.compared = None
            self.changed.emit()

    # --- beside the session -----------------------------------------------------------------

    @property
    def settled(self) -> bool:
        """Whether nothing runs or waits."""
        return self._worker.settled

    def stop(self) -> None:
        """End all work for good."""
        self._clock.stop()
        self._worker.stop()
