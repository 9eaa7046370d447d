"""What the first page offers, and where: one table for hand, keys, tips and screen readers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from PySide6.QtCore import QRectF, QSizeF

from simulator.lesson.reader import find_lesson, lesson_after
from simulator.lesson.steps import LessonTitle, Part
from simulator.lesson.tables import Level
from ui.look.theme import Style
from ui.look.units import plural

MINUTE, TALK = "minute", "talk"
"""Pictures that are of no step of a lesson."""
LEVELS: tuple[Level, ...] = ("linear algebra", "machine learning", "GPU")
"""What one knows already: as many dots as the place in this list."""
PictureName = str | tuple[Path, int]
"""A picture by its name, or that of a step of a lesson, from 0."""


@dataclass(frozen=True, slots=True)
class PageEntry:
    """One thing that can be opened."""

    role: str  # ``card``, ``lesson``, or the action ``course_map`` or ``search``
    title: str
    words: str = ""  # what it is about, in one line
    path: Path | None = None  # the lesson; None: it is an action
    step: int = 0  # the step that is opened, from 0
    minutes: int = 0
    level: str = ""
    key: str = ""  # that chooses it
    done: bool = False  # whether all its steps have been seen
    picture: PictureName = ""

    @property
    def dots(self) -> int:
        """How many dots its level has; 0 where it has none."""
        return LEVELS.index(self.level) + 1 if self.level in LEVELS else 0

    @property
    def said(self) -> str:
        """The entry as a screen reader says it."""
        known = f"for {self.level}" if self.level and not self.dots else self.level
        parts = (
            self.title, plural(self.minutes, "minute") if self.minutes else "", known,
            "done" if self.done else "", self.words, f"key {self.key}" if self.key else "",
        )  # fmt: skip
        return ", ".join(filter(None, parts))

    @property
    def tip(self) -> str:
        """What a press does, and the keys for it."""
        if self.role == "search":
            return "Finds actions, lessons, fields, models and words (Ctrl+K)."
        if self.role == "course_map":
            return (
                f"Shows what each lesson needs, and three paths ({self.key} chooses it, → opens it)"
            )
        keys = f"{self.key} chooses it, → opens it" if self.key else "→ or Enter"
        return f"Opens the lesson: {self.words} ({keys})"


def entries_of(
    parts: tuple[Part, ...], place: tuple[str, int] | None = None, done: Collection[str] = ()
) -> tuple[PageEntry, ...]:
    """Return what is offered, in the order in which Tab goes through it.

    place: the lesson and step that were seen last.
    done: names of the files of lessons of which all steps have been seen.
    """
    lessons = tuple(lesson for part in parts for lesson in part.lessons)
    cards = (
        _continued(lessons, place, done) or _card(lessons, "whole-layer", *_FIRST),
        _card(lessons, "one-minute", *_SECOND, picture=MINUTE),
        _card(lessons, "give-a-talk", *_THIRD, picture=TALK),
    )
    listed = (
        PageEntry(
            "lesson", lesson.title, lesson.summary, lesson.path, 0, lesson.minutes, lesson.level,
            done=lesson.path.stem in done, picture=(lesson.path, 0),
        )
        for part in parts if part.number for lesson in part.lessons
    )  # fmt: skip
    last = (
        PageEntry("course_map", "Course map", "What each lesson needs, and three paths", key="4"),
        PageEntry("search", "Search everything", key="Ctrl+K"),
    )
    return (*(replace(card, key=str(n)) for n, card in enumerate(cards, start=1)), *listed, *last)


_FIRST = "Attention in three tokens", "Every number in sight: X, Q, K, V, weights, O"
_SECOND = "FlashAttention in a minute", "A real sentence, five tiles a row, one factor α"
_THIRD = "Give a talk", "Slides that compute, and what the speaker sees"


def _card(
    lessons: tuple[LessonTitle, ...], name: str, title: str, words: str, picture: str = ""
) -> PageEntry:
    path = find_lesson(name)
    of = next(lesson for lesson in lessons if lesson.path == path)
    return PageEntry(
        "card", title, words, path, 0, of.minutes, of.level, picture=picture or (path, 0)
    )


def _continued(
    lessons: tuple[LessonTitle, ...], place: tuple[str, int] | None, done: Collection[str]
) -> PageEntry | None:
    """Return the card of the lesson that was left, or of the one after a whole one."""
    by_name = {lesson.path.stem: lesson for lesson in lessons}
    if place is None or place[0] not in by_name:
        return None
    lesson, step = by_name[place[0]], place[1]
    if lesson.path.stem in done or step >= len(lesson.steps):
        after = lesson_after(lesson.path)
        if after is None:
            return None
        return PageEntry("card", f"Next: {after.title}", after.summary, after.path, 0,
                     after.minutes, after.level, picture=(after.path, 0))  # fmt: skip
    left = max(round(lesson.minutes * (len(lesson.steps) - step) / len(lesson.steps)), 1)
    return PageEntry("card", f"Continue: {lesson.title}, step {step + 1}", lesson.steps[step],
                 lesson.path, step, left, lesson.level, picture=(lesson.path, step))  # fmt: skip


# --- where ------------------------------------------------------------------------------------


SMALLEST = 0.8
"""Least size of letters in a small window, as a share of those in one of 1920 × 1080."""
_FULL = 1920.0, 1050.0
_WIDEST, _MARGIN = 2100, 60
_GAP, _APART = 24, 40
_ROOMY, _HEAD, _LOW_HEAD = 900, 112, 72
_INFO, _LOW_INFO, _WORDS_FROM, _LEAST_PICTURE = 122, 84, 500, 40
_SHAPE, _LOW_SHAPE = 0.69, 0.78
_PRESS, _FOOT, _ROW, _TITLE, _COLUMN = 44, 40, 36, 48, 360
_LEAST_ROWS = 4
_LOWEST_SHAPE = 0.5
"""What a card keeps of its width as its height, to show all lessons below it."""


class EntryArea(NamedTuple):
    """An entry and its place, which is empty where the row is scrolled out of sight."""

    entry: PageEntry
    rect: QRectF


@dataclass(frozen=True, slots=True)
class WelcomePlaces:
    """Where everything on the page is."""

    style: Style  # in which it is drawn: smaller letters in a small window
    hits: tuple[EntryArea, ...]  # one for each entry, in its order
    pictures: tuple[QRectF, ...]  # of the cards
    title: QRectF
    press: QRectF  # of what the page wants
    area: QRectF  # in which the lessons are seen
    heads: tuple[tuple[Part, QRectF], ...]  # of the parts; they may be out of the area
    rows: tuple[tuple[int, QRectF], ...]  # the entries of lessons, likewise
    foot: QRectF
    deep: float  # height of all lessons
    words: bool  # whether cards have room for their line of words

    def at(self, x: float, y: float) -> int | None:
        """Return the number of the entry at a point."""
        return next((n for n, each in enumerate(self.hits) if each.rect.contains(x, y)), None)

    def row(self, number: int) -> QRectF | None:
        """Return the place of a lesson in its list, also out of sight; None for other entries."""
        return dict(self.rows).get(number)

    @property
    def most(self) -> float:
        """How far the lessons can be scrolled."""
        return max(self.deep - self.area.height(), 0.0)


def places_of(
    entries: tuple[PageEntry, ...], parts: tuple[Part, ...], style: Style, size: QSizeF,
    scrolled: float = 0.0,
) -> WelcomePlaces:  # fmt: skip
    """Return where everything is on a page.

    style: that of the window.
    scrolled: how far the lessons are scrolled.
    """
    share = min(size.width() / _FULL[0], size.height() / _FULL[1])
    style = Style(style.theme, style.scale * min(max(share, SMALLEST), 1.0))
    px = style.px
    wide = min(size.width(), px(_WIDEST))
    margin = min(px(_MARGIN), 0.031 * wide)
    left, inner = (size.width() - wide) / 2 + margin, wide - 2 * margin
    head = px(_HEAD if size.height() >= px(_ROOMY) else _LOW_HEAD)
    search = QRectF(0, 0, min(px(420), 0.4 * inner), px(42))
    search.moveTo(left + inner - search.width(), 0.56 * head - search.height() / 2)
    title = QRectF(left, search.y(), search.x() - left - px(_GAP), search.height())
    foot = QRectF(left, size.height() - px(_FOOT), inner, px(_FOOT))

    card = (inner - 2 * px(_GAP)) / 3
    words = card >= px(_WORDS_FROM)
    info = px(_INFO if words else _LOW_INFO)
    around = px(_GAP) * (0.8 if words else 0.4)
    most = max(len(part.lessons) for part in parts if part.number)
    few, all_rows = (
        foot.y() - head - px(_PRESS + _TITLE + rows * _ROW) - 2 * around
        for rows in (_LEAST_ROWS, most)
    )
    room = all_rows if all_rows >= _LOWEST_SHAPE * card else few
    high = max(min((_SHAPE if words else _LOW_SHAPE) * card, room), info + px(_LEAST_PICTURE))
    cards = [QRectF(left + n * (card + px(_GAP)), head, card, high) for n in range(3)]
    pictures = tuple(each.adjusted(2, 2, -2, -info) for each in cards)
    press = QRectF(left, head + high + around, inner, px(_PRESS))
    top = press.bottom() + around
    area = QRectF(left, top, inner, max(foot.y() - top, 0.0))

    counts = (4, 2, 1)
    columns = next(n for n in counts if n == 1 or (inner + px(_APART)) / n >= px(_COLUMN + _APART))
    column = (inner - (columns - 1) * px(_APART)) / columns
    listed = [part for part in parts if part.number]
    numbers = (n for n, entry in enumerate(entries) if entry.role == "lesson")
    heads, rows, y = list[tuple[Part, QRectF]](), list[tuple[int, QRectF]](), 0.0
    for first in range(0, len(listed), columns):
        beside = listed[first : first + columns]
        y += px(_GAP) * (first > 0)
        for k, part in enumerate(beside):
            x, at = left + k * (column + px(_APART)), top + y - scrolled
            heads.append((part, QRectF(x, at, column, px(_TITLE))))
            rows += [
                (next(numbers), QRectF(x, at + px(_TITLE + n * _ROW), column, px(_ROW)))
                for n in range(len(part.lessons))
            ]
        y += px(_TITLE + _ROW * max(len(part.lessons) for part in beside))
    seen = {n: rect.intersected(area) for n, rect in rows}
    way = QRectF(0, 0, min(px(210), 0.3 * inner), px(42))
    way.moveTo(left + inner - way.width(), press.center().y() - way.height() / 2)
    last = {len(entries) - 2: way, len(entries) - 1: search}
    found = {**dict(enumerate(cards)), **seen, **last}
    hits = tuple(EntryArea(entry, found[n]) for n, entry in enumerate(entries))
    return WelcomePlaces(
        style, hits, pictures, title, press, area, tuple(heads), tuple(rows), foot, y, words
    )  # fmt: skip


def neighbour(places: WelcomePlaces, number: int, across: int, down: int) -> int:
    """Return the nearest entry in a direction; the same where there is none.

    across, down: the direction: one of them 1 or −1, the other 0.
    """
    whole = {n: each.rect for n, each in enumerate(places.hits)} | dict(places.rows)
    here = whole[number].center()

    def far(n: int) -> float:
        way = whole[n].center() - here
        along = way.x() * across + way.y() * down
        aside = abs(way.x() * down) + abs(way.y() * across)
        return along + 3 * aside if along > 1 else float("inf")

    nearest = min(whole, key=far)
    return nearest if far(nearest) < float("inf") else number
