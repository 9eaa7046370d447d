"""The scenario dock: a form in which every field of the scenario can be changed at once.

The form keeps a draft, the texts of all fields. Each change makes a scenario of the whole draft, so
that two fields can be made consistent one after the other. A valid scenario is proposed; a mistake
is shown beside its field, and the typed text stays.
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QPalette,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QApplication,
    QFileDialog,
    QLabel,
    QScrollArea,
    QSizePolicy,
    QStyle,
    QVBoxLayout,
    QWidget,
)

from simulator.base.errors import InputError, Mistake, Remedy
from simulator.problem.filling import done_after_words
from simulator.problem.scenario import Scenario, parse_scenario
from simulator.problem.workload import Workload
from simulator.run.trace import Trace
from ui.look.draw import text_width
from ui.look.run_words import file_mask_words
from ui.look.theme import Style, palette
from ui.look.units import count_text, plural
from ui.panels.base import Panel
from ui.panels.scenario.blanks import blanks
from ui.panels.scenario.editors import EDITOR_WIDTH, FRAME, Field, LineEditor, Message
from ui.panels.scenario.fields import (
    FIELDS,
    change_words,
    edited,
    tables,
    text_of,
    texts,
)
from ui.safety.overrides import guarded
from ui.session.session import Session

_KEYPAD = Qt.KeyboardModifier.KeypadModifier


@guarded
class ScenarioPanel(Panel[None]):
    """Every field of the current scenario.

    It shows what `show_trace` or `show_workload` gives it and proposes changes; a proposal that
    cannot be used comes back through `show_refusal`.
    """

    proposed = Signal(object, str)
    """A valid `Scenario` that differs from the current one, and what was changed."""
    withdrawn = Signal()
    """What was wrong has been replaced or restored."""
    held = Signal(bool)
    """Whether the form has an entry that cannot be used."""

    def __init__(self) -> None:
        super().__init__("scenario_panel", "Scenario", QSize(0, 0))
        self.fields = {spec.name: Field(spec) for spec in FIELDS}
        self.banner = Message()
        self.banner.setObjectName("scenario_banner")
        self.summary = QLabel(wordWrap=True)
        self.summary.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.after = QLabel(wordWrap=True)
        self.after.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.after.hide()
        self._headings: list[QLabel] = []
        self._workload: Workload | None = None
        self._draft: dict[str, str] = {}
        self._pending: list[Scenario] = []
        """What was proposed and has no answer yet."""
        self._refused: dict[str, Mistake] = {}
        """What was wrong with the last proposal, by field."""
        self._notice = ""
        """What else was refused."""
        self._holds = False
        self._assemble()
        self.set_style(self.style_now)
        self.setEnabled(False)  # until there is a scenario that can be changed

    # --- assembly -------------------------------------------------------------------------

    def _assemble(self) -> None:
        self._form = QWidget()
        self._column = QVBoxLayout(self._form)
        self._column.addWidget(self.summary)
        self._column.addWidget(self.after)
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
            field.message.wanted.connect(self._repair)
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
        super().set_style(style)
        colours = palette(style.theme)
        colours.setColor(QPalette.ColorRole.Window, QColor(style.theme.panel))
        self.setPalette(colours)
        self._form.setPalette(colours)
        self.summary.setFont(style.text_font(13, bold=True))
        frame = math.ceil(style.px(FRAME))  # around the fields: aligns the rest
        for heading in self._headings:
            heading.setFont(style.text_font(13, bold=True))
            heading.setContentsMargins(frame, round(style.px(8)), 0, 0)
        self.after.setFont(style.text_font(13))
        for label in (self.summary, self.after):
            label.setContentsMargins(frame, 0, 0, 0)
        margin = round(style.px(10)) - frame
        self._column.setContentsMargins(margin, margin, margin, margin)
        self.banner.set_style(style)
        for field in self.fields.values():
            field.set_style(style)
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def minimumSizeHint(self) -> QSize:
        return QSize(round(self.style_now.px(180)), round(self.style_now.px(160)))

    def sizeHint(self) -> QSize:
        return QSize(round(self.style_now.px(270)), round(self.style_now.px(600)))

    def _arrange(self) -> None:
        """Put labels beside or above the editors, as the width allows."""
        font = self.style_now.text_font(13)
        label = max(round(text_width(font, spec.label)) for spec in FIELDS) + 2
        margins = self._column.contentsMargins()
        bar = self.style().pixelMetric(QStyle.PixelMetric.PM_ScrollBarExtent)
        room = self.width() - margins.left() - margins.right() - bar - label
        beside = room >= self.style_now.px(EDITOR_WIDTH)
        self._column.setSpacing(round(self.style_now.px(2 if beside else 6)))
        for field in self.fields.values():
            field.arrange(label if beside else 0)

    # --- showing --------------------------------------------------------------------------

    def show_trace(self, trace: Trace) -> None:
        """Show the scenario of a trace, and how many visits it takes."""
        self.show_workload(trace.workload, len(trace))

    def show_workload(self, workload: Workload, visits: int | None = None) -> None:
        """Show a scenario and the values that it leaves out.

        What the user is typing stays if the scenario was proposed here; any other scenario (undone,
        opened) replaces the texts of all fields.
        """
        at = self._asked(workload.scenario)
        answer = at is not None
        self._workload = workload
        self._notice, self._refused = "", {}
        if at is not None:
            if self._draft["title"] == self._pending[at].title:  # it may have another title
                self._draft["title"] = workload.scenario.title
            del self._pending[: at + 1]
        else:
            self._pending.clear()
            self._draft = texts(workload.scenario)
        self.setEnabled(True)
        self.summary.setText(_summary(workload, visits))
        notes = workload.file.notes if workload.file else ()
        words = *notes, done_after_words(workload.file), file_mask_words(workload.mask)
        self.after.setText("\n".join(filter(None, words)))
        self.after.setVisible(bool(self.after.text()))
        self._show_draft(force=not answer)
        self._check()

    def _asked(self, scenario: Scenario) -> int | None:
        """Return to which proposal this is the answer; it may have another title."""
        if scenario in self._pending:
            return self._pending.index(scenario)
        asked = [_untitled(one) for one in self._pending]
        run = _untitled(scenario)
        return asked.index(run) if run in asked else None

    def show_refusal(self, error: InputError) -> None:
        """Say why a proposal, or something else that was tried, cannot be used."""
        proposed_here = bool(self._pending or self._refused)
        self._pending.clear()
        self._refused, self._notice = {}, ""
        rest: list[Mistake] = []
        for mistake in error.mistakes:
            field = self.fields.get(mistake.key)
            if proposed_here and field is not None and not field.isHidden():
                self._refused.setdefault(mistake.key, mistake)
            else:
                rest.append(mistake)
        if rest:
            where = "" if error.source == "scenario" else f"{Path(error.source).name}: "
            self._notice = where + "\n".join(str(mistake) for mistake in rest)
        self._check(propose=False)

    def _show_draft(self, *, force: bool) -> None:
        assert self._workload is not None
        meaning = blanks(self._workload, self._draft)
        source = self._draft["input.source"] or "random"
        for name, field in self.fields.items():
            if name in meaning:
                field.editor.show_blank(meaning[name])
            field.editor.show_text(self._draft[name], force=force)
            only = field.spec.only_for
            field.setHidden(bool(only) and source not in only)

    # --- changing -------------------------------------------------------------------------

    def _commit(self, name: str, text: str) -> None:
        assert self._workload is not None
        self._draft = edited(self._draft, name, text, self._workload)
        self._refused.pop(name, None)
        self._notice = ""
        self._show_draft(force=False)
        self.withdrawn.emit()
        self._check()

    def _check(self, *, propose: bool = True) -> None:
        """Say what is wrong with the draft; if nothing is wrong and it is new, propose it."""
        if self._workload is None:
            self._tell({})
            return
        shown = self._workload.scenario
        news: Scenario | None = None
        wrong = dict(self._refused)
        try:
            scenario = parse_scenario(tables(self._draft))
        except InputError as error:
            wrong |= {mistake.key: mistake for mistake in error.mistakes}
        else:
            if self._pending:
                # It is again the current scenario: `show_workload` does the rest after the answer.
                news = scenario if scenario not in (shown, self._pending[-1]) else None
            elif scenario == shown:
                wrong = self._refused = {}
            else:
                news = scenario
        self._tell(wrong)
        if propose and news is not None:
            self._pending.append(news)
            self.proposed.emit(news, change_words(shown, news))

    def event(self, event: QEvent) -> bool:
        """Keep letters that are typed beside a field from being shortcuts of the window."""
        if event.type() is QEvent.Type.ShortcutOverride:
            assert isinstance(event, QKeyEvent)
            if _typed(event):
                event.accept()
                return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """On Enter, leave the field; on Escape, restore what is in effect, and leave."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if any(
                field.message.text and field.editor.hasFocus() for field in self.fields.values()
            ):
                return  # what is wrong is repaired at its place
            self._leave()
        elif event.key() == Qt.Key.Key_Escape and self._workload is not None:
            if not self._put_back() and not self._leave():
                event.ignore()  # another part may wait for the key, to end full screen
        else:
            super().keyPressEvent(event)

    def take_back(self) -> bool:
        """Restore what is in effect if an entry is refused; return whether one was."""
        return self._holds and not self._pending and self._put_back()

    def _put_back(self) -> bool:
        """Restore what is in effect in all fields; return whether anything differed."""
        assert self._workload is not None
        lines = [
            field.editor for field in self.fields.values() if isinstance(field.editor, LineEditor)
        ]
        shown = texts(self._workload.scenario)
        if self._draft == shown and not any(line.unfinished for line in lines):
            return False
        self._draft, self._refused, self._notice = shown, {}, ""
        self._show_draft(force=True)
        self._leave()
        self.withdrawn.emit()
        self._check()
        return True

    def _leave(self) -> bool:
        """Give the keyboard back to the window; return whether the form had it."""
        focused = QApplication.focusWidget()
        inside = focused is not None and self.isAncestorOf(focused)
        if focused is not None and inside:
            focused.clearFocus()
        return inside

    def _tell(self, wrong: dict[str, Mistake]) -> None:
        for name, field in self.fields.items():
            mistake = wrong.get(name)
            field.say(*(_expected(mistake), mistake.remedy) if mistake else ("",))
        rest = [f"{name}: {_expected(it)}" for name, it in wrong.items() if name not in self.fields]
        self.banner.say("\n".join(filter(None, [self._notice, *rest])))
        shown = texts(self._workload.scenario) if self._workload else self._draft
        holds = bool(wrong) or bool(self._notice and self._draft != shown)
        if holds != self._holds:
            self._holds = holds
            self.held.emit(holds)

    def _repair(self, remedy: Remedy) -> None:
        """Propose what the form says with the change that makes it possible."""
        self._draft |= {
            f"{table}.{key}": text_of(value)
            for table, values in remedy.values.items()
            for key, value in values.items()
        }
        self._refused, self._notice = {}, ""
        self._show_draft(force=True)
        self.withdrawn.emit()
        self._check()

    def _browse(self) -> None:
        folder, kinds = str(Path(self._draft["input.path"]).parent), "Tensors (*.safetensors *.npz)"
        path, _ = QFileDialog.getOpenFileName(self, "Input file", folder, kinds)
        if path:
            editor = self.fields["input.path"].editor
            editor.show_text(path, force=True)
            self._commit("input.path", path)


