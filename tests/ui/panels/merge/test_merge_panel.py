"""The dock in which partials are merged: by drag, by keys and in orders that have names."""

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from simulator.code.code_lines import exemplars
from simulator.engines.numpy_engine import numpy_engine
from simulator.lesson.tables import ChooseTable
from simulator.problem.scenario import with_values
from simulator.problem.workload import read_inputs
from simulator.program.algorithms import ALGORITHMS
from simulator.run.trace import Trace
from simulator.study.merge.by_hand import row_merge
from simulator.study.merge.merging import ORDERS, as_tree
from tests.helpers.runs import scenario, trace_of
from tests.helpers.waiting import settle
from ui.panels.merge.study import words_of_partials

PANEL, DEMO, LAYOUT = "merge", "causal", "exactness"


def shown(window):
    return window.docks.panel(PANEL).state.partials


def place_of(panel, tree: int):
    node = panel.state.partials.forest[tree]
    return panel.picture.scene.where(node).center().toPoint()


def drag(panel, one: int, onto: int) -> None:
    picture, button = panel.picture, Qt.MouseButton.LeftButton
    start, end = place_of(panel, one), place_of(panel, onto)
    QTest.mousePress(picture, button, Qt.KeyboardModifier.NoModifier, start)
    QTest.mouseRelease(picture, button, Qt.KeyboardModifier.NoModifier, end)


@pytest.mark.long
def test_one_dragged_onto_another_is_merged_with_it(window, panel):
    assert shown(window).forest == (0, 1, 2, 3)
    drag(panel, 3, 1)
    assert shown(window).forest == (0, (1, 3), 2)
    drag(panel, 1, 1)
    assert shown(window).forest == (0, (1, 3), 2)
    drag(panel, 0, 2)
    drag(panel, 1, 0)
    assert shown(window).done
    (name, error, _) = shown(window).rounding[-1]
    assert name == "by hand"
    assert error < 8
    assert "by hand: " in panel.accessibleDescription()


def test_keys_choose_move_merge_and_take_back(window, panel):
    picture, key = panel.picture, Qt.Key
    picture.setFocus()
    QTest.keyClick(picture, key.Key_Right)
    assert shown(window).selected == 1
    QTest.keyClick(picture, key.Key_Return)
    assert shown(window).forest == (0, (1, 2), 3)
    QTest.keyClick(picture, key.Key_Right, Qt.KeyboardModifier.ControlModifier)
    assert shown(window).forest == (0, 3, (1, 2))
    QTest.keyClick(picture, key.Key_Return)
    assert len(shown(window).forest) == 3
    QTest.keyClick(picture, key.Key_Backspace)
    assert shown(window).forest == (0, 3, 1, 2)


def test_orders_with_names_and_lessons(window, panel):
    for name, order in ORDERS.items():
        panel.take_choices(ChooseTable(merge=name))
        assert shown(window).forest == (order((0, 1, 2, 3)),)
        assert [row[0] for row in shown(window).rounding] == list(ORDERS)
    panel.take_choices(ChooseTable())
    assert shown(window).forest == (0, 1, 2, 3)


@pytest.mark.long
def test_another_row_has_other_partials(window, panel, session):
    panel.bar.choose("order", "tree")
    before = shown(window)
    row = 40 if session.view.report.row != 40 else 41
    session.choose_row(row)
    settle(window)
    assert shown(window).row != before.row
    assert shown(window).forest == (as_tree((0, 1, 2, 3)),)
    assert (shown(window).parts.exact != before.parts.exact).any()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_has_partials_or_says_why_not(algorithm: str) -> None:
    program = exemplars(algorithm)[0]
    inputs = read_inputs(program.workload)
    trace = Trace(program, numpy_engine(program.workload, inputs), inputs)
    state = row_merge(trace, 0, program.workload.seqlen_q - 1)
    if not ALGORITHMS[algorithm].softmax:
        assert state.why.startswith("Without a softmax")
        return
    for order in ORDERS:
        (node,) = state.ordered(order).forest
        found = state.parts.result(node).o
        np.testing.assert_allclose(found, state.parts.exact, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("algorithm", "splits", "words"),
    [
        ("split-kv", 3, "Each partial is what a split of the run leaves."),
        ("split-kv", 1, "The run has 1 split: for this panel keys are dealt out anew, 8 keys to a"),
        ("paged", 9, "The run has 9 splits: for this panel keys are dealt out anew, 8 keys to a"),
        ("flash2", None, "For this panel keys are dealt out, 8 keys to a partial."),
    ],
)
def test_it_says_where_partials_come_from(qapp, algorithm, splits, words) -> None:
    chosen = scenario(algorithm, nq=1, nk=36, cols=4)
    trace = trace_of(with_values(chosen, {"tiling": {"splits": splits}}))
    state = row_merge(trace, 0, 0)
    for each in (state, state.ordered("tree")):
        assert words_of_partials(each).sentences[0].startswith(words)
    assert f"{len(state.parts.partials)} partials" in words_of_partials(state).title
    assert len(state.parts.partials) == (3 if splits == 3 else 5)


@pytest.mark.long
def test_bases_of_lse_are_chosen_shown_and_said(window, panel):
    window.session.last()
    window.session.choose_row(60)
    settle(window)
    right = shown(window).parts.result((0, 1, 2, 3)).o
    panel.bar.choose("order", "tree")
    panel.bar.choose("lse", "base 2")
    assert shown(window).forest == (as_tree((0, 1, 2, 3)),)
    np.testing.assert_allclose(shown(window).parts.result((0, 1, 2, 3)).o, right, atol=1e-6)
    assert "powers of 2, makes the same O" in panel.accessibleDescription()
    panel.bar.choose("lse", "mixed")
    said = panel.accessibleDescription()
    off = 100 * shown(window).parts.off((0, 1, 2, 3))
    assert off > 1
    assert f"puts O {off:.2f}\u00a0% off" in said
    two = shown(window).two
    assert f"O is {100 * two.off:.2f}\u00a0% off" in said
    assert f"weighs {100 * two.shares[1]:.2f}\u00a0% in place of {100 * two.shares[0]:.2f}" in said
    panel.bar.choose("lse", "empty")
    assert len(shown(window).parts.partials) == 5
    assert shown(window).forest == (as_tree((0, 1, 2, 3, 4)),)
    said = panel.accessibleDescription()
    assert "O has the same bits in every order" in said
    assert "not to NaN" in said
