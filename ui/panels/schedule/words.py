"""Words on thread blocks on multiprocessors: wherever times are shown, they say it is a model."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from simulator.base.errors import InputError
from simulator.program.algorithms import algorithm_of
from simulator.program.traffic import compulsory_bytes
from simulator.study.schedule.choices import ORDER_NAMES
from simulator.study.schedule.placing import placed
from simulator.study.schedule.schedule import LaunchSchedule, Schedule
from simulator.study.schedule.splits import packing_reasons, splitting
from simulator.study.schedule.state import ScheduleState, TimelineRow
from ui.look.durations import MODEL
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
"""Blocks are called uneven if the longest takes this many times as long as the shortest."""


def title(state: ScheduleState) -> str:
    """Return the title."""
    gpu = state.program.workload.gpu
    return f"A model, nothing measured: {plural(gpu.sms, 'multiprocessor')} of {gpu.name}"


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
        short = f"{_spent(found)}, {idle}"
        said[0] = f"{_spent(found)}: {found.model.bound_by}, {idle}" if found.model else short
        said.append(f"tail {time_text(sum(each.tail for each in own))}")
    if found.model is None:  # the model lets one at a time run on a multiprocessor
        fit = " + ".join(f"{each.residency.blocks} ({each.residency.limit})" for each in own)
        said.append(f"{fit} on a multiprocessor")
    return *(", ".join(said[:n]) for n in range(len(said), 0, -1)), short, idle, ""


def _spent(found: Schedule) -> str:
    """Return a run's time: by model, or the data sheet's least time and the blocks' time."""
    spent = time_text(found.seconds)
    if found.model is None:
        return f"≥ {time_text(found.least)} (in these blocks {spent})"
    return f"what if: ≈ {spent}" if found.what_if else f"≈ {spent}"


def _counted(row: TimelineRow) -> tuple[str, ...]:
    """Return how many events a trace has, or why there is nothing."""
    if row.events is None:
        return (row.why,)
    count = len(row.events.names)
    if row.events.timed:
        return (plural(count, "event"),)
    said = plural(count, "tile")
    return f"{said} after each block's first: the log has no times", f"{said}, no times"


def told(state: ScheduleState) -> str:
    """Return the event under the mouse, or the one at work."""
    found, begins = [each for each in state.rows if state.working(each)], ""
    if state.pointed is not None:
        row, event = state.shown[state.pointed[0]], state.pointed[1]
    elif found:
        row, event = found[0], state.working(found[0]).start
        # With several orders, the words say the order in which the block is there.
        begins = f"At work, {row.title}: " if len(found) > 1 else "At work: "
    else:
        own = algorithm_of(state.program.workload).title
        return f"None of these thread blocks is at work: the run is {own}."
    events = row.events
    assert events is not None
    end = float(events.end[event])
    where = f"{begins}{events.names[event]}: {events.lanes[events.lane[event]]}"
    if not events.timed:
        return f"{where}, turn {end:.0f}"
    if not state.seconds:
        return where
    return f"{where}, {clock_text(float(events.start[event]), end)} to {time_text(end)}"


def sentences(state: ScheduleState) -> Iterator[str]:
    """Yield sentences that explain the rows, the most important first."""
    found = [row.schedule for row in state.rows if row.schedule]
    # A launch may take longer than the shortest schedule.
    short = launch_words(min((each.seconds for each in found), default=inf))
    if state.what == "splits":
        yield from _splits(state, short)
    elif found and state.what == "algorithms":
        yield MODEL if state.seconds else _own_axes(state)
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
    if schedule.what_if and schedule.usual is not None:
        yield (
            f"What if blocks started in another order: {ORDER_NAMES['model']}, the order of the "
            f"model, takes {time_text(schedule.usual.seconds)}."
        )
    if schedule.why:
        yield f"{schedule.why} Each block takes the data sheet's time on its share of the GPU."
    yield from _reasons(schedule)
    scarce = [each.residency for each in schedule.launches if each.residency.is_registers]
    if not all(fit.compiled for fit in scarce):
        yield (
            "Registers are those that the sources of the kernels state: compiled for these tiles, "
            "a kernel may take fewer or more."
        )
    yield short
    if least := schedule.least:
        more, bound = factor_text(schedule.seconds / least), schedule.model
        what = f"by model the run, limited by {bound.bound_by}," if bound else "the schedule"
        yield (
            f"The data sheet allows {time_text(least)} for requested bytes and FLOPs: {what} takes "
            f"{more} as long."
        )


