"""The box beside a lesson that asks its exercises and says why an answer is wrong."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QEvent, QRect, Qt, QTimer
from PySide6.QtGui import QTextOption
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QRadioButton,
    QScrollArea,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from simulator.base.errors import InputError
from simulator.exercises.check import ExerciseVerdict, check
from simulator.exercises.made import Exercise, exercises_of
from simulator.lesson.course import list_lessons
from ui.look.lesson_text import FORMATS
from ui.look.theme import Style
from ui.safety.overrides import guarded
from ui.session.tasks import Report
from ui.session.view import View
from ui.talk.record_fields import sheet
from ui.talk.window import LessonWindow
from ui.widgets.choice_box import ChoiceBox
from ui.widgets.drops import leave_drops
from ui.widgets.parts import with_parts
from ui.widgets.sheet import set_sheet

T = TypeVar("T")
MAKE, CHECK = "make exercises", "check an answer"
"""Kinds of the tasks."""
_WIDE, _HIGH, _TOP = 460.0, 400.0, 104.0
_HINTS = {
    "number": "a number",
    "cell": "row, column; or click the cell on the board",
    "tile": "rows x columns",
}


def _own_sheet(style: Style) -> str:
    """Return the look of the box's frame and of its choices."""
    t, px = style.theme, style.px
    return (
        f"QDialog {{ border: 1px solid {t.current}; }}"
        f"QRadioButton {{ color: {t.text}; padding: {round(px(2))}px; }}"
        f"QRadioButton:focus {{ background: {t.field}; }}"
        f"QRadioButton::indicator {{ width: {round(px(12))}px; height: {round(px(12))}px;"
        f" border: 1px solid {t.muted}; border-radius: {round(px(7))}px;"
        f" background: {t.field}; }}"
        f"QRadioButton::indicator:checked {{ background: {t.current}; border-color: {t.text}; }}"
    )


def open_exercises(
    window: LessonWindow, path: Path | None = None, name: str = ""
) -> ExercisesDialog:
    """Open the box, or bring it to the front.

    path, name: the lesson and the exercise to ask; by default the box stays at its exercise, at
    first at the lesson on show.
    """
    dialog = window.findChild(ExercisesDialog)
    if dialog is None:
        dialog = ExercisesDialog(window)
    if path is not None:
        dialog.ask_about(path, name)
    dialog.show()
    dialog.raise_()
    dialog.activateWindow()
    return dialog


