"""What the speaker sees and the audience does not: notes, the next step, the answer, the time."""

from __future__ import annotations

from bisect import bisect
from dataclasses import replace

from PySide6.QtCore import QElapsedTimer, QRectF, QSize, Qt, QTime, QTimer, Signal
from PySide6.QtGui import QPaintEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from simulator.lesson.steps import ResolvedStep
from ui.look.theme import DARK, Style, palette
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.talk.caption import (
    BODY,
    Caption,
    LessonEnd,
    caption_height,
    end_caption,
    paint_caption,
)
from ui.talk.caption_text import spoken
from ui.widgets.sheet import set_sheet

ZOOMS = (0.8, 1.0, 1.25, 1.6, 2.0, 2.5, 3.0)
"""Sizes of the speaker's text, chosen in the window."""
_LEAST = 0.6
"""The smallest size of a text that is made smaller to be seen without scrolling."""
FIRST_SIZE = QSize(1000, 640)
ROOMY = QSize(860, 480)
"""Space for clock and buttons at scale 1; in a smaller window they are smaller."""

_CLOCK = (
    ("pause", "Pause", "Stop counting the time, or go on"),
    ("reset", "Reset", "Count the time from zero"),
)
_ZOOM = (
    ("smaller", "A −", "Smaller text (−)"),
    ("larger", "A +", "Larger text (+)"),
)
_TALK = (
    ("back", "Back", "The step before (PgUp)"),
    ("next", "Next", "The next step, first the answer to a question (PgDn)"),
    ("reveal", "Reveal answer", "Show the answer to the audience, or hide it (A)"),
    ("blank", "Blank", "Black out the screen, or bring it back (B)"),
    ("swap", "Swap screens", "Put these notes on the other screen (X)"),
)


def elapsed_words(seconds: int) -> str:
    """Return a duration as ``0:07:42``."""
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def now_caption(step: ResolvedStep | None) -> Caption:
    """Return what the speaker reads about the current step: the notes, else the caption.

    The answer to its question is always included.
    """
    if step is None:
        return Caption("No lesson is open", "PgDn and PgUp step through the run.")
    body = step.notes or (f"*On the screen:* {step.caption}" if step.caption else "")
    question, answer = step.question, step.answer
    return Caption(step.title, body, step.number, step.count, question, answer, revealed=True)


def next_caption(
    step: ResolvedStep | None, following: ResolvedStep | None, end: LessonEnd | None = None
) -> Caption:
    """Return what the speaker reads about the next step, or the end of the lesson."""
    if following is not None:
        return Caption(
            following.title, following.caption, following.number, following.count,
            following.question,
        )  # fmt: skip
    if end is not None:
        return end_caption(end)
    last = step is not None and step.number + 1 == step.count
    return Caption("The last step is on show" if last else "", "")


