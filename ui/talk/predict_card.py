"""The card that takes the answer to a question and shows the distance of the guess."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QEasingCurve, QEvent, QRectF, QSize, Qt, QVariantAnimation, Signal
from PySide6.QtGui import QColor, QFont, QKeyEvent, QMouseEvent, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QLineEdit, QWidget

from simulator.lesson.predict import GuessOutcome, Prediction, read_number
from ui.look.draw import LEFT, card, draw_text, mixed, text_width
from ui.look.theme import DARK, Style
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.talk.caption_text import plain_text
from ui.talk.prediction import Scale, paint_scale, scale_of, value_at, verdict, wanted
from ui.widgets.choice_bar import Button, bar_sheet
from ui.widgets.named import named
from ui.widgets.sheet import set_sheet

GROW_MS = 400
"""How long the line between answer and guess grows."""
ROW = 36.0
"""Height of the card, in pixels at scale 1."""
_LETTERS = "0123456789.,-−+eE%× \u202f"
_ENTER = "Return", "Enter"
TEXT, _SMALL = 14.0, 11.0
"""Letters of the card and of its scale, in pixels at scale 1."""
_GAP, _PAD = 8.0, 10.0
_FIELD = 96.0
_GOES_ON = "The run goes on."


@guarded
class NumberField(QLineEdit):
    """A field for a number: other letters are the window's keys."""

    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.ShortcutOverride:
            assert isinstance(event, QKeyEvent)
            event.setAccepted(self.takes(event.text()) or event.key() in _EDITS)
            return event.isAccepted()
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        plain = not event.text() or self.takes(event.text()) or event.key() in _EDITS
        commands = event.modifiers() & Qt.KeyboardModifier.ControlModifier
        if plain or commands:
            super().keyPressEvent(event)
        else:
            event.ignore()

    def takes(self, letter: str) -> bool:
        """Return whether a letter may be part of a number; a space only inside of one."""
        return bool(letter) and letter in _LETTERS and (letter != " " or bool(self.text()))


_EDITS = (
    Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Backspace, Qt.Key.Key_Delete,
    Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Home, Qt.Key.Key_End,
)  # fmt: skip


