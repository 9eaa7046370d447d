"""What each head gives to one row of Y: stacks of signed pieces, one for each dimension."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF
from PySide6.QtGui import QColor, QPainter, QPen

from simulator.base.dtypes import F64
from simulator.study.layer_heads import RowShares, row_shares
from ui.kit.boxes import Box, Canvas, Placed
from ui.kit.shapes import Text
from ui.look.draw import CENTRE, RIGHT, draw_text, outline, text_width
from ui.look.theme import LABEL, Style
from ui.look.units import count_text, exact_text, number_text
from ui.panels.layer.matrices import Matrix, MatrixPart, rows_box
from ui.panels.layer.model import LayerModel, matrix
from ui.panels.layer.words import cell_words

_APART = 6.0
"""Pixels of a stack from which there is a gap between neighbours."""
_FINEST = 3.0
"""Pixels that a stack needs at least; of more dimensions the first ones are shown."""


@dataclass(frozen=True, slots=True, eq=False)
class LayerRow:
    """A row of Y."""

    model: LayerModel  # the layer at a cursor
    row: int  # which row
    shares: RowShares  # what heads give to it

    @property
    def done(self) -> list[int]:
        """The heads that have finished the row."""
        return [int(head) for head in np.flatnonzero(self.model.finished[:, self.row])]

    @property
    def whole(self) -> bool:
        """Whether all have."""
        return len(self.done) == len(self.model.finished)


def row_state(model: LayerModel, row: int) -> LayerRow:
    """Return a row of the layer of a model that has one."""
    assert model.run is not None
    return LayerRow(model, row, row_shares(model.run, row))


def title_words(state: LayerRow) -> tuple[str, str]:
    """Return what is shown, and in short."""
    name = f"{state.model.row_name(state.row)} of Y"
    run = state.model.run
    assert run is not None
    less = ", less its bias" if "bo" in run.layer.weights else ""
    return f"What each head gives to {name}{less}", name


def note_words(state: LayerRow, dims: int) -> tuple[str, ...]:
    """Return how the stacks are read, longest first."""
    heads, given = len(state.model.finished), len(state.done)
    if given < heads:
        has = f"{given} of {heads} heads"
        return f"{has} have this row: Y is not whole yet", f"{has} so far"
    wide = state.shares.given.shape[1]
    some = f"; dimensions 0 to {dims - 1} of {count_text(wide)}" if dims < wide else ""
    return (
        "one stack for each dimension: positive pieces upwards, negative ones downwards; the line "
        f"is their sum, Y; per cent: what a head gives in the direction of the row{some}",
        f"signed pieces; the line is their sum; per cent in the direction of the row{some}",
        "signed pieces; the line is their sum",
    )


def head_words(state: LayerRow, head: int) -> tuple[str, ...]:
    """Return what a head gives in all, longest first."""
    if head not in state.done:
        return f"head {head}: not yet", f"{head}: not yet"
    said = f"{number_text(100 * state.shares.along[head], 1)} %"
    size = number_text(state.shares.size[head], 2)
    return f"head {head}: {said}, length {size}", f"head {head}: {said}", f"{head}: {said}"


def legend_heads(state: LayerRow, room: int) -> tuple[list[int], int]:
    """Return which heads are named in so many lines, and how many are not: the largest are."""
    heads = len(state.model.finished)
    if heads <= room:
        return list(range(heads)), 0
    order = np.argsort(-np.abs(state.shares.along), kind="stable")
    return sorted(order[: room - 1].tolist()), heads - room + 1


def row_words(state: LayerRow) -> str:
    """Return the picture in words, for screen readers."""
    heads = range(len(state.model.finished))
    return ". ".join([title_words(state)[0], *(head_words(state, head)[0] for head in heads)])


def scale_of(shares: RowShares, dims: int) -> tuple[float, float]:
    """Return the lowest and the highest end of the stacks."""
    start, end = (each[:, :dims] for each in shares.ends)
    low = float(min(start.min(), end.min(), 0.0))
    high = float(max(start.max(), end.max(), 0.0))
    return (low, high) if high > low else (-1.0, 1.0)


def piece_box(plot: QRectF, ends: tuple[F64, F64], scale: tuple[float, float], dims: int,
              head: int, dim: int) -> QRectF:  # fmt: skip
    """Return the place of the piece that a head gives to a dimension."""
    low, high = scale
    wide = plot.width() / dims

    def y(value: float) -> float:
        return plot.bottom() - (value - low) / (high - low) * plot.height()

    one, two = y(float(ends[0][head, dim])), y(float(ends[1][head, dim]))
    gap = 0.12 * wide if wide > _APART else 0.0
    return QRectF(plot.x() + dim * wide + gap, min(one, two), wide - 2 * gap, abs(one - two))


@dataclass(frozen=True, eq=False)
class RowPicture(Box):
    """What each head gives to a row of Y, which is chosen at the left unless nobody can."""

    state: LayerRow
    choosing: bool = True

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        state, px, line = self.state, style.px, style.px(19)
        run = state.model.run
        assert run is not None
        top = QRectF(rect.x(), rect.y(), rect.width(), line)
        yield Placed(Text(title_words(state), size=13, bold=True), top)
        y, high = top.y() + 2 * line + px(24), rect.height() - 2 * line - px(46)
        side, key = min(px(130), 0.2 * rect.width()), min(px(190), 0.34 * rect.width())
        rows = QRectF(rect.x() + px(2), y, side, min(high, px(26) * run.shapes["y"][0]))
        left, right = rows.right() + px(66), rect.right() - key
        plot = QRectF(left, y, right - px(16) - left, high)
        dims = min(run.shapes["y"][1], max(int(plot.width() / _FINEST), 1))
        note = Text(note_words(state, dims), "muted", size=11.5)
        yield Placed(note, top.translated(0, line))
        said = "Y: choose a row" if self.choosing else f"Y, row {state.row} framed"
        yield Placed(Text((said, "Y"), "muted"), QRectF(rows.x(), y - line, side, px(17)))
        part = MatrixPart(state.model.whole)
        framed = partial(_paint_frame, state.row, len(state.model.whole))
        yield Placed(Matrix(matrix(run, "y"), "y", "Y", part, over=framed, id="row"), rows)
        named, others = legend_heads(state, max(int(high / line), 1))
        yield Placed(_Stacks(state, dims, tuple(named), name="stacks"), plot)
        for n, head in enumerate(named):
            at = QRectF(right, y + n * line, key, line)
            swatch = QRectF(at.x(), at.y() + px(4), px(11), px(11))
            yield Placed(Canvas(partial(_paint_swatch, head)), swatch)
            tone = "text" if head in state.done else "muted"
            words = Text(head_words(state, head), tone, size=11.5)
            yield Placed(words, at.adjusted(px(17), 0, 0, 0))
        if others:
            more = Text(f"grey: {others} heads more", "muted", size=11.5)
            yield Placed(more, QRectF(right, y + len(named) * line, key, line))


def _paint_frame(row: int, count: int, painter: QPainter, style: Style, box: QRectF) -> None:
    """Frame a row of Y."""
    mark = rows_box(box, range(row, row + 1), count)
    grown = max(style.px(4) - mark.height(), 0.0) / 2 + 1
    outline(painter, mark.adjusted(-2, -grown, 2, grown), style.theme.current, style.px(2))


def _paint_swatch(head: int, painter: QPainter, style: Style, box: QRectF) -> None:
    painter.fillRect(box, style.theme.head(head))


@dataclass(frozen=True, eq=False)
class _Stacks(Box):
    """Signed pieces of the first dimensions, in the colours of the heads that are named."""

    state: LayerRow
    dims: int
    named: tuple[int, ...]

    def tip_at(self, rect: QRectF, at: QPointF) -> str:
        dim = min(int((at.x() - rect.x()) / rect.width() * self.dims), self.dims - 1)
        given = self.state.shares.given
        parts = (f"head {head}: {exact_text(given[head, dim])}" for head in self.state.done)
        return "\n".join((f"dimension {dim}", *parts))

    def paint(self, painter: QPainter, style: Style, plot: QRectF) -> None:
        state, theme, px, dims = self.state, style.theme, style.px, self.dims
        font, scale, ends = style.code_font(LABEL), scale_of(state.shares, dims), state.shares.ends
        low, high = scale
        wide = plot.width() / dims

        def y(value: float) -> float:
            return plot.bottom() - (value - low) / (high - low) * plot.height()

        painter.setPen(QPen(QColor(theme.muted), 1))
        painter.drawLine(QLineF(plot.left(), y(0), plot.right(), y(0)))
        for value in {low, 0.0, high} if abs(y(low) - y(high)) > px(40) else {0.0}:
            if value and abs(y(value) - y(0)) < px(14):
                continue
            place = QRectF(plot.x() - px(62), y(value) - px(8), px(56), px(16))
            draw_text(painter, place, cell_words(value), font, theme.muted, RIGHT)
        for head in state.done:
            colour = theme.head(head) if head in self.named else QColor(theme.faint)
            for dim in range(dims):
                box = piece_box(plot, ends, scale, dims, head, dim)
                painter.fillRect(box, colour)
                if box.height() > px(3) and box.width() > px(6):
                    outline(painter, box, theme.panel)
        for dim in range(dims if state.whole else 0):
            value = float(state.shares.total[dim])
            _paint_sum(painter, style, plot, plot.x() + dim * wide, wide, y(value), value)
        _paint_dims(painter, style, plot, dims)


def _paint_sum(
    painter: QPainter, style: Style, plot: QRectF, x: float, wide: float, at: float, value: float
) -> None:
    """Mark the sum of a stack, and write it beside its mark if there is room."""
    theme, px, font = style.theme, style.px, style.code_font(LABEL, bold=True)
    text = cell_words(value)
    for colour, thick in ((theme.panel, 4), (theme.text, 2)):
        painter.setPen(QPen(QColor(colour), px(thick)))
        painter.drawLine(QLineF(x + 0.04 * wide, at, x + 0.96 * wide, at))
    if text_width(font, text) + px(6) <= wide:
        above = at - px(18) if at - px(18) >= plot.top() - px(19) else at + px(2)
        place = QRectF(x, above, wide, px(16))
        ground = QRectF(0, 0, text_width(font, text) + px(6), px(15))
        ground.moveCenter(place.center())
        painter.fillRect(ground, QColor(theme.panel))
        draw_text(painter, place, text, font, theme.text, CENTRE)


def _paint_dims(painter: QPainter, style: Style, plot: QRectF, dims: int) -> None:
    """Number the dimensions below their stacks, as many as fit."""
    font, wide = style.code_font(LABEL), plot.width() / dims
    least = text_width(font, str(dims)) + style.px(8)
    step = next(n for n in (1, 2, 4, 8, 16, 32, 64, 128, 256, 10**9) if n * wide >= least)
    for dim in range(0, dims, step):
        x = plot.x() + (dim + 0.5) * wide
        place = QRectF(x - least, plot.bottom() + style.px(3), 2 * least, style.px(16))
        draw_text(painter, place, str(dim), font, style.theme.muted, CENTRE)
