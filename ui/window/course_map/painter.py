"""The picture of the map: a function of where everything is and what is chosen."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from ui.look.draw import RIGHT, card, draw_cap, draw_text, mixed, outline, text_width
from ui.look.units import plural
from ui.talk.lanes import lane_pen, paint_ring
from ui.window.course_map.places import LANES, LEVELS, NAME, Course, Places
from ui.window.welcome.painter import paint_dots

TITLE, ABOUT = "The course", "{} lessons, {} minutes"
KEYS = "arrows move, Enter opens, Tab: the next path, Esc: back"
ALONE = "a lesson without a ring", "belongs to no path: read it when you like"
POINT = "pointing at a lesson shows what it needs"


@dataclass(frozen=True, slots=True)
class MapLook:
    """What is seen of the map."""

    course: Course
    places: Places
    focused: int  # number of the lesson that Enter opens
    hovered: int | None = None  # that under the pointer
    pressed: int | None = None
    path: int | None = None  # the path under the pointer

    @property
    def asked(self) -> int:
        """The lesson whose needs are shown."""
        return self.focused if self.hovered is None else self.hovered


def paint_map(painter: QPainter, look: MapLook, rect: QRectF) -> None:
    """Paint the map."""
    style, theme, px = look.places.style, look.places.style.theme, look.places.style.px
    painter.fillRect(rect, QColor(theme.window))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    title, font = look.places.title, style.text_font(34, bold=True)
    draw_text(painter, title, TITLE, font, theme.text)
    beside = title.adjusted(text_width(font, TITLE) + px(22), px(4), 0, 0)
    words = ABOUT.format(len(look.course.lessons), look.course.minutes)
    draw_text(painter, beside, words, style.text_font(20), theme.muted)
    for number in range(len(look.course.paths)):
        _paint_path(painter, look, number)
    painter.save()
    ring = px(6)
    painter.setClipRect(look.places.area.adjusted(-ring, 0, ring, 0))
    for n in range(len(look.places.columns)):
        _paint_column(painter, look, n)
    if not look.places.needs.isNull():
        _paint_needs(painter, look, look.places.needs)
    painter.restore()
    _paint_bar(painter, look)
    _paint_foot(painter, look)


def _paint_ring(painter: QPainter, look: MapLook, number: int, at: QPointF, ground: str) -> None:
    chosen = number == look.course.chosen
    paint_ring(painter, look.places.style, at, ground, chosen=chosen)


def _paint_path(painter: QPainter, look: MapLook, number: int) -> None:
    """Paint the card of a path."""
    style, theme, px = look.places.style, look.places.style.theme, look.places.style.px
    path, box = look.course.paths[number], look.places.paths[number]
    on = number == look.course.chosen
    ground = mixed(theme.panel, theme.current, 0.14) if on else QColor(theme.panel)
    if number == look.path and not on:
        ground = mixed(theme.panel, theme.accent, 0.5)
    border = theme.current if on else theme.border
    card(painter, box, ground, border, px(12), px(2.5 if on else 1.2))
    x = box.left() + px(30)
    painter.setPen(lane_pen(style, number, chosen=on))
    painter.drawLine(QPointF(x, box.top() + px(9)), QPointF(x, box.bottom() - px(9)))
    for share in (0.33, 0.67):
        at = QPointF(x, box.top() + share * box.height())
        _paint_ring(painter, look, number, at, ground.name())
    inner = box.adjusted(px(58), px(6), -px(22), -px(6))
    upper, lower = QRectF(inner), QRectF(inner)
    upper.setHeight(0.54 * inner.height())
    lower.setTop(upper.bottom())
    name, plain = style.text_font(24, bold=True), style.text_font(17)
    count = plural(len(path.lessons), "lesson")
    strong, minutes = style.text_font(18, bold=True), f"{path.minutes} min"
    draw_text(painter, upper, count, strong, theme.text, RIGHT)
    draw_text(painter, lower, minutes, plain, theme.muted, RIGHT)
    upper.setRight(upper.right() - text_width(strong, count) - px(10))
    lower.setRight(lower.right() - text_width(plain, minutes) - px(10))
    draw_text(painter, upper, path.title, name, theme.text)
    draw_text(painter, lower, path.about, plain, theme.muted)


def _paint_column(painter: QPainter, look: MapLook, n: int) -> None:
    style, theme, px = look.places.style, look.places.style.theme, look.places.style.px
    column = look.places.columns[n]
    part, box = column.part, column.card
    line = column.head.adjusted(0, px(8), -px(8), 0)
    font, small, minutes = (
        style.text_font(21, bold=True),
        style.text_font(16),
        f"{part.minutes} min",
    )
    draw_text(painter, line, part.numeral, font, theme.current)
    title = line.adjusted(text_width(font, part.numeral) + px(12), 0, 0, 0)
    title.setRight(line.right() - text_width(small, minutes) - px(8))
    draw_text(painter, title, part.title, font, theme.text)
    draw_text(painter, line, minutes, small, theme.muted, RIGHT)
    card(painter, box, theme.panel, theme.border, px(12), max(px(1.2), 1))
    _paint_lanes(painter, look, n)
    for k in range(len(part.lessons)):
        _paint_row(painter, look, column.first + k, last=k + 1 == len(part.lessons))
    free = QRectF(box)
    free.setTop(look.places.rows[column.first + len(part.lessons) - 1].bottom() + px(16))
    if part.number == 3 and free.height() >= px(60):
        free.setLeft(free.left() + px(NAME))
        for words in ALONE:
            text = QRectF(free.left(), free.top(), free.width() - px(8), px(22))
            draw_text(painter, text, words, style.text_font(15), theme.muted)
            free.setTop(text.bottom())


def _paint_lanes(painter: QPainter, look: MapLook, n: int) -> None:
    """Paint the lanes of the paths through a part."""
    px, column, lessons = look.places.style.px, look.places.columns[n], look.course.lessons
    own = range(column.first, column.first + len(column.part.lessons))
    for number, path in enumerate(look.course.paths):
        stops = [k for k, lesson in enumerate(lessons) if lesson in path.lessons]
        if not stops or stops[0] >= own.stop or stops[-1] < own.start:
            continue
        x = column.card.left() + px(LANES[number])
        top = column.card.top() if stops[0] < own.start else look.places.rows[stops[0]].center().y()
        bottom = column.card.bottom()
        if stops[-1] < own.stop:
            bottom = look.places.rows[stops[-1]].center().y()
        chosen = number == look.course.chosen
        painter.setPen(lane_pen(look.places.style, number, chosen=chosen))
        painter.drawLine(QPointF(x, top), QPointF(x, bottom))
        for k in own:
            if k in stops:
                at = QPointF(x, look.places.rows[k].center().y())
                _paint_ring(painter, look, number, at, look.places.style.theme.panel)


def _paint_row(painter: QPainter, look: MapLook, number: int, *, last: bool) -> None:
    style, theme, px = look.places.style, look.places.style.theme, look.places.style.px
    row, lesson = look.places.rows[number], look.course.lessons[number]
    on, next_ = lesson in look.course.path.lessons, number == look.course.next
    box = row.adjusted(px(NAME - 14), px(3), -px(12), -px(3))
    needed = number in {look.course.lessons.index(need.lesson)
                        for need in look.course.needs(look.asked)}  # fmt: skip
    if number in (look.hovered, look.pressed) or needed or next_:
        strong = 0.9 if number == look.pressed else 0.55 if next_ else 0.4
        card(painter, box, mixed(theme.panel, theme.accent, strong), theme.border, px(8))
    if number == look.focused:
        outline(painter, box, theme.current, max(px(2.5), 2), px(8))
    elif needed:
        outline(painter, box, theme.text, max(px(1.5), 1), px(8))
    if not last:
        painter.setPen(QPen(QColor(theme.border), 1))
        painter.drawLine(QPointF(row.left() + px(NAME - 6), row.bottom()),
                         QPointF(row.right() - px(14), row.bottom()))  # fmt: skip
    inner = box.adjusted(px(14), 0, -px(12), 0)
    middle = row.center().y()
    upper = QRectF(inner.left(), middle - px(23), inner.width(), px(26))
    lower = QRectF(inner.left(), middle + px(2), inner.width(), px(20))
    if look.course.is_done(lesson):
        tick = style.text_font(21, bold=True)
        draw_text(painter, upper.translated(0, px(10)), "✓", tick, theme.good, RIGHT)
        upper.setRight(upper.right() - px(28))
    strong_font = style.text_font(18, bold=next_)
    draw_text(painter, upper, lesson.title, strong_font, theme.text if on or next_ else theme.muted)
    small, minutes = style.text_font(14.5), f"{lesson.minutes} min"
    draw_text(painter, lower, minutes, small, theme.muted)
    if lesson.level in LEVELS:
        colour = theme.current if on else theme.muted
        count = LEVELS.index(lesson.level) + 1
        paint_dots(painter, style, lower.left() + px(60), lower.center().y(), count, colour)
    if next_:
        words, font = "next", style.text_font(15, bold=True)
        draw_text(painter, lower, words, font, theme.current, RIGHT)
        if number == look.focused:
            right = lower.right() - text_width(font, words) - px(10)
            cap = QRectF(right - px(50), lower.top(), px(50), lower.height())
            draw_cap(painter, cap, "Enter", style)


def _paint_needs(painter: QPainter, look: MapLook, place: QRectF) -> None:
    """Paint what a lesson needs, as a tree."""
    style, theme, px = look.places.style, look.places.style.theme, look.places.style.px
    line = QRectF(place.left(), place.top(), place.width(), px(24))
    font, strong = style.text_font(15), style.text_font(15, bold=True)
    draw_text(painter, line, "Needs", strong, theme.text)
    beside = line.adjusted(text_width(strong, "Needs") + px(12), 0, 0, 0)
    draw_text(painter, beside, POINT, font, theme.muted)
    line.translate(0, px(28))
    draw_text(painter, line, look.course.lessons[look.asked].title, strong, theme.current)
    needs = look.course.needs(look.asked)
    room = int((place.bottom() - line.bottom()) // px(24))
    shown = needs if len(needs) <= room else needs[: max(room - 1, 0)]
    if not needs:
        line.translate(0, px(24))
        draw_text(painter, line, "nothing before it", font, theme.muted)
    for need in shown:
        line.translate(0, px(24))
        x = place.left() + px(6 + 22 * (need.depth - 1))
        painter.setPen(QPen(QColor(theme.muted), px(1.6)))
        middle = line.center().y()
        painter.drawPolyline(
            [QPointF(x, line.top() - px(2)), QPointF(x, middle), QPointF(x + px(12), middle)]
        )
        text = QRectF(x + px(20), line.top(), line.right() - x - px(20), line.height())
        done = look.course.is_done(need.lesson)
        words = f"{need.lesson.title}  ✓" if done else need.lesson.title
        draw_text(painter, text, words, font, theme.good if done else theme.text)
    if len(shown) < len(needs):
        line.translate(0, px(24))
        draw_text(painter, line, f"and {len(needs) - len(shown)} more", font, theme.muted)


def _paint_bar(painter: QPainter, look: MapLook) -> None:
    places, px = look.places, look.places.style.px
    if places.most <= 0:
        return
    moved = places.area.top() - places.columns[0].head.top()
    high = places.area.height() ** 2 / places.deep
    top = places.area.top() + (places.area.height() - high) * moved / places.most
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(places.style.theme.faint))
    bar = QRectF(places.area.right() + px(8), top, px(5), high)
    painter.drawRoundedRect(bar, px(2.5), px(2.5))


def _paint_foot(painter: QPainter, look: MapLook) -> None:
    """Say what the dots mean, and what keys do."""
    style, theme, px = look.places.style, look.places.style.theme, look.places.style.px
    line, font = QRectF(look.places.foot), style.text_font(14.5)
    for count, level in enumerate(LEVELS, start=1):
        paint_dots(painter, style, line.left(), line.center().y(), count, theme.current)
        line.setLeft(line.left() + px(40))
        draw_text(painter, line, level, font, theme.muted)
        line.setLeft(line.left() + text_width(font, level) + px(26))
    draw_text(painter, line, KEYS, font, theme.muted, RIGHT)
