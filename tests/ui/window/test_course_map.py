"""The map of the course: where things are, its keys, what it opens, and what it remembers."""

from itertools import combinations

import pytest
from PySide6.QtCore import QRectF, QSizeF, Qt
from PySide6.QtTest import QTest

from simulator.base.assets import LESSONS
from ui.look.theme import DARK, Style, growth
from ui.window.course_map.course import course_now
from ui.window.course_map.page import CoursePage
from ui.window.course_map.scene import PathSpot, map_scene
from ui.window.cover import in_sight, show_welcome
from ui.window.cover_scene import CoverScene
from ui.window.main_window import MainWindow

pytestmark = pytest.mark.usefixtures("qapp")
Key = Qt.Key
SIZES = ((1280, 696), (1536, 840), (1920, 1056), (3840, 2136), (1024, 700))
COURSE = course_now()


def places(size: tuple[int, int], text: float = 1.0, scrolled: float = 0.0) -> CoverScene:
    style = Style(DARK, text * growth(*size))
    return map_scene(COURSE, style, QSizeF(*size)).moved(scrolled)


def paths(found: CoverScene) -> list[QRectF]:
    return [rect for box, rect in found.frame.placed if isinstance(box.id, PathSpot)]


def number_of(name: str) -> int:
    return [lesson.name for lesson in COURSE.lessons].index(name)


@pytest.fixture
def page(open_window, settings) -> CoursePage:
    settings.add_lesson_done("01-soft-lookup")
    window: MainWindow = open_window("flash2", (1280, 720))
    window.actions_by_name["course_map"].trigger()
    assert isinstance(window.cover, CoursePage)
    return window.cover


@pytest.mark.sweep(keep=3)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("text", [1.0, 1.5])
def test_nothing_overlaps_and_every_row_comes_into_sight(size, text):
    found = places(size, text)
    seen = [row.intersected(found.area) for row in found.rows.values()]
    assert [len(paths(found)), len(seen)] == [3, len(COURSE.lessons)]
    for one, other in combinations([*paths(found), *(row for row in seen if row.isValid())], 2):
        shared = one.intersected(other)
        assert shared.width() * shared.height() < 1
    assert max(path.bottom() for path in paths(found)) <= found.area.top()
    assert found.area.bottom() < size[1]
    for number in found.rows:
        scrolled = in_sight(found, number, 0.0)
        row = places(size, text, scrolled).rows[number]
        assert row.top() >= found.area.top() - 1
        assert row.bottom() <= found.area.bottom() + 1


def test_at_1920_by_1080_nothing_is_scrolled_and_small_windows_have_two_columns():
    assert places((1920, 1056)).most == 0
    assert len({row.x() for row in places((1920, 1056)).rows.values()}) == 4
    assert len({row.x() for row in places((1280, 696)).rows.values()}) == 2


@pytest.mark.parametrize("size", SIZES)
def test_arrows_reach_every_lesson(size):
    found = places(size)
    seen, waiting = {0}, [0]
    while waiting:
        here = waiting.pop()
        for way in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            there = found.neighbour(here, *way)
            if there not in seen:
                seen.add(there)
                waiting.append(there)
    assert seen == set(range(len(COURSE.lessons)))


def test_it_begins_at_the_next_lesson_of_the_path(page):
    assert COURSE.lessons[page.focused].name == "whole-layer"
    said = page.accessibleDescription()
    assert said.startswith("One token through a layer, ")
    assert "next on the path" in said
    assert said.endswith("needs Soft lookup")


def test_tab_takes_the_next_path_and_the_window_remembers_it(page, settings):
    QTest.keyClick(page, Key.Key_Tab)
    assert page.course.path.title == "ML engineer"
    assert page.course.lessons[page.focused].name == "one-minute"
    assert settings.course_path == "ML engineer"
    assert course_now(settings.course_path).path.title == "ML engineer"
    QTest.keyClick(page, Key.Key_Backtab)
    assert page.course.chosen == 0


@pytest.mark.long
def test_arrows_move_and_enter_opens(page):
    window = page.window()
    QTest.keyClick(page, Key.Key_Down)
    QTest.keyClick(page, Key.Key_Return)
    window.session.settle()
    assert window.lessons.player.path == LESSONS / "02-why-sqrt-d.md"
    assert window.cover is None


def test_a_click_opens_a_lesson_and_chooses_a_path(page):
    window = page.window()
    at = paths(page.places)[2].center().toPoint()
    QTest.mouseClick(page, Qt.MouseButton.LeftButton, pos=at)
    assert page.course.path.title == "CUDA engineer"
    number = number_of("online-softmax")
    assert page.focused == number
    before = page.grab().toImage()
    page.choose(number_of("causal-mask"))
    assert page.grab().toImage() != before, "what it needs is lit"
    row = page.places.rows[number_of("causal-mask")].center().toPoint()
    QTest.mouseClick(page, Qt.MouseButton.LeftButton, pos=row)
    window.session.settle()
    assert window.lessons.player.path == LESSONS / "03-causal-mask.md"


def test_escape_goes_back_and_the_first_page_has_a_way_to_it(page):
    window = page.window()
    QTest.keyClick(page, Key.Key_Escape)
    assert window.cover is None
    show_welcome(window)
    QTest.keyClick(window.cover, Key.Key_4)
    QTest.keyClick(window.cover, Key.Key_Right)
    assert isinstance(window.cover, CoursePage)
