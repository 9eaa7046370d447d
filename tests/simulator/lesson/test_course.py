"""The map of the course: needs, paths, and what comes next on a path."""

import re
from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtCore import QRectF

from simulator.base.glossary import glossary, mentions
from simulator.lesson.course import CoursePath, course, course_paths, needs_of
from simulator.lesson.reader import load_lesson
from simulator.lesson.steps import LessonTitle, Step
from simulator.study.captions import program_of
from ui.board.layout import board_layout
from ui.look.layouts import LAYOUT_PANELS, layout_named
from ui.look.theme import DARK, Style

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


# --- what the map says comes later --------------------------------------------------------------

WORDS = {word.name for word in glossary()}
PANEL = "panel:"


def texts(step: Step) -> str:
    """Return all that a student reads in a step, without its numbers."""
    said = step.said
    asked = getattr(said, "predict", None)
    parts = (step.title, step.caption, said.question, said.answer, getattr(asked, "ask", ""))
    return re.sub(r"\{\{.*?\}\}", "0", "\n".join(parts))


def panels(step: Step) -> set[str]:
    """Return the panels that a step shows."""
    layout = layout_named(step.layout)
    front = {step.panel if step.panel in place else place[0] for place in layout.right}
    return front | {*layout.bottom}


def used(step: Step, ideas: Collection[str]) -> set[str]:
    """Return the words, panels and ideas that a step uses."""
    text = texts(step)
    words = {mention.word.name for mention in mentions(text)}
    spoken = {idea for idea in ideas if re.search(rf"(?<!\w){re.escape(idea)}(?!\w)", text)}
    return words | spoken | {PANEL + name for name in panels(step)}


def brought(upto: LessonTitle) -> set[str]:
    """Return what a lesson and those before it bring."""
    lessons = COURSE[: COURSE.index(upto) + 1]
    return {name for each in lessons for name in each.brings}


IDEAS = {name for each in COURSE for name in each.brings if name not in WORDS} - {
    name for each in COURSE for name in each.brings if name.startswith(PANEL)
}


def test_each_word_is_brought_once_and_is_one() -> None:
    names = [name for each in COURSE for name in each.brings]
    assert len(names) == len({*names})
    known = {panel for panels in LAYOUT_PANELS.values() for panel in panels}
    found = {name.removeprefix(PANEL) for name in names if name.startswith(PANEL)}
    assert found <= known
    assert len(IDEAS) < 20, "a word that many lessons use belongs in the glossary"


@pytest.mark.parametrize("one", [each for each in COURSE if not each.ahead], ids=lambda e: e.name)
def test_no_lesson_uses_what_the_map_says_comes_later(one: LessonTitle) -> None:
    """What a lesson uses for the first time stands in its front matter, under ``brings``."""
    lesson, known = load_lesson(one.path), brought(one)
    for step in lesson.steps:
        new = used(step, IDEAS) - known
        assert not new, f"{step.title}: {', '.join(sorted(new))}: come later, or are brought here"


def test_a_word_that_comes_later_is_found() -> None:
    first, known = load_lesson(COURSE[0].path).steps[0], brought(COURSE[0])
    assert "HBM" in used(replace(first, caption="Read from HBM."), ()) - known
    assert "panel:memory" in used(replace(first, layout="steps"), ()) - known
    assert r"\alpha" in used(replace(first, caption=r"times $\alpha$"), IDEAS) - known


def test_only_a_trailer_and_claims_look_ahead() -> None:
    ahead = [each.name for each in COURSE if each.ahead]
    assert [name for name in ahead if "claims" not in name] == ["one-minute"]


@pytest.mark.parametrize(
    "one", [each for each in COURSE if each.part == 1], ids=lambda each: each.name
)
def test_boards_of_part_i_have_what_its_algorithm_needs_alone(one: LessonTitle) -> None:
    for step in load_lesson(one.path).steps:
        w = program_of(step.scenario).workload
        if layout_named(step.layout).board:
            found = board_layout(w, Style(DARK), QRectF(0, 0, 1000, 700)).boxes
            assert {*found} == {"Q", "K", "V", "S", "O"}
