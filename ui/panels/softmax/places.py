"""Where the parts of the softmax picture are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSizeF

from ui.look.draw import text_width
from ui.look.names import fitting
from ui.look.theme import Style
from ui.panels.softmax.model import ScoreBars
from ui.panels.update_lines import UpdateLine

MIN_SIZE, _HALL_SIZE = QSizeF(300, 230), QSizeF(236, 230)
"""Least size at scale 1, and in a hall, where bars have the whole width."""
_TALL = 1.9
"""Height of a line with fractions, in lines."""
_ROOM, _WEIGHTS = 72, 0.3
"""Height from which bars of the weights have a place among the bars, and their share of it."""
_NAMED, _LONGEST = 170, 56
"""Height from which the keys have names between the bars, and height of upright names."""


@dataclass(frozen=True, slots=True)
class SoftmaxLayout:
    """Places of bars, lines and words."""

    style: Style  # with the text scale that fits
    # title, axis, plot, gutter, legend, footer: row and token; score axis; bars; words beside the
    # maximum; words under the bars; error. In a hall there is no axis and no gutter
    title: QRectF
    axis: QRectF
    plot: QRectF
    gutter: QRectF
    legend: QRectF
    # bars of the weights, under the bars of the scores; empty without weights, or without room
    weights: QRectF
    # names of the keys between scores and weights: empty without; upright where they are too long
    names: QRectF
    upright: bool
    lines: tuple[QRectF, ...]  # one for each line of the update
    footer: QRectF


def softmax_layout(
    rect: QRectF,
    style: Style,
    lines: Sequence[UpdateLine],
    *,
    weights: bool = False,
    names: Sequence[str] = (),
) -> SoftmaxLayout:
    """Return the places of a picture with these lines of update.

    weights: whether there are bars of the weights.
    names: one for each key; without, or if they are too many, keys have no names.
    """
    hall = style.least > 0
    style = fitting(style, rect, _HALL_SIZE if hall else MIN_SIZE)
    px = style.px
    title = QRectF(rect.x(), rect.y(), rect.width(), px(16))
    footer = QRectF(rect.x(), rect.bottom() - px(15), rect.width(), px(15))
    sizes = [_TALL if line.tall else 1.0 for line in lines]
    height = min(max(0.46 * rect.height() / sum(sizes), px(14)), px(26))
    top = footer.y() - px(2) - height * sum(sizes)
    places = []
    y = top
    for size in sizes:
        places.append(QRectF(rect.x(), y, rect.width(), height * size))
        y += height * size
    legend = QRectF(rect.x(), top - px(18), rect.width(), px(14))
    # In a hall the bars are wide enough for their names, and words stand above the lines.
    axis_width, gutter_width = (0.0, 0.0) if hall else (px(34), px(88))
    plot = QRectF(
        rect.x() + axis_width,
        title.bottom() + px(6),
        rect.width() - axis_width - gutter_width,
        legend.y() - title.bottom() - px(9),
    )
    under, between, upright = QRectF(), QRectF(), False
    if weights and plot.height() >= px(_ROOM):
        gap = px(16)
        if names and plot.height() >= px(_NAMED) and plot.width() >= px(14) * len(names):
            widest = max(text_width(style.text_font(11), name) for name in names) + px(2)
            upright = widest > plot.width() / len(names)
            gap = min(widest, px(_LONGEST)) + px(12) if upright else px(26)
        high = (plot.height() - gap) * _WEIGHTS
        under = QRectF(plot.x(), plot.bottom() - high, plot.width(), high)
        plot.setBottom(under.y() - gap)
        if gap > px(16):
            between = QRectF(plot.x(), plot.bottom() + px(3), plot.width(), gap - px(12))
    axis = QRectF(rect.x(), plot.y(), max(axis_width - px(4), 0), plot.height())
    gutter = QRectF(plot.right() + px(4), plot.y(), max(gutter_width - px(4), 0), plot.height())
    return SoftmaxLayout(
        style, title, axis, plot, gutter, legend, under, between, upright, tuple(places), footer
    )


def height_of(bars: ScoreBars, plot: QRectF, value: float) -> float:
    """Return at what height in the picture a score stands."""
    return plot.bottom() - (value - bars.low) / (bars.high - bars.low) * plot.height()


def legend_places(
    widths: Sequence[float], centres: Sequence[float], left: float, right: float, gap: float
) -> list[float]:
    """Return where words start so that none overlap: near their centres, within the ends."""
    starts: list[float] = []
    edge = left
    for width, centre in zip(widths, centres, strict=True):
        starts.append(max(centre - width / 2, edge))
        edge = starts[-1] + width + gap
    edge = right
    for n in reversed(range(len(starts))):
        starts[n] = min(starts[n], edge - widths[n])
        edge = starts[n] - gap
    return starts
