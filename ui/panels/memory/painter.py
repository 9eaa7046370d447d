"""Memory traffic: two areas, HBM and SRAM, and the tiles that move between them."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from simulator.run.motion import Motion
from simulator.study.compare import at_scale
from ui.look.draw import CENTRE, LEFT, RIGHT, card, draw_text, mixed, outline, patterned, text_width
from ui.look.kept import draw_kept, kept, place_key
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
from ui.panels.memory.places import (
    LEGEND,
    SLOT_COUNT,
    MemoryLayout,
    legend_widths,
    memory_layout,
    short_name,
    slot_place,
    title_row,
)

_WIDEST_SIZE = "1023.9 MiB"
_LEAST_BAR = 12.0
_SMALL, _WIDEST_SMALL = 100 * 1024, "99.9 KiB"
"""Below so many bytes, what is written beside a bar is no wider than this."""


def paint_memory(painter: QPainter, state: MemoryState, style: Style, rect: QRectF) -> None:
    """Paint the memory traffic.

    Parameters
    ----------
    rect : QRectF
        The place, at least `MIN_SIZE`.
    """
    painter.save()
    if state.carried is not None:
        _paint_moving(painter, state, state.carried, style, rect)
    else:
        model = memory_model(state.now)
        layout = memory_layout(rect, style, len(model.lanes), len(model.tensors))
        _paint_still(painter, state, model, layout, state.share if state.moving else 1.0)
        _paint_lanes(painter, model, layout, [1.0] * len(model.lanes))
    painter.restore()


def _paint_moving(
    painter: QPainter, state: MemoryState, motion: Motion, style: Style, rect: QRectF
) -> None:
    """Paint tiles on their way, over what changes only when one of them has landed."""
    share = state.share
    place, landed = place_key(style, rect), motion.landed(share)
    model = kept(motion, ("memory", landed), lambda: memory_model(motion.at(share)))
    layout = kept(
        motion, ("memory", place),
        lambda: memory_layout(rect, style, len(model.lanes), len(model.tensors)),
    )  # fmt: skip
    key = ("memory picture", place, landed, state.baseline_bytes)
    draw_kept(
        painter, motion, key, rect, style.theme.panel,
        lambda inner: _paint_still(inner, state, model, layout, 1.0),
    )  # fmt: skip
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    _paint_lanes(painter, model, layout, [flight.bus(share) for flight in motion.flights])


def _paint_still(
    painter: QPainter, state: MemoryState, model: MemoryModel, layout: MemoryLayout, phase: float
) -> None:
    """Paint everything but tiles on their way; `phase` is how much of them is made on chip."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    bars = _paint_hbm(painter, model, layout)
    _paint_sram(painter, model, layout, phase)
    if not model.lanes:
        _paint_quiet_lane(painter, layout)
    _paint_figures(painter, model, layout, explains=bars and layout.legend.isNull())
    paint_whole_run(painter, state, layout.style, layout.footer)


def _paint_lanes(
    painter: QPainter, model: MemoryModel, layout: MemoryLayout, ways: Sequence[float]
) -> None:
    """Paint each tile on its way, and how much of that is behind it."""
    paint_lane = _paint_rising if layout.tall else _paint_lane
    for lane, place, way in zip(model.lanes, layout.lanes, ways, strict=False):
        paint_lane(painter, lane, layout.style, place, way)


def paint_whole_run(painter: QPainter, state: MemoryState, style: Style, place: QRectF) -> None:
    """Write what the whole run requests, and the baseline if its bytes are given."""
    program, font = state.snapshot.program, style.text_font(11)
    baseline = state.baseline_bytes
    scale = None if baseline is None else at_scale(program)
    texts = comparison(program.totals.bytes, baseline, scale, program.workload.algorithm)
    text = first_that_fits(texts, place.width(), font)
    draw_text(painter, place, text, font, style.theme.muted, CENTRE)


def paint_ground(
    painter: QPainter,
    ground: QRectF,
    titles: Sequence[str],
    fill: str,
    line: str,
    ink: QColor,
    style: Style,
    end: float | None = None,
) -> None:
    """Paint the background of a memory and the title that fits, up to `end` if that is given."""
    px = style.px
    card(painter, ground, fill, line, px(5), px(1.2))
    row = title_row(ground, style)
    if end is not None:
        row.setLeft(row.left() + px(3))
        row.setRight(end - px(6))
    fonts = [style.text_font(size, bold=True) for size in (12, 11)]
    font = font_that_fits(fonts, titles[0], row.width())
    text = first_that_fits(titles, row.width(), font)
    draw_text(painter, row, text, font, ink, CENTRE if end is None else LEFT)


