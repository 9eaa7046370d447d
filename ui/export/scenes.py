"""What an export can show, one row each: every scene paints a moment of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSizeF
from PySide6.QtGui import QColor, QPainter

from simulator.run.row_report import RowReport
from simulator.run.snapshot import Snapshot
from ui.board.board import paint_board
from ui.board.fault_marks import paint_fault_label
from ui.export.composed import paint_scene, scene_style
from ui.look.theme import Style, Theme
from ui.panels.softmax.painter import MOVING_OPS

Paint = Callable[..., None]
"""As `paint_scene`: with the phase of the op's moves, and whether to fill the background."""


@dataclass(frozen=True, slots=True)
class SceneSpec:
    """One scene.

    Attributes
    ----------
    name : str
        On the command line.
    title : str
        In the window.
    paint : callable
        Draws it.
    moves : callable
        Says whether it shows moves of a snapshot's op.
    """

    name: str
    title: str
    paint: Paint
    moves: Callable[[Snapshot], bool]


def _board(
    painter: QPainter,
    snapshot: Snapshot,
    report: RowReport,
    style: Style,
    rect: QRectF,
    *,
    phase: float,
    ground: bool,
) -> None:
    if ground:
        painter.fillRect(rect, QColor(style.theme.panel))
    pad = style.px(10)
    place = rect.adjusted(pad, pad, -pad, -pad)
    strip = QRectF(place.x(), place.y(), place.width(), style.px(22))
    if paint_fault_label(painter, snapshot.program.workload.faults, style, strip):
        place.setTop(strip.bottom() + pad / 2)
    paint_board(painter, snapshot, style, place, row=report.row)


SCENES = {
    spec.name: spec
    for spec in (
        SceneSpec(
            "scene", "Board, memory and softmax", paint_scene,
            lambda s: bool(s.op.moves) or s.op.name in MOVING_OPS,
        ),
        SceneSpec("board", "Board alone", _board, lambda s: False),
    )
}  # fmt: skip


def paint_moment(
    painter: QPainter,
    scene: str,
    snapshot: Snapshot,
    report: RowReport,
    theme: Theme,
    size: tuple[int, int],
    *,
    phase: float = 1.0,
    ground: bool = True,
) -> None:
    """Draw a scene over a picture of that size, from its corner."""
    style = scene_style(theme, QSizeF(*size))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    place = QRectF(0, 0, *size)
    SCENES[scene].paint(painter, snapshot, report, style, place, phase=phase, ground=ground)
