"""The dock of pages: its words are those of the served run, and keys go through it."""

from dataclasses import replace
from itertools import product

import pytest
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from simulator.base.assets import SCENARIOS
from simulator.lesson.tables import ChooseTable
from simulator.problem.paging import batch_tables
from simulator.problem.scenario import load_scenario, with_values
from simulator.problem.workload import resolve
from simulator.study.serving.by_hand import FIRST, CacheMove
from simulator.study.serving.pages import (
    paged_waste,
    served_in_pages,
    served_in_stretches,
    usual_server,
)
from simulator.study.serving.state import hand_state, pages_state, run_state
from tests.ui.panels.test_memory import assert_tidy, painted, record_texts
from ui.look.names import fitting, readable
from ui.look.theme import DARK, THEMES, Style
from ui.panels.pages import painter
from ui.panels.pages.painter import paint_pages
from ui.panels.pages.words import stretches


@pytest.fixture
def panel(open_window):
    window = open_window("paged", (1280, 720))
    window.desk.take("memory")
    window.docks.open("pages")
    QApplication.processEvents()
    window.session.settle()
    return window.docks.panel("pages")


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
    panel.bar.choose("prompts", "apart")
    apart = panel.state.wastes[0]
    assert (panel.state.sharing, apart.saved) == (False, 0)
    assert shared.saved > 0
    panel.bar.choose("page", "16")
    server = usual_server(16)
    ninth = list(served_in_pages(server, sharing=False))[9]
    assert panel.state.wastes[0] == paged_waste(server, ninth)
    assert panel.state.step == 9


def test_a_lesson_chooses_page_prompts_and_step(panel) -> None:
    panel.take_choices(ChooseTable(page=8, prompts="apart", step=5))
    state = panel.state
    assert (state.server.page, state.sharing, state.step) == (8, False, 5)
    panel.take_choices(ChooseTable())
    assert (panel.state.server.page, panel.state.sharing, panel.state.step) == (4, True, 0)


def test_the_cache_of_the_run_has_the_sequences_of_its_batch(panel, open_window) -> None:
    panel.take_choices(ChooseTable(cache="run"))
    alone = panel.state
    assert (alone.of_run, len(alone.now.running), alone.steps) == (True, 1, 1)
    assert not panel.slider.isVisible()
    window = open_window("batch", (1280, 720))
    window.docks.open("pages")
    window.session.settle()
    panel = window.docks.panel("pages")
    panel.bar.choose("cache", "run")
    w = window.session.trace.workload
    tables = batch_tables(w.scenario.batch.lengths, w.page_size, 0)
    assert [each.tokens for each in panel.state.now.running] == list(w.scenario.batch.lengths)
    for each, table in zip(panel.state.now.running, tables, strict=True):
        assert each.pages == tuple(table.used.tolist())
    panel.bar.choose("cache", "server")
    assert panel.slider.isVisible()
    assert not panel.state.of_run


def test_buttons_and_the_mouse_change_a_cache_by_hand(panel) -> None:
    def press(*names: str) -> None:
        for name in names:
            QTest.mouseClick(panel.buttons[name], Qt.MouseButton.LeftButton)

    assert not panel.buttons["grow"].isVisible()
    panel.take_choices(ChooseTable(cache="hand"))
    assert panel.buttons["grow"].isVisible()
    assert not panel.slider.isVisible()
    assert not panel.buttons["undo"].isEnabled()
    press("fork", "grow")
    assert panel.state.now.copied
    assert "1 page copied, because others read it" in panel.accessibleDescription()
    rect = QRectF(panel.picture.rect())
    style = readable(fitting(panel.picture.style_now, rect, painter.MIN_SIZE))
    tables = painter.pages_layout(panel.state, style, rect).tables
    row = tables.topLeft() + QPointF(style.px(30), style.px(1.5 * 16))
    QTest.mouseClick(panel.picture, Qt.MouseButton.LeftButton, pos=row.toPoint())
    assert panel.state.chosen == 1
    press("end")
    assert (len(panel.state.now.running), panel.state.chosen) == (1, 0)
    press("undo")
    assert len(panel.state.now.running) == 2
    press(*["admit"] * 9)
    assert "too few free pages, so the new sequence waits" in panel.accessibleDescription()
    while not panel.state.now.preempted:
        press("grow")
    assert "No page was free, so the sequence that came last" in panel.accessibleDescription()
    press("reset")
    assert panel.moves == FIRST
    press("end")
    assert not panel.state.now.running
    assert not any(panel.buttons[name].isEnabled() for name in ("grow", "fork", "end"))
    press("admit")
    panel.bar.choose("page", "8")
    assert (panel.moves, panel.state.server.page) == (FIRST, 8)
    panel.bar.choose("cache", "server")
    assert not panel.buttons["grow"].isVisible()
    assert not panel.state.by_hand


def test_clicks_on_a_shared_page_go_round_its_readers(panel) -> None:
    panel.bar.choose("cache", "hand")
    panel.move_by_hand("fork")
    panel.move_by_hand("admit")
    rect, style = QRectF(panel.picture.rect()), panel.picture.style_now
    lay = painter.pages_layout(panel.state, style, rect)
    seen = []
    for _ in range(3):
        at = lay.places[0].center().toPoint()
        QTest.mouseClick(panel.picture, Qt.MouseButton.LeftButton, pos=at)
        seen.append(panel.state.chosen)
    assert seen == [1, 0, 1]
    at = lay.places[3].center().toPoint()
    QTest.mouseClick(panel.picture, Qt.MouseButton.LeftButton, pos=at)
    assert panel.state.chosen == 2


