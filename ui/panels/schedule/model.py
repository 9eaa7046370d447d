"""What the schedule panel shows, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Literal, get_args

from kernels.cuda.needs import block_needs, known_cubin
from simulator.base.errors import InputError
from simulator.problem.scenario import Algorithm
from simulator.program.algorithms import ALGORITHMS, algorithm_of, beside, tile_program
from simulator.program.tile_program import TileProgram
from simulator.program.traffic import compulsory_bytes
from simulator.study.schedule.batch import batch_programs
from simulator.study.schedule.events import Events, at_work, events_of
from simulator.study.schedule.placing import ORDERS, Order, placed
from simulator.study.schedule.schedule import (
    LaunchSchedule,
    Schedule,
    schedule_of,
    why_no_schedule,
)
from simulator.study.schedule.splits import (
    packing_reasons,
    split_choice,
    splitting,
    with_splits,
)
from ui.look.units import (
    bytes_text,
    clock_text,
    count_text,
    factor_text,
    launch_words,
    plural,
    small_text,
    time_text,
)

What = Literal["run", "orders", "algorithms", "splits"]
"""The run alone, in all orders, beside other algorithms, or with other splits."""
WHATS: tuple[What, ...] = get_args(What)
ORDER_NAMES: dict[Order, str] = {
    "index": "order of the grid",
    "longest": "longest first",
    "persistent": "persistent",
}
_UNEVEN = 1.2
"""Blocks whose longest takes this many times as long as the shortest are told to be uneven."""


@dataclass(frozen=True, eq=False)
class TimelineRow:
    """One row of the picture."""

    title: str  # what it is
    colour: str  # a role of the theme
    schedule: Schedule | None = None  # the model; None for a trace, or if there is none
    events: Events | None = None  # what is drawn
    why: str = ""  # why nothing is drawn
    # whether its time cannot be compared with that of other rows, and so is not said
    own_axis: bool = False

    @property
    def figures(self) -> tuple[str, ...]:
        """The row's figures in words, longest first."""
        if self.schedule is None:
            return self._counted if self.events else (self.why,)
        found, own = self.schedule, self.schedule.launches
        blocks = _each([count_text(len(each.blocks)) for each in own])
        fit = _each([f"{each.residency.blocks} ({each.residency.limit})" for each in own])
        waves = f"{_each([small_text(each.placed.waves) for each in own])} waves"
        said = idle = f"idle {100 * found.idle:.0f} %"
        if not self.own_axis:
            spent = f"≈ {time_text(found.seconds)}"
            said, idle = (
                f"{spent} (roofline {time_text(found.least)}), {idle}",
                f"{spent}, {idle}",
            )
            waves += f", tail {time_text(sum(each.tail for each in own))}"
        few = len(own) == 1 and len(own[0].blocks) == 1
        counted = f"{blocks} thread block{'' if few else 's'}"
        return (
            f"{said}, {counted}, {fit} on a multiprocessor, {waves}",
            f"{said}, {counted}, {waves}",
            f"{said}, {counted}",
            said,
            idle,
        )

    @property
    def _counted(self) -> tuple[str, ...]:
        """How many events a trace has."""
        assert self.events is not None
        count = len(self.events.names)
        if self.events.timed:
            return (plural(count, "event"),)
        said = plural(count, "tile")
        return (
            f"{said} after each block's first, in their order: the log has no times",
            f"{said} in their order, without times",
            f"{said}, no times",
        )


def _each(words: list[str]) -> str:
    """Return what is said of each launch; once, if it is the same of all."""
    return words[0] if len(set(words)) == 1 and len(words) == 1 else " + ".join(words)


@dataclass(frozen=True, eq=False)
class ScheduleState:
    """The rows of the picture, and what is said below them."""

    program: TileProgram  # the run
    rows: tuple[TimelineRow, ...]  # from top to bottom
    words: tuple[str, ...]  # what explains them
    visit: int = 0  # the visit at the cursor
    pointed: tuple[int, int] | None = None  # row and event under the mouse

    @property
    def title(self) -> tuple[str, ...]:
        """The picture's title, longest first: each says that it is a model."""
        gpu = self.program.workload.gpu
        sms = plural(gpu.sms, "multiprocessor")
        return (
            f"A model, nothing measured: thread blocks on the {sms} of {gpu.name}; a stronger "
            "colour is more work",
            f"A model, not measured: thread blocks on {gpu.name}",
            "A model, not measured",
        )

    @property
    def seconds(self) -> float:
        """The length of the time axis; 0 where each row has one of its own."""
        if any(row.own_axis for row in self.rows):
            return 0.0
        timed = (row.events for row in self.rows if row.events and row.events.timed)
        return max((events.seconds for events in timed), default=0.0)

    def across(self, events: Events) -> float:
        """Return what the width of a row stands for: seconds of all rows, or of its own."""
        return (self.seconds if events.timed else 0.0) or events.seconds

    def working(self, row: TimelineRow) -> range:
        """Return the events of a row that are at work at the cursor: of this run alone."""
        schedule = row.schedule
        if schedule is None or schedule.program is not self.program:
            return range(0)
        return at_work(schedule, self.visit)

    @property
    def told(self) -> str:
        """The event under the mouse, or the one at work, in words."""
        if self.pointed is not None:
            row, event = self.pointed
            return _told("", self.rows[row], event)
        found = [each for each in self.rows if each.events is not None and self.working(each)]
        if not found:
            return ""
        # Of several orders it is told in which of them the block is there.
        begins = f"At work, {found[0].title}: " if len(found) > 1 else "At work: "
        return _told(begins, found[0], self.working(found[0]).start)


