"""The dock that shows a latent attended to in two ways, and what sharing a cache costs."""

from __future__ import annotations

from simulator.base.choices import Choice, Option, one_of
from simulator.lesson.tables import ChooseTable
from simulator.run.trace import Trace
from simulator.study.latent.sharing import SharedLayer, is_shown, shared_layer, shipped_layer
from simulator.study.latent.two_ways import Quantity, both_ways, latent_layer
from ui.panels.latent.plots import QUANTITIES, WAYS, TwoWays, crossover_plot, sharing_plot
from ui.panels.plot_panel import PlotPanel
from ui.plots.widget import load_plots
from ui.session.session import Session
from ui.session.tasks import Report
from ui.session.view import View

_WAYS, _SHARING = "ways", "sharing"
_QUANTITY_TIP = (
    "Of attention, from its tile program with the tiles of the run, and of the projections, which "
    "move each operand once."
)
CHOICES = (
    Choice("view", (
        Option(_WAYS, "Absorbed or not", "Absorbed",
               "The projections of a latent absorbed in queries and output, or keys and values of "
               "every head made of it first (DeepSeek-V2, section 2.1.2)."),
        Option(_SHARING, "What sharing costs", "Sharing",
               "How far O of a trained layer is off if its heads share their keys and values, or "
               "if a latent stands for them, without retraining."),
    )),
    Choice("quantity", (
        Option("flops", "FLOPs", "FLOPs", _QUANTITY_TIP),
        Option("bytes", "Bytes", "Bytes", _QUANTITY_TIP),
        Option("time", "Time", "Time", "The longer of both at the rates of the GPU's data sheet."),
    )),
)  # fmt: skip


class LatentPanel(PlotPanel[None]):
    """Absorbed beside made keys and values over the queries, and errors of smaller caches.

    What is shown is of the run, if it has a latent, or is of a trained layer; else of a model, or
    of a shipped layer. It is made beside the window.
    """

    def __init__(self, session: Session) -> None:
        super().__init__("latent_panel", "Latent", CHOICES)
        self._session = session
        self.view = _WAYS
        self.quantity: Quantity = "flops"
        self.ways: TwoWays | None = None
        self.shared: SharedLayer | None = None
        self._trace: Trace | None = None
        self.bar.show_chosen("view", self.view)
        self.bar.show_chosen("quantity", self.quantity)

    def forget(self) -> None:
        self._trace = None

    def show_view(self, view: View, model: None = None) -> None:
        """Show a view: another run changes what is shown."""
        trace = self._session.trace
        if trace is None or trace is self._trace:
            return
        self._trace, self.ways, self.shared = trace, None, None
        self._compute(trace)

    def choose(self, name: str, value: str) -> None:
        """Accept a choice: what is shown, and which figure of it."""
        if name == "quantity":
            self.quantity = one_of(QUANTITIES, value)
        else:
            self.view = value
            self.bar.show_choice("quantity", self.view == _WAYS)
            self.arrange()
        self._draw()

    def take_choices(self, choices: ChooseTable) -> None:
        """Show what a lesson has chosen."""
        self.bar.choose("view", choices.latent or _WAYS)

    def _compute(self, trace: Trace) -> None:
        """Make what is to be shown and is not there yet."""
        view = self.view

        def job(report: Report) -> TwoWays | SharedLayer:
            load_plots()
            return two_ways_of(trace) if view == _WAYS else shared_of(trace, report)

        def done(found: TwoWays | SharedLayer) -> None:
            if trace is not self._trace:
                return
            if isinstance(found, TwoWays):
                self.ways = found
            else:
                self.shared = found
            self._draw()

        self._session.tasks.start("latent", "what a latent costs", job, done)

    def _draw(self) -> None:
        found = self.ways if self.view == _WAYS else self.shared
        if found is None:
            if self._trace is not None:
                self._compute(self._trace)
        elif isinstance(found, TwoWays):
            self.show_plot(crossover_plot(found, self.quantity))
        else:
            self.show_plot(sharing_plot(found))


def two_ways_of(trace: Trace) -> TwoWays:
    """Return what both ways cost for a run, or for a model if the run has no latent."""
    single, inputs = trace.single_heads
    layer = latent_layer(single)
    own = layer.model is None
    prices = {way: tuple(layer.price(way, n) for n in layer.counts) for way in WAYS}
    crossovers = {each: layer.crossover(each) for each in QUANTITIES}
    both = both_ways(layer, inputs if own else None)
    return TwoWays(layer, prices, crossovers, both, single.seqlen_q if own else None)


def shared_of(trace: Trace, report: Report) -> SharedLayer:
    """Return what smaller caches cost a run's layer, or the shipped one."""
    single, inputs = trace.single_heads
    return shared_layer(single, inputs, report) if is_shown(single) else shipped_layer()
