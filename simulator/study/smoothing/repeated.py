"""Attention that is done again and again: every row becomes the same.

A row of weights sums to 1, so a row of ``A X`` is a mean of rows of X, and no two rows of ``A X``
are farther apart than two rows of X were. With nothing else, ``A A ... A X`` comes to have rank
one; a skip connection (X added to A X) keeps rows apart far longer.

References
----------
Dong, Cordonnier, Loukas 2021, "Attention is not all you need: pure attention loses rank doubly
exponentially with depth". Seneta 1981, chapter 3, for the coefficient of ergodicity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import frozen
from simulator.base.errors import refuse
from simulator.base.matmul import matmul

F64 = NDArray[np.float64]

TIMES = 24
"""How often attention is done."""
RANKED = 0.01
"""A singular value counts towards the rank if it is this share of the largest."""


@dataclass(frozen=True, slots=True, eq=False)
class Repeated:
    """Rows after attention was done n = 0, 1, 2, ... times; arrays are read-only."""

    # (n + 1,) float64, the largest difference of two rows in any column, relative to X's own
    spread: F64
    skipped: F64  # (n + 1,) float64, the same with a skip connection: ``(X + A X) / 2`` each time
    ranks: tuple[int, ...]  # singular values of ``A^n`` of at least `RANKED` of the largest
    # magnitude of A's second largest eigenvalue: the factor of the spread at each step in the end
    rate: float

    @property
    def below(self) -> int | None:
        """After how many times the spread is below `RANKED`; None: not yet at the end."""
        places = np.flatnonzero(self.spread < RANKED)
        return int(places[0]) if places.size else None


def row_spread(x: F64) -> float:
    """Return the largest difference of two rows in any column."""
    return float((x.max(axis=0) - x.min(axis=0)).max())


def repeated(weights: F64, x: F64, times: int = TIMES) -> Repeated:
    """Do attention with the same weights again and again.

    weights: (n, n) float64, rows that sum to 1.
    x: (n, c) float64, the rows at the start.
    Raises InputError: there are not as many rows as keys, or a row does not sum to 1, such as a row
        that sees nothing, or one that reads a sink.
    """
    if weights.shape[0] != weights.shape[1]:
        shape = " x ".join(map(str, weights.shape))
        raise refuse("repeated attention", "weights", shape, "as many rows as keys")
    sums = weights.sum(axis=1)
    if not np.allclose(sums, 1):
        worst = int(np.abs(sums - 1).argmax())
        what = f"sum of row {worst}"
        found = f"{sums[worst]:.3g}"
        raise refuse("repeated attention", what, found, "1: it sees a key, and no sink")
    spread, skipped, ranks = [1.0], [1.0], [len(weights)]
    first = row_spread(x) or 1.0
    now, kept, power = x, x, np.eye(len(weights))
    for _ in range(times):
        now, power = matmul(weights, now), matmul(weights, power)
        kept = (kept + matmul(weights, kept)) / 2
        spread.append(row_spread(now) / first)
        skipped.append(row_spread(kept) / first)
        sizes = np.linalg.svd(power, compute_uv=False)
        ranks.append(int((sizes >= RANKED * sizes[0]).sum()))
    values = np.sort(np.abs(np.linalg.eigvals(weights)))
    return Repeated(
        spread=frozen(np.array(spread)),
        skipped=frozen(np.array(skipped)),
        ranks=tuple(ranks),
        rate=float(values[-2]) if len(values) > 1 else 0.0,
    )
