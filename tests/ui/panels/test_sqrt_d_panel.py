"""The √d experiment in its dock: figures, live drawing, cancel."""

import math
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from simulator.lesson.tables import ChooseTable
from simulator.problem.scenario import parse_scenario
from simulator.study.sqrt_d.experiment import DIMS, one_draw, sqrt_d_experiment
from simulator.study.sqrt_d.trained_scores import shipped_scores, trained_scores
from tests.helpers.runs import scenario, trace_of
from ui.look.units import number_text
from ui.panels.sqrt_d.study import SqrtD, sqrt_d_plot, verdict
from ui.panels.study_panel import StudyPanel
from ui.plots.widget import PlotView
from ui.session.session import Session

RANDOM = {"attention": {"seqlen_q": 32, "head_dim": 16}}
CAPTURE = {"input": {"source": "capture", "name": "passage-layer1"}}


@pytest.fixture
def session(qapp):
    session = Session("numpy")
    session.propose(parse_scenario(CAPTURE), "a trained layer")
    session.settle()
    yield session
    session.close()


@pytest.fixture
def panel(session, qtbot):
    panel = StudyPanel(session, SqrtD())
    qtbot.addWidget(panel)
    panel.resize(640, 480)
    panel.show()
    return panel


def show(panel, session):
    panel.show_view(session.view)
    session.settle()


@pytest.fixture(scope="module")
def whole():
    *_, found = sqrt_d_experiment(0)
    return found


def named(model):
    return {curve.name: curve for curve in model.curves if curve.name}


@pytest.mark.long
def test_the_variance_is_d_and_one_within_the_error_that_is_shown(whole):
    model = sqrt_d_plot(whole, None, "variance")
    curves = named(model)
    assert curves["q·k"].xs == curves["q·k/√d"].xs == tuple(map(float, DIMS))
    assert curves["q·k"].ys == tuple(p.plain.variance.mean for p in whole.points)
    assert curves["q·k/√d"].ys == tuple(p.scaled.variance.mean for p in whole.points)
    assert curves["= d"].xs == curves["= d"].ys
    assert [level.value for level in model.levels] == [1.0]
    bars = [curve for curve in model.curves if not curve.name]
    assert len(bars) == 18
    error = whole.points[0].plain.variance.error
    assert bars[0].ys[1] - bars[0].ys[0] == pytest.approx(2 * error)
    assert "± " in curves["q·k"].details[0][1]


@pytest.mark.parametrize("quantity", ["entropy", "gradient"])
def test_mean_and_median_of_other_quantities_of_the_same_vectors(whole, quantity):
    curves = named(sqrt_d_plot(whole, None, quantity))
    for name, which in (("q·k", "plain"), ("q·k/√d", "scaled")):
        found = [getattr(getattr(p, which), quantity) for p in whole.points]
        assert list(curves[name].ys) == [each.mean for each in found]
        assert list(curves[f"{name}, median"].ys) == [each.median for each in found]
    assert curves["q·k"].ys[-1] < curves["q·k/√d"].ys[-1]
    assert curves["q·k, median"].ys[-1] < 0.2 * curves["q·k"].ys[-1]


@pytest.mark.long
def test_one_draw_as_bars_and_the_means_of_the_same_vectors(panel, session):
    panel.take_choices(ChooseTable(quantity="draw"))
    show(panel, session)
    draw = one_draw(0, 4096, 64)
    curves = named(panel.plot.model)
    assert list(curves["q·k"].ys) == draw.plain.tolist()
    assert list(curves["q·k/√d"].ys) == draw.scaled.tolist()
    assert all(curve.bar for curve in curves.values())
    box = panel.bar.lists["d"]
    for _ in range(box.count() - 1):
        QTest.keyClick(box, Qt.Key.Key_Up)
    assert list(named(panel.plot.model)["q·k"].ys) == one_draw(0, 4, 64).plain.tolist()
    panel.take_choices(ChooseTable())
    assert not box.isVisible()
    assert panel.plot.model.name == "Why √d: variance of the scores against d"


