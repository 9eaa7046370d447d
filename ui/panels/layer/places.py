"""Where everything of the flow from X to Y stands: geometry alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QLineF, QPointF, QRectF, QSizeF

from simulator.run.whole_layer import LayerRun
from ui.look.names import fitting
from ui.look.theme import Style
from ui.panels.layer.matrices import band_of, number_font
from ui.panels.layer.model import PROJECTED, WEIGHTS, heads_of, matrix

MIN_SIZE = QSizeF(760, 320)
"""What the flow needs at scale 1."""
TILES = "tiles"
"""The place of the run's miniature."""
_LEAST = 0.3
"""Least side of a matrix, as a share of the longest: a flat one is still seen."""
_CELL = QSizeF(72, 36)
"""Largest cells at scale 1."""


@dataclass(frozen=True, slots=True)
class FlowLayout:
    """Places in the flow."""

    style: Style  # with the text scale that suits the place
    boxes: dict[str, QRectF]  # of each matrix by name, and of the run's miniature
    names: dict[str, QRectF]  # of what stands above each of them
    slots: tuple[QRectF, ...]  # of O of each head
    # of each stage: one place or two, which light while it is at work
    cards: dict[str, tuple[QRectF, ...]]
    arrows: tuple[QLineF, ...]  # which way numbers go
    detail: QRectF  # of what is said of a stage
    # whether the numbers of all matrices can be read in their cells: else none is written
    written: bool

    def stage_at(self, point: QPointF) -> str | None:
        """Return the stage at a place; None if there is none."""
        return next(
            (name for name, places in self.cards.items() if any(p.contains(point) for p in places)),
            None,
        )

    def cell_at(self, run: LayerRun, point: QPointF) -> tuple[str, int, int] | None:
        """Return which number of which matrix is at a place."""
        for name, box in self.boxes.items():
            if name != TILES and box.contains(point):
                rows, cols = matrix(run, name).shape
                row = int((point.y() - box.y()) / box.height() * rows)
                col = int((point.x() - box.x()) / box.width() * cols)
                return name, min(row, rows - 1), min(col, cols - 1)
        return None


@dataclass(frozen=True, slots=True)
class _Sides:
    """Sides of matrices in shares of the longest ones."""

    run: LayerRun
    rows: int
    cols: int

    def wide(self, name: str) -> float:
        if name == TILES:
            return 0.9
        return max(float(matrix(self.run, name).shape[1] / self.cols), _LEAST)

    def tall(self, name: str) -> float:
        if name == TILES:
            return 1.0
        return max(float(matrix(self.run, name).shape[0] / self.rows), _LEAST)


_WIDE = ((("x",), ("wq", "wk", "wv"), PROJECTED, (TILES,), ("o", "concat"), ("wo",), ("y",)),)
_TALL = ((("x",), ("wq", "wk", "wv"), PROJECTED), ((TILES,), ("o", "concat"), ("wo",), ("y",)))
"""The columns, in one line or in two."""


def flow_layout(run: LayerRun, style: Style, rect: QRectF) -> FlowLayout:
    """Return the places of everything."""
    wide = rect.width() > 1.35 * rect.height()
    least = MIN_SIZE if wide else QSizeF(0.62 * MIN_SIZE.width(), 1.9 * MIN_SIZE.height())
    style = fitting(style, rect, least)
    px = style.px
    deep = min(max(px(66), 0.17 * rect.height()), px(92))
    detail = QRectF(rect.x(), rect.bottom() - deep, rect.width(), deep)
    body = rect.adjusted(0, 0, 0, -deep - px(6))
    boxes: dict[str, QRectF] = {}
    arrows: list[QLineF] = []
    lines = _WIDE if wide else _TALL
    tall = [max(len(column) for column in line) for line in lines]
    y = body.y()
    for line, count in zip(lines, tall, strict=True):
        high = body.height() * count / sum(tall)
        part = QRectF(body.x(), y, body.width(), high)
        boxes |= _placed(run, style, part.adjusted(0, px(2), 0, -px(2)), line, arrows)
        y += high
    names = {name: _name_box(style, box, name) for name, box in boxes.items()}
    cards = _cards(style, boxes, names, rect)
    slots = _slots(run, style, boxes["o"])
    narrow = QRectF(0, 0, slots[0].width() * run.heads, slots[0].height())
    written = number_font(matrix(run, "o"), style, narrow) is not None and all(
        number_font(matrix(run, name), style, box) for name, box in boxes.items() if name != TILES
    )
    return FlowLayout(style, boxes, names, slots, cards, tuple(arrows), detail, written)


