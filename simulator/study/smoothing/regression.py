"""Regression in context: attention over examples is the Nadaraya-Watson estimator.

The examples are keys and values, a new place is the query. With ``q = (x / h, 1)`` and
``k = (x / h, -x² / 2h²)`` a score is ``-(x - x_i)² / 2h²`` up to what all keys of a row share, so
the softmax gives the weights of a Gaussian kernel of bandwidth h: nothing is trained, and the
temperature of the softmax is h².

References
----------
Nadaraya 1964; Watson 1964. Tsai et al. 2019, section 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simulator.base.dtypes import frozen
from simulator.base.errors import refuse
from simulator.base.matmul import matmul
from simulator.base.softmax import softmax_rows

F64 = NDArray[np.float64]

BANDWIDTHS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32)
EXAMPLES, NOISE = 48, 0.25
_PLACES = 201


@dataclass(frozen=True, slots=True, eq=False)
class Regression:
    """Examples of a function with noise, and attention's predictions; arrays are read-only."""

    # xs, ys: (n,) float64, the examples, rising in x
    xs: F64
    ys: F64
    places: F64  # (p,) float64, new places, 0 to 1
    truth: F64  # (p,) float64, the function
    bandwidth: float  # h of the kernel
    smoothed: F64  # (p,) float64, the Nadaraya-Watson estimator
    attended: F64  # (p,) float64, attention with the keys that make its kernel radial
    dot: F64  # (p,) float64, attention with q = x / h and k = x / h: the norm factor stays in
    off: float  # largest difference between `smoothed` and `attended`
    error: float  # root mean square of ``smoothed - truth``
    # leave-one-out errors of the estimator, root mean square, one for each of `BANDWIDTHS`
    left_out: tuple[float, ...]

    @property
    def best(self) -> float:
        """The bandwidth with the least leave-one-out error."""
        return BANDWIDTHS[int(np.argmin(self.left_out))]


def function(x: ArrayLike) -> F64:
    """Return the function from which the examples are drawn, for 0 to 1."""
    x = np.asarray(x, dtype=np.float64)
    return np.asarray(np.sin(2 * np.pi * x) + 0.4 * np.sin(6 * np.pi * x))


def nadaraya_watson(places: ArrayLike, xs: F64, ys: F64, h: float) -> F64:
    """Return ``sum K(x - x_i) y_i / sum K(x - x_i)`` of a Gaussian kernel K of bandwidth h."""
    at = np.asarray(places, dtype=np.float64)
    squares = ((at[:, None] - xs) / h) ** 2 / 2
    kernel = np.exp(squares.min(axis=1, keepdims=True) - squares)
    return np.asarray((kernel * ys).sum(axis=1) / kernel.sum(axis=1))


def attend(q: F64, k: F64, ys: F64) -> F64:
    """Return attention without a scale, of values that are one number each."""
    return np.asarray(matmul(softmax_rows(matmul(q, k.T)), ys))


def radial_queries(places: ArrayLike, h: float) -> F64:
    """Return queries ``(x / h, 1)``."""
    at = np.asarray(places, dtype=np.float64) / h
    return np.stack([at, np.ones_like(at)], axis=1)


def radial_keys(xs: F64, h: float) -> F64:
    """Return keys ``(x / h, -x² / 2h²)``."""
    at = xs / h
    return np.stack([at, -(at**2) / 2], axis=1)


def regression(seed: int = 0, bandwidth: float = 0.04) -> Regression:
    """Draw examples and return what attention predicts between them.

    Raises InputError: the seed is negative, or the bandwidth not above 0.
    """
    if seed < 0:
        raise refuse("regression", "seed", seed, "0 or more")
    if not (bandwidth > 0 and math.isfinite(bandwidth)):
        raise refuse("regression", "bandwidth", bandwidth, "a number above 0")
    rng = np.random.default_rng(seed)
    xs = np.sort(rng.uniform(size=EXAMPLES))
    ys = function(xs) + NOISE * rng.standard_normal(EXAMPLES)
    places = np.linspace(0, 1, _PLACES)
    h, truth = bandwidth, function(places)
    smoothed = nadaraya_watson(places, xs, ys, h)
    attended = attend(radial_queries(places, h), radial_keys(xs, h), ys)
    dot = attend(places[:, None] / h, xs[:, None] / h, ys)
    return Regression(
        xs=frozen(xs),
        ys=frozen(ys),
        places=frozen(places),
        truth=frozen(truth),
        bandwidth=h,
        smoothed=frozen(smoothed),
        attended=frozen(attended),
        dot=frozen(dot),
        off=float(np.abs(smoothed - attended).max()),
        error=float(np.sqrt(((smoothed - truth) ** 2).mean())),
        left_out=tuple(_left_out(xs, ys, each) for each in BANDWIDTHS),
    )


def _left_out(xs: F64, ys: F64, h: float) -> float:
    """Return the error of predicting each example from the others."""
    squares = ((xs[:, None] - xs) / h) ** 2 / 2
    np.fill_diagonal(squares, np.inf)
    predicted = matmul(softmax_rows(-squares), ys)
    return float(np.sqrt(((predicted - ys) ** 2).mean()))
