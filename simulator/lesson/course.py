"""The map of the course: what a lesson needs, and the paths through it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from simulator.lesson.reader import course
from simulator.lesson.steps import LessonTitle

PATHS = {
    "linear algebra": ("Linear algebra only", "no GPU, no training"),
    "ML engineer": ("ML engineer", "models and servers"),
    "CUDA engineer": ("CUDA engineer", "tiles, SRAM, schedules"),
}
"""Title of each path, and what it is about."""


@dataclass(frozen=True, slots=True)
class CoursePath:
    """A way through the course for one kind of reader."""

    name: str  # in the front matter of lessons
    title: str
    about: str
    lessons: tuple[LessonTitle, ...]

    @property
    def minutes(self) -> int:
        """How long its lessons take together."""
        return sum(lesson.minutes for lesson in self.lessons)

    def next_lesson(self, done: Collection[str]) -> LessonTitle | None:
        """Return the first lesson that is not done and whose needs on this path are.

        done: stems of the files of lessons that were seen to their end.
        """
        open_ = {lesson.name for lesson in self.lessons if lesson.path.stem not in done}
        return next(
            (each for each in self.lessons if each.name in open_ and not open_ & {*each.needs}),
            None,
        )


def course_paths(lessons: Collection[LessonTitle] | None = None) -> tuple[CoursePath, ...]:
    """Return the paths through the course."""
    found = course() if lessons is None else lessons
    return tuple(
        CoursePath(name, title, about, tuple(each for each in found if name in each.paths))
        for name, (title, about) in PATHS.items()
    )


@dataclass(frozen=True, slots=True)
class LessonNeed:
    """A lesson that another one needs."""

    lesson: LessonTitle
    depth: int  # 1: it is needed itself; 2: by one that is; and so on


def needs_of(lesson: LessonTitle, lessons: Collection[LessonTitle]) -> tuple[LessonNeed, ...]:
    """Return all that a lesson needs, each once, after the lesson that needs it."""
    by_name = {each.name: each for each in lessons}
    found: dict[str, LessonNeed] = {}

    def add(of: LessonTitle, depth: int) -> None:
        for name in of.needs:
            if name in by_name and name not in found and name != lesson.name:
                found[name] = LessonNeed(by_name[name], depth)
                add(by_name[name], depth + 1)

    add(lesson, 1)
    return tuple(found.values())
