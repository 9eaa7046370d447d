"""Float32 pieces of the online softmax that the walk and the single tiles share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import F32
from simulator.base.matmul import matmul
from simulator.problem.workload import Workload

Visible = Callable[[int, int], NDArray[np.bool_] | None]
Change = Callable[[int, int, F32], F32]
"""``change(start, stop, s)`` makes scores of scaled products of these keys, (rows, keys)."""
Span = tuple[int, int]


def change_of(w: Workload, head: int, i: int) -> Change | None:
    """Return the function that makes a row block's scores of scaled products; None if no change."""
    rows = w.grid.row_range(i)
    if not w.changes_scores:
        return None
    return lambda start, stop, s: w.changed(head, rows, range(start, stop), s)


def visible_to(w: Workload, head: int, i: int) -> Visible:
    """Return the function that gives a row block's mask of some keys; None if nothing is hidden."""
    grid, rows, mask = w.grid, w.grid.row_range(i), w.mask.of_head(head)

    def visible(start: int, stop: int) -> NDArray[np.bool_] | None:
        if not mask.hides:
            return None
        if grid.full_columns.covers(i, range(start // grid.cols, -(-stop // grid.cols))):
            return None
        return mask.visible(rows, range(start, stop))

    return visible


def joined(ranges: Sequence[Span]) -> list[Span]:
    """Return ascending key ranges with neighbours joined: one product for each."""
    out: list[Span] = []
    for start, stop in ranges:
        if out and out[-1][1] == start:
            out[-1] = (out[-1][0], stop)
        else:
            out.append((start, stop))
    return out


def scores_into(x: F32, scaled_q_t: F32, k: F32, ranges: Sequence[Span]) -> int:
    """Fill the first rows of `x` with scaled scores, one key a row; return how many.

    x: (at least as many keys as the ranges have, rows) float32, written to.
    scaled_q_t: (d, rows) float32, queries times the scale.
    k: (Nk, d) float32.
    ranges: ascending key ranges; there is one product for each, so equal ranges give equal bits.
    """
    at = 0
    for start, stop in ranges:
        matmul(k[start:stop], scaled_q_t, out=x[at : at + stop - start])
        at += stop - start
    return at


def mask_into(x: F32, ranges: Sequence[Span], visible: Visible) -> None:
    """Set the hidden pairs of scores that `scores_into` filled to -inf, in place.

    x: (keys, rows) float32.
    ranges: the key ranges of `scores_into`.
    visible: ``visible(start, stop)`` gives the mask (rows, stop - start), None where it hides
        nothing.
    """
    at = 0
    for start, stop in ranges:
        mask = visible(start, stop)
        if mask is not None:
            some = np.flatnonzero(~mask.all(axis=0))  # usually few keys are hidden from any row
            if some.size:
                low, high = some[0], some[-1] + 1
                np.copyto(x[at + low : at + high], -np.inf, where=~mask[:, low:high].T)
        at += stop - start


def change_in(x: F32, ranges: Sequence[Span], change: Change | None) -> None:
    """Make scores of the scaled products that `scores_into` filled, (keys, rows), in place."""
    at = 0
    for start, stop in ranges if change is not None else ():
        assert change is not None
        part = x[at : at + stop - start]
        part[:] = change(start, stop, part.T).T
        at += stop - start


def score_keys(
    q: F32,
    k: F32,
    scale: float,
    ranges: Sequence[Span],
    visible: Visible,
    change: Change | None = None,
) -> tuple[F32, F32]:
    """Return the scaled products of some key ranges, and their scores after the mask.

    Parameters
    ----------
    q : ndarray
        (rows, d) float32.
    k : ndarray
        (Nk, d) float32.
    ranges : sequence of (start, stop)
        Ascending ranges of keys.
    visible : callable
        As `mask_into` takes it.
    change : callable, optional
        As `change_in` takes it.

    Returns
    -------
    s, masked : ndarray
        (keys, rows) float32, one key a row; hidden pairs are -inf in `masked`.
    """
    whole = joined(ranges)
    s = np.empty((sum(stop - start for start, stop in whole), len(q)), dtype=np.float32)
    scores_into(s, (q * np.float32(scale)).T, k, whole)
    masked = s.copy()
    change_in(masked, whole, change)
    mask_into(masked, whole, visible)
    return s, masked
