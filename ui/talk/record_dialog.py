"""The dialog that adds the current view to a lesson, as a step at its end."""

from __future__ import annotations

import os

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from simulator.base.errors import InputError
from simulator.lesson.places import Pointer
from simulator.lesson.reader import parse_lesson
from simulator.lesson.record import (
    TEXTS,
    NewStep,
    filled,
    is_shipped,
    lesson_text,
    record_step,
    with_step,
)
from simulator.lesson.steps import Step
from simulator.program.playback import Cursor
from simulator.program.tile_program import TileProgram
from simulator.run.cell_values import cell_name
from ui.look.layouts import layout_named
from ui.look.lesson_text import FORMATS
from ui.look.names import op_label
from ui.look.theme import frame_palette
from ui.look.units import count_text
from ui.safety.overrides import guarded
from ui.session.tasks import Report
from ui.session.view import View
from ui.talk.caption_text import typeset_text
from ui.talk.record_fields import (
    Preview,
    Target,
    TextField,
    first_target,
    sheet,
    show_words,
)
from ui.talk.window import LessonWindow
from ui.widgets.drops import leave_drops
from ui.widgets.parts import with_parts

ADD, PREVIEW = "add step", "caption preview"
"""Kinds of the tasks."""
_REST, _PATIENCE = 200, 50
"""Milliseconds without typing after which mistakes are searched for and the preview is made."""
_SIZE = (900.0, 600.0)
_CAPTION_HINT = "At most 45 words. Formulas stand between $ signs, numbers are {{ computed }}."
_CAPTION_TIP = (
    "What the audience reads. {{ requested() | bytes }} is worked out at this step: "
    "docs/writing-lessons.md lists what can be asked for."
)


def open_record_dialog(window: LessonWindow) -> RecordDialog | None:
    """Open the dialog for the current view; None if there is no view.

    If the run is playing, it is stopped. The window says where an added step is.
    """
    if window.session.view is None:
        return None
    window.session.play(False)
    dialog = RecordDialog(window)
    dialog.recorded.connect(window.say)
    dialog.open()
    return dialog


