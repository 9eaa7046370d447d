"""Paints the scores of one vector at all places, under every kind of positions."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QRectF, QSizeF
from PySide6.QtGui import QPainter

from simulator.study.positions import PLACES, PlacedScores
from ui.look.draw import LEFT, RIGHT, draw_text, outline, text_width, wrapped
from ui.look.heat import colour_map, heat_image
from ui.look.names import first_that_fits, fitting, readable
from ui.look.theme import Style
from ui.look.units import count_text, number_text
from ui.panels.positions.state import PositionsState

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


def _figures(kind: PlacedScores) -> tuple[tuple[str, ...], ...]:
    """Return what is said of a map, in two lines, longest first."""
    off, moved = (
        "0" if value < _ROUNDING else f"{100 * value:.0f} %" if value >= 0.01 else
        number_text(value, 2)
        for value in (kind.off, kind.moved)
    )  # fmt: skip
    return (
        (f"differs along diagonals by {off}", f"along diagonals {off}", f"diagonals {off}"),
        (f"a shift moves it by {moved}", f"shift moves {moved}", f"shift {moved}"),
    )


def _side(count: int, across: int, width: float, height: float, gap: float, words: float) -> float:
    """Return how large maps are of which so many are side by side, with words above and below."""
    return min((width + gap) / across - gap, height / -(-count // across) - words)


def paint_maps(painter: QPainter, state: PositionsState, style: Style, rect: QRectF) -> None:
    """Paint a map of scores for each kind of positions."""
    style = readable(fitting(style, rect, MIN_SIZE), _SMALL)
    px, theme, font = style.px, style.theme, style.text_font(_SMALL)
    line, gap = px(15), px(14)
    words = 3 * line + px(6)  # above and below a map
    said = [wrapped(words, font, rect.width()) for words in map_words(state)]
    count = len(state.kinds)
    while True:
        lines = [each for part in said for each in part]
        down = rect.height() - line * len(lines) - px(6)
        if not said or down >= _SHARE * rect.height():
            break
        said.pop()
    across, side = max(
        ((n, _side(count, n, rect.width(), down, gap, words)) for n in (count, 2)),
        key=lambda choice: choice[1],
    )
    side = max(side, px(12))
    pitch, deep = (rect.width() + gap) / across, -(-count // across)
    pitch = min(pitch, max(side + 2 * gap, 0.5 * pitch))
    # All maps say it in as many words.
    length = max(
        choices.index(first_that_fits(choices, pitch - px(6), font))
        for kind in state.kinds
        for choices in _figures(kind)
    )
    for n, kind in enumerate(state.kinds):
        x = rect.x() + n % across * pitch
        y = rect.y() + n // across * (side + words)
        title = QRectF(x, y, pitch - gap, line)
        bold = style.text_font(_SMALL, bold=True)
        draw_text(painter, title, kind.title, bold, theme.text, LEFT)
        span = QRectF(x, y, side, line)
        ends = number_text(float(kind.scores.min()), 2), number_text(float(kind.scores.max()), 2)
        range_words = first_that_fits(
            (f"{ends[0]} to {ends[1]}", ""), side - text_width(bold, kind.title) - px(8), font
        )
        draw_text(painter, span, range_words, font, theme.muted, RIGHT)
        box = QRectF(x, y + line, side, side)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
        low, high = float(kind.scores.min()), float(kind.scores.max())
        values = np.ascontiguousarray(kind.scores, dtype=np.float32)
        painter.drawImage(box, heat_image(values, low, max(high, low + 1e-30),
                                          colour_map(theme, "S")))  # fmt: skip
        outline(painter, box, theme.border)
        for m, choices in enumerate(_figures(kind)):
            figures = choices[length]
            place = QRectF(x, box.bottom() + px(2) + m * line, pitch - px(6), line)
            draw_text(painter, place, figures, font, theme.muted, LEFT)
    below = rect.y() + deep * (side + words) + px(2)
    for n, text in enumerate(lines):
        place = QRectF(rect.x(), below + n * line, rect.width(), line)
        draw_text(painter, place, text, font, theme.muted, LEFT)
