"""The scenario dock: the form in which the scenario is changed.

The form shows eight fields, and others that are searched for. It keeps a draft, the texts of all
fields. Each change makes a scenario of the whole draft, so that two fields can be made consistent
one after the other. A valid scenario is proposed; a mistake is shown beside its field, and the
typed text stays.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise
from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QPalette
from PySide6.QtWidgets import (
    QApplication,
    QFileDialog,
    QLabel,
    QLineEdit,
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
from ui.look.run_words import file_mask_words, what_if_words
from ui.look.theme import Style, palette
from ui.look.units import count_text, plural
from ui.panels.base import Panel
from ui.panels.scenario.blanks import blanks
from ui.panels.scenario.editors import LineEditor
from ui.panels.scenario.field import EDITOR_WIDTH, FRAME, Field, Message
from ui.panels.scenario.fields import (
    FIELDS,
    FIRST,
    GROUPS,
    SPECS,
    change_words,
    edited,
    tables,
    text_of,
    texts,
)
from ui.safety.overrides import guarded
from ui.session.session import Session
from ui.widgets.matching import find
from ui.widgets.parts import with_parts

_KEYPAD = Qt.KeyboardModifier.KeypadModifier
_ORDER = (*FIRST, *(spec.name for spec in FIELDS if spec.name not in FIRST))
"""The fields from top to bottom."""
_OF_SOURCE = {"file": "input.path", "layer": "input.path", "sentence": "input.layer"}
"""The field that a source of the input asks for beside the first fields."""
_SENTENCE = "input.name"
_WIDE, _LARGER = 640, 1.3
"""Width at scale 1 from which all letters are larger, and by which factor."""
_NAMES = (112, 0.31)
"""Least width of names at scale 1, and their share of the width."""


_ALL = "All"


class _Fields(dict[str, Field]):
    """The fields that were made so far; a missing field is made at its first access."""

    def __init__(self, panel: ScenarioPanel) -> None:
        super().__init__()
        self._panel = panel

    def __missing__(self, name: str) -> Field:
        return self._panel.made(name)


@guarded
class ScenarioPanel(Panel[None]):
    """The fields of the current scenario.

    The panel shows the scenario of `show_trace` or `show_workload` and proposes changes; a proposal
    that cannot be used comes back through `show_refusal`.
    """

    proposed = Signal(object, str)
    """A valid `Scenario` that differs from the current one, and the change in words."""
    withdrawn = Signal()
    """A wrong entry has been replaced or restored."""
    held = Signal(bool)
    """Whether the form has an entry that cannot be used."""
    undo_asked = Signal()

    def __init__(self) -> None:
        super().__init__("scenario_panel", "Scenario", QSize(0, 0))
        self.fields = _Fields(self)
        self.banner = Message()
        self.banner.setObjectName("scenario_banner")
        self.changes = QLabel()
        self.changes.setObjectName("changes")
        self.changes.linkActivated.connect(self._follow)
        self.summary = QLabel(wordWrap=True)
        self.after = QLabel(wordWrap=True)
        for label in (self.summary, self.after, self.changes):
            label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.after.hide()
        self.query = QLineEdit()
        self.query.setObjectName("field_query")
        self.query.setClearButtonEnabled(True)
        self.query.setAccessibleName("Search fields")
        self.query.textChanged.connect(self._search)
        self.groups = QLabel(wordWrap=True)
        self.groups.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.groups.setAccessibleName("Groups of fields")
        self.groups.linkActivated.connect(self._follow)
        self._workload: Workload | None = None
        self._opened: dict[str, str] = {}
        """The texts of the scenario that was opened or saved."""
        self._draft: dict[str, str] = {}
        self._pending: list[Scenario] = []
        """Proposals that have no answer yet."""
        self._refused: dict[str, Mistake] = {}
        """The mistakes in the last proposal, by field."""
        self._notice = ""
        """The words on another refusal."""
        self._touched: set[str] = set()
        """Fields that were changed here, or asked for by name: they stay in sight."""
        self._found: frozenset[str] | None = None
        """The fields that the query finds, if there is one."""
        self._holds = False
        self._lettered: Style | None = None
        self._wrong: dict[str, Mistake] = {}
        self._assemble()
        self.set_style(self.style_now)
        self.setEnabled(False)  # until there is a scenario that can be changed

    # --- assembly -------------------------------------------------------------------------

    def _assemble(self) -> None:
        self._form, self._rows = QWidget(), QVBoxLayout()
        self._column = with_parts(
            QVBoxLayout(self._form), self.summary, self.changes, self.after, self.banner,
            self._rows, 1,
        )  # fmt: skip
        self._scroll = QScrollArea()
        self._scroll.setObjectName("scenario_scroll")
        self._scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        self._scroll.setWidgetResizable(True)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setWidget(self._form)
        self._foot = with_parts(QVBoxLayout(), self.query, self.groups)
        with_parts(QVBoxLayout(self), (self._scroll, 1), self._foot, margin=0, gap=0)
        for name in FIRST:  # after all are in one window, where Tab goes from one to the next
            self.made(name)

    def made(self, name: str) -> Field:
        """Return a field, made if it is missing; `show_field` brings a field in sight."""
        if name in self.fields:
            return self.fields[name]
        field = Field(SPECS[name])
        self.fields[name] = field
        field.committed.connect(self._commit)
        field.message.wanted.connect(self._repair)
        if field.browse is not None:
            field.browse.clicked.connect(self._browse)
        if name == "tiling.cols":
            self.fields["tiling.rows"].add_second(field)
        else:
            above = _ORDER[: _ORDER.index(name)]
            place = sum(each in self.fields for each in above if each != "tiling.cols")
            self._rows.insertWidget(place, field)
            if name not in FIRST:
                field.hide()
        field.set_style(self._letters())
        if self._workload is not None:
            self._show_field(field, force=True)
            self.arrange()
        lines = [self.fields[each] for each in _ORDER if each in self.fields]
        for before, after in pairwise([*(line.editor for line in lines), self.query]):
            QWidget.setTabOrder(before, after)
        return field

    def _letters(self) -> Style:
        """Return the style of the fields: larger where there is room."""
        style = self.style_now
        wide = self.width() >= style.px(_WIDE)
        return Style(style.theme, style.scale * _LARGER, style.least) if wide else style

    def _restyle(self) -> None:
        style, theme = self._letters(), self.style_now.theme
        self._lettered = style
        colours = palette(theme)
        colours.setColor(QPalette.ColorRole.Window, QColor(theme.panel))
        self.setPalette(colours)
        self._form.setPalette(colours)
        colours.setColor(QPalette.ColorRole.WindowText, QColor(theme.muted))
        frame = math.ceil(style.px(FRAME))  # around the fields: aligns the rest
        for label in (self.summary, self.after, self.changes, self.groups):
            label.setFont(style.text_font(12))
            label.setContentsMargins(frame, 0, 0, 0)
            label.setPalette(colours)
        self.query.setFont(style.text_font(14))
        self.query.setMinimumHeight(round(style.px(30)))
        margin = round(style.px(10)) - frame
        self._column.setContentsMargins(margin, margin, margin, margin)
        self._foot.setContentsMargins(margin, margin // 2, margin, margin)
        self._foot.setSpacing(round(style.px(4)))
        self.banner.set_style(style)
        for field in self.fields.values():
            if field.spec.name != "tiling.cols":  # styled with the rows
                field.set_style(style)
        self._tell_groups()
        self._tell_changes()

    def minimumSizeHint(self) -> QSize:
        return QSize(round(self.style_now.px(180)), round(self.style_now.px(160)))

    def sizeHint(self) -> QSize:
        return QSize(round(self.style_now.px(340)), round(self.style_now.px(600)))

    def arrange(self) -> None:
        """Put labels beside or above the editors, as the width allows."""
        style = self._letters()
        if style != self._lettered:
            self._restyle()
        margins = self._column.contentsMargins()
        bar = self.style().pixelMetric(QStyle.PixelMetric.PM_ScrollBarExtent)
        room = self.width() - margins.left() - margins.right() - bar
        label = round(max(style.px(_NAMES[0]), _NAMES[1] * room))
        beside = room - label >= style.px(EDITOR_WIDTH)
        self._rows.setSpacing(round(style.px(10 if beside else 8)))
        for field in self.fields.values():
            if field.spec.name != "tiling.cols":
                field.arrange(label if beside else 0, room)

    # --- which fields are in sight --------------------------------------------------------

    def show_field(self, name: str) -> None:
        """Show a field among the first, and go into its editor."""
        if not self._in_sight(name):
            self._touched.add(name)
            self.query.clear()
            self._choose_rows()
        field = self.fields[name]
        self._scroll.ensureWidgetVisible(field)
        field.editor.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _in_sight(self, name: str) -> bool:
        return name in self.fields and not self.fields[name].isHidden()

    def _search(self, query: str) -> None:
        """Show the fields that a query finds, as rows of the form."""
        asked = query.strip()
        self._found = None
        if asked:
            entries = FIELDS if asked == _ALL else find(asked, FIELDS).entries
            self._found = frozenset(spec.name for spec in entries)
        self._choose_rows()
        self._scroll.verticalScrollBar().setValue(0)

    def _follow(self, link: str) -> None:
        if link == "undo":
            self.undo_asked.emit()
        else:
            self.query.setText(link)
            self.query.setFocus(Qt.FocusReason.OtherFocusReason)

    def _belonging(self) -> set[str]:
        """Return the fields that this algorithm and this input have."""
        algorithm = self._draft["attention.algorithm"] or SPECS["attention.algorithm"].default
        source = self._draft["input.source"] or "random"
        return {spec.name for spec in FIELDS if spec.belongs(algorithm, source)}

    def _changed(self) -> set[str]:
        return {name for name in self._touched if self._draft[name] != self._opened[name]}

    def _choose_rows(self) -> None:
        """Show the fields that are found, or the first fields and the changed ones."""
        if self._workload is None:
            return
        belonging = self._belonging()
        if self._found is not None:
            shown = belonging & self._found
        else:
            source = self._draft["input.source"]
            shown = belonging & {*FIRST, *self._touched, _OF_SOURCE.get(source, FIRST[0])}
        shown |= self._wrong.keys() & SPECS.keys()
        if "tiling.cols" in shown:
            shown.add("tiling.rows")
        for name in _ORDER:
            if name in shown or name in self.fields:
                self.made(name).setHidden(name not in shown and name != "tiling.cols")
        others = len(belonging - {*FIRST})
        self.query.setPlaceholderText(f"search {others} more fields (Ctrl+F)")
        self._tell_groups()

    def _tell_groups(self) -> None:
        """Name the groups that have fields here."""
        here = {SPECS[name].group for name in self._belonging()} if self._draft else set()
        links = [group for group in GROUPS if group in here] + [_ALL]
        colour = self.style_now.theme.tensors["Q"]
        words = " &nbsp; ".join(
            f'<a href="{each}" style="color: {colour}; text-decoration: none">{each.lower()}</a>'
            for each in links
        )
        none = "" if self._found is None or self._found else "nothing is called so · "
        self.groups.setText(f"{none}by group: &nbsp; {words}")

    def _tell_changes(self) -> None:
        """Say how many fields differ from the opened scenario, and offer to take the last back."""
        aside = ("title", "input.what_if")  # these follow from other changes
        opened = {name: text for name, text in self._opened.items() if name not in aside}
        count = sum(self._draft[name] != text for name, text in opened.items())
        colours = self.style_now.theme
        words = (
            f'<b style="color: {colours.current}">{count} changed</b> &nbsp; <a href="undo" '
            f'style="color: {colours.tensors["Q"]}; text-decoration: none">Undo</a>'
        )
        self.changes.setText(words)
        self.changes.setVisible(bool(count))
        changed = self._changed()
        for name, field in self.fields.items():
            field.mark_changed(name in changed)

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
        self._opened = self._opened or texts(workload.scenario)
        self._workload = workload
        self._notice, self._refused = "", {}
        if at is not None:
            if self._draft["title"] == self._pending[at].title:  # the run may have another title
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

    def show_opened(self, scenario: Scenario | None) -> None:
        """Take the scenario that was opened or saved; changes are counted from it."""
        opened = {} if scenario is None else texts(scenario)
        if opened and opened != self._opened:
            self._opened = opened
            self._touched.clear()
            if self._workload is not None:
                self._choose_rows()
                self._tell_changes()

    def _asked(self, scenario: Scenario) -> int | None:
        """Return the number of the proposal that became this scenario, maybe with another title."""
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
            key = mistake.key
            if key in ("input.source", "input.text") and not self._in_sight(key):
                key = _SENTENCE  # where it was chosen
            if proposed_here and key in SPECS and (SPECS[key].name in self._belonging()):
                self._refused.setdefault(key, mistake)
            else:
                rest.append(mistake)
        if rest:
            where = "" if error.source == "scenario" else f"{Path(error.source).name}: "
            self._notice = where + "\n".join(str(mistake) for mistake in rest)
        self._check(propose=False)

    def _show_draft(self, *, force: bool) -> None:
        assert self._workload is not None
        self._choose_rows()
        for field in self.fields.values():
            self._show_field(field, force=force)
        grid = self._workload.grid
        tiles = f"{count_text(grid.Tr)} × {count_text(grid.Tc)} tiles"
        self.fields["tiling.rows"].say_aside(tiles)
        real = self._draft["input.source"] not in ("", "random")
        other = "another N runs on random numbers of that length, and says so" if real else ""
        self.fields["attention.seqlen_q"].say_aside(other)
        self._tell_changes()

    def _show_field(self, field: Field, *, force: bool) -> None:
        """Show the draft's text in a field."""
        w, name = self._workload, field.spec.name
        assert w is not None
        meaning = blanks(w, self._draft).get(name)
        field.show_said(self._draft, meaning, w, force=force)
        field.say_what_if(what_if_words(w) if name in w.what_if else "")

    # --- changing -------------------------------------------------------------------------

    def _commit(self, name: str, text: str) -> None:
        assert self._workload is not None
        self._draft = edited(self._draft, name, text, self._workload)
        self._touched.add(name)
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
                # Again the current scenario: `show_workload` does the rest after the answer.
                news = scenario if scenario not in (shown, self._pending[-1]) else None
            elif scenario == shown:
                wrong = self._refused = {}
            else:
                news = scenario
        self._tell(wrong)
        if propose and news is not None:
            self._pending.append(news)
            self.proposed.emit(news, change_words(shown, news))

    def keeps(self, event: QKeyEvent) -> bool:
        """Keep letters that are typed beside a field from being shortcuts of the window."""
        return _typed(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """On Enter, leave the field; on Escape, restore the values in effect, and leave."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if any(
                field.message.text and field.editor.has_focus() for field in self.fields.values()
            ):
                return  # a wrong entry is repaired at its place
            self._leave()
        elif event.key() == Qt.Key.Key_Escape and self.query.text():
            self.query.clear()
        elif event.key() == Qt.Key.Key_Escape and self._workload is not None:
            if not self._put_back() and not self._leave():
                event.ignore()  # another part may wait for the key, to end full screen
        else:
            super().keyPressEvent(event)

    def take_back(self) -> bool:
        """Restore the values in effect if an entry is refused; return whether one was."""
        return self._holds and not self._pending and self._put_back()

    def _put_back(self) -> bool:
        """Restore the values in effect in all fields; return whether anything differed."""
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
        shown_before, self._wrong = self._wrong.keys() & SPECS.keys(), wrong
        if shown_before != wrong.keys() & SPECS.keys():
            self._choose_rows()
        for name, field in self.fields.items():
            mistake = wrong.get(name)
            said = (f"expected {mistake.expected}", mistake.remedy) if mistake else ("",)
            field.say(*said)
        rest = [f"{at}: expected {it.expected}" for at, it in wrong.items() if at not in SPECS]
        self.banner.say("\n".join(filter(None, [self._notice, *rest])))
        shown = texts(self._workload.scenario) if self._workload else self._draft
        holds = bool(wrong) or bool(self._notice and self._draft != shown)
        if holds != self._holds:
            self._holds = holds
            self.held.emit(holds)

    def _repair(self, remedy: Remedy) -> None:
        """Propose the scenario of the form with the change that makes it possible."""
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
            assert isinstance(editor, LineEditor)
            editor.show_text(path, force=True)
            self._commit("input.path", path)


def scenario_panel(session: Session) -> ScenarioPanel:
    """Return a form that proposes changes to a session and shows its runs and refusals."""
    panel = ScenarioPanel()
    panel.proposed.connect(session.propose)
    panel.withdrawn.connect(session.withdrawn)
    panel.undo_asked.connect(session.undo)
    session.trace_changed.connect(panel.show_trace)
    session.refused.connect(panel.show_refusal)
    panel.held.connect(partial(session.hold, panel.take_back))
    session.file_changed.connect(lambda: panel.show_opened(session.file.opened))
    if session.trace is not None:
        panel.show_trace(session.trace)
        panel.show_opened(session.file.opened)
    return panel


def _typed(event: QKeyEvent) -> bool:
    """Return whether somebody may be typing with a key; Space plays, as everywhere."""
    plain = event.modifiers() & ~(Qt.KeyboardModifier.ShiftModifier | _KEYPAD)
    return not plain and event.text().isprintable() and bool(event.text().strip())


def _untitled(scenario: Scenario) -> dict[str, object]:
    return scenario.model_dump(exclude={"title"})


def _summary(workload: Workload, visits: int | None) -> str:
    grid, heads = workload.grid, len(workload.picked)
    words = [f"{count_text(grid.Tr)} × {count_text(grid.Tc)} tiles"]
    if visits is not None:
        words.append(plural(visits, "visit"))
    words.append(plural(heads, "head"))
    # Spaces at which no line is broken; the narrow ones separate thousands.
    return " · ".join(word.replace(" ", "\u00a0").replace("\u2009", "\u202f") for word in words)
