"""The scenes of exports, one row each: a moment of a run, or the race of the whole runs."""

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
    """Draws a state: the whole state, or the parts that stay still during an op."""

    def __call__(
        self,
        painter: QPainter,
        snapshot: Snapshot,
        report: RowReport,
        style: Style,
        rect: QRectF,
        *,
        ground: bool,
    ) -> object: ...


class PaintMoving(Protocol):
    """Draws the moving parts of a state over its still parts; `over`: also over a still board."""

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

    paint: Paint  # paint, still: draw a whole state, and its still parts
    still: Paint
    moving: PaintMoving  # draws the moving parts


@dataclass(frozen=True, slots=True)
class SceneSpec:
    """One scene."""

    name: str  # on the command line
    title: str  # in the window
    moments: Moments | None  # how a moment is drawn; None if it shows whole runs (`race_frames`)


def _board_place(snapshot: Snapshot, style: Style, rect: QRectF) -> tuple[QRectF, QRectF]:
    """Return the place of the board, and of the label of faults over it; null without faults."""
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
        paint_still_board(painter, snapshot, lay)


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
        paint_still_board(painter, snapshot, lay)
    paint_live_board(painter, snapshot, lay, Marks(report.row))


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
    paint_moving_board(painter, motion, share, lay, Marks(report.row), ground=ground)
    paint_flights(painter, motion, share, lay)


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


def moments_of(scene: str) -> Moments:
    """Return the functions by which a scene draws moments."""
    found = SCENES[scene].moments
    assert found is not None
    return found


@dataclass(frozen=True, slots=True)
class SceneMoment:
    """A state of a run in a scene that shows moments: a picture from the painter's corner."""

    scene: str
    snapshot: Snapshot
    report: RowReport
    theme: Theme
    size: tuple[int, int]

    @property
    def style(self) -> Style:
        """Its colours and sizes."""
        return scene_style(self.theme, QSizeF(*self.size))

    @property
    def rect(self) -> QRectF:
        """The picture's place."""
        return QRectF(0, 0, *self.size)

    @property
    def board(self) -> BoardLayout:
        """The places on its board."""
        style = self.style
        if self.scene == "board":
            place = _board_place(self.snapshot, style, self.rect)[0]
        else:
            place = inside(scene_places(style, self.rect).board, style.px(8))
        return board_layout(self.snapshot.program.workload, style, place)

    def paint(self, painter: QPainter, *, ground: bool = True) -> None:
        """Draw the whole state."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        draw = moments_of(self.scene).paint
        draw(painter, self.snapshot, self.report, self.style, self.rect, ground=ground)

    def paint_still(self, painter: QPainter) -> None:
        """Draw the parts that stay still during the op that leads to this state, its board too."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        draw = moments_of(self.scene).still
        draw(painter, self.snapshot, self.report, self.style, self.rect, ground=True)
        paint_still_board(painter, self.snapshot, self.style, self.board)

    def paint_live(self, painter: QPainter) -> None:
        """Draw the moving parts of its board over the still parts."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_live_board(painter, self.snapshot, self.style, self.board, Marks(self.report.row))

    def paint_moving(self, painter: QPainter, motion: Motion, share: float) -> None:
        """Draw the motion to this state over its picture by `paint_still`."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        draw = moments_of(self.scene).moving
        draw(painter, motion, share, self.report, self.style, self.rect, ground=True, over=True)
