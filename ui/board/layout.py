"""Places of everything on the board: pure geometry, no painting and no numbers.

The picture keeps the geometry of the mathematics. A row block is one horizontal band through
Q, S, m, l and O, a column block one vertical band through Kᵀ, S and Vᵀ: all boxes of a band
share one scale, which `Viewport` zooms and pans. Depth (d, dv) is never zoomed. If one tensor has
keys and values, it lies in the place of Kᵀ, and the place of Vᵀ is empty.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, floor

from PySide6.QtCore import QPointF, QRectF

from simulator.problem.workload import Workload
from simulator.program.algorithms import TENSORS, algorithm_of
from simulator.run.snapshot import Cell
from simulator.run.trace import is_detailed
from ui.board.beside import (
    LINE,
    MOST_THINNED,
    TOKEN_SIZE,
    corner_places,
    halves,
    labels_beside,
    least_size,
)
from ui.board.sizes import NUMBER_CELL, BoardFrame, BoxSizes, Margins, Tokens, margins_of, sizes_of
from ui.look.pieces import picture_of
from ui.look.theme import Style

MOST_ROWS = 4096
"""Rows of an input drawn one by one; more are averaged."""
FEWEST_CELLS = 4
"""Rows and keys that the deepest zoom still shows."""
NUMBER_SIZES = (11.0, 28.0)
"""Least and largest size of the number in a cell, at scale 1."""
_NUMBER_LETTERS, _LETTER = 6.0, 0.6
"""Letters that a cell has room for as its number grows, and the width of a letter at size 1."""
_LAYER_GAP = 3.0
"""Gap between two tensors of one strip, at scale 1."""
_FULL_GROWTH = 24.0
"""Growth of a number's size that would double the titles; no number grows so much."""
_WITH_TOKENS = (
    (Tokens.ROOMY, True), (Tokens.ROOMY, False), (Tokens.SMALL, True), (Tokens.NONE, True),
)  # fmt: skip
"""Ways to place tokens, each with the line above the board or without, the best first."""


@dataclass(frozen=True, slots=True)
class Viewport:
    """The part of the score matrix on show."""

    zoom: float = 1.0  # 1 shows the whole matrix
    x: float = 0.0  # x, y: first visible key and row; between two cells while panning
    y: float = 0.0


