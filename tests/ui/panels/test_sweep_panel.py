"""The Sweep dock in the window: figures, pointer, keys, and that a click becomes the scenario."""

from itertools import combinations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from simulator.base.assets import SCENARIOS
from simulator.lesson.tables import ChooseTable
from simulator.problem.scenario import parse_scenario
from simulator.program.algorithms import ALGORITHMS, tile_program
from simulator.study.sweep import Sweep, TilingMap, rule_tiles
from simulator.study.variants import variant_table
from simulator.timing.duration import duration_of
from tests.helpers.by_hand import press
from tests.helpers.changes import choose_algorithm
from tests.helpers.pointer import click
from tests.helpers.scenario_desk import CAPTURE
from tests.helpers.waiting import settle
from ui.look.durations import duration_text
from ui.look.units import bytes_text, count_text
from ui.panels.sweep.plot import NO_MAP, CurvePick

PANEL, DEMO, LAYOUT = "sweep", "causal", "memory"


@pytest.fixture
def panel(panel):
    press(panel, "tiles", "own")
    return panel


def test_curves_begin_in_the_tiles_of_kernels_and_a_click_takes_these(panel, session):
    """In the demo's own tiles FlashAttention-1 asks for more than naive at any length."""
    press(panel, "tiles", "kernels")
    tiles = rule_tiles(session.trace.workload)["fa2"]
    assert f"{tiles[0]} × {tiles[1]} tiles" in panel.accessibleDescription()
    last = {curve.short: curve.ys[-1] for curve in panel.plot.model.curves}
    assert last["flash2"] < last["flash1"] < last["naive"]
    curve = next(c for c in panel.plot.model.curves if c.short == "flash2")
    place = curve.xs.index(512)
    click(panel.plot.surface, panel.plot.where(512, curve.ys[place]))
    session.settle()
    w = session.trace.workload
    assert (w.seqlen_k, w.rows, w.cols) == (512, *tiles)
    assert session.trace.program.totals.bytes == curve.ys[place]


def test_curves_of_all_algorithms_with_this_scenario_marked(window, panel):
    found, model = panel.state.found, panel.plot.model
    assert isinstance(found, Sweep)
    assert [curve.short for curve in model.curves] == ["naive", "flash1", "flash2"]
    assert len({(c.dash, c.marker, c.role) for c in model.curves}) == 3
    [mark] = model.marks
    total = window.session.trace.program.totals
    assert (mark.x, mark.y) == (64, total.bytes)
    assert f"{count_text(total.bytes)} B" in " ".join(mark.details)
    assert bytes_text(total.bytes) in panel.accessibleDescription()


@pytest.mark.long
@pytest.mark.parametrize("axis", ["N", "Br", "Bc", "d"])
def test_a_click_on_a_point_proposes_it_and_undo_takes_it_back(panel, session, axis):
    press(panel, "over", axis)
    curve = panel.plot.model.curves[0]
    before = session.scenario
    place = next(n for n in range(len(curve.xs) - 1, -1, -1)
                 if curve.xs[n] != panel.state.found.here and curve.xs[n] <= 512)  # fmt: skip
    value = round(curve.xs[place])
    # Curves may lie on one another: the topmost counts, all of them propose the same size.
    spot = panel.plot.spot_at(panel.plot.where(curve.xs[place], curve.ys[place]))
    assert isinstance(spot.pick, CurvePick)
    assert spot.pick.value == value
    click(panel.plot.surface, panel.plot.where(curve.xs[place], curve.ys[place]))
    session.settle()
    w = session.trace.workload
    assert {"N": w.seqlen_k, "Br": w.rows, "Bc": w.cols, "d": w.head_dim}[axis] == value
    assert w.algorithm == spot.pick.algorithm
    # What was promised is what the run really asks.
    [mark] = panel.plot.model.marks
    assert mark.y == session.trace.program.totals.bytes
    assert mark.x == value
    session.undo_stack.undo()
    session.settle()
    assert session.scenario == before


