"""Boxes and how they are arranged.

A box is data and is made anew for each state of a picture. `scene` finds a place for every box
once; painting, the pointer, tips and tests read the same list of places, on screen and in files.
Lengths are pixels at scale 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QPainter

from ui.look.draw import mixed
from ui.look.theme import Style

Tone = str | tuple["Tone", "Tone", float] | QColor
"""A role or a tensor of the theme; (ground, ink, share), which mixes two; or a colour as it is."""
Where = Mapping[Hashable, QRectF]
"""The places of boxes by their names."""


def ink(style: Style, tone: Tone) -> QColor:
    """Return a tone as a colour of the theme."""
    if isinstance(tone, tuple):
        ground, over, share = tone
        return mixed(ink(style, ground), ink(style, over), share)
    return style.theme.role(tone) if isinstance(tone, str) else tone


@dataclass(frozen=True, eq=False, kw_only=True)
class Box:
    """An empty box; the base of all boxes."""

    id: Hashable = None  # what the pointer finds here; None: the box below
    name: Hashable = None  # the name by which painters and tests find the place
    tip: str = ""
    share: float = 0.0  # the least part of all the room along a row or column
    grow: float = 0.0  # the part of the room that is left over
    wide: float | None = None  # wide, high: the least size of a text or an empty box
    high: float | None = None  # of a row: its height
    may_go: bool = False  # whether it goes if room is short, the last box first

    def width(self, style: Style) -> float:
        """Return the least width that the box needs."""
        return style.px(self.wide or 0.0)

    def height(self, style: Style, width: float) -> float:
        """Return the least height that the box needs at a width."""
        return style.px(self.high or 0.0)

    def most_width(self, style: Style, height: float) -> float:
        """Return the largest width that the box can use at a height."""
        return math.inf

    def most_height(self, style: Style) -> float:
        """Return the largest height that the box can use."""
        return math.inf

    def place(self, style: Style, rect: QRectF) -> Iterable[Placed]:
        """Return the box and the boxes in it with their places, the lowest first."""
        return (Placed(self, rect),)

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        """Paint the box without the boxes in it."""

    def spot(self, rect: QRectF, at: QPointF) -> Hashable:
        """Return the spot that the pointer finds at a point inside."""
        return self.id

    def tip_at(self, rect: QRectF, at: QPointF) -> str:
        """Return the tooltip at a point inside."""
        return self.tip


class Placed(NamedTuple):
    """A box and its place."""

    box: Box
    rect: QRectF


@dataclass(frozen=True, eq=False)
class Canvas(Box):
    """A box that a function paints."""

    draw: Callable[[QPainter, Style, QRectF], None]

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        self.draw(painter, style, rect)


@dataclass(frozen=True, eq=False)
class Stack(Box):
    """Boxes one after another: a `Row` or a `Column`."""

    parts: tuple[Box, ...]
    gap: float = 6.0
    over: Callable[[QPainter, Style, Where], None] | None = None  # paints upon the boxes inside

    def gaps(self, style: Style) -> float:
        """Return the length of all gaps."""
        return style.px(self.gap) * max(len(self.parts) - 1, 0)

    def sizes(self, part: Box, style: Style, rect: QRectF) -> tuple[float, float]:
        """Return the least length of a part along the line, and the largest."""
        raise NotImplementedError

    def cut(self, rect: QRectF, at: float, length: float) -> QRectF:
        """Return a piece of a rectangle along the line."""
        raise NotImplementedError

    def place(self, style: Style, rect: QRectF) -> Iterable[Placed]:
        out = [Placed(self, rect)]
        for each, piece in self._pieces(style, rect):
            out += each.place(style, piece)
        if (draw := self.over) is not None:
            where = {box.name: place for box, place in out[1:] if box.name is not None}
            out.append(Placed(Canvas(lambda painter, style, _: draw(painter, style, where)), rect))
        return out

    def _pieces(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        gap, room = style.px(self.gap), rect.width() if isinstance(self, Row) else rect.height()
        parts = [(each, *self.sizes(each, style, rect)) for each in self.parts]
        parts = [(each, min(least, most), most) for each, least, most in parts]
        while True:
            spare = room - sum(size for _, size, _ in parts) - gap * (len(parts) - 1)
            goes = [n for n, (each, *_) in enumerate(parts) if each.may_go] if spare < 0 else []
            if not goes:
                break
            del parts[goes[-1]]
        grow = sum(each.grow for each, *_ in parts)
        grown = sum(size for each, size, _ in parts if each.grow)
        firm = room - spare - grown
        # If no more boxes may go, boxes that grow give way first, and nothing leaves the picture.
        shrunk = max(room - firm, 0.0) / grown if spare < 0 and grown else 1.0
        squeezed = min(room / firm, 1.0) if firm else 1.0
        at = 0.0
        for each, size, most in parts:
            more = spare * each.grow / grow if spare > 0 and grow else 0.0
            length = min(size * shrunk + more, most) if each.grow else size * squeezed
            yield Placed(each, self.cut(rect, at, length))
            at += length + gap * squeezed


class Row(Stack):
    """Boxes from left to right, all as high as the row."""

    def width(self, style: Style) -> float:
        return sum(each.width(style) for each in self.parts) + self.gaps(style)

    def height(self, style: Style, width: float) -> float:
        if self.high is not None:
            return style.px(self.high)
        return max((each.height(style, each.width(style)) for each in self.parts), default=0.0)

    def sizes(self, part: Box, style: Style, rect: QRectF) -> tuple[float, float]:
        least = max(rect.width() * part.share, part.width(style))
        return least, part.most_width(style, rect.height())

    def cut(self, rect: QRectF, at: float, length: float) -> QRectF:
        return QRectF(rect.x() + at, rect.y(), length, rect.height())


class Column(Stack):
    """Boxes from top to bottom, all as wide as the column."""

    def width(self, style: Style) -> float:
        return max((each.width(style) for each in self.parts), default=0.0)

    def height(self, style: Style, width: float) -> float:
        return sum(each.height(style, width) for each in self.parts) + self.gaps(style)

    def most_width(self, style: Style, height: float) -> float:
        *above, last = self.parts
        taken = sum(each.height(style, math.inf) for each in above) + self.gaps(style)
        return last.most_width(style, height - taken)

    def sizes(self, part: Box, style: Style, rect: QRectF) -> tuple[float, float]:
        least = max(rect.height() * part.share, part.height(style, rect.width()))
        return least, part.most_height(style)

    def cut(self, rect: QRectF, at: float, length: float) -> QRectF:
        return QRectF(rect.x(), rect.y() + at, rect.width(), length)


@dataclass(frozen=True, eq=False)
class Either(Box):
    """`beside` where the place is more than `ratio` times as wide as high, else `below`."""

    beside: Box
    below: Box
    ratio: float

    def place(self, style: Style, rect: QRectF) -> Iterable[Placed]:
        wide = rect.width() > self.ratio * rect.height()
        return (self.beside if wide else self.below).place(style, rect)


@dataclass(frozen=True, eq=False)
class Scene:
    """A picture in which every box has its place."""

    style: Style
    placed: tuple[Placed, ...]

    def paint(self, painter: QPainter) -> None:
        """Paint on a widget, a picture or a page."""
        for box, rect in self.placed:
            box.paint(painter, self.style, rect)

    def under(self, point: QPointF) -> list[Placed]:
        """Return the boxes at a point, the highest first."""
        return [each for each in reversed(self.placed) if each.rect.contains(point)]

    def at(self, point: QPointF) -> list[Hashable]:
        """Return the spots that the pointer finds at a point, the highest first."""
        spots = (box.spot(rect, point) for box, rect in self.under(point))
        return [spot for spot in spots if spot is not None]

    def tip(self, point: QPointF) -> str:
        """Return the tooltip at a point; empty if there is none."""
        tips = (box.tip_at(rect, point) for box, rect in self.under(point))
        return next((tip for tip in tips if tip), "")

    def where(self, name: Hashable) -> QRectF:
        """Return the place of a box by its name."""
        return next(rect for box, rect in self.placed if box.name == name)


def scene(box: Box, style: Style, rect: QRectF) -> Scene:
    """Find a place for every box."""
    return Scene(style, tuple(box.place(style, rect)))
