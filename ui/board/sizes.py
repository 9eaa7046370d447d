"""Sizes of everything on the board: the parts that have room, and how the room is shared out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from PySide6.QtCore import QRectF

from simulator.problem.workload import Workload
from simulator.program.algorithms import algorithm_of
from simulator.program.faults import fault_labels
from simulator.run.trace import is_detailed
from ui.board.beside import LEAD, TOKEN_SIZE, least_size, room_for, shares, within
from ui.look.pieces import picture_of
from ui.look.theme import Style

NUMBER_CELL = (34.0, 20.0)
"""Smallest width and height of a cell, at scale 1, with its number inside."""
HALL_CELL = (41.0, 13.0)
"""The same for a cell of m or l in a hall, where the numbers of the current rows are read."""
_STRETCHED = 1.2
"""Largest width of a cell, as a multiple of its height, in a hall, which is wider than high."""
_SMALL_MARGIN, _SMALL_SHARE = 6.0, 0.15
"""Room for small tokens, in their sizes, and as a share of the board's width."""
_STRIPS = (34.0, 22.0)
"""Least width of Q and O at scale 1: usually, and beside small tokens."""
_PIECE = 24.0
"""Room for the piece of a picture beside tokens, at scale 1."""
_LAYERED = 1.5
"""Factor for the share of the room that a strip of two tensors takes."""
_ROOM_OUTSIDE, _LEAST_OUTSIDE = (420.0, 320.0), 31.0
"""Width and height, at scale 1, from which a tensor outside of another has its own box, and the
least height of such a box."""


class Tokens(Enum):
    """How tokens may stand beside the cells, the best first."""

    ROOMY = auto()
    SMALL = auto()
    NONE = auto()


@dataclass(frozen=True, slots=True)
class BoardFrame:
    """Room for boxes and for lines of text, which the size of the board decides."""

    wide: float  # wide, high: of the board at scale 1
    high: float
    hall: bool  # whether the last row of a hall reads the board
    gap: float  # between boxes
    header: QRectF  # null where there is no room
    caption_height: float
    content: QRectF  # for boxes and their margins

    @classmethod
    def of(cls, w: Workload, style: Style, rect: QRectF, *, header: bool) -> BoardFrame:
        """Return the frame of a board.

        header: whether a line may stand above the board.
        """
        px, hall = style.px, style.least > 0
        wide, high = rect.width() / style.scale, rect.height() / style.scale
        pad = px(4 if hall else 12 if min(wide, high) >= 360 else 6)
        # A run with faults is marked as such at any size. In a hall the picture takes the
        # room of words, and the words above it say that the run has faults.
        lined = not hall and ((high >= 230 and header) or fault_labels(w.scenario))
        above = px(20) if lined else 0.0
        caption = px(18) * (0 if high < 280 or hall else 1 if wide >= 900 or high < 400 else 2)
        return cls(
            wide=wide,
            high=high,
            hall=hall,
            gap=px(5 if hall else 10 if wide >= 420 else 6),
            header=QRectF(rect.left() + pad, rect.top() + pad / 2, rect.width() - 2 * pad, above)
            if above
            else QRectF(),
            caption_height=caption,
            content=rect.adjusted(pad, pad + above, -pad, -pad - caption),
        )


@dataclass(frozen=True, slots=True)
class Margins:
    """Room beside Q and above Kᵀ, and the size of the tokens there at scale 1."""

    left: float
    top: float
    token: float


@dataclass(frozen=True, slots=True)
class BoxSizes:
    """Widths and heights of the boxes."""

    q: float  # q, s, o: widths; s is also the width of keys and values
    s: float
    o: float
    columns: tuple[str, ...]  # boxes between S and O
    column: float  # width of each
    between: float  # distance of O from S
    k: float  # k, rows, v: heights; rows is the height of S, Q, O and the columns
    rows: float
    v: float
    partials: float  # with the gap above them
    split_names: float
    outside: dict[str, str]  # tensors outside of a box, which share its strip


