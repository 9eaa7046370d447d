"""The memories at their true sizes: HBM as a store, shared memory of a block as a desk in it.

All areas of a picture are proportional to bytes, at one scale at the left (below, in a tall place)
and at another one in the magnifier, which says how much larger its scale is.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter

from simulator.problem.hardware import GB, Gpu
from simulator.program.traffic import stored_bytes
from simulator.run.motion import Motion
from simulator.run.snapshot import Snapshot
from ui.kit.boxes import Tone
from ui.kit.shapes import Text
from ui.look.draw import CENTRE, RIGHT, draw_text, mixed, outline, text_width
from ui.look.names import first_that_fits
from ui.look.theme import Style
from ui.look.units import bytes_text, count_text
from ui.panels.memory.model import Chip, MemoryModel, MemoryState, memory_model, requested, slot_of
from ui.panels.memory.painter import paint_ground
from ui.panels.memory.places import SLOT_COUNT, arranged, inside, short_name, two_lines

_LETTERS = 10.5
"""Height of a line of names at scale 1."""
_LEAST_DESK = 26.0
"""Side of a desk at scale 1 below which only the store shows the run's tensors."""


@dataclass(frozen=True, slots=True)
class ScaleModel:
    """HBM and chip at their true sizes."""

    gpu: Gpu  # with these memories
    memory: MemoryModel  # the tiles on chip, and the tiles that move
    stored: dict[str, int]  # the run's tensors in HBM, in bytes

    @property
    def desks(self) -> int:
        """How many times the shared memory of a block goes into HBM."""
        return self.gpu.memory_bytes // self.gpu.smem_bytes

    @property
    def run(self) -> int:
        """Bytes of all tensors of the run."""
        return sum(self.stored.values())

    @property
    def words(self) -> tuple[str, ...]:
        """How large HBM is, from long to short."""
        size = bytes_text(self.gpu.smem_bytes).replace(".0 ", " ")
        desks = f"HBM: {rounded_text(self.desks)} times the {size} of SRAM"
        part, run = _part(self.run, self.gpu), bytes_text(self.run)
        return (
            f"{desks}  ·  this run's tensors: {run}, {part} of it",
            f"{desks}  ·  this run's tensors: {part}",
            f"{desks}  ·  the run: {run}",
            desks,
        )


def scale_model(snapshot: Snapshot) -> ScaleModel:
    """Return the picture's contents at a snapshot."""
    program = snapshot.program
    stored = stored_bytes(program.workload, program.tensors)
    return ScaleModel(program.workload.gpu, memory_model(snapshot), stored)


def rounded_text(value: float) -> str:
    """Return a count with three digits: ``344 000``."""
    if value < 999.5:
        return f"{value:.3g}"
    power = 10 ** (len(str(int(value))) - 3)
    return count_text(round(value / power) * power)


def _part(run: int, gpu: Gpu) -> str:
    share = run / gpu.memory_bytes
    return f"{100 * share:.0f} %" if share >= 0.01 else f"one part in {rounded_text(1 / share)}"


@dataclass(frozen=True, slots=True)
class ScaleLayout:
    """The places of everything."""

    style: Style  # with the text scale that fits
    store: QRectF  # store, lens: grounds of HBM and of the magnifier
    lens: QRectF
    cells: tuple[QRectF, ...]  # each GB of HBM
    # the shared memory of all multiprocessors, at the same scale, below the cells
    all_desks: QRectF
    magnified: float  # how many times longer everything is in the magnifier
    desk: QRectF  # the shared memory of a block, in the magnifier
    drawer: QRectF  # the registers of a multiprocessor; null where their number is not known
    # the line of each of the run's tensors, in the part of HBM beside the desk
    rows: dict[str, QRectF]
    # the tensors in this part, at the scale of the desk; empty if they are too large
    tensors: dict[str, QRectF]
    footer: tuple[QRectF, ...]  # the two lines of words

    @property
    def beside(self) -> bool:
        """Whether the magnifier is at the right of the store; else it is above."""
        return self.lens.y() == self.store.y()

    def slot(self, slot: int, *, registers: bool) -> QRectF:
        """Return the third of the desk, or of the drawer, where a tile lies."""
        place = self.drawer if registers else self.desk
        width = place.width() / SLOT_COUNT
        return QRectF(place.x() + slot * width, place.y(), width, place.height())


