"""A head as two matrices of the width of X: what it reads by, and what it writes."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF
from PySide6.QtGui import QColor, QPainter, QPen

from simulator.base.dtypes import F32, frozen
from simulator.run.whole_layer import LayerRun
from simulator.study.layer.heads import asymmetry_of, head_matrices
from ui.kit.boxes import Box, Canvas, Column, Row
from ui.kit.shapes import Text
from ui.look.draw import CENTRE, RIGHT, card, draw_text, mixed, text_width
from ui.look.heat import KEPT
from ui.look.theme import LABEL, Style
from ui.panels.layer.matrices import Matrix, MatrixName, limit_of
from ui.panels.layer.state import LayerState
from ui.panels.layer.words import CIRCUITS, cell_words
from ui.panels.study import Words

_MOST_WIDE = 1024
"""D up to which matrices of D × D are made."""
_LOOKS = (
    ("Q", "A", ("how much one token is to read another", "who reads whom", "")),
    ("y", "A − Aᵀ", ("what is not symmetric in it", "not symmetric", "")),
    ("V", "W_V W_O", ("what is written where it reads", "what is written", "")),
)
"""Colours, names in a line of text, and words."""


def circuit(run: LayerRun, head: int) -> tuple[F32, F32, F32]:
    """Return A, A − Aᵀ and W_V W_O of a head, (D, D) each."""

    def make() -> tuple[F32, F32, F32]:
        found = head_matrices(run.layer, head)
        made = found.reads, found.reads - found.reads.T, found.writes
        reads, apart, writes = (frozen(each.astype(np.float32)) for each in made)
        return reads, apart, writes

    return KEPT.get(run.layer.x, ("circuit", head), make)


def words_of_head(state: LayerState) -> Words:
    """Return which head is shown, and how far its first matrix is from symmetric."""
    wide, head = state.run.shapes["x"][1], state.shown_head
    if wide > _MOST_WIDE:
        return Words(f"D = {wide}: matrices of D × D are made up to D = {_MOST_WIDE}.")
    apart = asymmetry_of(circuit(state.run, head)[0])
    said = f"‖A − Aᵀ‖ / ‖A‖ = {cell_words(apart)}"
    told = "symmetric in this layer, so i scores j exactly as j scores i"
    if apart:
        told = "not symmetric, so i scores j otherwise than j scores i"
    title = f"Head {head}: W_Q W_Kᵀ and W_V W_O"
    return Words((f"{title}, {wide} × {wide}", title), (f"{said}: {told}", said))


def head_picture(state: LayerState) -> Box | None:
    """Return the heads to choose from, the matrices of one, and how far the first is symmetric."""
    if state.run.shapes["x"][1] > _MOST_WIDE:
        return None
    made = circuit(state.run, state.shown_head)
    columns = tuple(
        Column((
            MatrixName(CIRCUITS[n], colour if n != 1 else "text", high=24),
            Text(words, "muted", CENTRE, size=12, wide=0, high=20),
            Matrix(made[n], colour, name, limit=limit_of(made[0]) if n < 2 else None, square=True,
                   grow=1),
        ), gap=2, grow=1)
        for n, (colour, name, words) in enumerate(_LOOKS)
    )  # fmt: skip
    heads = range(state.run.heads)
    chips = (
        Canvas(partial(_paint_chip, n, n == state.shown_head), id=("head", n), wide=64, high=20)
        for n in heads
    )
    return Column((
        Row(tuple(chips), gap=0),
        Row(columns, gap=20, grow=1),
        Canvas(partial(_paint_scale, asymmetry_of(made[0])), high=34),
    ), gap=3)  # fmt: skip


def _paint_chip(head: int, chosen: bool, painter: QPainter, style: Style, rect: QRectF) -> None:
    """Paint a head that can be chosen."""
    theme, px, own = style.theme, style.px, style.theme.head(head)
    chip = rect.adjusted(0, 0, -min(px(4), 0.1 * rect.width()), 0)
    ground, edge = mixed(theme.panel, own, 0.35), theme.current if chosen else own
    card(painter, chip, ground, edge, px(4), px(2) if chosen else 1.0)
    words = f"head {head}", str(head), ""
    Text(words, align=CENTRE).paint(painter, style, chip.adjusted(px(3), 0, -px(3), 0))


def _paint_scale(apart: float, painter: QPainter, style: Style, box: QRectF) -> None:
    """Paint a number between 0, symmetric, and 2, the opposite of its transpose."""
    theme, px, font = style.theme, style.px, style.text_font(LABEL)
    bar = QRectF(box.x() + px(8), box.y(), box.width() - px(16), px(16))
    y, middle = bar.center().y(), bar.x() + bar.width() * math.sqrt(0.5)
    painter.setPen(QPen(QColor(theme.muted), px(2)))
    painter.drawLine(QLineF(bar.left(), y, bar.right(), y))
    painter.drawLine(QLineF(middle, y - px(5), middle, y + px(5)))
    place = QRectF(box.x(), bar.bottom(), box.width(), px(17))
    room = box.right() - middle
    starts, half, ends = next(
        words for words in (
            ("0: symmetric", "√2: nothing in common with Aᵀ", "2: the opposite of Aᵀ"),
            ("0: symmetric", "√2", "2: the opposite of Aᵀ"), ("0", "√2", "2"),
        ) if len(words[0]) == 1
        or text_width(font, words[1]) / 2 + text_width(font, words[2]) + px(12) <= room
    )  # fmt: skip
    wide = text_width(font, half) + px(4)
    draw_text(painter, place, starts, font, theme.muted)
    draw_text(painter, place, ends, font, theme.muted, RIGHT)
    centred = QRectF(middle - wide / 2, place.y(), wide, place.height())
    draw_text(painter, centred, half, font, theme.muted, CENTRE)
    painter.setPen(QPen(QColor(theme.panel), px(1)))
    painter.setBrush(QColor(theme.current))
    painter.drawEllipse(QPointF(bar.x() + bar.width() * apart / 2, y), px(6), px(6))
