"""Paints the words of a plot, the lines that lead from them, and what the pointer reads.

These are ours because pyqtgraph has nothing that looks for a free place (`ui.plots.layout`): a
label at the end of a curve or beside a mark, the line from one that stands far off, a card that
stays inside. All else is drawn by pyqtgraph (`ui.plots.canvas`).
"""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPen

from ui.look.draw import CENTRE, card, draw_text, mixed, text_width
from ui.look.theme import Style
from ui.plots.labels import nearest
from ui.plots.layout import Label, PlotLayout, line_height
from ui.plots.model import Curve, Dash, Marker, PlotModel, Spot, ink

_DASHES: dict[Dash, Qt.PenStyle] = {
    "solid": Qt.PenStyle.SolidLine,
    "dash": Qt.PenStyle.DashLine,
    "dot": Qt.PenStyle.DotLine,
    "dashdot": Qt.PenStyle.DashDotLine,
}
_SYMBOLS: dict[Marker, tuple[str, float]] = {
    "circle": ("o", 2.0), "square": ("s", 1.8), "triangle": ("t1", 2.1), "diamond": ("d", 2.6),
    "ring": ("o", 1.7), "cross": ("x", 3.4), "star": ("star", 2.9),
}  # fmt: skip
"""pyqtgraph's names, and how many radii each is wide, so that they look equally large."""
CURVE_MARKER = 3.0
"""Radius of the markers of curves, at scale 1."""


def pen(colour: QColor | str, width: float, line: Qt.PenStyle = Qt.PenStyle.SolidLine) -> QPen:
    """Return a pen that is as wide at any zoom."""
    out = QPen(QColor(colour), width, line)
    out.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    out.setCosmetic(True)
    return out


def curve_pen(curve: Curve, style: Style) -> QPen:
    """Return what a curve is drawn with."""
    return pen(ink(style.theme, curve.role), style.px(curve.width), _DASHES[curve.dash])


def marker_look(marker: Marker, radius: float, role: str, style: Style) -> dict[str, Any]:
    """Return a marker as pyqtgraph takes it; its edge is the ground's, so that it stands out."""
    symbol, wide = _SYMBOLS[marker]
    ground, colour, r = QColor(style.theme.window), ink(style.theme, role), style.px(radius)
    edge, fill, width = ground, colour, max(0.3 * r, 1.0)
    if marker == "ring":
        edge, fill, width = colour, ground, max(0.45 * r, 1.4)
    size = wide * r  # what a symbol is drawn with is scaled by it
    return {"symbol": symbol, "size": size, "pen": QPen(edge, width / size), "brush": QBrush(fill)}


def paint_over(painter: QPainter, model: PlotModel, layout: PlotLayout) -> None:
    """Draw titles, note and labels."""
    style, theme, px = layout.style, layout.style.theme, layout.style.px
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    for label in layout.words:
        font = style.text_font(11, bold=label.bold)
        draw_text(painter, label.box, label.text, font, ink(theme, label.role), label.align)
    _paint_leaders(painter, layout)
    ground = QColor(theme.panel)
    ground.setAlphaF(0.92 if model.heat is not None else 0.8)
    for label in layout.labels:
        if label.curve is not None:
            _paint_end(painter, label, layout)
            continue
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(ground)
        painter.drawRoundedRect(label.box, px(3), px(3))
        draw_text(
            painter, label.box, label.text, style.text_font(11), ink(theme, label.role), CENTRE
        )


def _paint_leaders(painter: QPainter, layout: PlotLayout) -> None:
    """Draw the lines from labels that stand far off to what they name."""
    theme, px = layout.style.theme, layout.style.px
    for label in layout.labels:
        if label.anchor is not None and label.curve is None:
            colour = mixed(theme.panel, ink(theme, label.role), 0.8)
            for edge, width in ((QColor(theme.window), 3.0), (colour, 1.0)):
                painter.setPen(QPen(edge, px(width)))
                line = QLineF(nearest(label.box, label.anchor), label.anchor)
                line.setLength(max(line.length() - px(8), 0))  # up to the mark, not over it
                painter.drawLine(line)


def _paint_end(painter: QPainter, label: Label, layout: PlotLayout) -> None:
    """Draw a curve's label with a sample of its line, and what leads to its end."""
    style, theme, px = layout.style, layout.style.theme, layout.style.px
    assert label.curve is not None
    assert label.anchor is not None
    colour, box, curve = ink(theme, label.role), label.box, label.curve
    middle = box.center().y()
    if abs(label.anchor.y() - middle) > 2:
        painter.setPen(QPen(mixed(theme.panel, colour, 0.5), 1))
        start = QPointF(layout.frame.plot.right(), label.anchor.y())
        painter.drawLine(start, QPointF(box.left() - px(1), middle))
    sample = curve_pen(curve, style)
    sample.setCosmetic(False)
    painter.setPen(sample)
    painter.drawLine(QPointF(box.left(), middle), QPointF(box.left() + px(18), middle))
    if curve.marker is not None:
        from pyqtgraph.graphicsItems.ScatterPlotItem import drawSymbol  # late: see `load_plots`

        painter.save()
        painter.translate(box.left() + px(9), middle)
        drawSymbol(painter, **marker_look(curve.marker, CURVE_MARKER, curve.role, style))
        painter.restore()
    draw_text(painter, box.adjusted(px(21), 0, 1, 0), label.text, style.text_font(11), colour)


def paint_readout(
    painter: QPainter, spot: Spot, model: PlotModel, layout: PlotLayout, rect: QRectF
) -> None:
    """Draw what is read at a spot, beside it and inside `rect`."""
    style, theme, px = layout.style, layout.style.theme, layout.style.px
    frame, line = layout.frame, line_height(layout.style)
    at = frame.point(model.x.place(spot.x), model.y.place(spot.y))
    if not frame.shows(at):
        return
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for colour, width in ((theme.window, 4.0), (theme.current, 2.0)):
        painter.setPen(QPen(QColor(colour), px(width)))
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
