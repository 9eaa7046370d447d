"""The numbers of a ring: m, l and O of each device's rows after each step, really computed.

A device's rows meet the block at hand as a row block of flash2 meets its keys, tile by tile in
float32; the ops that join splits merge the result with the results before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from simulator.base.dtypes import F32, F64, frozen
from simulator.base.errors import spaced
from simulator.engines.numerics import Change, Visible
from simulator.engines.numpy_engine import numpy_engine
from simulator.engines.reference import reference_rows
from simulator.engines.row_walk import walk_row_block
from simulator.problem.intervals import I64, Bools, Intervals
from simulator.problem.scores import Scoring
from simulator.problem.workload import Inputs
from simulator.program.ops import exp_shift, log_sum_exp
from simulator.study.merge.merging import Partial, joining_ops, merged
from simulator.study.ring.dealing import Pieces, block_at, tokens_of
from simulator.study.ring.work import Ring

Progress = Callable[[float], object]
MOST_PAIRS = 2**24
"""Most pairs of a row and a key of a head whose numbers are computed: some seconds of work."""


@dataclass(frozen=True, eq=False)
class RingNumbers:
    """One head of a ring.

    If keys stay, the first axis has the devices, each with its own keys alone, then all merged.
    """

    head: int  # which
    # m, l: (steps, Nq) float32 after each step: the maximum and the sum over all keys so far
    m: F32
    l: F32
    o: F32  # (steps, Nq, dv) float32, over the sum of the keys so far, not rounded to the dtype
    exact: F64  # (Nq, dv) float64, O from the definition
    # largest difference of the last O from O of flash2 on one device, not rounded either
    apart: float

    @property
    def error(self) -> float:
        """Largest difference of the last O from float64."""
        return float(np.abs(self.o[-1] - self.exact).max())


def why_no_numbers(ring: Ring) -> str:
    """Return why no numbers of a ring are computed, as a sentence; empty if they are."""
    w = ring.workload
    pairs = w.seqlen_q * w.seqlen_k
    if pairs <= MOST_PAIRS:
        return ""
    return (
        f"Numbers of m, ℓ and O are computed up to {spaced(MOST_PAIRS)} pairs of a row and a key; "
        f"here are {spaced(pairs)}."
    )


def ring_numbers(
    ring: Ring, inputs: Inputs, head: int, progress: Progress | None = None
) -> RingNumbers:
    """Compute a head of a ring.

    progress: told the share done.
    """
    w, g = ring.workload, ring.devices
    m, l = np.empty((2, g + ring.stays, w.seqlen_q), dtype=np.float32)
    o = np.empty((g + ring.stays, w.seqlen_q, w.value_dim), dtype=np.float32)
    if ring.stays:
        parts = []
        for device in range(g):
            m[device], part = _step(ring, inputs, head, device, 0)
            parts.append(part)
            if progress:
                progress((device + 1) / g)
        m[g] = m[:g].max(axis=0)
        for n, part in enumerate((*parts, merged(parts, joining_ops()))):
            o[n], l[n] = part.o, exp_shift(part.lse, m[n])
        return _finished(ring, inputs, head, m, l, o)
    for device, pieces in enumerate(ring.rows):
        rows = tokens_of(pieces)
        if not len(rows):
            continue
        so_far: Partial | None = None
        top = np.full(len(rows), -np.inf, dtype=np.float32)
        for step in range(g):
            own_top, own = _step(ring, inputs, head, device, step)
            so_far = own if so_far is None else merged((so_far, own), joining_ops())
            top = np.maximum(top, own_top)
            m[step, rows], o[step, rows] = top, so_far.o
            l[step, rows] = exp_shift(so_far.lse, top)  # m + ln l is the LSE
            if progress:
                progress((device * g + step + 1) / g**2)
    return _finished(ring, inputs, head, m, l, o)


def _finished(ring: Ring, inputs: Inputs, head: int, m: F32, l: F32, o: F32) -> RingNumbers:
    """Return the numbers, beside O from the definition and O of one device."""
    exact, _ = reference_rows(ring.workload, inputs, head, range(ring.workload.seqlen_q))
    apart = float(np.abs(o[-1] - _alone(ring, inputs, head)).max())
    return RingNumbers(head, frozen(m), frozen(l), frozen(o), exact, apart)


@dataclass(frozen=True, eq=False)
class _Meeting:
    """A device's rows and the block at hand: visible pairs, and the bias that scores lose."""

    visible: Bools
    bias: F32 | None

    def show(self, rows: slice) -> Visible:
        """Return the function that gives the mask of some keys for some of the rows."""
        return lambda start, stop: self.visible[rows, start:stop]

    def change(self, rows: slice, scoring: Scoring) -> Change:
        """Return the function that makes scores of scaled products for some of the rows."""

        def change(start: int, stop: int, s: F32) -> F32:
            capped = scoring.capped(s)
            return capped if self.bias is None else capped - self.bias[rows, start:stop]

        return change


def _step(ring: Ring, inputs: Inputs, head: int, device: int, step: int) -> tuple[F32, Partial]:
    """Return the maxima of a device's rows over the block at hand, and their partial result."""
    w, kv_head = ring.workload, ring.workload.kv_head_of[head]
    rows = tokens_of(ring.rows[device])
    block = ring.keys[block_at(device, step, ring.devices)]
    keys = tokens_of(block)
    k, v = inputs.k[kv_head, keys], inputs.v[kv_head, keys]
    meeting = _meeting(ring, head, ring.rows[device], block)
    visited = Intervals.where(ring.tiles(device, step))
    part = device if ring.stays else step
    m, l = (each.astype(np.float32) for each in _starts(ring, head, rows, part))
    o, lse = np.zeros((len(rows), w.value_dim), np.float32), log_sum_exp(m, l)
    for n in range(len(visited) if len(keys) else 0):
        own = slice(n * w.rows, (n + 1) * w.rows)
        walk = walk_row_block(
            inputs.q[head, rows[own]], k, v, w.scoring.factor, w.cols, visited.pairs(n),
            meeting.show(own), change=meeting.change(own, w.scoring) if w.changes_scores else None,
            start=(m[own], l[own]), keeps=w.keeps,
        )  # fmt: skip
        m[own], lse[own], o[own] = walk.m[:, -1], walk.lse, walk.o
    return m, Partial(lse, o)


def _meeting(ring: Ring, head: int, rows: Pieces, keys: Pieces) -> _Meeting:
    w = ring.workload
    bias = w.bias(head)
    return _Meeting(
        np.block([[w.mask.of_head(head).visible(own, other) for other in keys] for own in rows]),
        None if bias is None else
        np.block([[bias.of(own, other) for other in keys] for own in rows]).astype(np.float32),
    )  # fmt: skip


def _starts(ring: Ring, head: int, rows: I64, part: int) -> tuple[F64, F64]:
    """Return m and l of some rows before a part of the keys, as if none had been seen before.

    A sink logit counts once: in the first step, as if a device's own block had its key, or, if keys
    stay, on the first device.
    """
    return ring.workload.start(head, range(len(rows)), split=part)


def _alone(ring: Ring, inputs: Inputs, head: int) -> F32:
    """Return O of a head as flash2 computes it on one device, not rounded to the dtype."""
    w = replace(ring.workload, dtype="float32")
    return np.concatenate([block.o for block in numpy_engine(w, inputs).row_blocks(head)])
