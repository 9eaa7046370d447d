"""A captured layer with a small cache: the error of O against bytes, and the kept tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QSignalBlocker, QSizeF, Qt
from PySide6.QtWidgets import QLabel, QSlider

from simulator.base.choices import Choice, Option
from simulator.run.trace import Trace
from simulator.study.kv_cache.costs import Evicted, Pressure, pressure, shown_run
from simulator.study.kv_cache.decoding import Decoded
from simulator.study.kv_cache.policies import POLICIES, policy_named
from simulator.study.kv_cache.quantise import SMALL
from ui.look.draw import text_width
from ui.look.theme import Style
from ui.look.units import decimal_bytes_text, number_text, plural, rate_text, tick_text
from ui.panels.base import StatePicture
from ui.panels.kv_cache.kept import KeptState, paint_kept
from ui.panels.plot_panel import PlotPanel
from ui.plots.model import Axis, Curve, Dash, Level, Marker, PlotMark, PlotModel
from ui.session.session import Session
from ui.session.tasks import Report
from ui.widgets.named import named

if TYPE_CHECKING:
    from simulator.lesson.tables import ChooseTable
_LEAST = 1e-6
"""Errors below this are rounding: a logarithmic axis ends there."""
_POLICY_LOOKS: tuple[tuple[str, Dash, Marker], ...] = (
    ("K", "solid", "circle"), ("Q", "dash", "square"), ("V", "dashdot", "triangle"),
    ("muted", "dot", "cross"),
)  # fmt: skip
_TYPE_LOOKS: tuple[tuple[str, Dash, Marker], ...] = (
    ("O", "solid", "diamond"), ("S", "dash", "ring"), ("l", "dashdot", "star"),
)  # fmt: skip
_GRAINS = {
    "tensor": "one scale for K and one for V",
    "head": "a scale for each KV head",
    "token": "a scale for each token of a KV head",
}
_SHORT_GRAINS = {"tensor": "per tensor", "head": "per head", "token": "per token"}
_TYPES = {"fp8": "fp8 e4m3", "int8": "int8", "int4": "int4"}


def source_words(found: Pressure) -> str:
    """Return which layer is shown, and how the layer is masked."""
    w = found.layer.workload
    name = "this run" if w.file is None else w.file.title
    trained = w.file is not None and w.file.said.causal is False
    heads = plural(w.heads, "head")
    shared = f" over {w.kv_heads}" if w.kv_heads != w.heads else ""
    return (
        f"{name}: {heads}{shared}, {plural(found.layer.tokens, 'token')}, one after another under "
        f"a causal mask{', which it was not trained with' if trained else ''}"
    )


def pressure_plot(found: Pressure, now: Evicted) -> PlotModel:
    """Return the error of O over the bytes that are kept.

    found: the results; a click on a policy's point stands for the policy and its budget.
    """
    curves = []
    for policy, (role, dash, marker) in zip(POLICIES, _POLICY_LOOKS, strict=True):
        tried = found.of_policy(policy)
        curves.append(
            Curve(
                policy.name, policy.name, role, tuple(float(each.bytes) for each in tried),
                tuple(max(each.error, _LEAST) for each in tried), dash, marker, 1.8,
                tuple(_evicted_lines(found, each) for each in tried),
                tuple((policy.name, each.budget) for each in tried),
            )
        )  # fmt: skip
    for dtype, (role, dash, marker) in zip(SMALL, _TYPE_LOOKS, strict=True):
        small = found.of_type(dtype)
        curves.append(
            Curve(
                _TYPES[dtype], dtype, role, tuple(float(each.bytes) for each in small),
                tuple(max(each.error, _LEAST) for each in small), dash, marker, 1.8,
                tuple(
                    (f"{_TYPES[dtype]}, {_GRAINS[each.grain]}",
                     *_cost_lines(found, each.bytes, each.error))
                    for each in small
                ),
            )
        )  # fmt: skip
    words = f"{now.policy.name}, {plural(now.budget, 'token')}: {_share(now.error)}"
    here = PlotMark(
        float(now.bytes), max(now.error, _LEAST), words, _share(now.error), "current", "ring", 6.5,
        _evicted_lines(found, now),
    )  # fmt: skip
    own = f"all tokens, {decimal_bytes_text(found.bytes)}"
    note = (
        f"{_begun(source_words(found))}. Nothing is retrained. Bytes of K and V of the layer after "
        "the last token; sums of heavy hitters and scales, float32, are counted. Points of fp8, "
        "int8 and int4: a scale per tensor, per head, per token."
    )
    said = [f"{each.policy.name}, {plural(each.budget, 'token')}: {_share(each.error)}"
            for each in found.evicted]  # fmt: skip
    said += [f"{_TYPES[each.dtype]} {_SHORT_GRAINS[each.grain]}: {_share(each.error)}"
             for each in found.rounded]  # fmt: skip
    return PlotModel(
        name="What a smaller cache costs a layer",
        x=Axis("kept of the layer's cache", lambda x: rate_text(x, "B"), log=True),
        y=Axis("error of O, of its norm", tick_text, log=True),
        curves=tuple(curves),
        marks=(here,),
        levels=(Level(float(found.bytes), own, "all tokens", "muted", across=False),),
        note=note,
        summary=f"{note} Errors of O: {'; '.join(said)}.",
    )


def _evicted_lines(found: Pressure, each: Evicted) -> tuple[str, ...]:
    return (
        f"{each.policy.name}, {plural(each.budget, 'token')} of {found.layer.tokens}",
        *_cost_lines(found, each.bytes, each.error),
    )


def _cost_lines(found: Pressure, size: int, error: float) -> tuple[str, str]:
    return (
        f"{decimal_bytes_text(size)}, {number_text(100 * size / found.bytes, 1)} % of the whole "
        "cache",
        f"O is off by {_share(error)} of its norm",
    )


def _share(error: float) -> str:
    return f"{number_text(100 * error, 2)} %"


def _begun(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}" if text.startswith("this") else text


BYTES, PRESSURE = "bytes", "pressure"
VIEWS = Choice("view", (
    Option(BYTES, "How much memory", "Memory", "The memory card of a model."),
    Option(PRESSURE, "Keep less", "Keep less",
           "Tokens that are evicted and elements of few bits, on a captured layer: the error of O "
           "against bytes."),
))  # fmt: skip
CHOICES = (
    VIEWS,
    Choice("policy", tuple(
        Option(policy.name, policy.name.capitalize(), policy.name.partition(" ")[0], policy.says)
        for policy in POLICIES
    )),
)  # fmt: skip
_SHARE = 0.5
"""Share of the room that the picture takes."""
_FIRST_SHARE = 8
"""The first budget is this part of the tokens."""
_LINE = 22
_ONE_LINE = 520
"""Width from which both sliders stand side by side, at scale 1."""


class PressureView(PlotPanel[None]):
    """The tokens that a policy keeps as a picture, all policies and element types as a plot.

    A run that is of no captured layer, or that could not have been generated, is replaced by a
    layer that comes with Tilescope. The results are computed in the background.
    """

    room = QSizeF(520, 480)  # controls of a view this large are written at their own scale

    def __init__(self, session: Session) -> None:
        super().__init__("pressure_view", "A cache that keeps less", CHOICES)
        self._session = session
        self.policy = POLICIES[0]
        self.found: Pressure | None = None
        self._trace: Trace | None = None
        self._source: object = None
        self._asked: tuple[int | None, int | None] = None, None  # budget and step, of a lesson
        self.picture: StatePicture[KeptState] = StatePicture(self, "What is kept", paint_kept)
        self.budget, self.budget_label = self._slider(
            "budget",
            "Tokens kept",
            "Tokens that each KV head has space for; a point of the plot sets it, too.",
        )
        self.step, self.step_label = self._slider("step", "Step", "Which token has just come.")
        self.budget.valueChanged.connect(self._decode)
        self.step.valueChanged.connect(self._draw_step)
        self.plot.picked.connect(self._take_picked)
        self.bar.show_chosen("policy", self.policy.name)

    def _slider(self, name: str, title: str, tip: str) -> tuple[QSlider, QLabel]:
        slider = named(QSlider(Qt.Orientation.Horizontal, self), name, title, tip)
        slider.setMinimum(1)
        slider.setPageStep(16)
        return slider, QLabel(self)

    def forget(self) -> None:
        self._trace = self.found = self._source = self.picture.state = None

    def follow(self) -> None:
        """Show the run of the session, or a layer in its place."""
        trace = self._session.trace
        if trace is None or trace is self._trace:
            return
        self._trace = trace
        before, source = self.found, self._source

        def job(report: Report) -> tuple[Pressure, object]:
            w, inputs = shown_run(*trace.single_heads)
            if before is not None and source is w:  # the shipped layer again
                return before, w
            return pressure(w, inputs, report), w

        def done(made: tuple[Pressure, object]) -> None:
            if trace is not self._trace:
                return
            if made[0] is not self.found:
                self.found, self._source = made
                self._start_sliders(made[0].layer.tokens)
                self._decode()

        self._session.tasks.start("pressure", "what a smaller cache costs", job, done)

    def take_choices(self, choices: ChooseTable) -> None:
        """Show a lesson's choices, now or as soon as the layer is known."""
        self.policy = policy_named(choices.policy or POLICIES[0].name)
        self.bar.show_chosen("policy", self.policy.name)
        self._asked = choices.budget, choices.step
        if self.found is not None:
            self._start_sliders(self.found.layer.tokens)
            self._decode()

    def chosen_now(self) -> dict[str, Any]:
        """Return the policy and the values of the sliders, by the keys of lessons."""
        said: dict[str, Any] = {"policy": self.policy.name}
        if self.found is not None:
            said |= {"budget": self.budget.value(), "step": self.step.value()}
        return said

    def _start_sliders(self, tokens: int) -> None:
        budget, step = self._asked
        usual = (
            (self.budget, budget or max(tokens // _FIRST_SHARE, 1)),
            (self.step, step or tokens),
        )
        for slider, value in usual:
            with QSignalBlocker(slider):
                slider.setMaximum(tokens)
                slider.setValue(value)

    def choose(self, name: str, value: str) -> None:
        """Accept a policy; the dock takes views."""
        if name == "policy":
            self.policy = policy_named(value)
            self._decode()

    def _take_picked(self, pick: object) -> None:
        """Show the policy and the budget of a point that was clicked."""
        assert isinstance(pick, tuple)
        name, budget = pick
        with QSignalBlocker(self.budget):
            self.budget.setValue(budget)
        self.bar.choose("policy", name)

    def _decode(self) -> None:
        """Decode the layer with policy and budget, and show the result."""
        found, policy, budget = self.found, self.policy, self.budget.value()
        self._label()
        if found is None:
            return

        def done(made: tuple[Decoded, Evicted]) -> None:
            if found is self.found:
                self.picture.state = KeptState(found, *made, self.step.value() - 1)
                self.show_plot(pressure_plot(found, made[1]))
                self._draw_step()

        self._session.tasks.start(
            "eviction", "decoding with a small cache",
            lambda report: found.decoded(policy, budget), done,
        )  # fmt: skip

    def _draw_step(self) -> None:
        self._label()
        state = self.picture.state
        if state is not None:
            self.picture.state = state = state.at(self.step.value() - 1)
            self.picture.setAccessibleDescription(state.words[0])
            self.picture.update()

    def _label(self) -> None:
        self.budget_label.setText(f"{plural(self.budget.value(), 'token')} kept")
        self.step_label.setText(f"token {self.step.value()}")

    def show_controls(self, on: bool) -> None:
        for widget in (self.budget, self.budget_label, self.step, self.step_label):
            widget.setVisible(on)
        super().show_controls(on)

    def set_style(self, style: Style) -> None:
        self.picture.set_style(style)
        super().set_style(style)

    def arrange(self) -> None:
        """Put the sliders and the picture between the choices and the plot."""
        super().arrange()
        plot, style = self.plot.geometry(), self.bar.style_now
        if not self.budget.isHidden():
            plot.setTop(self._arrange_sliders(plot.x(), plot.y(), plot.width(), style))
        tall = round(_SHARE * plot.height())
        self.picture.setGeometry(plot.x(), plot.y(), plot.width(), tall)
        plot.setTop(plot.y() + tall + 2)
        self.plot.setGeometry(plot)

    def _arrange_sliders(self, left: int, top: int, width: int, style: Style) -> int:
        """Place both sliders with their labels; return their lower end."""
        line, gap = round(style.px(_LINE)), round(style.px(8))
        font = style.text_font(12)
        side = round(text_width(font, "9 999 tokens kept")) + gap
        together = width >= style.px(_ONE_LINE)
        wide = (width - gap) // 2 if together else width
        pairs = ((self.budget, self.budget_label), (self.step, self.step_label))
        for n, (slider, label) in enumerate(pairs):
            x, y = (left + n * (wide + gap), top) if together else (left, top + n * line)
            label.setFont(font)
            label.setGeometry(x, y, side, line)
            slider.setGeometry(x + side, y, wide - side, line)
        return top + line * (1 if together else 2) + 2
