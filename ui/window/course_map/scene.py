"""The picture of the map: boxes for parts, lessons and paths, and the lanes below them."""

from __future__ import annotations

from typing import NamedTuple

from PySide6.QtCore import QPointF, QRectF, QSizeF
from PySide6.QtGui import QColor, QPainter, QPen

from simulator.lesson.course import LessonNeed
from simulator.lesson.steps import LessonTitle, Part
from ui.kit.boxes import Box, Canvas, Column, Row, scene
from ui.kit.shapes import Cap, Text
from ui.look.draw import RIGHT, card, mixed, outline
from ui.look.theme import Style
from ui.look.units import plural
from ui.talk.lanes import lane_pen, paint_ring
from ui.window.course_map.course import Course
from ui.window.cover_scene import (
    AREA,
    CoverMarks,
    CoverScene,
    Dots,
    cover_scene,
    cover_style,
    dots_of,
    even,
    foot,
    part_title,
    some,
)

TITLE, ABOUT = "The course", "{} lessons, {} minutes"
KEYS = "arrows move, Enter opens, Tab: the next path, Esc: back"
ALONE = "a lesson without a ring", "belongs to no path: read it when you like"
POINT = "pointing at a lesson shows what it needs"
NEEDS = "needs"
"""Name of the box for a lesson's needs, where there is room."""
_LANES, _LANE = (22.0, 40.0, 58.0), 30.0
"""Where the lanes of paths are in a column, and the lane of a path in its card."""
_NAME = 90.0
"""Where names of lessons begin."""
_WIDEST, _MARGIN, _GAP, _COLUMN = 2100.0, 48.0, 16.0, 400.0
_LOW, _TITLE, _LOW_TITLE, _PATH, _LOW_PATH = 1000, 92.0, 64.0, 92.0, 64.0
_HEAD, _FOOT, _ROW, _LEAST_ROW, _INSET, _BELOW = 56.0, 46.0, 71.0, 50.0, 8.0, 4.0
_LINE = 24.0


class PathSpot(NamedTuple):
    """A path under the pointer, by its number."""

    path: int


class PartSpot(NamedTuple):
    """The card of a part, by its number in the course from 0."""

    part: int


def map_scene(course: Course, style: Style, size: QSizeF, focused: int = -1) -> CoverScene:
    """Return the boxes of a page with their places, in a window's style; lessons have numbers."""
    style = cover_style(style, size)
    wide, high = min(size.width() / style.scale, _WIDEST), size.height() / style.scale
    inner = wide - 2 * min(_MARGIN, 0.03 * wide)
    low = high < _LOW
    top, path = (_LOW_TITLE, _LOW_PATH) if low else (_TITLE, _PATH)
    about = ABOUT.format(len(course.lessons), course.minutes)
    beside = Column((Box(high=4), some(about, "muted", 20)), gap=0, grow=1)
    still = (
        Row((Text(TITLE, size=34, bold=True), Box(wide=21), beside), gap=0, high=top),
        even([_path(course, n, path) for n in range(len(course.paths))], _GAP, inner, path),
        Box(high=6), Box(name=AREA, grow=1), foot("current", KEYS, _FOOT),
    )  # fmt: skip
    count = next(n for n in (4, 2, 1) if n == 1 or (inner + _GAP) / n >= _COLUMN + _GAP)
    most = max(len(part.lessons) for part in course.parts)
    room = high - top - path - 6 - _FOOT - _HEAD - 2 * _INSET - _BELOW
    row = min(max(room / most, _LEAST_ROW), _ROW) if count == 4 else _LEAST_ROW + 6
    groups, number = list[Row](), 0
    for first in range(0, len(course.parts), count):
        parts, columns = course.parts[first : first + count], list[Column]()
        deep = row * max(len(part.lessons) for part in parts) + 2 * _INSET
        for n, part in enumerate(parts, start=first):
            rows = [_row(course, number + k, row, focused) for k in range(len(part.lessons))]
            columns.append(_part(part, n, rows, deep, last=n + 1 == len(course.parts)))
            number += len(rows)
        groups.append(even(columns, _GAP, inner))
    listed = Column((*groups, Box(high=_BELOW)), gap=0)
    return cover_scene(still, listed, style, size, inner)


