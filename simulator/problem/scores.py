"""What turns q·k into a score: whoever computes scores asks it.

`Score` of kernels/cuda/common.cuh is its twin.
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
        """What kernels take, by its name there."""
        return {"scale": self.factor}

    def queries(self, q: NDArray[T]) -> NDArray[T]:
        """Return what `q` becomes, of its type, so that its products with keys are scores."""
        return q * q.dtype.type(self.factor)

    def of(self, products: NDArray[T]) -> NDArray[T]:
        """Return the scores, of the same type, whose products q·k these are."""
        return products * products.dtype.type(self.factor)


UNSCALED = Scoring(1.0)
"""A score that is q·k itself."""
