"""Places of labels: inside the plot, and not over anything that matters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSizeF

from ui.plots.model import F64

Direction = tuple[float, float]

ALL_ROUND: tuple[Direction, ...] = (
    (1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (-1, -1), (1, 1), (-1, 1),
    (1, -0.4), (-1, -0.4), (1, 0.4), (-1, 0.4),
)  # fmt: skip
RINGS = (1.0, 2.2, 4.0, 6.5, 9.5, 13.0, 17.0)
"""Distances at which a label may stand, in its gaps."""
_LED = 2.0
"""Gaps beyond which a line leads from a label to its anchor."""


_NONE = np.empty((0, 2))


@dataclass(frozen=True, slots=True)
class Wanted:
    """A label that looks for its place."""

    anchors: tuple[QPointF, ...]  # places of the thing that it names, the best first
    sizes: tuple[QSizeF, ...]  # of its wordings, the best first
    gap: float  # least distance from the anchor
    # directions from the anchor, (across, down), the best first
    directions: tuple[Direction, ...] = ALL_ROUND
    rings: tuple[float, ...] = RINGS  # how many gaps away it may stand


@dataclass(frozen=True, slots=True)
class PlacedLabel:
    """A label with its place."""

    box: QRectF  # its place
    wording: int  # index of its wording
    anchor: QPointF  # the anchor at which it stands
    far: bool  # whether it stands so far off that a line has to lead to its anchor


def place_labels(
    wanted: Sequence[Wanted], inside: QRectF, taken: Sequence[QRectF], lines: F64, dots: F64 = _NONE
) -> list[PlacedLabel | None]:
    """Return a place for each label, or None for a label without one.

    No line from a label to its anchor goes through another label, which would read as the name.
    Places over few points in `lines` are better; `lines` has points of curves, NaN between two
    curves. A label beside one of the `dots` on the curves would seem to name the dot.
    """
    boxes = [_sides(box) for box in taken]
    middles = np.array([((l + r) / 2, (t + b) / 2) for l, t, r, b in boxes]).reshape(-1, 2)
    points = np.concatenate([dots, middles]).T.copy()
    around = _Around(_sides(inside), boxes, lines.T.copy(), points)
    looks = [[_Looked(_spots(label, size, around)) for size in label.sizes] for label in wanted]
    order, best, least = list(range(len(wanted))), list[PlacedLabel | None](), math.inf
    for _ in range(_TRIES):
        out: list[PlacedLabel | None] = [None] * len(wanted)
        words, leads, poor, loss = list[_Sides](), list[_Line](), list[int](), 0.0
        for n in order:
            wording, spot = _found(looks[n], around, words, leads)
            if spot is None or wording:
                poor.append(n)
                loss += wording if spot is not None else _LOST - n / len(wanted)
                if loss >= least:
                    break
            if spot is not None:
                (x, y, right, bottom), anchor = spot.box, wanted[n].anchors[spot.anchor]
                out[n] = PlacedLabel(QRectF(x, y, right - x, bottom - y), wording, anchor, spot.far)
                words.append(spot.box)
                leads += [spot.lead] if spot.far else []
        if loss < least:
            best, least = out, loss
        # Labels without a place, or with a short wording, look first in the next round.
        before, order = order, [*poor, *(n for n in order if n not in poor)]
        if order == before:
            break
    return best


_TRIES = 5
"""Number of orders in which labels look for places if words are lost."""
_LOST = 4.0
"""Loss of a label without a place; each shorter wording loses 1."""
_CROSSING = 6.0
"""Cost of a place whose line crosses something, or that hides part of a curve."""
_MISTAKEN = ((1.3, 6.0), (0.75, 9.0))
"""Ratios and costs of a place: another point is closer than a ratio times its own distance."""
_SLANTED = 4.0
"""Gaps from which a line may have any slant, not only 45 degrees."""
_CLEAR = 0.4
"""Distance of a line from other labels and points, in gaps."""
_ALIGNED = (0.5, 0.25, 0.75, 0.0, 1.0)
"""Shares of a label, above or below its anchor, left of the anchor, the best first."""

_Sides = tuple[float, float, float, float]
"""Left, top, right and bottom."""
_Line = tuple[float, float, float, float]
"""A leader line: its start, and how far it goes across and down."""
_Look = tuple[float, int, tuple[float, float], tuple[float, float], bool]
"""A place's cost, the number of its anchor, its distance in gaps across and down, the shares of the
label left of and above that point, and whether a line leads there."""


class _Around(NamedTuple):
    """Things that labels keep off, in plain numbers: there are hundreds of places to look at."""

    room: _Sides  # labels lie in it
    taken: list[_Sides]  # boxes on which nothing may lie
    lines: F64  # points of curves, (2, n)
    points: F64  # marked points, and the middles of taken boxes


@dataclass(slots=True)
class _Spot:
    """A place in the room and on no taken box."""

    cost: float  # the less the better
    box: _Sides
    anchor: int  # number of the label's anchor
    lead: _Line  # the line from the anchor
    far: bool  # whether the line is drawn
    clear: float  # how far the line stays away from others
    prices: list[float] = field(default_factory=list)  # costs due to things around, as far as asked


class _Looked:
    """Places that are found one by one, each when it is first asked for."""

    def __init__(self, source: Iterator[_Spot]) -> None:
        self._source, self._known = source, list[_Spot]()

    def __iter__(self) -> Iterator[_Spot]:
        yield from self._known
        for spot in self._source:
            self._known.append(spot)
            yield spot


@lru_cache(maxsize=64)
def _looks(
    anchors: int, rings: tuple[float, ...], directions: tuple[Direction, ...]
) -> tuple[_Look, ...]:
    """Return the places that a label looks at, the cheapest first."""
    return tuple(
        sorted(
            (
                0.7 * a + 1.5 * ring + 0.1 * n + 0.2 * k, a, (dx * ring, dy * ring),
                (share, (1 - dy) / 2), ring > _LED,
            )
            for a, ring, (n, (dx, dy)) in product(range(anchors), rings, enumerate(directions))
            if ring >= _SLANTED or dy in (-1, 0, 1)
            for k, share in enumerate(_ALIGNED if not dx else (float(dx < 0),))
        )
    )  # fmt: skip


def _spots(label: Wanted, size: QSizeF, around: _Around) -> Iterator[_Spot]:
    """Yield the places that a label may have, the cheapest first."""
    ends = [(anchor.x(), anchor.y()) for anchor in label.anchors]
    wide, high, gap = size.width(), size.height(), label.gap
    # Limits of the label's corner; a place slightly outside is moved inside.
    left, top, right, bottom = around.room
    right, bottom = right - wide, bottom - high
    if right < left or bottom < top:
        return
    for cost, a, off, share, far in _looks(len(ends), label.rings, label.directions):
        x = ends[a][0] + gap * off[0] - wide * share[0]
        y = ends[a][1] + gap * off[1] - high * share[1]
        if x < left - gap or x > right + gap or y < top - gap or y > bottom + gap:
            continue
        x = left if x < left else right if x > right else x
        y = top if y < top else bottom if y > bottom else y
        box = x, y, x + wide, y + high
        if not _lies_on(box, around.taken):
            yield _Spot(cost, box, a, _lead(ends[a], box), far, _CLEAR * gap)


def _found(
    looks: Sequence[_Looked], around: _Around, words: Sequence[_Sides], leads: Sequence[_Line]
) -> tuple[int, _Spot | None]:
    """Return the longest wording of a label that has a place beside others, and the best place."""
    for wording, spots in enumerate(looks):
        best, least = None, math.inf
        # Cheap tests come first, and a place that cannot be the best is skipped.
        for spot in spots:
            if spot.cost >= least:
                break
            if _lies_on(spot.box, words) or _is_cut(spot, words, leads):
                continue
            total = spot.cost + _CROSSING * (
                sum(_meet(spot.lead, other) for other in leads) if spot.far else 0
            )
            for n, price in enumerate(_PRICES):
                if total >= least:
                    break
                if n == len(spot.prices):
                    spot.prices.append(price(spot, around))
                total += spot.prices[n]
            if total < least:
                best, least = spot, total
        if best is not None:
            return wording, best
    return 0, None


def _is_cut(spot: _Spot, words: Sequence[_Sides], leads: Sequence[_Line]) -> bool:
    """Return whether a label's line goes through another label, or another line through it."""
    if leads:
        own = _wider(spot.box, spot.clear)
        if any(_crosses(lead, own) for lead in leads):
            return True
    return spot.far and any(_crosses(spot.lead, _wider(box, spot.clear)) for box in words)


