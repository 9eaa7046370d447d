"""What the ring panel shows, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from simulator.problem.hardware import LAUNCH_SECONDS
from simulator.problem.scenario import Layout
from simulator.problem.workload import Inputs, Workload
from simulator.program.algorithms import USUAL
from simulator.program.playback import eased
from simulator.study.ring.dealing import block_at, owners, tokens_of
from simulator.study.ring.numbers import Progress, RingNumbers, ring_numbers, why_no_numbers
from simulator.study.ring.timeline import RingTimeline
from simulator.study.ring.work import RingWork, ring_of, ring_work, why_no_ring
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

Shows = Literal["time", "numbers"]
"""When devices work and send; or m, ℓ and O of a device's rows."""
SHOWS: tuple[Shows, ...] = get_args(Shows)
FINEST = 256
"""Rows and keys of the picture of the mask, about, at most."""
HIDDEN, LATER, DONE, NOW, CHOSEN = range(5)
"""What a pair of the picture is: hidden, to come, done, of this step, of the marked device."""


@dataclass(frozen=True, eq=False)
class RingFound:
    """What was computed of a run.

    Attributes
    ----------
    workload : Workload
        The run, its heads one by one.
    work : RingWork or None
        What devices do; None: `why` not.
    numbers : RingNumbers or None
        What their rows have; None: `why` not.
    why : str
        What is not there, as a sentence; empty if all is.
    """

    workload: Workload
    work: RingWork | None
    numbers: RingNumbers | None
    why: str


def ring_found(
    w: Workload, inputs: Inputs, head: int, devices: int, layout: Layout, report: Progress
) -> RingFound:
    """Deal a run out, and compute what can be computed."""
    why = why_no_ring(w)
    if why:
        return RingFound(w, None, None, why)
    ring = ring_of(w, devices, layout)
    why = why_no_numbers(ring)
    numbers = None if why else ring_numbers(ring, inputs, head, report)
    return RingFound(w, ring_work(ring), numbers, why)


