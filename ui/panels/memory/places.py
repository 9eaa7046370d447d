"""Where the parts of the memory picture are, in a wide place and in a tall one.

In a wide place HBM is left of the chip. In a tall one HBM is below, as high as its tensors need:
the tiles on chip get the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSizeF

from simulator.run.motion import Motion
from ui.look.names import fitting, tensor_names
from ui.look.theme import Style
from ui.panels.memory.model import memory_model, slot_of

MIN_SIZE = QSizeF(300, 170)
_MIN_TALL = QSizeF(250, 285)
_TALL = 0.9
"""Height as a share of the width from which a place is tall."""
_TWO_LINES = 16.0
"""How high the row of a tensor must be for its words and a bar below them."""
_ONE_COLUMN = 8
"""How many tensors stand below each other in a tall place; more stand in two columns."""
SLOT_COUNT = 3


@dataclass(frozen=True, slots=True)
class MemoryLayout:
    """The places of everything."""

    style: Style  # with the text scale that fits
    hbm: QRectF  # hbm, sram: the grounds of the two memories
    sram: QRectF
    lanes: tuple[QRectF, ...]  # one for each moved tile
    figures: QRectF  # bytes so far
    footer: QRectF  # the whole run
    tensors: tuple[QRectF, ...]  # the row of each tensor in HBM
    # shared, between, registers: the two memories of the chip, and the words between them
    shared: QRectF
    between: QRectF
    registers: QRectF
    bar: QRectF  # how much of shared memory is taken
    tall: bool  # whether HBM is below the chip
    # whether a tensor's name, bar and bytes stand in one line: there is no room for two
    lines: bool


def arranged(rect: QRectF, style: Style) -> tuple[bool, Style]:
    """Return whether a place is tall, and the style with the text scale that fits."""
    tall = rect.height() >= _TALL * rect.width()
    return tall, fitting(style, rect, _MIN_TALL if tall else MIN_SIZE)


def two_lines(rect: QRectF, style: Style) -> tuple[QRectF, QRectF, QRectF]:
    """Return the room for a picture and the two lines of words below it."""
    line = style.px(16)
    last = QRectF(rect.x(), rect.bottom() - line, rect.width(), line)
    return rect.adjusted(0, 0, 0, -2 * line - style.px(3)), last.translated(0, -line), last


def memory_layout(rect: QRectF, style: Style, lanes: int, tensors: int) -> MemoryLayout:
    """Return the places of a picture with `lanes` moved tiles, and `tensors` tensors in HBM."""
    (tall, style), lanes = arranged(rect, style), max(lanes, 1)
    px = style.px
    room, figures, footer = two_lines(rect, style)
    frame, heading, foot = px(29), px(16), px(11)
    # In a tall place rows take half of the space at most; a tile on chip is never taller than wide.
    columns = 2 if tall and tensors > _ONE_COLUMN else 1
    rows = -(-tensors // columns)
    if tall:
        bus = min(max(0.16 * room.height(), px(40)), px(70))
        free = room.height() - bus - 2 * frame - heading - foot
        row = min(max(0.5 * free / rows, px(14)), px(26))
        side = (rect.width() - px(14) - (SLOT_COUNT - 1) * px(4)) / SLOT_COUNT
        slot = min((free - row * rows) / 2, 0.8 * side)
        chip = QRectF(room.x(), room.y(), room.width(), frame + heading + 2 * slot + foot)
        high = frame + row * rows
        hbm = QRectF(room.x(), room.bottom() - high, room.width(), high)
        # Spare room makes the way longer.
        way = QRectF(room.x(), chip.bottom(), room.width() / lanes, hbm.y() - chip.bottom())
        places = tuple(way.translated(n * way.width(), 0) for n in range(lanes))
    else:
        wide = max(0.38 * room.width(), px(132))
        hbm = QRectF(room.x(), room.y(), 0.3 * room.width(), room.height())
        chip = QRectF(room.right() - wide, room.y(), wide, room.height())
        row = min(inside(hbm, style).height() / tensors, px(44))
        slot = min((inside(chip, style).height() - heading - foot) / 2, px(110))
        high = min((room.height() - px(4)) / lanes, px(46))
        first = room.center().y() - high * lanes / 2
        middle = chip.x() - hbm.right() - px(6)
        way = QRectF(hbm.right() + px(3), first, middle, high)
        places = tuple(way.translated(0, n * high) for n in range(lanes))
    inner = inside(chip, style)
    shared = QRectF(inner.x(), inner.y(), inner.width(), slot)
    between = QRectF(inner.x(), shared.bottom(), inner.width(), heading)
    bar = QRectF(inner.x(), inner.bottom() - px(7), inner.width(), px(7))
    return MemoryLayout(
        style, hbm, chip, places, figures, footer, _rows(inside(hbm, style), row, tensors, columns,
        px(10)), shared, between, shared.translated(0, slot + heading), bar, tall=tall,
        lines=tall or row < px(_TWO_LINES),
    )  # fmt: skip


def _rows(inner: QRectF, height: float, count: int, columns: int, gap: float) -> tuple[QRectF, ...]:
    width = (inner.width() - (columns - 1) * gap) / columns
    places = (divmod(n, columns) for n in range(count))
    return tuple(
        QRectF(inner.x() + column * (width + gap), inner.y() + row * height, width, height)
        for row, column in places
    )


def title_row(ground: QRectF, style: Style) -> QRectF:
    """Return the place of the title of a memory."""
    px = style.px
    return QRectF(ground.x() + px(4), ground.y() + px(4), ground.width() - px(8), px(16))


def inside(ground: QRectF, style: Style) -> QRectF:
    """Return the place under the title of a memory."""
    px = style.px
    inner = style.inset(ground, 7, 0, 7, 6)
    inner.setTop(title_row(ground, style).bottom() + px(3))
    return inner


def short_name(tensor: str) -> str:
    """Return the name of a tensor in its line."""
    names = tensor_names(tensor)
    return names[1] if "_" in tensor else names[0]


def slot_place(place: QRectF, slot: int, style: Style) -> QRectF:
    """Return the place of a slot in one of the chip's memories."""
    gap = style.px(4)
    width = (place.width() - gap * (SLOT_COUNT - 1)) / SLOT_COUNT
    return QRectF(place.x() + slot * (width + gap), place.y(), width, place.height())


def memory_berths(motion: Motion, layout: MemoryLayout) -> dict[str, tuple[QRectF, QRectF]]:
    """Return, for each tensor that an op moves, its places in HBM and on the chip."""
    model, style = memory_model(motion.after), layout.style
    rows = dict(zip((t.tensor for t in model.tensors), layout.tensors, strict=True))
    chips = (*memory_model(motion.before).shared, *model.shared)
    shared = {chip.tensor: chip.slot for chip in chips}
    return {
        name: (
            rows[name],
            slot_place(layout.shared, shared[name], style)
            if name in shared
            else slot_place(layout.registers, slot_of(name), style),
        )
        for name in (lane.tensor for lane in model.lanes)
    }
