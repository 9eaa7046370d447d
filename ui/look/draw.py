"""Small drawing functions that every painter uses."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cache, lru_cache

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QFontMetricsF,
    QImage,
    QPainter,
    QPen,
    QStaticText,
    QTransform,
)

from ui.look.theme import Style, font_key

LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
CENTRE = Qt.AlignmentFlag.AlignCenter
CAP, CAP_HIGH = 14, 26
"""Size of the letters on the cap of a key, and the height of such a cap."""


@dataclass(frozen=True, slots=True)
class _Text:
    """A text that has been laid out once, because shaping takes most of the time of a frame."""

    laid_out: QStaticText
    advance: float
    height: float


class _Kept(threading.local):
    """Texts of each thread: a picture may be exported while the window is painted.

    Widths are kept apart: setting a text in lines asks for the widths of many words in several
    sizes, draws few of them, and must not drive out drawn texts.
    """

    def __init__(self) -> None:
        self.texts: dict[tuple[str, str], _Text] = {}
        self.older_texts: dict[tuple[str, str], _Text] = {}
        self.widths: dict[tuple[str, str], float] = {}
        self.older_widths: dict[tuple[str, str], float] = {}


_kept = _Kept()
_MOST_TEXTS, _MOST_WIDTHS = 1024, 4096
"""Latest texts and widths kept; as many older ones go unless they are asked for again."""


def _text(font: QFont, text: str) -> _Text:
    key = (font_key(font), text)
    found = _kept.texts.get(key)
    if found is None:
        found = _kept.older_texts.get(key) or _laid_out(font, text)
        if len(_kept.texts) >= _MOST_TEXTS:
            _kept.older_texts, _kept.texts = _kept.texts, {}
        _kept.texts[key] = found
    return found


def _laid_out(font: QFont, text: str) -> _Text:
    advance = text_width(font, text)
    laid_out = QStaticText(text)
    laid_out.setTextFormat(Qt.TextFormat.PlainText)
    laid_out.prepare(QTransform(), font)
    return _Text(laid_out, advance, laid_out.size().height())


def text_width(font: QFont, text: str) -> float:
    """Return how wide `text` is in `font`, in pixels."""
    key = (font_key(font), text)
    found = _kept.widths.get(key)
    if found is None:
        found = _kept.older_widths.get(key)
        if found is None:
            found = QFontMetricsF(font).horizontalAdvance(text)
        if len(_kept.widths) >= _MOST_WIDTHS:
            _kept.older_widths, _kept.widths = _kept.widths, {}
        _kept.widths[key] = found
    return found


def fitted(font: QFont, text: str, width: float) -> str:
    """Return `text`, with its end replaced by an ellipsis if it is wider than `width`."""
    if text_width(font, text) <= width:
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
    """Draw one line inside `rect`; a line that is too long is elided."""
    shown = _text(font, text)
    if shown.advance > rect.width():
        shown = _text(font, fitted(font, text, rect.width()))
    across, down = _shares(align)
    x = rect.x() + across * (rect.width() - shown.advance)
    y = rect.y() + down * (rect.height() - shown.height)
    painter.setFont(font)
    painter.setPen(QColor(colour))
    painter.drawStaticText(QPointF(x, y), shown.laid_out)


def draw_upright(
    painter: QPainter,
    rect: QRectF,
    text: str,
    font: QFont,
    colour: QColor | str,
    align: Qt.AlignmentFlag = LEFT,
) -> None:
    """Draw one line inside `rect` from its lower end upwards; `RIGHT` is its upper end."""
    painter.save()
    painter.translate(rect.center().x(), rect.bottom())
    painter.rotate(-90)
    line = QRectF(0, -rect.width() / 2, rect.height(), rect.width())
    draw_text(painter, line, text, font, colour, align)
    painter.restore()


@cache
def _shares(align: Qt.AlignmentFlag) -> tuple[float, float]:
    """Return which share of the free space is left of a text and above it."""
    across = 1.0 if align & Qt.AlignmentFlag.AlignRight else 0.0
    across = 0.5 if align & Qt.AlignmentFlag.AlignHCenter else across
    down = 1.0 if align & Qt.AlignmentFlag.AlignBottom else 0.5
    return across, 0.0 if align & Qt.AlignmentFlag.AlignTop else down


@lru_cache(maxsize=64)
def squares(count: int, width: float, height: float) -> tuple[int, float]:
    """Return the number of columns in which `count` squares fill a place best, and their side."""

    def side(columns: int) -> float:
        return min(width / columns, height / -(-count // columns))

    best = max(range(1, count + 1), key=side)
    return best, side(best)


def hairline(style: Style) -> int:
    """Return the width of the thinnest lines, in whole pixels: 2 on a picture twice as large."""
    return max(int(style.px(1)), 1)


def patterned(colour: QColor | str, pattern: Qt.BrushStyle, style: Style) -> QBrush:
    """Return a brush whose pattern is as coarse as the thinnest lines are wide."""
    return _patterned(QColor(colour).rgba(), pattern, hairline(style))


_PATTERN = 8
"""Pixels after which Qt's patterns repeat, however large the picture."""


