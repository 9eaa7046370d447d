"""The dialog that exports: options and target, then progress and Cancel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QKeyEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QDoubleSpinBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from simulator.base.errors import InputError
from simulator.program.playback import Granularity
from simulator.run.trace import Trace
from simulator.study.race import FILM_SECONDS
from ui.export.formats import BY_ENDING, FORMATS, Format
from ui.export.options import OPTIONS, RACE, THEME_NAMES, ExportOptions, picture_size, usual_theme
from ui.export.race_frames import race_times
from ui.export.scenes import SCENES
from ui.export.stepping import steps_words, stops_of
from ui.export.storyboard import handout_words, make_storyboard
from ui.export.timeline import OPS_BY_DEFAULT, make_timeline, rescales_of
from ui.export.window_job import KIND, Made, still_options, submit, words_of
from ui.look.layouts import LAYOUTS
from ui.look.theme import Style
from ui.look.units import count_text, plural
from ui.safety.overrides import guarded
from ui.session.session import Session
from ui.talk.lesson_player import LessonPlayer
from ui.widgets.drops import leave_drops
from ui.widgets.parts import with_parts
from ui.widgets.replace import ask_replace

SIZES = ("1280x720", "1920x1080", "2560x1440", "3840x2160")
_VIEW, _RUN, _PART = "This view", "The whole run", "Visits"
_USUAL, _PACE, _LENGTH = "as played, a minute at most", "seconds a step", "seconds in all"
_READ = "as long as it takes to read"  # the usual pace of a lesson
_RACED = f"{FILM_SECONDS:.0f} seconds in all"  # the usual pace of a race
_LESSON = "lesson"  # the scene's choice for a lesson
_COUNTED = "Counted from 1, as in the window. (The command's --visits counts from 0.)"
_QUICK = 20 * OPS_BY_DEFAULT  # visits whose ops are counted while the user types


@guarded
class ExportDialog(QDialog):
    """Asks for the options of an export, and makes the export beside the window."""

    def __init__(
        self,
        session: Session,
        style: Style,
        parent: QWidget | None = None,
        player: LessonPlayer | None = None,
    ) -> None:
        super().__init__(parent)
        assert session.trace is not None
        self.setObjectName("export_dialog")
        self.setWindowTitle("Export")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._session, self._style = session, style
        self._player = player
        self._lesson = player.lesson if player is not None else None
        self._visits = len(session.trace)
        self.running: ExportOptions | None = None  # the export at work
        self._frames = 0
        self._agreed = ""  # the target that may be replaced
        self._proposed = ""  # the target that nobody has chosen
        self._themed = False  # whether the theme has been chosen
        self._made = ""  # the target that was written last
        self._make_fields()
        self._assemble()
        leave_drops(self)
        self._connect()
        self.format_box.setCurrentIndex(0)
        self._show_format()

    # --- fields ---------------------------------------------------------------------------

    def _make_fields(self) -> None:
        self.format_box = _choice("Format", [(spec.title, spec.ending) for spec in FORMATS])
        scenes = [(spec.title, spec.name) for spec in SCENES.values()]
        scenes += [(f"Layout “{spec.title}”", spec.name) for spec in LAYOUTS]
        self.scene_box = _choice("Scene", scenes)
        if self._lesson is not None:
            self.scene_box.addItem("The whole lesson", _LESSON)
            self.scene_box.setCurrentIndex(self.scene_box.count() - 1)
        self.range_box = _choice("Range", [(text, text) for text in (_RUN, _PART, _VIEW)])
        # Counted as in the transport bar; `_range` converts it for the options.
        self.start_box = _number("First visit", 1, self._visits, 1)
        self.stop_box = _number("Last visit", 1, self._visits, self._visits)
        self.size_box = _choice("Size", [(size.replace("x", " × "), size) for size in SIZES])
        self.size_box.setEditable(True)
        self.size_box.setCurrentIndex(1)
        self.fps_box = _number("Frames a second", 1, 120, 30)
        self.step_box = _choice(
            "Step",
            [("ops while they are few", None), ("op", Granularity.OP), ("tile", Granularity.TILE)],
        )
        self.pace_box = _choice("Pace", [(text, text) for text in (_USUAL, _PACE, _LENGTH)])
        self.seconds_box = QDoubleSpinBox(minimum=0.01, maximum=3600.0, value=0.5)
        self.seconds_box.setAccessibleName("Seconds")
        self.theme_box = _choice("Theme", [(name.title(), name) for name in THEME_NAMES])
        self.theme_box.setCurrentIndex(THEME_NAMES.index(self._style.theme.name))
        self.answers_box = _choice(
            "Answers",
            [
                ("answers on the last page", "end"), ("answers beside questions", "beside"),
                ("no answers", "none"),
            ],
        )  # fmt: skip
        self.per_page_box = _choice("Steps a page", [("1 step a page", 1), ("2 steps a page", 2)])
        self.notes_box = QCheckBox(OPTIONS["notes"].label)
        self.clear_box = QCheckBox(OPTIONS["transparent"].label)
        self.sound_box = QCheckBox(OPTIONS["sound"].label)
        self.target_edit = QLineEdit()
        self.target_edit.setAccessibleName("File")
        self.browse_button = QPushButton("Browse…")
        self.words = QLabel(wordWrap=True)
        self.words.setAccessibleName("What it will be")
        self.words.setTextFormat(Qt.TextFormat.PlainText)
        self.bar = QProgressBar()
        self.bar.setAccessibleName("Progress")
        self.format_box.setToolTip("The ending of the file says the same.")
        for box in (self.start_box, self.stop_box):
            box.setToolTip(_COUNTED)
        for name, widget in self._fields.items():
            widget.setToolTip(OPTIONS[name].tip)

    @property
    def _fields(self) -> dict[str, QWidget]:
        """The field of each option that has one, in the order of the dialog's rows."""
        return {
            "scene": self.scene_box, "visits": self.range_box, "size": self.size_box,
            "fps": self.fps_box, "by": self.step_box, "pace": self.pace_box,
            "theme": self.theme_box, "answers": self.answers_box, "notes": self.notes_box,
            "per_page": self.per_page_box, "transparent": self.clear_box, "sound": self.sound_box,
        }  # fmt: skip

    def _assemble(self) -> None:
        form = QFormLayout()
        wider = {
            "visits": _row(self.range_box, self.start_box, QLabel("to"), self.stop_box),
            "pace": _row(self.pace_box, self.seconds_box),
            "answers": _row(self.answers_box, self.per_page_box, self.notes_box),
        }
        rows: list[tuple[str, QWidget, QWidget]] = [("&Format", self.format_box, self.format_box)]
        for name, widget in self._fields.items():
            if OPTIONS[name].label and not isinstance(widget, QCheckBox):
                rows.append((OPTIONS[name].label, wider.get(name, widget), widget))
        rows.append(("", _row(self.clear_box, self.sound_box), self.clear_box))
        rows.append(("F&ile", _row(self.target_edit, self.browse_button), self.target_edit))
        for text, row, buddy in rows:
            label = QLabel(text)
            label.setBuddy(buddy)
            form.addRow(label, row)
        form.setRowVisible(wider["answers"], self._lesson is not None)
        self.buttons = QDialogButtonBox()
        self.export_button = self.buttons.addButton(
            "Export", QDialogButtonBox.ButtonRole.AcceptRole
        )
        self.export_button.setDefault(True)
        self.open_button = self.buttons.addButton("Open", QDialogButtonBox.ButtonRole.ActionRole)
        self.open_button.setToolTip("Opens what was written with the system's program for it.")
        self.open_button.hide()
        self.close_button = self.buttons.addButton(
            "Close", QDialogButtonBox.ButtonRole.RejectRole
        )  # a standard button would have an icon of the desktop's
        self._form = QWidget()
        form.setContentsMargins(0, 0, 0, 0)
        self._form.setLayout(form)
        with_parts(QVBoxLayout(self), self._form, self.words, self.bar, self.buttons)
        self.bar.hide()
        self.words.setMinimumHeight(3 * self.words.fontMetrics().lineSpacing())
        self.setMinimumWidth(round(self._style.px(520)))

    def _connect(self) -> None:
        for box in (self.format_box, self.scene_box):
            box.currentIndexChanged.connect(self._show_format)
        for box in (
            self.range_box, self.step_box, self.pace_box, self.theme_box, self.answers_box,
            self.per_page_box,
        ):  # fmt: skip
            box.currentIndexChanged.connect(self._check)
        for number in (self.start_box, self.stop_box, self.fps_box, self.seconds_box):
            number.valueChanged.connect(self._check)
        self.size_box.currentTextChanged.connect(self._check)
        self.theme_box.currentIndexChanged.connect(self._take_theme)
        for switch in (self.notes_box, self.clear_box, self.sound_box):
            switch.toggled.connect(self._check)
        self.target_edit.textEdited.connect(self._take_ending)
        self.target_edit.textChanged.connect(self._check)
        self.browse_button.clicked.connect(self._browse)
        self.export_button.clicked.connect(self.ask)
        self.open_button.clicked.connect(self._open)
        self.close_button.clicked.connect(self._close_or_cancel)
        self._session.trace_changed.connect(self._take_trace)
        tasks = self._session.tasks
        tasks.progressed.connect(self._show_progress)
        tasks.failed.connect(self._show_failure)

    def _take_trace(self, trace: Trace) -> None:
        """Use another run, which was still being built when the dialog was opened."""
        to_the_end = self.stop_box.value() == self._visits
        self._visits = len(trace)
        for box in (self.start_box, self.stop_box):
            box.setMaximum(self._visits)
        if to_the_end:
            self.stop_box.setValue(self._visits)
        if self.running is None:
            self._check()

    # --- options --------------------------------------------------------------------------

    @property
    def _format(self) -> Format:
        return BY_ENDING[self.format_box.currentData()]

    @property
    def _teaches(self) -> bool:
        """Whether a lesson is to be exported."""
        return bool(self.scene_box.currentData() == _LESSON)

    @property
    def _races(self) -> bool:
        """Whether the race of the whole runs is to be exported."""
        return bool(self.scene_box.currentData() == RACE)

    def options(self) -> ExportOptions:
        """Return the options from the fields."""
        kind, target = self._format, self.target_edit.text().strip()
        size = picture_size(self.size_box.currentText())
        seconds = self.seconds_box.value() if kind.film else None
        pace = self.pace_box.currentData()
        common = ExportOptions(
            target,
            size=size,
            theme=self.theme_box.currentData(),
            transparent=self.clear_box.isChecked() and self.clear_box.isEnabled(),
            sound=self.sound_box.isChecked() and self.sound_box.isEnabled(),
            fps=self.fps_box.value() if kind.film else 30,
            pace=seconds if pace == _PACE else None,
            length=seconds if pace == _LENGTH else None,
        )
        if self._teaches:
            found = replace(common, lesson=True, steps=self._step())
            if found.handout:
                found = replace(
                    found, answers=self.answers_box.currentData(),
                    per_page=self.per_page_box.currentData(), notes=self.notes_box.isChecked(),
                )  # fmt: skip
        elif self._races:
            found = replace(common, scene=RACE)
        else:
            by = self.step_box.currentData() if kind.film or kind.steps else None
            scene = self.scene_box.currentData()
            found = replace(common, scene=scene, visits=self._range(), by=by)
            if self.range_box.currentData() == _VIEW:
                found = still_options(self._session, found) or found
        found.check()
        return found

    def _range(self) -> tuple[int | None, int | None] | None:
        if self.range_box.currentData() == _PART:
            return self.start_box.value() - 1, self.stop_box.value()
        return None

    def _step(self) -> tuple[int, int] | None:
        """Return the current step if one picture is asked for; None for all steps."""
        kind = self._format
        step = None if self._player is None else self._player.step
        if kind.film or kind.paper or kind.steps or step is None:
            return None
        return step.number, step.number + 1

    def _show_format(self) -> None:
        """Enable the fields that the format and the scene allow."""
        kind = self._format
        for box in (self.fps_box, self.pace_box):
            box.setEnabled(kind.film)
        by_visit = not self._teaches and not self._races
        many = kind.film or kind.steps  # more than one state of a run
        self.step_box.setEnabled(many and by_visit)
        self.range_box.setEnabled(by_visit)
        self.pace_box.setItemText(0, _READ if self._teaches else _RACED if self._races else _USUAL)
        _allow(self.pace_box, _PACE, not self._races)
        if self._races and self.pace_box.currentData() == _PACE:
            self.pace_box.setCurrentIndex(0)
        self.clear_box.setEnabled(kind.transparent and self.scene_box.currentData() in SCENES)
        self.sound_box.setEnabled(bool(kind.sound) and not self._races)
        for field in (self.answers_box, self.per_page_box, self.notes_box):
            field.setEnabled(self._teaches and kind.paper)
        self.fps_box.setMaximum(kind.most_fps)
        _allow(self.range_box, _VIEW, not many)
        _allow(self.range_box, _RUN, many)
        if not many and self.range_box.currentData() == _RUN:
            self.range_box.setCurrentText(_VIEW)
        if many and self.range_box.currentData() == _VIEW:
            self.range_box.setCurrentText(_RUN)
        if self.target_edit.text() == self._proposed:
            self._proposed = self._with_ending(Path.home() / self._stem(), kind)
            self.target_edit.setText(self._proposed)
        elif not _names(self.target_edit.text(), kind):  # otherwise the user may be typing
            self.target_edit.setText(self._named(kind))
        if not self._themed:
            theme = usual_theme(kind, lesson=self._teaches, usual=self._style.theme.name)
            self.theme_box.setCurrentIndex(THEME_NAMES.index(theme))
            self._themed = False
        self._check()

    def _named(self, kind: Format) -> str:
        """Return the target with the ending of a format."""
        text = self.target_edit.text().strip().rstrip("/\\")
        return self._with_ending(Path(text) if text else Path.home() / self._stem(), kind)

    def _with_ending(self, path: Path, kind: Format) -> str:
        ending = "" if kind.ending == "frames" else kind.ending
        path = path.with_suffix(ending) if path.suffix in BY_ENDING else Path(f"{path}{ending}")
        return f"{path}/" if kind.ending == "frames" else str(path)

    def _stem(self) -> str:
        """Return the stem of a file name: the lesson's without its number, or the scenario's."""
        if self._teaches and self._player is not None and self._player.path is not None:
            return self._player.path.stem.lstrip("0123456789").lstrip("-") or _LESSON
        return self._session.path.stem if self._session.path else "attention"

    def _take_theme(self) -> None:
        self._themed = True

    def _take_ending(self, text: str) -> None:
        """Choose the format that a typed ending names."""
        for spec in FORMATS:
            if _names(text, spec) and spec is not self._format:
                self.format_box.setCurrentIndex(self.format_box.findData(spec.ending))

    def _browse(self) -> None:
        kind, folder = self._format, str(Path(self.target_edit.text() or ".").parent)
        if kind.ending == "frames":
            name = QFileDialog.getExistingDirectory(self, "Export into", folder)
            name = f"{name}/" if name else ""
        else:
            pattern = f"{kind.title} (*{kind.ending})"
            name, _ = QFileDialog.getSaveFileName(self, "Export", folder, pattern)
        if name:
            self.target_edit.setText(name)
            self.target_edit.setText(self._named(kind))
            if kind.ending != "frames" and self.target_edit.text() == name:
                self._agreed = name  # the file dialog has asked already

    def _check(self) -> None:
        """Describe the export, or say which option is wrong."""
        part = self.range_box.currentData() == _PART and self.range_box.isEnabled()
        self.start_box.setEnabled(part and (self._format.film or self._format.steps))
        self.stop_box.setEnabled(part)
        self.seconds_box.setEnabled(self._format.film and self.pace_box.currentData() != _USUAL)
        try:
            options = self.options()
            self._say(self._planned(options))
        except InputError as error:
            self._say(_told(error), bad=True)
        self.export_button.setEnabled(not self._bad)

    def _planned(self, options: ExportOptions) -> str:
        if self._teaches:
            return self._planned_lesson(options)
        assert self._session.trace is not None
        if self._races:
            times = race_times(
                self._session.trace.program, film=options.format.film,
                fps=options.fps, length=options.length,
            )  # fmt: skip
            self._frames = times.frames
            words = times.words[0].upper() + times.words[1:]
            return "{}; {} × {}.".format(words, *options.size)
        visits = options.range_of(self._visits)
        size = "{} × {}".format(*options.size)
        if options.visits is not None and self.range_box.currentData() == _PART:
            # Numbers as in the window: from 1, and the last one is included.
            total = count_text(self._visits)
            if options.format.film or options.format.steps:
                ends = f"{count_text(visits.start + 1)} to {count_text(visits.stop)}"
                size += f"; visits {ends} of {total}"
            else:
                size += f"; visit {count_text(visits.stop)} of {total}"
        if options.format.steps:
            program, slides = self._session.trace.program, options.format.slides
            stops, by = stops_of(program, visits, options.by, slides=slides)
            return f"{steps_words(stops, by, len(visits))}; {size}."
        if not options.format.film:
            return f"One picture, {size}."
        if options.by is Granularity.OP and len(visits) > _QUICK:
            return f"{plural(len(visits), 'visit')}, op by op, {size}."
        timeline = make_timeline(
            self._session.trace.program, visits,
            fps=options.fps, by=options.by, pace=options.pace, length=options.length,
            rescales=rescales_of(self._session.trace, visits),
        )  # fmt: skip
        self._frames = timeline.frames
        return f"{timeline.words}; {size}."

    def _planned_lesson(self, options: ExportOptions) -> str:
        assert self._lesson is not None
        steps, size = options.steps_of(len(self._lesson.steps)), "{} × {}".format(*options.size)
        if options.format.film:
            board = make_storyboard(
                self._lesson, steps, fps=options.fps, pace=options.pace, length=options.length
            )
            self._frames = board.frames
            return f"{board.words}; {size}."
        if options.handout:
            return f"{handout_words(self._lesson, steps, options)}."
        if options.format.steps:
            return f"{plural(len(steps), 'step')}, {size}."
        return f"Step {steps.start + 1} of the lesson, {size}."

    def _say(self, text: str, bad: bool = False) -> None:
        self._bad = bad
        theme = self._style.theme
        self.words.setStyleSheet(f"color: {theme.bad if bad else theme.text}")
        self.words.setText(text)

    # --- making the export ----------------------------------------------------------------

    def _usable(self) -> ExportOptions | None:
        """Return the options from the fields; None, and say why, if they cannot be used."""
        try:
            return self.options()
        except InputError as error:
            self._say(_told(error), bad=True)
            return None

    def ask(self) -> None:
        """Begin the export; first ask the user if it would replace a file."""
        if options := self._usable():
            agreed = self._agreed == options.target
            ask_replace(self, [] if agreed else options.there, self.start)

    def start(self) -> None:
        """Begin the export, even if it replaces a file."""
        options = self._usable()
        if options is None:
            return
        self.running, self._agreed = options, options.target
        self._form.setEnabled(False)
        self.export_button.setEnabled(False)
        self.close_button.setText("Cancel")
        self.close_button.setFocus()
        self.bar.setRange(0, 1000)
        self.bar.setValue(0)
        self.bar.show()
        self.open_button.hide()
        self._say("Starting.")
        lesson = self._player.path if self._player is not None else None
        submit(self._session, options, self._finish, lesson)

    def _show_progress(self, words: str, share: float, left: float) -> None:
        if self.running is None or words != words_of(self.running):
            return
        self.bar.setValue(round(1000 * share))
        soon = "" if math.isnan(left) else f", {max(1, math.ceil(left))} s left"
        if self.running.format.film:
            done, frames = count_text(share * self._frames), count_text(self._frames)
            self._say(f"{done} of {frames} frames{soon}")

    def _finish(self, made: Made) -> None:
        self._agreed = ""  # the share belonged to the previous file
        self._made = made.target
        self._rest(f"Written: {made.target} ({made.words}).")
        self.open_button.show()

    def _open(self) -> None:
        """Open the file that was written last; for single frames their folder."""
        path = Path(self._made)
        shown = path.parent if "%" in path.name else path
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(shown)))

    def _show_failure(self, error: object) -> None:
        if self.running is not None:
            known = isinstance(error, InputError)
            self._rest(str(error) if known else f"It failed ({type(error).__name__}).", bad=True)

    def _rest(self, words: str, bad: bool = False) -> None:
        self.running = None
        self.bar.hide()
        self._form.setEnabled(True)
        self.close_button.setText("Close")
        self.export_button.setEnabled(True)
        self.export_button.setFocus()
        self._say(words, bad)

    def _close_or_cancel(self) -> None:
        if self.running is None:
            self.close()
        else:
            self._session.tasks.cancel(KIND)
            self._rest("Cancelled: the file is as it was.")

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape cancels an export that is running, else closes."""
        if event.key() == Qt.Key.Key_Escape:
            self._close_or_cancel()
        else:
            super().keyPressEvent(event)

    def done(self, result: int) -> None:
        """Close, for whatever reason; an export that is running is cancelled."""
        if self.running is not None:
            self._close_or_cancel()
        super().done(result)


def _names(target: str, kind: Format) -> bool:
    """Return whether a target has the ending of a format."""
    bare = target.rstrip("/\\")
    if kind.ending == "frames":
        return bare != target and not bare.endswith(".reveal")
    return bare.endswith(kind.ending)


def _told(error: InputError) -> str:
    """Return an error in the words of the dialog, which has fields and not options."""
    mistake = error.mistakes[0]
    if mistake.key == "--visits":  # the range itself: the fields allow no other mistake
        return "Visits: expected a first one that does not come after the last"
    key = "File" if mistake.key == "-o" else mistake.key.removeprefix("--").capitalize()
    return f"{key}: expected {mistake.expected}"


def _choice(name: str, items: Sequence[tuple[str, object]]) -> QComboBox:
    box = QComboBox()
    box.setAccessibleName(name)
    for text, data in items:
        box.addItem(text, data)
    return box


def _number(name: str, low: int, high: int, value: int) -> QSpinBox:
    box = QSpinBox(minimum=low, maximum=high, value=value)
    box.setAccessibleName(name)
    return box


def _row(*widgets: QWidget) -> QWidget:
    """Return widgets next to each other, the first as wide as possible."""
    out = QWidget()
    with_parts(QHBoxLayout(out), (widgets[0], 1), *widgets[1:], margin=0)
    return out


def _allow(box: QComboBox, text: str, on: bool) -> None:
    """Enable an item of a box, or disable it."""
    model, n = box.model(), box.findData(text)
    flags = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
    model.setData(model.index(n, 0), int(flags.value) if on else 0, Qt.ItemDataRole.UserRole - 1)
