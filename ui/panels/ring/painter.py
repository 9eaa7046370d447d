"""Paints a ring: the mask's square by steps, and beside it times of devices, or numbers of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, QSizeF
from PySide6.QtGui import QColor, QPainter, QPen

from ui.look.draw import CENTRE, LEFT, RIGHT, draw_text, mixed, outline, text_width, wrapped
from ui.look.heat import colour_map, finite_range, heat_image, pooled, signed_limit, word_image
from ui.look.names import first_that_fits, fitting, readable
from ui.look.theme import LABEL, Style, Theme
from ui.look.units import clock_text, time_text
from ui.panels.ring.model import CHOSEN, DONE, LATER, NOW, RingState, count_rows

MIN_SIZE = QSizeF(430, 260)
"""Below this the text shrinks."""
_SHARE = 0.5
"""Share of the height that the picture has at least, before words are left out."""
_SQUARE = 0.42
"""Most of the width that the mask's square takes."""
_WORK = 0.58
"""Share of a lane's height that its work takes; what is sent is below."""
_TINT = 0.3
"""Share of K's colour in a block."""
_AFTER = "0  "
"""As wide as what stands before a block: the number of its device."""
_BLOCK = 18
"""Height of a block at most, pixels."""
_EDGE, _GAP = 4, 3
"""Pixels between a block's words and its edges, and between a block and the lane."""
_MOST_PIXELS = 512
"""Rows of O that are painted, at most; of more, the largest of some are."""


@dataclass(frozen=True, slots=True)
class RingLayout:
    """Where everything is.

    Attributes
    ----------
    style : Style
        In which it is painted.
    square : QRectF
        The mask.
    lanes : tuple of QRectF
        The time axis of each device, without its name.
    names : float
        Width of the names left of the lanes.
    axis : QRectF
        The ends of the time axis.
    keys : QRectF
        What the colours stand for.
    told : QRectF
        What the marked device does.
    said : tuple of str
        The lines below.
    below : QRectF
        Their place.
    """

    style: Style
    square: QRectF
    lanes: tuple[QRectF, ...]
    names: float
    axis: QRectF
    keys: QRectF
    told: QRectF
    said: tuple[str, ...]
    below: QRectF

    def device_at(self, at: QPointF) -> int | None:
        """Return the device whose lane, or name, is at a place; None if none is."""
        for n, lane in enumerate(self.lanes):
            if lane.adjusted(-self.names, 0, 0, 0).contains(at):
                return n
        return None


def ring_layout(state: RingState, style: Style, rect: QRectF) -> RingLayout:
    """Return where everything is: sentences that have no room are left out from the last."""
    style = readable(fitting(style, rect, MIN_SIZE))
    px, font = style.px, style.text_font(LABEL)
    line = px(16)
    said = [wrapped(words, font, rect.width()) for words in state.words]
    fixed = line * 3.4
    while len(said) > 1 and (
        rect.height() - fixed - line * sum(map(len, said)) < _SHARE * rect.height()
    ):
        said.pop()
    lines = tuple(words for part in said for words in part)
    below = QRectF(rect.x(), rect.bottom() - line * len(lines), rect.width(), line * len(lines))
    told = QRectF(rect.x(), below.y() - line, rect.width(), line)
    keys = QRectF(rect.x(), told.y() - line, rect.width(), line)
    top, bottom = rect.y() + 1.25 * line, keys.y() - px(4)
    names_above = line
    side = max(min(_SQUARE * rect.width(), bottom - top - names_above), px(20))
    square = QRectF(rect.x() + 1, top + names_above, side, side)
    work = state.found.work
    count = 0 if work is None else work.ring.devices
    left = square.right() + px(12)
    names = text_width(font, f"{_AFTER}K, V 0") + px(2 * _EDGE + _GAP)
    axis = QRectF(left + names, bottom - line, rect.right() - left - names, line)
    high = (axis.y() - top) / max(count, 1)
    lanes = tuple(
        QRectF(axis.x(), top + n * high, axis.width(), max(high - px(3), px(4)))
        for n in range(count)
    )
    return RingLayout(style, square, lanes, names, axis, keys, told, lines, below)


def paint_ring(painter: QPainter, state: RingState, style: Style, rect: QRectF) -> None:
    """Paint the mask's square at the left, times or numbers at the right, words below."""
    lay = ring_layout(state, style, rect)
    style, theme = lay.style, lay.style.theme
    px, font, bold = style.px, style.text_font(LABEL), style.text_font(12.5, bold=True)
    title = first_that_fits(state.title, rect.width(), bold)
    draw_text(painter, QRectF(rect.x(), rect.y(), rect.width(), px(16)), title, bold, theme.text)
    if state.found.work is not None:
        _paint_square(painter, state, lay)
        if state.shows == "time":
            _paint_lanes(painter, state, lay)
        else:
            _paint_numbers(painter, state, lay)
        _paint_keys(painter, state, lay)
        told = first_that_fits(state.told, lay.told.width(), font)
        draw_text(painter, lay.told, told, font, theme.current)
    for n, words in enumerate(lay.said):
        place = QRectF(lay.below.x(), lay.below.y() + n * px(16), lay.below.width(), px(16))
        draw_text(painter, place, words, font, theme.muted)


