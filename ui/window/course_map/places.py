"""Where everything on the map of the course is: one table for hand, keys, tips and painter."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from PySide6.QtCore import QRectF, QSizeF

from simulator.lesson.course import CoursePath, LessonNeed, course_paths, needs_of
from simulator.lesson.reader import parts
from simulator.lesson.steps import LessonTitle, Part
from simulator.lesson.tables import Level
from ui.look.theme import Style
from ui.look.units import plural

LEVELS: tuple[Level, ...] = ("linear algebra", "machine learning", "GPU")
LANES = (22.0, 40.0, 58.0)
"""Where the lanes of paths are in a column, at scale 1."""
NAME = 90.0
"""Where names of lessons begin."""
_SMALLEST, _FULL, _WIDEST = 0.8, (1920.0, 1050.0), 2100.0
_MARGIN, _GAP, _COLUMN = 48.0, 16.0, 400.0
_TITLE, _LOW_TITLE, _PATH, _LOW_PATH, _HEAD, _FOOT = 92.0, 64.0, 92.0, 64.0, 56.0, 46.0
_ROW, _LEAST_ROW, _INSET = 71.0, 50.0, 8.0
_LINE, _BELOW = 30.0, 4.0


@dataclass(frozen=True, slots=True)
class Course:
    """What the map shows."""

    parts: tuple[Part, ...]
    lessons: tuple[LessonTitle, ...]
    paths: tuple[CoursePath, ...]
    chosen: int = 0  # of paths
    done: frozenset[str] = frozenset()  # stems of lessons that were seen to their end

    @property
    def path(self) -> CoursePath:
        """The path that is chosen."""
        return self.paths[self.chosen]

    @property
    def next(self) -> int | None:
        """The number of the lesson that comes next on the path."""
        found = self.path.next_lesson(self.done)
        return None if found is None else self.lessons.index(found)

    @property
    def minutes(self) -> int:
        """How long all lessons take together."""
        return sum(lesson.minutes for lesson in self.lessons)

    def needs(self, number: int) -> tuple[LessonNeed, ...]:
        """Return what a lesson needs."""
        return needs_of(self.lessons[number], self.lessons)

    def is_done(self, lesson: LessonTitle) -> bool:
        """Return whether a lesson was seen to its end."""
        return lesson.path.stem in self.done

    def said(self, number: int) -> str:
        """Return a lesson as a screen reader says it."""
        lesson = self.lessons[number]
        words = (
            lesson.title, plural(lesson.minutes, "minute"), lesson.level,
            "done" if self.is_done(lesson) else "",
            "next on the path" if number == self.next else "",
            f"on the path {self.path.title}" if lesson in self.path.lessons else "",
            needs_words(self.needs(number)),
        )  # fmt: skip
        return ", ".join(filter(None, words))


def needs_words(needs: Collection[LessonNeed]) -> str:
    """Return in words what a lesson itself needs."""
    names = [need.lesson.title for need in needs if need.depth == 1]
    return f"needs {' and '.join(names)}" if names else ""


def course_now(chosen: str = "", done: Collection[str] = ()) -> Course:
    """Return the course with the path of a name, or the first."""
    four = tuple(part for part in parts() if part.number)
    lessons = tuple(lesson for part in four for lesson in part.lessons)
    paths = course_paths(lessons)
    number = next((n for n, path in enumerate(paths) if path.name == chosen), 0)
    return Course(four, lessons, paths, number, frozenset(done))


class PartColumn(NamedTuple):
    """The column of a part: its head, and the card that its lessons are on."""

    part: Part
    head: QRectF
    card: QRectF
    first: int  # number of its first lesson


@dataclass(frozen=True, slots=True)
class Places:
    """Where everything is."""

    style: Style  # in which it is drawn: smaller letters in a small window
    title: QRectF
    paths: tuple[QRectF, ...]
    area: QRectF  # in which the lessons are seen
    columns: tuple[PartColumn, ...]  # they may be out of the area, as rows
    rows: tuple[QRectF, ...]  # of the lessons
    needs: QRectF  # for what a lesson needs; null where there is no room
    foot: QRectF
    deep: float  # height of all columns

    def at(self, x: float, y: float) -> int | None:
        """Return the number of the lesson at a point."""
        if not self.area.contains(x, y):
            return None
        return next((n for n, rect in enumerate(self.rows) if rect.contains(x, y)), None)

    def row(self, number: int) -> QRectF:
        """Return the place of a lesson, also out of sight."""
        return self.rows[number]

    def path_at(self, x: float, y: float) -> int | None:
        """Return the number of the path at a point."""
        return next((n for n, rect in enumerate(self.paths) if rect.contains(x, y)), None)

    @property
    def most(self) -> float:
        """How far the lessons can be scrolled."""
        return max(self.deep - self.area.height(), 0.0)


def places_of(course: Course, style: Style, size: QSizeF, scrolled: float = 0.0) -> Places:
    """Return where everything is on a page.

    style: that of the window.
    scrolled: how far the lessons are scrolled.
    """
    share = min(size.width() / _FULL[0], size.height() / _FULL[1])
    style = Style(style.theme, style.scale * min(max(share, _SMALLEST), 1.0))
    px = style.px
    low = size.height() < px(1000)
    wide = min(size.width(), px(_WIDEST))
    margin = min(px(_MARGIN), 0.03 * wide)
    left, inner, gap = (size.width() - wide) / 2 + margin, wide - 2 * margin, px(_GAP)
    title = QRectF(left, 0, inner, px(_LOW_TITLE if low else _TITLE))
    card = (inner - 2 * gap) / 3
    high = px(_LOW_PATH if low else _PATH)
    paths = tuple(QRectF(left + n * (card + gap), title.bottom(), card, high) for n in range(3))
    foot = QRectF(left, size.height() - px(_FOOT), inner, px(_FOOT))
    top = title.bottom() + high + px(6)
    area = QRectF(left, top, inner, max(foot.y() - top, 0.0))

    count = next(n for n in (4, 2, 1) if n == 1 or (inner + gap) / n >= px(_COLUMN) + gap)
    column = (inner - (count - 1) * gap) / count
    most = max(len(part.lessons) for part in course.parts)
    room = (area.height() - px(_HEAD + 2 * _INSET + _BELOW)) / most
    row = min(max(room, px(_LEAST_ROW)), px(_ROW)) if count == 4 else px(_LEAST_ROW + 6)
    columns, rows, y, number = list[PartColumn](), list[QRectF](), 0.0, 0
    for first in range(0, len(course.parts), count):
        beside = course.parts[first : first + count]
        deep = row * max(len(part.lessons) for part in beside) + 2 * px(_INSET)
        for k, part in enumerate(beside):
            x, at = left + k * (column + gap), top + y - scrolled
            head = QRectF(x, at, column, px(_HEAD))
            columns.append(PartColumn(part, head, QRectF(x, head.bottom(), column, deep), number))
            rows += [
                QRectF(x, head.bottom() + px(_INSET) + n * row, column, row)
                for n in range(len(part.lessons))
            ]
            number += len(part.lessons)
        y += px(_HEAD) + deep
    last = columns[-1].card
    free = QRectF(last)
    free.setTop(rows[-1].bottom() + px(12))
    free.adjust(px(24), 0, -px(12), -px(10))
    needs = free if free.height() >= px(4 * _LINE) else QRectF()
    return Places(
        style, title, paths, area, tuple(columns), tuple(rows), needs, foot, y + px(_BELOW)
    )  # fmt: skip


def neighbour(places: Places, number: int, across: int, down: int) -> int:
    """Return the lesson beside another, or above or below it; the same where there is none.

    across, down: the direction: one of them 1 or −1, the other 0.
    """
    here = places.rows[number]
    if down:
        same = [n for n, rect in enumerate(places.rows) if rect.x() == here.x()]
        at = same.index(number) + down
        return same[at] if 0 <= at < len(same) else number
    columns = sorted({rect.x() for rect in places.rows})
    at = columns.index(here.x()) + across
    if not 0 <= at < len(columns):
        return number
    beside = [n for n, rect in enumerate(places.rows) if rect.x() == columns[at]]
    return min(beside, key=lambda n: abs(places.rows[n].y() - here.y()))
