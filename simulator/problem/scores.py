"""How q·k becomes a score, for all code that computes scores.

`Score` of kernels/cuda/common.cuh does the same on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.floating[Any])


@dataclass(frozen=True, slots=True)
class Scoring:
    """The score of a pair: ``scale / temperature · q·k``.

    Attributes
    ----------
    scale : float
        Softmax scale before the temperature.
    temperature : float
        Divides the scaled scores.
    """

    scale: float
    temperature: float = 1.0

    @property
    def factor(self) -> float:
        """What q·k is multiplied by."""
        return self.scale / self.temperature

    @property
    def arguments(self) -> dict[str, float]:
        """The score's arguments of a kernel, by their names."""
        return {"scale": self.factor}

    def queries(self, q: NDArray[T]) -> NDArray[T]:
        """Return `q`, of its type, multiplied such that its products with keys are scores."""
        return q * q.dtype.type(self.factor)

    def of(self, products: NDArray[T]) -> NDArray[T]:
        """Return the scores that belong to some products q·k, of the same type."""
        return products * products.dtype.type(self.factor)


UNSCALED = Scoring(1.0)
"""A score that is q·k itself."""
