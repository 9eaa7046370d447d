"""The course: its lessons by part, what each one needs, and the paths through them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from simulator.base.assets import LESSONS
from simulator.base.errors import InputError, refuse
from simulator.lesson.front import HEADING, PARTS, front_matter, read_text
from simulator.lesson.steps import LessonTitle, Part

PATHS = {
    "linear algebra": ("Linear algebra only", "no GPU, no training"),
    "ML engineer": ("ML engineer", "models and servers"),
    "CUDA engineer": ("CUDA engineer", "tiles, SRAM, schedules"),
}
"""Title of each path, and what it is about."""
BESIDE = "For lecturers"
"""The title above lessons that belong to no part of the course."""


def list_lessons(folder: Path = LESSONS) -> tuple[LessonTitle, ...]:
    """Return the lessons of a folder by order, then by title; only titles of steps are read."""
    found = []
    for path in folder.glob("*.md"):
        try:
            lines = read_text(path).split("\n")
        except InputError:
            continue  # the error is told when the lesson is opened
        front, begin, _ = front_matter(lines, str(path))
        steps = [line[len(HEADING) :].strip() for line in lines[begin:] if line.startswith(HEADING)]
        title = front.title or path.stem
        found.append(
            LessonTitle(
                path, title, front.summary, front.order, tuple(steps), front.part or 0,
                front.minutes or 0, front.level or "", front.needs, front.paths, front.brings,
                front.ahead,
            )
        )  # fmt: skip
    return tuple(sorted(found, key=lambda lesson: (lesson.order, lesson.title)))


def course() -> tuple[LessonTitle, ...]:
    """Return the lessons of the course, part by part: Tilescope's lessons that have a part."""
    return tuple(lesson for lesson in list_lessons() if lesson.part)


def parts() -> tuple[Part, ...]:
    """Return Tilescope's lessons by part, then those that stand beside the course."""
    lessons = list_lessons()
    titles = enumerate((*PARTS, BESIDE), start=1)
    found = [(number % (len(PARTS) + 1), title) for number, title in titles]
    return tuple(
        Part(number, title, tuple(each for each in lessons if each.part == number))
        for number, title in found
    )


def lesson_after(path: Path) -> LessonTitle | None:
    """Return the lesson of the course after another; None if there is no such lesson."""
    return {here.path: after for here, after in pairwise(course())}.get(path)


def lesson_before(path: Path) -> LessonTitle | None:
    """Return the lesson of the course before another; None if there is no such lesson."""
    return {here.path: before for before, here in pairwise(course())}.get(path)


def find_lesson(name: str, folder: Path = LESSONS) -> Path:
    """Return the file of a lesson.

    name: a ``.md`` file, or a lesson of `folder` by its name, with its number or without.
    """
    if name.lower().endswith(".md"):
        return Path(name)
    found = {path.stem: path for path in sorted(folder.glob("*.md"))}
    known = {**{stem.lstrip("0123456789-"): path for stem, path in found.items()}, **found}
    if name not in known:
        raise refuse("lesson", "", name, f"a .md file or one of {', '.join(found)}")
    return known[name]


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
        """Return the first lesson not in `done` (stems of files) whose needs here are done."""
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
    depth: int  # 1: the lesson needs this one itself; 2: a needed lesson does; and so on


def needs_of(lesson: LessonTitle, lessons: Collection[LessonTitle]) -> tuple[LessonNeed, ...]:
    """Return all lessons that a lesson needs, each once, after the lesson that needs it."""
    by_name = {each.name: each for each in lessons}
    found: dict[str, LessonNeed] = {}

    def add(of: LessonTitle, depth: int) -> None:
        for name in of.needs:
            if name in by_name and name not in found and name != lesson.name:
                found[name] = LessonNeed(by_name[name], depth)
                add(by_name[name], depth + 1)

    add(lesson, 1)
    return tuple(found.values())
