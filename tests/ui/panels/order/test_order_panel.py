"""The dock on the order of tokens: shuffled rows, the reach of layers, and its controls."""

import numpy as np
import pytest
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtTest import QTest

from simulator.lesson.tables import ChooseTable
from simulator.problem.masks import Mask
from simulator.study.order.reach import cone, global_layers, stack
from simulator.study.order.shuffle import order_of, shuffled
from tests.helpers.runs import scenario, trace_of
from tests.helpers.waiting import settle
from tests.ui.panels.test_memory import assert_tidy, painted, record_texts
from ui.look.theme import CONTRAST, DARK, Style
from ui.look.units import number_text
from ui.panels.order import reach, shuffle
from ui.panels.order.reach import paint_reach, reach_layout
from ui.panels.order.shuffle import paint_shuffle
from ui.panels.order.state import lit_to, reach_state, shuffle_state


@pytest.fixture
def window(open_window, qapp):
    window = open_window("inspector", (1280, 720))
    window.desk.take("inspector")
    window.docks.open("order")
    settle(window)
    return window


def panel_of(window):
    return window.docks.panel("order")


def choose(window, /, **choices) -> None:
    panel_of(window).take_choices(ChooseTable(**choices))
    settle(window)


def test_without_places_rows_follow_and_with_a_mask_they_do_not(window):
    panel, trace = panel_of(window), window.session.trace
    w, inputs = trace.single_heads
    order = order_of(w.seqlen_k, 0)
    for places, follows in (("none", True), ("causal", False), ("rope", False), ("run", True)):
        choose(window, places=places)
        head = w.single(window.session.view.snapshot.visit.head, 0)[0]
        exact = shuffled(w, inputs, head, order, places)
        assert panel.shuffle.found.follows is exact.follows is follows
        np.testing.assert_array_equal(panel.shuffle.found.after, exact.after)
        words = panel.accessibleDescription()
        if follows:
            most = exact.apart.max()
            said = f"is more than {number_text(most, 3)} of a row's length" if most else "has moved"
            assert f"no row {said}" in words
        else:
            assert f"{100 * exact.apart.max():.0f} % of a row's length away" in words


def test_another_shuffle_is_another_order(window):
    panel = panel_of(window)
    choose(window, places="none")
    first = panel.shuffle.found.order.copy()
    panel.bar.choose("seed", "3")
    settle(window)
    assert (panel.shuffle.found.order != first).any()
    assert panel.shuffle.found.follows


def test_a_row_that_is_chosen_while_the_shuffle_is_computed_is_the_one_on_show(window):
    panel, session = panel_of(window), window.session
    for row, places in ((2, "none"), (5, "causal")):
        panel.take_choices(ChooseTable(places=places))  # as a lesson does: its row comes later
        session.choose_row(row)
        settle(window)
        assert panel.shuffle.row == session.view.report.row == row
        assert panel.shuffle.places == places


def test_what_cannot_be_shuffled_is_said(open_window, qapp):
    window = open_window("kv-cache", (1280, 720))
    window.desk.take("inspector")
    window.docks.open("order")
    settle(window)
    assert panel_of(window).accessibleDescription().endswith("there is no one order to shuffle.")


def test_the_cone_is_the_product_of_the_masks(window):
    panel, n = panel_of(window), window.session.trace.workload.seqlen_k
    choose(window, order="reach", window=3, layers=4, global_layers=1)
    causal = Mask(n, n, causal=True)
    local = Mask(n, n, causal=True, window=3)
    for count in (0, 1, 4):
        panel.slider.setValue(count)
        settle(window)
        tables = stack(local, causal, global_layers(4, count)).tables
        exact = cone(tables, panel.row)
        np.testing.assert_array_equal(panel.reach.cone, exact)
        said = f"hears of {exact[0].sum()} of {n} tokens"
        assert said in panel.accessibleDescription()
    assert panel.label.text() == "4 of 4 global"


def test_the_run_s_own_mask_is_the_local_one(open_window, qapp):
    window = open_window("window-sinks", (1280, 720))
    window.desk.take("inspector")
    window.docks.open("order")
    settle(window)
    panel, mask = panel_of(window), window.session.trace.workload.mask
    choose(window, order="reach", layers=2)
    n = mask.seqlen_k
    np.testing.assert_array_equal(panel.reach.layers.local, mask.visible(range(n), range(n)))
    assert "what this run's mask shows" in panel.accessibleDescription()


