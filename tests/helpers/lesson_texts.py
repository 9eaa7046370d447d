"""Lessons written for tests: a front, steps, and a lesson of them."""

from simulator.lesson.reader import parse_lesson
from simulator.lesson.steps import Lesson

FRONT = '+++\ntitle = "T"\nsummary = "S"\norder = 3\n+++\n'


def step(title: str, keys: str = "", caption: str = "Words.") -> str:
    return f"\n## {title}\n\n```toml step\n{keys}\n```\n\n{caption}\n"


def opened(*steps: str) -> Lesson:
    return parse_lesson(FRONT + "".join(steps), "a.md", layouts=("steps", "memory"))


def good(*steps: str) -> Lesson:
    lesson = opened(*steps)
    assert [str(mistake) for mistake in lesson.mistakes] == []
    return lesson
