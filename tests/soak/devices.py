"""Keys, mouse and wheel for a window, as the window system would tell of them."""

from __future__ import annotations

import random
from collections.abc import Callable

from PySide6.QtCore import QEvent, QPoint, QRect, Qt
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QWindow
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid

from tests.soak.watch import Stopwatch

NO_KEYS = Qt.KeyboardModifier.NoModifier
MODIFIERS = (
    (Qt.Key.Key_Shift, Qt.KeyboardModifier.ShiftModifier),
    (Qt.Key.Key_Control, Qt.KeyboardModifier.ControlModifier),
    (Qt.Key.Key_Alt, Qt.KeyboardModifier.AltModifier),
)
LETTERS = {
    Qt.Key.Key_Return: "\r",
    Qt.Key.Key_Tab: "\t",
    Qt.Key.Key_Backspace: "\b",
    Qt.Key.Key_Escape: "\x1b",
}
"""What keys that are no letters write."""


def within(draw: random.Random, rect: QRect) -> QPoint:
    return QPoint(draw.randrange(max(rect.width(), 1)), draw.randrange(max(rect.height(), 1)))


def is_there(window: QWindow) -> bool:
    """Return whether a window has not ended: that of a floating dock does once the dock lands."""
    return any(window == each for each in QGuiApplication.allWindows())


def press(window: QWindow, keys: str) -> None:
    """Press keys in a window, as the window system tells it; what is pressed may end the window.

    `QTest.keyPress` lets the event loop run after each key, Shift and Ctrl too, and would go on to
    the next in a window that has ended in it, which ends the process. So keys go down one by one.
    """
    pressed = QKeySequence(keys)[0]
    modifiers = pressed.keyboardModifiers()
    held = [key for key, modifier in MODIFIERS if modifier in modifiers]
    QApplication.processEvents()
    down, letter = NO_KEYS, chr(pressed.key()).lower() if pressed.key() < 0x80 else ""
    for key, modifier in MODIFIERS:
        if modifier in modifiers:
            _tell(window, key, down, "")
            down |= modifier
    _tell(window, pressed.key(), modifiers, LETTERS.get(pressed.key(), letter))
    for key in (pressed.key(), *held):
        Stopwatch.lap()
        if is_there(window):
            QTest.keyRelease(window, key)


def _tell(window: QWindow, key: Qt.Key, modifiers: Qt.KeyboardModifier, text: str) -> None:
    """Tell a window of one key that goes down, if the window is there."""
    Stopwatch.lap()
    if is_there(window):
        QTest.simulateEvent(window, True, key, modifiers, text, False)


def mouse(act: Callable[..., None], window: QWindow, *what: object) -> None:
    """Move or press the mouse in a window, unless it has ended.

    What an action before has ended may be there until the event loop runs, which QTest lets run
    while it still uses the window.
    """
    QApplication.processEvents()
    deliver_deletes()
    Stopwatch.lap()
    if is_there(window):
        act(window, *what)
    Stopwatch.lap()


def click(window: QWindow, button: Qt.MouseButton, point: QPoint) -> None:
    """Click in a window, which may end it."""
    mouse(QTest.mousePress, window, button, NO_KEYS, point)
    mouse(QTest.mouseRelease, window, button, NO_KEYS, point)


def press_in(widget: QWidget, keys: str) -> None:
    pressed = QKeySequence(keys)[0]
    QTest.keyClick(widget, pressed.key(), pressed.keyboardModifiers())


def type_into(widget: QWidget, text: str) -> None:
    """Type a text letter by letter: `QTest.keyClicks` ends the process at one beyond ASCII."""
    for letter in text:
        for kind in (QEvent.Type.KeyPress, QEvent.Type.KeyRelease):
            if isValid(widget):
                QApplication.sendEvent(widget, QKeyEvent(kind, 0, NO_KEYS, letter))
            Stopwatch.lap()


def deliver_deletes() -> None:
    """End the objects that wait for it: only a running event loop does so by itself."""
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
