"""The score matrix in the middle of the board: cells of small problems, tiles of large ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen, QPolygonF

from simulator.base.dtypes import F32
from simulator.problem.masks import Mask
from simulator.problem.tiling import TileGrid
from simulator.program.algorithms import TENSORS
from simulator.run.final_weights import done_rows, done_weights
from simulator.run.linear_state import forms_tile
from simulator.run.snapshot import Snapshot
from ui.board.layout import BoardLayout, number_size
from ui.board.middle import Area, middle_at, top_of
from ui.board.sizes import HALL_CELL, NUMBER_CELL
from ui.look.draw import hairline, mixed, text_width
from ui.look.heat import (
    KEPT,
    U32,
    ResultCache,
    Sheet,
    colour_map,
    hatching,
    heat_image,
    indices,
    inks,
    prefers_white,
    rooted,
    word_image,
)
from ui.look.theme import THEMES, Style, Theme
from ui.look.units import number_text

MOST_TILES = 1024
"""Most blocks along a side that are coloured once; of more blocks, visible ones are coloured."""
_MOST_EDGES = 8000
"""Most edges of cells drawn for a mask; with more edges, the cells alone show the mask."""
_WOVEN = 12
"""Smallest cell, in pixels, whose edges are drawn even if there are more edges than cells."""
FINEST_STAIRS = 2.5
"""Smallest cell, in pixels, along which the mask's edge is drawn step by step."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Numbers of S or P with the map that colours them."""

    values: F32  # (r, c) float32; -inf hidden by the mask, NaN nothing
    words: U32  # the map
    # low, high: range of the map
    low: float
    high: float
    # whether the numbers are gone from the machine, so that their digits stand back, too
    faded: bool = False
    digits: int = 2  # most decimals of a number
    rooted: bool = False  # whether the map takes roots of the numbers

    @property
    def shades(self) -> F32:
        """Places of the numbers in the map."""
        return rooted(self.values) if self.rooted else self.values

    @property
    def key(self) -> tuple[float, float, bool]:
        """Inputs of the picture other than numbers and colours."""
        return self.low, self.high, self.rooted

    def image(self) -> Sheet:
        """Return the picture, one pixel for each number."""
        return Sheet(heat_image(self.shades, self.low, self.high, self.words))


def paint_scores(painter: QPainter, snapshot: Snapshot, lay: BoardLayout) -> None:
    """Draw the score matrix without the current tile: past tiles, the grid, the mask's edge."""
    theme, box, w = lay.style.theme, lay.boxes["S"], snapshot.program.workload
    with clipped(painter, box):
        if not snapshot.program.algorithm.skips or not w.mask.hides:
            painter.fillRect(box, QColor(theme.empty))
        else:
            painter.fillRect(box, hatching(theme.empty, theme.hatch, lay.style.scale))
            kind = "empty" if snapshot.head is not None else "pending"
            pending = _tile_window(w.grid, kind, lay)
            pending.draw(painter, lay, box)
        for area in middle_at(snapshot).areas(snapshot.program, snapshot.visit):
            _paint_area(painter, snapshot, lay, area)
        _paint_grid(painter, w.grid, lay, box)
        _paint_mask_edges(painter, snapshot, lay, lay.visible_rows(), range(w.seqlen_k))
        _paint_numbers(painter, snapshot, lay)


def paint_used(painter: QPainter, snapshot: Snapshot, weights: F32, lay: BoardLayout) -> None:
    """Draw weights of used keys in the current rows, (r, keys), over the earlier ones."""
    rows, w, head = snapshot.visit.rows, snapshot.program.workload, snapshot.head
    keys = range(weights.shape[1])
    if head is None or not weights.size:
        return
    if w.mask.hides:
        s = head.s[rows.start : rows.stop, keys.start : keys.stop]
        weights = np.where(np.isneginf(s), s, weights)
    dim = snapshot.so_far is None
    words = colour_map(lay.style.theme, "P", dim=dim)
    shown = Shown(weights, words, *middle_at(snapshot).value_range(snapshot, "P"), dim)
    shown = scaled(shown, "P", snapshot, plain=lay.plain)
    place = lay.tile(rows, keys)
    _Window(shown.image(), 0, rows.start, len(keys), len(rows)).draw(painter, lay, place)
    _paint_grid(painter, w.grid, lay, place)
    _paint_mask_edges(painter, snapshot, lay, rows, keys)
    if numbers_fit(lay.style, *lay.cell):
        paint_numbers(painter, shown, lay, "S", rows, keys, (rows.start, 0))


