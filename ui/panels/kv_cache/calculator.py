"""The view that shows how a model's KV cache grows, and what decoding a token moves."""

from __future__ import annotations

from dataclasses import replace
from math import log2
from pathlib import Path

from PySide6.QtCore import QSizeF, Qt, QTimer
from PySide6.QtGui import QHideEvent, QKeyEvent
from PySide6.QtWidgets import QFileDialog, QLabel, QSlider

from simulator.base.choices import Choice, Option, one_of
from simulator.base.errors import InputError
from simulator.lesson.tables import ChooseTable
from simulator.problem.hardware import gpus
from simulator.problem.models import AttentionModel, load_model, models
from simulator.run.row_report import RowReport
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace
from simulator.study.kv_cache.counts import CONVENTIONS, ELEMENT_TYPES
from ui.look.draw import fitted, text_width
from ui.look.theme import Style
from ui.look.units import count_text
from ui.panels.base import StatePicture
from ui.panels.kv_cache.painter import (
    CacheState,
    cache_state,
    grown,
    paint_cache,
    state_words,
    wanted_height,
)
from ui.panels.kv_cache.plot import CONVENTION_NAMES, CacheChoice, cache_plot
from ui.panels.kv_cache.shapes import ShapeSliders
from ui.panels.kv_cache.views import VIEWS
from ui.panels.plot_panel import PlotPanel
from ui.plots.widget import load_plots
from ui.safety.overrides import guarded
from ui.session.model_choice import FIRST_MODEL
from ui.session.session import Session
from ui.session.view import View
from ui.widgets.choice_bar import Button, bar_sheet
from ui.widgets.sheet import set_sheet

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
PAGES = (1, 8, 16, 32, 64, 128, 256)
_OWN = "own"
_TICK_MS = 60
"""How long a token is shown while decoding plays."""
_STEPS = 1000
_SIDE = 8
_LEAST_PLOT = 150
_SHAPED = QSizeF(560, 400)
"""From which on the sliders of the shapes are there, at scale 1: shorter ones are of no use."""
_SHARE = 0.55
"""The largest share of the space for plot and picture that the picture takes."""
_CONVENTION_TIPS = {
    "logical": "Every token in every layer, no cap.",
    "window_capped": "A layer with a sliding window holds its window at most (Beltagy et al. "
    "2020).",
    "allocated": "Window-capped, each sequence of each layer in whole pages (Kwon et al. 2023, "
    "section 4.3).",
}


def _listed(name: str, values: dict[str, str], tip: str) -> Choice:
    return Choice(
        name, tuple(Option(v, text, text, tip) for v, text in values.items()), listed=True
    )


CHOICES = (
    VIEWS,
    _listed("model", {name: name for name in models()} | {_OWN: "own model"},
            "Whose layers and heads: published models, as their configurations say."),
    Choice("file", (
        Option("open", "Own file…", "Own…",
               "A TOML file with the layers, heads and widths of one model."),
    )),
    _listed("cache type", {name: f"cache {name}" for name in ELEMENT_TYPES},
            "Element type of the cache; scales of fp8, int8 and int4 are not counted."),
    _listed("batch", {str(n): f"batch {n}" for n in BATCHES},
            "Sequences that are decoded together: the cache grows with each, the weights do not."),
    Choice("convention", tuple(
        Option(key, CONVENTION_NAMES[key].capitalize(), short, _CONVENTION_TIPS[key])
        for key, short in zip(CONVENTIONS, ("Logical", "Capped", "Alloc."), strict=True)
    )),
    Choice("axes", (
        Option("log", "Log", "Log", "Both axes logarithmic."),
        Option("linear", "Linear", "Lin", "Both axes linear: the cache grows evenly."),
    )),
    _listed("page size", {str(n): f"page {n}" for n in PAGES},
            "Tokens of a page: allocated bytes are whole pages (Kwon et al. 2023, section 4.3)."),
    _listed("weights type", {name: f"weights {name}" for name in ELEMENT_TYPES},
            "Element type of the weights; their number is as published, rounded."),
    _listed("GPU", {name: name for name in gpus()},
            "Whose memory has to hold it all, and whose bandwidth bounds decoding."),
)  # fmt: skip


def cache_model(trace: Trace, snapshot: Snapshot, report: RowReport) -> None:
    """Load plots beside the window: what is drawn does not depend on the run."""
    load_plots()


@guarded
class TokenSlider(QSlider):
    """Tokens on a logarithmic slider; Up and Down add one, Page Up and Page Down double."""

    def __init__(self, panel: Calculator) -> None:
        super().__init__(Qt.Orientation.Horizontal, panel)
        self._panel = panel
        self.setRange(0, _STEPS)
        self.setObjectName("tokens")
        self.setAccessibleName("Tokens")
        self.setToolTip(
            "Tokens of each sequence. Up and Down: one token; Page Up and Down: twice, half."
        )

    def keyPressEvent(self, event: QKeyEvent) -> None:
        tokens = self._panel.choice.tokens
        asked = {
            Qt.Key.Key_Up: tokens + 1,
            Qt.Key.Key_Down: tokens - 1,
            Qt.Key.Key_PageUp: 2 * tokens,
            Qt.Key.Key_PageDown: tokens // 2,
        }.get(Qt.Key(event.key()))
        if asked is None:
            super().keyPressEvent(event)
        else:
            self._panel.play(False)
            self._panel.take_tokens(asked)


