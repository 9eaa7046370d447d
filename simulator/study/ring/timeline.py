"""When the devices of a ring work, send and wait: a model; nothing was measured.

A step of a device is its work on the block at hand and the block's way to the next device.
Overlapped, both begin together; else a block leaves when both devices have done their work. A
device begins its next step when it has done its work, has the next block, and the next device has
its own: a device has room for two blocks, one to work on and send from, one to receive. If keys
stay, all begin together, and each sends what it has made when it is done; the merge takes no time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simulator.base.dtypes import F64
from simulator.problem.hardware import Link, time_estimate
from simulator.program.algorithms import tile_program
from simulator.study.ring.work import RingWork


@dataclass(frozen=True, eq=False)
class RingTimeline:
    """Seconds; each array has a row for each device and a column for each step."""

    work: RingWork  # the work of the devices
    link: Link  # the link between devices
    overlapped: bool  # whether blocks travel during the work
    # begins, works: when a device begins a step, and how long its work takes
    begins: F64
    works: F64
    # leaves, sends: when the block at hand leaves for the next device, and how long it takes; both
    # are 0 in the last step, unless keys stay
    leaves: F64
    sends: F64
    alone: float  # how long one device would take for everything, as the usual algorithm

    @cached_property
    def seconds(self) -> float:
        """When the last device has done its work, or sent it; above 0, because blocks travel."""
        if self.work.ring.stays:
            return float((self.leaves + self.sends).max())
        return float((self.begins + self.works).max())

    @property
    def idle(self) -> float:
        """The share of the devices' time in which they do not work, 0 to 1."""
        return max(1 - float(self.works.mean(axis=0).sum()) / self.seconds, 0.0)

    @property
    def speed_up(self) -> float:
        """How many times as fast the ring is as one device."""
        return self.alone / self.seconds


def ring_timeline(work: RingWork, link: Link, overlapped: bool) -> RingTimeline:
    """Return the timeline of a ring.

    Work takes the longer of its bytes at the HBM bandwidth and its FLOPs at the matrix rate of the
    data sheet, as elsewhere (`time_estimate`); a block takes its bytes over the link's bandwidth.
    """
    w = work.ring.workload
    works = np.array([
        [time_estimate(w.gpu, int(size), int(flops), w.dtype).seconds
         for size, flops in zip(*own, strict=True)]
        for own in zip(work.bytes, work.flops, strict=True)
    ])  # fmt: skip
    sends = np.array([[link.seconds(int(size)) for size in own] for own in work.sent])
    if work.ring.stays:
        size, flops = int(work.bytes.sum()), int(work.flops.sum())
        alone = time_estimate(w.gpu, size, flops, w.dtype).seconds
        return RingTimeline(work, link, False, np.zeros_like(works), works, works, sends, alone)
    begins, leaves = np.zeros_like(works), np.zeros_like(works)
    for step in range(works.shape[1] - 1):
        done = begins[:, step] + works[:, step]
        ready = begins[:, step] if overlapped else done
        # Both ends of a link must be in the step: the block of n leaves when n + 1 has room for it.
        leaves[:, step] = np.maximum(ready, np.roll(ready, -1))
        arrives = leaves[:, step] + sends[:, step]
        begins[:, step + 1] = np.maximum.reduce([done, arrives, np.roll(arrives, 1)])
    totals = tile_program(w).totals
    alone = time_estimate(w.gpu, totals.bytes, totals.flops, w.dtype).seconds
    return RingTimeline(work, link, overlapped, begins, works, leaves, sends, alone)
