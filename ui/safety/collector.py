"""Garbage is collected only in the window's thread, because Qt's objects must be deleted there.

Python collects garbage in any thread whose allocation makes a counter overflow, so also in the
engine's thread. If a closed dialog or window were deleted there, its timers would end in the wrong
thread: then timers of other objects stop, or the program crashes.
"""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject, QTimer

_EVERY_MS = 200


class Collector(QObject):
    """Collects in the thread that made it, and keeps Python from collecting anywhere else."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.setObjectName("collector")
        gc.disable()
        # Modules and classes live as long as the program: they are half of the objects that each
        # collection would visit.
        gc.freeze()
        self._timer = QTimer(self, interval=_EVERY_MS)
        self._timer.timeout.connect(self.collect)
        self._timer.start()

    def collect(self) -> None:
        """Collect the oldest generation whose counter has overflowed, as Python itself would."""
        for generation in (2, 1, 0):
            if gc.get_count()[generation] > gc.get_threshold()[generation]:
                gc.collect(generation)
                return


def collect_here(app: QObject) -> None:
    """Let garbage be collected only in this thread, once for an application."""
    if app.findChild(QObject, "collector") is None:
        Collector(app)
