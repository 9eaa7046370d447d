"""The widget for exploratory plots: curves, marks and maps to zoom into and to point at.

pyqtgraph draws and zooms (`ui.plots.canvas`). Pointing is ours: its items answer where their
shapes are hit, not near them, and know no keys and nothing for those who do not see.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QToolTip, QWidget

from ui.look.theme import DARK, Style
from ui.plots.layout import PlotLayout, plot_layout
from ui.plots.model import PlotModel, Spot, cell_spot, spots
from ui.plots.painter import paint_over, paint_readout
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.widgets.focus import has_ring

_NEAR = 22.0
"""How far from a point, at scale 1, the pointer still means it."""
_KEY_ZOOM = 1.5
_PAINTED = Event()
"""Set once a plot's place has been painted, still empty."""
_MOST_WAIT = 0.12
"""Seconds after which plots are loaded though nothing was painted: the window may be hidden."""


def load_plots() -> None:
    """Import pyqtgraph, which takes a sixth of a second: call this beside the window.

    Two threads of Python share their time, so the window first paints what was opened.
    """
    if "pyqtgraph" not in sys.modules:
        _PAINTED.wait(_MOST_WAIT)
    import ui.plots.canvas  # noqa: F401


@guarded
class PlotView(QWidget):
    """Shows a `PlotModel`; the wheel zooms, dragging pans, the pointer reads, a click picks.

    Keys: Page Up and Page Down go along a curve or a row of the map, Up and Down to another curve
    or row, Enter picks, Shift+Up and Shift+Down zoom, Escape leaves the point, then fits.
    """

    picked = Signal(object)
    """What a clicked point stands for."""
    zoomed = Signal(bool)
    """Whether less than everything is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("plot")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.style_now = Style(DARK)
        self.model: PlotModel | None = None
        self.spot: Spot | None = None
        self.is_zoomed = False
        self._layout: PlotLayout | None = None
        self._spots: tuple[Spot, ...] = ()
        self._by_key = False
        self._holding = False
        self._canvas: Any = None

    # --- showing --------------------------------------------------------------------------

    def show_model(self, model: PlotModel) -> None:
        """Show another plot; the zoom stays where the axes are the same."""
        before, self.model = self.model, model
        if self._canvas is None:
            from ui.plots.canvas import Canvas  # late: see `load_plots`

            self._canvas = Canvas(self, self._paint_over, self._hover)
            self._canvas.box.sigRangeChanged.connect(self._relayout)
            self._canvas.scene().sigMouseClicked.connect(self._click)
            self._canvas.setGeometry(self.rect())
            self._canvas.show()
        self._spots = spots(model)
        same = before is not None and _axes(before) == _axes(model)
        self.spot = self._same_spot(self.spot) if same else None
        with self.laid_out_once():
            self._canvas.fit(model, show=not (same and self.is_zoomed))
        self._tell()

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self.style_now = style
        self._relayout()
        self.update()

    def fit(self) -> None:
        """Show everything."""
        if self.model is not None:
            self._canvas.fit(self.model, show=True)

    def zoom(self, factor: float, about: QPointF | None = None) -> None:
        """Show less (above 1) or more of the plot, about a point of the widget or its middle."""
        if self._layout is not None:
            frame = self._layout.frame
            centre = frame.places(about or frame.plot.center())
            self._canvas.box.scaleBy((1 / factor, 1 / factor), center=centre)

    @property
    def surface(self) -> QWidget:
        """What the pointer moves over, once something is shown."""
        surface: QWidget = self._canvas.viewport()
        return surface

    def plot_layout(self) -> PlotLayout:
        """Return where everything is now.

        Raises
        ------
        ValueError
            Nothing is shown yet.
        """
        if self._layout is None:
            raise ValueError("the plot shows nothing yet")
        return self._layout

    def where(self, x: float, y: float) -> QPointF:
        """Return where a pair of values is drawn, in pixels of the widget."""
        assert self.model is not None
        frame = self.plot_layout().frame
        return frame.point(self.model.x.place(x), self.model.y.place(y))

    @contextmanager
    def laid_out_once(self) -> Iterator[None]:
        """Lay out once after several changes of style, size and model."""
        before, self._holding = self._holding, True
        try:
            yield
        finally:
            self._holding = before
        self._relayout()

    def _relayout(self, *_: object) -> None:
        if self.model is None or self._holding or self.width() < 40 or self.height() < 40:
            return
        shown, whole = self._canvas.box.viewRange(), self.model.fit()
        self._layout = plot_layout(self.model, self.style_now, QRectF(self.rect()), *shown)
        self._canvas.draw(self.model, self._layout)
        zoomed = any(s[1] - s[0] < 0.999 * (w[1] - w[0]) for s, w in zip(shown, whole, strict=True))
        if zoomed != self.is_zoomed:
            self.is_zoomed = zoomed
            self.zoomed.emit(zoomed)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._canvas is not None:
            self._canvas.setGeometry(self.rect())
            self._relayout()

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            painter.fillRect(self.rect(), QColor(self.style_now.theme.panel))
            if not _PAINTED.is_set():
                QTimer.singleShot(0, _PAINTED.set)  # once the rest of the window is painted too

    def _paint_over(self, painter: QPainter) -> None:
        if self._layout is None or self.model is None:
            return
        paint_over(painter, self.model, self._layout)
        if has_ring(self):
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(self.style_now.theme.text), 1))
            painter.drawRect(self._layout.frame.plot.adjusted(-1, -1, 1, 1))
        if self.spot is not None:
            paint_readout(painter, self.spot, self.model, self._layout, QRectF(self.rect()))

    # --- pointing -------------------------------------------------------------------------

    def spot_at(self, point: QPointF) -> Spot | None:
        """Return what is at a point of the widget, or near it."""
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
                far *= 2.5  # cells are everywhere: a mark on them has to be met
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
            self.surface.update()
            self._tell()

    def _hover(self, at: QPointF | None) -> None:
        if at is None and self._by_key:
            return
        spot = None if at is None else self.spot_at(at)
        self.point_at(spot)
        hand = spot is not None and spot.pick is not None
        shape = Qt.CursorShape.PointingHandCursor if hand else Qt.CursorShape.ArrowCursor
        self.surface.setCursor(shape)

    def _click(self, click: Any) -> None:
        spot = self.spot_at(click.scenePos())
        if click.button() != Qt.MouseButton.LeftButton:
            return
        if spot is not None:
            self.point_at(spot)
            self._pick()
        elif click.double():
            self.fit()

    def _pick(self) -> None:
        if self.spot is not None and self.spot.pick is not None:
            self.picked.emit(self.spot.pick)

    def event(self, event: QEvent) -> bool:
        """Keep the tool tip of what is around it from lying over the plot and its card."""
        if event.type() is QEvent.Type.ToolTip:
            QToolTip.hideText()
            return True
        return super().event(event)

    # --- keys -----------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, shifted = event.key(), bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        along = {Qt.Key.Key_PageUp: -1, Qt.Key.Key_PageDown: 1}.get(Qt.Key(key), 0)
        up = {Qt.Key.Key_Up: 1, Qt.Key.Key_Down: -1}.get(Qt.Key(key), 0)
        if self.model is None:
            super().keyPressEvent(event)
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
            super().keyPressEvent(event)

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
        if len(own) == 1:  # marks are series of one: go through all of them
            own = list(self._spots)
        return own[min(max(own.index(self.spot) + along, 0), len(own) - 1)]

    def focusInEvent(self, event: Any) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: Any) -> None:
        super().focusOutEvent(event)
        if self._by_key:
            self.point_at(None)
        self.update()

    # --- for those who do not see it --------------------------------------------------------

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
