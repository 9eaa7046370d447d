"""Messages of the window, shown above its content: nothing moves when one comes or goes."""

from __future__ import annotations

import re
from enum import Enum

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QSize, Qt, QTimer
from PySide6.QtGui import QAccessible, QAccessibleEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QToolButton, QWidget

from ui.look.icons import icon
from ui.look.theme import DARK, Style
from ui.safety.overrides import guarded
from ui.widgets.sheet import set_sheet

_WIDE, _EDGE, _PAD, _ICON, _BUTTON = 640.0, 8.0, 10.0, 16.0, 22.0
"""At scale 1: most width, space around it, space inside, and the sizes of sign and button."""
_FIRST_MS, _LETTER_MS = 3000, 60
"""How long a hint stays: the time to notice it, and the time to read each letter."""

_MOVES = (QEvent.Type.Resize, QEvent.Type.Move, QEvent.Type.Show, QEvent.Type.Hide)


class MessageKind(Enum):
    """The kind of a message, which decides how long the message stays."""

    HINT = "hint"
    """Tells what happened or could be done; disappears by itself."""
    REFUSAL = "refusal"
    """Tells why something was not done; disappears when the cause is repaired, or with Escape."""
    FAILURE = "failure"
    """Tells what the user has to know in any case; stays until its button is pressed."""


def reading_ms(text: str) -> int:
    """Return for how many milliseconds a hint stays."""
    return _FIRST_MS + _LETTER_MS * len(text)


