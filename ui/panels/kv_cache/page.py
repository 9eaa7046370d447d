"""A page in units of the card, and the shapes on it."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QFont, QPainter

from ui.kit.boxes import Box, Placed, Tone, ink
from ui.kit.shapes import Text, Wordings
from ui.kit.table import FigureText
from ui.look.draw import LEFT, card, outline, text_width
from ui.look.names import first_that_fits
from ui.look.theme import LABEL, Style

WIDE, HIGH = 1300.0, 940.0
"""Size of the card at which a unit is a pixel."""
GREY: Tone = ("panel", "muted", 0.45)
_LINE = 1.35


@dataclass(frozen=True, eq=False)
class Plate(Box):
    """A filled rectangle, or a frame."""

    ground: Tone | None = None
    border: Tone | None = None
    thick: float = 1.0
    radius: float = 3.0
    pattern: Qt.PenStyle = Qt.PenStyle.SolidLine

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.ground is not None:
            ground = ink(style, self.ground)
            edge = ground if self.border is None else ink(style, self.border)
            card(painter, rect, ground, edge, self.radius, self.thick)
        elif self.border is not None:
            outline(painter, rect, ink(style, self.border), self.thick, self.radius)


@dataclass(frozen=True, eq=False)
class Divider(Box):
    """A line along the upper edge, or along the left one, which may be dashed."""

    down: bool = False
    dashed: bool = False

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        pen = style.pen(ink(style, "grid"), 1)
        pen.setStyle(Qt.PenStyle.DashLine if self.dashed else Qt.PenStyle.SolidLine)
        painter.setPen(pen)
        end = rect.bottomLeft() if self.down else rect.topRight()
        painter.drawLine(QLineF(rect.topLeft(), end))


class Page:
    """Finds places in units of the card; letters have their least size."""

    def __init__(self, style: Style, rect: QRectF) -> None:
        self.style, self.placed = style, list[Placed]()
        self.u = min(rect.width() / WIDE, rect.height() / HIGH)
        self._least = max(style.px(LABEL), style.least)

    def letters(self, size: float) -> float:
        """Return the height of letters, pixels."""
        return max(size * self.u, self._least)

    def line(self, size: float) -> float:
        """Return the height of a line of letters."""
        return _LINE * self.letters(size)

    def font(self, size: float, *, bold: bool = False, code: bool = False) -> QFont:
        """Return the font of letters of a size."""
        make = self.style.code_font if code else self.style.text_font
        return make(self.letters(size) / self.style.scale, bold=bold)

    def width(self, words: str, size: float, *, bold: bool = False, code: bool = False) -> float:
        """Return the width of words."""
        return text_width(self.font(size, bold=bold, code=code), words)

    def put(self, box: Box, rect: QRectF) -> None:
        """Put a box somewhere."""
        self.placed.append(Placed(box, QRectF(rect)))

    def say(
        self, rect: QRectF, words: Wordings, size: float, tone: Tone = "text",
        align: Qt.AlignmentFlag = LEFT, *, bold: bool = False, code: bool = False,
    ) -> float:  # fmt: skip
        """Put words into a line; return where words that are aligned left end."""
        kind = FigureText if code else Text
        scaled = self.letters(size) / self.style.scale
        self.put(kind(words, tone, align, size=scaled, bold=bold), rect)
        said = (words,) if isinstance(words, str) else words
        font = self.font(size, bold=bold, code=code)
        return rect.x() + min(text_width(font, first_that_fits(said, rect.width(), font)),
                              rect.width())  # fmt: skip