@dataclass(frozen=True, eq=False)
class RingState:
    """What is shown.

    Attributes
    ----------
    found : RingFound
        What was computed.
    timeline : RingTimeline or None
        When devices work and send.
    shows : str
        What stands beside the mask.
    step, device : int
        Which are marked.
    share : float
        How much of the way to the marked step has been seen, 0 to 1. Until it is 1 the step before
        is shown, and its blocks are on their way to the next devices.
    """

    found: RingFound
    timeline: RingTimeline | None
    shows: Shows = "time"
    step: int = 0
    device: int = 0
    share: float = 1.0

    def at(self, step: int, device: int) -> RingState:
        """Return the state with another step and device marked, as far as there are any."""
        work = self.found.work
        most = 0 if work is None else work.ring.devices - 1
        step, device = (min(max(each, 0), most) for each in (step, device))
        share = self.share if step == self.step else 1.0
        return replace(self, step=step, device=device, share=share)

    @property
    def seen(self) -> int:
        """The step that is shown."""
        return self.step if self.share == 1 else self.step - 1

    @property
    def gone(self) -> float:
        """How far the blocks are on their way to the next devices, 0 to 1: 0 at rest."""
        return eased(self.share) if self.share < 1 else 0.0

    @property
    def title(self) -> tuple[str, ...]:
        """The title, longest first: its times are a model wherever they are shown."""
        found = self.timeline
        if found is None:
            return ("No ring",)
        ring = found.work.ring
        said = f"{plural(ring.devices, 'device')}, {ring.layout}"
        if self.shows == "numbers":
            has = f"{said}: what the rows of a device have"
            return (
                f"{has} after each step; times are a model, not measured",
                f"{has}; a model",
                said,
            )
        idle = f"idle {100 * found.idle:.0f} %"
        if found.alone < LAUNCH_SECONDS:  # the times say nothing of how fast a ring is
            return f"A model, not measured: {said}, {idle}", f"A model: {said}, {idle}", "A model"
        fast = f"{factor_text(found.speed_up)} as fast as one"
        return (
            f"A model, not measured: {said}, ≈ {time_text(found.seconds)}, {idle}, {fast}",
            f"A model: {said}, ≈ {time_text(found.seconds)}, {idle}, {fast}",
            f"A model: ≈ {time_text(found.seconds)}, {idle}, {fast}",
            f"A model: {fast}, {idle}",
        )

    def block(self, device: int) -> int:
        """Return whose K and V a device has at hand."""
        assert self.found.work is not None
        return block_at(device, self.seen, self.found.work.ring.devices)

    @property
    def told(self) -> tuple[str, ...]:
        """What the marked device does in the marked step, longest first."""
        found = self.timeline
        if found is None:
            return ()
        work, at = found.work, (self.device, self.seen)
        tiles, flops = int(work.tiles[at]), int(work.flops[at])
        does = (
            f"{plural(tiles, 'tile')}, {rate_text(flops, 'FLOP')}, "
            f"{time_text(float(found.works[at]))}"
            if tiles else "the mask hides all of it: nothing to compute"
        )  # fmt: skip
        sent = int(work.sent[at])
        sends = (
            f"sends it on, {bytes_text(sent)} in {time_text(float(found.sends[at]))}"
            if sent else "sends nothing on"
        )  # fmt: skip
        begin = f"Step {self.seen + 1}, device {self.device}"
        return (
            f"{begin} with K, V of device {self.block(self.device)}: {does}; {sends}",
            f"{begin}, K, V of {self.block(self.device)}: {does}",
            f"{begin}: {plural(tiles, 'tile')}",
        )

    @property
    def words(self) -> tuple[str, ...]:
        """What is said below, the most important first."""
        found, numbers = self.timeline, self.found.numbers
        if found is None:
            return (self.found.why,)
        work, out = found.work, []
        if numbers is not None:
            out.append(
                f"O of head {self.found.workload.head_name(numbers.head)} after the last step: at "
                f"most {number_text(numbers.error, 2)} from float64, "
                f"{number_text(numbers.apart, 2)} from {USUAL.title} on one device."
            )
        elif self.shows == "numbers":
            out.append(self.found.why)
        if short := launch_words(found.seconds):
            out.append(short)
        busy = work.flops.sum(axis=1)
        whole = busy.sum() or 1
        shares = dict.fromkeys(_share(each / whole) for each in (busy.min(), busy.max()))
        out.append(
            f"Of all FLOPs {' to '.join(shares)} a device; "
            f"each link carries {bytes_text(int(work.sent.sum(axis=1).max()))} in "
            f"{plural(work.ring.devices - 1, 'block')}, {found.link.title} at "
            f"{found.link.gbps:g} GB/s."
        )
        longer = found.sends[:, :-1] > found.works[:, :-1]
        if longer.all():
            out.append("Sending takes longer than the work in every step: the links decide.")
        elif not longer.any() and found.overlapped:
            out.append("Work takes longer than sending in every step, and hides it.")
        if self.found.workload.dtype == "float32":
            out.append("Data sheets have no matrix rate for float32: work is its bytes alone.")
        return tuple(out)

    @cached_property
    def kinds(self) -> NDArray[np.uint8]:
        """What each pair of the picture of the mask is, (rows, keys), of a sample of pairs."""
        work = self.found.work
        assert work is not None
        ring, w = work.ring, work.ring.workload
        # A stride of one more than a multiple of g meets the devices of stripes in their order.
        stride = [
            1 + ring.devices * -(-max(-(-n // FINEST) - 1, 0) // ring.devices)
            for n in (w.seqlen_q, w.seqlen_k)
        ]
        rows, keys = (
            range(0, n, each) for n, each in zip((w.seqlen_q, w.seqlen_k), stride, strict=True)
        )
        of_row, of_key = (
            owners(ring.layout, n, ring.devices)[::each]
            for n, each in zip((w.seqlen_q, w.seqlen_k), stride, strict=True)
        )
        when = (of_row[:, None] - of_key[None, :]) % ring.devices
        out = np.where(when < self.seen, DONE, LATER)
        out[when == self.seen] = NOW
        out[(when == self.seen) & (of_row == self.device)[:, None]] = CHOSEN
        return np.where(w.mask.visible(rows, keys), out, HIDDEN).astype(np.uint8)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The rows of the marked device."""
        assert self.found.work is not None
        return tokens_of(self.found.work.ring.rows[self.device])

    @property
    def row_words(self) -> tuple[str, ...]:
        """The numbers of the first row of the marked device that sees most, longest first."""
        numbers = self.found.numbers
        if numbers is None or not len(self.rows):
            return ()
        row = int(self.rows[-1])
        m, l = (float(each[self.seen, row]) for each in (numbers.m, numbers.l))
        off = float(np.abs(numbers.o[self.seen, row] - numbers.exact[row]).max())
        said = f"row {row}: m {number_text(m)}, ℓ {number_text(l)}"
        done = f"O {number_text(off, 2)} from that of all keys"
        return f"{said}, {done}", said


def _share(value: float) -> str:
    return f"{100 * value:.3g} %"


def summary(state: RingState) -> str:
    """Return what the picture says, for screen readers."""
    parts = (state.title[:1], state.told[:1], state.row_words[:1], state.words)
    return ". ".join(words.rstrip(".") for part in parts for words in part) + "."


def count_rows(state: RingState) -> str:
    """Return which rows the marked device has, in words."""
    work = state.found.work
    assert work is not None
    pieces = work.ring.rows[state.device]
    parts = [
        f"every {each.step}th from {each.start}" if each.step > 1 else
        f"{count_text(each.start)}–{count_text(each.stop - 1)}"
        for each in pieces if len(each)
    ]  # fmt: skip
    return f"rows {' and '.join(parts)}" if parts else "no rows"