def test_words_by_hand_stand_apart_and_are_whole(monkeypatch, qapp) -> None:
    drawn = record_texts(monkeypatch, painter)
    moves = (*FIRST, CacheMove("fork", 0), *FIRST * 9, *(CacheMove("grow", 0),) * 14)
    for page, size in product((2, 4, 16), ((460, 330), (640, 460), (1500, 1100))):
        for count in (1, 3, 11, len(moves)):
            state, rect = hand_state(page, moves[:count], 0), QRectF(0, 0, *size)
            drawn.clear()
            painted(lambda p, s=state, r=rect: paint_pages(p, s, Style(DARK), r), *size)
            assert len(drawn) >= 10
            assert_tidy(drawn, rect)


def test_one_fits_and_several_fit() -> None:
    one, two = hand_state(4, FIRST, 0), hand_state(4, (*FIRST, CacheMove("fork", 0)), 0)
    assert stretches(one)[0].endswith("32 slots: 1 fits, 0 would wait")
    assert stretches(two)[0].endswith("32 slots: 2 fit, 0 would wait")


@pytest.mark.parametrize("size", [(460, 330), (625, 290), (640, 460), (1500, 1100)])
@pytest.mark.parametrize("cache", ["batch", "small", "hand", "server"])
def test_every_page_in_use_has_the_number_of_its_place(monkeypatch, qapp, cache, size) -> None:
    batch = load_scenario(SCENARIOS / "batch.toml")
    if cache == "small":
        batch = with_values(batch, {"batch": {"lengths": [9, 3]}})
    server = pages_state(2, sharing=True)
    state = {
        "hand": hand_state(2, (*FIRST * 5, CacheMove("fork", 0), CacheMove("grow", 0)), 0),
        "server": replace(server, step=20),
    }.get(cache) or run_state(resolve(batch))
    drawn = record_texts(monkeypatch, painter)
    rect = QRectF(0, 0, *size)
    painted(lambda p: paint_pages(p, state, Style(DARK), rect), *size)
    assert_tidy(drawn, rect)
    style = readable(fitting(Style(DARK), rect, painter.MIN_SIZE))
    lay = painter.pages_layout(state, style, rect)
    inside = [[each for each in drawn if box.contains(each.ink.center())] for box in lay.places]
    used = state.now.counts
    for place in used:
        right = lay.places[place].right() - style.px(3.5)
        numbers = [each.text for each in inside[place] if each.ink.right() >= right]
        none = (cache, size) == ("server", (460, 330))  # 64 places have no room for any number
        assert numbers == ([] if none else [str(place)])
    said = next(each.text for each in drawn if each.text.startswith(f"{len(lay.places)} places"))
    names = [len(inside[place]) > 1 and inside[place][1].text[0].isdigit() for place in used]
    assert any(names) == ("sequence" in said)


def test_the_bars_and_the_legend_have_the_same_words(monkeypatch, qapp) -> None:
    state = replace(pages_state(4, sharing=True), step=9)
    assert min(state.wastes[1].inside, state.wastes[1].outside) > 0
    drawn = record_texts(monkeypatch, painter)
    for size, words in (
        ((1900, 1100), ("held without a token", "too small for the next")),
        ((460, 330), ("held", "hole")),
    ):
        drawn.clear()
        painted(lambda p, s=size: paint_pages(p, state, Style(DARK), QRectF(0, 0, *s)), *size)
        bar = next(
            each.text
            for each in drawn
            if each.text.startswith("in stretches: ") and "held" in each.text
        )
        for each in words:
            assert each in bar
            assert sum(each in other.text for other in drawn if other.text != bar) >= 1


def test_a_run_without_pages_leaves_the_server(open_window) -> None:
    window = open_window("flash2", (1280, 720))
    window.docks.open("pages")
    window.session.settle()
    panel = window.docks.panel("pages")
    panel.bar.choose("cache", "run")
    assert not panel.state.of_run


@pytest.mark.parametrize("size", [(460, 330), (640, 460), (1500, 1100)])
def test_words_of_a_run_stand_apart_and_are_whole(monkeypatch, qapp, size) -> None:
    state = run_state(resolve(load_scenario(SCENARIOS / "batch.toml")))
    drawn = record_texts(monkeypatch, painter)
    rect = QRectF(0, 0, *size)
    for theme in THEMES.values():
        drawn.clear()
        painted(lambda p, t=theme: paint_pages(p, state, Style(t), rect), *size)
        assert len(drawn) >= 15
        assert_tidy(drawn, rect)


@pytest.mark.parametrize("size", [(460, 330), (640, 460), (1500, 1100)])
@pytest.mark.parametrize(("page", "step"), [(2, 20), (4, 9), (8, 14), (16, 70)])
def test_words_stand_apart_and_are_whole(monkeypatch, qapp, page, step, size) -> None:
    state = pages_state(page, sharing=True)
    state = type(state)(state.server, True, state.in_pages, state.in_stretches, step)
    drawn = record_texts(monkeypatch, painter)
    rect = QRectF(0, 0, *size)
    for theme in THEMES.values():
        drawn.clear()
        painted(lambda p, t=theme: paint_pages(p, state, Style(t), rect), *size)
        assert len(drawn) >= 15
        assert_tidy(drawn, rect)
