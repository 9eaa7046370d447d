"""Scores that are no dot product: their weights, their costs, and where they can run.

Any score goes through the same tiles: the online softmax asks for numbers, not for where they come
from. But only the dot products of a tile are one matrix product, for which a GPU has its fastest
units; the additive score needs a tanh for each pair and hidden number.

References
----------
Bahdanau, Cho, Bengio 2015, section 3.1 (additive); Luong, Pham, Manning 2015, section 3.1 (dot,
general); Graves, Wayne, Danihelka 2014, section 3.3.1 (cosine); Vaswani et al. 2017, section 3.2.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import frozen
from simulator.base.matmul import matmul

F64 = NDArray[np.float64]
Score = Callable[[F64, F64], F64]
"""Queries (r, d) and keys (c, d) to their scores (r, c)."""


@dataclass(frozen=True, slots=True)
class ScoreCost:
    """The cost of the scores of some queries and keys."""

    matmul: int  # FLOPs that are matrix products of a tile, for each pair
    plain: int  # other FLOPs for each pair: they run on a GPU's ordinary units
    special: int  # values of tanh for each pair
    once: int  # FLOPs for each query row and each key, once: projections, norms
    kept: int  # numbers of a pair that exist before they are summed

    @property
    def on_tensor_cores(self) -> bool:
        """Whether the work of a pair is a matrix product."""
        return self.matmul > 0

    @property
    def flops(self) -> int:
        """All FLOPs of a pair; a tanh counts as one."""
        return self.matmul + self.plain + self.special


@dataclass(frozen=True, slots=True)
class ScoreKind:
    """A way to score a query and a key."""

    name: str  # of its row
    formula: str  # as the paper has it
    source: str  # the paper
    of: Score  # the scores of a tile
    cost: ScoreCost  # their cost


def dot(q: F64, k: F64) -> F64:
    """Return q·k of each pair."""
    return matmul(q, k.T)


def cosine(q: F64, k: F64) -> F64:
    """Return the cosine of the angle of each pair; 0 where a vector is 0."""
    sizes = [np.linalg.norm(x, axis=1, keepdims=True) for x in (q, k)]
    units = [np.divide(x, size, out=np.zeros_like(x), where=size > 0)
             for x, size in zip((q, k), sizes, strict=True)]  # fmt: skip
    return matmul(units[0], units[1].T)


def additive(q: F64, k: F64, wq: F64, wk: F64, v: F64) -> F64:
    """Return ``v · tanh(W_q q + W_k k)`` of each pair.

    q, k: (r, d) and (c, d).
    wq, wk: (a, d), the two projections.
    v: (a,).
    """
    left, right = matmul(q, wq.T), matmul(k, wk.T)
    out = np.empty((len(q), len(k)))
    for n, row in enumerate(left):  # a row at a time: a tile has a numbers for each of its pairs
        out[n] = matmul(np.tanh(row + right), v)
    return out


def score_kinds(d: int, hidden: int, scale: float, seed: int = 0) -> tuple[ScoreKind, ...]:
    """Return the scores that are compared.

    hidden: numbers of the additive score's hidden layer.
    scale: of the scaled dot product. The cosine is multiplied by scale times d, which is √d: so
        both scores are the same for vectors of length √d.
    seed: of the additive score's W_q, W_k and v, which are drawn: nobody has trained them here.
        Entries are normal with variance 1/d, entries of v with variance 1.
    """
    rng = np.random.default_rng((seed, d, hidden))
    wq, wk = (frozen(rng.standard_normal((hidden, d)) / math.sqrt(d)) for _ in range(2))
    v = frozen(rng.standard_normal(hidden))
    sharp = scale * d
    return (
        ScoreKind(
            "scaled dot", "q·k / √d", "Vaswani et al. 2017", lambda q, k: scale * dot(q, k),
            ScoreCost(2 * d, 1, 0, 0, 1),
        ),
        ScoreKind("dot", "q·k", "Luong et al. 2015", dot, ScoreCost(2 * d, 0, 0, 0, 1)),
        ScoreKind(
            "cosine", "√d q·k / |q||k|", "Graves et al. 2014", lambda q, k: sharp * cosine(q, k),
            ScoreCost(2 * d, 1, 0, 3 * d + 1, 1),
        ),
        ScoreKind(
            "additive", "v · tanh(W_q q + W_k k)", "Bahdanau et al. 2015",
            lambda q, k: additive(q, k, wq, wk, v),
            ScoreCost(0, 3 * hidden, hidden, 2 * d * hidden, hidden),
        ),
    )  # fmt: skip
