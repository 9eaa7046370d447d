"""The transport bar: the place in the run, and everything that moves it."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from simulator.problem.scenario import Batch
from simulator.program.playback import SPEEDS, Cursor, Granularity, end_of_visit
from simulator.run.snapshot import Snapshot
from ui.look.draw import text_width
from ui.look.icons import icon
from ui.look.names import op_words, outer_block_word, visit_words
from ui.look.theme import Style
from ui.look.units import plural
from ui.panels.transport.painter import (
    ScrubberLayout,
    chip_layout,
    paint_chips,
    paint_scrubber,
    position_words,
    time_tip,
    time_words,
)
from ui.widgets.choice_box import ChoiceBox
from ui.widgets.named import named
from ui.widgets.painted import Painted
from ui.widgets.parts import with_parts
from ui.widgets.sheet import set_sheet

ROOMY_WIDTH = 900
"""Pixels for each unit of text scale that the bar needs; if there are fewer, its text is
smaller."""
SEQUENCE_WIDTH = 150
"""More of these pixels where a sequence of a batch can be chosen."""
_BUTTONS = (
    ("first", "First op of the run", "Home"),
    ("back", "One step back", "←"),
    ("play", "Play or pause", "Space"),
    ("forward", "One step on", "→"),
    ("last", "End of the run", "End"),
)


class _BarPart(Painted):
    """A part of the bar: a place of the run is chosen in it."""

    cursor_chosen = Signal(object)
    ground = False

    def __init__(self, name: str, tip: str) -> None:
        super().__init__()
        named(self, name, tip)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.snapshot: Snapshot | None = None

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Show the place in the run."""
        self.snapshot = snapshot
        self.update()

    def place(self) -> QRectF:
        """Return the place of the picture, with a frame around it for the focus."""
        edge = self.style_now.px(2)
        return QRectF(self.rect()).adjusted(edge, edge, -edge, -edge)

    def beside(self, snapshot: Snapshot, step: int) -> Cursor | None:
        """Return the cursor that an arrow key chooses."""
        raise NotImplementedError

    def key(self, event: QKeyEvent) -> bool:
        # Only if the window has no action for these keys.
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        cursor = self.beside(self.snapshot, step) if self.snapshot and step else None
        if cursor is not None:
            self.cursor_chosen.emit(cursor)
        return cursor is not None


class Scrubber(_BarPart):
    """All visits of the run; pressing or dragging chooses one."""

    def __init__(self) -> None:
        super().__init__("scrubber", "Visits of the run")
        self._chosen: int | None = None

    def paint(self, painter: QPainter) -> None:
        if self.snapshot is not None:
            paint_scrubber(painter, self.snapshot, self.style_now, self.place())

    def visit_at(self, x: float) -> int:
        """Return the visit at a place of the widget."""
        assert self.snapshot is not None
        return ScrubberLayout(self.snapshot.program, self.style_now, self.place()).visit_at(x)

    def tip(self, at: QPointF) -> str | None:
        now = self.snapshot
        return None if now is None else visit_words(now.program, self.visit_at(at.x()))

    def beside(self, snapshot: Snapshot, step: int) -> Cursor | None:
        """Return the end of the previous or next visit."""
        visit = snapshot.cursor.visit + step
        inside = 0 <= visit < len(snapshot.program)
        return end_of_visit(snapshot.program, visit) if inside else None

    def press(self, at: QPointF) -> bool:
        self._chosen = None
        self.drag(at)
        return True

    def drag(self, at: QPointF) -> None:
        """Choose the visit at a point, once, however many events there are."""
        if self.snapshot is not None and (visit := self.visit_at(at.x())) != self._chosen:
            self._chosen = visit
            self.cursor_chosen.emit(end_of_visit(self.snapshot.program, visit))


