"""Attention as a kernel smoother (Tsai et al. 2019), and other scores: the Kernel smoother dock."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QRectF, QSizeF
from PySide6.QtGui import QColor, QImage, QPainter, QPen

from simulator.base.dtypes import F32
from simulator.run.trace import Trace
from simulator.study.smoothing.choices import (
    AGAIN,
    CHOICES,
    FACTORS,
    FEATURES,
    KEYS,
    REGRESSION,
    SCORES,
)
from simulator.study.smoothing.kernel_smoother import MOST
from simulator.study.smoothing.regression import regression
from ui.kit.boxes import Box, Canvas, Placed, ink
from ui.kit.shapes import LINE, Image, Text
from ui.kit.table import BoxRow, BoxTable, FigureText, Head
from ui.look.draw import CENTRE, RIGHT, card, draw_text, mixed, outline, text_width
from ui.look.heat import HIDDEN, colour_map, hatching, heat_image, word_image
from ui.look.names import key_name, row_label, row_name
from ui.look.theme import LABEL, Style
from ui.look.units import count_text, number_text
from ui.panels.smoothing.plots import again_plot, features_plot, keys_plot, regression_plot
from ui.panels.smoothing.state import (
    ScoredRow,
    SmoothingState,
    at_row,
    smoothing_state,
    with_again,
    with_estimates,
    with_query_at,
)
from ui.panels.study import Chosen, Study, Words
from ui.plots.model import PlotModel
from ui.session.tasks import Report
from ui.session.view import View

_HEADS = (
    Head("score"), Head(("weights of the row, key by key", "weights", "p"), takes=True),
    Head("matmul", goes=1), Head("other", goes=3), Head("tanh", goes=2), Head("kept", goes=4),
    Head(("tensor cores", "tensor")),
)  # fmt: skip


def words_of_scores(state: SmoothingState) -> Words:
    """Return the words on the rows."""
    w, scored = state.workload, state.scored()
    rows, cols = min(w.rows, w.seqlen_q), min(w.cols, w.seqlen_k)
    pairs, first, last = rows * cols, scored[0].kind, scored[-1].kind
    done = " and ".join(w.change_names)
    after = f" None of them has what comes after q·k: {done}." if state.points.changed else ""
    return Words(
        f"{row_name(state.workload, state.row)} of {state.head_name} under each score",
        sentences=(
            f"Of a pair at d = {w.head_dim}: FLOPs in a matmul, other FLOPs, values of tanh, "
            "numbers kept before they are summed. All go through the same tiles. A tile of "
            f"{rows} × {cols}: {first.name} {count_text(pairs * first.cost.matmul)} FLOPs as one "
            f"matrix product; {last.name} {count_text(pairs * last.cost.plain)} on ordinary units "
            f"and {count_text(pairs * last.cost.special)} tanh.",
            "W_q, W_k and v are drawn at random: nobody has trained them for this head. The dot "
            "product won because it is a matrix product (Vaswani et al. 2017, section 3.2.1)."
            f"{after}{state.part_words}",
        ),
    )


def rows_of_scores(state: SmoothingState) -> Iterator[str]:
    """Yield the rows in words."""
    for each in state.scored():
        where = "on tensor cores" if each.kind.cost.on_tensor_cores else "not on tensor cores"
        yield (
            f"{each.kind.name}, {each.kind.formula}: strongest "
            f"{key_name(state.workload, state.points.keys[int(each.weights.argmax())])} "
            f"{number_text(float(each.weights.max()))}, entropy {number_text(each.entropy, 2)} "
            f"bits, {each.kind.cost.flops} FLOPs a pair, {where}"
        )


def scores(state: SmoothingState) -> Box:
    """Return the table."""
    scored = state.scored()
    limit = max(float(each.weights.max()) for each in scored) or 1.0
    rows = tuple(
        BoxRow(
            Text(each.kind.name, size=12),
            (Canvas(partial(_weights, state, each, limit), wide=70), *_figures(each)),
            each.kind.formula,
        )
        for each in scored
    )
    return BoxTable(_HEADS, rows, heights=(22, 84), names=0.36, align=RIGHT, grow=1)


def _figures(each: ScoredRow) -> tuple[FigureText, ...]:
    cost = each.kind.cost
    counts = (cost.matmul, cost.plain, cost.special, cost.kept)
    yes, tone = ("yes", "good") if cost.on_tensor_cores else ("no", "bad")
    numbers = (FigureText(count_text(n), align=RIGHT, size=12) for n in counts)
    return *numbers, FigureText(yes, tone, RIGHT, 12)


def _weights(
    state: SmoothingState, each: ScoredRow, limit: float,
    painter: QPainter, style: Style, rect: QRectF,
) -> None:  # fmt: skip
    """Paint the weights as bars over the keys, the strongest with its name."""
    px, theme = style.px, style.theme
    box = style.inset(rect, 0, 0, 4, 4)
    card(painter, box, theme.field, theme.border, px(3))
    named = box.height() >= px(28)
    inner = box.adjusted(px(3), px(14) if named else px(2), -px(3), -px(2))
    per = -(-len(each.weights) // max(int(inner.width() / max(px(1), 1)), 1))
    tallest = np.maximum.reduceat(each.weights, np.arange(0, len(each.weights), per))
    wide, colour = inner.width() / len(tallest), QColor(theme.tensor("P"))
    top, gap = int(tallest.argmax()), 0.15 * wide if wide >= 4 else 0.0
    for n, p in enumerate(tallest.tolist()):
        high = inner.height() * p / limit
        bar = QRectF(inner.x() + n * wide + gap, inner.bottom() - high, wide - 2 * gap, high)
        painter.fillRect(bar, colour if n == top else mixed(theme.field, colour, 0.6))
    if named:
        strongest = int(each.weights.argmax())
        figure = number_text(float(each.weights[strongest]), 2)
        best = f"{state.key_label(strongest)}: {figure}"
        words = (f"{best}, {number_text(each.entropy, 2)} bits", best, figure)
        place = QRectF(box.x() + px(4), box.y(), box.width() - px(8), px(14))
        Text(words, "muted").paint(painter, style, place)


_TICKS = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0)
_MOST = 192
"""Most rows and keys of a map; of more, evenly spread ones are taken."""


def words_of_factors(state: SmoothingState) -> Words:
    """Return the words on the maps."""
    found, row = state.factors, row_name(state.workload, state.row)
    mean = float(found.moved[state.points.seen.any(axis=1)].mean()) if found.moved.size else 0.0
    after = ""
    if state.points.changed:
        done = " and ".join(state.workload.change_names)
        after = f" What comes after q·k is not in the maps: {done}."
    return Words(
        f"{row} of {state.head_name}: norm factor × radial factor = weights",
        sentences=(
            "exp(q·k) = exp(|q|²/2) exp(|k|²/2) exp(−|q − k|²/2): the two sides differ by "
            f"{number_text(found.off, 3)} of themselves at most, rounding allows "
            f"{number_text(state.bound, 3)}.",
            f"The norms of the keys move {100 * float(found.moved[state.at]):.0f} % of the weight "
            f"of {row} to other keys, {100 * mean:.0f} % in the mean of all rows; with keys of one "
            f"length attention is the radial kernel alone.{after}{state.part_words}",
        ),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class FactorMaps(Box):
    """Norm factor × radial factor = weights, each row divided by its sum; a scale below."""

    state: SmoothingState

    def place(self, style: Style, rect: QRectF) -> Iterator[Placed]:
        state, px, line = self.state, style.px, style.px(LINE)
        labels = [row_label(state.workload, n) for n in state.points.rows]
        wide = max(text_width(style.text_font(LABEL), each) for each in labels)
        left, gap, room = min(wide, px(72)) + px(8), px(22), rect.height() - 2 * line
        side = min((rect.width() - left - 2 * gap) / 3, room)
        high = side / len(labels)
        if high < px(LABEL):
            left, labels = 0.0, []
            side = max(min((rect.width() - px(2) - 2 * gap) / 3, room), px(12))
        x, top = rect.x() + left, rect.y() + line
        for n, each in enumerate(labels):
            tone = "current" if n == state.at else "muted"
            place = QRectF(rect.x(), top + n * high, left - px(6), high)
            yield Placed(Text(each, tone, RIGHT), place)
        for values, titles, sign in _maps(state):
            box = QRectF(x, top, side, side)
            room = min(side + gap - px(4), rect.right() - x)
            yield Placed(Text(titles), QRectF(x, rect.y(), room, line))
            yield Placed(FactorMap(partial(_pixels, state, values), state=state), box)
            after = Text(sign, align=CENTRE, size=16, bold=True)
            yield Placed(after, QRectF(box.right(), top, gap, side))
            x = box.right() + gap
        below = QRectF(rect.x() + left, top + side, rect.width() - left, line)
        axes = "queries ↓ keys →, colours as their roots", "queries ↓ keys →"
        yield Placed(Text(axes, "muted"), below)
        scale = below.translated(0, line).adjusted(0, 0, 0, px(12))
        if scale.bottom() <= rect.bottom() + px(2):
            yield Placed(Canvas(_bar), scale)


def _maps(state: SmoothingState) -> tuple[tuple[NDArray[np.float64], tuple[str, ...], str], ...]:
    """Return the values of each map, its title, and the sign after it."""
    found = state.factors
    return (
        (found.norm_weights, ("norm factor exp(|k|²/2) / Σ", "exp(|k|²/2) / Σ", "norm"), "×"),
        (found.radial_weights,
         ("radial factor exp(−|q − k|²/2) / Σ", "exp(−|q − k|²/2) / Σ", "radial"), "="),
        (state.points.plain_weights, ("weights softmax(q·k)", "softmax(q·k)", "weights"), ""),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class FactorMap(Image):
    """A map upon hatching, which is seen where pairs are hidden, with the row in a frame."""

    state: SmoothingState | None = None

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        assert self.state is not None
        points, theme, px = self.state.points, style.theme, style.px
        if not points.seen.all():
            painter.fillRect(rect, hatching(theme.empty, theme.hatch, style.scale))
        super().paint(painter, style, rect)
        high = rect.height() / len(points.rows)
        y = rect.y() + self.state.at * high
        band = QRectF(rect.x(), y, rect.width(), max(high, px(3))).adjusted(-1, -1, 1, 1)
        outline(painter, band, theme.current, max(px(1.5), 1.0))


def _pixels(state: SmoothingState, values: NDArray[np.float64], style: Style) -> QImage:
    shades = colour_map(style.theme, "P").copy()
    shades[HIDDEN] = 0
    return heat_image(_roots(values, state.points.seen), 0.0, 1.0, shades)


def _roots(values: NDArray[np.float64], seen: NDArray[np.bool_]) -> F32:
    """Return roots of values, −∞ where hidden; of many rows and keys, evenly spread ones."""
    shown = np.where(seen, values, np.nan)
    for axis in (0, 1):
        length = shown.shape[axis]
        if length > _MOST:
            shown = np.take(shown, np.linspace(0, length - 1, _MOST).astype(int), axis=axis)
    return np.where(np.isnan(shown), -np.inf, np.sqrt(shown)).astype(np.float32)


def _bar(painter: QPainter, style: Style, rect: QRectF) -> None:
    """Paint the colour bar of weights, with ticks at the roots of the weights."""
    theme, px, font = style.theme, style.px, style.text_font(LABEL)
    wide = min(rect.width() - px(12), px(420))
    bar = QRectF(rect.x() + px(6), rect.y() + px(2), wide, px(9))
    painter.drawImage(bar, word_image(colour_map(theme, "P")[None, :256]))
    outline(painter, bar, theme.border)
    edge = bar.x() - px(20)
    for value in _TICKS:
        x, text = bar.x() + value**0.5 * bar.width(), f"{value:g}"
        half = text_width(font, text) / 2 + 1
        if x - half >= edge:
            painter.setPen(QPen(ink(style, "muted"), 1))
            painter.drawLine(QLineF(x, bar.bottom(), x, bar.bottom() + px(2)))
            place = QRectF(x - half, bar.bottom() + px(2), 2 * half, px(LINE - 2))
            draw_text(painter, place, text, font, theme.muted, CENTRE)
            edge = x + half + px(5)


_PLOTS = {KEYS: keys_plot, AGAIN: again_plot, FEATURES: features_plot}


class SmoothingStudy(Study[SmoothingState, SmoothingState]):
    """Keys as points, two factors as maps, regression, repeated attention, and other scores.

    All of them show the head and row that the board explains.
    """

    name, title, doing = "kernel", "Kernel smoother", "keys of a head"
    pictured = "Factors, or scores"
    choices, room = CHOICES, QSizeF(440, 250)

    def hidden(self, trace: Trace, chosen: Chosen) -> frozenset[str]:
        return frozenset(() if chosen["view"] == REGRESSION else ("h", "examples"))

    def needs(self, trace: Trace, view: View, chosen: Chosen) -> Hashable:
        """Return the head, the row if not all rows are taken, and a view that takes seconds."""
        w = trace.workload
        head, row = w.single(view.snapshot.visit.head, view.report.row)
        whole = max(trace.single_heads[0].seqlen_q, w.seqlen_k) <= MOST
        slow = chosen["view"] if chosen["view"] in (AGAIN, FEATURES) else ""
        return head, 0 if whole else row, slow

    def compute(self, trace: Trace, needs: Any, report: Report) -> SmoothingState:
        (w, inputs), (head, row, slow) = trace.single_heads, needs
        state = smoothing_state(w, inputs, head, row)
        if slow == FEATURES:
            return with_estimates(state, inputs, report)
        return with_again(state) if slow == AGAIN else state

    def state(
        self, found: SmoothingState, chosen: Chosen, before: SmoothingState | None, changed: str
    ) -> SmoothingState:
        shown = regression(int(chosen["examples"]), float(chosen["h"]))
        state = replace(found, shows=chosen["view"], regression=shown)
        if before is None or before.points is not found.points:
            return state
        return replace(state, row=before.row, moved=before.moved)

    def follow(self, state: SmoothingState, view: View) -> SmoothingState:
        w = view.snapshot.program.workload
        head, row = w.single(view.snapshot.visit.head, view.report.row)
        if (head, row) == (state.points.head, state.row) or head != state.points.head:
            return state
        return at_row(state, row) or state

    def seen(self, state: SmoothingState, *, controls: bool) -> SmoothingState:
        return replace(state, moves=controls)

    def press(self, state: SmoothingState, at: Hashable) -> SmoothingState | None:
        """Explain the row of a query, or bring its query back to where it was."""
        return at_row(state, at) if isinstance(at, int) else None

    def explains(self, before: SmoothingState, after: SmoothingState) -> tuple[int, int] | None:
        return None if after.row == before.row else (after.points.head, after.row)

    def move(self, state: SmoothingState, x: float, y: float) -> SmoothingState | None:
        return with_query_at(state, (x, y)) if state.shows == KEYS else None

    def plot(self, state: SmoothingState) -> PlotModel | None:
        if state.shows == REGRESSION and state.regression is not None:
            return regression_plot(state.regression)
        return _PLOTS[state.shows](state) if state.shows in _PLOTS else None

    def words(self, state: SmoothingState) -> Words:
        return words_of_factors(state) if state.shows == FACTORS else words_of_scores(state)

    def described(self, state: SmoothingState) -> tuple[str, ...]:
        title, told, *said = super().described(state)
        return title, told, *(rows_of_scores(state) if state.shows == SCORES else ()), *said

    def picture(self, state: SmoothingState) -> Box:
        return FactorMaps(state, grow=1) if state.shows == FACTORS else scores(state)


SMOOTHING = SmoothingStudy()
