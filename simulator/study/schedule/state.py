"""The state of schedules as shown: rows of thread blocks over time, and marks in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from simulator.base.choices import one_of
from simulator.base.errors import InputError
from simulator.problem.workload import Workload
from simulator.program.algorithms import ALGORITHMS, algorithm_of, beside, tile_program
from simulator.program.tile_program import TileProgram
from simulator.study.schedule.batch import batch_programs
from simulator.study.schedule.choices import ORDER_NAMES
from simulator.study.schedule.events import Events, at_work, events_of
from simulator.study.schedule.residency import BlockNeeds
from simulator.study.schedule.schedule import Schedule, schedule_of, why_no_schedule
from simulator.study.schedule.splits import splitting, with_splits
from simulator.timing.orders import ORDERS

Needs = Callable[[Workload], Sequence[BlockNeeds]]
"""Returns the resources that thread blocks of a workload's launches take."""


@dataclass(frozen=True, eq=False)
class TimelineRow:
    """One row of the picture."""

    title: str
    algorithm: str  # whose colour it has
    schedule: Schedule | None = None  # the model; None for a trace, or if there is none
    events: Events | None = None  # what is drawn
    why: str = ""  # why nothing is drawn


@dataclass(frozen=True, eq=False)
class ScheduleState:
    """Rows of the model and of files, sentences about them, and marks in them."""

    program: TileProgram  # the run
    what: str  # which rows
    rows: tuple[TimelineRow, ...]  # the model's, from top to bottom
    sentences: tuple[str, ...] = ()  # explanations of the rows
    beside: tuple[TimelineRow, ...] = ()  # traces and logs of others
    visit: int = 0  # the visit at the cursor
    pointed: tuple[int, int] | None = None  # row and event under the mouse

    @property
    def shown(self) -> tuple[TimelineRow, ...]:
        """All rows from top to bottom."""
        return *self.rows, *self.beside

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """The schedules of the model's rows, as far as rows have one."""
        return tuple(row.schedule for row in self.rows if row.schedule)

    @property
    def seconds(self) -> float:
        """The length of the time axis; 0 where each row has its own, and no times are said."""
        if self.what == "algorithms" and any(each.model is None for each in self.schedules):
            return 0.0
        timed = (row.events for row in self.shown if row.events and row.events.timed)
        return max((events.seconds for events in timed), default=0.0)

    def across(self, events: Events) -> float:
        """Return the time that a row's width stands for: one for all rows, or the row's own."""
        return (self.seconds if events.timed else 0.0) or events.seconds

    def working(self, row: TimelineRow) -> range:
        """Return the events of a row that are at work at the cursor: of this run alone."""
        schedule = row.schedule
        if schedule is None or schedule.program is not self.program:
            return range(0)
        return at_work(schedule, self.visit)


def schedule_rows(
    program: TileProgram, what: str, order: str, needs: Needs
) -> tuple[TimelineRow, ...]:
    """Return a run in an order, in all orders, beside other algorithms, or with other splits."""
    if what == "orders":
        return tuple(_row(program, each, needs, ORDER_NAMES[each]) for each in ORDERS)
    if what == "algorithms":
        names = beside(program.workload.algorithm)
        return tuple(_other(program, name, order, needs) for name in names)
    if what == "splits":
        return tuple(_splits(program, order, needs))
    return (_row(program, order, needs),)


def _row(program: TileProgram, order: str, needs: Needs, title: str = "") -> TimelineRow:
    w, own, programs = program.workload, algorithm_of(program.workload), batch_programs(program)
    title, taken = title or own.title, needs(w)
    if why := why_no_schedule(program, taken, programs):
        return TimelineRow(title, own.name, why=why)
    found = schedule_of(program, taken, one_of(ORDERS, order), programs)
    return TimelineRow(title, own.name, found, events_of(found))


def _other(program: TileProgram, name: str, order: str, needs: Needs) -> TimelineRow:
    """Return the same problem with an algorithm, if it has one."""
    own = ALGORITHMS[name]
    if own is algorithm_of(program.workload):
        return _row(program, order, needs)
    try:
        return _row(tile_program(program.workload.as_algorithm(own.name)), order, needs)
    except InputError as error:
        return TimelineRow(own.title, own.name, why=str(error))


def _splits(program: TileProgram, order: str, needs: Needs) -> list[TimelineRow]:
    """Return the run with one split, with the number that ``"auto"`` chooses, and with its own."""
    try:
        w = splitting(program.workload)
    except InputError as error:
        return [TimelineRow("splits", program.workload.algorithm, why=str(error))]
    size, auto, rows = w.scenario.tiling.split_size, w.split_choice.splits, []
    name, own = algorithm_of(w).short_title, w is program.workload
    for number in sorted({1, auto} if size else {1, auto, w.splits}):
        is_run = own and not size and number == w.splits
        notes = ", ".join(["auto"] * (number == auto) + ["this run"] * is_run)
        title = f"{name}, {number} split{'s' * (number != 1)}"
        shown = program if is_run else tile_program(with_splits(w, number))
        rows.append(_row(shown, order, needs, f"{title} ({notes})" if notes else title))
    if size:
        title = f"{name}, splits of {size} keys{' (this run)' * own}"
        rows.append(_row(program if own else tile_program(w), order, needs, title))
    return rows
