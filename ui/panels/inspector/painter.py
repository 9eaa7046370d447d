"""Paints the attention inspector: the map of a head, all heads small, a row and its output."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QImage, QPainter, QPainterPath, QPen

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
    rooted,
    word_image,
)
from ui.look.names import first_that_fits, key_label, key_name, row_label, row_name
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
from ui.look.units import count_text, number_text, plural
from ui.panels.inspector.blend import paint_parts
from ui.panels.inspector.jacobian import paint_jacobian
from ui.panels.inspector.layout import LABEL, LINE, InspectorLayout, inspector_layout, label_step
from ui.panels.inspector.model import (
    KEPT,
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
    _Picture(painter, model, pointer, style, layout).paint()


def _words(theme: Theme, *, signed: bool) -> U32:
    """Return the colours of the map; hidden pairs are transparent, so that the hatching is seen."""
    words = diverging(theme) if signed else colour_map(theme, "P").copy()
    words[HIDDEN] = 0
    return words


def _image(values: F32, theme: Theme, *, signed: bool) -> QImage:
    def make() -> QImage:
        return heat_image(
            rooted(values), -1.0 if signed else 0.0, 1.0, _words(theme, signed=signed)
        )

    return KEPT.get(values, ("image", theme.name, signed), make)


class _Picture:
    """The picture, and its painter."""

    def __init__(
        self, painter: QPainter, model: InspectorModel, pointer: MapPointer, style: Style,
        layout: InspectorLayout,
    ) -> None:  # fmt: skip
        self.painter, self.model, self.pointer = painter, model, pointer
        self.style, self.layout = style, layout
        self.theme, self.px = style.theme, style.px
        self.font, self.line = style.text_font(LABEL), style.px(19)
        self.signed = model.other is not None
        self.head = model.name_of(model.head)

    def write(
        self, box: QRectF, words: str | Sequence[str], ink: str | QColor | None = None,
        align: Qt.AlignmentFlag = LEFT, font: QFont | None = None,
    ) -> None:  # fmt: skip
        """Write words, muted unless said otherwise; of several the first that fit."""
        font = font or self.font
        words = words if isinstance(words, str) else first_that_fits(words, box.width(), font)
        draw_text(self.painter, box, words, font, ink or self.theme.muted, align)

    def row_of(self, box: QRectF, n: int = 0) -> QRectF:
        """Return the n-th line of a place."""
        return QRectF(box.x(), box.y() + n * self.line, box.width(), self.line)

    def paint(self) -> None:
        layout, model = self.layout, self.model
        self.painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        bold = self.style.text_font(13, bold=True)
        self.write(layout.title, reading(model, self.pointer), self.theme.text, font=bold)
        for n, note in enumerate([] if layout.notes.isEmpty() else model.notes):
            self.write(self.row_of(layout.notes, n), note)
        self.paint_map()
        if not layout.heads_title.isEmpty():
            self.paint_heads()
        if not layout.read.isEmpty():
            if model.jacobian:
                paint_jacobian(self.painter, model, self.pointer.row, self.style, layout.read)
            elif model.blend:
                paint_parts(self.painter, model, self.pointer.row, self.style, layout.read)
            else:
                self.paint_read()
        if not layout.blend.isEmpty():
            self.paint_blend()

    # --- the map --------------------------------------------------------------------------

    def paint_map(self) -> None:
        painter, t, box, grid = self.painter, self.theme, self.layout.cells, self.layout.grid
        self.hatch(box)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
        painter.drawImage(box, _image(shrunk(self.model, grid), t, signed=self.signed))
        outline(painter, box, t.border)
        if not self.layout.caption.isEmpty():
            self.paint_caption()
        self.paint_labels()
        r, c = self.pointed_cell()
        if r is not None:
            band = self.layout.cell_box(r, 0)
            self.mark(QRectF(box.x(), band.y(), box.width(), band.height()), t.current)
        if c is not None:
            band = self.layout.cell_box(0, c)
            self.mark(QRectF(band.x(), box.y(), band.width(), box.height()), t.text)
        if not self.layout.bar.isEmpty():
            self.paint_bar(self.layout.bar)

    def hatch(self, box: QRectF) -> None:
        """Hatch a place if anything in it may be hidden."""
        if self.model.maps.mask.hides:
            t = self.theme
            self.painter.fillRect(box, hatching(t.empty, t.hatch, self.style.scale))

    def pointed_cell(self) -> tuple[int | None, int | None]:
        """Return row and column of the cell that is read, where they are shown."""
        grid, pointer = self.layout.grid, self.pointer
        r, c = grid.cell_of(self.model.rows.index(pointer.row), pointer.key or 0)
        column = pointer.key is not None and 0 <= c < grid.cols
        return r if 0 <= r < grid.rows else None, c if column else None

    def mark(self, band: QRectF, ink: str) -> None:
        """Frame a row or a column; a band thinner than its border is widened to stay visible."""
        across = max((self.px(5) - band.width()) / 2, 0)
        down = max((self.px(5) - band.height()) / 2, 0)
        band = band.adjusted(-across, -down, across, down).intersected(self.layout.cells)
        outline(self.painter, band.adjusted(-1, -1, 1, 1), ink, max(self.px(1.5), 1.0))

    def paint_caption(self) -> None:
        model = self.model
        words = f"{self.head}: weights, queries ↓ keys →"
        if model.other is not None:
            words = f"{self.head} less {model.name_of(model.other)}, queries ↓ keys →"
        elif not algorithm_of(model.workload).softmax:
            words = f"{self.head}: of a softmax, which this run has not"
        more = self.layout.grid.words
        short = f"{self.head}, queries ↓ keys →", self.head
        said = (words, *short) if words.endswith("→") and model.other is None else (words,)
        self.write(self.layout.caption, (f"{words}; {more}", *said) if more else said)

    def paint_labels(self) -> None:
        model, layout, px = self.model, self.layout, self.px
        grid, picture, need = layout.grid, model.picture, px(LINE)
        here, at = self.pointed_cell()
        tall, wide = layout.cells.height() / grid.rows, layout.cells.width() / grid.cols
        for n in _shown(grid.rows, label_step(tall, need), tall, need, here):
            row = self.pointer.row if n == here else model.rows[grid.row_at(n)]
            y = layout.cells.y() + (n + 0.5) * tall
            box = QRectF(layout.row_labels.x(), y - need / 2, layout.row_labels.width(), need)
            piece = query_piece(model.workload, row)
            if picture and piece:
                box = paint_beside(self.painter, picture, piece, box, need - 1, Qt.Edge.RightEdge)
            self.write(
                box,
                row_label(model.workload, row),
                self.theme.current if n == here else None,
                RIGHT,
            )
        deep = layout.key_labels.height()
        if deep < px(12):
            return
        if not model.tokens:
            need = px(8) + max(
                text_width(self.font, key_label(model.workload, k)) for k in (0, model.keys - 1)
            )
        for n in _shown(grid.cols, label_step(wide, need), wide, need, at):
            key = self.pointer.key if n == at and self.pointer.key is not None else grid.key_at(n)
            x = layout.cells.x() + (n + 0.5) * wide
            ink = self.theme.text if n == at else None
            if not model.tokens:
                first = layout.row_labels.x()
                left = max(min(max(x - need / 2, first), layout.cells.right() - need), first)
                box = QRectF(left, layout.key_labels.y(), need, deep)
                self.write(box, key_label(model.workload, key), ink, CENTRE)
                continue
            box = QRectF(x - need / 2, layout.key_labels.y(), need, deep)
            piece = key_piece(model.workload, key)
            if picture and piece:
                box = paint_beside(self.painter, picture, piece, box, need - 1, Qt.Edge.TopEdge)
            self.painter.save()
            self.painter.translate(x, box.bottom())
            self.painter.rotate(-90)
            self.write(
                QRectF(0, -need / 2, box.height(), need), key_label(model.workload, key), ink, RIGHT
            )
            self.painter.restore()

    def paint_bar(self, box: QRectF) -> None:
        px, t, title = self.px, self.theme, "weight"
        words = _words(t, signed=self.signed)
        if self.model.other is not None:
            long = f"{self.model.name_of(self.model.other)} more, {self.head} more"
            title = first_that_fits((long, "difference"), 0.5 * box.width(), self.font)
        left = text_width(self.font, title) + px(10)
        self.write(QRectF(box.x(), box.y(), left, px(12)), title)
        strip = QRectF(box.x() + left, box.y() + px(1), box.width() - left - px(8), px(9))
        if strip.width() < px(60):
            return
        self.painter.drawImage(strip, word_image(words[None, :256]))
        outline(self.painter, strip, t.border)
        edge = strip.x()
        for value in _SIGNED_TICKS if self.signed else _TICKS:
            place = math.copysign(math.sqrt(abs(value)), value)
            x = strip.x() + ((place + 1) / 2 if self.signed else place) * strip.width()
            text = f"{value:g}".replace("-", "−")
            half = text_width(self.font, text) / 2 + 1
            if x - half < edge or x + half > box.right() + px(2):
                continue
            self.painter.setPen(QPen(QColor(t.muted), 1))
            self.painter.drawLine(QPointF(x, strip.bottom()), QPointF(x, strip.bottom() + px(2)))
            self.write(
                QRectF(x - half, strip.bottom() + px(2), 2 * half, px(15)), text, None, CENTRE
            )
            edge = x + half + px(5)

    # --- all heads ------------------------------------------------------------------------

    def paint_heads(self) -> None:
        model, t, small, places = self.model, self.theme, self.model.small, self.layout.heads
        count, shown = model.workload.heads, len(places)
        words = f"all {count} heads" if count == shown else f"{shown} of {count} heads"
        if count == shown <= 2:
            words = ("the only head", "both heads")[count - 1]
        self.write(self.layout.heads_title, words)
        pitch = places[0][1].width() + self.px(7)
        if shown > 1:
            pitch = max(pitch, places[1][1].x() - places[0][1].x())
        marks = {model.other: t.bad, model.head: t.current}
        signs = {model.head: "+ ", model.other: "− "} if self.signed else {}
        for head, box in places:
            if small is None:  # no map yet; hatching would mean that everything is hidden
                self.painter.fillRect(box, QColor(t.empty))
            else:
                self.hatch(box)
                Sheet(_small_image(small, head, t)).draw(self.painter, box, _WHOLE)
            marked = marks.get(head)
            wide = self.px(2.5) if marked else 1.0
            outline(self.painter, box.adjusted(-1, -1, 1, 1), marked or t.border, wide)
            number, sign = model.workload.picked[head], signs.get(head, "")
            place = QRectF(box.center().x() - pitch / 2, box.bottom(), pitch - 2, self.px(17))
            ink = t.text if marked else None
            self.write(place, (f"{sign}head {number}", f"{sign}{number}"), ink, CENTRE)

    # --- one row --------------------------------------------------------------------------

    def paint_read(self) -> None:
        """Paint lines from a token to the keys that it reads most, as wide as their weights.

        The picture whose pieces are the keys may replace the token and the lines.
        """
        model, px, row, box = self.model, self.px, self.pointer.row, self.layout.read
        short = short_entropy(model, row)
        texts = f"{self.head}, {entropy_words(model, row)}", f"{self.head}: {short}", short
        if self.pointer.key is None and not self.signed:  # the line above everything says so
            most = f"what {row_name(model.workload, row)} reads most"
            texts = f"{self.head}: {most}", most, "reads most"
        self.write(self.row_of(box), texts)
        room = box.adjusted(0, self.line, 0, 0)
        if not self.layout.picture.isEmpty():
            room.setLeft(self.layout.picture.right() + px(8))
        fits = min(int(room.height() / px(17)), _MOST_READ + 1)
        found = model.maps.row(model.head, row, most=max(fits - 1, 1))
        if not found.visible or fits < 2:
            return
        keys = sorted(int(key) for key in found.strongest)
        pitch, code = min(room.height() / (len(keys) + 1), px(30)), self.style.code_font(LABEL)
        number = text_width(code, "0.0e−00") + px(6)  # also if one of them is tiny
        w = model.workload
        names = [f"{key_label(w, k)}  ({k})" if model.tokens else key_name(w, k) for k in keys]
        widest = max(text_width(self.font, each) for each in names)
        side = min(pitch - 1, px(20)) if model.picture else 0.0
        start = None
        if self.layout.picture.isEmpty():
            token = (
                row_label(model.workload, row) if model.tokens else row_name(model.workload, row)
            )
            bold = self.style.text_font(14, bold=True)
            left = min(text_width(bold, token) + px(8), 0.3 * box.width())
            start = QPointF(room.x() + left, room.y() + pitch * (len(keys) + 1) / 2)
            place = QRectF(room.x(), start.y() - px(10), left, px(20))
            self.write(place, token, self.theme.current, font=bold)
            # Lines are shorter where names are long.
            right = min(room.x() + 0.52 * room.width(), room.right() - px(6) - number - widest)
            right = max(right, start.x() + px(_LEAST_ARC))
        else:
            self.paint_picture(row)
            right = room.x()
        if right + px(5) + number + (1 + GAP) * side + widest > room.right():
            names = [key_label(model.workload, k) for k in keys]

        def line(n: int, weight: float, ink: str | None) -> QRectF:
            """Write the weight of a line, and return the place of its name."""
            label = QRectF(right + px(5), room.y() + n * pitch, number, pitch)
            self.write(label, number_text(weight, 4), ink, font=code)
            return QRectF(label.right(), label.y(), room.right() - label.right(), pitch)

        for n, key in enumerate(keys):
            weight = float(found.weights[key])
            if start is not None:
                end = QPointF(right, room.y() + (n + 0.5) * pitch)
                _line(self.painter, start, end, weight, self.style)
            rest, piece = line(n, weight, self.theme.text), key_piece(model.workload, key)
            if model.picture and piece:
                rest = paint_beside(
                    self.painter, model.picture, piece, rest, side, Qt.Edge.LeftEdge
                )
            self.write(rest, names[n], self.theme.text)
        others = found.visible - len(keys)
        if others > 0:
            weight = float(np.delete(found.weights, keys).sum(dtype=np.float64))
            self.write(
                line(len(keys), weight, None),
                (plural(others, "other key"), f"{count_text(others)} others"),
            )

    def paint_picture(self, row: int) -> None:
        """Paint the picture as a row reads it; write below which weights are clear and covered."""
        model, place = self.model, self.layout.picture
        assert model.picture is not None
        weights, piece = (
            model.maps.of(model.head)[model.rows.index(row)],
            query_piece(model.workload, row),
        )
        paint_read(self.painter, model.picture, weights, piece, self.style, place)
        clear = f"clear: {number_text(largest_read(model.picture, weights), 4)}"
        below = QRectF(place.x(), place.bottom(), place.width(), self.line)
        self.write(below, (f"{clear}, covered: 0", clear))

    # --- the output -----------------------------------------------------------------------

    def paint_blend(self) -> None:
        """Paint the output as a mean of values, V of the strongest key, and their difference."""
        model, box, dim, t = self.model, self.layout.blend, self.pointer.dim, self.theme
        found = model.maps.lookup(model.head, self.pointer.row, model.v)
        title = f"Output of {self.head}"
        self.write(self.row_of(box), (
            f"{title}: soft lookup or hard", title,
        ))  # fmt: skip
        parts = {"soft": found.soft, "hard": found.hard, "difference": found.soft - found.hard}
        limit = max(float(np.abs(part).max()) for part in parts.values()) or 1.0
        second = (
            f"they are {number_text(found.distance, 3)} apart, colours ±{number_text(limit, 3)}"
        )
        if dim is not None:
            at = ", ".join(f"{name} {number_text(float(each[dim]), 4)}"
                           for name, each in parts.items())  # fmt: skip
            second = f"dimension {dim}: {at}"
        self.write(self.row_of(box, 1), second, None if dim is None else t.text)
        key = key_name(model.workload, found.key).partition(" “")[0] if found.key >= 0 else "no key"
        names = "soft: Σ p·v", f"hard: {key}", "soft − hard"
        for name, part, strip in zip(names, parts.values(), self.layout.strips, strict=True):
            image = heat_image(part[None, :].astype(np.float32), -limit, limit, diverging(t))
            self.painter.drawImage(strip, image)
            outline(self.painter, strip, t.border)
            label = QRectF(box.x(), strip.y(), strip.x() - box.x() - self.px(6), strip.height())
            self.write(label, name, t.text)
            if dim is not None:
                wide = strip.width() / part.size
                mark = QRectF(strip.x() + dim * wide, strip.y(), wide, strip.height())
                outline(self.painter, mark.adjusted(-1, -1, 1, 1), t.current, self.px(1.5))


def _shown(count: int, step: int, size: float, need: float, here: int | None) -> list[int]:
    """Return which labels are drawn: every n-th, and `here` instead of labels too near to it."""
    if not step:
        return [] if here is None else [here]
    every = [n for n in range(0, count, step) if here is None or abs(n - here) * size >= need]
    return every if here is None else [*every, here]


def _small_image(small: F32, head: int, theme: Theme) -> QImage:
    def make() -> QImage:
        return heat_image(rooted(small[head]), 0.0, 1.0, _words(theme, signed=False))

    return KEPT.get(small, ("small", head, theme.name), make)


def _line(painter: QPainter, start: QPointF, end: QPointF, weight: float, style: Style) -> None:
    path, bend = QPainterPath(start), 0.5 * (end.x() - start.x())
    path.cubicTo(start + QPointF(bend, 0), end - QPointF(bend, 0), end)
    colour = mixed(style.theme.panel, style.theme.tensor("P"), 0.35 + 0.65 * math.sqrt(weight))
    pen = QPen(colour, max(style.px(11) * weight, 0.8))
    pen.setCapStyle(Qt.PenCapStyle.FlatCap)
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPath(path)


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
        own = -1 if there is None else there - model.maps.mask.first_position
        aligned = own in model.rows and not model.workload.query_tokens
        return MapPointer(own) if aligned else None
    dim = layout.dim_at(point, model.v.shape[1])
    return None if dim is None else MapPointer(row, None, dim)
