"""Draws the parts around and on the curves of a plot: axes, labels, marks, lines, the readout.

The curves and the map are items of pyqtgraph (`ui.plots.widget`). Its axes and markers were tried
in the place of ours: code fell by 5 %, a frame while zooming took up to 1.3 ms longer (roofline 2.5
to 3.8 ms), and Python crashed at its end, because the items' scene was gone before the items.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from ui.look.draw import (
    CENTRE,
    LEFT,
    RIGHT,
    card,
    draw_text,
    hairline,
    mixed,
    patterned,
    text_width,
)
from ui.look.heat import U32, word_image
from ui.look.theme import THEMES, Style, Theme
from ui.plots.labels import nearest
from ui.plots.layout import Label, PlotLayout, line_height, tick_box
from ui.plots.model import Dash, HeatMap, Marker, PlotModel, Spot, ink

DASHES: dict[Dash, Qt.PenStyle] = {
    "solid": Qt.PenStyle.SolidLine,
    "dash": Qt.PenStyle.DashLine,
    "dot": Qt.PenStyle.DotLine,
    "dashdot": Qt.PenStyle.DashDotLine,
}


def paint_ground(painter: QPainter, layout: PlotLayout) -> None:
    """Draw the layer under the curves: the ground and the lines of the ticks."""
    theme, plot = layout.style.theme, layout.frame.plot
    painter.fillRect(plot, QColor(theme.window))
    painter.setPen(QPen(mixed(theme.window, theme.grid, 0.7), hairline(layout.style)))
    painter.drawLines(
        [QLineF(plot.left(), round(y) + 0.5, plot.right(), round(y) + 0.5)
         for y, _ in layout.y_ticks]
        + [QLineF(round(x) + 0.5, plot.top(), round(x) + 0.5, plot.bottom())
           for x, _ in layout.x_ticks]
    )  # fmt: skip


def paint_over(painter: QPainter, model: PlotModel, layout: PlotLayout) -> None:
    """Draw the parts on and around the curves, without the readout."""
    style, theme, plot = layout.style, layout.style.theme, layout.frame.plot
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.save()
    painter.setClipRect(plot.adjusted(-1, -1, 1, 1))
    if model.heat is not None:
        _paint_beyond(painter, model.heat, layout)
    _paint_levels(painter, model, layout)
    for curve in model.curves:
        if curve.marker is not None:
            for x, y in zip(curve.xs, curve.ys, strict=True):
                at = layout.frame.point(model.x.place(x), model.y.place(y))
                paint_marker(painter, at, curve.marker, style.px(3), ink(theme, curve.role), theme)
    painter.restore()
    _paint_leaders(painter, layout)
    for mark in reversed(model.marks):  # the first ones matter most: they lie on top
        at = layout.frame.point(model.x.place(mark.x), model.y.place(mark.y))
        if mark.marker is not None and layout.frame.shows(at):
            paint_marker(
                painter, at, mark.marker, style.px(mark.size), ink(theme, mark.role), theme
            )
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(QColor(theme.border), hairline(style)))
    painter.drawRect(plot)
    _paint_axes(painter, model, layout)
    _paint_labels(painter, model, layout)
    if model.heat is not None:
        _paint_bar(painter, model.heat, layout)


def _paint_axes(painter: QPainter, model: PlotModel, layout: PlotLayout) -> None:
    style, plot = layout.style, layout.frame.plot
    font, bold, theme = style.text_font(11), style.text_font(11, bold=True), style.theme
    line = line_height(style)
    for x, text in layout.x_ticks:
        box = tick_box(x, text, font, plot, style).adjusted(-2, 0, 2, 0)
        draw_text(painter, box, text, font, theme.muted, CENTRE)
    for y, text in layout.y_ticks:
        box = QRectF(0, y - line / 2, plot.left() - style.px(6), line)
        draw_text(painter, box, text, font, theme.muted, RIGHT)
    draw_text(painter, layout.x_title, model.x.title, font, theme.text, CENTRE)
    draw_text(painter, layout.y_title, model.y.title, bold, theme.text, LEFT)
    for label in layout.note:
        draw_text(painter, label.box, label.text, font, theme.muted, LEFT)


def _paint_levels(painter: QPainter, model: PlotModel, layout: PlotLayout) -> None:
    theme, frame = layout.style.theme, layout.frame
    for level in model.levels:
        at = (model.y if level.across else model.x).place(level.value)
        pen = layout.style.pen(ink(theme, level.role), 1.4, Qt.PenStyle.DashLine)
        painter.setPen(pen)
        if level.across:
            line = QLineF(frame.point(frame.x[0], at), frame.point(frame.x[1], at))
        else:
            line = QLineF(frame.point(at, frame.y[0]), frame.point(at, frame.y[1]))
        painter.drawLine(line)


def _paint_beyond(painter: QPainter, heat: HeatMap, layout: PlotLayout) -> None:
    """Hatch the cells that are beyond the limit and fence them off."""
    theme, frame = layout.style.theme, layout.frame
    left, _, low, _ = heat.bounds
    painter.setPen(Qt.PenStyle.NoPen)
    brush = patterned(theme.window, Qt.BrushStyle.BDiagPattern, layout.style)
    for row, first, last in _runs(heat):
        one = frame.point(left + first * heat.step_x, low + row * heat.step_y)
        two = frame.point(left + last * heat.step_x, low + (row + 1) * heat.step_y)
        painter.fillRect(QRectF(one, two).normalized(), brush)
    fence = [QLineF(frame.point(x0, y0), frame.point(x1, y1)) for x0, y0, x1, y1 in heat.fence()]
    for colour, width in ((theme.window, 4.0), (theme.bad, 2.0)):
        painter.setPen(layout.style.pen(colour, width))
        painter.drawLines(fence)


def _runs(heat: HeatMap) -> list[tuple[int, int, int]]:
    """Return row, first column and end column (exclusive) of each run of cells beyond."""
    padded = np.pad(heat.beyond, ((0, 0), (1, 1)))
    change = np.argwhere(padded[:, 1:] != padded[:, :-1])
    pairs = zip(change[::2].tolist(), change[1::2].tolist(), strict=True)
    return [(row, first, last) for (row, first), (_, last) in pairs]


def _paint_labels(painter: QPainter, model: PlotModel, layout: PlotLayout) -> None:
    style, theme, px = layout.style, layout.style.theme, layout.style.px
    font = style.text_font(11)
    ground = QColor(theme.panel)
    ground.setAlphaF(0.92 if model.heat is not None else 0.8)
    for label in layout.labels:
        if label.curve is not None:
            _paint_end(painter, label, layout)
            continue
        colour = ink(theme, label.role)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(ground)
        painter.drawRoundedRect(label.box, px(3), px(3))
        draw_text(painter, label.box, label.text, font, colour, CENTRE)


def _paint_leaders(painter: QPainter, layout: PlotLayout) -> None:
    """Draw the lines from distant labels to their anchors."""
    theme = layout.style.theme
    for label in layout.labels:
        if label.anchor is not None and label.curve is None:
            colour = mixed(theme.panel, ink(theme, label.role), 0.8)
            for edge, width in ((QColor(theme.window), 3.0), (colour, 1.0)):
                painter.setPen(layout.style.pen(edge, width))
                painter.drawLine(label.anchor, nearest(label.box, label.anchor))


def _paint_end(painter: QPainter, label: Label, layout: PlotLayout) -> None:
    """Draw a curve's label with a sample of its line, and a line to its end."""
    style, theme, px = layout.style, layout.style.theme, layout.style.px
    assert label.curve is not None
    assert label.anchor is not None
    colour, box, curve = ink(theme, label.role), label.box, label.curve
    middle = box.center().y()
    if abs(label.anchor.y() - middle) > 2:
        painter.setPen(QPen(mixed(theme.panel, colour, 0.5), hairline(style)))
        start = QPointF(layout.frame.plot.right(), label.anchor.y())
        painter.drawLine(start, QPointF(box.left() - px(1), middle))
    painter.setPen(layout.style.pen(colour, curve.width, DASHES[curve.dash]))
    painter.drawLine(QPointF(box.left(), middle), QPointF(box.left() + px(18), middle))
    if curve.marker is not None:
        at = QPointF(box.left() + px(9), middle)
        paint_marker(painter, at, curve.marker, px(3), colour, theme)
    draw_text(painter, box.adjusted(px(21), 0, 1, 0), label.text, style.text_font(11), colour)


