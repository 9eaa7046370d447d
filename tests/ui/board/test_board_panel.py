"""What a pointer does on the board."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from simulator.base.assets import ASSETS, SCENARIOS
from simulator.run.final_weights import with_weights_so_far
from simulator.run.snapshot import Cell
from simulator.run.trace import Trace, simulate
from tests.helpers.pointer import wheel
from ui.board.layout import Viewport, locate
from ui.board.panel import BoardPanel, readout_lines, readout_rect
from ui.board.words import describe
from ui.look.heat import colour_map, indices
from ui.look.theme import DARK, LIGHT, Style, load_fonts

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture(scope="module")
def trace() -> Trace:
    return simulate(ASSETS / "scenarios" / "causal.toml")


@pytest.fixture
def panel(qtbot: QtBot, trace: Trace) -> BoardPanel:
    load_fonts()
    panel = BoardPanel()
    qtbot.addWidget(panel)
    panel.resize(900, 700)
    panel.show_snapshot(trace.snapshot(4), 41)
    panel.show()
    qtbot.waitExposed(panel)
    return panel


def cell(panel: BoardPanel, row: int, key: int) -> QPoint:
    lay = panel.board_layout()
    return QPointF(lay.col_x(key + 0.5), lay.row_y(row + 0.5)).toPoint()


def mouse(panel: BoardPanel, kind: QEvent.Type, at: QPoint, buttons: Qt.MouseButton) -> None:
    button = Qt.MouseButton.NoButton if kind == QEvent.Type.MouseMove else LEFT
    place, everywhere = QPointF(at), QPointF(panel.mapToGlobal(at))
    event = QMouseEvent(kind, place, everywhere, button, buttons, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(panel, event)


def drag(panel: BoardPanel, start: QPoint, stop: QPoint) -> None:
    mouse(panel, QEvent.Type.MouseButtonPress, start, LEFT)
    for share in (0.3, 0.7, 1.0):
        at = start + (QPointF(stop - start) * share).toPoint()
        mouse(panel, QEvent.Type.MouseMove, at, LEFT)
    mouse(panel, QEvent.Type.MouseButtonRelease, stop, Qt.MouseButton.NoButton)


def test_a_click_chooses_a_row(qtbot, panel):
    with qtbot.waitSignal(panel.row_chosen) as chosen:
        qtbot.mouseClick(panel, LEFT, pos=cell(panel, 23, 8))
    assert chosen.args == [23]
    q = panel.board_layout().boxes["Q"].center().x()
    with qtbot.waitSignal(panel.row_chosen) as chosen:
        qtbot.mouseClick(panel, LEFT, pos=QPoint(round(q), cell(panel, 7, 0).y()))
    assert chosen.args == [7]


def test_a_click_on_a_key_chooses_no_row(qtbot, panel):
    with qtbot.assertNotEmitted(panel.row_chosen):
        qtbot.mouseClick(panel, LEFT, pos=panel.board_layout().boxes["K"].center().toPoint())
        qtbot.mouseClick(panel, LEFT, pos=QPoint(2, 2))


def test_a_double_click_chooses_a_tile(qtbot, panel):
    with qtbot.waitSignal(panel.tile_chosen) as chosen:
        qtbot.mouseDClick(panel, LEFT, pos=cell(panel, 50, 20))
    assert chosen.args == [3, 1]


def test_the_wheel_zooms_about_the_pointer(panel):
    at = cell(panel, 40, 20)
    before = locate(panel.board_layout(), QPointF(at))
    wheel(panel, QPointF(at), 3)
    assert panel.view.zoom == pytest.approx(1.25**3)
    assert locate(panel.board_layout(), QPointF(at)) == before
    wheel(panel, QPointF(at), -20)
    assert panel.view == Viewport()


def test_a_drag_pans_and_chooses_nothing(qtbot, panel):
    wheel(panel, QPointF(cell(panel, 30, 30)), 6)
    before, (width, height) = panel.view, panel.board_layout().cell
    start = panel.board_layout().boxes["S"].center().toPoint()
    with qtbot.assertNotEmitted(panel.row_chosen):
        drag(panel, start, start + QPoint(-40, 25))
    assert panel.view.x == pytest.approx(before.x + 40 / width)
    assert panel.view.y == pytest.approx(before.y - 25 / height)
    assert panel.view.zoom == before.zoom


def test_a_trembling_click_is_a_click(qtbot, panel):
    at = cell(panel, 23, 8)
    with qtbot.waitSignal(panel.row_chosen):
        drag(panel, at, at + QPoint(1, 1))


def test_keys_zoom_through_methods(panel):
    panel.zoom_in()
    panel.zoom_in()
    panel.zoom_out()
    assert panel.view.zoom == pytest.approx(1.25)
    panel.zoom_fit()
    assert panel.view == Viewport()


def test_hover_reads_the_cell_and_forgets_it(qtbot, panel):
    read: list[str] = []
    panel.hovered.connect(read.append)
    mouse(panel, QEvent.Type.MouseMove, cell(panel, 41, 17), Qt.MouseButton.NoButton)
    assert read[-1].startswith("S[41, 17] = q41 · k17 / √32 = ")
    panel.grab()  # paints the card
    QApplication.sendEvent(panel, QEvent(QEvent.Type.Leave))
    assert read[-1] == ""


def test_hover_follows_the_snapshot(panel, trace):
    read: list[str] = []
    panel.hovered.connect(read.append)
    mouse(panel, QEvent.Type.MouseMove, cell(panel, 41, 17), Qt.MouseButton.NoButton)
    panel.show_snapshot(trace.snapshot(0), 0)
    assert read[-1] == "S[41, 17]: tile (2, 1) is not loaded yet"


def test_another_problem_starts_unzoomed(panel, trace):
    panel.zoom_in()
    panel.show_snapshot(trace.snapshot(5), 41)
    assert panel.view.zoom > 1
    panel.show_snapshot(simulate(ASSETS / "scenarios" / "flash2.toml").snapshot(0), 0)
    assert panel.view == Viewport()


def in_sight(panel: BoardPanel, trace: Trace, visit: int) -> bool:
    """Return whether the whole tile of a visit is in the view."""
    at, lay = trace.program.visit(visit), panel.board_layout()
    rows, keys = lay.visible
    return (
        lay.view.y <= at.rows.start
        and at.rows.stop <= lay.view.y + rows
        and lay.view.x <= at.cols.start
        and at.cols.stop <= lay.view.x + keys
    )


def test_a_zoomed_view_follows_the_tile(panel, trace):
    wheel(panel, QPointF(cell(panel, 40, 20)), 5)
    zoom = panel.view.zoom
    for visit in range(len(trace.program)):
        panel.show_snapshot(trace.snapshot(visit), 0)
        assert in_sight(panel, trace, visit)
        still = panel.view
        panel.show_snapshot(trace.snapshot(visit, 2), 0)
        assert panel.view == still
    assert panel.view.zoom == zoom


def test_the_keys_zoom_to_the_tile(panel, trace):
    panel.show_snapshot(trace.snapshot(0), 0)
    for _ in range(5):
        panel.zoom_in()
        assert in_sight(panel, trace, 0)


def test_a_view_that_was_panned_away_stays_until_the_tile_is_seen(panel, trace):
    last = len(trace.program) - 1
    panel.show_snapshot(trace.snapshot(0), 0)
    wheel(panel, QPointF(cell(panel, 8, 8)), 6)
    middle = panel.board_layout().boxes["S"].center().toPoint()
    for _ in range(4):  # to the other end
        drag(panel, middle, middle - QPoint(190, 190))
    there = panel.view
    assert not in_sight(panel, trace, 0)
    panel.show_snapshot(trace.snapshot(1), 0)
    assert panel.view == there
    panel.show_snapshot(trace.snapshot(last), 0)  # comes into sight, and is followed again
    panel.show_snapshot(trace.snapshot(0), 0)
    assert in_sight(panel, trace, 0)


def test_a_fitted_view_follows_again(panel, trace):
    panel.show_snapshot(trace.snapshot(0), 0)
    wheel(panel, QPointF(cell(panel, 60, 60)), 6)
    assert not in_sight(panel, trace, 0)
    panel.zoom_fit()
    panel.zoom_in()
    panel.zoom_in()
    panel.show_snapshot(trace.snapshot(2), 0)
    assert in_sight(panel, trace, 2)


def test_an_empty_panel_takes_every_gesture(qtbot):
    panel = BoardPanel()
    qtbot.addWidget(panel)
    panel.set_style(Style(LIGHT, 2.0))
    panel.zoom_in()
    wheel(panel, QPointF(QPoint(20, 20)), 1)
    drag(panel, QPoint(5, 5), QPoint(60, 60))
    assert not panel.grab().isNull()
    with pytest.raises(ValueError, match="no snapshot"):
        panel.board_layout()


def test_it_can_be_read_aloud(panel):
    assert panel.accessibleName() == "Tile board"
    assert "row block i = 2 of 4" in panel.accessibleDescription()


@pytest.mark.parametrize("at", [(0, 0), (359, 279), (0, 279), (359, 0), (180, 140)])
def test_the_readout_stays_inside(qapp, at):
    room = QRectF(0, 0, 360, 280)
    text = "S[41, 17] = q41 · k17 / √32 = 1.049  ·  “finish” → “cat”" * 2
    style = Style(DARK, 1.5)
    lines = readout_lines(text, style, room)
    assert len(lines) > 1
    assert room.contains(readout_rect(lines, style, room, QPointF(*at)))


def test_the_card_makes_way_when_the_run_goes_on_without_the_pointer(panel, trace):
    mouse(panel, QEvent.Type.MouseMove, cell(panel, 41, 17), Qt.MouseButton.NoButton)
    assert panel.reads_out
    assert panel.moving.isActive()
    panel.show_snapshot(trace.snapshot(6), 41)  # playing, while somebody points
    assert panel.reads_out
    panel.moving.stop()  # the pointer rests
    with_card = panel.grab().toImage()
    panel.show_snapshot(trace.snapshot(6), 41)  # the same place: nothing has happened
    assert panel.grab().toImage() == with_card
    panel.show_snapshot(trace.snapshot(7), 41)
    assert not panel.reads_out
    assert panel.hit is not None  # P still pins it
    bare = panel.grab().toImage()
    mouse(panel, QEvent.Type.MouseMove, cell(panel, 41, 17), Qt.MouseButton.NoButton)
    assert panel.grab().toImage() != bare


def test_a_selection_leaves_the_numbers_beside_it_alone(panel, trace):
    snapshot = trace.snapshot(5)
    rows, keys = snapshot.visit.rows, snapshot.visit.cols
    chosen = Cell("S", rows.start + 1, keys.start + 1)
    panel.show_snapshot(snapshot, rows.start)
    while panel.board_layout().cell[0] < 60:
        panel.zoom_in()
    panel.show_snapshot(snapshot, rows.start, chosen)
    marked = panel.grab().toImage()
    panel.show_snapshot(snapshot, rows.start)
    plain = panel.grab().toImage()
    for down, across in ((-1, 0), (1, 0), (0, -1), (0, 1)):
        beside = Cell("S", chosen.row + down, chosen.col + across)
        inside = panel.board_layout().place(beside).adjusted(5, 5, -5, -5).toRect()
        assert marked.copy(inside) == plain.copy(inside)
    own = panel.board_layout().place(chosen).adjusted(-3, -3, 3, 3).toRect()
    assert marked.copy(own) != plain.copy(own)


def test_used_tiles_show_what_the_sums_make_of_them(panel):
    trace = simulate(SCENARIOS / "flash2.toml")
    visit = len(trace.program) - 1
    last = trace.snapshot(visit, len(trace.program.ops(visit)) - 2)  # the last op ends it bright
    panel.show_snapshot(last, 8)
    computed = panel.grab().toImage()
    panel.divides = True
    panel.show_snapshot(last, 8)
    divided = panel.grab().toImage()
    lay, theme = panel.board_layout(), panel.style_now.theme
    for cell in (Cell("S", 0, 0), Cell("S", 12, 12)):
        weight = float(np.exp(last.head.s[cell.row, cell.col] - last.head.m[cell.row]))
        weight /= float(last.head.l[cell.row])
        words = colour_map(theme, "P")
        at = lay.place(cell).center().toPoint()
        assert divided.pixel(at) == int(words[indices(np.float32([weight]), 0, 1)[0]])
    assert computed != divided
    assert "P / ℓ so far" in describe(with_weights_so_far(last), Cell("S", 0, 0))
