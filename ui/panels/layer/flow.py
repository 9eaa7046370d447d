"""The flow from X to Y: matrices, slices of heads, and which stage is at work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QPainter, QPen, QPolygonF

from simulator.base.dtypes import F32
from simulator.base.matmul import matmul
from simulator.program.playback import eased
from simulator.run.snapshot import Snapshot
from simulator.run.whole_layer import LayerRun
from simulator.study.compare import position_of
from ui.board.mini_board import paint_mini_board
from ui.kit.boxes import Box, Canvas, Column, Placed, Row, Tone, ink
from ui.kit.shapes import Card, Paragraph, Text
from ui.look.draw import CENTRE
from ui.look.names import head_words, op_label, short_op_label
from ui.look.theme import Style
from ui.look.units import count_text
from ui.panels.layer.matrices import (
    Matrix,
    MatrixName,
    band_of,
    laid,
    limit_of,
    number_font,
    rows_box,
    runs_of,
)
from ui.panels.layer.state import COLOURS, PROJECTED, LayerState, Pictured, heads_of, matrix
from ui.panels.layer.words import NAMES, PLAIN, facts, formula_of, shape_text, sum_text, title_of
from ui.panels.study import Words

_TILES = "tiles"
"""The place of the run's miniature."""
_ABOVE = (("x",), ("wq", "wk", "wv"), PROJECTED)
_BELOW = ((_TILES,), ("o", "concat"), ("wo",), ("y",))
"""The columns, which stand in one line or in two."""
_ARROWS = (
    ("x", "wq"), ("x", "wk"), ("x", "wv"), ("wq", "q"), ("wk", "k"), ("wv", "v"), ("q", _TILES),
    ("k", _TILES), ("v", _TILES), (_TILES, "o"), ("concat", "wo"), ("wo", "y"),
)  # fmt: skip
_STAGES = (
    ("q", "wq", "q"), ("k", "wk", "k"), ("v", "wv", "v"), ("o", _TILES), ("o", "o"),
    ("concat", "concat"), ("y", "wo"), ("y", "y"),
)  # fmt: skip
"""Each stage with the parts inside its place; stages o and y have two places."""
_LEAST = 0.3
"""Least side of a matrix, as a share of the longest: a flat matrix is still seen."""
_CELL = QSizeF(72, 36)
"""Largest cells at scale 1."""
_MOST_ROWS = 4
"""Rows up to which the statistics of a layer's only head are written out."""


@dataclass(frozen=True, eq=False)
class FlowPicture(Box):
    """A layer from X to Y at a share of an op, and words on one stage."""

    state: LayerState

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        state, px, run = self.state, style.px, self.state.run
        deep = min(max(px(66), 0.17 * rect.height()), px(92), 0.25 * rect.height())
        boxes = flow_places(run, style, rect.adjusted(0, 0, 0, -deep - px(6)))
        for stage, *names in _STAGES:
            lines = 1 if run.plain else 3
            lower = px(4) + lines * px(17) if names == [_TILES] else 0
            place = _around(style, [boxes[name] for name in names]).adjusted(0, 0, 0, lower)
            yield from _ground(state, stage).place(style, place.intersected(rect))
        yield Placed(Canvas(partial(_paint_arrows, boxes)), rect)
        for name, box in boxes.items():
            title: Box = Text(
                "attention" if run.plain else _TILES, align=CENTRE, size=12, bold=True
            )
            if name != _TILES:
                tone = COLOURS.get(name, "text")
                title = MatrixName(NAMES[name], tone, shape_text(run, name), 14)
            yield Placed(title, _name_place(style, box))
        yield from self._tiles(style, boxes[_TILES], rect)
        yield from self._matrices(style, boxes)
        low = rect.adjusted(0, rect.height() - deep, -1, -1)  # lines at its edges are whole
        yield from _detail(state).place(style, low)

    def _matrices(self, style: Style, boxes: dict[str, QRectF]) -> Iterator[Placed]:
        state, run, moves = self.state, self.state.run, list[Placed]()
        mixing, moving, whole = state.mixing, state.moving, state.whole
        concat, wide = matrix(run, "concat"), run.shapes["o"][2]
        gap = min(style.px(8), 0.3 * boxes["o"].width() / run.heads)
        slots = head_places(run.heads, boxes["o"], gap)
        homes = head_places(run.heads, boxes["concat"], 0)
        fonts = {name: number_font(matrix(run, name), style, boxes[name])
                 for name in boxes if name != _TILES}  # fmt: skip
        narrow = QRectF(0, 0, slots[0].width() * run.heads, slots[0].height())
        fonts["o"] = number_font(concat, style, narrow)
        written = None not in fonts.values()
        there = {"concat": state.landed, "y": whole if mixing is None else whole & ~mixing}
        for name in [each for each in boxes if each not in (_TILES, "o")]:
            of = Matrix(matrix(run, name), COLOURS.get(name, name), PLAIN[name], there.get(name),
                        heads_of(run, name), name == "wo", written=written)  # fmt: skip
            yield Placed(of, boxes[name])
        for head, slot in enumerate(slots):
            values, own = concat[:, head * wide : (head + 1) * wide], (range(head, head + 1),)
            of = Matrix(values, "O", PLAIN["o"], state.finished[head], own, font=fonts["o"],
                        limit=limit_of(concat), written=written)  # fmt: skip
            yield Placed(of, slot)
            if moving is not None and moving[head].any():
                frames = tuple((rows, range(wide)) for rows in runs_of(moving[head]))
                slides = replace(of, rows=moving[head], slices=(), bare=True, frames=frames,
                                 tone=f"head {head}")  # fmt: skip
                moves.append(Placed(slides, between(slot, homes[head], state.slid)))
        for rows in runs_of(mixing) if mixing is not None and state.mixed else ():
            of = Matrix(mixed_rows(run, rows, state.mixed), "y", "Y", bare=True, font=fonts["y"],
                        limit=limit_of(matrix(run, "y")), written=written)  # fmt: skip
            yield Placed(of, rows_box(boxes["y"], rows, len(whole)))
        yield from moves

    def _tiles(self, style: Style, box: QRectF, rect: QRectF) -> Iterator[Placed]:
        """Yield the tiles of the current head in small, and the run's place in words."""
        now, line = self.state.snapshot, style.px(17)
        program, w = now.program, now.program.workload
        yield Placed(Canvas(partial(_paint_tiles, now)), box)
        visit, visits = count_text(now.cursor.visit + 1), count_text(len(program))
        head = head_words(w, now.visit.head)
        wide = style.inset(_name_place(style, box), -5, 0, -5, 0).intersected(rect)
        for n, words in enumerate((
            (f"{head} of {len(w.picked)}", head, ""),
            (f"visit {visit} of {visits}", f"{visit} of {visits}", visit),
            (op_label(now.op, w), short_op_label(now.op, w), ""),
        )):  # fmt: skip
            place = QRectF(wide.x(), box.bottom() + style.px(4) + n * line, wide.width(), line)
            if n and self.state.run.plain:
                break
            yield Placed(Text(words, "muted" if n < 2 else "text", CENTRE), place)