def _paint_bar(painter: QPainter, heat: HeatMap, layout: PlotLayout) -> None:
    style, theme = layout.style, layout.style.theme
    assert layout.bar is not None
    assert layout.bar_title is not None
    font, line = style.text_font(11), line_height(style)
    # The last row of an image is the lowest, the first shade is for the least value.
    shades = ramp(theme.name, heat.role)[::-1, None].copy()
    painter.drawImage(layout.bar, word_image(shades))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(QColor(theme.border), hairline(style)))
    painter.drawRect(layout.bar)
    left = layout.bar.right() + style.px(4)
    for y, text in layout.bar_ticks:
        box = QRectF(left, y - line / 2, text_width(font, text) + 1, line)
        draw_text(painter, box, text, font, theme.muted)
    draw_text(painter, layout.bar_title, heat.title, font, theme.text, RIGHT)


@lru_cache(maxsize=16)
def ramp(theme_name: str, role: str) -> U32:
    """Return 256 shades of a colour that grow away from the ground, as ARGB words."""
    theme = THEMES[theme_name]
    colour = ink(theme, role)
    far = QColor("#FFFFFF" if theme.dark else "#000000")
    stops = [mixed(theme.window, colour, 0.12), colour, mixed(colour, far, 0.62)]
    parts = np.array([[c.red(), c.green(), c.blue()] for c in stops], dtype=np.float64)
    at = np.linspace(0, 2, 256)
    r, g, b = (np.rint(np.interp(at, [0, 1, 2], parts[:, n])).astype(np.uint32) for n in range(3))
    words = np.asarray(np.uint32(0xFF000000) | r << 16 | g << 8 | b, dtype=np.uint32)
    words.flags.writeable = False
    return words


