"""Paints which tokens a small cache has kept: at all steps as a map, at one step as words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from PySide6.QtCore import QRectF, QSizeF
from PySide6.QtGui import QColor, QFont, QPainter

from simulator.base.dtypes import F32
from simulator.study.kv_cache.costs import Evicted, Pressure
from simulator.study.kv_cache.decoding import Decoded
from ui.kit.shapes import Text
from ui.look.draw import LEFT, RIGHT, draw_text, mixed, outline, text_width
from ui.look.heat import colour_map, heat_image
from ui.look.names import fitting, readable
from ui.look.theme import LABEL, Style
from ui.look.units import count_text, plural

MIN_SIZE = QSizeF(430, 150)
"""Size below which the text shrinks."""
_MAP = 0.46
"""Largest share of the width that the map takes."""
_FIRST = 0.34
"""Share of the lines that show the first words, if not all fit."""
_LEAST_ROW = 3.0
"""Least height of the row that is marked, at scale 1."""
_PIECE = "##"
"""Prefix of a token that continues a word."""


@dataclass(frozen=True, eq=False)
class KeptState:
    """The contents of the picture."""

    found: Pressure  # the layer
    decoded: Decoded  # the tokens kept at each step
    chosen: Evicted  # the policy, and its token count
    step: int  # the step whose tokens are written out

    def at(self, step: int) -> KeptState:
        """Return the state at another step."""
        return replace(self, step=step)

    @cached_property
    def shares(self) -> F32:
        """(N, N) float32: the share of the KV heads that read a token (column) at a step."""
        return np.asarray(self.decoded.kept.mean(axis=0), dtype=np.float32)

    @property
    def words(self) -> tuple[str, ...]:
        """The step in words, longest first."""
        read = int(self.decoded.kept[0, self.step].sum())
        so_far = self.step + 1
        name = f"{self.chosen.policy.name[0].upper()}{self.chosen.policy.name[1:]}"
        room = plural(self.chosen.budget, "token")
        at = f"token {count_text(so_far)} of {count_text(self.found.layer.tokens)}"
        what = (
            "reads all so far"
            if read == so_far
            else f"reads {count_text(read)} of {count_text(so_far)}"
        )
        at = f"{at} {what}"
        return f"{name}, space for {room} in each KV head: {at}", f"{name}, {room}: {at}", at

    @property
    def pieces(self) -> list[tuple[str, float]]:
        """The tokens of the step with their shares; gone tokens as a count, with share 0."""
        out: list[tuple[str, float]] = []
        gone, w = 0, self.found.layer.workload
        for token, share in enumerate(self.shares[self.step, : self.step + 1]):
            if not share:
                gone += 1
                continue
            if gone:
                out.append((f"−{count_text(gone)}", 0.0))
                gone = 0
            out.append((w.key_token(token) or count_text(token), float(share)))
        return out


def paint_kept(painter: QPainter, state: KeptState, style: Style, rect: QRectF) -> None:
    """Paint the map of all steps with one marked, and the tokens that this step reads."""
    style = readable(fitting(style, rect, MIN_SIZE))
    px = style.px
    line = px(17)
    title = Text(state.words, size=12.5, bold=True)
    title.paint(painter, style, QRectF(rect.x(), rect.y(), rect.width(), line))
    top, bottom = rect.y() + line + px(4), rect.bottom() - line
    left = text_width(style.text_font(LABEL), "steps") + px(8)
    side = min(bottom - top - line, _MAP * rect.width() - left)
    if side < px(30):
        return
    box = QRectF(rect.x() + left, top + line, side, side)
    _paint_map(painter, state, style, box)
    across = QRectF(box.x(), top, side, line - px(2))
    Text("tokens", "muted").paint(painter, style, across)
    down = QRectF(rect.x(), box.y(), left - px(6), line)
    Text("steps", "muted", RIGHT).paint(painter, style, down)
    beside = box.right() + px(16)
    place = QRectF(beside, top, rect.right() - beside, bottom - top)
    _paint_words(painter, state, style, place)
    _paint_legend(painter, state, style, QRectF(rect.x(), bottom + px(2), rect.width(), line))


def _paint_map(painter: QPainter, state: KeptState, style: Style, box: QRectF) -> None:
    """Paint the tokens read at every step: the more KV heads, the brighter."""
    theme, n = style.theme, state.found.layer.tokens
    painter.fillRect(box, QColor(theme.panel))
    later = np.triu(np.ones((n, n), dtype=bool), 1)
    shades = np.where(later, np.float32(np.nan), state.shares)
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, box.height() < n)
    painter.drawImage(box, heat_image(shades, 0.0, 1.0, colour_map(theme, "K")))
    outline(painter, box.adjusted(-1, -1, 1, 1), theme.grid)
    high = max(box.height() / n, style.px(_LEAST_ROW))
    middle = box.y() + box.height() * (state.step + 0.5) / n
    row = QRectF(box.x(), min(middle - high / 2, box.bottom() - high),
                 max(box.width() * (state.step + 1) / n, high), high)  # fmt: skip
    outline(painter, row.adjusted(-1, -1, 1, 1), theme.current, style.px(1.5))


def flowed(
    pieces: list[tuple[str, float]], font: QFont, width: float, gap: float
) -> list[list[tuple[str, float, float]]]:
    """Return lines of words, each with its share and where it begins in its line."""
    lines: list[list[tuple[str, float, float]]] = [[]]
    x = 0.0
    for text, share in pieces:
        joins = text.startswith(_PIECE) and bool(lines[-1])
        word = text.removeprefix(_PIECE)
        wide = text_width(font, word) + gap
        at = x - gap / 2 if joins else x
        if lines[-1] and at + wide > width:
            lines.append([])
            at = 0.0
        lines[-1].append((word, share, at))
        x = at + wide + gap / 2
    return lines


def _paint_words(painter: QPainter, state: KeptState, style: Style, place: QRectF) -> None:
    """Write the tokens that the step reads, and between them how many are gone."""
    px, theme, font = style.px, style.theme, style.text_font(LABEL)
    line, gap = px(18), px(7)
    lines = flowed(state.pieces, font, place.width(), gap)
    room = max(int(place.height() // line), 1)
    first = max(round(_FIRST * room), 1)
    cut = len(lines) > room > first
    shown = [*lines[:first], [], *lines[first + 1 - room :]] if cut else lines[:room]
    last = lines[-1][-1]
    for n, words in enumerate(shown):
        y = place.y() + n * line
        if not words:
            draw_text(painter, QRectF(place.x(), y, place.width(), line), "…", font, theme.muted)
        for text, share, x in words:
            box = QRectF(place.x() + x, y, text_width(font, text) + gap, line - px(2))
            if share:
                painter.fillRect(box, mixed(theme.panel, theme.tensor("K"), 0.4 * share))
            if words[-1] is last and (text, share, x) == last:
                outline(painter, box, theme.current, px(1.5))
            ink = theme.text if share else theme.muted
            draw_text(painter, box.adjusted(gap / 2, 0, 0, 0), text, font, ink, LEFT)


def _paint_legend(painter: QPainter, state: KeptState, style: Style, place: QRectF) -> None:
    """Paint the colour legend."""
    theme, px = style.theme, style.px
    heads = state.found.layer.workload.kv_heads
    bar = QRectF(place.x(), place.y() + px(4), px(42), place.height() - px(8))
    shades = np.linspace(0, 1, heads + 1, dtype=np.float32)[None]
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
    painter.drawImage(bar, heat_image(shades, 0.0, 1.0, colour_map(theme, "K")))
    outline(painter, bar, theme.grid)
    kept = f"kept by none to all of {plural(heads, 'KV head')};  −9: so many"
    texts = (
        f"{kept} tokens are gone;  framed: the step and its own token", f"{kept} are gone",
        f"kept by 0 to {heads} KV heads",
    )  # fmt: skip
    Text(texts, "muted").paint(painter, style, style.inset(place, 50, 0, 0, 0))
