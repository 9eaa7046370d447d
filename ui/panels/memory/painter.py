"""Memory traffic: two areas, HBM and SRAM, and the tiles that move between them."""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from simulator.problem.paging import TABLE
from simulator.run.motion import Motion
from simulator.study.compare import at_scale
from ui.kit.shapes import Text
from ui.look.draw import CENTRE, LEFT, RIGHT, card, draw_text, mixed, outline, patterned, text_width
from ui.look.kept import kept
from ui.look.names import first_that_fits, font_that_fits, tensor_names
from ui.look.theme import Style
from ui.look.units import bytes_text
from ui.panels.memory.model import (
    Chip,
    MemoryModel,
    MemoryState,
    PagePlaces,
    TensorTraffic,
    TileLane,
    comparison,
    memory_model,
    requested,
)
from ui.panels.memory.places import SLOT_COUNT, MemoryLayout, short_name, slot_place, title_row

_WIDEST_SIZE = "1023.9 MiB"
_LEAST_BAR = 12.0
_SMALL, _WIDEST_SMALL = 100 * 1024, "99.9 KiB"
"""Below so many bytes, the text beside a bar is no wider than this."""


def paint_memory(painter: QPainter, state: MemoryState, layout: MemoryLayout) -> None:
    """Paint everything but tiles on their way; fresh tiles on chip come with the share."""
    model = memory_model(state.now)
    _paint_hbm(painter, model, layout)
    whole = state.carried is not None or not state.moving
    _paint_sram(painter, model, layout, 1.0 if whole else state.share)
    if not model.lanes:
        _paint_quiet_lane(painter, layout)
    _paint_figures(painter, model, layout)
    paint_whole_run(painter, state, layout.style, layout.footer)
    if state.carried is None:
        _paint_lanes(painter, model.lanes, layout, [1.0] * len(model.lanes))


def paint_lanes(painter: QPainter, motion: Motion, share: float, layout: MemoryLayout) -> None:
    """Paint each tile on its way, and the part of the way behind it."""
    lanes = kept(motion, "lanes", lambda: memory_model(motion.after).lanes)
    _paint_lanes(painter, lanes, layout, [flight.bus(share) for flight in motion.flights])


def _paint_lanes(
    painter: QPainter, lanes: Sequence[TileLane], layout: MemoryLayout, ways: Sequence[float]
) -> None:
    paint_lane = _paint_rising if layout.tall else _paint_lane
    for lane, place, way in zip(lanes, layout.lanes, ways, strict=False):
        paint_lane(painter, lane, layout.style, place, way)


def paint_whole_run(painter: QPainter, state: MemoryState, style: Style, place: QRectF) -> None:
    """Write the bytes of the whole run, and of the baseline if they are given."""
    program, baseline = state.snapshot.program, state.baseline_bytes
    scale = None if baseline is None else at_scale(program)
    texts = comparison(program.totals.bytes, baseline, scale, program.workload.algorithm)
    Text(texts, "muted", CENTRE).paint(painter, style, place)


def paint_ground(
    painter: QPainter,
    ground: QRectF,
    titles: Sequence[str],
    fill: str,
    line: str,
    ink: QColor,
    style: Style,
) -> None:
    """Paint the background of a memory and the title that fits."""
    card(painter, ground, fill, line, style.px(5), style.px(1.2))
    row = title_row(ground, style)
    fonts = [style.text_font(size, bold=True) for size in (12, 11)]
    font = font_that_fits(fonts, titles[0], row.width())
    draw_text(painter, row, first_that_fits(titles, row.width(), font), font, ink, CENTRE)


def _paint_hbm(painter: QPainter, model: MemoryModel, layout: MemoryLayout) -> None:
    """Paint HBM and its tensors."""
    style, theme, px = layout.style, layout.style.theme, layout.style.px
    paint_ground(
        painter, layout.hbm, (f"HBM  {model.tbps:g} TB/s", "HBM"), theme.hbm_ground, theme.hbm_line,
        mixed(theme.hbm_line, theme.text, 0.55), style,
    )  # fmt: skip
    bold, small = style.text_font(11, bold=True), style.text_font(11)
    largest = max(t.total for t in model.tensors)
    if layout.lines:
        _paint_hbm_lines(painter, model, layout)
        return
    for row, traffic in zip(layout.tensors, model.tensors, strict=True):
        bar_height = min(max(row.height() - px(16), px(3)), px(12))
        bar = QRectF(row.x(), row.bottom() - bar_height - px(1), row.width(), bar_height)
        words = QRectF(row.x(), row.y(), row.width(), bar.y() - row.y())
        so_far = bytes_text(traffic.read + traffic.written)
        left = words.width() - text_width(small, so_far) - px(6)
        name = first_that_fits(tensor_names(traffic.tensor), left, bold)
        draw_text(painter, words, name, bold, theme.tensor(traffic.tensor))
        draw_text(painter, words, so_far, small, theme.muted, RIGHT)
        _paint_traffic(painter, traffic, bar, largest, style)


