"""How far a float32 number may be from its float64 twin before it is wrong."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import F64

STEP = 2.0**-20
"""16 units in the last place of float32, for each unit of the terms that scores are made of."""


def shares(ours: NDArray[np.floating], exact: F64, size: float) -> F64:
    """Return which share of its tolerance each number uses; infinite for NaN and a wrong infinity.

    Q, K and V are the same numbers on both sides, so only float32 arithmetic differs, whatever the
    dtype. A score is off by a few units of 2**-24 · Σ |q k| after a dot product, even if its terms
    cancel (Higham 2002, section 3.1), and so is m. A soft-cap shrinks that error by its
    slope; a bias adds its own. An exponential turns an absolute error e of its argument into a
    relative error e, and so l and O have this error, too. The tolerance is therefore 2**-20 (16
    units in the last place) times the largest sum of terms, for O also times the terms of its own
    sum, and the same relative to the number itself.

    size: largest sum of terms of a score, times the size of the terms where the numbers are sums
        that may cancel.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(ours.astype(np.float64) - exact)
        off = np.where(np.isneginf(exact) & np.isneginf(ours), 0.0, off)
        return np.where(np.isnan(off), np.inf, off / allowed(exact, size))


def allowed(exact: F64, size: float) -> F64:
    """Return how far each number may be off."""
    magnitude = np.abs(np.where(np.isfinite(exact), exact, 0.0))
    return np.asarray(STEP * size * (1 + magnitude), dtype=np.float64)