def _told(begins: str, row: TimelineRow, event: int) -> str:
    events = row.events
    assert events is not None
    end = float(events.end[event])
    if not events.timed:
        return f"{events.names[event]}: {events.lanes[events.lane[event]]}, turn {end:.0f}"
    where = f"{begins}{events.names[event]}: {events.lanes[events.lane[event]]}"
    if row.own_axis:
        return where
    return f"{where}, {clock_text(float(events.start[event]), end)} to {time_text(end)}"


def schedule_state(program: TileProgram, what: What, order: Order) -> ScheduleState:
    """Return what is shown of a run."""
    w = program.workload
    if what == "orders":
        rows = tuple(_row(program, each, ORDER_NAMES[each]) for each in ORDERS)
        return ScheduleState(program, rows, _order_words(rows))
    if what == "algorithms":
        rows = tuple(_other(program, name, order) for name in beside(w.algorithm))
        return ScheduleState(program, rows, (*_own_axes(rows), *_compared(rows)))
    if what == "splits":
        return _splits(program, order)
    row = _row(program, order)
    return ScheduleState(program, (row,), tuple(run_words(row.schedule)) if row.schedule else ())


def _row(program: TileProgram, order: Order, title: str = "") -> TimelineRow:
    own = algorithm_of(program.workload)
    w = program.workload
    title, needs = title or own.title, block_needs(w, known_cubin(w))
    programs = batch_programs(program)
    why = why_no_schedule(program, needs, programs)
    if why:
        return TimelineRow(title, own.colour, why=why)
    found = schedule_of(program, needs, order, programs)
    return TimelineRow(title, own.colour, found, events_of(found))


def _other(program: TileProgram, name: Algorithm, order: Order) -> TimelineRow:
    """Return the same problem with an algorithm, if it has one."""
    try:
        w = program.workload.as_algorithm(name)
    except InputError as error:
        return TimelineRow(ALGORITHMS[name].title, ALGORITHMS[name].colour, why=str(error))
    row = _row(program if name == program.workload.algorithm else tile_program(w), order)
    return replace(row, own_axis=True)


def run_words(schedule: Schedule) -> list[str]:
    """Return why a run fills its GPU, or does not, and how far from its roofline it is."""
    out = _reasons(schedule)
    scarce = [each.residency for each in schedule.launches if each.residency.is_registers]
    if not all(fit.compiled for fit in scarce):
        out.append(
            "Registers are those that the sources of the kernels state: compiled for these tiles, "
            "a kernel may take fewer or more."
        )
    several = len(schedule.programs)
    if several > 1:
        out.insert(0, f"The {several} sequences of the batch run in the same launches.")
    if short := launch_words(schedule.seconds):
        out.append(short)
    least = schedule.least
    if least:
        more = factor_text(schedule.seconds / least)
        out.append(
            f"All bytes and FLOPs on all multiprocessors at once would take {time_text(least)}: "
            f"the schedule takes {more} as long."
        )
    return out


def _reasons(schedule: Schedule) -> list[str]:
    several = len(schedule.launches) > 1
    return [
        (f"{each.blocks.launch.name}: " if several else "") + words
        for each in schedule.launches
        for words in _launch_words(each, schedule.gpu.sms, alone=not several)
    ]


def _launch_words(each: LaunchSchedule, sms: int, *, alone: bool) -> list[str]:
    launch, blocks, out = each.blocks.launch, len(each.blocks), []
    if launch.in_turn and len(launch.visits) > 1:
        kind = "row" if launch.by_rows else "column"
        out.append(
            f"The {kind} blocks of a head follow each other in one thread block, so there are no "
            "more thread blocks than heads."
        )
    if blocks < sms:
        idle = plural(sms - blocks, "multiprocessor")
        has = "has" if sms - blocks == 1 else "have"
        nothing = f"never {has} anything to do" if alone else f"{has} nothing to do in this launch"
        out.append(
            f"{plural(blocks, 'thread block')} for {count_text(sms)} multiprocessors: {idle} "
            f"{nothing}."
        )
    busy = [work for work in each.works if work]
    uneven = max(busy) / min(busy) if busy else 1.0
    if uneven > _UNEVEN:
        out.append(
            f"The longest thread block takes {factor_text(uneven)} as long as the shortest: "
            f"{_longest_ends(each)}."
        )
    fit = each.residency
    if fit.is_shared:
        own = bytes_text(fit.shared)
        out.append(
            f"A thread block of the kernel takes {own} of shared memory, so that "
            f"{count_text(fit.blocks)} fit{'s' * (fit.blocks == 1)} on a multiprocessor."
        )
    if fit.is_registers:
        fitting = f"{plural(fit.blocks, 'thread block')} fit{'s' * (fit.blocks == 1)}"
        out.append(
            f"A thread of the kernel takes {fit.registers} registers, so that {fitting} on a "
            "multiprocessor."
        )
    return out


