"""The scenario dock: a form in which every field of the scenario can be changed live.

The form keeps a draft, the texts of all fields. Each change makes a scenario of the whole
draft, so that two fields can be made consistent one after the other. One that is valid is
proposed; a mistake is told beside its field, and what was typed stays as it was typed.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QPalette,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QScrollArea,
    QSizePolicy,
    QStyle,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from simulator.errors import InputError, Mistake
from simulator.scenario import Scenario, parse_scenario
from simulator.trace import Trace
from simulator.workload import Workload
from ui.icons import icon
from ui.panels.scenario_fields import (
    FIELDS,
    Blank,
    FieldSpec,
    Kind,
    blanks,
    change_words,
    edited,
    tables,
    texts,
)
from ui.scene.draw import outline, text_width
from ui.theme import DARK, Style, palette
from ui.units import count_text

PAUSE_MS = 300
"""A pause in typing after which what stands there is tried."""
_EDITOR_WIDTH = 124
"""Below this width at scale 1 an editor takes a line of its own, under its label."""


class LineEditor(QLineEdit):
    """One line of text: tried on Enter, on leaving, and after a pause in typing.

    Escape puts back what is in effect. Undo and redo are left to the window, which takes
    back whole changes.
    """

    committed = Signal(str)

    def __init__(self, *, live: bool = True) -> None:
        super().__init__()
        self.in_effect = ""
        self._told = ""
        self._pause = QTimer(self, singleShot=True, interval=PAUSE_MS)  # type: ignore[call-overload]
        self._pause.timeout.connect(self.commit)
        if live:
            self.textEdited.connect(self._typed)
        self.editingFinished.connect(self.commit)

    def show_text(self, text: str, *, force: bool) -> None:
        """Show `text`, unless somebody is typing here; with `force` even then."""
        if force or not self._pause.isActive():
            self._pause.stop()
            self._told = text
            if text != self.text():
                self.setText(text)

    def show_blank(self, blank: Blank) -> None:
        """Show what the field stands for when nothing is in it."""
        self.setPlaceholderText(blank.hint)

    def commit(self) -> None:
        """Tell what stands here, if it was not told yet."""
        self._pause.stop()
        if self.text() != self._told:
            self._told = self.text()
            self.committed.emit(self._told)

    def _typed(self) -> None:
        # An empty field is often one that is about to be filled: wait for Enter.
        if self.text():
            self._pause.start()
        else:
            self._pause.stop()

    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.ShortcutOverride:
            assert isinstance(event, QKeyEvent)
            if event.matches(QKeySequence.StandardKey.Undo) or event.matches(
                QKeySequence.StandardKey.Redo
            ):
                event.ignore()
                return False
            if event.key() == Qt.Key.Key_Escape and self.text() != self.in_effect:
                event.accept()
                return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.text() != self.in_effect:
            self.setText(self.in_effect)
            self.commit()
        else:
            super().keyPressEvent(event)


class WholeEditor(LineEditor):
    """A whole number; the arrow keys up and down and the wheel change it by one."""

    def __init__(self, least: int) -> None:
        super().__init__()
        self._least = least
        self._blank = ""

    def show_blank(self, blank: Blank) -> None:
        super().show_blank(blank)
        self._blank = blank.value

    def step(self, by: int) -> None:
        """Change the number, starting from what a blank field stands for."""
        try:
            number = int(self.text().strip() or self._blank)
        except ValueError:
            return
        self.setText(str(max(self._least, number + by)))
        self._typed()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        by = {Qt.Key.Key_Up: 1, Qt.Key.Key_Down: -1}.get(Qt.Key(event.key()))
        if by is None:
            super().keyPressEvent(event)
        else:
            self.step(by)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus() and event.angleDelta().y():
            self.step(1 if event.angleDelta().y() > 0 else -1)
            event.accept()
        else:  # scrolling past a field changes nothing
            event.ignore()


class ChoiceEditor(QComboBox):
    """One of some texts, told at once."""

    committed = Signal(str)

    def __init__(self, spec: FieldSpec) -> None:
        super().__init__()
        self._default = spec.default
        self._told = ""
        for text, words in spec.choices():
            self.addItem(words, text)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(6)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.activated.connect(self.commit)

    def show_text(self, text: str, *, force: bool) -> None:
        """Show the choice that `text` is, or that a blank text stands for."""
        self._told = text
        self.setCurrentIndex(self.findData(text or self._default))

    def show_blank(self, blank: Blank) -> None:
        """Say in the blank choice what it stands for."""
        place = self.findData("")
        if place >= 0:
            self.setItemText(place, blank.hint)

    def commit(self) -> None:
        """Tell the choice, if it was not told yet."""
        text = self.currentData()
        if text != (self._told or self._default):
            self._told = text
            self.committed.emit(text)

    def showPopup(self) -> None:
        # The list may be wider than the dock.
        self.view().setMinimumWidth(self.view().sizeHintForColumn(0) + 2 * self.height())
        super().showPopup()

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # scrolling past a field changes nothing


class Message(QWidget):
    """A warning: sign and words; takes no room when there is none."""

    def __init__(self) -> None:
        super().__init__()
        self._sign = QLabel()
        self._words = QLabel(wordWrap=True)  # type: ignore[call-overload]
        self._words.setTextFormat(Qt.TextFormat.PlainText)
        self._words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._words.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._sign, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self._words, 1)
        self.hide()

    @property
    def text(self) -> str:
        """What is said; empty when all is fine."""
        return self._words.text()

    def say(self, text: str) -> None:
        """Show `text`, or nothing."""
        self._words.setText(text)
        self.setVisible(bool(text))

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        bad = style.theme.bad
        size = round(style.px(14))
        self._sign.setPixmap(icon("warning", bad).pixmap(QSize(size, size)))
        colours = QPalette(self.palette())
        colours.setColor(QPalette.ColorRole.WindowText, QColor(bad))
        self._words.setPalette(colours)
        self._words.setFont(style.text_font(12))


class Field(QWidget):
    """A label, an editor, and under it what is wrong with its text."""

    committed = Signal(str, str)
    """Name of the field and its text."""

    def __init__(self, spec: FieldSpec) -> None:
        super().__init__()
        self.spec = spec
        self.setObjectName(spec.name)
        self.editor = _editor(spec)
        self.editor.setAccessibleName(f"{spec.group} {spec.label}".strip())
        self.editor.setToolTip(spec.help)
        self.editor.committed.connect(lambda text: self.committed.emit(spec.name, text))
        self.label = QLabel(spec.label)
        self.label.setBuddy(self.editor)
        self.label.setToolTip(spec.help)
        self.message = Message()
        self.browse: QToolButton | None = None
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setColumnStretch(1, 1)
        if spec.kind is Kind.PATH:
            self.browse = QToolButton()
            self.browse.setAccessibleName("Browse for a tensor file")
            self.browse.setToolTip("Browse…")
            self.browse.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._style = Style(DARK)

    def say(self, wrong: str) -> None:
        """Say what is wrong, or nothing."""
        self.message.say(wrong)
        self.editor.setAccessibleDescription(f"{wrong}. {self.spec.help}".removeprefix(". "))
        self.update()

    def arrange(self, label_width: int) -> None:
        """Put the label left of the editor, or above it when `label_width` is 0."""
        row, column = (0, 1) if label_width else (1, 0)
        self.label.setMinimumWidth(label_width)
        for widget in (self.label, self.editor, self.browse, self.message):
            if widget is not None:
                self._grid.removeWidget(widget)
        self._grid.addWidget(self.label, 0, 0)
        self._grid.addWidget(self.editor, row, column, 1, 2 - column)
        if self.browse is not None:
            self._grid.addWidget(self.browse, row, 2)
        self._grid.addWidget(self.message, row + 1, column, 1, 3 - column)

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self._style = style
        self._grid.setHorizontalSpacing(round(style.px(6)))
        self._grid.setVerticalSpacing(round(style.px(3)))
        self.message.set_style(style)
        if self.browse is not None:
            self.browse.setIcon(icon("open", style.theme.text))
            size = round(style.px(16))
            self.browse.setIconSize(QSize(size, size))

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.message.text:
            painter = QPainter(self)
            outline(painter, self.editor.geometry(), self._style.theme.bad, self._style.px(2))
            painter.end()


def _editor(spec: FieldSpec) -> LineEditor | ChoiceEditor:
    if spec.kind in (Kind.CHOICE, Kind.TRI_STATE):
        return ChoiceEditor(spec)
    if spec.kind is Kind.WHOLE:
        return WholeEditor(spec.least)
    # Half a path names no file: wait until it is whole.
    return LineEditor(live=spec.kind is not Kind.PATH)


class ScenarioPanel(QWidget):
    """Every field of the scenario on show.

    It shows what it is given with `show_trace` or `show_workload` and proposes changes; a
    proposal that turns out not to work comes back through `show_refusal`.
    """

    proposed = Signal(object, str)
    """A valid `Scenario` that differs from the one on show, and what was changed."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.fields = {spec.name: Field(spec) for spec in FIELDS}
        self.banner = Message()
        self.banner.setObjectName("scenario_banner")
        self.summary = QLabel(wordWrap=True)  # type: ignore[call-overload]
        self.summary.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._headings: list[QLabel] = []
        self._workload: Workload | None = None
        self._draft: dict[str, str] = {}
        self._pending: list[Scenario] = []
        """What was proposed and not answered yet."""
        self._refused: dict[str, str] = {}
        """What was wrong with the last proposal, by field."""
        self._notice = ""
        """What else was refused."""
        self._style = Style(DARK)
        self._assemble()
        self.set_style(self._style)
        self.setEnabled(False)  # until there is a scenario to change

    # --- assembly -------------------------------------------------------------------------

    def _assemble(self) -> None:
        self._form = QWidget()
        self._column = QVBoxLayout(self._form)
        self._column.addWidget(self.summary)
        self._column.addWidget(self.banner)
        group = ""
        for spec in FIELDS:
            if spec.group != group:
                group = spec.group
                heading = QLabel(group)
                self._headings.append(heading)
                self._column.addWidget(heading)
            field = self.fields[spec.name]
            field.committed.connect(self._commit)
            if field.browse is not None:
                field.browse.clicked.connect(self._browse)
            self._column.addWidget(field)
        self._column.addStretch(1)
        self._scroll = QScrollArea()
        self._scroll.setObjectName("scenario_scroll")
        self._scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        self._scroll.setWidgetResizable(True)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setWidget(self._form)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(self._scroll)

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self._style = style
        colours = palette(style.theme)
        colours.setColor(QPalette.ColorRole.Window, QColor(style.theme.panel))
        self.setPalette(colours)
        self.setFont(style.text_font(13))
        self.summary.setFont(style.text_font(13, bold=True))
        for heading in self._headings:
            heading.setFont(style.text_font(13, bold=True))
            heading.setContentsMargins(0, round(style.px(8)), 0, 0)
        margin = round(style.px(10))
        self._column.setContentsMargins(margin, margin, margin, margin)
        self._column.setSpacing(round(style.px(5)))
        self.banner.set_style(style)
        for field in self.fields.values():
            field.set_style(style)
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def minimumSizeHint(self) -> QSize:
        return QSize(round(self._style.px(180)), round(self._style.px(160)))

    def sizeHint(self) -> QSize:
        return QSize(round(self._style.px(270)), round(self._style.px(600)))

    def _arrange(self) -> None:
        """Put labels beside or above the editors, as the width allows."""
        font = self._style.text_font(13)
        label = max(round(text_width(font, spec.label)) for spec in FIELDS) + 2
        margins = self._column.contentsMargins()
        bar = self.style().pixelMetric(QStyle.PixelMetric.PM_ScrollBarExtent)
        room = self.width() - margins.left() - margins.right() - bar - label
        beside = room >= self._style.px(_EDITOR_WIDTH)
        for field in self.fields.values():
            field.arrange(label if beside else 0)

    # --- showing --------------------------------------------------------------------------

    def show_trace(self, trace: Trace) -> None:
        """Show the scenario of a trace, and how many visits it takes."""
        self.show_workload(trace.workload, len(trace))

    def show_workload(self, workload: Workload, visits: int | None = None) -> None:
        """Show a scenario and what it says nothing about.

        What the user is typing stays while the scenario is one that was proposed here; any
        other (undone, opened) replaces all that stands in the fields.
        """
        answer = workload.scenario in self._pending
        self._workload = workload
        self._notice, self._refused = "", {}
        shown = texts(workload.scenario)
        if answer:
            del self._pending[: self._pending.index(workload.scenario) + 1]
        else:
            self._pending.clear()
            self._draft = dict(shown)
        self.setEnabled(True)
        self.summary.setText(_summary(workload, visits))
        meaning = blanks(workload)
        for name, field in self.fields.items():
            if name in meaning:
                field.editor.show_blank(meaning[name])
            if isinstance(field.editor, LineEditor):
                field.editor.in_effect = shown[name]
        self._show_draft(force=not answer)
        self._check()

    def show_refusal(self, error: InputError) -> None:
        """Say why a proposal, or something else that was tried, cannot be used."""
        proposed_here = bool(self._pending or self._refused)
        self._pending.clear()
        self._refused, self._notice = {}, ""
        rest: list[Mistake] = []
        for mistake in error.mistakes:
            field = self.fields.get(mistake.key)
            if proposed_here and field is not None and not field.isHidden():
                self._refused.setdefault(mistake.key, _expected(mistake))
            else:
                rest.append(mistake)
        if rest:
            where = "" if error.source == "scenario" else f"{Path(error.source).name}: "
            self._notice = where + "\n".join(str(mistake) for mistake in rest)
        self._check(propose=False)

    def _show_draft(self, *, force: bool) -> None:
        source = self._draft["input.source"] or "random"
        for name, field in self.fields.items():
            field.editor.show_text(self._draft[name], force=force)
            field.setHidden(field.spec.only_for not in ("", source))

    # --- changing -------------------------------------------------------------------------

    def _commit(self, name: str, text: str) -> None:
        assert self._workload is not None
        self._draft = edited(self._draft, name, text, self._workload)
        self._refused.pop(name, None)
        self._notice = ""
        self._show_draft(force=False)
        self._check()

    def _check(self, *, propose: bool = True) -> None:
        """Say what is wrong with the draft; propose it if nothing is, and it is new."""
        assert self._workload is not None
        shown = self._workload.scenario
        news: Scenario | None = None
        wrong = dict(self._refused)
        try:
            scenario = parse_scenario(tables(self._draft))
        except InputError as error:
            wrong |= {mistake.key: _expected(mistake) for mistake in error.mistakes}
        else:
            if self._pending:
                # Back at what is on show: `show_workload` sees to it once the answer is here.
                news = scenario if scenario not in (shown, self._pending[-1]) else None
            elif scenario == shown:
                wrong = self._refused = {}
            else:
                news = scenario
        self._tell(wrong)
        if propose and news is not None:
            self._pending.append(news)
            self.proposed.emit(news, change_words(shown, news))

    def _tell(self, wrong: dict[str, str]) -> None:
        for name, field in self.fields.items():
            field.say(wrong.get(name, ""))
        rest = [f"{name}: {text}" for name, text in wrong.items() if name not in self.fields]
        self.banner.say("\n".join(filter(None, [self._notice, *rest])))

    def _browse(self) -> None:
        path = self.choose_file(str(Path(self._draft["input.path"]).parent))
        if path:
            editor = self.fields["input.path"].editor
            editor.show_text(path, force=True)
            self._commit("input.path", path)

    def choose_file(self, folder: str) -> str:
        """Ask for a tensor file, starting in `folder`; return its path, or nothing."""
        kinds = "Tensors (*.safetensors *.npz)"
        return QFileDialog.getOpenFileName(self, "Input file", folder, kinds)[0]


def _expected(mistake: Mistake) -> str:
    return f"expected {mistake.expected}"


def _summary(workload: Workload, visits: int | None) -> str:
    grid, heads = workload.grid, workload.heads
    words = [f"{count_text(grid.Tr)} × {count_text(grid.Tc)} tiles"]
    if visits is not None:
        words.append(f"{count_text(visits)} visit{'s' if visits != 1 else ''}")
    words.append(f"{heads} head{'s' if heads != 1 else ''}")
    return " · ".join(words)