def scale_layout(rect: QRectF, style: Style, model: ScaleModel) -> ScaleLayout:
    """Return the places of a picture at true sizes."""
    tall, style = arranged(rect, style)
    px = style.px
    room, *footer = two_lines(rect, style)
    if tall:
        # The magnifier is on the side of the chip: above, or at the right.
        lens = QRectF(room.x(), room.y(), room.width(), 0.56 * room.height())
        store = QRectF(room.x(), lens.bottom() + px(14), room.width(), 0)
        store.setBottom(room.bottom())
    else:
        store = QRectF(room.x(), room.y(), 0.36 * room.width(), room.height())
        lens = QRectF(store.right() + px(18), room.y(), 0, room.height())
        lens.setRight(room.right())
    field = style.inset(inside(store, style), 0, 0, 0, 18)
    cells, side = _cells(field, model.gpu.memory_gb, from_right=not tall)
    per_byte = side * side / GB
    small_desk = sqrt(model.gpu.smem_bytes * per_byte)
    chip = small_desk * sqrt(model.gpu.sms)
    foot = inside(store, style)
    all_desks = QRectF(
        min(cell.x() for cell in cells), foot.bottom() - px(7) - chip / 2, chip, chip
    )
    inner = inside(lens, style)
    ratio = sqrt((model.gpu.register_bytes or 0) / model.gpu.smem_bytes)
    largest, stacked = _largest_desk(inner, ratio, style)
    desk_side = _desk_side(largest, inner, ratio, style, model, stacked=stacked)
    fits = desk_side > 0
    desk_side = desk_side or 0.9 * largest  # beside names and bytes
    other = ratio * desk_side
    high = desk_side + other + px(44) if stacked else max(desk_side, other) + px(14)
    line = _line(inner, style, model)
    spare = inner.height() - px(15) - max(high, line * len(model.stored))
    inner.adjust(0, spare / 2, 0, -spare / 2)
    top = inner.y() + px(15)
    drawer = QRectF(inner.right() - other, top, other, other)
    desk = QRectF(drawer.x() - (px(8) if ratio else 0) - desk_side, top, desk_side, desk_side)
    if stacked:
        desk.moveLeft(inner.right() - max(desk_side, other))
        drawer.moveTo(desk.x(), desk.bottom() + px(30))
    rows, tensors = _tensors(inner, desk, style, model, fits=fits)
    return ScaleLayout(
        style, store, lens, cells, all_desks, desk_side / small_desk, desk, drawer, rows,
        tensors, tuple(footer),
    )  # fmt: skip


def _largest_desk(inner: QRectF, ratio: float, style: Style) -> tuple[float, bool]:
    """Return the largest possible side of a desk, and whether the drawer is then below it."""
    px = style.px
    beside = min(
        (inner.height() - px(30)) / max(ratio, 1), (0.68 * inner.width() - px(8)) / (1 + ratio)
    )
    below = min((inner.height() - px(60)) / (1 + ratio), 0.5 * inner.width() / max(ratio, 1))
    return (below, True) if ratio and below > beside else (beside, False)


def _cells(room: QRectF, count: int, *, from_right: bool) -> tuple[tuple[QRectF, ...], float]:
    """Return the `count` largest squares that fit, line by line from a corner, and their side."""
    side, across = max(
        (min(room.width() / n, room.height() / ceil(count / n)), n) for n in range(1, count + 1)
    )
    left = room.x() + (room.width() - side * across) / 2
    at = [divmod(n, across) for n in range(count)]
    if from_right:
        at = [(y, across - 1 - x) for y, x in at]
    return tuple(QRectF(left + x * side, room.y() + y * side, side, side) for y, x in at), side