@guarded
class RecordDialog(QDialog):
    """Asks for the texts of a step and for the lesson to which it is added.

    The step is the view that was shown when the dialog was made. A mistake is shown in a line above
    the buttons, and the dialog stays open.
    """

    recorded = Signal(str)
    """In words, the place of the added step."""

    def __init__(self, window: LessonWindow) -> None:
        super().__init__(window)
        view = window.session.view
        assert view is not None
        self.setObjectName("record_dialog")
        self.setWindowTitle("Add this view as a step")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._window, self._session, self.view = window, window.session, view
        self._style = window.style_now
        self._layout = window.desk.current  # a lesson's layout, if a lesson is shown
        self._panel = front_panel(window, self._layout)
        self._number = 0
        self._before: Step | None = None
        self._tried = self._warned = self._running = False
        self._shown: tuple[str, ...] | None = None
        self.setStyleSheet(sheet(self._style))
        self._make_fields(view)
        self._assemble()
        leave_drops(self)
        self._connect()
        self.target.take(window.lessons.player.path or window.settings.recorded or first_target())
        self.title_edit.setFocus()

    # --- fields ---------------------------------------------------------------------------

    def _make_fields(self, view: View) -> None:
        style = self._style
        self.title_edit = QLineEdit()
        self.title_edit.setAccessibleName("Title")
        self.title_edit.setToolTip("One line over the caption, and in the list of steps.")
        self.caption = TextField("&Caption", _CAPTION_TIP, 4, style, _CAPTION_HINT)
        asked = "Stands beside the caption. With an answer only."
        self.question = TextField("&Question", asked, 2, style, "Leave blank for none.")
        self.answer = TextField("&Answer", "Hidden until it is revealed.", 2, style)
        self.notes = TextField("&Notes", "For the speaker alone.", 3, style)
        self.preview = Preview(style)
        self.target = Target(style)
        self.play_box = QCheckBox()
        self.play_box.setPalette(frame_palette(style.theme))
        self.play_box.setToolTip("The lesson then plays from there to here instead of jumping.")
        self.point_boxes: dict[Pointer, QCheckBox] = {}
        program, visit = view.snapshot.program, view.snapshot.visit
        whole = program.launches[visit.launch].whole_rows
        if view.cell is not None:
            self._point_box(f"cell {cell_name(view.cell)}", Pointer(cell=view.cell), on=True)
        if not whole:
            self._point_box(f"tile ({visit.i}, {visit.j})", Pointer(tile=(visit.i, visit.j)))
        self._point_box(f"row {view.report.row}", Pointer(row=view.report.row))
        self.words = QLabel(wordWrap=True)
        self.words.setTextFormat(Qt.TextFormat.PlainText)
        self.words.setAccessibleName("What it will be")

    def _point_box(self, words: str, pointer: Pointer, *, on: bool = False) -> None:
        box = QCheckBox(words)
        box.setPalette(frame_palette(self._style.theme))
        box.setAccessibleName(f"Point at {words}")
        box.setToolTip("It is marked on the board while the step is shown.")
        box.setChecked(on or pointer in self.view.points)
        self.point_boxes[pointer] = box

    def _assemble(self) -> None:
        gap = round(self._style.px(8))
        self._form = QWidget()
        grid = QGridLayout(self._form)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(gap)
        title = QLabel("&Title")
        title.setBuddy(self.title_edit)
        left = with_parts(
            QVBoxLayout(), title, self.title_edit, (self.caption, 2), QLabel("Preview"),
            (self.preview, 3), gap=gap // 2,
        )  # fmt: skip
        right = with_parts(
            QVBoxLayout(), (self.question, 2), (self.answer, 2), (self.notes, 3), gap=gap // 2
        )
        for n, column in enumerate((left, right)):
            grid.addLayout(column, 0, n)
            grid.setColumnStretch(n, 3 - n)
        grid.setRowStretch(0, 1)
        grid.addLayout(self._rows(), 1, 0, 1, 2)
        scroll = QScrollArea()  # large text in a low window
        scroll.setWidget(self._form)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setStyleSheet("QScrollArea { background: transparent }")
        self._form.setObjectName("record_form")
        self._form.setStyleSheet("#record_form { background: transparent }")
        self.buttons = QDialogButtonBox()
        self.add_button = self.buttons.addButton("Add step", QDialogButtonBox.ButtonRole.ActionRole)
        self.add_button.setToolTip("Ctrl+Enter")
        self.cancel_button = self.buttons.addButton(
            "Cancel", QDialogButtonBox.ButtonRole.RejectRole
        )
        for button in (self.add_button, self.cancel_button):
            button.setAutoDefault(False)  # Enter in the title must not close the dialog
        with_parts(QVBoxLayout(self), (scroll, 1), self.words, self.buttons, gap=gap)
        self.words.setMinimumHeight(2 * self.words.fontMetrics().lineSpacing())
        self._fit(scroll)

    def _rows(self) -> QFormLayout:
        """Return the rows for the step's pointers and playing, and for its lesson."""
        form = QFormLayout()
        points = QWidget()
        boxes = self.point_boxes.values()
        with_parts(QHBoxLayout(points), *boxes, 1, margin=0, gap=round(self._style.px(16)))
        form.addRow("&Points at", points)
        form.addRow("Pla&ys", self.play_box)
        form.addRow("&Lesson file", self.target)
        for field, buddy in ((points, next(iter(boxes))), (self.target, self.target.edit)):
            label = form.labelForField(field)
            assert isinstance(label, QLabel)
            label.setBuddy(buddy)
        return form

    def _fit(self, scroll: QScrollArea) -> None:
        """Choose a size that fits into the window."""
        room = self._window.size() * 0.94
        most = QSize(*(round(self._style.px(side)) for side in _SIZE))
        scroll.setMinimumWidth(min(self._form.minimumSizeHint().width(), round(0.9 * room.width())))
        self.resize(most.boundedTo(room))

    def _connect(self) -> None:
        self._soon = QTimer(self, singleShot=True, interval=_PATIENCE)
        self._soon.timeout.connect(self.make_preview)
        self._rested = QTimer(self, singleShot=True, interval=_REST)
        self._rested.timeout.connect(self._check)
        self.title_edit.textChanged.connect(self._typed)
        for field in (self.caption, self.question, self.answer, self.notes):
            field.edit.textChanged.connect(self._typed)
        for box in (*self.point_boxes.values(), self.play_box):
            box.toggled.connect(self._check)
        self.target.changed.connect(self._show_target)
        self.add_button.clicked.connect(self.add)
        self.cancel_button.clicked.connect(lambda: self.done(QDialog.DialogCode.Rejected))
        for key in ("Ctrl+Return", "Ctrl+Enter"):
            QShortcut(QKeySequence(key), self, self.add)
        self._session.tasks.failed.connect(self._show_failure)

    # --- the step -------------------------------------------------------------------------

    def step(self) -> NewStep:
        """Return the step that the fields describe."""
        snapshot = self.view.snapshot
        plays = self.play_box.isEnabled() and self.play_box.isChecked()
        return NewStep(
            title=self.title_edit.text().strip(),
            scenario=snapshot.program.workload.scenario,
            cursor=snapshot.cursor,
            start=self._before.cursor if plays and self._before else None,
            row=self.view.report.row,
            layout=self._layout,
            panel=self._panel,
            points=tuple(p for p, box in self.point_boxes.items() if box.isChecked()),
            caption=self.caption.text,
            question=self.question.text,
            answer=self.answer.text,
            notes=self.notes.text,
        )

    def _show_target(self) -> None:
        """Read the lesson to which the step is added: the step can play from its last step."""
        self._number, self._before = 0, None
        try:
            path = self.target.path()
            lesson = parse_lesson(lesson_text(path, self.target.source()), str(path), path.parent)
        except InputError:
            pass  # `_check` reports it
        else:
            self._number = len(lesson.steps)
            self._before = lesson.steps[-1] if lesson.steps else None
        why = self._why_still()
        self.play_box.setEnabled(not why)
        if self._before is not None and not why:
            place = place_words(self.view.snapshot.program, self._before.cursor)
            self.play_box.setText(f"from where the step before ends ({place}) to here")
        else:
            self.play_box.setText(why)
        self.play_box.setAccessibleName(f"Plays {self.play_box.text()}")
        self._shown = None
        self._check()

    def _why_still(self) -> str:
        """Return why the step cannot play; empty if it can."""
        snapshot, before = self.view.snapshot, self._before
        if before is None:
            return "no: there is no step before it"
        if before.scenario != snapshot.program.workload.scenario:
            return "no: the step before is of another scenario"
        return "" if before.cursor < snapshot.cursor else "no: the step before ends here or later"

    def _typed(self) -> None:
        """Search for mistakes when typing pauses, because the whole lesson is read for it."""
        self._warned = False
        show_words(self.caption.note, self.caption.text, self._style)
        self._rested.start()

    def _check(self) -> None:
        """Say which step will be added, or which mistake it has."""
        self._warned = False
        self._rested.stop()
        step = self.step()
        if tuple(getattr(step, name) for name in TEXTS) != self._shown:
            self._soon.start()
        error = self._wrong(step)
        if error is None:
            self._say(self._planned())
        elif not step.title and not self._tried and _key(error) == "title":
            self._say(f"{self._planned()} It needs a title.")
        else:
            self._say(self._told(error), bad=True)

    def _wrong(self, step: NewStep) -> InputError | None:
        """Return the error that keeps the step from being added, before any number is computed."""
        try:
            path = self.target.path()
            if not (is_shipped(path) and os.path.isfile(path)):  # otherwise a copy is offered
                with_step(lesson_text(path, self.target.source()), step, str(path), path.parent)
        except InputError as error:
            return error
        return None

    def _planned(self) -> str:
        path, source = self.target.path(), self.target.source()
        if is_shipped(path):
            return f"{path.name} ships and stays as it is: the step goes into a copy of yours."
        place = f"This becomes step {self._number + 1} of {path.name}"
        if source is not None:
            return f"{place}, after those of the shipped lesson."
        return f"{place}." if os.path.exists(path) else f"{place}, which is begun."

    def _told(self, error: InputError) -> str:
        """Return an error in the words of the dialog, which has fields and not keys."""
        mistake = error.mistakes[0]
        try:
            path = self.target.path()
        except InputError:
            return str(error)
        if error.source in (str(path), "") and mistake.key:
            if mistake.key in TEXTS:
                return f"{mistake.key.capitalize()}: expected {mistake.expected}"
            return str(InputError("", [mistake])).removeprefix(": ")
        return str(error).replace(str(path), path.name)

    def _say(self, text: str, *, bad: bool = False) -> None:
        theme = self._style.theme
        self.words.setStyleSheet(f"color: {theme.bad if bad else theme.text}")
        self.words.setText(text)

    # --- preview --------------------------------------------------------------------------

    def make_preview(self) -> None:
        """Fill the numbers in and typeset the formulas, beside the window."""
        self._soon.stop()
        step, number = self.step(), self._number
        self._shown = tuple(getattr(step, name) for name in TEXTS)

        def job(report: Report) -> NewStep:
            out = filled(step, FORMATS, self._session.run_of)
            typeset_text(out.title, out.caption, out.question, out.answer)
            return out

        def refused(error: InputError) -> None:
            if self._wrong(step) is None:
                self._say(self._told(error), bad=True)

        self._session.tasks.start(
            PREVIEW, "computing the caption's numbers", job,
            lambda found: self.preview.show_step(found, number), refused=refused,
        )  # fmt: skip

    # --- adding the step ------------------------------------------------------------------

    def add(self) -> None:
        """Add the step to its lesson and close; after a mistake, the dialog stays open."""
        if self._running:
            return
        self._tried = True
        self._rested.stop()  # mistakes are searched for here
        step = self.step()
        error = self._wrong(step)
        if error is not None:
            self._say(self._told(error), bad=True)
            self._lead_to(error)
            return
        path, source = self.target.path(), self.target.source()
        if is_shipped(path):
            self.target.take(path)
            self.target.edit.setFocus()
            return

        def job(report: Report) -> int:
            filled(step, FORMATS, self._session.run_of)  # refuses numbers that cannot be computed
            report(0.5)
            return record_step(path, step, source)

        def finish(found: int) -> None:
            self._rest()
            self._window.settings.recorded = path
            self.recorded.emit(f"“{step.title}” is step {found} of {path}.")
            self.done(QDialog.DialogCode.Accepted)

        def refused(error: InputError) -> None:
            self._rest()
            self._say(self._told(error), bad=True)

        self._running = True
        self._form.setEnabled(False)
        self.add_button.setEnabled(False)
        self._say("Adding it.")
        self._session.tasks.start(ADD, "adding the step", job, finish, refused=refused)

    def _lead_to(self, error: InputError) -> None:
        """Move the focus to the field with the mistake."""
        fields: dict[str, QWidget] = {
            "title": self.title_edit,
            "caption": self.caption.edit,
            "question": self.question.edit,
            "answer": self.answer.edit,
            "": self.target.edit,
        }
        field = fields.get(_key(error))
        if field is not None:
            field.setFocus()

    def _show_failure(self, error: object) -> None:
        if self._running:
            self._rest()
            self._say(f"It failed ({type(error).__name__}): nothing was added.", bad=True)

    def _rest(self) -> None:
        self._running = False
        self._form.setEnabled(True)
        self.add_button.setEnabled(True)

    # --- leaving --------------------------------------------------------------------------

    def reject(self) -> None:
        """On Escape: texts are thrown away only the second time."""
        typed = any(getattr(self.step(), name) for name in TEXTS)
        if typed and not self._warned and not self._running:
            self._rested.stop()
            self._say("Escape once more throws away what was typed.", bad=True)
            self._warned = True
        else:
            super().reject()

    def done(self, code: int) -> None:
        """Close; there is nobody to receive the result of a task that is still running."""
        self._soon.stop()
        self._rested.stop()
        for kind in (ADD, PREVIEW):
            self._session.tasks.cancel(kind)
        super().done(code)


def _key(error: InputError) -> str:
    return error.mistakes[0].key


def place_words(program: TileProgram, cursor: Cursor) -> str:
    """Return a place of a run in words, as visit and op."""
    op = program.ops(cursor.visit)[cursor.op]
    return f"visit {count_text(cursor.visit + 1)}, {op_label(op, program.workload)}"


def front_panel(window: LessonWindow, layout: str) -> str:
    """Return the panel that is in front of others in its place; "" if there are no others."""
    spec = layout_named(layout)
    seen = [name for name in spec.stack if not window.docks[name].visibleRegion().isEmpty()]
    if len(seen) == 1 < len(spec.stack):
        return seen[0]  # in a low window all share one place
    beside = {name for place in spec.right if len(place) > 1 for name in place}
    return next((name for name in seen if name in beside), "")
