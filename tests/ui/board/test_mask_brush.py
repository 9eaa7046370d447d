"""A mask painted on the board: strokes, undo, zoom, what refuses it, and the panel beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from simulator.base.assets import LESSONS, SCENARIOS
from simulator.problem.scenario import load_scenario, with_values
from simulator.program.playback import Cursor
from simulator.run.snapshot import Cell
from simulator.run.trace import Trace
from tests.helpers.by_hand import choosing
from tests.helpers.waiting import settle
from tests.ui.board.test_board_panel import mouse
from ui.session.painting import PAINTED
from ui.window.main_window import MainWindow

LEFT = Qt.MouseButton.LeftButton
CAUSAL = np.tri(4, dtype=bool)
"""The tiles of the demo that have a visible pair: 4 × 4 of them, 16 × 16 pairs each."""


@pytest.fixture
def window(open_window: Callable[..., MainWindow]) -> Iterator[MainWindow]:
    window = open_window("causal", (1280, 720))
    window.activateWindow()
    window.actions_by_name["paint_mask"].trigger()
    settle(window)
    yield window
    window.session.play(False)


def at(window: MainWindow, i: int, j: int) -> QPoint:
    """Return the middle of a block."""
    lay = window.board.board_layout()
    return QPointF(lay.col_x(16 * j + 8), lay.row_y(16 * i + 8)).toPoint()


def drag(window: MainWindow, *places: QPoint) -> None:
    brush = window.mask_brush
    QTest.mousePress(brush, LEFT, pos=places[0])
    for place in places[1:]:
        QTest.mouseMove(brush, place)
    QTest.mouseRelease(brush, LEFT, pos=places[-1])


def painted(window: MainWindow) -> np.ndarray:
    mask = window.session.painting.mask
    return mask.blocks.table


def without(*blocks: tuple[int, int]) -> np.ndarray:
    out = CAUSAL.copy()
    for block in blocks:
        out[block] = False
    return out


def test_a_drag_hides_all_tiles_on_its_way_and_the_next_shows_them(window):
    drag(window, at(window, 3, 0), at(window, 3, 2))
    np.testing.assert_array_equal(painted(window), without((3, 0), (3, 1), (3, 2)))
    drag(window, at(window, 3, 1))
    np.testing.assert_array_equal(painted(window), without((3, 0), (3, 2)))
    assert window.session.trace.workload.mask.blocks is None  # it is not used yet


def test_a_drag_that_leaves_the_scores_paints_the_nearest_tile(window):
    lay = window.board.board_layout()
    below = QPoint(at(window, 0, 1).x(), round(lay.boxes["V"].bottom()))
    drag(window, at(window, 1, 1), below)
    np.testing.assert_array_equal(painted(window), without((1, 1), (2, 1), (3, 1)))


def test_what_the_run_hides_anyway_and_the_last_block_stay(window):
    drag(window, at(window, 0, 3))
    assert window.session.painting.mask is None
    for row in range(4):
        drag(window, at(window, row, 0), at(window, row, 3))
    assert painted(window).sum() == 1


def test_strokes_are_steps_of_undo(window):
    drag(window, at(window, 3, 0))
    drag(window, at(window, 2, 1), at(window, 2, 0))
    undo, redo = window.actions_by_name["undo"], window.actions_by_name["redo"]
    assert undo.text() == "Undo painting of a mask"
    undo.trigger()
    np.testing.assert_array_equal(painted(window), without((3, 0)))
    undo.trigger()
    assert window.session.painting.mask is None
    redo.trigger()
    redo.trigger()
    np.testing.assert_array_equal(painted(window), without((3, 0), (2, 0), (2, 1)))
    assert not window.session.undo_stack.moving


def test_strokes_and_runs_are_undone_in_their_order(window, session):
    drag(window, at(window, 3, 0))
    before = session.scenario
    other = before.model_copy(update={"title": "Another title"})
    session.propose(other, "title")
    settle(window)
    drag(window, at(window, 3, 1))
    for _ in range(3):  # at once: the run of the step in the middle is built meanwhile
        session.undo_stack.undo()
    settle(window)
    assert session.scenario == before
    assert session.painting.mask is None
    for _ in range(3):
        session.undo_stack.redo()
    settle(window)
    assert session.scenario == other
    np.testing.assert_array_equal(painted(window), without((3, 0), (3, 1)))


def test_the_mask_is_used_saved_and_undone(window, session, tmp_path):
    before = session.scenario
    drag(window, at(window, 3, 0), at(window, 3, 1))
    choosing(window.mask_brush.use_button.click, tmp_path / "mine.safetensors")
    settle(window)
    mask = session.trace.workload.mask
    assert mask.causal
    np.testing.assert_array_equal(mask.blocks.table, without((3, 0), (3, 1)))
    assert window.mask_brush.isHidden()  # the run has it now
    session.save(tmp_path / "mine.toml")
    assert load_scenario(tmp_path / "mine.toml") == session.scenario
    session.undo_stack.undo()
    settle(window)
    assert session.scenario == before
    window.actions_by_name["paint_mask"].trigger()
    drag(window, at(window, 3, 2))  # goes on from what was painted
    np.testing.assert_array_equal(painted(window), without((3, 0), (3, 1), (3, 2)))


def test_a_drag_while_the_run_plays(window, session):
    brush = window.mask_brush
    window.board.zoom_in()
    window.board.zoom_in()
    settle(window)
    lay = window.board.board_layout()
    first, last = (lay.tile(range(16 * n, 16 * n + 16), range(16)).center() for n in (1, 2))
    view = window.board.view
    QTest.mousePress(brush, LEFT, pos=first.toPoint())
    session.play(True)
    session.go(Cursor(9, 0))  # in the last row: the view would follow
    settle(window)
    assert window.board.view == view
    QTest.mouseMove(brush, last.toPoint())
    QTest.mouseRelease(brush, LEFT, pos=last.toPoint())
    session.play(False)
    settle(window)
    np.testing.assert_array_equal(painted(window), without((1, 0), (2, 0)))


def test_zoomed_it_paints_what_is_under_the_pointer(window):
    window.session.last()
    for _ in range(4):
        window.board.zoom_in()
    settle(window)
    lay = window.board.board_layout()
    assert lay.view.y > 0
    place = QPointF(lay.col_x(40.5), lay.row_y(55.5))
    assert lay.boxes["S"].contains(place)
    drag(window, place.toPoint())
    np.testing.assert_array_equal(painted(window), without((3, 2)))


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("leave", ["esc", "done", "key"])
def test_the_brush_shows_itself_and_is_put_away(window, leave):
    brush = window.mask_brush
    mouse(brush, QEvent.Type.MouseMove, at(window, 2, 1), Qt.MouseButton.NoButton)
    assert brush.cursor().shape() == Qt.CursorShape.CrossCursor
    assert "16 × 16" in brush.hint.text()
    if leave == "esc":
        QTest.keyClick(brush, Qt.Key.Key_Escape)
    elif leave == "done":
        QTest.mouseClick(brush.done_button, LEFT)
    else:
        QTest.keyClick(window, Qt.Key.Key_B, Qt.KeyboardModifier.ControlModifier)
    assert brush.isHidden()
    assert not window.actions_by_name["paint_mask"].isChecked()
    assert window.session.view.cell is None  # Escape has done this alone


def test_beside_the_scores_the_board_is_as_ever(window):
    lay = window.board.board_layout()
    q = QPointF(lay.boxes["Q"].center().x(), lay.row_y(40.5)).toPoint()
    chosen: list[int] = []
    window.board.row_chosen.connect(chosen.append)
    mouse(window.mask_brush, QEvent.Type.MouseMove, q, Qt.MouseButton.NoButton)
    assert window.mask_brush.cursor().shape() == window.board.cursor().shape()
    QTest.mouseClick(window.mask_brush, LEFT, pos=q)
    assert chosen == [40]
    assert window.session.painting.mask is None


def test_enter_paints_the_block_of_the_selected_cell(window):
    window.session.select(Cell("S", 50, 20))
    settle(window)
    QTest.keyClick(window.mask_brush, Qt.Key.Key_Return)
    np.testing.assert_array_equal(painted(window), without((3, 1)))


@pytest.mark.parametrize("way", ["press", "Enter"])
def test_nothing_is_painted_while_the_board_shows_the_run_before(window, session, way):
    last = at(window, 3, 1)
    session.select(Cell("S", 50, 20))
    settle(window)
    seen: list[bool] = []

    def paint(trace: Trace) -> None:
        seen.append(session.view is not None and session.view.snapshot.program is trace.program)
        if way == "press":
            QTest.mouseClick(window.mask_brush, LEFT, pos=last)
        else:
            QTest.keyClick(window.mask_brush, Qt.Key.Key_Return)

    session.trace_changed.connect(paint)
    assert session.scenario is not None
    shape = {"seqlen_q": 20, "seqlen_k": 20}
    session.propose(with_values(session.scenario, {"attention": shape}), "20 tokens")
    settle(window)
    assert seen == [False]
    assert session.painting.mask is None


def test_a_run_that_can_have_no_blocks_says_so_in_one_line(open_window):
    window = open_window("linear", (1280, 720))
    window.actions_by_name["paint_mask"].trigger()
    assert window.messages.text() == (
        "scenario: mask.block = 4: expected none: linear attention is causal or sees every key"
    )
    assert window.mask_brush.isHidden()
    assert not window.actions_by_name["paint_mask"].isChecked()


@pytest.mark.long
def test_another_run_that_can_have_no_blocks_puts_the_brush_away(window):
    window.session.open(SCENARIOS / "batch.toml")
    settle(window)
    assert "batch.lengths" in window.messages.text()
    assert window.mask_brush.isHidden()


@pytest.mark.long
def test_no_file_is_asked_for_where_it_could_not_be_used(open_window, tmp_path):
    window = open_window("batch", (1280, 720))
    window.desk.take("inspector")
    window.docks.open("masks")
    for _ in range(3):
        settle(window)
    panel = window.docks.panel("masks")
    panel.change(panel.state.named("BigBird"))
    assert choosing(panel.use_button.click, tmp_path / "no.safetensors") == []
    assert "batch.lengths" in window.messages.text()


@pytest.mark.long
def test_a_talk_goes_on_when_the_brush_is_put_away(window):
    window.present(True)
    QApplication.processEvents()
    assert window.session.painting.on
    window.presenter.off_or_end()
    assert not window.session.painting.on
    assert window.presenter.on
    window.session.painting.switch(True)
    window.presenter.toggle_pen()
    assert not window.session.painting.on
    window.present(False)


@pytest.mark.long
def test_a_lesson_puts_the_brush_away(window):
    window.lessons.open(LESSONS / "21-sparse-masks.md")
    settle(window)
    assert window.mask_brush.isHidden()


def test_the_panel_and_the_board_paint_one_mask(window):
    window.desk.take("inspector")
    settle(window)
    window.docks["masks"].raise_()
    for _ in range(3):
        settle(window)
    panel = window.docks.panel("masks")
    drag(window, at(window, 3, 0))
    for _ in range(2):
        settle(window)
    assert panel.state.chosen.pattern.name == PAINTED
    assert panel.state.chosen.pattern.mask is window.session.painting.mask
    assert panel.state.chosen.error is not None
    QTest.mouseClick(panel.brush, LEFT)
    assert window.mask_brush.isHidden()
    QTest.mouseClick(panel.brush, LEFT)
    assert window.mask_brush.isVisible()
    window.session.undo_stack.undo()
    assert PAINTED not in [each.pattern.name for each in panel.state.rows]


@pytest.mark.long
def test_the_board_comes_where_a_layout_has_none(window):
    window.session.painting.switch(False)
    window.desk.take("compare")
    settle(window)
    assert not window.board.isVisibleTo(window)
    window.actions_by_name["paint_mask"].trigger()
    settle(window)
    assert window.mask_brush.isVisible()
