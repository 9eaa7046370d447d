"""The score matrix of one head in small: tiles by their state, in the colours of the board."""

from __future__ import annotations

from PySide6.QtCore import QLineF, QRectF
from PySide6.QtGui import QColor, QPainter, QPen

from simulator.problem.tiling import TileGrid
from simulator.program.tile_program import TileProgram
from simulator.study.compare import Position
from ui.board.marks import at_least
from ui.board.middle import Area, middle_of
from ui.board.scores import clipped, tile_sheet
from ui.look.draw import mixed, outline
from ui.look.heat import hatching
from ui.look.theme import Style

FINEST = 512
"""Most tiles drawn along a side; of more tiles, so many are picked evenly."""
_LINES_FROM = 5
"""Least pixels of a tile for lines between tiles."""


def board_areas(program: TileProgram, position: Position) -> tuple[Area, ...]:
    """Return the areas of tiles used before the current one; the whole matrix at the end."""
    if position.visit is None:
        return ()
    middle = middle_of(program, position.visit)
    if position.finished:
        return (middle.whole(program),)
    return middle.areas(program, position.visit)


def board_box(program: TileProgram, rect: QRectF) -> QRectF:
    """Return where the score matrix goes: in its own shape, unless it is too long or flat."""
    w = program.workload
    shape = min(max(w.seqlen_k / w.seqlen_q, 0.25), 4.0)
    width = min(rect.width(), rect.height() * shape)
    height = min(rect.height(), width / shape)
    left = rect.x() + (rect.width() - width) / 2
    top = rect.y() + (rect.height() - height) / 2
    return QRectF(round(left), round(top), round(width), round(height))


def paint_mini_board(
    painter: QPainter,
    program: TileProgram,
    position: Position,
    grid: TileGrid,
    style: Style,
    rect: QRectF,
) -> None:
    """Paint the tiles of the current head.

    grid: the head's tiles; several boards have one grid, so that they share their images.
    """
    theme, box = style.theme, board_box(program, rect)
    # The last blocks may be smaller, but the image has equal tiles: it reaches beyond the box.
    across = box.width() * grid.Tc * grid.cols / grid.mask.seqlen_k
    down = box.height() * grid.Tr * grid.rows / grid.mask.seqlen_q
    sheet_box, whole = QRectF(box.x(), box.y(), across, down), QRectF(0, 0, 1, 1)
    size = min(grid.Tr, FINEST), min(grid.Tc, FINEST)

    def fill(kind: str, within: QRectF) -> None:
        sheet = tile_sheet(grid, theme.name, kind, (0.0, 0.0, grid.Tc, grid.Tr), *size)
        with clipped(painter, within):
            sheet.draw(painter, sheet_box, whole)

    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    if not program.algorithm.skips or not program.workload.mask.hides:
        painter.fillRect(box, QColor(theme.empty))
    else:
        painter.fillRect(box, hatching(theme.empty, theme.hatch, style.scale))
        fill("pending", box)
    for area in board_areas(program, position):
        place = _place(grid, box, area.rows, area.cols)
        if not place.isEmpty():
            fill("used" if area.dropped else area.name, place)
    _paint_grid(painter, grid, style, box)
    painter.setPen(QPen(QColor(theme.text), round(style.px(2))))
    for keys in program.workload.split_ranges[1:]:
        edge = _place(grid, box, range(grid.mask.seqlen_q), keys)
        if edge.width() > 0:
            painter.drawLine(edge.topLeft(), edge.bottomLeft())
    outline(painter, box.adjusted(-1, -1, 1, 1), theme.grid)
    visit = position.visit
    if visit is None or position.finished:
        return
    middle = middle_of(program, visit)
    if not middle.joins:
        tile = _place(grid, box, visit.rows, visit.cols)
        bright = mixed(theme.empty, theme.tensor(middle.drawn_as(visit)), 0.9)
        painter.fillRect(tile, bright)
        around = at_least(tile, style.px(6)).intersected(box.adjusted(-3, -3, 3, 3))
        outline(painter, around.adjusted(-1, -1, 1, 1), theme.empty, style.px(2) + 2)
        outline(painter, around, theme.current, style.px(2))


def _place(grid: TileGrid, box: QRectF, rows: range, cols: range) -> QRectF:
    """Return where rows and keys lie, on whole pixels so that neighbours meet."""
    across, down = box.width() / grid.mask.seqlen_k, box.height() / grid.mask.seqlen_q
    left, right = round(cols.start * across), round(cols.stop * across)
    top, bottom = round(rows.start * down), round(rows.stop * down)
    return QRectF(box.x() + left, box.y() + top, right - left, bottom - top)


def _paint_grid(painter: QPainter, grid: TileGrid, style: Style, box: QRectF) -> None:
    lines = []
    across = box.width() * grid.cols / grid.mask.seqlen_k
    down = box.height() * grid.rows / grid.mask.seqlen_q
    if down >= _LINES_FROM:
        heights = (box.y() + round(i * down) for i in range(1, grid.Tr))
        lines += [QLineF(box.left(), y, box.right(), y) for y in heights]
    if across >= _LINES_FROM:
        places = (box.x() + round(j * across) for j in range(1, grid.Tc))
        lines += [QLineF(x, box.top(), x, box.bottom()) for x in places]
    painter.setPen(QPen(QColor(style.theme.grid), 1))
    painter.drawLines(lines)
