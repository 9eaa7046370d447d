"""Thread blocks on multiprocessors by a model (Dao 2023, section 3.2), with traces of others."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter

from kernels.cuda.needs import block_needs, known_cubin
from simulator.base.errors import InputError, safe_text
from simulator.program.tile_program import TileProgram
from simulator.run.trace import Trace
from simulator.study.schedule.choices import CHOICES
from simulator.study.schedule.chrome import read_trace, write_trace
from simulator.study.schedule.clc_log import read_clc_log
from simulator.study.schedule.events import Events
from simulator.study.schedule.state import ScheduleState, TimelineRow, schedule_rows
from ui.kit.boxes import Box, Canvas, Column, Placed, Row, Tone, ink
from ui.kit.shapes import Paragraph, Text, axis
from ui.look.draw import CENTRE, RIGHT, outline
from ui.look.heat import hatching
from ui.look.kept import draw_kept
from ui.look.theme import Style
from ui.look.units import clock_text, plural, time_text
from ui.panels.schedule.words import figures, sentences, title, told
from ui.panels.study import Chosen, Study, Words
from ui.panels.study_panel import StudyPanel
from ui.safety.overrides import guarded
from ui.session.session import Session
from ui.session.tasks import Report
from ui.session.view import View

_FAINTEST = 0.25
"""Share of its colour that the block with the least work has."""
_TONES = 8
_LANE = 7
"""Least height of a lane with events; empty lanes take less room for it."""
_USED = 0.6
"""Largest share of the height for lanes with events."""
_NAME = 12
"""Letters of a lane's name, at most."""


@dataclass(frozen=True, eq=False)
class TimelineBox(Box):
    """Events on lanes, whose names are at the left; the pointer finds (`id`, event)."""

    events: Events
    seconds: float  # the time that the width stands for
    tone: str
    marks: tuple[tuple[int, Tone], ...]  # framed events
    widest: str  # the name that takes the most room
    lane: float = 0.0  # the height of a lane with events; lanes below the last one share the rest

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        events, left = self.events, _name("", self.widest).width(style)
        bars = rect.adjusted(left + style.px(5), 0, 0, 0)
        lane, used = bars.height() / max(len(events.lanes), 1), events.used
        if 0 < used < len(events.lanes):
            lane = max(lane, min(style.px(_LANE), _USED * bars.height() / used))
        yield Placed(replace(self, lane=lane), bars)
        names = _name(events.lanes[0], self.widest), _name(events.lanes[-1], self.widest)
        beside = QRectF(rect.x(), rect.y(), left, rect.height())
        yield from Column((names[0], Box(grow=1), names[1]), gap=0).place(style, beside)
        idle, rest = len(events.lanes) - used, bars.adjusted(0, used * lane, 0, 0)
        said = Text(f"{plural(idle, 'multiprocessor')} with nothing to do", "muted", CENTRE)
        place = QRectF(0, 0, said.width(style) + style.px(16), style.px(14))
        place.moveCenter(rest.center())
        if idle and rest.contains(place):
            yield Placed(
                Canvas(lambda inner, _, at: inner.fillRect(at, ink(style, "field"))), place
            )
            yield Placed(said, place)

    def spot(self, rect: QRectF, at: QPointF) -> Hashable:
        along = (at.x() - rect.x()) / rect.width() * self.seconds
        found = self.events.at((at.y() - rect.y()) / self.lane, along)
        return None if found is None else (self.id, found)

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        key = style.theme.name, style.scale, self.tone, self.seconds
        draw_kept(painter, self.events, key, rect, style.theme.field,
                  lambda inner: self._paint_bars(inner, style, rect))  # fmt: skip
        outline(painter, rect.adjusted(-1, -1, 1, 1), style.theme.grid)
        events, across = self.events, rect.width() / (self.seconds or 1.0)
        for n, tone in self.marks:
            x, wide = events.start[n] * across, (events.end[n] - events.start[n]) * across
            box = QRectF(rect.x() + float(x), rect.y() + float(events.top[n]) * self.lane,
                         max(float(wide), style.px(3)),
                         max(float(events.height[n]) * self.lane, style.px(3)))  # fmt: skip
            outline(painter, box.adjusted(-1, -1, 1, 1), ink(style, tone), max(style.px(2), 2))

    def _paint_bars(self, painter: QPainter, style: Style, bars: QRectF) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        events, lane, theme = self.events, self.lane, style.theme
        unused = bars.adjusted(0, math.ceil(events.used * lane), 0, 0)
        painter.fillRect(unused, hatching(theme.field, theme.border, style.scale))
        shares = np.linspace(_FAINTEST, 1, _TONES).tolist()
        tones = [ink(style, ("field", self.tone, share)) for share in shares]
        across = bars.width() / (self.seconds or 1.0)
        left, right = (np.floor(bars.x() + each * across) for each in (events.start, events.end))
        top, bottom = (np.floor(bars.y() + each * lane)
                       for each in (events.top, events.top + events.height))  # fmt: skip
        # A gap tells neighbours apart, where there is room for one.
        wide = np.where(right - left >= 4, right - left - 1, np.maximum(right - left, 1))
        high = np.where(bottom - top >= 4, bottom - top - 1, np.maximum(bottom - top, 1))
        tone = np.round(events.weight * (_TONES - 1)).astype(int)
        for n in np.flatnonzero(events.end > events.start).tolist():
            painter.fillRect(QRectF(left[n], top[n], wide[n], high[n]), tones[tone[n]])


