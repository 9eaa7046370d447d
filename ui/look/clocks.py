"""Pairs of numbers as hands of clocks."""

from __future__ import annotations

from PySide6.QtCore import QPointF
from PySide6.QtGui import QColor, QPainter, QPen

from ui.look.theme import Style
from ui.look.units import number_text

_THICKEST = 0.3
"""Largest width of a line, as a share of the radius."""


def paint_clock(
    painter: QPainter,
    middle: QPointF,
    radius: float,
    hand: complex,
    ink: QColor | str,
    style: Style,
    before: complex | None = None,
) -> None:
    """Paint a circle and a hand, which points up at angle 0 and turns clockwise.

    hand: length as a share of the radius, and angle.
    before: the earlier hand, drawn faint.
    """
    theme, px = style.theme, style.px
    thin, thick = (max(min(px(width), _THICKEST * radius), 1.0) for width in (1, 1.6))
    painter.setPen(QPen(QColor(theme.grid), thin))
    painter.setBrush(QColor(theme.empty))
    painter.drawEllipse(middle, radius, radius)
    if before is not None:
        painter.setPen(QPen(QColor(theme.muted), thin))
        painter.drawLine(middle, _end(middle, radius, before))
    painter.setPen(QPen(QColor(ink), thick))
    end = _end(middle, radius, hand)
    painter.drawLine(middle, end)
    painter.setBrush(QColor(ink))
    painter.drawEllipse(end, 0.16 * radius, 0.16 * radius)


def _end(middle: QPointF, radius: float, hand: complex) -> QPointF:
    return QPointF(middle.x() + radius * hand.imag, middle.y() - radius * hand.real)


def turn_text(turn: float) -> str:
    """Return after how many places a pair has turned once, in few letters: 1 300 as 1.3 k."""
    if turn < 100:
        return number_text(turn, 2)
    for size, word in ((1e6, "M"), (1e3, "k")):
        if turn >= size:
            return f"{turn / size:.1f} {word}" if turn < 10 * size else f"{turn / size:.0f} {word}"
    return f"{turn:.0f}"
