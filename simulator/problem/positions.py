"""Positions: rotary embeddings, which turn Q and K before everything else.

References: Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding", section
3.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import F32, F64, DType, round_to
from simulator.base.errors import SCENARIO, refuse
from simulator.problem.scenario import PositionTable

AT_ONCE = 2**16
"""Numbers that are turned at once; with temporary arrays, five times as many are in memory, in
float64."""


@dataclass(frozen=True, slots=True)
class Rotary:
    """Rotary positions: pair n of a row at position p turns by ``p · theta^(-2 n / width)``."""

    theta: float  # base of the angles
    width: int  # how many numbers of each row are turned, the first ones; even
    # whether pairs are ``(x_2n, x_2n+1)``; else ``(x_n, x_(n + width / 2))``
    interleaved: bool = False
    offset: int = 0  # added to every position

    def angles(self, places: NDArray[np.int64], until: float = math.inf) -> F64:
        """Return the angle of each pair at some places, (rows, width / 2), in radians.

        places: (rows,) int64, where the rows stand, without the offset.
        until: how many places have been counted: a row stops turning at its own place.
        """
        n = np.arange(self.width // 2)
        speeds = self.theta ** (-2.0 * n / self.width)
        counted = np.clip(places + self.offset, -until, until)
        angles: F64 = counted[:, None] * speeds
        return angles

    def partner(self, column: int) -> int | None:
        """Return the other number of a number's pair; None if the number is not turned."""
        if column >= self.width:
            return None
        half = self.width // 2
        return column ^ 1 if self.interleaved else (column + half) % self.width

    def pair_of(self, column: int) -> int:
        """Return the pair of a number that is turned, 0 for the fastest."""
        return column // 2 if self.interleaved else column % (self.width // 2)

    def turned(self, x: F32, first: int, dtype: DType, *, back: bool = False) -> F32:
        """Return rows, (heads, rows, d), from place `first` on, turned in float64, rounded once."""
        out = np.empty(x.shape, dtype=np.float32)
        at_once = max(1, AT_ONCE // (x.shape[0] * x.shape[2]))
        for start in range(0, x.shape[1], at_once):
            part = x[:, start : start + at_once]
            angles = self.angles(np.arange(part.shape[1]) + (first + start))
            turned = self.rotated(part, -angles if back else angles)
            out[:, start : start + at_once] = round_to(turned.astype(np.float32), dtype)
        return out

    def both(self, q: F32, k: F32, dtype: DType) -> tuple[F32, F32]:
        """Return Q, (H, Nq, d), and K, (Hkv, Nk, d), turned, the last rows at the same place."""
        return self.turned(q, k.shape[1] - q.shape[1], dtype), self.turned(k, 0, dtype)

    def rotated(self, x: NDArray[np.floating], angles: F64) -> F64:
        """Return rows whose pairs have been turned by some angles, in float64.

        x: (..., rows, d).
        angles: (rows, width / 2) float64, as `angles` returns them.
        """
        cos, sin = np.cos(angles), np.sin(angles)
        half = self.width // 2
        own = slice(0, self.width, 2) if self.interleaved else slice(0, half)
        other = slice(1, self.width, 2) if self.interleaved else slice(half, self.width)
        out = x.astype(np.float64)
        a, b = out[..., own].copy(), out[..., other].copy()
        out[..., own], out[..., other] = a * cos - b * sin, a * sin + b * cos
        return out


@dataclass(frozen=True, eq=False)
class Turning:
    """Q or K of a head, and how positions turn it."""

    tensor: str  # which of the two
    rotary: Rotary  # the run's positions
    places: NDArray[np.int64]  # (rows,) int64, where its rows stand, without the offset
    before: F32  # (rows, d) float32, before positions turn it

    @property
    def last(self) -> int:
        """The furthest place: when places up to it have been counted, all rows have been turned."""
        return int(np.abs(self.places + self.rotary.offset).max(initial=0))

    def until(self, share: float) -> float:
        """Return how many places have been counted at a share of the op; at the end all."""
        return share * self.last

    def angles(self, rows: NDArray[np.int64], share: float = 1.0) -> F64:
        """Return by how much some rows have been turned, (rows, pairs), in radians."""
        return self.rotary.angles(self.places[rows], self.until(share))

    def at(self, share: float) -> F32:
        """Return the rows when a share of the op has been done, (rows, d), not rounded."""
        rows = np.arange(len(self.before))
        return self.rotary.rotated(self.before, self.angles(rows, share)).astype(np.float32)

    def pair(self, row: int, col: int) -> Pair | None:
        """Return how a number is turned; None if the number is not turned."""
        partner = self.rotary.partner(col)
        if partner is None:
            return None
        n, at = self.rotary.pair_of(col), np.array([row])
        own, other = (float(self.before[row, column]) for column in (col, partner))
        place = int(self.places[row]) + self.rotary.offset
        signed = other if col > partner else -other
        return Pair(n, place, float(self.angles(at)[0, n]), own, signed, partner)


@dataclass(frozen=True, slots=True)
class Pair:
    """A number of Q or K with the other number of its pair."""

    number: int  # which pair, 0 for the fastest
    place: int  # where the row stands
    angle: float  # by how much the pair turns there, in radians
    # own, other: both numbers before the turn; `other` with the sign of its sine term
    own: float
    other: float
    partner: int  # the column of the other number

    @property
    def turned(self) -> float:
        """The number after the turn, in float64."""
        return self.own * math.cos(self.angle) + self.other * math.sin(self.angle)


def rotary(said: PositionTable, head_dim: int) -> Rotary | None:
    """Return the positions that a scenario asks for; None if it asks for none."""
    if said.kind is None:
        return None
    width = round(said.fraction * head_dim)
    return Rotary(said.theta, width, said.interleaved, said.offset)


def check_share(fraction: float, head_dim: int) -> None:
    """Refuse a share of a head that is not a whole number of pairs."""
    width = fraction * head_dim
    if not math.isclose(width, 2 * round(width / 2)):
        expected = f"a share of the {head_dim} numbers of a head that is an even number of them"
        raise refuse(SCENARIO, "position.fraction", fraction, expected)
