"""The way of a window to a screen: it is painted once it has its size, in a turn of its own."""

from PySide6.QtCore import QCoreApplication, QSize
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from ui.talk.arrival import Arrival


class Painted(QWidget):
    """Counts how often it is painted."""

    def __init__(self) -> None:
        super().__init__()
        self.times = 0

    def paintEvent(self, event: QPaintEvent) -> None:
        self.times += 1


def test_a_window_that_has_arrived_is_painted_after_input_was_taken(qtbot: QtBot) -> None:
    window = Painted()
    qtbot.addWidget(window)
    arrival = Arrival(window)
    window.show()
    QCoreApplication.processEvents()
    before = window.times
    for _ in range(2):  # each way there anew
        arrival.wait_for(QSize(300, 200))
        window.resize(300, 200)
        QCoreApplication.processEvents()
        assert window.times == before
        arrival.end()
        arrival.paint_soon()
        assert window.times == before
        QCoreApplication.processEvents()
        assert window.times == before + 1
        before = window.times
        arrival.paint_soon()
        QCoreApplication.processEvents()
        assert window.times == before
