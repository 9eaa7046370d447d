"""Ring attention: devices, their steps and the links between them (Liu et al. 2023)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QImage, QPainter

from simulator.base.dtypes import F32
from simulator.problem.hardware import LAUNCH_SECONDS, links
from simulator.program.algorithms import USUAL, algorithm_of
from simulator.program.playback import SECONDS_PER_MOVE
from simulator.run.trace import Trace
from simulator.study.ring.choices import CHOICES, KEYS, PARTIALS
from simulator.study.ring.dealing import DEVICES, LAYOUTS
from simulator.study.ring.state import CHOSEN, DONE, LATER, NOW, RingFound, RingState, ring_found
from simulator.study.ring.timeline import ring_timeline
from ui.kit.boxes import Box, Column, Row, Tone, Where, ink
from ui.kit.shapes import Bar, Bars, Heat, Image, Legend, Text, axis
from ui.look.draw import CENTRE
from ui.look.heat import finite_range, pooled, signed_limit, word_image
from ui.look.theme import Style
from ui.look.units import (
    bytes_text,
    clock_text,
    count_text,
    factor_text,
    launch_words,
    number_text,
    plural,
    rate_text,
    time_text,
)
from ui.panels.study import Chosen, Slider, Study, Words
from ui.session.tasks import Report
from ui.session.view import View


def title(state: RingState) -> str:
    """Return the title."""
    found = state.timeline
    if found is None:
        return "No ring"
    ring = found.work.ring
    said = f"{plural(ring.devices, 'device')}, {ring.layout}"
    if state.shows == "numbers":
        if state.stays:
            return f"{said}: what each device has made of its own keys; not timed here"
        return f"{said}: the rows of a device after each step; a model, not measured"
    percent = 100 * found.idle
    figures = f"idle {percent:.{int(0 < percent < 1)}f} %"
    if found.alone >= LAUNCH_SECONDS:  # shorter times say nothing about the speed of a ring
        fast = f"{factor_text(found.speed_up)} as fast as one"
        figures = f"≥ {time_text(found.seconds)}, {figures}, {fast}"
    return f"A model, not measured: {said}, {figures}"


def told(state: RingState) -> str:
    """Return what the marked device does in the marked step."""
    found = state.timeline
    if found is None:
        return ""
    work, at = found.work, (state.device, state.seen)
    tiles, flops, sent = (int(each[at]) for each in (work.tiles, work.flops, work.sent))
    does, sends = "the mask hides all of it: nothing to compute", "sends nothing on"
    if not len(state.rows):
        does = "it has no rows: nothing to compute"
    if tiles:
        seconds = time_text(float(found.works[at]))
        does = f"{plural(tiles, 'tile')}, {rate_text(flops, 'FLOP')}, {seconds}"
    if sent:
        sends = f"sends it on, {bytes_text(sent)} in {time_text(float(found.sends[at]))}"
    if state.stays:
        begin = f"Device {state.device} with its own keys"
        way = f"sends O and LSE once, {bytes_text(sent)} in {time_text(float(found.sends[at]))}"
        return f"{begin}: {does}; {way}"
    begin, block = f"Step {state.seen + 1}, device {state.device}", state.block(state.device)
    return f"{begin} with K, V of device {block}: {does}; {sends}"


def sentences(state: RingState) -> Iterator[str]:
    """Yield the sentences below the picture, the most important first."""
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
    most = "" if (sent == sent[0]).all() else "at most "
    yield (
        f"Of all FLOPs {' to '.join(shares)} a device; each link carries {most}"
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
    """Return whose rows have their numbers shown and after which step, and a short form."""
    assert state.found.work is not None
    parts = [
        count_text(each.start) if len(each) == 1 else
        f"every {_NTH.get(each.step, f'{each.step}th')} from {each.start}" if each.step > 1 else
        f"{count_text(each.start)}–{count_text(each.stop - 1)}"
        for each in state.found.work.ring.rows[state.device] if len(each)
    ]  # fmt: skip
    rows, end = " and ".join(parts), f"after step {state.seen + 1}"
    if state.stays:
        return f"device {state.device}, all rows, its own keys", f"device {state.device}"
    rows = f"row{'s' * (len(state.rows) != 1)} {rows}"
    return f"device {state.device}, {rows}, {end}", f"device {state.device} {end}"


def last_row(state: RingState) -> tuple[str, ...]:
    """Return the numbers of the marked device's row that sees most, and a short form."""
    numbers = state.found.numbers
    if numbers is None or not len(state.rows):
        return ("",)
    row = int(state.rows[-1])
    m, l = (float(each[state.part, row]) for each in (numbers.m, numbers.l))
    off = float(np.abs(numbers.o[state.part, row] - numbers.exact[row]).max())
    said = f"row {row}: m {number_text(m)}, ℓ {number_text(l)}"
    return f"{said}, O {number_text(off, 2)} from that of all keys", said


