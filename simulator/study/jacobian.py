"""How the weights of a row move with its scores: the Jacobian of the softmax.

``dp_i / ds_j = p_i (1 if i = j else 0) - p_i p_j``, that is ``diag(p) - p pᵀ``. It is symmetric,
has no negative eigenvalue, and each row sums to 0, because what one key gains the others lose.
Where one key has all the weight, the Jacobian is 0, and scores learn nothing.

References
----------
Vaswani et al. 2017, section 3.2.1: where the softmax has "extremely small gradients".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simulator.base.dtypes import frozen

F64 = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class RowJacobian:
    """The Jacobian of a row, of its strongest keys."""

    keys: Ints  # (n,) int, the keys, ascending; read-only
    values: F64  # (n, n) float64, dp_i / ds_j of these keys; read-only
    norm: float  # frobenius norm of the whole matrix, of all keys that the row sees
    trace: float  # of the whole matrix, ``1 - sum p^2``
    visible: int  # keys that the row sees

    @property
    def shown(self) -> float:
        """Share of the squared norm that lies between these keys, 0 to 1; 1 if all is 0."""
        if self.norm == 0:
            return 1.0
        return min(float((self.values**2).sum()) / self.norm**2, 1.0)


def _between(p: F64, rest: F64) -> F64:
    """Return the part of the Jacobian between some keys, with ``1 - p`` of each."""
    out = -np.outer(p, p)
    np.fill_diagonal(out, p * rest)
    return out


def jacobian_norm(p: ArrayLike, beside: float = 0.0) -> float:
    """Return the Frobenius norm of ``diag(p) - p pᵀ`` without making it; `beside` as in `others`.

    Its square is ``sum p^2 (1 - p)^2 + sum_i p_i^2 (sum of the other p^2)``.
    """
    squares = np.asarray(p, dtype=np.float64) ** 2
    rest = others(p, beside)
    between = squares.sum() - squares
    # The sum of the others loses its digits where one weight is nearly all.
    top = int(squares.argmax())
    between[top] = np.delete(squares, top).sum()
    return float(np.sqrt((squares * rest**2).sum() + (squares * between).sum()))


def others(p: ArrayLike, beside: float = 0.0) -> F64:
    """Return ``1 - p`` of each weight; for the largest it is the sum of the others.

    `beside`: the weight that is on no key; with it the weights sum to 1.
    """
    weights = np.asarray(p, dtype=np.float64)
    out = 1.0 - weights
    top = int(weights.argmax())
    out[top] = np.delete(weights, top).sum() + beside
    return np.asarray(out)


def row_jacobian(
    weights: ArrayLike, seen: ArrayLike, most: int, *, sink: bool = False
) -> RowJacobian:
    """Return the Jacobian of a row of weights.

    weights: (Nk,), 0 for hidden keys; they are divided by their sum.
    seen: (Nk,) bool, keys that the row sees.
    most: keys that are shown at most: the strongest, of equal ones the first.
    sink: whether the rest up to 1 is the weight of a sink.
    """
    keys = np.flatnonzero(np.asarray(seen))
    if not keys.size:
        return RowJacobian(frozen(keys), frozen(np.zeros((0, 0))), 0.0, 0.0, 0)
    p = np.asarray(weights, dtype=np.float64)[keys]
    beside = max(0.0, 1.0 - float(p.sum())) if sink else 0.0
    p = p * (1.0 - beside) / p.sum() if p.any() else p
    strongest = np.sort(np.argsort(-p, kind="stable")[:most])
    return RowJacobian(
        keys=frozen(keys[strongest]),
        values=frozen(_between(p[strongest], others(p, beside)[strongest])),
        norm=jacobian_norm(p, beside),
        trace=float((p * others(p, beside)).sum()),
        visible=keys.size,
    )
