"""A captured layer under pressure in the cache's dock: what is kept, and what it costs."""

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from simulator.lesson.tables import ChooseTable
from simulator.study.kv_cache.policies import POLICIES
from tests.helpers.changes import change
from ui.look.theme import DARK, Style
from ui.panels.kv_cache.kept import flowed
from ui.plots.model import spots

ONE_HEAD = {
    "input": {"source": "capture", "name": "passage-layer1", "head": [2]},
    "attention": {"algorithm": "flash2"},
}


@pytest.fixture(scope="module")
def window(open_for_all, qapp):
    window = open_for_all("flash2", (1280, 720))
    session = window.session
    change(session, ONE_HEAD, "one head")
    window.desk.take("cache")
    qapp.processEvents()
    session.settle()
    return window


@pytest.fixture
def view(window, qapp):
    dock = window.docks.panel("cache")
    if not dock.pressure.isVisible():
        dock.card.less.emit()
    press(window, dock.pressure, "sinks + recent")
    dock.pressure.step.setValue(495)
    return dock.pressure


def press(window, view, policy) -> None:
    QTest.mouseClick(view.bar.buttons["policy", policy], Qt.MouseButton.LeftButton)
    settle(window)


def settle(window) -> None:
    for _ in range(3):
        window.session.settle()


@pytest.mark.long
def test_points_are_what_was_computed(view):
    assert view.found.layer.workload.heads == 1
    curves = view.plot.model.curves
    assert [curve.name for curve in curves[:4]] == [policy.name for policy in POLICIES]
    for policy, curve in zip(POLICIES, curves, strict=False):
        tried = view.found.of_policy(policy)
        assert list(zip(curve.xs, curve.ys, strict=True)) == [(e.bytes, e.error) for e in tried]
    for dtype, curve in zip(("fp8", "int8", "int4"), curves[4:], strict=True):
        assert curve.ys == tuple(each.error for each in view.found.of_type(dtype))
    note = view.plot.model.note
    assert note.startswith("all-MiniLM-L6-v2, layer 1: 1 head, 495 tokens")
    assert "causal mask, which it was not trained with" in note


@pytest.mark.long
def test_the_mark_is_the_chosen_cache(window, view):
    view.budget.setValue(40)
    settle(window)
    press(window, view, "heavy hitters")
    kept, cost = view.found.decoded(view.policy, 40)
    mark = view.plot.model.marks[0]
    assert (mark.x, mark.y) == (cost.bytes, cost.error)
    assert mark.label.startswith("heavy hitters, 40 tokens")
    np.testing.assert_array_equal(view.picture.state.shares, kept.kept[0].astype(np.float32))
    assert view.budget_label.text() == "40 tokens kept"


def test_a_lesson_chooses_what_is_kept(window, view):
    dock = window.docks.panel("cache")
    dock.take_choices(ChooseTable(card="less", policy="window", budget=40, step=100))
    settle(window)
    state = view.picture.state
    assert view.isVisible()
    assert (state.chosen.policy.name, state.chosen.budget, state.step) == ("window", 40, 99)
    assert view.bar.buttons["policy", "window"].isChecked()
    dock.take_choices(ChooseTable(card="less"))
    settle(window)
    state = view.picture.state
    assert (state.chosen.policy, state.chosen.budget, state.step) == (POLICIES[0], 61, 494)
    dock.take_choices(ChooseTable(card="curve"))
    assert not view.isVisible()


def test_a_point_of_the_plot_is_chosen_by_a_click(window, view):
    spot = next(each for each in spots(view.plot.model) if each.pick == ("window", 123))
    view.plot.picked.emit(spot.pick)
    settle(window)
    assert view.budget.value() == 123
    assert view.bar.buttons["policy", "window"].isChecked()
    mark = view.plot.model.marks[0]
    assert (mark.x, mark.y) == (spot.x, spot.y)


def test_the_tokens_of_a_step_are_written(window, view):
    view.budget.setValue(6)
    settle(window)
    view.step.setValue(12)
    state = view.picture.state
    tokens = view.found.layer.workload.tokens
    assert [text for text, _ in state.pieces] == [*tokens[:4], "−6", *tokens[10:12]]
    assert [share for _, share in state.pieces] == [1, 1, 1, 1, 0, 1, 1]
    assert "token 12 of 495 reads 6 of 12" in view.picture.accessibleDescription()
    before = view.picture.grab().toImage()
    view.step.setValue(7)
    assert "token 7 of 495 reads 6 of 7" in view.picture.accessibleDescription()
    view.step.setValue(6)
    assert "token 6 of 495 reads all so far" in view.picture.accessibleDescription()
    assert view.picture.grab().toImage() != before


def test_words_flow_in_lines_without_overlap(qapp):
    font, width, gap = Style(DARK).text_font(12), 130.0, 6.0
    pieces = [("tile", 1.0), ("##s", 1.0), ("−3", 0.0), ("attention", 0.5), ("reads", 1.0)] * 3
    lines = flowed(pieces, font, width, gap)
    words = [text for line in lines for text, _, _ in line]
    assert words == [text.removeprefix("##") for text, _ in pieces]
    assert len(lines) > 1
    for line in lines:
        starts = [x for _, _, x in line]
        assert starts == sorted(set(starts))
        assert starts[0] == 0


def test_the_other_view_comes_back(window, view):
    dock = window.docks.panel("cache")
    dock.take_choices(ChooseTable(model="Llama-2-7B"))
    assert not view.isVisible()
    assert dock.card.isVisible()
    assert dock.card.choice.model.name == "Llama-2-7B"