@pytest.mark.long
def test_a_click_on_the_map_takes_its_tiles(panel, session):
    press(panel, "over", "map")
    found = panel.state.found
    assert isinstance(found, TilingMap)
    assert found.algorithm == "flash2"
    at = panel.plot.where(40, 24)
    cell = panel.plot.spot_at(at)
    click(panel.plot.surface, at)
    session.settle()
    w = session.trace.workload
    assert (w.rows, w.cols) == (24, 40)
    total = session.trace.program.totals
    assert f"requested {bytes_text(total.bytes)}" in cell.details[1]
    session.undo_stack.undo()
    session.settle()
    assert (session.trace.workload.rows, session.trace.workload.cols) == (16, 16)


@pytest.mark.long
def test_the_map_of_another_algorithm_proposes_that_algorithm(panel, session):
    box = panel.bar.lists["algorithm"]
    assert not box.isVisible()
    press(panel, "over", "map")
    assert [box.itemData(n) for n in range(box.count())] == list(ALGORITHMS)
    assert box.currentText() == "flash2"
    QTest.keyClick(box, Qt.Key.Key_Up)
    session.settle()
    assert panel.state.found.algorithm == "flash1"
    click(panel.plot.surface, panel.plot.where(30, 30))
    session.settle()
    assert session.scenario.attention.algorithm == "flash1"
    assert box.currentText() == "flash1"
    total = tile_program(session.trace.workload).totals.bytes
    assert panel.state.found.here_figures.bytes == total


@pytest.mark.long
@pytest.mark.parametrize(("demo", "size"), [("real-scale", (1920, 1080))])
def test_the_map_marks_what_fits_and_what_kernels_choose(window, panel):
    press(panel, "over", "map")
    model, w = panel.plot.model, window.session.trace.workload
    heat, limit = model.heat, w.gpu.smem_bytes
    for row, r in enumerate(panel.state.found.rows):
        for column, c in enumerate(panel.state.found.cols):
            needed = 2 * (r * 128 + c * 256)  # Q, K and V tiles, 2 bytes an element
            assert heat.beyond[row, column] == (needed > limit)
            assert heat.values[row, column] == panel.state.found.figures[row][column].bytes
    places = {(round(mark.y), round(mark.x)): mark.label for mark in model.marks}
    rules = rule_tiles(w)
    assert set(places) == {(w.rows, w.cols), *rules.values()}
    assert places[w.rows, w.cols].startswith("here")
    assert places[rules["paper"]].startswith("paper")
    boxes = [label.box for label in panel.plot.plot_layout().labels]
    assert len(boxes) == len(model.marks) + 1  # and the words for what is over the limit
    assert not any(a.intersects(b) for a, b in combinations(boxes, 2))


@pytest.mark.long
def test_quantities(window, panel):
    press(panel, "quantity", "time")
    program = window.session.trace.program
    [mark] = panel.plot.model.marks
    assert mark.y == duration_of(program).seconds
    assert panel.plot.model.levels == ()
    assert panel.plot.model.y.title == "Time by model"
    assert any(line.startswith(duration_text(duration_of(program))) for line in mark.details)
    press(panel, "over", "map")
    assert panel.plot.model.note.endswith(f"A launch alone takes some 4 µs. {NO_MAP}")
    heat = panel.plot.model.heat
    assert heat.title == "Least time by the data sheet"
    press(panel, "over", "N")
    press(panel, "quantity", "shared")
    [mark] = panel.plot.model.marks
    assert mark.y == program.peak_shared_bytes
    [level] = panel.plot.model.levels
    assert level.value == program.workload.gpu.smem_bytes
    assert "227.0 KiB" in level.label
    press(panel, "quantity", "flops")
    assert panel.plot.model.marks[0].y == program.totals.flops
    press(panel, "quantity", "held")
    [mark] = panel.plot.model.marks
    w = program.workload
    exact = w.heads * w.seqlen_q * (2 * (2 * w.head_dim + 2 * w.value_dim) + 4)  # Q, K, V, O, LSE
    assert (w.heads, mark.y) == (w.kv_heads, exact)
    naive = panel.plot.model.curves[0]
    assert naive.name == "Naive attention"
    assert naive.ys[-1] > 50 * panel.plot.model.curves[2].ys[-1]


