"""Lessons written for tests: a front, steps, a lesson of them, and the numbers in a text."""

from simulator.lesson.expressions import fill
from simulator.lesson.reader import parse_lesson
from simulator.lesson.steps import Lesson
from simulator.problem.scenario import Scenario
from simulator.program.playback import Cursor, last_cursor
from simulator.study.captions import Numbers, program_of

FRONT = '+++\ntitle = "T"\nsummary = "S"\norder = 3\n+++\n'


def step(title: str, keys: str = "", caption: str = "Words.") -> str:
    return f"\n## {title}\n\n```toml step\n{keys}\n```\n\n{caption}\n"


def opened(*steps: str) -> Lesson:
    return parse_lesson(FRONT + "".join(steps), "a.md", layouts=("steps", "memory"))


def good(*steps: str) -> Lesson:
    lesson = opened(*steps)
    assert [str(mistake) for mistake in lesson.mistakes] == []
    return lesson


def computed(expression: str, where: Scenario | Numbers, cursor: Cursor | None = None) -> float:
    """Return an expression with all its digits, at the end of a run unless a cursor is given."""
    if isinstance(where, Scenario):
        where = Numbers(where, cursor or last_cursor(program_of(where)))
    written = {"number": lambda value, _: repr(float(value))}
    return float(fill(f"{{{{ {expression} | number }}}}", where, written))
