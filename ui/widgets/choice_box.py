"""A list of choices that opens, painted like the fields and buttons around it."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPalette, QWheelEvent
from PySide6.QtWidgets import QComboBox, QWidget

from ui.look.draw import card, draw_text, text_width
from ui.look.icons import icon
from ui.look.theme import DARK, Style
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.widgets.focus import has_ring

_PAD, _ARROW, _HIGH, _RADIUS = 8.0, 14.0, 24.0, 4.0


@guarded
class StillList(QComboBox):
    """A list whose choice does not change when one scrolls over it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._aside: QWidget | None = None
        """The popup, while it is not among the window's widgets."""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def put_aside(self) -> None:
        """Take the popup out of the window, which has ten widgets less to restyle, until it opens.

        Qt makes the popup with the first choice and never without the box as its parent.
        """
        popup = self.view().window()
        if self._aside is None and not popup.isVisible():
            popup.setParent(None, Qt.WindowType.Popup)
            self._aside = popup

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()

    def showPopup(self) -> None:
        """Open the list, as wide as its longest choice; it may be wider than the dock."""
        if self._aside is not None:
            self._aside.setParent(self, Qt.WindowType.Popup)
            self._aside = None
        colours, frame = self.palette(), QPalette.ColorRole.Window
        colours.setColor(frame, colours.color(frame))  # Qt takes over only colours that were set
        self.view().window().setPalette(colours)
        self.view().setMinimumWidth(self.view().sizeHintForColumn(0) + 2 * self.height())
        super().showPopup()


@guarded
class ChoiceBox(StillList):
    """A list in a bar.

    Fusion's list has a frame that high contrast does not show, and an arrow that does not grow with
    the text.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.style_now = Style(DARK)

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self.style_now = style
        self.setFont(style.text_font(12))
        self.view().setFont(style.text_font(12))
        self.put_aside()
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        px, font = self.style_now.px, self.style_now.text_font(12)
        items = (text_width(font, self.itemText(n)) for n in range(self.count()))
        beside = px(2.5 * _PAD) + px(_ARROW)
        return QSize(round(max(items, default=0.0) + beside), round(px(_HIGH)))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            px, theme = self.style_now.px, self.style_now.theme
            lit = has_ring(self) or self.underMouse()
            ink = theme.text if self.isEnabled() else theme.faint
            place, arrow = QRectF(self.rect()), px(_ARROW)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            card(painter, place, theme.field, ink if lit else theme.border, px(_RADIUS))
            words = place.adjusted(px(_PAD), 0, -arrow - px(_PAD), 0)
            draw_text(painter, words, self.currentText(), self.style_now.text_font(12), QColor(ink))
            down = QRectF(place.right() - arrow - px(_PAD) / 2, place.center().y() - arrow / 2,
                          arrow, arrow)  # fmt: skip
            icon("chevron-down", ink).paint(painter, down.toRect())
