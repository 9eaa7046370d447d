"""Pen and spotlight above the whole window, with which a lecturer points."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QLineF, QObject, QPoint, QPointF, QRect, QRectF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QCursor,
    QImage,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QRadialGradient,
    QRegion,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QWidget

from ui.look.theme import DARK, Style
from ui.safety.overrides import guarded
from ui.safety.painting import painting

PEN, CASING = 4, 8
"""Widths at scale 1 of a stroke and of its rim, which makes it visible on any background."""
RADII = (60, 85, 120, 170, 240, 340, 480)
"""Sizes of the spotlight at scale 1, in pixels."""
SOFT = 0.8
"""Share of the spotlight's radius that is fully lit."""
DIM = 185
"""How dark the window around the spotlight is, from 0 to 255."""


class Stroke:
    """One line of the pen, smooth through the places where the pointer was."""

    def __init__(self, start: QPointF) -> None:
        self._last = start
        self.path = QPainterPath(start)
        self.path.lineTo(start + QPointF(0.01, 0))  # a click makes a dot
        self.tail = QPainterPath(start)

    def add(self, place: QPointF) -> QRectF:
        """Extend the line to a place; return the changed area, without the width of the pen."""
        middle = QLineF(self._last, place).center()
        before = self.path.currentPosition()
        self.path.quadTo(self._last, middle)
        # The curve ends halfway; a straight line goes on to the tip until the next place is known.
        old, self.tail = self.tail, QPainterPath(middle)
        self.tail.lineTo(place)
        corners = (before, self._last, middle)
        left, right = min(p.x() for p in corners), max(p.x() for p in corners)
        top, bottom = min(p.y() for p in corners), max(p.y() for p in corners)
        self._last = place
        changed = QRectF(QPointF(left, top), QPointF(right, bottom))
        for tail in (old, self.tail):
            changed = changed.united(tail.boundingRect())
        return changed

    @property
    def extent(self) -> QRectF:
        """The area that the line covers, without the width of the pen."""
        return self.path.boundingRect().united(self.tail.boundingRect())


