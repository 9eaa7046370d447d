"""Transport: the scrubber over all visits, and the ops of the current one as buttons."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QImage, QPaintEngine, QPainter, QTransform

from simulator.program.partial_visits import partial_before
from simulator.program.tile_program import TileProgram
from simulator.run.snapshot import Snapshot
from simulator.timing.duration import duration_of
from ui.look.boundaries import boundaries
from ui.look.draw import CENTRE, card, draw_text, mixed, text_width
from ui.look.durations import LEAST, MODEL, duration_text
from ui.look.names import op_label, short_op_label
from ui.look.theme import THEMES, Style
from ui.look.units import count_text

SMALLEST_CELL = 12
"""Pixels (scale 1) below which a density strip replaces cells."""
_FONT_SIZES = (12, 11)


@dataclass(frozen=True, slots=True)
class ScrubberLayout:
    """The place of each visit in the scrubber."""

    program: TileProgram
    style: Style
    rect: QRectF  # its whole place

    @property
    def visits(self) -> int:
        """How many visits the run has."""
        return len(self.program)

    @property
    def cells(self) -> bool:
        """Whether each visit has its own cell, because cells are wide enough."""
        return self.rect.width() / self.visits >= self.style.px(SMALLEST_CELL)

    def left_of(self, visit: float) -> float:
        """Return where a visit's share begins."""
        return self.rect.x() + self.rect.width() * visit / self.visits

    def cell(self, visit: int) -> QRectF:
        """Return a visit's share of the scrubber."""
        left = self.left_of(visit)
        return QRectF(left, self.rect.y(), self.left_of(visit + 1) - left, self.rect.height())

    def visit_at(self, x: float) -> int:
        """Return the visit at a place; the nearest one outside."""
        share = (x - self.rect.x()) / max(self.rect.width(), 1.0)
        return min(max(int(share * self.visits), 0), self.visits - 1)


def paint_scrubber(painter: QPainter, snapshot: Snapshot, style: Style, rect: QRectF) -> None:
    """Paint every visit of the run as a cell, or all of them as a strip, and the cursor."""
    layout, now = ScrubberLayout(snapshot.program, style, rect), snapshot.cursor.visit
    painter.save()
    if layout.cells:
        _paint_each_cell(painter, layout, now)
        if _cell_font(layout) is None:
            here = layout.cell(now)
            _paint_boundaries(painter, layout, (here.left(), here.right()))
    else:
        _paint_strip(painter, layout, now)
    painter.restore()


@lru_cache(maxsize=4)
def _cell_marks(program: TileProgram) -> tuple[tuple[str, bool, bool], ...]:
    """Return for each visit its label, and whether a block, or a head or launch, begins there."""
    out = []
    for n in range(len(program)):
        visit = program.visit(n)
        label = program.launches[visit.launch].mark(visit.i, visit.j)
        out.append((label, visit.first, visit.opens))
    return tuple(out)


def _paint_each_cell(painter: QPainter, layout: ScrubberLayout, now: int) -> None:
    style = layout.style
    if not _on_plain_pixels(painter) or style.px(1) < 1:
        for n in range(layout.visits):
            _paint_cell(painter, layout, n, now)
        return
    # All cells but one look as a step ago, so they are cut from pictures of all cells.
    rect = layout.rect
    smooth = painter.testRenderHint(QPainter.RenderHint.Antialiasing)
    corner = QPoint(floor(rect.x()), floor(rect.y()))
    place = (rect.x() - corner.x(), rect.y() - corner.y(), rect.width(), rect.height())
    right = ceil(place[0] + place[2])
    begin, end = (ceil(layout.left_of(n)) - corner.x() for n in (now, now + 1))
    done = (True, 0, begin if now else 0)
    todo = (False, end, right if now + 1 < layout.visits else end)
    for before, start, stop in (done, todo):
        if stop > start:
            picture = _cells_picture(
                layout.program, style.theme.name, style.scale, place, before, smooth
            )
            part = QRect(start, 0, stop - start, picture.height())
            painter.drawImage(corner + part.topLeft(), picture, part)
    _paint_cell(painter, layout, now, now)


def _on_plain_pixels(painter: QPainter) -> bool:
    """Return whether a prepared picture is at whole pixels."""
    kind = painter.worldTransform().type()
    return (
        painter.paintEngine().type() is QPaintEngine.Type.Raster
        and painter.device().devicePixelRatioF() == 1.0
        and kind is QTransform.TransformationType.TxNone
    )