def paint_tile(painter: QPainter, snapshot: Snapshot, lay: BoardLayout) -> None:
    """Draw the current tile alone: its cells, the lines across it, its numbers."""
    visit, tile = snapshot.visit, lay.tile(snapshot.visit.rows, snapshot.visit.cols)
    # A tile of a few pixels shows nothing but its outline.
    if not forms_tile(snapshot) or min(tile.width(), tile.height()) < 3:
        return
    with clipped(painter, tile):
        _paint_current(painter, snapshot, lay)
        _paint_grid(painter, snapshot.program.workload.grid, lay, tile)
        _paint_mask_edges(painter, snapshot, lay, visit.rows, visit.cols)
        current = shown_current(snapshot, lay)
        if current is not None and numbers_fit(lay.style, *lay.cell):
            corner = visit.rows.start, visit.cols.start
            paint_numbers(painter, current, lay, "S", visit.rows, visit.cols, corner)


@contextmanager
def clipped(painter: QPainter, box: QRectF) -> Iterator[None]:
    """Let nothing be painted outside a box."""
    painter.save()
    painter.setClipRect(box, Qt.ClipOperation.IntersectClip)
    yield
    painter.restore()
    if painter.hasClipping():  # set again, else Qt's SVG keeps the inner box
        painter.setClipRect(painter.clipBoundingRect(), Qt.ClipOperation.IntersectClip)


@dataclass(frozen=True, slots=True)
class _Window:
    """A sheet that shows some rows and keys, given by their starts and counts."""

    sheet: Sheet
    x: float
    y: float
    keys: float
    rows: float

    def draw(self, painter: QPainter, lay: BoardLayout, within: QRectF) -> None:
        """Draw the part inside `within`; all parts of a sheet fall on the same pixels."""
        rows, keys = lay.visible
        source = QRectF(
            (lay.view.x - self.x) / self.keys, (lay.view.y - self.y) / self.rows,
            keys / self.keys, rows / self.rows,
        )  # fmt: skip
        with clipped(painter, within):
            self.sheet.draw(painter, lay.boxes["S"], source)


def _paint_area(painter: QPainter, snapshot: Snapshot, lay: BoardLayout, area: Area) -> None:
    within = lay.tile(area.rows, area.cols)
    if within.isEmpty():
        return
    shown = _shown_area(snapshot, lay, area)
    if shown is None:
        kind = area.name if not area.dropped else "used"
        _tile_window(snapshot.program.workload.grid, kind, lay).draw(painter, lay, within)
        return
    key = ("sheet", lay.style.theme.name, area.name, shown.faded, *shown.key)
    sheet = KEPT.get(shown.values, key, shown.image)
    rows, keys = shown.values.shape
    _Window(sheet, 0, 0, keys, rows).draw(painter, lay, within)


def scaled(shown: Shown, name: str, now: Snapshot, *, plain: bool) -> Shown:
    """Return numbers as a board colours them; a plain board colours weights like the inspector."""
    softmax = now.program.algorithm.softmax
    if name != "P" or not (plain and softmax) or shown.high > 1:
        return shown
    return replace(shown, high=1.0, rooted=True)


def _shown_area(snapshot: Snapshot, lay: BoardLayout, area: Area) -> Shown | None:
    found = _area_numbers(snapshot, lay.style.theme, area)
    return None if found is None else scaled(found, area.name, snapshot, plain=lay.plain)


def _area_numbers(snapshot: Snapshot, theme: Theme, area: Area) -> Shown | None:
    if snapshot.head is None:
        return None
    middle = middle_at(snapshot)
    if area.dropped and snapshot.so_far is not None:
        whole = _without_hidden(snapshot, snapshot.so_far)
        return Shown(whole, colour_map(theme, area.name), *middle.value_range(snapshot, "P"))
    values: F32 = getattr(snapshot.head, area.name.lower())
    if area.dropped and snapshot.head.weights is not None:
        values = snapshot.head.weights
        if area.rows.stop <= done_rows(snapshot).stop:
            divided = KEPT.get(values, ("done", area.rows.stop), lambda: done_weights(snapshot))
            if divided is not None:
                whole = _without_hidden(snapshot, divided)
                return Shown(whole, colour_map(theme, "P"), *middle.value_range(snapshot, "P"))
    low, high = middle.value_range(snapshot, area.name)
    if area.name == "P" and middle.keeps_divided:
        high = top_of(values)
    words = colour_map(theme, area.name, dim=area.dropped)
    return Shown(_without_hidden(snapshot, values), words, low, high, area.dropped)


