"""Few lessons and steps that show all that lessons show, and steps with their numbers."""

from functools import cache

from simulator.base.assets import LESSONS
from simulator.lesson.reader import Lesson, load_lesson, resolve_step
from simulator.lesson.steps import ResolvedStep
from ui.look.layouts import LAYOUT_PANELS
from ui.look.lesson_text import FORMATS


@cache
def shipped_lessons() -> dict[str, Lesson]:
    """Return the lessons that ship, by the name of their file."""
    return {file.stem: load_lesson(file, LAYOUT_PANELS) for file in sorted(LESSONS.glob("*.md"))}


@cache
def shipped_step(stem: str, number: int) -> ResolvedStep:
    """Return a step with its numbers, computed once for all tests of a process."""
    return resolve_step(shipped_lessons()[stem], number, FORMATS)


def shipped_steps() -> dict[tuple[str, int], ResolvedStep]:
    """Return all steps of all lessons, by lesson and number."""
    lessons = shipped_lessons().items()
    return {(stem, n): shipped_step(stem, n) for stem, of in lessons for n in range(len(of.steps))}


def some_lessons(*known: str) -> list[str]:
    """Return few lessons that show every panel of every layout, beside those that are known."""
    lessons = shipped_lessons()
    shows = {stem: {(step.layout, step.panel) for step in of.steps} for stem, of in lessons.items()}
    seen = {place for stem in known for place in shows[stem]}
    found: list[str] = []
    while missing := {stem: shown - seen for stem, shown in shows.items() if shown - seen}:
        found.append(max(missing, key=lambda stem: len(missing[stem]) / len(lessons[stem].steps)))
        seen |= shows[found[-1]]
    return found


def some_steps(*known: str, each: int = 1) -> dict[str, list[int]]:
    """Return of each of those lessons the steps that are the first to show a panel in a layout.

    each: which steps are looked at: every one, every other one.
    """
    lessons, found = shipped_lessons(), {}
    seen = {(step.layout, step.panel) for stem in known for step in lessons[stem].steps}
    for stem in some_lessons(*known):
        found[stem] = []
        for number, step in [*enumerate(lessons[stem].steps)][::each]:
            if (step.layout, step.panel) not in seen:
                seen.add((step.layout, step.panel))
                found[stem].append(number)
    return {stem: numbers for stem, numbers in found.items() if numbers}