_NTH = {2: "2nd", 3: "3rd"}
_WORK = 0.58
"""Share of a lane's height that its work takes; the blocks sent are below."""
_MOST_PIXELS = 512
"""Most rows of O that are painted; more rows are pooled to their largest values."""
_TONES: tuple[Tone, ...] = (
    "panel", ("panel", "muted", 0.25), ("panel", "S", 0.45), "S", "current",
)  # fmt: skip
"""The colours of the kinds of pairs."""
_NAMES = ((CHOSEN, "this device"), (NOW, "this step"), (DONE, "done"), (LATER, "to come"))
_NAMES_STAYING = ((CHOSEN, "this device"), (NOW, "other devices"))


class RingStudy(Study[RingFound, RingState]):
    """The run dealt out to a ring of devices: each device and step, links, and the same O.

    Blocks are seen on their way to the step after the one shown, as long as a load takes on the
    board.
    """

    name, title, doing, pictured = "ring", "Ring", "a ring of devices", "Devices of a ring"
    choices, seconds = CHOICES, SECONDS_PER_MOVE
    slider = Slider("ring step", "Step of the ring", "Which step is marked.")

    def said(self, trace: Trace) -> Chosen:
        tiling = trace.workload.scenario.tiling
        stays = algorithm_of(trace.workload).splits and tiling.devices is not None
        return {"devices": str(tiling.devices or DEVICES), "layout": tiling.layout or LAYOUTS[0],
                "travels": PARTIALS if stays else KEYS}  # fmt: skip

    def hidden(self, trace: Trace, chosen: Chosen) -> frozenset[str]:
        if chosen["travels"] == KEYS:
            return frozenset()
        return frozenset({"sending", "ring step"})

    def needs(self, trace: Trace, view: View, chosen: Chosen) -> Hashable:
        head, _ = trace.workload.single(view.snapshot.visit.head, view.report.row)
        return head, int(chosen["devices"]), chosen["layout"], chosen["travels"] == PARTIALS

    def compute(self, trace: Trace, needs: Any, report: Report) -> RingFound:
        (w, inputs), (head, devices, layout, stays) = trace.single_heads, needs
        return ring_found(w, inputs, head, devices, layout, report, stays=stays)

    def state(
        self, found: RingFound, chosen: Chosen, before: RingState | None, changed: str
    ) -> RingState:
        work, link = found.work, links()[chosen["link"]]
        times = None if work is None else ring_timeline(work, link, chosen["sending"] != "after")
        state = RingState(found, times, chosen["shows"])
        if before is not None and before.found.work is not None:
            return state.at(before.step, before.device)
        if work is None:
            return state
        # Under a causal mask nothing is ever merged on the first device.
        busy = work.flops.sum(axis=1)
        return state.at(0, int(np.flatnonzero(busy == busy.max())[-1]))

    def key(self, state: RingState, key: Qt.Key, *, ctrl: bool) -> RingState | None:
        turn = {Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0),
                Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1)}.get(key)  # fmt: skip
        return None if turn is None else state.at(state.step + turn[0], state.device + turn[1])

    def press(self, state: RingState, at: Hashable) -> RingState | None:
        return state.at(state.step, at) if isinstance(at, int) else None

    def mark(self, state: RingState) -> tuple[int, int]:
        return state.step, state.last_step

    def marked(self, state: RingState, value: int) -> RingState:
        return state.at(value, state.device)

    def moves(self, before: RingState, after: RingState) -> bool:
        return after.step == before.step + 1 and after.shows == "time"

    def on_the_way(self, state: RingState, share: float) -> RingState:
        return replace(state, share=share)

    def words(self, state: RingState) -> Words:
        return Words(title(state), told(state), tuple(sentences(state)))

    def described(self, state: RingState) -> tuple[str, ...]:
        head, does, *said = super().described(state)
        return head, does, last_row(state)[0], *said

    def picture(self, state: RingState) -> Box | None:
        if state.found.work is None:
            return None
        timed = state.shows == "time"
        names = _NAMES_STAYING if state.stays else _NAMES
        named = [(_TONES[kind], name) for kind, name in names]
        mask = Column((
            Text(("rows down, keys across", "rows, keys", ""), "muted", CENTRE, may_go=True),
            Image(partial(_mask, state), square=True, grow=1),
        ), gap=0, share=0.34 if state.stays else 0.42)  # fmt: skip
        beside = replace(_lanes(state) if timed else _numbers(state), grow=1)
        sent = [(_sent(state), "on the links")] if timed else []
        legend = Legend((*named, *sent), may_go=True)
        return Column((Row((mask, beside), gap=12, share=0.75, grow=1), legend), gap=4)


RING = RingStudy()


def _sent(state: RingState) -> Tone:
    """Return the colour of the blocks that travel."""
    return "O" if state.stays else "K"


def _mask(state: RingState, style: Style) -> QImage:
    """Return which pairs are done, at work and to come."""
    return word_image(
        np.array([ink(style, each).rgba() for each in _TONES], np.uint32)[state.kinds]
    )


