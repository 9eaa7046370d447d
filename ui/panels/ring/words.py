"""What is said of a ring: its times are a model wherever they are shown."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simulator.problem.hardware import LAUNCH_SECONDS
from simulator.program.algorithms import USUAL
from simulator.study.ring.state import RingState
from ui.kit.shapes import Wordings
from ui.look.units import (
    bytes_text,
    count_text,
    factor_text,
    launch_words,
    number_text,
    plural,
    rate_text,
    time_text,
)


def title(state: RingState) -> tuple[str, ...]:
    """Return the title, and in short."""
    found = state.timeline
    if found is None:
        return ("No ring",)
    ring = found.work.ring
    said = f"{plural(ring.devices, 'device')}, {ring.layout}"
    if state.shows == "numbers":
        has = f"{said}: what the rows of a device have"
        if state.stays:
            return f"{said}: what each device has made of its own keys; not timed here", has
        return f"{has} after each step; times are a model, not measured", f"{has}; a model"
    percent = 100 * found.idle
    figures = f"idle {percent:.{int(0 < percent < 1)}f} %"
    if found.alone >= LAUNCH_SECONDS:  # below it times say nothing of how fast a ring is
        fast = f"{factor_text(found.speed_up)} as fast as one"
        figures = f"≥ {time_text(found.seconds)}, {figures}, {fast}"
    return f"A model, not measured: {said}, {figures}", f"A model: {said}, {figures}"


def told(state: RingState) -> Wordings:
    """Return what the marked device does in the marked step, and in short."""
    found = state.timeline
    if found is None:
        return ""
    work, at = found.work, (state.device, state.seen)
    tiles, flops, sent = (int(each[at]) for each in (work.tiles, work.flops, work.sent))
    does, sends = "the mask hides all of it: nothing to compute", "sends nothing on"
    if tiles:
        seconds = time_text(float(found.works[at]))
        does = f"{plural(tiles, 'tile')}, {rate_text(flops, 'FLOP')}, {seconds}"
    if sent:
        sends = f"sends it on, {bytes_text(sent)} in {time_text(float(found.sends[at]))}"
    if state.stays:
        begin = f"Device {state.device} with its own keys"
        way = f"sends O and LSE once, {bytes_text(sent)} in {time_text(float(found.sends[at]))}"
        return f"{begin}: {does}; {way}", f"{begin}: {does}"
    begin, block = f"Step {state.seen + 1}, device {state.device}", state.block(state.device)
    full = f"{begin} with K, V of device {block}: {does}; {sends}"
    return full, f"{begin}, K, V of {block}: {does}"


def sentences(state: RingState) -> Iterator[str]:
    """Yield what is said below, the most important first."""
    found, numbers, w = state.timeline, state.found.numbers, state.found.workload
    if found is None:
        yield state.found.why
        return
    if numbers is not None:
        end = "merged" if state.stays else "after the last step"
        yield (
            f"O of head {w.head_name(numbers.head)} {end}: at most "
            f"{number_text(numbers.error, 2)} from float64, {number_text(numbers.apart, 2)} from "
            f"{USUAL.title} on one device."
        )
    elif state.shows == "numbers":
        yield state.found.why
    if short := launch_words(found.seconds):
        yield short
    busy, sent = found.work.flops.sum(axis=1), found.work.sent.sum(axis=1)
    shares = dict.fromkeys(
        f"{100 * each / (busy.sum() or 1):.3g} %" for each in (busy.min(), busy.max())
    )
    if state.stays:
        ring = found.work.ring
        block = ring.workload.kv_heads * ring.workload.seqlen_k * ring.workload.width
        around = block * (ring.workload.head_dim + ring.workload.value_dim) * state.last
        yield (
            f"Of all FLOPs {' to '.join(shares)} a device; each sends O and LSE of all rows once, "
            f"{bytes_text(sent.max())}, {bytes_text(sent.sum())} in all, however many "
            f"keys there are; in a ring {bytes_text(around)} of K and V would travel."
        )
        return
    yield (
        f"Of all FLOPs {' to '.join(shares)} a device; each link carries "
        f"{bytes_text(sent.max())} in {plural(state.last, 'block')}, {found.link.title} at "
        f"{found.link.gbps:g} GB/s."
    )
    longer = found.sends[:, :-1] > found.works[:, :-1]
    if longer.all():
        yield "Sending takes longer than the work in every step: the links decide."
    elif not longer.any() and found.overlapped:
        yield "Work takes longer than sending in every step, and hides it."
    if w.dtype == "float32":
        yield "Data sheets have no matrix rate for float32: work is its bytes alone."


def heading(state: RingState) -> tuple[str, str]:
    """Return whose rows have their numbers shown, and after which step; and in short."""
    assert state.found.work is not None
    parts = [
        f"every {each.step}th from {each.start}" if each.step > 1 else
        f"{count_text(each.start)}–{count_text(each.stop - 1)}"
        for each in state.found.work.ring.rows[state.device] if len(each)
    ]  # fmt: skip
    rows, end = " and ".join(parts), f"after step {state.seen + 1}"
    if state.stays:
        return f"device {state.device}, all rows, its own keys", f"device {state.device}"
    return f"device {state.device}, rows {rows}, {end}", f"device {state.device} {end}"


def last_row(state: RingState) -> tuple[str, ...]:
    """Return the numbers of the row of the marked device that sees most, and in short."""
    numbers = state.found.numbers
    if numbers is None or not len(state.rows):
        return ("",)
    row = int(state.rows[-1])
    m, l = (float(each[state.part, row]) for each in (numbers.m, numbers.l))
    off = float(np.abs(numbers.o[state.part, row] - numbers.exact[row]).max())
    said = f"row {row}: m {number_text(m)}, ℓ {number_text(l)}"
    return f"{said}, O {number_text(off, 2)} from that of all keys", said
