"""The race as a picture: for each algorithm a lane, its bar and its units; then the factor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from PySide6.QtCore import QLineF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from simulator.study.compare import Comparison
from simulator.study.race import Race, RaceLane, Standing
from ui.look.draw import RIGHT, draw_text, hairline, mixed, outline, text_width, wrapped
from ui.look.names import first_that_fits, fitting
from ui.look.theme import Style
from ui.panels.compare.race_words import (
    WIDEST_WAIT,
    bytes_words,
    clock_words,
    notes,
    progress_words,
    race_clock,
    race_title,
    result_words,
    verdict,
    waiting_words,
)
from ui.panels.compare.words import fitting_sentences, title

MIN_SIZE = QSizeF(540, 220)
_TALL = 62.0
"""Height of a lane, at scale 1, from which it has words below its bar, too."""
_HIGHEST = 130.0
"""Most height of a lane at scale 1: in a tall picture they stay together."""
_FLAG = 8.0
"""Width of the finish line at scale 1."""


@dataclass(frozen=True, slots=True)
class RaceLayout:
    """The places of everything."""

    style: Style  # with the text scale that fits
    caption: QRectF  # what runs
    lanes: tuple[QRectF, ...]  # one for each algorithm, from the start line to the finish line
    units: tuple[QRectF, ...]  # beside each lane, its arithmetic units
    flag: QRectF  # the finish line
    band: QRectF  # the clock, and at the end the factor
    footer: tuple[QRectF, ...]  # its lines
    notes: tuple[str, ...]  # what they say


def race_layout(rect: QRectF, style: Style, race: Race) -> RaceLayout:
    """Return the places of the lanes and of what is around them."""
    style, lanes = fitting(style, rect, MIN_SIZE), len(race.lanes)
    px, height = style.px, rect.height()
    most = 4 if height >= px(400) else 2 if height >= px(280) else 1
    said = _fitting_notes(race, style, rect.width(), most)
    first = QRectF(rect.x(), rect.bottom() - len(said) * px(15), rect.width(), px(15))
    footer = tuple(first.translated(0, n * px(15)) for n in range(len(said)))
    caption = QRectF(rect.x(), rect.y(), rect.width(), px(18))
    tall = px(62) if height >= px(400) else px(48) if height >= px(280) else px(34)
    band = QRectF(rect.x(), first.y() - px(3) - tall, rect.width(), tall)
    field = QRectF(rect.x(), caption.bottom() + px(3), rect.width(), 0)
    field.setBottom(band.y() - px(3))
    over = field.height() - lanes * px(_HIGHEST)
    if over > 0:
        field.adjust(0, over / 2, 0, -over / 2)
    room = min(max(0.21 * rect.width(), px(104)), px(260))
    track = rect.width() - room - px(_FLAG + 12) - px(4)
    flag = QRectF(field.x() + px(4) + track, field.y(), px(_FLAG), field.height())
    each = field.height() / lanes
    boxes = [QRectF(field.x() + px(4), field.y() + n * each, track, each) for n in range(lanes)]
    beside = [QRectF(rect.right() - room, box.y(), room, each) for box in boxes]
    return RaceLayout(style, caption, tuple(boxes), tuple(beside), flag, band, footer, said)


def _fitting_notes(race: Race, style: Style, width: float, room: int) -> tuple[str, ...]:
    """Return lines with all notes, as long as they fit; else with the most important ones.

    Each begins a line, or if there are too few they follow each other.
    """
    said, font = notes(race), style.text_font(11)
    for brief in range(max(map(len, said))):
        texts = tuple(sentence[min(brief, len(sentence) - 1)] for sentence in said)
        for paragraphs in (texts, (" ".join(texts),)):
            lines = [line for text in paragraphs for line in wrapped(text, font, width)]
            if len(lines) <= room:
                return tuple(lines)
    return tuple(fitting_sentences(said, font, width, room))


def paint_race(
    painter: QPainter,
    race: Race,
    seconds: float,
    style: Style,
    rect: QRectF,
    *,
    shown: Comparison | None = None,
    pace: Sequence[str] = ("",),
) -> None:
    """Paint the race some simulated time after its start.

    Parameters
    ----------
    seconds : float
        Simulated seconds.
    rect : QRectF
        The place, at least about `MIN_SIZE`.
    shown : Comparison, optional
        That of the run on show, if it may be shorter.
    pace : sequence of str
        What is said beside the clock about its pace, longest first.
    """
    lay = race_layout(rect, style, race)
    style, theme = lay.style, lay.style.theme
    font = style.text_font(12)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    words = race_title(race, shown or race.comparison)
    draw_text(
        painter, lay.caption, first_that_fits(words, lay.caption.width(), font), font, theme.muted
    )
    standings = race.at(seconds)
    _paint_lines(painter, lay)
    for lane, standing, box, units in zip(race.lanes, standings, lay.lanes, lay.units, strict=True):
        _paint_lane(painter, race, lane, standing, style, box, units)
    if all(standing.finished for standing in standings):
        _paint_verdict(painter, race, style, lay.band)
    else:
        _paint_clock(painter, race, seconds, pace, style, lay.band)
    for row, text in zip(lay.footer, lay.notes, strict=True):
        draw_text(painter, row, text, style.text_font(11), theme.muted)
    painter.restore()


def _paint_lines(painter: QPainter, lay: RaceLayout) -> None:
    """Draw the start line, and the finish line as a chequered flag."""
    theme, flag = lay.style.theme, lay.flag
    side = flag.width() / 2
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    dark, light = QColor(theme.window), QColor(theme.text)
    rows = int(flag.height() / side)
    for row in range(rows):
        for column in range(2):
            ink = light if (row + column) % 2 else dark
            x = round(flag.x()) + column * round(side)
            y, end = round(flag.y() + row * side), round(flag.y() + (row + 1) * side)
            painter.fillRect(x, y, round(side), end - y, ink)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    start = lay.lanes[0].x() - lay.style.px(2)
    painter.setPen(QPen(QColor(theme.muted), lay.style.px(2)))
    painter.drawLine(QLineF(start, flag.y(), start, flag.y() + rows * side))


@dataclass(frozen=True, slots=True)
class _LanePlaces:
    """The places in a lane: words, bar, and words below it if there is enough height."""

    words: QRectF
    bar: QRectF
    below: QRectF | None


def _rows(box: QRectF, style: Style) -> _LanePlaces:
    px = style.px
    tall = box.height() >= px(_TALL)
    spent = px(20) + (px(18) if tall else 0)
    bar = min(max(box.height() - spent - px(6), px(4)), px(60))
    top = box.y() + (box.height() - spent - bar) / 2
    words = QRectF(box.x() + px(4), top, box.width() - px(9), px(18))
    place = QRectF(box.x(), words.bottom() + px(1), box.width(), bar)
    line = QRectF(words.x(), place.bottom() + px(1), words.width(), px(16))
    below = line if tall else None
    return _LanePlaces(words, place, below)


def _paint_lane(
    painter: QPainter,
    race: Race,
    lane: RaceLane,
    standing: Standing,
    style: Style,
    box: QRectF,
    units: QRectF,
) -> None:
    px, theme = style.px, style.theme
    bold, small = style.text_font(13, bold=True), style.text_font(11)
    rows = _rows(box, style)
    results = result_words(lane)
    whole = Standing(1.0, lane.total.counters, None, None, finished=True)
    gap = px(14)
    # What is said is worded alike from start to finish, by its longest figures.
    asked, most = bytes_words(lane, standing), bytes_words(lane, whole)
    name = title(lane.algorithm)
    if rows.below is None:
        most_figures = text_width(small, most[2]) + gap + text_width(bold, results[0])
        long = text_width(bold, name) + gap + most_figures <= rows.words.width()
        name = name if long else lane.algorithm
        said = 2 if text_width(bold, name) + gap + most_figures <= rows.words.width() else 3
        result = text_width(bold, results[0]) + gap
        figures = rows.words.adjusted(0, 0, -result, 0)
        draw_text(painter, figures, asked[said], small, theme.muted, RIGHT)
    else:
        below = rows.below
        said = next(
            (n for n, text in enumerate(most) if text_width(small, text) <= 0.62 * below.width()),
            len(most) - 1,
        )
        draw_text(painter, below, asked[said], small, theme.muted, RIGHT)
        left = below.width() - text_width(small, most[said]) - gap
        launch = first_that_fits(progress_words(race, lane, standing), left, small)
        if launch:
            draw_text(painter, below, launch, small, theme.muted)
    draw_text(painter, rows.words, name, bold, theme.text)
    if standing.finished:
        ink = theme.good if lane.place == 1 else theme.text
        draw_text(painter, rows.words, results[0], bold, ink, RIGHT)
    _paint_bar(painter, lane, standing, style, rows.bar)
    _paint_units(painter, race, lane, standing, style, rows, units)


def _paint_bar(
    painter: QPainter, lane: RaceLane, standing: Standing, style: Style, bar: QRectF
) -> None:
    """Draw the bar on its track, with a mark where one launch ends and the next begins."""
    px, theme = style.px, style.theme
    colour = theme.role(lane.algorithm)
    painter.fillRect(bar, mixed(theme.panel, theme.text, 0.07))
    done = QRectF(bar.x(), bar.y(), standing.share * bar.width(), bar.height())
    painter.fillRect(done, mixed(theme.panel, colour, 0.8))
    for launch in lane.launches[:-1]:
        x = bar.x() + bar.width() * launch.end / lane.seconds
        ink = theme.panel if x < done.right() else theme.faint
        painter.setPen(QPen(QColor(ink), hairline(style), Qt.PenStyle.DashLine))
        painter.drawLine(QLineF(x, bar.y(), x, bar.bottom()))
    if not standing.finished and standing.share > 0:
        width = min(px(4), done.width())
        painter.fillRect(
            QRectF(done.right() - width, bar.y(), width, bar.height()), QColor(theme.text)
        )


def _paint_units(
    painter: QPainter,
    race: Race,
    lane: RaceLane,
    standing: Standing,
    style: Style,
    rows: _LanePlaces,
    place: QRectF,
) -> None:
    """Draw the GPU's multiprocessors: hollow and grey as large a share as waits for memory."""
    small, theme = style.text_font(11), style.theme
    words = waiting_words(race, standing)
    if race.first.total.time.compute is None:
        text = first_that_fits(words, place.width(), small)
    else:
        fits = (n for n, text in enumerate(WIDEST_WAIT)
                if text_width(small, text) <= place.width())  # fmt: skip
        text = words[next(fits, len(words) - 1)]
    if rows.below is None:
        line, grid = rows.words, rows.bar
    else:
        line = rows.below
        grid = QRectF(rows.bar)
        grid.setTop(rows.words.y() + style.px(3))
    line = QRectF(place.x(), line.y(), place.width(), line.height())
    if text:
        draw_text(painter, line, text, small, theme.muted)
    sms = race.workload.gpu.sms
    lit = 0 if standing.waits is None else round((1 - standing.waits) * sms)
    box = QRectF(place.x(), grid.y(), place.width(), grid.height())
    colour = theme.role(lane.algorithm)
    grey = mixed(theme.panel, theme.text, 0.32)
    ground = mixed(theme.panel, theme.text, 0.1)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    columns, side = unit_grid(sms, box.width(), box.height())
    inset = max(side * 0.14, 0.5)
    for unit in range(sms):
        row, column = divmod(unit, columns)
        cell = QRectF(box.x() + column * side, box.y() + row * side, side, side)
        cell.adjust(inset, inset, -inset, -inset)
        if unit < lit:
            painter.fillRect(cell, colour)
        else:
            painter.fillRect(cell, ground)
            if side >= 5:
                outline(painter, cell, grey, hairline(style))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)


