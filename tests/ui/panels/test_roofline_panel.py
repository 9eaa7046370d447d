"""The Roofline dock in the window: its figures, the moving point, GPUs, pointer and keys."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from simulator.problem.hardware import gpus, time_estimate
from simulator.problem.scenario import with_values
from simulator.study.compare import comparison_of
from simulator.study.gpu_report import Measured
from simulator.study.roofline import roofline_of
from simulator.timing.duration import duration_of
from ui.look.durations import duration_text
from ui.look.units import time_text
from ui.panels.roofline.study import UnderRoof, roofline_plot


def show(window, qapp):
    window.desk.take("memory")
    window.docks["roofline"].show()
    window.docks["roofline"].raise_()
    qapp.processEvents()
    window.session.settle()
    return window.docks.panel("roofline")


@pytest.fixture
def window(open_window):
    return open_window("real-scale", (1280, 720))


@pytest.fixture
def panel(window, qapp):
    return show(window, qapp)


@pytest.fixture(scope="module")
def of_all(open_for_all):
    return open_for_all("real-scale", (1280, 720))


@pytest.fixture
def shared(of_all, qapp):
    """The panel of all tests that do not change the run, which takes more than a second."""
    panel = show(of_all, qapp)
    QTest.mouseClick(panel.bar.buttons["bytes", "requested"], Qt.MouseButton.LeftButton)
    of_all.session.settle()
    return panel


def marks(panel) -> dict[str, object]:
    return {mark.short: mark for mark in panel.plot.model.marks}


@pytest.mark.long
def test_six_runs_stand_under_the_scenarios_roof(of_all, shared):
    found = marks(shared)
    program = of_all.session.trace.program
    gpu = program.workload.gpu
    together = found["naive, flash1, flash2 decode"].label  # in one spot
    spent = []
    for place in roofline_of(program).places:
        x = place.flops / place.requested
        [mark] = [one for one in shared.plot.model.marks if one.x == x and one.role != "current"]
        assert mark.y == min(gpu.tflops * 1e12, gpu.tbps * 1e12 * mark.x)
        seconds = time_estimate(gpu, place.requested, place.flops, "float16").seconds
        if place.phase == "decode":
            spent.append(seconds)
        else:
            assert mark.label == f"{mark.short} ≥ {time_text(seconds)}"
    assert together.endswith(f"≥ {time_text(min(spent))} to {time_text(max(spent))}")
    assert sum("decode" in mark.label for mark in shared.plot.model.marks) == 1
    total = program.totals
    assert found["flash2 prefill"].x == total.flops / total.bytes
    assert found["flash2 prefill"].size > found["naive prefill"].size  # the one on show
    assert (found["ridge"].x, found["ridge"].y) == (989e12 / 3.35e12, 989e12)
    curve, way = shared.plot.model.curves  # the roof, and between the two points of the run
    assert way.dash == "dot"
    assert found["989 TFLOP/s"].y == max(curve.ys)
    assert found["3.35 TB/s"].label == "HBM 3.35 TB/s"
    assert "estimate" in shared.plot.model.note.lower()


def plot_of(program, **more):
    return roofline_plot(UnderRoof(roofline_of(program), program.workload.algorithm, **more))


@pytest.mark.long
def test_the_point_of_the_run_so_far_moves(of_all, shared):
    session = of_all.session
    session.first()
    session.settle()
    assert session.view.snapshot.counters.flops == 0
    assert "so far" not in marks(shared)  # no FLOPs yet: nothing to draw
    places = []
    for tile in range(1, 4):
        session.go_to_tile(tile, tile - 1)
        session.settle()
        counters = session.view.snapshot.counters
        mark = marks(shared)["so far"]
        assert mark.x == counters.flops / counters.bytes
        places.append(mark.x)
    assert len(set(places)) == 3
    session.last()
    session.settle()
    assert marks(shared)["so far"].x == marks(shared)["flash2 prefill"].x


@pytest.mark.long
def test_another_gpu_can_be_chosen_by_keys(window, panel, qapp):
    box = panel.bar.lists["GPU"]
    assert box.currentText() == "H100-SXM"
    assert [box.itemText(n) for n in range(box.count())] == list(gpus())
    box.setFocus()
    QTest.keyClick(box, Qt.Key.Key_Down)
    assert box.currentText() == "H200"
    window.session.settle()
    assert marks(panel)["ridge"].x == pytest.approx(989 / 4.8)
    scenario = window.session.scenario
    assert scenario.hardware.preset == "H100-SXM"  # looking is not changing
    window.session.propose(with_values(scenario, {"hardware": {"preset": "T4"}}), "T4")
    window.session.settle()
    assert box.currentText() == "T4"
    assert panel.plot.model.name == "Roofline of T4"


@pytest.mark.long
def test_compulsory_bytes_can_be_counted_instead(of_all, shared):
    QTest.mouseClick(shared.bar.buttons["bytes", "compulsory"], Qt.MouseButton.LeftButton)
    model = shared.plot.model
    assert model.x.title == "FLOPs for each minimum byte"
    place = roofline_of(of_all.session.trace.program).place("flash2", "prefill")
    mark = marks(shared)["flash2 prefill"]
    assert mark.x == place.flops / place.compulsory
    assert mark.y == 989e12
    assert "so far" not in marks(shared)
    assert "moved once" in " ".join(mark.details)


def test_the_first_view_shows_requested_bytes_and_dram_by_model(window, panel):
    window.session.settle()
    program = window.session.trace.program
    spent, place = duration_of(program), roofline_of(program).place("flash2", "prefill")
    flops, found = program.totals.flops, marks(panel)
    own, asked = found["by model"], found["flash2 prefill"]
    assert (own.x, own.y) == (flops / spent.dram_bytes, flops / spent.seconds)
    assert own.label == f"DRAM by model {duration_text(spent)}"
    assert f"limited by {spent.model.bound_by}" in own.details
    assert asked.x == place.intensity
    way = panel.plot.model.curves[1]
    assert sorted(way.xs) == sorted((own.x, asked.x))


@pytest.mark.long
def test_what_runs_reach_by_model_stands_at_both_kinds_of_bytes(of_all, shared):
    QTest.mouseClick(shared.bar.buttons["bytes", "model"], Qt.MouseButton.LeftButton)
    of_all.session.settle()
    model = shared.plot.model
    assert model.y.title == "FLOP/s by model"
    spent = comparison_of(of_all.session.trace.program).totals[-1].duration
    filled = next(m for m in model.marks if m.short == "flash2 prefill")
    [hollow] = [m for m in model.marks if m.y == filled.y and m.marker == "ring"]
    assert filled.label == f"flash2 prefill ≈ {time_text(spent.seconds)}"
    assert hollow.x < marks(shared)["ridge"].x < filled.x
    assert "limited by products" in filled.details


@pytest.mark.long
def test_nothing_is_measured_until_a_gpu_has_been(of_all, shared):
    assert not [mark for mark in shared.plot.model.marks if "timed" in mark.short]
    program = of_all.session.trace.program
    timed = Measured("flash2", "a card", 0.02, program.totals.flops / 0.02)
    model = plot_of(program, measured=(timed,))
    [mark] = [mark for mark in model.marks if "timed" in mark.short]
    assert mark.y == timed.rate
    assert mark.label == "flash2 on a card: 20.0 ms"
