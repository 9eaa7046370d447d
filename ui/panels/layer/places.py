"""Where everything of the flow from X to Y stands: geometry alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QLineF, QPointF, QRectF, QSizeF

from simulator.run.whole_layer import LayerRun
from ui.look.theme import Style
from ui.panels.layer.matrices import band_of
from ui.panels.layer.model import PROJECTED, WEIGHTS, matrix

TILES = "tiles"
"""The place of the run's miniature."""
_LEAST = 0.3
"""Least side of a matrix, as a share of the longest: a flat one is still seen."""
_CELL = QSizeF(72, 36)
"""Largest cells at scale 1."""


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


def is_wide(rect: QRectF) -> bool:
    """Return whether all columns of the flow stand in one line."""
    return rect.width() > 1.35 * rect.height()


def flow_room(rect: QRectF) -> QSizeF:
    """Return what the flow needs at scale 1 in a place."""
    return QSizeF(760, 320) if is_wide(rect) else QSizeF(471, 608)


def flow_places(
    run: LayerRun, style: Style, rect: QRectF, *, wide: bool
) -> tuple[dict[str, QRectF], list[QLineF]]:
    """Return the places of all matrices and of the run's miniature, and the arrows between."""
    lines = _WIDE if wide else _TALL
    boxes, arrows, gap = dict[str, QRectF](), list[QLineF](), style.px(2)
    tall = [max(len(column) for column in line) for line in lines]
    y = rect.y()
    for line, count in zip(lines, tall, strict=True):
        high = rect.height() * count / sum(tall)
        part = QRectF(rect.x(), y + gap, rect.width(), high - 2 * gap)
        boxes |= _placed(run, style, part, line, arrows)
        y += high
    return boxes, arrows


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
                own_h = min(rect.height() - head - px(58), width, 3 * unit_h)
            left = x + (width - own_w) / 2
            top = rect.y() + n * pitch + (pitch - own_h - head) / 2 + head
            if name == TILES:  # three lines of words below it
                top = max(min(top, rect.bottom() - own_h - px(58)), rect.y() + head)
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


def name_place(style: Style, box: QRectF) -> QRectF:
    """Return where a matrix is named; longer than a narrow matrix is wide."""
    wide = _with_name(style, box)
    return QRectF(wide.x(), box.y() - _head(style), wide.width(), style.px(18))


def _with_name(style: Style, box: QRectF) -> QRectF:
    """Return a matrix at least as wide as its name."""
    more = max(style.px(84) - box.width(), 0.0) / 2
    return box.adjusted(-more, 0, more, 0)


def stage_places(
    style: Style, boxes: dict[str, QRectF], rect: QRectF
) -> Iterator[tuple[str, QRectF]]:
    """Yield each stage with a place, or two, which lights while it is at work."""

    def around(*names: str, below: float = 0.0) -> QRectF:
        found = QRectF()
        for name in names:
            found = found.united(boxes[name]).united(name_place(style, boxes[name]))
        pad = style.px(5)
        return found.adjusted(-pad - band_of(style), -1, pad, pad + below).intersected(rect)

    for name in PROJECTED:
        yield name, around(WEIGHTS[name], name)
    yield "o", around(TILES, below=3 * style.px(17))
    for stage, name in (("o", "o"), ("concat", "concat"), ("y", "wo"), ("y", "y")):
        yield stage, around(name)


def head_places(run: LayerRun, style: Style, box: QRectF) -> tuple[QRectF, ...]:
    """Return the places of O of each head: apart, where the concat has them side by side."""
    heads = run.heads
    gap = min(style.px(8), 0.3 * box.width() / heads) if heads > 1 else 0.0
    wide = (box.width() - gap * (heads - 1)) / heads
    return tuple(
        QRectF(box.x() + head * (wide + gap), box.y(), wide, box.height()) for head in range(heads)
    )


def head_box(run: LayerRun, box: QRectF, head: int) -> QRectF:
    """Return the place of a head in the concat."""
    wide = box.width() / run.heads
    return QRectF(box.x() + head * wide, box.y(), wide, box.height())