def _tones(theme: Theme) -> tuple[QColor, ...]:
    """Return the colours of the kinds of pairs, in their order."""
    strong = theme.tensor("S")
    return (
        QColor(theme.panel),
        mixed(theme.panel, theme.muted, 0.25),
        mixed(theme.panel, strong, 0.45),
        QColor(strong),
        QColor(theme.current),
    )


def _paint_square(painter: QPainter, state: RingState, lay: RingLayout) -> None:
    """Paint which pairs are done, at work and to come."""
    theme, style, square = lay.style.theme, lay.style, lay.square
    font = style.text_font(LABEL)
    words = np.array([tone.rgba() for tone in _tones(theme)], dtype=np.uint32)
    line = style.px(16)
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
    painter.drawImage(square, word_image(words[state.kinds]))
    outline(painter, square.adjusted(-1, -1, 1, 1), theme.grid)
    above = QRectF(square.x(), square.y() - line, square.width(), line)
    axes = first_that_fits(("rows down, keys across", "rows, keys"), above.width(), font)
    draw_text(painter, above, axes, font, theme.muted, CENTRE)


def _paint_keys(painter: QPainter, state: RingState, lay: RingLayout) -> None:
    """Say in a line what the colours stand for."""
    theme, style, line = lay.style.theme, lay.style, lay.keys.height()
    font, x = style.text_font(LABEL), lay.keys.x()
    _, to_come, done, step, device = _tones(theme)
    named = [(device, "this device"), (step, "this step"), (done, "done"), (to_come, "to come")]
    if state.shows == "time":
        named.append((QColor(theme.tensor("K")), "on the links"))
    for tone, name in named:
        swatch = QRectF(x, lay.keys.y() + 0.2 * line, 0.6 * line, 0.6 * line)
        wide = text_width(font, name)
        painter.fillRect(swatch, tone)
        place = QRectF(x + line, lay.keys.y(), wide + 1, line)
        draw_text(painter, place, name, font, theme.muted, LEFT)
        x = place.right() + line


def _paint_lanes(painter: QPainter, state: RingState, lay: RingLayout) -> None:
    """Paint each device's work above what it sends, on one time axis."""
    found, style, theme = state.timeline, lay.style, lay.style.theme
    assert found is not None
    font, px = style.text_font(LABEL), style.px
    across = lay.axis.width() / (found.seconds or 1.0)
    tones = _tones(theme)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    for device, lane in enumerate(lay.lanes):
        chosen = device == state.device
        ink = theme.current if chosen else theme.text
        name = QRectF(lane.x() - lay.names, lane.y(), lay.names, lane.height())
        draw_text(painter, name, str(device), font, ink, LEFT)
        painter.fillRect(lane, QColor(theme.field))
        high = _WORK * lane.height()
        for step in range(len(lay.lanes)):
            x = lane.x() + across * float(found.begins[device, step])
            now = step == state.seen
            bar = QRectF(x, lane.y(), across * float(found.works[device, step]), high)
            kind = DONE if step < state.seen else LATER
            if now:
                kind = CHOSEN if chosen else NOW
            painter.fillRect(bar, tones[kind])
            if bar.width() > 0:
                outline(painter, bar, theme.field)
            number = str(step + 1)
            if bar.width() > text_width(font, number) + px(4) and high >= px(12):
                draw_text(painter, bar, number, font, theme.panel if now else theme.text, CENTRE)
            sent = across * float(found.sends[device, step])
            if sent:
                x = lane.x() + across * float(found.leaves[device, step])
                way = QRectF(x, lane.y() + high + px(1), sent, lane.height() - high - px(1))
                colour = QColor(theme.tensor("K"))
                painter.fillRect(way, colour if now else mixed(theme.field, colour, 0.45))
                outline(painter, way, theme.field)
    _paint_ways(painter, state, lay, across)
    _paint_blocks(painter, state, lay)
    middle = QRectF(lay.axis.center().x() - px(60), lay.axis.y(), px(120), lay.axis.height())
    draw_text(painter, lay.axis, "0", font, theme.muted, LEFT)
    half = clock_text(found.seconds / 2, found.seconds)
    draw_text(painter, middle, half, font, theme.muted, CENTRE)
    draw_text(painter, lay.axis, time_text(found.seconds), font, theme.muted, RIGHT)


