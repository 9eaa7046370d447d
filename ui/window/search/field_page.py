"""A field of the scenario, open in the box of the search with its present value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from simulator.base.errors import InputError
from simulator.problem.scenario import parse_scenario
from ui.look.run_words import what_if_words
from ui.look.theme import Style
from ui.panels.scenario.blanks import blanks
from ui.panels.scenario.field import Field
from ui.panels.scenario.fields import FIELDS, change_words, edited, tables, texts
from ui.widgets.parts import with_parts

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow


_LEAST_WIDTH = 600


class FieldPage(QWidget):
    """One field, its help, and the mistake in a typed value; a valid value runs at once."""

    grown = Signal()
    """The page needs more or less height than before."""

    def __init__(self, window: MainWindow, name: str, style: Style, *, scale: float = 1.3) -> None:
        super().__init__()
        self._session = window.session
        spec = next(spec for spec in FIELDS if spec.name == name)
        self.field = Field(spec)
        self.field.brief.hide()  # the help begins with it
        self.help = QLabel(spec.help, wordWrap=True)
        self.help.setFont(style.text_font(15.5))
        column = with_parts(QVBoxLayout(self), self.field, self.help, gap=round(style.px(12)))
        margin = round(style.px(28 if scale > 1.2 else 14))
        column.setContentsMargins(margin, margin // 2, margin, margin)
        self.field.set_style(Style(style.theme, style.scale * scale))
        self.field.arrange(round(style.px(180)), round(style.px(_LEAST_WIDTH)))
        self.field.committed.connect(self._take)
        self._session.refused.connect(self._refuse)
        self._session.trace_changed.connect(self._show)
        self._show()

    @property
    def wrong(self) -> bool:
        """Whether the typed value cannot be used."""
        return bool(self.field.message.text)

    def _show(self, trace: object = None) -> None:
        run = self._session.trace
        self.field.setEnabled(run is not None)
        if run is None:
            return
        said, name = texts(run.workload.scenario), self.field.spec.name
        meaning = blanks(run.workload, said).get(name)
        force = not self.field.editor.has_focus()
        self.field.show_said(said, meaning, run.workload, force=force)
        w = run.workload
        self.field.say_what_if(what_if_words(w) if name in w.what_if else "")
        self._say("")

    def _take(self, name: str, text: str) -> None:
        run = self._session.trace
        if run is None:
            return
        before = run.workload.scenario
        try:
            scenario = parse_scenario(tables(edited(texts(before), name, text, run.workload)))
        except InputError as error:
            self._refuse(error)
            return
        self._say("")
        self._session.propose(scenario, change_words(before, scenario))

    def _refuse(self, error: InputError) -> None:
        self._say(str(error.mistakes[0].expected if error.mistakes else error))

    def _say(self, wrong: str) -> None:
        self.field.say(f"expected {wrong}" if wrong else "")
        self.grown.emit()
