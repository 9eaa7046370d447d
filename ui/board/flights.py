"""Tiles in flight between their matrices on the board and the chip."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen

from simulator.base.dtypes import F32
from simulator.program.algorithms import TENSORS
from simulator.program.state import TileMove
from simulator.run.motion import AT_HBM, Motion
from ui.board.layout import BoardLayout
from ui.board.middle import middle_at
from ui.board.partials import split_places
from ui.board.scores import Shown, scaled
from ui.look.draw import mixed
from ui.look.heat import Sheet, colour_map, heat_image, signed_limit
from ui.look.kept import draw_kept_line, kept, place_key
from ui.look.theme import Style

Berths = Mapping[str, tuple[QRectF, QRectF]]
"""Each tensor's place in HBM and on the chip, by its name, as in the memory picture.

Without a place on the chip (null) a tile flies to HBM or comes from there, and the memory picture
itself shows the rest of its way.
"""
_FAINT = 0.55
"""Opacity of the veil over a place while its tile is away."""
_LEAST = 26.0
"""Shorter side of a tile in flight, at scale 1: a tile of a large problem is but a few pixels."""


def home_of(move: TileMove, motion: Motion, lay: BoardLayout) -> QRectF:
    """Return where a tile lies on the board; null where it is not in sight."""
    if move.tensor in motion.after.split_tensors:
        places = split_places(motion.after, lay)
        return lay.partials if move.split is None else places.get(move.split, QRectF())
    if move.cols is not None:
        return lay.tile(move.rows, move.cols)
    name = lay.box_of(move.tensor)
    if not name:
        beside = next(name for name in ("l", "O") if name in lay.boxes)
        return lay.row_band(beside, move.rows)
    if lay.boxes[name].left() == lay.boxes["S"].left():  # keys go across
        return lay.col_band(name, move.rows)
    return lay.row_band(name, move.rows)


@dataclass(frozen=True, slots=True)
class InFlight:
    """A tile in flight, in the painter's coordinates."""

    move: TileMove  # the move that flies
    out: float  # how far from its matrix it is, 0 to 1
    home: QRectF  # home, box: its place on the board, and where it is now
    box: QRectF
    path: QPainterPath  # its way, from the board to the chip


def in_flight(
    motion: Motion, share: float, lay: BoardLayout, berths: Berths | None = None
) -> list[InFlight]:
    """Return the tiles that are on their way, as `paint_flights` draws them."""
    found = []
    for n, flight in enumerate(motion.flights):
        along = flight.way(share)
        if not 0 < along < 1:
            continue
        way = _way(motion, n, lay, berths)
        out = along if flight.loads else 1 - along
        if way.ends_in_hbm and out >= AT_HBM:
            continue
        box = _box_at(out, way, lay.style)
        found.append(InFlight(flight.move, out, way.home, box, way.path))
    return found


@dataclass(frozen=True, slots=True)
class _Way:
    """The places that a tile passes (its matrix, HBM, the chip), and its way from first to last."""

    home: QRectF
    stops: tuple[QRectF, QRectF, QRectF]
    path: QPainterPath
    length: float

    @property
    def ends_in_hbm(self) -> bool:
        """Whether the way ends in HBM: the memory picture itself shows the way to the chip."""
        return self.stops[1] == self.stops[2]


def _way(motion: Motion, n: int, lay: BoardLayout, berths: Berths | None) -> _Way:
    tensor = motion.flights[n].move.tensor
    berth = None if berths is None else berths.get(tensor)
    key = "way", n, _board_key(lay), None if berth is None else tuple(map(_sides, berth))

    def make() -> _Way:
        home = home_of(motion.flights[n].move, motion, lay)
        if home.isEmpty():  # out of sight
            home = QRectF(lay.boxes["S"].center(), lay.boxes["S"].center())
        stops = _stops(tensor, home, lay, berths)
        path = _path(stops)
        return _Way(home, stops, path, path.length() or 1.0)

    return kept(motion, key, make)


def _board_key(lay: BoardLayout) -> Hashable:
    return place_key(lay.style, lay.rect), lay.view


def _sides(rect: QRectF) -> tuple[float, ...]:
    return rect.x(), rect.y(), rect.width(), rect.height()


def paint_flights(
    painter: QPainter, motion: Motion, share: float, lay: BoardLayout, berths: Berths | None = None
) -> None:
    """Draw the tiles that are on their way.

    painter: on a picture with the board and, if there are `berths`, the memory.
    berths: where tiles go; without it tiles fly to and from the right edge of the board.
    """
    painter.save()
    for tile in in_flight(motion, share, lay, berths):
        _paint_tile(painter, tile, motion, lay, fades=berths is None)
    painter.restore()


def _paint_tile(
    painter: QPainter, tile: InFlight, motion: Motion, lay: BoardLayout, *, fades: bool
) -> None:
    style = lay.style
    near = min(1.0, 5 * tile.out, 5 * (1 - tile.out))  # it lifts off and lands
    veil = QColor(style.theme.empty)
    veil.setAlphaF(_FAINT * near)
    painter.fillRect(tile.home, veil)
    colour = style.theme.tensor(tile.move.tensor)
    _paint_line(painter, tile.path, colour, motion, lay)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    painter.setOpacity(1 - tile.out**3 if fades else 1.0)
    lift = style.px(6) * near
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(0, 0, 0, 90))
    painter.drawRect(tile.box.translated(lift, lift))
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
    sheet = tile_sheet(tile.move, motion, style, plain=lay.plain)
    if sheet is None:
        painter.fillRect(tile.box, mixed(style.theme.empty, colour, 0.5))
    else:
        sheet.draw(painter, tile.box, QRectF(0, 0, 1, 1))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(colour, style.px(2)))
    painter.drawRect(tile.box)
    painter.setOpacity(1.0)


