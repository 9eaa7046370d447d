"""Which thread block runs on which multiprocessor when, by a model (Dao 2023, section 3.2)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from kernels.cuda.needs import block_needs, known_cubin
from simulator.program.tile_program import TileProgram
from simulator.run.trace import Trace
from simulator.study.schedule.choices import CHOICES
from simulator.study.schedule.state import ScheduleState, schedule_rows
from ui.kit.boxes import Box
from ui.panels.schedule.picture import timelines
from ui.panels.schedule.words import figures, sentences, title, told
from ui.panels.study import Chosen, Study, Words
from ui.session.tasks import Report
from ui.session.view import View


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
        return Words(title(state), told(state), state.sentences)

    def described(self, state: ScheduleState) -> tuple[str, ...]:
        head, *said = super().described(state)
        return head, *(f"{row.title}: {figures(state, row)[0]}" for row in state.shown), *said

    def picture(self, state: ScheduleState) -> Box:
        return timelines(state)


SCHEDULE = ScheduleStudy()


def schedule_state(program: TileProgram, what: str, order: str) -> ScheduleState:
    """Return what is shown of a run, at its first visit."""
    rows = schedule_rows(program, what, order, lambda w: block_needs(w, known_cubin(w)))
    state = ScheduleState(program, what, rows)
    return replace(state, sentences=tuple(filter(None, sentences(state))))
