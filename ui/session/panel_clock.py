"""The clock of an animation of a panel, beside the run: a race, a step."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, QTimer, Signal

from ui.session.motion import LONGEST_TICK, TICK_MS
from ui.session.session import Session


class PanelClock(QObject):
    """Says for how long an animation has been watched, in the session's time and at its speed.

    Without motion an animation that starts is at its finish at once.

    seconds: length of the animation at speed 1.
    """

    moved = Signal()  # time has passed, about 60 times a second, and only while the clock runs

    def __init__(self, session: Session, parent: QObject, seconds: float) -> None:
        super().__init__(parent)
        self._session, self.seconds = session, seconds
        self.watched = 0.0  # seconds at speed 1 since the start, `seconds` at most
        self._last = 0.0
        self._timer = QTimer(self, interval=TICK_MS, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self.tick)

    @property
    def running(self) -> bool:
        """Whether the clock runs."""
        return self._timer.isActive()

    @property
    def share(self) -> float:
        """Share of the animation that has been watched, 0 to 1; 1 at rest."""
        return self.watched / self.seconds if self.running else 1.0

    def start(self) -> None:
        """Start from the beginning."""
        self.watched, self._last = 0.0, self._session.clock.now()
        self._timer.start()
        if not self._session.motion:
            self.finish()
        self.moved.emit()

    @property
    def paused(self) -> bool:
        """Whether the clock stands still between start and finish."""
        return not self.running and 0 < self.watched < self.seconds

    def pause(self, on: bool) -> None:
        """Stop the clock where it is, or let it go on from there."""
        self._last = self._session.clock.now()
        (self._timer.stop if on else self._timer.start)()

    def finish(self) -> None:
        """Go to the finish at once, if the clock runs or is paused."""
        if self.running or self.paused:
            self._timer.stop()
            self.watched = self.seconds
            self.moved.emit()

    def tick(self) -> None:
        """Add the time since the last tick."""
        now = self._session.clock.now()
        passed, self._last = min(now - self._last, LONGEST_TICK), now
        self.watched += passed * self._session.speed
        if self.watched >= self.seconds or not self._session.motion:
            self.finish()
        else:
            self.moved.emit()