@dataclass(frozen=True, slots=True)
class BoardLayout:
    """Places of everything on the board, in the painter's coordinates."""

    rect: QRectF  # the whole board
    style: Style  # of its words and lines
    view: Viewport  # the view asked for, moved inside the matrix
    shape: tuple[int, int, int, int]  # ``Nq, Nk, d, dv``
    visible: tuple[float, float]  # how many rows and keys are visible
    cell: tuple[float, float]  # width and height of a score in pixels
    keys: str  # keys, values: the boxes that have the keys, and the values
    values: str
    # ``Q K V S m l O``; without m where there is no softmax; one box for keys and values if they
    # are one tensor. Other columns in the place of m and l, and tensors outside of an input or
    # of O, have their own boxes
    boxes: dict[str, QRectF]
    labels: dict[str, QRectF]  # titles of all boxes but S
    # row_margin, key_margin: beside Q and above Kᵀ: tokens, or numbers of blocks; null where there
    # is no room
    row_margin: QRectF
    key_margin: QRectF
    growth: float  # how much larger titles, tokens and numbers of blocks are beside large cells
    tokens: bool  # whether there is room for tokens
    token_size: float  # size of tokens at scale 1
    token_step: int  # with 3, every third token is written
    # room of tokens that stand further apart than their cells; null if tokens are beside cells
    token_room: QRectF
    header: QRectF  # header, caption: lines of text above and below; null where there is no room
    caption: QRectF
    inset: QRectF  # magnified current tile of a large problem; null for a small one
    legend: QRectF  # room for the legend; null where there is none
    # partials, split_names: below Vᵀ: O and LSE of the splits in HBM, and the splits' names under
    # them; null without splits
    partials: QRectF
    split_names: QRectF
    # whether words do not say where numbers lie, and weights have the inspector's colours
    plain: bool = False

    def row_y(self, row: float) -> float:
        """Return where a row begins; outside the boxes if the row is not visible."""
        return self.boxes["S"].top() + (row - self.view.y) * self.cell[1]

    def col_x(self, key: float) -> float:
        """Return where a key begins."""
        return self.boxes["S"].left() + (key - self.view.x) * self.cell[0]

    def row_band(self, first: str, rows: range, last: str = "") -> QRectF:
        """Return the visible part of some rows, from box `first` to box `last`; may be null.

        On a small board some tensors have no box.
        """
        box = self.boxes.get(first, QRectF()).united(self.boxes.get(last or first, QRectF()))
        top, bottom = self.row_y(rows.start), self.row_y(rows.stop)
        return _snapped_in(box, QRectF(box.left(), top, box.width(), bottom - top))

    def col_band(self, name: str, keys: range) -> QRectF:
        """Return the visible part of some keys in a box; may be null."""
        box = self.boxes.get(name, QRectF())
        left, right = self.col_x(keys.start), self.col_x(keys.stop)
        return _snapped_in(box, QRectF(left, box.top(), right - left, box.height()))

    def value_band(self, keys: range) -> QRectF:
        """Return the visible part of the values of some keys; may be null."""
        band = self.col_band(self.values, keys)
        if self.values == self.keys:  # a value is the beginning of its key
            band.setHeight(band.height() * self.shape[3] / self.shape[2])
        return band

    def tile(self, rows: range, keys: range) -> QRectF:
        """Return the visible part of a tile of the score matrix; may be null."""
        return self.row_band("S", rows).intersected(self.col_band("S", keys))

    def place(self, cell: Cell) -> QRectF:
        """Return the visible part of one cell, at least a pixel; null if it is out of sight."""
        name, along = self.box_of(cell.tensor), range(cell.row, cell.row + 1)
        if cell.spec.of_pairs:
            return self.tile(along, range(cell.col, cell.col + 1))
        if not name:  # there is no m without a softmax
            return QRectF()
        box = self.boxes[name]
        first, last = (cell.col / self.depth(name), (cell.col + 1) / self.depth(name))
        if "key" in cell.at:
            deep = QRectF(box.left(), box.top() + first * box.height(), box.width(),
                          (last - first) * box.height())  # fmt: skip
            return self.col_band(name, along).intersected(_snapped_in(box, deep))
        wide = QRectF(box.left() + first * box.width(), box.top(),
                      (last - first) * box.width(), box.height())  # fmt: skip
        return self.row_band(name, along).intersected(_snapped_in(box, wide))

    def visible_rows(self) -> range:
        """Return the rows that are visible, at least in part."""
        return _whole(self.view.y, self.visible[0], self.shape[0])

    def visible_keys(self) -> range:
        """Return the keys that are visible, at least in part."""
        return _whole(self.view.x, self.visible[1], self.shape[1])

    def box_of(self, tensor: str) -> str:
        """Return the box in which a tensor is seen; empty if there is none."""
        if tensor in self.boxes or tensor not in TENSORS:
            return tensor if tensor in self.boxes else ""
        spec = TENSORS[tensor]
        if not spec.at or spec.of_pairs or TENSORS[spec.at].axes != spec.axes:
            return "S" if spec.of_pairs else ""
        return self.box_of(spec.at)

    def depth(self, name: str) -> int:
        """Return how many numbers of a row or key lie side by side in a box."""
        return {"depth": self.shape[2], "value": self.shape[3]}.get(TENSORS[name].axes[-1], 1)


def board_layout(
    workload: Workload, style: Style, rect: QRectF, view: Viewport | None = None
) -> BoardLayout:
    """Return the places of everything on the board.

    view: the part of the score matrix on show; the whole matrix by default.

    Notes
    -----
    When room is short, the less important parts go first: the legend, the numbers of blocks,
    the second line of the caption, the caption, the line above, the sizes in titles. Tokens are
    the last to go: they are made smaller first, then every second one is left out.
    """
    return _laid_out(workload, style, rect.getRect(), view or Viewport())


