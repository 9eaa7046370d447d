"""The ops of a cache in pages: where its pages lie is looked up, and they are loaded from there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from simulator.program.op import Gesture, Op
from simulator.program.ops import LoadTiles
from simulator.program.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class LookUpPages(Op):
    """Copy the entries of a tile's pages from the block table to the chip."""

    name: ClassVar[str] = "look up"
    label: ClassVar[str] = "look up pages"
    short_label: ClassVar[str] = "pages"
    gesture: ClassVar[Gesture] = Gesture.CARRY
    loads: ClassVar[bool] = True

    def apply(self, state: State) -> None:
        for move in self.moves:
            state.chip[move.tensor] = state.load(move)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPages(LoadTiles):
    """Copy the pages of a tile to the chip, from the places that have been looked up."""

    def apply(self, state: State) -> None:
        for move in self.moves:
            state.chip[move.tensor] = state.gather(move, state.chip["table"])
