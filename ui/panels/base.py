"""What panels have in common, and what the window may ask of any of them."""

from __future__ import annotations

from typing import Generic

from PySide6.QtCore import QEasingCurve, QRectF, QSize, QVariantAnimation
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QWidget

from simulator.lesson.tables import ChooseTable
from simulator.program.playback import Granularity, step
from simulator.run.snapshot import Snapshot
from ui.look.theme import DARK, Style
from ui.session.view import Model, View

SMALLEST = QSize(320, 150)
"""Smallest size of most panels."""
MOTION_MS = 300
"""How long tiles travel: LOOK allows 400."""


class Panel(QWidget, Generic[Model]):
    """What stands in a dock.

    It is generic over its model: what it needs beyond the snapshot, made with the view in the
    engine's thread. The window feeds a panel that is seen and asks nothing but what stands here;
    what only some panels can do, the others do not mind being told.

    Parameters
    ----------
    name : str
        Object name.
    title : str
        For those who do not see it.
    smallest : QSize
        No dock makes it smaller.
    """

    def __init__(self, name: str, title: str, smallest: QSize = SMALLEST) -> None:
        super().__init__()
        self.setObjectName(name)
        self.setAccessibleName(title)
        self.setMinimumSize(smallest)
        self.style_now = Style(DARK)

    def show_view(self, view: View, model: Model) -> None:
        """Show a view; one that follows the session by itself need not be told."""

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self.style_now = style
        self.update()

    def set_motion(self, motion: bool) -> None:
        """Let pictures move, or show every state at rest; most never move."""

    def take_choices(self, choices: ChooseTable) -> None:
        """Take what a lesson has chosen; most have nothing to choose."""

    def clear(self, painter: QPainter) -> None:
        """Paint the ground of a panel."""
        painter.fillRect(self.rect(), QColor(self.style_now.theme.panel))


class MovingPanel(Panel[Model]):
    """A panel whose picture moves for a moment after one op forward, if motion is on.

    A new snapshot ends a motion at once: what is shown is always the latest state.
    """

    def __init__(self, name: str, title: str, smallest: QSize) -> None:
        # Painters shrink their text where there is less room than they like.
        super().__init__(name, title, QSize(smallest.width(), round(0.78 * smallest.height())))
        self.snapshot: Snapshot | None = None
        self.motion = True
        self.animation = QVariantAnimation(self)
        self.animation.setDuration(MOTION_MS)
        self.animation.setStartValue(0.0)
        self.animation.setEndValue(1.0)
        self.animation.setEasingCurve(QEasingCurve.Type.InOutCubic)
        self.animation.valueChanged.connect(lambda _: self.update())

    @property
    def phase(self) -> float:
        """How far the current op has come, 0 to 1."""
        running = self.animation.state() == QVariantAnimation.State.Running
        return float(self.animation.currentValue()) if running else 1.0

    def set_motion(self, motion: bool) -> None:
        self.motion = motion
        if not motion:
            self.animation.stop()
            self.update()

    def take(self, snapshot: Snapshot, *, moves: bool) -> None:
        """Take a new state; move to it if it is one op on and `moves` says that it shows."""
        before, self.snapshot = self.snapshot, snapshot
        self.animation.stop()
        if self.motion and moves and self.isVisible() and _is_next(before, snapshot):
            self.animation.start()
        self.update()

    def cleared(self, painter: QPainter) -> QRectF:
        """Clear the panel; return the place inside its margins."""
        self.clear(painter)
        return QRectF(self.rect()).adjusted(8, 6, -8, -6)


def _is_next(before: Snapshot | None, now: Snapshot) -> bool:
    if before is None or before.program is not now.program:
        return False
    return step(now.program, before.cursor, Granularity.OP) == now.cursor != before.cursor
