"""The places of the parts of the attention inspector."""

from __future__ import annotations

import math
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF

from ui.board.layout import Viewport
from ui.kit.boxes import Box, Column
from ui.look.draw import text_width
from ui.look.names import key_label, row_label
from ui.look.pieces import GAP, picture_place
from ui.look.theme import Style
from ui.panels.inspector.model import Grid, InspectorModel, grid_of, map_view

STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000)
_SHARES = (0.4, 0.33, 0.27), (0.2, 0.6, 0.2)
"""Shares of spare height for small maps, row and output: without a picture and with one."""
STRIPS = 3
"""Soft lookup, hard lookup, their difference."""
LABEL, LINE = 12, 14
"""Size of small words, and room for one of them beside the map, at scale 1."""


@dataclass(frozen=True, slots=True)
class InspectorLayout:
    """Boxes of the parts; empty ones are left out."""

    title: QRectF  # the words for the pointer
    notes: QRectF  # notes for the reader
    caption: QRectF  # above the map: the names of its axes
    cells: QRectF  # the coloured cells of the map
    grid: Grid  # the number of cells, and the block of each
    row_labels: QRectF  # row_labels, key_labels: the places of the tokens
    key_labels: QRectF
    bar: QRectF  # the colour bar with its words
    heads: tuple[tuple[int, QRectF], ...]  # small maps, each with its caption below
    heads_title: QRectF  # the title above them
    picture: QRectF  # the picture whose pieces are the keys, as the row reads it
    read: QRectF  # lines from the row to the keys that it reads
    blend: QRectF  # the output
    strips: tuple[QRectF, ...]  # the strips of the output

    def grid_cell(self, point: QPointF) -> tuple[int, int] | None:
        """Return row and column of the map's grid at a point."""
        box = self.cells
        if not box.contains(point) or box.isEmpty():
            return None
        c = int((point.x() - box.x()) / box.width() * self.grid.cols)
        return self._row(point), min(c, self.grid.cols - 1)

    def grid_row(self, point: QPointF) -> int | None:
        """Return the row of the map's grid whose label is at a point."""
        return self._row(point) if self.row_labels.contains(point) else None

    def _row(self, point: QPointF) -> int:
        share = (point.y() - self.cells.y()) / self.cells.height()
        return min(int(share * self.grid.rows), self.grid.rows - 1)

    def cell_box(self, r: int, c: int) -> QRectF:
        """Return the box of a cell of the grid."""
        wide, tall = self.cells.width() / self.grid.cols, self.cells.height() / self.grid.rows
        return QRectF(self.cells.x() + c * wide, self.cells.y() + r * tall, wide, tall)

    def head_at(self, point: QPointF) -> int | None:
        """Return the head whose small map is at a point."""
        return next((head for head, box in self.heads if box.contains(point)), None)

    def dim_at(self, point: QPointF, dims: int) -> int | None:
        """Return the dimension of the output at a point."""
        for box in self.strips:
            if box.contains(point):
                return min(int((point.x() - box.x()) / box.width() * dims), dims - 1)
        return None


def inspector_layout(
    model: InspectorModel, style: Style, rect: QRectF, view: Viewport | None = None
) -> InspectorLayout:
    """Return the places of everything; parts without space are left out."""
    px = style.px
    line = px(19)
    title = QRectF(rect.x(), rect.y(), rect.width(), line)
    deep = line * len(model.notes) if rect.height() > px(150) else 0.0
    notes = QRectF(rect.x(), title.bottom(), rect.width(), deep)
    body = QRectF(rect)
    body.setTop(notes.bottom() + px(2))
    area, heads, read, blend = _places(body, style, _SHARES[bool(model.picture)])
    if model.blend and not read.isEmpty():
        area, heads, read, blend = _for_parts(body, style, area, read)
    elif model.small is None and model.workload.heads == 1 and not heads.isEmpty():
        # A single head has no small map, so the part below also gets the map's space.
        (read if read.left() == heads.left() and area.top() == heads.top() else area).setTop(
            heads.top()
        )
        heads = QRectF()
    titled, boxes = _heads(model, style, heads)
    shown = QRectF()
    if model.picture and not (model.jacobian or model.blend) and read.height() > px(60):
        half = QRectF(read.x(), read.y() + line, read.width() / 2, read.height() - 2 * line)
        shown = picture_place(model.picture, half, right=False)
    caption, cells, grid, rows, keys, bar = _map(model, style, area, view)
    return InspectorLayout(
        title, notes, caption, cells, grid, rows, keys, bar, boxes, titled, shown, read, blend,
        _strips(style, blend),
    )  # fmt: skip