class OpChips(_BarPart):
    """The ops of the current visit; a click moves to an op."""

    def __init__(self) -> None:
        super().__init__("ops", "Ops of the visit")

    def paint(self, painter: QPainter) -> None:
        if self.snapshot is not None:
            paint_chips(painter, self.snapshot, self.style_now, self.place())

    def op_at(self, at: QPointF) -> int | None:
        """Return the op whose chip is at a place of the widget."""
        if self.snapshot is None:
            return None
        return chip_layout(self.snapshot, self.style_now, self.place()).op_at(at.x(), at.y())

    def tip(self, at: QPointF) -> str | None:
        op, now = self.op_at(at), self.snapshot
        return "" if op is None or now is None else op_words(now.ops[op], now.program.workload)

    def beside(self, snapshot: Snapshot, step: int) -> Cursor | None:
        """Return the previous or next op in this visit."""
        op = snapshot.cursor.op + step
        return Cursor(snapshot.cursor.visit, op) if 0 <= op < len(snapshot.ops) else None

    def press(self, at: QPointF) -> bool:
        op = self.op_at(at)
        if op is not None and self.snapshot is not None:
            self.cursor_chosen.emit(Cursor(self.snapshot.cursor.visit, op))
        return True


class TransportBar(Painted):
    """Buttons, scrubber, op chips, step, speed, place and simulated time.

    The bar shows a snapshot and emits the user's wishes; it moves nothing itself.
    """

    ground = False
    cursor_chosen = Signal(object)
    step_asked = Signal(bool)
    first_asked = Signal()
    last_asked = Signal()
    play_toggled = Signal(bool)
    granularity_chosen = Signal(object)
    speed_chosen = Signal(float)
    sequence_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Transport")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._playing = False
        self._snapshot: Snapshot | None = None
        self.buttons = {
            name: named(QToolButton(), name, tip, f"{tip} ({key})") for name, tip, key in _BUTTONS
        }
        for button in self.buttons.values():
            button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.scrubber, self.chips = Scrubber(), OpChips()
        self.place = named(QLabel(), "place", "Place in the run")
        self.time = named(QLabel(), "time", "Simulated time")
        tip = "Step by op, tile, row block or head"
        self.step_box = named(ChoiceBox(), "step", "What one step is", tip)
        for granularity in Granularity:
            self.step_box.addItem(f"by {granularity.value}", granularity)
        self.speed_box = named(ChoiceBox(), "speed", "Playing speed", "Playing speed: + and −")
        for speed in SPEEDS:
            self.speed_box.addItem(f"{speed:g}×", speed)
        self.set_speed(1.0)
        tip = "Sequence of the batch"
        self.sequence_box = named(ChoiceBox(), "sequence", "Sequence", tip)
        self.sequence_box.hide()
        self._lay_out()
        self._connect()
        self.arrange()

    def _lay_out(self) -> None:
        self._keys = with_parts(QHBoxLayout(), *self.buttons.values())
        middle = with_parts(QVBoxLayout(), (self.scrubber, 1), (self.chips, 1), gap=0)
        choices = with_parts(QHBoxLayout(), (self.step_box, 1), self.speed_box, gap=4)
        self._info = with_parts(QVBoxLayout(), 1, self.place, choices, self.time, 1)
        self._row = with_parts(
            QHBoxLayout(self), self._keys, self.sequence_box, (middle, 1), self._info
        )
        self._row.setAlignment(self.sequence_box, Qt.AlignmentFlag.AlignVCenter)
        for button in self.buttons.values():
            self._keys.setAlignment(button, Qt.AlignmentFlag.AlignVCenter)

    def _connect(self) -> None:
        for part in (self.scrubber, self.chips):
            part.cursor_chosen.connect(self.cursor_chosen)
        press = self.buttons
        press["first"].clicked.connect(self.first_asked)
        press["last"].clicked.connect(self.last_asked)
        press["back"].clicked.connect(lambda: self.step_asked.emit(False))
        press["forward"].clicked.connect(lambda: self.step_asked.emit(True))
        press["play"].clicked.connect(lambda: self.play_toggled.emit(not self._playing))
        # `activated` is only the user's choice: setting a value in the program does not emit it.
        for box, told in (
            (self.step_box, self.granularity_chosen), (self.speed_box, self.speed_chosen),
            (self.sequence_box, self.sequence_chosen),
        ):  # fmt: skip
            box.activated.connect(lambda n, box=box, told=told: told.emit(box.itemData(n)))

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Show the place in the run."""
        new_run = self._snapshot is None or self._snapshot.program is not snapshot.program
        self._snapshot = snapshot
        for part in (self.scrubber, self.chips):
            part.show_snapshot(snapshot)
        self.place.setText(position_words(snapshot))
        self.time.setText(time_words(snapshot))
        self.time.setToolTip(time_tip(snapshot))
        at = visit_words(snapshot.program, snapshot.cursor.visit)
        self.scrubber.setAccessibleDescription(at)
        self.chips.setAccessibleDescription(snapshot.op.name)
        if new_run:
            by_rows = snapshot.program.launches[0].by_rows
            outer = self.step_box.findData(Granularity.ROW_BLOCK)
            self.step_box.setItemText(outer, f"by {outer_block_word(by_rows)}")
            self._offer_sequences(snapshot.program.workload.scenario.batch)
            self.arrange()

    def _offer_sequences(self, batch: Batch) -> None:
        """List the sequences of a batch; a run without one has nothing to choose."""
        box = self.sequence_box
        words = [
            f"sequence {n}: {plural(batch.lengths[n], 'key')}"
            + (f", {plural(batch.queries[n], 'query row')}" if batch.queries else "")
            for n in batch.running
        ]
        if words != [box.itemText(n) for n in range(box.count())]:
            box.clear()
            for n, text in zip(batch.running, words, strict=True):
                box.addItem(text, n)
        box.setCurrentIndex(box.findData(batch.shown) if words else -1)
        box.setVisible(bool(words))

    def set_playing(self, playing: bool) -> None:
        """Show whether the run plays."""
        self._playing = playing
        self._draw_icons(self._fitting_style())

    def set_speed(self, speed: float) -> None:
        """Show the playing speed."""
        self.speed_box.setCurrentIndex(self.speed_box.findData(speed))

    def set_granularity(self, granularity: Granularity) -> None:
        """Show the step's granularity."""
        self.step_box.setCurrentIndex(self.step_box.findData(granularity))

    def _fitting_style(self) -> Style:
        """Return the style at a text scale for which the bar is wide enough."""
        needs = ROOMY_WIDTH + (0 if self.sequence_box.isHidden() else SEQUENCE_WIDTH)
        return replace(self.style_now, scale=min(self.style_now.scale, self.width() / needs))

    def arrange(self) -> None:
        style = self._fitting_style()
        edge = round(style.px(8))
        self._row.setContentsMargins(edge * 2, edge, edge * 2, edge)
        self._row.setSpacing(edge * 2)
        self._keys.setSpacing(edge // 2)
        self._info.setSpacing(edge // 2)
        self._draw_icons(style)
        small = style.text_font(12)
        self.place.setFont(style.text_font(13, bold=True))
        self.time.setFont(small)
        for box in (self.step_box, self.speed_box, self.sequence_box):
            box.set_style(style)
        for part in (self.scrubber, self.chips):
            part.set_style(style)
            part.setMinimumSize(round(style.px(200)), round(style.px(30)))
        theme = style.theme
        set_sheet(
            self,
            f"QToolButton {{ background: {theme.field}; border: 1px solid {theme.border};"
            f" border-radius: {round(style.px(6))}px; }}"
            f"QToolButton#play {{ background: {theme.accent}; }}"
            f'QToolButton:hover, QToolButton[ring="true"] {{ border-color: {theme.text}; }}'
            f"QToolButton:pressed {{ background: {theme.accent}; }}"
            f"QLabel#place {{ color: {theme.text}; }} QLabel#time {{ color: {theme.muted}; }}",
        )
        if self._snapshot is not None:
            # Wide enough for the end of the run, because the bar must not move as figures grow.
            visits = len(self._snapshot.program)
            longest = position_words(self._snapshot, visits - 1)
            gpu = self._snapshot.program.workload.gpu.name
            widest = max(
                text_width(self.place.font(), longest),
                text_width(small, f"≈ 999.9 ms on {gpu}"),
                self.step_box.sizeHint().width() + self.speed_box.sizeHint().width() + 4,
            )
            for label in (self.place, self.time):
                label.setFixedWidth(round(widest) + 4)

    def _draw_icons(self, style: Style) -> None:
        side, glyph = round(style.px(42)), round(style.px(20))
        for name, button in self.buttons.items():
            shown = "pause" if name == "play" and self._playing else name
            button.setIcon(icon(shown, style.theme.text))
            button.setIconSize(QSize(glyph, glyph))
            button.setFixedSize(side, side)
