"""A widget that paints itself: the frame around a painter, with tips, pointer, keys and focus."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QToolTip, QWidget

from ui.look.draw import outline
from ui.look.theme import DARK, Style
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.widgets.focus import has_ring


@guarded
class Painted(QWidget):
    """A widget whose subclasses paint the picture, and handle the pointer and keys."""

    ground = True  # whether the colour of panels is below the picture
    ringed = True  # whether a ring shows that the widget has the focus

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.style_now = Style(DARK)

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self.style_now = style
        self.arrange()
        self.update()

    def arrange(self) -> None:
        """Find the places of everything, for another style or size."""

    def paint(self, painter: QPainter) -> None:
        """Paint the picture."""

    def tip(self, at: QPointF) -> str | None:
        """Return the tooltip at a point; None: the widget has no tips of its own."""
        return None

    def point(self, at: QPointF | None) -> None:
        """Take where the pointer is; None: it has left."""

    def press(self, at: QPointF) -> bool:
        """Take a press of the left button; return whether it means anything here."""
        return False

    def drag(self, at: QPointF) -> None:
        """Take where the pointer is while the left button is held."""

    def key(self, event: QKeyEvent) -> bool:
        """Take a key; return whether it means anything here."""
        return False

    def keeps(self, event: QKeyEvent) -> bool:
        """Return whether a key is kept from shortcuts of the window."""
        return False

    # --- events ---------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            if self.ground:
                painter.fillRect(self.rect(), QColor(self.style_now.theme.panel))
            self.paint(painter)
            if self.ringed and has_ring(self):
                outline(painter, QRectF(self.rect()), self.style_now.theme.text)

    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            words = self.tip(QPointF(event.pos()))
            if words is not None:
                QToolTip.showText(event.globalPos(), words, self)
                return True
        asks = event.type() is QEvent.Type.ShortcutOverride
        if asks and isinstance(event, QKeyEvent) and self.keeps(event):
            event.accept()
            return True
        return super().event(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.arrange()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        left = event.button() is Qt.MouseButton.LeftButton
        if not (left and self.press(event.position())):
            super().mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.drag(event.position())
        self.point(event.position())

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.point(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not self.key(event):
            super().keyPressEvent(event)
