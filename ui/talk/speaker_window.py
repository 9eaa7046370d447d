"""The window that only the speaker sees: notes, the next step, the answer, the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QElapsedTimer, QSize, Qt, QTime, QTimer, Signal
from PySide6.QtGui import QColor, QPalette, QPixmap, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from simulator.lesson.steps import ResolvedStep
from ui.look.theme import DARK, Style, palette
from ui.safety.overrides import guarded
from ui.talk.caption import (
    BODY,
    Caption,
    LessonEnd,
    caption_of,
    end_caption,
)
from ui.talk.prediction import written
from ui.talk.slide import left_out
from ui.talk.speaker_pane import SpeakerPane
from ui.talk.speaker_parts import (
    NEXT,
    NOW,
    Asked,
    Pace,
    PlanBar,
    Ready,
    SlidePicture,
    SpeakerPart,
    StepList,
    clock_words,
)
from ui.widgets.named import named
from ui.widgets.parts import with_parts
from ui.widgets.sheet import set_sheet

ZOOMS = (0.8, 1.0, 1.25, 1.6, 2.0, 2.5, 3.0)
"""Sizes of the speaker's text, chosen in the window."""
_BUTTON = 21.0
"""Largest letters of buttons in a large window, in u."""
_BESIDE = 0.62
"""Size of the next step's words, as a share of the notes', where its picture says them, too."""
FIRST_SIZE = QSize(1280, 720)
ROOMY = QSize(860, 480)
"""Space for clock and buttons at scale 1; in a smaller window they are smaller."""

_CLOCK = (
    ("pause", "Pause", "Stop counting the time, or go on"),
    ("reset", "Reset", "Count the time from zero"),
)
_ZOOM = (("smaller", "A −", "Smaller text (−)"), ("larger", "A +", "Larger text (+)"))
_TALK = (
    ("back", "Back", "The step before (PgUp)"),
    ("next", "Next", "The next step, first the answer to a question (PgDn)"),
    ("play", "Play", "Play the run, or pause it (Space)"),
    ("what_if", "What if", "The strip of questions on the stage, or not (0)"),
    ("pen", "Pen", "Draw on the stage, or put the pen away (Ctrl+P)"),
    ("spotlight", "Spotlight", "Spotlight on the stage, or off (Ctrl+L)"),
    ("reveal", "Reveal answer", "Show the answer to the audience, or hide it (A)"),
    ("blank", "Blank", "Black out the screen, or bring it back (B)"),
    ("swap", "Swap screens", "Put these notes on the other screen (X)"),
    ("end", "End", "The end of the talk (F5)"),
)
_WIDE_ONLY = "play", "what_if", "pen", "spotlight", "end"
"""Buttons for which only a large window has room; their keys work in any."""
LARGE, PICTURED = QSize(1600, 880), QSize(1100, 620)
"""Least sizes of a window for both pictures and the list, and for the next step's picture."""


def elapsed_words(seconds: int) -> str:
    """Return a duration as ``7:42``, from an hour on as ``1:07:42``."""
    if seconds < 3600:
        return f"{seconds // 60}:{seconds % 60:02}"
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def now_caption(step: ResolvedStep | None) -> Caption:
    """Return the speaker's text for the current step: the notes, else the caption.

    The part of the caption that the stage leaves out is included, and always the answer.
    """
    if step is None:
        return Caption("No lesson is open", "PgDn and PgUp step through the run.")
    said = f"*On the screen:* {step.caption}" if step.caption else ""
    more = left_out(caption_of(step, False)) if step.notes else ""
    body = "\n\n".join(filter(None, (more, step.notes))) or said
    question, answer = step.question, step.answer
    if step.prediction is not None:
        question = step.prediction.ask
        answer = f"{written(step.prediction, step.prediction.truth)}."
        if step.waits:
            answer += " Type the hall's answer, then Enter; PgDn skips."
            body = step.notes or "*The hall answers first.*"
    return Caption(step.title, body, step.number, step.count, question, answer, revealed=True)


