"""How many heads: what stays and what multiplies when they divide the same width."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter

from simulator.study.layer.heads import HeadCount, head_counts
from ui.kit.boxes import Box, Canvas, Column, Row, ink
from ui.kit.shapes import Text
from ui.kit.table import BoxRow, BoxTable, FigureText, Head
from ui.look.draw import RIGHT, hairline, mixed, outline
from ui.look.theme import Style
from ui.look.units import count_text, factor_text
from ui.panels.layer.state import LayerState
from ui.panels.study import Words


@dataclass(frozen=True, slots=True)
class CountLine:
    """A quantity: its name, its formula, its value, and how it compares with one head's."""

    names: tuple[str, ...]
    formula: str
    value: int
    factor: float
    share: float
    """Of the largest value that it has with any number of heads."""


def counts_of(state: LayerState) -> tuple[HeadCount, ...]:
    """Return a layer with each number of heads that its width can have."""
    rows, wide = state.run.shapes["x"]
    return head_counts(wide, rows)


def count_at(state: LayerState) -> int:
    """Return which of them is shown: the one supposed, or as many as the layer has, or nearest."""
    counts, own = counts_of(state), state.run.heads
    if state.supposed is not None:
        return min(state.supposed, len(counts) - 1)
    return min(range(len(counts)), key=lambda n: abs(counts[n].heads - own))


def lines(state: LayerState) -> tuple[CountLine, ...]:
    """Return what stays, then what multiplies."""

    def line(names: tuple[str, ...], formula: str, of: str) -> CountLine:
        values = [getattr(each, of) for each in counts_of(state)]
        value = values[count_at(state)]
        return CountLine(names, formula, value, value / values[0], value / max(values))

    return (
        line(("parameters of the four weights", "parameters"), "4 D²", "parameters"),
        line(("FLOPs of the projections", "projections"), "8 N D²", "projection_flops"),
        line(("FLOPs of QKᵀ and PV", "QKᵀ and PV"), "4 N² D", "tile_flops"),
        line(("scores, in h maps", "scores"), "h N²", "scores"),
        line(("exponentials", "exps"), "h N²", "exponentials"),
    )


def words_of_counts(state: LayerState) -> Words:
    """Return what is supposed."""
    now, own = counts_of(state)[count_at(state)], state.run.heads
    one = f"D = {now.width} in {count_text(now.heads)} head{'s' * (now.heads > 1)} of {now.depth}"
    run = "as many as this layer has" if now.heads == own else f"this layer has {own}"
    return Words(f"{one} ({run})", sentences=("Each head has its own K and V; none is masked.",))


def described_counts(state: LayerState) -> list[str]:
    """Return the figures, for screen readers."""
    return [f"{line.names[0]} {count_text(line.value)}, {factor_text(line.factor)} that of one head"
            for line in lines(state)]  # fmt: skip


def count_picture(state: LayerState) -> Box:
    """Return what more heads cost: a weight in slices, maps of scores, and figures."""
    now = counts_of(state)[count_at(state)]
    maps = f"{count_text(now.heads)} score map{'s' * (now.heads > 1)} of {now.rows} × {now.rows}"
    weight = f"W_Q, W_K, W_V: {now.heads} × {now.depth} columns"
    short = f"{now.heads} × {now.depth} columns", f"{now.heads} × {now.depth}"
    rows = tuple(
        BoxRow(Text(line.names, size=12), (
            Text(line.formula, "muted", size=12),
            FigureText((count_text(line.value), f"{line.value:.2e}"), "text", RIGHT, 12),
            Canvas(partial(_paint_share, line), wide=40),
            Text("1×" if line.factor == 1 else factor_text(line.factor), size=12),
        ))
        for line in lines(state)
    )  # fmt: skip
    heads = (
        Head(""),
        Head("", goes=1),
        Head(""),
        Head("of most", goes=2, takes=True),
        Head(""),
    )
    return Column((
        Row((
            Column((
                Text((weight, *short), "muted", wide=0),
                _Weight(now, grow=1),
            ), gap=2, share=0.4),
            Column((
                Text((maps, "score maps"), "muted", wide=0),
                Canvas(partial(_paint_maps, now), grow=1),
            ), gap=2, grow=1),
        ), gap=24, grow=1),
        BoxTable(heads, rows, heights=(13, 24), names=0.4, share=0.4),
    ), gap=4)  # fmt: skip


def _paint_share(line: CountLine, painter: QPainter, style: Style, rect: QRectF) -> None:
    """Paint a value beside the largest that it has with any number of heads."""
    side, deep = style.px(6), 0.25 * rect.height()
    bar = rect.adjusted(side, deep, -side, -deep)
    filled = QRectF(bar.x(), bar.y(), max(bar.width() * line.share, 1.0), bar.height())
    stays = line.factor == line.share == 1
    painter.fillRect(bar, ink(style, "field"))
    painter.fillRect(filled, ink(style, "muted" if stays else "current"))
    outline(painter, bar, style.theme.grid)


@dataclass(frozen=True, eq=False)
class _Weight(Box):
    """One weight as the slices of its heads: always the same square."""

    now: HeadCount

    def most_width(self, style: Style, height: float) -> float:
        return max(height, 0.0)

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        theme, side = style.theme, min(rect.width(), rect.height())
        wide = side / self.now.heads
        for head in range(self.now.heads):
            part = QRectF(rect.x() + head * wide, rect.y(), wide, side)
            painter.fillRect(part, mixed(theme.panel, theme.head(head), 0.55))
            if wide > style.px(4):
                outline(painter, part, theme.panel)
        outline(painter, QRectF(rect.x(), rect.y(), side, side), theme.grid, hairline(style))


def columns_of(count: int, box: QRectF) -> int:
    """Return in how many columns so many squares are largest in a box."""

    def size(across: int) -> float:
        return min(box.width() / across, box.height() / -(-count // across))

    return max(range(1, count + 1), key=size)


def _paint_maps(now: HeadCount, painter: QPainter, style: Style, box: QRectF) -> None:
    """Paint the map of each head, all of one size: as large as the most of them let it be."""
    theme, across = style.theme, columns_of(now.width, box)
    step = min(box.width() / across, box.height() / -(-now.width // across))
    size = max(step - min(style.px(3), 0.25 * step), 1.0)
    for head in range(now.heads):
        x, y = box.x() + head % across * step, box.y() + head // across * step
        place = QRectF(x, y, size, size)
        painter.fillRect(place, mixed(theme.panel, theme.head(head), 0.55))
        outline(painter, place, theme.head(head))