@lru_cache(maxsize=1)  # a step asks several times for the same layout
def _laid_out(
    w: Workload, style: Style, place: tuple[float, float, float, float], view: Viewport
) -> BoardLayout:
    rect = QRectF(*place)
    view = clamped((w.seqlen_q, w.seqlen_k, w.head_dim, w.value_dim), view)
    # With margins for tokens the cells are smaller, maybe too small for tokens.
    choices = _WITH_TOKENS if w.has_tokens or picture_of(w) else ((Tokens.NONE, True),)
    for tokens, header in choices:
        out = _arranged(w, style, rect, view, tokens, header=header)
        if out.tokens:
            break
    growth = int(4 + 4 * (number_size(style, *out.cell) - NUMBER_SIZES[0]) / _FULL_GROWTH) / 4
    if growth == 1 or {*algorithm_of(w).outside.values()} & {*out.boxes}:
        return out  # beside half a strip there is no room for larger titles
    larger = _arranged(w, style, rect, view, tokens, growth, header=header)
    # A flat Kᵀ takes its title's room from Q, which a larger letter may need.
    return out if larger.labels["Q"].width() < style.px(13 * growth) else larger


def number_size(style: Style, width: float, height: float) -> float:
    """Return the size, at scale 1, of the number in a cell: numbers grow with cells."""
    least, most = NUMBER_SIZES
    across = (width / style.scale - 3) / (_NUMBER_LETTERS * _LETTER)
    down = least * height / style.scale / NUMBER_CELL[1]
    return min(max(min(across, down), least), most)


def clamped(shape: tuple[int, int, int, int], view: Viewport) -> Viewport:
    """Return the view with nothing outside the matrix."""
    most = max(1.0, max(shape[:2]) / FEWEST_CELLS)
    zoom = min(max(view.zoom, 1.0), most)
    rows, keys = visible_count(shape[0], zoom), visible_count(shape[1], zoom)
    x = min(max(view.x, 0.0), shape[1] - keys)
    y = min(max(view.y, 0.0), shape[0] - rows)
    return Viewport(zoom, x, y)


def revealing(layout: BoardLayout, cell: Cell) -> Viewport:
    """Return the view moved to a cell that is out of sight, so that the cell is in the middle."""
    x, y = layout.view.x, layout.view.y
    rows, keys = layout.visible
    row, key = cell.at.get("row"), cell.at.get("key")
    if row is not None and not y <= row <= y + rows - 1:
        y = row + 0.5 - rows / 2
    if key is not None and not x <= key <= x + keys - 1:
        x = key + 0.5 - keys / 2
    return clamped(layout.shape, Viewport(layout.view.zoom, x, y))


def following(layout: BoardLayout, rows: range, keys: range) -> Viewport:
    """Return the view moved to a tile that is not all in sight, so that the tile is in the middle.

    A tile larger than the view is in sight if it fills the view; else the view goes to the
    beginning of the tile.
    """
    places = [
        _followed(start, length, span)
        for start, length, span in (
            (layout.view.x, layout.visible[1], keys),
            (layout.view.y, layout.visible[0], rows),
        )
    ]
    return clamped(layout.shape, Viewport(layout.view.zoom, *places))


def framing(
    shape: tuple[int, int, int, int], rows: tuple[float, float], keys: tuple[float, float]
) -> Viewport:
    """Return the view in which some rows and keys are in sight, in its middle if possible."""
    zoom = min(
        count / max(last - first, 1.0)
        for count, (first, last) in zip(shape[:2], (rows, keys), strict=True)
    )
    view = clamped(shape, Viewport(zoom))
    places = [
        (first + last - visible_count(count, view.zoom)) / 2
        for count, (first, last) in ((shape[1], keys), (shape[0], rows))
    ]
    return clamped(shape, Viewport(view.zoom, *places))


def _followed(start: float, length: float, span: range) -> float:
    if len(span) > length:
        return start if span.start <= start <= span.stop - length else float(span.start)
    if start <= span.start and span.stop <= start + length:
        return start
    return (span.start + span.stop - length) / 2


