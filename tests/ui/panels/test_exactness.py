"""The exactness panel, faults in the window, and the mark that every picture bears."""

import re
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from simulator.base.assets import SCENARIOS
from simulator.problem.facts import RULES
from simulator.problem.latent import fitting
from simulator.problem.scenario import load_scenario, parse_scenario, scenario_tables, with_values
from simulator.program.algorithms import ALGORITHMS
from simulator.program.faults import FAULTS, fault_labels
from simulator.program.playback import Cursor
from simulator.run.exactness import ErrorStrip, Exactness, RowError
from simulator.run.row_report import row_report
from simulator.run.snapshot import Cell
from simulator.run.trace import Trace, simulate
from tests.helpers.changes import change
from tests.helpers.painted import assert_tidy, painted, pixels, record_texts
from ui.board import fault_marks
from ui.board import text as board_text
from ui.board.board import paint_board
from ui.board.fault_marks import paint_fault_label
from ui.board.layout import board_layout
from ui.board.words import describe
from ui.export.picture import WidgetPicture
from ui.export.scenes import ComposedMoment, scene_moment
from ui.look.theme import DARK, THEMES, Style
from ui.look.units import ulp_text
from ui.panels.exactness import painter as scene
from ui.panels.exactness.painter import (
    exactness_layout,
    figure_lines,
    paint_exactness,
    row_at,
    row_words,
    shade,
)
from ui.panels.exactness.panel import exactness_model

pytestmark = pytest.mark.usefixtures("qapp")
NAMES = tuple(fault.name for fault in FAULTS)
FAULTY = (
    *((name, ("no_maximum", "half_accumulator", "late_mask")) for name in ALGORITHMS),
    *((name, (fault,)) for n, fault in enumerate(NAMES) for name in [*ALGORITHMS][n % 6 :: 6]),
)
"""Every algorithm with several faults at once; every fault with a sixth of the algorithms."""


@cache
def demo(name: str, faults: tuple[str, ...] = (), algorithm: str = "flash2") -> Trace:
    chosen = load_scenario(SCENARIOS / f"{name}.toml")
    changes: dict[str, Any] = {"faults": dict.fromkeys(faults, True)}
    changes["attention"] = {"algorithm": algorithm}
    if algorithm in RULES:
        changes["attention"] |= {"scale": None, "temperature": None}
        changes["mask"] = {"causal": RULES[algorithm].tokens or chosen.mask.causal}
    tables = scenario_tables(with_values(chosen, changes))
    return simulate(parse_scenario(fitting(tables)))


def model_at(trace: Trace, visit: int, op: int | None = None) -> tuple[Any, Exactness]:
    now = trace.snapshot(visit, op)
    return now, exactness_model(trace, now, row_report(now, 0))


