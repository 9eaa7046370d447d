"""A window as SVG.

Qt's SVG painter asks the wrong painter where a widget's clip lies, that of the whole window. So
each widget is recorded by itself, and played back where it stands.
"""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QPainter, QPicture, QRegion
from PySide6.QtWidgets import QWidget


def paint_widgets(painter: QPainter, widget: QWidget) -> None:
    """Draw a widget and all that is seen in it, from the painter's corner.

    Parameters
    ----------
    painter : QPainter
        Where to.
    widget : QWidget
        On show.
    """
    _paint(painter, widget, QPoint(), widget.rect())


def _paint(painter: QPainter, widget: QWidget, corner: QPoint, room: QRect) -> None:
    """Draw a widget whose corner is there, as far as it is in the room of its parents."""
    seen = room.intersected(QRect(corner, widget.size()))
    if seen.isEmpty():
        return
    picture = QPicture()
    inner = QPainter(picture)
    try:
        # By its class: a graphics view calls something else so.
        QWidget.render(widget, inner, QPoint(), QRegion(), QWidget.RenderFlag(0))
    finally:
        inner.end()
    painter.save()
    painter.setClipRect(seen)
    painter.drawPicture(corner, picture)
    painter.restore()
    for child in widget.children():  # the lowest first
        if isinstance(child, QWidget) and child.isVisible() and not child.isWindow():
            _paint(painter, child, corner + child.pos(), seen)
