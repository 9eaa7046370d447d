"""Paints the attention inspector: the map of a head, all heads small, a row and its output."""

from __future__ import annotations

import math

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPainterPath, QPen

from simulator.base.dtypes import F32
from simulator.program.algorithms import algorithm_of
from ui.board.layout import Viewport
from ui.look.draw import CENTRE, LEFT, RIGHT, draw_text, mixed, outline, text_width
from ui.look.heat import (
    HIDDEN,
    U32,
    Sheet,
    colour_map,
    diverging,
    hatching,
    heat_image,
    word_image,
)
from ui.look.names import first_that_fits
from ui.look.pieces import (
    GAP,
    key_at,
    key_piece,
    largest_read,
    paint_beside,
    paint_read,
    query_piece,
)
from ui.look.theme import Style, Theme
from ui.look.units import count_text, number_text
from ui.panels.inspector.jacobian import paint_jacobian
from ui.panels.inspector.layout import LABEL, LINE, InspectorLayout, inspector_layout, label_step
from ui.panels.inspector.model import (
    KEPT,
    Grid,
    InspectorModel,
    MapPointer,
    entropy_words,
    peak,
    reading,
    short_entropy,
    shrunk,
)

_WHOLE = QRectF(0, 0, 1, 1)
_TICKS = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0)
_SIGNED_TICKS = (-1.0, -0.5, -0.1, -0.01, 0.01, 0.1, 0.5, 1.0)
_LEAST_ARC = 36
"""Least width of the lines from a token to the keys that it reads, at scale 1."""
_MOST_READ = 12


def paint_inspector(
    painter: QPainter,
    model: InspectorModel,
    pointer: MapPointer,
    style: Style,
    rect: QRectF,
    view: Viewport | None = None,
) -> None:
    """Paint everything for which there is space; `view` says which part of the map is shown."""
    layout = inspector_layout(model, style, rect, view)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    t = style.theme
    font = style.text_font(13, bold=True)
    draw_text(painter, layout.title, reading(model, pointer), font, t.text)
    line = style.px(19)
    if not layout.notes.isEmpty():
        for n, note in enumerate(model.notes):
            box = QRectF(layout.notes.x(), layout.notes.y() + n * line, layout.notes.width(), line)
            draw_text(painter, box, note, style.text_font(LABEL), t.muted)
    _paint_map(painter, model, pointer, style, layout)
    _paint_heads(painter, model, style, layout)
    if not layout.read.isEmpty():
        if model.jacobian:
            paint_jacobian(painter, model, pointer.row, style, layout.read)
        else:
            _paint_read(painter, model, pointer, style, layout)
    if not layout.blend.isEmpty():
        _paint_blend(painter, model, pointer, style, layout)


def rooted(values: F32) -> F32:
    """Return the places of values on the colour bar: with the root, small values are apart."""
    out = np.sign(values) * np.sqrt(np.abs(values))
    return np.asarray(np.where(np.isneginf(values), values, out), dtype=np.float32)


def _words(theme: Theme, *, signed: bool) -> U32:
    """Return the colours of the map; hidden pairs are transparent, so that the hatching is seen."""
    words = diverging(theme) if signed else colour_map(theme, "P").copy()
    words[HIDDEN] = 0
    return words


def _image(model: InspectorModel, grid: Grid, style: Style) -> QImage:
    values, signed = shrunk(model, grid), model.other is not None

    def make() -> QImage:
        words = _words(style.theme, signed=signed)
        return heat_image(rooted(values), -1.0 if signed else 0.0, 1.0, words)

    return KEPT.get(values, ("image", style.theme.name, signed), make)


# --- the map --------------------------------------------------------------------------------