def _paint_hbm(painter: QPainter, model: MemoryModel, layout: MemoryLayout) -> bool:
    """Paint what lies in HBM; return whether there was room for bars."""
    style, theme, px = layout.style, layout.style.theme, layout.style.px
    paint_ground(
        painter, layout.hbm, (f"HBM  {model.tbps:g} TB/s", "HBM"), theme.hbm_ground, theme.hbm_line,
        mixed(theme.hbm_line, theme.text, 0.55), style,
        layout.legend.x() if layout.tall else None,
    )  # fmt: skip
    if not layout.legend.isNull():
        _paint_hbm_legend(painter, layout.legend, style)
    bold, small = style.text_font(11, bold=True), style.text_font(11)
    largest = max(t.total for t in model.tensors)
    if layout.lines:
        return _paint_hbm_lines(painter, model, layout)
    for row, traffic in zip(layout.tensors, model.tensors, strict=True):
        bar_height = min(max(row.height() - px(16), px(4)), px(12))
        bar = QRectF(row.x(), row.bottom() - bar_height - px(2), row.width(), bar_height)
        words = QRectF(row.x(), row.y(), row.width(), bar.y() - row.y())
        so_far = bytes_text(traffic.read + traffic.written)
        left = words.width() - text_width(small, so_far) - px(6)
        name = first_that_fits(tensor_names(traffic.tensor), left, bold)
        draw_text(painter, words, name, bold, theme.tensor(traffic.tensor))
        draw_text(painter, words, so_far, small, theme.muted, RIGHT)
        _paint_traffic(painter, traffic, bar, largest, style)
        if model.pages and traffic.tensor == model.pages.tensor:
            used = max(bar.width() * traffic.total / largest, px(5))
            _paint_places(painter, model.pages, bar.adjusted(used + px(6), 0, 0, 0), style)
    return True


def _paint_hbm_lines(painter: QPainter, model: MemoryModel, layout: MemoryLayout) -> bool:
    """Paint each tensor as one line: its name, its bar if there is room for one, its bytes.

    Returns whether there was.
    """
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
        if model.pages and traffic.tensor == model.pages.tensor:
            used = max(bar.width() * traffic.total / largest, px(5))
            _paint_places(painter, model.pages, bar.adjusted(used + px(6), 0, 0, 0), style)
    return layout.tensors[0].width() - left - right >= px(_LEAST_BAR)


def _paint_hbm_legend(painter: QPainter, place: QRectF, style: Style) -> None:
    """Explain how bars are filled."""
    px, theme = style.px, style.theme
    font, swatch, gap = style.text_font(11), px(8), px(8)
    widths = legend_widths(style)
    x = place.center().x() - (sum(widths) + gap) / 2
    for word, width in zip(LEGEND, widths, strict=True):
        box = QRectF(x, place.center().y() - swatch / 2 + px(2), swatch, swatch)
        _fill_share(painter, box, theme.muted, style, written=word == "written")
        at = QRectF(box.right() + px(3), box.y() - px(2), width, px(12))
        draw_text(painter, at, word, font, theme.muted)
        x += width + gap


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
    """Paint one tensor's bar: its frame is the whole run, and it is filled up to the cursor."""
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


def _paint_places(painter: QPainter, pages: PagePlaces, bar: QRectF, style: Style) -> None:
    """Paint the places of HBM as a strip: those of the current tile are lit, free ones empty.

    Places that other sequences of a batch have are hatched.
    """
    theme, px = style.theme, style.px
    wide = bar.width() / pages.count
    gap = px(1) if wide > px(4) else 0.0
    colour = theme.tensor(pages.tensor)
    if gap:
        for place in range(pages.count):
            box = QRectF(bar.x() + place * wide, bar.y(), wide - gap, bar.height())
            if place not in pages.free:
                painter.fillRect(box, mixed(theme.hbm_ground, colour, 0.3))
            elif place in pages.others:
                ink = mixed(theme.hbm_ground, theme.text, 0.4)
                painter.fillRect(box, patterned(ink, Qt.BrushStyle.BDiagPattern, style))
            outline(painter, box, mixed(theme.hbm_ground, colour, 0.5), px(0.8))
    else:  # too many to tell apart: where the lit ones are can be seen
        painter.fillRect(bar, mixed(theme.hbm_ground, colour, 0.3))
    for place in pages.lit:
        box = QRectF(bar.x() + place * wide, bar.y(), max(wide - gap, px(2)), bar.height())
        painter.fillRect(box, QColor(theme.current))


