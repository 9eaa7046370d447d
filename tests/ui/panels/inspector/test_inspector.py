"""The Attention inspector in the window: hovered value = shown value = simulator's value."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest

from simulator.lesson.tables import ChooseTable
from simulator.problem.scenario import parse_scenario, with_values
from simulator.problem.workload import read_inputs, resolve
from simulator.study.attention_map import MapSettings
from tests.helpers.pointer import click
from tests.helpers.runs import trace_of
from tests.helpers.waiting import settle
from tests.ui.session.test_tasks import endless
from ui.look.heat import diverging, rooted
from ui.look.theme import THEMES
from ui.look.units import exact_text, number_text
from ui.panels.inspector.blend import parts_of
from ui.panels.inspector.jacobian import jacobian_of, part_words
from ui.panels.inspector.model import grid_of, peak, reading, shrunk
from ui.panels.inspector.panel import same_scores

SLIDERS = ("temperature", "window", "sinks")
PANEL, DEMO, LAYOUT = "inspector", "inspector", "inspector"


def start(window, **tables) -> None:
    window.session.start(parse_scenario(tables), None)
    settle(window)


def hover(panel, at: QPointF) -> None:
    QTest.mouseMove(panel.canvas, at.toPoint())


def cell_of(panel, row: int, key: int) -> QPointF:
    layout = panel.layout_now()
    grid = layout.grid
    first = panel.model.rows.start
    return layout.cell_box((row - first) // grid.tall, key // grid.wide).center()


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ["naive", "flash2"])
def test_the_board_beside_it_has_the_same_colours(window, panel, algorithm) -> None:
    start(window, attention={"algorithm": algorithm, "heads": 1, "seqlen_q": 8, "head_dim": 4},
          tiling={"rows": 8, "cols": 8})  # fmt: skip
    window.session.last()
    settle(window)
    board = window.board
    row, lay = panel.pointer.row, board.board_layout()
    pictures = board.grab().toImage(), panel.canvas.grab().toImage()
    for key in range(8):
        at = lay.tile(range(row, row + 1), range(key, key + 1)).center(), cell_of(panel, row, key)
        one, other = (
            image.pixelColor((point + QPointF(0, 3)).toPoint()).getRgb()
            for image, point in zip(pictures, at, strict=True)
        )
        assert max(abs(a - b) for a, b in zip(one, other, strict=True)) <= 3, (key, one, other)


def weights(window, settings: MapSettings, head: int) -> np.ndarray:
    """Return the weights of a head in float64, from the definition."""
    trace = window.session.trace
    w, inputs = trace.workload, trace.inputs
    q, k = inputs.q[head].astype(float), inputs.k[w.kv_head_of[head]].astype(float)
    scores = q @ k.T * w.scale / settings.temperature
    i = np.arange(w.seqlen_q)[:, None] + w.seqlen_k - w.seqlen_q
    j = np.arange(w.seqlen_k)[None, :]
    seen = np.ones(scores.shape, dtype=bool)
    if settings.window:
        seen = (np.abs(i - j) < settings.window) | (j < settings.sinks)
    if settings.causal:
        seen &= j <= i
    scores[~seen] = -np.inf
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


# --- what is read -----------------------------------------------------------------------------


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("capture", ["robot-ball-layer2", "cat-because-layer0", "passage-layer1"])
def test_what_is_hovered_is_the_softmax_of_the_capture(window, panel, capture):
    start(window, input={"source": "capture", "name": capture})
    rng = np.random.default_rng(3)
    exact = weights(window, panel.settings, 0)
    for _ in range(12):
        row, key = (int(n) for n in rng.integers(0, exact.shape[0], 2))
        hover(panel, cell_of(panel, row, key))
        pointer = panel.hovered
        grid = panel.layout_now().grid
        assert (pointer.row // grid.tall, pointer.key // grid.wide) == (
            row // grid.tall, key // grid.wide,
        )  # fmt: skip
        shown = panel.model.maps.of(0)[pointer.row, pointer.key]
        assert shown == pytest.approx(exact[pointer.row, pointer.key], abs=1e-6)
        assert reading(panel.model, pointer).endswith(exact_text(shown))
        assert exact_text(shown) in panel.canvas.accessibleDescription()
        # What is coloured there is this number, too.
        assert shrunk(panel.model, grid)[row // grid.tall, key // grid.wide] == shown


@pytest.mark.long
def test_every_cell_of_a_shrunk_map_reads_the_pair_that_it_shows(window, panel):
    start(window, input={"source": "capture", "name": "passage-layer1"},
          mask={"window": 40, "sinks": 3})  # fmt: skip
    panel.compare(True)
    for rows, cols in ((70, 50), (495, 495), (200, 300)):
        grid = grid_of(panel.model, rows, cols)
        values = shrunk(panel.model, grid)
        assert values.shape == (grid.rows, grid.cols)
        rng = np.random.default_rng(rows)
        for _ in range(200):
            r, c = int(rng.integers(grid.rows)), int(rng.integers(grid.cols))
            row, key = peak(panel.model, grid, r, c)
            if np.isneginf(values[r, c]):
                assert not panel.model.sees(row, key)
            else:
                assert panel.model.sees(row, key)
                assert panel.model.value(row, key) == pytest.approx(float(values[r, c]), abs=0)


def test_the_row_shown_is_that_of_the_board_until_one_is_pointed_at(window, panel):
    window.session.go_to_tile(1, 0)
    window.session.choose_row(9)
    settle(window)
    assert panel.pointer.row == 9
    entropy = panel.model.maps.entropy[0, 9]
    assert f"entropy {entropy:.2f} bits" in panel.canvas.accessibleDescription()
    hover(panel, cell_of(panel, 4, 2))
    assert (panel.pointer.row, panel.pointer.key) == (4, 2)
    panel.canvas.leaveEvent(None)
    assert (panel.pointer.row, panel.pointer.key) == (9, None)


def test_a_dimension_of_the_output_can_be_read(window, panel):
    layout = panel.layout_now()
    hover(panel, layout.strips[1].center())
    assert panel.hovered.dim in (15, 16)  # of 32
    found = panel.model.maps.lookup(0, panel.pointer.row, panel.model.v)
    exact = weights(window, panel.settings, 0)[panel.pointer.row] @ panel.model.v
    assert np.allclose(found.soft, exact, atol=1e-5)
    assert np.array_equal(found.hard, panel.model.v[found.key])


# --- sliders ----------------------------------------------------------------------------------


def test_sliders_change_the_inspector_and_not_the_scenario(window, panel, session):
    before = session.scenario
    for name, value in (("temperature", -40), ("window", 5), ("sinks", 2)):
        panel.bar.sliders[name].setValue(value)
    QTest.mouseClick(panel.bar.buttons["causal"], Qt.MouseButton.LeftButton)
    settle(window)
    assert panel.settings == MapSettings(0.398, True, 5, 2)
    exact = weights(window, panel.settings, 0)
    assert np.abs(panel.model.maps.of(0) - exact).max() < 1e-6
    hover(panel, cell_of(panel, 3, 9))
    assert "does not see" in reading(panel.model, panel.pointer)
    assert session.scenario == before
    # The small maps follow, and tell what is hidden.
    assert np.isneginf(panel.model.small[0, 0, 1])
    assert panel.model.small[0, 0, 0] == 1
    QTest.mouseClick(panel.bar.buttons["reset"], Qt.MouseButton.LeftButton)
    settle(window)
    assert panel.settings == MapSettings()
    assert panel.bar.sliders["window"].value() == 0


def test_keys_move_the_sliders(window, panel):
    for name in SLIDERS:
        slider = panel.bar.sliders[name]
        slider.setFocus()
        before = slider.value()
        QTest.keyClick(slider, Qt.Key.Key_Up)
        assert slider.value() == before + 1
    assert panel.settings.temperature == 1.02
    assert (panel.settings.window, panel.settings.sinks) == (1, 1)


@pytest.mark.long
def test_a_window_of_two_sides_is_named_until_its_slider_moves(window, panel, session):
    start(window, attention={"seqlen_q": 20, "seqlen_k": 30, "head_dim": 8},
          mask={"window": [5, 11], "align": "top-left"})  # fmt: skip
    assert panel.bar.labels["window"].text() == "window [5, 11]"
    assert panel.bar.sliders["window"].value() == 6  # keys, counted back from a row's own
    np.testing.assert_array_equal(
        panel.model.maps.mask.visible(range(20), range(30)),
        session.trace.workload.mask.visible(range(20), range(30)),
    )
    panel.bar.sliders["window"].setValue(4)
    assert panel.bar.labels["window"].text() == "window 4"
    QTest.mouseClick(panel.bar.buttons["put"], Qt.MouseButton.LeftButton)
    settle(window)
    mask = session.trace.workload.mask
    assert (mask.window, mask.align) == (4, "top-left")


@pytest.mark.long
def test_settings_are_put_into_the_scenario_but_for_what_the_file_binds(window, panel, session):
    put, before = panel.bar.buttons["put"], session.scenario
    assert not put.isEnabled()
    QTest.mouseClick(panel.bar.buttons["causal"], Qt.MouseButton.LeftButton)
    assert not put.isEnabled()
    assert "robot-ball-layer2.safetensors says that its attention is not causal" in put.toolTip()
    assert any("not causal" in note for note in panel.model.notes)
    panel.bar.sliders["window"].setValue(6)
    panel.bar.sliders["temperature"].setValue(30)
    assert put.isEnabled()
    QTest.mouseClick(put, Qt.MouseButton.LeftButton)
    settle(window)
    w = session.trace.workload
    assert (w.mask.window, w.mask.causal) == (6, False)
    assert w.temperature == panel.settings.temperature == 2.0
    assert panel.settings.causal
    session.undo_stack.undo()
    settle(window)
    assert session.scenario == before
    assert panel.settings == MapSettings()


@pytest.mark.long
@pytest.mark.parametrize("demo", ["large-logits"])
def test_causal_is_put_where_no_file_binds_it(window, panel):
    QTest.mouseClick(panel.bar.buttons["causal"], Qt.MouseButton.LeftButton)
    QTest.mouseClick(panel.bar.buttons["put"], Qt.MouseButton.LeftButton)
    settle(window)
    assert window.session.trace.workload.mask.causal
    assert panel.settings.causal


# --- heads ------------------------------------------------------------------------------------


def test_a_click_on_a_small_map_shows_that_head(window, panel):
    boxes = dict(panel.layout_now().heads)
    assert len(boxes) == 12
    click(panel.canvas, boxes[7].center())
    assert panel.model.head == 7
    assert np.abs(panel.model.values - weights(window, panel.settings, 7)).max() < 1e-6
    assert reading(panel.model, panel.pointer).startswith("head 7")
    # 18 rows fit the small maps whole.
    assert np.array_equal(panel.model.small[7], panel.model.values)


@pytest.mark.long
def test_two_heads_are_compared(window, panel):
    QTest.mouseClick(panel.bar.buttons["compare"], Qt.MouseButton.LeftButton)
    assert (panel.model.head, panel.model.other) == (0, 1)
    click(panel.canvas, dict(panel.layout_now().heads)[8].center())
    assert panel.model.other == 8
    expected = weights(window, panel.settings, 0) - weights(window, panel.settings, 8)
    assert np.abs(panel.model.values - expected).max() < 2e-6
    hover(panel, cell_of(panel, 8, 3))
    words = reading(panel.model, panel.pointer)
    first, second = (panel.model.maps.of(head)[8, 3] for head in (0, 8))
    assert f"head 0 {exact_text(first)}, head 8 {exact_text(second)}" in words
    assert words.endswith(exact_text(panel.model.values[8, 3]))
    QTest.mouseClick(panel.bar.buttons["compare"], Qt.MouseButton.LeftButton)
    assert panel.model.other is None


def test_signs_are_told_apart_in_every_theme():
    for theme in THEMES.values():
        words = diverging(theme)
        assert len({words[0], words[127], words[255]}) == 3
        assert words[127] == words[128]
    assert rooted(np.array([-0.25, 0, 0.25], np.float32)).tolist() == [-0.5, 0, 0.5]


@pytest.mark.long
def test_the_jacobian_of_the_row_in_place_of_what_it_reads(window, panel):
    before = panel.canvas.grab().toImage()
    QTest.mouseClick(panel.bar.buttons["jacobian"], Qt.MouseButton.LeftButton)
    row = panel.model.maps.of(0)[0].astype(float)
    p = row / row.sum()
    norm = np.linalg.norm(np.diag(p) - np.outer(p, p))
    words = panel.canvas.accessibleDescription()
    assert f"Jacobian diag(p) − p pᵀ of row 0 “[CLS]”: norm {number_text(norm)}" in words
    assert f"trace {number_text(1 - (p**2).sum())}" in words
    assert panel.canvas.grab().toImage() != before
    # The temperature moves it: a softer row learns more.
    panel.take_settings(replace(panel.settings, temperature=3.0))
    softer = jacobian_of(panel.model, 0)
    assert softer.norm > norm
    panel.take_choices(ChooseTable())  # as a lesson has it that does not ask for it
    assert not panel.bar.buttons["jacobian"].isChecked()
    panel.take_settings(replace(panel.settings, temperature=1.0))
    settle(window)
    assert panel.canvas.grab().toImage() == before


@pytest.mark.long
def test_the_output_of_the_row_adds_up_of_values_in_place_of_what_it_reads(panel):
    before, wide = panel.canvas.grab().toImage(), panel.layout_now().cells.width()
    QTest.mouseClick(panel.bar.buttons["blend"], Qt.MouseButton.LeftButton)
    assert "each value times its weight, and their sum" in panel.canvas.accessibleDescription()
    assert panel.canvas.grab().toImage() != before
    assert panel.layout_now().cells.width() <= wide
    assert panel.layout_now().blend.isEmpty()
    model, row = panel.model, 8
    soft = model.maps.lookup(model.head, row, model.v).soft
    for most in (2, 6, model.keys):
        parts = parts_of(model, row, most)
        assert len(parts) == most
        assert sum(part.weight for part in parts) == pytest.approx(1, abs=1e-6)
        np.testing.assert_allclose(sum(part.share for part in parts), soft, atol=1e-6)
        known = [part for part in parts if part.value is not None]
        assert [part.weight for part in known] == sorted((p.weight for p in known), reverse=True)
        for part in known:
            np.testing.assert_allclose(part.share, part.weight * part.value)
    QTest.mouseClick(panel.bar.buttons["jacobian"], Qt.MouseButton.LeftButton)
    assert not panel.bar.buttons["blend"].isChecked(), "one of them at a time"
    assert not panel.model.blend
    panel.take_choices(ChooseTable(blend=True))
    assert (panel.model.blend, panel.model.jacobian) == (True, False)
    panel.take_choices(ChooseTable())
    assert panel.canvas.grab().toImage() == before


@pytest.mark.long
@pytest.mark.parametrize("demo", ["real-scale"])
def test_of_many_keys_the_jacobian_says_what_it_leaves_out(panel):
    found = jacobian_of(panel.model, 0, most=8)
    assert (len(found.keys), found.visible) == (1, 1)
    assert part_words(found)[0].startswith("how each weight")
    found = jacobian_of(panel.model, 15, most=8)
    assert (len(found.keys), found.visible) == (8, 16)
    assert part_words(found)[0].startswith("the 8 strongest of 16 keys, ")


# --- the board --------------------------------------------------------------------------------


@pytest.mark.long
def test_a_click_sends_the_board_to_head_tile_and_row(window, panel, session):
    click(panel.canvas, dict(panel.layout_now().heads)[5].center())
    click(panel.canvas, cell_of(panel, 14, 7))
    settle(window)
    visit = session.view.snapshot.visit
    assert (visit.head, visit.i, visit.j) == (5, 14 // 6, 7 // 6)
    assert session.view.report.row == 14
    assert (session.view.cell.row, session.view.cell.col) == (14, 7)
    assert panel.model.head == 5


@pytest.mark.long
def test_nothing_of_another_run_is_shown(window, panel, session, monkeypatch):
    shape = {"seqlen_q": 24, "head_dim": 16}
    start(window, attention=shape | {"heads": 1})
    shown = []

    def tell():
        shown.append((panel.model, session.trace))

    monkeypatch.setattr(panel, "_tell", tell)
    start(window, attention=shape | {"heads": 3})
    models = [(model, trace) for model, trace in shown if model is not None]
    assert models
    for model, trace in models:
        assert model.workload is trace.workload
        assert model.small is None or len(model.small) == 3
    assert models[-1][0].small is not None
    assert shown[0][0] is None, "while it is worked out"


@pytest.mark.long
@pytest.mark.parametrize("way", ["click", "Enter"])
def test_after_cancel_it_says_so_and_computes_when_asked(window, panel, session, qtbot, way):
    started = threading.Event()
    before = session.trace
    session.tasks.start("search", "searching", endless(started), lambda _: None)
    assert started.wait(5)
    session.start(parse_scenario({"attention": {"seqlen_q": 24, "head_dim": 16}}), None)
    qtbot.waitUntil(lambda: panel.trace not in (None, before))
    strip = window.header.progress
    qtbot.waitUntil(strip.isVisible)
    blank = panel.canvas.grab().toImage()
    qtbot.mouseClick(strip.button, Qt.MouseButton.LeftButton)
    settle(window)
    assert panel.model is None
    assert "not computed" in panel.canvas.accessibleDescription()
    assert panel.canvas.grab().toImage() != blank
    if way == "click":
        click(panel.canvas, QPointF(20, 20))
    else:
        qtbot.keyClick(panel.canvas, Qt.Key.Key_Return)
    settle(window)
    assert panel.model.workload is session.trace.workload


@pytest.mark.long
def test_the_board_takes_the_inspector_along(window, panel, session):
    index = session.trace.program.index(3, 1, 1)
    session.go(type(session.cursor)(index, 0))
    settle(window)
    assert panel.model.head == 3


def test_a_click_on_a_token_sends_the_board_to_its_row(window, panel, session):
    labels = panel.layout_now().row_labels
    click(panel.canvas, QPointF(labels.center().x(), cell_of(panel, 15, 0).y()))
    settle(window)
    assert session.view.report.row == 15
    assert session.view.snapshot.visit.i == 15 // 6


def test_keys_reach_rows_keys_heads_and_the_board(window, panel, session):
    panel.canvas.setFocus()
    for key in (Qt.Key.Key_PageDown, Qt.Key.Key_PageDown, Qt.Key.Key_Down, Qt.Key.Key_BracketRight):
        QTest.keyClick(panel.canvas, key)
    assert panel.model.head == 1
    assert (panel.pointer.row, panel.pointer.key) == (1, 1)
    QTest.keyClick(panel.canvas, Qt.Key.Key_Return)
    settle(window)
    assert session.view.snapshot.visit.head == 1
    assert session.view.report.row == 1
    QTest.keyClick(panel.canvas, Qt.Key.Key_Escape)
    assert panel.hovered is None


# --- too large --------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("demo", ["real-scale"])
def test_of_what_is_too_large_a_part_is_shown_and_said(window, panel, session):
    assert panel.model.rows == range(16)
    assert "head 0, rows 0 to 15" in panel.model.notes[0]
    assert panel.model.small is None
    assert "too many weights" in panel.model.notes[1]
    layout = panel.layout_now()
    assert layout.heads == ()  # no map of the only head: its place goes to the row
    assert layout.read.top() == layout.caption.top()
    session.go_to_tile(100_000 // 128, 3)
    session.choose_row(100_000)
    settle(window)
    assert 100_000 in panel.model.rows
    grid = panel.layout_now().grid
    hover(panel, cell_of(panel, 100_000, 50_000))
    pointer = panel.hovered
    assert pointer.row == 100_000
    assert pointer.key // grid.wide == 50_000 // grid.wide
    trace = session.trace
    row = trace.inputs.q[0, 100_000].astype(float) @ trace.inputs.k[0, :100_001].astype(float).T
    p = np.exp((row - row.max()) * trace.workload.scale)
    p /= p.sum()
    shown = panel.model.value(pointer.row, pointer.key)
    assert shown == pytest.approx(p[pointer.key], abs=1e-6)
    block = p[pointer.key // grid.wide * grid.wide :][: grid.wide]
    assert shown == pytest.approx(block.max(), abs=1e-6)


# --- looks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("scores", [{"softcap": 0.5}, {"alibi": True}, {"sink_logits": [9.0] * 12}])
def test_runs_of_other_scores_on_the_same_inputs_have_other_maps(scores) -> None:
    said = parse_scenario({"input": {"source": "capture", "name": "cat-because-layer2"}})
    w = resolve(said)
    inputs = read_inputs(w)
    one = trace_of(said, inputs)
    assert same_scores(one, trace_of(said, inputs))
    assert same_scores(one, trace_of(with_values(said, {"mask": {"window": 3}}), inputs))
    assert not same_scores(one, trace_of(with_values(said, {"scores": scores}), inputs))
