"""A cover over a panel that would tell the answer to a question that waits."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QRectF
from PySide6.QtGui import QColor, QPaintEvent
from PySide6.QtWidgets import QDockWidget, QWidget

from ui.export.writers.widgets import COVERED
from ui.look.draw import CENTRE, draw_text
from ui.look.theme import DARK, Style
from ui.safety.overrides import guarded
from ui.safety.painting import painting

_MARK, _SHARE = 96.0, 0.4


@guarded
class AnswerCover(QWidget):
    """Covers the panel of a dock with a question mark, and stays as large as the panel."""

    def __init__(self, dock: QDockWidget) -> None:
        super().__init__(dock)
        self.setObjectName("cover")
        self.setAccessibleName("Covered until the question is answered")
        self.setToolTip("Covered until the question is answered")
        self._dock = dock
        self.style_now = Style(DARK)
        self.hide()

    def lay(self, on: bool) -> None:
        """Cover the panel, or show it again."""
        if on:
            self._dock.installEventFilter(self)
            self._fit()
            self.show()
            self.raise_()
        else:
            self._dock.removeEventFilter(self)
            self.hide()
            panel = self._dock.widget()
            if panel is not None:
                panel.setProperty(COVERED, False)

    def _fit(self) -> None:
        panel = self._dock.widget()
        if panel is not None:
            panel.setProperty(COVERED, True)
            self.setGeometry(panel.geometry())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Resize, QEvent.Type.LayoutRequest):
            self._fit()
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            self._fit()
            theme, place = self.style_now.theme, QRectF(self.rect())
            painter.fillRect(place, QColor(theme.panel))
            size = min(self.style_now.px(_MARK), _SHARE * min(place.width(), place.height()))
            font = Style(theme).text_font(max(size, 11.0), bold=True)
            draw_text(painter, place, "?", font, theme.current, CENTRE)
