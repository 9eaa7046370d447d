"""Hands of clocks, one vector at all places, and scores over distance: how positions count."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from simulator.run.trace import Trace
from simulator.study.positions.choices import CHOICES, CLOCKS, DIALS, FAR, SHOWN_IN, WAVES
from simulator.study.positions.scores import (
    PLACES,
    PlacedScores,
    PositionsState,
    positions_state,
    sinusoids,
)
from ui.kit.boxes import Box, Column, Placed, Row, Tone, ink
from ui.kit.shapes import LINE, Heat, Image, Legend, Text
from ui.look.clocks import paint_clock, turn_text
from ui.look.draw import CENTRE, LEFT, RIGHT, draw_text, text_width
from ui.look.names import first_that_fits, row_name
from ui.look.theme import LABEL, Style
from ui.look.units import count_text, number_text, tick_text
from ui.panels.study import Chosen, Study, Words
from ui.plots.model import Axis, Curve, Dash, Level, PlotModel
from ui.session.tasks import Report
from ui.session.view import View

_ROUNDING = 1e-12
"""Smaller differences are rounding of float64."""
_HANDS = {
    "angles": "By how much each place turns a pair, from twelve o'clock",
    "before": "The query of every row before it is turned",
    "turned": "The query of every row, each pair turned by its place",
}


def clock_words(state: PositionsState) -> Words:
    """Return the words around the clocks."""
    last, theta = len(state.speeds) - 1, f"θ = {state.rotary.theta:g}"
    return Words(_HANDS[state.hands], sentences=(
        "Two numbers of a query or key are a hand. Pair 0 turns once in "
        f"{number_text(state.turn(0), 2)} tokens, pair {last} once in "
        f"{count_text(state.turn(last))} tokens: fast hands tell neighbours apart, slow "
        "ones near from far. A place changes a score only through the angle between the hands of "
        "query and key.",
        f"This run turns Q and K so, {theta}." if state.workload.position else
        f"The model that reads the text turns Q and K so, {theta}." if state.workload.typed else
        f"This run has no rotary positions: shown are RoPE's with {theta}.",
    ))  # fmt: skip


def map_words(state: PositionsState) -> Words:
    """Return the words around the maps."""
    errors = ", ".join(f"{number_text(off, 2)} in {dtype}" for dtype, off in state.errors.items())
    row = row_name(state.workload, state.row)
    return Words(f"The query of {row} at {PLACES} places, as query and as key", sentences=(
        "With RoPE scores depend on the distance alone, so every diagonal has one colour "
        "(Toeplitz). What is added to the vectors, sinusoids or a learned table, meets the vector "
        "itself too.",
        f"A shift of all places by {count_text(state.shift)} leaves them unmoved but for rounding: "
        f"with RoPE by {errors}, as a share of the largest.",
    ))  # fmt: skip


def wave_words(state: PositionsState) -> Words:
    """Return the words around the matrix of sinusoids."""
    width = state.workload.head_dim
    last = 2 * math.pi * 10000 ** (2 * ((width + 1) // 2 - 1) / width)
    return Words(f"Sinusoids of {PLACES} places, {width} numbers each", sentences=(
        "Two columns beside each other are the sine and the cosine of one angle. The first pair "
        f"turns once in 6.28 places, the last once in {count_text(round(last))}.",
        "These rows are added to the vectors of tokens before the first layer. RoPE turns queries "
        "and keys by such angles instead.",
    ))  # fmt: skip


def new_pairs(state: PositionsState) -> str:
    """Return in words how many pairs reach new angles, under each way to use longer texts."""
    pairs = len(state.speeds)
    return ", ".join(
        f"{way.new_angles(state.trained, state.factor, state.speeds)} of {pairs} with {way.title}"
        for way in state.ways
    )


def dial_words(state: PositionsState) -> Words:
    """Return the words around the dials."""
    trained, longer = count_text(state.trained), count_text(state.trained * state.factor)
    title = f"Angles in a text of {longer} tokens, trained on {trained}"
    return Words(title, sentences=(
        "A pair that has turned once in training has shown all angles. A slower pair has not: in "
        f"a longer text it reaches angles that are new. Pairs that do: {new_pairs(state)}.",
        "Interpolation slows all pairs alike, NTK-aware scaling the slow ones most; YaRN leaves "
        "fast pairs as they are.",
    ))  # fmt: skip


def figures(kind: PlacedScores) -> tuple[tuple[str, ...], ...]:
    """Return the two lines of words on a map, longest first."""
    off, moved = (
        "0" if value < _ROUNDING else f"{100 * value:.0f} %" if value >= 0.01 else
        number_text(value, 2)
        for value in (kind.off, kind.moved)
    )  # fmt: skip
    return (
        (f"differs along diagonals by {off}", f"along diagonals {off}", f"diagonals {off}", ""),
        (f"a shift moves it by {moved}", f"shift moves {moved}", f"shift {moved}", ""),
    )


_CLOCK, _LARGEST = 15.0, 46.0
"""Least room of a clock, as high as the line beside it, and the largest room, pixels."""
SEEN: Tone = ("empty", "muted", 0.55)
"""Angles that training has shown."""
_TURNS = ("places for one turn of a pair, fast → slow", "places for one turn", "turn")


def shown_rows(state: PositionsState, most: int) -> list[int]:
    """Return the rows that have clocks: the explained row and its neighbours."""
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
        Text(_TURNS, "muted").paint(painter, style, QRectF(left, rect.y(), room, line))
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
    """Return the dials of all ways to use longer texts, and the legend of their colours."""
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
        Text(_TURNS, "muted").paint(painter, style, QRectF(left, rect.y(), room, line))
        step = -(-px(38) // pitch)
        for n, pair in enumerate(pairs[:: int(step)]):
            place = QRectF(left + n * step * pitch, rect.y() + line, pitch * step, line)
            draw_text(painter, place, turn_text(state.turn(pair)), font, theme.text, LEFT)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        radius = 0.44 * min(pitch, high)
        for r, (way, name) in enumerate(zip(ways, names, strict=True)):
            y = rect.y() + 2 * line + px(2) + r * high
            label = QRectF(rect.x(), y, wide - px(6), high)
            Text(name, align=RIGHT).paint(painter, style, label)
            seen, reached = way.arcs(state.trained, state.factor, state.speeds)
            for n, pair in enumerate(pairs):
                middle = QPointF(left + (n + 0.5) * pitch, y + high / 2)
                arcs = float(seen[pair]), float(reached[pair])
                _paint_dial(painter, middle, radius, *arcs, style)


def _paint_dial(
    painter: QPainter, middle: QPointF, radius: float, seen: float, reached: float, style: Style
) -> None:
    """Paint a circle, the angles from 0 that training has seen, and the angles beyond them."""
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
    """A map of scores for each kind of positions, all of one size, in one line or in two."""

    kinds: tuple[PlacedScores, ...]

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        gap, words, count = style.px(14), style.px(3 * LINE + 2), len(self.kinds)

        def side(across: int) -> float:
            high = rect.height() / -(-count // across) - words
            return min((rect.width() + gap) / across - gap, high)

        across = max((count, 2), key=side)
        pitch = (rect.width() + gap) / across
        pitch = min(pitch, max(max(side(across), style.px(12)) + 2 * gap, 0.5 * pitch))
        # All maps use the same form of words.
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


_LOOKS: tuple[tuple[str, Dash, float], ...] = (
    ("muted", "solid", 1.4), ("K", "dash", 1.8), ("V", "dashdot", 1.8), ("O", "solid", 2.2),
)  # fmt: skip


def far_plot(state: PositionsState) -> PlotModel:
    """Return the score of a query with itself over distance, under RoPE and its stretches."""
    longest = state.trained * state.factor
    curves = tuple(
        Curve(way.title, way.title.split()[0], role, tuple(xs.tolist()), tuple(ys.tolist()), dash,
              None, width)
        for way, (xs, ys), (role, dash, width) in zip(state.ways, state.far, _LOOKS, strict=True)
    )  # fmt: skip
    values = [y for curve in curves for y in curve.ys]
    stretch = max(1, round(longest / len(curves[0].xs)))
    note = (
        f"Beyond the trained length angles are new. Pairs that reach such: {new_pairs(state)}. "
        f"Scores are those of the query of {row_name(state.workload, state.row)} with itself, "
        f"means of some {count_text(2 * stretch)} distances; YaRN multiplies them by "
        f"{number_text(state.ways[-1].temper, 3)}, too."
    )
    return PlotModel(
        name="Scores over distance",
        x=Axis("distance in tokens", count_text, whole=True),
        y=Axis("score", tick_text),
        curves=curves,
        levels=(
            Level(float(state.trained), f"trained: {count_text(state.trained)}", "trained",
                  "current", across=False),
        ),
        note=note,
        x_range=(0.0, float(longest)),
        y_range=(min(values), max(values)),
        summary=note,
    )  # fmt: skip


class Positions(Study[PositionsState, PositionsState]):
    """The effect of positions on the query of the head and row that the board explains."""

    name, title, doing = "positions", "Positions", "positions of a row"
    pictured = "Pairs as hands of clocks, or one vector at all places"
    choices, room = CHOICES, QSizeF(420, 230)

    def hidden(self, trace: Trace, chosen: Chosen) -> frozenset[str]:
        return frozenset(name for name, views in SHOWN_IN.items() if chosen["view"] not in views)

    def needs(self, trace: Trace, view: View, chosen: Chosen) -> Hashable:
        place = trace.workload.single(view.snapshot.visit.head, view.report.row)
        return *place, *(int(chosen[name]) for name in ("shift", "trained", "factor"))

    def compute(self, trace: Trace, needs: Any, report: Report) -> PositionsState:
        return positions_state(*trace.single_heads, *needs)

    def state(
        self, found: PositionsState, chosen: Chosen, before: PositionsState | None, changed: str
    ) -> PositionsState:
        return replace(found, view=chosen["view"], hands=chosen["hands"])

    def plot(self, state: PositionsState) -> PlotModel | None:
        return far_plot(state) if state.view == FAR else None

    def picture(self, state: PositionsState) -> Box:
        if state.view == DIALS:
            return dials(state)
        if state.view == WAVES:
            return waves(state)
        return Clocks(state) if state.view == CLOCKS else Maps(state.kinds)

    def words(self, state: PositionsState) -> Words:
        if state.view == DIALS:
            return dial_words(state)
        if state.view == WAVES:
            return wave_words(state)
        return clock_words(state) if state.view == CLOCKS else map_words(state)


POSITIONS = Positions()
