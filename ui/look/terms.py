"""Words of the glossary and papers in texts: how they look, and where a pointer finds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen

from simulator.base.glossary import line_of, mentions, word_called
from simulator.base.references import citations, reference_called
from ui.look.draw import hairline
from ui.look.flow import Face, FlowWord, Piece, font_of, width_of
from ui.look.theme import Style

_SAID = (Face.TEXT, Face.BOLD, Face.ITALIC)
_BEFORE = "([“"
_AFTER = '.,:;!?…)”’"'
"""Signs that may stand before or after a word without a space and are not underlined."""


class TermSpot(NamedTuple):
    """A word of the glossary, or a paper, under the pointer."""

    name: str


def said_of(name: str) -> str:
    """Return the meaning of a glossary word, or the cited paper, for a tooltip."""
    paper = reference_called(name)
    return paper.line if paper is not None else line_of(word_called(name))


def with_terms(words: Sequence[FlowWord]) -> tuple[FlowWord, ...]:
    """Return the words of a text, with the name of a glossary word or paper at its first place."""
    text, begins = "", []
    for word in words:
        text += "" if word.glued or not text else " "
        begins.append(len(text))
        # Code and formulas become as many letters that are in no word.
        text += word.text if word.face in _SAID else "\0" * len(word.text)
    names = [""] * len(words)
    found = [(said.start, said.stop, said.word.name) for said in mentions(text)]
    found += [(cited.start, cited.stop, cited.paper.name) for cited in citations(text)]
    for start, stop, name in found:
        for n, begin in enumerate(begins):
            if start < begin + len(words[n].text) and begin < stop:
                names[n] = name
    return tuple(
        replace(word, term=name) if name else word for word, name in zip(words, names, strict=True)
    )


def term_boxes(
    pieces: Sequence[Piece], style: Style, size: float
) -> Iterator[tuple[TermSpot, QRectF]]:
    """Yield where words of the glossary and papers stand in a text that `flow` has set."""
    for piece in pieces:
        if piece.term:
            metrics = QFontMetricsF(font_of(piece.face, style, size))
            said = piece.text.rstrip(_AFTER)
            before = said[: len(said) - len(said.lstrip(_BEFORE))]
            left = width_of(before, piece.face, style, size) if before else 0.0
            wide = width_of(said, piece.face, style, size) - left
            box = QRectF(piece.x + left, piece.baseline - metrics.ascent(), wide, metrics.height())
            yield TermSpot(piece.term), box


def paint_dots(painter: QPainter, box: QRectF, style: Style) -> None:
    """Underline a word of the glossary with dots: it can be clicked."""
    pen = QPen(QColor(style.theme.muted), max(hairline(style), round(style.px(1.3))))
    pen.setDashPattern([1.0, 2.0])
    pen.setCapStyle(Qt.PenCapStyle.FlatCap)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    painter.setPen(pen)
    y = round(box.bottom() - style.px(1.5)) + 0.5
    painter.drawLine(QLineF(round(box.left()), y, round(box.right()), y))
    painter.restore()
