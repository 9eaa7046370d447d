"""A window as SVG.

Qt's SVG painter asks the wrong painter, that of the whole window, for the place of a widget's clip.
So each widget is recorded alone, and drawn again at its place.
"""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QPainter, QPicture, QRegion
from PySide6.QtWidgets import QWidget


def paint_widgets(painter: QPainter, widget: QWidget) -> None:
    """Draw a widget and everything visible in it, from the painter's corner.

    Parameters
    ----------
    painter : QPainter
        Where to.
    widget : QWidget
        On show.
    """
    _paint(painter, widget, QPoint(), widget.rect())


def _paint(painter: QPainter, widget: QWidget, corner: QPoint, room: QRect) -> None:
    """Draw a widget at its corner, as far as its parents do not hide it."""
    seen = room.intersected(QRect(corner, widget.size()))
    if seen.isEmpty():
        return
    picture = QPicture()
    inner = QPainter(picture)
    try:
        # Called on its class, because a graphics view has another function of this name.
        QWidget.render(widget, inner, QPoint(), QRegion(), QWidget.RenderFlag(0))
    finally:
        inner.end()
    painter.save()
    painter.setClipRect(seen)
    painter.drawPicture(corner, picture)
    painter.restore()
    for child in widget.children():  # the lowest widget first
        if isinstance(child, QWidget) and child.isVisible() and not child.isWindow():
            _paint(painter, child, corner + child.pos(), seen)