def test_a_click_on_a_token_explains_its_row_and_lights_its_cone_layer_by_layer(window, qtbot):
    panel = panel_of(window)
    choose(window, order="reach", window=3, layers=4)
    assert panel.reach.lit >= 4
    time = [1.0]
    window.session.clock.now = lambda: time[0]
    window.actions_by_name["set_motion"].setChecked(True)
    lay = reach_layout(panel.reach, panel.cone.style_now, QRectF(panel.cone.rect()))
    at = lay.box(0, 5, 6).center()
    QTest.mouseClick(
        panel.cone, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at.toPoint()
    )
    settle(window)
    for layers in (0, 1, 2.5, 4):
        time[0] = 1.0 + 0.25 * layers
        qtbot.waitUntil(lambda lit=layers: panel.reach.lit == pytest.approx(lit))
    settle(window)
    assert window.session.view.report.row == panel.row == panel.reach.token == 6


def test_in_a_film_all_of_it_is_lit_and_nobody_is_invited(window):
    panel = panel_of(window)
    choose(window, order="reach", window=3, layers=4)
    panel.slider.setValue(2)
    panel.show_controls(False)
    assert panel.reach.lit >= 4
    assert panel.slider.isHidden()
    assert panel.bar.isHidden()
    panel.show_controls(True)
    assert not panel.slider.isHidden()


def test_a_run_out_of_sight_is_forgotten(window):
    panel = panel_of(window)
    choose(window, order="reach")
    panel.forget()
    assert panel.reach is panel.shuffle is None
    assert panel.cone.state is None


@pytest.mark.parametrize("size", [(430, 300), (760, 520), (1100, 800)], ids=str)
@pytest.mark.parametrize("least", [0.0, 18.0])
def test_no_word_is_cut_or_on_another(monkeypatch, qapp, size, least):
    rect = QRectF(0, 0, *size)
    style = Style(DARK, 1.64 if least else 1.0, least)
    trace = trace_of(scenario("flash2", nq=20, d=8))
    w, inputs = trace.workload, trace.inputs
    drawn = record_texts(monkeypatch, shuffle)
    state = shuffle_state(w, inputs, 0, 7, "causal", 1)
    painted(lambda p: paint_shuffle(p, state, style, rect))
    assert_tidy(drawn, rect)
    drawn = record_texts(monkeypatch, reach)
    cone_state = lit_to(reach_state(w, 12, 3, 4, 1), 2.0)
    painted(lambda p: paint_reach(p, cone_state, style, rect))
    flat = [each for each in drawn if not each.text.isdigit()]  # tokens may stand upright
    assert_tidy(flat, rect)


def test_a_token_is_found_where_it_is_painted(qapp):
    trace = trace_of(scenario("flash2", nq=20, d=8))
    state = reach_state(trace.workload, 12, 3, 4, 1)
    lay = reach_layout(state, Style(DARK), QRectF(0, 0, 760, 520))
    for token in range(20):
        for level in range(5):
            assert lay.token_at(lay.box(level, 5, token).center(), 20) == token
    assert lay.token_at(QPointF(1, 1), 20) is None


def test_the_frame_of_a_level_is_whole(qapp):
    w = trace_of(scenario(nq=18, heads=1, d=8, rows=6, cols=6)).workload
    state, style, rect = (
        lit_to(reach_state(w, 0, 3, 4, 1), 4.0),
        Style(CONTRAST),
        QRectF(0, 0, 800, 600),
    )
    image = QImage(800, 600, QImage.Format.Format_RGB32)
    image.fill(QColor(CONTRAST.panel))
    with QPainter(image) as painter:
        paint_reach(painter, state, style, rect)
    lay = reach_layout(state, style, rect)
    level = lay.box(0, 5, 1, 17)  # the first token alone is lit
    edge = round(level.bottom()) - 1
    along = range(int(level.left()) + 2, int(level.right()) - 2)
    lights = [
        [QColor(image.pixel(x, y)).lightness() for x in along] for y in range(edge - 1, edge + 2)
    ]
    frame = max(lights, key=sum)
    assert min(frame) > 0.5 * max(frame) > QColor(CONTRAST.panel).lightness()