def _reasons(schedule: Schedule) -> list[str]:
    several, by_model = len(schedule.launches) > 1, schedule.model is not None
    said = [
        (f"{each.blocks.launch.name}: " if several else "") + words
        for each in schedule.launches
        for words in _launch_words(
            each, schedule.gpu.sms, alone=not several, by_model=by_model and not each.library
        )
    ]
    if any(each.library for each in schedule.launches):
        library = (
            "The time of a launch is that of a library, which shares its work out evenly; the "
            "thread blocks are those of our kernels."
        )
        said.insert(0, library)
    return said


def _launch_words(each: LaunchSchedule, sms: int, *, alone: bool, by_model: bool) -> Iterator[str]:
    launch, blocks, fit = each.blocks.launch, len(each.blocks), each.residency
    fits = f"fit{'s' * (fit.blocks == 1)} on a multiprocessor"
    fits += "; the model lets one run at a time." if by_model and fit.blocks > 1 else "."
    if launch.in_turn and len(launch.visits) > 1:
        kind, shares = "row" if launch.by_rows else "column", each.blocks.shapes[0][0]
        so = f"its rows are dealt out to {shares}" if shares > 1 else "no more than heads"
        yield f"The {kind} blocks of a head run in turn in a thread block: {so}."
    busy = [work for work in each.works if work]
    if (free := sms - len(busy)) > 0:
        idle, has = plural(free, "multiprocessor"), "has" if free == 1 else "have"
        does = f"never {has} anything to do" if alone else f"{has} nothing to do in this launch"
        some = plural(blocks, "thread block")
        if len(busy) < blocks:
            some = f"{count_text(len(busy))} of {some} with work"
        yield f"{some} for {count_text(sms)} multiprocessors: {idle} {does}."
    uneven = max(busy) / min(busy) if busy else 1.0
    if uneven > _UNEVEN:
        more, ends = factor_text(uneven), _longest_ends(each)
        yield f"The longest thread block takes {more} as long as the shortest: {ends}."
    kernel = "our kernel" if by_model else "the kernel"
    if fit.is_shared:
        taken, some = bytes_text(fit.shared), count_text(fit.blocks)
        yield f"A thread block of {kernel} takes {taken} of shared memory, so that {some} {fits}"
    if fit.is_registers:
        some = plural(fit.blocks, "thread block")
        yield f"A thread of {kernel} takes {fit.registers} registers, so that {some} {fits}"


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
    usual = ORDER_NAMES[first.order]
    if first.model:
        moved = [(bytes_text(each.model.dram_bytes), each.order) for each in found if each.model]
        if len({size for size, _ in moved}) > 1:
            said = ", ".join(f"{size} {ORDER_NAMES[order]}" for size, order in moved)
            yield f"The model's order is the first; others are what-ifs. DRAM by model: {said}."
        else:
            yield "The model's order is the first; others are what-ifs."
    if best.seconds > first.seconds * (1 - 1e-9):
        yield f"No order is faster than {usual}: the blocks are alike, or too few."
    else:
        saved = 100 * (1 - best.seconds / first.seconds)
        yield (
            f"{ORDER_NAMES[best.order].capitalize()} takes {saved:.1f} % less than {usual}: idle "
            f"{100 * best.idle:.1f} % instead of {100 * first.idle:.1f} %."
        )
    if any(each.order == "persistent" and each.seconds > first.seconds for each in found):
        yield (
            "Persistent blocks share out the work before they start. What they save, the start of "
            "each block, is not in the model."
        )


def _own_axes(state: ScheduleState) -> str:
    """Return why times of algorithms are not compared: no cache is known here."""
    shares = {
        sum(compulsory_bytes(each.workload) for each in row.schedule.programs)
        / sum(each.totals.bytes for each in row.schedule.programs): row.title
        for row in state.rows
        if row.schedule
    }
    return (
        "Each row has a time axis of its own; times of algorithms cannot be compared. Where there "
        "is no model every reload counts as HBM, though L2 may have it: "
        f"{100 * (1 - min(shares)):.0f} % of the bytes of {shares[min(shares)]}."
    )


def _splits(state: ScheduleState, short: str) -> Iterator[str]:
    try:
        w = splitting(state.program.workload)
    except InputError:
        return  # the row says why
    choice, batch = w.split_choice, w.scenario.batch
    first, *others = choice.reasons
    whose = " for all sequences of the batch" if batch.lengths else ""
    yield f'splits = "auto"{whose}: {choice.answer}'
    yield short
    yield f"chosen as by FlashAttention-3: {first}"
    yield from others
    yield from packing_reasons(w)
