"""The weights of used keys, relative to the current maximum, and divided by l.

A tile's own P is relative to the maximum that was known when the tile was used. The weights of its
keys in O have been rescaled since with every larger maximum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from simulator.base.dtypes import F32, frozen
from simulator.engines.protocol import RowBlock
from simulator.run.snapshot import Snapshot


def is_rescaled(now: Snapshot) -> bool:
    """Return whether old sums are rescaled with every larger maximum."""
    algorithm = now.program.algorithm
    running = algorithm.softmax and not (algorithm.backward or algorithm.stores_scores)
    return running and not now.program.workload.faults.on


def used_keys(now: Snapshot) -> range:
    """Return the keys of the tiles used before the current one; all keys if splits are joined."""
    w = now.program.workload
    return range(w.seqlen_k) if now.launch.combines else range(now.visit.cols.start)


def maximum_of_output(now: Snapshot) -> F32:
    """Return the m that O of the current rows is relative to, (r,): the old m until the rescale."""
    return now.m if now.rescaled else now.tile.m_prev


def maxima_of_output(now: Snapshot, m: F32, block: Callable[[int], RowBlock]) -> F32:
    """Return the m that O of each row of the head is relative to; the largest m of joined splits.

    now: the state, which need not have numbers of the head yet.
    m: (Nq,) at the cursor, NaN for rows that have not been begun.
    Returns: (Nq, 1) float32, or one column for each split: until splits are joined, each has its
        own O.
    """
    w, visit = now.program.workload, now.visit
    rows = slice(visit.rows.start, visit.rows.stop)
    if not now.program.algorithm.splits:
        top = m.copy()
        top[rows] = maximum_of_output(now)
        return top[:, None]
    ends = (np.arange(w.splits) + 1) * w.split_blocks
    lasts = np.minimum(ends, w.grid.Tc) - 1
    parts = np.concatenate([block(i).m[:, lasts] for i in range(w.grid.Tr)]).astype(np.float32)
    if now.launch.combines:
        joined = slice(rows.stop if now.made("O") else rows.start)
        parts[joined] = parts[joined].max(axis=1, keepdims=True)
    else:
        parts[rows, visit.split] = maximum_of_output(now)
    return parts


def exponentials(s: F32, top: F32, keys: int) -> F32:
    """Return ``exp(S - top)`` of a head, (Nq, Nk) float32, NaN where there is none.

    `keys`: for how many keys a column of `top` holds.
    """
    with np.errstate(all="ignore"):
        return frozen(np.exp(s - top[:, np.arange(s.shape[1]) // keys]))


def with_weights_so_far(now: Snapshot) -> Snapshot:
    """Return a snapshot with its `Snapshot.so_far`, where there are such weights."""
    weights = weights_so_far(now)
    return now if weights is None else replace(now, so_far=weights)


def with_finale(now: Snapshot) -> Snapshot:
    """Return a snapshot with its `Snapshot.so_far` where all rows that were begun are done."""
    return with_weights_so_far(now) if now.completes else now


def done_rows(now: Snapshot) -> range:
    """Return the rows before the current ones whose weights are divided by their whole sum l.

    The range is empty where every column block begins all rows again, or where splits have sums of
    their own.
    """
    whole = now.launch.by_rows and is_rescaled(now) and not now.program.algorithm.splits
    return range(now.visit.rows.start if whole else 0)


def done_weights(now: Snapshot) -> F32 | None:
    """Return ``exp(S - m) / l``, (Nq, Nk), the weights of done rows; None if no row is done.

    Also None if the problem is too large.
    """
    head = now.head
    if head is None or head.weights is None or not done_rows(now):
        return None
    with np.errstate(all="ignore"):
        weights: F32 = head.weights / head.l[:, None]
    return frozen(weights)


def weights_so_far(now: Snapshot) -> F32 | None:
    """Return ``exp(S - m) / l`` with m and l of each row as O has them now.

    When the row is done, these are the weights of the softmax.

    Returns: (Nq, Nk) float32, NaN where a row has no m and l or a tile is skipped. None for a
        problem that is too large, where P in HBM is divided already, and where splits have sums of
        their own.
    """
    head = now.head
    if head is None or now.stores_scores or now.program.algorithm.tensors:
        return None
    if not now.program.algorithm.forms:
        return None
    m, l = head.m.copy(), head.l.copy()
    if not now.rescaled:  # m and l may have changed already, and O has not followed yet
        rows = slice(now.visit.rows.start, now.visit.rows.stop)
        m[rows], l[rows] = now.tile.m_prev, now.tile.l_prev
    with np.errstate(all="ignore"):
        weights = np.exp(head.s - m[:, None]) / l[:, None]
    return frozen(np.asarray(weights, dtype=np.float32))
