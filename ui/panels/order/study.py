"""The effect of the order of tokens: a shuffle of tokens, and how far they hear of each other."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QPainter, QPen

from simulator.base.dtypes import F32
from simulator.problem.intervals import Bools
from simulator.problem.workload import Workload
from simulator.run.trace import Trace
from simulator.study.order.choices import CHOICES, SHUFFLE
from simulator.study.order.shuffle import Shuffled
from simulator.study.order.state import (
    OrderFound,
    OrderState,
    ReachState,
    ShuffleState,
    layer_masks,
    reach_state,
    shuffle_state,
)
from ui.kit.boxes import Box, Column, Placed, Row, Tone, Where, ink
from ui.kit.shapes import LINE, Heat, Image, Text
from ui.look.draw import CENTRE, LEFT, RIGHT, draw_text, mixed, outline, text_width
from ui.look.heat import signed_limit
from ui.look.names import key_label
from ui.look.theme import LABEL, Style
from ui.look.units import count_text, number_text, plural
from ui.panels.study import Chosen, Slider, Study, Words
from ui.session.tasks import Report
from ui.session.view import View

_PLACES = {each.value: each.text for each in CHOICES[1].options}


def words(state: OrderState) -> Words:
    """Return the words around the picture."""
    if isinstance(state, ShuffleState):
        return Words(_shuffle_title(state), sentences=tuple(_shuffle_sentences(state)))
    name, layers = _name(state.masks.workload, state.token), plural(state.depth, "layer")
    title = f"Of which tokens {name} can hear through {layers}"
    return Words(
        f"{title}, {state.count or 'none'} of them global", sentences=tuple(_reach_sentences(state))
    )


def _name(w: Workload, token: int) -> str:
    """Return a token in words: ``“it”``, or ``token 8``."""
    word = w.key_token(token)
    return f"“{word}”" if word else f"token {count_text(token)}"


def _shuffle_title(state: ShuffleState) -> str:
    w, kind = state.workload, f"with {_PLACES[state.places]}"
    if state.places == "run":
        parts = [*(["its mask"] if w.mask.hides else []), *(["a bias"] if w.biased else []),
                 *(["positions"] if w.position else [])]  # fmt: skip
        kind = f"in this run, {'with ' * bool(parts)}{' and '.join(parts) or 'no mask'}"
    return f"O of head {w.picked[state.head]} before and after a shuffle, {kind}"


def _shuffle_sentences(state: ShuffleState) -> Iterator[str]:
    found = state.found
    if found is None:
        yield f"Tokens cannot be shuffled: {state.why}."
        return
    apart = found.apart
    most = int(apart.argmax())
    if found.follows:
        off = f"is more than {number_text(float(apart[most]), 3)} of a row's length from"
        yield (
            f"Every row follows its token: no row {off if apart[most] else 'has moved at all from'}"
            f" where it was, rounding allows {number_text(found.bound, 3)}."
        )
        yield "Attention sums over a set: without a mask or positions it knows no order."
        return
    changed = int((apart > found.bound).sum())
    yield (
        f"{count_text(changed)} of {plural(len(apart), 'row')} {'is' if changed == 1 else 'are'} "
        f"others now, most of all that of {_name(state.workload, most)}: {100 * apart[most]:.0f} % "
        "of a row's length away."
    )
    yield (
        "What a token reads depends on where it stands: this is all that tells a model the order "
        "of words."
    )


def _reach_sentences(state: ReachState) -> Iterator[str]:
    w, window, reached = state.masks.workload, state.masks.window, state.cone[0]
    name, far = _name(w, state.token), int(np.abs(np.flatnonzero(reached) - state.token).max())
    alone = f"; with local layers alone of {count_text(state.alone)}" if state.count else ""
    yield (
        f"{name[0].upper()}{name[1:]} hears of {count_text(reached.sum())} of "
        f"{plural(state.tokens, 'token')}, as far as {plural(far, 'token')} away{alone}."
    )
    local = f"a window of {count_text(window)}" if window else "what this run's mask shows"
    every = ", every token before it in global ones" if state.count else ""
    yield (
        "A token keeps what it has and adds, in each layer, what its row sees: "
        f"{local} in local layers{every}."
    )
    if w.seqlen_k > state.tokens:
        yield f"Shown are the first {count_text(state.tokens)} of {count_text(w.seqlen_k)} tokens."


_MOST_LINES = 1500
"""Most lines between two levels that are drawn; with more, only cells are drawn."""
_DEEP = 0.42
"""Height of a level's cells, as a share of the way from level to level."""
_GAP = 7.0
"""Gap between names and their rows, pixels."""
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
    first: tuple[int, ...] = ()  # names that are written before others
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
    names = [key_label(state.workload, each) for each in range(len(found.order))]

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
    """Draw lines from the rows in order to the shuffled ones; mark rows whose O has changed."""
    one, other, px, places = where["before"], where["after"], style.px, found.places.tolist()
    each, bent = one.height() / len(places), found.apart > found.bound
    ys = [one.y() + (n + 0.5) * each for n in range(len(places))]
    ends, own = (one.right() + px(2), other.left() - px(2)), np.arange(len(places)) == row
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    for which, tone, thick in ((~bent & ~own, "good", 1.2), (bent & ~own, "bad", 1.2),
                               (own, "current", 2.2)):  # fmt: skip
        dash = Qt.PenStyle.DashLine if bent[which].any() else Qt.PenStyle.SolidLine
        painter.setPen(style.pen(ink(style, tone), thick, dash))
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
    """Return the token at the top, and level by level below the tokens that it can hear of."""
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
        """Draw lines from each token above a layer to the tokens that its row sees there."""
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
    """Fill the cells of a level, runs of equal cells at once; with room each cell has an edge."""
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
    """The tokens below the levels, between two boxes; wide names are upright."""

    state: ReachState
    sides: tuple[Box, Box]

    spot = _Levels.spot

    def beside(self, style: Style, rect: QRectF) -> QRectF:
        """Return the room between the two boxes."""
        left, right = (each.width(style) + style.px(_GAP) for each in self.sides)
        return rect.adjusted(left, 0, -right, 0)

    def names(self, style: Style, width: float) -> tuple[list[str], float, bool]:
        """Return the names, the width of the widest, and whether they have room side by side."""
        font, w = style.text_font(LABEL), self.state.masks.workload
        names = [key_label(w, each) for each in range(self.state.tokens)]
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


