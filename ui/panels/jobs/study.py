"""Jobs of the heads of a run, or of the whole model (Olsson et al. 2022), and losses: the dock."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from PySide6.QtCore import QRectF, QSizeF
from PySide6.QtGui import QResizeEvent

from simulator.base.choices import Option
from simulator.problem.scenario import Scenario, with_values
from simulator.problem.workload import Workload
from simulator.run.trace import Trace
from simulator.study.attention_part import fitting_part
from simulator.study.jobs.choices import ALL_ON, CHOICES, DISTANCES, JOBS_SHOWN, TRAINING, VARIANTS
from simulator.study.jobs.report import (
    HeadName,
    HeadReport,
    head_report,
    model_place,
    reads_whole_model,
)
from simulator.study.jobs.trained import TRAINED, trained_variants
from ui.kit.boxes import Box, Column, Either, Placed, Row
from ui.kit.shapes import LINE, CellGrid, GridCell, Heat, Paragraph, Text
from ui.kit.table import BoxRow, BoxTable, FigureText, Head, Struck
from ui.look.draw import CENTRE, RIGHT, text_width
from ui.look.theme import LABEL, Style
from ui.panels.jobs.plot import course_plots, variant_plots
from ui.panels.jobs.words import columns, head_name, notes, pairs, rows, short_name, title
from ui.panels.study import Chosen, Study, Words
from ui.panels.study_panel import StudyPanel
from ui.plots.model import PlotModel
from ui.plots.widget import PlotView
from ui.safety.overrides import guarded
from ui.session.session import Session
from ui.session.tasks import Report
from ui.session.view import View

_WIDEST = 56.0
"""Largest width of a cell of the distances."""
_TINY = 0.005
"""Distances below this are 0.00."""
_AFTER = ("all keys alike", "alike"), ("every head on", "all on")
"""Rows after the heads: the scores of a head without a job, and the loss with all heads."""


@dataclass(frozen=True, eq=False)
class JobsState:
    """The figures, the choice of those shown, and the head and row that the board explains."""

    report: HeadReport
    workload: Workload  # heads one by one
    off: HeadName | None  # the head that is switched off
    shows: str = JOBS_SHOWN
    head: int = 0
    row: int = 0
    wanted: int | None = None  # another layer of a typed text, whose head was pressed

    @property
    def current(self) -> HeadName:
        """The head that the board shows, as the report names it."""
        place = model_place(self.workload)
        layer = None if place is None else place[2]
        if reads_whole_model(self.workload):
            layer = self.workload.scenario.input.layer
        return layer, self.workload.picked[self.head]

    @property
    def at(self) -> int | None:
        """The place of `current` in the report, if any."""
        heads = self.report.heads
        return heads.index(self.current) if self.current in heads else None

    @cached_property
    def plots(self) -> tuple[PlotModel, PlotModel] | None:
        """Scores and losses over training, or losses of variants; None if neither is on show."""
        training = self.report.training
        if training is None or not training.trained:
            return None
        if self.shows == VARIANTS:
            return variant_plots(trained_variants()) if is_small(self.workload) else None
        return course_plots(self.report, training) if self.shows == TRAINING else None


class JobsStudy(Study[JobsState, JobsState]):
    """A table of heads and jobs, their distances, and training.

    A press on a head switches it off, or shows it on the board if the model is not known.
    """

    name, title, doing = "jobs", "Jobs of heads", "what heads do"
    choices, pictured, room = CHOICES, "Jobs of heads", QSizeF(430, 210)

    def lesson(self, said: Chosen) -> Chosen:
        off = " ".join(re.findall(r"\d+", said.get("off", "")))
        return {**super().lesson(said), "off": off}

    def hidden(self, trace: Trace, chosen: Chosen) -> frozenset[str]:
        known = model_place(trace.single_heads[0]) is not None
        return frozenset(() if known else ("off",))

    def needs(self, trace: Trace, view: View, chosen: Chosen) -> Hashable:
        head, row = trace.workload.single(view.snapshot.visit.head, view.report.row)
        return fitting_part(trace.single_heads[0], head, row), chosen["off"]

    def compute(self, trace: Trace, needs: Any, report: Report) -> JobsState:
        (w, inputs), (part, value) = trace.single_heads, needs
        layer, _, head = value.partition(" ")
        off = (int(layer), int(head)) if head else None
        found = head_report(w, inputs, part, off, report)
        return JobsState(found, w, off if found.training is None else found.training.off)

    def options(self, found: JobsState) -> Mapping[str, tuple[Option, ...]]:
        training = found.report.training
        trained = training is not None and training.trained
        heads = () if training is None else found.report.heads
        without = (Option(_value(head), f"without {head_name(head)}", "", "") for head in heads)
        shown = 4 if is_small(found.workload) else 3 if trained else 2
        return {"show": CHOICES[0].options[:shown], "off": (ALL_ON, *without)}

    def state(
        self, found: JobsState, chosen: Chosen, before: JobsState | None, changed: str
    ) -> JobsState:
        return replace(found, shows=chosen["show"])

    def follow(self, state: JobsState, view: View) -> JobsState:
        w = view.snapshot.program.workload
        head, row = w.single(view.snapshot.visit.head, view.report.row)
        same = (head, row) == (state.head, state.row)
        return state if same else replace(state, head=head, row=row)

    def press(self, state: JobsState, at: Hashable) -> JobsState | None:
        if not isinstance(at, tuple):
            return None
        head = state.report.heads[at[1]]
        if state.report.training is not None:
            return replace(state, off=None if head == state.off else head)
        if head[0] != state.current[0]:
            return replace(state, wanted=head[0])
        if head[1] not in state.workload.picked:
            return None
        return replace(state, head=state.workload.picked.index(head[1]))

    def takes(self, before: JobsState, after: JobsState) -> Chosen:
        return {"off": _value(after.off)}

    def explains(self, before: JobsState, after: JobsState) -> tuple[int, int] | None:
        return None if after.head == before.head else (after.head, after.row)

    def leads(self, before: JobsState, after: JobsState) -> tuple[Scenario, str] | None:
        """Return the run of the layer whose head was pressed."""
        if after.wanted is None:
            return None
        said = {"input": {"layer": after.wanted}}
        return with_values(after.workload.scenario, said), f"layer {after.wanted}"

    def proposes(self, state: JobsState, at: Hashable) -> tuple[Scenario, str] | None:
        """Return the same layer at another moment of training."""
        training, file = state.report.training, state.workload.file
        if training is None or file is None or not isinstance(at, int) or at == training.step:
            return None
        path = file.path.with_name(f"step-{at:04}-layer{training.layer}{file.path.suffix}")
        changed = with_values(state.workload.scenario, {"input": {"path": str(path)}})
        return changed, f"step {at} of training"

    def plot(self, state: JobsState) -> PlotModel | None:
        return None if state.plots is None else state.plots[0]

    def words(self, state: JobsState) -> Words:
        if state.shows == DISTANCES:
            each = ", each as layer·head" if state.report.layers else ""
            return Words(f"How unlike heads are{each}")
        return Words(title(state.report), "", tuple(notes(state.report)))

    def described(self, state: JobsState) -> tuple[str, ...]:
        head, told, *said = super().described(state)
        more = pairs if state.shows == DISTANCES else rows
        return head, told, *more(state.report), *said

    def picture(self, state: JobsState) -> Box:
        return _distances(state) if state.shows == DISTANCES else _table(state)


JOBS_STUDY = JobsStudy()


def is_small(w: Workload) -> bool:
    """Return whether a run is of the small transformer whose variants come with Tilescope."""
    place = model_place(w)
    return place is not None and place[0] == TRAINED.parent / "small"


def _value(head: HeadName | None) -> str:
    """Return the value of the choice of a head."""
    return "" if head is None else f"{head[0]} {head[1]}"


def _table(state: JobsState) -> Box:
    """Return the table of heads and jobs."""
    report, found = state.report, list(columns(state.report))
    body = tuple(
        BoxRow(
            Struck((head_name(head), short_name(head)), "faint" if head == state.off else "text",
                   size=12, struck=head == state.off),
            tuple(_cell(each.texts[n], each.values[n] if each.values else None) for each in found),
        )
        for n, head in enumerate(report.heads)
    )  # fmt: skip
    after = tuple(
        BoxRow(Text(words, "muted"), tuple(_cell(each.after[n], size=LABEL) for each in found))
        for n, words in enumerate(_AFTER[: 1 if report.training is None else 2])
    )
    heads = (Head(""), *(Head(each.headings, each.group, each.goes) for each in found))
    return BoxTable(heads, body, after, state.at, framed=True, even=True, id="head", grow=1)


def _cell(words: str, value: float | None = None, size: float = 12) -> FigureText:
    shaded = value is not None and value == value
    return FigureText(words, "text" if shaded else "muted", CENTRE, size,
                  value=value if shaded else None)  # fmt: skip


def _distances(state: JobsState) -> Box:
    """Return how unlike every two heads are, with the nearest and the farthest pair."""
    said = pairs(state.report)
    told = tuple(
        Paragraph(each, "text" if n < len(said) - 1 else "muted") for n, each in enumerate(said)
    )
    square = Squares(state, grow=1)
    beside = Row((square, Column((*told, Box(grow=1)), gap=0, share=0.33)), gap=12)
    return Either(beside, Column((square, *told), gap=0), 1.35, grow=1)


@dataclass(frozen=True, eq=False)
class Squares(Box):
    """Distances as a square with the heads at the left and below."""

    state: JobsState

    def most_width(self, style: Style, height: float) -> float:
        names = max(text_width(style.text_font(LABEL), each) for each in self._names(head_name))
        return names + style.px(6) + self._side(style, height)

    def _side(self, style: Style, height: float) -> float:
        most = style.px(_WIDEST) * len(self.state.report.heads)
        return max(min(height - style.px(LINE), most), style.px(40))

    def _names(self, name: Callable[[HeadName], str]) -> list[str]:
        return [name(head) for head in self.state.report.heads]

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        heads, px, font = self.state.report.heads, style.px, style.text_font(LABEL)
        most = self._side(style, rect.height())
        short, long = (max(text_width(font, each) for each in self._names(name)) + px(6)
                       for name in (short_name, head_name))  # fmt: skip
        left = long if rect.width() - long >= 0.85 * most else short
        side = max(min(rect.width() - left, most), px(40))
        one, box = side / len(heads), QRectF(rect.x() + left, rect.y(), side, side)
        heat = Heat(self.state.report.distances.astype(np.float32), 0.0, 1.0, "S")
        words = {
            at: GridCell("0" if value < _TINY else f"{value:.2f}".removeprefix("0"))
            for at, value in np.ndenumerate(self.state.report.distances)
        }
        yield from CellGrid((len(heads),) * 2, words, (_WIDEST, _WIDEST), heat=heat).place(
            style, box
        )
        down, across = (max(1, round(room / one + 0.49)) for room in (px(13), short))
        for n, head in enumerate(heads):
            tone = "current" if head == self.state.current else "muted"
            if n % down == 0:
                place = QRectF(rect.x(), box.y() + (n + 0.5) * one - px(7), left - px(4), px(14))
                yield Placed(Text((head_name(head), short_name(head)), tone, RIGHT), place)
            if n % across == 0:
                x = box.x() + (n + 0.5) * one
                place = QRectF(x - short / 2, box.bottom() + px(1), short, px(14))
                yield Placed(Text(short_name(head), tone, CENTRE), place)


_BOTH = 170
"""Height below which there is no room for the losses."""


@guarded
class JobsPanel(StudyPanel[JobsState, JobsState]):
    """The study of jobs; two plots of one size have the same axis of steps."""

    def __init__(self, session: Session) -> None:
        self.losses = PlotView()
        self.losses.hide()
        super().__init__(session, JOBS_STUDY)
        self.losses.setParent(self)
        self.losses.picked.connect(self.pick)
        self.bar.fit_pressed.connect(self.losses.fit)
        self.losses.zoomed.connect(self.bar.fit_button.setEnabled)

    def forget(self) -> None:
        super().forget()
        self.plot.hide()
        self.losses.hide()
        self.picture.show()

    def show_view(self, view: View, model: None = None) -> None:
        """Show a view; heads of another run are not shown until its own are known."""
        if self._asked is not None and self._asked[0] is not self._session.trace:
            self.forget()
        super().show_view(view, model)

    def completed(self, state: JobsState) -> JobsState:
        if state.plots is not None:
            self.losses.show_model(state.plots[1])
        return state

    def set_style(self, style: Style) -> None:
        with self.losses.laid_out_once():
            self.losses.set_style(style)
            super().set_style(style)

    def resizeEvent(self, event: QResizeEvent) -> None:
        with self.losses.laid_out_once():
            super().resizeEvent(event)

    def arrange(self) -> None:
        super().arrange()
        whole = self.plot.geometry()
        both = not self.plot.isHidden() and whole.height() >= self.style_now.px(_BOTH)
        if both:
            whole.setHeight(whole.height() // 2)
            self.plot.setGeometry(whole)
            self.losses.setGeometry(whole.translated(0, whole.height()))
        self.losses.setVisible(both)
