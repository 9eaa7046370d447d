"""The strip's own fields: a number with − and +, and a switch of two words."""

from __future__ import annotations

import math

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractButton, QApplication, QLineEdit, QToolButton, QWidget

from ui.look.draw import CENTRE, card, draw_text, outline, text_width
from ui.look.theme import DARK, Style
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.widgets.named import named

_STEPS = {Qt.Key.Key_Up: 1, Qt.Key.Key_Down: -1}
_OWN = (
    Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Delete,
    Qt.Key.Key_Backspace,
)  # fmt: skip
_TYPED = (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Home, Qt.Key.Key_End, Qt.Key.Key_Escape)
"""Keys that a field takes while a value is typed in it; otherwise the window takes them."""
_RING = 2.5
"""Width of the ring around the field that has the focus."""
_SHIFT = Qt.KeyboardModifier.ShiftModifier


def _fine() -> bool:
    return bool(QApplication.keyboardModifiers() & _SHIFT)


@guarded
class _Edit(QLineEdit):
    """The number: digits replace it, ↑ and ↓ step, and other keys are the window's."""

    stepped = Signal(int, bool)
    typed = Signal(str)
    restored = Signal()

    def __init__(self, letters: str) -> None:
        super().__init__()
        self._letters = letters
        self._told = ""
        self.setFrame(False)
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)

    @property
    def unfinished(self) -> bool:
        """Whether the typed text has not been reported yet."""
        return self.text() != self._told

    def show_text(self, text: str) -> None:
        """Show a value in the place of the typed text."""
        self._told = text
        self.setText(text)
        if self.hasFocus():
            self.selectAll()

    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.ShortcutOverride:
            assert isinstance(event, QKeyEvent)
            event.setAccepted(self._takes(event))
            return event.isAccepted()
        return super().event(event)

    def _takes(self, event: QKeyEvent) -> bool:
        if event.modifiers() & ~(_SHIFT | Qt.KeyboardModifier.KeypadModifier):
            return False
        key = Qt.Key(event.key())
        typed = bool(event.text()) and event.text() in self._letters
        return key in _OWN or typed or (self.unfinished and key in _TYPED)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if not self._takes(event):
            event.ignore()
        elif key in _STEPS:
            self.stepped.emit(_STEPS[key], bool(event.modifiers() & _SHIFT))
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if self.unfinished:
                self._told = self.text()
                self.typed.emit(self._told)
        elif key is Qt.Key.Key_Escape:
            self.show_text(self._told)
        elif key is Qt.Key.Key_Backspace and not self.unfinished:
            self.restored.emit()
        else:
            super().keyPressEvent(event)


@guarded
class _Sign(QToolButton):
    """The − or + beside a number; the button repeats while it is held."""

    def __init__(self, sign: str, tip: str) -> None:
        super().__init__()
        self._style = Style(DARK)
        self._size = 17.0
        self.setText(sign)
        self.setToolTip(tip)
        self.setAccessibleName(tip)
        self.setAutoRepeat(True)
        self.setAutoRepeatDelay(400)
        self.setAutoRepeatInterval(150)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def set_style(self, style: Style, size: float) -> None:
        """Take theme, text scale and the size of letters."""
        self._style, self._size = style, size
        self.update()

    def sizeHint(self) -> QSize:
        side = round(self._style.px(2.0 * self._size))
        return QSize(side, side)

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            theme, place = self._style.theme, QRectF(self.rect())
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            if self.underMouse() or self.isDown():
                inner = place.adjusted(2, 2, -2, -2)
                card(painter, inner, theme.accent, theme.accent, self._style.px(4))
            font = self._style.text_font(self._size * 1.1, bold=True)
            draw_text(painter, place, self.text(), font, theme.text, CENTRE)