@lru_cache(maxsize=3)
def _cells_picture(
    program: TileProgram,
    theme: str,
    scale: float,
    place: tuple[float, float, float, float],
    done: bool,
    smooth: bool,
) -> QImage:
    """Return all visits as they look when all are done, or none."""
    style, rect = Style(THEMES[theme], scale), QRectF(*place)
    size = QSize(ceil(rect.right()) + 1, ceil(rect.bottom()) + 1)
    out = QImage(size, QImage.Format.Format_ARGB32_Premultiplied)
    out.fill(Qt.GlobalColor.transparent)
    with QPainter(out) as painter:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, smooth)
        layout = ScrubberLayout(program, style, rect)
        for n in range(layout.visits):
            _paint_cell(painter, layout, n, layout.visits if done else -1)
    return out


def _paint_cell(painter: QPainter, layout: ScrubberLayout, n: int, now: int) -> None:
    """Paint the cell of visit `n` while visit `now` is the current one."""
    style, px, theme = layout.style, layout.style.px, layout.style.theme
    label, first, opens = _cell_marks(layout.program)[n]
    font = _cell_font(layout)
    # The gap is wider before a block, and still wider before a head or launch.
    gap = px(1) if not first else px(2.5) if not opens else px(4)
    box = layout.cell(n).adjusted(gap if n else 0, 0, 0, 0)
    fill = _past(style) if n < now else _future(style)
    ink = theme.text if n < now else theme.muted
    if n == now:
        fill, ink = QColor(theme.current), theme.panel
    painter.fillRect(box, fill)
    if font is not None:
        draw_text(painter, layout.cell(n), label, font, ink, CENTRE)


def _cell_font(layout: ScrubberLayout) -> QFont | None:
    """Return the font of labels in cells; None if the labels do not fit."""
    font, room = layout.style.text_font(11), layout.rect.width() / layout.visits
    fits = text_width(font, _longest_label(layout.program)) <= room - layout.style.px(3)
    return font if fits else None


@lru_cache(maxsize=4)
def _longest_label(program: TileProgram) -> str:
    return max((label for label, _, _ in _cell_marks(program)), key=len)


def _past(style: Style) -> QColor:
    return mixed(style.theme.panel, style.theme.tensor("S"), 0.5)


def _future(style: Style) -> QColor:
    return mixed(style.theme.panel, style.theme.grid, 0.5)


# --- the strip -------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def _partial_share(program: TileProgram, pixels: int) -> NDArray[np.float32]:
    """Return the share of visits cut by the mask in each of `pixels` equal parts of the run.

    The share is exact if parts begin and end with an outer block; inside a block it is spread
    evenly.
    """
    edges = np.linspace(0, len(program), pixels + 1)
    at, before = partial_before(program)
    return np.diff(np.interp(edges, at, before)).astype(np.float32) / (len(program) / pixels)


