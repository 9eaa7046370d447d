"""Attention as a kernel smoother (Tsai et al. 2019), and other scores: the Kernel smoother dock."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QSizeF

from simulator.run.trace import Trace
from simulator.study.smoothing.choices import (
    AGAIN,
    CHOICES,
    FACTORS,
    FEATURES,
    KEYS,
    REGRESSION,
    SCORES,
)
from simulator.study.smoothing.kernel_smoother import MOST
from simulator.study.smoothing.regression import regression
from ui.kit.boxes import Box
from ui.panels.smoothing.maps import FactorMaps, words_of_factors
from ui.panels.smoothing.plots import again_plot, features_plot, keys_plot, regression_plot
from ui.panels.smoothing.scores import rows_of_scores, scores, words_of_scores
from ui.panels.smoothing.state import (
    SmoothingState,
    at_row,
    smoothing_state,
    with_again,
    with_estimates,
    with_query_at,
)
from ui.panels.study import Chosen, Study, Words
from ui.plots.model import PlotModel
from ui.plots.widget import load_plots
from ui.session.tasks import Report
from ui.session.view import View

_PLOTS = {KEYS: keys_plot, AGAIN: again_plot, FEATURES: features_plot}


class SmoothingStudy(Study[SmoothingState, SmoothingState]):
    """Keys as points, two factors as maps, regression, repeated attention, and other scores.

    What is shown is of the head and row that the board explains.
    """

    name, title, doing = "kernel", "Kernel smoother", "keys of a head"
    pictured = "Factors, or scores"
    choices, room = CHOICES, QSizeF(440, 250)

    def hidden(self, trace: Trace, chosen: Chosen) -> frozenset[str]:
        return frozenset(() if chosen["view"] == REGRESSION else ("h", "examples"))

    def needs(self, trace: Trace, view: View, chosen: Chosen) -> Hashable:
        """Return the head, the row if not all rows are taken, and what takes seconds."""
        w = trace.workload
        head, row = w.single(view.snapshot.visit.head, view.report.row)
        whole = max(trace.single_heads[0].seqlen_q, w.seqlen_k) <= MOST
        slow = chosen["view"] if chosen["view"] in (AGAIN, FEATURES) else ""
        return head, 0 if whole else row, slow

    def compute(self, trace: Trace, needs: Any, report: Report) -> SmoothingState:
        load_plots()
        (w, inputs), (head, row, slow) = trace.single_heads, needs
        state = smoothing_state(w, inputs, head, row)
        if slow == FEATURES:
            return with_estimates(state, inputs, report)
        return with_again(state) if slow == AGAIN else state

    def state(
        self, found: SmoothingState, chosen: Chosen, before: SmoothingState | None, changed: str
    ) -> SmoothingState:
        shown = regression(int(chosen["examples"]), float(chosen["h"]))
        state = replace(found, shows=chosen["view"], regression=shown)
        if before is None or before.points is not found.points:
            return state
        return replace(state, row=before.row, moved=before.moved)

    def follow(self, state: SmoothingState, view: View) -> SmoothingState:
        w = view.snapshot.program.workload
        head, row = w.single(view.snapshot.visit.head, view.report.row)
        if (head, row) == (state.points.head, state.row) or head != state.points.head:
            return state
        return at_row(state, row) or state

    def seen(self, state: SmoothingState, *, controls: bool) -> SmoothingState:
        return replace(state, moves=controls)

    def press(self, state: SmoothingState, at: Hashable) -> SmoothingState | None:
        """Explain the row of a query, or bring its query back to where it was."""
        return at_row(state, at) if isinstance(at, int) else None

    def explains(self, before: SmoothingState, after: SmoothingState) -> tuple[int, int] | None:
        return None if after.row == before.row else (after.points.head, after.row)

    def move(self, state: SmoothingState, x: float, y: float) -> SmoothingState | None:
        return with_query_at(state, (x, y)) if state.shows == KEYS else None

    def plot(self, state: SmoothingState) -> PlotModel | None:
        if state.shows == REGRESSION and state.regression is not None:
            return regression_plot(state.regression)
        return _PLOTS[state.shows](state) if state.shows in _PLOTS else None

    def words(self, state: SmoothingState) -> Words:
        return words_of_factors(state) if state.shows == FACTORS else words_of_scores(state)

    def described(self, state: SmoothingState) -> tuple[str, ...]:
        title, told, *said = super().described(state)
        return title, told, *(rows_of_scores(state) if state.shows == SCORES else ()), *said

    def picture(self, state: SmoothingState) -> Box:
        return FactorMaps(state, grow=1) if state.shows == FACTORS else scores(state)


SMOOTHING = SmoothingStudy()
