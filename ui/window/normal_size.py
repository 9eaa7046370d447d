"""A window stays full screen as it grows, and gets its earlier size back afterwards."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize, Qt, QTimer
from PySide6.QtGui import QWindowStateChangeEvent
from PySide6.QtWidgets import QWidget

from ui.safety.overrides import guarded

_LARGE = Qt.WindowState.WindowFullScreen | Qt.WindowState.WindowMaximized
_WAIT_MS, _TRIES = 50, 20
"""How often, and how many times, the size is checked: window managers take a moment."""


@guarded
class NormalSize(QObject):
    """Restores the size of a window that was maximised or filled the screen.

    A large window has larger text, and so a larger least size: when the window should shrink, it
    cannot yet be as small as before.
    """

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._size = QSize()
        self._tries = 0
        self._look = QTimer(self, interval=_WAIT_MS)
        self._look.timeout.connect(self._put_back)
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Note the size when the window gets large, and restore it when the window no longer is."""
        if isinstance(event, QWindowStateChangeEvent):
            was, is_now = bool(event.oldState() & _LARGE), bool(self._window.windowState() & _LARGE)
            if is_now and not was:
                self._look.stop()
                size, room = self._window.normalGeometry().size(), self._window.screen().size()
                if size.width() < room.width() or size.height() < room.height():
                    self._size = size  # full screen may be on its way
            elif was and not is_now and self._size.isValid():
                self._tries = _TRIES
                self._look.start()
        elif event.type() is QEvent.Type.Resize:
            QTimer.singleShot(0, self, self._stay_full)
        return False

    def _stay_full(self) -> None:
        """Tell the widget again that the window is full screen, if it is.

        A widget forgets this when its contents make it larger, and does not report it. The window
        itself stays full screen, and the widget could not leave a state that it does not know.
        """
        window, full = self._window, Qt.WindowState.WindowFullScreen
        if window.isFullScreen() or not window.isVisible():
            return
        if window.windowHandle().windowStates() & full:
            window.setWindowState(window.windowState() | full)

    def _put_back(self) -> None:
        window, size = self._window, self._size
        self._tries -= 1
        if window.windowState() != Qt.WindowState.WindowNoState:
            self._look.stop()
            return
        if window.size() != size:
            window.resize(size)
        if window.size() == size or not self._tries:
            self._look.stop()
