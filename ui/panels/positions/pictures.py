"""Pairs of dimensions as clocks at tokens, their angles as dials, and maps of scores at places."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from simulator.study.positions.scores import PLACES, PlacedScores, PositionsState, sinusoids
from ui.kit.boxes import Box, Column, Placed, Row, Tone, ink
from ui.kit.shapes import LINE, Heat, Image, Legend, Text
from ui.look.clocks import paint_clock, turn_text
from ui.look.draw import CENTRE, LEFT, RIGHT, draw_text, text_width
from ui.look.names import first_that_fits
from ui.look.theme import LABEL, Style
from ui.look.units import count_text, number_text
from ui.panels.positions.words import figures

_CLOCK, _LARGEST = 15.0, 46.0
"""Least room of a clock, that of the line beside it, and the largest, pixels."""
SEEN: Tone = ("empty", "muted", 0.55)
"""Angles that training has shown."""
_TURNS = ("places for one turn of a pair, fast → slow", "places for one turn", "turn")


def shown_rows(state: PositionsState, most: int) -> list[int]:
    """Return rows that have clocks: the row that is explained and those around it."""
    most = max(1, min(most, len(state.rows)))
    first = min(max(state.row - most // 2, state.rows.start), state.rows.stop - most)
    return list(range(first, first + most))


def shown_pairs(state: PositionsState, most: int) -> list[int]:
    """Return pairs that have clocks, from fast to slow: evenly spread if there are many."""
    count = len(state.speeds)
    picked = np.linspace(0, count - 1, max(2, min(most, count))).round().astype(int)
    return list(dict.fromkeys(picked.tolist()))


@dataclass(frozen=True, eq=False)
class Clocks(Box):
    """A clock for pairs of dimensions, from fast to slow, at tokens one below another."""

    state: PositionsState

    def most_height(self, style: Style) -> float:
        return style.px(2 * LINE + _LARGEST * len(self.state.rows) + 4)

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        state, px, theme, font = self.state, style.px, style.theme, style.text_font(LABEL)
        line, down = px(LINE), rect.height() - px(2 * LINE + 4)
        rows = shown_rows(state, int(down / px(_CLOCK)))
        places = (count_text(state.place + row - state.row) for row in rows)
        tokens = (state.workload.query_token(row) for row in rows)
        names = [f"{token} {place}".strip() for token, place in zip(tokens, places, strict=True)]
        wide = min(max(text_width(font, name) for name in names), px(110)) + px(8)
        left, room = rect.x() + wide, rect.width() - wide
        pairs = shown_pairs(state, int(room / px(34)))
        size = min(down / len(rows), room / len(pairs), px(_LARGEST))
        pitch = min(room / len(pairs), max(size * 1.6, px(40)))
        words = first_that_fits(_TURNS, len(pairs) * pitch, font)
        draw_text(painter, QRectF(left, rect.y(), room, line), words, font, theme.muted)
        for n, pair in enumerate(pairs):
            place = QRectF(left + n * pitch, rect.y() + line, pitch, line)
            draw_text(painter, place, turn_text(state.turn(pair)), font, theme.text, CENTRE)
        for r, row in enumerate(rows):
            y = rect.y() + 2 * line + px(2) + r * size
            inks = (theme.muted, theme.role("Q")) if row != state.row else (theme.current,) * 2
            label = QRectF(rect.x(), y, wide - px(6), size)
            draw_text(painter, label, names[r], font, inks[0], RIGHT)
            for n, pair in enumerate(pairs):
                middle = QPointF(left + (n + 0.5) * pitch, y + size / 2)
                paint_clock(painter, middle, 0.42 * size, state.hand(row, pair), inks[1], style)


def dials(state: PositionsState) -> Box:
    """Return the dials of all ways to use longer texts, and what their colours stand for."""
    legend = Legend((
        (SEEN, ("angles that training has shown", "trained")),
        ("bad", ("angles that only the longer text reaches", "new")),
    ))  # fmt: skip
    return Column((Dials(state, grow=1), legend), gap=2)


@dataclass(frozen=True, eq=False)
class Dials(Box):
    """A dial for pairs of dimensions, from fast to slow, under each way to use longer texts."""

    state: PositionsState

    def most_height(self, style: Style) -> float:
        return style.px(2 * LINE + _LARGEST * len(self.state.ways) + 4)

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        state, px, theme, font = self.state, style.px, style.theme, style.text_font(LABEL)
        line, ways = px(LINE), state.ways
        new = [way.new_angles(state.trained, state.factor, state.speeds) for way in ways]
        names = [(f"{way.title}: {n} new", f"{way.title.split()[0]}: {n}", way.title.split()[0])
                 for way, n in zip(ways, new, strict=True)]  # fmt: skip
        wide = min(max(text_width(font, name[0]) for name in names), 0.4 * rect.width()) + px(8)
        left, room = rect.x() + wide, rect.width() - wide
        pairs = shown_pairs(state, int(room / px(_CLOCK)))
        down = rect.height() - 2 * line - px(2)
        pitch = max(min(room / len(pairs), px(_LARGEST)), 1.0)
        high = max(min(down / len(ways), px(_LARGEST)), 1.0)
        words = first_that_fits(_TURNS, len(pairs) * pitch, font)
        draw_text(painter, QRectF(left, rect.y(), room, line), words, font, theme.muted)
        step = -(-px(38) // pitch)
        for n, pair in enumerate(pairs[:: int(step)]):
            place = QRectF(left + n * step * pitch, rect.y() + line, pitch * step, line)
            draw_text(painter, place, turn_text(state.turn(pair)), font, theme.text, LEFT)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        radius = 0.44 * min(pitch, high)
        for r, (way, name) in enumerate(zip(ways, names, strict=True)):
            y = rect.y() + 2 * line + px(2) + r * high
            said = first_that_fits(name, wide - px(6), font)
            label = QRectF(rect.x(), y, wide - px(6), high)
            draw_text(painter, label, said, font, theme.text, RIGHT)
            seen, reached = way.arcs(state.trained, state.factor, state.speeds)
            for n, pair in enumerate(pairs):
                middle = QPointF(left + (n + 0.5) * pitch, y + high / 2)
                arcs = float(seen[pair]), float(reached[pair])
                _paint_dial(painter, middle, radius, *arcs, style)


def _paint_dial(
    painter: QPainter, middle: QPointF, radius: float, seen: float, reached: float, style: Style
) -> None:
    """Paint a circle, the angles from 0 that training has seen, and those beyond them."""
    theme, place = style.theme, QRectF(0, 0, 2 * radius, 2 * radius)
    place.moveCenter(middle)
    painter.setPen(QPen(QColor(theme.grid), max(style.px(1), 1.0)))
    painter.setBrush(QColor(theme.empty))
    painter.drawEllipse(place)
    painter.setPen(Qt.PenStyle.NoPen)
    for begin, end, tone in ((0.0, seen, ink(style, SEEN)), (seen, reached, theme.role("bad"))):
        if end > begin * (1 + 1e-9):
            # From twelve o'clock, clockwise, in sixteenths of a degree.
            first, span = 90 - math.degrees(begin), -math.degrees(end - begin)
            painter.setBrush(tone)
            painter.drawPie(place, round(16 * first), round(16 * span))


@dataclass(frozen=True, eq=False)
class Maps(Box):
    """A map of scores for each kind of positions, all of one size: beside each other or in two."""

    kinds: tuple[PlacedScores, ...]

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        gap, words, count = style.px(14), style.px(3 * LINE + 2), len(self.kinds)

        def side(across: int) -> float:
            high = rect.height() / -(-count // across) - words
            return min((rect.width() + gap) / across - gap, high)

        across = max((count, 2), key=side)
        pitch = (rect.width() + gap) / across
        pitch = min(pitch, max(max(side(across), style.px(12)) + 2 * gap, 0.5 * pitch))
        # All maps say it in as many words.
        font, said = style.text_font(LABEL), [figures(kind) for kind in self.kinds]
        length = max(
            each.index(first_that_fits(each, pitch - gap, font)) for both in said for each in both
        )
        for n, (kind, both) in enumerate(zip(self.kinds, said, strict=True)):
            x, y = rect.x() + n % across * pitch, rect.y() + n // across * (side(across) + words)
            place = QRectF(x, y, pitch - gap, max(side(across), style.px(12)) + words)
            yield from _map(kind, [each[length] for each in both]).place(style, place)


def waves(state: PositionsState) -> Box:
    """Return the sinusoids of all places as colours, a row for each place."""
    values = sinusoids(np.arange(PLACES), state.workload.head_dim).astype(np.float32)
    ends = Row((
        Text("places ↓ numbers →", "muted"), Text("−1 to 1", "muted", RIGHT, grow=1),
    ), gap=8)  # fmt: skip
    return Column((ends, Image(Heat(values, -1.0, 1.0, "S"), grow=1)), gap=2)


def _map(kind: PlacedScores, said: list[str]) -> Box:
    """Return the scores of a kind as colours between its name, their range, and two figures."""
    low, high = float(kind.scores.min()), float(kind.scores.max())
    ends = f"{number_text(low, 2)} to {number_text(high, 2)}"
    heat = Heat(kind.scores.astype(np.float32), low, max(high, low + 1e-30), "S")
    return Column((
        Row((Text(kind.title, bold=True), Text(ends, "muted", RIGHT, grow=1, may_go=True)), gap=8),
        Image(heat, square=True, grow=1),
        *(Text(each, "muted", LEFT, wide=0) for each in said),
    ), gap=1)  # fmt: skip