# --- what a place costs ------------------------------------------------------------------------


def _hidden(spot: _Spot, around: _Around) -> float:
    """Return the cost of hidden curves: even a small hidden part costs a lot."""
    (x, y), box = around.lines, _wider(spot.box, spot.clear / 2)
    inside = (x > box[0]) & (x < box[2]) & (y > box[1]) & (y < box[3])
    count = int(np.count_nonzero(inside))
    return _CROSSING + count if count else 0.0


def _mistaken(spot: _Spot, around: _Around) -> float:
    """Return the cost of a label without a line that stands about as near to another point."""
    if spot.far:
        return 0.0
    (x, y), (left, top, right, bottom) = around.points, spot.box
    across = np.maximum(np.maximum(left - x, x - right), 0)
    down = np.maximum(np.maximum(top - y, y - bottom), 0)
    off, own = across**2 + down**2, spot.lead[2] ** 2 + spot.lead[3] ** 2
    if off.size == 0 or off.min() >= _MISTAKEN[0][0] ** 2 * own:
        return 0.0
    # A point at the anchor itself is not another one.
    others = (x - spot.lead[0]) ** 2 + (y - spot.lead[1]) ** 2 > spot.clear**2
    least = np.min(off[others], initial=math.inf)
    return sum(worse for share, worse in _MISTAKEN if least < share**2 * own)


