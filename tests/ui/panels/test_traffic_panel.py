"""HBM bytes over the run: figures of the counters, labels apart, mouse and keys that seek."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication

from simulator.program.playback import Cursor, end_of_visit
from simulator.program.tile_program import TileProgram
from simulator.study.traffic_curve import run_traffic
from tests.helpers.demos import demo
from tests.helpers.pointer import move
from tests.helpers.runs import program_of, scenario
from ui.export.picture import WidgetPicture
from ui.look.theme import DARK, Style
from ui.look.units import bytes_text
from ui.panels.traffic.painter import (
    EndLabel,
    axis_steps,
    axis_text,
    end_labels,
    placed_labels,
    traffic_layout,
)
from ui.panels.traffic.panel import TrafficPanel, figures, figures_place

pytestmark = pytest.mark.usefixtures("qapp")
DEMOS = ("naive", "flash1", "flash2", "causal", "grouped-heads", "window-sinks", "real-scale")
LEFT = Qt.MouseButton.LeftButton


@cache
def program(name: str) -> TileProgram:
    if name == "long":
        return program_of(scenario("naive", 4096, d=128, rows=128, cols=64, dtype="float16"))
    return demo(name).program


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("size", [(1264, 128), (920, 150), (800, 230)])
@pytest.mark.parametrize("name", DEMOS)
def test_the_card_lies_on_no_curve(name, size):
    run = program(name)
    traffic = run_traffic(run)
    lay = traffic_layout(traffic, Style(DARK), QRectF(0, 0, *size))
    for visit in {round(share * (len(run) - 1)) for share in (0, 0.1, 0.3, 0.5, 0.8, 0.95, 1)}:
        lines, box = figures_place(figures(run, visit, run.counters(visit)), lay, visit)
        assert lay.plot.adjusted(0, 0, 1, 1).contains(box)
        assert lines
        for curve in (traffic.own, *traffic.others):
            for share in range(101):
                done = share / 100 * curve.length
                amount = float(np.interp(done, curve.visits, curve.totals))
                x = lay.plot.x() + lay.plot.width() * share / 100
                # A curve that leaves at the top runs along the edge, over which nothing lies.
                if amount <= lay.top:
                    assert not box.contains(QPointF(x, lay.y(amount))), (visit, curve.algorithm)


@given(
    st.lists(st.tuples(st.floats(0, 300), st.integers(0, 12)), min_size=1, max_size=12),
    st.floats(14, 300),
)
def test_labels_never_overlap_and_the_first_stay(wanted, height):
    labels = [
        EndLabel(str(n), QColor(), min(y, height), rank) for n, (y, rank) in enumerate(wanted)
    ]
    placed = placed_labels(labels, 0.0, height, 14.0)
    assert len(placed) == min(len(labels), max(int(height / 14), 1))
    middles = [y for _, y in placed]
    assert all(b - a >= 14 - 1e-6 for a, b in pairwise(middles))
    assert all(7 - 1e-6 <= y <= height - 7 + 1e-6 for y in middles)
    kept = {label.text for label, _ in placed}
    worst = max(label.rank for label, _ in placed)
    assert all(label.rank >= worst for label in labels if label.text not in kept)
    by_height = [label.y for label, _ in placed]
    assert by_height == sorted(by_height)


@pytest.mark.parametrize("name", DEMOS)
def test_labels_say_the_totals_where_the_curves_end(name):
    run = program(name)
    traffic = run_traffic(run)
    lay = traffic_layout(traffic, Style(DARK), QRectF(0, 0, 1300, 400))
    labels = end_labels(lay)
    own = labels[0]
    assert own.text.endswith(bytes_text(run.totals.bytes))
    assert own.y == pytest.approx(lay.y(run.totals.bytes))
    for label, other in zip(labels[1:3], traffic.others, strict=True):
        assert bytes_text(other.end) in label.text
        assert label.text.endswith("↑") is (other.end > lay.top)
    assert labels[3].text == f"minimum {bytes_text(traffic.compulsory)}"
    below = 0
    for label, tensor in zip(labels[4:], run.tensors, strict=True):
        amount = run.totals.read[tensor] + run.totals.write[tensor]
        assert label.text.endswith(bytes_text(amount))
        assert label.y == pytest.approx(lay.y(below + amount / 2))
        below += amount
    for visit in range(0, lay.length, max(lay.length // 50, 1)):
        assert lay.visit_at(lay.x(visit + 0.5)) == visit
    assert (lay.visit_at(-50), lay.visit_at(1e5)) == (0, lay.length - 1)


UNITS = "B", "KiB", "MiB", "GiB", "TiB"


@given(st.integers(1, 2**45), st.floats(20, 2000))
def test_amounts_on_the_axis_are_exact(top, height):
    for amount in axis_steps(top, height, Style(DARK)):
        number, _, unit = axis_text(amount).partition(" ")
        assert float(number) * 1024 ** UNITS.index(unit or "B") == amount


def test_what_dwarfs_the_run_leaves_at_the_top():
    run = program_of(scenario("flash2", 65536, d=8, rows=128, cols=128, dtype="float16"))
    traffic = run_traffic(run)
    lay = traffic_layout(traffic, Style(DARK), QRectF(0, 0, 900, 90))
    assert lay.plot.bottom() - lay.y(run.totals.bytes) >= 13
    naive = end_labels(lay)[1]
    assert naive.text.endswith("↑")
    assert naive.y == lay.plot.top() > lay.y(traffic.others[0].end)


# --- panel -------------------------------------------------------------------------------------


PANEL, DEMO, LAYOUT, SIZE = "traffic", "causal", "compare", (1920, 1080)


def place_of(panel: TrafficPanel, visit: int) -> QPointF:
    assert panel.traffic is not None
    lay = traffic_layout(panel.traffic, panel.style_now, panel.place())
    return QPointF(lay.x(visit + 0.5), lay.plot.center().y())


def test_a_press_and_a_drag_seek(panel, session, qtbot):
    run = session.trace.program
    qtbot.mousePress(panel, LEFT, pos=place_of(panel, 4).toPoint())
    session.settle()
    assert session.cursor == end_of_visit(run, 4)
    for visit in (6, 8):
        move(panel, place_of(panel, visit), LEFT)
        session.settle()
        assert session.cursor == end_of_visit(run, visit)
    qtbot.mouseRelease(panel, LEFT, pos=place_of(panel, 8).toPoint())
    qtbot.mouseClick(panel, Qt.MouseButton.RightButton, pos=place_of(panel, 1).toPoint())
    assert session.cursor == end_of_visit(run, 8)
    so_far = session.view.snapshot.counters
    assert f"{bytes_text(so_far.bytes)} requested" in panel.accessibleDescription()


def test_the_figures_go_on_with_the_run_when_the_pointer_rests(window, panel):
    move(panel, place_of(panel, 7))
    window.session.step()
    window.session.settle()
    assert panel.hovered == 7  # it is being pointed at
    panel.moving.stop()
    window.session.step()
    window.session.settle()
    assert panel.hovered is None


def test_the_pointer_reads_and_is_forgotten(window, panel):
    before = panel.grab().toImage()
    move(panel, place_of(panel, 7))
    assert panel.hovered == 7
    assert window.session.cursor == Cursor(0, 0)
    assert panel.grab().toImage() != before
    QApplication.sendEvent(panel, QEvent(QEvent.Type.Leave))
    assert panel.hovered is None
    assert panel.grab().toImage() == before


@pytest.mark.parametrize("demo", ["grouped-heads"])
def test_pages_go_a_twentieth_of_the_run(panel, session, qtbot):
    assert session.trace is not None
    panel.setFocus()
    run = session.trace.program
    step = len(run) // 20
    for _ in range(2):
        qtbot.keyClick(panel, Qt.Key.Key_PageDown)
        session.settle()
    assert session.cursor == end_of_visit(run, 2 * step)
    for _ in range(4):
        qtbot.keyClick(panel, Qt.Key.Key_PageUp)
        session.settle()
    assert session.cursor == end_of_visit(run, 0)


def test_svg_has_lines_and_letters(panel, tmp_path):
    path = tmp_path / "traffic.svg"
    WidgetPicture(panel).save(path)
    text = path.read_text()
    assert "<image" not in text
    assert text.count("<polyline") + text.count("<path") > 5