def _paint_ways(painter: QPainter, state: RingState, lay: RingLayout, across: float) -> None:
    """Paint where the blocks of the step go: from each device to the next."""
    found, theme = state.timeline, lay.style.theme
    assert found is not None
    if state.seen >= len(lay.lanes) - 1:
        return
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(QColor(theme.tensor("K")), lay.style.px(1.4)))
    for device, (lane, other) in enumerate(zip(lay.lanes, lay.lanes[1:], strict=False)):
        arrives = found.leaves[device, state.seen] + found.sends[device, state.seen]
        x = lane.x() + across * float(arrives)
        at = QPointF(lane.x() + across * float(found.begins[device + 1, state.seen + 1]), other.y())
        painter.drawLine(QLineF(QPointF(x, lane.bottom()), at))


def _paint_blocks(painter: QPainter, state: RingState, lay: RingLayout) -> None:
    """Paint the block of K and V that each device has at hand, or that is on its way from it.

    What leaves the last device leaves below and comes to the first from above.
    """
    found, style, theme = state.timeline, lay.style, lay.style.theme
    assert found is not None
    font, px, lanes = style.text_font(LABEL), style.px, lay.lanes
    left = lanes[0].x() - lay.names + text_width(font, _AFTER)
    high = min(px(_BLOCK), lanes[0].height())
    pitch = lanes[1].y() - lanes[0].y()
    right = lanes[0].x() - px(_GAP)
    column = QRectF(QPointF(left, lanes[0].y()), QPointF(right, lanes[-1].bottom()))
    painter.save()
    painter.setClipRect(column)
    for device, lane in enumerate(lanes):
        if state.gone and not found.work.sent[device, state.seen]:
            continue
        words, last = f"K, V {state.block(device)}", device == len(lanes) - 1
        y = lane.center().y() - high / 2 + state.gone * pitch
        # The block of the last device is seen twice on its way: below it, and above the first.
        for top in (y, y - pitch * len(lanes)) if last and state.gone else (y,):
            box = QRectF(left, top, column.width(), high)
            painter.fillRect(box, mixed(theme.panel, QColor(theme.tensor("K")), _TINT))
            draw_text(painter, box, words, font, theme.text, CENTRE)
    painter.restore()


def _paint_numbers(painter: QPainter, state: RingState, lay: RingLayout) -> None:
    """Paint m, l and O of the marked device's rows after the marked step."""
    numbers, style, theme = state.found.numbers, lay.style, lay.style.theme
    left = lay.lanes[0].x() - lay.names
    font, line = style.text_font(LABEL), style.px(16)
    room = QRectF(QPointF(left, lay.lanes[0].y()), QPointF(lay.axis.right(), lay.axis.bottom()))
    if numbers is None or not len(state.rows):
        words = "No numbers are computed of so many pairs." if numbers is None else "No rows."
        draw_text(painter, room, first_that_fits((words, "—"), room.width(), font), font,
                  theme.muted, CENTRE)  # fmt: skip
        return
    heading = f"device {state.device}, {count_rows(state)}, after step {state.seen + 1}"
    short = f"device {state.device} after step {state.seen + 1}"
    head = QRectF(room.x(), room.y(), room.width(), line)
    draw_text(painter, head, first_that_fits((heading, short), room.width(), font), font,
              theme.current)  # fmt: skip
    last = QRectF(room.x(), room.bottom() - line, room.width(), line)
    if state.row_words:
        words = first_that_fits(state.row_words, room.width(), font)
        draw_text(painter, last, words, font, theme.text)
    box = QRectF(room.x(), room.y() + 2 * line, room.width(), room.height() - 3.2 * line)
    narrow = max(style.px(26), text_width(font, "m") + style.px(8))
    gap, rows = style.px(6), state.rows
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
    m, l, o = (each[state.seen, rows] for each in (numbers.m, numbers.l, numbers.o))
    m, l = m[:, None], l[:, None]
    top, largest = signed_limit(m) or 1.0, signed_limit(numbers.exact.astype(np.float32)) or 1.0
    wide = box.width() - 2 * (narrow + gap) - 2  # its frame is inside, too
    parts = (
        ("m", "m", m, narrow, -top, top),
        ("l", "ℓ", l, narrow, 0.0, finite_range(l)[1] or 1.0),
        ("O", "O", o, wide, -largest, largest),
    )
    x = box.x()
    for name, words, values, across, low, high in parts:
        place = QRectF(x, box.y(), across, box.height())
        x += across + gap
        shown = pooled(values, _MOST_PIXELS) if len(values) > _MOST_PIXELS else values
        image = heat_image(np.ascontiguousarray(shown), low, high, colour_map(theme, name))
        painter.drawImage(place, image)
        outline(painter, place.adjusted(-1, -1, 1, 1), theme.grid)
        title = QRectF(place.x(), place.y() - line, across, line)
        draw_text(painter, title, words, font, theme.text, CENTRE)
