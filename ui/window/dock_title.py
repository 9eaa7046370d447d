"""The title bar of a dock: its name, or its purpose if a tab has the name, and two buttons."""

from __future__ import annotations

import re
from dataclasses import replace

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QDockWidget, QHBoxLayout, QMainWindow, QToolButton, QWidget

from ui.look.draw import LEFT, draw_text, text_width
from ui.look.icons import icon
from ui.look.names import first_that_fits
from ui.look.theme import DARK, Style
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.widgets.choice_bar import PlotBar
from ui.widgets.named import named

_HIGH, _PAD, _BUTTON, _ICON = 26.0, 10.0, 20.0, 14.0
_BAR = 0.92
"""Size of choices in a title, as a share of their size in a panel."""
_SOURCE = re.compile(r" \([^()]*\)\.$")
"""The paper at the end of the sentence on a panel's purpose."""


@guarded
class DockTitle(QWidget):
    """A title bar whose buttons grow with the text and have the theme's colours; Qt's do not.

    Dragging it moves the dock, a double click lets it float.

    dock: the dock of this title; its tool tip is one sentence on the panel's purpose.
    """

    def __init__(self, dock: QDockWidget) -> None:
        super().__init__(dock)
        self._dock = dock
        self.style_now = Style(DARK)
        self._stage = False
        """Whether an audience sees the window: then only a floating dock has a title."""
        self._bar: PlotBar | None = None
        self.setObjectName("dock_title")
        self._row = QHBoxLayout(self)
        self._row.addStretch(1)
        self.float_button = self._button("float", f"Float {dock.windowTitle()}, or dock it again")
        self.float_button.clicked.connect(lambda _=False: dock.setFloating(not dock.isFloating()))
        self.close_button = self._button("close", f"Close {dock.windowTitle()}")
        self.close_button.clicked.connect(lambda _=False: dock.close())
        self.set_style(self.style_now)

    def _button(self, name: str, words: str) -> QToolButton:
        # Without the focus: the menu and its key do both.
        button = named(QToolButton(self), name, words, words, Qt.FocusPolicy.NoFocus)
        self._row.addWidget(button)
        return button

    def hold(self, bar: PlotBar | None) -> None:
        """Show a panel's choices before the two buttons, in place of another panel's choices."""
        if self._bar is not None and self._bar is not bar:
            self._row.removeWidget(self._bar)
            self._bar.hide()
        self._bar = bar
        if bar is not None:
            self._row.insertWidget(1, bar)
            self.set_style(self.style_now)

    def _fit_bar(self) -> None:
        """Let the choices be as wide as their words, short ones in a narrow dock."""
        if self._bar is not None:
            self._bar.setVisible(self._high > 0)
            buttons = self._bar.shown()
            room = max(0.55 * self.width(), 1.0)
            height = self._bar.arrange(room)
            right = max(button.geometry().right() for button in buttons) + 1
            gap = round(self.style_now.px(4))
            self._bar.setFixedSize(right + gap, min(height, self._high))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_bar()

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self.style_now = style
        if self._bar is not None:
            self._bar.set_style(replace(style, scale=_BAR * style.scale))
            self._fit_bar()
        px, theme = style.px, style.theme
        self._row.setContentsMargins(0, 0, round(px(6)), 0)
        self._row.setSpacing(round(px(2)))
        side, glyph = round(px(_BUTTON)), round(px(_ICON))
        for button in (self.float_button, self.close_button):
            button.setIcon(icon(button.objectName(), theme.muted))
            button.setIconSize(QSize(glyph, glyph))
            button.setFixedSize(side, side)
        self.updateGeometry()
        self.update()

    def set_stage(self, on: bool) -> None:
        """Hide the title of a dock in the window from an audience, or show it again."""
        self._stage = on
        self._fit_bar()
        self.updateGeometry()

    @property
    def _high(self) -> int:
        hidden = self._stage and not self._dock.isFloating()
        return 0 if hidden else round(self.style_now.px(_HIGH))

    def sizeHint(self) -> QSize:
        return QSize(round(self.style_now.px(120)), self._high)

    def minimumSizeHint(self) -> QSize:
        return QSize(round(self.style_now.px(60)), self._high)

    @property
    def words(self) -> str:
        """The dock's name, or its purpose if a tab above has the name already.

        A narrow dock shows the purpose without its source in brackets, or the name again.
        """
        if not self._tabbed():
            return self._dock.windowTitle()
        whole = self._dock.toolTip()
        choices = whole, _SOURCE.sub(".", whole), self._dock.windowTitle()
        return first_that_fits(choices, self._place.width(), self.style_now.text_font(12))

    @property
    def _place(self) -> QRectF:
        """The room for words, above the line below them."""
        pad, end = self.style_now.px(_PAD), (self._bar or self.float_button).x()
        return QRectF(pad, 0, end - 2 * pad, self.height() - round(self.style_now.px(1)))

    def _tabbed(self) -> bool:
        window = self._dock.parentWidget()
        if self._dock.isFloating() or not isinstance(window, QMainWindow):
            return False
        return any(not other.isHidden() for other in window.tabifiedDockWidgets(self._dock))

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            style, theme, place = self.style_now, self.style_now.theme, self._place
            painter.fillRect(self.rect(), QColor(theme.panel))
            line = QRectF(0, place.bottom(), self.width(), self.height() - place.bottom())
            painter.fillRect(line, QColor(theme.border))
            font = style.text_font(12 if self._tabbed() else 13)
            words = self.words
            if not self._tabbed() or text_width(font, words) <= place.width():
                draw_text(painter, place, words, font, theme.muted, LEFT)
