"""Tiles in flight over the window: from the board into the memory panel and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QPaintEvent, QRegion
from PySide6.QtWidgets import QWidget

from simulator.program.playback import moved
from simulator.run.motion import Motion
from ui.board.flights import Berths, in_flight, paint_flights
from ui.board.panel import BoardPanel
from ui.safety.overrides import guarded
from ui.safety.painting import painting

if TYPE_CHECKING:
    from ui.panels.memory.panel import MemoryPanel

_AROUND = 12
"""Pixels around a tile in flight that are painted again: its shadow and its outline."""


@guarded
class FlightOverlay(QWidget):
    """Lies over a window, takes no mouse, and is there only while tiles fly."""

    def __init__(self, window: QWidget, board: BoardPanel) -> None:
        super().__init__(window)
        self._window = window
        self.setObjectName("flights")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAttribute(Qt.WidgetAttribute.WA_NoSystemBackground)
        self._board = board
        self._memory: MemoryPanel | None = None
        self._motion: Motion | None = None
        self._share = 0.0
        self._painted = QRegion()
        self.hide()

    def show_motion(self, memory: MemoryPanel | None) -> None:
        """Take the op that the board is about to show, and the memory panel if that is in sight."""
        motion, board = self._board.motion, self._board
        over = memory is not None and memory.window() is self.window() is board.window()
        both = over and board.isVisible() and memory is not None and memory.isVisible()
        flies = both and motion is not None and bool(motion.flights)
        board.shares_flights = flies
        self._motion, self._memory = (motion, memory) if flies else (None, None)
        self._share = 0.0
        self.setVisible(flies)
        if flies:
            self.setGeometry(self._window.rect())
            self.raise_()

    def show_share(self, share: float) -> None:
        """Show how much of the op has been done, 0 to 1."""
        if self._motion is None:
            return
        self._share = share = moved(share)
        if share >= 1:
            self._motion = None
            self.hide()
            return
        now = QRegion()
        origin, lay = self._origin(), self._board.board_layout()
        for tile in in_flight(self._motion, share, lay, self._berths()):
            whole = tile.path.boundingRect().united(tile.box).united(tile.home)
            around = whole.translated(origin).toAlignedRect()
            now += around.adjusted(-_AROUND, -_AROUND, _AROUND, _AROUND)
        self.update(now + self._painted)
        self._painted = now

    def _origin(self) -> QPointF:
        return QPointF(self._board.mapTo(self._window, QPoint(0, 0)))

    def _berths(self) -> Berths | None:
        """Return the places between which tiles fly, in the board's coordinates."""
        memory, motion = self._memory, self._motion
        if memory is None or motion is None:
            return None
        by = QPointF(memory.mapTo(self._window, QPoint(0, 0))) - self._origin()
        places = memory.berths(motion)
        return {name: (a.translated(by), b.translated(by)) for name, (a, b) in places.items()}

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the tiles that fly."""
        with painting(self) as painter:
            if self._motion is not None:
                painter.translate(self._origin())
                lay = self._board.board_layout()
                paint_flights(painter, self._motion, self._share, lay, self._berths())
