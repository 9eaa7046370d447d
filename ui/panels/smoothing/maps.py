"""Paints the two factors of the weights as maps, and the weights that are their product."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSizeF
from PySide6.QtGui import QColor, QPainter, QPen

from ui.look.draw import CENTRE, LEFT, RIGHT, draw_text, outline, text_width, wrapped
from ui.look.heat import HIDDEN, colour_map, hatching, heat_image, word_image
from ui.look.names import first_that_fits, fitting, readable
from ui.look.theme import Style
from ui.look.units import number_text
from ui.panels.smoothing.state import KernelState

MIN_SIZE = QSizeF(420, 230)
"""Below this the text shrinks."""
_TICKS = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0)
_MOST = 192
"""Rows and keys of a map: of more of them evenly spread ones."""
_AXES = ("queries ↓ keys →, colours as their roots", "queries ↓ keys →")
_SMALL = 11
"""Size of all words, at scale 1."""
_SHARE = 0.45
"""Share of the height that the maps have at least, before sentences below them are left out."""


@dataclass(frozen=True, slots=True)
class _Map:
    """One map with its words, longest first, and the sign after it."""

    values: NDArray[np.float64]
    titles: tuple[str, ...]
    sign: str


def factor_words(state: KernelState) -> tuple[str, ...]:
    """Return what the maps show, in sentences."""
    found, at = state.factors, state.at
    mean = float(found.moved[state.points.seen.any(axis=1)].mean()) if found.moved.size else 0.0
    after = ""
    if state.points.changed:
        after = " This run's soft-cap or bias comes after q·k and is not in the maps."
    return (
        "exp(q·k) = exp(|q|²/2) exp(|k|²/2) exp(−|q − k|²/2): the two sides differ by "
        f"{number_text(found.off, 3)} of themselves at most, rounding allows "
        f"{number_text(state.bound, 3)}.",
        f"The norms of the keys move {100 * float(found.moved[at]):.0f} % of the weight of "
        f"{state.row_name(state.row)} to other keys, {100 * mean:.0f} % in the mean of all rows; "
        f"with keys of one length attention is the radial kernel alone.{after}{state.part_words}",
    )


def _pooled(values: NDArray[np.float64], seen: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return roots of values, −∞ where hidden; of many rows and keys evenly spread ones."""
    shown = np.where(seen, values, np.nan)
    for axis in (0, 1):
        length = shown.shape[axis]
        if length > _MOST:
            shown = np.take(shown, np.linspace(0, length - 1, _MOST).astype(int), axis=axis)
    return np.where(np.isnan(shown), -np.inf, np.sqrt(shown)).astype(np.float32)


def paint_factors(painter: QPainter, state: KernelState, style: Style, rect: QRectF) -> None:
    """Paint norm factor × radial factor = weights, each row divided by its sum."""
    style = readable(fitting(style, rect, MIN_SIZE), _SMALL)
    px, theme, font = style.px, style.theme, style.text_font(_SMALL)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    found = state.factors
    maps = (
        _Map(found.norm_weights, ("norm factor exp(|k|²/2) / Σ", "exp(|k|²/2) / Σ", "norm"), "×"),
        _Map(found.radial_weights,
             ("radial factor exp(−|q − k|²/2) / Σ", "exp(−|q − k|²/2) / Σ", "radial"), "="),
        _Map(state.points.plain_weights, ("weights softmax(q·k)", "softmax(q·k)", "weights"), ""),
    )  # fmt: skip
    said = [wrapped(words, font, rect.width()) for words in factor_words(state)]
    line = px(15)
    names = [state.row_label(n) for n in range(len(state.points.rows))]
    wide = min(max(text_width(font, name) for name in names), px(72)) + px(8)
    gap = px(22)
    across = (rect.width() - wide - 2 * gap) / 3
    while True:
        lines = [words for part in said for words in part]
        down = rect.height() - line * (len(lines) + 2) - px(30)
        if not said or down >= min(across, _SHARE * rect.height()):
            break
        said.pop()
    side = min(across, down)
    labelled = side / len(names) >= px(_SMALL)
    if not labelled:
        side = max(min((rect.width() - px(2) - 2 * gap) / 3, down), px(12))
    left = rect.x() + (wide if labelled else 0.0)
    top = rect.y() + line
    for n, each in enumerate(maps):
        box = QRectF(left + n * (side + gap), top, side, side)
        wide_title = min(side + gap - px(4), rect.right() - box.x())
        title = first_that_fits(each.titles, wide_title, font)
        place = QRectF(box.x(), rect.y(), wide_title, line)
        draw_text(painter, place, title, font, theme.text, LEFT)
        _paint_map(painter, state, each, style, box)
        if each.sign:
            sign = QRectF(box.right(), box.y(), gap, side)
            draw_text(painter, sign, each.sign, style.text_font(16, bold=True), theme.text, CENTRE)
    if labelled:
        high = side / len(names)
        for n, name in enumerate(names):
            place = QRectF(rect.x(), top + n * high, wide - px(6), high)
            ink = theme.current if n == state.at else theme.muted
            draw_text(painter, place, name, font, ink, RIGHT)
    room = rect.right() - left
    words = first_that_fits(_AXES, room, font)
    draw_text(painter, QRectF(left, top + side + px(1), room, line), words, font, theme.muted)
    bar = QRectF(
        left + px(6),
        top + side + line + px(3),
        min(3 * side + 2 * gap, px(420), room - px(12)),
        px(9),
    )
    below = min(rect.bottom() - line * len(lines), bar.bottom() + 2 * line)
    if bar.bottom() + line <= below + px(2):
        _paint_bar(painter, bar, style)
    for n, words in enumerate(lines):
        place = QRectF(rect.x(), below + n * line, rect.width(), line)
        draw_text(painter, place, words, font, theme.muted, LEFT)


def _paint_map(
    painter: QPainter, state: KernelState, each: _Map, style: Style, box: QRectF
) -> None:
    theme, px = style.theme, style.px
    words = colour_map(theme, "P").copy()
    words[HIDDEN] = 0
    if not state.points.seen.all():
        painter.fillRect(box, hatching(theme.empty, theme.hatch, style.scale))
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
    painter.drawImage(box, heat_image(_pooled(each.values, state.points.seen), 0.0, 1.0, words))
    outline(painter, box, theme.border)
    high = box.height() / len(state.points.rows)
    band = QRectF(box.x(), box.y() + state.at * high, box.width(), max(high, px(3)))
    outline(painter, band.adjusted(-1, -1, 1, 1), theme.current, max(px(1.5), 1.0))


def _paint_bar(painter: QPainter, bar: QRectF, style: Style) -> None:
    """Paint the colour bar of weights with its ticks, where their roots are."""
    theme, px, font = style.theme, style.px, style.text_font(_SMALL)
    painter.drawImage(bar, word_image(colour_map(theme, "P")[None, :256]))
    outline(painter, bar, theme.border)
    edge = bar.x() - px(20)
    for value in _TICKS:
        x = bar.x() + value**0.5 * bar.width()
        text = f"{value:g}"
        half = text_width(font, text) / 2 + 1
        if x - half < edge:
            continue
        painter.setPen(QPen(QColor(theme.muted), 1))
        painter.drawLine(QPointF(x, bar.bottom()), QPointF(x, bar.bottom() + px(2)))
        place = QRectF(x - half, bar.bottom() + px(2), 2 * half, px(13))
        draw_text(painter, place, text, font, theme.muted, CENTRE)
        edge = x + half + px(5)
