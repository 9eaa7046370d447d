"""The ways in which the memory can be shown, one row each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter

from simulator.base.choices import Choice, Option
from simulator.run.motion import Motion
from simulator.run.snapshot import Snapshot
from ui.look.kept import draw_kept, kept, place_key
from ui.look.theme import Style
from ui.panels.memory.model import MemoryState
from ui.panels.memory.painter import paint_lanes, paint_memory
from ui.panels.memory.places import memory_berths, memory_layout
from ui.panels.memory.scale import (
    paint_grains,
    paint_scale,
    scale_berths,
    scale_layout,
    scale_model,
)
from ui.panels.memory.tilted import paint_rising, paint_tilted, tilted_berths, tilted_layout


@dataclass(frozen=True, slots=True)
class MemoryView:
    """One way: a layout in a place, and the functions that draw there."""

    option: Option  # choice of this view
    layout: Callable[[QRectF, Style, Snapshot], Any]
    paint: Callable[[QPainter, MemoryState, Any], None]  # everything but tiles on their way
    moving: Callable[[QPainter, Motion, float, Any], None]  # tiles on their way
    # for each tensor that an op moves, its places in HBM and on the chip
    berths: Callable[[Motion, Any], dict[str, tuple[QRectF, QRectF]]]


VIEWS = {
    view.option.value: view
    for view in (
        MemoryView(
            Option("plain", "Plain", "Plain", "Tiles on chip and bytes so far, as large as words."),
            lambda rect, style, now: memory_layout(
                rect, style, len(now.op.moves), len(now.program.tensors)
            ),
            paint_memory, paint_lanes, memory_berths,
        ),
        MemoryView(
            Option("scale", "To scale", "Scale",
                   "HBM, shared memory, tensors and tiles by their true sizes."),
            lambda rect, style, now: scale_layout(rect, style, scale_model(now)),
            paint_scale, paint_grains, scale_berths,
        ),
        MemoryView(
            Option("tilted", "Tilted", "Tilted",
                   "HBM below and the chip above it: loaded tiles rise, stored ones come down."),
            lambda rect, style, now: tilted_layout(rect, style, now.program.tensors),
            paint_tilted, paint_rising, tilted_berths,
        ),
    )
}  # fmt: skip
CHOICE = Choice("memory", tuple(view.option for view in VIEWS.values()))


def paint_view(
    painter: QPainter, name: str, state: MemoryState, style: Style, rect: QRectF
) -> None:
    """Paint one of `VIEWS`; parts that change only when a tile lands are painted once."""
    view, motion = VIEWS[name], state.carried

    def paint(inner: QPainter) -> None:
        inner.setRenderHint(QPainter.RenderHint.Antialiasing)
        view.paint(inner, state, layout)

    painter.save()
    if motion is None:
        layout = view.layout(rect, style, state.now)
        paint(painter)
    else:
        place = place_key(style, rect)
        layout = kept(motion, (name, place), lambda: view.layout(rect, style, motion.after))
        key = (name, "picture", place, motion.landed(state.share), state.baseline_bytes)
        draw_kept(painter, motion, key, rect, style.theme.panel, paint)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        view.moving(painter, motion, state.share, layout)
    painter.restore()


def berths_of(
    name: str, motion: Motion, style: Style, rect: QRectF
) -> dict[str, tuple[QRectF, QRectF]]:
    """Return, for each tensor that an op moves, its places in HBM and on the chip."""
    view, key = VIEWS[name], (name, "berths", place_key(style, rect))
    return kept(motion, key, lambda: view.berths(motion, view.layout(rect, style, motion.after)))
