"""The weights that the sums so far make of every score: P / l, of the tiles that have been used."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simulator.base.dtypes import F32, frozen
from simulator.run.snapshot import Snapshot


def with_weights_so_far(now: Snapshot) -> Snapshot:
    """Return a snapshot with its `Snapshot.so_far`, where there is such a thing."""
    weights = weights_so_far(now)
    return now if weights is None else replace(now, so_far=weights)


def with_finale(now: Snapshot) -> Snapshot:
    """Return a snapshot with its `Snapshot.so_far` where all rows that were begun are done."""
    return with_weights_so_far(now) if now.completes else now


def weights_so_far(now: Snapshot) -> F32 | None:
    """Return ``exp(S - m) / l`` with m and l of each row as they are now.

    A tile's own P is relative to the maximum that was known when it was used. When the row is done,
    these are the weights of the softmax.

    Returns
    -------
    ndarray or None
        (Nq, Nk) float32, NaN where a row has no m and l or a tile is skipped. None for a problem
        that is too large, where P in HBM is divided already, and where splits have sums of their
        own.
    """
    head = now.head
    if head is None or now.stores_scores or now.program.algorithm.tensors:
        return None
    if not now.program.algorithm.forms:
        return None
    m, l = head.m.copy(), head.l.copy()
    if not now.made("l"):  # m may have risen already, and l has not followed yet
        rows = slice(now.visit.rows.start, now.visit.rows.stop)
        m[rows], l[rows] = now.tile.m_prev, now.tile.l_prev
    with np.errstate(all="ignore"):
        weights = np.exp(head.s - m[:, None]) / l[:, None]
    return frozen(np.asarray(weights, dtype=np.float32))
