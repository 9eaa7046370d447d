"""Float32 pieces of the online softmax that the walk and the single tiles share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from simulator.dtypes import F32

Visible = Callable[[int, int], NDArray[np.bool_] | None]
Span = tuple[int, int]


def exp_below(high: F32, low: F32) -> F32:
    """Return ``exp(high - low)``, 0 where `high` is -inf: what has seen nothing weighs nothing.

    Parameters
    ----------
    high, low : ndarray
        float32, broadcast against each other; `low` is -inf only where `high` is.
    """
    floor = np.where(low == -np.inf, np.float32(0), low)
    return np.exp(high - floor)


def joined(ranges: Sequence[Span]) -> list[Span]:
    """Return ascending key ranges with neighbours joined: one product for each."""
    out: list[Span] = []
    for start, stop in ranges:
        if out and out[-1][1] == start:
            out[-1] = (out[-1][0], stop)
        else:
            out.append((start, stop))
    return out


def score_keys(
    q: F32, k: F32, scale: float, ranges: Sequence[Span], visible: Visible
) -> tuple[F32, F32]:
    """Return the scaled scores of some key ranges before and after the mask.

    Parameters
    ----------
    q : ndarray
        (rows, d) float32.
    k : ndarray
        (Nk, d) float32.
    scale : float
        Factor from q·k to the score.
    ranges : sequence of (start, stop)
        Ascending ranges of keys.
    visible : callable
        ``visible(start, stop)`` gives the mask (rows, stop - start), None where it hides nothing.

    Returns
    -------
    s, masked : ndarray
        (keys, rows) float32, one key a row; hidden pairs are -inf in `masked`.
    """
    scaled = (q * np.float32(scale)).T
    s = np.concatenate([np.matmul(k[a:b], scaled) for a, b in joined(ranges)])
    masked = s.copy()
    at = 0
    for start, stop in ranges:
        seen = visible(start, stop)
        if seen is not None:
            np.copyto(masked[at : at + stop - start], -np.inf, where=~seen.T)
        at += stop - start
    return s, masked
