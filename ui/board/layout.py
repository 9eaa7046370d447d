"""Where everything on the board lies: pure geometry, no painting and no numbers.

The picture keeps the geometry of the mathematics. A row block is one horizontal band through
Q, S, m, l and O, a column block one vertical band through Kᵀ, S and Vᵀ: all boxes of a band
share one scale, which `Viewport` zooms and pans. Depth (d, dv) is never zoomed. If one tensor has
keys and values, it lies where Kᵀ does, and nothing in the place of Vᵀ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import lru_cache
from math import ceil, floor

from PySide6.QtCore import QPointF, QRectF

from simulator.problem.workload import Workload
from simulator.program.algorithms import TENSORS, algorithm_of
from simulator.run.snapshot import Cell
from simulator.run.trace import is_detailed
from ui.board.beside import (
    LEAD,
    LINE,
    MOST_THINNED,
    TOKEN_SIZE,
    corner_places,
    halves,
    labels_beside,
    least_size,
    room_for,
    shares,
    within,
)
from ui.look.pieces import picture_of
from ui.look.theme import Style

MOST_ROWS = 4096
"""Rows of an input drawn one by one; more are averaged."""
FEWEST_CELLS = 4
"""Rows and keys that the deepest zoom still shows."""
NUMBER_CELL = (34.0, 20.0)
"""Smallest width and height of a cell, at scale 1, with its number inside."""
HALL_CELL = (41.0, 13.0)
"""The same of a cell of m or l in a hall, where the numbers of the rows at hand are read."""
NUMBER_SIZES = (11.0, 28.0)
"""Size of the number in the smallest such cell and in the largest, at scale 1."""
_NUMBER_LETTERS, _LETTER = 6.0, 0.6
"""Letters that a cell keeps room for when its number grows, and how wide one is at size 1."""
_STRETCHED = 1.2
"""How many times as wide as high a cell may be in a hall, which is wider than high."""
_FULL_GROWTH = 24.0
"""By how much a number grows until titles are twice as large, which none does."""
_SMALL_MARGIN, _SMALL_SHARE = 6.0, 0.15
"""Room for small tokens, in their sizes, and as a share of the board's width."""
_STRIPS = (34.0, 22.0)
"""Least width of Q and O at scale 1, and where small tokens need the room more."""
_PIECE = 24.0
"""Room for the piece of a picture beside tokens, at scale 1."""
_LAYERED, _LAYER_GAP = 1.5, 3.0
"""How much more of the room a strip of two tensors takes, and the gap between them at scale 1."""
_ROOM_OUTSIDE, _LEAST_OUTSIDE = (420.0, 320.0), 31.0
"""Width and height, at scale 1, from which what lies outside of a tensor has a box of its own, and
the least height of such a box."""


class Tokens(Enum):
    """How tokens may stand beside the cells, the best first."""

    ROOMY = auto()
    SMALL = auto()
    NONE = auto()


_WITH_TOKENS = (
    (Tokens.ROOMY, True), (Tokens.ROOMY, False), (Tokens.SMALL, True), (Tokens.NONE, True),
)  # fmt: skip
"""Ways to place tokens, each with the line above the board or without, the best first."""


@dataclass(frozen=True, slots=True)
class Viewport:
    """What part of the score matrix is shown."""

    zoom: float = 1.0  # 1 shows the whole matrix
    x: float = 0.0  # x, y: first visible key and row; between two cells while panning
    y: float = 0.0


