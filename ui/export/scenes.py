"""What an export can show, one row each: a moment of a run, or the race of the whole runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from PySide6.QtCore import QRectF, QSizeF
from PySide6.QtGui import QColor, QPainter

from simulator.program.faults import fault_labels
from simulator.run.motion import Motion
from simulator.run.row_report import RowReport
from simulator.run.snapshot import Snapshot
from ui.board.board import (
    Marks,
    Viewport,
    board_layout,
    moving_layout,
    paint_live_board,
    paint_moving_board,
    paint_still_board,
)
from ui.board.camera import at_row
from ui.board.fault_marks import paint_fault_label
from ui.board.flights import paint_flights
from ui.board.layout import BoardLayout
from ui.export.composed import (
    inside,
    paint_moving_scene,
    paint_scene,
    paint_still_scene,
    scene_places,
    scene_style,
)
from ui.export.options import RACE
from ui.look.theme import Style, Theme


class Paint(Protocol):
    """Draws a state: all of it, or what stays while an op is being done."""

    def __call__(
        self,
        painter: QPainter,
        snapshot: Snapshot,
        report: RowReport,
        style: Style,
        rect: QRectF,
        *,
        ground: bool,
    ) -> None: ...


class PaintMoving(Protocol):
    """Draws what moves, over what stays of the state after the op.

    over: whether that is there with what stays of its board, as `paint_still_moment` draws it.
    """

    def __call__(
        self,
        painter: QPainter,
        motion: Motion,
        share: float,
        report: RowReport,
        style: Style,
        rect: QRectF,
        *,
        ground: bool,
        over: bool = False,
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class Moments:
    """How a scene draws moments of a run."""

    paint: Paint  # paint, still: draw a state whole, and what stays of it
    still: Paint
    moving: PaintMoving  # draws what moves


@dataclass(frozen=True, slots=True)
class SceneSpec:
    """One scene."""

    name: str  # on the command line
    title: str  # in the window
    moments: Moments | None  # how it draws a moment; None if it shows whole runs (`race_frames`)


def _board_place(snapshot: Snapshot, style: Style, rect: QRectF) -> tuple[QRectF, QRectF]:
    """Return the place of the board, and of the label of faults over it; null without any."""
    pad = style.px(10)
    place = rect.adjusted(pad, pad, -pad, -pad)
    strip = QRectF(place.x(), place.y(), place.width(), style.px(22))
    if not fault_labels(snapshot.program.workload.scenario):
        return place, QRectF()
    place.setTop(strip.bottom() + pad / 2)
    return place, strip


def _still_board(
    painter: QPainter,
    snapshot: Snapshot,
    report: RowReport,
    style: Style,
    rect: QRectF,
    *,
    ground: bool,
) -> None:
    if ground:
        painter.fillRect(rect, QColor(style.theme.panel))
    place, strip = _board_place(snapshot, style, rect)
    paint_fault_label(painter, snapshot.program.workload.scenario, style, strip)
    if not ground:
        lay = board_layout(snapshot.program.workload, style, place)
        paint_still_board(painter, snapshot, style, lay)


def _board(
    painter: QPainter,
    snapshot: Snapshot,
    report: RowReport,
    style: Style,
    rect: QRectF,
    *,
    ground: bool,
) -> None:
    _still_board(painter, snapshot, report, style, rect, ground=ground)
    lay = board_layout(snapshot.program.workload, style, _board_place(snapshot, style, rect)[0])
    if ground:
        paint_still_board(painter, snapshot, style, lay)
    paint_live_board(painter, snapshot, style, lay, Marks(report.row))


def _moving_board(
    painter: QPainter,
    motion: Motion,
    share: float,
    report: RowReport,
    style: Style,
    rect: QRectF,
    *,
    ground: bool,
    over: bool = False,
) -> None:
    view = at_row(motion, share, Viewport(), report.row) if ground else Viewport()
    lay = moving_layout(motion, style, _board_place(motion.after, style, rect)[0], view)
    ground = ground and not (over and view == Viewport())
    paint_moving_board(painter, motion, share, style, lay, Marks(report.row), ground=ground)
    paint_flights(painter, motion, share, style, lay)


SCENES = {
    spec.name: spec
    for spec in (
        SceneSpec(
            "scene", "Board, memory and softmax",
            Moments(paint_scene, paint_still_scene, paint_moving_scene),
        ),
        SceneSpec("board", "Board alone", Moments(_board, _still_board, _moving_board)),
        SceneSpec(RACE, "Race of the whole runs", None),
    )
}  # fmt: skip


def board_rect(scene: str, snapshot: Snapshot, style: Style, rect: QRectF) -> QRectF:
    """Return where the board is in a scene that shows moments."""
    if scene == "board":
        return _board_place(snapshot, style, rect)[0]
    return inside(scene_places(style, rect).board, style.px(8))


def moments_of(scene: str) -> Moments:
    """Return how a scene that shows moments draws them."""
    found = SCENES[scene].moments
    assert found is not None
    return found


def _placed(
    scene: str, snapshot: Snapshot, theme: Theme, size: tuple[int, int]
) -> tuple[Style, QRectF, BoardLayout]:
    """Return the style of a picture, its place, and the places on its board."""
    style, rect = scene_style(theme, QSizeF(*size)), QRectF(0, 0, *size)
    place = board_rect(scene, snapshot, style, rect)
    return style, rect, board_layout(snapshot.program.workload, style, place)


def paint_still_moment(
    painter: QPainter,
    scene: str,
    snapshot: Snapshot,
    report: RowReport,
    theme: Theme,
    size: tuple[int, int],
) -> None:
    """Draw what stays of a state while the op that leads to it is being done, its board too."""
    style, rect, lay = _placed(scene, snapshot, theme, size)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    moments_of(scene).still(painter, snapshot, report, style, rect, ground=True)
    paint_still_board(painter, snapshot, style, lay)


def paint_live_moment(
    painter: QPainter,
    scene: str,
    snapshot: Snapshot,
    report: RowReport,
    theme: Theme,
    size: tuple[int, int],
) -> None:
    """Draw what moves on the board of a state over what stays of it."""
    style, _, lay = _placed(scene, snapshot, theme, size)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    paint_live_board(painter, snapshot, style, lay, Marks(report.row))


def paint_moving_moment(
    painter: QPainter,
    scene: str,
    motion: Motion,
    share: float,
    report: RowReport,
    theme: Theme,
    size: tuple[int, int],
) -> None:
    """Draw what moves over what `paint_still_moment` has drawn of the state after the op."""
    style, rect = scene_style(theme, QSizeF(*size)), QRectF(0, 0, *size)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    spec = moments_of(scene)
    spec.moving(painter, motion, share, report, style, rect, ground=True, over=True)


def paint_moment(
    painter: QPainter,
    scene: str,
    snapshot: Snapshot,
    report: RowReport,
    theme: Theme,
    size: tuple[int, int],
    *,
    ground: bool = True,
) -> None:
    """Draw a state in a scene over a picture of that size, from its corner."""
    style = scene_style(theme, QSizeF(*size))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    moments_of(scene).paint(painter, snapshot, report, style, QRectF(0, 0, *size), ground=ground)
