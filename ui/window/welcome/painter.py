"""The picture of the first page: a function of where everything is and what is chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen, QPixmap

from ui.look.draw import CENTRE, LEFT, RIGHT, card, draw_cap, draw_text, mixed, outline, text_width
from ui.look.theme import Style, Theme
from ui.window.welcome.entries import LEVELS, PageEntry, WelcomePlaces

NAME, TAGLINE = "Tilescope", "attention, computed in front of you, tile by tile"
PRESS = "press"
BACK = "Help, Welcome brings this page back"
_DOT, _DOTS_APART = 3.8, 11.0
_RADIUS = 14


@dataclass(frozen=True, slots=True)
class PageLook:
    """What is seen of the page."""

    places: WelcomePlaces
    pictures: tuple[QPixmap | None, ...]  # of the cards; None: still to come
    focused: int  # number of the entry that a key opens
    hovered: int | None = None  # that under the pointer
    pressed: int | None = None

    def ground(self, number: int, rest: str) -> QColor:
        """Return the ground of an entry: a step to the accent under the pointer."""
        theme = self.places.style.theme
        if number == self.pressed:
            return QColor(theme.accent)
        return mixed(rest, theme.accent, 0.5 if number == self.hovered else 0.0)


def paint_page(painter: QPainter, look: PageLook, rect: QRectF, scrolled: float = 0.0) -> None:
    """Paint the page.

    scrolled: how far its lessons are scrolled.
    """
    style, theme = look.places.style, look.places.style.theme
    painter.fillRect(rect, QColor(theme.window))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
    _paint_title(painter, look)
    for number in range(3):
        _paint_card(painter, look, number)
    _paint_press(painter, style, look.places.press)
    _paint_way(painter, look)
    _paint_lessons(painter, look, scrolled)
    _paint_foot(painter, style, look.places.foot)


def _paint_title(painter: QPainter, look: PageLook) -> None:
    places, style, theme, px = look.places, *_tools(look)
    name, tag = style.text_font(34, bold=True), style.text_font(22)
    draw_text(painter, places.title, NAME, name, theme.text)
    beside = places.title.adjusted(text_width(name, NAME) + px(22), px(4), 0, 0)
    if text_width(tag, TAGLINE) <= beside.width():
        draw_text(painter, beside, TAGLINE, tag, theme.muted)
    number = len(places.hits) - 1
    entry, box = places.hits[number]
    card(painter, box, look.ground(number, theme.field), theme.border, px(9), max(px(1.2), 1))
    if number == look.focused:
        _paint_ring(painter, style, box, px(9))
    lens = QPointF(box.left() + px(24), box.center().y() - px(1))
    painter.setPen(QPen(QColor(theme.muted), px(2)))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawEllipse(lens, px(7), px(7))
    painter.drawLine(lens + QPointF(px(5), px(5)), lens + QPointF(px(11), px(11)))
    font = style.text_font(13, bold=True)
    wide = text_width(font, entry.key) + px(16)
    cap = QRectF(box.right() - px(14) - wide, box.center().y() - px(12), wide, px(24))
    words = box.adjusted(px(48), 0, cap.left() - box.right() - px(8), 0)
    draw_text(painter, words, entry.title, style.text_font(17), theme.muted)
    draw_cap(painter, cap, entry.key, style)


def _tools(look: PageLook) -> tuple[Style, Theme, Callable[[float], float]]:
    style = look.places.style
    return style, style.theme, style.px


def _paint_ring(painter: QPainter, style: Style, box: QRectF, radius: float) -> None:
    """Paint the ring of what has the focus, outside of it."""
    theme = style.theme
    wide = max(style.px(2.5), 3.0 if theme.name == "contrast" else 2.0)
    ring = box.adjusted(-wide, -wide, wide, wide)
    outline(painter, ring, theme.current, wide, radius + wide)
    if theme.name != "contrast":
        far = style.px(6)
        glow = mixed(theme.window, theme.current, 0.35)
        outline(painter, box.adjusted(-far, -far, far, far), glow, 1.0, radius + far)


def _paint_card(painter: QPainter, look: PageLook, number: int) -> None:
    places, style, theme, px = look.places, *_tools(look)
    entry, box = places.hits[number]
    card(painter, box, look.ground(number, theme.panel), theme.border, px(_RADIUS), max(px(1.2), 1))
    picture, place = look.pictures[number], places.pictures[number]
    painter.save()
    round_ = QPainterPath()
    round_.addRoundedRect(place.adjusted(0, 0, 0, px(_RADIUS)), px(_RADIUS - 2), px(_RADIUS - 2))
    square = QPainterPath()
    square.addRect(place)
    painter.setClipPath(round_.intersected(square))
    painter.fillRect(place, QColor(theme.field))
    if picture is not None:
        painter.drawPixmap(place.topLeft(), picture)
    painter.restore()
    painter.setPen(QPen(QColor(theme.border), max(px(1), 1)))
    painter.drawLine(QPointF(box.left(), place.bottom()), QPointF(box.right(), place.bottom()))
    if number == look.focused:
        _paint_ring(painter, style, box, px(_RADIUS))
    side, y = px(24) if places.words else px(18), place.bottom() + px(14)
    line = QRectF(box.left() + side, y, box.width() - 2 * side, px(34))
    cap = QRectF(line.right() - px(28), line.center().y() - px(14), px(28), px(28))
    title = style.text_font(25, bold=True)
    draw_text(painter, line.adjusted(0, 0, -px(36), 0), entry.title, title, theme.text)
    draw_cap(painter, cap, entry.key, style)
    if places.words:
        line.translate(0, px(34))
        draw_text(painter, line, entry.words, style.text_font(16.5), theme.muted)
    line.translate(0, px(33) if places.words else px(32))
    strong, plain = style.text_font(16, bold=True), style.text_font(16)
    if entry.minutes:
        words = f"{entry.minutes} min"
        draw_text(painter, line, words, strong, theme.text)
        line.setLeft(line.left() + max(text_width(strong, words) + px(24), px(78)))
    if entry.dots:
        paint_dots(painter, style, line.left(), line.center().y(), entry.dots, theme.current)
        line.setLeft(line.left() + px(40))
    known = entry.level if entry.dots else f"for {entry.level}"
    draw_text(painter, line, known, plain, theme.muted)


def paint_dots(
    painter: QPainter, style: Style, x: float, y: float, count: int, colour: str
) -> None:
    """Paint a level: of three dots so many that are filled."""
    px = style.px
    for n in range(len(LEVELS)):
        full = n < count
        painter.setPen(QPen(QColor(colour if full else style.theme.faint), px(1.3)))
        painter.setBrush(QColor(colour) if full else Qt.BrushStyle.NoBrush)
        painter.drawEllipse(QPointF(x + px(_DOT + n * _DOTS_APART), y), px(_DOT), px(_DOT))


def _paint_press(painter: QPainter, style: Style, place: QRectF) -> None:
    """Say once what the page wants."""
    theme, px, font = style.theme, style.px, style.text_font(28, bold=True)
    words, cap = text_width(font, PRESS), place.height()
    left = place.center().x() - (words + px(16) + cap) / 2
    line = QRectF(left, place.y(), words + 1, place.height())
    draw_text(painter, line, PRESS, font, theme.text)
    key = QRectF(line.right() + px(16), place.y(), cap, cap)
    card(painter, key, theme.current, theme.current, px(8))
    draw_text(painter, key, "→", style.text_font(24, bold=True), theme.window, CENTRE)


def _paint_way(painter: QPainter, look: PageLook) -> None:
    """Paint the way to the map of the course."""
    style, theme, px = _tools(look)
    number = len(look.places.hits) - 2
    entry, box = look.places.hits[number]
    card(painter, box, look.ground(number, theme.field), theme.border, px(9), max(px(1.2), 1))
    if number == look.focused:
        _paint_ring(painter, style, box, px(9))
    cap = QRectF(box.right() - px(40), box.center().y() - px(12), px(26), px(24))
    words = box.adjusted(px(18), 0, cap.left() - box.right() - px(8), 0)
    draw_text(painter, words, entry.title, style.text_font(17), theme.text)
    draw_cap(painter, cap, entry.key, style)


def _paint_lessons(painter: QPainter, look: PageLook, scrolled: float) -> None:
    places, style, theme, px = look.places, *_tools(look)
    painter.save()
    ring = px(8)  # room for the ring around what has the focus
    painter.setClipRect(places.area.adjusted(-ring, 0, ring, 0))
    for part, place in places.heads:
        line = place.adjusted(0, 0, 0, -px(14))
        numeral, title = style.text_font(19, bold=True), style.text_font(19, bold=True)
        minutes, small = f"{part.minutes} min", style.text_font(15)
        draw_text(painter, line, part.numeral, numeral, theme.current)
        wide = text_width(numeral, part.numeral) + px(12)
        room = line.adjusted(wide, 0, -text_width(small, minutes) - px(8), 0)
        draw_text(painter, room, part.title, title, theme.text)
        draw_text(painter, line, minutes, small, theme.muted, RIGHT)
        painter.setPen(QPen(QColor(theme.border), max(px(1.5), 1)))
        y = place.bottom() - px(9)
        painter.drawLine(QPointF(place.left(), y), QPointF(place.right(), y))
    count, y = 0, 0.0
    for number, place in places.rows:
        count = count + 1 if place.y() > y else 1
        y = place.y()
        _paint_row(painter, look, number, place, count)
    painter.restore()
    if places.most > 0:
        high = places.area.height() ** 2 / places.deep
        top = places.area.top() + (places.area.height() - high) * scrolled / places.most
        bar = QRectF(places.area.right() + px(10), top, px(5), high)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.faint))
        painter.drawRoundedRect(bar, px(2.5), px(2.5))


def _paint_row(painter: QPainter, look: PageLook, number: int, place: QRectF, count: int) -> None:
    """Paint the row of a lesson; count: its number in its part."""
    style, theme, px = _tools(look)
    entry: PageEntry = look.places.hits[number].entry
    box = place.adjusted(-px(6), px(2), px(6), -px(2))
    if number in (look.hovered, look.pressed):
        card(painter, box, look.ground(number, theme.window), theme.border, px(6))
    if number == look.focused:
        outline(painter, box, theme.current, max(px(2.5), 2), px(6))
    small, code = style.text_font(15), style.code_font(15)
    left = QRectF(place.left(), place.y(), px(20), place.height())
    if entry.done:
        draw_text(painter, left, "✓", style.text_font(15, bold=True), theme.good, RIGHT)
    else:
        draw_text(painter, left, str(count), code, theme.faint, RIGHT)
    dots = place.right() - px(2 * _DOT + 2 * _DOTS_APART)
    minutes = QRectF(dots - px(46), place.y(), px(34), place.height())
    draw_text(painter, minutes, str(entry.minutes), small, theme.muted, RIGHT)
    paint_dots(painter, style, dots, place.center().y(), entry.dots, theme.muted)
    room = QRectF(left.right() + px(14), place.y(), 0, place.height())
    room.setRight(minutes.left())
    draw_text(painter, room, entry.title, style.text_font(17), theme.text)


def _paint_foot(painter: QPainter, style: Style, place: QRectF) -> None:
    """Say what the dots mean, and how the page comes back."""
    theme, px, font = style.theme, style.px, style.text_font(14.5)
    line = QRectF(place)
    for count, level in enumerate(LEVELS, start=1):
        for n in range(count):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.muted))
            at = QPointF(line.left() + px(_DOT + n * _DOTS_APART), line.center().y())
            painter.drawEllipse(at, px(_DOT), px(_DOT))
        line.setLeft(line.left() + px(2 * _DOT + (count - 1) * _DOTS_APART + 8))
        draw_text(painter, line, level, font, theme.muted, LEFT)
        line.setLeft(line.left() + text_width(font, level) + px(26))
    if text_width(font, BACK) <= line.width():
        draw_text(painter, line, BACK, font, theme.muted, RIGHT)
