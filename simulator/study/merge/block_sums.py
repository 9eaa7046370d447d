"""The sums of a row block's gradient in a named order, and the cost of each order.

The cost is a model; nothing was measured. A thread block has a place of its own, works on its tiles
one after the other, and at the end of a tile adds to the tile's rows. Without an order the block
adds at once. In order the block waits until the column blocks before have added to these rows, as
with FlashAttention-3's dq_semaphore.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heapify, heapreplace

import numpy as np

from simulator.base.dtypes import F32, STATISTIC_WIDTH
from simulator.problem.hardware import time_estimate
from simulator.problem.intervals import I64
from simulator.program.algorithms import TENSORS, takes_turns
from simulator.program.group_launch import GroupLaunch
from simulator.program.tile_program import TileProgram
from simulator.run.trace import Trace
from simulator.study.merge.choices import DRAWN, FIRST
from simulator.study.merge.gradient_sums import (
    MOST_TERMS,
    SUM,
    BlockTerms,
    Orders,
    random_orders,
    rooms,
    row_sums,
)

MOST_TILES = 2**15
"""Most tiles that are placed one by one."""
COUNTER_BYTES = 4
"""Bytes of the counter of a row block, which says whose turn it is; a head has one more, which
numbers its column blocks as they start (kernels/cuda/flash2_backward.cu)."""


@dataclass(frozen=True, slots=True)
class Turns:
    """The time of the launch that adds to dQ, if nobody waits and if all wait for their turn."""

    at_once: float  # at_once, in_turn: seconds
    in_turn: float
    counter_bytes: int  # room in HBM for the counters

    @property
    def longer(self) -> float:
        """By which share the launch takes longer in turn."""
        return self.in_turn / self.at_once - 1


def turns_of(program: TileProgram) -> Turns | None:
    """Return the cost of turns on the GPU of a run; None if the run has too many tiles.

    One thread block is on a multiprocessor at a time. A tile takes the roofline time of its own
    bytes and FLOPs on one multiprocessor, and its addition the time of reading and writing its
    sums.
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


TRIED = 20
"""How many random orders are tried."""
_MOST_TILES = 2**10
"""Most tiles of a run whose sums are all tried in random orders."""


@dataclass(frozen=True, eq=False)
class BlockSums:
    """The sums of a row block in an order."""

    where: str  # head and row block, in words
    tensor: str = ""  # the tensor that is summed
    rows: range = range(0)
    sums: BlockTerms | None = None  # the terms of column blocks; None: `why` not
    order: str = FIRST
    seed: int = 0  # of an order that is drawn
    chosen: tuple[int, int] | None = None  # whose bits are shown; None: the one that moves most
    room: tuple[int, int] = (0, 0)  # bytes of one sum of each number, and of a share from each tile
    turns: Turns | None = None  # the cost of waiting for turns; None: the run is too large
    in_turn: bool = False  # whether the run's own kernel lets column blocks wait
    whole: Orders | None = None  # changes by random orders in all rows; None: too large
    why: str = ""

    @cached_property
    def apart(self) -> I64:
        """How many float32 numbers each sum is from the sum in order, (rows, columns)."""
        assert self.sums is not None
        return self.sums.apart(self.order, self.seed)

    @cached_property
    def both(self) -> tuple[F32, F32]:
        """The sums in order, and in the order that is shown."""
        assert self.sums is not None
        return self.sums.total(FIRST), self.sums.total(self.order, self.seed)

    @property
    def at(self) -> tuple[int, int]:
        """Row of the block and column of the number whose bits are shown."""
        if self.chosen is not None:
            return self.chosen
        row, column = np.unravel_index(int(np.argmax(self.apart)), self.apart.shape)
        return int(row), int(column)

    @property
    def bits(self) -> tuple[str, str]:
        """The bits of the number at `at`, in order and in the order that is shown: sign first."""
        first, second = (int(x[self.at].view(np.uint32)) for x in self.both)
        return f"{first:032b}", f"{second:032b}"

    @property
    def differing(self) -> tuple[int, ...]:
        """The places of the bits that differ."""
        return tuple(n for n, (a, b) in enumerate(zip(*self.bits, strict=True)) if a != b)

    def ordered(self, order: str) -> BlockSums:
        """Return the state in another order; a drawn order is drawn anew if asked for again."""
        again = order == DRAWN == self.order
        return replace(self, order=order, seed=self.seed + again)


def block_sums(trace: Trace, head: int, i: int) -> BlockSums:
    """Return the sums of a row block, in order."""
    w, program = trace.workload, trace.program
    where = f"Head {w.head_name(head)}, row block {i}"
    columns = len(program.launches[program.forming].visits)
    if columns > MOST_TERMS:
        why = f"{columns} column blocks add to a row block: shown are at most {MOST_TERMS}."
        return BlockSums(where, why=why)
    sums = row_sums(trace, head, i)
    if not sums.columns:
        return BlockSums(where, why="These rows see no key: nothing is added to them.")
    small = program.sizes[program.forming] <= _MOST_TILES
    return BlockSums(
        where, str(TENSORS[SUM].at), w.grid.row_range(i), sums, room=rooms(trace),
        turns=turns_of(program), in_turn=takes_turns(w),
        whole=random_orders(trace, TRIED) if small else None,
    )  # fmt: skip
