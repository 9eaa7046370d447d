"""The strip on the stage: it comes into the lowest band of the scene, and leaves again."""

from __future__ import annotations

from PySide6.QtCore import QEasingCurve, QObject, QPoint, QPropertyAnimation, QRect, QTimer, Signal
from PySide6.QtWidgets import QApplication, QWidget

from ui.look.theme import Style, Theme
from ui.session.session import Session
from ui.window.what_if.strip import WhatIfStrip

COME_MS, STAY_MS = 200, 2000
"""How long the strip takes to come, and how long it stays when nobody uses it."""
LOWEST = 0.08
"""Share of the height in which the pointer calls the strip."""
_HIGH, _SIDE, _BELOW = 112.0, 24.0, 16.0
_STAGE = (1920, 1080)


class WhatIfBand(QObject):
    """Shows a `WhatIfStrip` over the lowest part of a window.

    strip: the strip.
    here: whether the strip has come, or is coming.
    """

    asked = Signal(str)
    """The question whose answer stands in the strip, or an empty text."""

    def __init__(self, window: QWidget, session: Session) -> None:
        super().__init__(window)
        self._window, self._session = window, session
        self.strip = WhatIfStrip(session, stage=True)
        self.strip.setParent(window)
        self.strip.hide()
        self.here = False
        self._way = QPropertyAnimation(self.strip, b"pos", self)
        self._way.setDuration(COME_MS)
        self._way.setEasingCurve(QEasingCurve.Type.OutCubic)
        self._way.finished.connect(self._arrive)
        self._rest = QTimer(self, singleShot=True, interval=STAY_MS)
        self._rest.timeout.connect(self._tire)
        self.strip.touched.connect(self._rest.start)
        session.what_ifs.changed.connect(self._answer)

    @property
    def scale(self) -> float:
        """Pixels of the window for one pixel of a stage of 1920 × 1080."""
        return min(self._window.width() / _STAGE[0], self._window.height() / _STAGE[1])

    @property
    def band(self) -> QRect:
        """The place of the strip when it has come."""
        u, window = self.scale, self._window
        wide = min(window.width(), round(_STAGE[0] * u)) - 2 * round(_SIDE * u)
        top = window.height() - round((_HIGH + _BELOW) * u)
        return QRect((window.width() - wide) // 2, top, wide, round(_HIGH * u))

    def set_theme(self, theme: Theme) -> None:
        """Take the theme; letters have the size of the stage."""
        self.strip.set_style(Style(theme, self.scale))

    def place(self) -> None:
        """Follow the size of the window."""
        if self.here:
            self._way.stop()
            self.strip.set_style(Style(self.strip.theme, self.scale))
            self.strip.setGeometry(self.band)

    def come(self) -> None:
        """Let the strip come, and stay while somebody uses it."""
        self._rest.start()
        if self.here:
            return
        self.here = True
        band = self.band
        self.strip.set_style(Style(self.strip.theme, self.scale))
        if not self.strip.isVisible():
            self.strip.setGeometry(band.translated(0, self._window.height() - band.top()))
            self.strip.refresh()
            self.strip.show()
        self.strip.raise_()
        self._move(band.topLeft())

    def leave(self, *, at_once: bool = False) -> None:
        """Let the strip go."""
        self._rest.stop()
        if not self.here:
            return
        self.here = False
        self.asked.emit("")
        focus = QApplication.focusWidget()
        if focus is not None and self.strip.isAncestorOf(focus):
            focus.clearFocus()
        below = QPoint(self.strip.x(), self._window.height())
        if at_once:
            self._way.stop()
            self.strip.hide()
        else:
            self._move(below)

    def _move(self, end: QPoint) -> None:
        self._way.stop()
        if self._session.motion:
            self._way.setStartValue(self.strip.pos())
            self._way.setEndValue(end)
            self._way.start()
        else:
            self.strip.move(end)
            self._arrive()

    def _arrive(self) -> None:
        if not self.here:
            self.strip.hide()

    def point(self, at: QPoint) -> None:
        """Come if the pointer is in the lowest part; stay while the pointer is on the strip."""
        if at.y() >= (1 - LOWEST) * self._window.height() or (self.here and self._over(at)):
            self.come()

    def _over(self, at: QPoint) -> bool:
        return self.strip.geometry().contains(at)

    def holds(self, place: QPoint) -> bool:
        """Return whether the pointer, at a place of the screen, is on the strip."""
        return self.here and self._over(self._window.mapFromGlobal(place))

    def _answer(self) -> None:
        """Emit the question, and stay while runs are compared."""
        self.asked.emit(self.strip.question if self.here else "")
        if self.here and self._session.what_ifs.compared is not None:
            self._rest.start()

    def _tire(self) -> None:
        """Leave, unless somebody still uses the strip or an answer stands in it."""
        if self._session.what_ifs.compared is not None or self.strip.unfinished:
            self._rest.start()
        else:
            self.leave()
