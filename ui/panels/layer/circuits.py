"""A head as two matrices of the width of X: what it reads by, and what it writes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, QSizeF
from PySide6.QtGui import QColor, QPainter, QPen

from simulator.base.dtypes import F32, frozen
from simulator.run.whole_layer import LayerRun
from simulator.study.layer_heads import HeadMatrices, head_matrices
from ui.look.draw import CENTRE, RIGHT, card, draw_text, mixed, text_width
from ui.look.formula import formula
from ui.look.names import first_that_fits, fitting
from ui.look.theme import LABEL, Style
from ui.panels.layer.matrices import MatrixPart, limit_of, paint_matrix
from ui.panels.layer.words import CIRCUITS, cell_words

MIN_SIZE = QSizeF(560, 260)
MOST_WIDE = 1024
"""D up to which matrices of D × D are made."""
WORDS = (
    ("A: how much one token is to read another", "A: who reads whom", "A"),
    ("what is not symmetric in it", "not symmetric"),
    ("what is written where it reads", "what is written", "writes"),
)
_COLOURS = ("Q", "K", "V")


@dataclass(frozen=True, slots=True, eq=False)
class CircuitState:
    """A head.

    Attributes
    ----------
    run : LayerRun
        The layer.
    head : int
        Which query head.
    asymmetry : float
        That of its first matrix.
    matrices : tuple of ndarray
        A, A − Aᵀ and W_V W_O, (D, D) float32.
    """

    run: LayerRun
    head: int
    asymmetry: float
    matrices: tuple[F32, F32, F32]


def circuit_state(run: LayerRun, head: int) -> CircuitState:
    """Return the matrices of a head, for drawing."""
    found: HeadMatrices = head_matrices(run.layer, head)
    apart = found.reads - found.reads.T
    made = [frozen(each.astype(np.float32)) for each in (found.reads, apart, found.writes)]
    return CircuitState(run, head, found.asymmetry, (made[0], made[1], made[2]))


@dataclass(frozen=True, slots=True)
class CircuitLayout:
    """Places in the picture of a head."""

    style: Style  # with the text scale that suits the place
    chips: tuple[QRectF, ...]  # of the heads, to choose from
    boxes: tuple[QRectF, ...]  # of the three matrices
    names: tuple[QRectF, ...]  # names, words: above and below each of them
    words: tuple[QRectF, ...]
    line: QRectF  # of the number that says how far the first is from symmetric
    scale: QRectF  # of its place between 0 and 2

    def head_at(self, point: QPointF) -> int | None:
        """Return the head whose chip is at a place."""
        return next((n for n, chip in enumerate(self.chips) if chip.contains(point)), None)

    def cell_at(self, point: QPointF, count: int) -> tuple[int, int, int] | None:
        """Return which number of which matrix is at a place."""
        for n, box in enumerate(self.boxes):
            if box.contains(point):
                row = int((point.y() - box.y()) / box.height() * count)
                col = int((point.x() - box.x()) / box.width() * count)
                return n, min(row, count - 1), min(col, count - 1)
        return None


def circuit_layout(run: LayerRun, style: Style, rect: QRectF) -> CircuitLayout:
    """Return the places of everything."""
    style = fitting(style, rect, MIN_SIZE)
    px, line = style.px, style.px(20)
    chip = min(px(64), rect.width() / run.heads)
    chips = tuple(
        QRectF(rect.x() + n * chip, rect.y(), chip - min(px(4), 0.1 * chip), line)
        for n in range(run.heads)
    )
    top = rect.y() + line + px(30)
    scale = QRectF(rect.x(), rect.bottom() - px(34), rect.width(), px(34))
    words = QRectF(rect.x(), scale.y() - line - px(2), rect.width(), line)
    gap = px(28)
    side = min((rect.width() - 2 * gap) / 3, words.y() - top - line - px(6))
    wide = (rect.width() - 2 * gap) / 3
    columns = [rect.x() + n * (wide + gap) for n in range(3)]
    boxes = tuple(QRectF(round(x + (wide - side) / 2), top, side, side) for x in columns)
    names = tuple(QRectF(x, top - px(24), wide, px(22)) for x in columns)
    below = tuple(QRectF(x, top + side + px(2), wide, line) for x in columns)
    return CircuitLayout(style, chips, boxes, names, below, words, scale)


def asymmetry_words(state: CircuitState) -> list[str]:
    """Return how far the first matrix is from symmetric, longest first."""
    said = f"‖A − Aᵀ‖ / ‖A‖ = {cell_words(state.asymmetry)}"
    if state.asymmetry == 0:
        return [f"{said}: symmetric in this layer, so i scores j exactly as j scores i",
                f"{said}: symmetric", said]  # fmt: skip
    return [f"{said}: not symmetric, so i scores j otherwise than j scores i",
            f"{said}: not symmetric", said]  # fmt: skip


def circuit_words(state: CircuitState) -> str:
    """Return the picture in words, for screen readers."""
    wide = state.run.shapes["x"][1]
    return f"Head {state.head}: W_Q W_Kᵀ and W_V W_O, {wide} × {wide}. {asymmetry_words(state)[0]}"


def paint_circuit(painter: QPainter, state: CircuitState, style: Style, rect: QRectF) -> None:
    """Draw the matrices of a head."""
    lay = circuit_layout(state.run, style, rect)
    style, theme, px = lay.style, lay.style.theme, lay.style.px
    font = style.text_font(12)
    painter.save()
    for head, chip in enumerate(lay.chips):
        own, chosen = theme.head(head), head == state.head
        ground, edge = mixed(theme.panel, own, 0.35), theme.current if chosen else own
        card(painter, chip, ground, edge, px(4), px(2) if chosen else 1.0)
        text = first_that_fits([f"head {head}", str(head), ""], chip.width() - px(6), font)
        draw_text(painter, chip, text, font, theme.text, CENTRE)
    limit = limit_of(state.matrices[0])
    for n, (values, box) in enumerate(zip(state.matrices, lay.boxes, strict=True)):
        made = formula(CIRCUITS[n], px(15))
        colour = theme.tensor(_COLOURS[n]) if n != 1 else QColor(theme.text)
        made.draw(painter, lay.names[n].center().x() - made.width / 2,
                  lay.names[n].bottom() - px(6), colour)  # fmt: skip
        part = MatrixPart(limit=limit if n < 2 else None)
        paint_matrix(painter, values, _COLOURS[n] if n != 1 else "y", style, box, part)
        text = first_that_fits((*WORDS[n], ""), lay.words[n].width(), font)
        draw_text(painter, lay.words[n], text, font, theme.muted, CENTRE)
    bold = style.text_font(13, bold=True)
    text = first_that_fits(asymmetry_words(state), lay.line.width(), bold)
    draw_text(painter, lay.line, text, bold, theme.text)
    _paint_scale(painter, state.asymmetry, style, lay.scale)
    painter.restore()


def _paint_scale(painter: QPainter, value: float, style: Style, box: QRectF) -> None:
    """Draw a number between 0, symmetric, and 2, the opposite of its transpose."""
    theme, px, font = style.theme, style.px, style.text_font(LABEL)
    bar = QRectF(box.x() + px(8), box.y(), box.width() - px(16), px(16))
    y = bar.center().y()
    painter.setPen(QPen(QColor(theme.muted), px(2)))
    painter.drawLine(QLineF(bar.left(), y, bar.right(), y))
    words = QRectF(box.x(), bar.bottom(), box.width(), px(17))
    middle = bar.x() + bar.width() * math.sqrt(0.5)
    painter.drawLine(QLineF(middle, y - px(5), middle, y + px(5)))
    draw_text(painter, words, "0: symmetric", font, theme.muted)
    draw_text(painter, words, "2: the opposite of Aᵀ", font, theme.muted, RIGHT)
    said = "√2: nothing in common with Aᵀ"
    room = 2 * min(middle - words.x(), words.right() - middle) - px(280)
    said = said if text_width(font, said) <= room else "√2"
    wide = text_width(font, said) + px(4)
    place = QRectF(middle - wide / 2, words.y(), wide, words.height())
    draw_text(painter, place, said, font, theme.muted, CENTRE)
    painter.setPen(QPen(QColor(theme.panel), px(1)))
    painter.setBrush(QColor(theme.current))
    painter.drawEllipse(QPointF(bar.x() + bar.width() * value / 2, y), px(6), px(6))
