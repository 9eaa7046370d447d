"""The widget for exploratory plots: curves, marks and maps to zoom into and to point at.

pyqtgraph holds the curves and their view; all words are ours (`ui.plots.painter`), so that
they follow theme and text scale and never lie on one another.

pyqtgraph is imported when the first plot is shown, in the window's thread: it makes hundreds of
classes of Qt, and PySide may crash while another thread makes one (before Python 3.12, Qt's own
calls look classes up without the lock under which they are made).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from ui.look.theme import Style
from ui.plots.layout import PlotLayout, plot_layout
from ui.plots.model import Curve, HeatMap, PlotModel, Spot, cell_spot, ink, spots
from ui.plots.painter import DASHES, heat_words, paint_ground, paint_over, paint_readout
from ui.safety.overrides import guarded
from ui.safety.painting import contained, cover
from ui.widgets.focus import has_ring
from ui.widgets.painted import Painted

_NEAR = 22.0
"""Largest distance from a point, at scale 1, at which the pointer still finds it."""
_STILL = 4.0
"""How far a press may move and still be a click."""
_DEEPEST = 400.0
"""Largest zoom."""
_KEY_ZOOM = 1.5
_STEP = 8.0
"""Pixels, at scale 1, by which a key moves a mark."""
_MOVES = {
    Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0), Qt.Key.Key_Up: (0, -1),
    Qt.Key.Key_Down: (0, 1),
}  # fmt: skip


@guarded
class _Layer(QGraphicsItem):
    """Something painted in pixels under or over the curves."""

    def __init__(self, view: QWidget, paint: Callable[[QPainter], None], depth: float) -> None:
        super().__init__()
        self._view = view
        self._paint = paint
        self._rect = QRectF()
        self.setZValue(depth)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)

    def take_rect(self, rect: QRectF) -> None:
        """Cover another part of the scene."""
        self.prepareGeometryChange()
        self._rect = rect

    def boundingRect(self) -> QRectF:
        return self._rect

    def paint(
        self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None
    ) -> None:
        with contained(painter, self._view):
            self._paint(painter)


@guarded
class PlotView(Painted):
    """Shows a `PlotModel`; the wheel zooms, dragging pans, the pointer reads, a click picks.

    Keys: Page Up and Page Down go along a curve or a row of the map, Up and Down to another curve
    or row, Enter picks, Shift+Up and Shift+Down zoom, Escape leaves the point, then fits. The arrow
    keys move a mark that can be dragged.
    """

    ringed = False  # the plot has the ring, without its axes
    picked = Signal(object)
    """The object that a clicked point stands for."""
    zoomed = Signal(bool)
    """Whether less than everything is shown."""
    moved = Signal(float, float)
    """The place to which a mark is dragged or sent by keys."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("plot")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.model: PlotModel | None = None
        self.spot: Spot | None = None
        self.is_zoomed = False
        self._layout: PlotLayout | None = None
        self._spots: tuple[Spot, ...] = ()
        self._pressed: QPointF | None = None
        self._dragging = False
        """Whether a mark is dragged, not the plot."""
        self._by_key = False
        self._holding = False
        self._grounded = True
        self._canvas: Any = None
        self._box: Any = None
        self._items: list[Any] = []
        self._under = _Layer(self, self._paint_under, -10)
        self._over = _Layer(self, self._paint_over, 10)

    # --- showing --------------------------------------------------------------------------

    def show_model(self, model: PlotModel) -> None:
        """Show another plot; the zoom stays where the axes are the same."""
        before, self.model = self.model, model
        if self._canvas is None:
            self._make()
        self._spots = spots(model)
        same = before is not None and _axes(before) == _axes(model)
        self.spot = self._same_spot(self.spot) if same else None
        keep = same and self.is_zoomed
        with self.laid_out_once():
            self._limit()
            if not keep:
                self.fit()
            if before is None or (before.curves, before.heat) != (model.curves, model.heat):
                self._make_items()
        self._tell()

    def set_style(self, style: Style) -> None:
        self.style_now = style
        if self.model is not None:
            self._make_items()
        super().set_style(style)

    def fit(self) -> None:
        """Show everything."""
        if self.model is not None:
            x, y = self.model.fit()
            self._box.setRange(xRange=x, yRange=y, padding=0)
            self._relayout()

    def zoom(self, factor: float, about: QPointF | None = None) -> None:
        """Show less (above 1) or more of the plot, about a point of the widget or its middle."""
        if self._layout is not None:
            frame = self._layout.frame
            x, y = frame.places(about or frame.plot.center())
            self._box.scaleBy((1 / factor, 1 / factor), center=(x, y))

    @property
    def surface(self) -> QWidget:
        """The widget under the pointer, once something is shown."""
        surface: QWidget = self._canvas.viewport()
        return surface

    def plot_layout(self) -> PlotLayout:
        """Return where everything is now.

        Raises ValueError: nothing is shown yet.
        """
        if self._layout is None:
            raise ValueError("the plot shows nothing yet")
        return self._layout

    def where(self, x: float, y: float) -> QPointF:
        """Return where a pair of values is drawn, in pixels of the widget."""
        assert self.model is not None
        frame = self.plot_layout().frame
        return frame.point(self.model.x.place(x), self.model.y.place(y))

    def _make(self) -> None:
        import pyqtgraph

        canvas = self._canvas = pyqtgraph.GraphicsView(self)
        canvas.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        canvas.setAccessibleName("plot")
        canvas.viewport().setMouseTracking(True)
        canvas.viewport().installEventFilter(self)
        box = self._box = pyqtgraph.ViewBox(enableMenu=False, defaultPadding=0)
        box.disableAutoRange()
        box.setZValue(0)  # between the layers
        canvas.scene().addItem(box)
        for layer in (self._under, self._over):
            canvas.scene().addItem(layer)
        box.sigRangeChanged.connect(lambda *_: self._relayout())
        canvas.setGeometry(self.rect())
        canvas.show()

    def _make_items(self) -> None:
        import pyqtgraph

        assert self.model is not None
        style, model = self.style_now, self.model
        self._canvas.setBackground(QColor(style.theme.panel))
        for item in self._items:
            self._box.removeItem(item)
        self._items = []
        if model.heat is not None:
            self._items.append(self._image(model.heat))
        for curve in model.curves:
            if curve.bar:
                self._items.append(self._bars(curve))
                continue
            pen = style.pen(ink(style.theme, curve.role), curve.width, DASHES[curve.dash])
            pen.setCosmetic(True)
            pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
            item = pyqtgraph.PlotCurveItem(
                x=model.x.places(np.array(curve.xs, dtype=np.float64)),
                y=model.y.places(np.array(curve.ys, dtype=np.float64)),
                pen=pen,
                antialias=True,
            )
            item.setSegmentedLineMode("off")  # a dash goes on across the points
            self._items.append(item)
        for item in self._items:
            self._box.addItem(item, ignoreBounds=True)

    def _bars(self, curve: Curve) -> Any:
        import pyqtgraph

        colour = ink(self.style_now.theme, curve.role)
        return pyqtgraph.BarGraphItem(
            x=np.array(curve.xs), height=np.array(curve.ys), width=curve.bar, brush=colour,
            pen=colour,
        )  # fmt: skip

    def _image(self, heat: HeatMap) -> Any:
        import pyqtgraph

        words = heat_words(heat, self.style_now.theme)
        parts = [(words >> shift & 255).astype(np.uint8) for shift in (16, 8, 0, 24)]
        image = pyqtgraph.ImageItem(np.stack(parts, axis=-1), axisOrder="row-major", levels=None)
        left, right, low, high = heat.bounds
        image.setRect(QRectF(left, low, right - left, high - low))
        return image

    def _limit(self) -> None:
        """Keep the view inside the range of the model."""
        assert self.model is not None
        (x0, x1), (y0, y1) = self.model.fit()
        self._box.setLimits(
            xMin=x0, xMax=x1, yMin=y0, yMax=y1, maxXRange=x1 - x0, maxYRange=y1 - y0,
            minXRange=(x1 - x0) / _DEEPEST, minYRange=(y1 - y0) / _DEEPEST,
        )  # fmt: skip

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Lay out once, after several changes, not at each."""
        before, self._holding = self._holding, True
        try:
            yield
        finally:
            self._holding = before

    @contextmanager
    def laid_out_once(self) -> Iterator[None]:
        """Lay out once after several changes of style, size and model."""
        with self._held():
            yield
        self._relayout()

    def _relayout(self) -> None:
        if self.model is None or self._holding or self.width() < 40 or self.height() < 40:
            return
        (x0, x1), (y0, y1) = self._box.viewRange()
        rect = QRectF(self.rect())
        self._layout = plot_layout(self.model, self.style_now, rect, (x0, x1), (y0, y1))
        for layer in (self._under, self._over):
            layer.take_rect(rect)
            layer.update()
        if self._box.geometry() != self._layout.frame.plot:
            with self._held():
                self._box.setGeometry(self._layout.frame.plot)
        whole = self.model.fit()
        shown = [(x0, x1), (y0, y1)]
        zoomed = any(s[1] - s[0] < 0.999 * (w[1] - w[0]) for s, w in zip(shown, whole, strict=True))
        if zoomed != self.is_zoomed:
            self.is_zoomed = zoomed
            self.zoomed.emit(zoomed)

    def arrange(self) -> None:
        if self._canvas is not None:
            self._canvas.setGeometry(self.rect())
        self._relayout()

    def _paint_under(self, painter: QPainter) -> None:
        self._grounded = False
        if self._layout is not None:
            paint_ground(painter, self._layout)
        self._grounded = True

    def _paint_over(self, painter: QPainter) -> None:
        if not self._grounded:  # curves without axes say nothing
            cover(painter, self)
            return
        if self._layout is None or self.model is None:
            return
        paint_over(painter, self.model, self._layout)
        rect = QRectF(self.rect())
        if has_ring(self):
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(self.style_now.theme.text), 1))
            painter.drawRect(self._layout.frame.plot.adjusted(-1, -1, 1, 1))
        if self.spot is not None:
            paint_readout(painter, self.spot, self.model, self._layout, rect)

    # --- pointing -------------------------------------------------------------------------

    def spot_at(self, point: QPointF) -> Spot | None:
        """Return the spot at a point of the widget, or near it."""
        if self.model is None or self._layout is None:
            return None
        frame, model = self._layout.frame, self.model
        if not frame.shows(point):
            return None
        best, nearest = None, self._layout.style.px(_NEAR)
        for spot in self._spots:
            at = frame.point(model.x.place(spot.x), model.y.place(spot.y))
            far = (at - point).manhattanLength()
            if model.heat is not None:
                far *= 2.5  # cells are everywhere: a mark on them must be hit
            if far < nearest and frame.shows(at):
                best, nearest = spot, far
        if best is None and model.heat is not None:
            cell = model.heat.cell_at(*frame.places(point))
            return None if cell is None else cell_spot(model.heat, *cell)
        return best

    def point_at(self, spot: Spot | None, *, by_key: bool = False) -> None:
        """Read a spot; None: nothing."""
        self._by_key = by_key and spot is not None
        if spot != self.spot:
            self.spot = spot
            self._over.update()
            self._tell()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QMouseEvent):
            at = event.position()
            if self._drag(event):
                return True
            if event.type() == QEvent.Type.MouseMove:
                if not event.buttons():
                    self._hover(at)
                elif self._pressed is not None and _far(at, self._pressed):
                    self.point_at(None)
            elif event.button() == Qt.MouseButton.LeftButton:
                self._button(event.type(), at)
        elif event.type() == QEvent.Type.Leave and not self._by_key:
            self.point_at(None)
            self._canvas.viewport().unsetCursor()
        return super().eventFilter(watched, event)

    def _drag(self, event: QMouseEvent) -> bool:
        """Drag a mark that moves; return whether the event was part of a drag."""
        kind, at = event.type(), event.position()
        if kind == QEvent.Type.MouseButtonPress and event.button() == Qt.MouseButton.LeftButton:
            spot = self.spot_at(at)
            self._dragging = spot is not None and spot.moves
            return self._dragging
        if not self._dragging:
            return False
        if kind == QEvent.Type.MouseButtonRelease:
            self._dragging = False
        elif kind == QEvent.Type.MouseMove:
            self._move_to(at)
        return True

    def _move_to(self, at: QPointF) -> None:
        """Emit the new place of a mark, within the plot."""
        assert self.model is not None
        frame = self.plot_layout().frame
        x, y = frame.places(
            QPointF(
                min(max(at.x(), frame.plot.left()), frame.plot.right()),
                min(max(at.y(), frame.plot.top()), frame.plot.bottom()),
            )
        )
        self.moved.emit(self.model.x.value(x), self.model.y.value(y))

    def _hover(self, at: QPointF) -> None:
        spot = self.spot_at(at)
        self.point_at(spot)
        hand = spot is not None and (spot.pick is not None or spot.moves)
        shape = Qt.CursorShape.PointingHandCursor if hand else Qt.CursorShape.ArrowCursor
        self._canvas.viewport().setCursor(shape)

    def _button(self, kind: QEvent.Type, at: QPointF) -> None:
        if kind == QEvent.Type.MouseButtonPress:
            self._pressed = at
        elif kind == QEvent.Type.MouseButtonDblClick and self.spot_at(at) is None:
            self.fit()
        elif kind == QEvent.Type.MouseButtonRelease and self._pressed is not None:
            still, self._pressed = not _far(at, self._pressed), None
            spot = self.spot_at(at)
            if still and spot is not None:
                self.point_at(spot)
                self._pick()

    def _pick(self) -> None:
        if self.spot is not None and self.spot.pick is not None:
            self.picked.emit(self.spot.pick)

    def tip(self, at: QPointF) -> str:
        return ""  # a tip of the widget around the plot would hide the plot and its card

    def keeps(self, event: QKeyEvent) -> bool:
        """Keep a key that moves a mark from the window, where the key would step."""
        return self._moves_mark(event)

    # --- keys -----------------------------------------------------------------------------

    def key(self, event: QKeyEvent) -> bool:
        key, shifted = event.key(), bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        along = {Qt.Key.Key_PageUp: -1, Qt.Key.Key_PageDown: 1}.get(Qt.Key(key), 0)
        up = {Qt.Key.Key_Up: 1, Qt.Key.Key_Down: -1}.get(Qt.Key(key), 0)
        if self.model is None:
            return False
        if self.spot is not None and self._moves_mark(event):
            across, down = _MOVES[Qt.Key(key)]
            by = self.style_now.px(_STEP)
            self._move_to(self.where(self.spot.x, self.spot.y) + QPointF(across * by, down * by))
        elif up and shifted:
            about = None if self.spot is None else self.where(self.spot.x, self.spot.y)
            self.zoom(_KEY_ZOOM**up, about)
        elif along or up:
            self.point_at(self._neighbour(along, up), by_key=True)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._pick()
        elif key == Qt.Key.Key_Escape and (self.spot is not None or self.is_zoomed):
            self.fit() if self.spot is None else self.point_at(None)
        else:
            return False
        return True

    def _moves_mark(self, event: QKeyEvent) -> bool:
        """Whether a key moves the mark that is read."""
        held = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        moves = self.spot is not None and self.spot.moves
        return moves and event.key() in _MOVES and held == Qt.KeyboardModifier.NoModifier

    def _neighbour(self, along: int, up: int) -> Spot | None:
        """Return the next spot along a curve or row, or on another curve or row."""
        assert self.model is not None
        heat = self.model.heat
        if heat is not None:
            if self.spot is None or self.spot.series >= 0:
                near = None if self.spot is None else heat.cell_at(self.spot.x, self.spot.y)
                return cell_spot(heat, *(near or (0, 0)))
            row, column = self.spot.index
            row = min(max(row + up, 0), len(heat.ys) - 1)
            return cell_spot(heat, row, min(max(column + along, 0), len(heat.xs) - 1))
        if not self._spots:
            return None
        if self.spot is None:
            return self._spots[0]
        series = sorted({spot.series for spot in self._spots})
        if up:
            place = (series.index(self.spot.series) - up) % len(series)
            others = [spot for spot in self._spots if spot.series == series[place]]
            x = self.spot.x
            return min(others, key=lambda spot: abs(spot.x - x))
        own = [spot for spot in self._spots if spot.series == self.spot.series]
        if len(own) == 1:  # each mark is a series by itself: go through all
            own = list(self._spots)
        return own[min(max(own.index(self.spot) + along, 0), len(own) - 1)]

    def focusInEvent(self, event: Any) -> None:
        super().focusInEvent(event)
        self._over.update()

    def focusOutEvent(self, event: Any) -> None:
        super().focusOutEvent(event)
        if self._by_key:
            self.point_at(None)
        self._over.update()

    # --- for screen readers -----------------------------------------------------------------

    def _same_spot(self, spot: Spot | None) -> Spot | None:
        """Return the spot at the same place of the model that is shown now."""
        assert self.model is not None
        if spot is None:
            return None
        if spot.series < 0:
            heat = self.model.heat
            cell = None if heat is None else heat.cell_at(spot.x, spot.y)
            return None if heat is None or cell is None else cell_spot(heat, *cell)
        same = [s for s in self._spots if (s.series, s.index) == (spot.series, spot.index)]
        return same[0] if same else None

    def _tell(self) -> None:
        assert self.model is not None
        here = "" if self.spot is None else ", ".join(self.spot.details) + ". "
        self.setAccessibleName(self.model.name)
        self.setAccessibleDescription(here + self.model.summary)


def _axes(model: PlotModel) -> tuple[str, str, bool, object]:
    return model.x.title, model.y.title, model.heat is None, model.fit()


def _far(one: QPointF, other: QPointF) -> bool:
    return (one - other).manhattanLength() > _STILL
