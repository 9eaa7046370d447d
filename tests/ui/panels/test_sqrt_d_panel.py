"""The √d experiment in the window: figures, live drawing, seed, cancel."""

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from simulator.lesson.tables import ChooseTable
from simulator.problem.scenario import parse_scenario
from simulator.study.sqrt_d.experiment import DIMS, DRAWN, one_draw, sqrt_d_experiment
from simulator.study.sqrt_d.trained_scores import shipped_scores, trained_scores
from tests.helpers.runs import scenario, trace_of
from ui.look.units import number_text
from ui.panels.sqrt_d.plot import sqrt_d_plot, verdict
from ui.plots.widget import PlotView

RANDOM = parse_scenario({"attention": {"seqlen_q": 32, "head_dim": 16}})


@pytest.fixture
def window(open_window, qapp):
    window = open_window("flash2", (1280, 720))
    window.desk.take("inspector")
    qapp.processEvents()
    return window


def drawn(window, qapp):
    window.docks["sqrt_d"].raise_()
    qapp.processEvents()
    window.session.settle()
    return window.docks.panel("sqrt_d")


@pytest.fixture
def panel(window, qapp):
    return drawn(window, qapp)


@pytest.fixture(scope="module")
def of_all(open_for_all, qapp):
    window = open_for_all("flash2", (1280, 720))
    window.desk.take("inspector")
    qapp.processEvents()
    return drawn(window, qapp)


@pytest.fixture
def shared(of_all):
    """The panel of all tests that leave the vectors as they were, which take a second to draw."""
    press(of_all, "quantity", "variance")
    found = of_all.found
    assert (found.seed, found.keys, found.share) == (0, 64, 1)
    return of_all


def named(model):
    return {curve.name: curve for curve in model.curves if curve.name}


def test_nothing_is_drawn_before_the_dock_is_seen(window):
    window.session.settle()
    assert window.docks.panel("sqrt_d").found is None


@pytest.mark.long
def test_the_variance_is_d_and_one_within_the_error_that_is_shown(shared):
    *_, found = sqrt_d_experiment(0)
    model = shared.plot.model
    curves = named(model)
    assert curves["q·k"].xs == curves["q·k/√d"].xs == tuple(map(float, DIMS))
    assert curves["q·k"].ys == tuple(p.plain.variance.mean for p in found.points)
    assert curves["q·k/√d"].ys == tuple(p.scaled.variance.mean for p in found.points)
    assert curves["= d"].xs == curves["= d"].ys
    assert [level.value for level in model.levels] == [1.0]
    for point in found.points:
        if point.d in (4, 64, 1024):
            assert point.plain.variance.agrees(point.d)
            assert point.scaled.variance.agrees(1)
    assert "at all 9 d the variance of q·k is d and that of q·k/√d is 1" in model.note
    bars = [curve for curve in model.curves if not curve.name]
    assert len(bars) == 18
    error = found.points[0].plain.variance.error
    assert bars[0].ys[1] - bars[0].ys[0] == pytest.approx(2 * error)
    assert "± " in curves["q·k"].details[0][1]
    assert model.note in shared.accessibleDescription()


@pytest.mark.long
@pytest.mark.parametrize("quantity", ["entropy", "gradient"])
def test_other_quantities_of_the_same_vectors(shared, quantity):
    run = shared.run
    QTest.mouseClick(shared.bar.buttons["quantity", quantity], Qt.MouseButton.LeftButton)
    assert shared.run == run
    curves = named(shared.plot.model)
    for name, which in (("q·k", "plain"), ("q·k/√d", "scaled")):
        expected = [getattr(getattr(p, which), quantity).mean for p in shared.found.points]
        assert list(curves[name].ys) == expected
    assert curves["q·k"].ys[-1] < curves["q·k/√d"].ys[-1]


def press(panel, name, value) -> None:
    QTest.mouseClick(panel.bar.buttons[name, value], Qt.MouseButton.LeftButton)
    panel.window().session.settle()


@pytest.mark.parametrize("quantity", ["entropy", "gradient"])
def test_the_median_stands_beside_the_mean(shared, quantity):
    assert not any("median" in curve.name for curve in shared.plot.model.curves)
    press(shared, "quantity", quantity)
    curves = named(shared.plot.model)
    for name, which in (("q·k", "plain"), ("q·k/√d", "scaled")):
        found = [getattr(getattr(p, which), quantity).median for p in shared.found.points]
        assert list(curves[f"{name}, median"].ys) == found
    assert curves["q·k, median"].ys[-1] < 0.2 * curves["q·k"].ys[-1]


@pytest.mark.long
def test_two_keys_are_other_vectors_with_a_smaller_gradient(panel):
    press(panel, "quantity", "gradient")
    of_64 = panel.found
    press(panel, "keys", "2")
    assert (panel.found.keys, panel.found.share) == (2, 1)
    at = [p.d for p in panel.found.points].index(512)
    two, many = panel.found.points[at].plain, of_64.points[at].plain
    assert two.gradient.median < 1e-6 < many.gradient.median
    assert "512 queries of 2 keys" in panel.plot.model.note


def test_one_draw_as_bars(shared):
    press(shared, "quantity", "draw")
    run, draw = shared.run, one_draw(0, 4096, 64)
    curves = named(shared.plot.model)
    assert list(curves["q·k"].ys) == draw.plain.tolist()
    assert list(curves["q·k/√d"].ys) == draw.scaled.tolist()
    assert all(curve.bar for curve in curves.values())
    assert [level.value for level in shared.plot.model.levels] == [1 / 64]
    box = shared.bar.lists["d"]
    for _ in range(len(DRAWN) - 1):
        QTest.keyClick(box, Qt.Key.Key_Up)
    assert shared.d == 4
    assert list(named(shared.plot.model)["q·k"].ys) == one_draw(0, 4, 64).plain.tolist()
    assert shared.run == run  # the means are of the same vectors still
    press(shared, "quantity", "variance")
    assert not box.isVisible()


