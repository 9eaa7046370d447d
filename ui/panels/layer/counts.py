"""Numbers of heads: quantities that stay or multiply when heads divide the same width."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from simulator.study.layer.heads import HeadCount, head_counts
from ui.kit.boxes import Box, Canvas, Column, Row, ink
from ui.kit.shapes import Bar, Bars, Image, Text
from ui.kit.table import BoxRow, BoxTable, FigureText, Head
from ui.look.draw import RIGHT, outline, squares
from ui.look.heat import word_image
from ui.look.theme import Style
from ui.look.units import count_text, factor_text
from ui.panels.layer.state import LayerState, Pictured
from ui.panels.study import Words

_QUANTITIES: tuple[tuple[tuple[str, str], str, Callable[[HeadCount], int]], ...] = (
    (("parameters of the four weights", "parameters"), "4 D²", lambda each: each.parameters),
    (("FLOPs of the projections", "projections"), "8 N D²", lambda each: each.projection_flops),
    (("FLOPs of QKᵀ and PV", "QKᵀ and PV"), "4 N² D", lambda each: each.tile_flops),
    (("scores, in h maps", "scores"), "h N²", lambda each: each.scores),
    (("exponentials", "exps"), "h N²", lambda each: each.exponentials),
)
"""Names, formulas and `HeadCount` values: first constant quantities, then growing ones."""


class CountLine(NamedTuple):
    """A quantity: its names, its formula, its value, and how it compares with others."""

    names: tuple[str, ...]
    formula: str
    value: int
    factor: float  # relative to one head
    share: float  # relative to the largest value over all numbers of heads


def counts_of(state: LayerState) -> tuple[HeadCount, ...]:
    """Return a layer with each number of heads that its width can have."""
    rows, wide = state.run.shapes["x"]
    return head_counts(wide, rows)


def count_at(state: LayerState) -> int:
    """Return the place of the count on show: the supposed one, or the nearest to the layer's."""
    counts, own = counts_of(state), state.run.heads
    if state.supposed is not None:
        return min(state.supposed, len(counts) - 1)
    return min(range(len(counts)), key=lambda n: abs(counts[n].heads - own))


def lines(state: LayerState) -> Iterator[CountLine]:
    """Yield the quantities."""
    for names, formula, of in _QUANTITIES:
        values = [of(each) for each in counts_of(state)]
        value = values[count_at(state)]
        yield CountLine(names, formula, value, value / values[0], value / max(values))


def words_of_counts(state: LayerState) -> Words:
    """Return the words on the count."""
    now, own = counts_of(state)[count_at(state)], state.run.heads
    one = f"D = {now.width} in {count_text(now.heads)} head{'s' * (now.heads > 1)} of {now.depth}"
    run = "as many as this layer has" if now.heads == own else f"this layer has {own}"
    return Words(f"{one} ({run})", sentences=("Each head has its own K and V; none is masked.",))


def described(state: LayerState) -> Iterator[str]:
    """Yield the figures."""
    for (name, *_), _, value, factor, _ in lines(state):
        yield f"{name} {count_text(value)}, {factor_text(factor)} that of one head"


def count_picture(state: LayerState) -> Box:
    """Return the costs of more heads: a weight in slices, maps of scores, and figures."""
    now = counts_of(state)[count_at(state)]
    maps = f"{count_text(now.heads)} score map{'s' * (now.heads > 1)} of {now.rows} × {now.rows}"
    weight = f"W_Q, W_K, W_V: {now.heads} × {now.depth} columns"
    short = f"{now.heads} × {now.depth} columns", f"{now.heads} × {now.depth}"
    rows = tuple(
        BoxRow(Text(line.names, size=12), (
            Text(line.formula, "muted", size=12),
            FigureText((count_text(line.value), f"{line.value:.2e}"), "text", RIGHT, 12),
            Row((Box(wide=8), Bars((_bar(line),), 1.0, wide=40, grow=1)), gap=0),
            FigureText("1×" if line.factor == 1 else factor_text(line.factor), "text", RIGHT, 12),
        ))
        for line in lines(state)
    )  # fmt: skip
    heads = Head(""), Head("", goes=1), Head(""), Head("of most", goes=2, takes=True), Head("")
    return Column((
        Row((
            Column((
                Text((weight, *short), "muted", wide=0),
                Image(partial(_weight, now.heads), square=True, grow=1),
            ), gap=2, share=0.4),
            Column((
                Text((maps, "score maps"), "muted", wide=0),
                Canvas(partial(_paint_maps, now), grow=1),
            ), gap=2, grow=1),
        ), gap=24, grow=1),
        BoxTable(heads, rows, heights=(13, 24), names=0.4, share=0.4),
    ), gap=4)  # fmt: skip


def _bar(line: CountLine) -> Bar:
    """Return a value as a share of its largest value over all numbers of heads."""
    stays = line.factor == line.share == 1
    return Bar(0, line.share, "muted" if stays else "current", top=0.2, deep=0.6)


def _weight(heads: int, style: Style) -> QImage:
    """Return one weight as the slices of its heads: always the same square."""
    colours = [ink(style, ("panel", f"head {n}", 0.55)).rgba() for n in range(heads)]
    return word_image(np.array([colours], np.uint32))


def _paint_maps(now: HeadCount, painter: QPainter, style: Style, box: QRectF) -> None:
    """Paint the map of each head, at the size at which the most possible heads would fit."""
    across, step = squares(now.width, box.width(), box.height())
    size = max(step - min(style.px(3), 0.25 * step), 1.0)
    for head in range(now.heads):
        x, y = box.x() + head % across * step, box.y() + head // across * step
        place = QRectF(x, y, size, size)
        painter.fillRect(place, ink(style, ("panel", f"head {head}", 0.55)))
        outline(painter, place, ink(style, f"head {head}"))


HEADS_VIEW = Pictured(words_of_counts, count_picture, described)