def test_a_latent_has_no_table_of_variants(panel, session):
    press(panel, "over", "variants")
    session.open(SCENARIOS / "mla.toml")
    session.settle()
    assert panel.accessibleDescription().startswith("No variants. Keys and values are one latent")


@pytest.mark.long
def test_the_table_of_variants_is_live_and_says_its_powers(window, panel, session):
    press(panel, "over", "variants")
    assert not panel.plot.isVisible()
    assert panel.picture.isVisible()
    assert not panel.bar.buttons["quantity", "time"].isVisible()
    assert panel.state.found == variant_table(session.trace.workload)
    naive = panel.state.found.rows[0]
    words = panel.accessibleDescription()
    assert f"held in HBM {bytes_text(round(naive.held.here))}, as N to the 1.99" in words
    assert "Exponents fitted from N = 4\u2009096 to 65\u2009536" in words
    assert [row.name for row in panel.state.found.rows if row.own] == ["MHA, FlashAttention-2"]
    choose_algorithm(window, "naive")
    session.settle()
    assert [row.name for row in panel.state.found.rows if row.own] == ["MHA, naive"]
    panel.take_choices(ChooseTable())  # a lesson that says nothing leaves it as it is
    assert panel.chosen["over"] == "variants"
    panel.take_choices(ChooseTable(over="N"))
    session.settle()
    assert panel.plot.isVisible()
    assert not panel.picture.isVisible()
    assert panel.bar.buttons["quantity", "time"].isVisible()


def test_steps_change_nothing_and_scenarios_do(window, panel, session):
    before, model = panel.state.found, panel.plot.model
    for _ in range(3):
        session.step()
        session.settle()
    assert panel.state.found is before
    assert panel.plot.model is model
    choose_algorithm(window, "naive")
    session.settle()
    assert panel.state.found is not before
    assert panel.plot.model.marks[0].y == session.trace.program.totals.bytes


def test_sizes_of_a_file_cannot_be_chosen(window, panel, session):
    session.start(parse_scenario(CAPTURE), None)
    settle(window)
    before = session.scenario
    curve = panel.plot.model.curves[2]
    assert curve.picks == ()
    assert session.trace.workload.file.path.name in curve.details[0][-1]
    click(panel.plot.surface, panel.plot.where(curve.xs[2], curve.ys[2]))
    session.settle()
    assert session.scenario == before
    press(panel, "over", "Br")
    assert panel.plot.model.curves[2].picks != ()


@pytest.mark.long
def test_keys_reach_everything(panel, session, qtbot):
    button = panel.bar.buttons["over", "map"]
    button.setFocus()
    QTest.keyClick(button, Qt.Key.Key_Return)
    session.settle()
    assert isinstance(panel.state.found, TilingMap)
    panel.plot.setFocus()
    for key in (Qt.Key.Key_PageDown, Qt.Key.Key_PageDown, Qt.Key.Key_Up):
        QTest.keyClick(panel.plot, key)
    expected = panel.plot.spot.pick
    assert "requested" in panel.plot.accessibleDescription()
    QTest.keyClick(panel.plot, Qt.Key.Key_Return)
    session.settle()
    assert (session.trace.workload.rows, session.trace.workload.cols) == expected
    QTest.keyClick(panel.plot, Qt.Key.Key_Up, Qt.KeyboardModifier.ShiftModifier)
    fit = panel.bar.fit_button
    assert fit.isEnabled()
    fit.setFocus()
    QTest.keyClick(fit, Qt.Key.Key_Return)
    assert not panel.plot.is_zoomed
    assert not fit.isEnabled()