@guarded
class PredictCard(QWidget):
    """Asks for a number or a choice, and shows how far the guess is from the answer.

    The card shows a question and emits the guess; it decides nothing.
    """

    guessed = Signal(float)
    skipped = Signal()
    asked_again = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("predict")
        self.setAccessibleName("Predict")
        self.style_now = Style(DARK)
        self.prediction: Prediction | None = None
        self.outcome: GuessOutcome | None = None
        self.waits = False
        """Whether the card waits for an answer."""
        self.told = False
        """Whether the answer may be seen: the run has arrived."""
        self.words = ""
        """The line beside the field: the wanted input, or the hint; later the verdict."""
        self.field = NumberField(self)
        self.field.setObjectName("guess")
        self.field.setFrame(False)
        self.field.returnPressed.connect(self.show_answer)
        self.field.textChanged.connect(self.update)
        self.show_button = self._button("show", "Show", "Show the answer (Enter)", self.show_answer)
        self.hint_button = self._button("hint", "Hint", "A line that helps", self._show_hint)
        self.skip_button = self._button("skip", "Skip", "Go on without an answer (PgDn)",
                                        self.skipped.emit)  # fmt: skip
        self.again_button = self._button("again", "Ask again", "Answer the question once more",
                                         self.asked_again.emit)  # fmt: skip
        self.choices: list[Button] = []
        self._free = QRectF()
        """The place between the field and the buttons."""
        self._grown = QVariantAnimation(self)
        self._grown.setDuration(GROW_MS)
        self._grown.setStartValue(0.0)
        self._grown.setEndValue(1.0)
        self._grown.setEasingCurve(QEasingCurve.Type.OutCubic)
        self._grown.valueChanged.connect(self.update)
        self.hide()

    def _button(self, name: str, words: str, tip: str, does: Callable[[], object]) -> Button:
        button = named(Button(self), name, words, tip, Qt.FocusPolicy.StrongFocus)
        button.setText(words)
        button.clicked.connect(lambda _=False: does())
        return button

    # --- contents ---------------------------------------------------------------------------

    def ask(self, prediction: Prediction) -> None:
        """Wait for an answer to a question."""
        self.prediction, self.outcome = prediction, None
        self.waits, self.told = True, False
        self.words = "" if prediction.choices else wanted(prediction)
        self.field.setText("")
        self.field.setAccessibleName(wanted(prediction))
        self.setAccessibleDescription(wanted(prediction))
        for button in self.choices:
            button.deleteLater()
        self.choices = [
            self._button(
                f"choice_{n}", f"{n}  {plain_text(text)}", f"Choose this ({n})",
                partial(self.guessed.emit, float(n - 1)),
            )
            for n, text in enumerate(prediction.choices, start=1)
        ]  # fmt: skip
        self._arrange()

    def answer(self, prediction: Prediction, outcome: GuessOutcome | None) -> None:
        """Stop waiting: the run plays, and then `tell` shows the distance; None: skipped."""
        self.prediction, self.outcome = prediction, outcome
        self.waits = self.told = False
        self.words = _GOES_ON
        self._arrange()

    def tell(self, *, moving: bool) -> None:
        """Show how far the guess is from the answer, once the run has arrived."""
        if self.prediction is None or self.waits or self.told:
            return
        self.told = True
        if self.outcome is not None:
            self.words = verdict(self.prediction, self.outcome)
        else:
            self.words = ""
        self.setAccessibleDescription(self.words)
        self._arrange()
        self._grown.stop()
        if moving and self.outcome is not None:
            self._grown.start()

    def put_away(self) -> None:
        """Show nothing: the step asks nothing, or its question was skipped."""
        self.prediction = self.outcome = None
        self.waits = self.told = False
        self._grown.stop()
        self.hide()

    @property
    def scale(self) -> Scale | None:
        """The scale on show, None without one."""
        if self.prediction is None or (not self.waits and self.outcome is None):
            return None
        guess = self.outcome.guess if self.outcome else self._typed
        found = scale_of(self.prediction, guess, told=self.told)
        growing = self._grown.state() is QVariantAnimation.State.Running
        share = float(self._grown.currentValue()) if growing else 1.0
        return replace(found, share=share) if found is not None else None

    @property
    def _typed(self) -> float | None:
        return read_number(self.field.text(), self.prediction.unit if self.prediction else "")

    # --- input ------------------------------------------------------------------------------

    def show_answer(self) -> None:
        """Take the typed text as the guess; ask for a number if the text is none."""
        if not self.waits or self.prediction is None or not self.prediction.is_number:
            return
        number = self._typed
        if number is None:
            self.words = wanted(self.prediction)
            self.field.selectAll()
            self.update()
        else:
            self.guessed.emit(number)

    def press(self, key: str) -> bool:
        """Take a key of a talk, wherever the focus is; return whether the card has used it."""
        if not self.wants(key):
            return False
        if self.choices:
            self.guessed.emit(float(int(key) - 1))
        elif key in _ENTER:
            self.show_answer()
        elif key == "Backspace":
            self.field.backspace()
        else:
            self.field.insert(key)
        return True

    def wants(self, key: str) -> bool:
        """Return whether `press` would take a key."""
        if not self.waits or self.prediction is None or self.isHidden():
            return False
        if self.prediction.choices:
            return len(key) == 1 and key in "123456789"[: len(self.choices)]
        typed = key in (*_ENTER, "Backspace") or (len(key) == 1 and key in "0123456789.,-+")
        return self.prediction.is_number and typed

    def take_focus(self) -> None:
        """Let the next keys be the answer."""
        if self.waits and self.prediction is not None and self.isVisible():
            (self.field if self.prediction.is_number else self).setFocus()

    def _show_hint(self) -> None:
        if self.prediction is not None:
            self.words = plain_text(self.prediction.hint)
            self.update()

    # --- places -----------------------------------------------------------------------------

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self.style_now = style
        theme, px = style.theme, style.px
        set_sheet(
            self,
            bar_sheet(style) + f"QLineEdit {{ color: {theme.text}; background: {theme.window};"
            f" border: {max(1, round(px(2)))}px solid {theme.current};"
            f" border-radius: {round(px(4))}px; padding: 0 {round(px(6))}px; }}"
            f"QToolButton#show {{ color: {theme.window}; background: {theme.current};"
            f" border-color: {theme.current}; font-weight: bold; }}",
        )
        self._arrange()

    @property
    def high(self) -> int:
        """The height of the card, in pixels."""
        return round(self.style_now.px(ROW))

    def sizeHint(self) -> QSize:
        return QSize(round(self.style_now.px(600)), self.high)

    @property
    def _font(self) -> QFont:
        return self.style_now.text_font(TEXT)

    def _arrange(self) -> None:
        """Show the widgets that are needed now, and place them."""
        asked, px = self.prediction, self.style_now.px
        number = self.waits and asked is not None and asked.is_number
        shown: dict[QWidget, bool] = {
            self.field: number, self.show_button: number,
            self.hint_button: self.waits and asked is not None and bool(asked.hint),
            self.skip_button: self.waits, self.again_button: self.told,
        }  # fmt: skip
        shown |= dict.fromkeys(self.choices, self.waits)
        font = self._font
        gap, high = round(px(_GAP)), self.height() - 2 * round(px(4))
        top, right = round(px(4)), self.width() - gap
        for button in (self.skip_button, self.hint_button, self.again_button, self.show_button):
            button.setFont(font)
            if shown[button]:
                wide = round(text_width(font, button.text()) + px(22))
                right -= wide
                button.setGeometry(right, top, wide, high)
                right -= gap
        left = gap
        if number:
            self.field.setFont(self.style_now.code_font(TEXT + 3))
            self.field.setGeometry(left, top, round(px(_FIELD)), high)
            left += round(px(_FIELD)) + gap
        if self.waits and self.choices:
            most = max(text_width(font, each.text()) for each in self.choices)
            room = (right - left - gap * (len(self.choices) - 1)) / len(self.choices)
            for button in self.choices:
                button.setFont(font)
                wide = round(min(room, most + px(28)))
                button.setGeometry(left, top, wide, high)
                left += wide + gap
        for widget, on in shown.items():
            widget.setVisible(on)
        self._free = QRectF(left, top, max(right - left, 0), high)
        self.update()

    @property
    def scale_rect(self) -> QRectF:
        """The place of the scale."""
        free = self._free
        wide = 0.5 * free.width()
        return QRectF(free.right() - wide, free.top(), wide, free.height())

    @property
    def words_rect(self) -> QRectF:
        """The place of the words."""
        free = QRectF(self._free)
        if self.scale is not None:
            free.setRight(self.scale_rect.left() - self.style_now.px(_GAP))
        return free

    # --- Qt ---------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            theme, px = self.style_now.theme, self.style_now.px
            painter.setRenderHint(painter.RenderHint.Antialiasing)
            ground = mixed(theme.panel, theme.current, 0.08)
            border = theme.current if self.waits else theme.border
            painter.fillRect(self.rect(), QColor(theme.panel))
            card(painter, QRectF(self.rect()).adjusted(1, 1, -1, -1), ground, border, px(6))
            ink = theme.muted if self.waits else theme.text
            draw_text(painter, self.words_rect, self.words, self._font, ink, LEFT)
            scale = self.scale
            if scale is not None:
                own = self.style_now
                small = own.text_font(max(_SMALL, own.least / own.scale))
                paint_scale(painter, scale, own, self.scale_rect, small)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._drag(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._drag(event)

    def _drag(self, event: QMouseEvent) -> None:
        """Move the mark of the guess to the pointer; the field follows."""
        scale, rect = self.scale, self.scale_rect
        if self.waits and scale is not None and rect.contains(event.position()):
            value = value_at(scale, rect, self.style_now, event.position().x())
            self.field.setText(f"{value:g}")

    def event(self, event: QEvent) -> bool:
        """Keep the keys of choices from the panels' shortcuts while the card has the focus."""
        if event.type() is QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            choices = self.prediction is not None and bool(self.prediction.choices)
            if choices and self.wants(event.text()):
                event.accept()
                return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not self.press(event.text()):
            super().keyPressEvent(event)
