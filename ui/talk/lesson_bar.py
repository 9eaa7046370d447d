"""The strip above the transport: the caption of a lesson's step, and buttons to other steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import QEvent, QObject, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QHideEvent,
    QPaintEvent,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from simulator.lesson.predict import GuessOutcome
from simulator.lesson.steps import ResolvedStep
from ui.look.draw import text_width
from ui.look.icons import icon
from ui.look.slide import CAPTION, MARGIN, unit
from ui.look.theme import DARK, Style, growth, stage_scale
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.talk.caption import (
    BODY,
    Caption,
    LessonEnd,
    caption_height,
    caption_of,
    end_caption,
)
from ui.talk.caption_view import CaptionView, StepTicks
from ui.talk.predict_card import PredictCard
from ui.talk.slide import slide_style, slide_width
from ui.widgets.choice_bar import Button, bar_sheet
from ui.widgets.named import named
from ui.widgets.sheet import set_sheet

SHARE, LARGE_SHARE = 0.17, 0.225
"""The largest share of the window's height for the strip, in a window and on a page."""
LARGE_BODY = 1 / 35
"""Size of letters on a page of a handout, as a share of its height."""
LONGEST = Caption("title", "word " * 45, 0, 10, "word " * 15, "word " * 40)
"""The longest text that a step may have (docs/writing-lessons.md), which fits into the strip."""

_CARD = 1000.0
"""Largest width of the card of a question at scale 1."""
_SKIPS = "Skip the question (PgDn)"
_EDGE, _GAP = 6.0, 16.0
_ROW, _TICKS, _BETWEEN = 28.0, 22.0, 6.0
_ALONE = 720
"""Height of the window for which a bar without a window is made."""
_LEAST = 2 * _EDGE + _TICKS + 2 * _ROW + 2 * _BETWEEN
"""Height of the controls at scale 1."""
_BUTTONS = (
    ("back", "Back", "The step before (PgUp)"),
    ("next", "Next", "The next step (PgDn)"),
    ("reveal", "Answer", "Show the answer to the question (A)"),
    ("exercises", "Exercises", "Asks exercises of this lesson and checks the answers"),
    ("leave", "", "Leave the lesson: what was on show before comes back (Ctrl+W)"),
)


_ONWARD = "Next lesson"


def text_style(style: Style, window: QSize, *, large: bool) -> Style:
    """Return the style of the caption in a window of that size, `large` on a page."""
    if not large:
        return style
    wide, high = window.width(), window.height()
    asked = max(1.0, style.scale / (growth(wide, high) * stage_scale(wide, high)))
    return replace(style, scale=asked * LARGE_BODY * high / BODY)


def controls_style(style: Style, window: QSize) -> Style:
    """Return the style of the buttons: a low window has no space for large ones."""
    return replace(style, scale=min(style.scale, SHARE * window.height() / _LEAST))


def text_rect(style: Style, window: QSize, height: float, *, large: bool) -> QRectF:
    """Return the place of the caption in a strip of that height across the window."""
    px = (text_style(style, window, large=True) if large else style).px
    edge, side = min(px(_EDGE), 0.08 * height), px(_GAP)
    taken = 0.0 if large else _controls_width(controls_style(style, window)) + px(_GAP)
    return QRectF(side, edge, window.width() - 2 * side - taken, height - 2 * edge)


def strip_height(style: Style, window: QSize, *, large: bool) -> int:
    """Return the height of the strip, in pixels: it is the same for every step of every lesson."""
    most = (LARGE_SHARE if large else SHARE) * window.height()
    own = text_style(style, window, large=large)
    width = text_rect(style, window, most, large=large).width()
    needed = caption_height(LONGEST, own, width) + 2 * own.px(_EDGE)
    least = 0.0 if large else controls_style(style, window).px(_LEAST)
    return round(min(max(needed, least), most))


def _controls_width(style: Style) -> float:
    """Return the width of the controls: the width of the wider row.

    There is space for the name that Next has at the end of a lesson.
    """
    font = style.text_font(13)
    rows = ("Back", _ONWARD), ("Answer", "Exercises")
    wide = max(sum(text_width(font, words) for words in row) for row in rows)
    return max(wide + style.px(48 + _BETWEEN), style.px(160))


