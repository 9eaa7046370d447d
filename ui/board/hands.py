"""Positions that turn Q and K, as hands of clocks in the place of the later scores.

A pair of numbers of a row is a hand. Hands of Q lie beside their rows, pairs from left to right;
hands of K below their keys, pairs from top to bottom; the fastest first. A faint hand shows where
a hand was before its position turned it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QFont, QPainter

from simulator.problem.positions import Turning
from simulator.program.algorithms import TENSORS
from simulator.run.snapshot import Snapshot
from simulator.study.positions.scores import C128, pairs_of, speeds_of
from ui.board.layout import BoardLayout
from ui.look.clocks import paint_clock, turn_text
from ui.look.draw import CENTRE, LEFT, draw_text, outline, text_width
from ui.look.heat import Sheet, colour_map, heat_image, signed_limit
from ui.look.names import first_that_fits

_CLOCK, _LARGEST = 9.0, 46.0
"""Least and largest room of a clock, at scale 1."""
_FEWEST_PIXELS = 12.0
"""Least room of a clock in pixels, whatever the scale is."""
_RADIUS = 0.42
"""Radius of a clock, as a share of its room."""
_LABEL, _LINE = 11.0, 15.0
"""Size of words and height of their line, at scale 1."""
_LABEL_ROOM = 34.0
"""Room of the words of a pair, at scale 1."""
_TURNS = ("one turn: {} places", "{} places")
"""Words of one pair, longest first."""
_PAIRS = ("fast → slow: places for one turn of a pair", "places for one turn", "one turn")
"""Words below the numbers of all pairs, longest first."""
_TINY = 1e-30
"""Pairs shorter than this are points."""
_SMOOTH = 2**17
"""Most numbers of a tensor that are drawn anew in each frame while they turn."""


@dataclass(frozen=True, slots=True)
class HandPlaces:
    """Places of clocks: at each row or key, and at a pair."""

    by_key: bool  # whether keys go from left to right, and pairs from top to bottom
    rows: tuple[int, ...]  # the rows, or keys, that have clocks
    along: tuple[float, ...]  # middles of these rows or keys
    pairs: tuple[int, ...]  # the pairs that have clocks
    across: tuple[float, ...]  # middles of these pairs
    size: float  # room of a clock

    def middle(self, n: int, p: int) -> QPointF:
        """Return the middle of a clock, counted in `rows` and `pairs`."""
        x, y = self.across[p], self.along[n]
        return QPointF(y, x) if self.by_key else QPointF(x, y)


def hand_places(turning: Turning, lay: BoardLayout, marked: int | None = None) -> HandPlaces:
    """Return where the clocks of a tensor lie: as many as are large enough to be read.

    marked: a row, or a key, that has clocks even if not all do.
    """
    box, least = lay.boxes["S"], max(lay.style.px(_CLOCK), _FEWEST_PIXELS)
    by_key = "key" in TENSORS[turning.tensor].axes
    cell, seen = (lay.cell[0], lay.visible_keys()) if by_key else (lay.cell[1], lay.visible_rows())
    start = lay.col_x if by_key else lay.row_y
    low, high = (box.left(), box.right()) if by_key else (box.top(), box.bottom())
    first, length = (box.top(), box.height()) if by_key else (box.left(), box.width())
    step = max(1, ceil(least / cell))
    phase = (step // 2 if marked is None else marked) % step
    half = 0.5 * min(step * cell, least)
    first_seen = seen.start + (phase - seen.start) % step
    middles = ((row, start(row + 0.5)) for row in range(first_seen, seen.stop, step))
    rows = [(row, at) for row, at in middles if low <= at - half + 1 and at + half - 1 <= high]
    count = turning.rotary.width // 2
    most = max(1, min(count, int(length / least)))
    pairs = np.linspace(0, count - 1, most).round().astype(int).tolist()
    pitch = length / len(pairs)
    size = min(step * cell, pitch, lay.style.px(_LARGEST))
    across = tuple(first + (p + 0.5) * pitch for p in range(len(pairs)))
    return HandPlaces(by_key, tuple(row for row, _ in rows), tuple(at for _, at in rows),
                      tuple(pairs), across, size)  # fmt: skip


def paint_hands(
    painter: QPainter, snapshot: Snapshot, lay: BoardLayout, row: int | None, share: float = 1.0
) -> None:
    """Draw the hands of the tensor that is turned before the tiles, and how far they have turned.

    snapshot: the state after the op; for an op of a tile nothing is drawn.
    """
    turning = snapshot.turned_now
    if turning is None:
        return
    if snapshot.op.turns is None:
        share = 0.0
    theme, box = lay.style.theme, lay.boxes["S"]
    painter.save()
    painter.setClipRect(box)
    painter.fillRect(box, QColor(theme.empty))
    marked = _marked(snapshot, turning, row)
    places = hand_places(turning, lay, marked)
    rows = np.array(places.rows, dtype=np.int64)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    before = _as_hands(pairs_of(turning.before[rows], turning.rotary))
    now = before * np.exp(1j * turning.angles(rows, share))
    radius = _RADIUS * places.size
    for n, place in enumerate(places.rows):
        ink = QColor(theme.current if place == marked else theme.tensor(turning.tensor))
        for p, pair in enumerate(places.pairs):
            was = complex(before[n, pair]) if share else None
            hand = complex(now[n, pair])
            paint_clock(painter, places.middle(n, p), radius, hand, ink, lay.style, was)
    painter.restore()
    outline(
        painter, lay.boxes[turning.tensor].adjusted(-1, -1, 1, 1), theme.current, lay.style.px(2)
    )
    _paint_turns(painter, turning, places, lay)


def _as_hands(pairs: C128) -> C128:
    """Return pairs with the square roots of their lengths, 1 for the longest of a row.

    A row has few large pairs: beside them the directions of the others could not be seen.
    """
    lengths = np.abs(pairs)
    longest = np.maximum(lengths.max(axis=1, keepdims=True, initial=0), _TINY)
    hands: C128 = pairs / np.sqrt(np.maximum(lengths, _TINY) * longest)
    return hands


def _marked(snapshot: Snapshot, turning: Turning, row: int | None) -> int | None:
    """Return the explained row, or the key at the same position."""
    if row is None or row >= snapshot.program.workload.seqlen_q:
        return None
    if "key" not in TENSORS[turning.tensor].axes:
        return row
    return int(snapshot.program.workload.mask.positions(range(row, row + 1))[0])


def _paint_turns(painter: QPainter, turning: Turning, places: HandPlaces, lay: BoardLayout) -> None:
    """Write how many places each pair takes for one turn, over boxes that the op does not use."""
    style = lay.style
    speeds, font, line = speeds_of(turning.rotary), style.text_font(_LABEL), style.px(_LINE)
    turns = [turn_text(2 * np.pi / float(speeds[pair])) for pair in places.pairs]
    box, px = lay.boxes["S"], style.px
    if places.by_key:
        wide = lay.boxes["O"].right() - box.right()
        room, least = QRectF(box.right() + px(3), box.top(), wide, box.height()), line
        form = next((form for form in _TURNS if _fits(form, turns, font, wide - px(8))), "")
        has_room = bool(form)
    else:
        beyond, form = lay.boxes[lay.values], "{}"
        room = QRectF(box.left(), beyond.top(), box.width(), 2 * line + px(4))
        least, has_room = px(_LABEL_ROOM), room.height() <= beyond.height()
    if not has_room:
        return
    around = room.adjusted(0, -px(2), px(2), px(2))
    painter.fillRect(around, QColor(style.theme.panel))
    outline(painter, around, style.theme.grid)
    last = -least
    for turn, at in zip(turns, places.across, strict=True):
        if at - last < least:
            continue
        last, text = at, form.format(turn)
        if places.by_key:
            place = QRectF(room.left() + px(4), at - line / 2, room.width(), line)
        else:
            left = min(max(at - least / 2, room.left()), room.right() - least)
            place = QRectF(left, room.top() + px(2), least, line)
        align = LEFT if places.by_key else CENTRE
        draw_text(painter, place, text, font, style.theme.muted, align)
    if not places.by_key:
        place = QRectF(room.left(), room.top() + line + px(2), room.width(), line)
        said = first_that_fits(_PAIRS, room.width(), font)
        draw_text(painter, place, said, font, style.theme.muted, CENTRE)


def _fits(form: str, turns: list[str], font: QFont, width: float) -> bool:
    return all(text_width(font, form.format(turn)) <= width for turn in turns)


def paint_turning(
    painter: QPainter, snapshot: Snapshot, lay: BoardLayout, row: int, share: float
) -> None:
    """Draw turning hands and numbers: places are counted, and a row stops at its own place."""
    turning = snapshot.turned_now
    if turning is None:
        return
    if turning.before.size <= _SMOOTH:
        _paint_numbers(painter, snapshot, turning, lay, share)
    paint_hands(painter, snapshot, lay, row, share)


def _paint_numbers(
    painter: QPainter, snapshot: Snapshot, turning: Turning, lay: BoardLayout, share: float
) -> None:
    """Draw Q or Kᵀ as it is when a share of the op has been done."""
    now, name = turning.at(share), turning.tensor
    by_key = "key" in TENSORS[name].axes
    limit = signed_limit(snapshot.inputs[name])
    image = heat_image(now.T if by_key else now, -limit, limit, colour_map(lay.style.theme, name))
    begin, length = (lay.view.x, lay.visible[1]) if by_key else (lay.view.y, lay.visible[0])
    first, part = begin / len(now), length / len(now)
    shown = QRectF(first, 0, part, 1) if by_key else QRectF(0, first, 1, part)
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
    Sheet(image).draw(painter, lay.boxes[name], shown)
