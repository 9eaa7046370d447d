"""The flow from X to Y: matrices, slices of heads, and which stage is at work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from simulator.base.dtypes import F32
from simulator.program.playback import eased
from simulator.run.whole_layer import LayerRun
from ui.board.mini_board import paint_mini_board
from ui.kit.boxes import Box, Canvas, Placed
from ui.kit.shapes import Text
from ui.look.draw import CENTRE, card, hairline, mixed, outline
from ui.look.names import head_words, op_label, short_op_label
from ui.look.theme import Style
from ui.look.units import count_text
from ui.panels.layer.detail import Detail
from ui.panels.layer.matrices import (
    Matrix,
    MatrixName,
    MatrixPart,
    limit_of,
    number_font,
    paint_matrix,
    paint_slices,
    rows_box,
    runs_of,
)
from ui.panels.layer.model import COLOURS, Bools, FlowState, heads_of, matrix
from ui.panels.layer.places import (
    TILES,
    flow_places,
    head_box,
    head_places,
    is_wide,
    name_place,
    stage_places,
)
from ui.panels.layer.words import NAMES, PLAIN, shape_text

_STILL = ("x", "wq", "wk", "wv", "q", "k", "v", "wo")
"""Matrices that are there before the run and do not change."""


@dataclass(frozen=True, eq=False)
class FlowPicture(Box):
    """A layer from X to Y at a share of an op, and what is said of a stage of it."""

    state: FlowState

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        state, px, run = self.state, style.px, self.state.model.run
        assert run is not None
        deep = min(max(px(66), 0.17 * rect.height()), px(92))
        body, wide = rect.adjusted(0, 0, 0, -deep - px(6)), is_wide(rect)
        boxes, arrows = flow_places(run, style, body, wide=wide)
        for stage, place in stage_places(style, boxes, rect):
            works, chosen = stage == state.at_work, stage == state.selected
            yield Placed(_Stage(works, chosen, id=("stage", stage), name=stage), place)
        yield Placed(Canvas(partial(_paint_arrows, arrows)), rect)
        for name, box in boxes.items():
            tone, latex = COLOURS.get(name, "text"), NAMES.get(name, "")
            named = MatrixName(latex, tone, shape_text(run, name), 14) if latex else _TITLE
            yield Placed(named, name_place(style, box))
        slots = head_places(run, style, boxes["o"])
        values = matrix(run, "concat")
        narrow = QRectF(0, 0, slots[0].width() * run.heads, slots[0].height())
        font = number_font(values, style, narrow)
        fonts = [
            number_font(matrix(run, each), style, boxes[each]) for each in boxes.keys() - {TILES}
        ]
        written = font is not None and None not in fonts
        for name in _STILL:
            of, slices = MatrixPart(written=written), heads_of(run, name)
            colour, by_rows = COLOURS.get(name, name), name == "wo"
            still = Matrix(matrix(run, name), colour, PLAIN[name], of, slices, by_rows)
            yield Placed(still, boxes[name])
        yield from self._tiles(style, boxes[TILES], rect)
        concat, each = boxes["concat"], run.shapes["o"][2]
        nothing = MatrixPart(np.zeros(len(values), np.bool_), written=False)
        yield Placed(Matrix(values, COLOURS["concat"], PLAIN["concat"], nothing), concat)
        moves, moving = [], state.moving
        for head, slot in enumerate(slots):
            part = MatrixPart(state.model.finished[head], range(head * each, (head + 1) * each),
                              font=font, written=written)  # fmt: skip
            own, home = (range(head, head + 1),), head_box(run, concat, head)
            of_head = Matrix(values, COLOURS["o"], PLAIN["o"], part, own)
            landed = replace(part, rows=state.landed[head], framed=False)
            yield Placed(of_head, slot)
            yield Placed(replace(of_head, part=landed, said=PLAIN["concat"], slices=()), home)
            if moving is not None and moving[head].any():
                slides = replace(landed, rows=moving[head])
                framed = partial(_paint_runs, moving[head], head)
                slid = replace(of_head, part=slides, slices=(), over=framed)
                moves.append(Placed(slid, between(slot, home, state.slid)))
        bands = partial(paint_bands, heads_of(run, "concat"))
        yield Placed(Canvas(bands), concat)
        y, mixing = matrix(run, "y"), state.mixing
        whole = state.model.whole if mixing is None else state.model.whole & ~mixing
        over = None if mixing is None else partial(_paint_mixing, state, run, mixing, written)
        made = Matrix(y, "y", "Y", MatrixPart(whole, written=written), over=over)
        yield Placed(made, boxes["y"])
        yield from moves
        yield from Detail(state).place(style, rect.adjusted(0, rect.height() - deep, 0, 0))

    def _tiles(self, style: Style, box: QRectF, rect: QRectF) -> Iterator[Placed]:
        """Yield the tiles of the current head in small, and in words where the run is."""
        now, line = self.state.model.snapshot, style.px(17)
        program, w = now.program, now.program.workload

        def paint(painter: QPainter, style: Style, place: QRectF) -> None:
            painter.save()
            paint_mini_board(painter, program, self.state.model.position, w.grid, style, place)
            painter.restore()

        yield Placed(Canvas(paint), box)
        visit, visits = count_text(now.cursor.visit + 1), count_text(len(program))
        head = head_words(w, now.visit.head)
        wide = name_place(style, box).adjusted(-style.px(5), 0, style.px(5), 0).intersected(rect)
        for n, words in enumerate((
            (f"{head} of {len(w.picked)}", head),
            (f"visit {visit} of {visits}", f"{visit} of {visits}", visit),
            (op_label(now.op, w), short_op_label(now.op, w)),
        )):  # fmt: skip
            y = box.bottom() + style.px(4) + n * line
            place = QRectF(wide.x(), y, wide.width(), line)
            yield Placed(Text(words, "muted" if n < 2 else "text", CENTRE), place)


_TITLE = Text("tiles", align=CENTRE, size=12, bold=True)


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


def _paint_arrows(arrows: list[QLineF], painter: QPainter, style: Style, rect: QRectF) -> None:
    colour, tip = QColor(style.theme.muted), style.px(4.5)
    for line in arrows:
        painter.setPen(QPen(colour, style.px(1.3)))
        painter.drawLine(line)
        long = max(line.length(), 1.0)
        along = QPointF(line.dx() / long * tip, line.dy() / long * tip)
        across, end = QPointF(-along.y() / 2, along.x() / 2), line.p2()
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour)
        head = [end, end - along + across, end - along - across]
        painter.drawPolygon(QPolygonF(head))


def paint_bands(slices: tuple[range, ...], painter: QPainter, style: Style, rect: QRectF) -> None:
    """Draw bands of heads above a matrix that is drawn in parts."""
    paint_slices(painter, slices, style, rect)


def _paint_runs(rows: Bools, head: int, painter: QPainter, style: Style, rect: QRectF) -> None:
    """Frame rows that slide from O of their head into the concat."""
    for run in runs_of(rows, len(rows)):
        around = rows_box(rect, run, len(rows)).adjusted(-2, -2, 2, 2)
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


def _paint_mixing(
    state: FlowState, run: LayerRun, mixing: Bools, written: bool,
    painter: QPainter, style: Style, box: QRectF,
) -> None:  # fmt: skip
    """Draw the rows of Y that are being added up."""
    y = matrix(run, "y")
    top, font = limit_of(y), number_font(y, style, box)
    for rows in runs_of(mixing if state.mixed else np.zeros_like(mixing), len(y)):
        some = np.zeros(len(y), dtype=np.bool_)
        some[rows.start : rows.stop] = True
        values = mixed_rows(run, some, state.mixed)
        place = rows_box(box, rows, len(y))
        part = MatrixPart(limit=top, font=font, framed=False, kept=False, written=written)
        paint_matrix(painter, values, "y", style, place, part)
