"""Words of the glossary in texts: how they are marked, and where a pointer finds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen

from simulator.base.glossary import mentions
from ui.look.draw import hairline
from ui.look.flow import Face, FlowWord, Piece, font_of, width_of
from ui.look.theme import Style

_SAID = (Face.TEXT, Face.BOLD, Face.ITALIC)
_AFTER = '.,:;!?…)”’"'
"""What may follow a word without a space and is not underlined."""


class TermSpot(NamedTuple):
    """A word of the glossary under the pointer."""

    name: str


def with_terms(words: Sequence[FlowWord]) -> tuple[FlowWord, ...]:
    """Return words of a text, those of the glossary named where they stand first."""
    text, begins = "", []
    for word in words:
        text += "" if word.glued or not text else " "
        begins.append(len(text))
        # What is no word of the text has as many letters that are in no word.
        text += word.text if word.face in _SAID else "\0" * len(word.text)
    names = [""] * len(words)
    for mention in mentions(text):
        for n, begin in enumerate(begins):
            if mention.start < begin + len(words[n].text) and begin < mention.stop:
                names[n] = mention.word.name
    return tuple(
        replace(word, term=name) if name else word for word, name in zip(words, names, strict=True)
    )


def term_boxes(
    pieces: Sequence[Piece], style: Style, size: float
) -> Iterator[tuple[TermSpot, QRectF]]:
    """Yield where words of the glossary stand in a text that `flow` has set."""
    for piece in pieces:
        if piece.term:
            metrics = QFontMetricsF(font_of(piece.face, style, size))
            wide = width_of(piece.text.rstrip(_AFTER), piece.face, style, size)
            box = QRectF(piece.x, piece.baseline - metrics.ascent(), wide, metrics.height())
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
