"""The formulas of an algorithm's update: typeset, and with the numbers of a row put in."""

from __future__ import annotations

import threading
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil
from typing import Any

from PySide6.QtCore import QPoint, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QImage,
    QPaintEngine,
    QPainter,
    QPainterPath,
    QTransform,
)

_EM = 48.0
"""Pixels at which formulas are typeset, once; other sizes are made from the same outlines."""


_MOST_COLOURS = 3
"""Pictures of a formula that are kept: it stands there plain, in grey or marked."""
_ROWS = ("math", "mrow", "mtd")
"""Elements of MathML whose parts the library makes twice, to know their height."""
_ONE = threading.Lock()
"""One formula at a time: the library reads glyphs from one place in one font file."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A typeset formula: outlines, so one serves every colour, device and thread.

    Attributes
    ----------
    path : QPainterPath
        Its outlines, from the left end of its baseline.
    width, ascent, descent : float
        Its extent in pixels, the last two from the baseline.
    """

    path: QPainterPath
    width: float
    ascent: float
    descent: float
    _pictures: dict[int, QImage] = field(default_factory=dict, repr=False, compare=False)

    def draw(self, painter: QPainter, x: float, baseline: float, colour: QColor | str) -> None:
        """Draw it with its left end at `x`; on pixels as a picture made once for each colour."""
        if painter.paintEngine().type() is QPaintEngine.Type.Raster:
            picture = self._picture(QColor(colour))
            painter.drawImage(
                QPoint(round(x) - 1, round(baseline) - ceil(self.ascent) - 1), picture
            )
            return
        painter.translate(x, baseline)
        painter.fillPath(self.path, QColor(colour))
        painter.translate(-x, -baseline)

    def _picture(self, colour: QColor) -> QImage:
        found = self._pictures.get(colour.rgb())
        if found is None:
            if len(self._pictures) >= _MOST_COLOURS:
                self._pictures.clear()
            size = QSize(ceil(self.width) + 2, ceil(self.ascent) + ceil(self.descent) + 2)
            found = QImage(size, QImage.Format.Format_ARGB32_Premultiplied)
            found.fill(Qt.GlobalColor.transparent)
            with QPainter(found) as painter:
                painter.setRenderHint(QPainter.RenderHint.Antialiasing)
                painter.translate(1, ceil(self.ascent) + 1)
                painter.fillPath(self.path, colour)
            self._pictures[colour.rgb()] = found
        return found


@lru_cache(maxsize=96)
def formula(latex: str, pixels: float) -> Formula:
    """Return a typeset formula.

    Parameters
    ----------
    latex : str
        What to typeset.
    pixels : float
        Size of its letters.
    """
    path = QTransform.fromScale(pixels / _EM, pixels / _EM).map(_outlines(latex))
    box = path.boundingRect()
    path.translate(-box.x(), 0)
    return Formula(path, box.width(), -box.top(), box.bottom())


@lru_cache(maxsize=256)
def steps(latex: str) -> int:
    """Return how many steps it takes to typeset a formula: each row measures its parts twice."""
    from latex2mathml.converter import convert

    def count(element: ElementTree.Element, times: int) -> int:
        if element.tag.rpartition("}")[2] in _ROWS:
            times *= 2
        return times + sum(count(child, times) for child in element)

    return count(ElementTree.fromstring(convert(latex)), 1)


def typeset(formulas: Iterable[str]) -> None:
    """Typeset formulas ahead of painting them: each takes long enough to be felt in a window."""
    for latex in formulas:
        _outlines(latex)


@lru_cache(maxsize=256)
def _outlines(latex: str) -> QPainterPath:
    """Return the outlines at `_EM` pixels, baseline at 0."""
    import ziamath  # a fifth of a second: not at the start

    library: Any = ziamath
    with _ONE:
        # Else glyphs are symbols that are used by reference, not outlines.
        library.config.svg2 = False
        picture = ElementTree.fromstring(library.Latex(latex, size=_EM).svg())
    out = QPainterPath()
    out.setFillRule(Qt.FillRule.WindingFill)
    for element in picture.iter():
        kind = element.tag.rpartition("}")[2]
        if kind == "path":
            _add_glyph(out, element.attrib["d"])
        elif kind == "rect":  # the bar of a fraction
            sides = (float(element.attrib[name]) for name in ("x", "y", "width", "height"))
            out.addRect(QRectF(*sides))
    return out


def _add_glyph(out: QPainterPath, commands: str) -> None:
    """Add the outline that an SVG path of absolute M, L, Q, C and Z describes."""
    words = iter(commands.split())
    for word in words:
        match word:
            case "M":
                out.moveTo(*_numbers(words, 2))
            case "L":
                out.lineTo(*_numbers(words, 2))
            case "Q":
                out.quadTo(*_numbers(words, 4))
            case "C":
                out.cubicTo(*_numbers(words, 6))
            case "Z":
                out.closeSubpath()
            case _:
                raise ValueError(f"path command {word!r}: expected M, L, Q, C or Z")


def _numbers(words: Any, count: int) -> list[float]:
    return [float(next(words)) for _ in range(count)]


# --- the update, in numbers ------------------------------------------------------------------
