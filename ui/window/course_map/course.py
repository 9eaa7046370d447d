"""The contents of the course's map: parts, lessons, paths, and the lessons that have been seen."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from simulator.lesson.course import CoursePath, LessonNeed, course_paths, needs_of, parts
from simulator.lesson.steps import LessonTitle, Part
from ui.look.units import plural


@dataclass(frozen=True, slots=True)
class Course:
    """The contents of the map."""

    parts: tuple[Part, ...]
    lessons: tuple[LessonTitle, ...]
    paths: tuple[CoursePath, ...]
    chosen: int = 0  # number of the chosen path
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
        """Return the needs of a lesson."""
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
    """Return in words the lessons that a lesson itself needs."""
    names = [need.lesson.title for need in needs if need.depth == 1]
    return f"needs {' and '.join(names)}" if names else ""


def course_now(chosen: str = "", done: Collection[str] = ()) -> Course:
    """Return the course with the path of a name, or the first."""
    four = tuple(part for part in parts() if part.number)
    lessons = tuple(lesson for part in four for lesson in part.lessons)
    paths = course_paths(lessons)
    number = next((n for n, path in enumerate(paths) if path.name == chosen), 0)
    return Course(four, lessons, paths, number, frozenset(done))
