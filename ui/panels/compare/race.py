"""The race in words and as a picture: how far each run is, and who has won by how much."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from simulator.study.compare import Comparison
from simulator.study.race import HIDDEN, Race, RaceLane, Standing
from ui.kit.boxes import Box, Canvas, Column, Row, Where
from ui.kit.shapes import Alike, Text, Wordings
from ui.look.draw import RIGHT, hairline, mixed, squares
from ui.look.durations import duration_text
from ui.look.run_words import scenario_words
from ui.look.theme import Style
from ui.look.units import bytes_of_text, bytes_text, clock_text, count_text, factor_text, time_text
from ui.panels.compare.words import SAME, label, mask_words, named, names, time_words, title

_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


def race_title(race: Race, shown: Comparison) -> str:
    """Return the title of the race; the run on show may be shorter."""
    w = race.workload
    *words, _ = scenario_words(w)  # the last says where the input comes from: there is none
    here = shown.programs[shown.shown].workload.seqlen_k
    other = [] if here == w.seqlen_k else [f"the run on show has {count_text(here)} keys"]
    if race.copies > 1:
        other.insert(0, f"{count_text(race.copies)} such runs at once")
    return " · ".join((f"Whole runs on {w.gpu.name}", *words, *other))


def result_words(lane: RaceLane) -> tuple[str, str]:
    """Return the words at a lane's finish, and a short form."""
    spent = duration_text(lane.duration)
    return f"{lane.place}{_ENDINGS.get(lane.place, 'th')} · {spent}", spent


def requested_words(lane: RaceLane, standing: Standing) -> tuple[str, str, str]:
    """Return the bytes requested by a lane so far, and short forms."""
    copies = lane.duration.copies
    part = bytes_of_text(copies * standing.counters.bytes, copies * lane.total.counters.bytes)
    moved = lane.duration.dram_bytes
    if standing.finished and moved is not None:
        whole = part.partition(" of ")[2]
        return f"{whole} requested · DRAM by model {bytes_text(moved)}", f"{whole} requested", whole
    return f"{part} requested", part, part.partition(" of ")[2]


def progress_words(race: Race, lane: RaceLane, standing: Standing) -> tuple[str, ...]:
    """Return which launch is under way, or how much longer the lane took than the first."""
    if standing.finished:
        ratio = lane.seconds / race.first.seconds
        if lane.place == 1 or ratio <= SAME:
            return ("",)
        times = f"{factor_text(ratio)} as long"
        return f"{times} as {title(race.first.algorithm)}", times, ""
    if standing.launch is None or len(lane.launches) == 1:
        return ("",)
    name = lane.launches[standing.launch].name
    return f"launch {standing.launch + 1} of {len(lane.launches)}: {name}", name, ""


def idle_words(race: Race, lane: RaceLane, standing: Standing) -> tuple[str, str]:
    """Return the share of time in which matrix units are idle, and a short form."""
    if standing.idle is None:
        return "", ""  # before the start, or there is no model
    share = f"{100 * standing.idle:.0f}\u202f%"
    if share.startswith("100") and standing.idle < 1:
        share = ">\u202f99\u202f%"
    limit = lane.bound_by if standing.launch is None else lane.launches[standing.launch].bound_by
    return f"limited by {limit}: matrix units idle {share}", f"{limit}: {share} idle"


def pace_words_of(race: Race, watched: float, where: str) -> str:
    """Return how much simulated time passes in a second here, or in a film."""
    return f"1 s {where} is {_sign(race)} {time_text(race.seconds / watched)} on the GPU"


def race_clock(race: Race, seconds: float) -> str:
    """Return the time on the clock."""
    return f"{_sign(race)} {clock_text(seconds, race.seconds)}"


def _sign(race: Race) -> str:
    return duration_text(race.first.duration)[0]


def verdict(race: Race) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return the factor, the two lanes in words, and their bytes, after the mask's part."""
    first, last = race.first, race.last
    quick, slow = duration_text(first.duration), duration_text(last.duration)
    words: tuple[str, ...] = (
        f"as fast: {title(first.algorithm)} in {quick}, {named(last.algorithm)} in {slow}",
        f"as fast as {named(last.algorithm)}",
        f"as fast as {label(last.algorithm)}",
        "as fast",
    )
    if race.time_factor <= SAME:
        words = (f"as fast: all take {quick}",)
    few, many = (bytes_text(race.copies * lane.total.counters.bytes) for lane in (first, last))
    asked = f"requested: {few} and {many}, {factor_text(race.byte_factor)} as much"
    of_it = mask_words(race.tiles_factor, race.mask_factor)
    said = (*((f"{of_it}; {asked}", of_it) if of_it else (asked,)), f"{few} and {many}", "")
    return factor_text(race.time_factor), words, said


def race_results(race: Race) -> tuple[str, ...]:
    """Return the result for screen readers."""
    lanes = (
        f"{title(lane.algorithm)}: {result_words(lane)[0]}, "
        f"{bytes_text(race.copies * lane.total.counters.bytes)} requested"
        for lane in race.lanes
    )
    factor, compared, asked = verdict(race)
    return "; ".join(lanes), f"{factor} {compared[0]}; {asked[0]}"


def race_notes(race: Race) -> tuple[str, ...]:
    """Return notes on the figures, the most important first."""
    notes = [time_words([lane.duration for lane in race.lanes])]
    if race.first.idle is not None:
        notes.append(
            f"Squares: the {count_text(race.workload.gpu.sms)} SMs; hollow and grey: the share of "
            "the time in which matrix units have nothing to multiply."
        )
    if race.copies > 1:
        notes.append(
            f"One run does not fill the GPU: {count_text(race.copies)} go side by side, toward "
            f"the {count_text(HIDDEN)} dimensions of published measurements."
        )
    if race.left_out:
        names = ", ".join(label(name) for name in race.left_out)
        notes.append(f"Not in the race, because their time is not modelled: {names}.")
    return tuple(notes)


class RaceMoment(NamedTuple):
    """A race some simulated seconds after its start, and its pace in words."""

    race: Race
    seconds: float
    pace: str


class Lane(Row):
    """A row of limited height, so that in a tall picture the lanes stay together."""

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
    painter.setPen(style.pen(theme.muted, 2))
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
    """Draw the multiprocessors; the idle share of them is hollow and grey."""
    theme, sms = style.theme, race.workload.gpu.sms
    lit = 0 if standing.idle is None else round((1 - standing.idle) * sms)
    grey, ground = (mixed(theme.panel, theme.text, share) for share in (0.32, 0.1))
    columns, side = squares(sms, box.width(), box.height())
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
