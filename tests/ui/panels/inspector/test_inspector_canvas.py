"""The inspector's map zooms, pans and still reads what is under the pointer."""

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest

from tests.helpers.pointer import click, wheel
from tests.ui.panels.inspector.test_inspector import cell_of, hover, start
from ui.board.layout import Viewport
from ui.panels.inspector.model import grid_of, peak, shrunk

PANEL, DEMO, LAYOUT = "inspector", "inspector", "inspector"
NONE, LEFT = Qt.KeyboardModifier.NoModifier, Qt.MouseButton.LeftButton


def drag(panel, start_at: QPointF, by: QPoint) -> None:
    at = start_at.toPoint()
    QTest.mousePress(panel.canvas, LEFT, NONE, at)
    for share in (0.5, 1.0):
        QTest.mouseMove(panel.canvas, at + QPoint(round(by.x() * share), round(by.y() * share)))
    QTest.mouseRelease(panel.canvas, LEFT, NONE, at + by)


@pytest.mark.long
def test_the_wheel_zooms_the_map_about_the_pointer(panel):
    whole = panel.layout_now().grid
    at = cell_of(panel, 7, 4)
    hover(panel, at)
    read = panel.hovered
    assert (read.row, read.key) == (7, 4)
    for notches in (1, 2, 1):
        wheel(panel.canvas, at, notches)
        assert panel.hovered == read
    grid = panel.layout_now().grid
    assert panel.canvas.view.zoom == pytest.approx(1.25**4)
    assert grid.rows * grid.cols < 0.3 * whole.rows * whole.cols
    # What is painted where is still what is read there.
    values = shrunk(panel.model, grid)
    for r in range(grid.rows):
        for c in range(grid.cols):
            hover(panel, panel.layout_now().cell_box(r, c).center())
            row, key = panel.hovered.row, panel.hovered.key
            assert (row, key) == (grid.row_at(r), grid.key_at(c))
            if panel.model.sees(row, key):
                assert values[r, c] == panel.model.value(row, key)
    assert not panel.canvas.grab().isNull()
    wheel(panel.canvas, at, -9)
    assert panel.canvas.view == Viewport()
    assert panel.layout_now().grid == whole


def test_a_drag_pans_and_a_click_still_sends_the_board(panel):
    session = panel.window().session
    at = panel.layout_now().cells.center()
    wheel(panel.canvas, at, 4)
    before, cursor, row = panel.layout_now().grid, session.cursor, session.view.report.row
    cell = panel.layout_now().cell_box(0, 0)
    drag(panel, at, QPoint(-round(2 * cell.width()), -round(cell.height())))
    after = panel.layout_now().grid
    assert (after.left - before.left, after.top - before.top) == (2, 1)
    assert (session.cursor, session.view.report.row) == (cursor, row)
    assert (after.rows, after.cols) == (before.rows, before.cols)
    click(panel.canvas, panel.layout_now().cell_box(1, 2).center())
    session.settle()
    assert session.view.report.row == panel.model.rows[after.row_at(1)]


def test_keys_zoom_the_map_that_has_the_keyboard(panel):
    board = panel.window().board
    panel.window().activateWindow()
    panel.canvas.setFocus()
    presses = (
        (Qt.Key.Key_Equal, 1.25), (Qt.Key.Key_Plus, 1.25**2), (Qt.Key.Key_Minus, 1.25),
        (Qt.Key.Key_Equal, 1.25**2), (Qt.Key.Key_0, 1.0),
    )  # fmt: skip
    for key, zoom in presses:
        QTest.keyClick(panel.canvas, key, Qt.KeyboardModifier.ControlModifier)
        assert panel.canvas.view.zoom == pytest.approx(zoom)
    assert board.view == Viewport()
    wheel(panel.canvas, panel.layout_now().cells.center(), 6)
    for _ in range(len(panel.model.rows)):  # the row that the keys read stays in sight
        QTest.keyClick(panel.canvas, Qt.Key.Key_Down)
        grid = panel.layout_now().grid
        here = panel.model.rows.index(panel.hovered.row)
        assert grid.top <= here < grid.row_at(grid.rows)
    start(panel.window(), input={"source": "capture", "name": "cat-because-layer0"})
    assert panel.canvas.view == Viewport()


@pytest.mark.long
def test_a_part_of_a_large_map_is_shrunk_less(panel):
    start(panel.window(), input={"source": "capture", "name": "passage-layer1"})
    whole = grid_of(panel.model, 100, 100)
    part = grid_of(panel.model, 100, 100, Viewport(4.0, 200, 150))
    assert part.tall < whole.tall
    assert part.wide < whole.wide
    assert (part.left, part.top) == (200, 150)
    values = shrunk(panel.model, part)
    assert values.shape == (part.rows, part.cols)
    for r, c in ((0, 0), (7, 3), (part.rows - 1, part.cols - 1)):
        row, key = peak(panel.model, part, r, c)
        if panel.model.sees(row, key):
            assert values[r, c] == panel.model.value(row, key)
