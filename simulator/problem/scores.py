"""How q·k becomes a score, for all code that computes scores.

A score is scaled, then soft-capped, then lowered with the distance of query and key (ALiBi); the
mask comes last. `Score` of kernels/cuda/common.cuh does the same on a GPU.

References
----------
Gemma Team 2024, "Gemma 2", section 2 (soft-cap). Press, Smith, Lewis 2022, "Train Short, Test
Long: Attention with Linear Biases Enables Input Length Extrapolation", section 3 (ALiBi).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from simulator.problem.masks import Mask

SOFTCAP = "Gemma Team 2024, section 2, logit soft-capping"
ALIBI = "Press, Smith, Lewis 2022, section 3"
T = TypeVar("T", bound=np.floating[Any])


@dataclass(frozen=True, slots=True)
class Scoring:
    """The score of a pair: ``scale / temperature · q·k``, soft-capped, less the distance's bias.

    Attributes
    ----------
    scale : float
        Softmax scale before the temperature.
    temperature : float
        Divides the scaled scores.
    softcap : float
        ``s = softcap · tanh(s / softcap)``; 0 for none.
    slopes : tuple of float
        Of each query head: ``s -= slope · |i' - j|``; empty for none.
    """

    scale: float
    temperature: float = 1.0
    softcap: float = 0.0
    slopes: tuple[float, ...] = ()

    @property
    def factor(self) -> float:
        """What q·k is multiplied by."""
        return self.scale / self.temperature

    @property
    def unscaled(self) -> Scoring:
        """The same without its scale."""
        return replace(self, scale=1.0, temperature=1.0)

    @property
    def arguments(self) -> dict[str, float]:
        """The score's numbers among the arguments of a kernel, by their names."""
        return {"scale": self.factor, "softcap": self.softcap}

    def queries(self, q: NDArray[T]) -> NDArray[T]:
        """Return `q`, of its type, multiplied such that its products with keys are scaled."""
        return q * q.dtype.type(self.factor)

    def of(self, products: NDArray[T]) -> NDArray[T]:
        """Return some products q·k scaled, of the same type."""
        return products * products.dtype.type(self.factor)

    def capped(self, s: NDArray[T]) -> NDArray[T]:
        """Return scaled products with the soft-cap, of the same type."""
        if not self.softcap:
            return s
        cap = s.dtype.type(self.softcap)
        s_capped: NDArray[T] = np.tanh(s / cap) * cap
        return s_capped


@dataclass(frozen=True, slots=True)
class DistanceBias:
    """What the scores of a head lose with the distance of query and key.

    Attributes
    ----------
    mask : Mask
        Where the rows stand among the keys.
    slopes : tuple of float
        Of the query heads whose rows these are, one after the other.
    queries : int
        Rows of each of them.
    """

    mask: Mask
    slopes: tuple[float, ...]
    queries: int

    def of(self, rows: range, keys: range) -> NDArray[np.float64]:
        """Return ``slope · |i' - j|``, (rows, keys)."""
        places = self.mask.positions(rows)
        away = np.abs(places[:, None] - np.arange(keys.start, keys.stop)[None, :])
        own = np.arange(rows.start, rows.stop) // self.queries
        slopes: NDArray[np.float64] = np.asarray(self.slopes)[own]
        bias: NDArray[np.float64] = slopes[:, None] * away
        return bias


def alibi_slopes(heads: int) -> tuple[float, ...]:
    """Return ALiBi's slopes of all heads of a layer (Press et al. 2022, section 3 and its code).

    They are ``2^(-8 (h + 1) / heads)`` for a power of two; else those of the next lower power n,
    then every other one of 2 n, from its first.
    """
    power = 1 << (heads.bit_length() - 1)
    own = [2.0 ** (-8 * (h + 1) / power) for h in range(power)]
    more = [2.0 ** (-8 * (h + 1) / (2 * power)) for h in range(0, 2 * power, 2)]
    return tuple(own + more[: heads - power])