def _without_hidden(snapshot: Snapshot, values: F32) -> F32:
    """Return P with -inf where the mask hides a pair: a 0 there is not from the softmax."""
    head = snapshot.head
    if head is None or values is head.s or not snapshot.program.workload.mask.hides:
        return values
    s = head.s
    return KEPT.get(values, "seen", lambda: np.where(np.isneginf(s), s, values))


def shown_current(snapshot: Snapshot, lay: BoardLayout) -> Shown | None:
    """Return the current tile's newest numbers with their colour map; None without numbers."""
    middle, visit, theme = middle_at(snapshot), snapshot.visit, lay.style.theme
    found = middle.current(snapshot)
    if snapshot.so_far is not None and snapshot.normalised:  # its rows are done
        whole = _without_hidden(snapshot, snapshot.so_far)
        values = whole[visit.rows.start : visit.rows.stop, visit.cols.start : visit.cols.stop]
        done = Shown(values, colour_map(theme, "P"), *middle.value_range(snapshot, "P"))
        return scaled(done, "P", snapshot, plain=lay.plain)
    if found is None:
        return None
    name, values = found
    if name != "S":
        made, seen = values, snapshot.tile.seen
        values = KEPT.get(made, "tile", lambda: np.where(seen, made, np.float32(-np.inf)))
    now = Shown(values, colour_map(theme, name), *middle.value_range(snapshot, name))
    return scaled(now, name, snapshot, plain=lay.plain)


def _paint_current(painter: QPainter, snapshot: Snapshot, lay: BoardLayout) -> None:
    visit = snapshot.visit
    box = lay.tile(visit.rows, visit.cols)
    shown = shown_current(snapshot, lay)
    painter.fillRect(box, QColor(lay.style.theme.empty))
    if shown is None:
        return
    sheet = KEPT.get(shown.values, ("current", lay.style.theme.name, *shown.key), shown.image)
    _Window(sheet, visit.cols.start, visit.rows.start, len(visit.cols), len(visit.rows)).draw(
        painter, lay, box
    )


