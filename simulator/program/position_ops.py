"""Ops that come before the first tile of a run with rotary positions.

These ops are only shown. Q and K are turned when they are read (`simulator.problem.workload`): HBM
holds them turned, the ops cost no bytes and no FLOPs, and engines do nothing.

References: Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding", section
3.2.2, equation 34.
"""

from __future__ import annotations

from typing import ClassVar

from simulator.program.op import Gesture, Op
from simulator.program.state import State

_CITES = "Su et al. 2021, section 3.2.2, equation 34"


class TakeUnturned(Op):
    """Show Q and K before places turn them."""

    __slots__ = ()

    name: ClassVar[str] = "unturned"
    label: ClassVar[str] = "Q, K without places"
    short_label: ClassVar[str] = "q, k"
    before_tiles: ClassVar[bool] = True

    @property
    def says(self) -> str:
        return "Q and K without places: two numbers are a hand"

    def apply(self, state: State) -> None:
        """Do nothing: engines read Q and K turned."""


class TurnQueries(TakeUnturned):
    """Turn every pair of every query by its place."""

    __slots__ = ()

    name: ClassVar[str] = "turn queries"
    label: ClassVar[str] = "turn Q"
    short_label: ClassVar[str] = "↻Q"
    gesture: ClassVar[Gesture] = Gesture.ROTATE
    turns: ClassVar[int | None] = 0

    @property
    def says(self) -> str:
        return "each pair of a query turns by its place"


class TurnKeys(TurnQueries):
    """Turn every pair of every key by its place."""

    __slots__ = ()

    name: ClassVar[str] = "turn keys"
    label: ClassVar[str] = "turn K"
    short_label: ClassVar[str] = "↻K"
    turns: ClassVar[int | None] = 1

    @property
    def says(self) -> str:
        return "each pair of a key turns by its place"


BEFORE_TILES: tuple[Op, ...] = tuple(
    kind(cites=_CITES) for kind in (TakeUnturned, TurnQueries, TurnKeys)
)
"""The ops with which the first visit of a run with rotary positions begins."""
