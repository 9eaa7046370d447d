"""The picture of the first page: boxes for its entries, and the grounds below them."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSizeF
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen, QPixmap

from simulator.lesson.steps import Part
from ui.kit.boxes import Box, Canvas, Column, Row
from ui.kit.shapes import Cap, Text
from ui.kit.table import FigureText
from ui.look.draw import CENTRE, RIGHT, card, draw_lens, draw_text, mixed, outline
from ui.look.theme import Style
from ui.window.cover_scene import (
    AREA,
    CoverMarks,
    CoverScene,
    Dots,
    cover_scene,
    cover_style,
    even,
    foot,
    part_title,
    some,
)
from ui.window.welcome.entries import PageEntry

NAME, TAGLINE = "Tilescope", "attention, computed in front of you, tile by tile"
PRESS = "press"
BACK = "Help, Welcome brings this page back"
PICTURE = "picture"
"""Boxes of this name and a number are for the pictures of cards."""
_WIDEST, _MARGIN, _GAP, _APART = 2100, 60, 24, 40
_ROOMY, _HEAD, _LOW_HEAD = 900, 112, 72
_INFO, _LOW_INFO, _WORDS_FROM, _LEAST_PICTURE = 122, 84, 500, 40
_SHAPE, _LOW_SHAPE = 0.69, 0.78
_PRESS, _FOOT, _ROW, _TITLE, _COLUMN, _SEARCH = 44, 40, 36, 48, 360, 42
_LEAST_ROWS = 4
_LOWEST_SHAPE = 0.5
"""Least height of a card, as a share of its width, if all lessons have room below it."""
_RADIUS, _SMALL_RADIUS, _ROW_RADIUS = 14, 9, 6


def welcome_scene(
    entries: Sequence[PageEntry], parts: Sequence[Part], style: Style, size: QSizeF
) -> CoverScene:
    """Return the boxes of a page with their places, in a window's style; entries have numbers."""
    style = cover_style(style, size)
    wide, high = size.width() / style.scale, size.height() / style.scale
    wide = min(wide, _WIDEST)
    inner = wide - 2 * min(_MARGIN, 0.031 * wide)
    head = _HEAD if high >= _ROOMY else _LOW_HEAD
    wide = (inner - 2 * _GAP) / 3
    words = wide >= _WORDS_FROM
    info = _INFO if words else _LOW_INFO
    around = _GAP * (0.8 if words else 0.4)
    listed = [part for part in parts if part.number]
    few, every = (
        high - _FOOT - head - _PRESS - _TITLE - rows * _ROW - 2 * around
        for rows in (_LEAST_ROWS, max(len(part.lessons) for part in listed))
    )
    room = every if every >= _LOWEST_SHAPE * wide else few
    deep = max(min((_SHAPE if words else _LOW_SHAPE) * wide, room), info + _LEAST_PICTURE)
    cards = [_card(n, entry, info, words=words) for n, entry in enumerate(entries[:3])]
    above = 0.56 * head - _SEARCH / 2
    still = (
        Box(high=above), _title(entries, inner), Box(high=head - above - _SEARCH),
        even(cards, _GAP, inner, deep), Box(high=around), _press(entries, inner),
        Box(high=around), Box(name=AREA, grow=1), foot("muted", BACK, _FOOT),
    )  # fmt: skip

    lists, number = list[Column](), len(cards)
    for part in listed:
        lessons = entries[number : number + len(part.lessons)]
        rows = (_row(number + n, n + 1, entry) for n, entry in enumerate(lessons))
        title = part_title(part, 19, _TITLE - 14)
        lists.append(Column((title, Box(high=5), Canvas(_rule, high=9), *rows), gap=0))
        number += len(lessons)
    count = next(n for n in (4, 2, 1) if n == 1 or (inner + _APART) / n >= _COLUMN + _APART)
    beside = (even(lists[n : n + count], _APART, inner) for n in range(0, len(lists), count))
    return cover_scene(still, Column(tuple(beside), gap=_GAP), style, size, inner)


def _title(entries: Sequence[PageEntry], inner: float) -> Row:
    number, search = len(entries) - 1, entries[-1]
    tagline = Column((Box(high=4), Text(TAGLINE, "muted", size=22, high=_SEARCH - 4)), gap=0,
                     may_go=True)  # fmt: skip
    field = (Canvas(_lens, wide=48), some(search.title, "muted", 17), Cap(search.key), Box(wide=14))
    wide = min(420, 0.4 * inner) / inner
    return Row((
        Text(NAME, size=34, bold=True), Box(wide=21), tagline, Box(grow=1),
        Row(field, gap=0, share=wide, id=number),
    ), gap=0, high=_SEARCH)  # fmt: skip


def _lens(painter: QPainter, style: Style, rect: QRectF) -> None:
    at = rect.center() - QPointF(0, style.px(1))
    draw_lens(painter, at, style.px(7), style.theme.muted)