def scenario_panel(session: Session) -> ScenarioPanel:
    """Return a form that proposes changes to a session and shows its runs and refusals."""
    panel = ScenarioPanel()
    panel.proposed.connect(session.propose)
    panel.withdrawn.connect(session.withdrawn)
    session.trace_changed.connect(panel.show_trace)
    session.refused.connect(panel.show_refusal)
    panel.held.connect(partial(session.hold, panel.take_back))
    if session.trace is not None:
        panel.show_trace(session.trace)
    return panel


def _typed(event: QKeyEvent) -> bool:
    """Return whether somebody may be typing with a key; Space plays, as everywhere."""
    plain = event.modifiers() & ~(Qt.KeyboardModifier.ShiftModifier | _KEYPAD)
    return not plain and event.text().isprintable() and bool(event.text().strip())


def _untitled(scenario: Scenario) -> dict[str, object]:
    return scenario.model_dump(exclude={"title"})


def _expected(mistake: Mistake) -> str:
    return f"expected {mistake.expected}"


def _summary(workload: Workload, visits: int | None) -> str:
    grid, heads = workload.grid, len(workload.picked)
    words = [f"{count_text(grid.Tr)} × {count_text(grid.Tc)} tiles"]
    if visits is not None:
        words.append(plural(visits, "visit"))
    words.append(plural(heads, "head"))
    # Spaces at which no line is broken; the narrow ones separate thousands.
    return " · ".join(word.replace(" ", "\u00a0").replace("\u2009", "\u202f") for word in words)
