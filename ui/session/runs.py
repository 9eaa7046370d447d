"""Breakpoints, and runs to the next place that meets a condition."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from simulator.program.playback import Cursor
from simulator.run.trace import Trace
from ui.session.tasks import Cancelled, Report

if TYPE_CHECKING:
    from simulator.run.breakpoints import Condition, Finder, Hit
    from ui.session.session import Session

_KIND = "run until"


@dataclass(frozen=True, slots=True)
class Stop:
    """The end of a step of playing."""

    cursor: Cursor  # the place
    condition: Condition | None = None  # the breakpoint that ends playing there


class RunUntil(QObject):
    """The breakpoints of a session, and its runs to them."""

    changed = Signal()  # the breakpoints have changed
    said = Signal(str)  # in words, why a run did not move; empty when another begins
    stopped = Signal(str)  # in words, the condition at which playing or a run has stopped
    play_ended = Signal(object)  # the `Stop` at which a breakpoint has ended playing

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._session = session
        self.breakpoints: tuple[Condition, ...] = ()
        self._trace: Trace | None = None
        self._halted = threading.Event()
        # Playing and running search in threads of their own.
        self._player: Finder | None = None
        self._runner: Finder | None = None
        session.playing_changed.connect(self._note_playing)
        session.trace_changed.connect(self._drop_finders)

    # --- breakpoints ------------------------------------------------------------------------

    def toggle(self, condition: Condition) -> None:
        """Set a breakpoint, or remove it."""
        if condition in self.breakpoints:
            self.remove(condition)
        else:
            self.breakpoints = (*self.breakpoints, condition)
            self.changed.emit()

    def remove(self, condition: Condition) -> None:
        """Remove a breakpoint."""
        self.breakpoints = tuple(kept for kept in self.breakpoints if kept != condition)
        self.changed.emit()

    def clear(self) -> None:
        """Remove all breakpoints."""
        self.breakpoints = ()
        self.changed.emit()

    # --- runs -------------------------------------------------------------------------------

    def run_to_breakpoint(self, forward: bool = True) -> None:
        """Go to the next or the previous place at which a breakpoint stops."""
        if self.breakpoints:
            self.run_until(self.breakpoints, "a breakpoint", forward)
        else:
            self.said.emit("No breakpoint is set: click beside a line of code to set one.")

    def run_until(
        self, conditions: Sequence[Condition], words: str = "", forward: bool = True
    ) -> None:
        """Go to the nearest place that meets a condition; if there is none, `said` says so."""
        session, trace = self._session, self._session.trace
        if trace is None:
            return
        session.play(False)
        self.said.emit("")
        start, finder = session.cursor, self._finders(trace)[1]
        what = words or conditions[0].words

        def job(report: Report) -> Hit | None:
            return finder.find(start, conditions, report, forward=forward)

        def done(hit: Hit | None) -> None:
            if session.trace is not trace or session.cursor != start:
                return  # the user has gone elsewhere in the meantime
            if hit is None:
                where = "further on" if forward else "before this"
                self.said.emit(f"Nothing {where} to stop at: {what}.")
            else:
                self.stopped.emit(hit.condition.words)
                session.go(hit.cursor)

        session.tasks.start(_KIND, f"running to {what}", job, done, aside=True)

    def say(self, words: str) -> None:
        """Say why a run does not move."""
        self.said.emit(words)

    # --- playing ----------------------------------------------------------------------------

    def step_to(self, trace: Trace, start: Cursor, target: Cursor) -> Callable[[], Stop]:
        """Return a search, for another thread: a breakpoint on the way of a step, or its target."""
        finder, conditions = self._finders(trace)[0], self.breakpoints

        def go_on(share: float) -> None:
            if self._halted.is_set():
                raise Cancelled

        def seek() -> Stop:
            try:
                hit = finder.find(start, conditions, go_on, until=target)
            except Cancelled:
                return Stop(start)
            return Stop(hit.cursor, hit.condition) if hit else Stop(target)

        return seek

    def _note_playing(self, on: bool) -> None:
        if on:
            self._halted.clear()
            self.said.emit("")
        else:
            self._halted.set()

    def _drop_finders(self, trace: Trace) -> None:
        self._trace = self._player = self._runner = None

    def _finders(self, trace: Trace) -> tuple[Finder, Finder]:
        if self._player is None or self._runner is None or self._trace is not trace:
            from simulator.run.breakpoints import Finder

            self._trace, self._player, self._runner = trace, Finder(trace), Finder(trace)
        return self._player, self._runner
