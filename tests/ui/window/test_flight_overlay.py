"""Tiles in flight over the window: between the board and the memory panel, and gone at the end."""

from collections.abc import Callable

from PySide6.QtCore import QPoint, QRect

from simulator.program.playback import Cursor
from ui.window.main_window import MainWindow

Open = Callable[..., MainWindow]


def before_a_load(window: MainWindow) -> list[float]:
    """Go to the op before a load; return the clock's time, which stands still."""
    time = [0.0]
    window.set_motion(True)
    window.session.clock.now = lambda: time[0]
    window.session.go(Cursor(12, len(window.session.trace.program.ops(12)) - 1))
    window.session.settle()
    return time


def half_way(window: MainWindow, time: list[float]) -> None:
    """Begin the next op, and let half of it pass."""
    window.session.step()
    window.session.settle()
    assert window.board.motion.after.op.loads
    time[0] += 0.5
    window.session.clock.tick()


def test_tiles_fly_over_the_window_into_the_memory_panel(window: MainWindow) -> None:
    time = before_a_load(window)
    assert not window.flights.isVisible()
    half_way(window, time)
    assert window.flights.isVisible()
    assert window.board.shares_flights
    assert window.flights.geometry() == window.rect()
    memory = window.docks["memory"].widget()
    there = QRect(memory.mapTo(window, QPoint(0, 0)), memory.size())
    flying = window.grab().toImage()
    window.flights.hide()
    alone = window.grab().toImage()
    window.flights.show()
    assert flying.copy(there) != alone.copy(there), "one tile has come to the chip"
    board = QRect(window.board.mapTo(window, QPoint(0, 0)), window.board.size())
    assert flying.copy(board) != alone.copy(board), "another one is on its way"
    time[0] += 1
    window.session.clock.tick()
    assert not window.flights.isVisible()


def test_the_mouse_reaches_what_lies_under_the_flights(window: MainWindow) -> None:
    half_way(window, before_a_load(window))
    centre = window.board.rect().center()
    assert window.childAt(window.board.mapTo(window, centre)) is window.board


def test_without_the_memory_panel_the_board_lets_them_fly(window: MainWindow) -> None:
    window.docks["memory"].close()
    half_way(window, before_a_load(window))
    assert not window.flights.isVisible()
    assert not window.board.shares_flights


def test_nothing_flies_over_a_blank_window(window: MainWindow) -> None:
    time = before_a_load(window)
    window.actions_by_name["blank"].setChecked(True)
    half_way(window, time)
    assert not window.flights.isVisible()


def test_without_motion_nothing_flies(window: MainWindow) -> None:
    before_a_load(window)
    window.set_motion(False)
    window.session.step()
    window.session.settle()
    assert window.board.motion is None
    assert not window.flights.isVisible()
