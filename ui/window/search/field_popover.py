"""A field of the scenario that opens below a chip, with its present value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QRectF, Qt
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent, QPalette, QPen
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from ui.look.theme import palette
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.widgets.parts import with_parts
from ui.window.search.field_page import FieldPage

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow

_WIDTH = 560


@guarded
class FieldPopover(QFrame):
    """One field below a widget of the window; Enter, Esc or a click beside close the field.

    A value that cannot be used keeps the field open, which says why.
    """

    def __init__(self, window: MainWindow, name: str) -> None:
        super().__init__(window, Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setObjectName("field_popover")
        self._style = style = window.style_now
        self._window = window
        colours = palette(style.theme)
        colours.setColor(QPalette.ColorRole.Window, QColor(style.theme.panel))
        self.setPalette(colours)
        self.page = FieldPage(window, name, style, scale=1.1)
        self.page.grown.connect(self._fit)
        self.setAccessibleName(self.page.field.label.text())
        with_parts(QVBoxLayout(self), self.page, margin=1)
        self.setFixedWidth(round(min(style.px(_WIDTH), window.width() - 32)))

    def open_below(self, at: QWidget) -> None:
        """Open below a widget, inside the window."""
        self._fit()
        window = self._window
        corner = at.mapTo(window, at.rect().bottomLeft() + QPoint(0, round(self._style.px(4))))
        corner.setX(max(min(corner.x(), window.width() - self.width() - 16), 0))
        self.move(window.mapToGlobal(corner))
        self.show()
        self.page.field.editor.setFocus(Qt.FocusReason.PopupFocusReason)

    def _fit(self) -> None:
        layout = self.layout()
        assert layout is not None
        self.ensurePolished()
        high = layout.totalHeightForWidth(self.width())
        self.setFixedHeight(high if high > 0 else layout.sizeHint().height())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if event.key() == Qt.Key.Key_Escape or (enter and not self.page.wrong):
            self.close()
        elif not enter:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            theme = self._style.theme
            painter.fillRect(self.rect(), QColor(theme.panel))
            width = 2.0 if theme.name == "contrast" else 1.0
            half = width / 2
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(QColor(theme.muted), width))
            painter.drawRect(QRectF(self.rect()).adjusted(half, half, -half, -half))