def _paint_map(
    painter: QPainter, model: InspectorModel, pointer: MapPointer, style: Style,
    layout: InspectorLayout,
) -> None:  # fmt: skip
    t, box, grid = style.theme, layout.cells, layout.grid
    if model.maps.mask.hides:
        painter.fillRect(box, hatching(t.empty, t.hatch, style.scale))
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
    painter.drawImage(box, _image(model, grid, style))
    outline(painter, box, t.border)
    if not layout.caption.isEmpty():
        _paint_caption(painter, model, style, layout)
    _paint_labels(painter, model, pointer, style, layout)
    r, c = grid.cell_of(model.rows.index(pointer.row), pointer.key or 0)
    thick = max(style.px(1.5), 1.0)
    # A band thinner than its border would hide what it marks.
    least = style.px(5)
    if 0 <= r < grid.rows:
        band = layout.cell_box(r, 0)
        band.setWidth(box.width())
        if band.height() < least:
            band.adjust(0, -(least - band.height()) / 2, 0, (least - band.height()) / 2)
        _marked(painter, band, QColor(t.current), thick, box)
    if pointer.key is not None and 0 <= c < grid.cols:
        column = layout.cell_box(0, c)
        column.setHeight(box.height())
        if column.width() < least:
            more = (least - column.width()) / 2
            column.adjust(-more, 0, more, 0)
        _marked(painter, column, QColor(t.text), thick, box)
    if not layout.bar.isEmpty():
        _paint_bar(painter, model, style, layout.bar)


def _marked(painter: QPainter, box: QRectF, colour: QColor, thick: float, within: QRectF) -> None:
    outline(painter, box.intersected(within).adjusted(-1, -1, 1, 1), colour, thick)


def _paint_caption(
    painter: QPainter, model: InspectorModel, style: Style, layout: InspectorLayout
) -> None:
    font, t, box = style.text_font(LABEL), style.theme, layout.caption
    if model.other is None:
        words = f"{model.name_of(model.head)}: weights, queries ↓ keys →"
        if not algorithm_of(model.workload).softmax:
            words = f"{model.name_of(model.head)}: of a softmax, which this run has not"
    else:
        words = f"{model.name_of(model.head)} less {model.name_of(model.other)}, queries ↓ keys →"
    more = layout.grid.words
    if more and text_width(font, f"{words}; {more}") <= box.width():
        words = f"{words}; {more}"
    draw_text(painter, box, words, font, t.muted)


def _paint_labels(
    painter: QPainter, model: InspectorModel, pointer: MapPointer, style: Style,
    layout: InspectorLayout,
) -> None:  # fmt: skip
    font, t, grid = style.text_font(LABEL), style.theme, layout.grid
    need = style.px(LINE)
    r, c = grid.cell_of(model.rows.index(pointer.row), pointer.key or 0)
    here = r if 0 <= r < grid.rows else None
    at = c if pointer.key is not None and 0 <= c < grid.cols else None
    tall, wide = layout.cells.height() / grid.rows, layout.cells.width() / grid.cols
    step = label_step(tall, need)
    for n in _shown(grid.rows, step, tall, need, here):
        row = pointer.row if n == here else model.rows[grid.row_at(n)]
        y = layout.cells.y() + (n + 0.5) * tall
        box = QRectF(layout.row_labels.x(), y - need / 2, layout.row_labels.width(), need)
        colour = t.current if n == here else t.muted
        piece = query_piece(model.workload, row)
        if model.picture and piece:
            box = paint_beside(painter, model.picture, piece, box, need - 1, Qt.Edge.RightEdge)
        draw_text(painter, box, model.row_label(row), font, colour, RIGHT)
    if layout.key_labels.height() < style.px(12):
        return
    widest = max(text_width(font, model.key_label(k)) for k in (0, model.keys - 1)) + style.px(8)
    flat = not model.tokens
    need = widest if flat else need
    deep = layout.key_labels.height()
    for n in _shown(grid.cols, label_step(wide, need), wide, need, at):
        key = pointer.key if n == at and pointer.key is not None else grid.key_at(n)
        x = layout.cells.x() + (n + 0.5) * wide
        colour = t.text if n == at else t.muted
        if flat:
            left = min(max(x - need / 2, layout.row_labels.x()), layout.cells.right() - need)
            box = QRectF(max(left, layout.row_labels.x()), layout.key_labels.y(), need, deep)
            draw_text(painter, box, model.key_label(key), font, colour, CENTRE)
        else:
            box = QRectF(x - need / 2, layout.key_labels.y(), need, deep)
            piece = key_piece(model.workload, key)
            if model.picture and piece:
                box = paint_beside(painter, model.picture, piece, box, need - 1, Qt.Edge.TopEdge)
            painter.save()
            painter.translate(x, box.bottom())
            painter.rotate(-90)
            box = QRectF(0, -need / 2, box.height(), need)
            draw_text(painter, box, model.key_label(key), font, colour, RIGHT)
            painter.restore()


