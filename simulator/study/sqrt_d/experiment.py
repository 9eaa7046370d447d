"""Why scores are divided by √d: random queries and keys, with and without the division.

A trial is one query and some keys with entries from a standard normal distribution. The score q·k
is a sum of d products of variance 1, so its variance is d; after the division by √d it is 1 for
every d. Without the division, the scores of a large head are so far apart that the softmax puts all
weight on one key. Then hardly anything can be learned, because the gradient of the softmax
vanishes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import frozen
from simulator.base.errors import refuse
from simulator.base.matmul import matmul

F64 = NDArray[np.float64]

DIMS = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
DRAWN = (4, 16, 64, 256, 1024, 4096)
"""The d for which one draw is shown."""
TRIALS, KEYS = 512, 64
MAX_DIM, MAX_KEYS, MAX_TRIALS = 2**13, 2**10, 2**16

_CHUNK, _CHUNK_TRIALS = 2**19, 32
"""Most random numbers and trials between two results: they take some milliseconds."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over trials and how well it is known."""

    mean: float  # the mean
    # its standard error, ``sqrt(sample variance / trials)``; infinite for fewer than two trials
    error: float
    # half of the trials are above it; NaN if nobody has counted. Where most trials give nearly
    # nothing and few give much, it is far below the mean
    median: float = math.nan

    def agrees(self, value: float, errors: float = 3.0) -> bool:
        """Whether `value` is at most some errors away; by chance it is beyond 3 once in 370."""
        return abs(self.mean - value) <= errors * self.error


@dataclass(frozen=True, slots=True)
class Softness:
    """The size of scores, and of the weights that the softmax makes of them."""

    # Mean square of the scores, which is their variance: their mean is 0 by symmetry. The keys of a
    # trial share the query, so the error comes from the spread of the trials' means.
    variance: Estimate
    entropy: Estimate  # of the weights, ``-sum p log2 p``, in bits; ``log2(keys)`` at most
    # Trace of the softmax's Jacobian ``dp_i/ds_j = p_i (1 if i = j else 0) - p_i p_j``, that is
    # ``sum p_i (1 - p_i) = 1 - sum p_i^2``. The Jacobian has no negative eigenvalue, so this is
    # also the sum of the magnitudes of its eigenvalues, and half the sum of the magnitudes of its
    # entries. It is 0 when one key has all the weight and ``1 - 1/keys`` when all have the same.
    gradient: Estimate
    scores: F64  # (keys,) float64, the scores of the newest trial, read-only


@dataclass(frozen=True, slots=True)
class DimPoint:
    """The results of the trials at one d so far."""

    d: int  # entries of each vector
    trials: int  # queries drawn so far
    plain: Softness  # of q·k
    scaled: Softness  # of q·k/√d, from the same vectors


@dataclass(frozen=True, slots=True)
class SqrtDResult:
    """The results of the experiment so far."""

    # seed, keys, trials: seed, keys for each query, and queries for each d when all is done
    seed: int
    keys: int
    trials: int
    points: tuple[DimPoint, ...]  # one for each d that has begun, in the order asked for
    share: float  # share of the random numbers that have been drawn, 0 to 1


def sqrt_d_experiment(
    seed: int = 0, dims: Sequence[int] = DIMS, keys: int = KEYS, trials: int = TRIALS
) -> Iterator[SqrtDResult]:
    """Draw vectors a few at a time and yield the result so far, at last with all of them.

    seed: the numbers of one d depend only on seed, d and `keys`; more trials continue the same
        numbers.
    dims: the d to try; the next trials are always at the d with the fewest so far.
    Raises InputError: a count out of range, or a d said twice.

    References
    ----------
    Vaswani et al. 2017, section 3.2.1 and footnote 4.
    """
    _check(seed, dims, keys, trials)
    return _results(seed, tuple(dims), keys, trials)


def _results(seed: int, dims: tuple[int, ...], keys: int, trials: int) -> Iterator[SqrtDResult]:
    running = {d: _Running(seed, d, keys) for d in dims}
    total = sum(dims) * trials
    while True:
        behind = min(running.values(), key=lambda one: one.count)
        if behind.count == trials:
            return
        behind.draw(min(trials, behind.count + behind.chunk))
        yield SqrtDResult(
            seed=seed,
            keys=keys,
            trials=trials,
            points=tuple(one.point for one in running.values() if one.count),
            share=sum(one.d * one.count for one in running.values()) / total,
        )


