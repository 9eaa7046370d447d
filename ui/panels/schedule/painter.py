"""Paints thread blocks as bars: multiprocessors downwards, time across."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSizeF
from PySide6.QtGui import QColor, QPainter

from simulator.study.schedule.events import Events
from ui.look.draw import CENTRE, LEFT, RIGHT, draw_text, fitted, mixed, outline, text_width, wrapped
from ui.look.heat import hatching
from ui.look.kept import draw_kept
from ui.look.names import first_that_fits, fitting, readable
from ui.look.theme import LABEL, Style
from ui.look.units import clock_text, plural, time_text
from ui.panels.schedule.model import ScheduleState, TimelineRow

MIN_SIZE = QSizeF(430, 260)
"""Below this the text shrinks."""
_SHARE = 0.5
"""Share of the height that the bars have at least, before words are left out."""
_FAINTEST = 0.25
"""How much of its colour the block with the least work has."""
_TONES = 8
_LANE = 7
"""So high a lane is at least, if lanes with nothing on them take less room for it."""
_USED = 0.6
"""Most of the height that lanes get in this way."""


@dataclass(frozen=True, slots=True)
class ScheduleLayout:
    """Places of rows, axis and words.

    Attributes
    ----------
    style : Style
        In which it is painted.
    rows : tuple of (QRectF, QRectF)
        Words and bars of each row.
    axis : QRectF
        The ends of the time axis.
    told : QRectF
        The block that is told.
    said : tuple of str
        The lines below.
    below : QRectF
        Their place.
    """

    style: Style
    rows: tuple[tuple[QRectF, QRectF], ...]
    axis: QRectF
    told: QRectF
    said: tuple[str, ...]
    below: QRectF


def schedule_layout(state: ScheduleState, style: Style, rect: QRectF) -> ScheduleLayout:
    """Return where everything is: sentences that have no room are left out from the last.

    The first one stays, however low the panel is.
    """
    style = readable(fitting(style, rect, MIN_SIZE))
    px, font = style.px, style.text_font(LABEL)
    line = px(16)
    side = max(text_width(font, f"SM {state.program.workload.gpu.sms - 1}"), px(30)) + px(8)
    count = len(state.rows)
    said = [wrapped(words, font, rect.width()) for words in state.words]
    fixed = line * (1.25 + 2 + count * 1.15)
    bars = rect.height() - fixed
    while len(said) > 1 and bars - line * sum(map(len, said)) < _SHARE * rect.height():
        said.pop()
    lines = tuple(words for part in said for words in part)
    below = QRectF(rect.x(), rect.bottom() - line * len(lines), rect.width(), line * len(lines))
    told = QRectF(rect.x(), below.y() - line, rect.width(), line)
    axis = QRectF(rect.x() + side, told.y() - line, rect.width() - side, line)
    top = rect.y() + 1.25 * line
    each = max((axis.y() - top) / max(count, 1), px(8))
    rows = []
    for n in range(count):
        words = QRectF(rect.x(), top + n * each, rect.width(), 1.15 * line)
        high = max(each - 1.15 * line - px(5), px(4))
        rows.append((words, QRectF(axis.x(), words.bottom(), axis.width(), high)))
    return ScheduleLayout(style, tuple(rows), axis, told, lines, below)


def event_at(state: ScheduleState, lay: ScheduleLayout, at: QPointF) -> tuple[int, int] | None:
    """Return the row and the event at a place; None where there is none."""
    for n, (row, (_, bars)) in enumerate(zip(state.rows, lay.rows, strict=True)):
        seconds = 0.0 if row.events is None else state.across(row.events)
        if row.events is None or not bars.contains(at) or not seconds:
            continue
        down = (at.y() - bars.y()) / lane_height(row.events, bars, lay.style)
        found = row.events.at(down, (at.x() - bars.x()) / bars.width() * seconds)
        return None if found is None else (n, found)
    return None


def lane_height(events: Events, bars: QRectF, style: Style) -> float:
    """Return how high a lane with events is; those below the last of them share the rest."""
    all_alike = bars.height() / max(len(events.lanes), 1)
    if events.used == len(events.lanes) or not events.used:
        return all_alike
    return max(all_alike, min(style.px(_LANE), _USED * bars.height() / events.used))


def paint_schedule(painter: QPainter, state: ScheduleState, style: Style, rect: QRectF) -> None:
    """Paint the rows on one time axis, the blocks at work marked, and the words below."""
    lay = schedule_layout(state, style, rect)
    style, theme = lay.style, style.theme
    px, font, bold = style.px, style.text_font(LABEL), style.text_font(12.5, bold=True)
    title = first_that_fits(state.title, rect.width(), bold)
    draw_text(painter, QRectF(rect.x(), rect.y(), rect.width(), px(16)), title, bold, theme.text)
    for row, (words, bars) in zip(state.rows, lay.rows, strict=True):
        _paint_words(painter, row, lay, words)
        if row.events is None:
            for n, part in enumerate(wrapped(row.why, font, bars.width())):
                place = QRectF(bars.x(), bars.y() + n * px(16), bars.width(), px(16))
                draw_text(painter, place, part, font, theme.text)
            continue
        seconds = state.across(row.events)
        key = theme.name, style.scale, row.colour, seconds
        paint = partial(_paint_bars, row=row, style=style, bars=bars, seconds=seconds)
        draw_kept(painter, row.events, key, bars, theme.field, paint)
        _paint_lanes(painter, row.events, lay, bars)
        outline(painter, bars.adjusted(-1, -1, 1, 1), theme.grid)
        for n in state.working(row):
            _mark(painter, row.events, n, seconds, bars, theme.current, style)
    if state.pointed is not None:
        row_at, event = state.pointed
        events = state.rows[row_at].events
        if events is not None:
            bars = lay.rows[row_at][1]
            _mark(painter, events, event, state.across(events), bars, theme.text, style)
    if state.seconds:
        _paint_axis(painter, state.seconds, lay)
    if state.told:
        draw_text(painter, lay.told, state.told, font, theme.current)
    for n, words_of in enumerate(lay.said):
        place = QRectF(lay.below.x(), lay.below.y() + n * px(16), lay.below.width(), px(16))
        draw_text(painter, place, words_of, font, theme.muted)


def _paint_axis(painter: QPainter, seconds: float, lay: ScheduleLayout) -> None:
    style, axis, muted = lay.style, lay.axis, lay.style.theme.muted
    font, wide = style.text_font(LABEL), style.px(120)
    middle = QRectF(axis.center().x() - wide / 2, axis.y(), wide, axis.height())
    draw_text(painter, axis, "0", font, muted, LEFT)
    draw_text(painter, middle, clock_text(seconds / 2, seconds), font, muted, CENTRE)
    draw_text(painter, axis, time_text(seconds), font, muted, RIGHT)


def _paint_words(painter: QPainter, row: TimelineRow, lay: ScheduleLayout, place: QRectF) -> None:
    style, theme = lay.style, lay.style.theme
    bold, font = style.text_font(LABEL, bold=True), style.text_font(LABEL)
    wide = min(text_width(bold, row.title), 0.6 * place.width())
    draw_text(painter, QRectF(place.x(), place.y(), wide + 1, place.height()),
              fitted(bold, row.title, wide + 1), bold, theme.role(row.colour))  # fmt: skip
    rest = QRectF(place)
    rest.setLeft(place.x() + wide + style.px(12))
    if row.events is not None:
        words = first_that_fits(row.figures, rest.width(), font)
        draw_text(painter, rest, words, font, theme.text, RIGHT)


def _paint_lanes(painter: QPainter, events: Events, lay: ScheduleLayout, bars: QRectF) -> None:
    """Name the first and the last lane at the left, and say how many have nothing on them."""
    style, line = lay.style, lay.style.px(14)
    font, theme = style.text_font(LABEL), style.theme
    deep = events.used * lane_height(events, bars, style)
    left = lay.below.x()
    beside = bars.x() - left - style.px(5)
    names = {bars.y(): events.lanes[0]} if bars.height() >= line else {}
    if bars.height() >= 2 * line:
        names[bars.bottom() - line] = events.lanes[-1]
    for y, name in names.items():
        draw_text(painter, QRectF(left, y, beside, line), name, font, theme.muted, RIGHT)
    rest = len(events.lanes) - events.used
    if rest and bars.height() - deep >= 1.3 * line:
        words = f"{plural(rest, 'multiprocessor')} with nothing to do"
        wide = text_width(font, words) + style.px(16)
        middle = QPointF(bars.center().x(), bars.y() + (deep + bars.height()) / 2)
        place = QRectF(middle.x() - wide / 2, middle.y() - line / 2, wide, line)
        painter.fillRect(place, QColor(theme.field))
        draw_text(painter, place, words, font, theme.muted, CENTRE)


def _paint_bars(
    painter: QPainter, row: TimelineRow, style: Style, bars: QRectF, seconds: float
) -> None:
    events, theme = row.events, style.theme
    assert events is not None
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    colour = theme.role(row.colour)
    tones = [
        mixed(theme.field, colour, _FAINTEST + (1 - _FAINTEST) * tone / (_TONES - 1))
        for tone in range(_TONES)
    ]
    lane = lane_height(events, bars, style)
    unused = bars.adjusted(0, math.ceil(events.used * lane), 0, 0)
    painter.fillRect(unused, hatching(theme.field, theme.border, style.scale))
    across = bars.width() / (seconds or 1.0)
    left = np.floor(bars.x() + events.start * across)
    right = np.floor(bars.x() + events.end * across)
    top = np.floor(bars.y() + events.top * lane)
    bottom = np.floor(bars.y() + (events.top + events.height) * lane)
    # A gap tells neighbours apart, where there is room for one.
    wide = np.where(right - left >= 4, right - left - 1, np.maximum(right - left, 1))
    high = np.where(bottom - top >= 4, bottom - top - 1, np.maximum(bottom - top, 1))
    tone = np.round(events.weight * (_TONES - 1)).astype(int)
    some = events.end > events.start
    for n in np.flatnonzero(some).tolist():
        painter.fillRect(QRectF(left[n], top[n], wide[n], high[n]), tones[tone[n]])


def _mark(
    painter: QPainter,
    events: Events,
    event: int,
    seconds: float,
    bars: QRectF,
    colour: QColor | str,
    style: Style,
) -> None:
    """Frame an event, however small it is."""
    lane, across = lane_height(events, bars, style), bars.width() / (seconds or 1.0)
    box = QRectF(
        bars.x() + float(events.start[event]) * across,
        bars.y() + float(events.top[event]) * lane,
        max(float(events.end[event] - events.start[event]) * across, style.px(3)),
        max(float(events.height[event]) * lane, style.px(3)),
    )
    outline(painter, box.adjusted(-1, -1, 1, 1), colour, max(style.px(2), 2))