def _path(course: Course, number: int, high: float) -> Row:
    """Return the words on the card of a path, beside its lane."""
    path = course.paths[number]
    upper = Row((
        some(path.title, "text", 24, bold=True), Box(wide=10),
        Text(plural(len(path.lessons), "lesson"), "text", RIGHT, size=18, bold=True),
    ), gap=0, high=0.54 * (high - 12))  # fmt: skip
    lower = Row((
        some(path.about, "muted", 17), Box(wide=10),
        Text(f"{path.minutes} min", "muted", RIGHT, size=17),
    ), gap=0, grow=1)  # fmt: skip
    lines = Column((Box(high=6), upper, lower, Box(high=6)), gap=0, grow=1)
    return Row((Box(wide=58), lines, Box(wide=22)), gap=0, id=PathSpot(number))


def _part(part: Part, number: int, rows: list[Row], deep: float, *, last: bool) -> Column:
    """Return the column of a part; below its lessons come needs or words where there is room."""
    title = part_title(part, 21, _HEAD - 8, after=8)
    below: tuple[Box, ...] = ()
    free = deep - _INSET - sum(row.high or 0.0 for row in rows)
    if last and free >= 12 + 5 * _LINE + 10:
        needs = Row((Box(wide=24), Box(name=NEEDS, grow=1), Box(wide=12)), gap=0, grow=1)
        below = (Box(high=12), needs, Box(high=10))
    elif part.number == 3 and free >= 16 + 60:
        words = (Text(each, "muted", size=15, wide=0, high=22) for each in ALONE)
        said = Column(tuple(words), gap=0, grow=1)
        below = (Box(high=16), Row((Box(wide=_NAME), said, Box(wide=8)), gap=0))
    inside = Column((Box(high=_INSET), *rows, *below), gap=0, grow=1)
    return Column((Box(high=8), title, Row((inside,), high=deep, name=PartSpot(number))), gap=0)


def _row(course: Course, number: int, high: float, focused: int) -> Row:
    lesson = course.lessons[number]
    on, next_ = lesson in course.path.lessons, number == course.next
    title = some(lesson.title, "text" if on or next_ else "muted", 18, bold=next_, high=24)
    known: tuple[Box, ...] = (Text(f"{lesson.minutes} min", "muted", size=14.5, wide=60),)
    if dots := dots_of(lesson.level):
        known += (Dots(dots, "current" if on else "muted"),)
    if next_:
        keys = (Cap("Enter", 20), Box(wide=10)) if number == focused else ()
        known += (Box(grow=1), *keys, Text("next", "current", RIGHT, size=15, bold=True))
    lines = Column((
        Box(grow=1), Row((title,)), Row(known, gap=0, high=20), Box(grow=1),
    ), gap=0, grow=1)  # fmt: skip
    tick = Text("✓", "good", RIGHT, size=21, bold=True, wide=28)
    done = (tick,) if course.is_done(lesson) else ()
    return Row((Box(wide=_NAME), lines, *done, Box(wide=24)), gap=0, high=high, id=number)


def paint_paths(painter: QPainter, page: CoverScene, course: Course, hovered: int | None) -> None:
    """Paint the cards of the paths with their lanes."""
    style, theme, px = page.style, page.style.theme, page.style.px
    for box, place in page.frame.placed:
        if not isinstance(box.id, PathSpot):
            continue
        number = box.id.path
        on = number == course.chosen
        ground = mixed(theme.panel, theme.current, 0.14) if on else QColor(theme.panel)
        if number == hovered and not on:
            ground = mixed(theme.panel, theme.accent, 0.5)
        border = theme.current if on else theme.border
        card(painter, place, ground, border, px(12), px(2.5 if on else 1.2))
        x = place.left() + px(_LANE)
        painter.setPen(lane_pen(style, number, chosen=on))
        painter.drawLine(QPointF(x, place.top() + px(9)), QPointF(x, place.bottom() - px(9)))
        for share in (0.33, 0.67):
            at = QPointF(x, place.top() + share * place.height())
            paint_ring(painter, style, at, ground.name(), chosen=on)


