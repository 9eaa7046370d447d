"""What a pointer does on the board."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from simulator.assets import ASSETS
from simulator.trace import Trace, simulate
from ui.panels.board_panel import BoardPanel, readout_lines, readout_rect
from ui.scene.board_layout import View, locate
from ui.theme import DARK, LIGHT, Style, load_fonts

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


def wheel(panel: BoardPanel, at: QPoint, notches: int) -> None:
    event = QWheelEvent(
        QPointF(at), QPointF(panel.mapToGlobal(at)), QPoint(), QPoint(0, 120 * notches),
        Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(panel, event)


def test_a_click_chooses_a_row(qtbot: QtBot, panel: BoardPanel) -> None:
    with qtbot.waitSignal(panel.row_chosen) as chosen:
        qtbot.mouseClick(panel, LEFT, pos=cell(panel, 23, 8))
    assert chosen.args == [23]
    q = panel.board_layout().boxes["Q"].center().x()
    with qtbot.waitSignal(panel.row_chosen) as chosen:
        qtbot.mouseClick(panel, LEFT, pos=QPoint(round(q), cell(panel, 7, 0).y()))
    assert chosen.args == [7]


def test_a_click_on_a_key_chooses_no_row(qtbot: QtBot, panel: BoardPanel) -> None:
    with qtbot.assertNotEmitted(panel.row_chosen):
        qtbot.mouseClick(panel, LEFT, pos=panel.board_layout().boxes["K"].center().toPoint())
        qtbot.mouseClick(panel, LEFT, pos=QPoint(2, 2))


def test_a_double_click_chooses_a_tile(qtbot: QtBot, panel: BoardPanel) -> None:
    with qtbot.waitSignal(panel.tile_chosen) as chosen:
        qtbot.mouseDClick(panel, LEFT, pos=cell(panel, 50, 20))
    assert chosen.args == [3, 1]


def test_the_wheel_zooms_about_the_pointer(panel: BoardPanel) -> None:
    at = cell(panel, 40, 20)
    before = locate(panel.board_layout(), QPointF(at))
    wheel(panel, at, 3)
    assert panel.view.zoom == pytest.approx(1.25**3)
    assert locate(panel.board_layout(), QPointF(at)) == before
    wheel(panel, at, -20)
    assert panel.view == View()


def test_a_drag_pans_and_chooses_nothing(qtbot: QtBot, panel: BoardPanel) -> None:
    wheel(panel, cell(panel, 30, 30), 6)
    before, (width, height) = panel.view, panel.board_layout().cell
    start = panel.board_layout().boxes["S"].center().toPoint()
    with qtbot.assertNotEmitted(panel.row_chosen):
        drag(panel, start, start + QPoint(-40, 25))
    assert panel.view.x == pytest.approx(before.x + 40 / width)
    assert panel.view.y == pytest.approx(before.y - 25 / height)
    assert panel.view.zoom == before.zoom


def test_a_trembling_click_is_a_click(qtbot: QtBot, panel: BoardPanel) -> None:
    at = cell(panel, 23, 8)
    with qtbot.waitSignal(panel.row_chosen):
        drag(panel, at, at + QPoint(1, 1))


def test_keys_zoom_through_methods(panel: BoardPanel) -> None:
    panel.zoom_in()
    panel.zoom_in()
    panel.zoom_out()
    assert panel.view.zoom == pytest.approx(1.25)
    panel.zoom_fit()
    assert panel.view == View()


def test_hover_reads_the_cell_and_forgets_it(qtbot: QtBot, panel: BoardPanel) -> None:
    read: list[str] = []
    panel.hovered.connect(read.append)
    mouse(panel, QEvent.Type.MouseMove, cell(panel, 41, 17), Qt.MouseButton.NoButton)
    assert read[-1].startswith("S[41, 17] = q41 · k17 / √32 = ")
    panel.grab()  # paints the card
    QApplication.sendEvent(panel, QEvent(QEvent.Type.Leave))
    assert read[-1] == ""


def test_hover_follows_the_snapshot(panel: BoardPanel, trace: Trace) -> None:
    read: list[str] = []
    panel.hovered.connect(read.append)
    mouse(panel, QEvent.Type.MouseMove, cell(panel, 41, 17), Qt.MouseButton.NoButton)
    panel.show_snapshot(trace.snapshot(0), 0)
    assert read[-1] == "S[41, 17]: not computed yet"


def test_another_problem_starts_unzoomed(panel: BoardPanel, trace: Trace) -> None:
    panel.zoom_in()
    panel.show_snapshot(trace.snapshot(5), 41)
    assert panel.view.zoom > 1
    panel.show_snapshot(simulate(ASSETS / "scenarios" / "flash2.toml").snapshot(0), 0)
    assert panel.view == View()


def test_an_empty_panel_takes_every_gesture(qtbot: QtBot) -> None:
    panel = BoardPanel()
    qtbot.addWidget(panel)
    panel.set_style(Style(LIGHT, 2.0))
    panel.zoom_in()
    wheel(panel, QPoint(20, 20), 1)
    drag(panel, QPoint(5, 5), QPoint(60, 60))
    assert not panel.grab().isNull()
    with pytest.raises(ValueError, match="no snapshot"):
        panel.board_layout()


def test_it_can_be_read_aloud(panel: BoardPanel) -> None:
    assert panel.accessibleName() == "Tile board"
    assert "row block i = 2 of 4" in panel.accessibleDescription()


@pytest.mark.parametrize("at", [(0, 0), (359, 279), (0, 279), (359, 0), (180, 140)])
def test_the_readout_stays_inside(qapp: object, at: tuple[int, int]) -> None:
    room = QRectF(0, 0, 360, 280)
    text = "S[41, 17] = q41 · k17 / √32 = 1.049  ·  “finish” → “cat”" * 2
    style = Style(DARK, 1.5)
    lines = readout_lines(text, style, room)
    assert len(lines) > 1
    assert room.contains(readout_rect(lines, style, room, QPointF(*at)))
