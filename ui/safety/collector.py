"""Garbage is collected in the thread of the window: Qt's objects must end where they live.

Python collects wherever its counters run over, and so in the engine's thread as well. A closed
dialog or window that ended there would take its timers apart in the wrong thread: timers of
others then stand still, or the program crashes.
"""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject, QTimer

_EVERY_MS = 200


class Collector(QObject):
    """Collects in the thread that made it, and keeps Python from doing so anywhere else.

    Parameters
    ----------
    parent : QObject
        With which it ends.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.setObjectName("collector")
        gc.disable()
        # Modules and classes live as long as the program: half of what each collection would walk.
        gc.freeze()
        self._timer = QTimer(self, interval=_EVERY_MS)
        self._timer.timeout.connect(self.collect)
        self._timer.start()

    def collect(self) -> None:
        """Collect the oldest generation whose counter has run over, as Python itself would."""
        for generation in (2, 1, 0):
            if gc.get_count()[generation] > gc.get_threshold()[generation]:
                gc.collect(generation)
                return


def collect_here(app: QObject) -> None:
    """Let garbage be collected in this thread alone, once for an application."""
    if app.findChild(QObject, "collector") is None:
        Collector(app)