@guarded
class SpeakerWindow(QWidget):
    """Notes, the next step, the answer, the time of day and how long the talk has taken.

    It shows steps and emits what the speaker wants; it does not move by itself.

    parent: the window that is presented.
    """

    back_asked = Signal()
    next_asked = Signal()
    reveal_asked = Signal()
    blank_asked = Signal()
    swap_asked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setObjectName("speaker_window")
        self.setWindowTitle("Speaker — Tilescope")
        self.setAccessibleName("Speaker")
        self.setAttribute(Qt.WidgetAttribute.WA_QuitOnClose, False)
        self.setAutoFillBackground(True)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setMinimumSize(560, 360)
        self.resize(FIRST_SIZE)
        self._style = Style(DARK)
        self._zoom = ZOOMS.index(1.6)
        self._styled: tuple[Style, int] | None = None
        """The texts on show: a new size seldom changes them."""
        self._spent = 0
        self._since = QElapsedTimer()
        self.clock, self.elapsed = _label("clock", "Time"), _label("elapsed", "Time of the talk")
        self.note = _label("note", "Remark")
        self.note.setWordWrap(True)
        self.now, self.following = _Pane("On show"), _Pane("Next")
        self.buttons = {name: _button(*rest) for name, *rest in (*_CLOCK, *_ZOOM, *_TALK)}
        self.buttons["pause"].setCheckable(True)
        self.buttons["blank"].setCheckable(True)
        self._arrange()
        self._connect()
        self._tick_timer = QTimer(self, interval=500)
        self._tick_timer.timeout.connect(self._tick)
        self._tick_timer.start()
        self.show_step(None, None, False)
        self.show_swap(False)
        self.set_note("")
        self._restyle()
        self._tick()

    def _arrange(self) -> None:
        self._column = QVBoxLayout(self)
        self._top, self._middle, self._bottom = QHBoxLayout(), QHBoxLayout(), QHBoxLayout()
        for row in (self._top, self._middle, self._bottom):
            self._column.addLayout(row, 1 if row is self._middle else 0)
        for widget in (self.elapsed, *self._named(_CLOCK)):
            self._top.addWidget(widget)
        self._top.addStretch(1)
        self._top.addWidget(self.clock)
        self._top.addStretch(1)
        for widget in self._named(_ZOOM):
            self._top.addWidget(widget)
        self._middle.addWidget(self.now, 60)
        self._middle.addWidget(self.following, 40)
        for widget in self._named(_TALK):
            self._bottom.addWidget(widget)
        self._bottom.addWidget(self.note, 1)

    def _named(self, rows: tuple[tuple[str, str, str], ...]) -> list[QPushButton]:
        return [self.buttons[name] for name, *_ in rows]

    def _connect(self) -> None:
        press = self.buttons
        press["back"].clicked.connect(self.back_asked)
        press["next"].clicked.connect(self.next_asked)
        press["reveal"].clicked.connect(self.reveal_asked)
        press["blank"].clicked.connect(self.blank_asked)
        press["swap"].clicked.connect(self.swap_asked)
        press["pause"].toggled.connect(self._pause)
        press["reset"].clicked.connect(self.reset)
        press["smaller"].clicked.connect(lambda: self.zoom(-1))
        press["larger"].clicked.connect(lambda: self.zoom(1))

    # --- what is shown --------------------------------------------------------------------

    def show_step(
        self,
        step: ResolvedStep | None,
        following: ResolvedStep | None,
        revealed: bool,
        end: LessonEnd | None = None,
        ended: bool = False,
    ) -> None:
        """Show the state of the lesson.

        step: the current step; None without a lesson.
        following: the next step; None after the last one, and while it is not known yet.
        end: what comes after the step, if it is the last one.
        """
        over = end if ended else None
        self.now.show_caption(end_caption(over) if over else now_caption(step))
        self.following.show_caption(
            Caption(over.following, "") if over else next_caption(step, following, end)
        )
        asks = step is not None and bool(step.question) and not ended
        button = self.buttons["reveal"]
        button.setEnabled(asks)
        button.setText("Hide answer" if asks and revealed else "Reveal answer")
        self.buttons["back"].setEnabled(step is None or step.number > 0 or ended)
        onward = bool(over.following) if over else end is not None or asks
        self.buttons["next"].setEnabled(step is None or step.number + 1 < step.count or onward)

    def show_blank(self, on: bool) -> None:
        """Show whether the screen is black."""
        self.buttons["blank"].setChecked(on)

    def show_swap(self, able: bool) -> None:
        """Offer to exchange the screens, or not."""
        self.buttons["swap"].setVisible(able)

    def set_note(self, words: str) -> None:
        """Show a message beside the buttons, for example that the screen may go off."""
        if words != self.note.text():
            self.note.setText(words)
            self.note.setAccessibleDescription(words)

    # --- time -----------------------------------------------------------------------------

    @property
    def seconds(self) -> int:
        """How long the talk has taken, in whole seconds, without pauses."""
        running = self._since.elapsed() if self._since.isValid() else 0
        return (self._spent + running) // 1000

    def reset(self) -> None:
        """Count the time of the talk from zero."""
        self._spent = 0
        self._since.start()
        self.buttons["pause"].setChecked(False)
        self._tick()

    def _pause(self, on: bool) -> None:
        if on and self._since.isValid():
            self._spent += self._since.elapsed()
            self._since.invalidate()
        elif not on and not self._since.isValid():
            self._since.start()
        self.buttons["pause"].setText("Go on" if on else "Pause")
        self._tick()

    def _tick(self) -> None:
        self.clock.setText(QTime.currentTime().toString("HH:mm"))
        self.elapsed.setText(elapsed_words(self.seconds))

    # --- look -----------------------------------------------------------------------------

    def zoom(self, by: int) -> None:
        """Make the text some sizes larger or smaller."""
        self._zoom = min(max(self._zoom + by, 0), len(ZOOMS) - 1)
        self._restyle()

    def set_style(self, style: Style) -> None:
        """Take theme and text scale, for a window of any size."""
        self._style = style
        self._restyle()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._restyle()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.setFocus()  # otherwise a button would have the focus, and Space would press it

    def _restyle(self) -> None:
        """Set the sizes that belong to the window's size: full screen is read from further away."""
        room = min(self.width() / 1280, self.height() / 720)
        fits = min(self.width() / ROOMY.width(), self.height() / ROOMY.height())
        scale = min(self._style.scale * max(1.0, int(room * 4) / 4), fits)
        style = replace(self._style, scale=scale)
        if (style, self._zoom) == self._styled:
            return  # the panes set their own sizes
        self._styled = style, self._zoom
        theme, edge = style.theme, round(style.px(10))
        self.setPalette(palette(theme))
        self._column.setContentsMargins(edge, edge, edge, edge)
        self._column.setSpacing(edge)
        for row in (self._top, self._middle, self._bottom):
            row.setSpacing(edge)
        self.clock.setFont(style.code_font(30, bold=True))
        self.elapsed.setFont(style.code_font(30))
        self.note.setFont(style.text_font(12))
        for button in self.buttons.values():
            button.setFont(style.text_font(14))
        words = ("Pause", "Go on")
        wide = max(self.buttons["pause"].fontMetrics().horizontalAdvance(w) for w in words)
        self.buttons["pause"].setFixedWidth(wide + round(style.px(30)))
        words = ("Reveal answer", "Hide answer")
        wide = max(self.buttons["reveal"].fontMetrics().horizontalAdvance(w) for w in words)
        self.buttons["reveal"].setFixedWidth(wide + round(style.px(30)))
        text = replace(style, scale=scale * ZOOMS[self._zoom])
        for pane in (self.now, self.following):
            pane.set_style(style, text)
        self.buttons["smaller"].setEnabled(self._zoom > 0)
        self.buttons["larger"].setEnabled(self._zoom + 1 < len(ZOOMS))
        px = style.px
        set_sheet(
            self,
            f"#speaker_window {{ background: {theme.window}; }}"
            f"QPushButton {{ background: {theme.field}; border: 1px solid {theme.border};"
            f" border-radius: {px(5):.0f}px; padding: {px(6):.0f}px {px(12):.0f}px;"
            f" color: {theme.text}; }}"
            f'QPushButton:hover, QPushButton[ring="true"] {{ border-color: {theme.text}; }}'
            f"QPushButton:pressed, QPushButton:checked {{ background: {theme.accent};"
            f" border-color: {theme.current}; }}"
            f"QPushButton:disabled {{ color: {theme.faint}; }}"
            f"#clock {{ color: {theme.text}; }} #elapsed {{ color: {theme.current}; }}"
            f"#note, #heading {{ color: {theme.muted}; }}"
            f"#pane {{ background: {theme.panel}; border: 1px solid {theme.border};"
            f" border-radius: {px(6):.0f}px; }}"
            f"QScrollArea, #prose {{ background: {theme.panel}; border: none; }}"
            f"QScrollBar {{ background: {theme.panel}; width: {px(8):.0f}px; border: none; }}"
            f"QScrollBar::handle {{ background: {theme.faint}; border-radius: {px(4):.0f}px;"
            f" min-height: {px(24):.0f}px; }}"
            "QScrollBar::add-line, QScrollBar::sub-line { height: 0; }",
        )


@guarded
class _Pane(QFrame):
    """A heading above a text that scrolls when it is long."""

    def __init__(self, heading: str) -> None:
        super().__init__()
        self.setObjectName("pane")
        self._heading = _label("heading", "")
        self._heading.setText(heading)
        self.prose = _Prose(heading)
        self.area = QScrollArea()
        self.area.setWidgetResizable(True)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.area.setWidget(self.prose)
        self._column = QVBoxLayout(self)
        self._column.addWidget(self._heading)
        self._column.addWidget(self.area, 1)
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
class _Prose(QWidget):
    """A text with formulas, as high as it needs for its width."""

    def __init__(self, meaning: str) -> None:
        super().__init__()
        self.setObjectName("prose")
        self.setAccessibleName(meaning)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
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


def _button(words: str, tip: str) -> QPushButton:
    button = QPushButton(words)
    button.setAccessibleName(words)
    button.setAccessibleDescription(tip)
    button.setToolTip(tip)
    # Only by the keyboard: after a click the keys still belong to the talk.
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    return button


def _label(name: str, meaning: str) -> QLabel:
    label = QLabel()
    label.setObjectName(name)
    label.setAccessibleName(meaning)
    return label