def _paint_hbm_lines(painter: QPainter, model: MemoryModel, layout: MemoryLayout) -> None:
    """Paint each tensor as one line: its name, its bar if there is room for one, its bytes."""
    style, theme, px = layout.style, layout.style.theme, layout.style.px
    largest = max(t.total for t in model.tensors)
    names = [short_name(t.tensor) for t in model.tensors]
    widest = _WIDEST_SMALL if largest < _SMALL else _WIDEST_SIZE
    for size in (12, 11):
        bold, small = style.text_font(size, bold=True), style.text_font(size)
        left = max(text_width(bold, name) for name in names) + px(8)
        right = text_width(small, widest) + px(2)
        room = layout.tensors[0]
        if room.height() >= px(14) and left + right <= room.width():
            break
    for row, name, traffic in zip(layout.tensors, names, model.tensors, strict=True):
        draw_text(painter, row, name, bold, theme.tensor(traffic.tensor))
        so_far = bytes_text(traffic.read + traffic.written)
        draw_text(painter, row, so_far, small, theme.muted, RIGHT)
        bar = row.adjusted(left, 0, -right, 0)
        if bar.width() < px(_LEAST_BAR):
            continue
        height = min(0.62 * row.height(), px(14))
        bar = QRectF(bar.x(), bar.center().y() - height / 2, bar.width(), height)
        _paint_traffic(painter, traffic, bar, largest, style)


def _fill_share(
    painter: QPainter, box: QRectF, colour: QColor | str, style: Style, *, written: bool
) -> None:
    """Fill a part of a bar: solid for read, hatched for written."""
    if written:
        painter.fillRect(box, mixed(style.theme.hbm_ground, colour, 0.35))
        painter.fillRect(box, patterned(colour, Qt.BrushStyle.BDiagPattern, style))
    else:
        painter.fillRect(box, QColor(colour))


def _paint_traffic(
    painter: QPainter, traffic: TensorTraffic, bar: QRectF, largest: int, style: Style
) -> None:
    """Paint one tensor's bar: its frame is the whole run, and it is filled up to the cursor.

    Beside the bar of a page table are the places of HBM.
    """
    theme = style.theme
    colour = theme.tensor(traffic.tensor)
    width = max(bar.width() * traffic.total / largest, style.px(5))
    frame = QRectF(bar.x(), bar.y(), width, bar.height())
    painter.fillRect(frame, mixed(theme.hbm_ground, colour, 0.15))
    read = width * traffic.read / traffic.total
    written = width * traffic.written / traffic.total
    _fill_share(painter, QRectF(bar.x(), bar.y(), read, bar.height()), colour, style, written=False)
    stored = QRectF(bar.x() + read, bar.y(), written, bar.height())
    _fill_share(painter, stored, colour, style, written=True)
    outline(painter, frame, mixed(theme.hbm_ground, colour, 0.7), style.px(0.8))
    if traffic.places:
        rest = bar.adjusted(width + style.px(6), 0, 0, 0)
        _paint_places(painter, traffic.places, rest, style)


def _paint_places(painter: QPainter, pages: PagePlaces, bar: QRectF, style: Style) -> None:
    """Paint the places of HBM as a strip: the current tile's places are lit, free ones empty.

    Places that other sequences of a batch have are hatched.
    """
    theme, px = style.theme, style.px
    wide = bar.width() / pages.count
    gap = px(1) if wide > px(4) else 0.0
    colour = theme.tensor(TABLE)
    if gap:
        for place in range(pages.count):
            box = QRectF(bar.x() + place * wide, bar.y(), wide - gap, bar.height())
            if place not in pages.free:
                painter.fillRect(box, mixed(theme.hbm_ground, colour, 0.3))
            elif place in pages.others:
                ink = mixed(theme.hbm_ground, theme.text, 0.4)
                painter.fillRect(box, patterned(ink, Qt.BrushStyle.BDiagPattern, style))
            outline(painter, box, mixed(theme.hbm_ground, colour, 0.5), px(0.8))
    else:  # too many to tell apart, but the lit ones can be seen
        painter.fillRect(bar, mixed(theme.hbm_ground, colour, 0.3))
    for place in pages.lit:
        box = QRectF(bar.x() + place * wide, bar.y(), max(wide - gap, px(2)), bar.height())
        painter.fillRect(box, QColor(theme.current))


