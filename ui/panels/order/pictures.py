"""Rows of O that go with their tokens, and the tokens of which one hears level by level."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from simulator.base.dtypes import F32
from simulator.problem.intervals import Bools
from simulator.study.order.shuffle import Shuffled
from simulator.study.order.state import ReachState, ShuffleState
from ui.kit.boxes import Box, Column, Placed, Row, Tone, Where, ink
from ui.kit.shapes import LINE, Heat, Image, Text
from ui.look.draw import CENTRE, LEFT, RIGHT, draw_text, mixed, outline, text_width
from ui.look.heat import signed_limit
from ui.look.theme import LABEL, Style
from ui.look.units import count_text
from ui.panels.order.words import names_of

_MOST_LINES = 1500
"""Ways from level to level that are drawn; of more of them the cells alone are."""
_DEEP = 0.42
"""Height of a level's cells, as a share of the way from level to level."""
_GAP = 7.0
"""Way from names to what they name, pixels."""
_LONGEST = 84.0
"""Largest width of a name, pixels."""


def _apart(count: int, pitch: float, least: float, first: Iterable[int] = ()) -> Iterator[int]:
    """Yield which of some evenly spaced names are written: `first`, and others beside them."""
    taken: list[int] = []
    for n in first:
        if all(abs(n - other) * pitch >= least for other in taken):
            taken.append(n)
    yield from taken
    steps = (1, 2, 5, 10, 20, 50, 100, 200, 500)
    step = next((each for each in steps if each * pitch >= least), steps[-1])
    for n in range(0, count, step):
        if all(abs(n - other) * pitch >= least for other in taken):
            yield n


@dataclass(frozen=True, eq=False)
class _Names(Box):
    """Names beside evenly spaced rows, as many as there is room for."""

    names: tuple[tuple[str, Tone], ...]
    align: Qt.AlignmentFlag = RIGHT
    first: tuple[int, ...] = ()  # that are written before others
    end: float = 0.5  # from an end to the first row, and from the last one to an end, in rows

    def width(self, style: Style) -> float:
        font = style.text_font(LABEL)
        widest = max(text_width(font, name) for name, _ in self.names)
        return min(widest, style.px(_LONGEST)) + 1

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        font, line, count = style.text_font(LABEL), style.px(LINE), len(self.names)
        pitch = rect.height() / (count - 1 + 2 * self.end)
        half = 0.4 * font.pixelSize()
        for n in _apart(count, pitch, font.pixelSize() + 1, self.first):
            y = min(max((n + self.end) * pitch, half), rect.height() - half) - line / 2
            place, (name, tone) = QRectF(rect.x(), rect.y() + y, rect.width(), line), self.names[n]
            draw_text(painter, place, name, font, ink(style, tone), self.align)


# --- rows of O ------------------------------------------------------------------------------


def shuffle(state: ShuffleState, found: Shuffled) -> Box:
    """Return O by token, lines to where the tokens stand afterwards, and O there."""
    limit = signed_limit(found.before) or 1.0
    names = names_of(state.workload, len(found.order))

    def named(tokens: Iterable[int], align: Qt.AlignmentFlag) -> Box:
        tones = ((each, "current" if each == state.row else "text") for each in tokens)
        return _Names(tuple((names[each], tone) for each, tone in tones), align, grow=1)

    def below(words: str, tone: Tone, box: Box, grow: float = 0.0) -> Box:
        return Column((Text(words, tone), box), gap=2, grow=grow)

    def rows(values: F32, name: str) -> Box:
        return Image(Heat(values, -limit, limit, "O"), name=name, grow=1)

    moved = ((f"{100 * share:.0f} %", "bad" if share > found.bound else "good")
             for share in found.apart[found.order].tolist())  # fmt: skip
    picture = Row((
        below("", "text", named(range(len(names)), RIGHT)),
        below("O, in order", "O", rows(found.before, "before"), 3),
        Box(grow=4),
        below("O, shuffled", "O", rows(found.after, "after"), 3),
        below("", "text", named(found.order.tolist(), LEFT)),
        below("apart", "muted", _Names(tuple(moved), grow=1)),
    ), gap=_GAP, grow=1, over=partial(_draw_ways, state.row, found))  # fmt: skip
    return Column((picture, Box(high=4)), gap=0)


