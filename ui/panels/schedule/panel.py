"""The dock that shows which thread block runs on which multiprocessor when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QPointF, QRectF, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QWidget

from simulator.base.choices import Choice, Option, one_of
from simulator.base.errors import InputError, safe_text
from simulator.lesson.tables import ChooseTable
from simulator.program.tile_program import TileProgram
from simulator.study.schedule.chrome import read_trace, write_trace
from simulator.study.schedule.clc_log import read_clc_log
from simulator.study.schedule.events import Events
from simulator.study.schedule.placing import ORDERS, Order
from ui.panels.base import StatePicture
from ui.panels.picture_panel import PicturePanel
from ui.panels.schedule.model import WHATS, ScheduleState, TimelineRow, What, schedule_state
from ui.panels.schedule.painter import MIN_SIZE, event_at, paint_schedule, schedule_layout
from ui.safety.overrides import guarded
from ui.session.session import Session
from ui.session.tasks import Report
from ui.session.view import View

CHOICES = (
    Choice("what", (
        Option("run", "This run", "Run", "The thread blocks of this run."),
        Option("orders", "Orders", "Orders",
               "The same thread blocks, started in other orders (Graham 1969)."),
        Option("algorithms", "Algorithms", "Others",
               "The same problem with other algorithms, each over its own time."),
        Option("splits", "Splits", "Splits",
               'What splits = "auto" chooses, and why (Flash-Decoding, Dao et al. 2023).'),
    )),
    Choice("order", (
        Option("index", "order of the grid", "", "Blocks start in the order of the grid."),
        Option("longest", "longest first", "", "The blocks with the most work start first."),
        Option("persistent", "persistent", "",
               "As many thread blocks as fit; each takes every so many-th piece. The model leaves "
               "out what they save: the start of each block."),
    ), listed=True),
)  # fmt: skip

LOGS = (".log", ".txt")
"""A file that ends so is read as a log of CLC, any other as a trace."""


@guarded
class TimelinePicture(StatePicture[ScheduleState]):
    """The bars; a block that the mouse points at is told."""

    pointed = Signal(object)
    """Row and event, or None."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, "Thread blocks over time", paint_schedule)
        self.setMouseTracking(True)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self.pointed.emit(self.event_at(event.position()))

    def event_at(self, at: QPointF) -> tuple[int, int] | None:
        """Return the row and the event at a point of the widget."""
        if self.state is None:
            return None
        lay = schedule_layout(self.state, self.style_now, QRectF(self.rect()))
        return event_at(self.state, lay, at)


@guarded
class SchedulePanel(PicturePanel):
    """Thread blocks of the run, in several orders, beside other algorithms and splits."""

    def __init__(self, session: Session) -> None:
        super().__init__("schedule_panel", "Schedule", CHOICES, MIN_SIZE)
        self._session = session
        self.what: What = "run"
        self.order: Order = "index"
        self._asked: tuple[TileProgram, What, Order] | None = None
        self._visit = 0
        self._beside: tuple[TimelineRow, ...] = ()
        self.bar.show_chosen("what", self.what)
        self.bar.show_chosen("order", self.order)
        self.picture = TimelinePicture(self)
        self.picture.pointed.connect(self._point)

    @property
    def state(self) -> ScheduleState | None:
        """The timelines on show."""
        return self.picture.state

    def forget(self) -> None:
        self._asked = self.picture.state = None
        self._beside = ()

    def show_view(self, view: View, model: None = None) -> None:
        """Show a view: another run makes other bars, another visit marks another block."""
        self._visit = view.snapshot.visit.index
        self._renew(view.snapshot.program)

    def choose(self, name: str, value: str) -> None:
        """Accept a choice."""
        if name == "what":
            self.what = one_of(WHATS, value)
            self.bar.show_choice("order", self.what != "orders")
            self.arrange()
        else:
            self.order = one_of(ORDERS, value)
        if self._asked is not None:
            self._renew(self._asked[0])

    def take_choices(self, choices: ChooseTable) -> None:
        """Show what a lesson has chosen."""
        self.bar.choose("order", choices.blocks or "index")
        self.bar.choose("what", choices.schedule or "run")

    def _renew(self, program: TileProgram) -> None:
        asked = program, self.what, self.order
        if asked == self._asked:
            if self.state is not None and self.state.program is program:  # else its own comes yet
                self._draw(replace(self.state, visit=self._visit))
            return
        self._asked = asked

        def job(report: Report) -> ScheduleState:
            return schedule_state(*asked)

        def done(state: ScheduleState) -> None:
            if self._asked == asked:
                rows = (*state.rows, *self._beside)
                self._draw(replace(state, rows=rows, visit=self._visit))

        self._session.tasks.start("schedule", "thread blocks on multiprocessors", job, done)

    def write(self, path: Path, failed: Callable[[InputError], None]) -> None:
        """Write the model's rows as a trace, beside the window; say why if that fails."""
        state = self.state
        if state is None:
            return
        rows = [(row.title, row.events) for row in state.rows if row.schedule and row.events]
        about = {"source": "Tilescope", "model": state.title[0], "note": " ".join(state.words)}

        def job(report: Report) -> InputError | None:
            try:
                write_trace(path, rows, about)
            except InputError as error:
                return error
            return None

        def done(error: InputError | None) -> None:
            if error is not None:
                failed(error)

        self._session.tasks.start("schedule trace", "writing the trace", job, done)

    def open(self, path: Path, failed: Callable[[InputError], None]) -> None:
        """Set a trace or a log of others below the model; say why if it cannot be read."""

        def done(found: Events | InputError) -> None:
            if isinstance(found, InputError):
                failed(found)
                return
            what = "trace" if found.timed else "log"
            title = f"{safe_text(path.name)}: a {what} from elsewhere"
            row = TimelineRow(title, "muted", events=found)
            if self.state is not None:
                own = self.state.rows[: len(self.state.rows) - len(self._beside)]
                self._draw(replace(self.state, rows=(*own, row), pointed=None))
            self._beside = (row,)

        is_log = path.suffix.lower() in LOGS
        self._session.reading.read(path, read_clc_log if is_log else read_trace, done)

    def _point(self, found: tuple[int, int] | None) -> None:
        if self.state is not None and found != self.state.pointed:
            self._draw(replace(self.state, pointed=found))

    def _draw(self, state: ScheduleState) -> None:
        self.picture.state = state
        rows = (f"{row.title}: {row.figures[0]}." for row in state.rows)
        words = " ".join((f"{state.title[0]}.", *rows, state.told, *state.words))
        self.describe(words)
