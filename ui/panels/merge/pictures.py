"""Partials as a tree of merges, and sums as numbers with the bits of one of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF
from PySide6.QtGui import QPainter, QPen

from simulator.study.merge.block_sums import BlockSums
from simulator.study.merge.by_hand import RowMerge
from simulator.study.merge.choices import FIRST, MIXED
from simulator.study.merge.merging import Node, height
from ui.kit.boxes import Box, Canvas, Column, Placed, Where, ink
from ui.kit.shapes import Card, CellGrid, GridCell, Heat, Image, Text
from ui.look.draw import CENTRE
from ui.look.heat import signed_limit
from ui.look.theme import Style
from ui.look.units import number_text
from ui.panels.merge.words import bits_of, keys_of

_FIELDS = (("sign", 0, 1), ("exponent", 1, 9), ("fraction", 9, 32))
"""The bits of a float32: where each field begins and ends."""


@dataclass(frozen=True, eq=False)
class _Tree(Box):
    """Nodes with lines from each to what it was merged to."""

    nodes: tuple[tuple[float, int, Box], ...]  # middle as a share of the width, level, node
    count: int  # nodes beside each other
    levels: int
    lines: tuple[tuple[Node, Node], ...]

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        px, down, inner = style.px, rect.height() / self.levels, list[Placed]()
        wide = min(px(128), rect.width() / self.count - px(4))
        high = min(px(46), max(down - px(10), px(6)))
        for x, level, node in self.nodes:
            left = rect.x() + x * rect.width() - wide / 2
            inner += node.place(style, QRectF(left, rect.y() + level * down, wide, high))
        where = {box.name: place for box, place in inner}

        def draw(painter: QPainter, style: Style, rect: QRectF) -> None:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(ink(style, "muted"), style.px(1.4)))
            for start, end in ((where[one], where[to]) for one, to in self.lines):
                foot = QPointF(start.center().x(), start.bottom())
                painter.drawLine(QLineF(foot, QPointF(end.center().x(), end.y())))

        yield Placed(Canvas(draw), rect)
        yield from inner


def tree(state: RowMerge) -> Box:
    """Return the partials above, and what they were merged to below."""
    assert state.parts is not None
    count, places = len(state.parts.partials), dict[Node, float]()
    lines: list[tuple[Node, Node]] = []

    def find(node: Node) -> float:
        if isinstance(node, int):
            places[node] = (sum(isinstance(n, int) for n in places) + 0.5) / count
        else:
            places[node] = sum([find(each) for each in node]) / len(node)
            lines.extend((each, node) for each in node)
        return places[node]

    for root in state.forest:
        find(root)
    nodes = tuple((x, height(node), _node(state, node)) for node, x in places.items())
    return _Tree(nodes, count, 1 + max(map(height, state.forest)), tuple(lines))


def _node(state: RowMerge, node: Node) -> Box:
    """Return a node: its keys, its LSE, and its O as a strip."""
    assert state.parts is not None
    result = state.parts.result(node)
    limit = signed_limit(state.parts.exact.astype(np.float32)) or 1.0
    lse = float(result.lse[0])

    strip = Heat(result.o.astype(np.float32), -limit, limit, "O")
    taken = state.parts.lse == MIXED and not isinstance(node, int)  # as of what it is not
    name = "LSE" if taken else "log₂ Σ" if state.parts.in_2 else "m + ln ℓ"
    said = (f"{name} {number_text(lse)}", f"LSE {number_text(lse)}", number_text(lse, 1))
    content = Column((
        Text(keys_of(state, node), align=CENTRE, wide=0, high=14, may_go=True),
        Text(said, align=CENTRE, wide=0, high=14, may_go=True),
        Image(strip, framed=False, high=4, grow=1),
    ), gap=0)  # fmt: skip
    tree = state.forest.index(node) if node in state.forest else None
    held = tree is not None and tree == state.selected
    border, thick = ("grid", 1.0) if tree is None else ("current", 2.4) if held else ("O", 1.4)
    return Card(content, border=border, thick=thick, id=tree, name=node)


def numbers(state: BlockSums) -> Box:
    """Return by how much each sum moves, above the bits of one of them."""
    apart, differing = state.apart, state.differing
    moved = np.where(apart > 0, apart, -np.inf).astype(np.float32)
    said = {(i, j): GridCell(str(apart[i, j])) for i, j in np.argwhere(apart > 0)}
    said[state.at] = said.get(state.at, GridCell())._replace(frame="current")
    bits = {
        (row, n): GridCell(bit, "bad", "bad") if n in differing else
        GridCell(bit, "muted" if 1 <= n < 9 else "text")
        for row, each in enumerate(state.bits) for n, bit in enumerate(each)
    }  # fmt: skip
    captions = (
        "How many float32 numbers each sum is from that in order; press one to see its bits",
        "Float32 numbers from the sum in order",
    )
    return Column((
        Text(captions, "muted", wide=0, may_go=True), Box(high=4),
        CellGrid(apart.shape, said, (64, 26), tuple(f"row {row}" for row in state.rows),
             Heat(moved, 0.0, max(float(apart.max()), 1.0), "P"), id="sum", name="cells", high=32,
             grow=1),
        Box(high=6), Text(bits_of(state), wide=0),
        CellGrid((2, len(state.bits[0])), bits, (14, 16),
             (FIRST, state.order if state.order != FIRST else "again"), name="bits", high=32),
        Box(name="fields", high=16, may_go=True), Box(high=4, may_go=True),
    ), gap=0, over=_draw_fields)  # fmt: skip


def _draw_fields(painter: QPainter, style: Style, where: Where) -> None:
    """Draw what the bits mean below them."""
    bits, below = where["bits"], where.get("fields", QRectF())
    wide = bits.width() / _FIELDS[-1][2]
    for name, begin, end in _FIELDS:
        place = QRectF(bits.x() + begin * wide, below.y(), (end - begin) * wide, below.height())
        Text((name, ""), "muted", CENTRE).paint(painter, style, place)
