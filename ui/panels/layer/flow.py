"""The flow from X to Y: matrices, slices of heads, and which stage is at work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from simulator.base.dtypes import F32
from simulator.program.playback import eased
from simulator.run.snapshot import Snapshot
from simulator.run.whole_layer import LayerRun
from simulator.study.compare import position_of
from ui.board.mini_board import paint_mini_board
from ui.kit.boxes import Box, Canvas, Column, Placed, Row
from ui.kit.shapes import LINE, Text
from ui.look.draw import CENTRE, card, hairline, mixed, outline, text_width
from ui.look.names import head_words, op_label, short_op_label
from ui.look.theme import LABEL, Style
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
from ui.panels.layer.state import COLOURS, PROJECTED, Bools, LayerState, heads_of, matrix
from ui.panels.layer.words import NAMES, PLAIN, facts, formula_of, shape_text, sum_text

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
"""Each stage with what stands inside its place, or in its two places."""
_STILL = ("x", "wq", "wk", "wv", "q", "k", "v", "wo")
"""Matrices that are there before the run and do not change."""
_LEAST = 0.3
"""Least side of a matrix, as a share of the longest: a flat one is still seen."""
_CELL = QSizeF(72, 36)
"""Largest cells at scale 1."""
_MOST_ROWS = 4
"""Rows up to which the statistics of a layer's only head are written out."""


@dataclass(frozen=True, eq=False)
class FlowPicture(Box):
    """A layer from X to Y at a share of an op, and what is said of a stage of it."""

    state: LayerState

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        state, px, run = self.state, style.px, self.state.run
        deep = min(max(px(66), 0.17 * rect.height()), px(92), 0.25 * rect.height())
        boxes = flow_places(run, style, rect.adjusted(0, 0, 0, -deep - px(6)))
        for stage, *names in _STAGES:
            ground = _Stage(stage == state.at_work, stage == state.stage, id=("stage", stage))
            place = _around(style, [boxes[name] for name in names])
            lower = 3 * px(17) if names == [_TILES] else 0
            yield Placed(ground, place.adjusted(0, 0, 0, lower).intersected(rect))
        yield Placed(Canvas(partial(_paint_arrows, boxes)), rect)
        for name, box in boxes.items():
            title: Box = Text(_TILES, align=CENTRE, size=12, bold=True)
            if name != _TILES:
                tone = COLOURS.get(name, "text")
                title = MatrixName(NAMES[name], tone, shape_text(run, name), 14)
            yield Placed(title, _name_place(style, box))
        yield from self._tiles(style, boxes[_TILES], rect)
        yield from self._matrices(style, boxes)
        yield from _detail(state).place(style, rect.adjusted(0, rect.height() - deep, 0, 0))

    def _matrices(self, style: Style, boxes: dict[str, QRectF]) -> Iterator[Placed]:
        state, run = self.state, self.state.run
        slots, concat, whole = (
            head_places(run.heads, style, boxes["o"]),
            matrix(run, "concat"),
            state.whole,
        )
        narrow = QRectF(0, 0, slots[0].width() * run.heads, slots[0].height())
        font = number_font(concat, style, narrow)
        written = font is not None and None not in [
            number_font(matrix(run, each), style, boxes[each]) for each in boxes if each != _TILES
        ]

        def made(name: str, rows: Bools | None = None, **more: Any) -> Matrix:
            return Matrix(matrix(run, name), COLOURS.get(name, name), PLAIN[name], rows,
                          heads_of(run, name), name == "wo", written=written, **more)  # fmt: skip

        for name in _STILL:
            yield Placed(made(name), boxes[name])
        yield Placed(made("concat", state.landed), boxes["concat"])
        mixing, moving, whole = state.mixing, state.moving, state.whole
        wide = concat.shape[1] // run.heads
        y, top = boxes["y"], limit_of(concat)
        yield Placed(made("y", whole if mixing is None else whole & ~mixing), y)
        moves = []
        for head, slot in enumerate(slots):
            values, own = concat[:, head * wide : (head + 1) * wide], (range(head, head + 1),)
            of_head = Matrix(values, "O", PLAIN["o"], state.finished[head], own, limit=top,
                             font=font, written=written)  # fmt: skip
            yield Placed(of_head, slot)
            if moving is not None and moving[head].any():
                rows, home = moving[head], head_box(run.heads, boxes["concat"], head)
                slides = replace(of_head, rows=rows, slices=(), bare=True,
                                 over=partial(_paint_runs, rows, head))  # fmt: skip
                moves.append(Placed(slides, between(slot, home, state.slid)))
        for rows in runs_of(mixing) if mixing is not None and state.mixed else ():
            values, of_y = mixed_rows(run, rows, state.mixed), matrix(run, "y")
            under_way = Matrix(values, "y", "Y", limit=limit_of(of_y), bare=True,
                               font=number_font(of_y, style, y), written=written)  # fmt: skip
            yield Placed(under_way, rows_box(y, rows, len(whole)))
        yield from moves

    def _tiles(self, style: Style, box: QRectF, rect: QRectF) -> Iterator[Placed]:
        """Yield the tiles of the current head in small, and in words where the run is."""
        now, line = self.state.snapshot, style.px(17)
        program, w = now.program, now.program.workload
        yield Placed(Canvas(partial(_paint_tiles, now)), box)
        visit, visits = count_text(now.cursor.visit + 1), count_text(len(program))
        head = head_words(w, now.visit.head)
        wide = _name_place(style, box).adjusted(-style.px(5), 0, style.px(5), 0).intersected(rect)
        for n, words in enumerate((
            (f"{head} of {len(w.picked)}", head, ""),
            (f"visit {visit} of {visits}", f"{visit} of {visits}", visit),
            (op_label(now.op, w), short_op_label(now.op, w), ""),
        )):  # fmt: skip
            y = box.bottom() + style.px(4) + n * line
            place = QRectF(wide.x(), y, wide.width(), line)
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
            high = min(part.height() - head - words, box.width())
            top = min(box.center().y() - high / 2, part.bottom() - high - words)
            boxes[_TILES] = QRectF(
                box.x(), round(max(top, part.y() + head)), box.width(), round(high)
            )
        y += high
    return boxes


