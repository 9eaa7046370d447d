"""Memory traffic: two areas, HBM and SRAM, and the tiles that move between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPen, QPolygonF

from simulator.run.motion import Motion
from simulator.run.snapshot import Snapshot
from simulator.study.compare import at_scale
from ui.look.draw import CENTRE, RIGHT, card, draw_text, mixed, outline, text_width
from ui.look.names import (
    first_that_fits,
    fitting,
    font_that_fits,
    tensor_names,
)
from ui.look.theme import Style
from ui.look.units import bytes_text
from ui.panels.memory.model import (
    Chip,
    Lane,
    MemoryModel,
    TensorTraffic,
    comparison,
    memory_model,
    slot_of,
)

MIN_SIZE = QSizeF(300, 170)
_SLOT_COUNT = 3
_WIDEST_FIGURE = "written 1023.9 MiB"


@dataclass(frozen=True, slots=True)
class MemoryLayout:
    """The places of everything.

    Attributes
    ----------
    style : Style
        With the text scale that fits.
    hbm, sram : QRectF
        The outer columns.
    lanes : tuple of QRectF
        One for each moved tile.
    figures : QRectF
        Bytes so far: below the lanes, or one line below everything if they are too narrow.
    narrow : bool
        Whether it is one line.
    footer : QRectF
        The whole run.
    """

    style: Style
    hbm: QRectF
    sram: QRectF
    lanes: tuple[QRectF, ...]
    figures: QRectF
    narrow: bool
    footer: QRectF


def memory_layout(rect: QRectF, style: Style, lanes: int) -> MemoryLayout:
    """Return the places of a picture with so many moved tiles."""
    style = fitting(style, rect, MIN_SIZE)
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
    count = max(lanes, 1)
    height = min(room / count, px(46))
    first = middle.y() + (room - height * count) / 2
    places = tuple(
        QRectF(middle.x(), first + n * height, middle.width(), height) for n in range(count)
    )
    footer = QRectF(rect.x(), rect.bottom() - px(15), rect.width(), px(15))
    return MemoryLayout(style, hbm, sram, places, figures, narrow, footer)


def paint_memory(
    painter: QPainter,
    snapshot: Snapshot,
    style: Style,
    rect: QRectF,
    *,
    baseline_bytes: int | None = None,
    motion: Motion | None = None,
    share: float = 1.0,
) -> None:
    """Paint the memory traffic at a snapshot.

    Parameters
    ----------
    painter : QPainter
        Where to.
    snapshot : Snapshot
        The state.
    style : Style
        Colours and text scale.
    rect : QRectF
        The place, at least `MIN_SIZE`.
    baseline_bytes : int, optional
        What naive requests in its whole run (`baseline_total`).
    motion : Motion, optional
        The op that leads to the state, while it is being done.
    share : float
        How much of it has been done, 0 to 1.
    """
    if motion is not None:
        snapshot = motion.at(share)
    model = memory_model(snapshot)
    layout = memory_layout(rect, style, len(model.lanes))
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    _paint_hbm(painter, model, layout)
    moving = motion is not None and 0 < share < 1
    _paint_sram(painter, model, layout, share if moving and not model.lanes else 1.0)
    if model.lanes:
        ways = [flight.bus(share) for flight in motion.flights] if motion and moving else None
        for n, (lane, place) in enumerate(zip(model.lanes, layout.lanes, strict=True)):
            _paint_lane(painter, lane, layout.style, place, ways[n] if ways else 1.0)
    else:
        _paint_quiet_lane(painter, layout)
    _paint_figures(painter, model, layout)
    font = layout.style.text_font(11)
    scale = None if baseline_bytes is None else at_scale(snapshot.program)
    texts = comparison(model.run, baseline_bytes, scale, snapshot.program.workload.algorithm)
    text = first_that_fits(texts, layout.footer.width(), font)
    draw_text(painter, layout.footer, text, font, layout.style.theme.muted, CENTRE)
    painter.restore()


def _title_row(ground: QRectF, style: Style) -> QRectF:
    px = style.px
    return QRectF(ground.x() + px(4), ground.y() + px(4), ground.width() - px(8), px(16))


def _inside(ground: QRectF, style: Style) -> QRectF:
    """Return the place under the title of a memory."""
    px = style.px
    inner = ground.adjusted(px(7), 0, -px(7), -px(6))
    inner.setTop(_title_row(ground, style).bottom() + px(3))
    return inner


def _paint_ground(
    painter: QPainter,
    ground: QRectF,
    titles: Sequence[str],
    fill: str,
    line: str,
    ink: QColor,
    style: Style,
) -> None:
    """Paint the background of a memory and the title that fits."""
    px = style.px
    card(painter, ground, fill, line, px(5), px(1.2))
    row = _title_row(ground, style)
    fonts = [style.text_font(size, bold=True) for size in (12, 11)]
    font = font_that_fits(fonts, titles[0], row.width())
    draw_text(painter, row, first_that_fits(titles, row.width(), font), font, ink, CENTRE)


def _hbm_rows(model: MemoryModel, layout: MemoryLayout) -> tuple[list[QRectF], QRectF]:
    """Return the place of each tensor, and of the legend: null where there is no room for it."""
    px, inner = layout.style.px, _inside(layout.hbm, layout.style)
    foot = QRectF(inner.x(), inner.bottom() - px(13), inner.width(), px(13))
    room = inner.height() - foot.height()
    widths = _legend_widths(layout.style)
    if room < len(model.tensors) * px(18) or sum(widths) + px(8) > foot.width():
        foot, room = QRectF(), inner.height()
    height = min(room / len(model.tensors), px(44))
    rows = [
        QRectF(inner.x(), inner.y() + n * height, inner.width(), height)
        for n in range(len(model.tensors))
    ]
    return rows, foot


def _sram_places(layout: MemoryLayout) -> tuple[QRectF, QRectF, QRectF, QRectF]:
    """Return the places of shared memory, of the words between, of registers, of the bar."""
    px, inner = layout.style.px, _inside(layout.sram, layout.style)
    heading, bar_height = px(15), px(7)
    height = min((inner.height() - heading - bar_height - px(6)) / 2, px(110))
    shared = QRectF(inner.x(), inner.y(), inner.width(), height)
    between = QRectF(inner.x(), shared.bottom(), inner.width(), heading)
    registers = QRectF(inner.x(), between.bottom(), inner.width(), height)
    bar = QRectF(inner.x(), inner.bottom() - bar_height, inner.width(), bar_height)
    return shared, between, registers, bar


def _slot(place: QRectF, slot: int, style: Style) -> QRectF:
    gap = style.px(4)
    width = (place.width() - gap * (_SLOT_COUNT - 1)) / _SLOT_COUNT
    return QRectF(place.x() + slot * (width + gap), place.y(), width, place.height())


def memory_berths(motion: Motion, style: Style, rect: QRectF) -> dict[str, tuple[QRectF, QRectF]]:
    """Return, for each tensor that an op moves, its places in HBM and on the chip.

    Parameters
    ----------
    motion : Motion
        The op.
    style, rect
        As for `paint_memory`.
    """
    model = memory_model(motion.after)
    layout = memory_layout(rect, style, len(model.lanes))
    rows = dict(zip((t.tensor for t in model.tensors), _hbm_rows(model, layout)[0], strict=True))
    shared, _, registers, _ = _sram_places(layout)
    chips = [*memory_model(motion.before).shared, *model.shared]
    slots = {chip.tensor: _slot(shared, chip.slot, layout.style) for chip in chips}
    return {
        lane.tensor: (
            rows[lane.tensor],
            slots.get(lane.tensor, _slot(registers, slot_of(lane.tensor), layout.style)),
        )
        for lane in model.lanes
    }


def _paint_hbm(painter: QPainter, model: MemoryModel, layout: MemoryLayout) -> None:
    style, theme, px = layout.style, layout.style.theme, layout.style.px
    _paint_ground(
        painter, layout.hbm, (f"HBM  {model.tbps:g} TB/s", "HBM"), theme.hbm_ground, theme.hbm_line,
        mixed(theme.hbm_line, theme.text, 0.55), style,
    )  # fmt: skip
    rows, foot = _hbm_rows(model, layout)
    if not foot.isNull():
        _paint_hbm_legend(painter, foot, style)
    bold, small = style.text_font(11, bold=True), style.text_font(11)
    largest = max(t.total for t in model.tensors)
    for row, traffic in zip(rows, model.tensors, strict=True):
        bar_height = min(max(row.height() - px(16), px(4)), px(12))
        bar = QRectF(row.x(), row.bottom() - bar_height - px(2), row.width(), bar_height)
        words = QRectF(row.x(), row.y(), row.width(), bar.y() - row.y())
        so_far = bytes_text(traffic.read + traffic.written)
        left = words.width() - text_width(small, so_far) - px(6)
        name = first_that_fits(tensor_names(traffic.tensor), left, bold)
        draw_text(painter, words, name, bold, theme.tensor(traffic.tensor))
        draw_text(painter, words, so_far, small, theme.muted, RIGHT)
        _paint_traffic(painter, traffic, bar, largest, style)


_LEGEND = "read", "written"


def _legend_widths(style: Style) -> list[float]:
    font = style.text_font(11)
    return [style.px(11) + text_width(font, word) + 1 for word in _LEGEND]


def _paint_hbm_legend(painter: QPainter, place: QRectF, style: Style) -> None:
    """Explain how bars are filled."""
    px, theme = style.px, style.theme
    font, swatch, gap = style.text_font(11), px(8), px(8)
    widths = _legend_widths(style)
    x = place.center().x() - (sum(widths) + gap) / 2
    for word, width in zip(_LEGEND, widths, strict=True):
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
        painter.fillRect(box, QBrush(QColor(colour), Qt.BrushStyle.BDiagPattern))
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


def _paint_sram(painter: QPainter, model: MemoryModel, layout: MemoryLayout, phase: float) -> None:
    style, theme = layout.style, layout.style.theme
    green = mixed(theme.sram_line, theme.text, 0.55)
    _paint_ground(
        painter, layout.sram, model.occupancies, theme.sram_ground, theme.sram_line,
        QColor(theme.bad) if model.over else green, style,
    )  # fmt: skip
    shared, between, registers, bar = _sram_places(layout)
    _paint_chips(painter, model.shared, shared, style, phase, solid=True)
    words = f"registers  {bytes_text(model.register_bytes)}"
    draw_text(painter, between, words, style.text_font(11), theme.muted)
    _paint_chips(painter, model.registers, registers, style, phase, solid=False)
    _paint_occupancy(painter, model, bar, style)


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
    for slot in range(_SLOT_COUNT):
        box = _slot(place, slot, style)
        width = box.width()
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
        size = first_that_fits((size, size.replace(".0 ", " ")), width - px(8), small)
        if box.height() >= px(34) and text_width(small, size) <= width - px(4):
            half = px(8)
            draw_text(painter, box.translated(0, half), size, small, theme.muted, CENTRE)
            box.translate(0, -half)
        draw_text(painter, box, name, font, colour, CENTRE)
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


def _paint_lane(painter: QPainter, lane: Lane, style: Style, place: QRectF, phase: float) -> None:
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
    painter.setPen(QPen(QColor(style.theme.faint), style.px(1.2), Qt.PenStyle.DashLine))
    y = place.center().y() + style.px(8)
    painter.drawLine(QPointF(place.x(), y), QPointF(place.right(), y))
    label = QRectF(place.x(), y - style.px(17), place.width(), style.px(14))
    draw_text(painter, label, "no tile moves", font, style.theme.muted, CENTRE)


def _paint_figures(painter: QPainter, model: MemoryModel, layout: MemoryLayout) -> None:
    """Write what has been requested so far; the words say which of the three counts it is."""
    style, place, theme = layout.style, layout.figures, layout.style.theme
    read, written = f"read {bytes_text(model.read)}", f"written {bytes_text(model.written)}"
    if layout.narrow:
        words = f"requested: {read}  ·  {written}"
        draw_text(painter, place, words, style.text_font(11), theme.text, CENTRE)
        return
    height = place.height() / 3
    rows = [QRectF(place.x(), place.y() + n * height, place.width(), height) for n in range(3)]
    draw_text(painter, rows[0], "requested bytes", style.text_font(11), theme.muted, CENTRE)
    for row, words in zip(rows[1:], (read, written), strict=True):
        draw_text(painter, row, words, style.text_font(12), theme.text, CENTRE)