def zoomed(
    workload: Workload, style: Style, rect: QRectF, view: Viewport, point: QPointF, factor: float
) -> Viewport:
    """Return the view zoomed by `factor`; the cell under `point` stays there."""
    before = board_layout(workload, style, rect, view)
    box = before.boxes["S"]
    at = QPointF(
        min(max(point.x(), box.left()), box.right()), min(max(point.y(), box.top()), box.bottom())
    )
    key = before.view.x + (at.x() - box.left()) / before.cell[0]
    row = before.view.y + (at.y() - box.top()) / before.cell[1]
    after = board_layout(workload, style, rect, replace(before.view, zoom=view.zoom * factor))
    box = after.boxes["S"]  # not always the old box: tokens come and go with the zoom
    x = key - (at.x() - box.left()) / after.cell[0]
    y = row - (at.y() - box.top()) / after.cell[1]
    return clamped(after.shape, Viewport(after.view.zoom, x, y))


def panned(layout: BoardLayout, by: QPointF) -> Viewport:
    """Return the view moved by some pixels, as a drag does."""
    view, (width, height) = layout.view, layout.cell
    return clamped(
        layout.shape, Viewport(view.zoom, view.x - by.x() / width, view.y - by.y() / height)
    )


def locate(layout: BoardLayout, point: QPointF) -> Cell | None:
    """Return the cell under a point; None beside the boxes."""
    for name, box in layout.boxes.items():
        if not box.contains(point):
            continue
        row = _index(layout.view.y + (point.y() - box.top()) / layout.cell[1], layout.shape[0])
        key = _index(layout.view.x + (point.x() - box.left()) / layout.cell[0], layout.shape[1])
        depth, spec = layout.depth(name), TENSORS[name]
        if spec.of_pairs:
            return Cell(name, row, key)
        if "key" in spec.axes:
            return Cell(name, key, _index((point.y() - box.top()) / box.height() * depth, depth))
        return Cell(name, row, _index((point.x() - box.left()) / box.width() * depth, depth))
    return None


def _index(place: float, count: int) -> int:
    return min(max(floor(place), 0), count - 1)


def visible_count(count: int, zoom: float) -> float:
    """Return how many rows, or keys, a zoomed view shows."""
    return max(count / zoom, min(count, FEWEST_CELLS))


def _whole(start: float, length: float, count: int) -> range:
    return range(max(floor(start), 0), min(-floor(-(start + length)), count))


def _snapped(rect: QRectF) -> QRectF:
    """Return the rectangle with edges on whole pixels, at least one apart.

    So equal lines look equal, and a block that is narrower than a pixel can still be seen.
    """
    left, top = floor(rect.left() + 0.5), floor(rect.top() + 0.5)
    right, bottom = floor(rect.right() + 0.5), floor(rect.bottom() + 0.5)
    return QRectF(left, top, max(right - left, 1), max(bottom - top, 1))


def _snapped_in(box: QRectF, rect: QRectF) -> QRectF:
    """Return the part of a rectangle, on whole pixels, that lies in `box`; may be null.

    Otherwise the last rows of many would be rounded out of their box.
    """
    out = _snapped(rect)
    if rect.top() < box.bottom() <= out.top():
        out.moveBottom(box.bottom())
    if rect.left() < box.right() <= out.left():
        out.moveRight(box.right())
    return out.intersected(box)