def _with_name(style: Style, box: QRectF) -> QRectF:
    """Return a matrix with the width that its name may have."""
    return box.adjusted(-style.px(3), 0, style.px(3), 0)


def _name_place(style: Style, box: QRectF) -> QRectF:
    """Return where a matrix is named; longer than a narrow matrix is wide."""
    wide, high = _with_name(style, box), style.px(19) + band_of(style)
    return QRectF(wide.x(), box.y() - high, wide.width(), style.px(18))


def _around(style: Style, boxes: list[QRectF]) -> QRectF:
    """Return the place of a stage: around matrices and their names."""
    named = [box.united(_name_place(style, box)) for box in boxes]
    pad = style.px(3)
    return reduce(QRectF.united, named).adjusted(-pad - band_of(style), -1, pad, pad)


def head_places(heads: int, style: Style, box: QRectF) -> list[QRectF]:
    """Return the places of O of each head: apart, where the concat has them side by side."""
    gap = min(style.px(8), 0.3 * box.width() / heads) if heads > 1 else 0.0
    wide = (box.width() - gap * (heads - 1)) / heads
    return [QRectF(box.x() + head * (wide + gap), box.y(), wide, box.height())
            for head in range(heads)]  # fmt: skip


def head_box(heads: int, box: QRectF, head: int) -> QRectF:
    """Return the place of a head in the concat."""
    wide = box.width() / heads
    return QRectF(box.x() + head * wide, box.y(), wide, box.height())


def between(start: QRectF, end: QRectF, share: float) -> QRectF:
    """Return a box on its way from one place to another."""
    at = eased(share)
    corners = (
        a + (b - a) * at
        for a, b in ((start.topLeft(), end.topLeft()), (start.bottomRight(), end.bottomRight()))
    )
    return QRectF(*corners)


def mixed_rows(run: LayerRun, rows: range, heads: int) -> F32:
    """Return some rows of Y when W_O has added so many of the heads: a sum of the first terms."""
    some = run.shares[:heads, rows.start : rows.stop].astype(np.float64).sum(axis=0)
    return np.asarray(some + run.bias, dtype=np.float32)


# --- what is painted --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Stage(Box):
    """The ground of a stage: lit while it is at work, framed if it was asked for."""

    works: bool
    chosen: bool

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        theme, px = style.theme, style.px
        ground = mixed(theme.panel, theme.current, 0.13) if self.works else QColor(theme.panel)
        border = theme.current if self.works else theme.text if self.chosen else theme.border
        thick = px(2) if self.works or self.chosen else hairline(style)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        card(painter, rect, ground, border, px(5), thick)
        if self.works and self.chosen:
            outline(painter, rect.adjusted(3, 3, -3, -3), theme.text, 1.0, px(4))


