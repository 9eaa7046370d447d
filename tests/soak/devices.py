"""Keys, mouse and wheel for a window, as the window system would tell of them."""

from __future__ import annotations

import random

from PySide6.QtCore import QEvent, QPoint, QRect, Qt
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QWindow
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid

NO_KEYS = Qt.KeyboardModifier.NoModifier


def within(draw: random.Random, rect: QRect) -> QPoint:
    return QPoint(draw.randrange(max(rect.width(), 1)), draw.randrange(max(rect.height(), 1)))


def is_there(window: QWindow) -> bool:
    """Return whether a window has not ended: that of a floating dock does once the dock lands."""
    return any(window == each for each in QGuiApplication.allWindows())


def press(window: QWindow, keys: str) -> None:
    """Press keys in a window, as the window system tells it; what is pressed may end the window.

    QTest's own clicks would release the key in it all the same.
    """
    pressed = QKeySequence(keys)[0]
    QTest.keyPress(window, pressed.key(), pressed.keyboardModifiers())
    if is_there(window):
        QTest.keyRelease(window, pressed.key(), pressed.keyboardModifiers())


def click(window: QWindow, button: Qt.MouseButton, point: QPoint) -> None:
    """Click in a window, which may end it."""
    QTest.mousePress(window, button, NO_KEYS, point)
    if is_there(window):
        QTest.mouseRelease(window, button, NO_KEYS, point)


def press_in(widget: QWidget, keys: str) -> None:
    pressed = QKeySequence(keys)[0]
    QTest.keyClick(widget, pressed.key(), pressed.keyboardModifiers())


def type_into(widget: QWidget, text: str) -> None:
    """Type a text letter by letter: `QTest.keyClicks` ends the process at one beyond ASCII."""
    for letter in text:
        for kind in (QEvent.Type.KeyPress, QEvent.Type.KeyRelease):
            if isValid(widget):
                QApplication.sendEvent(widget, QKeyEvent(kind, 0, NO_KEYS, letter))


def deliver_deletes() -> None:
    """End the objects that wait for it: only a running event loop does so by itself."""
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
