"""The dock that shows the whole layer around the tiles."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, QSizeF, Qt
from PySide6.QtGui import (
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QSlider, QToolTip

from simulator.base.assets import SCENARIOS
from simulator.base.choices import Choice, Option
from simulator.lesson.tables import ChooseTable
from simulator.problem.filling import done_after_words
from simulator.problem.scenario import with_values
from simulator.program.playback import moved
from simulator.run.trace import Trace
from simulator.run.whole_layer import EXAMPLE, LayerRun, compute_layer, finished_rows, known_layer
from ui.kit.boxes import Box, Scene, scene
from ui.look.draw import draw_text, outline, text_width, wrapped
from ui.look.names import fitting
from ui.look.theme import LABEL, Style
from ui.panels.base import Panel
from ui.panels.layer.circuits import (
    MOST_WIDE,
    CircuitState,
    circuit_picture,
    circuit_state,
    circuit_words,
)
from ui.panels.layer.counts import CountState, count_picture, count_state, count_words
from ui.panels.layer.flow import FlowPicture
from ui.panels.layer.model import FlowState, LayerModel
from ui.panels.layer.places import flow_room
from ui.panels.layer.product import (
    ProductState,
    product_picture,
    product_state,
    product_words,
)
from ui.panels.layer.row import LayerRow, RowPicture, row_state, row_words
from ui.panels.layer.words import stage_words
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.session.session import Session
from ui.session.view import View
from ui.widgets.choice_bar import Button, PlotBar, bar_sheet
from ui.widgets.focus import has_ring
from ui.widgets.sheet import set_sheet

CHOICE = Choice("layer", (
    Option("flow", "Flow", "Flow",
           "From X to Y: shapes, slices of heads, and the stage at work. Click a stage, or ↑ ↓."),
    Option("stage", "One stage", "Stage",
           "What a stage takes and makes, at large. Click a number to see its sum; ↑ ↓ the stage."),
    Option("row", "One row of Y", "Row", "What each head gives to one row of Y; ↑ ↓ choose it."),
    Option("head", "One head", "Head",
           "W_Q W_Kᵀ and W_V W_O of a head, and how far the first is from symmetric; ↑ ↓."),
    Option("heads", "How many heads", "Heads",
           "What stays and what multiplies when more heads divide the same width."),
))  # fmt: skip
NO_LAYER = (
    "This run begins at Q, K and V: it has no X and no weights, so there is no layer around it."
)
_BELOW = "Below is another run, the demo of a whole layer."
_TASK = "the whole layer"
ROOMS = {"stage": QSizeF(620, 250), "row": QSizeF(520, 220), "head": QSizeF(560, 260),
          "heads": QSizeF(480, 250)}  # fmt: skip
"""What each picture needs at scale 1; the flow stands in one line or in two."""


@guarded
class LayerPanel(Panel[LayerModel]):
    """The whole layer: its flow, one row of Y, one head, or how many heads there might be."""

    def __init__(self, session: Session) -> None:
        super().__init__("layer_panel", "Layer", QSize(320, 150))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self._session = session
        self.shown = "flow"
        """The option of `CHOICE` on show."""
        self.model: LayerModel | None = None
        self.stage: str | None = None
        """The stage that was asked for."""
        self.row: int | None = None
        self.head: int | None = None
        """The row and the head that were chosen here; None: those of the run."""
        self.cell: tuple[int, int] | None = None
        """The number of a stage that is explained; None: the first of the run's row."""
        self._flow: FlowState | None = None
        self._circuit: CircuitState | None = None
        self._asked: Trace | None = None
        self.stopped = False
        """Whether a layer that takes long has not been run to its end."""
        self._controls = True
        """Whether somebody can use its slider and its button."""
        self._awaited: str | None = None
        """The stage that a lesson has chosen of a run whose first view is still to come."""
        self._bar = PlotBar((CHOICE,))
        self._bar.fit_button.hide()
        self._bar.show_chosen("layer", self.shown)
        self._bar.chosen.connect(self.choose)
        self.slider = QSlider(Qt.Orientation.Horizontal, self)
        self.slider.setObjectName("layer_heads")
        self.slider.setAccessibleName("Heads that divide the width")
        self.slider.setPageStep(1)
        self.slider.setTickPosition(QSlider.TickPosition.TicksBelow)
        self.slider.valueChanged.connect(self._slid)
        self.button = Button(self)
        self.button.setObjectName("layer_button")
        self.button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.button.clicked.connect(self._press)
        session.tasks.rested.connect(self._rest)
        self._arrange()

    # --- what it shows --------------------------------------------------------------------

    @property
    def title_bar(self) -> PlotBar:
        return self._bar

    @property
    def run(self) -> LayerRun | None:
        """The layer that is shown."""
        return None if self.model is None else self.model.run

    @property
    def counts(self) -> CountState | None:
        """The number of heads that is supposed."""
        return None if self.run is None else count_state(self.run, self.slider.value())

    @property
    def row_now(self) -> LayerRow | None:
        """The row of Y that is shown."""
        model = self.model
        if model is None or model.run is None:
            return None
        return row_state(model, model.row if self.row is None else self.row)

    @property
    def product(self) -> ProductState | None:
        """The stage that is shown at large."""
        model = self.model
        if model is None or model.run is None or self._flow is None:
            return None
        row, col = self.cell or (None, 0)
        return product_state(model, self._flow.shown, row, col)

    @property
    def circuit(self) -> CircuitState | None:
        """The matrices of the head that is shown; None if they are too large."""
        model, run = self.model, self.run
        if model is None or run is None or run.shapes["x"][1] > MOST_WIDE:
            return None
        head = model.head if self.head is None else self.head
        known = self._circuit
        if known is None or known.run is not run or known.head != head:
            known = self._circuit = circuit_state(run, head)
        return known

    @property
    def flow(self) -> FlowState | None:
        """The flow as it is shown now."""
        return self._flow

    def choose(self, name: str, value: str) -> None:
        """Show the layer in another way."""
        self._bar.show_chosen(name, value)
        self.shown = value
        self._changed()

    def take_choices(self, choices: ChooseTable) -> None:
        """Show it as a lesson has chosen."""
        self.row = self.head = self.cell = None
        self.stage = self._awaited = choices.stage
        self.choose("layer", choices.layer or "flow")

    def forget(self) -> None:
        self.model = self._flow = None

    def show_view(self, view: View, model: LayerModel) -> None:
        before, run = self.run, model.run
        self.model = model
        arriving = None
        if view.before is not None and run is not None and not model.example:
            arriving = model.finished & ~finished_rows(view.before)
        share = 1.0 if arriving is None else 0.0
        if run is not before:
            self.row = self.head = self.cell = None
            self.stage = self._awaited
            if run is not None and not model.example:
                self._awaited = None
        self._flow = None if run is None else FlowState(model, arriving, share, self.stage)
        if run is not None and run is not before:
            state = count_state(run)
            blocked = self.slider.blockSignals(True)
            self.slider.setRange(0, len(state.counts) - 1)
            self.slider.setValue(state.at)
            self.slider.blockSignals(blocked)
        if run is None:
            self._compute()
        self._changed()

    def show_share(self, share: float) -> None:
        if self._flow is not None and self._flow.arriving is not None:
            self._flow = replace(self._flow, share=moved(share))
            if self.shown == "flow" and self._flow.arriving is not None:
                self.update()

    def _compute(self) -> None:
        """Run a layer that takes long beside the window, once for each run."""
        trace = self._session.trace
        if trace is None or trace.whole_layer is None or trace is self._asked:
            return
        self._asked, self.stopped = trace, False

        def done(run: LayerRun) -> None:
            self._session.go(self._session.cursor)

        self._session.tasks.start(
            _TASK, "running the whole layer", lambda report: compute_layer(trace, report), done
        )

    def _rest(self) -> None:
        """Say that a layer was not run, if no work is under way any more."""
        trace = self._session.trace
        if self.run is None and trace is not None and trace is self._asked:
            self.stopped = known_layer(trace) is None
            if not self.stopped:  # it was called off when all had been done
                self._session.go(self._session.cursor)
            self._changed()

    # --- without a layer ------------------------------------------------------------------

    def _why(self) -> tuple[str, str]:
        """Return why there is no layer to be seen, and what the button offers."""
        trace = self._session.trace
        if trace is None or trace.inputs.layer is None:
            return self._no_layer(self._has_room), "Open the demo of a whole layer"
        if trace.whole_layer is None:
            picked, count = trace.workload.picked, trace.workload.input_heads[0]
            heads = f"head{'s' * (len(picked) > 1)} {', '.join(map(str, picked))} of {count}"
            return f"Only {heads} run, and Y needs all of them.", "Run all heads"
        if self.stopped:
            return "The whole layer was not run.", "Run it"
        return "The whole layer is being run beside the window.", ""

    def _no_layer(self, below: bool) -> str:
        """Say that there is no layer, and whether that of the demo stands below."""
        trace = self._session.trace
        said = done_after_words(trace.workload.file) if trace is not None else ""
        return " ".join(filter(None, (NO_LAYER, said, _BELOW if below else "")))

    def _press(self) -> None:
        trace, scenario = self._session.trace, self._session.scenario
        if trace is None or scenario is None or trace.inputs.layer is None:
            self._session.open_wanted.emit(SCENARIOS / EXAMPLE)
        elif trace.whole_layer is None:
            changed = with_values(scenario, {"input": {"head": "all"}})
            self._session.propose(changed, "all heads")
        else:
            self._asked = None
            self._compute()
            self._changed()

    # --- controls -------------------------------------------------------------------------

    def show_controls(self, on: bool) -> None:
        self._controls = on
        self._changed()

    def set_style(self, style: Style) -> None:
        super().set_style(style)
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _changed(self) -> None:
        if self._flow is not None:
            self._flow = replace(self._flow, selected=self.stage)
        self._arrange()
        self.setAccessibleDescription(self.words)
        self.update()

    def _arrange(self) -> None:
        """Place the slider and the button, where they are shown."""
        style, run = self.style_now, self.run
        self.slider.setVisible(self._slides)
        font, high = style.text_font(13), round(style.px(28))
        text = self._why()[1]
        offers = self.model is not None and (run is None or self.model.example) and bool(text)
        self.button.setVisible(self._controls and offers)
        self.button.setText(text)
        self.button.setAccessibleName(text)
        self.button.setFont(font)
        wide = round(text_width(font, text) + style.px(28))
        lines = len(self._sentence())
        top = round(self._room.y() + lines * style.px(22) + style.px(10))
        left = round(self._room.x())
        self.button.setGeometry(left, top, min(wide, self.width() - 2 * left), high)
        self.slider.setGeometry(left, 4, self.width() - 2 * left, round(style.px(26)))
        set_sheet(self, bar_sheet(style))
        bar = self._bar
        bar.setAccessibleName("What is shown of the layer")

    @property
    def _slides(self) -> bool:
        """Whether the slider is there."""
        return self._controls and self.run is not None and self.shown == "heads"

    def _sentence(self) -> list[str]:
        return self._wrapped(self._why()[0])

    def _wrapped(self, text: str) -> list[str]:
        return wrapped(text, self.style_now.text_font(14), self._room.width())

    def _slid(self, at: int) -> None:
        self._changed()

    @property
    def place(self) -> QRectF:
        """The picture's place: below the words for a run without a layer."""
        if self.model is not None and self.model.example:
            return self._below(self._sentence())
        return self._room

    def _below(self, lines: list[str]) -> QRectF:
        """The room below these lines and the button."""
        room, style = self._room, self.style_now
        room.setTop(room.y() + len(lines) * style.px(22) + style.px(16))
        if self._controls:
            room.setTop(room.y() + style.px(38))
        return room

    @property
    def _has_room(self) -> bool:
        """Whether the demo's layer can be read below what is said of a run without one."""
        place = self._below(self._wrapped(self._no_layer(below=True)))
        if self.run is None or place.isEmpty():
            return False
        return round(fitting(self.style_now, place, flow_room(place)).px(LABEL)) >= LABEL

    @property
    def _room(self) -> QRectF:
        """The room inside the margins and below the slider."""
        top = 6.0
        if self._slides:
            top += self.style_now.px(30)
        side = self.style_now.px(8)  # on the stage it is at the edge of the screen
        return QRectF(self.rect()).adjusted(side, top, -side, -6)

    @property
    def _is_drawn(self) -> bool:
        """Whether a layer is drawn: the run's, or the demo's where there is room for it."""
        example = self.model is not None and self.model.example
        return self._flow is not None and (not example or self._has_room)

    @property
    def words(self) -> str:
        """The picture in words."""
        if self.run is None or self._flow is None:
            return self._why()[0]
        if self.model is not None and self.model.example:
            seen = f" {self._picture_words(self.run, self._flow)}" if self._is_drawn else ""
            return self._why()[0] + seen
        return self._picture_words(self.run, self._flow)

    def _picture_words(self, run: LayerRun, flow: FlowState) -> str:
        if self.shown == "stage" and self.product is not None:
            return product_words(self.product)
        if self.shown == "row" and self.row_now is not None:
            return row_words(self.row_now)
        if self.shown == "head":
            return circuit_words(self.circuit) if self.circuit else _too_wide(run)
        if self.shown == "heads" and self.counts is not None:
            return count_words(self.counts)
        return stage_words(run, flow.shown)

    # --- painting -------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            self.clear(painter)
            if self.model is None:
                return
            if has_ring(self):
                outline(painter, QRectF(self.rect()), self.style_now.theme.text)
            if self.run is None or self._flow is None or self.model.example:
                self._paint_sentence(painter, self._sentence())
            elif self.shown == "head" and self.circuit is None:
                self._paint_sentence(painter, [_too_wide(self.run)])
            if (found := self.scene) is not None:
                found.paint(painter)

    @property
    def scene(self) -> Scene | None:
        """The boxes of the picture with their places; None if there is none."""
        box, place = self._picture() if self._is_drawn else None, self.place
        if box is None:
            return None
        room = ROOMS.get(self.shown) or flow_room(place)
        return scene(box, fitting(self.style_now, place, room), place)

    def _picture(self) -> Box | None:
        product, row, circuit, counts = self.product, self.row_now, self.circuit, self.counts
        if self.shown == "stage":
            return None if product is None else product_picture(product)
        if self.shown == "row":
            return None if row is None else RowPicture(row, self._controls)
        if self.shown == "head":
            return None if circuit is None else circuit_picture(circuit)
        if self.shown == "heads":
            return None if counts is None else count_picture(counts)
        return None if self._flow is None else FlowPicture(self._flow)

    def _paint_sentence(self, painter: QPainter, lines: list[str]) -> None:
        style, place, line = self.style_now, self._room, self.style_now.px(22)
        for n, text in enumerate(lines):
            box = QRectF(place.x(), place.y() + n * line, place.width(), line)
            draw_text(painter, box, text, style.text_font(14), style.theme.text)

    # --- pointer and keys -----------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose what is at a place: a stage, a number, a row or a head; a stage again: none."""
        found = self.scene
        if event.button() != Qt.MouseButton.LeftButton or found is None:
            return
        for spot in found.at(event.position()):
            match spot:
                case ("stage", str(stage)):
                    self.stage = None if stage == self.stage else stage
                case ("cell", int(row), int(col)):
                    self.cell = row, col
                case ("row", int(row), _):
                    self.row = row
                case ("head", int(head)):
                    self.head = head
        self._changed()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(Qt.Key(event.key()))
        if step is None or self.run is None or self._flow is None or not self._is_drawn:
            super().keyPressEvent(event)
            return
        self._step(self.run, self._flow, step)

    def _step(self, run: LayerRun, flow: FlowState, step: int) -> None:
        """Choose the next stage, row, head or number of heads."""
        if self.shown in ("flow", "stage"):
            names = [stage.name for stage in run.stages]
            self.stage = names[(names.index(flow.shown) + step) % len(names)]
            self.cell = None
        elif self.shown == "row" and self.row_now is not None:
            self.row = min(max(self.row_now.row + step, 0), run.shapes["y"][0] - 1)
        elif self.shown == "head" and self.circuit is not None:
            self.head = (self.circuit.head + step) % run.heads
        elif self.shown == "heads":
            self.slider.setValue(self.slider.value() + step)
        self._changed()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), self.reading(QPointF(event.pos())), self)
            return True
        return super().event(event)

    def reading(self, at: QPointF) -> str:
        """Return the number at a place in words; empty if there is none."""
        return "" if (found := self.scene) is None else found.tip(at)


def _too_wide(run: LayerRun) -> str:
    wide = run.shapes["x"][1]
    return f"D = {wide}: matrices of D × D are made up to D = {MOST_WIDE}."