def _shown(count: int, step: int, size: float, need: float, here: int | None) -> list[int]:
    """Return which labels are drawn: every n-th, and `here` instead of those too near to it."""
    if not step:
        return [] if here is None else [here]
    every = [n for n in range(0, count, step) if here is None or abs(n - here) * size >= need]
    return every if here is None else [*every, here]


def _paint_bar(painter: QPainter, model: InspectorModel, style: Style, box: QRectF) -> None:
    t, font, px = style.theme, style.text_font(LABEL), style.px
    signed = model.other is not None
    words = _words(t, signed=signed)
    title = "weight"
    if signed:
        assert model.other is not None
        title = f"{model.name_of(model.other)} more, {model.name_of(model.head)} more"
        if text_width(font, title) > 0.5 * box.width():
            title = "difference"
    left = text_width(font, title) + px(10)
    draw_text(painter, QRectF(box.x(), box.y(), left, px(12)), title, font, t.muted)
    strip = QRectF(box.x() + left, box.y() + px(1), box.width() - left - px(8), px(9))
    if strip.width() < px(60):
        return
    painter.drawImage(strip, word_image(words[None, :256]))
    outline(painter, strip, t.border)
    edge = strip.x()
    for value in _SIGNED_TICKS if signed else _TICKS:
        place = math.copysign(math.sqrt(abs(value)), value)
        x = strip.x() + (place + 1) / 2 * strip.width() if signed else (
            strip.x() + place * strip.width()
        )  # fmt: skip
        text = f"{value:g}".replace("-", "−")
        half = text_width(font, text) / 2 + 1
        if x - half < edge or x + half > box.right() + px(2):
            continue
        painter.setPen(QPen(QColor(t.muted), 1))
        painter.drawLine(QPointF(x, strip.bottom()), QPointF(x, strip.bottom() + px(2)))
        words_box = QRectF(x - half, strip.bottom() + px(2), 2 * half, px(15))
        draw_text(painter, words_box, text, font, t.muted, CENTRE)
        edge = x + half + px(5)


# --- all heads ------------------------------------------------------------------------------


def _paint_heads(
    painter: QPainter, model: InspectorModel, style: Style, layout: InspectorLayout
) -> None:
    if layout.heads_title.isEmpty():
        return
    t, font, small = style.theme, style.text_font(LABEL), model.small
    count, shown = model.workload.heads, len(layout.heads)
    words = f"all {count} heads" if count == shown else f"{shown} of {count} heads"
    if count == shown <= 2:
        words = ("the only head", "both heads")[count - 1]
    draw_text(painter, layout.heads_title, words, font, t.muted)
    pitch = layout.heads[0][1].width() + style.px(7)
    if shown > 1:
        pitch = max(pitch, layout.heads[1][1].x() - layout.heads[0][1].x())
    for head, box in layout.heads:
        if small is None:  # it has no map, and hatching would mean that everything is hidden
            painter.fillRect(box, QColor(t.empty))
        else:
            if model.maps.mask.hides:
                painter.fillRect(box, hatching(t.empty, t.hatch, style.scale))
            Sheet(_small_image(small, head, style)).draw(painter, box, _WHOLE)
        colour, width = QColor(t.border), 1.0
        if head == model.head:
            colour, width = QColor(t.current), style.px(2.5)
        elif head == model.other:
            colour, width = QColor(t.bad), style.px(2.5)
        outline(painter, box.adjusted(-1, -1, 1, 1), colour, width)
        number = str(model.workload.picked[head])
        signs = {} if model.other is None else {model.head: "+ ", model.other: "− "}
        sign = signs.get(head, "")
        long = f"{sign}head {number}"
        text = long if text_width(font, long) <= pitch - 2 else f"{sign}{number}"
        place = QRectF(box.center().x() - pitch / 2, box.bottom(), pitch, style.px(17))
        draw_text(painter, place, text, font, t.text if width > 1 else t.muted, CENTRE)


def _small_image(small: F32, head: int, style: Style) -> QImage:
    def make() -> QImage:
        return heat_image(rooted(small[head]), 0.0, 1.0, _words(style.theme, signed=False))

    return KEPT.get(small, ("small", head, style.theme.name), make)


# --- one row --------------------------------------------------------------------------------


