"""Paints partials as boxes and their merges as a tree below them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, QSizeF
from PySide6.QtGui import QColor, QPainter, QPen

from simulator.study.merge.merging import Node, height, leaves
from ui.look.draw import CENTRE, card, draw_text, outline, wrapped
from ui.look.heat import colour_map, heat_image, signed_limit
from ui.look.names import first_that_fits, fitting, readable
from ui.look.theme import LABEL, Style
from ui.look.units import number_text
from ui.panels.merge.model import MergeState

MIN_SIZE = QSizeF(430, 260)
"""Below this the text shrinks."""
_SHARE = 0.5
"""Share of the height that the tree has at least, before words are left out."""
_BOX = QSizeF(128, 46)
_GAP = 10


@dataclass(frozen=True, slots=True)
class Box:
    """One node of the picture.

    Attributes
    ----------
    node : Node
        What it is.
    tree : int
        In which tree of the forest.
    place : QRectF
        Where.
    parents : tuple of QPointF
        Where the nodes stand from which it was merged, below each of them.
    """

    node: Node
    tree: int
    place: QRectF
    parents: tuple[QPointF, ...]


@dataclass(frozen=True, slots=True)
class MergeLayout:
    """Where everything is.

    Attributes
    ----------
    style : Style
        In which it is painted.
    boxes : tuple of Box
        All nodes; the last of each tree is its root.
    said : tuple of str
        The lines below.
    below : QRectF
        Their place.
    """

    style: Style
    boxes: tuple[Box, ...]
    said: tuple[str, ...]
    below: QRectF

    def tree_at(self, at: QPointF) -> int | None:
        """Return the tree whose root is at a place; None if none is."""
        roots = {box.tree: box for box in self.boxes}
        return next((n for n, box in roots.items() if box.place.contains(at)), None)


def merge_layout(state: MergeState, style: Style, rect: QRectF) -> MergeLayout:
    """Return where everything is."""
    style = readable(fitting(style, rect, MIN_SIZE))
    px, font = style.px, style.text_font(LABEL)
    line = px(16)
    said = [wrapped(words, font, rect.width()) for words in state.words]
    top = rect.y() + 1.4 * line
    while len(said) > 1 and (
        rect.bottom() - top - line * sum(map(len, said)) < _SHARE * rect.height()
    ):
        said.pop()
    lines = tuple(words for part in said for words in part)
    below = QRectF(rect.x(), rect.bottom() - line * len(lines), rect.width(), line * len(lines))
    if state.parts is None:
        return MergeLayout(style, (), lines, below)
    room = QRectF(rect.x(), top, rect.width(), below.y() - top - px(6))
    levels = 1 + max(map(height, state.forest))
    count = len(state.parts.partials)
    pitch = QSizeF(room.width() / count, room.height() / levels)
    size = QSizeF(
        min(px(_BOX.width()), pitch.width() - px(4)),
        min(px(_BOX.height()), max(pitch.height() - px(_GAP), px(6))),
    )
    boxes: list[Box] = []
    column = 0

    def place(node: Node, tree: int) -> Box:
        nonlocal column
        if isinstance(node, int):
            parents: tuple[QPointF, ...] = ()
            x = room.x() + (column + 0.5) * pitch.width()
            column += 1
        else:
            inner = [place(each, tree).place for each in node]
            parents = tuple(QPointF(box.center().x(), box.bottom()) for box in inner)
            x = sum(at.x() for at in parents) / len(parents)
        y = room.y() + height(node) * pitch.height()
        box = Box(node, tree, QRectF(QPointF(x - size.width() / 2, y), size), parents)
        boxes.append(box)
        return box

    for tree, node in enumerate(state.forest):
        place(node, tree)
    return MergeLayout(style, tuple(boxes), lines, below)


def paint_merge(painter: QPainter, state: MergeState, style: Style, rect: QRectF) -> None:
    """Paint the partials above, what they were merged to below, and the rounding of orders."""
    lay = merge_layout(state, style, rect)
    style, theme = lay.style, lay.style.theme
    px, font, bold = style.px, style.text_font(LABEL), style.text_font(12.5, bold=True)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    title = first_that_fits(state.title, rect.width(), bold)
    draw_text(painter, QRectF(rect.x(), rect.y(), rect.width(), px(16)), title, bold, theme.text)
    painter.setPen(QPen(QColor(theme.muted), px(1.4)))
    for box in lay.boxes:
        head = QPointF(box.place.center().x(), box.place.y())
        painter.drawLines([QLineF(at, head) for at in box.parents])
    roots = {box.tree: box for box in lay.boxes}
    for box in lay.boxes:
        _paint_box(painter, state, box, lay)
        if roots[box.tree] is box:
            held = box.tree in (state.selected, state.dragged)
            ink = theme.current if held else theme.tensor("O")
            outline(painter, box.place, ink, px(2.4 if held else 1.4), px(4))
    for n, words in enumerate(lay.said):
        place = QRectF(lay.below.x(), lay.below.y() + n * px(16), lay.below.width(), px(16))
        draw_text(painter, place, words, font, theme.muted)


def _paint_box(painter: QPainter, state: MergeState, box: Box, lay: MergeLayout) -> None:
    """Paint a node: its keys, its LSE, and its O as a strip."""
    parts, style = state.parts, lay.style
    assert parts is not None
    theme, place, font = style.theme, box.place, style.text_font(LABEL)
    card(painter, place, theme.field, theme.grid, style.px(4))
    result = parts.result(box.node)
    lines = list(_lines(state, box.node, float(result.lse[0])))
    line = style.px(14)
    fits = int((place.height() - style.px(6)) / line)
    deep = place.height() - style.px(3) - line * min(len(lines), max(fits, 0))
    strip = place.adjusted(style.px(4), 0, -style.px(4), -style.px(3))
    strip.setTop(place.bottom() - min(max(deep - style.px(3), style.px(4)), style.px(14)))
    limit = signed_limit(parts.exact.astype(np.float32)) or 1.0
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
    values = result.o.astype(np.float32)
    painter.drawImage(strip, heat_image(values, -limit, limit, colour_map(theme, "O")))
    wide = place.width() - style.px(6)
    for n, words in enumerate(lines[: max(fits, 0)]):
        at = QRectF(place.x() + style.px(3), place.y() + style.px(2) + n * line, wide, line)
        draw_text(painter, at, first_that_fits(words, wide, font), font, theme.text, CENTRE)


def _lines(state: MergeState, node: Node, lse: float) -> Iterator[tuple[str, ...]]:
    """Yield the lines in a box, each from long to short."""
    yield state.name(node)
    yield f"m + ln ℓ {number_text(lse)}", f"LSE {number_text(lse)}", number_text(lse, 1)


def summary(state: MergeState) -> str:
    """Return what the picture says, for screen readers."""
    if state.parts is None:
        return f"{state.title[0]}. {state.why}"
    found = (
        f"{state.name(node)[0]} ({', '.join(map(str, leaves(node)))})" for node in state.forest
    )
    return f"{state.title[0]}. {'; '.join(found)}. {'. '.join(state.words)}"
