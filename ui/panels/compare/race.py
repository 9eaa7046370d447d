"""The race as boxes: for each algorithm a lane, its bar and its units; then the factor."""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import NamedTuple

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from simulator.study.race import Race, RaceLane, Standing
from ui.kit.boxes import Box, Canvas, Column, Row, Where
from ui.kit.shapes import Alike, Text, Wordings
from ui.look.draw import RIGHT, hairline, mixed
from ui.look.theme import Style
from ui.panels.compare.race_words import (
    idle_words,
    progress_words,
    race_clock,
    requested_words,
    result_words,
    verdict,
)
from ui.panels.compare.words import names


class RaceMoment(NamedTuple):
    """A race some simulated seconds after its start, and what is said of its pace."""

    race: Race
    seconds: float
    pace: str


class Lane(Row):
    """A row that is not higher than a lane may be: in a tall picture they stay together."""

    def most_height(self, style: Style) -> float:
        return style.px(130)


def race_boxes(moment: RaceMoment) -> Box:
    """Return lanes, and below them the clock or, at the end, the factor."""
    race, seconds, pace = moment
    standings = race.at(seconds)
    lanes = tuple(_lane(race, n, standing) for n, standing in enumerate(standings))
    digits, widest = race_clock(race, seconds), race_clock(race, race.seconds)
    first: Wordings = f"of simulated time on {race.workload.gpu.name}", "of simulated time"
    second: Wordings = pace, ""
    if all(standing.finished for standing in standings):
        digits, first, second = verdict(race)
        widest = digits
    band = Row((
        Alike(digits, "text", RIGHT, 34, bold=True, others=((widest,),)),
        Column((
            Text(first, bold=True, size=15, high=26), Text(second, "muted", size=13, high=22),
        ), gap=0, grow=1),
    ), gap=14)  # fmt: skip
    field = Column(lanes, gap=4, grow=1, over=partial(_lines, len(lanes)))
    return Column((field, band), gap=4)


def _lane(race: Race, n: int, standing: Standing) -> Box:
    lane = race.lanes[n]
    whole = Standing(1.0, lane.total.counters, None, 1.0, finished=True)
    tone = "good" if lane.place == 1 else "text"
    result = result_words(lane)
    idle = idle_words(race, lane, standing)
    return Lane((
        Box(wide=4, name=("start", n)),
        Column((
            Row((
                Text(names(lane.algorithm), bold=True, size=13, grow=1),
                Alike(result if standing.finished else ("", ""), tone, RIGHT, 13, bold=True, grow=1,
                      others=(result,), may_go=True),
            )),
            Canvas(partial(_bar, lane, standing), high=6, grow=1, name=("bar", n)),
            Row((
                Text(progress_words(race, lane, standing), "muted", grow=1, wide=0, may_go=True),
                Alike(requested_words(lane, standing), "muted", RIGHT, grow=1,
                      others=(requested_words(lane, whole),)),
            )),
        ), gap=1, grow=1),
        Box(wide=8, name=("flag", n)),
        Column((
            Canvas(partial(_units, race, lane, standing), high=6, grow=1, name=("units", n)),
            Alike(idle, "muted", wide=0, others=(idle_words(race, lane, whole),)),
        ), gap=1, share=0.21),
    ), gap=4, grow=1, id=("lane", n), name=("lane", n))  # fmt: skip


def _lines(lanes: int, painter: QPainter, style: Style, where: Where) -> None:
    """Draw the start line, and the finish line as a chequered flag."""
    theme, first, last = style.theme, where["flag", 0], where["flag", lanes - 1]
    flag = QRectF(first.topLeft(), last.bottomRight())
    side = flag.width() / 2
    rows = int(flag.height() / side)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    for row in range(rows):
        for column in range(2):
            x = round(flag.x()) + column * round(side)
            y, end = round(flag.y() + row * side), round(flag.y() + (row + 1) * side)
            ink = theme.text if (row + column) % 2 == 0 else theme.window
            painter.fillRect(x, y, round(side), end - y, QColor(ink))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    start = where["start", 0].center().x()
    painter.setPen(QPen(QColor(theme.muted), style.px(2)))
    painter.drawLine(QLineF(start, flag.y(), start, flag.bottom()))


def _bar(lane: RaceLane, standing: Standing, painter: QPainter, style: Style, bar: QRectF) -> None:
    """Draw the bar on its track, with a mark where one launch ends and the next begins."""
    theme, colour = style.theme, style.theme.role(lane.algorithm)
    painter.fillRect(bar, mixed(theme.panel, theme.text, 0.07))
    done = QRectF(bar.x(), bar.y(), standing.share * bar.width(), bar.height())
    painter.fillRect(done, mixed(theme.panel, colour, 0.8))
    for launch in lane.launches[:-1]:
        x = bar.x() + bar.width() * launch.end / lane.seconds
        ink = theme.panel if x < done.right() else theme.faint
        painter.setPen(QPen(QColor(ink), hairline(style), Qt.PenStyle.DashLine))
        painter.drawLine(QLineF(x, bar.y(), x, bar.bottom()))
    if not standing.finished and standing.share > 0:
        head = done.adjusted(max(done.width() - style.px(4), 0), 0, 0, 0)
        painter.fillRect(head, QColor(theme.text))


def _units(
    race: Race, lane: RaceLane, standing: Standing, painter: QPainter, style: Style, box: QRectF
) -> None:
    """Draw the multiprocessors: hollow and grey as large a share as has nothing to multiply."""
    theme, sms = style.theme, race.workload.gpu.sms
    lit = 0 if standing.idle is None else round((1 - standing.idle) * sms)
    grey, ground = (mixed(theme.panel, theme.text, share) for share in (0.32, 0.1))
    columns, side = unit_grid(sms, box.width(), box.height())
    inset = max(side * 0.14, 0.5)
    size = side - 2 * inset
    cells = [
        QRectF(
            box.x() + n % columns * side + inset, box.y() + n // columns * side + inset, size, size
        )
        for n in range(sms)
    ]
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(style.theme.role(lane.algorithm))
    painter.drawRects(cells[:lit])
    if side >= 5:
        painter.setPen(QPen(grey, hairline(style)))
    painter.setBrush(ground)
    painter.drawRects(cells[lit:])
    painter.setBrush(Qt.BrushStyle.NoBrush)


@lru_cache(maxsize=64)
def unit_grid(count: int, width: float, height: float) -> tuple[int, float]:
    """Return how many columns of squares fill a place best, and the side of a square."""

    def side(columns: int) -> float:
        return min(width / columns, height / math.ceil(count / columns))

    best = max(range(1, count + 1), key=side)
    return best, side(best)