def _places(
    body: QRectF, style: Style, shares: tuple[float, float, float]
) -> tuple[QRectF, QRectF, QRectF, QRectF]:
    """Return places for map, small maps, row and output."""
    px, gap, none = style.px, style.px(12), QRectF()
    w, h = body.width(), body.height()
    if w > 1.1 * h and w > px(430):
        left = min(0.56 * w, max(h * 1.1, 0.45 * w))
        side = QRectF(body.x() + left + gap, body.y(), w - left - gap, h)
        area = QRectF(body.x(), body.y(), left, h)
        return area, *_stacked(side, style, shares)
    if h > px(420):
        heads = min(max(0.2 * h, px(96)), px(190))
        low = min(max(0.3 * h, px(170)), px(300))
        top = QRectF(body.x(), body.y(), w, heads)
        area = QRectF(body.x(), top.bottom() + gap, w, h - heads - low - 2 * gap)
        foot = QRectF(body.x(), area.bottom() + gap, w, low)
        if w < px(460):
            return area, top, foot, none
        half = (w - gap) / 2
        return (
            area, top, QRectF(foot.x(), foot.y(), half, low),
            QRectF(foot.x() + half + gap, foot.y(), half, low),
        )  # fmt: skip
    return body, none, none, none


def _for_parts(
    body: QRectF, style: Style, area: QRectF, read: QRectF
) -> tuple[QRectF, QRectF, QRectF, QRectF]:
    """Return these places if the parts of the output have all the room beside the map."""
    gap, none = style.px(12), QRectF()
    if read.left() < area.right():
        return area, none, QRectF(body.x(), read.y(), body.width(), read.height()), none
    area.setWidth(min(area.width(), 0.42 * body.width()))
    side = QRectF(body)
    side.setLeft(area.right() + gap)
    return area, none, side, none


def _stacked(
    side: QRectF, style: Style, shares: tuple[float, float, float]
) -> tuple[QRectF, QRectF, QRectF]:
    """Return small maps, row and output above each other; the less important are left out."""
    parts = tuple(
        Box(name=n, high=high, grow=share, may_go=True)
        for n, (high, share) in enumerate(zip((92, 106, 112), shares, strict=True))
    )
    placed = {box.name: place for box, place in Column(parts, gap=10).place(style, side)}
    return placed.get(0, QRectF()), placed.get(1, QRectF()), placed.get(2, QRectF())