def _placed(
    run: LayerRun,
    style: Style,
    rect: QRectF,
    columns: Sequence[Sequence[str]],
    arrows: list[QLineF],
) -> dict[str, QRectF]:
    """Place columns beside each other, with an arrow in each gap."""
    px, sizes = style.px, _sizes(run)
    head = _head(style)
    gap, edge = px(34), px(9)
    wide = [max(sizes.wide(name) for name in column) for column in columns]
    most = max(len(column) for column in columns)
    room = rect.width() - gap * (len(columns) - 1) - 2 * edge
    unit_w = min(room / sum(wide), sizes.cols * px(_CELL.width()))
    unit_h = min(rect.height() / most - head - px(9), sizes.rows * px(_CELL.height()))
    spare = (room - unit_w * sum(wide)) / (len(columns) - 1)
    found: dict[str, QRectF] = {}
    x, before = rect.x() + edge, None
    for column, share in zip(columns, wide, strict=True):
        width = unit_w * share
        pitch = rect.height() / len(column)
        for n, name in enumerate(column):
            own_w, own_h = unit_w * sizes.wide(name), unit_h * sizes.tall(name)
            if name == TILES:
                own_h = min(rect.height() - head - 3 * px(17), width, 3 * unit_h)
            left = x + (width - own_w) / 2
            top = rect.y() + n * pitch + (pitch - own_h - head) / 2 + head
            found[name] = QRectF(round(left), round(top), round(own_w), round(own_h))
        if before is not None:
            arrows += _arrows(style, before, [found[name] for name in column])
        before = [found[name] for name in column]
        x += width + gap + spare
    if "o" in found:
        one, two = found["o"], found["concat"]
        x = one.center().x()
        arrows.append(QLineF(x, one.bottom() + px(3), x, two.top() - head - px(1)))
    return found


def _arrows(style: Style, before: list[QRectF], after: list[QRectF]) -> list[QLineF]:
    """Return arrows from a column to the next: all to all, or each to its own."""
    px = style.px
    band = band_of(style) + px(8)
    if len(before) == len(after):
        pairs = list(zip(before, after, strict=True))
    elif len(after) == 1:
        pairs = [(box, after[0]) for box in before[-3 if len(before) == 3 else -1 :]]
    else:
        pairs = [(before[0], box) for box in after[: 1 if len(after) == 2 else 3]]
    out = []
    for of, to in pairs:
        one, two = _with_name(style, of), _with_name(style, to)
        start = QPointF(one.right() + px(7), one.center().y())
        height = min(max(start.y(), two.top() + px(8)), two.bottom() - px(8))
        out.append(QLineF(start, QPointF(max(two.left() - band, start.x() + px(6)), height)))
    return out


def _sizes(run: LayerRun) -> _Sides:
    shapes = [matrix(run, name).shape for name in ("x", *WEIGHTS.values(), *PROJECTED, "concat")]
    return _Sides(run, max(rows for rows, _ in shapes), max(cols for _, cols in shapes))


def _head(style: Style) -> float:
    """Return the height of what is above a matrix: its name and the bands of its heads."""
    return style.px(19) + band_of(style)


def _name_box(style: Style, box: QRectF, name: str) -> QRectF:
    """Return where a matrix is named; longer than a narrow matrix is wide."""
    wide = _with_name(style, box)
    return QRectF(wide.x(), box.y() - _head(style), wide.width(), style.px(18))


def _with_name(style: Style, box: QRectF) -> QRectF:
    """Return a matrix at least as wide as its name."""
    more = max(style.px(84) - box.width(), 0.0) / 2
    return box.adjusted(-more, 0, more, 0)


def _cards(
    style: Style, boxes: dict[str, QRectF], names: dict[str, QRectF], rect: QRectF
) -> dict[str, tuple[QRectF, ...]]:
    """Return what lights of each stage."""

    def around(*of: str) -> QRectF:
        found = QRectF()
        for name in of:
            found = found.united(boxes[name]).united(names[name])
        pad = style.px(5)
        return found.adjusted(-pad - band_of(style), -1, pad, pad).intersected(rect)

    tiles = around(TILES).adjusted(0, 0, 0, 3 * style.px(17)).intersected(rect)
    out = {name: (around(WEIGHTS[name], name),) for name in PROJECTED}
    return out | {"o": (tiles, around("o")), "concat": (around("concat"),),
                  "y": (around("wo"), around("y"))}  # fmt: skip


def _slots(run: LayerRun, style: Style, box: QRectF) -> tuple[QRectF, ...]:
    """Return the places of O of each head: apart, where the concat has them side by side."""
    heads = run.heads
    gap = min(style.px(8), 0.3 * box.width() / heads) if heads > 1 else 0.0
    wide = (box.width() - gap * (heads - 1)) / heads
    return tuple(
        QRectF(box.x() + head * (wide + gap), box.y(), wide, box.height()) for head in range(heads)
    )


def slices_of(run: LayerRun, name: str) -> tuple[range, ...]:
    """Return the heads of each slice of a matrix that is drawn."""
    return () if name == TILES else heads_of(run, name)
