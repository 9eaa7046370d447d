"""The dock of generation: a prompt in one pass, then steps that can be played (Shazeer 2019)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from PySide6.QtCore import QSizeF
from PySide6.QtGui import QHideEvent

from simulator.base.choices import Option, one_of
from simulator.run.trace import Trace
from simulator.study.generation.choices import CHOICES, EACH, EQUAL, NEXT, SUMMED, WAYS
from simulator.study.generation.steps import generation_of
from ui.kit.boxes import Box, Canvas
from ui.panels.generation.next_token import next_box, next_words
from ui.panels.generation.picture import GenerationState, paint_generation
from ui.panels.generation.plots import QUANTITIES, cost_plot, equal_plot
from ui.panels.study import Act, Chosen, Slider, Study, Words
from ui.panels.study_panel import StudyPanel
from ui.plots.model import PlotModel
from ui.safety.overrides import guarded
from ui.session.session import Session
from ui.session.tasks import Report
from ui.session.view import View


class GenerationStudy(Study[GenerationState, GenerationState]):
    """The step at hand as a picture, all steps as a plot below it.

    A typed text is the prompt, and the model that reads it goes on. A run that could not have been
    generated (cross attention, more than causal masks) is replaced by a layer that comes with
    Tilescope. The step after the one shown is animated.
    """

    name, title, doing, choices = "generation", "Generation", "steps of generation", CHOICES
    pictured, room, plotted, seconds = "A step of generation", QSizeF(430, 150), 0.48, 1.2
    slider = Slider(
        "step", "Step", "Which step is shown; a click on a point of the plot shows its own.",
        first=1,
    )  # fmt: skip
    acts = (Act("play", "Generate", "Let one step after another happen, or stop."),)

    def lesson(self, said: Chosen) -> Chosen:
        sums = SUMMED if said.get("sums") == "True" else EACH
        return {**super().lesson(said), "sums": sums}

    def said(self, trace: Trace) -> Chosen:
        return {"shows": NEXT} if trace.workload.typed else {}

    def hidden(self, trace: Trace, chosen: Chosen) -> frozenset[str]:
        out = {"sums"} if chosen["shows"] in (EQUAL, NEXT) else set()
        out |= {"way"} if chosen["shows"] == NEXT else set()
        return frozenset(out if trace.workload.typed else {*out, "draw"})

    def options(self, found: GenerationState) -> Mapping[str, tuple[Option, ...]]:
        options = CHOICES[0].options
        typed = found.found.continuation is not None
        return {"shows": tuple(each for each in options if typed or each.value != NEXT)}

    def needs(self, trace: Trace, view: View, chosen: Chosen) -> Hashable:
        head, _ = trace.workload.single(view.snapshot.visit.head, view.report.row)
        return head, int(chosen["at once"]), chosen["draw"]

    def compute(self, trace: Trace, needs: Any, report: Report) -> GenerationState:
        head, at_once, draw = needs
        return GenerationState(generation_of(trace, head, at_once, draw, report))

    def state(
        self, found: GenerationState, chosen: Chosen, before: GenerationState | None, changed: str
    ) -> GenerationState:
        at = found.at if before is None else min(before.at, len(found.found.steps) - 1)
        way, summed = one_of(WAYS, chosen["way"]), chosen["sums"] == SUMMED
        return replace(found, at=at, way=way, shows=chosen["shows"], summed=summed)

    def press(self, state: GenerationState, at: Hashable) -> GenerationState | None:
        return self.marked(state, at) if isinstance(at, int) else None

    def act(self, state: GenerationState, name: str) -> GenerationState:
        """Return the step after the one shown, from the prompt if all have been seen."""
        return self.marked(state, (state.at + 1) % len(state.found.steps))

    def mark(self, state: GenerationState) -> tuple[int, int]:
        return state.at, len(state.found.steps) - 1

    def marked(self, state: GenerationState, value: int) -> GenerationState:
        return replace(state, at=min(value, len(state.found.steps) - 1), share=1.0)

    def moves(self, before: GenerationState, after: GenerationState) -> bool:
        return after.at == before.at + 1

    def on_the_way(self, state: GenerationState, share: float) -> GenerationState:
        return replace(state, share=share)

    def words(self, state: GenerationState) -> Words:
        said = state.found.continuation
        if state.shows == NEXT and said is not None:
            return next_words(said, state.step.rows)
        return Words(state.words)

    def picture(self, state: GenerationState) -> Box:
        said = state.found.continuation
        if state.shows == NEXT and said is not None:
            return next_box(said, state.found.workload.tokens, state.step.rows)
        return Canvas(partial(paint_generation, state))

    def plot(self, state: GenerationState) -> PlotModel | None:
        if state.shows == NEXT:
            return None
        if state.shows == EQUAL:
            return equal_plot(state.found, state.at, masked=state.way != "no mask")
        quantity = one_of(QUANTITIES, state.shows)
        return cost_plot(state.found, state.at, quantity, summed=state.summed)


GENERATION = GenerationStudy()


@guarded
class GenerationPanel(StudyPanel[GenerationState, GenerationState]):
    """The study of generation; its button plays all steps."""

    def __init__(self, session: Session) -> None:
        super().__init__(session, GENERATION)
        self.play_button = self.buttons["play"]
        self.play_button.setCheckable(True)

    @property
    def playing(self) -> bool:
        """Whether the steps are playing."""
        return self.play_button.isChecked()

    def play(self, on: bool) -> None:
        """Play the steps, from the prompt if all have been seen, or stop."""
        self.play_button.setChecked(on and self._session.motion)
        if on:
            last = self.slider.maximum()
            if self.slider.value() == last:
                self.slider.setValue(0)
            self.slider.setValue(self.slider.value() + 1 if self._session.motion else last)

    def choose(self, name: str, value: str) -> None:
        if name == "at once":
            self.play(False)
        super().choose(name, value)

    def hideEvent(self, event: QHideEvent) -> None:
        self.play(False)
        super().hideEvent(event)

    def _act(self, act: Act) -> None:
        self.play(self.play_button.isChecked())

    def _moved(self) -> None:
        super()._moved()
        if self.clock.running or not self.playing:
            return
        if self.slider.value() == self.slider.maximum() or not self._session.motion:
            self.play(False)
        else:
            self.slider.setValue(self.slider.value() + 1)
