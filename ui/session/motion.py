"""The one clock of a session: the playhead, and the motion between two states."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QTimer, Signal

from simulator.program.playback import (
    Cursor,
    Granularity,
    Playhead,
    advanced,
    first_cursor,
    follows,
    in_two_states,
    played,
    seconds_of,
    seconds_to,
    share,
)
from simulator.program.tile_program import TileProgram
from simulator.run.rescales import rescale_seconds, rescales
from simulator.run.snapshot import Snapshot
from ui.session.view import View

if TYPE_CHECKING:
    from ui.session.playing import Playing

TICK_MS = 16  # about 60 ticks a second, and only while something moves or plays
LONGEST_TICK = 10.0
"""Most seconds that pass between two ticks: a machine that has slept does not play on."""
MADE_UP = 0.25
"""Most seconds of waiting for a search for breakpoints that playing makes up for.

If searching takes longer than playing, each search would otherwise be longer than the last.
"""


class Clock(QObject):
    """Moves a playhead, and says how much of the op that is shown has been done.

    While a run plays, the playhead follows the time that has passed, whether pictures keep up or
    not: only the newest cursor is asked for, and its op is shown as far as the playhead is. When
    the run does not play, a state one op after the state shown before is reached by a motion, which
    begins when the new state is shown.
    """

    moved = Signal(float)
    """The share of the shown op that has been done; told only while something moves."""
    passed = Signal(object, object, object, object)
    """A run has gone on in its own time, not by a jump: program, playhead before and after, and the
    granularity of steps. Emitted only if `motion` is on."""

    def __init__(self, session: Playing, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(session)
        self._session = session
        self.now = now
        self.share = 1.0  # how much of the op that led to the shown state has been done; 1 at rest
        self.speed = 1.0
        self.playing = False
        self._motion = True
        self._program: TileProgram | None = None
        self._head = Playhead(first_cursor(), 0.0)
        self._jumped: Cursor | None = None
        """The cursor of a jump: the numbers that its op has moved are in place at once."""
        self._told = 1.0
        self._waits = False
        """Whether the step to the playhead's cursor begins only when its view is shown."""
        self._pace: float | None = None
        """Seconds that the step takes at any speed; None: the speed decides."""
        self._target: Playhead | None = None
        """Where the playhead will be if the search finds no breakpoint."""
        self._owed = 0.0  # seconds at speed 1 that have passed during a search
        self._last = 0.0
        self._timer = QTimer(self, interval=TICK_MS, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self.tick)

    @property
    def running(self) -> bool:
        """Whether something plays or moves."""
        return self._timer.isActive()

    @property
    def motion(self) -> bool:
        """Whether the motion from one state to the next is shown."""
        return self._motion

    @motion.setter
    def motion(self, on: bool) -> None:
        self._motion = on
        self._tell()

    # --- requests ---------------------------------------------------------------------------

    def follow(self, program: TileProgram, cursor: Cursor, pace: float | None = None) -> None:
        """Note which cursor has been asked for; another cursor ends the motion under way.

        pace: seconds that a motion to the cursor lasts; by default the speed decides.
        """
        if program is self._program and cursor == self._head.cursor:
            return
        goes_on = program is self._program and follows(program, self._head.cursor, cursor)
        self._jumped = None if goes_on else cursor
        self._program, self._head, self._pace = program, Playhead(cursor, 0.0), pace
        self._waits = not self.playing
        self._owed, self._last = 0.0, self.now()

    def finish(self) -> None:
        """End the step under way at once."""
        if self._program is not None and not self._waits:
            self._end_step()
            self._tell()

    # --- views ------------------------------------------------------------------------------

    def shown(self, view: View, before: View | None) -> View:
        """Return a new view with the state from which it moves on, and set the share."""
        start = self._start(view, before)
        if self._waits and self._is_at(view):
            self._waits, self._last = False, self.now()
            if start is None:
                self._end_step()
        view = replace(view, before=start)
        self._told, self.share = self.share, self._share(view)
        if self.share < 1:
            self._run()
        return view

    def tell_shown(self, view: View) -> None:
        """Tell the share of a new view, after the view itself has been told."""
        if view.before is not None or self.share != self._told:
            self.moved.emit(self.share)

    def _start(self, view: View, before: View | None) -> Snapshot | None:
        """Return the state from which a view goes on; None where nothing moves."""
        if before is None or not self._is_at(view):
            return None
        if not self._motion and not rescales(view.snapshot):
            return None
        if _is_next(before.snapshot, view.snapshot):
            by_op = not self.playing or self._session.granularity is Granularity.OP
            return before.snapshot if by_op else None
        same = before.snapshot.cursor == view.snapshot.cursor and self._is_at(before)
        # Another row of the same state has been chosen, for example.
        return before.before if same and not self._waits and self.share < 1 else None

    def _is_at(self, view: View) -> bool:
        """Return whether a view shows the playhead's cursor, not an earlier one."""
        snapshot = view.snapshot
        return snapshot.program is self._program and snapshot.cursor == self._head.cursor

    def _share(self, view: View | None) -> float:
        if view is None or view.before is None:
            return 1.0
        if self._program is None or self._waits or not self._is_at(view):
            return 1.0
        done = share(self._program, self._head, Granularity.OP)
        if rescales(view.snapshot):
            lasts = rescale_seconds(view.snapshot, self.speed) or self._lasts
            seconds = self._pace or lasts / self.speed
            if self._motion or played(0.0, seconds) == 1:
                return played(done, seconds)
            return in_two_states(done)
        return done if self._motion else 1.0

    def _tell(self) -> None:
        now = self._share(self._session.view)
        if now != self.share:
            self.share = now
            self.moved.emit(now)

    # --- time -------------------------------------------------------------------------------

    def play(self, on: bool) -> None:
        """Let time move the playhead from step to step, or only to the end of this step."""
        self.playing, self._owed = on, 0.0
        if on:
            assert self._program is not None
            if not self._waits:
                lasts = seconds_to(self._program, self._head.cursor, self._session.granularity)
                self._head = replace(self._head, done=min(self._head.done, lasts))
            self._waits = False
            self._run()

    def stop(self) -> None:
        """Stop for good."""
        self.playing = False
        self._timer.stop()

    def tick(self) -> None:
        """Move the playhead by the time since the last tick."""
        now = self.now()
        passed, self._last = min(now - self._last, LONGEST_TICK), now
        if self.playing:
            self._play(self._hastened(passed * self.speed))
        elif not self._waits:
            self._move(passed)
        self._tell()
        if not self.playing and (self._waits or self._ended):
            self._timer.stop()

    def _run(self) -> None:
        if not self._timer.isActive():
            self._last = self.now()
            self._timer.start()

    def _move(self, passed: float) -> None:
        """Go on with the op under way, to its end at most."""
        lasts = self._lasts
        speed = lasts / self._pace if self._pace else self.speed * self._haste
        done = min(self._head.done + passed * speed, lasts)
        self._go_on(replace(self._head, done=done), Granularity.OP)

    def _play(self, seconds: float) -> None:
        """Move the playhead by seconds at speed 1; ask for the newest cursor."""
        session, trace = self._session, self._session.trace
        assert trace is not None
        stops = bool(session.runs.breakpoints)
        if stops:
            self._owed = min(self._owed + seconds, max(seconds, MADE_UP * self.speed))
            if session.busy:
                return
            seconds, self._owed = self._owed, 0.0
        by = session.granularity
        head = advanced(trace.program, self._head, seconds, by)
        if head.cursor == self._head.cursor:
            at_end = head == self._head and seconds > 0
            if at_end and not session.sequences.go_on():
                session.play(False)
            self._go_on(head, by)
        elif stops:
            self._go_on(replace(self._head, done=self._lasts), by)
            self._target = head
            here = self._head.cursor
            session.play_on(here, session.runs.step_to(trace, here, head.cursor))
        else:
            self._go_on(head, by)
            session.play_on(head.cursor)

    def _go_on(self, head: Playhead, by: Granularity) -> None:
        """Move the playhead as time does, and tell its places before and after."""
        before, self._head = self._head, head
        if before.cursor == self._jumped:
            before = replace(before, done=math.inf)
        if head.cursor != self._jumped:
            self._jumped = None
        if self._motion:
            self.passed.emit(self._program, before, head, by)

    def found(self, cursor: Cursor) -> None:
        """Go on from the cursor at which a search has ended."""
        target, self._target = self._target, None
        if target is not None and target.cursor == cursor:
            self._go_on(target, self._session.granularity)
        elif cursor != self._head.cursor:  # a breakpoint comes first
            self._head = Playhead(cursor, 0.0)

    def _hastened(self, seconds: float) -> float:
        """Return seconds at speed 1, times the haste of the op under way until that op ends."""
        haste = self._haste
        left = max(self._lasts - self._head.done, 0.0) / haste
        return seconds * haste if seconds <= left else (haste - 1) * left + seconds

    @property
    def _haste(self) -> float:
        """How many times faster this op is than ops of its kind: a rescale may change nothing."""
        view = self._session.view
        if self._program is None or view is None or not self._is_at(view):
            return 1.0
        if self.playing and self._session.granularity is not Granularity.OP:
            return 1.0
        lasts = rescale_seconds(view.snapshot, self.speed)
        return 1.0 if lasts is None else seconds_of(view.snapshot.op) / lasts

    @property
    def _lasts(self) -> float:
        assert self._program is not None
        return seconds_to(self._program, self._head.cursor, Granularity.OP)

    @property
    def _ended(self) -> bool:
        return self._program is None or self._head.done >= self._lasts

    def _end_step(self) -> None:
        self._head = replace(self._head, done=self._lasts)


def _is_next(before: Snapshot, now: Snapshot) -> bool:
    """Return whether a state is exactly one op after another of the same run."""
    same = before.program is now.program
    return same and follows(now.program, before.cursor, now.cursor)
