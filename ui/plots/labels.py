"""Where labels go so that they lie inside the plot and on nothing that matters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, QSizeF

from ui.plots.model import F64

Direction = tuple[int, int]

ALL_ROUND: tuple[Direction, ...] = (
    (1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (-1, -1), (1, 1), (-1, 1),
)  # fmt: skip
RINGS = (1.0, 2.2, 4.0, 6.5, 9.5, 13.0, 17.0)
"""How far off a label may stand, in its gaps."""
_LED = 2.0
"""Farther off than so many gaps, a line leads to what it names."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A label that looks for its place.

    Attributes
    ----------
    anchors : tuple of QPointF
        What it names: places of it, the one that is liked best first.
    sizes : tuple of QSizeF
        Of its wordings, likewise.
    gap : float
        How far from the anchor it stands at least.
    directions : tuple of tuple of int
        Where from the anchor it may stand, (across, down), likewise.
    rings : tuple of float
        How many gaps away it may stand.
    """

    anchors: tuple[QPointF, ...]
    sizes: tuple[QSizeF, ...]
    gap: float
    directions: tuple[Direction, ...] = ALL_ROUND
    rings: tuple[float, ...] = RINGS


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a label is.

    Attributes
    ----------
    box : QRectF
        Its place.
    wording : int
        Which wording.
    anchor : QPointF
        Which place of what it names it stands at.
    far : bool
        Whether it stands so far off that a line has to lead to its anchor.
    """

    box: QRectF
    wording: int
    anchor: QPointF
    far: bool


def place_labels(
    wanted: Sequence[Wanted], inside: QRectF, taken: Sequence[QRectF], lines: F64
) -> list[Placed | None]:
    """Return a place for each label, or None for one that has none.

    Parameters
    ----------
    wanted : sequence of Wanted
        Those that matter most first.
    inside : QRectF
        Labels lie in it.
    taken : sequence of QRectF
        Nothing may lie on these.
    lines : ndarray
        (n, 2) float64, points of curves: a place with few of them is liked better.
    """
    used, out = list(taken), []
    leads: list[QLineF] = []
    for label in wanted:
        found = _place(label, inside, used, leads, lines)
        if found is not None:
            used.append(found.box)
            if found.far:
                leads.append(_lead(found.anchor, found.box))
        out.append(found)
    return out


def _place(
    label: Wanted, inside: QRectF, used: Sequence[QRectF], leads: Sequence[QLineF], lines: F64
) -> Placed | None:
    # Plain numbers: most places are looked at for their sides alone, and there are hundreds.
    room, boxes = _sides(inside), [_sides(other) for other in used]
    for wording, size in enumerate(label.sizes):
        best, least = None, 1e9
        wide, high = size.width(), size.height()
        for (a, anchor), ring, (n, way) in product(
            enumerate(label.anchors), label.rings, enumerate(label.directions)
        ):
            cost = 0.1 * n + 1.5 * ring + 0.7 * a
            if cost >= least:  # what it may cost besides is not looked at: the most work by far
                continue
            x, y = _beside(anchor, wide, high, way, label.gap * ring)
            if x < room[0] or y < room[1] or x + wide > room[2] or y + high > room[3]:
                continue
            if any(
                x < right and left < x + wide and y < bottom and top < y + high
                for left, top, right, bottom in boxes
            ):
                continue
            box = QRectF(x, y, wide, high)
            cost += _crossed(box, lines) + 6.0 * sum(_crosses(lead, box) for lead in leads)
            if ring > _LED and cost < least:
                cost += 6.0 * _met(anchor, box, used, leads)
            if cost < least:
                best, least = Placed(box, wording, anchor, ring > _LED), cost
        if best is not None:
            return best
    return None


def _sides(box: QRectF) -> tuple[float, float, float, float]:
    return box.left(), box.top(), box.right(), box.bottom()


def nearest(box: QRectF, point: QPointF) -> QPointF:
    """Return the point of a label that is nearest to what it names: a line leads there."""
    return QPointF(
        min(max(point.x(), box.left()), box.right()), min(max(point.y(), box.top()), box.bottom())
    )


def _lead(anchor: QPointF, box: QRectF) -> QLineF:
    return QLineF(anchor, nearest(box, anchor))


def _met(anchor: QPointF, box: QRectF, used: Sequence[QRectF], leads: Sequence[QLineF]) -> int:
    """Return how many boxes and lines the line from a label to what it names would cross."""
    lead, both = _lead(anchor, box), QLineF.IntersectionType.BoundedIntersection
    boxes = sum(_crosses(lead, other) for other in used if not other.contains(anchor))
    return boxes + sum(lead.intersects(other)[0] == both for other in leads)


def _crosses(line: QLineF, box: QRectF) -> bool:
    """Return whether a line goes through a box."""
    enters, leaves = 0.0, 1.0
    for start, along, low, high in (
        (line.x1(), line.dx(), box.left(), box.right()),
        (line.y1(), line.dy(), box.top(), box.bottom()),
    ):
        if along:
            one, other = sorted(((low - start) / along, (high - start) / along))
            enters, leaves = max(enters, one), min(leaves, other)
        elif not low < start < high:
            return False
    return enters < leaves


def _crossed(box: QRectF, lines: F64) -> int:
    x, y = lines[:, 0], lines[:, 1]
    inside = (x > box.left()) & (x < box.right()) & (y > box.top()) & (y < box.bottom())
    return int(np.count_nonzero(inside))


def _beside(
    anchor: QPointF, wide: float, high: float, way: Direction, gap: float
) -> tuple[float, float]:
    dx, dy = way
    x = anchor.x() + dx * gap + (0 if dx > 0 else -wide if dx < 0 else -wide / 2)
    y = anchor.y() + dy * gap + (0 if dy > 0 else -high if dy < 0 else -high / 2)
    return x, y


def spread(
    middles: Sequence[float], height: float, top: float, bottom: float
) -> list[float] | None:
    """Return middles of equally high boxes near those wanted, in order, none on another.

    Parameters
    ----------
    middles : sequence of float
        Where they would like to be.
    height : float
        Of each box.
    top, bottom : float
        They lie between these.

    Returns
    -------
    list of float or None
        None where there is not enough room.
    """
    if len(middles) * height > bottom - top:
        return None
    order = sorted(range(len(middles)), key=lambda n: middles[n])
    out = [0.0] * len(middles)
    edge = top
    for n in order:
        out[n] = max(middles[n], edge + height / 2)
        edge = out[n] + height / 2
    edge = bottom
    for n in reversed(order):
        out[n] = min(out[n], edge - height / 2)
        edge = out[n] - height / 2
    return out
