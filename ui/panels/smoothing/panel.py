"""The dock that shows attention as a kernel smoother, and other scores."""

from __future__ import annotations

from simulator.base.choices import Choice, Option
from simulator.lesson.tables import ChooseTable
from simulator.run.trace import Trace
from simulator.study.smoothing.regression import BANDWIDTHS, Regression, regression
from ui.look.theme import Style
from ui.look.units import number_text
from ui.panels.base import StatePicture
from ui.panels.plot_panel import PlotPanel
from ui.panels.smoothing.maps import factor_words, paint_factors
from ui.panels.smoothing.plots import again_plot, features_plot, keys_plot, regression_plot
from ui.panels.smoothing.scores import paint_scores, scores_summary
from ui.panels.smoothing.state import (
    KernelState,
    at_row,
    kernel_state,
    with_again,
    with_estimates,
    with_query_at,
)
from ui.plots.widget import load_plots
from ui.session.session import Session
from ui.session.tasks import Report
from ui.session.view import View

CHOICES = (
    Choice("view", (
        Option("keys", "Keys", "Keys",
               "Keys of this head in the plane in which they spread most, as large as the row's "
               "weights, and the mean of the keys by weight (Tsai et al. 2019)."),
        Option("factors", "Factors", "Factors",
               "A weight is a factor of the key's norm times a radial kernel of its distance from "
               "the query (Tsai et al. 2019, section 3)."),
        Option("regression", "Regression", "Regr.",
               "Attention over examples as keys and values is the Nadaraya–Watson estimator "
               "(Nadaraya 1964, Watson 1964)."),
        Option("again", "Again", "Again",
               "The same attention again and again: rows become the same, the rank falls to one "
               "(Dong et al. 2021)."),
        Option("features", "Features", "Feat.",
               "Random features in place of the softmax: how far O is from it, over their number, "
               "with the spread over draws (Choromanski et al. 2021)."),
        Option("scores", "Scores", "Scores",
               "Additive, cosine and dot product: weights of this row, FLOPs of a pair, and what "
               "is a matrix product (Bahdanau et al. 2015, Luong et al. 2015)."),
    )),
    Choice("h", tuple(
        Option(str(h), f"h = {number_text(h, 2)}", "",
               "Bandwidth of the kernel; the temperature of the softmax is its square.")
        for h in BANDWIDTHS
    ), listed=True),
    Choice("examples", tuple(
        Option(str(seed), f"seed {seed}", "", "Which examples are drawn.") for seed in range(8)
    ), listed=True),
)  # fmt: skip
_OF_REGRESSION = ("h", "examples")
_KEYS, _AGAIN, _FEATURES = "keys", "again", "features"


