"""The flow from X to Y: matrices, slices of heads, and which stage is at work."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from simulator.base.dtypes import F32
from simulator.program.playback import eased
from simulator.run.whole_layer import LayerRun
from ui.board.mini_board import paint_mini_board
from ui.look.draw import CENTRE, card, draw_text, hairline, mixed, outline, text_width
from ui.look.formula import formula
from ui.look.names import first_that_fits, head_words, op_label, short_op_label
from ui.look.theme import LABEL, Style
from ui.look.units import count_text
from ui.panels.layer.detail import paint_detail
from ui.panels.layer.matrices import (
    MatrixPart,
    limit_of,
    number_font,
    paint_matrix,
    paint_slices,
    rows_box,
    runs_of,
)
from ui.panels.layer.model import COLOURS, Bools, FlowState, matrix
from ui.panels.layer.places import TILES, FlowLayout, flow_layout, slices_of
from ui.panels.layer.words import NAMES, shape_text

_STILL = ("x", "wq", "wk", "wv", "q", "k", "v", "wo")
"""Matrices that are there before the run and do not change."""


def paint_flow(painter: QPainter, state: FlowState, style: Style, rect: QRectF) -> None:
    """Draw a layer from X to Y, and what is said of a stage of it.

    Parameters
    ----------
    state : FlowState
        A layer at a share of an op.
    """
    run = state.model.run
    assert run is not None
    lay = flow_layout(run, style, rect)
    style = lay.style
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    _paint_cards(painter, state, style, lay)
    _paint_arrows(painter, style, lay)
    for name, box in lay.names.items():
        _paint_name(painter, run, style, name, box)
    for name in _STILL:
        values, colour = matrix(run, name), COLOURS.get(name, name)
        part = MatrixPart(written=lay.written)
        paint_matrix(painter, values, colour, style, lay.boxes[name], part)
    _paint_tiles(painter, state, style, lay)
    _paint_heads(painter, state, run, style, lay)
    _paint_y(painter, state, run, style, lay)
    for name in (*_STILL, "concat"):
        paint_slices(painter, slices_of(run, name), style, lay.boxes[name], along_rows=name == "wo")
    for head, slot in enumerate(lay.slots):
        paint_slices(painter, (range(head, head + 1),), style, slot)
    _paint_moving(painter, state, run, style, lay)
    paint_detail(painter, state, style, lay.detail)


def _paint_cards(painter: QPainter, state: FlowState, style: Style, lay: FlowLayout) -> None:
    """Draw the ground of each stage: lit while it is at work, framed if it was asked for."""
    theme, px = style.theme, style.px
    for name, places in lay.cards.items():
        works, chosen = name == state.at_work, name == state.selected
        ground = mixed(theme.panel, theme.current, 0.13) if works else QColor(theme.panel)
        border = theme.current if works else theme.text if chosen else theme.border
        for place in places:
            card(
                painter, place, ground, border, px(5), px(2) if works or chosen else hairline(style)
            )
            if works and chosen:
                outline(painter, place.adjusted(3, 3, -3, -3), theme.text, 1.0, px(4))


def _paint_arrows(painter: QPainter, style: Style, lay: FlowLayout) -> None:
    colour, tip = QColor(style.theme.muted), style.px(4.5)
    for line in lay.arrows:
        painter.setPen(QPen(colour, style.px(1.3)))
        painter.drawLine(line)
        long = max(line.length(), 1.0)
        along = QPointF(line.dx() / long * tip, line.dy() / long * tip)
        across, end = QPointF(-along.y() / 2, along.x() / 2), line.p2()
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour)
        head = [end, end - along + across, end - along - across]
        painter.drawPolygon(QPolygonF(head))


def name_parts(run: LayerRun, style: Style, name: str, width: float) -> tuple[str, float, str]:
    """Return the name of a matrix, how wide it is, and its shape; that is "" if it does not fit."""
    latex = NAMES[name]
    wide = formula(latex, style.px(14)).width
    shape = "  " + shape_text(run, name)
    font = style.text_font(LABEL)
    return latex, wide, shape if wide + text_width(font, shape) <= width else ""


def _paint_name(painter: QPainter, run: LayerRun, style: Style, name: str, box: QRectF) -> None:
    theme, font = style.theme, style.text_font(LABEL)
    if name == TILES:
        draw_text(painter, box, "tiles", style.text_font(12, bold=True), theme.text, CENTRE)
        return
    latex, wide, shape = name_parts(run, style, name, box.width())
    x = box.center().x() - (wide + text_width(font, shape)) / 2
    colour = theme.tensor(COLOURS[name]) if name in COLOURS else QColor(theme.text)
    formula(latex, style.px(14)).draw(painter, x, box.bottom() - style.px(5), colour)
    rest = QRectF(x + wide, box.y(), box.right() - x - wide, box.height())
    draw_text(painter, rest, shape, font, theme.muted)


def tile_words(state: FlowState, style: Style, width: float) -> list[str]:
    """Return where the run is, in three lines."""
    now = state.model.snapshot
    program, w = now.program, now.program.workload
    font = style.text_font(LABEL)
    visit, visits = count_text(now.cursor.visit + 1), count_text(len(program))
    return [
        first_that_fits([f"{head_words(w, now.visit.head)} of {len(w.picked)}",
                         head_words(w, now.visit.head)], width, font),
        first_that_fits([f"visit {visit} of {visits}", f"{visit} of {visits}", visit], width, font),
        first_that_fits([op_label(now.op, w), short_op_label(now.op, w)], width, font),
    ]  # fmt: skip


def _paint_tiles(painter: QPainter, state: FlowState, style: Style, lay: FlowLayout) -> None:
    """Draw the tiles of the current head in small, and in words where the run is."""
    now, box = state.model.snapshot, lay.boxes[TILES]
    program = now.program
    painter.save()
    paint_mini_board(painter, program, state.model.position, program.workload.grid, style, box)
    painter.restore()
    (first, _) = lay.cards["o"]
    line = style.px(17)
    for n, text in enumerate(tile_words(state, style, first.width() - style.px(6))):
        place = QRectF(first.x(), box.bottom() + style.px(4) + n * line, first.width(), line)
        ink = style.theme.muted if n < 2 else style.theme.text
        draw_text(painter, place, text, style.text_font(LABEL), ink, CENTRE)


def _columns(run: LayerRun, head: int) -> range:
    each = run.shapes["o"][2]
    return range(head * each, (head + 1) * each)


def _paint_heads(
    painter: QPainter, state: FlowState, run: LayerRun, style: Style, lay: FlowLayout
) -> None:
    """Draw O of each head apart, and side by side what has landed."""
    values, colour, theme = matrix(run, "concat"), COLOURS["concat"], style.theme
    box, slot = lay.boxes["concat"], lay.slots[0]
    font = number_font(values, style, QRectF(0, 0, slot.width() * run.heads, slot.height()))
    for place in (*lay.slots, box):
        painter.fillRect(place, QColor(theme.empty))
        outline(painter, place.adjusted(-1, -1, 1, 1), theme.grid)
    for head, place in enumerate(lay.slots):
        part = MatrixPart(
            state.model.finished[head],
            _columns(run, head),
            font=font,
            framed=False,
            written=lay.written,
        )
        paint_matrix(painter, values, colour, style, place, part)
        landed = MatrixPart(
            state.landed[head], _columns(run, head), font=font, framed=False, written=lay.written
        )
        paint_matrix(painter, values, colour, style, head_box(run, box, head), landed)


def head_box(run: LayerRun, box: QRectF, head: int) -> QRectF:
    """Return the place of a head in the concat."""
    wide = box.width() / run.heads
    return QRectF(box.x() + head * wide, box.y(), wide, box.height())


def _paint_moving(
    painter: QPainter, state: FlowState, run: LayerRun, style: Style, lay: FlowLayout
) -> None:
    """Draw rows that slide from O of their head into the concat."""
    moving = state.moving
    if moving is None:
        return
    values, colour = matrix(run, "concat"), COLOURS["concat"]
    slot = lay.slots[0]
    font = number_font(values, style, QRectF(0, 0, slot.width() * run.heads, slot.height()))
    for head in np.flatnonzero(moving.any(axis=1)).tolist():
        place = between(lay.slots[head], head_box(run, lay.boxes["concat"], head), state.slid)
        part = MatrixPart(
            moving[head], _columns(run, head), font=font, framed=False, written=lay.written
        )
        paint_matrix(painter, values, colour, style, place, part)
        for rows in runs_of(moving[head], len(values)):
            around = rows_box(place, rows, len(values)).adjusted(-2, -2, 2, 2)
            outline(painter, around, style.theme.head(head), style.px(2))


def between(start: QRectF, end: QRectF, share: float) -> QRectF:
    """Return a box on its way from one place to another."""
    at = eased(share)

    def mid(a: float, b: float) -> float:
        return a + (b - a) * at

    return QRectF(mid(start.x(), end.x()), mid(start.y(), end.y()),
                  mid(start.width(), end.width()), mid(start.height(), end.height()))  # fmt: skip


def mixed_rows(run: LayerRun, rows: Bools, heads: int) -> F32:
    """Return some rows of Y when W_O has added so many of the heads: a sum of the first terms."""
    some = run.shares[:heads, rows].astype(np.float64).sum(axis=0)
    return np.asarray(some + run.bias, dtype=np.float32)


def _paint_y(
    painter: QPainter, state: FlowState, run: LayerRun, style: Style, lay: FlowLayout
) -> None:
    """Draw the rows of Y that all heads have given to, and those that are being added up."""
    y, mixing, box = matrix(run, "y"), state.mixing, lay.boxes["y"]
    whole = state.model.whole if mixing is None else state.model.whole & ~mixing
    paint_matrix(painter, y, "y", style, box, MatrixPart(whole, written=lay.written))
    if mixing is None or not state.mixed:
        return
    top, font = limit_of(y), number_font(y, style, box)
    for rows in runs_of(mixing, len(y)):
        some = np.zeros(len(y), dtype=np.bool_)
        some[rows.start : rows.stop] = True
        values = mixed_rows(run, some, state.mixed)
        place = rows_box(box, rows, len(y))
        part = MatrixPart(limit=top, font=font, framed=False, kept=False, written=lay.written)
        paint_matrix(painter, values, "y", style, place, part)