# --- where everything stands ------------------------------------------------------------------


def flow_places(run: LayerRun, style: Style, rect: QRectF) -> dict[str, QRectF]:
    """Return the places of all matrices and of the run's miniature."""
    px, head = style.px, style.px(19) + band_of(style)
    wide = rect.width() > 1.25 * rect.height()
    lines = (_ABOVE + _BELOW,) if wide else (_ABOVE, _BELOW)
    shapes = {name: matrix(run, name).shape for line in lines for column in line
              for name in column if name != _TILES}  # fmt: skip
    largest = (max(rows for rows, _ in shapes.values()), max(cols for _, cols in shapes.values()))
    shapes[_TILES] = largest
    boxes, y = dict[str, QRectF](), rect.y()
    for line in lines:
        high = rect.height() * (1 if wide else 0.6 if line is _ABOVE else 0.4)
        part = QRectF(rect.x(), y, rect.width(), high).adjusted(0, px(2), 0, -px(2))
        gap = min(px(34), 0.06 * rect.width() * len(_ABOVE + _BELOW) / len(line))
        places = laid([[shapes[name] for name in column] for column in line], largest, style, part,
                      cell=_CELL, least=_LEAST, gap=gap, edge=px(9), head=head + px(5))  # fmt: skip
        for column, found in zip(line, places, strict=True):
            boxes |= dict(zip(column, found, strict=True))
        if _TILES in boxes:  # three lines of words below it
            box, words = boxes[_TILES], px(58)
            side = min(part.height() - head - words, box.width())
            top = max(
                min(box.center().y() - side / 2, part.bottom() - side - words), part.y() + head
            )
            boxes[_TILES] = QRectF(box.x(), round(top), box.width(), round(side))
        y += high
    return boxes


def _with_name(style: Style, box: QRectF) -> QRectF:
    """Return the box of a matrix with the width that its name may have."""
    return style.inset(box, -3, 0, -3, 0)


def _name_place(style: Style, box: QRectF) -> QRectF:
    """Return the place of a matrix's name; wider than a narrow matrix."""
    wide, high = _with_name(style, box), style.px(19) + band_of(style)
    return QRectF(wide.x(), box.y() - high, wide.width(), style.px(18))


def _around(style: Style, boxes: list[QRectF]) -> QRectF:
    """Return the place of a stage: around matrices and their names."""
    named = [box.united(_name_place(style, box)) for box in boxes]
    pad = style.px(3)
    return reduce(QRectF.united, named).adjusted(-pad - band_of(style), -1, pad, pad)


def head_places(heads: int, box: QRectF, gap: float) -> list[QRectF]:
    """Return the places of heads side by side in a box."""
    wide = (box.width() - gap * (heads - 1)) / heads
    return [QRectF(box.x() + head * (wide + gap), box.y(), wide, box.height())
            for head in range(heads)]  # fmt: skip