def _arranged(
    w: Workload,
    style: Style,
    rect: QRectF,
    view: Viewport,
    tokens: Tokens,
    growth: float = 1.0,
    *,
    header: bool = True,
) -> BoardLayout:
    px = style.px
    frame = BoardFrame.of(w, style, rect, header=header)
    content, gap = frame.content, frame.gap
    margins = margins_of(w, style, frame, tokens, growth)
    visible = visible_count(w.seqlen_q, view.zoom), visible_count(w.seqlen_k, view.zoom)
    sizes = sizes_of(w, style, frame, margins, tokens, growth, visible[0])
    keys, values = algorithm_of(w).keys, algorithm_of(w).values
    whole, low = _strips(sizes, margins, frame, keys, values)
    boxes = dict(whole)
    for name, other in sizes.outside.items():
        boxes[name], boxes[other] = halves(whole[name], whole["S"], round(px(_LAYER_GAP)))
    s = boxes["S"]
    beside = boxes[(*sizes.columns, "O")[0]].left()
    corner = QRectF(beside, low.top(), content.right() - beside, low.height())
    inset, legend = corner_places(corner, px, not is_detailed(w))
    if values == keys:  # nothing of the inputs lies there
        low.setHeight(0.0)
    partials = split_names = QRectF()
    if sizes.partials:
        height = sizes.partials - px(10)
        partials = _snapped(QRectF(low.left(), low.bottom() + px(10), low.width(), height))
        if sizes.split_names:
            height = sizes.split_names - px(2)
            split_names = QRectF(low.left(), partials.bottom() + px(2), low.width(), height)
    below = max(low.bottom(), partials.bottom() + sizes.split_names)
    # Tokens stand beside their cells, or further apart where cells are lower than letters.
    cell = s.width() / visible[1], s.height() / visible[0]
    small, room = least_size(style), min(cell) / style.scale
    step, spread = ceil(small / room), QRectF()
    if style.least and tokens == Tokens.SMALL and step > 1:
        need = px(LINE * small)
        if (
            visible[0] * need <= content.height() - px(6)
            and visible[1] * need <= content.width() - margins.left
        ):
            spread, step = content, 1
    named = {
        Tokens.ROOMY: room >= TOKEN_SIZE,
        Tokens.SMALL: step <= MOST_THINNED,
        Tokens.NONE: False,
    }
    left, top = margins.left, margins.top
    return BoardLayout(
        rect=rect,
        style=style,
        view=view,
        shape=(w.seqlen_q, w.seqlen_k, w.head_dim, w.value_dim),
        visible=visible,
        cell=cell,
        keys=keys,
        values=values,
        boxes=boxes,
        labels=labels_beside(
            boxes, (keys, values), sizes.outside, lambda size: px(size) * growth, content
        ),
        row_margin=QRectF(whole["Q"].left() - left, s.top(), left - px(4), s.height())
        if left
        else QRectF(),
        key_margin=QRectF(s.left(), whole[keys].top() - top, s.width(), top - px(3))
        if top
        else QRectF(),
        growth=growth,
        tokens=named[tokens],
        token_size=min(max(room, small), margins.token),
        token_step=step,
        token_room=spread,
        header=frame.header,
        caption=QRectF(content.left(), below + gap / 2, content.width(), frame.caption_height)
        if frame.caption_height
        else QRectF(),
        inset=inset,
        legend=legend,
        partials=partials,
        split_names=split_names,
    )


def _strips(
    sizes: BoxSizes, margins: Margins, frame: BoardFrame, keys: str, values: str
) -> tuple[dict[str, QRectF], QRectF]:
    """Return the boxes in the middle of their room, and the place of Vᵀ.

    One tensor of keys and values has one box, in the place of Kᵀ; the place of Vᵀ is then free.
    """
    content, gap = frame.content, frame.gap
    wide = margins.left + sizes.q + sizes.s + sizes.o + gap + sizes.between
    high = margins.top + sizes.k + sizes.rows + sizes.v + 2 * gap
    high += sizes.partials + sizes.split_names
    x = content.left() + (content.width() - wide) / 2
    y = content.top() + max(0.0, (content.height() - high) / 2)
    q_x, s_y = x + margins.left, y + margins.top + sizes.k + gap
    s_x = q_x + sizes.q + gap
    low = QRectF(s_x, s_y + sizes.rows + gap, sizes.s, sizes.v)
    boxes = {
        "S": QRectF(s_x, s_y, sizes.s, sizes.rows),
        "Q": QRectF(q_x, s_y, sizes.q, sizes.rows),
        values: low,
        keys: QRectF(s_x, y + margins.top, sizes.s, sizes.k),
    }
    for n, name in enumerate(sizes.columns):
        at = s_x + sizes.s + gap + n * (sizes.column + gap / 2)
        boxes[name] = QRectF(at, s_y, sizes.column, sizes.rows)
    boxes["O"] = QRectF(s_x + sizes.s + sizes.between, s_y, sizes.o, sizes.rows)
    return {name: _snapped(box) for name, box in boxes.items()}, _snapped(low)
