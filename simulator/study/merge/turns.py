"""What it costs if column blocks add to dQ in their order: a model, nothing of it was measured.

A thread block has a place of its own, works on its tiles one after the other, and the last it does
with a tile is to add to the tile's rows. Without an order it adds at once. In order it waits until
the column blocks before have added to these rows, as with FlashAttention-3's dq_semaphore.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heapreplace

from simulator.base.dtypes import STATISTIC_WIDTH
from simulator.problem.hardware import time_estimate
from simulator.program.group_launch import GroupLaunch
from simulator.program.tile_program import TileProgram

MOST_TILES = 2**15
"""Most tiles that are placed one by one."""
COUNTER_BYTES = 4
"""Of the counter of a row block, which says whose turn it is; a head has one more, which numbers
its column blocks as they start (kernels/cuda/flash2_backward.cu)."""


@dataclass(frozen=True, slots=True)
class Turns:
    """How long the launch takes that adds to dQ, if nobody waits and if all wait for their turn."""

    at_once: float  # at_once, in_turn: seconds
    in_turn: float
    counter_bytes: int  # room in HBM for the counters

    @property
    def longer(self) -> float:
        """By which share it takes longer in turn."""
        return self.in_turn / self.at_once - 1


def turns_of(program: TileProgram) -> Turns | None:
    """Return what turns cost on the GPU of a run; None if it has too many tiles.

    One thread block is on a multiprocessor at a time. A tile takes the roofline time of its own
    bytes and FLOPs on one multiprocessor, and the addition that of reading and writing its sums.
    """
    number = program.forming
    launch, w = program.launches[number], program.workload
    if program.sizes[number] > MOST_TILES:
        return None
    assert isinstance(launch, GroupLaunch)
    width = launch.flops.pair
    moved = sum(cost.inner for side in (launch.reads, launch.writes) for cost in side.values())
    sums = 2 * STATISTIC_WIDTH * w.head_dim

    def seconds(rows: int, keys: int) -> tuple[float, float]:
        """Return how long a tile takes, and how long of that its addition."""
        whole = time_estimate(w.gpu, moved * rows, width * rows * keys, w.dtype).seconds
        return w.gpu.sms * whole, w.gpu.sms * time_estimate(w.gpu, sums * rows, 0, w.dtype).seconds

    def placed(*, waits: bool) -> float:
        places, last = [0.0] * w.gpu.sms, 0.0
        heapify(places)
        turn: dict[tuple[int, int], float] = {}  # when the last has added to some rows
        for kv_head in range(launch.times(w.heads)):
            for j in range(w.grid.Tc):
                now = places[0]
                for head in launch.members(kv_head):
                    for i in launch.visited(j).tolist():
                        rows = len(w.grid.row_range(i))
                        tile, adding = seconds(rows, len(w.grid.col_range(j)))
                        now += tile - adding
                        if waits:
                            now = max(now, turn.get((head, i), 0.0))
                        now += adding
                        turn[head, i] = now
                heapreplace(places, now)
                last = max(last, now)
        return last

    counters = COUNTER_BYTES * w.heads * (w.grid.Tr + 1)
    return Turns(placed(waits=False), placed(waits=True), counters)
