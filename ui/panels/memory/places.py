"""Where the parts of the memory picture are, in a wide place and in a tall one.

In a wide place HBM is left of the chip. In a tall one it is below, and takes as much as its tensors
need: the tiles on chip get the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSizeF

from simulator.run.motion import Motion
from ui.look.draw import text_width
from ui.look.kept import kept, place_key
from ui.look.names import fitting, tensor_names
from ui.look.theme import Style
from ui.panels.memory.model import memory_model, slot_of

MIN_SIZE = QSizeF(300, 170)
_MIN_TALL = QSizeF(250, 285)
_TALL = 0.9
"""Height as a share of the width from which a place is tall."""
_TWO_LINES = 18.0
"""How high the row of a tensor must be for its words and a bar below them."""
_ONE_COLUMN = 8
"""How many tensors stand below each other in a tall place; more stand in two columns."""
SLOT_COUNT = 3
_WIDEST_FIGURE = "written 1023.9 MiB"
LEGEND = "read", "written"


@dataclass(frozen=True, slots=True)
class MemoryLayout:
    """The places of everything."""

    style: Style  # with the text scale that fits
    hbm: QRectF  # hbm, sram: the grounds of the two memories
    sram: QRectF
    lanes: tuple[QRectF, ...]  # one for each moved tile
    # bytes so far: below the lanes, or one line below everything if they are too narrow
    figures: QRectF
    narrow: bool  # whether it is one line
    footer: QRectF  # the whole run
    tensors: tuple[QRectF, ...]  # the row of each tensor in HBM
    legend: QRectF  # how bars are filled; null where there is no room for it
    # shared, between, registers: the two memories of the chip, and the words between them
    shared: QRectF
    between: QRectF
    registers: QRectF
    bar: QRectF  # how much of shared memory is taken
    tall: bool  # whether HBM is below the chip
    # whether a tensor's name, bar and bytes stand in one line: there is no room for two
    lines: bool


def memory_layout(rect: QRectF, style: Style, lanes: int, tensors: int) -> MemoryLayout:
    """Return the places of a picture with so many moved tiles, and so many tensors in HBM."""
    if rect.height() >= _TALL * rect.width():
        return _tall(rect, fitting(style, rect, _MIN_TALL), max(lanes, 1), tensors)
    return _wide(rect, fitting(style, rect, MIN_SIZE), max(lanes, 1), tensors)


def _wide(rect: QRectF, style: Style, lanes: int, tensors: int) -> MemoryLayout:
    px = style.px
    sram_width = max(0.38 * rect.width(), px(132))
    hbm_width = 0.30 * rect.width()
    middle_width = rect.width() - hbm_width - sram_width - px(6)
    narrow = middle_width < text_width(style.text_font(12), _WIDEST_FIGURE)
    footer_height, line = px(17), px(15)
    under = footer_height + (line if narrow else 0.0)
    top = QRectF(rect.x(), rect.y(), rect.width(), rect.height() - under)
    hbm = QRectF(top.x(), top.y(), hbm_width, top.height())
    sram = QRectF(top.right() - sram_width, top.y(), sram_width, top.height())
    middle = QRectF(hbm.right() + px(3), top.y(), middle_width, top.height())
    figures = QRectF(rect.x(), top.bottom() + px(2), rect.width(), line)
    room = middle.height() - px(4)
    if not narrow:
        figures = QRectF(middle.x(), middle.bottom() - px(46), middle.width(), px(46))
        room -= figures.height()
    height = min(room / lanes, px(46))
    first = middle.y() + (room - height * lanes) / 2
    places = tuple(
        QRectF(middle.x(), first + n * height, middle.width(), height) for n in range(lanes)
    )
    footer = QRectF(rect.x(), rect.bottom() - px(15), rect.width(), px(15))
    rows, legend = _wide_rows(hbm, style, tensors)
    inner = inside(sram, style)
    heading, bar_height = px(15), px(7)
    height = min((inner.height() - heading - bar_height - px(6)) / 2, px(110))
    shared = QRectF(inner.x(), inner.y(), inner.width(), height)
    between = QRectF(inner.x(), shared.bottom(), inner.width(), heading)
    registers = QRectF(inner.x(), between.bottom(), inner.width(), height)
    bar = QRectF(inner.x(), inner.bottom() - bar_height, inner.width(), bar_height)
    return MemoryLayout(
        style, hbm, sram, places, figures, narrow, footer, rows, legend, shared, between, registers,
        bar, tall=False, lines=rows[0].height() < px(_TWO_LINES),
    )  # fmt: skip


def _wide_rows(hbm: QRectF, style: Style, tensors: int) -> tuple[tuple[QRectF, ...], QRectF]:
    """Return the place of each tensor, and of the legend below them."""
    px, inner = style.px, inside(hbm, style)
    foot = QRectF(inner.x(), inner.bottom() - px(13), inner.width(), px(13))
    room = inner.height() - foot.height()
    if room < tensors * px(_TWO_LINES) or sum(legend_widths(style)) + px(8) > foot.width():
        foot, room = QRectF(), inner.height()
    return _rows(inner, min(room / tensors, px(44)), tensors), foot


def _rows(
    inner: QRectF, height: float, count: int, columns: int = 1, gap: float = 0.0
) -> tuple[QRectF, ...]:
    width = (inner.width() - (columns - 1) * gap) / columns
    places = (divmod(n, columns) for n in range(count))
    return tuple(
        QRectF(inner.x() + column * (width + gap), inner.y() + row * height, width, height)
        for row, column in places
    )


def _tall(rect: QRectF, style: Style, lanes: int, tensors: int) -> MemoryLayout:
    px = style.px
    line = px(16)
    footer = QRectF(rect.x(), rect.bottom() - line, rect.width(), line)
    figures = footer.translated(0, -line)
    room = figures.y() - px(3) - rect.y()
    bus = min(max(0.16 * room, px(40)), px(70))
    frames = 2 * px(29)  # the titles of both memories, and what is under their content
    heading = px(16)
    free = room - bus - frames - heading
    # Rows take half of the space at most; a tile on chip is never taller than wide.
    columns = 1 if tensors <= _ONE_COLUMN else 2
    rows = -(-tensors // columns)
    row = min(max(0.5 * free / rows, px(14)), px(26))
    side = (rect.width() - px(14) - (SLOT_COUNT - 1) * px(4)) / SLOT_COUNT
    slot = min((free - row * rows) / 2, 0.8 * side)
    sram = QRectF(rect.x(), rect.y(), rect.width(), px(29) + heading + 2 * slot)
    hbm_height = px(29) + row * rows
    # What is left makes the way longer.
    hbm = QRectF(rect.x(), rect.y() + room - hbm_height, rect.width(), hbm_height)
    way = QRectF(rect.x(), sram.bottom(), rect.width(), hbm.y() - sram.bottom())
    width = way.width() / lanes
    places = tuple(QRectF(way.x() + n * width, way.y(), width, way.height()) for n in range(lanes))
    title = title_row(hbm, style)
    legend_width = sum(legend_widths(style)) + px(8)
    legend = QRectF(title.right() - px(3) - legend_width, title.y(), legend_width, px(14))
    inner = inside(sram, style)
    shared = QRectF(inner.x(), inner.y(), inner.width(), slot)
    between = QRectF(inner.x(), shared.bottom(), inner.width(), heading)
    registers = QRectF(inner.x(), between.bottom(), inner.width(), slot)
    title = title_row(sram, style)
    bar = QRectF(title.center().x() + px(8), title.center().y() - px(3), 0, px(7))
    bar.setRight(inner.right())
    return MemoryLayout(
        style, hbm, sram, places, figures, True, footer,
        _rows(inside(hbm, style), row, tensors, columns, px(10)), legend, shared, between,
        registers, bar, tall=True, lines=True,
    )  # fmt: skip


def title_row(ground: QRectF, style: Style) -> QRectF:
    """Return the place of the title of a memory."""
    px = style.px
    return QRectF(ground.x() + px(4), ground.y() + px(4), ground.width() - px(8), px(16))


def inside(ground: QRectF, style: Style) -> QRectF:
    """Return the place under the title of a memory."""
    px = style.px
    inner = ground.adjusted(px(7), 0, -px(7), -px(6))
    inner.setTop(title_row(ground, style).bottom() + px(3))
    return inner


def legend_widths(style: Style) -> list[float]:
    """Return how wide each entry of the legend is."""
    font = style.text_font(11)
    return [style.px(11) + text_width(font, word) + 1 for word in LEGEND]


def short_name(tensor: str) -> str:
    """Return a tensor as the line beside it calls it."""
    names = tensor_names(tensor)
    return names[1] if "_" in tensor else names[0]


def slot_place(place: QRectF, slot: int, style: Style) -> QRectF:
    """Return the place of a slot in one of the chip's memories."""
    gap = style.px(4)
    width = (place.width() - gap * (SLOT_COUNT - 1)) / SLOT_COUNT
    return QRectF(place.x() + slot * (width + gap), place.y(), width, place.height())


def memory_berths(motion: Motion, style: Style, rect: QRectF) -> dict[str, tuple[QRectF, QRectF]]:
    """Return, for each tensor that an op moves, its places in HBM and on the chip.

    Parameters
    ----------
    style, rect
        As for `paint_memory`.
    """
    key = ("berths", place_key(style, rect))
    return kept(motion, key, lambda: _berths(motion, style, rect))


def _berths(motion: Motion, style: Style, rect: QRectF) -> dict[str, tuple[QRectF, QRectF]]:
    model = memory_model(motion.after)
    layout = memory_layout(rect, style, len(model.lanes), len(model.tensors))
    rows = dict(zip((t.tensor for t in model.tensors), layout.tensors, strict=True))
    chips = [*memory_model(motion.before).shared, *model.shared]
    slots = {chip.tensor: slot_place(layout.shared, chip.slot, layout.style) for chip in chips}
    return {
        lane.tensor: (
            rows[lane.tensor],
            slots.get(
                lane.tensor, slot_place(layout.registers, slot_of(lane.tensor), layout.style)
            ),
        )
        for lane in model.lanes
    }