def _paint_read(
    painter: QPainter, model: InspectorModel, pointer: MapPointer, style: Style,
    layout: InspectorLayout,
) -> None:  # fmt: skip
    """Lines from a token to the keys that it reads most, as wide as their weights.

    In the place of the token and the lines may be the picture of which keys are pieces.
    """
    t, px, font = style.theme, style.px, style.text_font(LABEL)
    box, line, row = layout.read, px(19), pointer.row
    head = model.name_of(model.head)
    texts = [
        f"{head}, {entropy_words(model, row)}", f"{head}: {short_entropy(model, row)}",
        short_entropy(model, row),
    ]  # fmt: skip
    if pointer.key is None and model.other is None:  # the line above everything says so
        most = f"what {model.row_name(row)} reads most"
        texts = [f"{head}: {most}", most, "reads most"]
    words = first_that_fits(texts, box.width(), font)
    draw_text(painter, QRectF(box.x(), box.y(), box.width(), line), words, font, t.muted)
    room = QRectF(box.x(), box.y() + line, box.width(), box.height() - line)
    if not layout.picture.isEmpty():
        room.setLeft(layout.picture.right() + px(8))
    fits = min(int(room.height() / px(17)), _MOST_READ + 1)
    found = model.maps.row(model.head, row, most=max(fits - 1, 1))
    if not found.visible or fits < 2:
        return
    keys = sorted(int(key) for key in found.strongest)
    pitch = room.height() / (len(keys) + 1)
    pitch = min(pitch, px(30))
    number = text_width(style.code_font(LABEL), "0.0e−00") + px(6)  # also if one of them is tiny
    names = [f"{model.key_label(k)}  ({k})" if model.tokens else model.key_name(k) for k in keys]
    widest = max(text_width(font, each) for each in names)
    side = min(pitch - 1, px(20)) if model.picture else 0.0
    start = None
    if layout.picture.isEmpty():
        token = model.row_label(row) if model.tokens else model.row_name(row)
        name = style.text_font(14, bold=True)
        left = min(text_width(name, token) + px(8), 0.3 * box.width())
        start = QPointF(room.x() + left, room.y() + pitch * (len(keys) + 1) / 2)
        place = QRectF(room.x(), start.y() - px(10), left, px(20))
        draw_text(painter, place, token, name, t.current, LEFT)
        # Lines are shorter where names are long.
        right = min(room.x() + 0.52 * room.width(), room.right() - px(6) - number - widest)
        right = max(right, start.x() + px(_LEAST_ARC))
    else:
        _paint_picture(painter, model, row, style, layout.picture)
        right = room.x()
        if right + px(5) + number + (1 + GAP) * side + widest > room.right():
            names = [model.key_label(k) for k in keys]
    for n, key in enumerate(keys):
        y = room.y() + (n + 0.5) * pitch
        weight = float(found.weights[key])
        if start is not None:
            _line(painter, start, QPointF(right, y), weight, style)
        label = QRectF(right + px(5), y - pitch / 2, number, pitch)
        draw_text(
            painter, label, number_text(weight, 4), style.code_font(LABEL), t.text, LEFT
        )  # fmt: skip
        rest = QRectF(label.right(), label.y(), room.right() - label.right(), pitch)
        piece = key_piece(model.workload, key)
        if model.picture and piece:
            rest = paint_beside(painter, model.picture, piece, rest, side, Qt.Edge.LeftEdge)
        draw_text(painter, rest, names[n], font, t.text)
    others = found.visible - len(keys)
    if others > 0:
        y = room.y() + len(keys) * pitch
        sum_others = float(np.delete(found.weights, keys).sum(dtype=np.float64))
        count = count_text(others)
        words = first_that_fits(
            (f"{count} other key{'s' if others > 1 else ''}", f"{count} others", f"+ {count}"),
            room.right() - right - px(5) - number, font,
        )  # fmt: skip
        label = QRectF(right + px(5), y, number, pitch)
        draw_text(painter, label, number_text(sum_others, 4), style.code_font(LABEL), t.muted)
        rest = QRectF(label.right(), y, room.right() - label.right(), pitch)
        draw_text(painter, rest, words, font, t.muted)


def _line(painter: QPainter, start: QPointF, end: QPointF, weight: float, style: Style) -> None:
    path, bend = QPainterPath(start), 0.5 * (end.x() - start.x())
    path.cubicTo(start + QPointF(bend, 0), end - QPointF(bend, 0), end)
    colour = mixed(style.theme.panel, style.theme.tensor("P"), 0.35 + 0.65 * math.sqrt(weight))
    pen = QPen(colour, max(style.px(11) * weight, 0.8))
    pen.setCapStyle(Qt.PenCapStyle.FlatCap)
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPath(path)


