"""Typeset formulas, as outlines and as pictures that are kept."""

from __future__ import annotations

import threading
import xml.etree.ElementTree as ElementTree
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import count
from math import ceil
from typing import Any

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPaintEngine, QPainter, QPainterPath, QTransform

_EM = 48.0
"""Pixels at which formulas are typeset, once; other sizes are made from the same outlines."""


_MOST_BYTES = 4 * 2**20
"""Most bytes of kept pictures. Pictures in use at once (plain, grey, marked) need a quarter."""
_ROWS = ("math", "mrow", "mtd")
"""Elements of MathML whose parts the library makes twice, to know their height."""
_ONE = threading.Lock()
"""One formula at a time: the library reads glyphs from one place in one font file."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A typeset formula: outlines, so one serves every colour, device and thread."""

    path: QPainterPath  # its outlines, from the left end of its baseline
    width: float  # width, ascent, descent: its extent in pixels, the last two from the baseline
    ascent: float
    descent: float
    _number: int = field(default_factory=count().__next__, repr=False, compare=False)

    def draw(self, painter: QPainter, x: float, baseline: float, colour: QColor | str) -> None:
        """Draw the formula with its left end at `x`; `x` and `baseline` are rounded to pixels.

        On a raster the formula is a picture, made once for each colour and device pixel ratio.
        """
        left, line = round(x), round(baseline)
        to, ratio = painter.deviceTransform(), painter.device().devicePixelRatioF()
        raster = painter.paintEngine().type() is QPaintEngine.Type.Raster
        if raster and not to.isRotating() and to.m11() == to.m22() == ratio:
            picture = self._picture(QColor(colour), ratio)
            across = round(to.dx() + left * ratio) - 1
            down = round(to.dy() + line * ratio) - ceil(self.ascent * ratio) - 1
            corner = QPointF((across - to.dx()) / ratio, (down - to.dy()) / ratio)
            painter.drawImage(corner, picture)
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.translate(left, line)
        painter.fillPath(self.path, QColor(colour))
        painter.restore()

    def _picture(self, colour: QColor, ratio: float) -> QImage:
        key = self._number, colour.rgb(), ratio
        return _PICTURES.get(key, partial(self._painted, colour, ratio))

    def _painted(self, colour: QColor, ratio: float) -> QImage:
        above, below = ceil(self.ascent * ratio), ceil(self.descent * ratio)
        size = QSize(ceil(self.width * ratio) + 2, above + below + 2)
        out = QImage(size, QImage.Format.Format_ARGB32_Premultiplied)
        out.fill(Qt.GlobalColor.transparent)
        with QPainter(out) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.translate(1, above + 1)
            painter.scale(ratio, ratio)
            painter.fillPath(self.path, colour)
        # A copy has no painter's buffers: Qt keeps them with a picture, and they take three times
        # as much as most of these pictures.
        picture = out.copy()
        picture.setDevicePixelRatio(ratio)
        return picture


class _Pictures:
    """Pictures of formulas by number, colour and ratio of pixels; the oldest ones go."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._images: OrderedDict[tuple[int, int, float], QImage] = OrderedDict()
        self._bytes = 0

    def get(self, key: tuple[int, int, float], paint: Callable[[], QImage]) -> QImage:
        """Return a picture, painted now if none is kept."""
        with self._lock:
            found = self._images.get(key)
            if found is not None:
                self._images.move_to_end(key)
                return found
        found = paint()
        with self._lock:
            if key not in self._images:
                self._images[key] = found
                self._bytes += found.sizeInBytes()
            while self._bytes > _MOST_BYTES and len(self._images) > 1:
                self._bytes -= self._images.popitem(last=False)[1].sizeInBytes()
        return found


_PICTURES = _Pictures()


@lru_cache(maxsize=96)
def formula(latex: str, pixels: float) -> Formula:
    """Return a typeset formula."""
    path = QTransform.fromScale(pixels / _EM, pixels / _EM).map(_outlines(latex))
    box = path.boundingRect()
    path.translate(-box.x(), 0)
    return Formula(path, box.width(), -box.top(), box.bottom())


def draw_part(
    painter: QPainter,
    latex: str,
    pixels: float,
    x: float,
    baseline: float,
    part: str,
    colours: tuple[QColor | str, QColor | str],
) -> None:
    """Draw a formula's start `part` (all, if empty) in the first colour, the rest in the second."""
    formula(latex, pixels).draw(painter, x, baseline, colours[bool(part)])
    if part:
        formula(part, pixels).draw(painter, x, baseline, colours[0])


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


@lru_cache(maxsize=128)
def _outlines(latex: str) -> QPainterPath:
    """Return the outlines at `_EM` pixels, baseline at 0."""
    import ziamath  # a fifth of a second: not at the start

    library: Any = ziamath
    with _ONE:
        # Otherwise glyphs are symbols used by reference, not outlines.
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
