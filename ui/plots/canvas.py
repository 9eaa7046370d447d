"""What pyqtgraph draws of a plot: axes, grid, curves, markers, the map and its bar; and the zoom.

Imported late and beside the window: pyqtgraph takes a sixth of a second. Its ColorBarItem is a
whole plot, which took 15 ms to make, and its grid leaves out the words at its ends: the bar is a
gradient beside an axis, and the grid ticks that reach across.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from pyqtgraph import (
    AxisItem,
    ColorMap,
    GraphicsView,
    ImageItem,
    PlotCurveItem,
    ScatterPlotItem,
    ViewBox,
    mkPen,
    setConfigOption,
)
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QMouseEvent, QPaintEngine, QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QGraphicsPathItem, QStyleOptionGraphicsItem, QWidget

from ui.look.draw import mixed
from ui.look.theme import Style, Theme
from ui.plots.layout import PlotLayout, Range, line_height
from ui.plots.model import HeatMap, PlotModel, Ticks, ink
from ui.plots.painter import CURVE_MARKER, curve_pen, marker_look, pen
from ui.safety.overrides import guarded
from ui.safety.painting import contained

setConfigOption("mouseRateLimit", 0)  # where a drag ends counts, however fast it is
_DEEPEST = 400.0
"""Most that one can zoom in."""


def shades(theme: Theme, role: str) -> ColorMap:
    """Return shades of a colour that grow away from the ground."""
    colour, far = ink(theme, role), QColor("#FFFFFF" if theme.dark else "#000000")
    return ColorMap(None, [mixed(theme.window, colour, 0.12), colour, mixed(colour, far, 0.62)])


@guarded
class Canvas(GraphicsView):  # type: ignore[misc]
    """Draws a plot where a layout says.

    Parameters
    ----------
    parent : QWidget
        What it covers.
    over : callable
        Paints over it, in pixels.
    hover : callable
        Told where the pointer is, or None when it leaves.
    """

    def __init__(
        self,
        parent: QWidget,
        over: Callable[[QPainter], None],
        hover: Callable[[QPointF | None], None],
    ) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName("plot")
        self.viewport().setMouseTracking(True)
        scene = self.scene()
        self._ground = scene.addRect(QRectF(), mkPen(None))
        self._ground.setZValue(-2)
        self._axes = {side: AxisItem(side) for side in ("bottom", "left", "right")}
        for axis in self._axes.values():
            axis.enableAutoSIPrefix(False)
            axis.setPen(mkPen(None))
            axis.setZValue(-1)  # the grid is under the curves
            scene.addItem(axis)
        self.box = ViewBox(enableMenu=False, defaultPadding=0)
        self.box.disableAutoRange()
        self.box.setZValue(0)
        scene.addItem(self.box)
        for side in ("bottom", "left"):
            self._axes[side].linkToView(self.box)  # the wheel over an axis zooms that one
        self._bar = scene.addRect(QRectF())
        self._over, self._hover = over, hover
        self._known: dict[str, object] = {}
        self._under: list[Any] = []
        self._lines: list[_Line] = []
        self._points, self._marks = _Markers(kept=True), _Markers(kept=False)
        for depth, item in enumerate((self._points, self._marks), 2):
            item.setZValue(depth)
            self.box.addItem(item, ignoreBounds=True)

    def drawForeground(self, painter: QPainter, rect: QRectF) -> None:
        with contained(painter, self.parentWidget()):
            self._over(painter)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        if not event.buttons():
            self._hover(event.position())

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._hover(None)

    def fit(self, model: PlotModel, *, show: bool) -> None:
        """Keep the view inside what there is to see of a model; `show` all of it."""
        (x0, x1), (y0, y1) = x, y = model.fit()
        self.box.setLimits(
            xMin=x0, xMax=x1, yMin=y0, yMax=y1, maxXRange=x1 - x0, maxYRange=y1 - y0,
            minXRange=(x1 - x0) / _DEEPEST, minYRange=(y1 - y0) / _DEEPEST,
        )  # fmt: skip
        if show:
            self.box.setRange(xRange=x, yRange=y, padding=0)

    def draw(self, model: PlotModel, layout: PlotLayout) -> None:
        """Show a model where a layout says."""
        style, plot = layout.style, layout.frame.plot
        if self._is_new("style", style):
            self._take(style)
        logs = model.x.log, model.y.log
        # What is not new stays: marks move at each step of a run, curves do not.
        if self._is_new("curves", (model.curves, model.heat, logs, style)):
            for item in self._under:
                self.box.removeItem(item)
            self._under, spots = _curves(model, style)
            if model.heat is not None:
                self._under[:0] = _map(model.heat, style)
            for item in self._under:
                self.box.addItem(item, ignoreBounds=True)
            self._points.setData(spots=spots)
            self._points.setVisible(bool(spots))  # without any it takes as long
        if self._is_new("marks", (model.marks, logs, style)):
            self._marks.setData(spots=_marks(model, style))
        if self._is_new("levels", (model.levels, model.fit(), style)):
            self._rule(model, style)
        self._ground.setRect(plot)
        self.box.setGeometry(plot)
        line, wide, bar = line_height(style), self.width(), layout.bar
        under = QRectF(plot.left(), plot.bottom(), plot.width(), style.px(4) + line)
        self._place("bottom", under, layout.frame.x, layout.x_ticks, -int(plot.height()),
                    min(plot.left(), wide - plot.right()))  # fmt: skip
        beside = QRectF(-line, plot.top(), plot.left() + line, plot.height())
        self._place("left", beside, layout.frame.y, layout.y_ticks, -int(plot.width()), line)
        for item in (self._bar, self._axes["right"]):
            item.setVisible(bar is not None)
        if bar is not None and model.heat is not None:
            self._bar.setRect(bar)
            colours = shades(style.theme, model.heat.role)
            self._bar.setBrush(colours.getBrush((bar.bottom(), bar.top())))
            beside = QRectF(bar.right(), bar.top(), wide, bar.height())
            self._place("right", beside, model.heat.ends, layout.bar_ticks, 0, line)

    def _take(self, style: Style) -> None:
        theme = style.theme
        self.setBackground(QColor(theme.panel))
        self._ground.setBrush(QColor(theme.window))
        self.box.setBorder(mkPen(theme.border))
        self._bar.setPen(mkPen(theme.border))
        for side, axis in self._axes.items():
            offset = round(style.px(6 if side == "left" else 4))
            axis.setStyle(tickFont=style.text_font(11), tickTextOffset=offset, tickAlpha=255)
            axis.setTickPen(mixed(theme.window, theme.grid, 0.7))
            axis.setTextPen(theme.muted)

    def _is_new(self, name: str, key: object) -> bool:
        before, self._known[name] = self._known.get(name), key
        return before != key

    def _rule(self, model: PlotModel, style: Style) -> None:
        """Draw the lines across the plot."""
        for _ in model.levels[len(self._lines) :]:
            self._lines.append(_Line())
            self._lines[-1].setZValue(1)
            self.box.addItem(self._lines[-1], ignoreBounds=True)
        for line in self._lines[len(model.levels) :]:
            line.setData(x=[], y=[])
        x, y = model.fit()
        for line, level in zip(self._lines, model.levels, strict=False):
            at = [model.level_place(level)] * 2
            across, up = (list(x), at) if level.across else (at, list(y))
            dashes = pen(ink(style.theme, level.role), style.px(1.4), Qt.PenStyle.DashLine)
            line.setData(x=across, y=up, pen=dashes)

    def _place(
        self, side: str, rect: QRectF, ends: Range, ticks: Ticks, reach: int, over: float
    ) -> None:
        """Put an axis along a side; its ticks reach across, and its words `over` its ends."""
        if self._is_new(side, (rect, ends, ticks, reach, over)):
            axis = self._axes[side]
            # Not a grid of pyqtgraph's own, which leaves out words at its ends.
            axis.setStyle(tickLength=reach, hideOverlappingLabels=int(over))
            axis.setRange(*ends)
            axis.setTicks([ticks])
            axis.setHeight(rect.height()) if side == "bottom" else axis.setWidth(rect.width())
            axis.setGeometry(rect)


def _curves(model: PlotModel, style: Style) -> tuple[list[Any], list[dict[str, Any]]]:
    """Return the curves, and their markers."""
    items, spots = [], []
    for curve in model.curves:
        xs, ys = model.x.places(np.array(curve.xs)), model.y.places(np.array(curve.ys))
        items.append(_Line(x=xs, y=ys, pen=curve_pen(curve, style)))
        if curve.marker is not None:
            look = marker_look(curve.marker, CURVE_MARKER, curve.role, style)
            spots += [{"pos": at, **look} for at in zip(xs, ys, strict=True)]
    return items, spots


def _marks(model: PlotModel, style: Style) -> list[dict[str, Any]]:
    """Return the marks; the first ones matter most and lie on top."""
    return [
        {"pos": (model.x.place(mark.x), model.y.place(mark.y)),
         **marker_look(mark.marker, mark.size, mark.role, style)}
        for mark in reversed(model.marks)
        if mark.marker is not None
    ]  # fmt: skip


def _is_vector(painter: QPainter) -> bool:
    """Return whether a painter writes an SVG, which may be enlarged, and widths with it."""
    return painter.paintEngine().type() != QPaintEngine.Type.Raster


@guarded
class _Line(PlotCurveItem):  # type: ignore[misc]
    """A line whose width grows with an enlarged SVG: pyqtgraph's own and InfiniteLine's do not."""

    def __init__(self, **data: Any) -> None:
        super().__init__(antialias=True, **data)
        self.setSegmentedLineMode("off")  # a dash goes on across the points

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        if _is_vector(painter):
            path, line = painter.transform().map(self.getPath()), QPen(self.opts["pen"])
            line.setCosmetic(False)
            painter.resetTransform()
            painter.strokePath(path, line)
        else:
            super().paint(painter, option, widget)


@guarded
class _Markers(ScatterPlotItem):  # type: ignore[misc]
    """Markers that are shapes, not pictures of shapes, in an SVG; on the screen many are `kept`."""

    def __init__(self, *, kept: bool) -> None:
        super().__init__(antialias=True, useCache=kept)
        self._kept = kept

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        self.opts["useCache"] = self._kept and not _is_vector(painter)
        super().paint(painter, option, widget)


@guarded
class _Hatch(QGraphicsPathItem):
    """A hatch of the same width at any zoom, in an SVG too."""

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        path = painter.transform().map(self.path())
        painter.resetTransform()
        painter.fillPath(path, self.brush())


def _map(heat: HeatMap, style: Style) -> Iterator[Any]:
    """Yield the cells, and a hatch and a fence over those beyond the limit."""
    theme = style.theme
    lut = shades(theme, heat.role).getLookupTable(nPts=256)
    image = ImageItem(np.log10(heat.values), axisOrder="row-major", levels=heat.ends, lut=lut)
    left, right, low, high = heat.bounds
    image.setRect(QRectF(left, low, right - left, high - low))
    yield image
    path = QPainterPath()
    for row, first, last in _runs(heat):
        path.addRect(
            left + first * heat.step_x, low + row * heat.step_y,
            (last - first) * heat.step_x, heat.step_y,
        )  # fmt: skip
    hatch = _Hatch(path)
    hatch.setBrush(QBrush(QColor(theme.window), Qt.BrushStyle.BDiagPattern))
    yield hatch
    fence = np.array(heat.fence()).reshape(-1, 2)
    for colour, width in ((theme.window, 4.0), (theme.bad, 2.0)):
        edge = pen(colour, style.px(width))
        yield _Line(x=fence[:, 0], y=fence[:, 1], connect="pairs", pen=edge)


def _runs(heat: HeatMap) -> list[tuple[int, int, int]]:
    """Return row, first column and the one after the last of each run of cells beyond."""
    padded = np.pad(heat.beyond, ((0, 0), (1, 1)))
    change = np.argwhere(padded[:, 1:] != padded[:, :-1])
    pairs = zip(change[::2].tolist(), change[1::2].tolist(), strict=True)
    return [(row, first, last) for (row, first), (_, last) in pairs]
