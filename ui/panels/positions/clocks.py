"""Paints the angles of RoPE as clocks: a pair of dimensions is a hand, at every token."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSizeF
from PySide6.QtGui import QPainter

from ui.look.clocks import paint_clock, turn_text
from ui.look.draw import CENTRE, LEFT, RIGHT, draw_text, text_width, wrapped
from ui.look.names import first_that_fits, fitting, readable
from ui.look.theme import Style
from ui.look.units import count_text, number_text
from ui.panels.positions.state import PositionsState

MIN_SIZE = QSizeF(420, 230)
"""Below this the text shrinks."""
_SMALL = 11
"""Size of all words, at scale 1."""
_CLOCK = 15.0
"""Least room of a clock, at scale 1: that of the line beside it."""
_LARGEST = 46.0
_SHARE = 0.6
"""Share of the height that the clocks have at least, before sentences below are left out."""


def clock_words(state: PositionsState) -> tuple[str, ...]:
    """Return what the clocks show, in sentences."""
    last = len(state.speeds) - 1
    turns = (
        f"{number_text(state.turn(0), 2)} tokens",
        f"{count_text(round(state.turn(last)))} tokens",
    )
    whose = (
        f"This run turns Q and K so, θ = {state.rotary.theta:g}."
        if state.own
        else f"This run has no rotary positions: shown are RoPE's with θ = {state.rotary.theta:g}."
    )
    shown = {
        "angles": "Shown is by how much each place turns a pair, from twelve o'clock. ",
        "before": "Shown is the query of every row before it is turned. ",
        "turned": "Shown is the query of every row, each pair turned by its place. ",
    }[state.asked.hands]
    return (
        f"{shown}Two numbers of a query or key are a hand. Pair 0 turns once in {turns[0]}, "
        f"pair {last} once in {turns[1]}: fast hands tell neighbours apart, slow ones near from "
        "far. A place changes a score only through the angle between the hands of query and key.",
        whose,
    )


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


def paint_clocks(painter: QPainter, state: PositionsState, style: Style, rect: QRectF) -> None:
    """Paint a clock for pairs of dimensions, from fast to slow, at tokens one below another."""
    style = readable(fitting(style, rect, MIN_SIZE), _SMALL)
    px, theme, font = style.px, style.theme, style.text_font(_SMALL)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    line = px(15)
    said = [wrapped(words, font, rect.width()) for words in clock_words(state)]
    while True:
        lines = [words for part in said for words in part]
        down = rect.height() - line * (len(lines) + 2) - px(10)
        if not said or down >= _SHARE * rect.height():
            break
        said.pop()
    least = px(_CLOCK)
    rows = shown_rows(state, int(down / least))
    names = [_row_label(state, row) for row in rows]
    wide = min(max(text_width(font, name) for name in names), px(110)) + px(8)
    pairs = shown_pairs(state, int((rect.width() - wide) / max(least, px(34))))
    size = min(down / len(rows), (rect.width() - wide) / len(pairs), px(_LARGEST))
    pitch = (rect.width() - wide) / len(pairs)
    pitch = min(pitch, max(size * 1.6, px(40)))
    left, top = rect.x() + wide, rect.y() + 2 * line + px(2)
    titles = ("places for one turn of a pair, fast → slow", "one turn in … places", "turn")
    words = first_that_fits(titles, len(pairs) * pitch, font)
    draw_text(painter, QRectF(left, rect.y(), rect.width() - wide, line), words, font, theme.muted)
    for n, pair in enumerate(pairs):
        words = turn_text(state.turn(pair))
        place = QRectF(left + n * pitch, rect.y() + line, pitch, line)
        draw_text(painter, place, words, font, theme.text, CENTRE)
    for r, row in enumerate(rows):
        y = top + (r + 0.5) * size
        here = row == state.row
        label = QRectF(rect.x(), y - size / 2, wide - px(6), size)
        draw_text(painter, label, names[r], font, theme.current if here else theme.muted, RIGHT)
        for n, pair in enumerate(pairs):
            middle = QPointF(left + (n + 0.5) * pitch, y)
            ink = theme.current if here else theme.role("Q")
            paint_clock(painter, middle, 0.42 * size, state.hand(row, pair), ink, style)
    below = top + len(rows) * size + px(4)
    for n, words in enumerate(lines):
        place = QRectF(rect.x(), below + n * line, rect.width(), line)
        draw_text(painter, place, words, font, theme.muted, LEFT)


def _row_label(state: PositionsState, row: int) -> str:
    place = count_text(state.place + row - state.row)
    token = state.workload.query_token(row)
    return f"{token} {place}" if token else place
