"""The bars under the scores: the weight of each key in O of the row, before O is divided."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from simulator.base.dtypes import F32
from simulator.run.snapshot import Snapshot
from ui.look.draw import RIGHT, draw_text, hairline, mixed
from ui.look.formula import formula
from ui.look.units import number_text
from ui.panels.softmax.places import SoftmaxLayout

_DIM = 0.55
"""Share of their colour in bars of keys that have been used before."""


def paint_weights(
    painter: QPainter,
    snapshot: Snapshot,
    weights: F32 | None,
    layout: SoftmaxLayout,
    per: int,
    before: F32 | None = None,
) -> None:
    """Paint the weight of each key under its score, NaN where a key has none.

    Bars of the tile are bright; `per` keys share a bar, which is as high as the largest weight.
    While bars shrink, an outline shows the weights `before`.
    """
    place, style = layout.weights, layout.style
    if weights is None or place.isEmpty():
        return
    theme, cols = style.theme, snapshot.visit.cols
    values = np.nan_to_num(np.fmax.reduceat(weights, np.arange(0, len(weights), per)), nan=0.0)
    most = max(1.0, float(values.max()))  # above 1 where a threshold keeps m
    slot, base = place.width() / len(values), round(place.bottom())
    edges = np.round(place.x() + np.arange(len(values) + 1) * slot).astype(int)
    gap = 0 if slot < 3 else max(1, round(slot * 0.16))
    heights = np.rint(values / most * place.height()).astype(int)
    shades = mixed(theme.panel, theme.tensor("P"), _DIM), theme.tensor("P")
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    for n in np.flatnonzero(heights).tolist():
        left, high = int(edges[n]), int(heights[n])
        wide = max(int(edges[n + 1]) - left - gap, 1)
        painter.fillRect(QRect(left, base - high, wide, high), shades[n * per in cols])
    painter.setPen(QPen(QColor(theme.grid), 1))
    painter.drawLine(QPointF(place.x(), base + 0.5), QPointF(place.right(), base + 0.5))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    font, line = style.code_font(11), style.px(13)
    name, x = formula(r"e^{s-m}", round(style.px(12))), layout.gutter.x()
    if layout.axis.isEmpty():  # in a hall: above the bars at the right, where these are low
        x, covered = place.right() - name.width, max(1, int(np.ceil(name.width / slot)))
        if float(values[-covered:].max()) < 0.6 * most:
            name.draw(painter, x, place.y() + 0.3 * place.height(), theme.tensor("P"))
    else:
        axis = QRectF(layout.axis.x(), place.y() - line / 2, layout.axis.width(), line)
        draw_text(painter, axis, number_text(most, int(most > 1.05)), font, theme.muted, RIGHT)
        name.draw(painter, x, place.bottom() - style.px(1), theme.tensor("P"))
    if before is None:
        return
    old = np.nan_to_num(np.fmax.reduceat(before, np.arange(0, len(before), per)), nan=0.0)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    painter.setPen(QPen(QColor(theme.muted), hairline(style), Qt.PenStyle.DashLine))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for n in np.flatnonzero(np.arange(0, len(before), per) < cols.start).tolist():
        high, wide = (
            round(float(old[n]) / most * place.height()),
            int(edges[n + 1] - edges[n]) - gap,
        )
        if high - heights[n] >= style.px(2) and wide >= style.px(3):
            deep = high - int(heights[n]) - 1
            painter.drawRect(QRect(int(edges[n]), base - high, wide - 1, deep))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
