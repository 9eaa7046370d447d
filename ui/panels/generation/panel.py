"""The dock that shows generation: a step, and what all of them cost."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSlider

from simulator.lesson.tables import ChooseTable
from simulator.run.trace import Trace
from simulator.study.generation.steps import (
    AT_ONCE,
    Generation,
    Quantity,
    generation,
    shipped_run,
    suits,
)
from ui.look.theme import Style
from ui.panels.base import StatePicture
from ui.panels.generation.picture import GenerationState, paint_generation
from ui.panels.generation.plots import QUANTITIES, cost_plot, equal_plot
from ui.panels.plot_panel import PlotPanel
from ui.plots.widget import load_plots
from ui.session.session import Session
from ui.session.tasks import Report
from ui.session.view import View
from ui.widgets.choice_bar import Choice, Option, one_of

_EQUAL = "equal"
_TIP = "Of attention, from the tile programs of the steps, with the tiles of the run."
CHOICES = (
    Choice("shows", (
        Option("bytes", "Bytes", "Bytes", _TIP),
        Option("flops", "FLOPs", "FLOPs", _TIP),
        Option("time", "Time", "Time", "The longer of both at the rates of the GPU's data sheet."),
        Option(_EQUAL, "Same rows?", "Same?",
               "How far the rows of steps are from those of one causal pass; and what becomes of "
               "old rows if nothing is masked."),
    )),
    Choice("at once", tuple(
        Option(str(n), "one query a step" if n == 1 else f"{n} queries a step", "",
               "Several at once: guesses of a draft model, all of them taken "
               "(Leviathan et al. 2023).")
        for n in AT_ONCE
    ), listed=True),
)  # fmt: skip
_SHARE = 0.52
"""Share of the room that the picture takes."""


class GenerationPanel(PlotPanel[None]):
    """A prompt in one pass, then steps: the step at hand as a picture, all of them as a plot.

    A run that could not have been generated (cross attention, more than causal masks) is replaced
    by a layer that comes with Tilescope.
    """

    def __init__(self, session: Session) -> None:
        super().__init__("generation_panel", "Generation", CHOICES)
        self._session = session
        self.shows: str = "bytes"
        self.at_once = AT_ONCE[0]
        self.found: Generation | None = None
        self._asked: tuple[Trace, int, int] | None = None
        self.picture: StatePicture[GenerationState] = StatePicture(
            self, "a step of generation", paint_generation
        )
        self.slider = QSlider(Qt.Orientation.Horizontal, self)
        self.slider.setObjectName("step")
        self.slider.setAccessibleName("Step")
        self.slider.setToolTip("Which step is shown; a click on a point of the plot shows its own.")
        self.slider.setPageStep(8)
        self.slider.valueChanged.connect(self._draw)
        self.plot.picked.connect(self.take)
        self.bar.show_chosen("shows", self.shows)
        self.bar.show_chosen("at once", str(self.at_once))

    def forget(self) -> None:
        self._asked = None

    def show_view(self, view: View, model: None = None) -> None:
        """Show a view: another run or head changes what is shown."""
        trace = self._session.trace
        if trace is None or view.snapshot.program is not trace.program:
            return
        head, _ = trace.workload.single(view.snapshot.visit.head, view.report.row)
        self._ask(trace, head)

    def _ask(self, trace: Trace, head: int) -> None:
        asked = (trace, head, self.at_once)
        if asked == self._asked:
            return
        self._asked = asked
        at_once = self.at_once

        def job(report: Report) -> tuple[Generation, GenerationState]:
            load_plots()
            w, inputs = trace.single_heads
            shown = head
            if not suits(w):
                (w, inputs), shown = shipped_run(), 0
            found = generation(w, inputs, shown, at_once, report)
            kv = found.workload.kv_head_of[shown]
            return found, GenerationState(found, 1, inputs.k[kv], inputs.v[kv])

        def done(made: tuple[Generation, GenerationState]) -> None:
            if self._asked != asked:
                return
            self.found, self.picture.state = made
            blocked = self.slider.blockSignals(True)
            self.slider.setRange(0, len(self.found.steps) - 1)
            self.slider.setValue(max(self.slider.value(), 1))
            self.slider.blockSignals(blocked)
            self._draw()

        self._session.tasks.start("generation", "steps of generation", job, done)

    def choose(self, name: str, value: str) -> None:
        """Accept a choice: what the plot shows, and how many queries a step has."""
        if name == "at once":
            self.at_once = int(value)
            if self._asked is not None:
                self._ask(*self._asked[:2])
            return
        self.shows = value
        self._draw()

    def take(self, pick: object) -> None:
        """Show the step of a point that was clicked."""
        assert isinstance(pick, int)
        self.slider.setValue(pick)

    def take_choices(self, choices: ChooseTable) -> None:
        """Show what a lesson has chosen."""
        self.bar.choose("shows", choices.generation or "bytes")

    def _draw(self) -> None:
        found, state = self.found, self.picture.state
        if found is None or state is None:
            return
        at = self.slider.value()
        self.picture.state = state = GenerationState(found, at, state.k, state.v)
        self.picture.setAccessibleDescription(state.words[0])
        self.picture.update()
        if self.shows == _EQUAL:
            self.show_plot(equal_plot(found, at))
        else:
            quantity: Quantity = one_of(QUANTITIES, self.shows)
            self.show_plot(cost_plot(found, at, quantity))

    def show_controls(self, on: bool) -> None:
        self.slider.setVisible(on)
        super().show_controls(on)

    def set_style(self, style: Style) -> None:
        self.picture.style_now = style
        super().set_style(style)
        self.picture.update()

    def arrange(self) -> None:
        """Put the picture and the slider between the choices and the plot."""
        super().arrange()
        plot, high = self.plot.geometry(), 0 if self.slider.isHidden() else 22
        tall = round(_SHARE * (plot.height() - high))
        self.picture.setGeometry(plot.x(), plot.y(), plot.width(), tall)
        self.slider.setGeometry(plot.x(), plot.y() + tall, plot.width(), high)
        plot.setTop(plot.y() + tall + high + 2)
        self.plot.setGeometry(plot)
