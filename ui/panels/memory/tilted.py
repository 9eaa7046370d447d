"""The memories as two boards seen from above: HBM below, the chip over it, and tiles that rise.

Nothing here is to scale but the blocks of a tensor: each has its own place on the tensor.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPen, QPolygonF, QTransform

from simulator.problem.workload import Workload
from simulator.program.algorithms import TENSORS
from simulator.program.state import TileMove
from simulator.run.motion import Flight, Motion
from simulator.run.snapshot import Snapshot
from ui.board.flights import tile_sheet
from ui.kit.boxes import Row, Tone, scene
from ui.kit.shapes import Text
from ui.look.draw import CENTRE, LEFT, RIGHT, draw_text, mixed, text_width
from ui.look.names import first_that_fits, fitting
from ui.look.theme import Style
from ui.look.units import bytes_text
from ui.panels.memory.model import Chip, MemoryModel, MemoryState, memory_model, requested, slot_of
from ui.panels.memory.painter import paint_whole_run, write_chip
from ui.panels.memory.places import MIN_SIZE, SLOT_COUNT, short_name, two_lines

_MOST_BLOCKS = 16
"""Most blocks of a tensor that are marked; of more, only the current one is."""
_DEEP = 0.3
"""Depth of a board as a share of its width from which registers are in front of shared memory."""


@dataclass(frozen=True, slots=True)
class Slant:
    """A rectangle that lies on a board, as it is seen from above at an angle."""

    at: QPointF  # its far left corner
    across: QPointF  # across, near: from `at` to the far right corner, and to the near left one
    near: QPointF

    def point(self, x: float, y: float) -> QPointF:
        """Return a point of the rectangle; 0 is far and left, 1 near and right."""
        return self.at + self.across * x + self.near * y

    def part(self, left: float, far: float, right: float, near: float) -> Slant:
        """Return a part of the rectangle."""
        return Slant(self.point(left, far), self.across * (right - left), self.near * (near - far))

    def raised(self, by: float) -> Slant:
        """Return the rectangle `by` pixels higher."""
        return Slant(self.at - QPointF(0, by), self.across, self.near)

    def towards(self, other: Slant, share: float) -> Slant:
        """Return the rectangle at a share of the way to another one."""

        def between(one: QPointF, two: QPointF) -> QPointF:
            return one + (two - one) * share

        return Slant(
            between(self.at, other.at), between(self.across, other.across),
            between(self.near, other.near),
        )  # fmt: skip

    @property
    def polygon(self) -> QPolygonF:
        """The corners."""
        return QPolygonF([self.point(x, y) for x, y in ((0, 0), (1, 0), (1, 1), (0, 1))])

    @property
    def box(self) -> QRectF:
        """An upright box in the middle: as wide and as high as the rectangle is everywhere."""
        centre = self.point(0.5, 0.5)
        width, height = self.across.x(), self.near.y()
        return QRectF(centre.x() - width / 2, centre.y() - height / 2, width, height)

    @property
    def flat(self) -> QRectF:
        """The face without its slant, at the origin."""
        return QRectF(0, 0, hypot(*self.across.toTuple()), hypot(*self.near.toTuple()))

    @property
    def transform(self) -> QTransform:
        """Lays `flat` on the rectangle."""
        u, v = self.across * (1 / self.flat.width()), self.near * (1 / self.flat.height())
        return QTransform(u.x(), u.y(), v.x(), v.y(), self.at.x(), self.at.y())


@dataclass(frozen=True, slots=True)
class TiltedLayout:
    """The places of everything."""

    style: Style  # with the text scale that fits
    hbm: Slant  # hbm, chip: the two boards
    chip: Slant
    tensors: dict[str, Slant]  # the tensors on the lower board
    figures: QRectF  # figures, footer: bytes so far, and the whole run
    footer: QRectF

    def slot(self, slot: int, *, registers: bool) -> Slant:
        """Return the place of a tile on the chip."""
        if self.chip.near.y() > _DEEP * self.chip.across.x():
            far = 0.07 + 0.46 * registers
            left = slot / SLOT_COUNT
            return self.chip.part(left + 0.02, far, left + 1 / SLOT_COUNT - 0.02, far + 0.4)
        first = (slot + SLOT_COUNT * registers) / (2 * SLOT_COUNT)
        gap = 0.016 + 0.012 * registers, 0.028 - 0.012 * registers
        right = first + 1 / (2 * SLOT_COUNT)
        return self.chip.part(first + gap[0], 0.16, right - gap[1], 0.84)


def tilted_layout(rect: QRectF, style: Style, tensors: tuple[str, ...]) -> TiltedLayout:
    """Return the places of a picture of some tensors."""
    style = fitting(style, rect, MIN_SIZE)
    px = style.px
    room, figures, footer = two_lines(rect, style)
    lean = min(0.16 * room.width(), 0.5 * room.height())
    # Each board has its title over its far edge; tiles rise in the room between the boards.
    title, thick = px(17), px(6)
    deep = min(0.38 * (room.height() - 2 * title), 0.4 * room.width())
    across, near = QPointF(room.width() - lean, 0), QPointF(-lean, deep)
    chip = Slant(QPointF(room.x() + lean, room.y() + title), across, near)
    hbm = Slant(QPointF(room.x() + lean, room.bottom() - thick - deep), across, near)
    each = 1 / len(tensors)
    places = {
        name: hbm.part((n + 0.08) * each, 0.08, (n + 0.92) * each, 0.6)
        for n, name in enumerate(tensors)
    }
    return TiltedLayout(style, hbm, chip, places, figures, footer)


def block_of(move: TileMove, place: Slant, w: Workload) -> Slant:
    """Return where on its tensor a tile lies: its rows as a share of all rows."""
    axis = next((a for a in TENSORS[move.tensor].axes if a != "split"), "row")
    count = max(w.sizes[axis], 1)
    return place.part(move.rows.start / count, 0, move.rows.stop / count, 1)


def tilted_berths(motion: Motion, layout: TiltedLayout) -> dict[str, tuple[QRectF, QRectF]]:
    """Return each tensor's place in HBM; from there, tiles rise in the picture itself."""
    ways = {each.move.tensor: rise(each, motion, layout) for each in motion.flights}
    return {tensor: (low.box, QRectF()) for tensor, (low, _) in ways.items()}