def _paint_arrows(boxes: dict[str, QRectF], painter: QPainter, style: Style, rect: QRectF) -> None:
    """Paint arrows from each matrix to what is made of it."""
    px, band = style.px, band_of(style) + style.px(8)
    for name, other in _ARROWS:
        one, two = (_with_name(style, boxes[each]) for each in (name, other))
        if one.right() < two.right():  # not from a line to the next
            start = QPointF(one.right() + px(7), one.center().y())
            high = min(max(start.y(), two.top() + px(8)), two.bottom() - px(8))
            _paint_arrow(
                painter, style, start, QPointF(max(two.left() - band, start.x() + px(6)), high)
            )
    one, two = boxes["o"], _name_place(style, boxes["concat"])
    x = one.center().x()
    _paint_arrow(painter, style, QPointF(x, one.bottom() + px(3)), QPointF(x, two.y() - px(1)))


def _paint_arrow(painter: QPainter, style: Style, start: QPointF, end: QPointF) -> None:
    colour, line = QColor(style.theme.muted), QLineF(start, end)
    painter.setPen(QPen(colour, style.px(1.3)))
    painter.drawLine(line)
    along = QPointF(line.dx(), line.dy()) * (style.px(4.5) / max(line.length(), 1.0))
    across = QPointF(-along.y() / 2, along.x() / 2)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    painter.drawPolygon(QPolygonF([end, end - along + across, end - along - across]))


def _paint_tiles(now: Snapshot, painter: QPainter, style: Style, rect: QRectF) -> None:
    grid = now.program.workload.grid
    painter.save()
    paint_mini_board(painter, now.program, position_of(now), grid, style, rect)
    painter.restore()


def _paint_runs(rows: Bools, head: int, painter: QPainter, style: Style, rect: QRectF) -> None:
    """Frame rows that slide from O of their head into the concat."""
    for run in runs_of(rows):
        around = rows_box(rect, run, len(rows)).adjusted(-2, -2, 2, 2)
        outline(painter, around, style.theme.head(head), style.px(2))


# --- what is said of a stage ------------------------------------------------------------------


def _detail(state: LayerState) -> Box:
    """Return what is said of the stage that is shown, and of the row that the board explains."""
    run, stage, tables = state.run, state.shown, list[Box]()
    if stage == "o" and run.heads == 1 and len(state.whole) <= _MOST_ROWS:
        for name in [each for each in ("m", "l", "lse") if each in run.statistics]:
            values = run.statistics[name][0].reshape(len(state.whole), -1)
            of = Matrix(values, COLOURS[name], PLAIN[name], state.finished[0], grow=1)
            named = MatrixName(NAMES[name], COLOURS[name], size=13, high=18, wide=46)
            wide = Box(wide=46 * values.shape[1])
            tables.append(Column((named, of, wide), gap=0, may_go=True))
    latex = formula_of(run, stage, state.snapshot.program.workload)
    said = Column((
        Row((MatrixName(latex, "text", size=16, high=27), Box(grow=1)), gap=0),
        _Phrases(tuple(facts(run, stage)), sum_text(run, stage, state.row), grow=1),
    ), gap=0, grow=1)  # fmt: skip
    return Row((said, *tables), gap=14)


@dataclass(frozen=True, eq=False)
class _Phrases(Box):
    """Phrases in full lines, those at the end left out if there is no room, and a last line."""

    said: tuple[str, ...]
    last: str

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        font, line, room, lines = style.text_font(LABEL), style.px(LINE), rect.width(), list[str]()
        for each in self.said:
            longer = f"{lines[-1]}  ·  {each}" if lines else each
            if lines and text_width(font, longer) <= room:
                lines[-1] = longer
            elif (len(lines) + 1) * line <= rect.height() and text_width(
                font, each
            ) <= rect.width():
                lines.append(each)
        if (len(lines) + 1) * line <= rect.height() and text_width(font, self.last) <= room:
            lines.append(self.last)
        for n, words in enumerate(lines):
            yield Placed(
                Text(words, "muted"), QRectF(rect.x(), rect.y() + n * line, rect.width(), line)
            )
