"""The dock that shows how positions enter scores."""

from __future__ import annotations

from dataclasses import replace

from simulator.base.choices import Choice, Option
from simulator.lesson.tables import ChooseTable
from simulator.run.trace import Trace
from ui.look.theme import Style
from ui.look.units import count_text
from ui.panels.base import StatePicture
from ui.panels.plot_panel import PlotPanel
from ui.panels.positions.clocks import clock_words, paint_clocks
from ui.panels.positions.maps import map_words, paint_maps
from ui.panels.positions.plots import far_plot
from ui.panels.positions.state import Asked, PositionsState, positions_state
from ui.plots.widget import load_plots
from ui.session.session import Session
from ui.session.tasks import Report
from ui.session.view import View

SHIFTS = (1, 16, 1000, 100_000)
TRAINED = (256, 2048, 8192)
FACTORS = (2, 4, 8, 16)
CHOICES = (
    Choice("view", (
        Option("clocks", "Clocks", "Clocks",
               "Pairs of dimensions as hands of clocks, at every token, from fast to slow "
               "(Su et al. 2021)."),
        Option("maps", "One vector", "Vector",
               "One vector at all places: scores under RoPE, sinusoids, a learned table and ALiBi, "
               "and what a shift of all places does."),
        Option("far", "Distance", "Far",
               "Scores over distance, beyond the trained length: position interpolation, NTK-aware "
               "and YaRN (Chen et al. 2023, Peng et al. 2023)."),
    )),
    Choice("hands", (
        Option("angles", "angles alone", "", "By how much every place turns every pair."),
        Option("before", "q before", "", "Pairs of the run's queries before they are turned."),
        Option("turned", "q turned", "", "The same, each turned by its place: what scores see."),
    ), listed=True),
    Choice("shift", tuple(
        Option(str(n), f"shift {count_text(n)}", "", "Added to all places.") for n in SHIFTS
    ), listed=True),
    Choice("trained", tuple(
        Option(str(n), f"trained {count_text(n)}", "", "Tokens of the longest text of training.")
        for n in TRAINED
    ), listed=True),
    Choice("factor", tuple(
        Option(str(n), f"{n} × as long", "", "How much longer texts are to be.") for n in FACTORS
    ), listed=True),
)  # fmt: skip
_OF = {"hands": "clocks", "shift": "maps", "trained": "far", "factor": "far"}
"""In which view a choice means something."""
_FIRST = "clocks"


class PositionsPanel(PlotPanel[None]):
    """Clocks, one vector at all places, and scores over distance.

    What is shown is of the head and row that the board explains; it is made beside the window.
    """

    def __init__(self, session: Session) -> None:
        super().__init__("positions_panel", "Positions", CHOICES)
        self._session = session
        self.view = _FIRST
        self.asked = Asked()
        self.state: PositionsState | None = None
        self._wanted: tuple[Trace, int, int] | None = None
        self.clocks: StatePicture[PositionsState] = StatePicture(self, "clocks", paint_clocks)
        self.maps: StatePicture[PositionsState] = StatePicture(self, "one vector", paint_maps)
        self.bar.show_chosen("view", self.view)
        for name in _OF:
            self.bar.show_chosen(name, str(getattr(self.asked, name)))
        self._show_parts()

    def forget(self) -> None:
        self._wanted = None

    def show_view(self, view: View, model: None = None) -> None:
        """Show a view: another run, head or row changes what is shown."""
        trace = self._session.trace
        if trace is None or view.snapshot.program is not trace.program:
            return
        head, row = trace.workload.single(view.snapshot.visit.head, view.report.row)
        if (trace, head, row) != self._wanted:
            self._wanted = (trace, head, row)
            self._compute(trace, head, row)

    def _compute(self, trace: Trace, head: int, row: int) -> None:
        asked = self.asked

        def job(report: Report) -> PositionsState:
            load_plots()
            single, inputs = trace.single_heads
            return positions_state(single, inputs, head, row, asked)

        def done(state: PositionsState) -> None:
            if self._wanted == (trace, head, row) and asked == self.asked:
                self.state = state
                self._draw()

        self._session.tasks.start("positions", "positions of a row", job, done)

    def choose(self, name: str, value: str) -> None:
        """Accept a choice: what is shown, the shift, the lengths."""
        if name == "view":
            self.view = value
            self._show_parts()
            self.arrange()
            self._draw()
            return
        if name == "hands":
            self.asked = replace(self.asked, hands=value)
            if self.state is not None:
                self.state = replace(self.state, asked=self.asked)
            self._draw()
            return
        number = {name: int(value)}
        own = self.asked
        self.asked = replace(
            own,
            shift=number.get("shift", own.shift),
            trained=number.get("trained", own.trained),
            factor=number.get("factor", own.factor),
        )
        if self._wanted is not None:
            self._compute(*self._wanted)

    def take_choices(self, choices: ChooseTable) -> None:
        """Show what a lesson has chosen."""
        self.bar.choose("view", choices.positions or _FIRST)
        self.bar.choose("hands", choices.hands or Asked().hands)

    def _show_parts(self) -> None:
        for name, view in _OF.items():
            self.bar.show_choice(name, self.view == view)
        self.clocks.setVisible(self.view == "clocks")
        self.maps.setVisible(self.view == "maps")
        self.plot.setVisible(self.view == "far")

    def _draw(self) -> None:
        state = self.state
        if state is None:
            return
        if self.view == "far":
            self.show_plot(far_plot(state))
            return
        picture = self.clocks if self.view == "clocks" else self.maps
        words = " ".join(clock_words(state) if self.view == "clocks" else map_words(state))
        picture.state = state
        picture.setAccessibleDescription(words)
        self.setAccessibleDescription(words)
        picture.update()

    # --- looks ----------------------------------------------------------------------------

    def set_style(self, style: Style) -> None:
        super().set_style(style)
        for picture in (self.clocks, self.maps):
            picture.style_now = style
            picture.update()

    def arrange(self) -> None:
        super().arrange()
        for picture in (self.clocks, self.maps):
            picture.setGeometry(self.plot.geometry())