def _name(name: str, widest: str) -> Text:
    """Return the name of a lane, which takes as much room as the widest."""
    return Text((name[:_NAME], widest), "muted", RIGHT, high=14, may_go=True)


def timelines(state: ScheduleState) -> Box:
    """Return all rows, each with its figures above its bars, and the axis that they share."""
    drawn = [row.events for row in state.shown if row.events]
    names = (each.lanes[n][:_NAME] for each in drawn for n in (0, -1))
    widest, rows = max(names, key=len, default=""), list[Box]()
    for n, row in enumerate(state.shown):
        title = Text(row.title, row.algorithm, bold=True)
        if row.events is None:
            rows.append(Column((title, Paragraph(row.why), Box(grow=1)), gap=0, grow=1))
            continue
        marks: list[tuple[int, Tone]] = [(each, "current") for each in state.working(row)]
        if state.pointed is not None and state.pointed[0] == n:
            marks.append((state.pointed[1], "text"))
        said = Text(figures(state, row), align=RIGHT, grow=1)
        bars = TimelineBox(row.events, state.across(row.events), row.algorithm, tuple(marks),
                           widest, id=n, name=n, grow=1, high=8)  # fmt: skip
        rows.append(Column((Row((title, said), gap=8), bars), gap=2, grow=1))
    if whole := state.seconds:
        marked = axis("0", clock_text(whole / 2, whole), time_text(whole))
        rows.append(Row((_name("", widest), replace(marked, grow=1)), gap=5))
    else:
        rows.append(Box(high=4))
    return Column(tuple(rows), gap=4)


class ScheduleStudy(Study[ScheduleState, ScheduleState]):
    """Thread blocks of the run, in several orders, beside other algorithms and splits."""

    name, title, doing = "schedule", "Schedule", "thread blocks on multiprocessors"
    pictured, choices = "Thread blocks over time", CHOICES

    def hidden(self, trace: Trace, chosen: Chosen) -> frozenset[str]:
        return frozenset({"order"} if chosen["what"] == "orders" else ())

    def needs(self, trace: Trace, view: View, chosen: Chosen) -> Hashable:
        return chosen["what"], chosen["order"]

    def compute(self, trace: Trace, needs: Any, report: Report) -> ScheduleState:
        return schedule_state(trace.program, *needs)

    def state(
        self, found: ScheduleState, chosen: Chosen, before: ScheduleState | None, changed: str
    ) -> ScheduleState:
        return before if changed and before is not None else found

    def follow(self, state: ScheduleState, view: View) -> ScheduleState:
        return replace(state, visit=view.snapshot.visit.index)

    def hover(self, state: ScheduleState, at: Hashable) -> ScheduleState | None:
        pointed = at if isinstance(at, tuple) else None
        return state if pointed == state.pointed else replace(state, pointed=pointed)

    def words(self, state: ScheduleState) -> Words:
        more = "A stronger colour is more work."
        return Words(title(state), told(state), (*state.sentences, more))

    def described(self, state: ScheduleState) -> tuple[str, ...]:
        head, *said = super().described(state)
        return head, *(f"{row.title}: {figures(state, row)[0]}" for row in state.shown), *said

    def picture(self, state: ScheduleState) -> Box:
        return timelines(state)


SCHEDULE = ScheduleStudy()


def schedule_state(program: TileProgram, what: str, order: str) -> ScheduleState:
    """Return the state for a run, at its first visit."""
    rows = schedule_rows(program, what, order, lambda w: block_needs(w, known_cubin(w)))
    state = ScheduleState(program, what, rows)
    return replace(state, sentences=tuple(filter(None, sentences(state))))


LOGS = (".log", ".txt")
"""Endings of files that are read as a log of CLC; any other file is read as a trace."""


@guarded
class SchedulePanel(StudyPanel[ScheduleState, ScheduleState]):
    """The study of schedules; a trace or a log of others is set below the model."""

    def __init__(self, session: Session) -> None:
        super().__init__(session, SCHEDULE)
        self._beside: tuple[TimelineRow, ...] = ()

    def forget(self) -> None:
        super().forget()
        self._beside = ()

    def completed(self, state: ScheduleState) -> ScheduleState:
        return replace(state, beside=self._beside)

    def write(self, path: Path, failed: Callable[[InputError], None]) -> None:
        """Write the model's rows as a trace, in the background; say why if writing fails."""
        state = self.state
        if state is None:
            return
        rows = [(row.title, row.events) for row in state.rows if row.events]
        note = " ".join(state.sentences)
        about = {"source": "Tilescope", "model": title(state)[0], "note": note}

        self._session.tasks.start(
            "schedule trace", "writing the trace", lambda _: write_trace(path, rows, about),
            lambda _: None, refused=failed,
        )  # fmt: skip

    def open(self, path: Path, failed: Callable[[InputError], None]) -> None:
        """Set a trace or a log of others below the model; say why if it cannot be read."""

        def done(found: Events) -> None:
            what = "trace" if found.timed else "log"
            name = f"{safe_text(path.name)}: a {what} from elsewhere"
            self._beside = (TimelineRow(name, "muted", events=found),)
            if self.state is not None:
                self.change(replace(self.state, pointed=None))

        is_log = path.suffix.lower() in LOGS
        self._session.reading.read(path, read_clc_log if is_log else read_trace, done, failed)
