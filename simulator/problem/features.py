"""Feature maps: linear attention takes φ(q)·φ(k) in the place of exp(q·k).

References: Katharopoulos, Vyas, Pappas, Fleuret 2020, "Transformers are RNNs: Fast Autoregressive
Transformers with Linear Attention", equation 7. Choromanski et al. 2021, "Rethinking Attention with
Performers", lemma 1 and section 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import F32
from simulator.base.matmul import matmul

FeatureName = Literal["elu1", "performer"]  # feature maps that a scenario may choose
MapName = Literal["elu1", "performer", "identity", "unit"]
Floats = NDArray[Any]  # float32 or float64; results have the same type


@dataclass(frozen=True, slots=True)
class FeatureMap:
    """A feature map φ."""

    # ``elu1``, ``identity`` and ``unit`` (x over its length), which have a feature for each number
    # of a row, or ``performer``
    name: MapName
    features: int  # ``f``: how many numbers φ makes of a row
    depth: int  # ``d``: how many numbers a row has

    @property
    def projects(self) -> bool:
        """Whether φ takes random directions, which are a tensor of the input."""
        return self.name == "performer"

    @property
    def flops(self) -> int:
        """Matmul FLOPs of one row."""
        return 2 * self.depth * self.features if self.projects else 0

    @property
    def words(self) -> str:
        """The feature map in words."""
        if self.projects:
            return f"Performer, {self.features} features"
        return {"identity": "x as it is", "unit": "x / |x|"}.get(self.name, "elu(x) + 1")

    def of(self, x: Floats, projection: Floats | None) -> Floats:
        """Return φ of each row, in the type of `x`, from its definition.

        With Gaussian directions w the mean of the products of Performer's features is
        exp(q·k / sqrt(d)).
        """
        if self.name == "identity":
            return x
        if self.name == "unit":
            length = np.sqrt(np.square(x).sum(-1, keepdims=True))
            shorter = np.divide(x, length, out=np.zeros_like(x), where=length > 0)
            return np.asarray(shorter)
        if not self.projects:
            return np.asarray(np.where(x > 0, x, np.expm1(np.minimum(x, 0))) + 1, dtype=x.dtype)
        assert projection is not None
        y = x / self.depth**0.25
        exponents = (
            matmul(y, projection.T.astype(x.dtype)) - np.square(y).sum(-1, keepdims=True) / 2
        )
        return np.asarray(np.exp(exponents) / self.features**0.5, dtype=x.dtype)

    def drawn(self, seed: int) -> F32:
        """Return random directions, (features, depth) float32, from a seed."""
        rng = np.random.default_rng(seed)
        return rng.standard_normal((self.features, self.depth)).astype(np.float32)