class _Running:
    """The trials at one d: a stream of random numbers and the sums of the results."""

    def __init__(self, seed: int, d: int, keys: int) -> None:
        self.d = d
        self.keys = keys
        self.chunk = min(_CHUNK_TRIALS, max(1, _CHUNK // (d * (keys + 1))))
        self.count = 0
        self._random = np.random.default_rng((seed, d))
        self._mean, self._squares = np.zeros((2, 3)), np.zeros((2, 3))
        self._newest: tuple[F64, F64] = (np.zeros(keys), np.zeros(keys))
        self._values: list[F64] = []

    def draw(self, upto: int) -> None:
        """Do trials until there are enough."""
        count = upto - self.count
        # A query and its keys are drawn together, so that chunks of any size have the same trials.
        drawn = self._random.standard_normal((count, self.keys + 1, self.d))
        plain = matmul(drawn[:, 1:], drawn[:, 0, :, None])[:, :, 0]
        both = (plain, plain / math.sqrt(self.d))
        measured = np.array([_measures(scores) for scores in both])
        for n, m in np.ndindex(2, 3):
            self._add(n, m, measured[n, m])
        self._values.append(measured)
        self._newest = (frozen(both[0][-1].copy()), frozen(both[1][-1].copy()))
        self.count = upto

    def _add(self, n: int, m: int, values: F64) -> None:
        """Merge means and sums of squared differences (Chan, Golub, LeVeque 1983)."""
        old, new = self.count, values.size
        mean = values.mean()
        step = mean - self._mean[n, m]
        self._squares[n, m] += ((values - mean) ** 2).sum() + step**2 * old * new / (old + new)
        self._mean[n, m] += step * new / (old + new)

    @property
    def point(self) -> DimPoint:
        """The results of the trials."""
        plain, scaled = (self._softness(n) for n in (0, 1))
        return DimPoint(self.d, self.count, plain, scaled)

    def _softness(self, n: int) -> Softness:
        count = self.count
        medians = np.median(np.concatenate(self._values, axis=2)[n], axis=1)
        variance, entropy, gradient = (
            Estimate(
                float(mean),
                math.sqrt(squares / (count - 1) / count) if count > 1 else math.inf,
                float(median),
            )
            for mean, squares, median in zip(self._mean[n], self._squares[n], medians, strict=True)
        )
        return Softness(variance, entropy, gradient, self._newest[n])


@dataclass(frozen=True, slots=True)
class OneDraw:
    """The first trial of a stream: one query and its keys."""

    # seed, d, keys: the stream
    seed: int
    d: int
    keys: int
    # plain, scaled: (keys,) float64, weights softmax(q·k) and softmax(q·k/√d), both in the order of
    # the scores, largest first; read-only
    plain: F64
    scaled: F64
    scores: F64  # (keys,) float64, q·k in the same order, read-only


def one_draw(seed: int = 0, d: int = DIMS[-1], keys: int = KEYS) -> OneDraw:
    """Return the weights of the first query that `sqrt_d_experiment` draws at a d.

    Raises InputError: a count out of range.
    """
    _check(seed, (d,), keys, TRIALS)
    drawn = np.random.default_rng((seed, d)).standard_normal((keys + 1, d))
    scores = np.sort(matmul(drawn[1:], drawn[0]))[::-1].copy()
    return OneDraw(
        seed, d, keys, frozen(_softmax(scores)), frozen(_softmax(scores / math.sqrt(d))),
        frozen(scores),
    )  # fmt: skip


def _softmax(scores: F64) -> F64:
    p = np.exp(scores - scores.max())
    return np.asarray(p / p.sum())


def _measures(scores: F64) -> tuple[F64, F64, F64]:
    """Return mean square, entropy in bits and trace of the Jacobian of each row of scores."""
    below = scores - scores.max(axis=1, keepdims=True)
    p = np.exp(below)
    total = p.sum(axis=1, keepdims=True)
    p /= total
    entropy = (np.log(total[:, 0]) - (p * below).sum(axis=1)) / math.log(2)
    # Not 1 - sum p^2, which has no digits left when one key has nearly all the weight.
    others = _sum_of_others(p)
    return (scores**2).mean(axis=1), entropy, (p * others).sum(axis=1)


def _sum_of_others(p: F64) -> F64:
    """Return 1 - p of each weight, as the sum of the other weights if p is close to 1."""
    out = 1 - p
    rows, top = np.arange(len(p)), p.argmax(axis=1)
    rest = p.copy()
    rest[rows, top] = 0.0
    out[rows, top] = rest.sum(axis=1)
    return out


def _check(seed: int, dims: Sequence[int], keys: int, trials: int) -> None:
    where = "√d experiment"
    if seed < 0:
        raise refuse(where, "seed", seed, "0 or more")
    if not dims or len(set(dims)) < len(dims):
        raise refuse(where, "dims", str(list(dims)), "one d or more, each said once")
    limits = [("d", d, 1, MAX_DIM) for d in dims]
    limits += [("keys", keys, 2, MAX_KEYS), ("trials", trials, 2, MAX_TRIALS)]
    for key, value, least, most in limits:
        if not least <= value <= most:
            raise refuse(where, key, value, f"a whole number from {least} to {most}")