def _paint_sram(painter: QPainter, model: MemoryModel, layout: MemoryLayout, phase: float) -> None:
    style, theme = layout.style, layout.style.theme
    green = mixed(theme.sram_line, theme.text, 0.55)
    paint_ground(
        painter, layout.sram, model.occupancies, theme.sram_ground, theme.sram_line,
        QColor(theme.bad) if model.over else green, style,
    )  # fmt: skip
    _paint_chips(painter, model.shared, layout.shared, style, phase, solid=True)
    words = f"registers  {bytes_text(model.register_bytes)}"
    Text(words, "muted").paint(painter, style, layout.between)
    _paint_chips(painter, model.registers, layout.registers, style, phase, solid=False)
    _paint_occupancy(painter, model, layout.bar, style)


def _paint_chips(
    painter: QPainter,
    chips: tuple[Chip, ...],
    place: QRectF,
    style: Style,
    phase: float,
    *,
    solid: bool,
) -> None:
    px, theme = style.px, style.theme
    held = {chip.slot: chip for chip in chips}
    for slot in range(SLOT_COUNT):
        box = slot_place(place, slot, style)
        chip = held.get(slot)
        if chip is None:
            outline(painter, box, mixed(theme.sram_ground, theme.sram_line, 0.3), px(1), px(4))
            continue
        colour = theme.tensor(chip.tensor)
        painter.setOpacity(0.3 + 0.7 * phase if chip.fresh else 1.0)
        pen = QPen(colour, px(2) if chip.fresh else px(1.2))
        if not solid:
            pen.setStyle(Qt.PenStyle.DashLine)
        painter.setPen(pen)
        painter.setBrush(mixed(theme.sram_ground, colour, 0.28) if solid else Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(style.inset(box, 1, 1, 1, 1), px(4), px(4))
        write_chip(painter, chip, box, style, colour, theme.muted)
        painter.setOpacity(1.0)


def write_chip(
    painter: QPainter, chip: Chip, box: QRectF, style: Style, ink: QColor | str, quiet: str
) -> None:
    """Write name and bytes of a tile: below each other, beside each other, or the name alone."""
    px, room = style.px, box.width() - style.px(8)
    bold, small = style.text_font(12, bold=True), style.text_font(11)
    size = bytes_text(chip.bytes)
    brief = size.replace(".0 ", " ")
    thin = brief.replace(" ", "\u2009")  # else it would touch the frame
    size = first_that_fits((size, brief, thin), room, small)
    wide = text_width(small, size)
    beside = [each for each in chip.names if text_width(bold, each) + px(6) + wide < room]
    name = first_that_fits(chip.names, box.width() - px(2), bold)
    if box.height() >= px(34) and wide <= room + px(4):
        draw_text(painter, box.translated(0, px(8)), size, small, quiet, CENTRE)
        draw_text(painter, box.translated(0, -px(8)), name, bold, ink, CENTRE)
    elif beside:
        both = text_width(bold, beside[0]) + px(6) + wide
        line = QRectF(box.center().x() - both / 2, box.y(), both, box.height())
        draw_text(painter, line, size, small, quiet, RIGHT)
        draw_text(painter, line, beside[0], bold, ink, LEFT)
    else:
        draw_text(painter, box, name, bold, ink, CENTRE)


def _paint_occupancy(painter: QPainter, model: MemoryModel, bar: QRectF, style: Style) -> None:
    px, theme = style.px, style.theme
    if model.over:
        words = Text("over the limit", "bad", RIGHT, bold=True)
        width = words.width(style) + px(3)
        place = QRectF(bar.right() - width, bar.center().y() - px(7), width, px(14))
        words.paint(painter, style, place)
        bar = bar.adjusted(0, 0, -width - px(3), 0)
    painter.fillRect(bar, mixed(theme.sram_ground, theme.sram_line, 0.22))
    share = min(model.shared_bytes / model.limit, 1.0)
    if share:
        filled = QRectF(bar.x(), bar.y(), max(bar.width() * share, px(2)), bar.height())
        painter.fillRect(filled, QColor(theme.bad if model.over else theme.good))


def _paint_lane(painter: QPainter, lane: TileLane, style: Style, place: QRectF, way: float) -> None:
    px, line = style.px, style.px(14)
    label = QRectF(place.x(), place.y(), place.width(), line)
    Text(lane.labels, style.theme.tensor(lane.tensor), CENTRE).paint(painter, style, label)
    y = (label.bottom() + place.bottom()) / 2
    size = min(place.height() - line - px(2), px(24))
    _paint_way(painter, lane, style, QPointF(place.x(), y), QPointF(place.right(), y), size, way)


def _paint_rising(
    painter: QPainter, lane: TileLane, style: Style, place: QRectF, way: float
) -> None:
    """Paint a tile on its way up to the chip, or down, and its name and bytes beside it."""
    px, colour = style.px, style.theme.tensor(lane.tensor)
    bold, small = style.text_font(12, bold=True), style.text_font(11)
    size, held = min(px(22), place.height() / 2), bytes_text(lane.bytes)
    words = max(text_width(bold, lane.name), text_width(small, held))
    x = max(place.center().x() - (size + px(6) + words) / 2, place.x() + px(2)) + size / 2
    low, high = QPointF(x, place.bottom() - px(2)), QPointF(x, place.y() + px(2))
    _paint_way(painter, lane, style, low, high, size, way)
    label = QRectF(x + size / 2 + px(6), place.center().y() - px(15), 0, px(15))
    label.setRight(place.right())
    if text_width(small, held) > label.width():
        label.translate(0, label.height() / 2)
    else:
        draw_text(painter, label.translated(0, label.height()), held, small, style.theme.muted)
    draw_text(painter, label, lane.name, bold, colour)


def _paint_way(
    painter: QPainter, lane: TileLane, style: Style, hbm: QPointF, chip: QPointF, size: float,
    way: float,
) -> None:  # fmt: skip
    """Paint a way between the memories, the part behind the tile, and the tile."""
    px, colour = style.px, style.theme.tensor(lane.tensor)
    begin, end = (hbm, chip) if lane.loads else (chip, hbm)
    on = (end - begin) * (1 / (hypot(end.x() - begin.x(), end.y() - begin.y()) or 1.0))
    at = begin + on * (size / 2) + (end - begin - on * size) * way
    painter.setPen(style.pen(mixed(style.theme.panel, colour, 0.55), 1.2, Qt.PenStyle.DashLine))
    painter.drawLine(hbm, chip)
    painter.setPen(style.pen(colour, 1.6))
    painter.drawLine(begin, at)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    box = QRectF(at.x() - size / 2, at.y() - size / 2, size, size)
    painter.drawRoundedRect(box, px(3), px(3))
    painter.setBrush(QColor(style.theme.panel))
    ahead, aside = on * (0.2 * size), QPointF(-on.y(), on.x()) * (0.24 * size)
    painter.drawPolygon(QPolygonF([at - ahead - aside, at + ahead, at - ahead + aside]))


def _paint_quiet_lane(painter: QPainter, layout: MemoryLayout) -> None:
    style, place = layout.style, layout.lanes[0]
    if not layout.tall:
        painter.setPen(style.pen(style.theme.faint, 1.2, Qt.PenStyle.DashLine))
        y = place.center().y() + style.px(8)
        painter.drawLine(QPointF(place.x(), y), QPointF(place.right(), y))
        place = QRectF(place.x(), y - style.px(17), place.width(), style.px(14))
    Text("no tile moves", "muted", CENTRE).paint(painter, style, place)


def _paint_figures(painter: QPainter, model: MemoryModel, layout: MemoryLayout) -> None:
    """Write the bytes requested so far, with a sample of the bar's fill before each."""
    style, place = layout.style, layout.figures
    font, side, gap = style.text_font(11), style.px(8), style.px(4)
    parts = ("requested:", f"read {bytes_text(model.read)}", "·",
             f"written {bytes_text(model.written)}")  # fmt: skip
    widths = [text_width(font, part) + 1 for part in parts]
    x = place.center().x() - (sum(widths) + 5 * gap + 2 * side) / 2
    if x < place.x():
        draw_text(painter, place, requested(model), font, style.theme.text, CENTRE)
        return
    for n, (part, width) in enumerate(zip(parts, widths, strict=True)):
        if n in (1, 3):
            box = QRectF(x, place.center().y() - side / 2, side, side)
            _fill_share(painter, box, style.theme.muted, style, written=n == 3)
            x += side + gap
        at = QRectF(x, place.y(), width, place.height())
        draw_text(painter, at, part, font, style.theme.text)
        x += width + gap