class KernelPanel(PlotPanel[None]):
    """Keys as points, two factors as maps, regression, repeated attention, and other scores.

    What is shown is of the head and row that the board explains; it is made beside the window.
    """

    def __init__(self, session: Session) -> None:
        super().__init__("kernel_panel", "Kernel", CHOICES)
        self._session = session
        self.view = _KEYS
        self.state: KernelState | None = None
        self.found: Regression | None = None
        self.bandwidth, self.seed = BANDWIDTHS[2], 0
        self._trace: Trace | None = None
        self._wanted: tuple[Trace, int, int] | None = None
        self.maps: StatePicture[KernelState] = StatePicture(self, "factors", paint_factors)
        self.scores: StatePicture[KernelState] = StatePicture(self, "scores", paint_scores)
        for name, value in (("view", self.view), ("h", str(self.bandwidth)), ("examples", "0")):
            self.bar.show_chosen(name, value)
        self._show_parts()
        self.plot.picked.connect(self.take)
        self.plot.moved.connect(self.move_query)

    # --- what is shown --------------------------------------------------------------------

    def forget(self) -> None:
        self._trace = self._wanted = None

    def show_view(self, view: View, model: None = None) -> None:
        """Show a view: another run, head or row changes what is shown."""
        trace = self._session.trace
        if trace is None or view.snapshot.program is not trace.program:
            return
        head, row = trace.workload.single(view.snapshot.visit.head, view.report.row)
        wanted = (trace, head, row)
        if wanted == self._wanted:
            return
        self._wanted = wanted
        state = self.state
        if state is not None and self._trace is trace and state.points.head == head:
            moved = at_row(state, row)
            if moved is not None:
                self.state = moved
                self._draw()
                return
        self._compute(trace, head, row)

    def _compute(self, trace: Trace, head: int, row: int) -> None:
        view = self.view

        def job(report: Report) -> KernelState:
            load_plots()
            single, inputs = trace.single_heads
            state = kernel_state(single, inputs, head, row)
            if view == _FEATURES:
                return with_estimates(state, inputs, report)
            return with_again(state) if view == _AGAIN else state

        def done(state: KernelState) -> None:
            if self._wanted is None or self._wanted[0] is not trace or self._wanted[1] != head:
                return
            self._trace = trace
            self.state = at_row(state, self._wanted[2]) or state
            if self._lacks():  # it was chosen meanwhile
                self._compute(*self._wanted)
            else:
                self._draw()

        self._session.tasks.start("kernel", "keys of a head", job, done)

    def _lacks(self) -> bool:
        """Whether something is to be shown that takes longer, and has not been computed."""
        state = self.state
        if state is None:
            return False
        if self.view == _FEATURES:
            return not (state.estimates or state.unfit)
        return self.view == _AGAIN and not (state.again or state.why)

    def choose(self, name: str, value: str) -> None:
        """Accept a choice: what is shown, the bandwidth, the examples."""
        if name == "view":
            self.view = value
            self._show_parts()
            self.arrange()
            if self._wanted is not None and self._lacks():
                self._compute(*self._wanted)
                return
        elif name == "h":
            self.bandwidth = float(value)
        else:
            self.seed = int(value)
        self._draw()

    def take_choices(self, choices: ChooseTable) -> None:
        """Show what a lesson has chosen."""
        self.bar.choose("view", choices.kernel or _KEYS)

    def _show_parts(self) -> None:
        for name in _OF_REGRESSION:
            self.bar.show_choice(name, self.view == "regression")
        pictures = {"factors": self.maps, "scores": self.scores}
        for name, picture in pictures.items():
            picture.setVisible(self.view == name)
        self.plot.setVisible(self.view not in pictures)

    def _draw(self) -> None:
        state = self.state
        if state is None:
            return
        if self.view == _KEYS:
            self.show_plot(keys_plot(state, moves=not self.bar.isHidden()))
        elif self.view == _AGAIN:
            if not self._lacks():
                self.show_plot(again_plot(state))
        elif self.view == _FEATURES:
            if not self._lacks():
                self.show_plot(features_plot(state))
        elif self.view == "regression":
            self.found = regression(self.seed, self.bandwidth)
            self.show_plot(regression_plot(self.found))
        else:
            picture = self.maps if self.view == "factors" else self.scores
            words = (
                " ".join(factor_words(state)) if self.view == "factors" else scores_summary(state)
            )
            picture.state = state
            picture.setAccessibleDescription(words)
            self.setAccessibleDescription(words)
            picture.update()

    def move_query(self, x: float, y: float) -> None:
        """Show what the row would read with its query at another place of the plane."""
        if self.state is not None and self.view == _KEYS:
            self.state = with_query_at(self.state, (x, y))
            self._draw()

    # --- what it changes ------------------------------------------------------------------

    def take(self, pick: object) -> None:
        """Explain the row of a query that was clicked."""
        trace, state = self._trace, self.state
        if trace is None or state is None or trace is not self._session.trace:
            return
        assert isinstance(pick, int)
        if pick == state.row:  # where its query is, if that was moved
            self.state = at_row(state, pick)
            self._draw()
            return
        self._session.explain(state.points.head, pick)

    def show_controls(self, on: bool) -> None:
        super().show_controls(on)
        self._draw()

    # --- looks ----------------------------------------------------------------------------

    def set_style(self, style: Style) -> None:
        super().set_style(style)
        for picture in (self.maps, self.scores):
            picture.style_now = style
            picture.update()

    def arrange(self) -> None:
        super().arrange()
        for picture in (self.maps, self.scores):
            picture.setGeometry(self.plot.geometry())