def _desk_side(
    most: float, inner: QRectF, ratio: float, style: Style, model: ScaleModel, *, stacked: bool
) -> float:
    """Return the side of the largest desk beside which the run's tensors have room, or 0.

    Room for the tensors' bytes in words is left if the desk stays large.
    """
    px, font = style.px, style.text_font(11)
    line = _line(inner, style, model) - px(2)
    largest = max(model.stored.values())
    sizes = max(text_width(font, bytes_text(size)) for size in model.stored.values()) + px(6)
    for words, least in ((sizes, 0.7 * most), (0.0, px(_LEAST_DESK))):
        side = most
        while side >= max(least, px(_LEAST_DESK)):
            taken = max(1.0, ratio) * side if stacked else (1 + ratio) * side + px(8)
            free = inner.width() - taken - px(12) - _names_width(style, model) - words
            if largest * side * side / model.gpu.smem_bytes / line <= free:
                return side
            side *= 0.98
    return 0.0


def _line(inner: QRectF, style: Style, model: ScaleModel) -> float:
    """Return the height of the line of a tensor."""
    return min((inner.height() - style.px(15)) / len(model.stored), style.px(26))


def _names_width(style: Style, model: ScaleModel) -> float:
    font = style.text_font(11, bold=True)
    return max(text_width(font, short_name(name)) for name in model.stored) + style.px(6)


def _tensors(
    inner: QRectF, desk: QRectF, style: Style, model: ScaleModel, *, fits: bool
) -> tuple[dict[str, QRectF], dict[str, QRectF]]:
    """Return the line of each tensor left of the desk, and the tensor itself if all of them fit."""
    px = style.px
    names = _names_width(style, model)
    per_byte = desk.width() ** 2 / model.gpu.smem_bytes
    line = _line(inner, style, model)
    rows, tensors = {}, {}
    for n, (name, size) in enumerate(model.stored.items()):
        row = QRectF(inner.x(), inner.y() + px(15) + n * line, 0, line)
        row.setRight(desk.x() - px(12))
        rows[name] = row
        height = min(sqrt(size * per_byte), line - px(2))
        box = QRectF(row.x() + names, row.center().y() - height / 2, 0, height)
        box.setWidth(size * per_byte / height)
        if fits:
            tensors[name] = box
    return rows, tensors


def grain(chip: Chip, layout: ScaleLayout, model: ScaleModel, *, registers: bool) -> QRectF:
    """Return a tile at its true size, in its third of the desk or of the drawer."""
    slot = layout.slot(chip.slot, registers=registers)
    area = chip.bytes * layout.desk.width() ** 2 / model.gpu.smem_bytes
    width = min(sqrt(area), slot.width() * 0.94)
    height = area / width if width else 0.0
    centre = slot.center()
    return QRectF(centre.x() - width / 2, centre.y() - height / 2, width, height)


def scale_berths(motion: Motion, layout: ScaleLayout) -> dict[str, tuple[QRectF, QRectF]]:
    """Return, for each tensor that an op moves, its places in HBM and on the chip."""
    return {each.tensor: _way(each.tensor, motion, layout) for each in motion.after.op.moves}


def _way(tensor: str, motion: Motion, layout: ScaleLayout) -> tuple[QRectF, QRectF]:
    """Return where a tensor lies in HBM, and where its tile lies on the chip."""
    held = [*motion.before.on_chip, *motion.after.on_chip]
    shared = any(tile.name == tensor and tile.place == "shared" for tile in held)
    on_desk = shared or layout.drawer.isNull()
    end = layout.slot(slot_of(tensor), registers=not on_desk)
    row = layout.rows[tensor]
    return layout.tensors.get(tensor, QRectF(row.x(), row.y(), row.height(), row.height())), end


def paint_scale(painter: QPainter, state: MemoryState, layout: ScaleLayout) -> None:
    """Paint everything but tiles on their way."""
    model = scale_model(state.now)
    _paint_store(painter, model, layout)
    _paint_lens(painter, model, layout)
    _paint_desk(painter, model, layout)
    words, figures = layout.footer
    Text(model.words, align=CENTRE).paint(painter, layout.style, words)
    Text(requested(model.memory), "muted", CENTRE).paint(painter, layout.style, figures)


