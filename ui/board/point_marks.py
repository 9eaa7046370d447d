"""Rings around the places on the board that a lesson points at, and arrows to them.

Both have the colour of the text and a casing in the colour of the ground, so they stand out from
any colour map. The current tile is framed in yellow, a selected cell has ticks: neither has an
arrow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from math import hypot

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from simulator.lesson.places import Pointer
from simulator.problem.workload import Workload
from simulator.run.cell_values import cell_name
from simulator.run.snapshot import Cell
from ui.board.layout import BoardLayout
from ui.board.marks import at_least, visible_band
from ui.look.theme import Style

_RING, _CASING, _RADIUS = 3.0, 2.0, 5.0
"""Width of the ring and of its casing at either side, and its corners, in pixels at scale 1."""
_AWAY = 4.0
"""Room between a ring and the place inside: the current tile's frame fits there."""
_OVER = 3.0
"""How far the ring of a first or last row reaches beyond the boxes."""
_LEAST = 12.0
"""Smallest side of the place inside a ring: a tile of a large problem is narrower than a pixel."""
_ARROW = (30.0, 5.0, 17.0, 15.0)
"""Length, width of the shaft, width and length of the head."""
_SLANT = 0.5**0.5
_FROM = ((-1.0, 1.0), (1.0, 1.0), (1.0, -1.0), (-1.0, -1.0))
"""Sides from which an arrow comes, the best first: rows below come later, and are empty yet."""


@dataclass(frozen=True, slots=True)
class PointMark:
    """The ring and the arrow of one pointer."""

    ring: QRectF  # around its place
    tip: QPointF  # tip, tail: ends of its arrow
    tail: QPointF


def pointed_cell(pointer: Pointer, w: Workload) -> Cell | None:
    """Return a cell of a pointer's place on the board; None for a place in the code."""
    if pointer.tile is not None:
        i, j = pointer.tile
        return Cell("S", i * w.rows, j * w.cols)
    if pointer.row is not None:
        return Cell("Q", pointer.row, 0)
    return pointer.cell


def pointed_words(pointer: Pointer) -> str:
    """Return a pointer's place on the board, for screen readers; "" for a line of the paper."""
    if pointer.tile is not None:
        return f"tile ({pointer.tile[0]}, {pointer.tile[1]})"
    if pointer.row is not None:
        return f"row {pointer.row}"
    return cell_name(pointer.cell) if pointer.cell is not None else ""


def pointed_lines(points: Iterable[Pointer]) -> tuple[int, ...]:
    """Return the places of the paper's lines that are pointed at."""
    return tuple(point.line for point in points if point.line is not None)


def point_marks(
    points: Collection[Pointer], w: Workload, lay: BoardLayout
) -> tuple[PointMark, ...]:
    """Return the marks of the pointers whose places are in sight.

    points: tiles, rows and cells; lines of the paper are not on the board.
    """
    px, rings = lay.style.px, []
    for point in points:
        place = _place(point, w, lay)
        if place is not None:
            rings.append((point, _ring(point, at_least(place, px(_LEAST)), lay)))
    beside = (lay.row_margin, lay.key_margin, lay.legend, lay.inset, lay.header, lay.caption)
    words = (*beside, *lay.labels.values())
    out: list[PointMark] = []
    for point, ring in rings:
        others = [other for _, other in rings if other is not ring]
        others += [*words, *(_bounds(mark) for mark in out)]
        choices = list(_arrows(ring, point.row is not None, lay))

        def cost(mark: PointMark, others: list[QRectF] = others) -> tuple[bool, int]:
            box, whole = _bounds(mark), _arrow_box(mark, lay.style)
            met = sum(whole.intersects(_arrow_box(other, lay.style)) for other in out)
            return not lay.rect.contains(box), met + sum(box.intersects(other) for other in others)

        out.append(min(choices, key=cost))
    return tuple(out)


def _place(point: Pointer, w: Workload, lay: BoardLayout) -> QRectF | None:
    """Return the visible part of a pointer's place on the board."""
    if point.tile is not None:
        i, j = point.tile
        rows = range(i * w.rows, min((i + 1) * w.rows, w.seqlen_q))
        place = lay.tile(rows, range(j * w.cols, min((j + 1) * w.cols, w.seqlen_k)))
        box = lay.boxes["S"]
    elif point.row is not None:
        place = lay.row_band("Q", range(point.row, point.row + 1), "O")
        box = lay.boxes["Q"].united(lay.boxes["O"])
    elif point.cell is not None:
        place, box = lay.place(point.cell), lay.boxes[lay.box_of(point.cell.tensor)]
    else:
        return None
    return place if visible_band(place, box) and place.height() > 0 else None


