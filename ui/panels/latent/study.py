"""A latent attended to in two ways, and what sharing a cache costs: the Latent dock."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from simulator.base.choices import one_of
from simulator.run.trace import Trace
from simulator.study.latent.choices import CHOICES, SHARING
from simulator.study.latent.sharing import SharedLayer, is_shown, shared_layer, shipped_layer
from simulator.study.latent.two_ways import QUANTITIES, TwoWays, two_ways
from ui.panels.latent.plots import sharing_plot, ways_plot
from ui.panels.study import Chosen, Study
from ui.plots.model import PlotModel
from ui.session.tasks import Report
from ui.session.view import View

Found = TwoWays | SharedLayer


class Latent(Study[Found, PlotModel]):
    """Absorbed beside made keys and values over the queries, and errors of smaller caches.

    The plots are of the run, if it has a latent or is of a trained layer; else of a model, or of
    a shipped layer.
    """

    name, title, doing, choices = "latent", "Latent", "what a latent costs", CHOICES

    def hidden(self, trace: Trace, chosen: Chosen) -> frozenset[str]:
        return frozenset({"quantity"} if chosen["view"] == SHARING else ())

    def needs(self, trace: Trace, view: View, chosen: Chosen) -> Hashable:
        return chosen["view"]

    def compute(self, trace: Trace, needs: Any, report: Report) -> Found:
        w, inputs = trace.single_heads
        if needs != SHARING:
            return two_ways(w, inputs)
        return shared_layer(w, inputs, report) if is_shown(w) else shipped_layer()

    def state(
        self, found: Found, chosen: Chosen, before: PlotModel | None, changed: str
    ) -> PlotModel:
        if isinstance(found, SharedLayer):
            return sharing_plot(found)
        return ways_plot(found, one_of(QUANTITIES, chosen["quantity"]))

    def plot(self, state: PlotModel) -> PlotModel:
        return state


LATENT = Latent()
