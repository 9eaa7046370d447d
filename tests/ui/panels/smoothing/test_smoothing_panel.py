"""The kernel dock in the window: keys, factors, regression, repeated attention, other scores."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest

from simulator.problem.scenario import parse_scenario
from simulator.study.features import feature_errors
from simulator.study.smoothing.kernel_smoother import factors, head_points, key_plane, moved_query
from simulator.study.smoothing.other_scores import score_kinds
from simulator.study.smoothing.regression import BANDWIDTHS, regression
from simulator.study.smoothing.repeated import repeated
from tests.helpers.by_hand import press
from tests.helpers.pointer import move
from ui.look.units import number_text
from ui.panels.smoothing.state import COUNTS, DRAWS, HOT

PANEL, DEMO, LAYOUT = "kernel", "inspector", "inspector"


def points(window, head=0, row=0):
    return head_points(*window.session.trace.single_heads, head, row)


def test_keys_are_as_large_as_their_weights(window, panel):
    found = points(window)
    plane, model = key_plane(found), panel.plot.model
    query, blend = model.marks[:2]
    assert (query.x, query.y) == tuple(plane.queries[0])
    assert (blend.x, blend.y) == tuple(plane.blends[0])
    np.testing.assert_allclose((blend.x, blend.y), found.weights[0] @ plane.keys)
    keys = {mark.details[0]: mark for mark in model.marks if mark.role == "K"}
    assert len(keys) == 18
    by_weight = sorted(keys.values(), key=lambda mark: -mark.size)
    assert by_weight[0].label == f"[CLS]: {number_text(found.weights[0, 0], 2)}"
    sizes = [(mark.size - 2) ** 2 / 144 for mark in by_weight]
    assert sizes == pytest.approx(sorted(found.weights[0], reverse=True))
    assert f"the axes hold {100 * plane.share:.0f} % of the keys' variance" in model.note
    assert model.summary == panel.accessibleDescription()


@pytest.mark.long
def test_a_click_on_a_query_moves_query_and_blend(window, panel, session):
    other = next(mark for mark in panel.plot.model.marks if mark.pick == 11)
    at = panel.plot.where(other.x, other.y)
    QTest.mouseClick(
        panel.plot.surface, Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier, at.toPoint(),
    )  # fmt: skip
    session.settle()
    assert session.view.report.row == 11
    plane = key_plane(points(window, 0, 11))
    query, blend = panel.plot.model.marks[:2]
    assert (query.x, query.y) == tuple(plane.queries[11])
    assert (blend.x, blend.y) == tuple(plane.blends[11])
    path = panel.plot.model.curves[0]
    assert (path.xs[11], path.ys[11]) == (blend.x, blend.y)


def drag(panel, start, end) -> None:
    surface, button = panel.plot.surface, Qt.MouseButton.LeftButton
    QTest.mousePress(surface, button, Qt.KeyboardModifier.NoModifier, start.toPoint())
    for share in (0.3, 0.7, 1.0):
        move(surface, start + share * (end - start), button)
    QTest.mouseRelease(surface, button, Qt.KeyboardModifier.NoModifier, end.toPoint())


def test_the_query_can_be_dragged_and_the_mean_follows(window, panel, session):
    plane, before = key_plane(points(window)), panel.plot.model
    start = panel.plot.where(*plane.queries[0])
    target = np.array([-1.0, -1.5])
    drag(panel, start, panel.plot.where(*target))
    moved = panel.state.moved
    assert moved.place == pytest.approx(tuple(target), abs=1e-9)
    expected = moved_query(points(window), plane, 0, moved.place)
    query, blend = panel.plot.model.marks[:2]
    assert (query.x, query.y) == moved.place
    assert (blend.x, blend.y) == pytest.approx(expected.blend)
    assert query.label.endswith("moved")
    assert not panel.plot.is_zoomed
    assert panel.plot.model.fit() == before.fit()  # nothing else moves
    assert session.view.report.row == 0
    # A click on where it was brings it back.
    QTest.mouseClick(panel.plot.surface, Qt.MouseButton.LeftButton,
                     Qt.KeyboardModifier.NoModifier, start.toPoint())  # fmt: skip
    assert panel.state.moved is None
    assert panel.plot.model.marks[0].label == before.marks[0].label


@pytest.mark.long
def test_arrow_keys_move_the_query_and_do_not_step(window, panel, session):
    at, cursor = key_plane(points(window)).queries[0], session.cursor
    panel.plot.setFocus()
    panel.plot.point_at(panel.plot.spot_at(panel.plot.where(*at)), by_key=True)
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Down):
        QTest.keyClick(panel.plot, key)
    session.settle()
    x, y = panel.state.moved.place
    assert x > at[0]
    assert y < at[1]
    assert session.cursor == cursor
    panel.plot.point_at(None)
    QTest.keyClick(panel.plot, Qt.Key.Key_Right)
    session.settle()
    assert session.cursor != cursor  # with nothing to move it steps, as everywhere


@pytest.mark.long
def test_a_film_invites_nobody(panel):
    assert "click another query" in panel.plot.model.note
    panel.show_controls(False)
    assert "× are the other queries" in panel.plot.model.note
    assert "click" not in panel.plot.model.note
    panel.show_controls(True)
    assert "click another query" in panel.plot.model.note


@pytest.mark.long
def test_a_drag_ends_at_the_edge(window, panel):
    start = panel.plot.where(*key_plane(points(window)).queries[0])
    drag(panel, start, start + QPointF(-5000, 5000))
    (low, _), (bottom, _) = panel.plot.model.fit()
    assert panel.state.moved.place == pytest.approx((low, bottom))


@pytest.mark.long
def test_another_head_of_the_board_has_other_keys(panel, session):
    session.go(type(session.cursor)(session.trace.program.index(5, 0, 0), 0))
    session.settle()
    assert panel.state.points.head == 5
    assert "head 5" in panel.plot.model.note


@pytest.mark.long
def test_after_cancel_a_row_of_another_head_is_not_taken_for_this_ones(panel, session):
    index = session.trace.program.index
    session.go(type(session.cursor)(index(5, 0, 0), 0))
    session.tasks.cancel()
    session.settle()
    session.choose_row(4)
    session.settle()
    assert (panel.state.points.head, panel.state.row) == (5, 4)


@pytest.mark.long
def test_two_factors_and_their_product(window, panel):
    press(panel, "view", "factors")
    assert not panel.plot.isVisible()
    found = factors(points(window))
    words = panel.accessibleDescription()
    assert f"differ by {number_text(found.off)} of themselves" in words
    assert found.off <= panel.state.bound
    assert f"move {100 * found.moved[0]:.0f} % of the weight of row 0 “[CLS]”" in words
    press(panel, "view", "keys")
    assert panel.plot.isVisible()
    assert not panel.picture.isVisible()


def test_regression_in_context(panel):
    assert not panel.bar.lists["h"].isVisible()
    press(panel, "view", "regression")
    assert (
        panel.state.regression.attended.tolist() == regression(0, BANDWIDTHS[2]).attended.tolist()
    )
    curves = {curve.name: curve for curve in panel.plot.model.curves}
    assert curves["attention"].ys == tuple(panel.state.regression.attended.tolist())
    assert len(panel.plot.model.marks) == len(panel.state.regression.xs)
    box = panel.bar.lists["h"]
    QTest.keyClick(box, Qt.Key.Key_Down)
    assert panel.state.regression.bandwidth == BANDWIDTHS[3]
    QTest.keyClick(panel.bar.lists["examples"], Qt.Key.Key_Down)
    assert panel.state.regression.ys.tolist() == regression(1, BANDWIDTHS[3]).ys.tolist()
    assert f"h = {number_text(panel.state.regression.best, 2)} is best" in panel.plot.model.note


def test_attention_again_and_again(window, panel):
    press(panel, "view", "again")
    session = window.session  # another row and head have it, too
    session.choose_row(3)
    session.settle()
    assert panel.state.again is not None
    session.go(type(session.cursor)(session.trace.program.index(2, 0, 0), 0))
    session.settle()
    found = points(window, 2)
    expected = repeated(found.weights, found.v)
    curves = {curve.name: curve for curve in panel.plot.model.curves}
    rows = curves["rows differ"]
    assert list(rows.ys) == [value for value in expected.spread if value >= 1e-12]
    assert curves["with a skip connection"].ys == tuple(expected.skipped.tolist())
    assert f"After {expected.below} times rows differ by less than 1 %" in panel.plot.model.note
    assert f"rank is {expected.ranks[-1]} of 18" in panel.plot.model.note


@pytest.mark.long
def test_random_features_over_their_number(window, panel):
    press(panel, "view", "features")
    w, inputs = window.session.trace.single_heads
    own = feature_errors(w, inputs, 0, COUNTS, range(DRAWS))
    hot = feature_errors(replace(w, temperature=HOT), inputs, 0, COUNTS, range(DRAWS))
    model = panel.plot.model
    shown = [curve for curve in model.curves if curve.name]
    for curve, errors in zip(shown, (own, hot), strict=True):
        assert curve.ys == tuple(errors.means.tolist())
        assert f"{errors.exponent:.2f}".replace("-", "−").rstrip("0") in model.note
    edges = [curve for curve in model.curves if not curve.name]
    assert edges[1].ys == tuple((own.means + own.spreads).tolist())
    assert model.levels[0].value == own.elu1
    assert hot.errors.mean() < own.errors.mean()


@pytest.mark.long
def test_other_scores_of_the_same_row(window, panel):
    press(panel, "view", "scores")
    w, inputs = window.session.trace.single_heads
    q, k = inputs.q[0, :1].astype(float), inputs.k[0].astype(float)
    words = panel.accessibleDescription()
    for kind, scored in zip(score_kinds(32, 32, w.logit_scale), panel.state.scored(), strict=True):
        s = kind.of(q, k)[0]
        p = np.exp(s - s.max()) / np.exp(s - s.max()).sum()
        np.testing.assert_allclose(scored.weights, p, rtol=1e-9, atol=1e-300)
        assert f"{kind.name}, {kind.formula}: strongest key {p.argmax()}" in words
    assert "not on tensor cores" in words
    assert "A tile of 6 × 6: scaled dot 2\u2009304 FLOPs" in words


@pytest.mark.long
def test_a_run_without_a_softmax_says_so(session, panel):
    attention = {"algorithm": "linear", "seqlen_q": 9, "head_dim": 4}
    session.start(parse_scenario({"attention": attention, "mask": {"causal": True}}), None)
    session.settle()
    for view in ("keys", "factors", "again", "scores"):
        press(panel, "view", view)
        assert "This run has no softmax" in panel.accessibleDescription()


@pytest.mark.long
@pytest.mark.parametrize("mask", [{}, {"causal": True}], ids=str)
def test_rows_that_see_nothing_can_be_shown(session, panel, mask):
    attention = {"seqlen_q": 9, "seqlen_k": 4, "head_dim": 4}
    session.start(parse_scenario({"attention": attention, "mask": mask}), None)
    session.settle()
    for view in ("keys", "factors", "again", "features", "scores", "regression"):
        press(panel, "view", view)
        assert panel.accessibleDescription()
        assert not panel.grab().isNull()