def margins_of(
    w: Workload, style: Style, frame: BoardFrame, tokens: Tokens, growth: float
) -> Margins:
    """Return the room for tokens, or for the numbers of blocks."""
    px, wide, high = style.px, frame.wide, frame.high
    token = TOKEN_SIZE * growth
    if tokens == Tokens.NONE:
        numbers = wide >= 420 and high >= 320
        left = (8 + 7 * len(str(w.grid.Tr - 1))) * growth if numbers else 0.0
        return Margins(px(left), px(16 * growth) if numbers else 0.0, token)
    left = px((78 if wide >= 560 else 52) * growth)
    top = px((64 if high >= 420 else 44) * growth)
    if tokens == Tokens.SMALL:
        side = max(_SMALL_MARGIN * least_size(style), _SMALL_SHARE * wide)
        left, top = min(left, px(side)), min(top, px(side))
        token = min(side / _SMALL_MARGIN, TOKEN_SIZE)
    if style.least:  # the last row reads whole words
        longest = px(room_for((*w.tokens, *w.query_tokens), style, token) + LEAD + 6)
        left, top = max(left, longest), max(top, longest)
    if picture_of(w) and tokens == Tokens.ROOMY:
        left, top = left + px(_PIECE * growth), top + px(_PIECE * growth)
    return Margins(left, top, token)


def sizes_of(
    w: Workload,
    style: Style,
    frame: BoardFrame,
    margins: Margins,
    tokens: Tokens,
    growth: float,
    visible_rows: float,
) -> BoxSizes:
    """Return the widths and heights of the boxes; some boxes may not fill their room."""
    px, wide, high, hall, gap = style.px, frame.wide, frame.high, frame.hall, frame.gap
    Nq, Nk, d, dv = w.seqlen_q, w.seqlen_k, w.head_dim, w.value_dim
    room_h = frame.content.height() - margins.top - 2 * gap
    room_h -= gap / 2 if frame.caption_height else 0
    partials, split_names = _partials_heights(w, style, room_h)
    room_h -= partials + split_names
    column = px(18 if wide >= 420 else 12) * growth
    if wide >= 620 and room_h / 2 >= visible_rows * px(NUMBER_CELL[1]):
        column = px(46) * growth  # few rows: m and l hold their numbers, too
    elif hall and 0.73 * room_h >= visible_rows * px(HALL_CELL[1]):
        column = px(HALL_CELL[0])
    columns, outside = algorithm_of(w).kept_columns, algorithm_of(w).outside
    if outside and (wide < _ROOM_OUTSIDE[0] or high < _ROOM_OUTSIDE[1]):
        columns, outside = (), {}
    between = len(columns) * (column + gap / 2) + 1.5 * gap
    room_w = frame.content.width() - margins.left - gap - between
    # A tensor and the one outside of it are equally wide: they share a strip.
    layers = 1 + bool(outside)
    strip = px(_STRIPS[tokens == Tokens.SMALL]) * layers
    thin, high_w, high_h = (
        share * _LAYERED ** (layers - 1)
        for share in ((0.11, 0.18, 0.13) if hall else (0.12, 0.20, 0.18))
    )
    room_q, room_s, room_o = shares(
        room_w, layers * d, layers * dv, Nk, low=thin, high=high_w, least=strip
    )
    # The magnified tile of a large problem stands beside Vᵀ, so Vᵀ is made taller.
    large = not is_detailed(w)
    tall = 0.27 if large and high >= 320 else thin
    least = px(_LEAST_OUTSIDE) * layers if outside else px(24)
    room_k, room_rows, room_v = shares(
        room_h, layers * d, layers * dv, Nq, low=thin, high=high_h, least=least, last=tall
    )
    s, rows = within(room_s, room_rows, Nk / Nq)
    if hall:
        s = min(room_s, _STRETCHED * s)
    q, o = (
        min(room, max(layers * max(n * s / Nk, n * rows / Nq, 0.2 * s), strip))
        for room, n in ((room_q, d), (room_o, dv))
    )
    tall_v = min(tall * room_h, 0.6 * s) if large else 0.0
    k, v = (
        min(room, max(layers * max(n * s / Nk, n * rows / Nq, 0.2 * rows), least, low))
        for room, n, low in ((room_k, d, 0.0), (room_v, dv, tall_v))
    )
    return BoxSizes(q, s, o, columns, column, between, k, rows, v, partials, split_names, outside)


def _partials_heights(w: Workload, style: Style, room: float) -> tuple[float, float]:
    """Return the height of the splits' O and LSE, with the gap above, and of the splits' names."""
    if not algorithm_of(w).splits:
        return 0.0, 0.0
    rows = min(w.rows, w.seqlen_q)
    height = min(rows * style.px(NUMBER_CELL[1]), max(0.2 * room, style.px(20)))
    return style.px(10) + height, style.px(17) if room >= style.px(200) else 0.0
