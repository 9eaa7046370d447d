"""The dock on the order of tokens: shuffled rows, the reach of layers, and its controls."""

import numpy as np
import pytest
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtTest import QTest

from simulator.lesson.tables import ChooseTable
from simulator.problem.masks import Mask
from simulator.study.order.reach import cone, global_layers, stack
from simulator.study.order.shuffle import order_of, shuffled
from tests.helpers.drawn_words import drawn_words
from tests.helpers.waiting import settle
from ui.look.units import number_text

PANEL, DEMO, LAYOUT = "order", "inspector", "inspector"


def choose(window, /, **choices) -> None:
    window.docks.panel(PANEL).take_choices(ChooseTable(**choices))
    settle(window)


def test_without_places_rows_follow_and_with_a_mask_they_do_not(window, panel):
    trace = window.session.trace
    w, inputs = trace.single_heads
    order = order_of(w.seqlen_k, 0)
    for places, follows in (("none", True), ("causal", False), ("rope", False), ("run", True)):
        choose(window, places=places)
        head = w.single(window.session.view.snapshot.visit.head, 0)[0]
        exact = shuffled(w, inputs, head, order, places)
        assert panel.state.found.follows is exact.follows is follows
        np.testing.assert_array_equal(panel.state.found.after, exact.after)
        words = panel.accessibleDescription()
        if follows:
            most = exact.apart.max()
            said = f"is more than {number_text(most, 3)} of a row's length" if most else "has moved"
            assert f"no row {said}" in words
        else:
            assert f"{100 * exact.apart.max():.0f} % of a row's length away" in words


@pytest.mark.long
def test_another_shuffle_is_another_order(window, panel):
    choose(window, places="none")
    first = panel.state.found.order.copy()
    panel.bar.choose("seed", "3")
    settle(window)
    assert (panel.state.found.order != first).any()
    assert panel.state.found.follows


@pytest.mark.long
def test_a_row_that_is_chosen_while_the_shuffle_is_computed_is_the_one_on_show(
    window, panel, session
):
    for row, places in ((2, "none"), (5, "causal")):
        panel.take_choices(ChooseTable(places=places))  # as a lesson does: its row comes later
        session.choose_row(row)
        settle(window)
        assert panel.state.row == session.view.report.row == row
        assert panel.state.places == places


@pytest.mark.parametrize("demo", ["kv-cache"])
def test_what_cannot_be_shuffled_is_said(panel):
    assert panel.accessibleDescription().endswith("there is no one order to shuffle.")
    rect = QRectF(panel.picture.rect())
    (title, *said) = drawn_words(panel.picture.scene.paint, rect)
    assert said[0].ink.top() < title.ink.bottom() + 2 * title.ink.height()


def test_the_cone_is_the_product_of_the_masks(window, panel):
    n = window.session.trace.workload.seqlen_k
    choose(window, order="reach", window=3, layers=4, global_layers=1)
    causal = Mask(n, n, causal=True)
    local = Mask(n, n, causal=True, window=3)
    for count in (0, 1, 4):
        panel.slider.setValue(count)
        settle(window)
        tables = stack(local, causal, global_layers(4, count)).tables
        exact = cone(tables, panel.state.row)
        np.testing.assert_array_equal(panel.state.cone, exact)
        said = f"hears of {exact[0].sum()} of {n} tokens"
        assert said in panel.accessibleDescription()
    assert "through 4 layers, 4 of them global" in panel.accessibleDescription()


@pytest.mark.long
@pytest.mark.parametrize("demo", ["window-sinks"])
def test_the_run_s_own_mask_is_the_local_one(window, panel):
    mask = window.session.trace.workload.mask
    choose(window, order="reach", layers=2)
    n = mask.seqlen_k
    np.testing.assert_array_equal(panel.state.masks.local, mask.visible(range(n), range(n)))
    assert "what this run's mask shows" in panel.accessibleDescription()


@pytest.mark.long
def test_a_click_on_a_token_explains_its_row_and_lights_its_cone_layer_by_layer(
    window, panel, qtbot
):
    choose(window, order="reach", window=3, layers=4)
    assert panel.state.lit == 4
    time = [1.0]
    window.session.clock.now = lambda: time[0]
    window.actions_by_name["set_motion"].setChecked(True)
    levels = panel.picture.scene.where("levels")
    wide = levels.width() / window.session.trace.workload.seqlen_k
    at = QPointF(levels.x() + 6.5 * wide, levels.bottom() - 2)
    QTest.mouseClick(panel.picture, Qt.MouseButton.LeftButton, pos=at.toPoint())
    settle(window)
    for layers in (0, 1, 2.5, 4):
        time[0] = 1.0 + 0.25 * layers
        qtbot.waitUntil(lambda lit=layers: panel.state.lit == pytest.approx(lit))
    settle(window)
    assert window.session.view.report.row == panel.state.row == panel.state.token == 6


@pytest.mark.long
def test_in_a_film_all_of_it_is_lit_and_nobody_is_invited(window, panel):
    choose(window, order="reach", window=3, layers=4)
    panel.slider.setValue(2)
    panel.show_controls(False)
    assert panel.state.lit == 4
    assert panel.slider.isHidden()
    assert panel.bar.isHidden()
    panel.show_controls(True)
    assert not panel.slider.isHidden()


@pytest.mark.long
def test_a_run_out_of_sight_is_forgotten(window, panel):
    choose(window, order="reach")
    panel.forget()
    assert panel.state is None