@cache
def states() -> tuple[tuple[Any, Exactness], ...]:
    """States of all kinds: with and without faults, NaN, rows not known, none reached."""
    out = []
    for name, faults, algorithm in (
        ("causal", (), "flash2"), ("large-logits", ("no_maximum",), "flash1"),
        ("flash2", ("forget_alpha", "late_scale", "half_accumulator"), "flash2"),
        ("naive", (), "naive"), ("flash2-backward", (), "flash2-backward"),
        ("naive-backward", ("forget_dots",), "naive-backward"),
    ):  # fmt: skip
        trace = demo(name, faults, algorithm)
        out += [model_at(trace, visit) for visit in (0, len(trace) // 2, len(trace) - 1)]
    long = simulate(parse_scenario({
        "attention": {"seqlen_q": 2048, "head_dim": 8}, "tiling": {"rows": 64, "cols": 64},
    }))  # fmt: skip
    out.append(model_at(long, len(long) // 2))
    return tuple(out)


# --- the picture -------------------------------------------------------------------------------


@pytest.mark.long
def test_a_row_is_named_once_and_no_text_is_under_its_pointer():
    now, model = states()[0]
    rect, style, last = QRectF(0, 0, 560, 420), Style(DARK), now.program.workload.seqlen_q - 1
    axis = exactness_layout(rect, style).rows_axis
    for row in range(last + 1):
        with pytest.MonkeyPatch.context() as patch:
            drawn = record_texts(patch, scene)
            painted(lambda p, r=row: paint_exactness(p, now, model, style, rect, row=r))
        assert_tidy(drawn, rect)
        told = [one for one in drawn if axis.contains(one.ink.center())]
        assert [one.text for one in told].count(f"row {row}") == 1
        if 10 < row < last - 10:
            assert {one.text for one in told} >= {"row 0", str(last)}
        x = axis.x() + (row + 0.5) / (last + 1) * axis.width()
        pointer = QRectF(x - 3.5, axis.y(), 7, axis.height())
        assert not any(one.ink.intersects(pointer) for one in told), row


def test_bars_have_the_height_and_colour_of_their_error():
    now, model = model_at(demo("causal"), 4)
    ulp = np.zeros(64)
    states = np.full(64, RowError.KNOWN, dtype=np.uint8)
    ulp[16:32], ulp[32:48] = 1.0, 1e6
    states[48:56], states[56:] = RowError.EMPTY, RowError.BROKEN
    made = Exactness(ErrorStrip(ulp, states), model.half, 0, None, None, None, False)
    style, rect = Style(DARK), QRectF(0, 0, 700, 300)
    image = QImage(700, 300, QImage.Format.Format_RGB32)
    image.fill(QColor(DARK.panel))
    painter = QPainter(image)
    paint_exactness(painter, now, made, style, rect)
    painter.end()
    box = exactness_layout(rect, style).strips[0]

    def height(row: int, colour: QColor) -> int:
        x = round(box.x() + (row + 0.4) * box.width() / 64)
        column = [image.pixelColor(x, y).name() for y in range(int(box.y()), int(box.bottom()))]
        return column.count(colour.name())

    full = box.height()
    assert height(3, shade(DARK, -1.0)) == pytest.approx(2, abs=1)
    assert height(20, shade(DARK, 0.0)) == pytest.approx(full / 9, abs=4)
    assert height(40, shade(DARK, 6.0)) == pytest.approx(
        full * 7 / 9, abs=8
    )  # scale lines cross it
    assert height(50, QColor(DARK.empty)) > 0.8 * full
    assert height(60, QColor(DARK.empty)) == 0


def test_the_pointer_reads_keys_of_a_backward_pass():
    trace = demo("flash2-backward", (), "flash2-backward")
    _, model = model_at(trace, 20)
    rect, style = QRectF(0, 0, 600, 260), Style(DARK)
    _, second = exactness_layout(rect, style).strips
    assert row_at(rect, style, second.center(), model) == (1, 8)
    assert row_words(model, 0, 5) == f"row 5: off by {ulp_text(float(model.now.ulp[5]))}"
    assert row_words(model, 1, 4) == f"key 4: off by {ulp_text(float(model.half.ulp[4]))}"
    assert row_words(model, 1, 15) == "key 15: no gradient yet"


def test_the_pointer_reads_rows():
    _, model = model_at(demo("causal"), 4)
    rect, style = QRectF(0, 0, 600, 260), Style(DARK)
    first, second = exactness_layout(rect, style).strips
    assert row_at(rect, style, first.center(), model) == (0, 32)
    assert row_at(rect, style, QPointF(second.x() + 1, second.center().y()), model) == (1, 0)
    assert row_at(rect, style, QPointF(2, 2), model) is None
    assert row_words(model, 0, 0) == f"row 0: off by {ulp_text(float(model.now.ulp[0]))}"
    assert row_words(model, 0, 63) == "row 63: no output yet"
    assert row_words(model, 1, 5).endswith("in fp16 without a maximum")


# --- the window --------------------------------------------------------------------------------


PANEL, DEMO, LAYOUT, SIZE = "exactness", "causal", "exactness", (1440, 900)


def test_a_fault_is_switched_on_undone_and_named(qtbot, window, panel, session):
    box = panel.boxes["forget_alpha"]
    assert not box.isChecked()
    assert "Milakov" in box.toolTip()
    box.click()
    session.settle()
    assert session.scenario.faults.on == ("forget_alpha",)
    assert session.trace.engine.device == "CPU, faults on"
    assert window.windowTitle().startswith("FAULT: forget alpha — ")
    assert "the CUDA kernels have none" in session.why
    assert session.undo_stack.undoText() == "fault forget alpha"
    session.undo_stack.undo()
    session.settle()
    assert session.scenario.faults.on == ()
    assert not box.isChecked()
    assert not window.windowTitle().startswith("FAULT")
    assert "CUDA kernels" not in session.why


def test_the_first_wrong_step_is_found_and_gone_to(panel, session):
    assert not panel.step.isEnabled()
    panel.boxes["forget_alpha"].click()
    session.settle()
    assert panel.step.isEnabled()
    assert panel.step.text().startswith("First wrong step: visit 3, tile (1, 1), ℓ: ")
    panel.step.click()
    session.settle()
    visit = session.cursor.visit
    assert (visit, session.trace.program.ops(visit)[session.cursor.op].name) == (2, "row sum")
    assert session.view.snapshot.wrong.l.any()
    panel.boxes["forget_alpha"].click()
    session.settle()
    assert not panel.step.isEnabled()


@pytest.mark.long
def test_a_wrong_step_of_the_run_before_is_not_gone_to(panel, session):
    """The session has the new run a moment before the panel shows it: a click may come between."""
    flash1 = {"attention": {"algorithm": "flash1"}, "faults": {"forget_alpha": True}}
    session.start(with_values(session.scenario, flash1), None)
    session.settle()
    assert "combine" in str(panel.step.toolTip())
    clicks = []

    def click(trace: object) -> None:
        panel.step.click()
        clicks.append(trace)

    session.trace_changed.connect(click)
    naive = {"attention": {"algorithm": "naive"}, "faults": {"forget_alpha": None}}
    session.start(with_values(session.scenario, naive), None)
    session.settle()
    assert len(clicks) == 1
    assert session.trace.workload.algorithm == "naive"


@pytest.mark.long
def test_what_an_algorithm_cannot_do_is_grey_and_says_why(panel, session):
    panel.boxes["forget_alpha"].click()
    session.settle()
    changed = with_values(session.scenario, {"attention": {"algorithm": "naive"}})
    session.propose(changed, "naive")
    session.settle()
    for name in ("forget_alpha", "drop_previous_maximum"):
        assert "Without effect: naive takes one maximum" in panel.boxes[name].toolTip()
    assert not panel.boxes["drop_previous_maximum"].isEnabled()
    assert panel.boxes["forget_alpha"].isEnabled()  # it is on: let it be switched off
    assert panel.step.text().startswith("No wrong step: ")
    assert panel.boxes["late_mask"].isEnabled()


@pytest.mark.long
def test_the_strips_of_a_backward_pass_are_of_its_gradients(panel, session):
    session.open(SCENARIOS / "flash2-backward.toml")
    session.settle()
    session.go(Cursor(20, 0))
    session.choose_row(9)
    session.settle()
    assert panel.strips.model.gradients == (("dQ",), ("dK", "dV"))
    for strip, row in ((1, 9), (0, 8)):  # of keys: no row is chosen
        lay = exactness_layout(panel.strips.place(), panel.strips.style_now)
        QTest.mouseClick(
            panel.strips, Qt.MouseButton.LeftButton, pos=lay.strips[strip].center().toPoint()
        )
        session.settle()
        assert session.view.report.row == row


@pytest.mark.long
def test_a_click_on_the_strip_explains_the_row(qtbot, panel, session):
    session.last()
    session.settle()
    strips = panel.strips
    lay = exactness_layout(strips.place(), strips.style_now)
    point = lay.strips[0].center() + QPointF(lay.strips[0].width() / 2 - 3, 0)
    qtbot.mouseClick(strips, Qt.MouseButton.LeftButton, pos=point.toPoint())
    session.settle()
    assert session.view.report.row == 63


def test_a_device_that_cannot_make_faults_is_refused_in_one_line(session):
    told = []
    session.refused.connect(lambda error: told.append(str(error)))
    session.engines.name = "host"
    change(session, {"faults": {"no_maximum": True}}, "fault")
    assert len(told) == 1
    assert "the CUDA kernels have none" in told[0]
    assert session.scenario.faults.on == ()


# --- every picture says so ---------------------------------------------------------------------


@pytest.mark.long
@given(
    st.integers(120, 1500), st.integers(80, 900), st.sampled_from([1.0, 1.5, 2.0]),
    st.sets(st.sampled_from(NAMES), min_size=1),
)  # fmt: skip
def test_the_board_names_faults_at_every_size(width, height, scale, names):
    trace = demo("causal", tuple(name for name in NAMES if name in names))
    width, height = max(width, round(360 * 0.75)), max(height, 120)
    now, style = trace.snapshot(4), Style(DARK, scale)
    rect = QRectF(0, 0, width, height)
    labels = fault_labels(trace.workload.scenario)
    with pytest.MonkeyPatch.context() as patch:
        drawn = record_texts(patch, fault_marks)
        lay = board_layout(trace.workload, style, rect)
        painted(lambda p: paint_board(p, now, style, rect))
        written = record_texts(patch, board_text)
        painted(lambda p: board_text.paint_words(p, now, lay))
    marks = [one for one in drawn if one.text in labels]
    assert marks
    assert not marks[0].cut
    assert lay.header.contains(marks[0].ink)
    assert all(not marks[0].ink.intersects(one.ink) for one in written)


def test_without_faults_there_is_no_label():
    used: list[float] = []
    said, rect = demo("causal").workload.scenario, QRectF(0, 0, 90, 20)
    image = painted(lambda p: used.append(paint_fault_label(p, said, Style(DARK), rect)), 90, 20)
    assert used == [0.0]
    assert not has_colour(image, DARK.bad)


def has_colour(image: QImage, colour: str) -> bool:
    return bool((pixels(image) == QColor(colour).rgb() & 0xFFFFFF).any())


@pytest.mark.long
@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_an_exported_panel_bears_the_mark(window, tmp_path, suffix):
    widget = QWidget()
    widget.resize(300, 120)
    style = Style(THEMES["light"])
    plain, marked = tmp_path / f"plain{suffix}", tmp_path / f"marked{suffix}"
    WidgetPicture(widget).save(plain)
    WidgetPicture(widget, parse_scenario({"faults": {"late_mask": True}}), style).save(marked)
    before, after = QImage(str(plain)), QImage(str(marked))
    strip = 30 * before.height() / 120  # an SVG is drawn at a resolution of its own
    assert after.height() - before.height() == pytest.approx(strip, abs=1)
    top = after.copy(0, 0, after.width(), round(strip))
    assert has_colour(top, style.theme.bad)
    assert not has_colour(after.copy(0, round(strip), after.width(), 90), style.theme.bad)


def test_the_exported_scene_bears_the_mark():
    for faults, there in (((), False), (("half_accumulator",), True)):
        now = demo("causal", faults).snapshot(4)
        image = QImage(1280, 720, QImage.Format.Format_RGB32)
        painter = QPainter(image)
        scene_moment("scene", now, row_report(now, 40), DARK, (1280, 720)).paint(painter)
        painter.end()
        assert has_colour(image.copy(0, 0, 400, 32), DARK.bad) is there


# --- NaN and infinities ------------------------------------------------------------------------


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(("algorithm", "faults"), FAULTY, ids=str)
def test_every_picture_survives_every_fault(algorithm, faults):
    trace = demo("large-logits", faults, algorithm)
    rect = QRectF(0, 0, 900, 560)
    for visit in sorted({0, len(trace) // 2, len(trace) - 1}):
        for op in range(len(trace.program.ops(visit))):
            now, model = model_at(trace, visit, op)
            image = QImage(900, 560, QImage.Format.Format_RGB32)
            painter = QPainter(image)
            report = row_report(now, now.visit.rows.start + 2)
            ComposedMoment(now, report, Style(DARK), rect).paint(painter)
            paint_exactness(painter, now, model, Style(DARK), rect, row=report.row)
            painter.end()
            assert not image.isNull()
    for tensor, cols in (("S", 64), ("O", 8), ("m", 1), ("l", 1)):
        for row in (0, 17, 63):
            assert describe(now, Cell(tensor, row, cols - 1))


def test_nan_is_read_as_a_number_not_as_missing():
    trace = demo("large-logits", ("no_maximum",))
    now = trace.snapshot(len(trace) - 1)
    row = int(np.flatnonzero(np.isnan(now.head.o).any(axis=1))[0])  # type: ignore[union-attr]
    col = int(np.flatnonzero(np.isnan(now.head.o[row]))[0])  # type: ignore[union-attr]
    assert describe(now, Cell("O", row, col)).startswith(f"O[{row}, {col}] = NaN")


def test_wrong_cells_are_marked_and_right_ones_are_not():
    rect, style = QRectF(0, 0, 1000, 700), Style(DARK)
    trace = demo("causal", ("forget_alpha",))
    now = trace.snapshot(len(trace) - 1)
    pictures = [
        painted(lambda p, shown=shown: paint_board(p, shown, style, rect), 1000, 700)
        for shown in (now, replace(now, wrong=None))
    ]
    lay = board_layout(trace.workload, style, rect)
    marked = now.wrong.l.nonzero()[0].tolist()
    assert 0 < len(marked) < 64
    for row in range(64):
        band = lay.row_band("l", range(row, row + 1)).toRect().adjusted(2, 1, -2, -1)
        if band.height() >= 2:
            with_marks, without = (picture.copy(band) for picture in pictures)
            assert (with_marks != without) is (row in marked)


@pytest.mark.parametrize("algorithm", ["naive", "flash2", "split-kv"])
def test_the_line_on_p_is_of_standard_attention_and_flash_whatever_runs(algorithm):
    size = {"heads": 2, "kv_heads": 1, "seqlen_q": 64, "head_dim": 32}
    said = {"algorithm": algorithm, "dtype": "float16", "p_dtype": "storage", **size}
    lines = []
    for dtype in ("float16", "float32"):
        chosen = parse_scenario({"attention": {**said, "dtype": dtype}})
        now, model = model_at(simulate(chosen), 0)
        lines.append({name: words for name, words, _ in figure_lines(now, model)})
    assert "P" not in lines[1]
    standard, flash, single = (float(each) for each in re.findall(r"\d\.\d+", lines[0]["P"][0]))
    assert standard > flash > single > 0.45
    assert lines[0]["P"][0].count("float16") == 1
