"""Matrices as boxes: heat maps, their numbers where there is room, and slices of heads."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSizeF
from PySide6.QtGui import QColor, QFont, QPainter

from simulator.base.dtypes import F32
from ui.kit.boxes import Box, Placed, Tone, ink
from ui.kit.shapes import Heat
from ui.look.draw import CENTRE, draw_text, hairline, outline, text_width
from ui.look.formula import formula
from ui.look.heat import KEPT, Sheet, signed_limit
from ui.look.theme import LABEL, Style
from ui.look.units import exact_text
from ui.panels.layer.state import Bools
from ui.panels.layer.words import cell_words

MOST_NUMBERS = 144
"""Most numbers of a matrix that are written into their cells."""
_FEW = 64
"""Numbers up to which the largest one sets the scale of colours."""
_MOST = 1.6 * LABEL
"""Size of the largest digits; the smallest are a pixel less than labels, in a lecture, too."""
_SHARE, _LOW_SHARE = 0.68, 0.78
"""Share of a cell's height that its number takes, and the most in a low cell."""


def limit_of(values: F32) -> float:
    """Return the magnitude at which the colours of a matrix end."""
    if values.size <= _FEW:
        return float(np.abs(values).max(initial=0)) or 1.0
    return KEPT.get(values, "layer limit", lambda: signed_limit(values))


def number_font(values: F32, style: Style, box: QRectF) -> QFont | None:
    """Return the font in which all numbers of a matrix fit their cells; None: they do not fit."""
    if values.size > MOST_NUMBERS:
        return None
    rows, cols = values.shape
    width, height = box.width() / cols - style.px(2), box.height() / rows
    longest = max((cell_words(float(value)) for value in values.flat), key=len)
    label = style.px(LABEL)
    # Low cells have less air around numbers that are no larger than a label.
    largest = int(min(max(_SHARE * height, min(_LOW_SHARE * height, label)), style.px(_MOST)))
    least = max(round(label) - 1, math.ceil(style.least))
    fonts = (style.code_font(pixels / style.scale) for pixels in range(largest, least - 1, -1))
    return next((font for font in fonts if text_width(font, longest) <= width), None)


def rows_box(box: QRectF, rows: range, count: int) -> QRectF:
    """Return the place of some rows of a box."""
    high = box.height() / count
    return QRectF(box.x(), box.y() + high * rows.start, box.width(), high * len(rows))


def runs_of(rows: Bools) -> Iterator[range]:
    """Yield the runs of neighbouring rows that exist."""
    found = np.flatnonzero(rows)
    for run in np.split(found, np.flatnonzero(np.diff(found) != 1) + 1):
        if run.size:
            yield range(int(run[0]), int(run[-1]) + 1)


def band_of(style: Style) -> float:
    """Return how thick the bands of heads are."""
    return max(style.px(5), 4.0)


def laid(
    columns: Sequence[Sequence[tuple[float, float]]], largest: tuple[float, float], style: Style,
    rect: QRectF, *, cell: QSizeF, least: float, gap: float, edge: float, head: float = 0.0,
) -> list[list[QRectF]]:  # fmt: skip
    """Return the places of matrices in columns side by side, as large as their shapes say.

    largest: rows and columns that take all the room, though a cell is no larger than `cell`.
    least: the least side of a matrix as a share of the longest: a flat matrix is still seen.
    gap, edge, head: room between columns, at both sides, and above each matrix.
    """
    wide = [max(max(cols / largest[1], least) for _, cols in column) for column in columns]
    room = rect.width() - gap * (len(columns) - 1) - 2 * edge
    across = min(room / sum(wide), largest[1] * style.px(cell.width()))
    most = rect.height() / max(map(len, columns)) - head
    down = min(most, largest[0] * style.px(cell.height()))
    x, places = rect.x() + edge + (room - across * sum(wide)) / 2, []
    for column, share in zip(columns, wide, strict=True):
        pitch, found = rect.height() / len(column), list[QRectF]()
        for n, (rows, cols) in enumerate(column):
            own = across * max(cols / largest[1], least)
            high = max(down * (max(rows / largest[0], least) if rows > 1 else 0.0), style.px(14))
            y = rect.y() + n * pitch + (pitch + head - high) / 2
            left = x + (across * share - own) / 2
            found.append(QRectF(round(left), round(y), round(own), round(high)))
        places.append(found)
        x += across * share + gap
    return places