@guarded
class PenOverlay(QWidget):
    """Lies above its parent and shows strokes and the spotlight.

    While neither is on, the widgets below get the mouse; strokes stay until `clear`.
    """

    changed = Signal()
    """Pen or spotlight have been switched on or off."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("pen_overlay")
        self.setAccessibleName("Pen and spotlight")
        self.setAttribute(Qt.WidgetAttribute.WA_NoSystemBackground)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        parent.installEventFilter(self)
        self._style = Style(DARK)
        self.strokes: list[Stroke] = []
        self._ink: QImage | None = None
        self._drawing = False
        self.pen = False
        self.spotlight = False
        self._shade: QImage | None = None
        self._size = 3
        self._at = QPoint()
        self.hide()

    # --- switches -------------------------------------------------------------------------

    def set_pen(self, on: bool) -> None:
        """Draw with the pointer or not; the spotlight is switched off."""
        self._switch(on, False if on else self.spotlight)

    def set_spotlight(self, on: bool) -> None:
        """Dim everything but a circle around the pointer, or not; the pen is switched off."""
        self._switch(False if on else self.pen, on)

    def _switch(self, pen: bool, spotlight: bool) -> None:
        if (pen, spotlight) == (self.pen, self.spotlight):
            return
        self.pen, self.spotlight, self._drawing = pen, spotlight, False
        self._shade = None  # some 15 MB at its largest
        on = pen or spotlight
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents, not on)
        self.setMouseTracking(on)
        if on:
            self.setCursor(Qt.CursorShape.CrossCursor)
            self._at = self.mapFromGlobal(QCursor.pos())
        else:
            self.unsetCursor()
        self._show()
        self.changed.emit()

    def _show(self) -> None:
        """Be visible only if there is something to show: a widget on top slows every repaint."""
        wanted = self.pen or self.spotlight or bool(self.strokes)
        if wanted and self.isHidden():
            self._cover()
            self.raise_()
        self.setVisible(wanted)
        self.update()

    def _cover(self) -> None:
        parent = self.parentWidget()
        assert parent is not None
        self.setGeometry(parent.rect())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Stay as large as the parent."""
        if event.type() is QEvent.Type.Resize and not self.isHidden():
            self._cover()
        return False

    # --- strokes --------------------------------------------------------------------------

    def undo(self) -> None:
        """Take the last stroke back."""
        if self.strokes:
            self._drawing, self._ink = False, None
            self.strokes.pop()
            self._show()

    def clear(self) -> None:
        """Take all strokes back."""
        if self.strokes:
            self._drawing, self._ink = False, None
            self.strokes.clear()
            self._show()

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self._style, self._ink = style, None
        self.update()

    # --- pointer --------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self.pen and event.button() is Qt.MouseButton.LeftButton:
            self._drawing = True
            self.strokes.append(Stroke(event.position()))
            self._update(self.strokes[-1].extent)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._drawing:
            self._update(self.strokes[-1].add(event.position()))
        elif self.spotlight:
            self._move_light(event.position().toPoint(), self._size)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton and self._drawing:
            self._drawing = False
            if self._ink is not None:
                self._draw_in_ink(self._ink, self.strokes[-1:])

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Make the spotlight larger or smaller."""
        if self.spotlight and event.angleDelta().y():
            size = self._size + (1 if event.angleDelta().y() > 0 else -1)
            self._move_light(self._at, min(max(size, 0), len(RADII) - 1))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Forget the strokes, because the things that they mark have moved."""
        super().resizeEvent(event)
        self.clear()

    @property
    def radius(self) -> int:
        """Radius of the spotlight in pixels."""
        return round(self._style.px(RADII[self._size]))

    def _move_light(self, place: QPoint, size: int) -> None:
        # Only the area of the two circles has changed; the rest is as dark as before.
        old = self._light()
        self._at, self._size = place, size
        self.update(QRegion(old).united(self._light()))

    def _light(self) -> QRect:
        radius = self.radius
        return QRect(self._at.x() - radius, self._at.y() - radius, 2 * radius, 2 * radius)

    def _update(self, changed: QRectF) -> None:
        edge = self._edge
        self.update(changed.adjusted(-edge, -edge, edge, edge).toAlignedRect())

    @property
    def _edge(self) -> float:
        return self._style.px(CASING) / 2 + 2

    # --- painting -------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self, covers=False) as painter:
            painter.setClipRegion(event.region())
            if self.spotlight:
                self._paint_light(painter, event.region())
            self._paint_strokes(painter, QRectF(event.rect()))

    def _paint_light(self, painter: QPainter, region: QRegion) -> None:
        light = self._light()
        painter.setClipRegion(region.subtracted(QRegion(light)))
        painter.fillRect(region.boundingRect(), QColor(0, 0, 0, DIM))
        painter.setClipRegion(region)
        if self._shade is None or self._shade.width() != light.width():
            self._shade = shade(self.radius)
        painter.drawImage(light.topLeft(), self._shade)

    def _paint_strokes(self, painter: QPainter, rect: QRectF) -> None:
        """Paint the strokes, finished ones from a picture, because stroking wide lines is slow."""
        done = self.strokes[:-1] if self._drawing else self.strokes
        if done and self._ink is None:
            ratio = self.devicePixelRatioF()
            self._ink = QImage(self.size() * ratio, QImage.Format.Format_ARGB32_Premultiplied)
            self._ink.setDevicePixelRatio(ratio)
            self._ink.fill(0)
            self._draw_in_ink(self._ink, done)
        if done and self._ink is not None:
            ratio = self._ink.devicePixelRatioF()
            part = QRectF(rect.topLeft() * ratio, rect.size() * ratio)
            painter.drawImage(rect, self._ink, part)
        if self._drawing:
            self._draw(painter, self.strokes[-1])

    def _draw_in_ink(self, ink: QImage, strokes: list[Stroke]) -> None:
        with QPainter(ink) as painter:
            for stroke in strokes:
                self._draw(painter, stroke)

    def _draw(self, painter: QPainter, stroke: Stroke) -> None:
        theme = self._style.theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for colour, width in ((theme.window, CASING), (theme.current, PEN)):
            pen = QPen(QColor(colour), self._style.px(width))
            pen.setCapStyle(Qt.PenCapStyle.RoundCap)
            pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
            painter.setPen(pen)
            painter.drawPath(stroke.path)
            painter.drawPath(stroke.tail)


def shade(radius: int) -> QImage:
    """Return the dark square around the light: clear in the circle, dim in the corners."""
    image = QImage(2 * radius, 2 * radius, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(0)
    gradient = QRadialGradient(QPointF(radius, radius), radius)
    gradient.setColorAt(0, QColor(0, 0, 0, 0))
    gradient.setColorAt(SOFT, QColor(0, 0, 0, 0))
    gradient.setColorAt(1, QColor(0, 0, 0, DIM))
    with QPainter(image) as painter:
        painter.fillRect(image.rect(), gradient)
    return image
