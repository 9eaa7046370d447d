"""The ops of a cache in pages: look up the places of pages, and load the pages from there."""

from __future__ import annotations

from typing import ClassVar

from simulator.program.op import Gesture, Op
from simulator.program.ops import LoadTiles
from simulator.program.state import State


class LookUpPages(Op):
    """Copy the entries of a tile's pages from the block table to the chip."""

    __slots__ = ()

    name: ClassVar[str] = "look up"
    label: ClassVar[str] = "look up pages"
    short_label: ClassVar[str] = "pages"
    gesture: ClassVar[Gesture] = Gesture.CARRY
    loads: ClassVar[bool] = True

    def apply(self, state: State) -> None:
        for move in self.moves:
            state.chip[move.tensor] = state.load(move)


class LoadPages(LoadTiles):
    """Copy the pages of a tile to the chip, from the places that have been looked up."""

    __slots__ = ()

    def apply(self, state: State) -> None:
        for move in self.moves:
            state.chip[move.tensor] = state.gather(move, state.chip["table"])
