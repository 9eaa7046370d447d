"""A gradient without any formula: one number is moved a little both ways.

The loss is Σ dO · O over all rows, columns and heads: the gradient of the loss by O is dO.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from simulator.base.errors import refuse
from simulator.engines.reference import reference_rows
from simulator.problem.workload import Inputs, Workload

STEP = 2.0**-14
"""How far a number is moved: the error of the slope is then some 1e-8, as in float64 sums."""


@dataclass(frozen=True, slots=True)
class LossDifference:
    """The loss with a number moved up and down, in float64."""

    number: float  # the number before the move
    # up, down: the loss with the number `STEP` larger and `STEP` smaller
    up: float
    down: float

    @property
    def slope(self) -> float:
        """How fast the loss grows with the number."""
        return (self.up - self.down) / (2 * STEP)


def difference_of(
    w: Workload, inputs: Inputs, tensor: str, place: tuple[int, int, int]
) -> LossDifference:
    """Move one number of Q, K or V and compute O from its definition.

    tensor: ``q``, ``k`` or ``v``.
    Raises InputError: there is no such number, or no gradient of O.
    """
    upstream = inputs.upstream
    if upstream is None:
        raise refuse("", "algorithm", w.algorithm, "a backward pass, which has a gradient of O")
    tensors = {"q": inputs.q, "k": inputs.k, "v": inputs.v}
    shape = tensors[tensor].shape if tensor in tensors else (0, 0, 0)
    if not all(0 <= n < size for n, size in zip(place, shape, strict=True)):
        raise refuse("", "number", f"{tensor}{list(place)}", "a number of q, k or v of this run")
    found = tensors[tensor]

    def loss(by: float) -> float:
        moved = found.astype(np.float64)
        moved[place] += by
        own = replace(inputs, **{tensor: moved})  # type: ignore[arg-type]
        rows = range(w.seqlen_q)
        o = np.stack([reference_rows(w, own, head, rows)[0] for head in range(w.heads)])
        return float((o * upstream).sum())

    return LossDifference(float(found[place]), loss(STEP), loss(-STEP))
