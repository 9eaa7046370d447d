"""The two factors of the weights as maps, and the weights that are their product."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QRectF
from PySide6.QtGui import QImage, QPainter, QPen

from simulator.base.dtypes import F32
from ui.kit.boxes import Box, Canvas, Placed, ink
from ui.kit.shapes import LINE, Image, Text
from ui.look.draw import CENTRE, RIGHT, draw_text, outline, text_width
from ui.look.heat import HIDDEN, colour_map, hatching, heat_image, word_image
from ui.look.theme import LABEL, Style
from ui.look.units import number_text
from ui.panels.smoothing.state import SmoothingState
from ui.panels.study import Words

_TICKS = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0)
_MOST = 192
"""Rows and keys of a map: of more of them evenly spread ones."""


def words_of_factors(state: SmoothingState) -> Words:
    """Return what the maps show."""
    found, row = state.factors, state.row_name(state.row)
    mean = float(found.moved[state.points.seen.any(axis=1)].mean()) if found.moved.size else 0.0
    after = ""
    if state.points.changed:
        done = " and ".join(state.workload.change_names)
        after = f" What comes after q·k is not in the maps: {done}."
    return Words(
        (f"{row} of {state.head_name}: norm factor × radial factor = weights",
         "norm factor × radial factor = weights"),
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
        labels = [state.row_label(n) for n in range(len(state.points.rows))]
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
    """Return roots of values, −∞ where hidden; of many rows and keys evenly spread ones."""
    shown = np.where(seen, values, np.nan)
    for axis in (0, 1):
        length = shown.shape[axis]
        if length > _MOST:
            shown = np.take(shown, np.linspace(0, length - 1, _MOST).astype(int), axis=axis)
    return np.where(np.isnan(shown), -np.inf, np.sqrt(shown)).astype(np.float32)


def _bar(painter: QPainter, style: Style, rect: QRectF) -> None:
    """Paint the colour bar of weights with its ticks, where their roots are."""
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
