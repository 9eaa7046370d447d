"""The dock whose experiment shows why scores are divided by √d."""

from __future__ import annotations

import threading
import time

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QLabel, QSpinBox

from simulator.base.choices import Choice, Option, one_of
from simulator.lesson.tables import ChooseTable
from simulator.run.trace import Trace
from simulator.study.sqrt_d.experiment import DRAWN, KEYS, SqrtDResult, one_draw, sqrt_d_experiment
from simulator.study.sqrt_d.trained_scores import TrainedScores, shipped_scores, trained_scores
from ui.look.draw import text_width
from ui.look.theme import Style
from ui.look.units import count_text
from ui.panels.plot_panel import PlotPanel
from ui.panels.sqrt_d.plot import MEASURED, Measured, draw_plot, sqrt_d_plot
from ui.plots.widget import load_plots
from ui.safety.overrides import guarded
from ui.session.session import Session
from ui.session.tasks import Report
from ui.session.view import View
from ui.widgets.choice_bar import Button, bar_sheet
from ui.widgets.sheet import set_sheet

CHOICES = (
    Choice("quantity", (
        Option("variance", "Variance", "Variance",
               "Of the scores: d for q·k of normal vectors, 1 once divided by √d "
               "(Vaswani et al. 2017, footnote 4)."),
        Option("entropy", "Entropy", "Entropy",
               "Of the softmax's weights: without the division one key gets nearly all weight "
               "(Vaswani et al. 2017, section 3.2.1)."),
        Option("gradient", "Gradient", "Gradient",
               "Trace of the softmax's Jacobian, 1 − Σ p²: hardly anything is learned where it is "
               "near 0 (Vaswani et al. 2017, section 3.2.1)."),
        Option("draw", "One draw", "Draw",
               "The weights of one query as bars, with and without the division: how they lie, of "
               "which the other three are means."),
    )),
    Choice("keys", (
        Option("64", "64 keys", "64 keys", "64 keys for each query."),
        Option("2", "2 keys", "2 keys",
               "Two keys for each query: then the gradient is far smaller."),
    )),
    Choice("d", tuple(
        Option(str(d), f"d = {count_text(d)}", "", "The d of the query and its keys.")
        for d in DRAWN
    ), listed=True),
)  # fmt: skip
_DRAW = "draw"
_TELL_EVERY = 0.03
"""Seconds between two results that are shown while vectors are drawn."""
_MOST_SEED = 2**31 - 1
_SEED_TIP = "Of the random vectors: the same seed draws the same numbers."
_AGAIN_TIP = "Draw the same vectors again, from the first one."


