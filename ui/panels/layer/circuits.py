"""A head as two matrices of the width of X: what it reads by, and what it writes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF
from PySide6.QtGui import QColor, QPainter, QPen

from simulator.base.dtypes import F32, frozen
from simulator.run.whole_layer import LayerRun
from simulator.study.layer_heads import HeadMatrices, head_matrices
from ui.kit.boxes import Box, Canvas, Column, Row
from ui.kit.shapes import Text
from ui.look.draw import CENTRE, RIGHT, card, draw_text, mixed, text_width
from ui.look.theme import LABEL, Style
from ui.panels.layer.matrices import Matrix, MatrixName, MatrixPart, limit_of
from ui.panels.layer.words import CIRCUITS, cell_words

MOST_WIDE = 1024
"""D up to which matrices of D × D are made."""
WORDS = (
    ("how much one token is to read another", "who reads whom", ""),
    ("what is not symmetric in it", "not symmetric", ""),
    ("what is written where it reads", "what is written", ""),
)
_COLOURS = ("Q", "K", "V")
_NAMES = ("A", "A − Aᵀ", "W_V W_O")


@dataclass(frozen=True, slots=True, eq=False)
class CircuitState:
    """A head and its matrices."""

    run: LayerRun
    head: int
    asymmetry: float  # of the first matrix
    matrices: tuple[F32, F32, F32]  # A, A − Aᵀ and W_V W_O, (D, D)


def circuit_state(run: LayerRun, head: int) -> CircuitState:
    """Return the matrices of a head, for drawing."""
    found: HeadMatrices = head_matrices(run.layer, head)
    apart = found.reads - found.reads.T
    made = [frozen(each.astype(np.float32)) for each in (found.reads, apart, found.writes)]
    return CircuitState(run, head, found.asymmetry, (made[0], made[1], made[2]))


def asymmetry_words(state: CircuitState) -> tuple[str, str]:
    """Return how far the first matrix is from symmetric, and in short."""
    said = f"‖A − Aᵀ‖ / ‖A‖ = {cell_words(state.asymmetry)}"
    if state.asymmetry == 0:
        return (
            f"{said}: symmetric in this layer, so i scores j exactly as j scores i",
            f"{said}: symmetric",
        )
    return (
        f"{said}: not symmetric, so i scores j otherwise than j scores i",
        f"{said}: not symmetric",
    )


def circuit_words(state: CircuitState) -> str:
    """Return the picture in words, for screen readers."""
    wide = state.run.shapes["x"][1]
    return f"Head {state.head}: W_Q W_Kᵀ and W_V W_O, {wide} × {wide}. {asymmetry_words(state)[0]}"


def circuit_picture(state: CircuitState) -> Box:
    """Return the heads to choose from, the matrices of one, and how far the first is symmetric."""
    limit = limit_of(state.matrices[0])
    columns = tuple(
        Column((
            MatrixName(CIRCUITS[n], _COLOURS[n] if n != 1 else "text", high=24),
            Text(WORDS[n], "muted", CENTRE, size=12, wide=0, high=20),
            Matrix(values, _COLOURS[n] if n != 1 else "y", _NAMES[n],
                   MatrixPart(limit=limit if n < 2 else None), square=True, grow=1),
        ), gap=2, grow=1)
        for n, values in enumerate(state.matrices)
    )  # fmt: skip
    chips = tuple(_Chip(n, n == state.head, id=("head", n), grow=1) for n in range(state.run.heads))
    return Column((
        Row(chips, gap=0),
        Row(columns, gap=28, grow=1),
        Text(asymmetry_words(state), size=13, bold=True, high=20),
        Canvas(partial(_paint_scale, value=state.asymmetry), high=34),
    ), gap=3)  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Chip(Box):
    """A head that can be chosen."""

    head: int
    chosen: bool

    def most_width(self, style: Style, height: float) -> float:
        return style.px(64)

    def height(self, style: Style, width: float) -> float:
        return style.px(20)

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        theme, px, own = style.theme, style.px, style.theme.head(self.head)
        chip = rect.adjusted(0, 0, -min(px(4), 0.1 * rect.width()), 0)
        ground, edge = mixed(theme.panel, own, 0.35), theme.current if self.chosen else own
        card(painter, chip, ground, edge, px(4), px(2) if self.chosen else 1.0)
        words = (f"head {self.head}", str(self.head), "")
        inside = chip.adjusted(px(3), 0, -px(3), 0)
        Text(words, align=CENTRE, size=12).paint(painter, style, inside)


def _paint_scale(painter: QPainter, style: Style, box: QRectF, *, value: float) -> None:
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