@pytest.mark.long
def test_a_lesson_chooses_one_draw(panel):
    panel.take_choices(ChooseTable(quantity="draw"))
    assert panel.draws
    assert all(curve.bar for curve in named(panel.plot.model).values())
    panel.take_choices(ChooseTable())
    assert not panel.draws
    assert panel.measured == "variance"


@pytest.mark.long
def test_a_trained_layer_is_marked(panel, window):
    # The run's own Q and K are those of a capture.
    model, own = panel.plot.model, panel.trained
    assert own == trained_scores(*window.session.trace.single_heads)
    assert {(mark.x, mark.y) for mark in model.marks} == {
        (32, own.plain.variance.mean), (32, own.scaled.variance.mean)
    }  # fmt: skip
    assert "all-MiniLM-L6-v2, layer 2" in model.marks[0].details[0]
    window.session.start(RANDOM, None)
    window.session.settle()
    assert panel.trained == shipped_scores()


@pytest.mark.long
def test_results_are_shown_as_they_arrive(shared):
    notes = []
    # Once it is shown.
    shared.drawn.connect(lambda run, found: notes.append(shared.plot.model.note))
    shared.again.setFocus()
    QTest.keyClick(shared.again, Qt.Key.Key_Return)
    shared.window().session.settle()
    on_the_way = [note for note in notes if "drawing at" in note]
    shares = [int(note.split("drawing at ")[1].split(" %")[0]) for note in on_the_way]
    assert len(set(shares)) > 2
    assert shares == sorted(shares)
    assert shared.found.share == 1
    assert "drawing" not in shared.plot.model.note


@pytest.mark.long
def test_another_seed_draws_others_and_the_same_seed_the_same(shared):
    first = shared.found
    shared.seed.setFocus()
    QTest.keyClick(shared.seed, Qt.Key.Key_Up)
    shared.window().session.settle()
    assert shared.found.seed == 1
    assert shared.found.points[0].plain.variance != first.points[0].plain.variance
    QTest.keyClick(shared.seed, Qt.Key.Key_Down)
    shared.window().session.settle()
    again = [(p.d, p.plain.variance, p.scaled.gradient) for p in shared.found.points]
    assert again == [(p.d, p.plain.variance, p.scaled.gradient) for p in first.points]


@pytest.mark.long
def test_it_can_be_cancelled_and_says_so(panel, window):
    def stop(run, found):
        if "drawing at" in panel.plot.model.note:
            window.session.tasks.cancel()

    panel.drawn.connect(stop)
    panel.start()
    window.session.settle()
    assert not panel.running
    assert panel.found.share < 1
    assert "stopped at" in panel.plot.model.note


def test_words_say_when_it_does_not_agree():
    few = next(iter(sqrt_d_experiment(0, dims=(4,), trials=64)))
    assert "variance of q·k is d" in verdict(few)
    estimate = few.points[0].plain.variance
    assert not estimate.agrees(estimate.mean + 4 * estimate.error)
    model = sqrt_d_plot(few, "variance", "here")
    assert model.note.startswith("here: ")


@pytest.mark.long
def test_controls_stay_apart_and_have_names(panel, window, qapp):
    for width in (330, 480, 760):
        panel.setParent(None)
        panel.resize(width, 300)
        panel.show()
        qapp.processEvents()
        controls = [panel.seed, panel.again]
        assert all(panel.rect().contains(control.geometry()) for control in controls)
        bar = panel.bar.geometry()
        for button in panel.bar.shown():
            box = button.geometry().translated(bar.topLeft())
            assert not any(box.intersects(control.geometry()) for control in controls)
        assert not panel.plot.geometry().intersects(panel.again.geometry())
    assert all(c.accessibleName() and c.toolTip() for c in controls)
    panel.deleteLater()


def test_words_are_about_what_is_drawn():
    *_, found = sqrt_d_experiment(0, dims=(4, 64), trials=32)
    for measured in ("variance", "entropy", "gradient"):
        note = sqrt_d_plot(found, measured, "here").note
        assert [name for name in ("variance", "entropy", "gradient") if name in note] == [measured]
    first, last = found.points[0].plain.entropy, found.points[-1].plain.entropy
    assert (
        f"from {number_text(first.mean, 2)} to {number_text(last.mean, 2)} bits"
        in sqrt_d_plot(found, "entropy", "here").note
    )


@pytest.mark.parametrize("factor", [0.0, 1e-6, 1.0, 1e6])
def test_scores_that_hardly_vary_are_drawn_or_said(qapp, factor):
    trace = trace_of(scenario(nq=8, d=16, rows=4, cols=4))
    inputs = replace(trace.inputs, k=(factor * trace.inputs.k).astype("float32"))
    found = trained_scores(trace.workload, inputs)
    start = next(iter(sqrt_d_experiment(0)))
    for measured in ("variance", "entropy", "gradient"):
        model = sqrt_d_plot(start, measured, "state", found)
        view = PlotView()
        view.resize(600, 400)
        view.show_model(model)
        view.grab()
        (_, _), (low, high) = model.fit()
        drawn = [mark for mark in model.marks if low <= model.y.place(mark.y) <= high]
        assert (len(drawn) == 2) or model.note.startswith(f"Outside the plot: {measured} of this")
        if factor == 0 and measured == "variance":
            assert "q·k 0.000, scaled 0.000. state" in model.note
        assert ("Outside" in model.note) == (measured == "variance" and factor != 1.0)
