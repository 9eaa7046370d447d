"""Storing P or computing it again: bars of both ways, and curves over N."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import log
from typing import NamedTuple

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter, QPen

from simulator.problem.workload import Workload
from simulator.study.recompute import Passes, Trade, over_lengths, trade_of
from ui.kit.boxes import Box, Canvas, Column, Row, Tone, ink
from ui.kit.shapes import Alike, Text, axis
from ui.look.draw import RIGHT
from ui.look.theme import Style
from ui.look.units import bytes_text, count_text, factor_text, flops_text
from ui.panels.compare.words import label, named


class Amount(NamedTuple):
    """An amount in which the two ways differ."""

    name: str  # of the amount
    # returns the amounts of the forward and of the backward pass, or of one alone
    parts: Callable[[Passes], tuple[int, ...]]
    text: Callable[[int], str]  # an amount in words


AMOUNTS = (
    Amount("bytes asked of HBM", lambda p: tuple(c.bytes for c in p.counters), bytes_text),
    Amount("matmul FLOPs", lambda p: tuple(c.flops for c in p.counters), flops_text),
    Amount("kept between the passes", lambda p: (p.kept_bytes,), bytes_text),
)


def trade_sentences(trade: Trade) -> tuple[str, str]:
    """Return two sentences: bytes saved and FLOPs paid; bytes kept."""
    again, stored = (named(each.backward) for each in (trade.again, trade.stored))
    saved, paid = trade.saved, trade.paid
    ways = "less" if saved >= 0 else "more", "more" if paid >= 0 else "fewer"
    why = "" if paid >= 0 else ", because it skips what the mask hides"
    kept = "; ".join(
        f"{label(p.forward)} {' and '.join(p.kept)}, {bytes_text(p.kept_bytes)}"
        for p in (trade.again, trade.stored)
    )
    return (
        f"{again} asks for {bytes_text(abs(saved))} {ways[0]} than {stored} and computes "
        f"{flops_text(abs(paid))} {ways[1]}{why}; S again takes {flops_text(trade.again.scores)}.",
        f"Kept between the passes: {kept}, "
        f"{factor_text(trade.stored.kept_bytes / trade.again.kept_bytes)} as much.",
    )


def recompute_boxes(w: Workload) -> Box:
    """Return the bars of both ways, and curves over N beside them."""
    trade, lengths = trade_of(w), over_lengths(w)
    bars = [_bars(amount, trade) for amount in AMOUNTS]
    curves = [_curves(amount, lengths, w.seqlen_k) for amount in AMOUNTS] if lengths else []
    sides = [Column(tuple(each), gap=6, grow=1, share=0.4) for each in (bars, curves) if each]
    return Row(tuple(sides), gap=14)


def _tones(passes: Passes) -> tuple[Tone, Tone]:
    """Return the colours of the forward and of the backward pass."""
    own = passes.forward
    return ("panel", own, 0.5), own


def _bars(amount: Amount, trade: Trade) -> Box:
    two = len(amount.parts(trade.stored)) > 1
    words: tuple[str, ...] = (amount.name, amount.name.partition(" ")[0])
    words = (f"{amount.name}: forward and backward", *words) if two else words
    names = tuple((label(each.forward),) for each in trade.both)
    figures = tuple(_figures(amount, each) for each in trade.both)
    rows = tuple(
        Row((
            Alike(name, others=names, wide=0),
            Canvas(partial(_bar, amount, passes, trade), grow=1, share=0.1),
            Alike(said, "text", RIGHT, others=figures, grow=1),
        ), grow=1)
        for passes, name, said in zip(trade.both, names, figures, strict=True)
    )  # fmt: skip
    return Column((Text(words, bold=True, wide=0), *rows), gap=2, grow=1)


def _figures(amount: Amount, passes: Passes) -> tuple[str, ...]:
    parts = amount.parts(passes)
    total = amount.text(sum(parts))
    return (
        (total,) if len(parts) == 1 else (f"{' + '.join(map(amount.text, parts))} = {total}", total)
    )


def _bar(
    amount: Amount, passes: Passes, trade: Trade, painter: QPainter, style: Style, rect: QRectF
) -> None:
    most, x = max(sum(amount.parts(each)) for each in trade.both), rect.x()
    parts, high = amount.parts(passes), min(rect.height() - style.px(4), style.px(38))
    for part, tone in zip(parts, _tones(passes)[-len(parts) :], strict=True):
        wide = rect.width() * part / most
        place = QRectF(x, rect.center().y() - high / 2, wide, high)
        painter.fillRect(place, ink(style, tone))
        x += wide


def _curves(amount: Amount, lengths: tuple[tuple[int, Trade], ...], here: int) -> Box:
    """Return the curves of both ways over N, both axes in powers of two."""
    first, last = lengths[0][0], lengths[-1]
    ends = " and ".join(amount.text(sum(amount.parts(each))) for each in last[1].both)
    return Column((
        Text((f"at N = {count_text(last[0])}: {ends}", ends, ""), "muted", RIGHT, wide=0),
        Canvas(partial(_lines, amount, lengths, here), grow=1),
        axis(count_text(first), "N", count_text(last[0])),
    ), gap=0, grow=1)  # fmt: skip


def _lines(
    amount: Amount, lengths: tuple[tuple[int, Trade], ...], here: int, painter: QPainter,
    style: Style, box: QRectF,
) -> None:  # fmt: skip
    theme, first, last = style.theme, lengths[0][0], lengths[-1][0]
    ys = [[sum(amount.parts(t.both[n])) for _, t in lengths] for n in range(2)]
    low, high = min(min(row) for row in ys), max(max(row) for row in ys)

    def place(keys: int, value: float) -> QPointF:
        across, up = log(keys / first) / log(last / first), log(value / low) / log(high / low)
        return QPointF(box.x() + across * box.width(), box.bottom() - up * box.height())

    painter.setPen(QPen(theme.role("border"), 1))
    painter.drawPolyline([box.topLeft(), box.bottomLeft(), box.bottomRight()])
    if first <= here <= last:
        painter.setPen(QPen(theme.role("current"), 1))
        painter.drawLine(place(here, low), place(here, high))
    for n, passes in enumerate(lengths[-1][1].both):
        painter.setPen(style.pen(ink(style, _tones(passes)[1]), 2))
        painter.drawPolyline([place(keys, y) for (keys, _), y in zip(lengths, ys[n], strict=True)])