def _through(spot: _Spot, around: _Around) -> float:
    """Return the cost of a line through a taken box: the line would seem to begin there."""
    x, y = spot.lead[:2]
    met = spot.far and any(
        _crosses(spot.lead, box)
        for box in around.taken
        if not (box[0] <= x <= box[2] and box[1] <= y <= box[3])
    )
    return math.inf if met else 0.0


def _dotted(spot: _Spot, around: _Around) -> float:
    """Return the cost of a line that passes other points: it may seem to begin there."""
    if not spot.far:
        return 0.0
    x, y, across, down = spot.lead
    u, v = around.points[0] - x, around.points[1] - y
    share = np.clip((u * across + v * down) / (across**2 + down**2), 0, 1)
    off = (u - share * across) ** 2 + (v - share * down) ** 2
    off = off[u**2 + v**2 > spot.clear**2]
    near, through = (np.count_nonzero(off < reach**2) for reach in (spot.clear, spot.clear / 2))
    return _CROSSING * (near + 2 * through)


def _crossed(spot: _Spot, around: _Around) -> float:
    """Return the cost of a line that crosses curves, or goes along them."""
    if not spot.far:
        return 0.0
    _, _, across, down = spot.lead
    x, y = around.lines[0] - spot.lead[0], around.lines[1] - spot.lead[1]
    long = math.hypot(across, down)
    side, along = (across * y - down * x) / long, (across * x + down * y) / long
    begins = 2 * spot.clear  # nearer, it may be the curve to which the line leads
    beside = (np.abs(side) < spot.clear / 2) & (along > begins) & (along < long)
    at = np.flatnonzero((side[:-1] < 0) != (side[1:] < 0))
    if len(at):
        share = side[at] / (side[at] - side[at + 1])
        there = along[at] + share * (along[at + 1] - along[at])
        at = at[(there > begins) & (there < long)]
    return _CROSSING * len(at) + int(np.count_nonzero(beside))


_PRICES = (_through, _hidden, _mistaken, _dotted, _crossed)


# --- boxes and lines ---------------------------------------------------------------------------


def _lies_on(box: _Sides, others: Sequence[_Sides]) -> bool:
    x, y, right, bottom = box
    for other in others:  # half the time of any()
        if x < other[2] and other[0] < right and y < other[3] and other[1] < bottom:
            return True
    return False


def _sides(box: QRectF) -> _Sides:
    return box.left(), box.top(), box.right(), box.bottom()


def _wider(box: _Sides, by: float) -> _Sides:
    return box[0] - by, box[1] - by, box[2] + by, box[3] + by


def nearest(box: QRectF, point: QPointF) -> QPointF:
    """Return the point of a label that is nearest to its anchor: a line leads there."""
    return QPointF(
        min(max(point.x(), box.left()), box.right()), min(max(point.y(), box.top()), box.bottom())
    )


def _lead(end: tuple[float, float], box: _Sides) -> _Line:
    """Return the line from an anchor to its label."""
    (x, y), (left, top, right, bottom) = end, box
    across = left - x if x < left else right - x if x > right else 0.0
    return x, y, across, top - y if y < top else bottom - y if y > bottom else 0.0


def _crosses(line: _Line, box: _Sides) -> bool:
    """Return whether a line goes through a box."""
    x, y, across, down = line
    enters, leaves = _between(x, across, box[0], box[2])
    if enters >= leaves:
        return False
    first, last = _between(y, down, box[1], box[3])
    return max(enters, first) < min(leaves, last)


def _between(start: float, way: float, low: float, high: float) -> tuple[float, float]:
    """Return the shares of a point's way at which it enters and leaves an interval."""
    if way > 0:
        return max((low - start) / way, 0.0), min((high - start) / way, 1.0)
    if way < 0:
        return max((high - start) / way, 0.0), min((low - start) / way, 1.0)
    return (0.0, 1.0) if low < start < high else (1.0, 0.0)


def _meet(one: _Line, other: _Line) -> bool:
    """Return whether two lines cross."""
    across, down = other[0] - one[0], other[1] - one[1]
    turn = one[2] * other[3] - one[3] * other[2]
    if not turn:
        return False
    along = (across * other[3] - down * other[2]) / turn
    beside = (across * one[3] - down * one[2]) / turn
    return 0 <= along <= 1 and 0 <= beside <= 1


def spread(
    middles: Sequence[float], height: float, top: float, bottom: float
) -> list[float] | None:
    """Return middles of equally high boxes near the wanted ones, in order, without overlap.

    None if there is not enough room.
    """
    if len(middles) * height > bottom - top:
        return None
    order = sorted(range(len(middles)), key=lambda n: middles[n])
    out, edge = [0.0] * len(middles), top
    for n in order:
        out[n] = max(middles[n], edge + height / 2)
        edge = out[n] + height / 2
    edge = bottom
    for n in reversed(order):
        out[n] = min(out[n], edge - height / 2)
        edge = out[n] - height / 2
    return out