def between(start: QRectF, end: QRectF, share: float) -> QRectF:
    """Return a box on its way from one place to another."""
    at = eased(share)
    ends = (start.topLeft(), end.topLeft()), (start.bottomRight(), end.bottomRight())
    return QRectF(*(a + (b - a) * at for a, b in ends))


def mixed_rows(run: LayerRun, rows: range, heads: int) -> F32:
    """Return some rows of Y when W_O has added the first `heads` heads, as a sum of terms."""
    some = run.shares[:heads, rows.start : rows.stop].astype(np.float64).sum(axis=0)
    return np.asarray(some + run.bias, dtype=np.float32)


# --- what is painted --------------------------------------------------------------------------


def _ground(state: LayerState, stage: str) -> Box:
    """Return the ground of a stage: lit while it is at work, framed if it was asked for."""
    works, chosen = stage == state.at_work, stage == state.stage
    ground: Tone = ("panel", "current", 0.13) if works else "panel"
    border = "current" if works else "text" if chosen else "border"
    inner = Card(Box(), "text", ground=ground) if works and chosen else Box()
    return Card(inner, border, 2 if works or chosen else 1, ground=ground, id=("stage", stage))


def _paint_arrows(boxes: dict[str, QRectF], painter: QPainter, style: Style, _: QRectF) -> None:
    """Paint arrows from each matrix to the matrix that is made from it."""
    px, band = style.px, band_of(style) + style.px(8)
    one, two = boxes["o"], _name_place(style, boxes["concat"])
    x = one.center().x()
    arrows = [QLineF(x, one.bottom() + px(3), x, two.y() - px(1))]
    for name, other in _ARROWS:
        one, two = (_with_name(style, boxes[each]) for each in (name, other))
        if one.right() < two.right():  # not from a line to the next
            start = one.right() + px(7), one.center().y()
            high = min(max(start[1], two.top() + px(8)), two.bottom() - px(8))
            arrows.append(QLineF(*start, max(two.left() - band, start[0] + px(6)), high))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(ink(style, "muted"))
    for line in arrows:
        painter.setPen(QPen(ink(style, "muted"), px(1.3)))
        painter.drawLine(line)
        along = QPointF(line.dx(), line.dy()) * (px(4.5) / max(line.length(), 1.0))
        across, end = QPointF(-along.y() / 2, along.x() / 2), line.p2()
        painter.setPen(Qt.PenStyle.NoPen)
        painter.drawPolygon(QPolygonF([end, end - along + across, end - along - across]))


def _paint_tiles(now: Snapshot, painter: QPainter, style: Style, rect: QRectF) -> None:
    grid = now.program.workload.grid
    painter.save()
    paint_mini_board(painter, now.program, position_of(now), grid, style, rect)
    painter.restore()


# --- words on a stage -------------------------------------------------------------------------


def _detail(state: LayerState) -> Box:
    """Return the words on the shown stage, and on the row that the board explains."""
    run, stage, tables = state.run, state.shown, list[Box]()
    if stage == "o" and run.heads == 1 and len(state.whole) <= _MOST_ROWS:
        for name, values in _small(state).items():
            tone = COLOURS[name]
            of = Matrix(values, tone, PLAIN[name], state.finished[0], grow=1)
            named = MatrixName(NAMES[name], tone, size=13, high=18, wide=46)
            wide = Box(wide=46 * values.shape[1])
            tables.append(Column((named, of, wide), gap=0, may_go=True))
    latex = formula_of(run, stage, state.snapshot.program.workload)
    first, *others = facts(run, stage)
    said = Column((
        Row((MatrixName(latex, "text", size=16, high=27), Box(grow=1)), gap=0),
        Text((first, ""), "muted", wide=0),
        Paragraph("  ·  ".join(others), "muted", may_go=True),
        Text((sum_text(run, stage, state.row), ""), "muted", may_go=True), Box(grow=1),
    ), gap=0, grow=1)  # fmt: skip
    return Row((said, *tables), gap=14)


def _small(state: LayerState) -> dict[str, F32]:
    """Return the tensors of a small layer to write out: tile statistics, or scores and weights."""
    run = state.run
    if not run.plain:
        kept = {name: run.statistics[name] for name in ("m", "l", "lse") if name in run.statistics}
        return {name: values[0].reshape(len(state.whole), -1) for name, values in kept.items()}
    if state.weights is None or state.snapshot.head is None:
        return {}
    raw = matmul(run.arrays["q"][0], run.arrays["k"][0].T)
    return {"qk": raw, "s": state.snapshot.head.s, "a": state.weights}


def _words(state: LayerState) -> Words:
    return Words(title_of(state.run, state.shown))


FLOW_VIEW = Pictured(_words, FlowPicture, lambda state: facts(state.run, state.shown))
