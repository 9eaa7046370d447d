"""A rescale being done: the old maximum rises to the new one, and old weights shrink by alpha."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter

from simulator.program.playback import Rescaling
from ui.board.scores import clipped
from ui.look.draw import CENTRE, card, draw_text, hairline, outline, text_width
from ui.look.units import number_text
from ui.panels.softmax.model import KeyState, Maximum, ScoreBars
from ui.panels.softmax.places import SoftmaxLayout, height_of

_END = 0.25
"""Where along its line the chip with the factor arrives, as a share of the width."""


@dataclass(frozen=True, slots=True)
class RescaleScene:
    """The data from which a rescale of a row is drawn."""

    layout: SoftmaxLayout
    bars: ScoreBars
    maximum: Maximum  # with an old one
    alpha: float
    moments: Rescaling

    @property
    def old(self) -> float:
        """The maximum before this tile."""
        assert self.maximum.old is not None
        return self.maximum.old

    @property
    def line(self) -> float:
        """The height of the rising line in the picture."""
        by_now = self.old + (self.maximum.now - self.old) * self.moments.risen
        return height_of(self.bars, self.layout.plot, by_now)


def paint_rescale(painter: QPainter, scene: RescaleScene) -> None:
    """Paint the excess above the old maximum, the line that rises from there, and its factor."""
    style, plot = scene.layout.style, scene.layout.plot
    paint_excess(painter, scene.layout, scene.bars, scene.maximum, scene.moments.passed)
    y = scene.line
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(style.pen(style.theme.current, 2.4))
    painter.drawLine(QPointF(plot.x(), y), QPointF(plot.right(), y))
    if scene.moments.named > 0 and scene.moments.gone < 1:
        _paint_chip(painter, scene)


def paint_excess(
    painter: QPainter, layout: SoftmaxLayout, bars: ScoreBars, maximum: Maximum, passed: float
) -> None:
    """Hatch the parts of the tile's bars above the old maximum, and write the largest excess."""
    style, plot, old = layout.style, layout.plot, maximum.old
    if old is None or not passed or not old < maximum.now < np.inf:  # a fault may lower it
        return
    values = np.where(bars.states == KeyState.CURRENT, bars.values, -np.inf)
    slot = plot.width() / len(values)
    bottom = height_of(bars, plot, old)
    gap = style.px(6)
    for n in np.flatnonzero(values > old).tolist():
        top = height_of(bars, plot, old + (float(values[n]) - old) * passed)
        wide = max(slot * (0.84 if slot >= 3 else 1.0), 1.0)
        box = QRectF(plot.x() + n * slot, top, wide, bottom - top)
        outline(painter, box, style.theme.current, hairline(style))
        painter.setPen(style.pen(style.theme.current, 1.4))
        with clipped(painter, box):  # lines, which are the same in pictures and on pages
            for k in range(int((box.width() + box.height()) / gap) + 1):
                start = QPointF(box.left() + k * gap, box.top())
                painter.drawLine(start, start + QPointF(-box.height(), box.height()))
    _say_excess(painter, layout, bars, maximum.now - old, int(np.argmax(values)))


def _say_excess(
    painter: QPainter, layout: SoftmaxLayout, bars: ScoreBars, excess: float, largest: int
) -> None:
    """Write how far the largest bar is above the old maximum, left of the bar if there is room."""
    style, plot = layout.style, layout.plot
    font, text = style.code_font(11.5, bold=True), f"+{number_text(excess)}"
    wide, high = text_width(font, text) + style.px(8), style.px(16)
    slot = plot.width() / len(bars.values)
    x = plot.x() + largest * slot - wide - style.px(3)
    if x < plot.x():
        x = min(plot.x() + (largest + 1) * slot + style.px(3), plot.right() - wide)
    middle = height_of(bars, plot, float(bars.values[largest]) - excess / 2)
    y = min(max(middle - high / 2, plot.y()), plot.bottom() - high)
    place = QRectF(x, y, wide, high)
    card(painter, place, style.theme.panel, style.theme.panel, style.px(3))
    draw_text(painter, place, text, font, style.theme.current, CENTRE)


def _paint_chip(painter: QPainter, scene: RescaleScene) -> None:
    """Paint the factor on its line: it grows at the right end and rides to the left."""
    style, plot, grown = scene.layout.style, scene.layout.plot, scene.moments.named
    font = style.code_font(13, bold=True)
    text = f"× {number_text(scene.alpha**scene.moments.risen)}"
    wide, high = text_width(font, "× 0.000") + style.px(16), style.px(22)
    room = max(plot.width() - wide, 0.0)
    x = plot.x() + room * (1 - (1 - _END) * scene.moments.risen)
    y = min(max(scene.line, plot.y() + high / 2 - style.px(4)), plot.bottom() - high / 2)
    place = QRectF(x, y - high / 2, wide, high)
    shrunk = (1 - grown) / 2
    place.adjust(wide * shrunk, high * shrunk, -wide * shrunk, -high * shrunk)
    theme = style.theme
    painter.setOpacity(1 - scene.moments.gone)
    card(painter, place, theme.current, theme.panel, high / 2, style.px(1.5))
    if grown >= 1:
        draw_text(painter, place, text, font, theme.panel, CENTRE)
    painter.setOpacity(1.0)