def _paint_line(
    painter: QPainter, path: QPainterPath, colour: QColor, motion: Motion, lay: BoardLayout
) -> None:
    """Draw the way of a tile, dashed."""
    wide, line = lay.style.px(1.2), QColor(colour)
    line.setAlphaF(0.45)

    def paint(inner: QPainter) -> None:
        inner.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        inner.setBrush(Qt.BrushStyle.NoBrush)
        inner.setPen(QPen(line, wide, Qt.PenStyle.DashLine))
        inner.drawPath(path)

    box = path.boundingRect().adjusted(-2 * wide, -2 * wide, 2 * wide, 2 * wide)
    key = "line", line.rgba(), _sides(box), _board_key(lay)
    draw_kept_line(painter, motion, key, box, paint)


def _stops(
    tensor: str, home: QRectF, lay: BoardLayout, berths: Berths | None
) -> tuple[QRectF, QRectF, QRectF]:
    """Return the places that a tile passes: its matrix, HBM, the chip."""
    found = None if berths is None else berths.get(tensor)
    if found is not None:
        return home, found[0], found[0] if found[1].isNull() else found[1]
    size = lay.style.px(_LEAST)
    edge = QRectF(lay.rect.right() - size, lay.rect.top() + lay.style.px(30), size, size)
    middle = QRectF(home.center() + (edge.center() - home.center()) * 0.5, edge.size())
    return home, middle, edge


def _path(stops: tuple[QRectF, QRectF, QRectF]) -> QPainterPath:
    home, mouth, berth = (stop.center() for stop in stops)
    path = QPainterPath(home)
    path.cubicTo(home + QPointF((mouth.x() - home.x()) / 2, 0),
                 mouth - QPointF((mouth.x() - home.x()) / 3, 0), mouth)  # fmt: skip
    path.lineTo(berth)
    return path


def _box_at(out: float, way: _Way, style: Style) -> QRectF:
    """Return where a tile is; it shrinks on its way, but stays visible."""
    home, mouth, berth = way.stops
    path, whole = way.path, way.length
    bend = 1 - np.hypot(*_apart(mouth, berth)) / whole  # share of the length at which HBM lies
    along = (
        out / AT_HBM * bend if out < AT_HBM else bend + (out - AT_HBM) / (1 - AT_HBM) * (1 - bend)
    )
    at = path.pointAtPercent(min(max(path.percentAtLength(along * whole), 0.0), 1.0))
    least, shrunk = style.px(_LEAST), out / AT_HBM if way.ends_in_hbm else out
    small = min(berth.width(), berth.height())
    sizes = []
    for own, side in ((home.width(), berth.width()), (home.height(), berth.height())):
        end = max(min(own, 0.7 * side, 0.9 * small), least * 0.7)
        sizes.append(max(own + (end - own) * shrunk, min(own, end)) if own > 0 else end)
    return QRectF(at.x() - sizes[0] / 2, at.y() - sizes[1] / 2, *sizes)


def _apart(one: QRectF, other: QRectF) -> tuple[float, float]:
    gap = other.center() - one.center()
    return gap.x(), gap.y()


def tile_sheet(
    move: TileMove, motion: Motion, style: Style, *, plain: bool = False
) -> Sheet | None:
    """Return the tile's own heat map; None for a tile without numbers of its own."""
    theme, name = style.theme, move.tensor

    def make() -> Sheet | None:
        values = _values(move, motion)
        if values is None or not np.isfinite(values).any():
            return None
        if TENSORS[name].of_pairs:  # in the map of the matrix that it leaves or reaches
            low, high = middle_at(motion.after).value_range(motion.after, name)
            shown = Shown(values, colour_map(theme, name), low, high)
            return scaled(shown, name, motion.after, plain=plain).image()
        high = signed_limit(values[np.isfinite(values)])
        return Sheet(heat_image(values, -high, high, colour_map(theme, name)))

    return kept(motion, ("picture", theme.name, plain, motion.after.op.moves.index(move)), make)


def _values(move: TileMove, motion: Motion) -> F32 | None:
    """Return the numbers of a tile as it lies on the board, (rows, columns)."""
    now, rows = motion.after, slice(move.rows.start, move.rows.stop)
    if move.tensor in (spec.name for spec in now.program.algorithm.inputs):
        values = now.inputs[move.tensor][rows]
        return values.T if "key" in TENSORS[move.tensor].axes else values
    found = now.state.get(move.tensor, motion.numbers.get(move.tensor))
    if found is not None and move.tensor in motion.after.split_tensors:
        # (splits, rows, ...) lie side by side: LSE as a column for each split, O as its columns.
        columns = found.T if found.ndim == 2 else np.concatenate(list(found), axis=1)
        return np.asarray(columns, dtype=np.float32)
    if found is None or not 0 < found.ndim < 3:
        return None
    return np.asarray(found[:, None] if found.ndim == 1 else found, dtype=np.float32)
