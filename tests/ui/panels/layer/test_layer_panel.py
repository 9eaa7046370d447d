"""The layer panel in a window: pointer, keys, motion, and runs that have no layer."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtTest import QTest
from safetensors.numpy import save_file

from simulator.base.assets import SCENARIOS
from simulator.lesson.tables import ChooseTable
from simulator.problem.scenario import Scenario, load_scenario, parse_scenario
from simulator.program.playback import Cursor
from simulator.run.trace import simulate
from simulator.run.whole_layer import compute_layer, finished_rows
from simulator.study.layer.choices import AT_WORK
from tests.helpers.changes import change
from tests.helpers.layers import CASE, layer_file
from ui.panels.layer.circuits import circuit
from ui.panels.layer.counts import count_at, counts_of, lines
from ui.panels.layer.matrices import Matrix
from ui.panels.layer.product import cell_of, items_of
from ui.panels.layer.state import NO_LAYER
from ui.panels.layer.study import LayerPanel
from ui.panels.layer.words import facts
from ui.safety.settings import Settings
from ui.window.main_window import MainWindow

# --- in the window ------------------------------------------------------------------------------


PANEL, DEMO, LAYOUT = "layer", "layer", "layer"


@pytest.fixture
def large(window: MainWindow, tmp_path: Path) -> LayerPanel:
    """Return the panel on a layer of four heads."""
    window.session.start(layer_file(tmp_path / "a.safetensors", "many heads"), None)
    window.session.settle()
    return window.docks.panel(LayerPanel)


def click(panel: LayerPanel, at: QPointF) -> None:
    QTest.mouseClick(panel.picture, Qt.MouseButton.LeftButton, pos=at.toPoint())


def press(panel: LayerPanel, key: Qt.Key) -> None:
    panel.picture.setFocus()
    QTest.keyClick(panel.picture, key)


def places_of(panel: LayerPanel, said: str) -> list[QRectF]:
    """Return the places of a matrix by its name in a line of text."""
    placed = panel.picture.scene.placed
    return [rect for box, rect in placed if isinstance(box, Matrix) and box.said == said]


def spots_of(panel: LayerPanel, kind: str) -> list[tuple[object, QRectF]]:
    """Return what can be chosen by a click, with its place."""
    return [(box.id[1], rect) for box, rect in panel.picture.scene.placed
            if isinstance(box.id, tuple) and box.id[0] == kind]  # fmt: skip


def cell(box: QRectF, row: int, col: int, rows: int, cols: int) -> QPointF:
    return QPointF(box.x() + (col + 0.5) * box.width() / cols,
                   box.y() + (row + 0.5) * box.height() / rows)  # fmt: skip


def test_a_click_explains_a_stage_and_keys_the_next(panel):
    assert panel.state.stage == AT_WORK
    for stage, place in spots_of(panel, "stage"):
        panel.choose("stage", AT_WORK)
        click(panel, place.topLeft() + QPointF(6, 6))
        assert panel.state.stage == panel.state.shown == stage
        assert facts(panel.state.run, str(stage))[0] in panel.accessibleDescription()
        assert panel.bar.lists["stage"].currentData() == stage
    click(panel, spots_of(panel, "stage")[-1][1].center())
    assert panel.state.stage == AT_WORK, "the same stage again"
    seen: list[str] = []
    for _ in range(6):
        press(panel, Qt.Key.Key_Down)
        seen.append(panel.state.stage)
    assert seen == ["concat", "y", "q", "k", "v", "o"], "the tiles are at work"
    press(panel, Qt.Key.Key_Up)
    assert panel.state.stage == "v"


def test_the_pointer_reads_every_number(panel):
    tip = panel.picture.scene.tip
    with np.load(CASE) as case:
        for name, plain in (("q", "Q"), ("v", "V"), ("y", "Y"), ("o", "O of each head")):
            (box,), wanted = places_of(panel, plain), case[name].reshape(3, 4)
            for row, col in np.ndindex(3, 4):
                said, _, value = tip(cell(box, row, col, 3, 4)).partition(" = ")
                assert said == f"{plain}[{row}, {col}]"
                assert float(value) == pytest.approx(wanted[row, col], abs=1e-6)
    assert tip(QPointF(1, 1)) == ""


def test_a_stage_at_large_explains_the_number_that_is_clicked(panel):
    QTest.mouseClick(panel.bar.buttons["layer", "stage"], Qt.MouseButton.LeftButton)
    for _ in range(3):
        press(panel, Qt.Key.Key_Down)
    assert panel.state.shown == "q"
    (box,) = places_of(panel, "Q")
    click(panel, cell(box, 1, 1, 3, 4))
    assert cell_of(panel.state, items_of(panel.state)) == (1, 1)
    assert "Q[1, 1] = 0·0 + 1·0.5 + 0·0 + 1·0.5 = 1" in panel.accessibleDescription()
    assert panel.picture.scene.tip(box.topLeft() + QPointF(2, 2)) == "Q[0, 0] = 1.0"
    press(panel, Qt.Key.Key_Down)
    assert panel.state.shown == "k"
    assert "K[0, 0]" in panel.accessibleDescription()


@pytest.mark.long
def test_a_row_of_y_is_chosen_by_pointer_and_keys(window, large):
    QTest.mouseClick(large.bar.buttons["layer", "row"], Qt.MouseButton.LeftButton)
    run = large.state.run
    click(large, cell(places_of(large, "Y")[0], 20, 0, 50, 1))
    assert large.state.shown_row == 20
    press(large, Qt.Key.Key_Up)
    assert large.state.shown_row == 19
    assert "row 19" in large.accessibleDescription()
    window.session.last()
    window.session.settle()
    scene = large.picture.scene
    said = scene.tip(cell(scene.where("stacks"), 0, 32, 2, 64))
    assert said.splitlines()[0] == "dimension 32"
    given = [float(line.partition(": ")[2].replace("−", "-")) for line in said.splitlines()[1:]]
    assert sum(given) == pytest.approx(float(run.arrays["y"][19, 32] - run.bias[32]), abs=1e-5)


@pytest.mark.long
def test_a_row_says_which_heads_have_not_given_yet(window, large):
    large.choose("layer", "row")
    window.session.go(Cursor(len(window.session.trace) // 2, 0))  # type: ignore[arg-type]
    window.session.settle()
    click(large, cell(places_of(large, "Y")[0], 49, 0, 50, 1))
    assert large.state.done == [0, 1]
    assert "2 of 4 heads have this row" in large.accessibleDescription()
    assert "head 2: not yet" in large.accessibleDescription()


@pytest.mark.long
def test_a_head_is_chosen_and_its_matrices_are_its_own(large):
    large.choose("layer", "head")
    run = large.state.run
    click(large, spots_of(large, "head")[2][1].center())
    assert large.state.shown_head == 2
    w, found = run.layer.weights, circuit(run, 2)
    wanted = w["wq"][:, 32:48].astype(float) @ w["wk"][:, 32:48].T.astype(float)
    np.testing.assert_allclose(found[0], wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[1], wanted - wanted.T, atol=1e-6)
    at = places_of(large, "A")[0].topLeft() + QPointF(1, 1)
    said, _, value = large.picture.scene.tip(at).partition(" = ")
    assert said == "A[0, 0]"
    assert float(value.replace("−", "-")) == pytest.approx(wanted[0, 0], rel=1e-4)
    apart = np.linalg.norm(wanted - wanted.T) / np.linalg.norm(wanted)
    assert f"‖A‖ = {apart:.3f}".rstrip("0") in large.accessibleDescription()
    assert "not symmetric" in large.accessibleDescription()
    press(large, Qt.Key.Key_Down)
    assert large.state.shown_head == 3
    press(large, Qt.Key.Key_Down)
    assert large.state.shown_head == 0


@pytest.mark.long
def test_the_slider_supposes_more_heads_and_changes_no_run(window, large):
    scenario = window.session.scenario
    large.choose("layer", "heads")
    assert large.slider.isVisible()
    counts = counts_of(large.state)
    assert [count.heads for count in counts] == [1, 2, 4, 8, 16, 32, 64]

    def heads() -> int:
        return counts[count_at(large.state)].heads

    assert heads() == large.state.run.heads == 4
    large.slider.setFocus()
    for _ in range(4):
        QTest.keyClick(large.slider, Qt.Key.Key_PageUp)
    found = {line.names[0]: line for line in lines(large.state)}
    assert heads() == 64
    assert [line.factor for line in found.values()] == [1, 1, 1, 64, 64]
    assert found["parameters of the four weights"].value == 4 * 64**2
    assert found["exponentials"].value == 64 * 50**2
    press(large, Qt.Key.Key_Up)
    assert heads() == 32
    assert "32 heads of 2" in large.accessibleDescription()
    assert window.session.scenario is scenario
    high = large.picture.height()
    large.show_controls(False)
    assert not large.slider.isVisible(), "in a film nobody can move it"
    assert large.picture.height() > high
    assert heads() == 32
    large.show_controls(True)
    assert large.slider.isVisible()
    large.choose("layer", "flow")
    assert not large.slider.isVisible()
    window.session.start(load_scenario(SCENARIOS / "induction.toml"), None)
    window.session.settle()
    assert counts_of(large.state)[count_at(large.state)].heads == 4, "its own again"


def test_the_flow_follows_the_run(window, session, large):
    trace = window.session.trace
    for visit in (0, 5, len(trace) - 1):
        session.go(Cursor(visit, 2))
        session.settle()
        assert large.state.at_work == "o"
        assert np.array_equal(large.state.finished, finished_rows(trace.snapshot(visit, 2)))
    session.last()
    session.settle()
    assert large.state.at_work == "y"
    assert large.state.moving is None, "motion is off"


@pytest.mark.long
def test_a_step_that_stores_rows_slides_them_if_motion_is_on(window, session, large):
    window.set_motion(True)
    trace = window.session.trace
    visit = 2  # the end of the second row block
    last = len(trace.program.ops(visit)) - 1
    session.go(Cursor(visit, last - 1))
    session.settle()
    session.step()
    session.settle()
    arriving = large.state.arriving
    assert arriving.sum() == 16
    large.show_share(0.3)
    assert large.state.moving is not None
    assert large.state.at_work == "concat"
    large.show_share(1.0)
    assert large.state.moving is None


# --- without a layer ----------------------------------------------------------------------------


def test_a_run_without_a_layer_says_so_and_offers_the_demo(open_window):
    window = open_window("causal", (1280, 720))
    window.desk.take("layer")
    window.session.settle()
    panel = window.docks.panel(LayerPanel)
    button = panel.buttons["demo"]
    assert panel.accessibleDescription().startswith(NO_LAYER)
    assert button.isVisible()
    demo = simulate(SCENARIOS / "layer.toml")  # what stands below is the demo's, at its end
    exact = compute_layer(demo)
    np.testing.assert_array_equal(panel.state.run.arrays["y"], exact.arrays["y"])
    assert panel.state.finished.all()
    assert places_of(panel, "Y")
    window.session.step()  # of the run at hand
    window.session.settle()
    assert panel.state.finished.all()
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    window.session.settle()
    assert window.session.path == SCENARIOS / "layer.toml"
    assert places_of(panel, "Y")
    assert not button.isVisible()


@pytest.mark.long
@pytest.mark.parametrize(("scale", "drawn"), [(1.0, True), (1.5, False)])
def test_a_panel_too_low_for_the_demo_does_not_say_that_it_is_below(
    open_window: Callable[..., MainWindow], settings: Settings, scale: float, drawn: bool
) -> None:
    settings.text_scale = scale
    window = open_window("causal", (1280, 720))
    window.desk.take("layer")
    window.session.settle()
    panel = window.docks.panel(LayerPanel)
    assert bool(places_of(panel, "Y")) is drawn
    assert ("Below is another run" in panel.accessibleDescription()) is drawn


@pytest.mark.long
def test_a_run_of_some_heads_offers_the_others(session, large):
    assert session.scenario is not None
    change(session, {"input": {"head": [0, 2]}}, "some")
    assert large.accessibleDescription() == "Only heads 0, 2 of 4 run, and Y needs all of them."
    large.buttons["all"].setFocus()
    QTest.keyClick(large.buttons["all"], Qt.Key.Key_Return)
    session.settle()
    assert large.state.run.heads == 4


def long_layer(path: Path) -> Scenario:
    """Write a layer that a view does not wait for."""
    rows, rng = 1200, np.random.default_rng(0)
    shapes = {"x": (rows, 8), "wq": (8, 32), "wk": (8, 32), "wv": (8, 32), "wo": (32, 8)}
    save_file({n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}, path)
    tables = {"attention": {"heads": 2}, "input": {"source": "layer", "path": str(path)}}
    return parse_scenario(tables)


@pytest.mark.long
def test_a_long_layer_is_run_beside_the_window(session, panel, tmp_path):
    session.start(long_layer(tmp_path / "a.safetensors"), None)
    session.settle()
    assert session.trace is not None
    assert panel.state.run is compute_layer(session.trace)
    assert panel.state.run.shapes["y"] == (1200, 8)


@pytest.mark.long
def test_a_long_layer_that_was_stopped_can_be_run_again(session, panel, qtbot, tmp_path):
    button = panel.buttons["again"]

    def stop() -> None:  # the panel has just asked for it
        session.view_changed.disconnect(stop)
        session.tasks.cancel()

    session.view_changed.connect(stop)
    session.start(long_layer(tmp_path / "a.safetensors"), None)
    session.settle()
    qtbot.waitUntil(lambda: panel.stopped)
    assert panel.accessibleDescription() == "The whole layer was not run."
    assert button.isVisible()
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    assert not button.isVisible(), "it is under way"
    session.settle()
    assert panel.state.run.shapes["y"] == (1200, 8)
    assert not button.isVisible()


@pytest.mark.long
def test_what_a_lesson_chooses_before_the_first_view_of_its_run_stays(open_window):
    """As where a film or a reader begins at a later step: choices come before the run."""
    window = open_window("flash2", (1280, 720))
    window.desk.take("layer")
    window.session.settle()
    panel = window.docks.panel(LayerPanel)
    panel.take_choices(ChooseTable(layer="stage", stage="q"))  # type: ignore[call-arg]
    window.session.start(load_scenario(SCENARIOS / "layer.toml"), None)
    window.session.settle()
    assert panel.state.shown == "q"
