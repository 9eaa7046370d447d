"""Boxes that paint: words, numbers as colours, lanes of time, cells."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QImage, QPainter

from simulator.base.dtypes import F32
from simulator.base.glossary import line_of, mentions
from ui.kit.boxes import Box, Placed, Row, Tone, ink
from ui.look.draw import (
    CAP,
    CAP_HIGH,
    CENTRE,
    LEFT,
    RIGHT,
    card,
    draw_cap,
    draw_text,
    outline,
    text_width,
    wrapped,
)
from ui.look.heat import colour_map, heat_image, indices, inks, prefers_white
from ui.look.names import first_that_fits
from ui.look.terms import TermSpot, paint_dots
from ui.look.theme import LABEL, Style

LINE = 16.0
"""Height of a line of text, pixels."""
Wordings = str | tuple[str, ...]
"""Words, and shorter words for small places; longest first."""


@dataclass(frozen=True, eq=False)
class Text(Box):
    """One line: the first wording that fits, else the last one, elided.

    If the letters do not fit in height, nothing is drawn.
    """

    words: Wordings
    tone: Tone = "text"
    align: Qt.AlignmentFlag = LEFT
    size: float = LABEL
    bold: bool = False

    @property
    def wordings(self) -> tuple[str, ...]:
        """All wordings."""
        return (self.words,) if isinstance(self.words, str) else self.words

    def font(self, style: Style) -> QFont:
        """Return the font in a style."""
        return style.text_font(self.size, bold=self.bold)

    def lines(self, style: Style, width: float) -> list[str]:
        """Return the lines at a width."""
        return [first_that_fits(self.wordings, width, self.font(style))]

    def width(self, style: Style) -> float:
        if self.wide is not None:
            return style.px(self.wide)
        return text_width(self.font(style), self.wordings[-1]) + 1

    def height(self, style: Style, width: float) -> float:
        return style.px(self.high or LINE)

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        lines = self.lines(style, rect.width())
        deep = rect.height() / len(lines)
        for n, words in enumerate(lines if deep >= style.px(1.1 * self.size) else ()):
            place = QRectF(rect.x(), rect.y() + n * deep, rect.width(), deep)
            draw_text(painter, place, words, self.font(style), ink(style, self.tone), self.align)


@dataclass(frozen=True, eq=False)
class Alike(Text):
    """A line whose wording is chosen so that its `others` fit in the same width, too."""

    others: tuple[tuple[str, ...], ...] = ()

    def width(self, style: Style) -> float:
        last = (each[-1] for each in (self.wordings, *self.others))
        return max(text_width(self.font(style), words) for words in last) + 1

    def lines(self, style: Style, width: float) -> list[str]:
        font = self.font(style)
        for n, one in enumerate(self.wordings):
            if all(text_width(font, each[n]) <= width for each in (self.wordings, *self.others)):
                return [one]
        return super().lines(style, width)


class Paragraph(Text):
    """As many lines as the last wording needs, if no wording fits in one line."""

    def lines(self, style: Style, width: float) -> list[str]:
        return wrapped(super().lines(style, width)[0], self.font(style), width)

    def width(self, style: Style) -> float:
        return 0.0

    def height(self, style: Style, width: float) -> float:
        return super().height(style, width) * len(self.lines(style, width))


@dataclass(frozen=True, eq=False)
class _Term(Box):
    """A word of the glossary in a sentence, which can be clicked."""

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        paint_dots(painter, rect, style)


class Sentence(Paragraph):
    """A paragraph with its words of the glossary marked, but not on the stage."""

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        yield Placed(self, rect)
        lines, font, known = self.lines(style, rect.width()), self.font(style), set[str]()
        deep = rect.height() / len(lines)
        for n, line in enumerate(lines if not style.least and self.align == LEFT else ()):
            for found in mentions(line):
                if found.word.name not in known:
                    known.add(found.word.name)
                    x = rect.x() + text_width(font, line[: found.start])
                    wide = text_width(font, line[found.start : found.stop])
                    high = min(deep, style.px(1.25 * self.size))
                    box = QRectF(x, rect.y() + (n + 0.5) * deep - high / 2, wide, high)
                    term = _Term(id=TermSpot(found.word.name), tip=line_of(found.word))
                    yield Placed(term, box)


@dataclass(frozen=True, eq=False)
class Cap(Box):
    """The cap of a key in the middle of its place, no narrower than high."""

    key: str
    size: float = 24.0  # its height

    def width(self, style: Style) -> float:
        font = style.text_font(CAP * self.size / CAP_HIGH, bold=True)
        return max(text_width(font, self.key) + style.px(14), style.px(self.size))

    def height(self, style: Style, width: float) -> float:
        return style.px(self.size)

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        cap = QRectF(rect.x(), 0, rect.width(), style.px(self.size))
        cap.moveCenter(rect.center())
        draw_cap(painter, cap, self.key, style)


@dataclass(frozen=True, eq=False)
class Card(Box):
    """A filled box with a border around another box."""

    part: Box
    border: Tone = "grid"
    thick: float = 1.0
    pad: float = 3.0
    ground: Tone = "field"

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        yield Placed(self, rect)
        pad = style.px(self.pad)
        yield from self.part.place(style, rect.adjusted(pad, pad, -pad, -pad))

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ground, border = ink(style, self.ground), ink(style, self.border)
        card(painter, rect, ground, border, style.px(4), style.px(self.thick))


@dataclass(frozen=True, eq=False)
class Legend(Box):
    """Names of colours, or of signs that functions paint; short names if they take fewer lines."""

    entries: tuple[tuple[Tone | Callable[[QPainter, Style, QRectF], None], Wordings], ...]

    def placed(self, style: Style, width: float) -> list[tuple[str, QRectF]]:
        """Return the words and the place of each entry inside a width."""
        said = [(words,) if isinstance(words, str) else words for _, words in self.entries]
        names = ([each[at] for each in said] for at in (0, -1))
        return min((self._lines(each, style, width) for each in names), key=_last_line)

    def _lines(self, names: list[str], style: Style, width: float) -> list[tuple[str, QRectF]]:
        line, font, out = style.px(LINE), style.text_font(LABEL), list[tuple[str, QRectF]]()
        x = y = 0.0
        for name in names:
            wide = line + text_width(font, name) + 1
            if x > 0 and x + wide > width:
                x, y = 0.0, y + line
            out.append((name, QRectF(x, y, wide, line)))
            x += wide + 0.75 * line
        return out

    def height(self, style: Style, width: float) -> float:
        return _last_line(self.placed(style, width))

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        line, placed = style.px(LINE), self.placed(style, rect.width())
        for (tone, _), (name, place) in zip(self.entries, placed, strict=True):
            x, y = rect.x() + place.x(), rect.y() + place.y()
            swatch = QRectF(x, y + 0.2 * line, 0.6 * line, 0.6 * line)
            if callable(tone):
                tone(painter, style, swatch)
            else:
                painter.fillRect(swatch, ink(style, tone))
            words = QRectF(x + line, y, place.width() - line, line)
            draw_text(painter, words, name, style.text_font(LABEL), style.theme.muted)


def _last_line(placed: list[tuple[str, QRectF]]) -> float:
    """Return where the last line of a legend ends."""
    return placed[-1][1].bottom()


@dataclass(frozen=True, eq=False)
class Image(Box):
    """Pixels that a function makes in a style, stretched unsmoothed, inside a frame.

    A square image is the largest square at the top left of its place.
    """

    pixels: Callable[[Style], QImage]
    framed: bool = True
    square: bool = False

    def most_width(self, style: Style, height: float) -> float:
        return max(height, 0.0) if self.square else super().most_width(style, height)

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        side = min(rect.width(), rect.height())
        yield Placed(self, QRectF(rect.x(), rect.y(), side, side) if self.square else rect)

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
        edge = 1 if self.framed else 0
        painter.drawImage(rect.adjusted(edge, edge, -edge, -edge), self.pixels(style))
        if self.framed:
            outline(painter, rect, style.theme.grid)


@dataclass(frozen=True, eq=False)
class Heat:
    """Numbers, (rows, columns), as the colours of a tensor: the pixels of an `Image`."""

    values: F32
    low: float
    high: float
    tensor: str

    def __call__(self, style: Style) -> QImage:
        return heat_image(self.values, self.low, self.high, colour_map(style.theme, self.tensor))

    def inks(self, style: Style) -> NDArray[np.object_]:
        """Return the colours in which words upon the numbers can be read."""
        words = colour_map(style.theme, self.tensor)
        white = prefers_white(words[indices(self.values, self.low, self.high)])
        return np.array(inks(words), dtype=object)[white.astype(np.intp)]


class Bar(NamedTuple):
    """A span of a lane: its ends in time, top and depth in shares of a lane; words if they fit."""

    start: float
    end: float
    tone: Tone
    words: str = ""
    ink: Tone = "text"
    top: float = 0.0
    deep: float = 1.0


@dataclass(frozen=True, eq=False)
class Bars(Box):
    """A lane of a time axis of a given length."""

    bars: Sequence[Bar]
    length: float

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.fillRect(rect, ink(style, "field"))
        font, across = style.text_font(LABEL), rect.width() / (self.length or 1.0)
        for bar in self.bars:
            place = QRectF(rect.x() + across * bar.start, rect.y() + bar.top * rect.height(),
                           across * (bar.end - bar.start), bar.deep * rect.height())  # fmt: skip
            painter.fillRect(place, ink(style, bar.tone))
            if place.width() > 0:
                outline(painter, place, style.theme.field)
            fits = place.width() > text_width(font, bar.words) + style.px(4)
            if bar.words and fits and place.height() >= style.px(12):
                draw_text(painter, place, bar.words, font, ink(style, bar.ink), CENTRE)


class GridCell(NamedTuple):
    """Contents of a cell of a `CellGrid`; words without an ink get one that can be read there."""

    words: str = ""
    ink: Tone | None = None
    frame: Tone | None = None


@dataclass(frozen=True, eq=False)
class CellGrid(Box):
    """Cells of one size, with the names of rows at the left; the pointer finds (`id`, row, column).

    Words are left out if they do not fit in every cell. Names but the first and the last go if
    rows are lower than a line, and all if they take more than a sixth of the width.
    """

    shape: tuple[int, int]  # rows and columns
    cells: Mapping[tuple[int, int], GridCell]  # contents of some cells
    size: tuple[float, float]  # largest width and height of a cell
    names: tuple[str, ...] = ()
    heat: Heat | None = None  # the colours of all cells

    def most_height(self, style: Style) -> float:
        return style.px(self.size[1]) * self.shape[0]

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        line, rows, columns = style.px(LINE), *self.shape
        left = max((text_width(style.text_font(LABEL), each) for each in self.names), default=0.0)
        left = left + style.px(8) if 0 < left < rect.width() / 6 else 0.0
        wide = min(rect.width() - left, style.px(self.size[0]) * columns)
        high = min(rect.height(), self.most_height(style))
        cells = QRectF(rect.x() + left, rect.y(), wide, high)
        yield Placed(self, cells)
        some = range(rows) if high >= rows * line else (0, rows - 1) if high >= 2 * line else (0,)
        for row in dict.fromkeys(some if left else ()):
            y = self.cell(cells, row, 0).center().y() - line / 2
            y = max(min(y, cells.bottom() - line), cells.y())
            place = QRectF(rect.x(), y, left - style.px(6), line)
            yield Placed(Text(self.names[row], "muted", RIGHT), place)

    def cell(self, rect: QRectF, row: int, column: int) -> QRectF:
        """Return the place of a cell."""
        wide, high = rect.width() / self.shape[1], rect.height() / self.shape[0]
        return QRectF(rect.x() + column * wide, rect.y() + row * high, wide, high)

    def spot(self, rect: QRectF, at: QPointF) -> Hashable:
        (rows, columns), size = self.shape, self.cell(rect, 0, 0)
        row = min(int((at.y() - rect.y()) / size.height()), rows - 1)
        column = min(int((at.x() - rect.x()) / size.width()), columns - 1)
        return None if self.id is None else (self.id, row, column)

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        if self.heat is not None:
            Image(self.heat).paint(painter, style, rect)
        font, size = style.text_font(LABEL), self.cell(rect, 0, 0)
        widest = max((text_width(font, each.words) for each in self.cells.values()), default=0.0)
        fits = size.height() >= style.px(12) and size.width() > widest
        upon = None if self.heat is None else self.heat.inks(style)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for (row, column), (words, tone, frame) in self.cells.items():
            place = self.cell(rect, row, column)
            if fits and words:
                plain = "text" if upon is None else upon[row, column]
                draw_text(painter, place, words, font, ink(style, tone or plain), CENTRE)
            if frame is not None:
                outline(painter, place, ink(style, frame), style.px(1.6), style.px(2))


def axis(start: str, middle: str, end: str) -> Row:
    """Return the marks of an axis; a narrow axis leaves out the one in the middle."""
    ends = Text(start, "muted", grow=1, wide=56), Text(end, "muted", RIGHT, grow=1, wide=56)
    return Row((ends[0], Text(middle, "muted", CENTRE, may_go=True), ends[1]), gap=0)
