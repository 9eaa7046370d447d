"""Matrices in small boxes: heat maps, their numbers where there is room, and slices of heads."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QPointF, QRectF
from PySide6.QtGui import QColor, QFont, QPainter, QPen

from simulator.base.dtypes import F32
from ui.kit.boxes import Box, Placed, Tone, ink
from ui.look.draw import CENTRE, draw_text, hairline, outline, text_width
from ui.look.formula import formula
from ui.look.heat import (
    KEPT,
    U32,
    Sheet,
    colour_map,
    heat_image,
    indices,
    inks,
    prefers_white,
    signed_limit,
)
from ui.look.theme import LABEL, Style
from ui.look.units import exact_text
from ui.panels.layer.words import cell_words

MOST_NUMBERS = 144
"""Numbers of a matrix up to which they are written into their cells."""
_FEW = 64
"""Numbers up to which the largest one sets the scale of colours."""
_MOST = 1.6 * LABEL
"""Size of the largest digits; the smallest are a pixel less than labels, in a lecture, too."""
_SHARE, _LOW_SHARE = 0.68, 0.78
"""How much of a cell's height its number takes, and at most in a low cell."""


def limit_of(values: F32) -> float:
    """Return the magnitude at which the colours of a matrix end."""
    if values.size <= _FEW:
        return float(np.abs(values).max(initial=0)) or 1.0
    return KEPT.get(values, "layer limit", lambda: signed_limit(values))


def number_font(values: F32, style: Style, box: QRectF) -> QFont | None:
    """Return the font in which all numbers of a matrix fit their cells; None: they do not."""
    rows, cols = values.shape
    if values.size > MOST_NUMBERS:
        return None
    width, height = box.width() / cols - style.px(2), box.height() / rows
    longest = max((cell_words(float(value)) for value in values.flat), key=len)
    label = style.px(LABEL)
    # Low cells have less air around numbers that are no larger than a label.
    largest = int(min(max(_SHARE * height, min(_LOW_SHARE * height, label)), style.px(_MOST)))
    for pixels in range(largest, round(label) - 2, -1):
        font = style.code_font(pixels / style.scale)
        if text_width(font, longest) <= width:
            return font
    return None


@dataclass(frozen=True, slots=True)
class MatrixPart:
    """Cells of a matrix to draw, and how."""

    rows: NDArray[np.bool_] | None = None  # those that exist; None: all
    cols: range | None = None  # the columns that the box has; None: all
    limit: float | None = None  # the magnitude at which colours end; None: of its numbers
    positive: bool = False  # whether colours begin at 0: no number is below it
    font: QFont | None = None  # of its numbers; None: that in which they fit
    framed: bool = True  # whether it has a ground and a frame
    kept: bool = True  # whether nothing writes to its numbers, so that their picture is kept
    written: bool = True  # whether its numbers are written into their cells where they fit


WHOLE = MatrixPart()


def paint_matrix(
    painter: QPainter, values: F32, colour: str, style: Style, box: QRectF, part: MatrixPart = WHOLE
) -> None:
    """Draw a matrix over a box, in the colours of a tensor."""
    theme = style.theme
    if part.framed:
        painter.fillRect(box, QColor(theme.empty))
    top = limit_of(values) if part.limit is None else part.limit
    low, words = 0.0 if part.positive else -top, colour_map(theme, colour)

    def make() -> Sheet:
        return Sheet(heat_image(values, low, top, words))

    key = ("layer sheet", theme.name, colour, low, top)
    sheet = KEPT.get(values, key, make) if part.kept else make()
    count, across = values.shape
    cols = part.cols or range(across)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    for run in runs_of(part.rows, count):
        source = QRectF(
            cols.start / across, run.start / count, len(cols) / across, len(run) / count
        )
        sheet.draw(painter, rows_box(box, run, count), source)
    painter.restore()
    if part.framed:
        outline(painter, box.adjusted(-1, -1, 1, 1), theme.grid, hairline(style))
    font = part.font or number_font(values[:, cols.start : cols.stop], style, box)
    if font is not None and part.written:
        shades = indices(values, low, top)
        _paint_numbers(painter, values, words, shades, font, box, part.rows, cols)


def rows_box(box: QRectF, rows: range, count: int) -> QRectF:
    """Return the place of some of the rows that a box has."""
    high = box.height() / count
    return QRectF(box.x(), box.y() + high * rows.start, box.width(), high * len(rows))


def _paint_numbers(
    painter: QPainter,
    values: F32,
    words: U32,
    shades: NDArray[np.uint16],
    font: QFont,
    box: QRectF,
    rows: NDArray[np.bool_] | None,
    cols: range,
) -> None:
    dark, light = inks(words)
    white = prefers_white(words[shades])
    count, width = len(values), box.width() / len(cols)
    for run in runs_of(rows, count):
        for row in run:
            line = rows_box(box, range(row, row + 1), count)
            for n, col in enumerate(cols):
                cell = QRectF(line.x() + n * width, line.y(), width, line.height())
                shade = light if white[row, col] else dark
                draw_text(painter, cell, cell_words(float(values[row, col])), font, shade, CENTRE)


