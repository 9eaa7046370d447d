"""The clock of a race in the window."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, QTimer, Signal

from simulator.study.race import RUN_SECONDS
from ui.session.motion import LONGEST_TICK, TICK_MS
from ui.session.session import Session


class RaceClock(QObject):
    """Says for how long a race has been watched, in the session's time and at its speed.

    Without motion a race that starts is at its finish at once.

    Parameters
    ----------
    session : Session
        Whose time, speed and motion it follows.
    parent : QObject
        Owner.
    """

    moved = Signal()
    """Time has passed, about 60 times a second, and only while a race runs."""

    def __init__(self, session: Session, parent: QObject) -> None:
        super().__init__(parent)
        self._session = session
        self.watched = 0.0
        """Seconds at speed 1 since the start, `RUN_SECONDS` at most."""
        self._last = 0.0
        self._timer = QTimer(self, interval=TICK_MS, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self.tick)

    @property
    def running(self) -> bool:
        """Whether a race runs."""
        return self._timer.isActive()

    @property
    def started(self) -> bool:
        """Whether there is a race to see, under way or finished."""
        return self.running or self.watched > 0

    def start(self) -> None:
        """Start from the beginning."""
        self.watched, self._last = 0.0, self._session.clock.now()
        self._timer.start()
        if not self._session.motion:
            self.finish()
        self.moved.emit()

    def finish(self) -> None:
        """Go to the finish at once, if a race runs."""
        if self.running:
            self._timer.stop()
            self.watched = RUN_SECONDS
            self.moved.emit()

    def reset(self) -> None:
        """Go back to the start and stay there."""
        self._timer.stop()
        self.watched = 0.0
        self.moved.emit()

    def tick(self) -> None:
        """Let the time pass that has passed."""
        now = self._session.clock.now()
        passed, self._last = min(now - self._last, LONGEST_TICK), now
        self.watched += passed * self._session.speed
        if self.watched >= RUN_SECONDS or not self._session.motion:
            self.finish()
        else:
            self.moved.emit()