def _paint_sram(painter: QPainter, model: MemoryModel, layout: MemoryLayout, phase: float) -> None:
    style, theme = layout.style, layout.style.theme
    green = mixed(theme.sram_line, theme.text, 0.55)
    paint_ground(
        painter, layout.sram, model.occupancies, theme.sram_ground, theme.sram_line,
        QColor(theme.bad) if model.over else green, style, layout.bar.x() if layout.tall else None,
    )  # fmt: skip
    _paint_chips(painter, model.shared, layout.shared, style, phase, solid=True)
    words = f"registers  {bytes_text(model.register_bytes)}"
    draw_text(painter, layout.between, words, style.text_font(11), theme.muted)
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
    font, small = style.text_font(12, bold=True), style.text_font(11)
    held = {chip.slot: chip for chip in chips}
    for slot in range(SLOT_COUNT):
        box = slot_place(place, slot, style)
        width, align = box.width(), CENTRE
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
        painter.drawRoundedRect(box.adjusted(px(1), px(1), -px(1), -px(1)), px(4), px(4))
        name = first_that_fits(chip.names, width - px(8), font)
        size = bytes_text(chip.bytes)
        brief = size.replace(".0 ", " ")
        thin = brief.replace(" ", "\u2009")  # else it would touch the frame
        size = first_that_fits((size, brief, thin), width - px(8), small)
        if box.height() >= px(34) and text_width(small, size) <= width - px(4):
            half = px(8)
            draw_text(painter, box.translated(0, half), size, small, theme.muted, CENTRE)
            box.translate(0, -half)
        elif beside := [
            (each, both)
            for each in chip.names
            if (both := text_width(font, each) + px(6) + text_width(small, size)) < width - px(8)
        ]:
            name, both = beside[0]
            line = QRectF(box.center().x() - both / 2, box.y(), both, box.height())
            draw_text(painter, line, size, small, theme.muted, RIGHT)
            box = line
            align = LEFT
        draw_text(painter, box, name, font, colour, align)
        painter.setOpacity(1.0)


def _paint_occupancy(painter: QPainter, model: MemoryModel, bar: QRectF, style: Style) -> None:
    px, theme = style.px, style.theme
    if model.over:
        font = style.text_font(11, bold=True)
        words = "over the limit"
        width = text_width(font, words) + px(4)
        label = QRectF(bar.right() - width, bar.center().y() - px(7), width, px(14))
        draw_text(painter, label, words, font, theme.bad, RIGHT)
        bar = QRectF(bar.x(), bar.y(), bar.width() - width - px(3), bar.height())
    painter.fillRect(bar, mixed(theme.sram_ground, theme.sram_line, 0.22))
    share = min(model.shared_bytes / model.limit, 1.0)
    if share:
        filled = QRectF(bar.x(), bar.y(), max(bar.width() * share, px(2)), bar.height())
        painter.fillRect(filled, QColor(theme.bad if model.over else theme.good))


def _paint_lane(
    painter: QPainter, lane: TileLane, style: Style, place: QRectF, phase: float
) -> None:
    px, theme = style.px, style.theme
    colour = theme.tensor(lane.tensor)
    font = style.text_font(11)
    label = QRectF(place.x(), place.y(), place.width(), px(14))
    text = first_that_fits(lane.labels, label.width(), font)
    draw_text(painter, label, text, font, colour, CENTRE)
    size = min(place.height() - label.height() - px(2), px(24))
    y = label.bottom() + (place.bottom() - label.bottom()) / 2
    start, end = place.x() + size / 2, place.right() - size / 2
    if not lane.loads:
        start, end = end, start
    x = start + (end - start) * phase
    painter.setPen(QPen(mixed(theme.panel, colour, 0.55), px(1.2), Qt.PenStyle.DashLine))
    painter.drawLine(QPointF(place.x(), y), QPointF(place.right(), y))
    painter.setPen(QPen(colour, px(1.6)))
    painter.drawLine(QPointF(place.x() if lane.loads else place.right(), y), QPointF(x, y))
    box = QRectF(x - size / 2, y - size / 2, size, size)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    painter.drawRoundedRect(box, px(3), px(3))
    _paint_arrow(painter, box, style, lane.loads)