@guarded
class ExercisesDialog(QDialog):
    """Asks one exercise after the other; the window behind it stays in use."""

    def __init__(self, window: LessonWindow) -> None:
        super().__init__(window)
        self.setObjectName("exercises")
        self.setWindowTitle("Exercises")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._window, self._session = window, window.session
        self._restyled = QTimer(self, singleShot=True, interval=0)
        self._restyled.timeout.connect(self._take_style)
        self.exercises: tuple[Exercise, ...] = ()
        self.number = 0
        self._given: dict[tuple[str, int, str], str] = {}
        """The answers that were typed, by lesson, seed and exercise."""
        self._asked = "", 0, ""
        """Lesson, seed and exercise on show."""
        self._wanted = ""
        """The exercise to begin with once its numbers are drawn."""
        self._right: set[tuple[str, int, str]] = set()
        self._make()
        self._assemble()
        leave_drops(self)
        self._paths = [lesson.path for lesson in list_lessons()]
        for lesson in list_lessons():
            self.lessons.addItem(lesson.title, lesson.path.stem)
        path = window.lessons.player.path
        if path in self._paths:
            self.lessons.setCurrentIndex(self._paths.index(path))
        self._connect()
        self._take_style()
        self._place()
        for each in (self.line, self.code):
            each.hide()
        for button in (self.back, self.next, self.check, self.show_answer):
            button.setEnabled(False)
        self.ask.setText("Drawing the numbers.")
        self._draw()

    # --- widgets --------------------------------------------------------------------------

    def _make(self) -> None:
        self.lessons = ChoiceBox()
        self.lessons.setAccessibleName("Lesson")
        self.lessons.setToolTip("The lesson whose exercises are asked.")
        self.seed = QSpinBox()
        self.seed.setRange(0, 2**31 - 1)
        self.seed.setAccessibleName("Seed")
        self.seed.setToolTip("Draws the numbers: another seed asks with others.")
        self.place = QLabel()
        self.back, self.next = QPushButton("Back"), QPushButton("Next")
        self.ask = QLabel(wordWrap=True)
        self.ask.setTextFormat(Qt.TextFormat.PlainText)
        self.ask.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.ask.setAccessibleName("Question")
        self.options: list[QRadioButton] = []
        self.option_column = QVBoxLayout()
        self.line = QLineEdit()
        self.line.setAccessibleName("Answer")
        self.code = QPlainTextEdit()
        self.code.setAccessibleName("Function in NumPy")
        self.code.setWordWrapMode(QTextOption.WrapMode.NoWrap)
        self.code.setTabChangesFocus(True)
        self.check = QPushButton("Check")
        self.check.setToolTip("Compare with what the program has computed (Enter).")
        self.check.setDefault(True)
        self.show_answer = QPushButton("Show answer")
        for button in (self.back, self.next, self.show_answer):
            button.setAutoDefault(False)
        self.says = QLabel(wordWrap=True)
        self.says.setTextFormat(Qt.TextFormat.PlainText)
        self.says.setAccessibleName("What is said of the answer")

    def _assemble(self) -> None:
        label = QLabel("Seed")
        label.setBuddy(self.seed)
        head = with_parts(QHBoxLayout(), (self.lessons, 1), label, self.seed)
        steps = with_parts(QHBoxLayout(), (self.place, 1), self.back, self.next)
        inner = QWidget()
        with_parts(
            QVBoxLayout(inner), self.ask, self.option_column, self.line, (self.code, 1), self.says,
            1, margin=0,
        )  # fmt: skip
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidget(inner)
        buttons = with_parts(QHBoxLayout(), self.check, self.show_answer, 1)
        with_parts(QVBoxLayout(self), head, steps, (area, 1), buttons)

    def _connect(self) -> None:
        self.lessons.currentIndexChanged.connect(self._draw)
        self.seed.valueChanged.connect(self._draw)
        self.back.clicked.connect(lambda: self.go(self.number - 1))
        self.next.clicked.connect(lambda: self.go(self.number + 1))
        self.check.clicked.connect(self.judge)
        self.show_answer.clicked.connect(self._tell)
        self._session.tasks.failed.connect(lambda _: self.check.setEnabled(True))
        self._session.view_changed.connect(self._take_cell)
        self._window.lessons.player.step_changed.connect(self._follow)

    def _take_style(self) -> None:
        style = self._window.style_now
        set_sheet(self, f"{sheet(style)}{_own_sheet(style)}")
        self.lessons.set_style(style)
        self.code.setFont(style.code_font(13))
        self.code.setMinimumHeight(round(style.px(96)))

    def _place(self) -> None:
        """Stand at the right end of the window, over the panels and above the caption."""
        style, around = self._window.style_now, self._window.geometry()
        wide = min(round(style.px(_WIDE)), around.width())
        high = min(round(style.px(_HIGH)), round(0.8 * around.height()))
        corner = around.topRight()
        top = corner.y() + round(style.px(_TOP))
        self.setGeometry(QRect(corner.x() - wide - 16, top, wide, high))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.ApplicationPaletteChange):
            self._restyled.start()  # once the window has its style, too

    # --- exercises ------------------------------------------------------------------------

    def ask_about(self, path: Path, name: str = "") -> None:
        """Ask about a lesson, perhaps beginning with one of its exercises."""
        if path not in self._paths:
            return
        self._wanted = name
        if self.lessons.currentIndex() == self._paths.index(path):
            self._draw()
        else:
            self.lessons.setCurrentIndex(self._paths.index(path))

    def _follow(self, _: object) -> None:
        """Ask about the lesson that is on show now."""
        path = self._window.lessons.player.path
        if path in self._paths:
            self.lessons.setCurrentIndex(self._paths.index(path))

    def _draw(self) -> None:
        """Draw the numbers of the lesson's exercises."""
        lesson, seed = str(self.lessons.currentData()), self.seed.value()

        def job(report: Report) -> tuple[Exercise, ...]:
            return exercises_of(lesson, seed, FORMATS)

        def done(found: tuple[Exercise, ...]) -> None:
            names = [each.name for each in found]
            same = [each.name for each in self.exercises] == names
            self._keep()
            self.exercises = found
            wanted, self._wanted = self._wanted, ""
            self.go(names.index(wanted) if wanted in names else self.number if same else 0)

        self._session.tasks.start(
            MAKE, "drawing exercises", job, self._alive(done), refused=self._alive(self._refuse)
        )

    def _alive(self, then: Callable[[T], object]) -> Callable[[T], object]:
        """Return a call of `then` that does nothing once the box is gone."""

        def call(found: T) -> None:
            with suppress(RuntimeError):  # Qt has deleted the box
                then(found)

        return call

    @property
    def exercise(self) -> Exercise | None:
        """The exercise that is asked; None until its numbers are there."""
        return self.exercises[self.number] if self.exercises else None

    @property
    def answer(self) -> str:
        """The answer that was typed or chosen, "" for none."""
        if self.options:
            return next((o.text() for o in self.options if o.isChecked()), "")
        e = self.exercise
        if e is not None and e.op is not None:
            return self.code.toPlainText()
        return self.line.text().strip()

    def _key(self, exercise: Exercise) -> tuple[str, int, str]:
        return exercise.lesson, exercise.seed, exercise.name

    def _keep(self) -> None:
        """Remember the answer that was typed."""
        e = self.exercise
        if e is not None and self._asked == self._key(e):
            self._given[self._asked] = self.answer

    def go(self, number: int) -> None:
        """Ask an exercise by its place, from 0."""
        self._keep()
        self.number = max(0, min(number, len(self.exercises) - 1))
        e = self.exercise
        if e is None:
            self.ask.setText("This lesson has no exercises.")
            return
        opens, self._asked = not self._asked[0], self._key(e)
        given = self._given.get(self._asked, "")
        self._count()
        self.check.setEnabled(True)
        self.show_answer.setEnabled(True)
        self.back.setEnabled(self.number > 0)
        self.next.setEnabled(self.number + 1 < len(self.exercises))
        words = e.ask
        if e.tiles:
            rows, cols = (sorted({tile[n] for tile in e.tiles}) for n in (0, 1))
            words += f"\nRows {', '.join(map(str, rows))}; columns {', '.join(map(str, cols))}."
        if e.op is not None:
            words += f"\n{e.op.says}"
        self.ask.setText(words.replace(" = ", "\u00a0=\u00a0"))
        self._offer(e, given)
        self.line.setVisible(not e.options and e.op is None)
        self.line.setText(given)
        self.line.setPlaceholderText(_HINTS.get(e.kind, ""))
        self.code.setVisible(e.op is not None)
        if e.op is not None:
            self.code.setPlainText(given or f"{e.op.head}\n    return ")
        self._say("")
        if opens or self.focusWidget() not in (self.lessons, self.seed):
            field: QWidget = self.line if e.op is None else self.code
            (self.options[0] if self.options else field).setFocus()

    def _count(self) -> None:
        """Say which exercise is asked, and how many have been answered."""
        right = sum(self._key(each) in self._right for each in self.exercises)
        self.place.setText(f"{self.number + 1} of {len(self.exercises)}   {right} right")

    def _offer(self, e: Exercise, given: str) -> None:
        for option in self.options:
            option.setParent(None)  # else it would still be a choice until Qt deletes it
            option.deleteLater()
        self.options = []
        for each in e.options:
            option = QRadioButton(each.text)
            self.options.append(option)
            self.option_column.addWidget(option)
            option.setChecked(each.text == given)

    def _take_cell(self, view: View | None) -> None:
        """Take the cell that was clicked on the board as the answer."""
        e = self.exercise
        if e is None or e.kind != "cell" or view is None or view.cell is None:
            return
        if view.cell.tensor == "S":
            self.line.setText(f"{view.cell.row}, {view.cell.col}")

    # --- answers --------------------------------------------------------------------------

    def judge(self) -> None:
        """Check the answer beside the window: a function in NumPy takes a moment."""
        e, given = self.exercise, self.answer
        if e is None:
            return
        if not given:
            self._say("Nothing is typed or chosen yet.")
            return
        self.check.setEnabled(False)
        self._say("Checking it.")

        def done(found: ExerciseVerdict) -> None:
            self.check.setEnabled(True)
            if found.right:
                self._right.add(self._key(e))
            if self.exercise is not e:
                return
            self._count()
            self._say(f"{'Right.' if found.right else 'Not yet.'} {found.says}".strip())

        self._session.tasks.start(
            CHECK, "checking an answer", lambda report: check(e, given), self._alive(done),
            refused=self._alive(self._refuse),
        )  # fmt: skip

    def _refuse(self, error: InputError) -> None:
        self.check.setEnabled(True)
        mistake = error.mistakes[0]
        self._say(f"Expected {mistake.expected}.")

    def _tell(self) -> None:
        """Show the answer of the program."""
        if self.exercise is not None:
            self._say(f"The answer: {self.exercise.answer_text}")

    def _say(self, words: str) -> None:
        self.says.setText(words)
        self.says.setAccessibleDescription(words)