def next_caption(
    step: ResolvedStep | None, following: ResolvedStep | None, end: LessonEnd | None = None
) -> Caption:
    """Return the speaker's text for the next step, or for the end of the lesson."""
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

    It shows steps and emits the speaker's requests; it never changes the step by itself.

    parent: the window that is presented.
    """

    back_asked = Signal()
    next_asked = Signal()
    reveal_asked = Signal()
    blank_asked = Signal()
    swap_asked = Signal()
    asked = Signal(str)
    """Another button was pressed, by its name."""
    step_chosen = Signal(int)
    """The number of a step, from 0."""

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
        self._colour = ""
        """The colour of the time of the talk."""
        self._styled: tuple[Style, int, QSize] | None = None
        """Style, zoom and size of the texts on show."""
        self._spent = 0
        self._since = QElapsedTimer()
        self.clock = named(QLabel(), "clock", "Time")
        self.elapsed = named(QLabel(), "elapsed", "Time of the talk")
        self.note = named(QLabel(wordWrap=True), "note", "Remark")
        self.spoken = named(QLabel(), "spoken", "Time and plan")
        self.ends = named(QLabel(), "ends", "End of the talk")
        self.now, self.following = SpeakerPane("Notes"), SpeakerPane("")
        self.now_picture = SlidePicture("now_picture", "Now", NOW)
        self.next_picture = SlidePicture("next_picture", "Next", NEXT)
        self.ready, self.steps = Ready(), StepList()
        self.plan, self.if_asked = PlanBar(), Asked()
        self._lesson = ("", 0.0, 0, 0)
        """The lesson's title and planned seconds, the number of the step on show, the count."""
        self._before = 0
        """How long the talk had taken when the lesson was begun."""
        self._wide: bool | None = None
        # Only by the keyboard: after a click the keys still belong to the talk.
        by_tab = Qt.FocusPolicy.TabFocus
        self.buttons = {
            name: named(QPushButton(words), name, words, tip, by_tab)
            for name, words, tip in (*_CLOCK, *_ZOOM, *_TALK)
        }
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
        aside = with_parts(QVBoxLayout(), self.clock, self.ends)
        self._top = with_parts(
            QHBoxLayout(), self.elapsed, self.spoken, (self.plan, 1), *self._named(_CLOCK),
            *self._named(_ZOOM), aside,
        )  # fmt: skip
        side = with_parts(QVBoxLayout(), self.next_picture, self.ready, (self.following, 1))
        self._middle = with_parts(QHBoxLayout(), self.now_picture, (side, 40), self.steps)
        self._middle.setAlignment(self.now_picture, Qt.AlignmentFlag.AlignTop)
        self._low = with_parts(QHBoxLayout(), (self.now, 1), self.if_asked)
        self._bottom = with_parts(QHBoxLayout(), *self._named(_TALK), (self.note, 1))
        self._column = with_parts(
            QVBoxLayout(self), self._top, (self._middle, 10), (self._low, 6), self._bottom
        )

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
        for name in _WIDE_ONLY:
            press[name].clicked.connect(partial(self._ask, name))
        self.steps.chosen.connect(self._choose)
        self.plan.changed.connect(self._tick)
        press["smaller"].clicked.connect(lambda: self.zoom(-1))
        press["larger"].clicked.connect(lambda: self.zoom(1))

    def _ask(self, name: str, checked: bool = False) -> None:
        self.asked.emit(name)

    def _choose(self, number: int) -> None:
        self.show_list(False)
        self.step_chosen.emit(number)

    # --- contents -------------------------------------------------------------------------

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
        end: the end of the lesson, if the step is the last one.
        """
        over = end if ended else None
        place = f"{step.title}, {step.number + 1} of {step.count}" if step is not None else ""
        self.now_picture.show_title(over.lesson if over else place)
        self.next_picture.show_title(following.title if following is not None else "")
        self.now.show_caption(end_caption(over) if over else now_caption(step))
        self.following.show_caption(
            Caption(over.following, "") if over else next_caption(step, following, end)
        )
        waits = step is not None and step.waits
        asks = step is not None and bool(step.question) and not ended
        button = self.buttons["reveal"]
        button.setEnabled(asks or waits)
        button.setText("Hide answer" if asks and revealed else "Reveal answer")
        self.buttons["back"].setEnabled(step is None or step.number > 0 or ended)
        onward = bool(over.following) if over else end is not None or asks
        self.buttons["next"].setEnabled(step is None or step.number + 1 < step.count or onward)

    def show_lesson(self, title: str, steps: Sequence[str], minutes: float, then: str) -> None:
        """Show a lesson's steps, its planned minutes, and the lesson that follows."""
        name, _, number, _ = self._lesson
        if title != name:
            self._before = self.seconds if name else 0
        self._lesson = title, 60 * minutes, number, len(steps)
        self.steps.show_lesson(steps, 60 * minutes / max(len(steps), 1), then)

    def show_place(self, number: int) -> None:
        """Show which step of the lesson is current, from 0."""
        title, seconds, _, count = self._lesson
        self._lesson = title, seconds, number, count
        self.steps.show_place(number)
        self._tick()

    def show_now(self, picture: QPixmap) -> None:
        """Show the audience's picture."""
        self.now_picture.show_picture(picture)

    def show_next(self, picture: QPixmap | None, *, coming: bool = True) -> None:
        """Show the next step as the audience will see it; None: not yet, or nothing is coming."""
        self.next_picture.show_picture(picture or QPixmap())
        self.ready.show_ready(picture is not None if coming else None)

    def show_list(self, on: bool) -> None:
        """Show the list of steps over a small window, or hide it; a large one always has it."""
        if not self._wide:
            self.steps.setVisible(on)
            self._place_list()

    def _place_list(self) -> None:
        if not self._wide and self.steps.isVisible():
            wide = min(self.width(), self.steps.width())
            self.steps.setGeometry(self.width() - wide, 0, wide, self.height())
            self.steps.raise_()

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
        now, target, pace = QTime.currentTime(), self.plan.target, self.pace
        self.clock.setText(now.toString("HH:mm"))
        self.elapsed.setText(elapsed_words(self.seconds))
        self.plan.show_pace(pace)
        lines = [f"spoken of {clock_words(target)}" if target else "spoken"]
        if pace is not None:
            lines.append(f"plan here: {clock_words(pace.planned)}")
        self.spoken.setText("\n".join(lines))
        rest = target - self.seconds
        self.ends.setText(f"ends {now.addSecs(rest).toString('HH:mm')}" if target else "")
        theme = self._style.theme
        colour = getattr(theme, pace.colour if pace else "text")
        if colour != self._colour:
            self._colour = colour
            chosen = QPalette(self.elapsed.palette())
            chosen.setColor(QPalette.ColorRole.WindowText, QColor(colour))
            self.elapsed.setPalette(chosen)

    @property
    def pace(self) -> Pace | None:
        """The pace of the talk against its plan; None without a length that was set."""
        _, seconds, number, count = self._lesson
        if not self.plan.target:
            return None
        planned = self._before + seconds * (number + 1) / count if count else 0.0
        return Pace(self.seconds, planned, self.plan.target, max(count - number - 1, 0))

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

    @property
    def _u(self) -> float:
        """Pixels of a 1080th of the height of a window of 16 : 9."""
        return min(self.width() / 1920, self.height() / 1080)

    def _fit_parts(self) -> None:
        """Show the parts that have room: in a small window the notes come first."""
        size = self.size()
        wide = size.width() >= LARGE.width() and size.height() >= LARGE.height()
        pictured = size.width() >= PICTURED.width() and size.height() >= PICTURED.height()
        if wide != self._wide:
            self._wide = wide
            if wide:
                self._low.insertWidget(0, self.now, 1)
                self._middle.addWidget(self.steps)
            else:
                self._middle.insertWidget(0, self.now, 60)
                self._middle.removeWidget(self.steps)
            self.steps.setVisible(wide)
            self._column.setStretchFactor(self._low, 6 if wide else 0)
        self.now_picture.setVisible(wide)
        self.if_asked.setVisible(wide)
        beside: tuple[QWidget, ...] = (
            self.next_picture, self.ready, self.spoken, self.ends, self.plan,
        )  # fmt: skip
        for each in beside:
            each.setVisible(pictured)
        for name in _WIDE_ONLY:
            self.buttons[name].setVisible(wide)
        parts: tuple[SpeakerPart, ...] = (
            self.now_picture, self.next_picture, self.ready, self.steps, self.plan, self.if_asked,
        )  # fmt: skip
        for part in parts:
            part.take(self._style, self._u)

    def _restyle(self) -> None:
        """Set the sizes that belong to the window's size: full screen is read from further away."""
        room = min(self.width() / 1280, self.height() / 720)
        fits = min(self.width() / ROOMY.width(), self.height() / ROOMY.height())
        scale = min(self._style.scale * max(1.0, int(room * 4) / 4), fits)
        style = replace(self._style, scale=scale)
        self._place_list()
        if (style, self._zoom, self.size()) == self._styled:
            return  # the panes set their own sizes
        self._styled = style, self._zoom, self.size()
        self._fit_parts()
        if self._wide:  # all of its buttons are in one row
            style = replace(style, scale=min(scale, _BUTTON * self._u / 14))
        theme, edge = style.theme, round(style.px(10))
        self.setPalette(palette(theme))
        self._column.setContentsMargins(edge, edge, edge, edge)
        self._column.setSpacing(edge)
        for row in (self._top, self._middle, self._bottom):
            row.setSpacing(edge)
        u = self._u
        self.clock.setFont(replace(style, scale=u).code_font(36))
        self.elapsed.setFont(replace(style, scale=u).text_font(66, bold=True))
        for label in (self.spoken, self.ends):
            label.setFont(replace(style, scale=u).text_font(20))
        self.note.setFont(style.text_font(12))
        for button in self.buttons.values():
            button.setFont(style.text_font(14))
        words = ("Pause", "Go on")
        wide = max(self.buttons["pause"].fontMetrics().horizontalAdvance(w) for w in words)
        self.buttons["pause"].setFixedWidth(wide + round(style.px(30)))
        words = ("Reveal answer", "Hide answer")
        wide = max(self.buttons["reveal"].fontMetrics().horizontalAdvance(w) for w in words)
        self.buttons["reveal"].setFixedWidth(wide + round(style.px(30)))
        # Notes of 31 u at first; the next step's text is read with its picture.
        base = 31 * u / BODY / 1.6 if self._wide is not None else scale
        text = replace(style, scale=base * ZOOMS[self._zoom])
        self.now.set_style(style, text)
        beside = text.scale * (_BESIDE if not self.next_picture.isHidden() else 1.0)
        self.following.set_style(style, replace(text, scale=beside))
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
            f"#next {{ background: {theme.current}; color: {theme.window}; }}"
            f"#clock {{ color: {theme.muted}; }}"
            f"#note, #heading, #spoken, #ends {{ color: {theme.muted}; }}"
            f"#pane {{ background: {theme.panel}; border: 1px solid {theme.border};"
            f" border-radius: {px(6):.0f}px; }}"
            f"QScrollArea, #prose {{ background: {theme.panel}; border: none; }}"
            f"QScrollBar {{ background: {theme.panel}; width: {px(8):.0f}px; border: none; }}"
            f"QScrollBar::handle {{ background: {theme.faint}; border-radius: {px(4):.0f}px;"
            f" min-height: {px(24):.0f}px; }}"
            "QScrollBar::add-line, QScrollBar::sub-line { height: 0; }",
        )
