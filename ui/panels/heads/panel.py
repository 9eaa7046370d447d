"""The dock that shows which query heads share keys and values, and changes the sharing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QRectF, QSignalBlocker, QSizeF, Qt
from PySide6.QtWidgets import QLabel, QSlider

from simulator.base.choices import Choice, Option
from simulator.problem.models import models
from simulator.problem.scenario import with_values
from simulator.problem.workload import Workload
from ui.look.draw import text_width
from ui.look.names import fitting
from ui.look.theme import Style
from ui.panels.base import Panel, StatePicture
from ui.panels.heads.painter import (
    HeadsState,
    model_state,
    paint_heads,
    scenario_state,
    state_words,
    way_name,
)
from ui.session.model_choice import LESSON_TOKENS
from ui.session.session import Session
from ui.session.view import View
from ui.widgets.choice_bar import PlotBar
from ui.widgets.named import named

if TYPE_CHECKING:
    from simulator.lesson.tables import ChooseTable

_SIDE = 8
_ROOM = QSizeF(480, 360)
"""A dock smaller than this at scale 1 has smaller controls."""
_SMALLEST = 0.92
CHOICES = (
    Choice("of", (
        Option("scenario", "This run", "Run",
               "The heads of this run: the slider changes them, and the board follows."),
        Option("model", "Model of the KV cache", "Model",
               "The heads of the model of the KV cache, for as many tokens: the slider supposes "
               "another sharing."),
    )),
)  # fmt: skip


class HeadsPanel(Panel[None]):
    """Query heads above the KV heads that they share; a slider from MHA through GQA to MQA.

    While the slider is dragged, only the picture follows; its release changes the scenario.
    """

    def __init__(self, session: Session) -> None:
        super().__init__("heads_panel", "Head sharing")
        self._session = session
        self._workload: Workload | None = None
        self._head: int | None = None
        self._chosen = session.model_choice
        self._chosen.changed.connect(self._follow)
        self.of = "model" if self._chosen.by_hand else "scenario"
        self.state: HeadsState | None = None
        self.bar = PlotBar(CHOICES)
        self.bar.setParent(self)
        self.bar.fit_button.setVisible(False)
        self.bar.chosen.connect(self.choose)
        what = "KV heads, from MHA through GQA to MQA"
        self.slider = named(QSlider(Qt.Orientation.Horizontal, self), "kv_heads", what)
        self.slider.setPageStep(1)
        self.slider.setTickPosition(QSlider.TickPosition.TicksBelow)
        self.slider.valueChanged.connect(self._slid)
        self.slider.sliderReleased.connect(self._propose)
        self.left, self.right = QLabel(self), QLabel(self)
        self.right.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.picture = StatePicture[HeadsState](self, "Head sharing", paint_heads)
        self._show_choices()

    # --- what is shown --------------------------------------------------------------------

    def show_view(self, view: View, model: None = None) -> None:
        """Show a view: a new scenario, and which of its heads the board shows."""
        workload = view.snapshot.program.workload
        head = workload.picked[workload.single(view.snapshot.visit.head, view.report.row)[0]]
        if workload is not self._workload or head != self._head:
            self._workload, self._head = workload, head
            if self.of == "scenario" or self.state is None:
                self._refresh()

    def show_controls(self, on: bool) -> None:
        for widget in (self.bar, self.left, self.slider, self.right):
            widget.setVisible(on)
        self.arrange()

    def choose(self, name: str, value: str) -> None:
        """Accept a choice: whose heads."""
        self.of = value
        self._refresh()

    def take_choices(self, choices: ChooseTable) -> None:
        """Show the lesson's choice: a model, or the scenario's heads."""
        self.of = "model" if choices.model else "scenario"
        model = models()[choices.model] if choices.model else self._chosen.model
        self._chosen.take(model, choices.tokens or LESSON_TOKENS, "float16")

    def chosen_now(self) -> dict[str, Any]:
        return {"model": self._chosen.model.name} if self.of == "model" else {}

    @property
    def model(self) -> str:
        """Name of the model of the KV cache."""
        return self._chosen.model.name

    def _follow(self) -> None:
        """Show the model of the KV cache, if a user has chosen it or models are on show."""
        if self._chosen.by_hand:
            self.of = "model"
        self._show_choices()
        same = self.state is not None and self.state.title == self.model and self.of == "model"
        self._refresh(self.state.at if same and self.state else None)

    def _show_choices(self) -> None:
        self.bar.show_chosen("of", self.of)

    def _refresh(self, at: int | None = None) -> None:
        """Show the scenario's or the model's heads, in their own way or in the way `at`."""
        if self._workload is None:
            return
        if self.of == "scenario":
            state = scenario_state(self._workload, self._fixed(self._workload), self._head)
        else:
            c = self._chosen
            state = model_state(c.model, at, c.tokens, c.dtype)
        self._take(state)
        self.arrange()

    def _take(self, state: HeadsState) -> None:
        self.state = self.picture.state = state
        with QSignalBlocker(self.slider):
            self.slider.setRange(0, max(len(state.ways) - 1, 0))
            self.slider.setValue(state.at)
        self.slider.setEnabled(len(state.ways) > 1 and not state.fixed)
        why = state.fixed or "MHA at the left, MQA at the right, MLA beyond it where there is one."
        self.slider.setToolTip(f"{why} Ainslie et al. 2023, figure 2.")
        self.slider.setAccessibleDescription(f"{way_name(state.way)}. {why}")
        self.left.setText(way_name(state.ways[0]))
        self.right.setText(way_name(state.ways[-1]))
        self.picture.setAccessibleDescription(state_words(state))
        self.picture.update()

    @staticmethod
    def _fixed(w: Workload) -> str:
        """Return why the heads of a run cannot be changed; empty: they can."""
        if w.file is not None:
            return f"fixed: the heads are those of {w.file.path.name}"
        if len(w.picked) != w.input_heads[0]:
            return "fixed: the scenario picks some of its heads"
        if w.latent:
            return "fixed: all heads read one latent"
        return "one head: nothing to share" if len(w.picked) == 1 else ""

    # --- what it changes ------------------------------------------------------------------

    def _slid(self, at: int) -> None:
        if self.state is None:
            return
        self._take(replace(self.state, at=at))
        if not self.slider.isSliderDown():
            self._propose()

    def _propose(self) -> None:
        """Propose the scenario with the current KV heads."""
        scenario, w, state = self._session.scenario, self._workload, self.state
        if self.of != "scenario" or scenario is None or w is None or state is None:
            return
        heads, kv_heads = state.way.model.heads, state.way.model.kv_heads
        if kv_heads != w.input_heads[1]:
            values = {"heads": heads, "kv_heads": kv_heads}
            self._session.propose(
                with_values(scenario, {"attention": values}), f"KV heads {kv_heads}"
            )

    # --- where it is ----------------------------------------------------------------------

    def set_style(self, style: Style) -> None:
        self.picture.set_style(style)
        super().set_style(style)

    def arrange(self) -> None:
        """Place choices, the slider with its ends, and the picture."""
        edge = round(self.style_now.px(_SIDE))  # on the stage the dock is at the edge of the screen
        width = self.width() - 2 * edge
        fitted = fitting(self.style_now, QRectF(self.rect()), _ROOM)
        small = min(self.style_now.scale, _SMALLEST)
        style = replace(fitted, scale=max(fitted.scale, small))
        self.bar.set_style(style)
        if self.bar.isHidden():
            self.picture.setGeometry(edge, 5, width, max(self.height() - 9, 20))
            return
        deep = self.bar.arrange(width)
        self.bar.setGeometry(edge, 5, width, deep)
        font, line = style.text_font(12), round(style.px(24))
        y = 5 + deep + 2
        ends = []
        for label in (self.left, self.right):
            label.setFont(font)
            ends.append(round(text_width(font, label.text()) + style.px(8)))
        self.left.setGeometry(edge, y, ends[0], line)
        self.right.setGeometry(edge + width - ends[1], y, ends[1], line)
        self.slider.setGeometry(edge + ends[0], y, width - sum(ends), line)
        top = y + line + 4
        self.picture.setGeometry(edge, top, width, max(self.height() - top - 4, 20))
