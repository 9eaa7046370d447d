"""A head as two matrices of the width of X: one for what the head reads, one for its writing."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF
from PySide6.QtGui import QPainter, QPen

from simulator.base.dtypes import F32, frozen
from simulator.run.whole_layer import LayerRun
from simulator.study.layer.heads import asymmetry_of, head_matrices
from ui.kit.boxes import Box, Canvas, Column, Row, ink
from ui.kit.shapes import Card, Text, axis
from ui.look.draw import CENTRE
from ui.look.heat import KEPT
from ui.look.theme import Style
from ui.panels.layer.matrices import Matrix, MatrixName, limit_of
from ui.panels.layer.state import LayerState, Pictured
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
    told = "symmetric in this layer, so i scores j exactly as j scores i"
    if apart:
        told = "not symmetric, so i scores j otherwise than j scores i"
    title = f"Head {head}: W_Q W_Kᵀ and W_V W_O, {wide} × {wide}"
    return Words(title, f"‖A − Aᵀ‖ / ‖A‖ = {cell_words(apart)}: {told}")


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
    chips = (
        Card(Text((f"head {n}", str(n), ""), align=CENTRE, wide=0), id=("head", n), wide=64,
             high=22, border="current" if n == state.shown_head else f"head {n}",
             thick=2 if n == state.shown_head else 1, ground=("panel", f"head {n}", 0.35))
        for n in range(state.run.heads)
    )  # fmt: skip
    return Column((
        Row(tuple(chips), gap=4),
        Row(columns, gap=20, grow=1),
        Canvas(partial(_paint_scale, asymmetry_of(made[0])), high=16),
        axis("0: symmetric", "at √2 A and Aᵀ have nothing in common", "2: Aᵀ is −A"),
    ), gap=3)  # fmt: skip


def _paint_scale(apart: float, painter: QPainter, style: Style, rect: QRectF) -> None:
    """Paint a number between 0 and 2, and a mark at √2."""
    px, y, ends = style.px, rect.center().y(), style.inset(rect, 8, 0, 8, 0)
    middle = ends.x() + ends.width() * math.sqrt(0.5)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(ink(style, "muted"), px(2)))
    painter.drawLine(QLineF(ends.left(), y, ends.right(), y))
    painter.drawLine(QLineF(middle, y - px(5), middle, y + px(5)))
    painter.setPen(QPen(ink(style, "panel"), px(1)))
    painter.setBrush(ink(style, "current"))
    painter.drawEllipse(QPointF(ends.x() + ends.width() * apart / 2, y), px(6), px(6))


HEAD_VIEW = Pictured(words_of_head, head_picture)