@guarded
class LessonBar(QWidget):
    """A step's caption, and the buttons that go to other steps.

    The bar shows a step and emits the user's requests; it never changes the step by itself.
    """

    next_asked = Signal()
    back_asked = Signal()
    reveal_asked = Signal()
    exercises_asked = Signal()
    leave_asked = Signal()
    step_chosen = Signal(int)
    """The number of a step, from 0."""
    word_asked = Signal(str)
    """A word of the glossary in the caption."""
    number_pointed = Signal(tuple)
    """The `Pointer`s to the origin of the number under the mouse; none if there is no number."""
    number_dragged = Signal(str, int, bool)
    """A setting; 1 to make it larger, −1 to make it smaller; and whether only a little."""
    placed = Signal(str, int, int)
    """The lesson's name, the number of the step on show, from 0, and the count of steps; after the
    last step the count twice."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("lesson_bar")
        self.setAccessibleName("Lesson")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._style = Style(DARK)
        self._large = self._whole = False
        self.asks = True
        """Whether a question can be answered here: not in a picture."""
        self.card = PredictCard(self)
        self.caption = CaptionView(self)
        self.ticks = StepTicks(self)
        self.buttons = {name: self._button(name, words, tip) for name, words, tip in _BUTTONS}
        signals = (
            self.back_asked, self.next_asked, self.reveal_asked, self.exercises_asked,
            self.leave_asked,
        )  # fmt: skip
        for button, signal in zip(self.buttons.values(), signals, strict=True):
            button.clicked.connect(signal)
        self.ticks.chosen.connect(self.step_chosen)
        self.caption.word_asked.connect(self.word_asked)
        self.caption.number_pointed.connect(self.number_pointed)
        self.caption.number_dragged.connect(self.number_dragged)
        self.set_style(self._style)

    def _button(self, name: str, words: str, tip: str) -> Button:
        meaning, strong = words or "Leave the lesson", Qt.FocusPolicy.StrongFocus
        button = named(Button(self), name, meaning, tip, strong)
        button.setText(words)
        return button

    # --- contents ---------------------------------------------------------------------------

    def set_titles(self, titles: Sequence[str]) -> None:
        """Set the titles of the lesson's steps, for users who look for a step."""
        self.ticks.titles = tuple(titles)

    def show_step(
        self,
        step: ResolvedStep,
        revealed: bool,
        *,
        after: bool = False,
        outcome: GuessOutcome | None = None,
    ) -> None:
        """Show a step, with the answer to its question or without.

        outcome: how a guess that was made before the step compares with the answer.
        """
        self._show_card(step, outcome)
        self.caption.show_caption(caption_of(step, revealed))
        self.ticks.show_place(step.number, step.count)
        self.buttons["back"].setEnabled(after or step.number > 0)
        self.buttons["reveal"].setEnabled((bool(step.question) and not revealed) or step.waits)
        self._name_next("Next", _SKIPS if step.waits else "The next step (PgDn)")
        self.placed.emit(step.lesson, step.number, step.count)

    def _show_card(self, step: ResolvedStep, outcome: GuessOutcome | None) -> None:
        """Ask the step's question, or show how far a guess is off; else leave the room to text."""
        asked, card = step.prediction, self.card
        if asked is None or not self.asks or not (step.waits or outcome):
            card.put_away()
        else:
            if step.waits:
                card.ask(asked)
            elif (card.prediction, card.outcome, card.waits) != (asked, outcome, False):
                card.answer(asked, outcome)
            card.show()
        self.fit()

    def lend_card(self, band: QWidget | None) -> None:
        """Move the card to the band of the stage, or back into the strip."""
        asks = self.card.prediction is not None
        self.card.setParent(band or self)
        self.card.setVisible(asks)
        self.fit()

    def show_end(self, end: LessonEnd) -> None:
        """Say that the lesson is over, and which lesson comes next."""
        self.card.put_away()
        self.fit()
        self.caption.show_caption(end_caption(end))
        self.buttons["back"].setEnabled(True)
        self.buttons["reveal"].setEnabled(False)
        if end.following:
            self._name_next(_ONWARD, f"Next lesson: {end.following} (PgDn)")
        else:
            self._name_next("Next", "There is no lesson after this one", on=False)
        self.placed.emit(end.lesson, self.ticks.count, self.ticks.count)

    def _name_next(self, words: str, tip: str, *, on: bool = True) -> None:
        button = named(self.buttons["next"], "next", words, tip)
        button.setText(words)
        button.setEnabled(on)

    def set_faded(self, on: bool) -> None:
        """Fade a caption that does not hold, or show it fully again."""
        self.caption.faded = on
        self.caption.update()

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self._style = style
        self.fit()

    def set_large(self, on: bool, *, whole: bool = False) -> None:
        """Show the caption as on a slide and hide the controls, or undo this.

        whole: whether the whole caption is shown, for a page that is read alone.
        """
        self._large, self._whole = on, whole
        self.caption.large = on
        for widget in (self.ticks, *self.buttons.values()):
            widget.setVisible(not on)
        self.fit()

    def fit(self) -> None:
        """Set the height and the sizes for the window's size, once the bar is shown."""
        if self.isHidden():
            return
        window, view = self._window_size(), self.caption
        view.on_slide = self._large and not self._whole
        if view.on_slide:
            slide = self.window().size()
            u = unit(slide)
            self.setFixedHeight(round(CAPTION * u))
            view.style_now = slide_style(self._style, slide)
            view.setGeometry(QRectF(MARGIN * u, 0, slide_width(slide), self.height()).toRect())
        else:
            self.setFixedHeight(strip_height(self._style, window, large=self._large))
            view.style_now = text_style(self._style, window, large=self._large)
            place = text_rect(self._style, window, self.height(), large=self._large).toRect()
            if self.card.parentWidget() is self and not self.card.isHidden():
                self.card.set_style(controls_style(self._style, window))
                high = self.card.high
                longest = round(view.style_now.px(_CARD))
                wide = min(place.width(), longest)
                self.card.setGeometry(place.left(), place.bottom() + 1 - high, wide, high)
                place.setHeight(place.height() - high - round(self._style.px(_BETWEEN) / 2))
            view.setGeometry(place)
        view.update()
        self._place_controls(controls_style(self._style, window))
        self.update()

    def _window_size(self) -> QSize:
        """Return the size of the window, with the width of the bar itself.

        If the window is full screen, at most the size of the screen counts: otherwise a bar would
        grow with a window that its contents have made higher, and make it still higher.
        """
        window = self.window()
        high = window.height() if window is not self else _ALONE
        if window.isFullScreen():
            high = min(high, self.screen().size().height())
        return QSize(self.width(), high)

    def _place_controls(self, style: Style) -> None:
        px = style.px
        wide, gap = round(_controls_width(style)), round(px(_BETWEEN))
        row, top = round(px(_ROW)), round(px(_EDGE))
        left, small = self.width() - round(px(_GAP)) - wide, round(px(_TICKS))
        self.ticks.set_style(style)
        self.ticks.setGeometry(QRect(left, top, wide - small - gap, small))
        back = (wide - gap) // 3
        font = style.text_font(13)
        asks = (wide - gap + round(text_width(font, "Exercises") - text_width(font, "Answer"))) // 2
        below = top + small + gap
        places = {
            "back": QRect(left, below, back, row),
            "next": QRect(left + back + gap, below, wide - back - gap, row),
            "reveal": QRect(left, below + row + gap, wide - asks - gap, row),
            "exercises": QRect(left + wide - asks, below + row + gap, asks, row),
            "leave": QRect(left + wide - small, top, small, small),
        }
        for name, button in self.buttons.items():
            button.setGeometry(places[name])
            button.setFont(font)
        leave = self.buttons["leave"]
        leave.setIcon(icon("close", style.theme.text))
        leave.setIconSize(QSize(small, small) * 0.6)
        set_sheet(self, bar_sheet(style))

    # --- Qt ---------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.fit()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.window().installEventFilter(self)  # nobody else reports the window's height
        self.fit()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.window().removeEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Resize and watched is not self:
            self.fit()
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            theme = self._style.theme
            painter.fillRect(self.rect(), QColor(theme.panel))
            if self._large:
                return  # a slide has no lines between its parts
            painter.fillRect(
                QRect(0, 0, self.width(), max(1, round(self._style.px(1)))), theme.border
            )
