"""One row under other scores: its weights, and what each score costs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter

from ui.kit.boxes import Box, Canvas
from ui.kit.shapes import Text
from ui.kit.table import BoxRow, BoxTable, FigureText, Head
from ui.look.draw import LEFT, RIGHT, card, draw_text, mixed
from ui.look.names import first_that_fits
from ui.look.theme import LABEL, Style
from ui.look.units import count_text, number_text
from ui.panels.smoothing.state import ScoredRow, SmoothingState
from ui.panels.study import Words

_HEADS = (
    Head("score"), Head(("weights of the row, key by key", "weights", "p"), takes=True),
    Head("matmul", goes=1), Head("other", goes=3), Head("tanh", goes=2), Head("kept", goes=4),
    Head(("tensor cores", "tensor")),
)  # fmt: skip


def words_of_scores(state: SmoothingState) -> Words:
    """Return what the rows say."""
    w, scored = state.workload, state.scored()
    rows, cols = min(w.rows, w.seqlen_q), min(w.cols, w.seqlen_k)
    pairs, first, last = rows * cols, scored[0].kind, scored[-1].kind
    done = " and ".join(w.change_names)
    after = f" None of them has what comes after q·k: {done}." if state.points.changed else ""
    return Words(
        f"{state.row_name(state.row)} of {state.head_name} under each score",
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
            f"{state.key_name(int(each.weights.argmax()))} "
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
    px, theme, font = style.px, style.theme, style.text_font(LABEL)
    box = rect.adjusted(0, 0, -px(4), -px(4))
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
        said = first_that_fits(words, place.width(), font)
        draw_text(painter, place, said, font, theme.muted, LEFT)