def _draw_ways(row: int, found: Shuffled, painter: QPainter, style: Style, where: Where) -> None:
    """Draw lines from the rows in order to the shuffled ones; mark those that are others now."""
    one, other, px, places = where["before"], where["after"], style.px, found.places.tolist()
    each, bent = one.height() / len(places), found.apart > found.bound
    ys = [one.y() + (n + 0.5) * each for n in range(len(places))]
    ends, own = (one.right() + px(2), other.left() - px(2)), np.arange(len(places)) == row
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    for which, tone, thick in ((~bent & ~own, "good", 1.2), (bent & ~own, "bad", 1.2),
                               (own, "current", 2.2)):  # fmt: skip
        dash = Qt.PenStyle.DashLine if bent[which].any() else Qt.PenStyle.SolidLine
        painter.setPen(QPen(ink(style, tone), px(thick), dash))
        tokens = np.flatnonzero(which).tolist()
        painter.drawLines([QLineF(ends[0], ys[n], ends[1], ys[places[n]]) for n in tokens])
        for n in np.flatnonzero(which & bent).tolist():
            y = ys[places[n]] - 0.35 * each
            painter.fillRect(QRectF(other.right() + px(1), y, px(3), 0.7 * each), ink(style, tone))
    for box, place in ((one, row), (other, places[row])):
        frame = QRectF(box.x() - 1, ys[place] - each / 2, box.width() + 2, each)
        outline(painter, frame, style.theme.current, px(2))


# --- the reach of a token -------------------------------------------------------------------


def reach(state: ReachState) -> Box:
    """Return the token at the top, and level by level below those of which it can hear."""
    depth, spread = state.depth, state.layers.is_global[::-1]
    named = tuple(
        (f"layer {depth - n} global", "K") if is_global else (f"layer {depth - n}", "muted")
        for n, is_global in enumerate(spread)
    )
    counts = tuple(
        (count_text(level.sum()) if n <= state.lit else "", "text")
        for n, level in enumerate(state.cone[::-1])
    )
    left = _Names(named, RIGHT, tuple(np.flatnonzero(spread).tolist()), (1 + _DEEP) / 2)
    right = _Names(counts, LEFT, (0, depth), _DEEP / 2)
    return Column((
        Text("tokens", "muted", RIGHT, may_go=True),
        Row((left, _Levels(state, name="levels", grow=1), right), gap=_GAP, grow=1),
        _Tokens(state, (left, right)),
    ), gap=3)  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Levels(Box):
    """A level of tokens above and below each layer, and who hears of whom there."""

    state: ReachState

    def spot(self, rect: QRectF, at: QPointF) -> Hashable:
        tokens = self.state.tokens
        return min(int((at.x() - rect.x()) / rect.width() * tokens), tokens - 1)

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        state, wide = self.state, rect.width() / self.state.tokens
        pitch = rect.height() / (state.depth + _DEEP)
        tops = [rect.y() + n * pitch for n in range(state.depth + 1)]
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for n, is_global in enumerate(state.layers.is_global[::-1]):
            band = QRectF(rect.x(), tops[n] + _DEEP * pitch, rect.width(), (1 - _DEEP) * pitch)
            if is_global:
                painter.fillRect(band, ink(style, ("panel", "K", 0.22)))
            if n + 1 <= state.lit and wide >= 3:
                self._paint_ways(painter, style, band, state.depth - 1 - n)
        for n, seen in enumerate(state.cone[::-1]):
            whole = QRectF(rect.x(), tops[n], rect.width(), _DEEP * pitch)
            _paint_level(painter, style, whole, seen if n <= state.lit else np.zeros_like(seen))
        top = QRectF(rect.x() + state.token * wide, rect.y(), wide, _DEEP * pitch)
        outline(painter, top, style.theme.current, style.px(2))

    def _paint_ways(self, painter: QPainter, style: Style, band: QRectF, layer: int) -> None:
        """Draw lines from each token above a layer to those that its row sees there."""
        rows = np.flatnonzero(self.state.cone[layer + 1])
        one, other = np.nonzero(self.state.layers.tables[layer][rows])
        if len(one) > _MOST_LINES:
            return
        wide = band.width() / self.state.tokens
        # Not translucent: where lines cross a PDF has one coat of paint, and pixels have several.
        way = mixed(style.theme.panel, ink(style, "S"), 0.55 if len(one) < 200 else 0.35)
        painter.setPen(QPen(way, max(style.px(0.8), 1.0)))
        ends = (band.x() + (each + 0.5) * wide for each in (rows[one], other))
        painter.drawLines([
            QLineF(x, band.top(), there, band.bottom())
            for x, there in zip(*(each.tolist() for each in ends), strict=True)
        ])  # fmt: skip


