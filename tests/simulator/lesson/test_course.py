"""The map of the course: needs, paths, and what comes next on a path."""

from itertools import pairwise
from pathlib import Path

import pytest

from simulator.lesson.course import CoursePath, course_paths, needs_of
from simulator.lesson.reader import course
from simulator.lesson.steps import LessonTitle

COURSE = course()


def lesson(name: str, *needs: str) -> LessonTitle:
    return LessonTitle(Path(f"{name}.md"), name, "", 0, (), 1, 5, "", needs)


@pytest.mark.parametrize("one", COURSE, ids=lambda each: each.name)
def test_what_a_lesson_needs_comes_before_it(one: LessonTitle) -> None:
    names = [each.name for each in COURSE]
    before = names[: names.index(one.name)]
    assert {*one.needs} <= {*before}
    assert bool(one.needs) == bool(before), "all but the first say what they need"


def test_paths_are_those_of_three_readers() -> None:
    algebra, ml, cuda = course_paths()
    assert [len(path.lessons) for path in (algebra, ml, cuda)] >= [12, 16, 8]
    assert {each.level for each in algebra.lessons} == {"linear algebra"}
    assert {each.part for each in cuda.lessons} >= {2}
    for path in (algebra, ml, cuda):
        places = [COURSE.index(each) for each in path.lessons]
        assert all(a < b for a, b in pairwise(places))
        assert path.minutes == sum(each.minutes for each in path.lessons)


def test_the_next_lesson_of_a_path_has_what_it_needs_on_the_path() -> None:
    a, b, c = lesson("a", "elsewhere"), lesson("b", "a"), lesson("c")
    path = CoursePath("x", "X", "", (a, b, c))
    assert path.next_lesson(()) == a
    assert path.next_lesson(("a",)) == b
    assert path.next_lesson(("a", "b")) == c
    assert CoursePath("x", "X", "", (b, a)).next_lesson(()) == a
    assert path.next_lesson(("a", "b", "c")) is None


def test_needs_are_found_through_each_other_and_once() -> None:
    a, b, c = lesson("a"), lesson("b", "a"), lesson("c", "b", "a")
    found = needs_of(c, (a, b, c))
    assert [(need.depth, need.lesson.name) for need in found] == [(1, "b"), (2, "a")]
    assert not needs_of(a, (a, b, c))