@lru_cache(maxsize=64)
def unit_grid(count: int, width: float, height: float) -> tuple[int, float]:
    """Return how many columns of squares fill a place best, and the side of a square."""
    best: tuple[int, float] = (1, 0.0)
    for columns in range(1, count + 1):
        side = min(width / columns, height / math.ceil(count / columns))
        if side > best[1]:
            best = columns, side
    return best


def _paint_clock(
    painter: QPainter,
    race: Race,
    seconds: float,
    pace: Sequence[str],
    style: Style,
    band: QRectF,
) -> None:
    digits, widest = race_clock(race, seconds), race_clock(race, race.seconds)
    _paint_band(painter, digits, widest, clock_words(race), pace, style, band)


def _paint_verdict(painter: QPainter, race: Race, style: Style, band: QRectF) -> None:
    factor, compared, asked = verdict(race)
    _paint_band(painter, factor, factor, compared, asked, style, band)


def _paint_band(
    painter: QPainter,
    digits: str,
    widest: str,
    first: Sequence[str],
    second: Sequence[str],
    style: Style,
    band: QRectF,
) -> None:
    """Write large digits, and two lines beside them."""
    px, theme = style.px, style.theme
    large = style.text_font(0.78 * band.height() / style.scale, bold=True)
    width = text_width(large, widest)
    place = QRectF(band.x(), band.y(), width + px(2), band.height())
    draw_text(painter, place, digits, large, theme.text, RIGHT)
    words = QRectF(place.right() + px(14), band.y(), 0, band.height())
    words.setRight(band.right())
    low = band.height() < px(40)
    bold, small = style.text_font(13 if low else 15, bold=True), style.text_font(11 if low else 13)
    half = words.height() / 2
    over = QRectF(words.x(), words.y(), words.width(), half)
    for texts, font, ink, row in (
        (first, bold, theme.text, over), (second, small, theme.muted, over.translated(0, half)),
    ):  # fmt: skip
        text = first_that_fits(texts, row.width(), font)
        if text:
            draw_text(painter, row, text, font, ink)