@guarded
class MessageBar(QFrame):
    """One message at a time, with a button that dismisses it.

    A failure is hidden by a later hint or refusal, and comes back when that one has disappeared.

    anchor: the widget above which the message is shown; the message moves with the widget.
    kind: kind of the message that is shown.
    life: runs while a hint is shown, and hides it at the end.
    close_button: dismisses the message.
    """

    def __init__(self, window: QWidget, anchor: QWidget) -> None:
        super().__init__(window)
        self._anchor = anchor
        self._style = Style(DARK)
        self._text = self._failure = ""
        self.kind = MessageKind.HINT
        self.setObjectName("message")
        self._sign = QLabel()
        self._words = QLabel(wordWrap=True)
        self._words.setTextFormat(Qt.TextFormat.PlainText)
        self._words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.close_button = QToolButton()
        self.close_button.setAccessibleName("Dismiss this message")
        self.close_button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.close_button.clicked.connect(self.dismiss)
        self._row = QHBoxLayout(self)
        self._row.addWidget(self._sign, 0, Qt.AlignmentFlag.AlignTop)
        self._row.addWidget(self._words, 1)
        self._row.addWidget(self.close_button, 0, Qt.AlignmentFlag.AlignTop)
        self.life = QTimer(self, singleShot=True)
        self.life.timeout.connect(self._end_hint)
        self._later = QTimer(self, singleShot=True, interval=0)
        self._later.timeout.connect(self.place)
        self.hide()

    # --- saying -----------------------------------------------------------------------------

    def text(self) -> str:
        """Return the current message, or the last one."""
        return self._text

    @property
    def comfortable(self) -> int:
        """The width, in pixels, at which words of a message are easy to read."""
        return round(self._style.px(_WIDE) / 2)

    def say(self, text: str, kind: MessageKind = MessageKind.HINT) -> None:
        """Show a message instead of the previous one."""
        if kind is MessageKind.FAILURE:
            self._failure = text
        self._show(text, kind)

    def _show(self, text: str, kind: MessageKind) -> None:
        self.kind = kind
        self._text = text
        # Paths and dotted names may also be broken across lines.
        self._words.setText(re.sub(r"(?<=\S)([./\\_-])(?=\S)", "\\1\u200b", text))
        self.setAccessibleName(text)
        self._dress()
        self.life.stop()
        if kind is MessageKind.HINT:
            self.life.start(reading_ms(text))
        self.place()
        for widget in self.neighbours():
            widget.installEventFilter(self)
        self.show()
        self.raise_()
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.Alert))

    def dismiss(self) -> None:
        """Remove the message, whatever it is."""
        if self.kind is MessageKind.FAILURE:
            self._failure = ""
        self._end()

    def settle(self) -> None:
        """Remove a refusal: its cause has been repaired or is no longer shown."""
        if self.kind is MessageKind.REFUSAL:
            self._end()

    def unsay(self, text: str) -> None:
        """Remove a hint that is no longer true, if it is the current one."""
        if self.kind is MessageKind.HINT and self.text() == text:
            self._end()

    def escape(self) -> bool:
        """Remove a hint or a refusal; return whether there was one."""
        if self.isHidden() or self.kind is MessageKind.FAILURE:
            return False
        self._end()
        return True

    def _end_hint(self) -> None:
        if self.underMouse() or self.close_button.hasFocus():  # somebody is reading it
            self.life.start(_FIRST_MS)
        else:
            self._end()

    def _end(self) -> None:
        self.life.stop()
        if self.isHidden():
            return
        if self._failure and self.kind is not MessageKind.FAILURE:
            self._show(self._failure, MessageKind.FAILURE)
        else:
            self.hide()
            for widget in self.neighbours():
                widget.removeEventFilter(self)

    # --- looks ------------------------------------------------------------------------------

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self._style = style
        px = style.px
        pad = round(px(_PAD))
        self._row.setContentsMargins(pad, pad, pad, pad)
        self._row.setSpacing(pad)
        self._words.setFont(style.text_font(13))
        button = round(px(_BUTTON))
        self.close_button.setFixedSize(button, button)
        self._dress()
        self.place()

    def _dress(self) -> None:
        """Take the colours and the sign of the kind."""
        theme, px = self._style.theme, self._style.px
        hint = self.kind is MessageKind.HINT
        colour, sign = (theme.muted, "help") if hint else (theme.bad, "warning")
        size, glyph = round(px(_ICON)), round(px(_ICON * 0.75))
        self._sign.setPixmap(icon(sign, colour).pixmap(QSize(size, size)))
        self.close_button.setIcon(icon("close", theme.text))
        self.close_button.setIconSize(QSize(glyph, glyph))
        how = "×" if self.kind is MessageKind.FAILURE else "Esc"
        self.close_button.setToolTip(f"Dismiss this message ({how})")
        set_sheet(
            self,
            f"#message {{ background: {theme.panel}; border: {max(round(px(1)), 1)}px solid"
            f" {colour}; border-left-width: {round(px(4))}px; border-radius: {round(px(5))}px; }}"
            f"QLabel {{ color: {theme.text}; background: transparent; }}"
            f"QToolButton {{ border: 1px solid transparent; border-radius: {round(px(4))}px; }}"
            f"QToolButton:hover {{ background: {theme.accent}; }}",
        )
        self.ensurePolished()

    # --- place ------------------------------------------------------------------------------

    def neighbours(self) -> list[QWidget]:
        """Return the widgets whose places determine the message's place."""
        return [self._anchor]

    def room(self) -> QRect:
        """Return the part of the window that the message may cover."""
        window = self.parentWidget()
        assert window is not None
        return QRect(self._anchor.mapTo(window, QPoint()), self._anchor.size())

    def place(self) -> None:
        """Move to the top of `room`, as wide as the words need."""
        room, px = self.room(), self._style.px
        edge = round(px(_EDGE))
        most = max(min(room.width() - 2 * edge, round(px(_WIDE))), 1)
        margins = self._row.contentsMargins()
        beside = margins.left() + margins.right() + 2 * self._row.spacing() + 2 * self.frameWidth()
        beside += round(px(_ICON)) + self.close_button.width() + round(px(_EDGE))
        words = self._words.fontMetrics().horizontalAdvance(self.text())
        width = min(words + beside, most)
        self.resize(width, self.heightForWidth(width))
        self.move(room.center().x() - width // 2, room.top() + edge)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow when the widget below moves, appears or disappears."""
        if event.type() in _MOVES:
            self._later.start()
        return False
