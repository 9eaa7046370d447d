"""The texts of the speaker's window: a heading above prose that scrolls when it is long."""

from __future__ import annotations

from bisect import bisect
from dataclasses import replace

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPaintEvent, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QLabel,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from ui.look.theme import DARK, Style
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.talk.caption import (
    BODY,
    Caption,
    caption_height,
    paint_caption,
)
from ui.talk.caption_text import spoken
from ui.widgets.named import named
from ui.widgets.parts import with_parts

_LEAST = 0.6
"""Least share of its size to which a text is made smaller to be seen without scrolling."""


@guarded
class SpeakerPane(QFrame):
    """A heading above a text that scrolls when it is long."""

    def __init__(self, heading: str) -> None:
        super().__init__()
        self.setObjectName("pane")
        self._heading = named(QLabel(), "heading", "")
        self._heading.setText(heading)
        self.prose = SpeakerProse(heading)
        self.area = QScrollArea()
        self.area.setWidgetResizable(True)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.area.setWidget(self.prose)
        self._column = with_parts(QVBoxLayout(self), self._heading, (self.area, 1))
        self._text = Style(DARK)
        # Both panes keep their shares of the width, whatever they contain.
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)

    def show_caption(self, caption: Caption) -> None:
        """Show a text from its beginning."""
        if caption != self.prose.caption:
            self.prose.show_caption(caption)
            self.area.verticalScrollBar().setValue(0)
            self._fit()

    def set_style(self, style: Style, text: Style) -> None:
        """Set the style of the heading and of the text."""
        edge = round(style.px(12))
        self._column.setContentsMargins(edge, round(style.px(8)), round(style.px(4)), edge)
        self._heading.setFont(style.text_font(12, bold=True))
        self._text = text
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Make the text smaller if it then fits; otherwise it scrolls."""
        self._column.activate()
        place = self.area.contentsRect()
        styles = [
            replace(self._text, scale=self._text.scale * step / 20)
            for step in range(round(20 * _LEAST), 21)
        ]

        def overflows(style: Style) -> bool:
            return self.prose.height_in(style, place.width()) > place.height()

        # A long text takes milliseconds to lay out, so few sizes are tried, beginning with the
        # wanted one.
        fitting = bisect(styles, 0, key=overflows) if overflows(styles[-1]) else len(styles)
        self.prose.set_style(styles[max(fitting, 1) - 1])


@guarded
class SpeakerProse(QWidget):
    """A text with formulas, as high as it needs for its width."""

    def __init__(self, meaning: str) -> None:
        super().__init__()
        named(self, "prose", meaning, focus=Qt.FocusPolicy.TabFocus)
        self.caption = Caption("", "")
        self.style_now = Style(DARK)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def show_caption(self, caption: Caption) -> None:
        """Show a text, and announce it."""
        self.caption = caption
        self.setAccessibleDescription(
            spoken(caption.title, caption.place, caption.body, caption.question, caption.answer)
        )
        self.updateGeometry()
        self.update()

    def set_style(self, style: Style) -> None:
        """Take theme and size of the text."""
        if style != self.style_now:
            self.style_now = style
            self.updateGeometry()
            self.update()

    @staticmethod
    def room_in(style: Style, width: int) -> float:
        """Return how wide a line may be in a style, in pixels."""
        return max(width - style.px(8), style.px(BODY))

    def height_in(self, style: Style, width: int) -> int:
        """Return how high the text would be in a style, in pixels, for a width."""
        return round(caption_height(self.caption, style, self.room_in(style, width))) + 2

    def heightForWidth(self, width: int) -> int:
        return self.height_in(self.style_now, width)

    def sizeHint(self) -> QSize:
        return QSize(320, self.heightForWidth(320))

    def minimumSizeHint(self) -> QSize:
        return QSize(40, 40)

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            place = QRectF(0, 0, self.room_in(self.style_now, self.width()), self.height())
            paint_caption(painter, self.caption, self.style_now, place)