def _paint_grid(painter: QPainter, grid: TileGrid, lay: BoardLayout, box: QRectF) -> None:
    """Draw the lines between tiles in a part of the matrix.

    The lines are opaque and not smoothed, which is many times faster.
    """
    cell_w, cell_h = lay.cell
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    painter.setPen(QPen(QColor(lay.style.theme.grid), hairline(lay.style)))
    lines = []
    rows, keys = lay.visible_rows(), lay.visible_keys()
    if cell_h * grid.rows >= 5:
        for i in range(rows.start // grid.rows + 1, (rows.stop - 1) // grid.rows + 1):
            y = round(lay.row_y(i * grid.rows))
            if box.top() <= y <= box.bottom():
                lines.append(QLineF(box.left(), y, box.right(), y))
    if cell_w * grid.cols >= 5:
        for j in range(keys.start // grid.cols + 1, (keys.stop - 1) // grid.cols + 1):
            x = round(lay.col_x(j * grid.cols))
            if box.left() <= x <= box.right():
                lines.append(QLineF(x, box.top(), x, box.bottom()))
    painter.drawLines(lines)


def _paint_mask_edges(
    painter: QPainter, snapshot: Snapshot, lay: BoardLayout, rows: range, keys: range
) -> None:
    """Draw the edge of the visible pairs in some rows and keys.

    The edge has steps between cells; where cells are too small for steps, it is a line.
    """
    w = snapshot.program.workload
    mask, grid = w.mask.of_head(snapshot.visit.head), w.grid
    cell_w, cell_h = lay.cell
    if not mask.hides or min(cell_w * grid.cols, cell_h * grid.rows) < 8:
        return
    stairs = min(cell_w, cell_h) >= FINEST_STAIRS
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, not stairs)
    colour = mixed(lay.style.theme.empty, lay.style.theme.muted, 0.75)
    painter.setPen(QPen(colour, hairline(lay.style)))
    if not mask.simple:
        _paint_all_edges(painter, lay, mask, rows, keys)
    for first, offset in mask.diagonals:
        begin = max(first, rows.start, keys.start - offset)
        along = range(begin, max(begin, min(rows.stop, keys.stop - offset + 1)))
        painter.drawPolyline(_edge(lay, along, offset, stairs))
    for key, along in mask.uprights:
        x = round(lay.col_x(key))
        top, bottom = max(along.start, rows.start), min(along.stop, rows.stop)
        if keys.start <= key <= keys.stop and top < bottom:
            painter.drawLine(QLineF(x, lay.row_y(top), x, lay.row_y(bottom)))


def _paint_all_edges(
    painter: QPainter, lay: BoardLayout, mask: Mask, rows: range, keys: range
) -> None:
    """Draw edges between visible and hidden pairs, if cells are large and edges few enough."""
    there = lay.visible_keys()
    keys = range(max(keys.start, there.start), min(keys.stop, there.stop))
    if min(lay.cell) < 2 or not keys or not rows:
        return
    seen = mask.visible(rows, keys)
    edges = (seen[:, 1:] != seen[:, :-1]).sum() + (seen[1:] != seen[:-1]).sum()
    if edges > _MOST_EDGES or (edges > seen.sum() and min(lay.cell) < _WOVEN):
        return
    lines = []
    for row, key in np.argwhere(seen[:, 1:] != seen[:, :-1]).tolist():
        x, n = round(lay.col_x(keys.start + key + 1)), rows.start + row
        lines.append(QLineF(x, lay.row_y(n), x, lay.row_y(n + 1)))
    for row, key in np.argwhere(seen[1:] != seen[:-1]).tolist():
        y, n = round(lay.row_y(rows.start + row + 1)), keys.start + key
        lines.append(QLineF(lay.col_x(n), y, lay.col_x(n + 1), y))
    painter.drawLines(lines)


def _edge(lay: BoardLayout, rows: range, offset: int, stairs: bool) -> QPolygonF:
    if not rows:
        return QPolygonF()
    if not stairs:
        ends = ((rows.start, rows.start + offset), (rows.stop, rows.stop + offset))
        return QPolygonF([QPointF(lay.col_x(key), lay.row_y(row)) for row, key in ends])
    points = []
    for row in rows:
        x = round(lay.col_x(row + offset))
        points.append(QPointF(x, round(lay.row_y(row))))
        points.append(QPointF(x, round(lay.row_y(row + 1))))
    return QPolygonF(points)


def _paint_numbers(painter: QPainter, snapshot: Snapshot, lay: BoardLayout) -> None:
    if not numbers_fit(lay.style, *lay.cell):
        return
    if snapshot.head is not None:
        for area in middle_at(snapshot).areas(snapshot.program, snapshot.visit):
            shown = _shown_area(snapshot, lay, area)
            assert shown is not None  # there is a head
            paint_numbers(painter, shown, lay, "S", area.rows, area.cols, (0, 0))


def numbers_fit(style: Style, width: float, height: float) -> bool:
    """Return whether a cell is large enough for its number."""
    return width >= style.px(NUMBER_CELL[0]) and height >= style.px(NUMBER_CELL[1])


def hall_numbers_fit(style: Style, width: float, height: float) -> bool:
    """Return whether a cell of m or l is large enough for its number in a hall."""
    room = style.px(HALL_CELL[0]) - 2, style.px(HALL_CELL[1]) - 1
    return style.least > 0 and width >= room[0] and height >= room[1]


def paint_numbers(
    painter: QPainter,
    shown: Shown,
    lay: BoardLayout,
    name: str,
    rows: range,
    cols: range,
    corner: tuple[int, int],
) -> None:
    """Write the numbers of some cells into the cells.

    `shown` holds the numbers of a part of box `name` that begins at row and column `corner`;
    `rows` and `cols` select cells of the box. A number that the box would cut is left out.
    """
    box = lay.boxes[name]
    seen = lay.visible_rows()
    rows = range(max(rows.start, seen.start), min(rows.stop, seen.stop))
    width, left = box.width() / lay.depth(name), box.left()
    if TENSORS[name].of_pairs:
        seen, width, left = lay.visible_keys(), lay.cell[0], lay.col_x(0)
        cols = range(max(cols.start, seen.start), min(cols.stop, seen.stop))
    font = lay.style.code_font(number_size(lay.style, width, lay.cell[1]))
    digit = text_width(font, "0")
    room = int((width - lay.style.px(3)) / digit)
    key = ("texts", room, id(shown.words), *shown.key, shown.digits)
    texts = KEPT.get(shown.values, key, lambda: _cell_texts(shown, room))
    painter.setFont(font)
    height = QFontMetricsF(font).capHeight()
    drop = height / 2 + lay.cell[1] / 2
    # All black numbers, then all white ones: changing pens is slow.
    for ink, colour in enumerate(inks(shown.words, faded=shown.faded)):
        painter.setPen(colour)
        for row in rows:
            line = texts[row - corner[0]]
            y = lay.row_y(row) + drop
            if y - height < box.top() or y > box.bottom():
                continue
            for col in cols:
                text, own = line[col - corner[1]]
                x = left + (col + 0.5) * width - len(text) * digit / 2
                whole = box.left() <= x and x + len(text) * digit <= box.right()
                if own == ink and text and whole:
                    painter.drawText(QPointF(x, y), text)


def _cell_texts(shown: Shown, room: int) -> list[list[tuple[str, int]]]:
    """Return each number's text and whether it is written in white."""
    words = shown.words[indices(shown.shades, shown.low, shown.high)]
    white = prefers_white(words)
    return [
        [
            (cell_text(float(value), room, shown.digits), int(ink))
            for value, ink in zip(row, inks, strict=True)
        ]
        for row, inks in zip(shown.values, white, strict=True)
    ]


def cell_text(value: float, room: int, most: int = 2) -> str:
    """Return a number with as many of `most` decimals as fit `room` letters; "" if none does."""
    if np.isnan(value):
        return ""
    for digits in range(most, -1, -1):
        text = number_text(value, digits) if abs(value) >= 0.5 * 10**-digits else f"{0:.{digits}f}"
        if len(text) <= room:
            return text
    return ""


# --- tiles of large problems ------------------------------------------------------------------


def _tile_window(grid: TileGrid, kind: str, lay: BoardLayout) -> _Window:
    """Return the tiles in the colours of one state, skipped ones transparent."""
    if max(grid.Tr, grid.Tc) <= MOST_TILES:
        whole = (0.0, 0.0, grid.Tc, grid.Tr)
        sheet = tile_sheet(grid, lay.style.theme.name, kind, whole, grid.Tr, grid.Tc)
        return _Window(sheet, 0, 0, grid.Tc * grid.cols, grid.Tr * grid.rows)
    rows, keys = lay.visible
    box = lay.boxes["S"]
    place = (lay.view.x / grid.cols, lay.view.y / grid.rows, keys / grid.cols, rows / grid.rows)
    size = min(round(box.height()), MOST_TILES), min(round(box.width()), MOST_TILES)
    sheet = tile_sheet(grid, lay.style.theme.name, kind, place, *size)
    return _Window(sheet, lay.view.x, lay.view.y, keys, rows)


TILES = ResultCache(12, 20 * 2**20)
"""Sheets of the tiles of shown runs, in all states: the largest has 4 MiB, and as much again in the
sizes at which it is shown."""


def tile_sheet(
    grid: TileGrid,
    theme_name: str,
    kind: str,
    place: tuple[float, float, float, float],
    height: int,
    width: int,
) -> Sheet:
    """Return tiles in the colours of one state, sampled at `height` by `width` places.

    kind: ``empty``, ``pending``, ``used``, ``S`` or ``P``; skipped tiles are transparent except in
        the last two, which show naive.
    place: first column block and row block, and how many column and row blocks.
    """

    def make() -> Sheet:
        x, y, across, down = place
        i = (y + (np.arange(height) + 0.5) * down / height).astype(np.int64)
        j = (x + (np.arange(width) + 0.5) * across / width).astype(np.int64)
        kinds = grid.kinds_at(np.minimum(i, grid.Tr - 1), np.minimum(j, grid.Tc - 1))
        return Sheet(word_image(_tile_colours(THEMES[theme_name], kind)[kinds]))

    return TILES.of(grid, (theme_name, kind, place, height, width), make)


def _tile_colours(theme: Theme, kind: str) -> U32:
    """Return the colours of hidden, partial and full tiles in one state.

    Hidden tiles are skipped, so transparent; naive works on them as on the other tiles.
    """
    violet, green = theme.tensor("S"), theme.tensor("P")
    clear = QColor(Qt.GlobalColor.transparent)
    ground = QColor(theme.empty)
    hidden, partial, full = {
        "empty": (clear, ground, ground),
        "pending": (clear, mixed(ground, violet, 0.16), ground),
        "used": (clear, mixed(ground, green, 0.22), mixed(ground, green, 0.38)),
        "S": tuple(mixed(ground, violet, share) for share in (0.3, 0.55, 0.8)),
        "P": tuple(mixed(ground, green, share) for share in (0.3, 0.55, 0.8)),
    }[kind]
    return np.array([hidden.rgba(), partial.rgba(), full.rgba()], dtype=np.uint32)
