"""Boxes that paint: words, numbers as colours, lanes of time, cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from PySide6.QtCore import QRectF, QSizeF, Qt
from PySide6.QtGui import QFont, QImage, QPainter

from ui.kit.boxes import Box, Placed, Row, Tone, ink
from ui.look.draw import CENTRE, LEFT, RIGHT, draw_text, outline, text_width, wrapped
from ui.look.names import first_that_fits
from ui.look.theme import LABEL, Style

LINE = 16.0
"""Height of a line of text, pixels."""
Wordings = str | tuple[str, ...]
"""Words, and shorter words for small places; longest first."""


@dataclass(frozen=True, eq=False)
class Text(Box):
    """One line: of several wordings the first that fits, else the last, elided.

    Where there is no room for the letters' height nothing is seen.
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
        return style.px(self.high or LINE) * len(self.lines(style, width))

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        lines = self.lines(style, rect.width())
        deep = rect.height() / len(lines)
        for n, words in enumerate(lines if deep >= style.px(1.1 * self.size) else ()):
            place = QRectF(rect.x(), rect.y() + n * deep, rect.width(), deep)
            draw_text(painter, place, words, self.font(style), ink(style, self.tone), self.align)


class Paragraph(Text):
    """As many lines as the last wording needs, if none fits in one."""

    def lines(self, style: Style, width: float) -> list[str]:
        return wrapped(super().lines(style, width)[0], self.font(style), width)

    def width(self, style: Style) -> float:
        return 0.0


@dataclass(frozen=True, eq=False)
class Legend(Box):
    """What colours stand for, on as many lines as the entries need."""

    entries: tuple[tuple[Tone, str], ...]

    def places(self, style: Style, width: float) -> list[QRectF]:
        """Return the place of each entry inside a width."""
        line, font, out = style.px(LINE), style.text_font(LABEL), list[QRectF]()
        x = y = 0.0
        for _, name in self.entries:
            wide = line + text_width(font, name) + 1
            if x > 0 and x + wide > width:
                x, y = 0.0, y + line
            out.append(QRectF(x, y, wide, line))
            x += wide + line
        return out

    def height(self, style: Style, width: float) -> float:
        return self.places(style, width)[-1].bottom()

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        line, places = style.px(LINE), self.places(style, rect.width())
        for (tone, name), place in zip(self.entries, places, strict=True):
            x, y = rect.x() + place.x(), rect.y() + place.y()
            painter.fillRect(QRectF(x, y + 0.2 * line, 0.6 * line, 0.6 * line), ink(style, tone))
            words = QRectF(x + line, y, place.width() - line, line)
            draw_text(painter, words, name, style.text_font(LABEL), style.theme.muted)


@dataclass(frozen=True, eq=False)
class Image(Box):
    """Pixels that a function makes in a style, stretched unsmoothed, inside a frame.

    A square one is the largest square at the top left of its place.
    """

    pixels: Callable[[Style], QImage]
    framed: bool = True
    square: bool = False

    def most_width(self, style: Style, height: float) -> float:
        return max(height, 0.0) if self.square else super().most_width(style, height)

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        side = QSizeF(1, 1).scaled(rect.size(), Qt.AspectRatioMode.KeepAspectRatio)
        yield Placed(self, QRectF(rect.topLeft(), side) if self.square else rect)

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
        edge = 1 if self.framed else 0
        painter.drawImage(rect.adjusted(edge, edge, -edge, -edge), self.pixels(style))
        if self.framed:
            outline(painter, rect, style.theme.grid)


class Bar(NamedTuple):
    """A span of a lane: along the axis, across as shares of the lane; with words if they fit."""

    start: float
    end: float
    tone: Tone
    words: str = ""
    ink: Tone = "text"
    top: float = 0.0
    deep: float = 1.0


@dataclass(frozen=True, eq=False)
class Bars(Box):
    """A lane of a time axis that is so long."""

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


def axis(start: str, middle: str, end: str) -> Row:
    """Return the marks of an axis; where there is little room that in the middle is left out."""
    ends = Text(start, "muted", grow=1, wide=56), Text(end, "muted", RIGHT, grow=1, wide=56)
    return Row((ends[0], Text(middle, "muted", CENTRE, may_go=True), ends[1]), gap=0)
