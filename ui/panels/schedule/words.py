"""What is said of thread blocks on multiprocessors: a model, wherever times are shown."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from simulator.base.errors import InputError
from simulator.program.algorithms import algorithm_of
from simulator.program.traffic import compulsory_bytes
from simulator.study.schedule.choices import ORDER_NAMES
from simulator.study.schedule.placing import placed
from simulator.study.schedule.schedule import LaunchSchedule, Schedule
from simulator.study.schedule.splits import packing_reasons, split_choice, splitting
from simulator.study.schedule.state import ScheduleState, TimelineRow
from ui.kit.shapes import Wordings
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

_UNEVEN = 1.2
"""Blocks whose longest takes this many times as long as the shortest are told to be uneven."""


def title(state: ScheduleState) -> tuple[str, ...]:
    """Return the title, and in short."""
    gpu = state.program.workload.gpu
    where = f"thread blocks on the {plural(gpu.sms, 'multiprocessor')} of {gpu.name}"
    full = f"A model, nothing measured: {where}; a stronger colour is more work"
    return full, f"A model, not measured: thread blocks on {gpu.name}"


def figures(state: ScheduleState, row: TimelineRow) -> tuple[str, ...]:
    """Return the figures of a row, and fewer and fewer of them for smaller places."""
    if row.schedule is None:
        return _counted(row)
    found, own = row.schedule, row.schedule.launches
    blocks = " + ".join(count_text(len(each.blocks)) for each in own)
    short = idle = f"idle {100 * found.idle:.0f} %"
    said = [
        idle,
        f"{blocks} thread block{'' if blocks == '1' else 's'}",
        f"{' + '.join(small_text(each.placed.waves) for each in own)} waves",
    ]
    if state.seconds:
        spent, least = time_text(found.seconds), time_text(found.least)
        said[0], short = f"≈ {spent} (roofline {least}), {idle}", f"≈ {spent}, {idle}"
        said.append(f"tail {time_text(sum(each.tail for each in own))}")
    fit = " + ".join(f"{each.residency.blocks} ({each.residency.limit})" for each in own)
    said.append(f"{fit} on a multiprocessor")
    return *(", ".join(said[:n]) for n in range(len(said), 0, -1)), short, idle, ""


def _counted(row: TimelineRow) -> tuple[str, ...]:
    """Return how many events a trace has, or why there is nothing."""
    if row.events is None:
        return (row.why,)
    count = len(row.events.names)
    if row.events.timed:
        return (plural(count, "event"),)
    said = plural(count, "tile")
    return f"{said} after each block's first: the log has no times", f"{said}, no times"


def told(state: ScheduleState) -> Wordings:
    """Return the event under the mouse, or the one at work, and in short."""
    found, begins = [each for each in state.rows if state.working(each)], ""
    if state.pointed is not None:
        row, event = state.shown[state.pointed[0]], state.pointed[1]
    elif found:
        row, event = found[0], state.working(found[0]).start
        # Of several orders it is told in which of them the block is there.
        begins = f"At work, {row.title}: " if len(found) > 1 else "At work: "
    else:
        own = algorithm_of(state.program.workload).title
        return f"None of these thread blocks is at work: the run is {own}."
    events = row.events
    assert events is not None
    end = float(events.end[event])
    where = f"{begins}{events.names[event]}: {events.lanes[events.lane[event]]}"
    if not events.timed:
        return f"{where}, turn {end:.0f}", where
    if not state.seconds:
        return where
    return f"{where}, {clock_text(float(events.start[event]), end)} to {time_text(end)}", where


def sentences(state: ScheduleState) -> Iterator[str]:
    """Yield what explains the rows, the most important first."""
    found = [row.schedule for row in state.rows if row.schedule]
    # A launch may take longer than the shortest schedule.
    short = launch_words(min((each.seconds for each in found), default=inf))
    if state.what == "splits":
        yield from _splits(state, short)
    elif found and state.what == "algorithms":
        yield _own_axes(state)
        for row in state.rows:
            if row.schedule and (said := _reasons(row.schedule)):
                yield f"{row.title}: {said[0][0].lower()}{said[0][1:]}"
    elif found and state.what == "orders":
        yield from (*_orders(found), short)
    elif found:
        yield from _run(found[0], short)


def _run(schedule: Schedule, short: str) -> Iterator[str]:
    """Yield why a run fills its GPU, or does not, and how far from its roofline it is."""
    if (several := len(schedule.programs)) > 1:
        yield f"The {several} sequences of the batch run in the same launches."
    yield from _reasons(schedule)
    scarce = [each.residency for each in schedule.launches if each.residency.is_registers]
    if not all(fit.compiled for fit in scarce):
        yield (
            "Registers are those that the sources of the kernels state: compiled for these tiles, "
            "a kernel may take fewer or more."
        )
    yield short
    if least := schedule.least:
        more = factor_text(schedule.seconds / least)
        yield (
            f"All bytes and FLOPs on all multiprocessors at once would take {time_text(least)}: "
            f"the schedule takes {more} as long."
        )


def _reasons(schedule: Schedule) -> list[str]:
    several = len(schedule.launches) > 1
    return [
        (f"{each.blocks.launch.name}: " if several else "") + words
        for each in schedule.launches
        for words in _launch_words(each, schedule.gpu.sms, alone=not several)
    ]


def _launch_words(each: LaunchSchedule, sms: int, *, alone: bool) -> Iterator[str]:
    launch, blocks, fit = each.blocks.launch, len(each.blocks), each.residency
    fits = f"fit{'s' * (fit.blocks == 1)} on a multiprocessor."
    if launch.in_turn and len(launch.visits) > 1:
        kind = "row" if launch.by_rows else "column"
        yield f"The {kind} blocks of a head run in turn: no more thread blocks than heads."
    if blocks < sms:
        idle, has = plural(sms - blocks, "multiprocessor"), "has" if sms - blocks == 1 else "have"
        does = f"never {has} anything to do" if alone else f"{has} nothing to do in this launch"
        some = plural(blocks, "thread block")
        yield f"{some} for {count_text(sms)} multiprocessors: {idle} {does}."
    busy = [work for work in each.works if work]
    uneven = max(busy) / min(busy) if busy else 1.0
    if uneven > _UNEVEN:
        more, ends = factor_text(uneven), _longest_ends(each)
        yield f"The longest thread block takes {more} as long as the shortest: {ends}."
    if fit.is_shared:
        taken, some = bytes_text(fit.shared), count_text(fit.blocks)
        yield f"A thread block of the kernel takes {taken} of shared memory, so that {some} {fits}"
    if fit.is_registers:
        some = plural(fit.blocks, "thread block")
        yield f"A thread of the kernel takes {fit.registers} registers, so that {some} {fits}"


def _longest_ends(each: LaunchSchedule) -> str:
    """Return in words whether the longest blocks end last, if they start as early as they can."""
    found, most = each.placed, max(each.works)
    if not (at_once := len(each.blocks) <= found.sms * found.slots):
        found = placed(each.works, found.sms, found.slots, "longest")
    ends = (end for end, work in zip(found.end, each.works, strict=True) if work == most)
    last = max(ends) == found.seconds
    if at_once:
        return f"all start at once{', and it ends last' * last}"
    return f"where it starts first, it {'still ends' if last else 'does not end'} last"


def _orders(found: list[Schedule]) -> Iterator[str]:
    first, best = found[0], min(found, key=lambda each: each.seconds)
    if best.seconds > first.seconds * (1 - 1e-9):
        yield "No order is faster than that of the grid: the blocks are alike, or too few."
    else:
        saved = 100 * (1 - best.seconds / first.seconds)
        yield (
            f"{ORDER_NAMES[best.order].capitalize()} takes {saved:.1f} % less than the order of "
            f"the grid: idle {100 * best.idle:.1f} % instead of {100 * first.idle:.1f} %."
        )
    if any(each.order == "persistent" and each.seconds > first.seconds for each in found):
        yield (
            "Persistent blocks share out the work before they start. What they save, the start of "
            "each block, is not in the model."
        )


def _own_axes(state: ScheduleState) -> str:
    """Return why times of algorithms are not compared: the model knows no cache."""
    shares = {
        sum(compulsory_bytes(each.workload) for each in row.schedule.programs)
        / sum(each.totals.bytes for each in row.schedule.programs): row.title
        for row in state.rows
        if row.schedule
    }
    return (
        "Each row has a time axis of its own; times of algorithms cannot be compared. The model "
        f"takes every reload from HBM, though L2 may have it: {100 * (1 - min(shares)):.0f} % of "
        f"the bytes of {shares[min(shares)]}."
    )


def _splits(state: ScheduleState, short: str) -> Iterator[str]:
    try:
        w = splitting(state.program.workload)
    except InputError:
        return  # the row says why
    choice, batch = split_choice(w), w.scenario.batch
    first, *others = choice.reasons
    whose = f" for sequence {batch.shown} by itself" if batch.lengths else ""
    yield f'splits = "auto"{whose}: {choice.answer}'
    yield short
    yield f"chosen as by FlashAttention-3: {first}"
    yield from others
    yield from packing_reasons(w)
