"""The rail: nine names at first sight, each with its digit, and every panel two actions away."""

import itertools

import pytest
from PySide6.QtCore import QByteArray, Qt
from PySide6.QtWidgets import QTabBar

from simulator.base.assets import LESSONS
from ui.look.layouts import LAYOUTS
from ui.safety.settings import Settings
from ui.window.panel_specs import GROUPED, GROUPS, PANELS
from ui.window.search.dialog import SearchDialog

DEMO = "causal"
SIZE = (1280, 720)

SIZES = {(1280, 720): (56, 346), (1920, 1080): (124, 503), (3840, 2160): (248, 1006)}


def in_sight(window) -> set[str]:
    return {spec.name for spec, dock in window.docks if not dock.visibleRegion().isEmpty()}


def ticked(window) -> set[str]:
    return {name for name, action in window.rail.actions_of.items() if action.isChecked()}


def press(window, qtbot, key) -> None:
    qtbot.keyClick(window, str(key))
    qtbot.wait(0)
    window.session.settle()


def click(window, qtbot, number) -> None:
    qtbot.mouseClick(window.rail.rows[number], Qt.MouseButton.LeftButton)
    qtbot.wait(0)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_nine_names_are_seen_at_first_sight(open_window, qtbot, size):
    window = open_window("causal", size)
    qtbot.wait(0)
    rows = window.rail.rows
    assert [row.text() for row in rows] == [*(group.title for group in GROUPS), "More …"]
    assert len(GROUPS) == 9
    assert (window.rail.width(), window.docks["softmax"].width()) == SIZES[size]
    for above, below in itertools.pairwise(rows):
        assert above.geometry().bottom() < below.geometry().top()
    assert not rows[-1].visibleRegion().isEmpty()
    assert rows[-1].geometry().bottom() < window.rail.height()
    body = window.width() - window.rail.width()
    assert window.board.width() >= 0.65 * body


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("layout", ["steps", "memory", "exactness", "layer"])
def test_a_digit_brings_its_group_to_the_front_and_closes_it_only_there(window, qtbot, layout):
    for number, group in enumerate(GROUPS, start=1):
        window.desk.take(layout)
        window.desk.reset()
        qtbot.wait(0)
        if group.board and not window.board.isVisible():
            press(window, qtbot, number)
            assert window.board.isVisible()
            continue
        for times in range(3):
            shown = bool(in_sight(window) & set(group.panels))
            press(window, qtbot, number)
            front = in_sight(window) & set(group.panels)
            assert bool(front) is not shown, (group.name, times)
            assert (group.name in ticked(window)) is bool(front)
            opened = {name for name in group.panels if not window.docks[name].isHidden()}
            assert opened == (set(group.panels) if front else set())


def test_panels_of_a_group_are_tabs_of_one_place_and_the_last_one_comes_back(open_window, qtbot):
    window = open_window("causal", (1920, 1080))
    press(window, qtbot, 7)
    docks = window.docks
    assert in_sight(window) & set(GROUPS[6].panels) == {"cache"}
    tabs = window.tabifiedDockWidgets(docks["cache"])
    assert {"heads", "generation", "latent", "pages"} <= {dock.objectName() for dock in tabs}
    assert window.board.width() >= 0.65 * (window.width() - window.rail.width()) - 8
    bar = next(
        bar
        for bar in window.findChildren(QTabBar)
        if any(bar.tabText(n) == "Pages" for n in range(bar.count()))
    )
    bar.setCurrentIndex([bar.tabText(n) for n in range(bar.count())].index("Pages"))
    qtbot.wait(0)
    for key in (7, 7, 3, 7):
        press(window, qtbot, key)
    assert "pages" in in_sight(window)


@pytest.mark.long
def test_every_panel_is_two_actions_away(window, qtbot):
    """A group and its tab, or More and the name there."""
    click(window, qtbot, 9)
    box = window.findChild(SearchDialog)
    offered = [entry.name for entry in box.model.shown]
    assert set(offered) == {spec.name for spec in PANELS}
    others = [spec.name for spec in PANELS if spec.name not in GROUPED]
    assert set(offered[: len(others)]) == set(others)  # what no group has comes first
    for name in others:
        box.list.setCurrentIndex(box.model.index(offered.index(name)))
        box.take(stay=True)
        qtbot.wait(0)
        assert name in in_sight(window)
    box.reject()


def test_letters_of_panels_are_free(window, qtbot):
    before = in_sight(window)
    for letter in "UYFVKHIJDLGNROCQZ0":
        press(window, qtbot, letter)
        assert in_sight(window) == before, letter


def test_a_click_does_what_the_digit_does(open_window, qtbot):
    window = open_window("causal", (1920, 1080))
    click(window, qtbot, 3)
    assert "code" in in_sight(window)
    click(window, qtbot, 3)
    assert "code" not in in_sight(window)


@pytest.mark.long
def test_an_arrangement_that_was_left_without_the_rail_comes_back(
    open_window, qtbot, tmp_path, hooked
):
    """Also with docks of other names, and with what is no arrangement at all."""
    window = open_window("causal", (1280, 720))
    window.removeToolBar(window.rail)
    window.docks["code"].show()
    state = window.saveState()
    settings = Settings(tmp_path / "settings.ini")
    for layout in LAYOUTS:
        settings.save_state(layout.name, state)
    settings.save_state("memory", QByteArray(b"no arrangement"))
    again = open_window("causal", (1280, 720))
    for layout in LAYOUTS:
        again.desk.take(layout.name)
        qtbot.wait(0)
        assert again.rail.isVisible()
        assert again.rail.rows[0].isVisible()
    assert hooked == []


@pytest.mark.long
def test_the_rail_leaves_the_stage_and_comes_back(open_window, qtbot):
    window = open_window("flash2", (1280, 720))
    window.set_stage(True)
    qtbot.wait(0)
    assert window.rail.width() <= 1
    window.set_stage(False)
    qtbot.wait(0)
    assert window.rail.width() == 56


@pytest.mark.long
def test_panels_that_a_lesson_opens_are_ticked(open_window, qtbot):
    window = open_window("flash2", (1280, 720))
    window.lessons.open(LESSONS / "05-online-softmax.md", 1)
    window.session.settle()
    qtbot.wait(0)
    assert "softmax" in in_sight(window)
    assert "softmax" in ticked(window)
