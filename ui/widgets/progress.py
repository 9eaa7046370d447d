"""Progress of a long piece of work in the header: words, share, time left, Cancel."""

from __future__ import annotations

import math

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QPushButton, QWidget

from ui.look.theme import Style
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.widgets.parts import with_parts

PATIENCE_MS = 250
"""Milliseconds; work that ends sooner is not shown."""


@guarded
class ElidedLabel(QLabel):
    """Words that end in an ellipsis instead of making the window wider."""

    def width_of(self, text: str) -> int:
        """Return the label's width with a text, in pixels."""
        margins = self.contentsMargins()
        return self.fontMetrics().horizontalAdvance(text) + margins.left() + margins.right()

    def minimumSizeHint(self) -> QSize:
        width = min(self.width_of("work…"), self.sizeHint().width())
        return QSize(width, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            self.drawFrame(painter)
            place = self.contentsRect()
            text = self.fontMetrics().elidedText(
                self.text(), Qt.TextElideMode.ElideRight, place.width()
            )
            painter.drawText(place, int(self.alignment()), text)


class ProgressStrip(QWidget):
    """Appears when work takes longer than a moment, and disappears when the work is done."""

    cancelled = Signal()
    toggled = Signal(bool)
    """Emitted before the strip appears, and after it has disappeared."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("progress")
        self.setAccessibleName("Progress")
        self.words = ElidedLabel()
        self._bar = QProgressBar()
        self._bar.setRange(0, 100)
        self._bar.setTextVisible(False)
        self.button = QPushButton("Cancel")
        self.button.setToolTip("Stop this; everything stays as it was.")
        self.button.clicked.connect(self.cancelled)
        with_parts(QHBoxLayout(self), self.words, self._bar, self.button, margin=0)
        self._patience = QTimer(self, singleShot=True, interval=PATIENCE_MS)
        self._patience.timeout.connect(self._appear)
        self.hide()

    def show_progress(self, words: str, share: float, left: float) -> None:
        """Show how much of some work is done; `left` in seconds, NaN while it is not known."""
        soon = "" if math.isnan(left) else f", {max(1, math.ceil(left))} s left"
        self.words.setText(f"{words}{soon}")
        self._bar.setValue(round(100 * share))
        self.setAccessibleDescription(f"{words}: {round(100 * share)} %{soon}")
        if not self.isVisible() and not self._patience.isActive():
            self._patience.start()

    def _appear(self) -> None:
        self.toggled.emit(True)
        self.show()

    def rest(self) -> None:
        """Hide: no work is being done any more."""
        self._patience.stop()
        self.hide()
        self.toggled.emit(False)

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self.words.setFont(style.text_font(12))
        self.button.setFont(style.text_font(12))
        self._bar.setFixedSize(round(style.px(90)), round(style.px(8)))
