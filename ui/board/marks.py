"""Outlines on the board: frames, the current bands and tile, the selected row, the pointer."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from simulator.program.algorithms import TENSORS
from simulator.run.linear_state import forms_tile
from simulator.run.rescales import WARP, skips
from simulator.run.snapshot import Cell, Snapshot
from simulator.run.touched import touched
from ui.board.layout import BoardLayout
from ui.board.middle import middle_at
from ui.board.scores import numbers_fit
from ui.look.draw import hairline, outline

VEILED = 0.5
"""Opacity of the veil over the neighbours of the row at hand."""
_LEAST_VEILED = 4.0
"""Least height of rows, at scale 1, at which a row can be told apart from its neighbours."""
_LEAST_DOT = 3.0
"""Least side of a cell, in pixels, in which a dot is seen."""


def paint_frames(painter: QPainter, lay: BoardLayout) -> None:
    """Draw a thin line around every box."""
    for box in lay.boxes.values():
        outline(painter, box.adjusted(-1, -1, 1, 1), lay.style.theme.grid)


def veiled_rows(
    snapshot: Snapshot, lay: BoardLayout, row: int | None, apart: Collection[int]
) -> tuple[int, ...]:
    """Return the rows that stand back in a hall: all of the row block but the selected row.

    apart: rows that are pointed at, which do not stand back.
    """
    rows = snapshot.visit.rows
    small = lay.cell[1] < lay.style.px(_LEAST_VEILED)
    if not lay.style.least or row not in rows or small or snapshot.op.before_tiles:
        return ()
    return tuple(each for each in rows if each != row and each not in apart)


def paint_veil(painter: QPainter, rows: Collection[int], lay: BoardLayout) -> None:
    """Let rows stand back in every box that has rows."""
    veil = QColor(lay.style.theme.panel)
    veil.setAlphaF(VEILED)
    for name, box in lay.boxes.items():
        if "key" in TENSORS[name].axes and not TENSORS[name].of_pairs:
            continue
        for row in rows:
            painter.fillRect(lay.row_band(name, range(row, row + 1)).intersected(box), veil)


def paint_bands(painter: QPainter, snapshot: Snapshot, lay: BoardLayout) -> None:
    """Outline the current row and column block in all their boxes, thicker where the op works."""
    style, theme, visit = lay.style, lay.style.theme, snapshot.visit
    if snapshot.op.before_tiles:
        return
    middle, op = middle_at(snapshot), snapshot.op
    at_work = middle.at_work(snapshot)
    moved = {move.tensor: move.rows for move in op.moves} if op.loads or op.stores else {}
    groups = [[name] for name in dict.fromkeys((lay.keys, lay.values, "Q"))]
    groups += [["m", "l", "LSE", "O"]]
    if middle.each_box:
        at_work = frozenset(map(lay.box_of, at_work))
        moved = {lay.box_of(tensor): rows for tensor, rows in moved.items()}
        groups = [[name] for name in lay.boxes if not TENSORS[name].of_pairs]
    for names in groups:
        if not at_work & {*names}:
            continue
        first, name = next(each for each in names if each in lay.boxes), names[-1]
        last = "l" if snapshot.in_softmax_launch else name
        by_key = "key" in TENSORS[name].axes
        own = visit.cols if by_key else visit.rows
        moves = [rows for tensor, rows in moved.items() if tensor in names]
        band = lay.col_band(first, own) if by_key else lay.row_band(first, own, last)
        colour = theme.tensor(name)
        if moves and moves[0] != own:  # cleared in HBM: rows of other blocks
            other = lay.row_band(first, moves[0], last)
            if not other.isEmpty():
                outline(painter, other, colour, style.px(1.5))
        if visible_band(band, lay.boxes[first]):
            outline(painter, at_least(band, style.px(5)), colour, style.px(2))
    for name in lit_boxes(snapshot, lay):
        band = lit_band(snapshot, lay, name)
        if name != "S" and visible_band(band, lay.boxes[name]):
            outline(painter, lit_frame(band, name, lay), theme.tensor(name), style.px(4))


def lit_boxes(snapshot: Snapshot, lay: BoardLayout) -> tuple[str, ...]:
    """Return the boxes of the tensors that the op works on, which are lit like its formula."""
    stands = {"K": lay.keys, "V": lay.values}
    names = {stands.get(name, lay.box_of(name)) for name in touched(snapshot)}
    return tuple(name for name in lay.boxes if name in names)  # drawn in the same order each time


def lit_band(snapshot: Snapshot, lay: BoardLayout, name: str) -> QRectF:
    """Return the lit part of a box: the current rows or keys, or the tile."""
    visit, axes = snapshot.visit, TENSORS[name].axes
    if TENSORS[name].of_pairs:
        return lay.tile(visit.rows, visit.cols)
    return lay.col_band(name, visit.cols) if "key" in axes else lay.row_band(name, visit.rows)


def lit_frame(band: QRectF, name: str, lay: BoardLayout) -> QRectF:
    """Return the frame of a lit band: half outside where rows have a number each, to read it."""
    px = lay.style.px
    if TENSORS[name].axes == ("row",):
        return band.adjusted(-px(1), -px(2), px(1), px(2))
    return at_least(band, px(5))


def visible_band(band: QRectF, box: QRectF) -> bool:
    """Return whether any of a band can be seen in its box."""
    return band.width() > 0 and band.height() >= 0 and band.intersects(box.adjusted(-1, -1, 1, 1))


def at_least(rect: QRectF, size: float) -> QRectF:
    """Return the rectangle grown about its centre where a side is shorter than `size`."""
    x, y = max(size - rect.width(), 0.0) / 2, max(size - rect.height(), 0.0) / 2
    return rect.adjusted(-x, -y, x, y)


def paint_current_outline(painter: QPainter, snapshot: Snapshot, lay: BoardLayout) -> None:
    """Outline the current tile, or its place if it is too small to see."""
    style = lay.style
    if not forms_tile(snapshot):
        return
    tile = lay.tile(snapshot.visit.rows, snapshot.visit.cols)
    if not visible_band(tile, lay.boxes["S"]):
        return
    around = at_least(tile, style.px(9)).adjusted(-1, -1, 1, 1)
    width = style.px(3)
    outline(painter, around.adjusted(-1, -1, 1, 1), style.theme.empty, width + 2)
    outline(painter, around, style.theme.current, width)


def paint_row_mark(painter: QPainter, lay: BoardLayout, row: int) -> None:
    """Draw a thin line around the selected row in every box that has it, and a pointer at its end.

    The boxes on one side of the scores have one line around them all.
    """
    style = lay.style
    if not row < lay.shape[0]:
        return
    scores = lay.boxes["S"]
    middle = lay.row_y(row + 0.5)
    if not scores.top() <= middle <= scores.bottom():
        return
    ink = QColor(style.theme.text)
    names = [name for name in lay.boxes if "row" in TENSORS[name].axes]
    names.sort(key=lambda name: lay.boxes[name].left())
    at = names.index("S")
    for group in filter(None, (names[:at], ["S"], names[at + 1 :])):
        band = lay.row_band(group[0], range(row, row + 1), group[-1])
        if band.height() >= 4:
            outline(painter, band, ink, hairline(style))
        else:
            painter.setPen(QPen(ink, hairline(style)))
            painter.drawLine(QLineF(band.left(), round(middle), band.right(), round(middle)))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(ink)
    size, x = style.px(3), lay.boxes[names[-1]].right() + 2
    painter.drawPolygon(
        QPolygonF(
            [
                QPointF(x, middle),
                QPointF(x + size * 1.4, middle - size),
                QPointF(x + size * 1.4, middle + size),
            ]
        )
    )
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)


def paint_skips(painter: QPainter, snapshot: Snapshot, lay: BoardLayout) -> None:
    """Mark between S and m which rows, and which warps of 32 rows, rescale or skip the rescale.

    A row that rescales has a filled mark; a row that skips although its maximum has grown, an empty
    one. A warp has a line along its rows, bright if one of them rescales. A dot marks P above 1.
    """
    found = skips(snapshot)
    if found is None:
        return
    s, m, theme = lay.boxes["S"], lay.boxes["m"], lay.style.theme
    room, first = m.left() - s.right(), snapshot.visit.rows.start
    line, left = max(room * 0.22, 1.5), s.right() + room * 0.12
    bright, faint = QColor(theme.current), QColor(theme.muted)
    painter.save()
    painter.setClipRect(QRectF(s.right(), s.top(), room, s.height()))
    for n, rescales in enumerate(found.warps.tolist()):
        rows = range(n * WARP, min((n + 1) * WARP, len(found.moved)))
        top, bottom = lay.row_y(first + rows.start) + 1, lay.row_y(first + rows.stop) - 1
        painter.fillRect(QRectF(left, top, line, bottom - top), bright if rescales else faint)
    x = left + 1.6 * line
    for r in np.flatnonzero(found.moved | found.skipped).tolist():
        place = QRectF(x, lay.row_y(first + r), m.left() - x - 1, lay.cell[1])
        place = place.adjusted(0, 0.1 * lay.cell[1], 0, -0.1 * lay.cell[1])
        if found.moved[r]:
            painter.fillRect(place, bright)
        else:
            outline(
                painter, place, theme.muted, max(1.0, min(lay.style.px(1), 0.15 * place.height()))
            )
    painter.restore()
    cell = lay.cell
    if snapshot.weights is None or min(cell) < _LEAST_DOT:
        return
    dot, keys = QColor(theme.empty), snapshot.visit.cols.start
    for r, c in np.argwhere(snapshot.weights > 1).tolist():
        x, y = lay.col_x(keys + c), lay.row_y(first + r)
        place = QRectF(x + cell[0] / 3, y + cell[1] / 3, cell[0] / 3, cell[1] / 3)
        if s.contains(place):
            painter.fillRect(place, dot)


def paint_selection(painter: QPainter, lay: BoardLayout, cell: Cell) -> None:
    """Mark the selected cell: a double outline, and a tick outwards from each of its sides.

    A cell large enough for its number needs no ticks. They would lie over the numbers beside it:
    a tick before 0.09 makes it -0.09.
    """
    style, place = lay.style, lay.place(cell)
    if (
        not (box_name := lay.box_of(cell.tensor))
        or not visible_band(place, lay.boxes[box_name])
        or place.height() <= 0
    ):
        return
    px = style.px
    box = at_least(place, px(7)).adjusted(-px(1), -px(1), px(1), px(1))
    ink, ground, width = style.theme.text, style.theme.empty, px(2)
    outline(painter, box.adjusted(-width, -width, width, width), ground, width)
    middle, reach = box.center(), px(7)
    ticks = [
        QLineF(box.left() - reach, middle.y(), box.left(), middle.y()),
        QLineF(box.right(), middle.y(), box.right() + reach, middle.y()),
        QLineF(middle.x(), box.top() - reach, middle.x(), box.top()),
        QLineF(middle.x(), box.bottom(), middle.x(), box.bottom() + reach),
    ]
    for colour, wide in ((ground, px(5)), (ink, px(2.5))):
        if not numbers_fit(style, place.width(), place.height()):
            painter.setPen(QPen(QColor(colour), wide))
            painter.drawLines(ticks)
    outline(painter, box, ink, width)


def paint_hover(painter: QPainter, lay: BoardLayout, hit: Cell) -> None:
    """Outline the cell under the pointer and, for a score, its row of Q and column of Kᵀ."""
    ink = QColor(lay.style.theme.text)
    row, key = range(hit.row, hit.row + 1), range(hit.col, hit.col + 1)
    if hit.spec.of_pairs:
        bands = [lay.tile(row, key), lay.row_band("Q", row), lay.col_band(lay.keys, key)]
    elif "key" in hit.at:
        bands = [lay.col_band(lay.box_of(hit.tensor), row)]
    elif not lay.box_of(hit.tensor):
        bands = []
    else:
        bands = [lay.row_band(lay.box_of(hit.tensor), row)]
    for band in bands:
        if not band.isNull():
            outline(painter, at_least(band, 3), ink, lay.style.px(2))