@guarded
class Stepper(QWidget):
    """A number, or a tile's two numbers, with − and +.

    letters: the letters that may be typed.
    """

    stepped = Signal(int, bool)
    """1 or −1; and whether the step is one, not the factor two."""
    typed = Signal(str)
    restored = Signal()
    """The key that goes back has been pressed, while nothing was typed."""

    def __init__(self, name: str, meaning: str, letters: str, widest: str) -> None:
        super().__init__()
        self.setObjectName(f"what_if_{name}")
        self._style, self._size, self._widest = Style(DARK), 17.0, widest
        self.edit = _Edit(letters)
        self.less = _Sign("−", f"Half of {meaning} (↓); with Shift one less")
        self.more = _Sign("+", f"Twice {meaning} (↑); with Shift one more")
        for each in (self.less, self.edit, self.more):
            each.setParent(self)
        tip = f"{meaning[0].upper()}{meaning[1:]}: ↑ doubles, ↓ halves, or type it"
        named(self.edit, f"what_if_{name}_edit", f"What if: {meaning}", tip)
        self.setFocusProxy(self.edit)
        self.less.clicked.connect(lambda: self.stepped.emit(-1, _fine()))
        self.more.clicked.connect(lambda: self.stepped.emit(1, _fine()))
        self.edit.stepped.connect(self.stepped)
        self.edit.typed.connect(self.typed)
        self.edit.restored.connect(self.restored)

    def set_style(self, style: Style, size: float) -> None:
        """Take theme, text scale and the size of letters."""
        self._style, self._size = style, size
        self.edit.setFont(style.code_font(size, bold=True))
        colours = self.edit.palette()
        colours.setColor(QPalette.ColorRole.Base, QColor(style.theme.field))
        colours.setColor(QPalette.ColorRole.Text, QColor(style.theme.text))
        self.edit.setPalette(colours)
        for sign in (self.less, self.more):
            sign.set_style(style, size)
        self.update()

    @property
    def width_wanted(self) -> float:
        """Width in pixels, for its usual numbers."""
        font = self._style.code_font(self._size, bold=True)
        words = max(text_width(font, self._widest), text_width(font, self.edit.text()))
        return words + self._style.px(0.8 * self._size) + 2 * self.less.sizeHint().width()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        side, pen = self.less.sizeHint().width(), math.ceil(self._style.px(_RING))
        self.less.setGeometry(pen, pen, side - pen, self.height() - 2 * pen)
        self.more.setGeometry(self.width() - side, pen, side - pen, self.height() - 2 * pen)
        self.edit.setGeometry(side, pen, self.width() - 2 * side, self.height() - 2 * pen)

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            _frame(painter, self, self._style, self.edit.hasFocus())


@guarded
class Switch(QAbstractButton):
    """Two words, one of them chosen; ↑, ↓, Enter and a click choose the other."""

    restored = Signal()

    def __init__(self, name: str, meaning: str, words: tuple[str, str]) -> None:
        super().__init__()
        tip = f"{meaning[0].upper()}{meaning[1:]}: ↑ or ↓ changes it"
        strong = Qt.FocusPolicy.StrongFocus
        named(self, f"what_if_{name}", f"What if: {meaning}", tip, strong)
        self.setCheckable(True)
        self._style, self._size, self._words = Style(DARK), 17.0, words

    def set_style(self, style: Style, size: float) -> None:
        """Take theme, text scale and the size of letters."""
        self._style, self._size = style, size
        self.update()

    @property
    def width_wanted(self) -> float:
        """Width in pixels."""
        font = self._style.text_font(self._size, bold=True)
        return 2 * (max(text_width(font, word) for word in self._words)
                    + self._style.px(1.6 * self._size))  # fmt: skip

    def sizeHint(self) -> QSize:
        return QSize(round(self.width_wanted), round(self._style.px(2.1 * self._size)))

    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.ShortcutOverride:
            assert isinstance(event, QKeyEvent)
            if event.key() in (*_STEPS, Qt.Key.Key_Return, Qt.Key.Key_Enter):
                event.setAccepted(not event.modifiers())
                return event.isAccepted()
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if key in (*_STEPS, Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        elif key is Qt.Key.Key_Backspace:
            self.restored.emit()
        else:
            event.ignore()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        right = event.position().x() > self.width() / 2
        if right is not self.isChecked():
            self.click()
        event.accept()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        event.accept()

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            style, theme = self._style, self._style.theme
            _frame(painter, self, style, self.hasFocus())
            half = self.width() / 2
            for n, word in enumerate(self._words):
                place = QRectF(n * half, 0, half, self.height()).adjusted(4, 4, -4, -4)
                chosen = self.isChecked() is bool(n)
                if chosen:
                    line = theme.tensors["Q"]
                    card(painter, place, theme.accent, line, style.px(5), style.px(1.2))
                ink = theme.text if chosen else theme.muted
                font = style.text_font(self._size, bold=chosen)
                draw_text(painter, place, word, font, ink, CENTRE)


def _frame(painter: QPainter, widget: QWidget, style: Style, focused: bool) -> None:
    """Draw the ground of a field, and a ring if it has the focus."""
    theme, px, place = style.theme, style.px, QRectF(widget.rect())
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    card(painter, place, theme.field, theme.border, px(6))
    if focused:
        outline(painter, place, theme.current, px(_RING), px(6))