def _paint_store(painter: QPainter, model: ScaleModel, layout: ScaleLayout) -> None:
    style, theme, px = layout.style, layout.style.theme, layout.style.px
    amber = mixed(theme.hbm_line, theme.text, 0.55)
    titles = (f"HBM  {model.gpu.memory_gb} GB", "HBM")
    paint_ground(painter, layout.store, titles, theme.hbm_ground, theme.hbm_line, amber, style)
    fill = mixed(theme.hbm_ground, theme.hbm_line, 0.28)
    edge = mixed(theme.hbm_ground, theme.hbm_line, 0.75)
    for cell in layout.cells:
        painter.fillRect(cell, fill)
    _paint_shares(painter, model, layout)
    for cell in layout.cells:
        outline(painter, cell, edge, px(0.7))
    painter.fillRect(layout.all_desks, QColor(theme.sram_line))
    chip = layout.all_desks
    line = QRectF(chip.right() + px(4), chip.center().y() - px(8), 0, px(16))
    line.setRight(inside(layout.store, style).right())
    all_of = model.gpu.sms * model.gpu.smem_bytes
    every = f"{model.gpu.sms} SRAMs"
    texts = f"{every}: {bytes_text(all_of)}  ·  a square: 1 GB", f"{every}  ·  □ 1 GB", every
    Text(texts, "muted").paint(painter, style, line)


def _paint_shares(painter: QPainter, model: ScaleModel, layout: ScaleLayout) -> None:
    """Fill the part of the store that the run's tensors take, one after the other."""
    begin = 0.0
    for name, size in model.stored.items():
        end = begin + size / GB
        colour = layout.style.theme.tensor(name)
        for n in range(int(begin), min(ceil(end), len(layout.cells))):
            cell = layout.cells[n]
            left, right = max(begin - n, 0.0), min(end - n, 1.0)
            if layout.beside:
                left, right = 1 - right, 1 - left
            part = QRectF(cell.x() + left * cell.width(), cell.y(), 0, cell.height())
            part.setWidth((right - left) * cell.width())
            painter.fillRect(part, colour)
        begin = end


def _paint_lens(painter: QPainter, model: ScaleModel, layout: ScaleLayout) -> None:
    """Paint the magnifier: its part of the store, and the run's tensors in it."""
    style, theme, px = layout.style, layout.style.theme, layout.style.px
    first = layout.cells[0]
    size = max(layout.lens.width() / layout.magnified, px(4))
    beside = layout.beside
    mark = QRectF(first.right() - size if beside else first.x(), first.y(), size, size)
    line = QColor(theme.current)
    painter.setPen(layout.style.pen(line, 1, Qt.PenStyle.DashLine))
    edge, reach = (QPointF(0, px(9)), QPointF(0, px(4))) if beside else (QPointF(px(9), 0),) * 2
    centre = mark.center()
    end = (
        QPointF(layout.lens.x(), centre.y())
        if beside
        else QPointF(centre.x(), layout.lens.bottom())
    )
    ways = (
        (mark.topRight() if beside else mark.topLeft(), end - reach),
        (mark.bottomRight() if beside else mark.topRight(), end + edge),
    )
    for one, other in ways:
        painter.drawLine(one, other)
    outline(painter, mark, line, px(1.2))
    times = rounded_text(layout.magnified)
    larger = f"{times} times as long and wide"
    titles = f"magnified: {larger}", larger, f"× {times}"
    amber = mixed(theme.hbm_line, theme.text, 0.55)
    paint_ground(painter, layout.lens, titles, theme.hbm_ground, theme.current, amber, style)
    # In a low place many tensors have letters that are as low as their lines.
    low = min(min(row.height() for row in layout.rows.values()) / px(_LETTERS), 1.0)
    bold, small = style.text_font(11 * low, bold=True), style.text_font(11 * low)
    head = QRectF(layout.lens.x() + px(7), layout.desk.y() - px(15), 0, px(14))
    head.setRight(layout.desk.x() - px(8))
    words: tuple[str, ...] = ("in HBM", "HBM", "")
    if not layout.tensors:
        words = ("in HBM, too large to be drawn here", "in HBM, not drawn", *words)
    Text(words, "muted", size=11 * low).paint(painter, style, head)
    left = {
        name: layout.tensors[name].right() + px(5) if layout.tensors
        else row.x() + _names_width(style, model)
        for name, row in layout.rows.items()
    }  # fmt: skip
    sizes = {name: bytes_text(size) for name, size in model.stored.items()}
    said = all(
        text_width(small, sizes[name]) <= row.right() - left[name]
        for name, row in layout.rows.items()
    )
    for name, row in layout.rows.items():
        text = first_that_fits((short_name(name), name.partition("_")[0]), row.width(), bold)
        draw_text(painter, row, text, bold, theme.tensor(name))
        if layout.tensors:
            painter.fillRect(layout.tensors[name], theme.tensor(name))
        if said:
            place = QRectF(left[name], row.y(), row.right() - left[name], row.height())
            draw_text(painter, place, sizes[name], small, theme.muted, RIGHT)


