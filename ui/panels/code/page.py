"""An algorithm by the numbered lines of its paper, words and formulas; the current one framed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from math import ceil

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPolygonF

from simulator.code.paper import Paper, Role
from ui.board.point_marks import paint_arrow
from ui.look.draw import RIGHT, draw_text, mixed, outline, text_width
from ui.look.flow import Face, FlowWord, Piece, alpha_spots, flow, paint_pieces, width_of
from ui.look.formula import typeset
from ui.look.lit import paint_lit, typeset_alpha
from ui.look.theme import Style

_FORMULA = re.compile(r"\$([^$]+)\$([.,:;)]*)")
_TEXT, _SMALL = 13.0, 12.0
_SMALLEST = 11.0
"""Sizes of letters in pixels: at scale 1, and the least one."""
CURRENT_SHARE = 0.2
"""Share of the current colour in the ground of the current line."""


@dataclass(frozen=True, slots=True)
class PaperRow:
    """One line of the algorithm laid out."""

    box: QRectF  # the whole line, with margin and wrapped parts
    pieces: tuple[Piece, ...]  # its words and formulas
    baseline: float  # of the first line, where the number stands


@dataclass(frozen=True, slots=True)
class PaperLayout:
    """Places of the lines of a paper."""

    # at which text scale: smaller than asked for where a formula is wider than the page
    style: Style
    margin: float  # width of the column of marks and numbers
    rows: tuple[PaperRow, ...]  # the algorithm's lines
    title: tuple[Piece, ...]  # over them
    note: tuple[Piece, ...]  # under them
    height: float  # of the page

    def row_at(self, y: float) -> int | None:
        """Return which line is at a height."""
        for n, row in enumerate(self.rows):
            if row.box.top() <= y < row.box.bottom():
                return n
        return None


def typeset_paper(paper: Paper) -> None:
    """Typeset an algorithm's formulas ahead of painting them."""
    texts = (*(line.text for line in paper.lines), paper.note)
    formulas = [found[1] for text in texts for found in _FORMULA.finditer(text)]
    typeset(formulas)
    typeset_alpha(formulas)


def paper_layout(paper: Paper, style: Style, width: float) -> PaperLayout:
    """Return the places of an algorithm's lines on a page.

    width: of the page, in pixels.
    """
    laid = _laid_out(paper, style, width)
    widest = max((piece_end for row in laid.rows for piece_end in _ends(row, laid)), default=0.0)
    if widest > width:
        least = min(style.scale, _SMALLEST / _TEXT)
        smaller = max(least, style.scale * (width / widest))
        laid = _laid_out(paper, replace(style, scale=smaller), width)
    return laid


def _ends(row: PaperRow, laid: PaperLayout) -> Iterator[float]:
    for piece in row.pieces:
        yield piece.x + width_of(piece.text, piece.face, laid.style, _TEXT) + laid.style.px(6)


def _laid_out(paper: Paper, style: Style, width: float) -> PaperLayout:
    px = style.px
    labels = (text_width(style.code_font(_SMALL), line.label) for line in paper.lines)
    margin = float(ceil(px(18) + max(labels) + px(10)))
    title, y = _wrapped(paper.title, style, px(8), width - px(8), px(5), _SMALL)
    y = float(ceil(y + px(4)))  # whole pixels: frames are sharp
    rows = []
    for line in paper.lines:
        left = margin + px(6) + line.level * px(16)
        pieces, bottom = _wrapped(line.text, style, left, width - px(6), y + px(3), _TEXT)
        box = QRectF(0, y, width, ceil(bottom + px(3)) - y)
        rows.append(PaperRow(box, pieces, pieces[0].baseline))
        y = box.bottom()
    note, y = _wrapped(paper.note, style, px(8), width - px(8), y + px(6), _SMALL)
    return PaperLayout(style, margin, tuple(rows), title, note, y + px(6))


def _words(text: str) -> Iterator[FlowWord]:
    """Yield words and formulas; punctuation after a formula is glued to the formula."""
    at = 0
    for found in _FORMULA.finditer(text):
        yield from (FlowWord(word) for word in text[at : found.start()].split())
        yield FlowWord(found[1], Face.MATHS)
        if found[2]:
            yield FlowWord(found[2], glued=True)
        at = found.end()
    yield from (FlowWord(word) for word in text[at:].split())


