"""Paints the scores of one vector at all places, under every kind of positions."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QRectF, QSizeF
from PySide6.QtGui import QPainter

from simulator.study.positions import Placed
from ui.look.draw import LEFT, RIGHT, draw_text, outline, text_width, wrapped
from ui.look.heat import colour_map, heat_image
from ui.look.names import first_that_fits, fitting, readable
from ui.look.theme import Style
from ui.look.units import count_text, number_text
from ui.panels.positions.state import PLACES, PositionsState

MIN_SIZE = QSizeF(420, 230)
"""Below this the text shrinks."""
_SMALL = 11
"""Size of all words, at scale 1."""
_SHARE = 0.45
"""Share of the height that the maps have at least, before sentences below are left out."""
_ROUNDING = 1e-12
"""What differs by less does not differ: float64 rounds."""


def map_words(state: PositionsState) -> tuple[str, ...]:
    """Return what the maps show, in sentences."""
    errors = ", ".join(f"{number_text(off, 2)} in {dtype}" for dtype, off in state.errors.items())
    return (
        f"The query of {state.row_name} stands at {PLACES} places, as query and as key. With RoPE "
        "its scores depend on the distance alone, so every diagonal has one colour (Toeplitz). "
        "What is added to the vectors, sinusoids or a learned table, meets the vector itself too.",
        f"A shift of all places by {count_text(state.asked.shift)} leaves them unmoved but for "
        f"rounding: with RoPE by {errors}, as a share of the largest.",
    )


def _figures(kind: Placed) -> tuple[str, ...]:
    """Return what is said of a map, longest first."""
    off, moved = (
        "0" if value < _ROUNDING else f"{100 * value:.0f} %" if value >= 0.01 else
        number_text(value, 2)
        for value in (kind.off, kind.moved)
    )  # fmt: skip
    return (
        f"along diagonals ± {off}, shift moves {moved}",
        f"diagonals {off}, shift {moved}",
        f"{off}, {moved}",
    )


def _side(count: int, across: int, width: float, height: float, gap: float, words: float) -> float:
    """Return how large maps are of which so many are side by side, with words above and below."""
    return min((width + gap) / across - gap, height / -(-count // across) - words)


def paint_maps(painter: QPainter, state: PositionsState, style: Style, rect: QRectF) -> None:
    """Paint a map of scores for each kind of positions."""
    style = readable(fitting(style, rect, MIN_SIZE), _SMALL)
    px, theme, font = style.px, style.theme, style.text_font(_SMALL)
    line, gap = px(15), px(14)
    said = [wrapped(words, font, rect.width()) for words in map_words(state)]
    count = len(state.kinds)
    while True:
        lines = [words for part in said for words in part]
        down = rect.height() - line * len(lines) - px(6)
        if not said or down >= _SHARE * rect.height():
            break
        said.pop()
    across, side = max(
        ((n, _side(count, n, rect.width(), down, gap, 2 * line + px(4))) for n in (count, 2)),
        key=lambda choice: choice[1],
    )
    side = max(side, px(12))
    pitch, deep = (rect.width() + gap) / across, -(-count // across)
    pitch = min(pitch, max(side + 2 * gap, 0.5 * pitch))
    for n, kind in enumerate(state.kinds):
        x = rect.x() + n % across * pitch
        y = rect.y() + n // across * (side + 2 * line + px(4))
        title = QRectF(x, y, pitch - gap, line)
        bold = style.text_font(_SMALL, bold=True)
        draw_text(painter, title, kind.title, bold, theme.text, LEFT)
        span = QRectF(x, y, side, line)
        ends = number_text(float(kind.scores.min()), 2), number_text(float(kind.scores.max()), 2)
        words = first_that_fits(
            (f"{ends[0]} to {ends[1]}", ""), side - text_width(bold, kind.title) - px(8), font
        )
        draw_text(painter, span, words, font, theme.muted, RIGHT)
        box = QRectF(x, y + line, side, side)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
        low, high = float(kind.scores.min()), float(kind.scores.max())
        values = np.ascontiguousarray(kind.scores, dtype=np.float32)
        painter.drawImage(box, heat_image(values, low, max(high, low + 1e-30),
                                          colour_map(theme, "S")))  # fmt: skip
        outline(painter, box, theme.border)
        figures = first_that_fits(_figures(kind), pitch - gap, font)
        draw_text(painter, QRectF(x, box.bottom() + px(2), pitch - gap, line), figures, font,
                  theme.muted, LEFT)  # fmt: skip
    below = rect.y() + deep * (side + 2 * line + px(4)) + px(2)
    for n, words in enumerate(lines):
        place = QRectF(rect.x(), below + n * line, rect.width(), line)
        draw_text(painter, place, words, font, theme.muted, LEFT)
