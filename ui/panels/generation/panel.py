"""The dock that shows generation: a step, and what all of them cost."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QHideEvent
from PySide6.QtWidgets import QSlider

from simulator.base.choices import Choice, Option, one_of
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
from ui.look.draw import text_width
from ui.look.theme import Style
from ui.panels.base import StatePicture
from ui.panels.generation.picture import WAYS, GenerationState, Way, paint_generation
from ui.panels.generation.plots import QUANTITIES, cost_plot, equal_plot
from ui.panels.plot_panel import PlotPanel
from ui.plots.widget import load_plots
from ui.safety.overrides import guarded
from ui.session.panel_clock import PanelClock
from ui.session.session import Session
from ui.session.tasks import Report
from ui.session.view import View
from ui.widgets.choice_bar import Button, bar_sheet
from ui.widgets.sheet import set_sheet

_EQUAL = "equal"
_EACH, _SUMMED = "each", "summed"
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
    Choice("way", tuple(
        Option(way, words, "", "What a step computes: its own rows with a cache, all rows "
               "without one. Without the mask old rows change, so a cache would be wrong.")
        for way, words in zip(WAYS, ("with a cache", "all rows again", "no mask"), strict=True)
    ), listed=True),
    Choice("sums", (
        Option(_EACH, "each step", "", "What each step costs, or all steps so far."),
        Option(_SUMMED, "summed", "", "What all steps so far cost, after the prompt."),
    ), listed=True),
)  # fmt: skip
_SHARE = 0.52
"""Share of the room that the picture takes."""
STEP_SECONDS = 1.2
"""How long a step takes to be shown, at speed 1."""


@guarded
class GenerationPanel(PlotPanel[None]):
    """A prompt in one pass, then steps: the step at hand as a picture, all of them as a plot.

    A run that could not have been generated (cross attention, more than causal masks) is replaced
    by a layer that comes with Tilescope. A step that follows the one shown is seen to happen: in
    films, which have no clock, and without motion, it is there at once.
    """

    def __init__(self, session: Session) -> None:
        super().__init__("generation_panel", "Generation", CHOICES)
        self._session = session
        self.shows: str = "bytes"
        self.at_once = AT_ONCE[0]
        self.way: Way = WAYS[0]
        self.summed = False
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
        self.slider.setValue(1)
        self.slider.valueChanged.connect(self._go)
        self._shown, self._controls = 1, True
        self._wanted: int | None = None
        """The step that a lesson has chosen of a run which is not there yet."""
        self.clock = PanelClock(session, self, STEP_SECONDS)
        self.clock.moved.connect(self._moved)
        self.play_button = Button(self)
        self.play_button.setText("Generate")
        self.play_button.setCheckable(True)
        self.play_button.setAccessibleName("Generate token by token")
        self.play_button.setToolTip("Let one step after another happen, or stop.")
        self.play_button.clicked.connect(self.play)
        self.plot.picked.connect(self.take)
        self.bar.show_chosen("shows", self.shows)
        self.bar.show_chosen("at once", str(self.at_once))
        self.bar.show_chosen("way", self.way)
        self.bar.show_chosen("sums", _EACH)

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
            return found, GenerationState(found, 0, inputs.k[kv], inputs.v[kv])

        def done(made: tuple[Generation, GenerationState]) -> None:
            if self._asked != asked:
                return
            self.found, self.picture.state = made
            blocked = self.slider.blockSignals(True)
            self.slider.setRange(0, len(self.found.steps) - 1)
            if self._wanted is not None:
                self.slider.setValue(self._wanted)
            self.slider.blockSignals(blocked)
            self._go(self.slider.value())

        self._session.tasks.start("generation", "steps of generation", job, done)

    def choose(self, name: str, value: str) -> None:
        """Accept a choice: what is shown, and how many queries a step has."""
        if name == "at once":
            self.play(False)
            self.at_once = int(value)
            if self._asked is not None:
                self._ask(*self._asked[:2])
            return
        if name == "way":
            self.way = one_of(WAYS, value)
        elif name == "sums":
            self.summed = value == _SUMMED
        else:
            self.shows = value
            self.bar.show_choice("sums", value != _EQUAL)
        self._draw()

    def take(self, pick: object) -> None:
        """Show the step of a point that was clicked."""
        assert isinstance(pick, int)
        self.slider.setValue(pick)

    def take_choices(self, choices: ChooseTable) -> None:
        """Show what a lesson has chosen."""
        self.bar.choose("shows", choices.generation or "bytes")
        self.bar.choose("way", choices.way or WAYS[0])
        self.bar.choose("sums", _SUMMED if choices.summed else _EACH)
        if (choices.at_once or AT_ONCE[0]) != self.at_once:
            self.bar.choose("at once", str(choices.at_once or AT_ONCE[0]))
        step = 1 if choices.step is None else choices.step
        self.slider.setValue(step)
        self._wanted = None if self.slider.value() == step else step

    # --- a step is seen to happen ---------------------------------------------------------

    @property
    def playing(self) -> bool:
        """Whether one step follows the other."""
        return self.play_button.isChecked()

    def play(self, on: bool) -> None:
        """Let steps follow each other, from the prompt if all have been seen, or stop."""
        last = self.slider.maximum()
        self.play_button.setChecked(on and self._session.motion)
        if not on:
            return
        if self._shown == last:
            self.slider.setValue(0)
        self.slider.setValue(self._shown + 1 if self._session.motion else last)

    def _go(self, at: int) -> None:
        """Show a step; one that follows the one shown begins."""
        follows = at == self._shown + 1 and self._session.motion and self._controls
        self._shown, self._wanted = at, None
        if follows:
            self.clock.start()
        else:
            self.clock.reset()
        self._draw()

    def _moved(self) -> None:
        self._draw_picture()
        if self.clock.running or not self.playing:
            return
        if self._shown == self.slider.maximum() or not self._session.motion:
            self.play(False)
        elif self.clock.started:  # a reset has no next step
            self.slider.setValue(self._shown + 1)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.play(False)
        self.clock.finish()

    def _draw_picture(self) -> None:
        found, state = self.found, self.picture.state
        if found is None or state is None:
            return
        self.picture.state = state = GenerationState(
            found, self._shown, state.k, state.v, self.way, self.clock.share
        )
        self.picture.setAccessibleDescription(state.words[0])
        self.picture.update()

    def _draw(self) -> None:
        self._draw_picture()
        found, at = self.found, self._shown
        if found is None:
            return
        if self.shows == _EQUAL:
            self.show_plot(equal_plot(found, at, masked=self.way != "no mask"))
        else:
            quantity: Quantity = one_of(QUANTITIES, self.shows)
            self.show_plot(cost_plot(found, at, quantity, summed=self.summed))

    def show_controls(self, on: bool) -> None:
        self._controls = on
        self.slider.setVisible(on)
        self.play_button.setVisible(on)
        super().show_controls(on)

    def set_style(self, style: Style) -> None:
        self.picture.style_now = style
        set_sheet(self.play_button, bar_sheet(style))
        super().set_style(style)
        self.picture.update()

    def arrange(self) -> None:
        """Put the picture and the slider between the choices and the plot."""
        super().arrange()
        style, plot = self.bar.style_now, self.plot.geometry()
        font, high = style.text_font(12), 0 if self.slider.isHidden() else round(style.px(24))
        tall = round(_SHARE * (plot.height() - high))
        self.picture.setGeometry(plot.x(), plot.y(), plot.width(), tall)
        self.play_button.setFont(font)
        wide = round(text_width(font, self.play_button.text()) + style.px(16))
        self.play_button.setGeometry(plot.x(), plot.y() + tall, wide, high)
        x = plot.x() + wide + round(style.px(8))
        self.slider.setGeometry(x, plot.y() + tall, max(plot.right() - x, 40), high)
        plot.setTop(plot.y() + tall + high + 2)
        self.plot.setGeometry(plot)
