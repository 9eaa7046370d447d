"""Positions: rotary embeddings, which turn Q and K before everything else.

References
----------
Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding", section 3.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import F32, F64, DType, round_to
from simulator.base.errors import SCENARIO, refuse


@dataclass(frozen=True, slots=True)
class Rotary:
    """Rotary positions: pair n of a row at position p turns by ``p · theta^(-2 n / width)``.

    Attributes
    ----------
    theta : float
        Base of the angles.
    width : int
        How many numbers of each row are turned, the first ones; even.
    interleaved : bool
        Whether pairs are ``(x_2n, x_2n+1)``; else ``(x_n, x_(n + width / 2))``.
    offset : int
        Added to every position.
    """

    theta: float
    width: int
    interleaved: bool = False
    offset: int = 0

    def angles(self, places: NDArray[np.int64]) -> F64:
        """Return the angle of each pair at some places, (rows, width / 2), in radians."""
        n = np.arange(self.width // 2)
        speeds = self.theta ** (-2.0 * n / self.width)
        angles: F64 = (places + self.offset)[:, None] * speeds
        return angles

    def partner(self, column: int) -> int | None:
        """Return the other number of a number's pair; None for one that is not turned."""
        if column >= self.width:
            return None
        half = self.width // 2
        return column ^ 1 if self.interleaved else (column + half) % self.width

    def pair_of(self, column: int) -> int:
        """Return the pair of a number that is turned, 0 for the fastest."""
        return column // 2 if self.interleaved else column % (self.width // 2)

    def turned(self, x: F32, first: int, dtype: DType, *, back: bool = False) -> F32:
        """Return rows that stand one after the other, turned in float64 and rounded once.

        Parameters
        ----------
        x : ndarray
            (heads, rows, d) float32.
        first : int
            The place of the first row.
        dtype : str
            To what they are rounded.
        back : bool
            Turn them back to where they were before.
        """
        angles = self.angles(np.arange(first, first + x.shape[1]))
        cos, sin = np.cos(angles), np.sin(-angles if back else angles)
        half = self.width // 2
        own = slice(0, self.width, 2) if self.interleaved else slice(0, half)
        other = slice(1, self.width, 2) if self.interleaved else slice(half, self.width)
        out = x.astype(np.float64)
        a, b = out[..., own].copy(), out[..., other].copy()
        out[..., own], out[..., other] = a * cos - b * sin, a * sin + b * cos
        return round_to(out.astype(np.float32), dtype)


def check_share(fraction: float, head_dim: int) -> None:
    """Refuse a share of a head that is not some pairs of numbers.

    Raises
    ------
    InputError
        It is none.
    """
    width = fraction * head_dim
    if not math.isclose(width, 2 * round(width / 2)):
        expected = f"a share of the {head_dim} numbers of a head that is an even number of them"
        raise refuse(SCENARIO, "position.fraction", fraction, expected)
