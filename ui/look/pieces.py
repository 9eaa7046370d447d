"""Pieces of the picture given to a model, which are the labels of its tokens."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from PySide6.QtCore import QPointF, QRect, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPainterPath, QPen

from simulator.base.dtypes import F32, F64
from simulator.base.picture import Box, Picture
from simulator.problem.workload import Workload
from ui.look.draw import outline
from ui.look.heat import KEPT, word_image
from ui.look.theme import Style

_FINER = 2
"""Pixels of a piece for each pixel of the screen: a piece is smooth, and finer in print."""
GAP = 0.25
"""Gap between a piece and its text, in sides of the piece."""
_COVERED = 0.9
"""Opacity of the ground over pieces that are not read."""


def picture_of(w: Workload) -> Picture | None:
    """Return the picture whose pieces are keys of a run; None without one."""
    return w.file.picture if w.file else None


def key_piece(w: Workload, key: int) -> Box | None:
    """Return the piece that a key stands for; None if there is none."""
    picture = picture_of(w)
    return picture.piece(key) if picture else None


def query_piece(w: Workload, row: int) -> Box | None:
    """Return the piece that a query row stands for; None without one, or in another sequence."""
    if w.query_tokens:
        return None
    return key_piece(w, int(w.mask.positions(range(row, row + 1))[0]))


def paint_beside(
    painter: QPainter, picture: Picture, box: Box, place: QRectF, side: float, edge: Qt.Edge
) -> QRectF:
    """Draw a piece at an edge of the place of a label; return the rest of the place.

    edge: the edge where the piece stands: right or bottom beside cells.
    """
    square, gap = QRectF(0, 0, side, side), GAP * side
    square.moveCenter(place.center())
    rest = QRectF(place)
    if edge == Qt.Edge.RightEdge:
        square.moveRight(place.right())
        rest.setRight(square.left() - gap)
    elif edge == Qt.Edge.LeftEdge:
        square.moveLeft(place.left())
        rest.setLeft(square.right() + gap)
    elif edge == Qt.Edge.BottomEdge:
        square.moveBottom(place.bottom())
        rest.setBottom(square.top() - gap)
    else:
        square.moveTop(place.top())
        rest.setTop(square.bottom() + gap)
    _paint_part(painter, picture, box, _fitting(box[2] - box[0], box[3] - box[1], square))
    return rest


def _fitting(wide: float, high: float, room: QRectF) -> QRectF:
    """Return the largest place of a shape in the middle of a room, on whole pixels."""
    size = QSizeF(wide, high).scaled(room.size(), Qt.AspectRatioMode.KeepAspectRatio)
    width, height = max(round(size.width()), 1), max(round(size.height()), 1)
    left, top = room.center().x() - width / 2, room.center().y() - height / 2
    return QRectF(round(left), round(top), width, height)


def picture_place(picture: Picture, room: QRectF, *, right: bool) -> QRectF:
    """Return where a whole picture lies in a room: as large as it can, at its left or right."""
    high, wide, _ = picture.pixels.shape
    place = _fitting(wide, high, room)
    place.moveLeft(round(room.right()) - place.width() if right else round(room.left()))
    return place


def paint_picture(painter: QPainter, picture: Picture, place: QRectF) -> None:
    """Draw a whole picture at its place."""
    high, wide, _ = picture.pixels.shape
    _paint_part(painter, picture, (0, 0, wide, high), place)


def _paint_part(painter: QPainter, picture: Picture, box: Box, place: QRectF) -> None:
    left, top, right, bottom = box
    part = _image(picture).copy(QRect(left, top, right - left, bottom - top))
    ratio = painter.device().devicePixelRatioF()
    most = (place.size() * _FINER * ratio).toSize()
    if part.width() > most.width() or part.height() > most.height():
        part = part.scaled(
            most, Qt.AspectRatioMode.IgnoreAspectRatio, Qt.TransformationMode.SmoothTransformation
        )
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
    painter.drawImage(place, part)
    painter.restore()


def _image(picture: Picture) -> QImage:
    def make() -> QImage:
        high, wide, _ = picture.pixels.shape
        return QImage(
            picture.pixels.data, wide, high, 3 * wide, QImage.Format.Format_RGB888
        ).convertToFormat(QImage.Format.Format_RGB32)

    return KEPT.get(picture.pixels, "picture", make)


def place_of(picture: Picture, box: Box, place: QRectF) -> QRectF:
    """Return where a piece lies, on whole pixels, in a picture drawn at a place."""
    high, wide, _ = picture.pixels.shape
    x, y = place.width() / wide, place.height() / high
    left, top, right, bottom = (
        round(place.x() + x * box[0]), round(place.y() + y * box[1]),
        round(place.x() + x * box[2]), round(place.y() + y * box[3]),
    )  # fmt: skip
    return QRectF(left, top, max(right - left, 1), max(bottom - top, 1))


def key_at(picture: Picture, place: QRectF, point: QPointF) -> int | None:
    """Return the key whose piece is at a point of a picture drawn at a place."""
    high, wide, _ = picture.pixels.shape
    x, y = (point.x() - place.x()) / place.width(), (point.y() - place.y()) / place.height()
    left, top, right, bottom = picture.boxes.T
    there = (left <= x * wide) & (x * wide < right) & (top <= y * high) & (y * high < bottom)
    return int(there.argmax()) if there.any() else None


def paint_outlines(
    painter: QPainter,
    picture: Picture,
    lines: Iterable[tuple[Iterable[Box | None], QPen]],
    style: Style,
    place: QRectF,
) -> None:
    """Draw lines around pieces of a picture at a place, visible on any colour."""
    paths = [(_around(picture, pieces, place), pen) for pieces, pen in lines]
    painter.save()
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for path, pen in paths:
        painter.setPen(QPen(QColor(style.theme.panel), 2 * pen.widthF()))
        painter.drawPath(path)
    for path, pen in paths:
        painter.setPen(pen)
        painter.drawPath(path)
    painter.restore()


def _around(picture: Picture, pieces: Iterable[Box | None], place: QRectF) -> QPainterPath:
    found: list[QRectF] = []
    for box in filter(None, pieces):
        own = place_of(picture, box, place)
        before = found[-1] if found else QRectF()
        if (before.top(), before.right(), before.height()) == (own.top(), own.left(), own.height()):
            before.setRight(own.right())
        else:
            found.append(own)
    path = QPainterPath()
    for each in found:
        path.addRect(each)
    return path.simplified()


def paint_read(
    painter: QPainter, picture: Picture, weights: F32, own: Box | None, style: Style, place: QRectF
) -> None:
    """Draw a picture: the more a piece is read, the clearer it is.

    weights: (Nk,) float32, of one row: the piece with the largest is clear; pieces with 0 are
        covered, and so are parts without a key.
    """
    paint_picture(painter, picture, place)
    largest, corner = largest_read(picture, weights), place.topLeft()
    cover = np.ones((int(place.height()), int(place.width())))
    for key in range(len(weights)):
        box = picture.piece(key)
        if box and largest:
            there = place_of(picture, box, place).translated(-corner).toRect()
            rows = slice(there.top(), there.bottom() + 1)
            columns = slice(there.left(), there.right() + 1)
            cover[rows, columns] = 1 - float(weights[key]) / largest
    painter.drawImage(place, _veil(cover * _COVERED, QColor(style.theme.panel)))
    outline(painter, place.adjusted(-1, -1, 1, 1), style.theme.border)
    if own is not None:
        pen = QPen(QColor(style.theme.current), max(style.px(2), 1.0))
        paint_outlines(painter, picture, [([own], pen)], style, place)


def _veil(opacity: F64, colour: QColor) -> QImage:
    """Return an image of a colour, with an opacity for each pixel."""
    parts = (255, colour.red(), colour.green(), colour.blue())
    alpha, red, green, blue = (np.rint(opacity * part).astype(np.uint32) for part in parts)
    return word_image(np.asarray(alpha << 24 | red << 16 | green << 8 | blue, dtype=np.uint32))


def largest_read(picture: Picture, weights: F32) -> float:
    """Return the largest weight that a piece has."""
    return float(weights[picture.boxes.any(axis=1)].max(initial=0.0))
