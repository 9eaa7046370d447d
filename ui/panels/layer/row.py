"""The share of each head in one row of Y: stacks of signed pieces, one for each dimension."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF
from PySide6.QtGui import QColor, QPainter, QPen

from simulator.base.dtypes import F64
from simulator.study.layer.heads import RowShares, row_shares
from ui.kit.boxes import Box, Column, Placed, Row
from ui.kit.shapes import LINE, Legend, Text
from ui.look.draw import CENTRE, RIGHT, draw_text, outline, text_width
from ui.look.names import row_name
from ui.look.theme import LABEL, Style
from ui.look.units import exact_text, number_text
from ui.panels.layer.matrices import Matrix
from ui.panels.layer.state import LayerState, Pictured, matrix
from ui.panels.layer.words import cell_words
from ui.panels.study import Words

_APART = 6.0
"""Width of a stack from which neighbours have a gap between them, pixels."""
_FINEST = 3.0
"""Least width of a stack, pixels; if not all dimensions fit, the first ones are shown."""
_NAMED = 8
"""Most heads that have a colour and a name; of more heads, the ones that give the most."""


def words_of_row(state: LayerState) -> Words:
    """Return the title of the row, and how to read the stacks."""
    name = f"{row_name(state.snapshot.program.workload, state.shown_row)} of Y"
    less = ", less its bias" if "bo" in state.run.layer.weights else ""
    heads, given = len(state.finished), len(state.done)
    has = f"{given} of {heads} heads have this row: Y is not whole yet"
    return Words(f"What each head gives to {name}{less}", has if given < heads else "", (
        "One stack for each dimension: positive pieces upwards, negative ones downwards.",
        "The line is their sum, Y; per cent: what a head gives in the direction of the row.",
    ))  # fmt: skip


def head_words(state: LayerState, shares: RowShares, head: int) -> tuple[str, ...]:
    """Return the whole share of a head in words, longest first."""
    if head not in state.done:
        return f"head {head}: not yet", f"{head}: –"
    said = f"{number_text(100 * shares.along[head], 1)} %"
    size = number_text(shares.size[head], 2)
    return f"head {head}: {said}, length {size}", f"head {head}: {said}", said


def described(state: LayerState) -> Iterator[str]:
    """Yield the shares of the heads."""
    shares = row_shares(state.run, state.shown_row)
    return (head_words(state, shares, head)[0] for head in range(len(state.finished)))


def named_heads(shares: RowShares) -> list[int]:
    """Return which heads have a name."""
    count = len(shares.along)
    order = np.argsort(-np.abs(shares.along), kind="stable")
    return sorted(order[: count if count <= _NAMED else _NAMED - 1].tolist())


def row_picture(state: LayerState) -> Box:
    """Return Y, where a user chooses a row, the stacks of the row, and its heads."""
    row, shares = state.shown_row, row_shares(state.run, state.shown_row)
    named = named_heads(shares)
    others = len(shares.along) - len(named)
    said = "Y: choose a row" if state.controls else f"Y, row {row} framed"
    keys = [(f"head {head}", head_words(state, shares, head)) for head in named]
    more = [("faint", f"{others} heads more")] if others else []
    y = matrix(state.run, "y")
    return Column((
        Row((
            Box(wide=1),
            Column((
                Text((said, "Y"), "muted", wide=0),
                Matrix(y, "y", "Y", state.whole, tallest=26, id="row", grow=1,
                       frames=((range(row, row + 1), range(y.shape[1])),)),
                Box(high=19),
            ), gap=2, share=0.12),
            _Stacks(state, shares, named, name="stacks", grow=1), Box(wide=4),
        ), gap=10, grow=1),
        Legend((*keys, *more)),
    ))  # fmt: skip


@dataclass(frozen=True, eq=False)
class StackPlot:
    """The places of the pieces, for the first dimensions."""

    rect: QRectF
    ends: tuple[F64, F64]  # (H, D) where pieces begin and end

    @cached_property
    def dims(self) -> int:
        """How many dimensions have room."""
        return min(len(self.ends[0][0]), max(int(self.rect.width() / _FINEST), 1))

    @cached_property
    def scale(self) -> tuple[float, float]:
        """The lowest and the highest end of the stacks."""
        values = np.stack(self.ends)[..., : self.dims]
        low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
        return (low, high) if high > low else (-1.0, 1.0)

    def y(self, value: float) -> float:
        """Return the height of a value."""
        low, high = self.scale
        return self.rect.bottom() - (value - low) / (high - low) * self.rect.height()

    def piece(self, head: int, dim: int) -> QRectF:
        """Return the place of the piece that a head gives to a dimension."""
        wide = self.rect.width() / self.dims
        one, two = (self.y(float(each[head, dim])) for each in self.ends)
        gap = 0.12 * wide if wide > _APART else 0.0
        left = self.rect.x() + dim * wide + gap
        return QRectF(left, min(one, two), wide - 2 * gap, abs(one - two))


@dataclass(frozen=True, eq=False)
class _Stacks(Box):
    """Signed pieces with the axes of values and dimensions, in the colours of named heads."""

    state: LayerState
    shares: RowShares
    named: list[int]

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        px = style.px
        plot = rect.adjusted(min(px(62), 0.3 * rect.width()), px(40), 0, -px(19))
        yield Placed(self, plot)
        dims, wide = StackPlot(plot, self.shares.ends).dims, self.shares.given.shape[1]
        if dims < wide:
            said = f"dimensions 0 to {dims - 1} of {wide}", f"{dims} of {wide}", ""
            yield Placed(Text(said, "muted"), QRectF(plot.x(), rect.y(), plot.width(), px(LINE)))

    def tip_at(self, rect: QRectF, at: QPointF) -> str:
        dims = StackPlot(rect, self.shares.ends).dims
        dim = min(int((at.x() - rect.x()) / rect.width() * dims), dims - 1)
        parts = (f"head {n}: {exact_text(self.shares.given[n, dim])}" for n in self.state.done)
        return "\n".join((f"dimension {dim}", *parts))

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        state, theme, px = self.state, style.theme, style.px
        plot, font = StackPlot(rect, self.shares.ends), style.code_font(LABEL)
        (low, high), dims, zero = plot.scale, plot.dims, plot.y(0)
        painter.setPen(QPen(QColor(theme.muted), 1))
        painter.drawLine(QLineF(rect.left(), zero, rect.right(), zero))
        for value in {low, 0.0, high} if rect.height() > px(40) else {0.0}:
            if not value or abs(plot.y(value) - zero) >= px(14):
                place = QRectF(rect.x() - px(62), plot.y(value) - px(8), px(56), px(16))
                draw_text(painter, place, cell_words(value), font, theme.muted, RIGHT)
        for head, dim in product(state.done, range(dims)):
            box = plot.piece(head, dim)
            painter.fillRect(box, theme.head(head) if head in self.named else QColor(theme.faint))
            if box.height() > px(3) and box.width() > px(6):
                outline(painter, box, theme.panel)
        wide = rect.width() / dims
        for dim in range(dims if len(state.done) == len(state.finished) else 0):
            column = QRectF(rect.x() + dim * wide, rect.y(), wide, rect.height())
            value = float(self.shares.total[dim])
            _paint_sum(painter, style, column, plot.y(value), cell_words(value))
        least = text_width(font, str(dims)) + px(8)
        step = next(n for n in (1, 2, 4, 8, 16, 32, 64, 128, 256, 10**9) if n * wide >= least)
        for dim in range(0, dims, step):
            x = rect.x() + (dim + 0.5) * wide
            place = QRectF(x - least, rect.bottom() + px(3), 2 * least, px(16))
            draw_text(painter, place, str(dim), font, theme.muted, CENTRE)


def _paint_sum(painter: QPainter, style: Style, column: QRectF, at: float, words: str) -> None:
    """Mark the sum of a stack, and write it beside its mark if there is room."""
    theme, px, font = style.theme, style.px, style.code_font(LABEL, bold=True)
    edge, wide = 0.04 * column.width(), text_width(font, words) + px(6)
    for colour, thick in ((theme.panel, 4), (theme.text, 2)):
        painter.setPen(style.pen(colour, thick))
        painter.drawLine(QLineF(column.left() + edge, at, column.right() - edge, at))
    if wide <= column.width():
        above = at - px(18) if at >= column.top() - px(1) else at + px(2)
        ground = QRectF(column.center().x() - wide / 2, above, wide, px(15))
        painter.fillRect(ground, QColor(theme.panel))
        draw_text(painter, ground, words, font, theme.text, CENTRE)


ROW_VIEW = Pictured(words_of_row, row_picture, described)