def _longest_ends(each: LaunchSchedule) -> str:
    """Return in words whether the longest blocks end last, if they start as early as they can."""
    found = each.placed
    at_once = len(each.blocks) <= found.sms * found.slots
    if not at_once:
        found = placed(each.works, found.sms, found.slots, "longest")
    most = max(each.works)
    ends = (end for end, work in zip(found.end, each.works, strict=True) if work == most)
    last = max(ends) == found.seconds
    if at_once:
        return "all start at once, and it ends last" if last else "all start at once"
    return f"where it starts first, it {'still ends' if last else 'does not end'} last"


def _order_words(rows: tuple[TimelineRow, ...]) -> tuple[str, ...]:
    found = [row.schedule for row in rows if row.schedule]
    if not found:
        return ()
    best = min(found, key=lambda each: each.seconds)
    first = found[0]
    if best.seconds > first.seconds * (1 - 1e-9):
        said = ["No order is faster than that of the grid: the blocks are alike, or too few."]
    else:
        saved = 100 * (1 - best.seconds / first.seconds)
        said = [
            f"{ORDER_NAMES[best.order].capitalize()} takes {saved:.1f} % less than the order of "
            f"the grid: idle {100 * best.idle:.1f} % instead of {100 * first.idle:.1f} %."
        ]
    if any(each.order == "persistent" and each.seconds > first.seconds for each in found):
        said.append(
            "Persistent blocks share out the work before they start. What they save, the start of "
            "each block, is not in the model."
        )
    return (*said, *_launch_beside(rows))


def _launch_beside(rows: Sequence[TimelineRow]) -> tuple[str, ...]:
    """Return what is said where a launch takes longer than the shortest schedule."""
    short = launch_words(min((row.schedule.seconds for row in rows if row.schedule), default=inf))
    return (short,) if short else ()


def _own_axes(rows: Sequence[TimelineRow]) -> tuple[str, ...]:
    """Return why times of algorithms are not compared: the model knows no cache."""
    shares = {}
    for row in rows:
        if row.schedule:
            programs = row.schedule.programs
            least = sum(compulsory_bytes(each.workload) for each in programs)
            shares[row.title] = 1 - least / sum(each.totals.bytes for each in programs)
    if not shares:
        return ()
    most = max(shares, key=lambda title: shares[title])
    return (
        "Each row has a time axis of its own; times of algorithms cannot be compared. The model "
        f"takes every reload from HBM, though L2 may have it: {100 * shares[most]:.0f} % of the "
        f"bytes of {most}.",
    )


def _compared(rows: tuple[TimelineRow, ...]) -> list[str]:
    """Return the words of each run that say something of its own."""
    return [
        f"{row.title}: {words[0].lower()}{words[1:]}"
        for row in rows
        if row.schedule
        for words in _reasons(row.schedule)[:1]
    ]


def _splits(program: TileProgram, order: Order) -> ScheduleState:
    try:
        w = splitting(program.workload)
    except InputError as error:
        own = algorithm_of(program.workload)
        return ScheduleState(program, (TimelineRow("splits", own.colour, why=str(error)),), ())
    choice = split_choice(w)
    said = w.splits
    numbers = sorted({1, choice.splits, said})
    rows = []
    for number in numbers:
        is_run = w is program.workload and number == said
        title = f"{ALGORITHMS[w.algorithm].short_title}, {plural(number, 'split')}"
        notes = ", ".join(["auto"] * (number == choice.splits) + ["this run"] * is_run)
        shown = program if is_run else tile_program(with_splits(w, number))
        rows.append(_row(shown, order, f"{title} ({notes})" if notes else title))
    batch = w.scenario.batch
    whose = f" for sequence {batch.shown} by itself" if batch.lengths else ""
    first, *others = choice.reasons
    words = (  # the answer first, because a small panel shows only the first lines
        f'splits = "auto"{whose}: {choice.answer}',
        *_launch_beside(rows),
        f"chosen as by FlashAttention-3: {first}",
        *others,
        *packing_reasons(w),
    )
    return ScheduleState(program, tuple(rows), words)