def _paint_level(painter: QPainter, style: Style, whole: QRectF, seen: Bools) -> None:
    """Fill the cells of a level, runs of equal ones at once; with room each has its edge."""
    wide, x, y, high = whole.width() / len(seen), whole.x(), whole.y(), whole.height()
    painter.fillRect(whole, ink(style, "empty"))
    edges = np.diff(np.concatenate([[False], seen, [False]]).astype(np.int8))
    for start, stop in np.flatnonzero(edges).reshape(-1, 2).tolist():
        painter.fillRect(QRectF(x + start * wide, y, (stop - start) * wide, high), ink(style, "S"))
    if wide >= style.px(6):
        painter.setPen(QPen(ink(style, "grid"), 1))
        xs = (x + token * wide for token in range(1, len(seen)))
        painter.drawLines([QLineF(each, y, each, whole.bottom()) for each in xs])
    outline(painter, whole, style.theme.border)


@dataclass(frozen=True, eq=False)
class _Tokens(Box):
    """The tokens below the levels, which stand between two boxes; upright if they are wide."""

    state: ReachState
    sides: tuple[Box, Box]

    spot = _Levels.spot

    def beside(self, style: Style, rect: QRectF) -> QRectF:
        """Return the room between the two boxes."""
        left, right = (each.width(style) + style.px(_GAP) for each in self.sides)
        return rect.adjusted(left, 0, -right, 0)

    def names(self, style: Style, width: float) -> tuple[list[str], float, bool]:
        """Return the names, the width of the widest, and whether they have room side by side."""
        names, font = names_of(self.state.masks.workload, self.state.tokens), style.text_font(LABEL)
        widest = max(text_width(font, name) for name in names)
        return names, widest, widest + style.px(4) <= width / len(names)

    def height(self, style: Style, width: float) -> float:
        room = self.beside(style, QRectF(0, 0, width, 0)).width()
        _, widest, flat = self.names(style, room)
        return style.px(LINE) if flat else min(widest, style.px(70)) + style.px(4)

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        yield Placed(self, self.beside(style, rect))

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        state, px, font = self.state, style.px, style.text_font(LABEL)
        names, widest, flat = self.names(style, rect.width())
        pitch, high = rect.width() / len(names), rect.height()
        least = widest + px(4) if flat else font.pixelSize() + 3
        level = QRectF(-least, 0, 2 * least, high)
        place, align = (level, CENTRE) if flat else (QRectF(-high, -px(8), high, px(16)), RIGHT)
        for token in _apart(len(names), pitch, least, (state.token,)):
            heard = state.lit >= state.depth and state.cone[0, token]
            tone = "current" if token == state.token else "text" if heard else "muted"
            painter.save()
            painter.translate(rect.x() + (token + 0.5) * pitch, rect.y())
            painter.rotate(0 if flat else -90)
            draw_text(painter, place, names[token], font, ink(style, tone), align)
            painter.restore()