@lru_cache(maxsize=64)
def _patterned(colour: int, pattern: Qt.BrushStyle, times: int) -> QBrush:
    brush = QBrush(QColor.fromRgba(colour), pattern)
    if times == 1:
        return brush
    # Of three by three tiles the middle one is taken: neighbours smooth its edges.
    image = QImage(3 * _PATTERN, 3 * _PATTERN, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    with QPainter(image) as painter:
        painter.fillRect(image.rect(), brush)
    side = times * _PATTERN
    large = image.scaled(3 * side, 3 * side, mode=Qt.TransformationMode.SmoothTransformation)
    return QBrush(large.copy(side, side, side, side))


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
    half = width / 2
    painter.setPen(QPen(QColor(border), width))
    if min(rect.width(), rect.height()) < _LARGE:
        inner = rect.adjusted(half, half, -half, -half)
        painter.setBrush(QBrush(QColor(ground)))
        painter.drawRoundedRect(inner, radius, radius)
    else:
        # At whole pixels, straight lines, which are not smoothed, meet the round corners.
        whole = QRectF(rect.toRect()).adjusted(half, half, -half, -half)
        _large_card(painter, whole, QColor(ground), radius)


_LARGE = 120
"""Shorter side from which a card's straight parts are drawn without smoothing: it is faster."""


def draw_cap(painter: QPainter, box: QRectF, key: str, style: Style) -> None:
    """Draw the cap of a key."""
    theme = style.theme
    card(painter, box, theme.field, mixed(theme.panel, theme.muted, 0.5), style.px(5))
    size = CAP * box.height() / style.px(CAP_HIGH)
    draw_text(painter, box, key, style.text_font(size, bold=True), theme.text, CENTRE)


def draw_lens(painter: QPainter, at: QPointF, radius: float, colour: QColor | str) -> None:
    """Draw the sign of a search: a lens around a point, and its handle."""
    painter.setPen(QPen(QColor(colour), 0.28 * radius))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawEllipse(at, radius, radius)
    start, end = 0.72 * radius, 1.58 * radius
    painter.drawLine(at + QPointF(start, start), at + QPointF(end, end))


def _large_card(painter: QPainter, box: QRectF, ground: QColor, radius: float) -> None:
    smooth = painter.testRenderHint(QPainter.RenderHint.Antialiasing)
    left, top, right, bottom = box.left(), box.top(), box.right(), box.bottom()
    corners = (
        (right - 2 * radius, top, 0),
        (left, top, 90),
        (left, bottom - 2 * radius, 180),
        (right - 2 * radius, bottom - 2 * radius, 270),
    )
    pen = painter.pen()
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(ground)
    for x, y, angle in corners:
        painter.drawPie(QRectF(x, y, 2 * radius, 2 * radius), 16 * angle, 16 * 90)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    painter.fillRect(box.adjusted(radius, 0, -radius, 0), ground)
    painter.fillRect(QRectF(left, top + radius, radius, box.height() - 2 * radius), ground)
    painter.fillRect(
        QRectF(right - radius, top + radius, radius, box.height() - 2 * radius), ground
    )
    painter.setPen(pen)
    painter.drawLines(
        [
            QLineF(left + radius, top, right - radius, top),
            QLineF(left + radius, bottom, right - radius, bottom),
            QLineF(left, top + radius, left, bottom - radius),
            QLineF(right, top + radius, right, bottom - radius),
        ]
    )
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    for x, y, angle in corners:
        painter.drawArc(QRectF(x, y, 2 * radius, 2 * radius), 16 * angle, 16 * 90)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, smooth)


def mixed(first: QColor | str, second: QColor | str, share: float) -> QColor:
    """Return `first` with a `share` (0 to 1) of `second` mixed in."""
    return QColor(_mixed_rgb(QColor(first).rgb(), QColor(second).rgb(), share))


@lru_cache(maxsize=1024)
def _mixed_rgb(first: int, second: int, share: float) -> int:
    parts = 0xFF
    for shift in (16, 8, 0):
        a, b = (first >> shift) & 0xFF, (second >> shift) & 0xFF
        parts = parts << 8 | round(a + (b - a) * share)
    return parts


def wrapped(text: str, font: QFont, width: float) -> list[str]:
    """Return a text as lines of at most `width` pixels, broken between words."""
    if text_width(font, text) <= width:
        return [text]
    lines: list[str] = []
    for word in text.split(" "):  # not at the thin spaces of a number
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(font, longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