def rise(flight: Flight, motion: Motion, layout: TiltedLayout) -> tuple[Slant, Slant]:
    """Return where a tile lies in HBM, and where on the chip."""
    move, w = flight.move, motion.after.program.workload
    held = [*motion.before.on_chip, *motion.after.on_chip]
    shared = any(tile.name == move.tensor and tile.place == "shared" for tile in held)
    slot = layout.slot(slot_of(move.tensor), registers=not shared)
    return block_of(move, layout.tensors[move.tensor], w), slot


def paint_tilted(painter: QPainter, state: MemoryState, layout: TiltedLayout) -> None:
    """Paint everything but tiles on their way."""
    model = memory_model(state.now)
    _paint_hbm(painter, state.now, model, layout)
    _paint_chip(painter, model, layout)
    font, ink = layout.style.text_font(11), layout.style.theme.text
    draw_text(painter, layout.figures, requested(model), font, ink, CENTRE)
    paint_whole_run(painter, state, layout.style, layout.footer)


def paint_rising(painter: QPainter, motion: Motion, share: float, layout: TiltedLayout) -> None:
    """Paint tiles on their way."""
    for flight in motion.flights:
        _paint_rising(painter, flight, motion, share, layout)


def _paint_sides(painter: QPainter, board: Slant, thick: float) -> None:
    """Paint the two visible sides of a board."""
    down = QPointF(0, thick)
    for corner in ((1, 0), (0, 1)):
        one, other = board.point(*corner), board.point(1, 1)
        painter.drawPolygon(QPolygonF([one, other, other + down, one + down]))


def _paint_board(painter: QPainter, board: Slant, fill: str, line: str, style: Style) -> None:
    """Paint a board with its two visible sides."""
    painter.setPen(style.pen(line, 1))
    painter.setBrush(mixed(fill, line, 0.5))
    _paint_sides(painter, board, style.px(5))
    painter.setBrush(QColor(fill))
    painter.drawPolygon(board.polygon)


def _title(board: Slant, style: Style) -> QRectF:
    px = style.px
    at = board.point(0, 0)
    return QRectF(at.x() + px(2), at.y() - px(17), board.across.x() - px(2), px(16))


