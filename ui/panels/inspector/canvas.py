"""The painted part of the inspector: its map zooms, moves and reads as the board does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QWheelEvent
from PySide6.QtWidgets import QApplication

from ui.board.layout import Viewport
from ui.board.panel import NOTCH, STEP
from ui.look.draw import draw_text, wrapped
from ui.panels.inspector.layout import InspectorLayout, panned_map, revealing_row, zoomed_map
from ui.panels.inspector.painter import paint_inspector
from ui.safety.overrides import guarded
from ui.widgets.named import named
from ui.widgets.painted import Painted

if TYPE_CHECKING:
    from ui.panels.inspector.panel import InspectorPanel

STOPPED = "The weights were not computed. Click here or press Enter to compute them."
_ZOOMS = {Qt.Key.Key_Plus: STEP, Qt.Key.Key_Equal: STEP, Qt.Key.Key_Minus: 1 / STEP,
          Qt.Key.Key_0: 0.0}  # fmt: skip
"""Factors of the keys that zoom, together with Ctrl; 0 shows the whole map."""


@guarded
class InspectorCanvas(Painted):
    """Paints the panel's picture, and passes pointer and key events on to the panel."""

    def __init__(self, panel: InspectorPanel) -> None:
        super().__init__(panel)
        self._panel = panel
        self.view = Viewport()
        """The part of the map that is shown: x counts keys, y rows of the map."""
        self._pressed: tuple[QPointF, InspectorLayout, Viewport] | None = None
        self._dragging = False
        named(self, "inspector_canvas", "Attention weights")
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def place(self) -> QRectF:
        """Return the place of the picture."""
        return QRectF(self.rect()).adjusted(2, 0, -2, -4)

    def paint(self, painter: QPainter) -> None:
        panel, style = self._panel, self._panel.fitted
        if panel.model is not None:
            paint_inspector(painter, panel.model, panel.pointer, style, self.place(), self.view)
        elif panel.stopped:
            font, line = style.text_font(13), style.px(19)
            place = style.inset(self.place(), 8, 0, 8, 0)
            for n, words in enumerate(wrapped(STOPPED, font, place.width())):
                box = QRectF(place.x(), place.y() + n * line, place.width(), line)
                draw_text(painter, box, words, font, style.theme.text)

    # --- what part of the map is shown ----------------------------------------------------

    def zoom(self, factor: float, about: QPointF | None = None) -> None:
        """Zoom the map by a factor around a point or its middle."""
        model = self._panel.model
        if model is not None:
            layout = self._panel.layout_now()
            about = about or layout.cells.center()
            self._take(zoomed_map(model, layout, self.view, about, factor))

    def fit(self) -> None:
        """Show the whole map."""
        self._take(Viewport())

    def reveal(self, row: int) -> None:
        """Move the map just far enough to show a row."""
        model = self._panel.model
        if model is not None:
            self._take(revealing_row(model, self._panel.layout_now(), self.view, row))

    def _take(self, view: Viewport) -> None:
        if view != self.view:
            self.view = view
            self.update()

    # --- pointer and keys -----------------------------------------------------------------

    def wheelEvent(self, event: QWheelEvent) -> None:
        turns, at = event.angleDelta().y() / NOTCH, event.position()
        if turns and self._panel.model is not None and self._panel.layout_now().grid_cell(at):
            self.zoom(STEP**turns, at)
            self._panel.read(at)
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            return
        if self._panel.model is None:
            self._panel.click(event.position())
        else:
            self._pressed = event.position(), self._panel.layout_now(), self.view
            self._dragging = False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        model = self._panel.model
        if self._pressed is None or model is None:
            self._panel.read(event.position())
            return
        start, layout, view = self._pressed
        moved = event.position() - start
        if moved.manhattanLength() >= QApplication.startDragDistance():
            self._dragging = True
        if self._dragging and layout.grid_cell(start):
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
            self._take(panned_map(model, layout, view, moved))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton or self._pressed is None:
            return
        dragged, self._pressed, self._dragging = self._dragging, None, False
        if dragged:
            self._panel.read(event.position())
        else:
            self._panel.click(event.position())

    def point(self, at: QPointF | None) -> None:
        if at is None:
            self._panel.point_at(None)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def tip(self, at: QPointF) -> str:
        return ""  # the tip of the widget around would lie on the map

    def keeps(self, event: QKeyEvent) -> bool:
        return _factor(event) is not None

    def key(self, event: QKeyEvent) -> bool:
        factor = _factor(event)
        if factor is None:
            return self._panel.take_key(event.key())
        self.zoom(factor) if factor else self.fit()
        return True


def _factor(event: QKeyEvent) -> float | None:
    """Return the factor of a zoom key; None for every other key."""
    held = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
    zooms = held == Qt.KeyboardModifier.ControlModifier
    return _ZOOMS.get(Qt.Key(event.key())) if zooms else None