class Order(Study[OrderFound, OrderState]):
    """Rows of O before and after a shuffle, or the tokens that one hears of through layers.

    The tokens that one hears of light up layer by layer.
    """

    name, title, doing = "order", "Token order", "shuffled tokens"
    pictured = "Shuffled tokens, or the reach of a token"
    choices, room, seconds = CHOICES, QSizeF(430, 240), 1.0
    slider = Slider(
        "global_layers", "Global layers", "How many of the layers are global, evenly spread.",
        "global_layers",
    )  # fmt: skip

    def hidden(self, trace: Trace, chosen: Chosen) -> frozenset[str]:
        shuffles = chosen["view"] == SHUFFLE
        return frozenset({"window", "layers", "global_layers"} if shuffles else {"places", "seed"})

    def needs(self, trace: Trace, view: View, chosen: Chosen) -> Hashable:
        if chosen["view"] != SHUFFLE:
            return (int(chosen["window"]),)
        head, _ = trace.workload.single(view.snapshot.visit.head, view.report.row)
        return head, chosen["places"], int(chosen["seed"])

    def compute(self, trace: Trace, needs: Any, report: Report) -> OrderFound:
        w, inputs = trace.single_heads
        return shuffle_state(w, inputs, *needs) if len(needs) > 1 else layer_masks(w, *needs)

    def state(
        self, found: OrderFound, chosen: Chosen, before: OrderState | None, changed: str
    ) -> OrderState:
        head, row = (0, 0) if before is None else (before.head, before.row)
        if isinstance(found, ShuffleState):
            return found.at(head, row)
        count = before.count if isinstance(before, ReachState) else 0
        return reach_state(found, head, row, int(chosen["layers"]), count)

    def follow(self, state: OrderState, view: View) -> OrderState:
        w = view.snapshot.program.workload
        return state.at(*w.single(view.snapshot.visit.head, view.report.row))

    def press(self, state: OrderState, at: Hashable) -> OrderState | None:
        if not isinstance(state, ReachState) or not isinstance(at, int):
            return None
        w = state.masks.workload
        row = at - w.mask.first_position
        return state.at(state.head, row) if 0 <= row < w.seqlen_q else None

    def explains(self, before: OrderState, after: OrderState) -> tuple[int, int] | None:
        same = (before.head, before.row) == (after.head, after.row)
        return None if same else (after.head, after.row)

    def mark(self, state: OrderState) -> tuple[int, int]:
        return (state.count, state.depth) if isinstance(state, ReachState) else (0, 0)

    def marked(self, state: OrderState, value: int) -> OrderState:
        if isinstance(state, ShuffleState) or value == state.count:
            return state
        return reach_state(state.masks, state.head, state.row, state.depth, value)

    def moves(self, before: OrderState, after: OrderState) -> bool:
        if not isinstance(before, ReachState) or not isinstance(after, ReachState):
            return False
        asked = {(each.token, each.masks.window, each.layers.is_global) for each in (before, after)}
        return before.masks.workload is after.masks.workload and len(asked) > 1

    def on_the_way(self, state: OrderState, share: float) -> OrderState:
        return replace(state, share=share) if isinstance(state, ReachState) else state

    def words(self, state: OrderState) -> Words:
        return words(state)

    def picture(self, state: OrderState) -> Box | None:
        if isinstance(state, ReachState):
            return reach(state)
        return None if state.found is None else shuffle(state, state.found)


ORDER = Order()
