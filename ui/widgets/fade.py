"""A change of picture in the window: the old picture fades over the new one."""

from __future__ import annotations

from PySide6.QtCore import QEasingCurve, Qt, QVariantAnimation
from PySide6.QtGui import QPaintEvent, QPixmap
from PySide6.QtWidgets import QWidget

from ui.safety.overrides import guarded
from ui.safety.painting import painting

FADE_MS = 260


@guarded
class Fade(QWidget):
    """Lies above a widget while the widget's old picture fades.

    Parameters
    ----------
    over : QWidget
        The widget, whose picture is taken by `take`.
    """

    def __init__(self, over: QWidget) -> None:
        super().__init__(over)
        self._over = over
        self.picture = QPixmap()
        self._left = QVariantAnimation(self)
        self._left.setDuration(FADE_MS)
        self._left.setStartValue(1.0)
        self._left.setEndValue(0.0)
        self._left.setEasingCurve(QEasingCurve.Type.InOutQuad)
        self._left.valueChanged.connect(self.update)
        self._left.finished.connect(self._end)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    def take(self) -> None:
        """Take a picture of the widget and put it above the widget."""
        self._left.stop()
        self.hide()
        self.picture = self._over.grab()
        self.setGeometry(self._over.rect())
        self.show()
        self.raise_()

    def start(self) -> None:
        """Let the picture fade."""
        if self.isVisible():
            self._left.start()

    def _end(self) -> None:
        """Hide, and keep no picture, because it is as large as the window."""
        self.hide()
        self.picture = QPixmap()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw what is left of the picture."""
        with painting(self, covers=False) as painter:
            running = self._left.state() is QVariantAnimation.State.Running
            painter.setOpacity(float(self._left.currentValue()) if running else 1.0)
            painter.drawPixmap(0, 0, self.picture)
