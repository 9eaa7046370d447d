"""The dock of pages: its words are those of the served run, and keys go through it."""

from dataclasses import replace

import pytest
from PySide6.QtCore import QRectF, Qt
from PySide6.QtTest import QTest

from simulator.base.assets import SCENARIOS
from simulator.lesson.tables import ChooseTable
from simulator.problem.paging import batch_tables
from simulator.problem.scenario import load_scenario, with_values
from simulator.problem.workload import resolve
from simulator.study.pages.by_hand import FIRST, CacheMove
from simulator.study.pages.pages import (
    paged_waste,
    served_in_pages,
    served_in_stretches,
    usual_server,
)
from simulator.study.pages.state import hand_state, pages_state, run_state
from tests.helpers.drawn_words import drawn_words
from ui.kit.boxes import scene
from ui.look.theme import DARK, Style
from ui.panels.pages.study import PAGES
from ui.panels.study_panel import whole

PANEL, DEMO, LAYOUT = "pages", "paged", "memory"


def press(panel, *names: str) -> None:
    for name in names:
        QTest.mouseClick(panel.buttons[name], Qt.MouseButton.LeftButton)


def click(panel, name: tuple[str, int]) -> None:
    at = panel.picture.scene.where(name).center().toPoint()
    QTest.mouseClick(panel.picture, Qt.MouseButton.LeftButton, pos=at)


def choose(panel, name: str, value: str) -> None:
    panel.bar.choose(name, value)
    panel.window().session.settle()


def take(panel, **chosen: str | int) -> None:
    panel.take_choices(ChooseTable(**chosen))
    panel.window().session.settle()


def test_arrow_keys_go_through_the_steps(panel) -> None:
    assert panel.state.step == 0
    panel.slider.setFocus()
    for _ in range(3):
        QTest.keyClick(panel.slider, Qt.Key.Key_Right)
    assert panel.state.step == 3
    moments = list(served_in_pages(usual_server(4)))
    assert panel.state.now == moments[3]
    taken = len(moments[3].taken) - len(moments[3].copied)
    words = panel.accessibleDescription()
    assert (f"{taken} page" if taken else "no page was taken") in words
    QTest.keyClick(panel.slider, Qt.Key.Key_End)
    slowest = max(len(moments), len(list(served_in_stretches(usual_server(4)))))
    assert panel.state.step == slowest - 1
    assert f"after {len(moments)} steps" in panel.accessibleDescription()


def test_choices_serve_the_same_requests_otherwise(panel) -> None:
    panel.slider.setValue(9)
    shared = panel.state.wastes[0]
    choose(panel, "prompts", "apart")
    apart = panel.state.wastes[0]
    assert (panel.state.sharing, apart.saved) == (False, 0)
    assert shared.saved > 0
    choose(panel, "page", "16")
    server = usual_server(16)
    ninth = list(served_in_pages(server, sharing=False))[9]
    assert panel.state.wastes[0] == paged_waste(server, ninth)
    assert panel.state.step == 9


@pytest.mark.long
def test_the_cache_of_the_run_has_the_sequences_of_its_batch(panel, open_window) -> None:
    take(panel, cache="run")
    alone = panel.state
    assert (alone.of_run, len(alone.now.running), alone.steps) == (True, 1, 1)
    assert not panel.slider.isVisible()
    window = open_window("batch", (1280, 720))
    window.docks.open("pages")
    window.session.settle()
    panel = window.docks.panel("pages")
    choose(panel, "cache", "run")
    w = window.session.trace.workload
    tables = batch_tables(w.scenario.batch.lengths, w.page_size, 0)
    assert [each.tokens for each in panel.state.now.running] == list(w.scenario.batch.lengths)
    for each, table in zip(panel.state.now.running, tables, strict=True):
        assert each.pages == tuple(table.used.tolist())
    choose(panel, "cache", "server")
    assert panel.slider.isVisible()
    assert not panel.state.of_run


def test_buttons_and_the_mouse_change_a_cache_by_hand(panel) -> None:
    assert not panel.buttons["grow"].isVisible()
    take(panel, cache="hand")
    assert panel.buttons["grow"].isVisible()
    assert not panel.slider.isVisible()
    assert not panel.buttons["undo"].isEnabled()
    press(panel, "fork", "grow")
    assert panel.state.now.copied
    assert "1 page copied, because others read it" in panel.accessibleDescription()
    click(panel, ("sequence", 1))
    assert panel.state.chosen == 1
    press(panel, "end")
    assert (len(panel.state.now.running), panel.state.chosen) == (1, 0)
    press(panel, "undo")
    assert len(panel.state.now.running) == 2
    press(panel, *["admit"] * 9)
    assert "too few free pages, so the new sequence waits" in panel.accessibleDescription()
    while not panel.state.now.preempted:
        press(panel, "grow")
    assert "No page was free, so the sequence that came last" in panel.accessibleDescription()
    press(panel, "reset")
    assert panel.state.made == FIRST
    press(panel, "end")
    assert not panel.state.now.running
    assert not any(panel.buttons[name].isEnabled() for name in ("grow", "fork", "end"))
    press(panel, "admit")
    choose(panel, "page", "8")
    assert (panel.state.made, panel.state.server.page) == (FIRST, 8)
    choose(panel, "cache", "server")
    assert not panel.buttons["grow"].isVisible()
    assert not panel.state.by_hand


@pytest.mark.long
def test_clicks_on_a_shared_page_go_round_its_readers(panel) -> None:
    choose(panel, "cache", "hand")
    press(panel, "fork", "admit")
    seen = []
    for _ in range(3):
        click(panel, ("place", 0))
        seen.append(panel.state.chosen)
    assert seen == [1, 0, 1]
    click(panel, ("place", 3))
    assert panel.state.chosen == 2


@pytest.mark.parametrize("size", [(460, 330), (1500, 1100)])
@pytest.mark.parametrize("cache", ["batch", "small", "hand", "server"])
def test_every_page_in_use_has_the_number_of_its_place(qapp, cache, size) -> None:
    batch = load_scenario(SCENARIOS / "batch.toml")
    if cache == "small":
        batch = with_values(batch, {"batch": {"lengths": [9, 3]}})
    server = pages_state(2, sharing=True)
    state = {
        "hand": hand_state(2, (*FIRST * 5, CacheMove("fork", 0), CacheMove("grow", 0)), 0),
        "server": replace(server, step=20),
    }.get(cache) or run_state(resolve(batch))
    rect = QRectF(0, 0, *size)
    placed = scene(whole(PAGES, state), Style(DARK), rect)
    drawn = drawn_words(placed.paint, rect)
    used, places = state.now.counts, state.server.places
    boxes = {place: placed.where(("place", place)) for place in used}
    inside = {
        n: [each.text for each in drawn if box.contains(each.ink.center())]
        for n, box in boxes.items()
    }
    numbered = [str(place) in inside[place] for place in used]
    none = (cache, size) == ("server", (460, 330))  # 64 places have no room for any number
    assert numbered == [not none] * len(numbered)
    said = next(each.text for each in drawn if each.text.startswith(f"{places} places"))
    assert any(len(each) > 1 for each in inside.values()) == ("sequence" in said)


def test_a_run_without_pages_leaves_the_server(open_window) -> None:
    window = open_window("flash2", (1280, 720))
    window.docks.open("pages")
    window.session.settle()
    panel = window.docks.panel("pages")
    choose(panel, "cache", "run")
    assert not panel.state.of_run
