"""The dock that shows what the order of tokens does, and how far they hear of each other."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QMouseEvent, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QSlider, QWidget

from simulator.base.choices import Choice, Option, one_of
from simulator.lesson.tables import ChooseTable
from simulator.program.playback import end_of_visit
from simulator.run.trace import Trace
from simulator.study.order.shuffle import PLACES, Places
from ui.look.draw import text_width
from ui.look.names import fitting
from ui.look.theme import Style
from ui.panels.base import Panel, StatePicture
from ui.panels.order.reach import paint_reach, reach_layout
from ui.panels.order.shuffle import MIN_SIZE, paint_shuffle
from ui.panels.order.state import (
    ReachState,
    ShuffleState,
    lit_to,
    reach_state,
    shuffle_state,
)
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.session.motion import TICK_MS
from ui.session.session import Session
from ui.session.tasks import Report
from ui.session.view import View
from ui.widgets.choice_bar import PlotBar
from ui.widgets.sheet import set_sheet

LAYERS = (1, 2, 3, 4, 6, 8, 12, 16, 24)
WINDOWS = (2, 3, 4, 8, 16, 32, 64, 128)
SHUFFLE, REACH = "shuffle", "reach"
CHOICES = (
    Choice("view", (
        Option(SHUFFLE, "Shuffle", "Shuffle",
               "Rows of O before and after the tokens were shuffled (Vaswani et al. 2017, "
               "section 3.5)."),
        Option(REACH, "Reach", "Reach",
               "Of which tokens one can hear through some layers: the boolean product of their "
               "masks (Beltagy et al. 2020, section 3.1)."),
    )),
    Choice("places", (
        Option("run", "as in this run", "", "Mask, bias and positions of this run."),
        Option("none", "no mask, no positions", "", "Nothing depends on places."),
        Option("causal", "a causal mask", "", "A causal mask, and no positions."),
        Option("rope", "rotary positions", "", "Q and K are turned by their places; no mask."),
    ), listed=True),
    Choice("seed", tuple(
        Option(str(seed), f"shuffle {seed}", "", "In which order the tokens stand afterwards.")
        for seed in range(8)
    ), listed=True),
    Choice("window", (
        Option("0", "local: this run's mask", "",
               "What rows see in local layers; a window of 4 if the run's mask is not local."),
        *(Option(str(n), f"local: window {n}", "", "What rows see in local layers.")
          for n in WINDOWS),
    ), listed=True),
    Choice("layers", tuple(
        Option(str(n), f"{n} layer{'s' * (n > 1)}", "", "How many layers the model has.")
        for n in LAYERS
    ), listed=True),
)  # fmt: skip
_OF = {SHUFFLE: ("places", "seed"), REACH: ("window", "layers")}
_SIDE = 8
_LAYER_SECONDS = 0.25
"""How long a layer takes to light up."""


@guarded
class ReachPicture(StatePicture[ReachState]):
    """The cone; a click on a token is told."""

    clicked = Signal(int)
    """The token that was clicked."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, "Reach of a token", paint_reach)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self.state is None or event.button() != Qt.MouseButton.LeftButton:
            return
        token = self.token_at(event.position())
        if token is not None:
            self.clicked.emit(token)

    def token_at(self, at: QPointF) -> int | None:
        """Return the token at a point of the widget."""
        assert self.state is not None
        lay = reach_layout(self.state, self.style_now, QRectF(self.rect()))
        return lay.token_at(at, self.state.tokens)


