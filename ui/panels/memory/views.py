"""The ways in which the memory can be shown, one row each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter

from simulator.base.choices import Choice, Option
from simulator.run.motion import Motion
from ui.look.theme import Style
from ui.panels.memory.model import MemoryState
from ui.panels.memory.painter import paint_memory
from ui.panels.memory.places import memory_berths
from ui.panels.memory.scale import paint_scale, scale_berths
from ui.panels.memory.tilted import paint_tilted, tilted_berths

Paint = Callable[[QPainter, MemoryState, Style, QRectF], None]
"""Draws the memory as `paint_memory` does."""
Berths = Callable[[Motion, Style, QRectF], dict[str, tuple[QRectF, QRectF]]]
"""Says where tiles go, as `memory_berths` does."""


@dataclass(frozen=True, slots=True)
class MemoryView:
    """One way."""

    option: Option  # as it is chosen
    paint: Paint  # paint, berths: draw it, and say where tiles go in it
    berths: Berths


VIEWS = {
    view.option.value: view
    for view in (
        MemoryView(
            Option("plain", "Plain", "Plain", "Tiles on chip and bytes so far, as large as words."),
            paint_memory, memory_berths,
        ),
        MemoryView(
            Option("scale", "To scale", "Scale",
                   "HBM, shared memory, tensors and tiles by their true sizes."),
            paint_scale, scale_berths,
        ),
        MemoryView(
            Option("tilted", "Tilted", "Tilted",
                   "HBM below and the chip above it: loaded tiles rise, stored ones come down."),
            paint_tilted, tilted_berths,
        ),
    )
}  # fmt: skip
CHOICE = Choice("memory", tuple(view.option for view in VIEWS.values()))


def paint_view(
    painter: QPainter, view: str, state: MemoryState, style: Style, rect: QRectF
) -> None:
    """Paint the memory in one of `VIEWS`; the other parameters are those of `paint_memory`."""
    VIEWS[view].paint(painter, state, style, rect)