def _ring(point: Pointer, place: QRectF, lay: BoardLayout) -> QRectF:
    """Return the ring around a place, not over the words beside the boxes."""
    away, over = lay.style.px(_AWAY), lay.style.px(_OVER)
    if point.row is not None:  # titles stand close to the first row
        box = lay.boxes["Q"].united(lay.boxes["O"])
        top = max(place.top() - away, box.top() - over)
        return QRectF(place.left(), top, place.width(),
                      min(place.bottom() + away, box.bottom() + over) - top)  # fmt: skip
    ring = place.adjusted(-away, -away, away, away)
    if point.cell is not None and not point.cell.spec.of_pairs:
        box = lay.boxes[lay.box_of(point.cell.tensor)].adjusted(-2, -2, 2, 2)
        if ring.width() <= box.width():
            ring.moveLeft(min(max(ring.left(), box.left()), box.right() - ring.width()))
        if ring.height() <= box.height():
            ring.moveTop(min(max(ring.top(), box.top()), box.bottom() - ring.height()))
    return ring


def _arrows(ring: QRectF, row: bool, lay: BoardLayout) -> Iterator[PointMark]:
    """Yield the arrows that a ring may have, the best first."""
    length = lay.style.px(_ARROW[0])
    if row:  # from a side: there is room beside the boxes, and none of the matrix is hidden
        middle = ring.center().y()
        tip = QPointF(min(ring.right(), lay.rect.right() - length - 3), middle)
        yield PointMark(ring, tip, tip + QPointF(length, 0))
        tip = QPointF(ring.left(), middle)
        yield PointMark(ring, tip, tip - QPointF(length, 0))
        return
    reach = length * _SLANT
    for x, y in _FROM:
        across = ring.right() if x > 0 else ring.left()
        tip = QPointF(across, ring.bottom() if y > 0 else ring.top())
        yield PointMark(ring, tip, tip + QPointF(x * reach, y * reach))


def _bounds(mark: PointMark) -> QRectF:
    """Return the rectangle around the tail half of an arrow."""
    middle = (mark.tip + mark.tail) * 0.5
    return QRectF(middle, mark.tail).normalized().adjusted(-2, -2, 2, 2)


def _arrow_box(mark: PointMark, style: Style) -> QRectF:
    """Return the rectangle around a whole arrow, as wide as its head."""
    half = style.px(_ARROW[2] / 2)
    return QRectF(mark.tip, mark.tail).normalized().adjusted(-half, -half, half, half)


def paint_points(
    painter: QPainter, points: Collection[Pointer], w: Workload, lay: BoardLayout
) -> None:
    """Draw a ring around each place that is pointed at on the board, and an arrow to it."""
    marks = point_marks(points, w, lay)
    if not marks:
        return
    px, theme = lay.style.px, lay.style.theme
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for colour, width in ((theme.empty, _RING + 2 * _CASING), (theme.text, _RING)):
        painter.setPen(QPen(QColor(colour), px(width)))
        for mark in marks:
            painter.drawRoundedRect(mark.ring, px(_RADIUS), px(_RADIUS))
    for mark in marks:
        paint_arrow(painter, mark.tip, mark.tail, lay.style)
    painter.restore()


def paint_arrow(
    painter: QPainter, tip: QPointF, tail: QPointF, style: Style, share: float = 1.0
) -> None:
    """Draw an arrow from `tail` to `tip`, `share` as thick as on the board."""
    px, theme = style.px, style.theme
    along = tip - tail
    ahead = along * (1 / hypot(along.x(), along.y()))
    aside = QPointF(-ahead.y(), ahead.x())
    _, shaft, wide, deep = (share * px(part) for part in _ARROW)
    shaft, wide = shaft / 2, wide / 2
    neck = tip - ahead * deep
    shape = QPolygonF(
        [
            tip, neck + aside * wide, neck + aside * shaft, tail + aside * shaft,
            tail - aside * shaft, neck - aside * shaft, neck - aside * wide,
        ]
    )  # fmt: skip
    pen = QPen(QColor(theme.empty), 2 * share * px(_CASING))
    pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    painter.setPen(pen)
    painter.setBrush(QColor(theme.text))
    painter.drawPolygon(shape)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.drawPolygon(shape)