@guarded
class _Seed(QSpinBox):
    """A number that does not change when one scrolls over it."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class SqrtDPanel(PlotPanel[None]):
    """Variance, entropy and gradient against d, drawn while vectors are drawn."""

    drawn = Signal(int, object)
    """Number of the run and its result so far, from the thread that draws."""

    def __init__(self, session: Session) -> None:
        super().__init__("sqrt_d_panel", "Why √d", CHOICES)
        self._session = session
        self.measured: Measured = "variance"
        self.draws = False
        """Whether one draw is shown as bars, not a mean over many."""
        self.keys, self.d = KEYS, DRAWN[-1]
        self.trained: TrainedScores | None = None
        self._trace: Trace | None = None
        self.found: SqrtDResult | None = None
        self.run = 0
        self._shown = threading.Event()
        self._shown.set()
        self.running = False
        self.seed = _Seed(self)
        self.seed.setRange(0, _MOST_SEED)
        self.seed.setKeyboardTracking(False)
        self.seed.setObjectName("seed")
        self.seed.setAccessibleName("seed")
        self.seed.setAccessibleDescription(_SEED_TIP)
        self.seed.setToolTip(_SEED_TIP)
        self._seed_label = QLabel("seed", self)
        self._seed_label.setToolTip(_SEED_TIP)
        self.again = Button(self)
        self.again.setText("Draw again")
        self.again.setObjectName("again")
        self.again.setAccessibleName("Draw again")
        self.again.setAccessibleDescription(_AGAIN_TIP)
        self.again.setToolTip(_AGAIN_TIP)
        self.again.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.bar.show_chosen("quantity", self.measured)
        self.bar.show_chosen("keys", str(self.keys))
        self.bar.show_chosen("d", str(self.d))
        self.bar.show_choice("d", False)
        self.seed.valueChanged.connect(self._restart)
        self.again.clicked.connect(self._restart)
        self.drawn.connect(self._follow)
        session.tasks.rested.connect(self._rest)

    def forget(self) -> None:
        self._trace = None

    def show_view(self, view: View, model: None = None) -> None:
        """Start when the dock is first seen: of the run, only a trained layer is marked."""
        if not self.run:
            self.start()
        trace = self._session.trace
        if trace is not None and trace is not self._trace:
            self._trace = trace
            self._measure(trace)

    def _measure(self, trace: Trace) -> None:
        """Measure the scores of the run's layer, or of a shipped one if it has none."""

        def job(report: Report) -> TrainedScores | None:
            w, inputs = trace.single_heads
            return shipped_scores() if w.file is None else trained_scores(w, inputs)

        def done(found: TrainedScores | None) -> None:
            if trace is self._trace:
                self.trained = found
                self._draw()

        self._session.tasks.start("trained scores", "scores of a trained layer", job, done)

    def show_controls(self, on: bool) -> None:
        for widget in (self._seed_label, self.seed, self.again):
            widget.setVisible(on)
        super().show_controls(on)

    def choose(self, name: str, value: str) -> None:
        """Show another quantity of the same vectors, or draw other vectors."""
        if name == "keys":
            self.keys = int(value)
            self.start()
            return
        if name == "d":
            self.d = int(value)
        else:
            self.draws = value == _DRAW
            if not self.draws:
                self.measured = one_of(MEASURED, value)
            self.bar.show_choice("d", self.draws)
            self.arrange()
        self._draw()

    def take_choices(self, choices: ChooseTable) -> None:
        """Show what a lesson has chosen."""
        quantity = choices.quantity or "variance"
        self.bar.show_chosen("quantity", quantity)
        self.choose("quantity", quantity)

    def _restart(self, _: int) -> None:
        self.start()

    def start(self) -> None:
        """Draw vectors from the seed, beside the window."""
        self.run += 1
        run, seed, keys = self.run, self.seed.value(), self.keys
        self.running = True

        def job(report: Report) -> SqrtDResult | None:
            load_plots()
            told, found = 0.0, None
            for found in sqrt_d_experiment(seed, keys=keys):
                report(found.share)
                # The next result waits until the window has shown the last one.
                if self._shown.is_set() and time.monotonic() - told > _TELL_EVERY:
                    self._shown.clear()
                    told = time.monotonic()
                    self.drawn.emit(run, found)
            return found

        def done(found: SqrtDResult) -> None:
            self.running = False
            self._take(run, found)

        self._session.tasks.start("sqrt d", "random vectors", job, done)

    def _follow(self, run: int, found: SqrtDResult) -> None:
        self._take(run, found)
        QTimer.singleShot(0, self._shown.set)

    def _take(self, run: int, found: SqrtDResult) -> None:
        if run == self.run:
            self.found = found
            self._draw()

    def _rest(self) -> None:
        """Say that it was stopped, if the last result is not the end."""
        if self.running:
            self.running = False
            self._draw()

    def _draw(self) -> None:
        if self.found is None:
            return
        if self.draws:
            self.show_plot(draw_plot(one_draw(self.seed.value(), self.d, self.keys)))
        else:
            state = self._state(self.found)
            self.show_plot(sqrt_d_plot(self.found, self.measured, state, self.trained))

    def _state(self, found: SqrtDResult) -> str:
        least = min(point.trials for point in found.points)
        if found.share >= 1:
            return f"Seed {found.seed}, {least} queries of {found.keys} keys for each d"
        word = "drawing" if self.running else "stopped"
        return f"Seed {found.seed}, {word} at {round(100 * found.share)} %"

    def set_style(self, style: Style) -> None:
        super().set_style(style)
        set_sheet(self.again, bar_sheet(self.bar.style_now))
        set_sheet(self._seed_label, f"color: {style.theme.text}; background: transparent;")

    def arrange(self) -> None:
        """Put seed and button at the end of the last line of choices, or on another line."""
        super().arrange()
        if self.bar.isHidden():
            return
        style = self.bar.style_now
        font, px = style.text_font(12), style.px
        sizes = [
            text_width(font, "seed") + px(6),
            text_width(font, "0000000000") + px(34),
            text_width(font, self.again.text()) + px(16),
        ]
        widgets = (self._seed_label, self.seed, self.again)
        bar = self.bar.geometry()
        used = max(child.geometry().right() for child in self.bar.shown())
        height, gap = round(px(24)), px(10)
        x, y = bar.x() + used + gap, float(bar.y())
        if self.bar.height() > 1.5 * height or x + sum(sizes) + 2 * px(4) > bar.right():
            x, y = float(bar.x()), bar.bottom() + px(1)
            plot = self.plot.geometry()
            top = round(y + height + px(4))
            plot.setTop(min(top, plot.bottom() - 40))
            self.plot.setGeometry(plot)
        for widget, size in zip(widgets, sizes, strict=True):
            widget.setFont(font)
            widget.setGeometry(round(x), round(y), round(size), height)
            x += size + px(4)