@pytest.mark.long
def test_a_trained_layer_is_marked_and_another_run_draws_nothing_again(panel, session):
    show(panel, session)
    own = trained_scores(*session.trace.single_heads)
    assert {(mark.x, mark.y) for mark in panel.plot.model.marks} == {
        (own.d, own.plain.variance.mean), (own.d, own.scaled.variance.mean)
    }  # fmt: skip
    notes = []
    session.propose(parse_scenario(RANDOM), "random vectors")
    session.settle()
    session.tasks.met.connect(lambda _: notes.append(panel.plot.model.note))
    show(panel, session)
    assert shipped_scores().name in panel.plot.model.marks[0].details[0]
    assert notes == []
    panel.buttons["again"].click()
    session.settle()
    shares = [int(note.split(" % drawn")[0].split()[-1]) for note in notes if "% drawn" in note]
    assert len(set(shares)) > 2
    assert shares == sorted(shares)
    assert "% drawn" not in panel.plot.model.note


@pytest.mark.long
def test_drawing_can_be_cancelled_and_says_how_far_it_came(panel, session):
    session.tasks.met.connect(lambda _: session.tasks.cancel())
    show(panel, session)
    assert "% drawn" in panel.plot.model.note


def test_words_say_when_it_does_not_agree_and_are_about_what_is_drawn():
    *_, found = sqrt_d_experiment(0, dims=(4, 64), trials=32)
    point = found.points[0]
    off = replace(point, plain=replace(point.plain, variance=point.scaled.variance))
    assert "is d at 1 of 2 d" in verdict(replace(found, points=(off, found.points[1])))
    for measured in ("variance", "entropy", "gradient"):
        note = sqrt_d_plot(found, None, measured).note
        assert [name for name in ("variance", "entropy", "gradient") if name in note] == [measured]
    first, last = (number_text(p.plain.entropy.mean, 2) for p in found.points)
    assert f"from {first} to {last} bits" in sqrt_d_plot(found, None, "entropy").note


@pytest.mark.parametrize("factor", [0.0, 1e-6, 1.0, 1e6])
def test_scores_that_hardly_vary_are_drawn_or_said(qapp, factor):
    trace = trace_of(scenario(nq=8, d=16, rows=4, cols=4))
    inputs = replace(trace.inputs, k=(factor * trace.inputs.k).astype("float32"))
    found = trained_scores(trace.workload, inputs)
    start = next(iter(sqrt_d_experiment(0)))
    for measured in ("variance", "entropy", "gradient"):
        model = sqrt_d_plot(start, found, measured)
        view = PlotView()
        view.resize(600, 400)
        view.show_model(model)
        view.grab()
        (_, _), (low, high) = model.fit()
        drawn = [mark for mark in model.marks if low <= model.y.place(mark.y) <= high]
        assert (len(drawn) == 2) != (f"Outside the plot: {measured} of this" in model.note)
        if factor == 0 and measured == "variance":
            assert "q·k 0.000, scaled 0.000." in model.note
        assert ("Outside" in model.note) == (measured == "variance" and factor != 1.0)


def test_scores_of_the_row_lie_on_the_curve_of_the_soft_cap(panel, session):
    capped = {**RANDOM, "scores": {"softcap": 2.0}, "mask": {"causal": True}}
    session.propose(parse_scenario(capped), "capped")
    session.settle()
    session.last()
    session.choose_row(30)
    session.settle()
    panel.take_choices(ChooseTable(quantity="soft-cap"))
    show(panel, session)
    model = panel.plot.model
    assert len(model.marks) == 31
    for mark in model.marks:
        assert mark.y == pytest.approx(2 * math.tanh(mark.x / 2))
    assert [level.value for level in model.levels] == [2.0]
    assert "no cap" not in model.note
    assert panel.bar.lists["seed"].isHidden()
    session.propose(parse_scenario(RANDOM), "without a cap")
    session.settle()
    show(panel, session)
    assert panel.plot.model.levels[0].value == 50
    assert "This run has no cap" in panel.plot.model.note
