"""What each device of a ring computes in each step, and what the links carry.

Everything is counted as the usual algorithm counts it, on the rows that a device holds and the
block of keys that it has at hand: a tile without a visible pair is skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import STATISTIC_WIDTH
from simulator.base.errors import spaced
from simulator.problem.intervals import I64, Intervals
from simulator.problem.masks import Mask
from simulator.problem.scenario import Layout
from simulator.problem.tiling import TileGrid
from simulator.problem.workload import Workload
from simulator.program.algorithms import USUAL, algorithm_of
from simulator.program.faults import honest
from simulator.study.ring.dealing import Pieces, block_at, dealt, tokens_of

MOST_TOKENS = 2**20
"""Most rows, and most keys, that are dealt out: counting them takes about a second."""
MOST_TILES = 2**22
"""Most tiles of one device and one block of keys."""
MOST_UNEVEN = 2**12
"""Most rows, and most keys, under a mask that makes many intervals of a row's keys."""


@dataclass(frozen=True, eq=False)
class Ring:
    """A problem dealt out to devices."""

    workload: Workload  # the problem, its heads one by one, as flash2 has it
    devices: int  # how many there are, g
    layout: Layout  # how rows and keys are dealt out
    # whether keys stay where they are, and each device has all rows: they merge at the end
    stays: bool = False

    @property
    def steps(self) -> int:
        """How many blocks of keys each device works on."""
        return 1 if self.stays else self.devices

    @cached_property
    def rows(self) -> tuple[Pieces, ...]:
        """The rows of each device."""
        if self.stays:
            return ((range(self.workload.seqlen_q),),) * self.devices
        return dealt(self.layout, self.workload.seqlen_q, self.devices)

    @cached_property
    def keys(self) -> tuple[Pieces, ...]:
        """The keys of each device, with which it starts."""
        return dealt(self.layout, self.workload.seqlen_k, self.devices)

    @cached_property
    def _row_intervals(self) -> Intervals:
        """The visible keys of each row."""
        return TileGrid(self.workload.mask, 1, 1).visited_columns

    def visible(self, device: int, step: int) -> tuple[I64, I64, I64]:
        """Return the visible keys of a device's rows in a step, as intervals of the block's keys.

        Returns
        -------
        row, start, stop : ndarray
            (intervals,) each: which of the device's rows, and from which to before which key of
            the block at hand.
        """
        rows = tokens_of(self.rows[device])
        keys = tokens_of(self.keys[block_at(device, step, self.devices)])
        seen = self._row_intervals
        first, last = seen.offsets[rows], seen.offsets[rows + 1]
        count = last - first
        row = np.repeat(np.arange(len(rows)), count)
        place = np.arange(len(row)) + np.repeat(first - (np.cumsum(count) - count), count)
        bounds = np.searchsorted(keys, seen.bounds[place])
        some = bounds[:, 0] < bounds[:, 1]
        return row[some], bounds[some, 0], bounds[some, 1]

    def tiles(self, device: int, step: int) -> NDArray[np.bool_]:
        """Return which tiles a device visits in a step, (row blocks, column blocks)."""
        w = self.workload
        shape = self.row_sizes(device).size, self.key_sizes(device, step).size
        row, start, stop = self.visible(device, step)
        turns = np.zeros((shape[0], shape[1] + 1), dtype=np.int64)
        np.add.at(turns, (row // w.rows, start // w.cols), 1)
        np.add.at(turns, (row // w.rows, -(-stop // w.cols)), -1)
        return turns.cumsum(axis=1)[:, :-1] > 0

    def row_sizes(self, device: int) -> I64:
        """Return how many rows each row block of a device has."""
        return _sizes(sum(map(len, self.rows[device])), self.workload.rows)

    def key_sizes(self, device: int, step: int) -> I64:
        """Return how many keys each column block of the block at hand has."""
        own = self.keys[block_at(device, step, self.devices)]
        return _sizes(sum(map(len, own)), self.workload.cols)


@dataclass(frozen=True, eq=False)
class RingWork:
    """Counts of each device (first axis) in each step (second axis), of all heads; int64."""

    ring: Ring  # the ring that was counted
    # tiles, pairs: tiles that are visited, and pairs that the mask shows
    tiles: I64
    pairs: I64
    flops: I64  # matmul FLOPs of the visited tiles
    # requested bytes of HBM: K and V of each visited tile; for each row block with such a tile Q
    # once, and O and LSE in float32, which are written, and after the first step read before
    bytes: I64
    # (devices, steps) bytes that a device sends to the next during a step, none in the last; if
    # keys stay, O and LSE of all rows in float32, which every device sends once
    sent: I64


def ring_of(w: Workload, devices: int, layout: Layout, *, stays: bool = False) -> Ring:
    """Return the problem of a run dealt out to devices; `why_no_ring` has no reason."""
    return Ring(honest(w).as_algorithm(USUAL.name).ungated, devices, layout, stays)


def why_no_ring(w: Workload) -> str:
    """Return why a run cannot be dealt out to a ring, as a sentence; empty if it can."""
    if not algorithm_of(w).softmax:
        return "Without a softmax there is no maximum and no sum to merge: a ring passes on states."
    if w.latent:
        return "Keys and values are one latent that all heads share; a ring of it is not shown."
    mask: Mask = w.mask
    tokens = max(w.queries, w.seqlen_k)
    most = MOST_TOKENS if mask.simple else MOST_UNEVEN
    if tokens > most:
        under = "" if mask.simple else " under such a mask"
        many = f"{spaced(tokens)} tokens are too many to deal out one by one{under}"
        return f"{many}: at most {spaced(most)}."
    tiles = -(-w.queries // (2 * w.rows)) * -(-w.seqlen_k // (2 * w.cols))  # of half of both
    if tiles > MOST_TILES:
        many = f"{spaced(tiles)} tiles of one device are too many to count"
        return f"{many}: at most {spaced(MOST_TILES)}."
    return ""


def ring_work(ring: Ring) -> RingWork:
    """Return what each device computes and sends in each step.

    If keys stay, the heads that share K and V load them together, as split-KV does for rows of all
    of them that fit in a tile.

    Raises ValueError: `why_no_ring` has a reason.
    """
    w, g = ring.workload, ring.devices
    why = why_no_ring(w)
    if why:
        raise ValueError(why)
    counts = np.zeros((5, g, ring.steps), dtype=np.int64)
    loads = w.kv_heads if ring.stays else w.heads
    depth = w.head_dim + w.value_dim
    state = (w.value_dim + 1) * STATISTIC_WIDTH
    for device in range(g):
        for step in range(ring.steps):
            seen = ring.tiles(device, step)
            rows, keys = ring.row_sizes(device), ring.key_sizes(device, step)
            _, start, stop = ring.visible(device, step)
            visited_keys = np.where(seen, keys, 0).sum(axis=1)
            busy = int(rows[seen.any(axis=1)].sum())
            counts[:4, device, step] = (
                loads * np.count_nonzero(seen),
                w.heads * (stop - start).sum(),
                w.heads * 2 * depth * (rows * visited_keys).sum(),
                loads * w.width * depth * visited_keys.sum()
                + w.heads * busy * (w.width * w.head_dim + state * (1 + (step > 0))),
            )
            if ring.stays:
                counts[4, device, step] = w.heads * w.seqlen_q * state
            elif step < g - 1:
                counts[4, device, step] = w.kv_heads * keys.sum() * depth * w.width
    return RingWork(ring, *counts)


def _sizes(length: int, block: int) -> I64:
    """Return the sizes of blocks; the last may be smaller."""
    starts = np.arange(0, length, block, dtype=np.int64)
    return np.minimum(starts + block, length) - starts
