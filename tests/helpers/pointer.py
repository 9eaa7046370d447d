"""What a mouse does at places of a widget."""

from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

NONE = Qt.KeyboardModifier.NoModifier


def wheel(widget: QWidget, at: QPointF, notches: int) -> None:
    """Turn the wheel over a place of a widget."""
    event = QWheelEvent(
        at, QPointF(widget.mapToGlobal(at.toPoint())), QPoint(), QPoint(0, 120 * notches),
        Qt.MouseButton.NoButton, NONE, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(widget, event)


def move(widget: QWidget, at: QPointF, buttons: Qt.MouseButton = Qt.MouseButton.NoButton) -> None:
    """Move the mouse to a place of a widget, with buttons held."""
    event = QMouseEvent(
        QEvent.Type.MouseMove, at, QPointF(widget.mapToGlobal(at.toPoint())),
        Qt.MouseButton.NoButton, buttons, NONE,
    )  # fmt: skip
    QApplication.sendEvent(widget, event)


def click(widget: QWidget, at: QPointF) -> None:
    """Click on a place of a widget."""
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton, NONE, at.toPoint())