@guarded
class OrderPanel(Panel[None]):
    """Shuffled tokens, and the reach of layers."""

    def __init__(self, session: Session) -> None:
        super().__init__("order_panel", "Order and reach")
        self._session = session
        self._trace: Trace | None = None
        self._head = self.row = 0
        self.view = SHUFFLE
        self.places: Places = "run"
        self.seed = self.window_of = 0
        self.layers = 4
        self.shuffle: ShuffleState | None = None
        self.reach: ReachState | None = None
        self._controls = True
        self._asked: tuple[Trace, int, str, int] | None = None
        self.bar = PlotBar(CHOICES)
        self.bar.setParent(self)
        self.bar.fit_button.hide()
        self.bar.chosen.connect(self.choose)
        for name, value in (("view", self.view), ("places", "run"), ("seed", "0"),
                            ("window", "0"), ("layers", str(self.layers))):  # fmt: skip
            self.bar.show_chosen(name, value)
        self.slider = QSlider(Qt.Orientation.Horizontal, self)
        self.slider.setObjectName("global_layers")
        self.slider.setAccessibleName("Global layers")
        self.slider.setToolTip("How many of the layers are global, evenly spread.")
        self.slider.setPageStep(1)
        self.slider.setRange(0, self.layers)
        self.slider.valueChanged.connect(self._slid)
        self.label = QLabel(self)
        self.pictures: dict[str, StatePicture[ShuffleState] | ReachPicture] = {
            SHUFFLE: StatePicture[ShuffleState](self, "Shuffled tokens", paint_shuffle),
            REACH: ReachPicture(self),
        }
        self.cone.clicked.connect(self.take)
        self._last = 0.0
        self._timer = QTimer(self, interval=TICK_MS)
        self._timer.timeout.connect(self._tick)
        self._show_parts()

    @property
    def cone(self) -> ReachPicture:
        """The picture of the reach."""
        found = self.pictures[REACH]
        assert isinstance(found, ReachPicture)
        return found

    # --- what is shown --------------------------------------------------------------------

    def forget(self) -> None:
        self._trace = self._asked = self.shuffle = self.reach = None
        for picture in self.pictures.values():
            picture.state = None

    def show_view(self, view: View, model: None = None) -> None:
        """Show a view: another run, head or row changes what is shown."""
        trace = self._session.trace
        if trace is None or view.snapshot.program is not trace.program:
            return
        head, row = trace.workload.single(view.snapshot.visit.head, view.report.row)
        if (trace, head, row) == (self._trace, self._head, self.row):
            return
        lights = trace is self._trace and self.reach is not None and self._timer.isActive()
        self._trace, self._head, self.row = trace, head, row
        self._renew(lights=lights)

    def _renew(self, *, lights: bool = False) -> None:
        trace = self._trace
        if trace is None:
            return
        single, inputs = trace.single_heads
        if self.view == REACH:
            self.reach = reach_state(
                single, self.row + single.mask.shift, self.window_of, self.layers,
                self.slider.value(),
            )  # fmt: skip
            self._light(lights=lights)
            return
        asked = (trace, self._head, self.places, self.seed)
        if asked == self._asked:
            if self.shuffle is not None:
                self.shuffle = replace(self.shuffle, row=self.row)
                self._draw()
            return
        self._asked, self.shuffle = asked, None
        head, row, places, seed = self._head, self.row, self.places, self.seed

        def job(report: Report) -> ShuffleState:
            return shuffle_state(single, inputs, head, row, places, seed)

        def done(state: ShuffleState) -> None:
            if self._asked == asked:
                self.shuffle = replace(state, row=self.row)  # another may have been chosen
                self._draw()

        self._session.tasks.start("order", "shuffled tokens", job, done)

    def _light(self, *, lights: bool) -> None:
        """Show the cone, or let it light up layer by layer."""
        assert self.reach is not None
        if lights and self._session.motion and self._controls:
            self.reach = lit_to(self.reach, 0.0)
            self._last = self._session.clock.now()
            self._timer.start()
        else:
            self._timer.stop()
        self._draw()

    def _tick(self) -> None:
        now = self._session.clock.now()
        if self.reach is None:
            self._timer.stop()
            return
        passed, self._last = max(now - self._last, 0.0), now
        lit = self.reach.lit + passed / _LAYER_SECONDS
        if lit >= self.layers:
            self._timer.stop()
            lit = float(self.layers)
        self.reach = lit_to(self.reach, lit)
        self._draw()

    def choose(self, name: str, value: str) -> None:
        """Accept a choice."""
        if name == "view":
            self.view = value
            self._show_parts()
            self._arrange()
        elif name == "places":
            self.places = one_of(PLACES, value)
        elif name == "seed":
            self.seed = int(value)
        elif name == "window":
            self.window_of = int(value)
        else:
            self._take_layers(int(value), self.slider.value())
        self._renew(lights=name in _OF[REACH])

    def _take_layers(self, layers: int, count: int) -> None:
        self.layers = layers
        blocked = self.slider.blockSignals(True)
        self.slider.setRange(0, layers)
        self.slider.setValue(min(count, layers))
        self.slider.blockSignals(blocked)
        self._arrange()

    def _slid(self, _: int) -> None:
        self._arrange()
        self._renew(lights=True)

    def take_choices(self, choices: ChooseTable) -> None:
        """Show what a lesson has chosen."""
        self.places = choices.places or "run"
        self.window_of = choices.window or 0
        self.bar.show_chosen("places", self.places)
        self.bar.show_chosen("window", str(self.window_of))
        layers = choices.layers or 4
        self.bar.show_chosen("layers", str(layers))
        self._take_layers(layers, choices.global_layers or 0)
        self.bar.choose("view", choices.order or SHUFFLE)

    def _show_parts(self) -> None:
        for view, names in _OF.items():
            for name in names:
                self.bar.show_choice(name, view == self.view)
        for view, picture in self.pictures.items():
            picture.setVisible(view == self.view)
        self._show_slider()

    def _show_slider(self) -> None:
        for widget in (self.slider, self.label):
            widget.setVisible(self._controls and self.view == REACH)

    def _draw(self) -> None:
        state = self.reach if self.view == REACH else self.shuffle
        if state is None:
            return
        picture = self.pictures[self.view]
        picture.state = state
        words = " ".join((f"{state.title[0]}.", *state.words))
        picture.setAccessibleDescription(words)
        self.setAccessibleDescription(words)
        picture.update()

    # --- what it changes ------------------------------------------------------------------

    def take(self, token: int) -> None:
        """Explain the row of a token that was clicked, and light up its cone."""
        trace = self._trace
        if trace is None or trace is not self._session.trace:
            return
        single = trace.single_heads[0]
        row = token - single.mask.shift
        if not 0 <= row < single.seqlen_q:
            return
        w, session = trace.workload, self._session
        head, row = w.packed(self._head, row)
        here = trace.program.visit(session.cursor.visit)
        own = min(max(token, 0), w.seqlen_k - 1) // w.cols
        for j in (here.j, own):
            index = trace.program.index(head, row // w.rows, j, here.launch)
            if index is not None:
                session.go(end_of_visit(trace.program, index))
                break
        session.choose_row(row)
        self.row = token - single.mask.shift
        self._renew(lights=True)

    def show_controls(self, on: bool) -> None:
        self._controls = on
        self.bar.setVisible(on)
        self._show_slider()
        self._arrange()
        if not on and self.reach is not None:
            self._timer.stop()
            self.reach = lit_to(self.reach, float(self.layers))
            self._draw()

    # --- looks ----------------------------------------------------------------------------

    def set_style(self, style: Style) -> None:
        super().set_style(style)
        for picture in self.pictures.values():
            picture.style_now = style
            picture.update()
        set_sheet(self.label, f"color: {style.theme.text}; background: transparent;")
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            self.clear(painter)

    def _arrange(self) -> None:
        """Give the choices their lines, then the slider its own, then the picture the rest."""
        fitted = fitting(self.style_now, QRectF(self.rect()), MIN_SIZE)
        # Controls stay as large as text is without a scale.
        style = replace(fitted, scale=max(fitted.scale, min(self.style_now.scale, 1)))
        self.bar.set_style(style)
        side = round(self.style_now.px(_SIDE))  # on the stage it is at the edge of the screen
        width = self.width() - 2 * side
        deep = self.bar.arrange(width) if self._controls else 0
        self.bar.setGeometry(side, 5, width, deep)
        top = 5 + deep + 3
        if self._controls and self.view == REACH:
            font, high = style.text_font(12), round(style.px(24))
            self.label.setFont(font)
            self.label.setText(f"{self.slider.value()} of {self.layers} global")
            said = round(text_width(font, "24 of 24 global") + style.px(10))
            self.label.setGeometry(side, top, said, high)
            self.slider.setGeometry(side + said, top, max(width - said, 40), high)
            top += high + 4
        for picture in self.pictures.values():
            picture.setGeometry(side, top, width, max(self.height() - top - 6, 40))