def _lanes(state: RingState) -> Box:
    """Return each device's work above the blocks that it sends, on one time axis."""
    found = state.timeline
    assert found is not None
    lanes = tuple(
        Row((
            Text(str(n), "current" if n == state.device else "text", wide=13),
            Box(name=("block", n), wide=41),
            Bars(tuple(_bars(state, n)), found.seconds, name=("lane", n), grow=1),
        ), gap=1.5, id=n, grow=1)
        for n in range(state.last + 1)
    )  # fmt: skip
    half = clock_text(found.seconds / 2, found.seconds)
    ends = Row((Box(wide=57), replace(axis("0", half, time_text(found.seconds)), grow=1)), gap=0)
    return Column((Column(lanes, gap=3, grow=1), ends), gap=0, over=partial(_draw_over, state))


def _bars(state: RingState, device: int) -> Iterator[Bar]:
    found = state.timeline
    assert found is not None
    for step in range(state.last_step + 1):
        now, kind = step == state.seen, DONE if step < state.seen else LATER
        if now:
            kind = CHOSEN if device == state.device else NOW
        begins, works, leaves, sends = (
            float(each[device, step])
            for each in (found.begins, found.works, found.leaves, found.sends)
        )
        tint: Tone = "panel" if now else "text"
        yield Bar(begins, begins + works, _TONES[kind], str(step + 1), tint, 0, _WORK)
        if sends:
            way: Tone = _sent(state) if now else ("field", _sent(state), 0.45)
            yield Bar(leaves, leaves + sends, way, top=_WORK + 0.02, deep=0.98 - _WORK)


def _draw_over(state: RingState, painter: QPainter, style: Style, where: Where) -> None:
    """Draw the ways of the step's blocks, and the blocks."""
    if state.seen < state.last_step:
        _draw_ways(state, painter, style, where)
    _draw_blocks(state, painter, style, where)


def _draw_ways(state: RingState, painter: QPainter, style: Style, where: Where) -> None:
    """Draw where the blocks of the step go: from each device to the next."""
    found, step = state.timeline, state.seen
    assert found is not None
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(style.pen(ink(style, "K"), 1.4))
    for n in range(state.last):
        lane, other = where["lane", n], where["lane", n + 1]
        across = lane.width() / found.seconds
        arrives = float(found.leaves[n, step] + found.sends[n, step])
        begins = float(found.begins[n + 1, step + 1])
        painter.drawLine(QLineF(lane.x() + across * arrives, lane.bottom(),
                                lane.x() + across * begins, other.y()))  # fmt: skip


def _draw_blocks(state: RingState, painter: QPainter, style: Style, where: Where) -> None:
    """Draw each device's current block of K and V, in its place or on the way to the next device.

    The block of the last device leaves below and comes to the first from above.
    """
    slots = [where["block", n] for n in range(state.last + 1)]
    pitch, high = slots[1].y() - slots[0].y(), min(style.px(18), slots[0].height())
    assert state.found.work is not None
    painter.save()
    painter.setClipRect(QRectF(slots[0].topLeft(), slots[-1].bottomRight()))
    for n, slot in enumerate(slots):
        if state.gone and not state.found.work.sent[n, state.seen]:
            continue
        y = slot.center().y() - high / 2 + state.gone * pitch
        # The block of the last device is seen twice on its way: below it, and above the first.
        for top in (y, y - pitch * len(slots)) if n == state.last and state.gone else (y,):
            box = QRectF(QPointF(slot.x(), top), QPointF(slot.right(), top + high))
            painter.fillRect(box, ink(style, ("panel", "K", 0.3)))
            Text(f"K, V {state.block(n)}", align=CENTRE).paint(painter, style, box)
    painter.restore()


def _numbers(state: RingState) -> Box:
    """Return m, l and O of the marked device's rows after the marked step."""
    numbers, rows = state.found.numbers, state.rows
    if numbers is None or not len(rows):
        words = "No numbers are computed of so many pairs." if numbers is None else "No rows."
        return Column((Text((words, "—"), "muted", CENTRE, grow=1, wide=0),))
    m, l, o = (each[state.part, rows] for each in (numbers.m, numbers.l, numbers.o))
    m, l = m[:, None], l[:, None]
    top, largest = signed_limit(m) or 1.0, signed_limit(numbers.exact.astype(np.float32)) or 1.0
    heats = (
        _heat("m", "m", m, -top, top, 26),
        _heat("l", "ℓ", l, 0.0, finite_range(l)[1] or 1.0, 26),
        _heat("O", "O", o, -largest, largest),
    )
    return Column((
        Text(heading(state), "current", wide=0),
        Row(heats, grow=1),
        Text(last_row(state), wide=0),
    ), gap=2)  # fmt: skip


def _heat(tensor: str, words: str, values: F32, low: float, high: float, wide: float = 0) -> Box:
    """Return a tensor's name above its numbers as colours, as wide as `wide`, or as the rest."""
    shown = np.ascontiguousarray(
        pooled(values, _MOST_PIXELS) if len(values) > _MOST_PIXELS else values
    )

    name = Text(words, align=CENTRE, wide=wide)
    return Column(
        (name, Image(Heat(shown, low, high, tensor), grow=1)), gap=0, grow=float(not wide)
    )
