"""Hands of clocks, one vector at all places, and scores over distance: how positions count."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QSizeF

from simulator.run.trace import Trace
from simulator.study.positions.choices import CHOICES, CLOCKS, DIALS, FAR, SHOWN_IN, WAVES
from simulator.study.positions.scores import PositionsState, positions_state
from ui.kit.boxes import Box
from ui.panels.positions.pictures import Clocks, Maps, dials, waves
from ui.panels.positions.plots import far_plot
from ui.panels.positions.words import clock_words, dial_words, map_words, wave_words
from ui.panels.study import Chosen, Study, Words
from ui.plots.model import PlotModel
from ui.plots.widget import load_plots
from ui.session.tasks import Report
from ui.session.view import View


class Positions(Study[PositionsState, PositionsState]):
    """What positions make of the query of the head and row that the board explains."""

    name, title, doing = "positions", "Positions", "positions of a row"
    pictured = "Pairs as hands of clocks, or one vector at all places"
    choices, room = CHOICES, QSizeF(420, 230)

    def hidden(self, trace: Trace, chosen: Chosen) -> frozenset[str]:
        return frozenset(name for name, views in SHOWN_IN.items() if chosen["view"] not in views)

    def needs(self, trace: Trace, view: View, chosen: Chosen) -> Hashable:
        place = trace.workload.single(view.snapshot.visit.head, view.report.row)
        return *place, *(int(chosen[name]) for name in ("shift", "trained", "factor"))

    def compute(self, trace: Trace, needs: Any, report: Report) -> PositionsState:
        load_plots()
        return positions_state(*trace.single_heads, *needs)

    def state(
        self, found: PositionsState, chosen: Chosen, before: PositionsState | None, changed: str
    ) -> PositionsState:
        return replace(found, view=chosen["view"], hands=chosen["hands"])

    def plot(self, state: PositionsState) -> PlotModel | None:
        return far_plot(state) if state.view == FAR else None

    def picture(self, state: PositionsState) -> Box:
        if state.view == DIALS:
            return dials(state)
        if state.view == WAVES:
            return waves(state)
        return Clocks(state) if state.view == CLOCKS else Maps(state.kinds)

    def words(self, state: PositionsState) -> Words:
        if state.view == DIALS:
            return dial_words(state)
        if state.view == WAVES:
            return wave_words(state)
        return clock_words(state) if state.view == CLOCKS else map_words(state)


POSITIONS = Positions()
