"""The runs beside each other: the progress of each on its tiles, and its costs so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from PySide6.QtCore import QLineF, QRectF
from PySide6.QtGui import QColor, QPainter, Qt

from simulator.program.algorithms import ALGORITHMS
from simulator.study.compare import Comparison, Position, Totals
from ui.board.mini_board import paint_mini_board
from ui.kit.boxes import Box, Canvas, Column, Placed, Row, Tone
from ui.kit.shapes import Alike, Card, Text
from ui.look.draw import RIGHT, mixed, outline, patterned
from ui.look.durations import duration_text
from ui.look.theme import Style
from ui.look.units import bytes_text, time_text
from ui.panels.compare.words import names, place_words, title

_DEEPEST = 16.0
"""Most pixels of a bar."""
_LEAST = 76.0
"""Least width of a card at scale 1; with less room fewer cards are shown."""


class Meter(NamedTuple):
    """A bar of one run: its name and its amounts; the scale is the same in all columns."""

    name: str
    figures: tuple[str, str]
    full: float  # the amount of a full bar
    whole: float  # of the whole run
    done: float
    written: float = 0.0  # the written part of `done`
    limit: float = 0.0  # of the GPU; 0: none


def meters(comparison: Comparison, position: Position, total: Totals) -> tuple[Meter, ...]:
    """Return the bars of one run."""
    totals, now = comparison.totals, position.counters
    limit = comparison.programs[comparison.shown].workload.gpu.smem_bytes
    slowest = max(each.duration.seconds for each in totals)
    moved, most = bytes_text(now.bytes), bytes_text(total.counters.bytes)
    spent = duration_text(total.duration, position.seconds)
    held, peak = bytes_text(position.on_chip), bytes_text(total.peak)
    chip = f"{held} of {bytes_text(limit)}", held
    if total.peak > limit:
        chip = f"up to {peak}: over {bytes_text(limit)}", f"{peak} > {bytes_text(limit)}"
    return (
        Meter("requested", (f"{moved} of {most}", moved),
              max(each.counters.bytes for each in totals), total.counters.bytes, now.bytes,
              written=now.write_bytes),
        Meter("time",
              (f"{spent} of {time_text(total.duration.seconds)}", spent), slowest,
              total.duration.seconds, position.seconds),
        Meter("SRAM", chip, max(limit, *(each.peak for each in totals)), total.peak,
              position.on_chip, limit=limit),
    )  # fmt: skip


def columns(comparison: Comparison, positions: tuple[Position, ...], marked: str) -> Box:
    """Return the runs as cards: one is on show, another may be marked by a key."""
    said = [meters(comparison, *each) for each in zip(positions, comparison.totals, strict=True)]
    cards = []
    for n, position in enumerate(positions):
        name = position.algorithm
        bars = tuple(
            _meter(alike[n], [each.figures for each in alike]) for alike in zip(*said, strict=True)
        )
        board = Canvas(partial(_board, comparison, position), name=("board", n))
        body = BoardAndMeters(board, Column(bars, gap=2), grow=1)
        shown = name == comparison.shown
        cards.append(Card(
            Column((*_head(comparison, position), body), gap=2),
            border="current" if shown else "text" if name == marked else "border",
            thick=2 if shown or name == marked else 1, pad=7, ground="window", grow=1,
            wide=_LEAST, may_go=not shown, id=name, name=name,
            tip=f"Show {title(name)} ({ALGORITHMS[name].source})",
        ))  # fmt: skip
    return Row(tuple(cards), gap=8)


def _head(comparison: Comparison, position: Position) -> tuple[Box, ...]:
    parts: list[Box] = [Text(names(position.algorithm), bold=True, size=13, grow=1)]
    if position.algorithm == comparison.shown:
        parts.append(Text("on show", "current", RIGHT, may_go=True))
    tone = "good" if position.finished else "muted"
    return (Row(tuple(parts), gap=4), Text(place_words(comparison, position), tone, high=18))


@dataclass(frozen=True, eq=False)
class BoardAndMeters(Box):
    """A board above its bars, or beside them where this makes the board larger."""

    board: Canvas
    meters: Column

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        beside, room = 0.46 * rect.width(), rect.height() - style.px(6)
        bars = min(max(self.meters.height(style, rect.width()), 0.38 * room), max(room, 0))
        wide = rect.width() >= style.px(330)
        if wide and min(rect.height(), beside) >= min(rect.width(), room - bars):
            left = QRectF(rect.x(), rect.y(), min(rect.height(), beside), rect.height())
            yield Placed(self.board, left)
            yield from self.meters.place(style, rect.adjusted(left.width() + style.px(12), 0, 0, 0))
        else:
            top = QRectF(rect.x(), rect.y(), rect.width(), max(room - bars, 0))
            yield Placed(self.board, top)
            yield from self.meters.place(
                style, QRectF(rect.x(), rect.bottom() - bars, rect.width(), bars)
            )


def _board(
    comparison: Comparison, position: Position, painter: QPainter, style: Style, rect: QRectF
) -> None:
    program = comparison.programs[position.algorithm]
    first = comparison.programs[comparison.shown].workload
    # One grid for all boards, so that they share their images; packed heads have their own.
    same = first.group == program.workload.group
    grid = first.grid if same else program.workload.grid
    if min(rect.width(), rect.height()) >= 16:
        paint_mini_board(painter, program, position, grid, style, rect)


def _meter(meter: Meter, figures: list[tuple[str, ...]]) -> Box:
    """Return a bar below its words."""
    ink: Tone = "bad" if meter.limit and meter.whole > meter.limit else "text"
    return Column((
        Row((
            Text(meter.name, "muted", may_go=True),
            Alike(meter.figures, ink, RIGHT, bold=True, grow=1, others=tuple(figures)),
        )),
        Canvas(partial(_bar, meter), high=8, grow=1),
    ), gap=1, grow=1, may_go=True)  # fmt: skip


def _bar(meter: Meter, painter: QPainter, style: Style, rect: QRectF) -> None:
    """Draw the whole run as a frame around the part that is done."""
    theme, across = style.theme, rect.width() / (meter.full or 1)
    bar = QRectF(rect.x(), rect.y(), rect.width(), min(rect.height(), style.px(_DEEPEST)))
    ground, line = QColor(theme.panel), mixed(theme.panel, theme.text, 0.55)
    if meter.limit:
        ground = QColor(theme.sram_ground)
        line = QColor(theme.bad if meter.whole > meter.limit else theme.good)
    elif meter.name == "requested":
        ground, line = QColor(theme.hbm_ground), QColor(theme.hbm_line)

    def part(start: float, end: float) -> QRectF:
        return QRectF(bar.x() + across * start, bar.y(), across * (end - start), bar.height())

    def frame(end: float, fill: QColor, edge: QColor) -> None:
        place = part(0, max(end, style.px(2) / across))
        painter.fillRect(place, fill)
        outline(painter, place, mixed(fill, edge, 0.7), style.px(0.8))

    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    if meter.limit:
        frame(meter.limit, QColor(theme.window), QColor(theme.faint))
    frame(meter.whole, ground, line)
    painter.fillRect(part(0, meter.done - meter.written), line)
    if meter.written:
        stored = part(meter.done - meter.written, meter.done)
        painter.fillRect(stored, mixed(ground, line, 0.4))
        painter.fillRect(stored, patterned(line, Qt.BrushStyle.BDiagPattern, style))
    if meter.limit:
        painter.setPen(style.pen(theme.bad, 2))
        x = min(bar.x() + meter.limit * across, bar.right() - style.px(1))
        painter.drawLine(QLineF(x, bar.y(), x, bar.bottom() + style.px(3)))