def heat_words(heat: HeatMap, theme: Theme) -> U32:
    """Return the colours of a map's cells, (rows, columns) ARGB words, as its bar shows them."""
    low, high = heat.ends
    share = (np.log10(heat.values) - low) / (high - low)
    return np.asarray(ramp(theme.name, heat.role)[np.rint(255 * share).astype(np.int64)])


def paint_marker(
    painter: QPainter, at: QPointF, marker: Marker, radius: float, colour: QColor, theme: Theme
) -> None:
    """Draw one marker, its edge in the ground's colour so that it stands out."""
    r = radius
    painter.setPen(QPen(QColor(theme.window), max(r * 0.3, 1.0)))
    painter.setBrush(colour)
    if marker == "circle":
        painter.drawEllipse(at, r, r)
    elif marker == "square":
        painter.drawRect(QRectF(at.x() - 0.9 * r, at.y() - 0.9 * r, 1.8 * r, 1.8 * r))
    elif marker == "ring":
        painter.setPen(QPen(colour, max(r * 0.45, 1.4)))
        painter.setBrush(QColor(theme.window))
        painter.drawEllipse(at, 0.85 * r, 0.85 * r)
    elif marker == "cross":
        for ground, width in ((QColor(theme.window), 0.9), (colour, 0.45)):
            painter.setPen(QPen(ground, max(r * width, 1.4)))
            for one in (-1, 1):
                painter.drawLine(at + QPointF(-r, one * -r), at + QPointF(r, one * r))
    else:
        painter.drawPolygon(QPolygonF([at + QPointF(x * r, y * r) for x, y in _SHAPES[marker]]))


_SHAPES = {
    "triangle": ((0, -1.15), (1.05, 0.75), (-1.05, 0.75)),
    "diamond": ((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
    "star": tuple(
        (
            (1.4 if n % 2 == 0 else 0.6) * np.sin(np.pi * n / 5),
            -(1.4 if n % 2 == 0 else 0.6) * np.cos(np.pi * n / 5),
        )
        for n in range(10)
    ),
}


def paint_readout(
    painter: QPainter, spot: Spot, model: PlotModel, layout: PlotLayout, rect: QRectF
) -> None:
    """Draw the readout of a spot, beside it and inside `rect`."""
    style, theme, px = layout.style, layout.style.theme, layout.style.px
    frame, line = layout.frame, line_height(layout.style)
    at = frame.point(model.x.place(spot.x), model.y.place(spot.y))
    if not frame.shows(at):
        return
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for colour, width in ((theme.window, 4.0), (theme.current, 2.0)):
        painter.setPen(layout.style.pen(colour, width))
        if spot.series < 0 and model.heat is not None:
            dx, dy = model.heat.step_x / 2, model.heat.step_y / 2
            one, two = frame.point(spot.x - dx, spot.y - dy), frame.point(spot.x + dx, spot.y + dy)
            painter.drawRect(QRectF(one, two).normalized())
        else:
            painter.drawEllipse(at, px(7), px(7))
    box = readout_box(spot, at, style, rect)
    card(painter, box, theme.panel, theme.current, px(4))
    bold, font = style.text_font(12, bold=True), style.text_font(12)
    room = round((box.height() - px(10)) / (line + px(2)))
    for n, text in enumerate(spot.details[:room]):
        row = QRectF(box.left() + px(8), box.top() + px(5) + n * (line + px(2)),
                     box.width() - px(14), line + px(2))  # fmt: skip
        draw_text(painter, row, text, bold if n == 0 else font, theme.text)


def readout_box(spot: Spot, at: QPointF, style: Style, rect: QRectF) -> QRectF:
    """Return where the readout is: beside the spot, on the side where there is room."""
    px, line = style.px, line_height(style)
    bold, font = style.text_font(12, bold=True), style.text_font(12)
    widths = [text_width(bold if n == 0 else font, t) for n, t in enumerate(spot.details)]
    width = min(max(widths, default=0) + px(18), rect.width())
    most = max(int((rect.height() - px(10)) // (line + px(2))), 1)
    height = min(len(spot.details), most) * (line + px(2)) + px(10)
    x = at.x() + px(14)
    if x + width > rect.right():
        x = at.x() - px(14) - width
    y = at.y() - height - px(10)
    if y < rect.top():
        y = at.y() + px(10)
    x = min(max(x, rect.left()), rect.right() - width)
    y = min(max(y, rect.top()), max(rect.bottom() - height, rect.top()))
    return QRectF(x, y, width, height)