def _card(number: int, entry: PageEntry, info: float, *, words: bool) -> Column:
    known = f"for {entry.level}" if entry.level and not entry.dots else entry.level
    minutes = Text(f"{entry.minutes} min", size=16, bold=True, wide=78, high=32 if words else 30)
    dots = (Dots(entry.dots, "current"), Box(wide=10)) if entry.dots else ()
    lines = (
        Row((some(entry.title, "text", 25, bold=True), Box(wide=8), Cap(entry.key, 28)), gap=0,
            high=34),
        *((Text(entry.words, "muted", size=16.5, wide=0, high=34),) if words else ()),
        Row((*((minutes,) if entry.minutes else ()), *dots, some(known, "muted", 16)), gap=0),
    )  # fmt: skip
    side = Box(wide=24 if words else 18)
    below = Row((side, Column((Box(high=14), *lines), gap=0, grow=1), side), gap=0, high=info)
    return Column((Box(name=(PICTURE, number), grow=1), below), gap=0, id=number)


def _press(entries: Sequence[PageEntry], inner: float) -> Row:
    """Return the line that tells what to press, with the way to the map."""
    number, way = len(entries) - 2, entries[-2]
    wide = min(210, 0.3 * inner)
    inside = Box(wide=18), some(way.title, "text", 17), Cap(way.key), Box(wide=14)
    return Row((
        Box(wide=wide, grow=1), Text(PRESS, size=28, bold=True), Box(wide=16),
        Canvas(_arrow_key, wide=_PRESS), Box(grow=1),
        Row(inside, gap=0, share=wide / inner, id=number),
    ), gap=0, high=_PRESS)  # fmt: skip


def _arrow_key(painter: QPainter, style: Style, rect: QRectF) -> None:
    theme = style.theme
    card(painter, rect, theme.current, theme.current, style.px(8))
    draw_text(painter, rect, "→", style.text_font(24, bold=True), theme.window, CENTRE)


def _row(number: int, count: int, entry: PageEntry) -> Row:
    """Return the row of a lesson; count: its number in its part."""
    before: Text = FigureText(str(count), "faint", RIGHT, size=15, wide=20)
    if entry.done:
        before = Text("✓", "good", RIGHT, size=15, bold=True, wide=20)
    minutes = Text(str(entry.minutes), "muted", RIGHT, size=15, wide=34)
    return Row((
        before, Box(wide=14), some(entry.title, "text", 17), minutes, Box(wide=12),
        Dots(entry.dots),
    ), gap=0, high=_ROW, id=number)  # fmt: skip


def _rule(painter: QPainter, style: Style, rect: QRectF) -> None:
    painter.setPen(QPen(QColor(style.theme.border), max(style.px(1.5), 1)))
    painter.drawLine(rect.topLeft(), rect.topRight())


def paint_still(
    painter: QPainter, page: CoverScene, marks: CoverMarks, pictures: Sequence[QPixmap | None]
) -> None:
    """Paint the grounds of the entries that stand still, and the cards' pictures."""
    style, theme, px = page.style, page.style.theme, page.style.px
    for number, box in page.still.items():
        is_card = number < len(pictures)
        radius = px(_RADIUS if is_card else _SMALL_RADIUS)
        ground = marks.ground(number, theme.panel if is_card else theme.field, theme)
        card(painter, box, ground, theme.border, radius, max(px(1.2), 1))
        if number == marks.focused:
            _paint_ring(painter, style, box, radius)
    for place, picture in zip(picture_places(page), pictures, strict=True):
        painter.save()
        round_ = QPainterPath()
        radius = px(_RADIUS - 2)
        round_.addRoundedRect(place.adjusted(0, 0, 0, px(_RADIUS)), radius, radius)
        square = QPainterPath()
        square.addRect(place)
        painter.setClipPath(round_.intersected(square))
        painter.fillRect(place, QColor(theme.field))
        if picture is not None:
            painter.drawPixmap(place.topLeft(), picture)
        painter.restore()
        painter.setPen(QPen(QColor(theme.border), max(px(1), 1)))
        painter.drawLine(place.bottomLeft() - QPointF(2, 0), place.bottomRight() + QPointF(2, 0))


def picture_places(page: CoverScene) -> list[QRectF]:
    """Return the places of the cards' pictures, inside their borders."""
    named = (rect for box, rect in page.frame.placed
             if isinstance(box.name, tuple) and box.name[0] == PICTURE)  # fmt: skip
    return [rect.adjusted(2, 2, -2, 0) for rect in named]


def _paint_ring(painter: QPainter, style: Style, box: QRectF, radius: float) -> None:
    """Paint the ring of the focus around a box, outside of it."""
    theme = style.theme
    wide = max(style.px(2.5), 3.0 if theme.name == "contrast" else 2.0)
    ring = box.adjusted(-wide, -wide, wide, wide)
    outline(painter, ring, theme.current, wide, radius + wide)
    if theme.name != "contrast":
        far = style.px(6)
        glow = mixed(theme.window, theme.current, 0.35)
        outline(painter, box.adjusted(-far, -far, far, far), glow, 1.0, radius + far)


def paint_rows(painter: QPainter, page: CoverScene, marks: CoverMarks) -> None:
    """Paint below the lessons: a ground under the pointer, a ring for the focus."""
    theme, px = page.style.theme, page.style.px
    for number in page.rows.keys() & set(marks):
        box = page.rows[number].adjusted(-px(6), px(2), px(6), -px(2))
        if number in (marks.hovered, marks.pressed):
            card(painter, box, marks.ground(number, theme.window, theme), theme.border,
                 px(_ROW_RADIUS))  # fmt: skip
        if number == marks.focused:
            outline(painter, box, theme.current, max(px(2.5), 2), px(_ROW_RADIUS))
