"""The parts of pages that cover a window: boxes that stand still, and a list that scrolls."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from simulator.lesson.front import Level
from simulator.lesson.steps import Part
from ui.kit.boxes import Box, Column, Placed, Row, Scene, Tone, ink, scene
from ui.kit.shapes import Text
from ui.look.draw import RIGHT, mixed
from ui.look.theme import Style, Theme

LEVELS: tuple[Level, ...] = ("linear algebra", "machine learning", "GPU")
"""Levels of knowledge: a level has as many dots as its place in this list."""
AREA = "area"
"""Name of the box that has the list."""
_SMALLEST, _FULL = 0.8, (1920.0, 1050.0)
"""Least size of letters in a small window, as a share of their full size, and the full window."""
_DOT, _DOTS_APART = 3.8, 11.0


def dots_of(level: str) -> int:
    """Return how many dots a level has; 0 where it has none."""
    return LEVELS.index(level) + 1 if level in LEVELS else 0


@dataclass(frozen=True, eq=False)
class Dots(Box):
    """A level: three dots, some of them filled."""

    count: int
    tone: Tone = "muted"

    def width(self, style: Style) -> float:
        return style.px(2 * _DOT + (len(LEVELS) - 1) * _DOTS_APART)

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for n in range(len(LEVELS)):
            colour = ink(style, self.tone if n < self.count else "faint")
            painter.setPen(QPen(colour, style.px(1.3)))
            painter.setBrush(colour if n < self.count else Qt.BrushStyle.NoBrush)
            at = QPointF(rect.x() + style.px(_DOT + n * _DOTS_APART), rect.center().y())
            painter.drawEllipse(at, style.px(_DOT), style.px(_DOT))


class CoverMarks(NamedTuple):
    """Numbers of entries: with the focus of keys, under the pointer, and under a finger."""

    focused: int
    hovered: int | None = None
    pressed: int | None = None

    def ground(self, number: int, rest: str, theme: Theme) -> QColor:
        """Return the ground of an entry: a step to the accent under the pointer."""
        share = 1.0 if number == self.pressed else 0.5 if number == self.hovered else 0.0
        return mixed(rest, theme.accent, share)


@dataclass(frozen=True, eq=False)
class CoverScene:
    """The places of all boxes on a page: boxes with a number are its entries."""

    frame: Scene
    listed: Scene

    @property
    def style(self) -> Style:
        """Theme and scale of the page."""
        return self.frame.style

    @cached_property
    def area(self) -> QRectF:
        """The part that scrolls."""
        return self.frame.where(AREA)

    @property
    def most(self) -> float:
        """How far the list can be scrolled."""
        return max(self.listed.placed[0].rect.height() - self.area.height(), 0.0)

    @cached_property
    def rows(self) -> dict[int, QRectF]:
        """The places of entries in the list, also out of sight."""
        return {box.id: rect for box, rect in self.listed.placed if isinstance(box.id, int)}

    @cached_property
    def still(self) -> dict[int, QRectF]:
        """The places of entries outside of the list."""
        return {box.id: rect for box, rect in self.frame.placed if isinstance(box.id, int)}

    def moved(self, scrolled: float) -> CoverScene:
        """Return the page with its list scrolled so far."""
        up = (Placed(box, rect.translated(0, -scrolled)) for box, rect in self.listed.placed)
        return replace(self, listed=Scene(self.style, tuple(up)))

    def at(self, point: QPointF) -> Hashable:
        """Return the top spot at a point, such as an entry's number; None if there is none."""
        found = (self.listed if self.area.contains(point) else self.frame).at(point)
        return found[0] if found else None

    def neighbour(self, number: int, across: int, down: int) -> int:
        """Return the nearest entry in a direction; the same entry where there is none.

        across, down: the direction: one of them 1 or −1, the other 0.
        """
        places = self.still | self.rows
        here = places[number].center()

        def far(n: int) -> float:
            way = places[n].center() - here
            along = way.x() * across + way.y() * down
            aside = abs(way.x() * down) + abs(way.y() * across)
            return along + 3 * aside if along > 1 else float("inf")

        nearest = min(places, key=far)
        return nearest if far(nearest) < float("inf") else number


def cover_style(style: Style, size: QSizeF) -> Style:
    """Return the style of a page from the window's: letters are smaller in a small window."""
    share = min(size.width() / _FULL[0], size.height() / _FULL[1])
    return Style(style.theme, style.scale * min(max(share, _SMALLEST), 1.0))


def cover_scene(
    frame: Sequence[Box], listed: Box, style: Style, size: QSizeF, inner: float
) -> CoverScene:
    """Return the scene of a page.

    frame: the boxes that stand still, from top to bottom; the box `AREA` has the list.
    inner: width of the page without margins, at scale 1.
    """
    wide = style.px(inner)
    rect = QRectF((size.width() - wide) / 2, 0, wide, size.height())
    still = scene(Column(tuple(frame), gap=0), style, rect)
    deep = listed.height(style, wide)
    top = still.where(AREA).topLeft()
    return CoverScene(still, scene(listed, style, QRectF(top, QSizeF(wide, deep))))


def even(parts: Sequence[Box], gap: float, width: float, high: float | None = None) -> Row:
    """Return boxes that share a width, at scale 1, evenly."""
    share = (width - gap * (len(parts) - 1)) / len(parts) / width
    return Row(tuple(replace(each, share=share) for each in parts), gap=gap, high=high)


def some(
    words: str, tone: Tone, size: float, *, bold: bool = False, high: float | None = None
) -> Text:
    """Return words that take all free room."""
    return Text(words, tone, size=size, bold=bold, wide=0, high=high, grow=1)


def part_title(part: Part, size: float, high: float, after: float = 0.0) -> Row:
    """Return the line above the lessons of a part; after: the space kept free at its right end."""
    return Row((
        Text(part.numeral, "current", size=size, bold=True), Box(wide=11),
        some(part.title, "text", size, bold=True),
        Text(f"{part.minutes} min", "muted", RIGHT, size=0.78 * size), Box(wide=after),
    ), gap=0, high=high)  # fmt: skip


def foot(tone: Tone, words: str, high: float) -> Row:
    """Return the meaning of dots, and at the right `words`."""
    levels = (
        part for n, level in enumerate(LEVELS, start=1)
        for part in (Dots(n, tone), Box(wide=10), Text(level, "muted", size=14.5), Box(wide=25))
    )  # fmt: skip
    said = Text(words, "muted", RIGHT, size=14.5, may_go=True)
    return Row((*levels, Box(grow=1), said), gap=0, high=high)