def _paint_rising(
    painter: QPainter, lane: TileLane, style: Style, place: QRectF, phase: float
) -> None:
    """Paint a tile on its way up to the chip, or down, and its name and bytes beside it."""
    px, colour = style.px, style.theme.tensor(lane.tensor)
    bold, small = style.text_font(12, bold=True), style.text_font(11)
    size = min(px(22), place.height() / 2)
    words = max(text_width(bold, lane.name), text_width(small, bytes_text(lane.bytes)))
    x = max(place.center().x() - (size + px(6) + words) / 2, place.x() + px(2)) + size / 2
    top, bottom = place.y() + px(2), place.bottom() - px(2)
    begin, end = bottom - size / 2, top + size / 2
    if not lane.loads:
        begin, end = end, begin
    y = begin + (end - begin) * phase
    painter.setPen(QPen(mixed(style.theme.panel, colour, 0.55), px(1.2), Qt.PenStyle.DashLine))
    painter.drawLine(QPointF(x, top), QPointF(x, bottom))
    painter.setPen(QPen(colour, px(1.6)))
    painter.drawLine(QPointF(x, bottom if lane.loads else top), QPointF(x, y))
    box = QRectF(x - size / 2, y - size / 2, size, size)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    painter.drawRoundedRect(box, px(3), px(3))
    painter.save()
    painter.translate(box.center())
    painter.rotate(-90)
    _paint_arrow(painter, QRectF(-size / 2, -size / 2, size, size), style, lane.loads)
    painter.restore()
    label = QRectF(x + size / 2 + px(6), 0, 0, px(15))
    label.setRight(place.right())
    label.moveTop(place.center().y() - label.height())
    if text_width(small, bytes_text(lane.bytes)) > label.width():
        label.translate(0, label.height() / 2)
    else:
        below = label.translated(0, label.height())
        draw_text(painter, below, bytes_text(lane.bytes), small, style.theme.muted)
    draw_text(painter, label, lane.name, bold, colour)


def _paint_arrow(painter: QPainter, box: QRectF, style: Style, loads: bool) -> None:
    """Paint the direction inside the moving tile."""
    reach = box.width() * 0.2 * (1 if loads else -1)
    middle = box.center()
    head = QPolygonF(
        [
            QPointF(middle.x() - reach, middle.y() - abs(reach) * 1.2),
            QPointF(middle.x() + reach, middle.y()),
            QPointF(middle.x() - reach, middle.y() + abs(reach) * 1.2),
        ]
    )
    painter.setBrush(QColor(style.theme.panel))
    painter.drawPolygon(head)


def _paint_quiet_lane(painter: QPainter, layout: MemoryLayout) -> None:
    style, place = layout.style, layout.lanes[0]
    font = style.text_font(11)
    if layout.tall:
        draw_text(painter, place, "no tile moves", font, style.theme.muted, CENTRE)
        return
    painter.setPen(QPen(QColor(style.theme.faint), style.px(1.2), Qt.PenStyle.DashLine))
    y = place.center().y() + style.px(8)
    painter.drawLine(QPointF(place.x(), y), QPointF(place.right(), y))
    label = QRectF(place.x(), y - style.px(17), place.width(), style.px(14))
    draw_text(painter, label, "no tile moves", font, style.theme.muted, CENTRE)


def _paint_figures(
    painter: QPainter, model: MemoryModel, layout: MemoryLayout, *, explains: bool
) -> None:
    """Write what has been requested so far; the words say which of the three counts it is.

    Where bars have no legend of their own it also `explains` how they are filled.
    """
    style, place, theme = layout.style, layout.figures, layout.style.theme
    read, written = f"read {bytes_text(model.read)}", f"written {bytes_text(model.written)}"
    if layout.narrow:
        parts = ("requested:", read, "·", written)
        if explains and _paint_with_swatches(painter, place, parts, 11, style):
            return
        draw_text(painter, place, requested(model), style.text_font(11), theme.text, CENTRE)
        return
    height = place.height() / 3
    rows = [QRectF(place.x(), place.y() + n * height, place.width(), height) for n in range(3)]
    draw_text(painter, rows[0], "requested bytes", style.text_font(11), theme.muted, CENTRE)
    for row, words in zip(rows[1:], (read, written), strict=True):
        if not (explains and _paint_with_swatches(painter, row, (words,), 12, style)):
            draw_text(painter, row, words, style.text_font(12), theme.text, CENTRE)


def _paint_with_swatches(
    painter: QPainter, place: QRectF, parts: Sequence[str], size: float, style: Style
) -> bool:
    """Write parts side by side, what is counted with its filling before it; False: no room."""
    font, side, gap = style.text_font(size), style.px(8), style.px(4)
    filled = [next((word for word in LEGEND if part.startswith(word)), "") for part in parts]
    widths = [text_width(font, part) + 1 for part in parts]
    whole = sum(widths) + gap * (len(parts) - 1) + (side + gap) * sum(map(bool, filled))
    if whole > place.width():
        return False
    x = place.center().x() - whole / 2
    for part, word, width in zip(parts, filled, widths, strict=True):
        if word:
            box = QRectF(x, place.center().y() - side / 2, side, side)
            _fill_share(painter, box, style.theme.muted, style, written=word == LEGEND[1])
            x += side + gap
        at = QRectF(x, place.y(), width, place.height())
        draw_text(painter, at, part, font, style.theme.text)
        x += width + gap
    return True