def _paint_picture(
    painter: QPainter, model: InspectorModel, row: int, style: Style, place: QRectF
) -> None:
    """The picture as a row reads it, and below it what is clear."""
    assert model.picture is not None
    weights = model.maps.of(model.head)[model.rows.index(row)]
    paint_read(painter, model.picture, weights, query_piece(model.workload, row), style, place)
    clear = number_text(largest_read(model.picture, weights), 4)
    words = (f"clear: {clear}, covered: 0", f"clear: {clear}")
    below = QRectF(place.x(), place.bottom(), place.width(), style.px(19))
    font = style.text_font(LABEL)
    text = first_that_fits(words, below.width(), font)
    draw_text(painter, below, text, font, style.theme.muted)


# --- the output -----------------------------------------------------------------------------


def _paint_blend(
    painter: QPainter, model: InspectorModel, pointer: MapPointer, style: Style,
    layout: InspectorLayout,
) -> None:  # fmt: skip
    """The output as a mean of values, V of the strongest key, and their difference."""
    t, px, font = style.theme, style.px, style.text_font(LABEL)
    box, row = layout.blend, pointer.row
    found = model.maps.lookup(model.head, row, model.v)
    line = px(19)
    name = model.name_of(model.head)
    heads = (
        f"Output of {name}: blend of values (soft), or V of the strongest key (hard)",
        f"Output of {name}: soft lookup or hard", f"Output of {name}",
    )  # fmt: skip
    head = first_that_fits(heads, box.width(), font)
    draw_text(painter, QRectF(box.x(), box.y(), box.width(), line), head, font, t.muted)
    both = (found.soft, found.hard, found.soft - found.hard)
    limit = max(float(np.abs(part).max()) for part in both) or 1.0
    second = f"they are {number_text(found.distance, 3)} apart, colours ±{number_text(limit, 3)}"
    if pointer.dim is not None:
        at = ", ".join(
            f"{name} {number_text(float(part[pointer.dim]), 4)}"
            for name, part in zip(("soft", "hard", "difference"), both, strict=True)
        )
        second = f"dimension {pointer.dim}: {at}"
    second_box = QRectF(box.x(), box.y() + line, box.width(), line - px(2))
    draw_text(painter, second_box, second, font, t.text if pointer.dim is not None else t.muted)
    strongest = (
        f"hard: {model.key_name(found.key).partition(' “')[0]}"
        if found.key >= 0
        else "hard: no key"
    )
    names = ("soft: Σ p·v", strongest, "soft − hard")
    for name, part, strip in zip(names, both, layout.strips, strict=True):
        image = heat_image(part[None, :].astype(np.float32), -limit, limit, diverging(t))
        painter.drawImage(strip, image)
        outline(painter, strip, t.border)
        label = QRectF(box.x(), strip.y(), strip.x() - box.x() - px(6), strip.height())
        draw_text(painter, label, name, font, t.text)
        if pointer.dim is not None:
            wide = strip.width() / part.size
            mark = QRectF(strip.x() + pointer.dim * wide, strip.y(), wide, strip.height())
            outline(painter, mark.adjusted(-1, -1, 1, 1), t.current, px(1.5))


def pointed(
    model: InspectorModel, layout: InspectorLayout, point: QPointF, row: int
) -> MapPointer | None:
    """Return the meaning of a point of the picture while `row` is shown; None: nothing."""
    cell = layout.grid_cell(point)
    if cell is not None:
        at, key = peak(model, layout.grid, *cell)
        return MapPointer(at, key)
    label = layout.grid_row(point)
    if label is not None:
        return MapPointer(model.rows[min(layout.grid.row_at(label), len(model.rows) - 1)])
    if model.picture and layout.picture.contains(point):
        there = key_at(model.picture, layout.picture, point)
        own = -1 if there is None else there - model.maps.mask.shift
        aligned = own in model.rows and not model.workload.query_tokens
        return MapPointer(own) if aligned else None
    dim = layout.dim_at(point, model.v.shape[1])
    return None if dim is None else MapPointer(row, None, dim)
