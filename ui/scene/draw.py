"""Small drawing moves that every painter uses."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QFont, QFontMetricsF, QPainter, QPen

LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
CENTRE = Qt.AlignmentFlag.AlignCenter


def text_width(font: QFont, text: str) -> float:
    """Return how wide `text` is in `font`, in pixels."""
    return QFontMetricsF(font).horizontalAdvance(text)


def fitted(font: QFont, text: str, width: float) -> str:
    """Return `text`, its end replaced by an ellipsis where it is wider than `width`."""
    if len(text) * font.pixelSize() <= width:  # no glyph is wider than it is high: it fits
        return text
    return QFontMetricsF(font).elidedText(text, Qt.TextElideMode.ElideRight, width)


def draw_text(
    painter: QPainter,
    rect: QRectF,
    text: str,
    font: QFont,
    colour: QColor | str,
    align: Qt.AlignmentFlag = LEFT,
) -> None:
    """Draw one line inside `rect`, elided rather than cut off or overlapping."""
    painter.setFont(font)
    painter.setPen(QColor(colour))
    painter.drawText(rect, align, fitted(font, text, rect.width()))


def outline(
    painter: QPainter, rect: QRectF, colour: QColor | str, width: float = 1.0, radius: float = 0.0
) -> None:
    """Draw the border of `rect`, inside it."""
    painter.setPen(QPen(QColor(colour), width))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    half = width / 2
    inner = rect.adjusted(half, half, -half, -half)
    if radius:
        painter.drawRoundedRect(inner, radius, radius)
    else:
        painter.drawRect(inner)


def card(
    painter: QPainter,
    rect: QRectF,
    ground: QColor | str,
    border: QColor | str,
    radius: float,
    width: float = 1.0,
) -> None:
    """Fill a rounded box and draw its border."""
    painter.setPen(QPen(QColor(border), width))
    painter.setBrush(QBrush(QColor(ground)))
    half = width / 2
    painter.drawRoundedRect(rect.adjusted(half, half, -half, -half), radius, radius)


def mixed(first: QColor | str, second: QColor | str, share: float) -> QColor:
    """Return `first` with a `share` (0 to 1) of `second` mixed in."""
    a, b = QColor(first), QColor(second)
    parts = [
        round(x + (y - x) * share)
        for x, y in zip(a.getRgb()[:3], b.getRgb()[:3], strict=True)  # type: ignore[index]
    ]
    return QColor(*parts)