@guarded
class Calculator(PlotPanel[None]):
    """Curves of the cache in each way of sharing it, and under them decoding token by token.

    session: it gives the first GPU, and reports files that cannot be used.
    """

    room = QSizeF(640, 480)  # enough for that many choices

    def __init__(self, session: Session) -> None:
        super().__init__("cache_calculator", "Bytes of the KV cache", CHOICES)
        self._session = session
        self._gpu_seen: str | None = None
        self._model = session.model_choice
        self._model.changed.connect(self._follow)
        self.choice = CacheChoice(self._model.model, next(iter(gpus().values())))
        self.state: CacheState | None = None
        self.play_button = Button(self)
        self.play_button.setText("Decode")
        self.play_button.setCheckable(True)
        self.play_button.setAccessibleName("Decode token by token")
        self.play_button.setToolTip("Give every sequence one token after another, or stop.")
        self.play_button.clicked.connect(self.play)
        self.slider = TokenSlider(self)
        self.slider.valueChanged.connect(self._slid)
        self.label = QLabel(self)
        self.shapes = ShapeSliders(self)
        self.shapes.changed.connect(self._take_shapes)
        self.picture = StatePicture[CacheState](self, "Decoding", paint_cache)
        self._clock = QTimer(self, interval=_TICK_MS)
        self._clock.timeout.connect(self._tick)
        self.plot.picked.connect(self._take_picked)
        self.bar.lists["model"].model().item(len(models())).setEnabled(False)  # type: ignore[attr-defined]
        self._show_choices()

    # --- what is shown --------------------------------------------------------------------

    def show_view(self, view: View, model: None = None) -> None:
        """Show a view: only another GPU of the scenario changes anything."""
        gpu = view.snapshot.program.workload.gpu
        if gpu.name != self._gpu_seen:
            self._gpu_seen = gpu.name
            self._take(replace(self.choice, gpu=gpu))

    def choose(self, name: str, value: str) -> None:
        """Accept a choice."""
        choice = self.choice
        if name == VIEWS.name:  # the dock's own
            return
        if name == "file":
            self.ask_file()
            return
        if name == "model":
            model = self._model.own if value == _OWN else models()[value]
            assert model is not None  # the entry is disabled until a file has been read
            self._model.take(model, by_hand=True)
            return
        elif name == "axes":
            choice = replace(choice, log=value == "log")
            choice = replace(choice, tokens=min(choice.tokens, choice.most))
        elif name == "convention":
            choice = replace(choice, convention=one_of(CONVENTIONS, value))
        elif name == "GPU":
            choice = replace(choice, gpu=gpus()[value])
        elif name in ("batch", "page size"):
            key = {"batch": "batch", "page size": "page_size"}[name]
            choice = replace(choice, **{key: int(value)})  # type: ignore[arg-type]
        else:
            key = {"cache type": "dtype", "weights type": "weights_dtype"}[name]
            choice = replace(choice, **{key: value})  # type: ignore[arg-type]
        self._take(choice)

    def take_choices(self, choices: ChooseTable) -> None:
        """Show what a lesson has chosen; everything else is as in a new window."""
        first = CacheChoice(models()[choices.model or FIRST_MODEL], self.choice.gpu)
        self._model.take(first.model)
        self._take(replace(first, tokens=min(choices.tokens or first.tokens, first.most)))

    def ask_file(self) -> None:
        """Ask for a model file and show it."""
        name, _ = QFileDialog.getOpenFileName(self, "Open a model", "", "Models (*.toml)")
        if name:
            self.open_model(Path(name))
        self._show_choices()

    def open_model(self, path: Path) -> None:
        """Show the model in a file; if it cannot be used, say why and change nothing."""
        try:
            model = load_model(path)
        except InputError as error:
            self._session.refused.emit(error)
            return
        self._model.take(model, by_hand=True)

    def _follow(self) -> None:
        """Show the model that was chosen, here or in another panel."""
        own = self._model.own
        if own is not None:
            box = self.bar.lists["model"]
            place = box.findData(_OWN)
            widest = max(text_width(box.font(), name) for name in models())
            box.setItemText(place, fitted(box.font(), own.name, widest))
            box.model().item(place).setEnabled(True)  # type: ignore[attr-defined]
        choice = replace(self.choice, model=self._model.model)
        if self.state is None:  # nobody has seen it yet
            self.choice = choice
        else:
            self._take(choice)

    def _take_shapes(self, model: AttentionModel) -> None:
        """Show the chosen model with the shapes of the sliders."""
        self._take(replace(self.choice, model=model))

    def _take_picked(self, tokens: object) -> None:
        assert isinstance(tokens, int)
        self.take_tokens(tokens)

    def take_tokens(self, tokens: int) -> None:
        """Show the cache at another length."""
        self._take(replace(self.choice, tokens=min(max(tokens, 1), self.choice.most)))

    def _take(self, choice: CacheChoice) -> None:
        self.choice, before = choice, self.state
        self.state = self.picture.state = cache_state(choice)
        self._show_choices()
        self.show_plot(cache_plot(choice))
        self.picture.setAccessibleDescription(state_words(self.state))
        self.picture.update()
        if before is None or len(before.step.groups) != len(self.state.step.groups):
            self.arrange()

    def _show_choices(self) -> None:
        c, bar = self.choice, self.bar
        base = self._model.model
        own = base is self._model.own
        self.shapes.show_model(base, c.model)
        chosen = {
            "model": _OWN if own else base.name,
            "file": "open" if own else "",
            "cache type": c.dtype,
            "batch": str(c.batch),
            "convention": c.convention,
            "axes": "log" if c.log else "linear",
            "page size": str(c.page_size),
            "weights type": c.weights_dtype,
            "GPU": c.gpu.name,
        }
        for name, value in chosen.items():
            bar.show_chosen(name, value)
        blocked = self.slider.blockSignals(True)
        self.slider.setValue(round(_STEPS * log2(c.tokens) / log2(c.most)))
        self.slider.blockSignals(blocked)
        self.label.setText(f"{count_text(c.tokens)} tokens")

    # --- decoding -------------------------------------------------------------------------

    @property
    def playing(self) -> bool:
        """Whether decoding plays."""
        return self._clock.isActive()

    def play(self, on: bool) -> None:
        """Start or stop adding tokens."""
        self.play_button.setChecked(on)
        (self._clock.start if on else self._clock.stop)()

    def _tick(self) -> None:
        if self.choice.tokens >= self.choice.most:
            self.play(False)
        else:
            self.take_tokens(self.choice.tokens + 1)

    def _slid(self, value: int) -> None:
        self.play(False)
        self.take_tokens(round(self.choice.most ** (value / _STEPS)))

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.play(False)

    # --- where it is ----------------------------------------------------------------------

    def set_style(self, style: Style) -> None:
        self.picture.style_now = style
        self.picture.update()
        set_sheet(self.play_button, bar_sheet(style))
        super().set_style(style)

    def arrange(self) -> None:
        """Place choices and slider, and share the rest; small docks leave parts out."""
        if self.state is None:
            super().arrange()
            return
        style, height = self.style_now, self.height()
        edge = round(style.px(_SIDE))  # on the stage it is at the edge of the screen
        width = self.width() - 2 * edge
        room = height / style.scale
        for name, least in (("weights type", 330), ("page size", 330), ("batch", 300),
                            ("GPU", 270), ("file", 240), ("cache type", 240)):  # fmt: skip
            self.bar.show_choice(name, room >= least)
        super().arrange()
        top = self.plot.y()
        style = self.bar.style_now
        wide = self.width() >= style.px(_SHAPED.width())
        shaped = wide and room >= _SHAPED.height() and not self.bar.isHidden()
        self.shapes.setVisible(shaped)
        if shaped:
            self.shapes.set_style(style)
            deep = self.shapes.arrange(width)
            self.shapes.setGeometry(edge, top, width, deep)
            top += deep + 3
        line = round(style.px(24))
        rest = height - top - 4
        slides = rest >= line + _LEAST_PLOT * 0.45 and not self.bar.isHidden()
        free = rest - (line + 4 if slides else 0)
        most = min(free - round(self.style_now.px(_LEAST_PLOT)), round(_SHARE * free))
        shown = self.picture.style_now = grown(self.state, self.style_now, width, most)
        deep = max(min(round(wanted_height(self.state, shown)) + 2, most), 0)
        deep = deep if deep >= style.px(40) else 0
        self.plot.setGeometry(edge, top, width, max(free - deep, 40))
        for widget in (self.slider, self.play_button, self.label):
            widget.setVisible(slides)
        self.picture.setVisible(bool(deep))
        y = top + free - deep
        font = style.text_font(12)
        words = f"{count_text(self.choice.most)} tokens"
        side, press = (round(text_width(font, text) + style.px(16)) for text in (words, "Decode"))
        self.play_button.setFont(font)
        self.label.setFont(font)
        self.play_button.setGeometry(edge, y, press, line)
        self.label.setGeometry(edge + width - side, y, side, line)
        self.label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        gap = round(style.px(8))
        left = edge + press + gap
        self.slider.setGeometry(left, y, edge + width - side - gap - left, line)
        self.picture.setGeometry(edge, y + (line + 4 if slides else 0), width, deep)
