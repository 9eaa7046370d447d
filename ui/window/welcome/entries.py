"""The entries of the first page: one table for hand, keys, tips and screen readers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from simulator.lesson.course import find_lesson, lesson_after
from simulator.lesson.steps import LessonTitle, Part
from ui.look.units import plural
from ui.window.cover_scene import dots_of

MINUTE, TALK = "minute", "talk"
"""Pictures that show no step of a lesson."""
PictureName = str | tuple[Path, int]
"""A picture by its name, or by its lesson and step, from 0."""


@dataclass(frozen=True, slots=True)
class PageEntry:
    """One entry that can be opened."""

    role: str  # ``card``, ``lesson``, or the action ``course_map`` or ``search``
    title: str
    words: str = ""  # the entry's topic, in one line
    path: Path | None = None  # the lesson; None: the entry is an action
    step: int = 0  # the step that is opened, from 0
    minutes: int = 0
    level: str = ""
    key: str = ""  # the key that chooses the entry
    done: bool = False  # whether all its steps have been seen
    picture: PictureName = ""

    @property
    def dots(self) -> int:
        """How many dots its level has; 0 where it has none."""
        return dots_of(self.level)

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
        """The effect of a press, and the keys for it."""
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
    """Return the entries, in the order in which Tab goes through them.

    place: the lesson and step that were seen last.
    done: names of the files of lessons whose steps have all been seen.
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
    """Return the card of the lesson that was left, or of the next lesson if that one is done."""
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