@dataclass(frozen=True, slots=True)
class BoardLayout:
    """Places of everything on the board, in the painter's coordinates."""

    rect: QRectF  # the whole board
    scale: float  # pixels for one pixel of the design
    view: Viewport  # as asked for, moved inside the matrix
    shape: tuple[int, int, int, int]  # ``Nq, Nk, d, dv``
    visible: tuple[float, float]  # how many rows and keys are visible
    cell: tuple[float, float]  # width and height of a score in pixels
    keys: str  # keys, values: the boxes that have the keys, and the values
    values: str
    # ``Q K V S m l O``; without m where there is no softmax; one box for keys and values if they
    # are one tensor. Other columns in the place of m and l, and what lies outside of an input or of
    # O, have boxes of their own
    boxes: dict[str, QRectF]
    labels: dict[str, QRectF]  # titles of all boxes but S
    # row_margin, key_margin: beside Q and above Kᵀ: tokens, or numbers of blocks; null where there
    # is no room
    row_margin: QRectF
    key_margin: QRectF
    growth: float  # how much larger titles, tokens and numbers of blocks are beside large cells
    tokens: bool  # whether there is room for tokens
    token_size: float  # their size at scale 1
    token_step: int  # of how many tokens one is written
    # where tokens stand that are further apart than their cells; null where they are beside these
    token_room: QRectF
    header: QRectF  # header, caption: lines of text above and below; null where there is no room
    caption: QRectF
    inset: QRectF  # magnified current tile of a large problem; null for a small one
    legend: QRectF  # room for the legend; null where there is none
    # partials, split_names: below Vᵀ: what splits leave in HBM, and their names under it; null
    # without splits
    partials: QRectF
    split_names: QRectF
    plain: bool = False  # whether words say nothing of where numbers lie

    def row_y(self, row: float) -> float:
        """Return where a row begins; outside the boxes for one that is not visible."""
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
        """Return the visible part of some keys in a box; may be null, as that of rows."""
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
        """Return the visible part of one cell, at least a pixel of it; null where none is."""
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
        """Return the rows of which anything is visible."""
        return _whole(self.view.y, self.visible[0], self.shape[0])

    def visible_keys(self) -> range:
        """Return the keys of which anything is visible."""
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

    view: what part of the score matrix is shown; all of it by default.

    Notes
    -----
    What matters less goes first when there is little room: the legend, the numbers of blocks,
    the second line of the caption, the caption, the line above, the sizes in titles. Tokens are
    the last to go: they are made smaller first, then every second one is left out.
    """
    return _laid_out(workload, style, rect.getRect(), view or Viewport())


@lru_cache(maxsize=1)  # a step asks several times for the same
def _laid_out(
    w: Workload, style: Style, place: tuple[float, float, float, float], view: Viewport
) -> BoardLayout:
    rect = QRectF(*place)
    view = clamped((w.seqlen_q, w.seqlen_k, w.head_dim, w.value_dim), view)
    # With margins for tokens the cells are smaller, maybe too small to need them.
    choices = _WITH_TOKENS if w.has_tokens or picture_of(w) else ((Tokens.NONE, True),)
    for tokens, header in choices:
        out = _arranged(w, style, rect, view, tokens, header=header)
        if out.tokens:
            break
    growth = int(4 + 4 * (number_size(style, *out.cell) - NUMBER_SIZES[0]) / _FULL_GROWTH) / 4
    if growth == 1 or {*algorithm_of(w).outside.values()} & {*out.boxes}:
        return out  # beside half a strip there is no room for larger titles
    return _arranged(w, style, rect, view, tokens, growth, header=header)


def columns_of(w: Workload) -> tuple[str, ...]:
    """Return the numbers of every row that have a box; naive attention keeps none of a softmax."""
    algorithm = algorithm_of(w)
    kept = not algorithm.stores_scores or algorithm.backward
    return algorithm.columns if kept else ()


def number_size(style: Style, width: float, height: float) -> float:
    """Return the size, at scale 1, of the number in a cell: it grows with the cell."""
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
    """Return the view moved as far as it takes to show a cell, no further than to the middle."""
    x, y = layout.view.x, layout.view.y
    rows, keys = layout.visible
    row, key = cell.at.get("row"), cell.at.get("key")
    if row is not None and not y <= row <= y + rows - 1:
        y = row + 0.5 - rows / 2
    if key is not None and not x <= key <= x + keys - 1:
        x = key + 0.5 - keys / 2
    return clamped(layout.shape, Viewport(layout.view.zoom, x, y))


def following(layout: BoardLayout, rows: range, keys: range) -> Viewport:
    """Return the view moved to a tile that is not all in sight, so that it is in the middle.

    A tile that is larger than the view is in sight where it fills it; else the view goes to its
    beginning.
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
    """Return the view zoomed by `factor` with what lies under `point` staying there."""
    before = board_layout(workload, style, rect, view)
    box = before.boxes["S"]
    at = QPointF(
        min(max(point.x(), box.left()), box.right()), min(max(point.y(), box.top()), box.bottom())
    )
    key = before.view.x + (at.x() - box.left()) / before.cell[0]
    row = before.view.y + (at.y() - box.top()) / before.cell[1]
    after = board_layout(workload, style, rect, replace(before.view, zoom=view.zoom * factor))
    box = after.boxes["S"]  # not always the old one: tokens come and go with the zoom
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
    """Return what lies in `box` of a rectangle on whole pixels; may be null.

    The last rows of many would else be rounded out of their box.
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
    Nq, Nk, d, dv = w.seqlen_q, w.seqlen_k, w.head_dim, w.value_dim
    large = not is_detailed(w)
    # Room in pixels of the design: what fits is decided in these.
    wide, high = rect.width() / style.scale, rect.height() / style.scale
    # A run with faults is marked as such at any size. In a hall the picture has the room of words.
    hall = style.least > 0
    pad = px(4 if hall else 12 if min(wide, high) >= 360 else 6)
    gap, line = px(5 if hall else 10 if wide >= 420 else 6), px(20)
    above = line if (high >= 230 and header and not hall) or w.faults.on else 0.0
    lines = 0 if high < 280 or hall else 1 if wide >= 900 or high < 400 else 2
    caption = lines * px(18)
    numbers = wide >= 420 and high >= 320
    small, token = least_size(style), TOKEN_SIZE * growth
    if tokens != Tokens.NONE:
        left = px((78 if wide >= 560 else 52) * growth)
        top = px((64 if high >= 420 else 44) * growth)
        if tokens == Tokens.SMALL:
            side = max(_SMALL_MARGIN * small, _SMALL_SHARE * wide)
            left, top, token = min(left, px(side)), min(top, px(side)), side / _SMALL_MARGIN
            token = min(token, TOKEN_SIZE)
        if style.least:  # the last row reads whole words
            longest = px(room_for((*w.tokens, *w.query_tokens), style, token) + LEAD + 6)
            left, top = max(left, longest), max(top, longest)
        if picture_of(w) and tokens == Tokens.ROOMY:
            left, top = left + px(_PIECE * growth), top + px(_PIECE * growth)
    else:
        left = px((8 + 7 * len(str(w.grid.Tr - 1))) * growth) if numbers else 0.0
        top = px(16 * growth) if numbers else 0.0

    content = rect.adjusted(pad, pad + above, -pad, -pad - caption)
    room_h = content.height() - top - 2 * gap - (gap / 2 if caption else 0)
    part_h, name_h = _partials_heights(w, style, room_h)
    room_h -= part_h + name_h
    visible = visible_count(Nq, view.zoom), visible_count(Nk, view.zoom)
    statistic = px(18 if wide >= 420 else 12) * growth
    if wide >= 620 and room_h / 2 >= visible[0] * px(NUMBER_CELL[1]):
        statistic = px(46) * growth  # few rows: m and l hold their numbers, too
    elif hall and 0.73 * room_h >= visible[0] * px(HALL_CELL[1]):
        statistic = px(HALL_CELL[0])
    names, outside = columns_of(w), algorithm_of(w).outside
    if outside and (wide < _ROOM_OUTSIDE[0] or high < _ROOM_OUTSIDE[1]):
        names, outside = (), {}
    between = len(names) * (statistic + gap / 2) + 1.5 * gap
    room_w = content.width() - left - gap - between
    # What lies outside of a tensor is as wide as it: the two share a strip.
    layers = 1 + bool(outside)
    strip = px(_STRIPS[tokens == Tokens.SMALL]) * layers
    least_share, most_w, most_h = (0.11, 0.18, 0.13) if hall else (0.12, 0.20, 0.18)
    thin, high_w, high_h = (
        share * _LAYERED ** (layers - 1) for share in (least_share, most_w, most_h)
    )
    columns = shares(room_w, layers * d, layers * dv, Nk, low=thin, high=high_w, least=strip)
    # The magnified tile of a large problem stands beside Vᵀ, so that is made taller.
    tall = 0.27 if large and high >= 320 else thin
    least_h = px(_LEAST_OUTSIDE) * layers if outside else px(24)
    rows = shares(
        room_h, layers * d, layers * dv, Nq, low=thin, high=high_h, least=least_h, last=tall
    )
    s_w, s_h = within(columns[1], rows[1], Nk / Nq)
    if hall:
        s_w = min(columns[1], _STRETCHED * s_w)
    q_w, o_w = (
        min(share, max(layers * max(n * s_w / Nk, n * s_h / Nq, 0.2 * s_w), strip))
        for share, n in ((columns[0], d), (columns[2], dv))
    )
    tall_v = min(tall * room_h, 0.6 * s_w) if large else 0.0
    k_h, v_h = (
        min(share, max(layers * max(n * s_w / Nk, n * s_h / Nq, 0.2 * s_h), least_h, least))
        for share, n, least in ((rows[0], d, 0.0), (rows[2], dv, tall_v))
    )
    keys, values = algorithm_of(w).keys, algorithm_of(w).values

    total_w = left + q_w + s_w + o_w + gap + between
    total_h = top + k_h + s_h + v_h + 2 * gap + part_h + name_h
    x = content.left() + (content.width() - total_w) / 2
    y = content.top() + max(0.0, (content.height() - total_h) / 2)
    q_x, s_y = x + left, y + top + k_h + gap
    s_x = q_x + q_w + gap
    o_x, v_y = s_x + s_w + between, s_y + s_h + gap
    boxes = {
        "S": QRectF(s_x, s_y, s_w, s_h),
        "Q": QRectF(q_x, s_y, q_w, s_h),
        values: QRectF(s_x, v_y, s_w, v_h),
        keys: QRectF(s_x, y + top, s_w, k_h),
    }
    for n, name in enumerate(names):
        at = s_x + s_w + gap + n * (statistic + gap / 2)
        boxes[name] = QRectF(at, s_y, statistic, s_h)
    boxes["O"] = QRectF(o_x, s_y, o_w, s_h)
    whole = {name: _snapped(box) for name, box in boxes.items()}
    boxes = dict(whole)
    for name, other in outside.items():
        boxes[name], boxes[other] = halves(whole[name], whole["S"], round(px(_LAYER_GAP)))
    s = boxes["S"]
    cell = s.width() / visible[1], s.height() / visible[0]
    low = _snapped(QRectF(s_x, v_y, s_w, v_h))
    beside = boxes[(*names, "O")[0]].left()
    corner = QRectF(beside, low.top(), content.right() - beside, low.height())
    inset, legend = corner_places(corner, px, large)
    if values == keys:  # nothing of the inputs lies there
        low.setHeight(0.0)
    partials = split_names = QRectF()
    if part_h:
        partials = _snapped(QRectF(low.left(), low.bottom() + px(10), low.width(), part_h - px(10)))
        split_names = QRectF(low.left(), partials.bottom() + px(2), low.width(), name_h - px(2))
    if not name_h:
        split_names = QRectF()
    below = max(low.bottom(), partials.bottom() + name_h)
    room = min(cell) / style.scale
    step = ceil(small / room)
    spread = QRectF()
    if style.least and tokens == Tokens.SMALL and step > 1:
        need = px(LINE * small)
        if (
            visible[0] * need <= content.height() - px(6)
            and visible[1] * need <= content.width() - left
        ):
            spread, step = content, 1
    named = {
        Tokens.ROOMY: room >= TOKEN_SIZE,
        Tokens.SMALL: step <= MOST_THINNED,
        Tokens.NONE: False,
    }
    return BoardLayout(
        rect=rect,
        scale=style.scale,
        view=view,
        shape=(Nq, Nk, d, dv),
        visible=visible,
        cell=cell,
        keys=keys,
        values=values,
        boxes=boxes,
        labels=labels_beside(
            boxes, (keys, values), outside, lambda size: px(size) * growth, content
        ),
        row_margin=QRectF(whole["Q"].left() - left, s.top(), left - px(4), s.height())
        if left
        else QRectF(),
        key_margin=QRectF(s.left(), whole[keys].top() - top, s.width(), top - px(3))
        if top
        else QRectF(),
        growth=growth,
        tokens=named[tokens],
        token_size=min(max(room, small), token),
        token_step=step,
        token_room=spread,
        header=QRectF(rect.left() + pad, rect.top() + pad / 2, rect.width() - 2 * pad, above)
        if above
        else QRectF(),
        caption=QRectF(rect.left() + pad, below + gap / 2, rect.width() - 2 * pad, caption)
        if caption
        else QRectF(),
        inset=inset,
        legend=legend,
        partials=partials,
        split_names=split_names,
    )


def _partials_heights(w: Workload, style: Style, room: float) -> tuple[float, float]:
    """Return the height of what splits leave, with the gap above it, and of the splits' names."""
    if not algorithm_of(w).splits:
        return 0.0, 0.0
    rows = min(w.rows, w.seqlen_q)
    height = min(rows * style.px(NUMBER_CELL[1]), max(0.2 * room, style.px(20)))
    return style.px(10) + height, style.px(17) if room >= style.px(200) else 0.0
