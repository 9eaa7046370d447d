"""Paints one row under several scores: its weights, and what a pair costs."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QRectF, QSizeF
from PySide6.QtGui import QColor, QPainter

from ui.look.draw import LEFT, RIGHT, card, draw_text, mixed, text_width, wrapped
from ui.look.names import first_that_fits, fitting, readable
from ui.look.theme import Style
from ui.look.units import count_text, number_text
from ui.panels.smoothing.state import KernelState, ScoredRow

MIN_SIZE = QSizeF(470, 250)
"""Below this the text shrinks."""
_COLUMNS = (
    ("score",),
    ("weights of the row, key by key", "weights", "p"),
    ("matmul", "matmul"),
    ("other", "other"),
    ("tanh", "tanh"),
    ("kept", "kept"),
    ("tensor cores", "tensor"),
)
_SMALL = 11
"""Size of the small words, at scale 1."""
_FIRST_OUT = (3, 1, 2, 0)
"""Columns of figures in the order in which they are left out where there is little room."""
_LEAST_BARS, _LEAST_ROW = 70, 34


def score_words(state: KernelState, scored: tuple[ScoredRow, ...]) -> tuple[str, ...]:
    """Return what the rows say, in sentences."""
    w = state.workload
    rows, cols = min(w.rows, w.seqlen_q), min(w.cols, w.seqlen_k)
    pairs = rows * cols
    first, last = scored[0].kind.cost, scored[-1].kind.cost
    after = ""
    if state.points.changed:
        after = " This run's soft-cap or bias is in none of them."
    return (
        f"Of a pair at d = {w.head_dim}: FLOPs in a matmul, other FLOPs, values of tanh, numbers "
        "kept before they are summed. All go through the same tiles. A tile of "
        f"{rows} × {cols}: {scored[0].kind.name} "
        f"{count_text(pairs * first.matmul)} FLOPs as one matrix product; {scored[-1].kind.name} "
        f"{count_text(pairs * last.plain)} on ordinary units and "
        f"{count_text(pairs * last.special)} tanh.",
        "W_q, W_k and v are drawn at random: nobody has trained them for this head. The dot "
        f"product won because it is a matrix product (Vaswani et al. 2017, section 3.2.1)."
        f"{after}{state.part_words}",
    )


def scores_summary(state: KernelState) -> str:
    """Return the rows in words."""
    scored = state.scored()
    rows = [
        f"{each.kind.name}, {each.kind.formula}: strongest "
        f"{state.key_name(int(each.weights.argmax()))} {number_text(float(each.weights.max()))}, "
        f"entropy {number_text(each.entropy, 2)} bits, {each.kind.cost.flops} FLOPs a pair, "
        + ("on tensor cores" if each.kind.cost.on_tensor_cores else "not on tensor cores")
        for each in scored
    ]
    return ". ".join((*rows, *score_words(state, scored)))


def paint_scores(painter: QPainter, state: KernelState, style: Style, rect: QRectF) -> None:
    """Paint the table."""
    style = readable(fitting(style, rect, MIN_SIZE), _SMALL)
    px, theme = style.px, style.theme
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    font, code, small = style.text_font(12), style.code_font(12), style.text_font(_SMALL)
    scored = state.scored()
    said = [wrapped(words, small, rect.width()) for words in score_words(state, scored)]
    line = px(15)
    title = f"{state.row_name(state.row)} of {state.head_name} under each score"
    head = style.text_font(12, bold=True)
    draw_text(painter, QRectF(rect.x(), rect.y(), rect.width(), line), title, head, theme.text)
    first = px(6) + max(
        max(text_width(font, each.kind.name), text_width(small, each.kind.formula))
        for each in scored
    )
    first = min(first, 0.36 * rect.width())
    cells = [_figures(each) for each in scored]
    wide = [
        px(14) + max(text_width(small, _COLUMNS[n + 2][-1]),
                     *(text_width(code, row[n]) for row in cells))
        for n in range(len(cells[0]))
    ]  # fmt: skip
    shown = list(range(len(wide)))
    for out in _FIRST_OUT:
        if rect.width() - first - sum(wide[n] for n in shown) - px(8) >= px(_LEAST_BARS):
            break
        shown.remove(out)
    wide, cells = [wide[n] for n in shown], [tuple(row[n] for n in shown) for row in cells]
    columns = (*_COLUMNS[:2], *(_COLUMNS[n + 2] for n in shown))
    bars = max(rect.width() - first - sum(wide) - px(8), 0.0)
    top = rect.y() + line + px(3)
    x = rect.x()
    for n, (names, width) in enumerate(zip(columns, (first, bars, *wide), strict=True)):
        words = first_that_fits(names, width - px(4), small)
        place = QRectF(x, top, width, line)
        draw_text(painter, place, words, small, theme.muted, RIGHT if n > 1 else LEFT)
        x += width
    top += line + px(2)
    while True:
        lines = [words for part in said for words in part]
        high = min((rect.bottom() - line * len(lines) - px(4) - top) / len(scored), px(84))
        if not said or high >= px(_LEAST_ROW):
            break
        said.pop()
    limit = max(float(each.weights.max()) for each in scored) or 1.0
    for n, (each, row) in enumerate(zip(scored, cells, strict=True)):
        box = QRectF(rect.x(), top + n * high, rect.width(), high - px(4))
        name = QRectF(box.x(), box.center().y() - px(15), first - px(6), px(15))
        if box.height() < px(30) or text_width(small, each.kind.formula) > name.width():
            name.moveTop(box.center().y() - px(7.5))
        else:
            under = name.translated(0, px(15))
            draw_text(painter, under, each.kind.formula, small, theme.muted, LEFT)
        draw_text(painter, name, each.kind.name, font, theme.text, LEFT)
        place = QRectF(box.x() + first, box.y(), bars - px(4), box.height())
        _paint_weights(painter, state, each, limit, place, style)
        x = box.x() + first + bars
        for words, width in zip(row, wide, strict=True):
            place = QRectF(x, box.y(), width, box.height())
            ink = {"yes": theme.good, "no": theme.bad}.get(words, theme.text)
            draw_text(painter, place, words, code, ink, RIGHT)
            x += width
    top += high * len(scored) + px(4)
    for n, words in enumerate(lines):
        place = QRectF(rect.x(), top + n * line, rect.width(), line)
        draw_text(painter, place, words, small, theme.muted, LEFT)


def _figures(each: ScoredRow) -> tuple[str, ...]:
    cost = each.kind.cost
    numbers = (cost.matmul, cost.plain, cost.special, cost.kept)
    return (*(count_text(n) for n in numbers), "yes" if cost.on_tensor_cores else "no")


def _paint_weights(
    painter: QPainter, state: KernelState, each: ScoredRow, limit: float, box: QRectF, style: Style
) -> None:
    """Paint the weights as bars over the keys, the strongest with its name."""
    px, theme, font = style.px, style.theme, style.text_font(_SMALL)
    card(painter, box, theme.field, theme.border, px(3))
    named = box.height() >= px(28)
    inner = box.adjusted(px(3), px(14) if named else px(2), -px(3), -px(2))
    weights = each.weights
    slots = max(int(inner.width() / max(px(1), 1)), 1)
    per = -(-len(weights) // slots)
    tallest = np.maximum.reduceat(weights, np.arange(0, len(weights), per))
    wide = inner.width() / len(tallest)
    colour = QColor(theme.tensor("P"))
    top = int(tallest.argmax())
    for n, p in enumerate(tallest.tolist()):
        high = inner.height() * p / limit
        gap = 0.15 * wide if wide >= 4 else 0.0
        bar = QRectF(inner.x() + n * wide + gap, inner.bottom() - high, wide - 2 * gap, high)
        painter.fillRect(bar, colour if n == top else mixed(theme.field, colour, 0.6))
    if not named:
        return
    strongest = int(weights.argmax())
    best = f"{state.key_label(strongest)}: {number_text(float(weights[strongest]), 2)}"
    figure = number_text(float(weights[strongest]), 2)
    words = (f"{best}, {number_text(each.entropy, 2)} bits", best, figure)
    place = QRectF(box.x() + px(4), box.y(), box.width() - px(8), px(14))
    draw_text(painter, place, first_that_fits(words, place.width(), font), font, theme.muted, LEFT)
