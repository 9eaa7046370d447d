"""What each head gives to one row of Y: stacks of signed pieces, one for each dimension."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, QSizeF
from PySide6.QtGui import QColor, QPainter, QPen

from simulator.base.dtypes import F64
from simulator.run.whole_layer import LayerRun
from simulator.study.layer_heads import RowShares, row_shares
from ui.look.draw import CENTRE, RIGHT, draw_text, outline, text_width
from ui.look.names import first_that_fits, fitting
from ui.look.theme import LABEL, Style
from ui.look.units import count_text, number_text
from ui.panels.layer.matrices import MatrixPart, paint_matrix, rows_box
from ui.panels.layer.model import LayerModel, matrix
from ui.panels.layer.words import cell_words

MIN_SIZE = QSizeF(520, 220)
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


@dataclass(frozen=True, slots=True)
class RowLayout:
    """Places in the picture of a row."""

    style: Style  # with the text scale that suits the place
    title: QRectF  # title, notes: of words above, in one line and in two
    notes: QRectF
    rows: QRectF  # of Y, to choose a row from
    plot: QRectF  # of the stacks
    legend: tuple[QRectF, ...]  # of the heads that there is space for
    dims: int  # how many dimensions are shown

    def row_at(self, point: QPointF, count: int) -> int | None:
        """Return the row of Y at a place."""
        if not self.rows.contains(point):
            return None
        return min(int((point.y() - self.rows.y()) / self.rows.height() * count), count - 1)

    def dim_at(self, point: QPointF) -> int | None:
        """Return the dimension whose stack is at a place."""
        if not self.plot.contains(point):
            return None
        share = (point.x() - self.plot.x()) / self.plot.width()
        return min(int(share * self.dims), self.dims - 1)


def row_layout(run: LayerRun, style: Style, rect: QRectF) -> RowLayout:
    """Return the places of everything."""
    style = fitting(style, rect, MIN_SIZE)
    px, line = style.px, style.px(19)
    title = QRectF(rect.x(), rect.y(), rect.width(), line)
    notes = QRectF(rect.x(), title.bottom(), rect.width(), line)
    top, low = notes.bottom() + px(24), rect.bottom() - px(22)
    side, key = min(px(130), 0.2 * rect.width()), min(px(190), 0.34 * rect.width())
    rows = QRectF(rect.x() + px(2), top, side, min(low - top, px(26) * run.shapes["y"][0]))
    left, right = rows.right() + px(66), rect.right() - key - px(16)
    plot = QRectF(left, top, right - left, low - top)
    room = max(int((low - top) / line), 1)
    legend = tuple(
        QRectF(right + px(16), top + n * line, key, line) for n in range(min(run.heads, room))
    )
    dims = min(run.shapes["y"][1], max(int(plot.width() / _FINEST), 1))
    return RowLayout(style, title, notes, rows, plot, legend, dims)


def title_words(state: LayerRow) -> list[str]:
    """Return what is shown, longest first."""
    name = state.model.row_name(state.row)
    run = state.model.run
    assert run is not None
    less = ", less its bias" if "bo" in run.layer.weights else ""
    return [f"What each head gives to {name} of Y{less}", f"{name} of Y by heads{less}",
            f"{name} of Y by heads", name]  # fmt: skip


def note_words(state: LayerRow, dims: int) -> list[str]:
    """Return how the stacks are read, longest first."""
    heads, given = len(state.model.finished), len(state.done)
    if given < heads:
        return [f"{given} of {heads} heads have this row: Y is not whole yet",
                f"{given} of {heads} heads so far"]  # fmt: skip
    wide = state.shares.given.shape[1]
    some = f"; dimensions 0 to {dims - 1} of {count_text(wide)}" if dims < wide else ""
    return [
        "one stack for each dimension: positive pieces upwards, negative ones downwards; the line "
        f"is their sum, Y; per cent: what a head gives in the direction of the row{some}",
        "a stack for each dimension, signed; the line is their sum, Y; per cent: in the direction "
        f"of the row{some}",
        f"signed pieces; the line is their sum; per cent in the direction of the row{some}",
        "signed pieces; the line is their sum",
    ]


def head_words(state: LayerRow, head: int) -> list[str]:
    """Return what a head gives in all, longest first."""
    if head not in state.done:
        return [f"head {head}: not yet", f"{head}: not yet"]
    said = f"{number_text(100 * state.shares.along[head], 1)} %"
    size = number_text(state.shares.size[head], 2)
    return [f"head {head}: {said}, length {size}", f"head {head}: {said}", f"{head}: {said}", said]


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


def paint_row(
    painter: QPainter, state: LayerRow, style: Style, rect: QRectF, *, choosing: bool = True
) -> None:
    """Draw what each head gives to a row of Y.

    Parameters
    ----------
    choosing : bool
        Whether somebody may choose a row: in a film nobody can.
    """
    run = state.model.run
    assert run is not None
    lay = row_layout(run, style, rect)
    style, theme = lay.style, lay.style.theme
    bold, font = style.text_font(13, bold=True), style.text_font(11.5)
    title = first_that_fits(title_words(state), lay.title.width(), bold)
    draw_text(painter, lay.title, title, bold, theme.text)
    note = first_that_fits(note_words(state, lay.dims), lay.notes.width(), font)
    draw_text(painter, lay.notes, note, font, theme.muted)
    _paint_rows(painter, state, run, style, lay, choosing=choosing)
    _paint_stacks(painter, state, style, lay)
    named, others = legend_heads(state, len(lay.legend))
    if others:
        draw_text(painter, lay.legend[-1], f"grey: {others} heads more", font, theme.muted)
    for head, box in zip(named, lay.legend, strict=False):
        swatch = QRectF(box.x(), box.y() + style.px(4), style.px(11), style.px(11))
        painter.fillRect(swatch, theme.head(head))
        words = box.adjusted(style.px(17), 0, 0, 0)
        text = first_that_fits(head_words(state, head), words.width(), font)
        draw_text(painter, words, text, font, theme.text if head in state.done else theme.muted)


def _paint_rows(
    painter: QPainter, state: LayerRow, run: LayerRun, style: Style, lay: RowLayout, *,
    choosing: bool,
) -> None:  # fmt: skip
    """Draw Y with its row marked."""
    theme, box, y = style.theme, lay.rows, matrix(run, "y")
    label = QRectF(box.x(), box.y() - style.px(19), box.width(), style.px(17))
    said = "Y: choose a row" if choosing else f"Y, row {state.row} framed"
    words = first_that_fits([said, "Y"], label.width(), style.text_font(LABEL))
    draw_text(painter, label, words, style.text_font(LABEL), theme.muted)
    paint_matrix(painter, y, "y", style, box, MatrixPart(state.model.whole))
    mark = rows_box(box, range(state.row, state.row + 1), len(y))
    grown = max(style.px(4) - mark.height(), 0.0) / 2 + 1
    outline(painter, mark.adjusted(-2, -grown, 2, grown), theme.current, style.px(2))


def _paint_stacks(painter: QPainter, state: LayerRow, style: Style, lay: RowLayout) -> None:
    theme, plot, px, dims = style.theme, lay.plot, style.px, lay.dims
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
    named, _ = legend_heads(state, len(lay.legend))
    for head in state.done:
        colour = theme.head(head) if head in named else QColor(theme.faint)
        for dim in range(dims):
            box = piece_box(plot, ends, scale, dims, head, dim)
            painter.fillRect(box, colour)
            if box.height() > px(3) and box.width() > px(6):
                outline(painter, box, theme.panel)
    if state.whole:
        _paint_sums(painter, state, style, lay, y)
    _paint_dims(painter, style, lay, wide)


def _paint_sums(
    painter: QPainter, state: LayerRow, style: Style, lay: RowLayout, y: object
) -> None:
    """Mark the sum of each stack, and write it beside its mark if there is room."""
    assert callable(y)
    theme, plot, px = style.theme, lay.plot, style.px
    font, wide = style.code_font(LABEL, bold=True), plot.width() / lay.dims
    for dim in range(lay.dims):
        value = float(state.shares.total[dim])
        x, at = plot.x() + dim * wide, y(value)
        text = cell_words(value)
        painter.setPen(QPen(QColor(theme.panel), px(4)))
        painter.drawLine(QLineF(x + 0.04 * wide, at, x + 0.96 * wide, at))
        painter.setPen(QPen(QColor(theme.text), px(2)))
        painter.drawLine(QLineF(x + 0.04 * wide, at, x + 0.96 * wide, at))
        if text_width(font, text) + px(6) <= wide:
            above = at - px(18) if at - px(18) >= plot.top() - px(19) else at + px(2)
            place = QRectF(x, above, wide, px(16))
            ground = QRectF(0, 0, text_width(font, text) + px(6), px(15))
            ground.moveCenter(place.center())
            painter.fillRect(ground, QColor(theme.panel))
            draw_text(painter, place, text, font, theme.text, CENTRE)


def _paint_dims(painter: QPainter, style: Style, lay: RowLayout, wide: float) -> None:
    """Number the dimensions below their stacks, as many as fit."""
    font = style.code_font(LABEL)
    least = text_width(font, str(lay.dims)) + style.px(8)
    step = next(n for n in (1, 2, 4, 8, 16, 32, 64, 128, 256, 10**9) if n * wide >= least)
    for dim in range(0, lay.dims, step):
        x = lay.plot.x() + (dim + 0.5) * wide
        place = QRectF(x - least, lay.plot.bottom() + style.px(3), 2 * least, style.px(16))
        draw_text(painter, place, str(dim), font, style.theme.muted, CENTRE)
