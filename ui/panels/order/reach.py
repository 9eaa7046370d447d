"""Paints of which tokens a token can hear, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, QSizeF
from PySide6.QtGui import QColor, QPainter, QPen

from simulator.problem.intervals import Bools
from ui.look.draw import LEFT, RIGHT, draw_text, mixed, outline, text_width, wrapped
from ui.look.names import first_that_fits, fitting, readable
from ui.look.theme import LABEL, Style
from ui.look.units import count_text
from ui.panels.order.state import ReachState

MIN_SIZE = QSizeF(430, 240)
"""Below this the text shrinks."""
_SHARE = 0.5
"""Share of the height that the levels have at least, before sentences are left out."""
_MOST_LINES = 1500
"""Ways from level to level that are drawn; of more of them the cells alone are."""
_STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500)


@dataclass(frozen=True, slots=True)
class ReachLayout:
    """Places of the levels."""

    style: Style  # in which it is painted
    grid: QRectF  # all levels, the top one above
    cell: tuple[float, float]  # width of a token, and height of its cell
    pitch: float  # from one level to the next
    names: QRectF  # the tokens, below
    said: tuple[str, ...]  # the lines below them

    def box(self, level: int, levels: int, token: int, count: int = 1) -> QRectF:
        """Return the cells of some tokens at a level."""
        y = self.grid.top() + (levels - 1 - level) * self.pitch
        return QRectF(self.grid.x() + token * self.cell[0], y, count * self.cell[0], self.cell[1])

    def token_at(self, at: QPointF, tokens: int) -> int | None:
        """Return the token at a place; None outside."""
        area = self.grid.united(self.names)
        if not area.contains(at):
            return None
        return min(max(int((at.x() - self.grid.x()) / self.cell[0]), 0), tokens - 1)


def reach_layout(state: ReachState, style: Style, rect: QRectF) -> ReachLayout:
    """Return where everything is."""
    style = readable(fitting(style, rect, MIN_SIZE))
    px, font = style.px, style.text_font(LABEL)
    line, n, layers = px(16), state.tokens, len(state.layers.is_global)
    words = ["layer 12 global", "layer 12"]
    side = text_width(font, words[0]) + px(12)
    end = text_width(font, count_text(n)) + px(12)
    wide = (rect.width() - side - end) / n
    names = [state.workload.key_token(t) or count_text(t) for t in range(n)]
    longest = min(max(text_width(font, name) for name in names), px(70))
    deep = line if longest + px(4) <= wide else longest + px(4)
    said = [wrapped(words, font, rect.width()) for words in state.words]
    top = rect.y() + line + px(6)
    while True:
        foot = line * sum(map(len, said))
        high = rect.bottom() - foot - deep - px(8) - top
        if not said or high >= _SHARE * rect.height():
            break
        said.pop()
    pitch = max(high, px(20)) / (layers + 0.5)
    grid = QRectF(rect.x() + side, top, wide * n, pitch * (layers + 0.45))
    below = QRectF(grid.x(), grid.bottom() + px(3), grid.width(), deep)
    cell = (wide, pitch * 0.42)
    return ReachLayout(style, grid, cell, pitch, below, tuple(w for part in said for w in part))


def paint_reach(painter: QPainter, state: ReachState, style: Style, rect: QRectF) -> None:
    """Paint the token at the top, and level by level below those of which it can hear."""
    lay = reach_layout(state, style, rect)
    style, theme, px = lay.style, lay.style.theme, lay.style.px
    font, bold = style.text_font(LABEL), style.text_font(12.5, bold=True)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    line, n, layers = px(16), state.tokens, len(state.layers.is_global)
    over = text_width(font, "tokens") + px(2)
    title = first_that_fits(state.title, rect.width() - over - px(8), bold)
    head = QRectF(rect.x(), rect.y(), rect.width() - over, line)
    draw_text(painter, head, title, bold, theme.text)
    place = QRectF(rect.right() - over, rect.y(), over, line)
    draw_text(painter, place, "tokens", font, theme.muted, RIGHT)
    cone, levels = state.cone, layers + 1
    for k, is_global in enumerate(state.layers.is_global):
        upper, lower = (lay.box(level, levels, 0, n) for level in (k + 1, k))
        band = QRectF(upper.x(), upper.bottom(), upper.width(), lower.top() - upper.bottom())
        if is_global:
            painter.fillRect(band, mixed(theme.panel, theme.tensor("K"), 0.22))
        forms = (f"layer {k + 1} global", "global") if is_global else (f"layer {k + 1}", "")
        room = lay.grid.x() - rect.x() - px(6)
        place = QRectF(rect.x(), band.center().y() - line / 2, room, line)
        ink = theme.tensor("K") if is_global else theme.muted
        if lay.pitch >= 0.9 * line or is_global or k % 2 == 0:
            text = first_that_fits(forms, place.width(), font)
            draw_text(painter, place, text, font, ink, RIGHT)
        if layers - k <= state.lit:
            _paint_ways(painter, lay, (cone[k], cone[k + 1]), state.layers.tables[k], k)
    for level in range(levels):
        lit = layers - level <= state.lit
        _paint_level(painter, lay, cone[level] if lit else None, (level, levels, n))
        if lit:
            box = lay.box(level, levels, n - 1)
            place = QRectF(box.right() + px(4), box.center().y() - line / 2,
                           rect.right() - box.right() - px(4), line)  # fmt: skip
            if lay.pitch >= 0.8 * line or level in (0, layers):
                words = count_text(int(cone[level].sum()))
                draw_text(painter, place, words, font, theme.text, LEFT)
    outline(painter, lay.box(layers, levels, state.token), theme.current, px(2))
    _paint_names(painter, state, lay, cone[0] if layers <= state.lit else None)
    for number, words in enumerate(lay.said):
        y = rect.bottom() - line * (len(lay.said) - number)
        place = QRectF(rect.x(), y, rect.width(), line)
        draw_text(painter, place, words, font, theme.muted)


def _paint_ways(
    painter: QPainter, lay: ReachLayout, cones: tuple[Bools, Bools], table: Bools, k: int
) -> None:
    """Draw lines from each token of the upper level to those that its row sees."""
    theme = lay.style.theme
    rows = np.flatnonzero(cones[1])
    pairs = [(int(i), int(j)) for i in rows for j in np.flatnonzero(table[i])]
    if len(pairs) > _MOST_LINES or lay.cell[0] < 3:
        return
    ink = QColor(theme.tensor("S"))
    ink.setAlphaF(0.55 if len(pairs) < 200 else 0.25)
    painter.setPen(QPen(ink, max(lay.style.px(0.8), 1.0)))
    top = lay.grid.top()
    levels = round((lay.grid.height() / lay.pitch) - 0.45) + 1
    upper = top + (levels - 2 - k) * lay.pitch + lay.cell[1]
    lower = top + (levels - 1 - k) * lay.pitch
    x = lay.grid.x() + lay.cell[0] / 2
    painter.drawLines(
        [QLineF(x + i * lay.cell[0], upper, x + j * lay.cell[0], lower) for i, j in pairs]
    )


def _paint_level(
    painter: QPainter, lay: ReachLayout, seen: Bools | None, where: tuple[int, int, int]
) -> None:
    """Fill the cells of a level, runs of equal ones at once; with room each has its edge."""
    level, levels, n = where
    theme = lay.style.theme
    whole = lay.box(level, levels, 0, n)
    painter.fillRect(whole, QColor(theme.empty))
    if seen is not None:
        edges = np.flatnonzero(np.diff(np.concatenate([[False], seen, [False]]).astype(np.int8)))
        for start, stop in edges.reshape(-1, 2).tolist():
            painter.fillRect(lay.box(level, levels, start, stop - start), theme.tensor("S"))
    if lay.cell[0] >= lay.style.px(6):
        painter.setPen(QPen(QColor(theme.grid), 1))
        for token in range(1, n):
            x = whole.x() + token * lay.cell[0]
            painter.drawLine(QLineF(x, whole.top(), x, whole.bottom()))
    outline(painter, whole, theme.border)


def _paint_names(
    painter: QPainter, state: ReachState, lay: ReachLayout, seen: Bools | None
) -> None:
    """Write the tokens below the levels, upright where they are too wide."""
    style, theme, px = lay.style, lay.style.theme, lay.style.px
    font, flat = style.text_font(LABEL), lay.names.height() <= px(16.5)
    n = state.tokens
    need = px(LABEL + 3)
    if flat:
        names = [state.workload.key_token(t) or count_text(t) for t in range(n)]
        need = max(text_width(font, name) for name in names) + px(4)
    step = next((s for s in _STEPS if s * lay.cell[0] >= need), _STEPS[-1])
    for token in range(n):
        if token % step and token != state.token:
            continue
        if token != state.token and abs(token - state.token) * lay.cell[0] < need:
            continue
        name = state.workload.key_token(token) or count_text(token)
        ink = theme.text if seen is not None and seen[token] else theme.muted
        ink = theme.current if token == state.token else ink
        x = lay.grid.x() + (token + 0.5) * lay.cell[0]
        if flat:
            place = QRectF(x - need, lay.names.y(), 2 * need, lay.names.height())
            width = text_width(font, name)
            place = QRectF(x - width / 2, lay.names.y(), width + 1, lay.names.height())
            draw_text(painter, place, name, font, ink, LEFT)
            continue
        painter.save()
        painter.translate(x, lay.names.bottom())
        painter.rotate(-90)
        place = QRectF(0, -px(8), lay.names.height(), px(16))
        draw_text(painter, place, name, font, ink, RIGHT)
        painter.restore()