def runs_of(rows: NDArray[np.bool_] | None, count: int) -> Iterator[range]:
    """Yield the runs of neighbouring rows that exist."""
    if rows is None:
        yield range(count)
        return
    found = np.flatnonzero(rows)
    for run in np.split(found, np.flatnonzero(np.diff(found) != 1) + 1):
        if run.size:
            yield range(int(run[0]), int(run[-1]) + 1)


def paint_slices(
    painter: QPainter,
    slices: Sequence[range],
    style: Style,
    box: QRectF,
    *,
    along_rows: bool = False,
) -> None:
    """Mark the slices of a matrix with bands in the colours of the heads that they serve.

    Bands lie above the box of the matrix, or at its left.
    """
    theme, thick = style.theme, band_of(style)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    heads = sum(len(each) for each in slices)
    long = box.height() if along_rows else box.width()
    for n, head in enumerate(head for each in slices for head in each):
        start, stop = long * n / heads, long * (n + 1) / heads
        if along_rows:
            band = QRectF(box.x() - thick - 1, box.y() + start, thick - 1, stop - start)
        else:
            band = QRectF(box.x() + start, box.y() - thick - 1, stop - start, thick - 1)
        painter.fillRect(band, theme.head(head))
    lines = []
    for n in range(1, len(slices)):
        at = long * n / len(slices)
        if along_rows:
            lines.append(QLineF(box.left(), box.y() + at, box.right(), box.y() + at))
        else:
            lines.append(QLineF(box.x() + at, box.top(), box.x() + at, box.bottom()))
    painter.setPen(QPen(QColor(theme.text), hairline(style)))
    if long / max(len(slices), 1) >= style.px(5):
        painter.drawLines(lines)
    painter.restore()


def band_of(style: Style) -> float:
    """Return how thick the bands of heads are."""
    return max(style.px(5), 4.0)


@dataclass(frozen=True, eq=False)
class Matrix(Box):
    """A matrix with bands of heads; the pointer reads its numbers and finds (`id`, row, column)."""

    values: F32
    colour: str
    said: str  # its name in a line of text
    part: MatrixPart = WHOLE
    slices: tuple[range, ...] = ()
    by_rows: bool = False  # whether its slices are rows
    square: bool = False  # whether it is the largest square in the middle of its place
    over: Callable[[QPainter, Style, QRectF], None] | None = None  # paints upon it

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        side = min(rect.width(), rect.height())
        x = round(rect.center().x() - side / 2)
        yield Placed(self, QRectF(x, rect.y(), side, side) if self.square else rect)

    def cell(self, rect: QRectF, at: QPointF) -> tuple[int, int]:
        """Return the row and the column at a point inside."""
        rows, cols = self.values.shape
        across = self.part.cols or range(cols)
        row = int((at.y() - rect.y()) / rect.height() * rows)
        col = int((at.x() - rect.x()) / rect.width() * len(across))
        return min(row, rows - 1), across[min(col, len(across) - 1)]

    def spot(self, rect: QRectF, at: QPointF) -> Hashable:
        return None if self.id is None else (self.id, *self.cell(rect, at))

    def tip_at(self, rect: QRectF, at: QPointF) -> str:
        row, col = self.cell(rect, at)
        return f"{self.said}[{row}, {col}] = {exact_text(float(self.values[row, col]))}"

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        paint_matrix(painter, self.values, self.colour, style, rect, self.part)
        if self.slices:
            paint_slices(painter, self.slices, style, rect, along_rows=self.by_rows)
        if self.over is not None:
            self.over(painter, style, rect)


@dataclass(frozen=True, eq=False)
class MatrixName(Box):
    """A formula in the middle of its place, and a shape beside it if there is room."""

    latex: str
    tone: Tone
    shape: str = ""
    size: float = 15.0

    def words(self, style: Style, width: float) -> tuple[float, str]:
        """Return how wide the formula is, and the shape; that is "" if it does not fit."""
        wide, shape = formula(self.latex, style.px(self.size)).width, f"  {self.shape}"
        fits = self.shape and wide + text_width(style.text_font(LABEL), shape) <= width
        return wide, shape if fits else ""

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        font, (wide, shape) = style.text_font(LABEL), self.words(style, rect.width())
        x = rect.center().x() - (wide + text_width(font, shape)) / 2
        made = formula(self.latex, style.px(self.size))
        made.draw(painter, x, rect.bottom() - style.px(5.5), ink(style, self.tone))
        rest = QRectF(x + wide, rect.y(), max(rect.right() - x - wide, 0.0), rect.height())
        draw_text(painter, rest, shape, font, style.theme.muted)