def _paint_hbm(painter: QPainter, now: Snapshot, model: MemoryModel, layout: TiltedLayout) -> None:
    style, theme = layout.style, layout.style.theme
    _paint_board(painter, layout.hbm, theme.hbm_ground, theme.hbm_line, style)
    title = Text(f"HBM  {model.tbps:g} TB/s", ("hbm_line", "text", 0.55), size=12, bold=True)
    title.paint(painter, style, _title(layout.hbm, style))
    w = now.program.workload
    for traffic in model.tensors:
        place, colour = layout.tensors[traffic.tensor], theme.tensor(traffic.tensor)
        painter.setPen(layout.style.pen(colour, 1))
        painter.setBrush(mixed(theme.hbm_ground, colour, 0.32))
        painter.drawPolygon(place.polygon)
        axis = next((a for a in TENSORS[traffic.tensor].axes if a != "split"), "row")
        size = w.cols if axis == "key" else w.rows
        blocks = -(-w.sizes[axis] // size)
        if blocks <= _MOST_BLOCKS:
            for n in range(1, blocks):
                x = n * size / w.sizes[axis]
                painter.drawLine(place.point(x, 0), place.point(x, 1))
        for move in now.op.moves:
            if move.tensor == traffic.tensor:
                painter.setBrush(colour)
                painter.drawPolygon(block_of(move, place, w).polygon)
    _name_tensors(painter, model, layout)


def _name_tensors(painter: QPainter, model: MemoryModel, layout: TiltedLayout) -> None:
    """Write names and bytes in front of the tensors: in a line, in two, or the names alone."""
    style, theme, px = layout.style, layout.style.theme, layout.style.px
    bold, small = style.text_font(11, bold=True), style.text_font(11)
    room = layout.hbm.across.x() / len(model.tensors) - px(4)
    words = [
        (t.tensor, first_that_fits((short_name(t.tensor), t.tensor.partition("_")[0]), room, bold),
         bytes_text(t.read + t.written))
        for t in model.tensors
    ]  # fmt: skip
    wide = [text_width(bold, name) + px(5) + text_width(small, size) for _, name, size in words]
    strip = 0.4 * layout.hbm.near.y()
    stacked = strip >= px(31) and all(text_width(small, size) <= room for _, _, size in words)
    for (tensor, name, size), width in zip(words, wide, strict=True):
        place, colour = layout.tensors[tensor], theme.tensor(tensor)
        middle = place.point(0.5, 1) + layout.hbm.near * 0.2
        if max(wide) <= room:
            line = QRectF(middle.x() - width / 2, middle.y() - px(8), width, px(16))
            draw_text(painter, line, size, small, theme.muted, RIGHT)
            draw_text(painter, line, name, bold, colour, LEFT)
        elif stacked:
            half = layout.hbm.near * (px(8) / layout.hbm.near.y())
            _write(painter, middle - half, name, bold, colour, style)
            _write(painter, middle + half, size, small, theme.muted, style)
        else:
            _write(painter, middle, name, bold, colour, style)


def _paint_chip(painter: QPainter, model: MemoryModel, layout: TiltedLayout) -> None:
    style, theme = layout.style, layout.style.theme
    _paint_board(painter, layout.chip, theme.sram_ground, theme.sram_line, style)
    tone: Tone = "bad" if model.over else ("sram_line", "text", 0.55)
    left = Text(model.occupancies, tone, size=12, bold=True, grow=1)
    right = Text(f"registers  {bytes_text(model.register_bytes)}", "muted", RIGHT)
    scene(Row((left, right), gap=10), style, _title(layout.chip, style)).paint(painter)
    for chips, registers in ((model.shared, False), (model.registers, True)):
        held = {chip.slot: chip for chip in chips}
        for slot in range(SLOT_COUNT):
            _paint_slot(painter, held.get(slot), layout.slot(slot, registers=registers), style,
                        registers=registers)  # fmt: skip


def _paint_slot(
    painter: QPainter, chip: Chip | None, place: Slant, style: Style, *, registers: bool
) -> None:
    theme, px = style.theme, style.px
    faint = mixed(theme.sram_ground, theme.sram_line, 0.45)
    kind = Qt.PenStyle.DashLine if registers else Qt.PenStyle.SolidLine
    painter.setPen(style.pen(faint, 1, kind))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPolygon(place.polygon)
    if chip is None:
        return
    colour, top = theme.tensor(chip.tensor), place.raised(px(5))
    painter.setPen(QPen(colour, px(1.8) if chip.fresh else px(1.2), kind))
    painter.setBrush(mixed(theme.sram_ground, colour, 0.45))
    _paint_sides(painter, top, px(5))
    painter.setBrush(mixed(theme.sram_ground, colour, 0.3))
    painter.drawPolygon(top.polygon)
    write_chip(painter, chip, top.box, style, theme.text, theme.text)


def _write(
    painter: QPainter, at: QPointF, text: str, font: QFont, colour: QColor | str, style: Style
) -> None:
    """Write a text around a place."""
    box = QRectF(0, 0, text_width(font, text) + 1, style.px(15))
    box.moveCenter(at)
    draw_text(painter, box, text, font, colour, CENTRE)


def _paint_rising(
    painter: QPainter, flight: Flight, motion: Motion, share: float, layout: TiltedLayout
) -> None:
    """Paint a tile on its way, with its own picture on it."""
    way = flight.bus(share)
    if not 0 < way < 1:
        return
    style, theme, px = layout.style, layout.style.theme, layout.style.px
    low, high = rise(flight, motion, layout)
    high = high.raised(px(5))
    colour = theme.tensor(flight.move.tensor)
    line = QColor(colour)
    line.setAlphaF(0.5)
    painter.setPen(layout.style.pen(line, 1, Qt.PenStyle.DashLine))
    for x, y in ((0, 1), (1, 1)):
        painter.drawLine(low.point(x, y), high.point(x, y))
    now = low.towards(high, way if flight.loads else 1 - way)
    painter.save()
    sheet = tile_sheet(flight.move, motion, style)
    if sheet is not None:
        painter.setTransform(now.transform, True)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
        sheet.draw(painter, now.flat, QRectF(0, 0, 1, 1))
    else:
        painter.setBrush(mixed(theme.empty, colour, 0.5))
        painter.drawPolygon(now.polygon)
    painter.restore()
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(layout.style.pen(colour, 2))
    painter.drawPolygon(now.polygon)
