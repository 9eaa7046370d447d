"""The picture of storing P or computing it again: bars of both ways, and the same over N."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log

from PySide6.QtCore import QPointF, QRectF, QSizeF
from PySide6.QtGui import QColor, QPainter, QPen

from simulator.problem.workload import Workload
from simulator.study.recompute import Passes, Trade, over_lengths, trade_of
from ui.look.draw import CENTRE, LEFT, RIGHT, draw_text, mixed, text_width
from ui.look.names import first_that_fits, fitting
from ui.look.theme import Style
from ui.look.units import bytes_text, count_text, factor_text
from ui.panels.compare.table import flops_text
from ui.panels.compare.words import fitting_sentences, label, named

MIN_SIZE = QSizeF(560, 300)
_BARS = 0.56
"""The share of the width that bars take; the curves have the rest."""
_LEAST_BAR = 0.3
"""The share of a row that the longest bar has, for which figures become shorter."""
_DEEPEST = 44
"""Most pixels of a row of bars."""
_TITLE, _FIGURE, _CURVE = 13.0, 12.0, 2.0


@dataclass(frozen=True, slots=True)
class Amount:
    """One of what the two ways differ in."""

    name: str  # what it is
    # the passes to their amounts: of the forward and of the backward pass, or one alone
    parts: Callable[[Passes], tuple[int, ...]]
    text: Callable[[int], str]  # an amount in words


AMOUNTS = (
    Amount("bytes asked of HBM", lambda p: tuple(c.bytes for c in p.counters), bytes_text),
    Amount("matmul FLOPs", lambda p: tuple(c.flops for c in p.counters), flops_text),
    Amount("kept between the passes", lambda p: (p.kept_bytes,), bytes_text),
)


def trade_sentences(trade: Trade) -> tuple[tuple[str, ...], ...]:
    """Return what is saved and what is paid, most important first, each long and short."""
    again, stored = (named(each.backward) for each in (trade.again, trade.stored))
    saved, paid = trade.saved, trade.paid
    ways = "less" if saved >= 0 else "more", "more" if paid >= 0 else "fewer"
    asked, computed = bytes_text(abs(saved)), flops_text(abs(paid))
    why = "" if paid >= 0 else ", because it skips what the mask hides"
    kept = [f"{label(p.forward)} {' and '.join(p.kept)}, {bytes_text(p.kept_bytes)}"
            for p in (trade.again, trade.stored)]  # fmt: skip
    times = factor_text(trade.stored.kept_bytes / trade.again.kept_bytes)
    return (
        (
            f"{again} asks for {asked} {ways[0]} than {stored} and computes {computed}"
            f" {ways[1]}{why}; S again takes {flops_text(trade.again.scores)}.",
            f"{asked} {ways[0]}, {computed} {ways[1]}; S again: {flops_text(trade.again.scores)}.",
        ),
        (
            f"Kept between the passes: {kept[0]}; {kept[1]}, {times} as much.",
            f"Kept: {kept[0]}; {kept[1]}.",
        ),
    )


def paint_recompute(painter: QPainter, w: Workload, style: Style, rect: QRectF) -> None:
    """Draw bars of both ways, curves over N, and what it says in words.

    Parameters
    ----------
    rect : QRectF
        The place, at least about `MIN_SIZE`.
    """
    style = fitting(style, rect, MIN_SIZE)
    px, trade, lengths = style.px, trade_of(w), over_lengths(w)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    font, line = style.text_font(_FIGURE), px(16)
    room = 4 if rect.height() >= px(360) else 3
    said = fitting_sentences(trade_sentences(trade), font, rect.width(), room)
    for n, text in enumerate(said):
        at = QRectF(rect.x(), rect.bottom() - (len(said) - n) * line, rect.width(), line)
        draw_text(painter, at, text, font, style.theme.text, LEFT)
    body = rect.adjusted(0, 0, 0, -(len(said) + 0.5) * line)
    wide = body.width() * (_BARS if lengths else 1.0)
    high = body.height() / len(AMOUNTS)
    for n, amount in enumerate(AMOUNTS):
        top = body.y() + n * high
        _paint_bars(painter, amount, trade, style, QRectF(body.x(), top, wide - px(14), high))
        if lengths:
            curves = QRectF(body.x() + wide, top, body.width() - wide, high)
            _paint_curves(painter, amount, lengths, w.seqlen_k, style, curves)
    painter.restore()


def _colours(style: Style, passes: Passes) -> tuple[QColor, QColor]:
    """Return the colours of the forward and of the backward pass."""
    own = QColor(style.theme.role(passes.forward))
    return QColor(mixed(own, style.theme.panel, 0.5)), own


def _paint_bars(
    painter: QPainter, amount: Amount, trade: Trade, style: Style, rect: QRectF
) -> None:
    px, theme = style.px, style.theme
    heading = QRectF(rect.x(), rect.y(), rect.width(), px(18))
    two = len(amount.parts(trade.stored)) > 1
    words = (f"{amount.name}: forward and backward", amount.name) if two else (amount.name,)
    bold, font = style.text_font(_TITLE, bold=True), style.text_font(_FIGURE)
    draw_text(painter, heading, first_that_fits(words, rect.width(), bold), bold, theme.text, LEFT)
    names = max(text_width(font, label(p.forward)) for p in trade.both) + px(8)
    for long in (True, False):
        figures = [_figures(amount, passes, long=long) for passes in trade.both]
        right = max(text_width(font, text) for text in figures) + px(8)
        if rect.width() - names - right >= _LEAST_BAR * rect.width():
            break
    most = max(sum(amount.parts(passes)) for passes in trade.both)
    high = min((rect.height() - px(30)) / 2, px(_DEEPEST))
    for n, passes in enumerate(trade.both):
        row = QRectF(rect.x(), heading.bottom() + px(2) + n * high, rect.width(), high)
        draw_text(painter, row, label(passes.forward), font, theme.text, LEFT)
        draw_text(painter, row, figures[n], font, theme.text, RIGHT)
        x, wide = row.x() + names, row.width() - names - right
        for part, colour in zip(
            amount.parts(passes), _colours(style, passes)[-len(amount.parts(passes)):], strict=True
        ):  # fmt: skip
            share = wide * part / most
            painter.fillRect(QRectF(x, row.y() + px(3), share, high - px(6)), colour)
            x += share


def _figures(amount: Amount, passes: Passes, *, long: bool) -> str:
    parts = amount.parts(passes)
    total = amount.text(sum(parts))
    return (
        total if len(parts) == 1 or not long else f"{' + '.join(map(amount.text, parts))} = {total}"
    )


def _paint_curves(
    painter: QPainter,
    amount: Amount,
    lengths: Sequence[tuple[int, Trade]],
    here: int,
    style: Style,
    rect: QRectF,
) -> None:
    """Draw what both ways take over N, both axes in powers of two."""
    px, theme, font = style.px, style.theme, style.text_font(11)
    box = rect.adjusted(px(8), px(16), -px(4), -px(16))
    first, last = lengths[0][0], lengths[-1][0]
    ys = [[sum(amount.parts(t.both[n])) for _, t in lengths] for n in range(2)]
    low, high = min(min(row) for row in ys), max(max(row) for row in ys)

    def place(keys: int, value: float) -> QPointF:
        across = log(keys / first) / log(last / first)
        up = log(value / low) / log(high / low)
        return QPointF(box.x() + across * box.width(), box.bottom() - up * box.height())

    painter.setPen(QPen(QColor(theme.border), 1))
    painter.drawLine(box.bottomLeft(), box.bottomRight())
    painter.drawLine(box.bottomLeft(), box.topLeft())
    if first <= here <= last:
        painter.setPen(QPen(QColor(theme.current), 1))
        x = place(here, low).x()
        painter.drawLine(QPointF(x, box.top()), QPointF(x, box.bottom()))
    for n, passes in enumerate(lengths[-1][1].both):
        painter.setPen(QPen(_colours(style, passes)[1], px(_CURVE)))
        painter.drawPolyline([place(keys, y) for (keys, _), y in zip(lengths, ys[n], strict=True)])
    under = QRectF(box.x(), box.bottom(), box.width(), px(16))
    draw_text(painter, under, count_text(first), font, theme.muted, LEFT)
    draw_text(painter, under, "N", font, theme.muted, CENTRE)
    draw_text(painter, under, count_text(last), font, theme.muted, RIGHT)
    above = QRectF(rect.x() + px(8), rect.y(), rect.width() - px(12), px(16))
    ends = tuple(amount.text(row[-1]) for row in ys)
    choices = (f"at N = {count_text(last)}: {ends[0]} and {ends[1]}", f"{ends[0]} and {ends[1]}")
    words = first_that_fits(choices, above.width(), font)
    draw_text(painter, above, words, font, theme.muted, RIGHT)
