"""The state of a ring as shown: the results, and a marked step and device."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from simulator.base.choices import one_of
from simulator.problem.workload import Inputs, Workload
from simulator.program.playback import eased
from simulator.study.ring.dealing import LAYOUTS, block_at, owners, tokens_of
from simulator.study.ring.numbers import Progress, RingNumbers, ring_numbers, why_no_numbers
from simulator.study.ring.timeline import RingTimeline
from simulator.study.ring.work import RingWork, ring_of, ring_work, why_no_ring

FINEST = 256
"""Most rows and keys of the picture of the mask, about."""
HIDDEN, LATER, DONE, NOW, CHOSEN = range(5)
"""Kinds of pairs of the picture: hidden, to come, done, of this step, of the marked device."""


@dataclass(frozen=True, eq=False)
class RingFound:
    """The results for a run."""

    workload: Workload  # the run, its heads one by one
    work: RingWork | None  # the work of devices; None: `why` not
    numbers: RingNumbers | None  # the numbers of their rows; None: `why` not
    why: str  # what is missing, as a sentence; empty if nothing is


def ring_found(
    w: Workload,
    inputs: Inputs,
    head: int,
    devices: int,
    layout: str,
    report: Progress,
    *,
    stays: bool = False,
) -> RingFound:
    """Deal a run out, and compute what can be computed."""
    why = why_no_ring(w)
    if why:
        return RingFound(w, None, None, why)
    ring = ring_of(w, devices, one_of(LAYOUTS, layout), stays=stays)
    why = why_no_numbers(ring)
    numbers = None if why else ring_numbers(ring, inputs, head, report)
    return RingFound(w, ring_work(ring), numbers, why)


@dataclass(frozen=True, eq=False)
class RingState:
    """A ring with a step and a device that are marked.

    `share` is how much of the way to the marked step has been seen. Until it is 1, the step before
    is shown, and its blocks are on their way to the next devices.
    """

    found: RingFound
    timeline: RingTimeline | None  # when devices work and send
    shows: str = "time"  # what stands beside the mask
    step: int = 0
    device: int = 0
    share: float = 1.0

    @property
    def last(self) -> int:
        """The last device."""
        return 0 if self.found.work is None else self.found.work.ring.devices - 1

    @property
    def last_step(self) -> int:
        """The last step."""
        return 0 if self.found.work is None else self.found.work.ring.steps - 1

    @property
    def stays(self) -> bool:
        """Whether keys stay where they are."""
        return self.found.work is not None and self.found.work.ring.stays

    @property
    def part(self) -> int:
        """The place of the numbers that are shown: the step, or, if keys stay, the device."""
        return self.device if self.stays else self.seen

    def at(self, step: int, device: int) -> RingState:
        """Return the state with another step and device marked, as far as there are any."""
        step, device = min(max(step, 0), self.last_step), min(max(device, 0), self.last)
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

    def block(self, device: int) -> int:
        """Return whose K and V a device has at hand."""
        return block_at(device, self.seen, self.last + 1)

    @cached_property
    def kinds(self) -> NDArray[np.uint8]:
        """The kind of each pair of the picture of the mask, (rows, keys), of a sample of pairs."""
        assert self.found.work is not None
        ring, w = self.found.work.ring, self.found.work.ring.workload
        lengths = w.seqlen_q, w.seqlen_k
        # A stride of one more than a multiple of g meets the devices of stripes in their order.
        rows, keys = (
            range(0, n, 1 + ring.devices * -(-max(-(-n // FINEST) - 1, 0) // ring.devices))
            for n in lengths
        )
        of_row, of_key = (
            owners(ring.layout, n, ring.devices)[:: each.step]
            for n, each in zip(lengths, (rows, keys), strict=True)
        )
        if ring.stays:
            own = np.where(of_key == self.device, CHOSEN, NOW)[None, :]
            return np.where(w.mask.visible(rows, keys), own, HIDDEN).astype(np.uint8)
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
