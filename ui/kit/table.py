"""A table: rows of one height below headings; rows and columns without room are left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QFont, QPainter, QPen

from ui.kit.boxes import Box, Placed, ink
from ui.kit.shapes import LINE, Heat, Text, Wordings
from ui.look.draw import CENTRE, LEFT, card, outline, text_width
from ui.look.theme import LABEL, Style

_ROOMY = 16.0
"""Height of a row that a table asks for: words around it go first."""
_SMALL = 17.0
"""Height of a row below which its letters have the size of labels."""
_NARROW = 60.0
"""Width of columns below which letters have the size of labels, if all are equally wide."""


class Head(NamedTuple):
    """A heading, and the heading above all columns of its group."""

    words: Wordings
    group: Wordings = ""
    goes: int = 0  # if room is short, the column with the largest number goes first; 0 stays
    takes: bool = False  # whether the column takes all room that is left, and begins at the left


class BoxRow(NamedTuple):
    """A name and a cell for each column."""

    name: Text
    cells: tuple[Box, ...]
    below: str = ""  # words below the name in rows of two lines


@dataclass(frozen=True, eq=False)
class FigureText(Text):
    """A figure in letters of code, on the colour of its value if it has one."""

    value: float | None = None  # 0 to 1
    tensor: str = "P"

    def font(self, style: Style) -> QFont:
        return style.code_font(self.size, bold=self.bold)

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        if self.value is not None:
            heat = Heat(np.array([[self.value]], np.float32), 0.0, 1.0, self.tensor)
            edge = style.px(1)
            painter.drawImage(rect.adjusted(edge, edge / 2, -edge, -edge / 2), heat(style))
            replace(self, tone=heat.inks(style)[0, 0], value=None).paint(painter, style, rect)
        else:
            super().paint(painter, style, rect)


@dataclass(frozen=True, eq=False)
class Struck(Text):
    """Words that are struck out if they do not hold."""

    struck: bool = False

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        super().paint(painter, style, rect)
        if self.struck:
            painter.setPen(QPen(ink(style, "bad"), style.px(1.5)))
            wide = text_width(self.font(style), self.lines(style, rect.width())[0])
            y = rect.center().y()
            painter.drawLine(QLineF(rect.x(), y, rect.x() + wide, y))


@dataclass(frozen=True, eq=False)
class RuleLine(Box):
    """A line along the upper edge."""

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        painter.setPen(QPen(ink(style, "border"), style.px(1)))
        painter.drawLine(QLineF(rect.topLeft(), rect.topRight()))


@dataclass(frozen=True, eq=False)
class _Mark(Box):
    """The ground of the chosen row, or its frame."""

    framed: bool

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        edge, px = ink(style, "current"), style.px
        if self.framed:
            outline(painter, rect.adjusted(0, 0, 1, 0), edge, px(2))
        else:
            place = rect.adjusted(1, 0.5, -1, -0.5)
            card(painter, place, ink(style, "accent"), edge, px(4), px(1.2))


@dataclass(frozen=True, eq=False)
class BoxTable(Box):
    """Names at the left and columns beside them; the pointer finds (`id`, row).

    If not all rows have room, the rows around the chosen one are shown, and a line says so.
    """

    heads: tuple[Head, ...]  # the first is above the names
    rows: tuple[BoxRow, ...]
    after: tuple[BoxRow, ...] = ()  # below a rule
    chosen: int | None = None
    framed: bool = False  # whether the chosen row has a frame in place of a ground
    heights: tuple[float, float] = (13.0, 34.0)  # least and largest height of a row
    names: float = 0.3  # largest share of the width for names
    align: Qt.AlignmentFlag = CENTRE  # of headings
    even: bool = False  # whether all columns are equally wide

    def _head(self, style: Style) -> float:
        return style.px(LINE) * (1 + any(each.group for each in self.heads))

    def height(self, style: Style, width: float) -> float:
        return self._head(style) + style.px(_ROOMY) * len(self.rows + self.after)

    def most_height(self, style: Style) -> float:
        return self._head(style) + style.px(self.heights[1]) * len(self.rows + self.after)

    def shown(self, style: Style, rect: QRectF) -> range:
        """Return the rows that have room."""
        count, low = len(self.rows), style.px(self.heights[0])
        room = rect.height() - self._head(style)
        if room >= low * (count + len(self.after)):
            return range(count)
        fit = min(max(int((room - style.px(LINE)) / low) - len(self.after), 1), count)
        first = min(max((self.chosen or 0) - fit // 2, 0), count - fit)
        return range(first, first + fit)

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        yield Placed(self, rect)
        px, shown, line = style.px, self.shown(style, rect), style.px(LINE)
        less, top = len(shown) < len(self.rows), rect.y() + self._head(style)
        room = (rect.bottom() - top - line * less) / (len(shown) + len(self.after))
        high = min(room, px(self.heights[1]))
        large = high >= px(_SMALL) and self._least(style, 12.0) <= rect.width()
        size = 12.0 if large else LABEL
        left, columns = self._columns(style, rect.width(), size)
        yield from self._headings(style, rect, left, columns)
        if self.even and columns[0][2] < px(_NARROW):
            size = LABEL
        rows = (*(self.rows[at] for at in shown), *self.after)
        for n, (name, cells, under) in enumerate(rows):
            place = QRectF(rect.x(), top + n * high, rect.width(), high)
            own, at = n < len(shown), shown.start + n
            chosen = own and at == self.chosen
            yield Placed(Box(id=(self.id, at), name=(self.id, at)) if own else Box(), place)
            if n == len(shown):
                yield Placed(RuleLine(), place)
            if chosen and not self.framed:
                yield Placed(_Mark(False), place)
            beside = place.adjusted(px(5), 0, left - rect.width() - px(3), 0)
            if under and high >= 2 * line:
                y, across = beside.center().y(), beside.width()
                yield Placed(Text(under, "muted"), QRectF(beside.x(), y, across, line))
                beside = QRectF(beside.x(), y - line, across, line)
            yield Placed(replace(name, size=min(name.size, size)), beside)
            for at, x, wide in columns:
                within = QRectF(rect.x() + x, place.y(), wide, high)
                yield from _sized(cells[at], size).place(style, within)
            if chosen and self.framed:
                yield Placed(_Mark(True), place)
        if less:
            words = (
                f"{shown.start + 1} to {shown.stop} of {len(self.rows)}: a larger dock has more."
            )
            below = QRectF(rect.x(), rect.bottom() - line, rect.width(), line)
            yield Placed(Text(words, "muted"), below)

    def width(self, style: Style) -> float:
        return self._least(style, LABEL)

    def _least(self, style: Style, size: float) -> float:
        """Return the least width with letters of a size."""
        names, needs = self._needs(style, size)
        kept = (wide for wide, head in zip(needs, self.heads[1:], strict=True) if not head.goes)
        return names + sum(kept) + style.px(6)

    def _needs(self, style: Style, size: float) -> tuple[float, list[float]]:
        """Return the least widths of the names, and of each column."""
        rows, font = (*self.rows, *self.after), style.text_font(size)
        names = max(
            max(text_width(font, each.name.wordings[0]), Text(each.below).width(style))
            for each in rows
        ) + style.px(14)  # fmt: skip
        pad = style.px(1 if self.even else 8)
        return names, [
            max(
                *(_sized(each.cells[n], size).width(style) + pad for each in rows),
                Text(head.words).width(style) + max(pad, 1),
            )
            for n, head in enumerate(self.heads[1:])
        ]

    def _columns(
        self, style: Style, width: float, size: float
    ) -> tuple[float, list[tuple[int, float, float]]]:
        """Return the width of the names, and the columns with room: left edges and widths."""
        names, needs = self._needs(style, size)
        kept = sum(n for n, head in zip(needs, self.heads[1:], strict=True) if not head.goes)
        left = min(names, self.names * width, max(width - kept - style.px(6), 0.25 * width))
        room = width - left - (0 if self.even else style.px(6))
        columns = list(range(len(needs)))
        for n in sorted(columns, key=lambda n: -self.heads[n + 1].goes):
            some = [needs[each] for each in columns]
            wanted = max(some) * len(some) if self.even else sum(some)
            if self.heads[n + 1].goes and wanted > room:
                columns.remove(n)
        spare, x, out = max(room - sum(needs[n] for n in columns), 0.0), left, []
        takers = [n for n in columns if self.heads[n + 1].takes] or columns
        for n in columns:
            wide = needs[n] + (spare / len(takers) if n in takers else 0.0)
            wide = room / len(columns) if self.even else wide
            out.append((n, x, wide))
            x += wide
        return left, out

    def _headings(
        self, style: Style, rect: QRectF, left: float, columns: list[tuple[int, float, float]]
    ) -> Iterator[Placed]:
        line, px = style.px(LINE), style.px
        y = rect.y() + self._head(style) - line
        yield Placed(Text(self.heads[0].words, "muted"), QRectF(rect.x() + px(5), y, left, line))
        groups: dict[Wordings, QRectF] = {}
        for n, x, wide in columns:
            head, place = self.heads[n + 1], QRectF(rect.x() + x, y, wide, line)
            align, edge = LEFT if head.takes else self.align, px(0.5 if self.even else 6)
            start, end = 0 if head.takes else edge, edge if head.takes or self.even else 0
            yield Placed(Text(head.words, "muted", align), place.adjusted(start, 0, -end, 0))
            if head.group:
                groups[head.group] = groups.get(head.group, place).united(place)
        for words, place in groups.items():
            yield Placed(Text(words, align=CENTRE), place.translated(0, -line))
            yield Placed(RuleLine(), place.adjusted(px(3), 0, -px(3), 0))


def _sized(box: Box, size: float) -> Box:
    """Return a cell with letters that are no larger than a size."""
    return replace(box, size=min(box.size, size)) if isinstance(box, Text) else box
