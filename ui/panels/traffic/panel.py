"""The dock that shows the requested bytes over the run."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import (
    QColor,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPaintEngine,
    QPainter,
    QPaintEvent,
    QPixmap,
)
from PySide6.QtWidgets import QToolTip

from simulator.program.playback import end_of_visit
from simulator.run.row_report import RowReport
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace
from simulator.study.traffic_curve import RunTraffic, run_traffic
from ui.board.panel import STILL_MS
from ui.look.units import bytes_text
from ui.panels.base import Panel
from ui.panels.traffic.painter import paint_curves, traffic_layout
from ui.panels.traffic.place import figures, paint_place
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.session.session import Session
from ui.session.view import View
from ui.widgets.focus import has_ring

_TIP = (
    "Bytes that the tile loads and stores request from HBM (Dao et al. 2022, section 2), read and "
    "written. Other algorithms are stretched over the same width. Click or drag to go to a visit; "
    "Page Up and Page Down go a twentieth of the run."
)
_PAGES = 20


def traffic_model(trace: Trace, snapshot: Snapshot, report: RowReport) -> RunTraffic:
    """Return the curves of the run, made once for each program."""
    return run_traffic(trace.program)


@guarded
class TrafficPanel(Panel[RunTraffic]):
    """Cumulative bytes of each tensor; pressing or dragging moves the cursor, the pointer reads."""

    def __init__(self, session: Session) -> None:
        super().__init__("traffic_panel", "Bytes over the run", QSize(320, 64))
        self.setWhatsThis(_TIP)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.hovered: int | None = None
        self.moving = QTimer(self, singleShot=True, interval=STILL_MS)
        """Runs while the pointer moves, and a moment longer."""
        self._session = session
        self._snapshot: Snapshot | None = None
        self.traffic: RunTraffic | None = None
        self._chosen: int | None = None
        self._curves: tuple[object, QPixmap] | None = None

    def forget(self) -> None:
        self._snapshot = self.traffic = None

    def show_view(self, view: View, model: RunTraffic) -> None:
        before = self._snapshot
        if before is None or before.program is not view.snapshot.program:
            self.hovered = None
        elif before.cursor != view.snapshot.cursor and not self.moving.isActive():
            self.hovered = None  # the figures at the cursor of the run
        self.traffic, self._snapshot = model, view.snapshot
        now = figures(view.snapshot.program, view.snapshot.cursor.visit, view.snapshot.counters)
        whole = f"whole run {bytes_text(model.own.end)}"
        self.setAccessibleDescription(", ".join((*now, whole)))
        self.update()

    def place(self) -> QRectF:
        """Return the place of the picture."""
        return QRectF(self.rect()).adjusted(8, 4, -8, -4)

    def visit_at(self, x: float) -> int | None:
        """Return the visit at a place of the panel; None before there is a run."""
        if self.traffic is None:
            return None
        return traffic_layout(self.traffic, self.style_now, self.place()).visit_at(x)

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            self.clear(painter)
            if self.traffic is not None and self._snapshot is not None:
                now, style, place = self._snapshot, self.style_now, self.place()
                # Curves take ten times as long as the rest, so they are kept. SVG and PDF need
                # lines.
                if painter.paintEngine().type() is not QPaintEngine.Type.Raster:
                    paint_curves(painter, now.program, self.traffic, style, place)
                else:
                    painter.drawPixmap(0, 0, self.curves())
                paint_place(
                    painter, now.program, self.traffic, now.cursor.visit, now.counters,
                    style, place, hovered=self.hovered,
                )  # fmt: skip
            if has_ring(self):
                painter.setPen(QColor(self.style_now.theme.text))
                painter.drawRect(self.rect().adjusted(0, 0, -1, -1))

    def curves(self) -> QPixmap:
        """Return the picture of the curves, painted again when run, style or size change."""
        assert self._snapshot is not None
        assert self.traffic is not None
        program, traffic = self._snapshot.program, self.traffic
        ratio = self.devicePixelRatioF()
        key = (traffic, self.style_now, self.size(), ratio)
        if self._curves is None or self._curves[0] != key:
            picture = QPixmap(self.size() * ratio)
            picture.setDevicePixelRatio(ratio)
            picture.fill(QColor(self.style_now.theme.panel))
            with QPainter(picture) as painter:
                paint_curves(painter, program, traffic, self.style_now, self.place())
            self._curves = key, picture
        return self._curves[1]

    # --- pointer and keys -----------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._chosen = None
            self._choose(event.position().x())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._choose(event.position().x())
        self.hovered = self.visit_at(event.position().x())
        self.moving.start()
        self.update()

    def event(self, event: QEvent) -> bool:
        # Only beside the plot, because inside it the words would hide the figures.
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            inside = self.traffic is not None and self._plot().contains(event.pos())
            QToolTip.showText(event.globalPos(), "" if inside else _TIP, self)
            return True
        return super().event(event)

    def _plot(self) -> QRectF:
        assert self.traffic is not None
        return traffic_layout(self.traffic, self.style_now, self.place()).plot

    def leaveEvent(self, event: QEvent) -> None:
        self.hovered = None
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_PageUp: -1, Qt.Key.Key_PageDown: 1}.get(Qt.Key(event.key()))
        if step is None or self._snapshot is None:
            super().keyPressEvent(event)
            return
        length = len(self._snapshot.program)
        visit = self._session.cursor.visit + step * max(length // _PAGES, 1)
        self._seek(min(max(visit, 0), length - 1))

    def _choose(self, x: float) -> None:
        """Move to the visit at `x`, once, however many events there are."""
        visit = self.visit_at(x)
        if visit is not None and visit != self._chosen:
            self._chosen = visit
            self._seek(visit)

    def _seek(self, visit: int) -> None:
        if self._snapshot is not None and self._session.trace is not None:
            program = self._session.trace.program
            if program is self._snapshot.program:
                self._session.go(end_of_visit(program, visit))