def _heads(
    model: InspectorModel, style: Style, box: QRectF
) -> tuple[QRectF, tuple[tuple[int, QRectF], ...]]:
    """Return the place of the title and of each small map."""
    px = style.px
    if box.isEmpty():
        return QRectF(), ()
    title = QRectF(box.x(), box.y(), box.width(), px(19))
    room = box.adjusted(0, title.height() + px(2), 0, 0)
    count, gap, below = model.workload.heads, px(8), px(17)

    def side_of(columns: int) -> float:
        lines = math.ceil(count / columns)
        across = (room.width() + gap) / columns - gap
        return min(across, (room.height() + gap) / lines - gap - below)

    columns = max(range(1, count + 1), key=side_of)
    side = side_of(columns)
    if side < px(20):  # if not all fit, the heads around the current one are shown
        side = px(20)
        columns = max(1, int((room.width() + gap) / (side + gap)))
    lines = max(1, int((room.height() + gap + 0.5) / (side + below + gap)))
    shown = min(count, columns * lines)
    first = min(max(model.head - shown // 2, 0), count - shown)
    # Small maps are close together if captions have space.
    wide = text_width(style.text_font(LABEL), "+ head 00")
    step = min(max(side, wide) + gap, (room.width() + gap) / columns)
    places = ((n % columns * step, n // columns * (side + below + gap)) for n in range(shown))
    return title, tuple(
        (first + n, QRectF(room.x() + x, room.y() + y, side, side))
        for n, (x, y) in enumerate(places)
    )


def zoomed_map(
    model: InspectorModel, layout: InspectorLayout, view: Viewport, at: QPointF, factor: float
) -> Viewport:
    """Return the view of the map zoomed in such a way that a point stays where it is."""
    box, before = layout.cells, layout.grid
    across = min(max((at.x() - box.x()) / box.width(), 0.0), 1.0)
    down = min(max((at.y() - box.y()) / box.height(), 0.0), 1.0)
    zoom = map_view(model, Viewport(view.zoom * factor)).zoom
    after = grid_of(model, int(box.height()), int(box.width()), Viewport(zoom))
    x = before.left + across * (before.cols * before.wide - after.cols * after.wide)
    y = before.top + down * (before.rows * before.tall - after.rows * after.tall)
    return map_view(model, Viewport(zoom, x, y))


def panned_map(
    model: InspectorModel, layout: InspectorLayout, view: Viewport, by: QPointF
) -> Viewport:
    """Return the view of the map moved by some pixels, as a drag does."""
    cell = layout.cell_box(0, 0)
    keys, rows = by.x() / cell.width() * layout.grid.wide, by.y() / cell.height() * layout.grid.tall
    return map_view(model, Viewport(view.zoom, view.x - keys, view.y - rows))


def revealing_row(
    model: InspectorModel, layout: InspectorLayout, view: Viewport, row: int
) -> Viewport:
    """Return the view of the map moved just far enough to show a query row."""
    at, grid = model.rows.index(row), layout.grid
    shown = grid.rows * grid.tall
    if grid.top <= at < grid.top + shown:
        return view
    return map_view(model, Viewport(view.zoom, view.x, at + 0.5 - shown / 2))


def _map(
    model: InspectorModel, style: Style, area: QRectF, view: Viewport | None
) -> tuple[QRectF, QRectF, Grid, QRectF, QRectF, QRectF]:
    """Return caption, cells, grid, labels of rows and keys, and colour bar."""
    px, font = style.px, style.text_font(LABEL)
    small = area.height() < px(190)
    line = px(18)
    caption = QRectF(area.x(), area.y(), area.width(), 0 if small else line)
    bar_h = 0.0 if small else px(32)
    names = [row_label(model.workload, row) for row in _few(model.rows)]
    keys = [key_label(model.workload, key) for key in _few(range(model.keys))]
    piece = px(LINE) * (1 + GAP) if model.picture else 0.0
    left = min(max(text_width(font, name) for name in names), px(84)) + px(8) + piece
    # Words that fit side by side are horizontal; others are vertical.
    stand = min(max(text_width(font, name) for name in keys), px(72)) + px(6) + piece
    if area.height() < px(260):
        stand = line if not model.tokens else 0.0
    box = QRectF(
        area.x() + left, caption.bottom() + px(7), area.width() - left - px(4),
        area.height() - caption.height() - bar_h - stand - px(13),
    )  # fmt: skip
    ratio = min(max(model.keys / len(model.rows), 0.6), 1.8)
    width = max(min(box.width(), box.height() * ratio), 1.0)
    height = max(min(box.height(), width / ratio), 1.0)
    grid = grid_of(model, int(height), int(width), view)
    cells = QRectF(box.x(), box.y(), width, height)
    rows = QRectF(area.x(), cells.y(), left - px(6), height)
    cols = QRectF(cells.x(), cells.bottom() + px(6), width, stand)
    bar = QRectF()
    if bar_h:
        bar = QRectF(
            area.x() + px(2), cols.bottom() + px(4), max(width + left, 0) - px(4), bar_h - px(4)
        )
    return caption, cells, grid, rows, cols, bar


def _few(numbers: range) -> range:
    """Return about 100 of some numbers, including the last: enough to know how wide labels are."""
    return numbers[:: -max(len(numbers) // 100, 1)]


def _strips(style: Style, box: QRectF) -> tuple[QRectF, ...]:
    if box.isEmpty():
        return ()
    px = style.px
    left = min(px(118), 0.45 * box.width())
    top = box.y() + px(38)
    pitch = min((box.bottom() - top) / STRIPS, px(46))
    return tuple(
        QRectF(box.x() + left, top + n * pitch + px(1), box.width() - left, pitch - px(5))
        for n in range(STRIPS)
    )


def label_step(size: float, least: float) -> int:
    """Return n such that every n-th label fits, if cells are `size` and labels need `least`."""
    return next((step for step in STEPS if step * size >= least), 0)
