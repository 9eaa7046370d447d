"""A window's move to a screen and back: sizes on the way are neither used nor painted."""

from __future__ import annotations

from PySide6.QtCore import QObject, QSize, Qt, QTimer
from PySide6.QtGui import QScreen
from PySide6.QtWidgets import QWidget

_UNSEEN_MS = 150
"""Most milliseconds for which a window on its way is not painted."""


class Arrival(QObject):
    """Says whether a window is moving to a screen or from it, and has not got its size yet.

    On its way the window is not painted, unless the way takes long: each size would be painted, in
    text of the wrong size, while the window takes no input.
    """

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._awaited: QSize | None = None
        """The size of the screen to which the window is moving, or its size from before."""
        self._left: QSize | None = None
        """The size that the window has had on the screen, if it gets its earlier size back."""
        self._unseen = QTimer(self, singleShot=True)
        self._unseen.timeout.connect(self._paint)

    @property
    def awaited(self) -> bool:
        """Whether the window has not got its size yet."""
        return self._awaited is not None

    def is_passing(self, size: QSize) -> bool:
        """Return whether the window has a size only because it is on its way.

        When it moves back, its size may be larger than before, because the text, still as large as
        in a talk, may need it.
        """
        if self._awaited is None:
            return False
        return size != self._awaited if self._left is None else size == self._left

    def wait_for(self, size: QSize, left: QSize | None = None) -> None:
        """Wait until the window has a size.

        size: the size of the screen to which the window moves, or its size from before.
        left: its size on the screen from which it moves back.
        """
        self._awaited, self._left = size, left
        self._window.setUpdatesEnabled(False)
        self._unseen.start(_UNSEEN_MS)

    def end(self) -> None:
        """Accept the window's current size."""
        self._awaited = None

    def paint_soon(self) -> None:
        """Paint the window in the event loop's next turn, if it was not painted on its way.

        The window takes input first: new sizes and a picture at once would be felt as one wait.
        """
        if self._unseen.isActive():
            self._unseen.start(0)

    def paint(self) -> None:
        """Paint the window now, if it was not painted on its way."""
        if self._unseen.isActive():
            self._unseen.stop()
            self._paint()

    def _paint(self) -> None:
        self._window.setUpdatesEnabled(True)
        # At once: otherwise parts that were to be painted before the move would never be.
        self._window.repaint()


def fill(window: QWidget, screen: QScreen, *, elsewhere: bool = True) -> None:
    """Fill a screen with a window, wherever the window was before.

    elsewhere: whether the window has a size of its own when it fills no screen. If not, it has the
        screen's size there, too, and gets no third size when it moves to another screen.
    """
    window.setWindowState(window.windowState() & ~Qt.WindowState.WindowFullScreen)
    window.setScreen(screen)
    if elsewhere:
        window.move(screen.geometry().topLeft())
    else:
        window.setGeometry(screen.geometry())
    window.setWindowState(window.windowState() | Qt.WindowState.WindowFullScreen)
    window.show()