@dataclass(frozen=True, eq=False)
class Matrix(Box):
    """A matrix with bands of heads; the pointer reads its numbers and finds (`id`, row, column)."""

    values: F32
    colour: str  # the tensor whose colours the matrix has
    said: str = ""  # its name in a line of text
    rows: Bools | None = None  # (N,) rows that exist, or (H, N) in each slice; None: all
    slices: tuple[range, ...] = ()  # the heads of each slice
    by_rows: bool = False  # whether its slices are rows
    limit: float | None = None  # the magnitude at which colours end; None: of its numbers
    positive: bool = False  # whether colours begin at 0: no number is below it
    font: QFont | None = None  # of its numbers; None: a font in which they fit
    written: bool = True  # whether its numbers are written into their cells where they fit
    bare: bool = False  # whether it has no ground and no frame
    tallest: float = math.inf  # largest height of a row in a column of boxes
    square: bool = False  # whether it is the largest square in the middle of its place
    frames: tuple[tuple[range, range], ...] = ()  # rows and columns with frames around them
    tone: Tone = "current"  # of frames

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        side = min(rect.width(), rect.height())
        x = round(rect.center().x() - side / 2)
        yield Placed(self, QRectF(x, rect.y(), side, side) if self.square else rect)

    def most_height(self, style: Style) -> float:
        return style.px(self.tallest) * len(self.values)

    def spot(self, rect: QRectF, at: QPointF) -> Hashable:
        return None if self.id is None else (self.id, *self.cell(rect, at))

    def tip_at(self, rect: QRectF, at: QPointF) -> str:
        row, col = self.cell(rect, at)
        return f"{self.said}[{row}, {col}] = {exact_text(float(self.values[row, col]))}"

    def cell(self, rect: QRectF, at: QPointF) -> tuple[int, int]:
        """Return the row and the column at a point inside."""
        rows, cols = self.values.shape
        row = int((at.y() - rect.y()) / rect.height() * rows)
        col = int((at.x() - rect.x()) / rect.width() * cols)
        return min(row, rows - 1), min(col, cols - 1)

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        theme, (count, cols) = style.theme, self.values.shape
        top = limit_of(self.values) if self.limit is None else self.limit
        heat = Heat(self.values, 0.0 if self.positive else -top, top, self.colour)
        key = "layer sheet", theme.name, self.colour, heat.low, top
        sheet = KEPT.get(self.values, key, lambda: Sheet(heat(style)))
        there = np.ones((1, count), np.bool_) if self.rows is None else np.atleast_2d(self.rows)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        if not self.bare:
            painter.fillRect(rect, QColor(theme.empty))
        wide, share = rect.width() / len(there), 1 / len(there)
        for n, rows in enumerate(there):
            within = QRectF(rect.x() + n * wide, rect.y(), wide, rect.height())
            for run in runs_of(rows):
                source = QRectF(n * share, run.start / count, share, len(run) / count)
                sheet.draw(painter, rows_box(within, run, count), source)
        if self.slices:
            self._paint_slices(painter, style, rect)
        painter.restore()
        if not self.bare:
            outline(painter, rect.adjusted(-1, -1, 1, 1), theme.grid, hairline(style))
        font = self.font or number_font(self.values, style, rect)
        if font is not None and self.written:
            shades, each = heat.inks(style), cols // len(there)
            for (row, col), value in np.ndenumerate(self.values):
                if there[col // each, row]:
                    line = rows_box(rect, range(row, row + 1), count)
                    cell = QRectF(line.x() + col * line.width() / cols, line.y(),
                                  line.width() / cols, line.height())  # fmt: skip
                    colour: QColor = shades[row, col]  # type: ignore[assignment]
                    draw_text(painter, cell, cell_words(float(value)), font, colour, CENTRE)
        for rows, columns in self.frames:
            place = rows_box(rect, rows, count)
            place.setLeft(rect.x() + columns.start * rect.width() / cols)
            place.setWidth(len(columns) * rect.width() / cols)
            grown = max(style.px(4) - place.height(), 0.0) / 2 + 2
            mark = place.adjusted(-2, -grown, 2, grown)
            outline(painter, mark, ink(style, self.tone), max(style.px(2), 2))

    def _paint_slices(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        """Paint bands in the colours of heads above the matrix or at its left, lines between."""
        thick, line, heads = (
            band_of(style),
            hairline(style),
            [n for each in self.slices for n in each],
        )
        long = rect.height() if self.by_rows else rect.width()

        def fill(start: float, wide: float, colour: QColor, *, band: bool) -> None:
            across = rect.width() if self.by_rows else rect.height()
            side, deep = (-thick - 1, thick - 1) if band else (0.0, across)
            place = (side, start, deep, wide) if self.by_rows else (start, side, wide, deep)
            painter.fillRect(QRectF(*place).translated(rect.topLeft()), colour)

        for n, head in enumerate(heads):
            start, stop = long * n / len(heads), long * (n + 1) / len(heads)
            fill(start, stop - start, style.theme.head(head), band=True)
        if long / len(self.slices) >= style.px(5):
            for n in range(1, len(self.slices)):
                at = long * n / len(self.slices) - line / 2
                fill(at, line, QColor(style.theme.text), band=False)


@dataclass(frozen=True, eq=False)
class MatrixName(Box):
    """A formula in the middle of its place, and a shape beside it if there is room."""

    latex: str
    tone: Tone
    shape: str = ""
    size: float = 15.0

    def width(self, style: Style) -> float:
        return formula(self.latex, style.px(self.size)).width

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        font, shape = style.text_font(LABEL), f"  {self.shape}" if self.shape else ""
        made = formula(self.latex, style.px(self.size))
        if made.width + text_width(font, shape) > rect.width():
            shape = ""
        x = rect.center().x() - (made.width + text_width(font, shape)) / 2
        made.draw(painter, x, rect.bottom() - style.px(5.5), ink(style, self.tone))
        rest = QRectF(x + made.width, rect.y(), rect.right() - x - made.width, rect.height())
        draw_text(painter, rest, shape, font, style.theme.muted)