def _paint_strip(painter: QPainter, layout: ScrubberLayout, visit: int) -> None:
    style, theme, rect = layout.style, layout.style.theme, layout.rect
    pixels = max(int(rect.width()), 1)
    share = _partial_share(layout.program, pixels)
    now = layout.left_of(visit + 0.5)
    done = np.arange(pixels) + 0.5 + rect.x() < now
    row = np.empty((1, pixels, 4), dtype=np.uint8)
    bright = mixed(theme.panel, theme.text, 0.75)
    for mask, base in ((done, _past(style)), (~done, _future(style))):
        low = np.array([base.blue(), base.green(), base.red(), 255], dtype=np.float32)
        high = np.array([bright.blue(), bright.green(), bright.red(), 255], dtype=np.float32)
        row[0, mask] = low + (high - low) * 0.45 * np.clip(share[mask, None], 0, 1)
    image = QImage(row.data, pixels, 1, 4 * pixels, QImage.Format.Format_RGB32)
    painter.drawImage(rect, image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    px = style.px
    _paint_boundaries(painter, layout, (now - px(2), now + px(2)))
    box = QRectF(round(now - px(2)), rect.y() - px(2), round(px(4)), rect.height() + px(4))
    painter.fillRect(box.adjusted(-1, 0, 1, 0), QColor(theme.panel))
    painter.fillRect(box, QColor(theme.current))


def _paint_boundaries(painter: QPainter, layout: ScrubberLayout, now: tuple[float, float]) -> None:
    """Write the names of parts at their beginnings, with marks if there are no cells.

    Where the cursor would lie on a name, the name stands behind it if there is room.
    """
    px, theme, rect = layout.style.px, layout.style.theme, layout.rect
    font = layout.style.text_font(11)
    edges = boundaries(layout.program, int(rect.width() / px(64)))
    ends = [*(layout.left_of(edge.visit) for edge in edges[1:]), rect.right()]
    for edge, right in zip(edges, ends, strict=True):
        left = layout.left_of(edge.visit)
        if edge.visit and not layout.cells:
            height = rect.height() if edge.strong else px(6)
            width = max(round(px(2 if edge.strong else 1)), 1)
            mark = QRectF(round(left), rect.bottom() - height, width, height)
            painter.fillRect(mark, QColor(theme.panel))
        needs = text_width(font, edge.label) + px(8)
        if left - px(4) < now[1] and now[0] < left + needs:
            left = now[1]
        if needs <= right - left:
            place = QRectF(left + px(4), rect.y(), needs, rect.height())
            draw_text(painter, place, edge.label, font, theme.text)


# --- the chips -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpChip:
    """One op of the current visit in the row of chips."""

    rect: QRectF
    text: str
    op: int


@dataclass(frozen=True, slots=True)
class ChipLayout:
    """The row of chips and the size of its text (scale 1)."""

    chips: tuple[OpChip, ...]
    font_size: int

    def op_at(self, x: float, y: float) -> int | None:
        """Return the op whose chip is at a place."""
        for chip in self.chips:
            if chip.rect.contains(x, y):
                return chip.op
        return None


def chip_layout(snapshot: Snapshot, style: Style, rect: QRectF) -> ChipLayout:
    """Return the buttons: words and size as large as fit, each as wide as its words need."""
    w = snapshot.program.workload
    gap, pad = style.px(3), style.px(7)
    room = rect.width() - gap * (len(snapshot.ops) - 1)
    texts: list[str] = []
    for label in (op_label, short_op_label):
        texts = [label(op, w) for op in snapshot.ops]
        for size in _FONT_SIZES:
            font = style.text_font(size)
            widths = [max(text_width(font, text) + pad, style.px(24)) for text in texts]
            if sum(widths) <= room:
                return _placed(texts, widths, rect, gap, room, size)
    return _placed(texts, widths, rect, gap, room, _FONT_SIZES[-1])


def _placed(
    texts: list[str], widths: list[float], rect: QRectF, gap: float, room: float, size: int
) -> ChipLayout:
    """Return buttons that fill the row: spare space is shared evenly."""
    spare = (room - sum(widths)) / len(widths)
    factor = 1.0
    if spare < 0:
        spare, factor = 0.0, room / sum(widths)
    chips, x = [], rect.x()
    for op, (text, width) in enumerate(zip(texts, widths, strict=True)):
        width = width * factor + spare
        chips.append(OpChip(QRectF(x, rect.y(), width, rect.height()), text, op))
        x += width + gap
    return ChipLayout(tuple(chips), size)


def paint_chips(painter: QPainter, snapshot: Snapshot, style: Style, rect: QRectF) -> None:
    """Paint the ops of the current visit; the one that has just been done is framed."""
    layout = chip_layout(snapshot, style, rect)
    px, theme = style.px, style.theme
    font, bold = style.text_font(layout.font_size), style.text_font(layout.font_size, bold=True)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    now = snapshot.cursor.op
    for chip in layout.chips:
        if chip.op == now:
            card(painter, chip.rect, theme.accent, theme.current, px(4), px(1.6))
        else:
            ground = mixed(theme.panel, theme.window, 0.6)
            card(painter, chip.rect, ground, theme.border, px(4), px(1))
        ink = theme.text if chip.op <= now else theme.muted
        inner = style.inset(chip.rect, 2, 0, 2, 0)
        draw_text(painter, inner, chip.text, bold if chip.op == now else font, ink, CENTRE)
    painter.restore()


def position_words(snapshot: Snapshot, visit: int | None = None) -> str:
    """Return the number of the current visit, or of `visit`, counted from 1."""
    at = snapshot.cursor.visit if visit is None else visit
    return f"visit {count_text(at + 1)} of {count_text(len(snapshot.program))}"


def time_words(snapshot: Snapshot) -> str:
    """Return the time so far on the chosen GPU."""
    said = duration_text(duration_of(snapshot.program), snapshot.seconds)
    return f"{said} on {snapshot.program.workload.gpu.name}"


def time_tip(snapshot: Snapshot) -> str:
    """Return the time of the whole run, its bound, and the source of the time."""
    found = duration_of(snapshot.program)
    whole = f"The whole run: {duration_text(found)}"
    if found.model is None:
        return f"{whole}. {found.why} {LEAST}"
    return f"{whole}, limited by {found.model.bound_by}. {MODEL}"