def _wrapped(
    text: str, style: Style, left: float, right: float, top: float, size: float
) -> tuple[tuple[Piece, ...], float]:
    """Return words and formulas set in lines between two edges, and their lower end."""
    laid = flow(_words(text), style, left, right, top, size, hang=style.px(14))
    return laid.pieces, laid.bottom


def paint_paper(
    painter: QPainter,
    paper: Paper,
    layout: PaperLayout,
    *,
    current: Collection[int] = (),
    marked: Collection[int] = (),
    pointed: Collection[int] = (),
    focus: int | None = None,
    hover: int | None = None,
    lit: bool = False,
) -> None:
    """Paint an algorithm's page.

    painter: with the page's upper left corner at its origin.
    current: places of the lines that run now: framed, and an arrow in the margin.
    marked: places of the lines with a breakpoint: a dot in the margin.
    pointed: places of the lines that a lesson points at: a ring, and an arrow in the margin.
    focus, hover: the line that keys act on, and the one under the pointer.
    lit: whether α, or the power of e in its place, is lit.
    """
    style, theme = layout.style, layout.style.theme
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    for n, row in enumerate(layout.rows):
        line = paper.lines[n]
        box = row.box.adjusted(layout.margin, 0, -style.px(2), 0)
        if n in current:
            painter.fillRect(box, mixed(theme.panel, theme.current, CURRENT_SHARE))
            outline(painter, box, theme.current, style.px(2))
        elif n in pointed:
            outline(painter, box, theme.text, style.px(2), style.px(5))
        elif n == hover:
            painter.fillRect(box, mixed(theme.panel, theme.text, 0.06))
        if n == focus:
            pen = style.pen(theme.text, 1, Qt.PenStyle.DotLine)
            painter.setPen(pen)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(box.adjusted(1, 1, -1, -1))
        paint_margin(
            painter, style, QRectF(0, row.box.top(), layout.margin, row.box.height()),
            line.label, row.baseline, current=n in current, marked=n in marked,
            pointed=n in pointed,
        )  # fmt: skip
        for piece in row.pieces if lit else ():
            if piece.face is Face.MATHS:
                for spot in alpha_spots(piece, style, _TEXT):
                    paint_lit(painter, spot, style)
        quiet = line.role is not Role.OP and n not in current
        paint_pieces(painter, row.pieces, style, theme.muted if quiet else theme.text, _TEXT)
    paint_pieces(painter, layout.title, style, theme.muted, _SMALL)
    paint_pieces(painter, layout.note, style, theme.muted, _SMALL)


def paint_margin(
    painter: QPainter,
    style: Style,
    box: QRectF,
    label: str,
    baseline: float,
    *,
    current: bool,
    marked: bool,
    pointed: bool = False,
) -> None:
    """Paint the margin of a line: breakpoint, number, and the arrow of the current line.

    A line that a lesson points at has a larger arrow, from the left, and a smaller breakpoint.
    """
    theme, px = style.theme, style.px
    font = style.code_font(_SMALL, bold=current)
    metrics = QFontMetricsF(font)
    middle = baseline - metrics.capHeight() / 2
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    if pointed:
        head, tail = (QPointF(box.left() + px(x), middle) for x in (17, 1.5))
        paint_arrow(painter, head, tail, style, 0.55)
    painter.setPen(Qt.PenStyle.NoPen)
    if marked:
        place, size = (4.5, 3.5) if pointed else (9.0, 4.5)
        painter.setPen(style.pen(theme.text, 1))
        painter.setBrush(QColor(theme.bad))
        painter.drawEllipse(QPointF(box.left() + px(place), middle), px(size), px(size))
        painter.setPen(Qt.PenStyle.NoPen)
    if current:
        painter.setBrush(QColor(theme.current))
        tip = box.right() - px(1)
        corners = ((-6.0, -4.5), (0.0, 0.0), (-6.0, 4.5))
        painter.drawPolygon(QPolygonF([QPointF(tip + px(x), middle + px(y)) for x, y in corners]))
    height = metrics.height()
    room = QRectF(box.left(), baseline - metrics.ascent(), box.width() - px(9), height)
    draw_text(painter, room, label, font, theme.text if current else theme.muted, RIGHT)
