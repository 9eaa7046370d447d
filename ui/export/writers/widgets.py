"""Widgets as SVG or PDF.

Neither of Qt's painters keeps a widget inside its place as pixels do: the SVG painter asks the
whole window for the clip, the PDF painter asks for none. So each widget is drawn alone, inside a
clip of ours.
"""

from __future__ import annotations

from collections.abc import Collection

from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QPaintEngine, QPainter, QPicture, QRegion
from PySide6.QtWidgets import QWidget

COVERED = "covered"
"""The property of a widget that lies under another: neither it nor its letters are drawn."""


def paint_widgets(
    painter: QPainter, widget: QWidget, corner: QPoint, without: Collection[QWidget] = ()
) -> None:
    """Draw a widget and all visible widgets in it, except `without`."""
    _paint(painter, widget, corner, QRect(corner, widget.size()), without)


def _paint(
    painter: QPainter, widget: QWidget, corner: QPoint, room: QRect, without: Collection[QWidget]
) -> None:
    """Draw a widget at its corner, as far as its parents do not hide it."""
    seen = room.intersected(QRect(corner, widget.size()))
    if seen.isEmpty():
        return
    painter.save()
    painter.setClipRect(seen)
    if painter.paintEngine().type() is QPaintEngine.Type.SVG:
        picture = QPicture()
        with QPainter(picture) as inner:
            _alone(widget, inner, QPoint())
        painter.drawPicture(corner, picture)
    else:
        _alone(widget, painter, corner)
    painter.restore()
    for child in widget.children():  # the lowest widget first
        if not isinstance(child, QWidget) or child in without or child.property(COVERED):
            continue
        if child.isVisible() and not child.isWindow():
            _paint(painter, child, corner + child.pos(), seen, without)


def _alone(widget: QWidget, painter: QPainter, corner: QPoint) -> None:
    """Draw a widget without its children."""
    # Called on `QWidget`, because a graphics view has another function of this name.
    QWidget.render(widget, painter, corner, QRegion(), QWidget.RenderFlag(0))