def paint_rows(painter: QPainter, page: CoverScene, course: Course, marks: CoverMarks) -> None:
    """Paint the ground of the lessons: cards with lanes, and lit rows; and a lesson's needs."""
    style, theme, px = page.style, page.style.theme, page.style.px
    number = 0
    for box, place in page.listed.placed:
        if isinstance(box.name, PartSpot):
            card(painter, place, theme.panel, theme.border, px(12), max(px(1.2), 1))
            own = range(number, number + len(course.parts[box.name.part].lessons))
            _paint_lanes(painter, page, course, place, own)
            _paint_lines(painter, page, own)
            number = own.stop
    needs = course.needs(marks.focused if marks.hovered is None else marks.hovered)
    needed = {course.lessons.index(need.lesson) for need in needs}
    for number in page.rows.keys() & {*needed, *marks, course.next}:
        place = page.rows[number].adjusted(px(_NAME - 14), px(3), -px(12), -px(3))
        if number in needed or number in (marks.hovered, marks.pressed, course.next):
            strong = 0.9 if number == marks.pressed else 0.55 if number == course.next else 0.4
            card(painter, place, mixed(theme.panel, theme.accent, strong), theme.border, px(8))
        if number == marks.focused:
            outline(painter, place, theme.current, max(px(2.5), 2), px(8))
        elif number in needed:
            outline(painter, place, theme.text, max(px(1.5), 1), px(8))
    for box, place in page.listed.placed:
        if box.name == NEEDS:
            asked = course.lessons[marks.focused if marks.hovered is None else marks.hovered]
            scene(_needs(course, asked, needs, place.height() / style.scale), style, place).paint(
                painter
            )


def _paint_lanes(
    painter: QPainter, page: CoverScene, course: Course, place: QRectF, own: range
) -> None:
    """Paint the lanes of the paths through a part."""
    style = page.style
    for number, path in enumerate(course.paths):
        stops = [k for k, lesson in enumerate(course.lessons) if lesson in path.lessons]
        if not stops or stops[0] >= own.stop or stops[-1] < own.start:
            continue
        x, rows, chosen = (
            place.left() + style.px(_LANES[number]),
            page.rows,
            number == course.chosen,
        )
        top = place.top() if stops[0] < own.start else rows[stops[0]].center().y()
        bottom = place.bottom() if stops[-1] >= own.stop else rows[stops[-1]].center().y()
        painter.setPen(lane_pen(style, number, chosen=chosen))
        painter.drawLine(QPointF(x, top), QPointF(x, bottom))
        for k in own:
            if k in stops:
                at = QPointF(x, rows[k].center().y())
                paint_ring(painter, style, at, style.theme.panel, chosen=chosen)


def _paint_lines(painter: QPainter, page: CoverScene, own: range) -> None:
    """Paint the lines between the lessons of a part."""
    px = page.style.px
    painter.setPen(QPen(QColor(page.style.theme.border), 1))
    for number in own[:-1]:
        row = page.rows[number].adjusted(px(_NAME - 6), 0, -px(14), 0)
        painter.drawLine(row.bottomLeft(), row.bottomRight())


def _needs(
    course: Course, asked: LessonTitle, needs: tuple[LessonNeed, ...], high: float
) -> Column:
    """Return the needs of a lesson, as a tree in a height at scale 1."""
    room = int((high - 2 * _LINE - 4) // _LINE)
    shown = needs if len(needs) <= room else needs[: max(room - 1, 0)]
    head = Text("Needs", size=15, bold=True, high=_LINE), Box(wide=11), some(POINT, "muted", 15)
    lines: list[Box] = [
        Row(head, gap=0), Box(high=4),
        Text(asked.title, "current", size=15, bold=True, wide=0, high=_LINE),
    ]  # fmt: skip
    for need in shown:
        done = course.is_done(need.lesson)
        words = f"{need.lesson.title}  ✓" if done else need.lesson.title
        lines.append(Row((
            Box(wide=6 + 22 * (need.depth - 1)), Canvas(_branch, wide=20),
            some(words, "good" if done else "text", 15, high=_LINE),
        ), gap=0))  # fmt: skip
    left = len(needs) - len(shown)
    if left or not needs:
        said = f"and {left} more" if left else "nothing before it"
        lines.append(Text(said, "muted", size=15, wide=0, high=_LINE))
    return Column(tuple(lines), gap=0)


def _branch(painter: QPainter, style: Style, rect: QRectF) -> None:
    px, middle = style.px, rect.center().y()
    painter.setPen(QPen(QColor(style.theme.muted), px(1.6)))
    end = QPointF(rect.left() + px(12), middle)
    painter.drawPolyline(
        [QPointF(rect.left(), rect.top() - px(2)), QPointF(rect.left(), middle), end]
    )