def _paint_desk(painter: QPainter, model: ScaleModel, layout: ScaleLayout) -> None:
    """Paint the desk and the drawer, with the tiles on them."""
    style, theme, px = layout.style, layout.style.theme, layout.style.px
    memory = model.memory
    size = bytes_text(model.gpu.smem_bytes)
    title = "over the limit of" if memory.over else "SRAM of a block,"
    places = [(layout.desk, memory.shared, (title, size), False)]
    if not layout.drawer.isNull():
        size = bytes_text(model.gpu.register_bytes or 0)
        places.append((layout.drawer, memory.registers, ("registers", size), True))
    for place, chips, (name, size), registers in places:
        bad = memory.over and not registers
        painter.fillRect(place, QColor(theme.sram_ground))
        outline(painter, place, theme.bad if bad else theme.sram_line, px(1.4))
        size = size.replace(".0 ", " ")
        head = QRectF(place.x() - px(4), place.y() - px(15), place.width() + px(8), px(14))
        brief = name.partition(",")[0]
        texts = f"{name} {size}", f"{brief} {size}", brief, size, ""
        tone: Tone = "bad" if bad else ("sram_line", "text", 0.55)
        Text(texts, tone, CENTRE).paint(painter, style, head)
        for chip in chips:
            colour = theme.tensor(chip.tensor)
            box = grain(chip, layout, model, registers=registers)
            box = box.intersected(place) if box.height() > place.height() else box
            painter.fillRect(box, colour)
            if chip.fresh:
                ring = layout.style.inset(box, -2, -2, -2, -2)
                outline(painter, ring, theme.current, px(1))
            slot = layout.slot(chip.slot, registers=registers)
            under = QRectF(slot.x(), place.bottom() + px(1), slot.width(), px(14))
            names = *chip.names, chip.tensor[:1], ""
            Text(names, colour, CENTRE, bold=True).paint(painter, style, under)


def paint_grains(painter: QPainter, motion: Motion, share: float, layout: ScaleLayout) -> None:
    """Paint tiles on their way at their true sizes."""
    style, px = layout.style, layout.style.px
    per_byte = layout.desk.width() ** 2 / motion.after.program.workload.gpu.smem_bytes
    for flight in motion.flights:
        way = flight.bus(share)
        if not 0 < way < 1:
            continue
        start, end = (box.center() for box in _way(flight.move.tensor, motion, layout))
        if not flight.loads:
            start, end = end, start
        at = start + (end - start) * way
        colour = style.theme.tensor(flight.move.tensor)
        line = QColor(colour)
        line.setAlphaF(0.4)
        painter.setPen(layout.style.pen(line, 1, Qt.PenStyle.DashLine))
        painter.drawLine(start, end)
        side = sqrt(flight.move.bytes * per_byte)
        painter.fillRect(QRectF(at.x() - side / 2, at.y() - side / 2, side, side), colour)
        if side < px(10):  # a grain
            painter.setPen(layout.style.pen(style.theme.current, 1.2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawEllipse(at, px(6), px(6))
