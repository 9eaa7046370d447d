"""The words of a sentence that are its controls: lists that look like words, and a number."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QLineF, QPointF, QRectF, QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QPolygonF,
    QValidator,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractSpinBox, QSpinBox, QWidget

from simulator.base.choices import Choice
from ui.look.draw import LEFT, card, draw_text
from ui.look.theme import DARK, Style, Theme
from ui.look.units import count_text
from ui.panels.kv_cache.choices import ACTS
from ui.panels.kv_cache.state import MOST_TOKENS
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.widgets.choice_box import ChoiceBox
from ui.widgets.focus import has_ring
from ui.widgets.named import named

_PAUSE_MS = 1000
"""Pause after which letters begin another name."""
_STEPS = {
    Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1, Qt.Key.Key_PageUp: -5, Qt.Key.Key_PageDown: 5,
    Qt.Key.Key_Home: -1000, Qt.Key.Key_End: 1000,
}  # fmt: skip
CHEVRON = 0.8
"""Width of the sign that a word can be changed, as a share of its letters' height."""


def paint_ground(painter: QPainter, theme: Theme, place: QRectF, *, hot: bool, ring: bool) -> None:
    """Fill a control's place where the pointer is, and draw the ring of the keyboard's focus."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    ground = theme.accent if hot or ring else theme.panel
    wide = 2.5 if ring else 0.0
    card(painter, place, ground, theme.current if ring else ground, place.height() / 6, wide)


def paint_word_marks(painter: QPainter, theme: Theme, place: QRectF, letters: float) -> None:
    """Draw the dots under a word that can be changed, and the chevron behind it."""
    thick = max(letters / 15, 1.5)
    low = place.bottom() - thick
    dots = QPen(QColor(theme.current), thick)
    dots.setDashPattern([0.8, 1.7])
    painter.setPen(dots)
    painter.drawLine(QLineF(place.x(), low, place.right(), low))
    x, y, arm = place.right() - CHEVRON * letters / 2, place.center().y(), letters / 6
    painter.setPen(QPen(QColor(theme.current), thick))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPolyline(
        QPolygonF(
            [QPointF(x - arm, y - arm / 2), QPointF(x, y + arm / 2), QPointF(x + arm, y - arm / 2)]
        )
    )


def _letter(event: QKeyEvent) -> bool:
    ctrl = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier
    return bool(event.text().strip()) and event.text().isprintable() and not (
        event.modifiers() & ctrl
    )  # fmt: skip


@guarded
class WordBox(ChoiceBox):
    """A list that looks like a word of a sentence; the wheel changes it, letters find a choice."""

    def __init__(self, parent: QWidget, choice: Choice) -> None:
        super().__init__(parent)
        self._letters = QFont()
        for option in choice.options:
            self.addItem(option.text, option.value)
        named(self, choice.name, choice.name, choice.options[0].tip)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._typed = ""
        self._pause = QTimer(self, interval=_PAUSE_MS, singleShot=True)
        self._pause.timeout.connect(self._forget)

    def _forget(self) -> None:
        self._typed = ""

    def event(self, event: QEvent) -> bool:
        """Keep letters from the window, where they open panels."""
        asks = event.type() is QEvent.Type.ShortcutOverride
        if asks and isinstance(event, QKeyEvent) and _letter(event):
            event.accept()
            return True
        return super().event(event)

    def step(self, by: int) -> None:
        """Take the choice `by` places further on; an action has to be clicked."""
        entries, on = self.model(), Qt.ItemFlag.ItemIsEnabled
        allowed = [
            n
            for n in range(self.count())
            if self.itemData(n) not in ACTS and entries.flags(entries.index(n, 0)) & on
        ]
        at = min(max(allowed.index(self.currentIndex()) + by, 0), len(allowed) - 1)
        if allowed[at] != self.currentIndex():
            self.setCurrentIndex(allowed[at])
            self.activated.emit(allowed[at])

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Take the first choice that begins with the letters typed, or else has them in it."""
        by = _STEPS.get(Qt.Key(event.key()))
        if by is not None and not event.modifiers() & Qt.KeyboardModifier.AltModifier:
            self.step(by)
            return
        if not _letter(event):
            super().keyPressEvent(event)
            return
        self._typed += event.text().lower()
        self._pause.start()
        names = [self.itemText(n).lower() * (self.itemData(n) not in ACTS)
                 for n in range(self.count())]  # fmt: skip
        found = [n for n, name in enumerate(names) if name.startswith(self._typed)]
        found += [n for n, name in enumerate(names) if self._typed in name]
        if found:
            self.setCurrentIndex(found[0])
            self.activated.emit(found[0])

    def set_letters(self, style: Style, font: QFont) -> None:
        """Take the style, and the font of the word."""
        self.set_style(style)
        self._letters = font

    def wheelEvent(self, event: QWheelEvent) -> None:
        self.step(-1 if event.angleDelta().y() > 0 else 1)

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            theme, place = self.style_now.theme, QRectF(self.rect())
            paint_ground(painter, theme, place, hot=self.underMouse(), ring=has_ring(self))
            draw_text(painter, place, self.currentText(), self._letters, theme.text, LEFT)
            paint_word_marks(painter, theme, place, self._letters.pixelSize())


@guarded
class TokenBox(QSpinBox):
    """A number of tokens: the arrows and the wheel double and halve it, typing is exact."""

    entered = Signal(int)
    """A number that a user has set."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._style_now = Style(DARK)
        self.setRange(1, MOST_TOKENS)
        self.setKeyboardTracking(False)
        self.setFrame(False)
        self.setButtonSymbols(QAbstractSpinBox.ButtonSymbols.NoButtons)
        what = "Tokens of each conversation"
        named(self, "tokens", what, f"{what}. Up and Down, or the wheel: twice, half.")
        self.lineEdit().setTextMargins(0, 0, 0, 0)
        self.valueChanged.connect(self.entered)

    def show_value(self, tokens: int) -> None:
        """Show a number that somebody else has set."""
        with QSignalBlocker(self):
            self.setValue(tokens)

    def set_letters(self, style: Style, font: QFont) -> None:
        """Take the style, and the font of the word."""
        self._style_now = style
        colours = self.palette()
        colours.setColor(QPalette.ColorRole.Base, QColor(Qt.GlobalColor.transparent))
        colours.setColor(QPalette.ColorRole.Text, QColor(style.theme.text))
        for widget in (self, self.lineEdit()):  # a style sheet of the window keeps them apart
            widget.setFont(font)
            widget.setPalette(colours)

    def stepBy(self, steps: int) -> None:
        self.setValue(round(self.value() * 2.0**steps))

    def textFromValue(self, value: int) -> str:
        return count_text(value)

    def valueFromText(self, text: str) -> int:
        digits = "".join(each for each in text if each.isdecimal())
        return min(max(int(digits or 1), 1), MOST_TOKENS)

    def validate(self, text: str, at: int) -> object:
        digits = "".join(text.split())
        fits = len(digits) < 9 and (not digits or (digits.isascii() and digits.isdecimal()))
        state = QValidator.State.Acceptable if fits else QValidator.State.Invalid
        return state, text, at

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the ground below the line edit, which has none of its own."""
        with painting(self) as painter:
            theme, place = self._style_now.theme, QRectF(self.rect())
            paint_ground(
                painter, theme, place, hot=self.underMouse(), ring=self.lineEdit().hasFocus()
            )
            paint_word_marks(painter, theme, place, self.font().pixelSize())
