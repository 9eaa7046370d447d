"""Words and formulas set in lines: a formula has the baseline of the words around it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from PySide6.QtCore import QRectF
from PySide6.QtGui import QFont, QFontMetricsF, QPainter

from ui.look.draw import LEFT, draw_text, text_width
from ui.look.formula import Formula, formula
from ui.look.lit import alpha_boxes
from ui.look.theme import DARK, Style

_MATHS = 14 / 13
"""Ratio of a formula's letter size to the text's: both then look equally large."""
_AIR = 0.05
"""Space on each side of a formula, in text sizes: unlike letters, its outlines have none."""
_CODE = 0.92
"""Ratio of the size of code letters, which are wide, to the text's."""


class Face(Enum):
    """How a piece of a text is set."""

    TEXT = "text"
    BOLD = "bold"
    ITALIC = "italic"
    CODE = "code"
    MATHS = "maths"


@dataclass(frozen=True, slots=True)
class FlowWord:
    """A part of a text without line breaks."""

    text: str  # letters, or the LaTeX of a formula
    face: Face = Face.TEXT  # how it is set
    glued: bool = False  # whether it follows the previous word without a space, on the same line
    term: str = ""  # the word of the glossary that it is, or is part of
    number: int = -1  # its index among the numbers that have a source; -1: none


@dataclass(frozen=True, slots=True)
class Piece:
    """A word or a formula at its place."""

    x: float  # x, baseline: its left end and baseline, in pixels
    baseline: float
    text: str  # the word, or the LaTeX of the formula
    face: Face  # how it is set
    term: str = ""  # the word of the glossary that it is, or is part of
    number: int = -1  # its index among the numbers that have a source; -1: none


@dataclass(frozen=True, slots=True)
class Flow:
    """A text set in lines."""

    pieces: tuple[Piece, ...]  # line by line, from left to right
    right: float  # right, bottom: where its widest line and its last line end, in pixels
    bottom: float


def flow(
    words: Iterable[FlowWord],
    style: Style,
    left: float,
    right: float,
    top: float,
    size: float,
    *,
    hang: float = 0.0,
    leading: float = 1.0,
) -> Flow:
    """Return a text set in lines between two edges.

    left, right: the edges; a formula that is wider than the space between them goes beyond the
        right one.
    size: of the letters, in pixels at scale 1.
    hang: indentation of all lines but the first, in pixels.
    leading: space between lines, in pixels at scale 1.
    """
    font = style.text_font(size)
    metrics, space = QFontMetricsF(font), text_width(font, " ")
    ascent, descent = metrics.ascent(), metrics.descent()
    out: list[Piece] = []
    line: list[tuple[FlowWord, float]] = []
    x, y, widest = left, top, left

    def finish(y: float) -> float:
        """Set the line on its baseline; return where it ends."""
        maths = [_formula(word.text, style, size) for word, _ in line if word.face is Face.MATHS]
        up = max([ascent, *(each.ascent for each in maths)])
        down = max([descent, *(each.descent for each in maths)])
        out.extend(
            Piece(at, y + up, word.text, word.face, word.term, word.number) for word, at in line
        )
        return y + up + down

    for cluster in _clusters(words, style, size, right - left - hang):
        wide = sum(width for _, width in cluster)
        if line and x + wide > right:
            y, line, x = finish(y) + style.px(leading), [], left + hang
        for word, width in cluster:
            line.append((word, x))
            x += width
        widest = max(widest, x)
        x += space
    bottom = finish(y)
    return Flow(tuple(out), widest, bottom)


def _clusters(
    words: Iterable[FlowWord], style: Style, size: float, room: float
) -> Iterator[list[tuple[FlowWord, float]]]:
    """Yield words that stand on one line together, with their widths.

    A word too long for any line is taken apart.
    """
    cluster: list[tuple[FlowWord, float]] = []
    words = tuple(words)
    for word, width in zip(words, _widths(words, style.scale, size), strict=True):
        if cluster and not word.glued:
            yield cluster
            cluster = []
        if width <= room or word.face is Face.MATHS:
            cluster.append((word, width))
            continue
        if cluster:
            yield cluster
            cluster = []
        font = font_of(word.face, style, size)
        *parts, last = ((part, text_width(font, part.text)) for part in _parts(word, font, room))
        yield from ([part] for part in parts)
        cluster = [last]
    if cluster:
        yield cluster


@lru_cache(maxsize=64)
def _widths(words: tuple[FlowWord, ...], scale: float, size: float) -> tuple[float, ...]:
    """Return the widths of words: the same text is set many times to find a good width."""
    style = Style(DARK, scale)  # widths do not depend on colours
    return tuple(width_of(word.text, word.face, style, size) for word in words)


def _parts(word: FlowWord, font: QFont, room: float) -> Iterator[FlowWord]:
    at = 0
    for n in range(1, len(word.text)):
        if text_width(font, word.text[at : n + 1]) > room:
            yield FlowWord(word.text[at:n], word.face)
            at = n
    yield FlowWord(word.text[at:], word.face)


def font_of(face: Face, style: Style, size: float) -> QFont:
    """Return the font of words of a face; not for formulas."""
    if face is Face.CODE:
        return style.code_font(_CODE * size)
    return style.text_font(size, bold=face is Face.BOLD, italic=face is Face.ITALIC)


def width_of(text: str, face: Face, style: Style, size: float) -> float:
    """Return how wide a word or a formula is, in pixels."""
    if face is Face.MATHS:
        return _formula(text, style, size).width + 2 * style.px(_AIR * size)
    return text_width(font_of(face, style, size), text)


def _formula(latex: str, style: Style, size: float) -> Formula:
    return formula(latex, style.px(_MATHS * size))


def alpha_spots(piece: Piece, style: Style, size: float) -> Iterator[QRectF]:
    """Yield where α stands in a formula that `flow` has set."""
    left = piece.x + style.px(_AIR * size)
    return alpha_boxes(piece.text, style.px(_MATHS * size), round(left), piece.baseline, style)


def paint_pieces(
    painter: QPainter, pieces: Iterable[Piece], style: Style, colour: str, size: float
) -> None:
    """Draw a text that `flow` has set with the same style and size."""
    fonts: dict[Face, tuple[QFont, float, float]] = {}
    for piece in pieces:
        if piece.face is Face.MATHS:
            left = piece.x + style.px(_AIR * size)
            _formula(piece.text, style, size).draw(painter, left, piece.baseline, colour)
            continue
        if piece.face not in fonts:
            font = font_of(piece.face, style, size)
            metrics = QFontMetricsF(font)
            fonts[piece.face] = font, metrics.ascent(), metrics.height()
        font, ascent, height = fonts[piece.face]
        place = QRectF(piece.x, piece.baseline - ascent, text_width(font, piece.text) + 1, height)
        draw_text(painter, place, piece.text, font, colour, LEFT)
