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
"""How long tiles move: LOOK allows 400."""


class Panel(QWidget, Generic[Model]):
    """The content of a dock.

    It is generic over its model: what it needs beyond the snapshot, made with the view in the
    engine's thread. The window gives views to a visible panel and calls only the methods of this
    class; a method that only some panels need does nothing in the others.

    Parameters
    ----------
    name : str
        Object name.
    title : str
        For screen readers.
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
        """Show a view; a panel that follows the session by itself needs no view."""

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self.style_now = style
        self.update()

    def set_motion(self, motion: bool) -> None:
        """Animate pictures, or show every state as it is; most panels are never animated."""

    def take_choices(self, choices: ChooseTable) -> None:
        """Show what a lesson has chosen; most panels have nothing to choose."""

    def clear(self, painter: QPainter) -> None:
        """Paint the background of a panel."""
        painter.fillRect(self.rect(), QColor(self.style_now.theme.panel))


class MovingPanel(Panel[Model]):
    """A panel whose picture moves for a moment after one op forwards, if motion is on.

    A new snapshot ends a motion at once: what is shown is always the latest state.
    """

    def __init__(self, name: str, title: str, smallest: QSize) -> None:
        # Painters make their text smaller if there is less space than they want.
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
        """The share of the current op's move that is done, 0 to 1."""
        running = self.animation.state() == QVariantAnimation.State.Running
        return float(self.animation.currentValue()) if running else 1.0

    def set_motion(self, motion: bool) -> None:
        self.motion = motion
        if not motion:
            self.animation.stop()
            self.update()

    def take(self, snapshot: Snapshot, *, moves: bool) -> None:
        """Show a new state; with a motion if it is one op further and `moves` says so."""
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
