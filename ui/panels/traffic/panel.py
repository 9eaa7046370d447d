"""The dock that shows the requested bytes over the run."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QKeyEvent, QPainter

from simulator.program.playback import end_of_visit
from simulator.run.row_report import RowReport
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace
from simulator.study.traffic_curve import RunTraffic, run_traffic
from ui.board.panel import STILL_MS
from ui.look.kept import draw_kept, place_key
from ui.look.units import bytes_text
from ui.panels.base import Panel
from ui.panels.traffic.painter import TrafficLayout, paint_curves, traffic_layout
from ui.panels.traffic.place import figures, paint_place
from ui.session.session import Session
from ui.session.view import View

_TIP = (
    "Bytes that the tile loads and stores request from HBM (Dao et al. 2022, section 2), read and "
    "written. Other algorithms are stretched over the same width. Click or drag to go to a visit; "
    "Page Up and Page Down go a twentieth of the run."
)
_PAGES = 20


def traffic_model(trace: Trace, snapshot: Snapshot, report: RowReport) -> RunTraffic:
    """Return the curves of the run, made once for each program."""
    return run_traffic(trace.program)


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

    @property
    def layout_now(self) -> TrafficLayout | None:
        """The places of the picture; None before there is a run."""
        if self.traffic is None:
            return None
        return traffic_layout(self.traffic, self.style_now, self.place())

    def paint(self, painter: QPainter) -> None:
        now, traffic, style, place = self._snapshot, self.traffic, self.style_now, self.place()
        if now is None or traffic is None:
            return

        def curves(inner: QPainter) -> None:
            paint_curves(inner, now.program, traffic, style, place)

        # Curves take ten times as long as the rest.
        key, whole = ("curves", place_key(style, place)), QRectF(self.rect())
        draw_kept(painter, traffic, key, whole, style.theme.panel, curves)
        paint_place(
            painter, now.program, traffic, now.cursor.visit, now.counters, style, place,
            hovered=self.hovered,
        )  # fmt: skip

    # --- pointer and keys -----------------------------------------------------------------

    def press(self, at: QPointF) -> bool:
        self._chosen = None
        self.drag(at)
        return True

    def drag(self, at: QPointF) -> None:
        """Move to the visit at a point, once, however many events there are."""
        visit = self._visit_at(at)
        if visit is not None and visit != self._chosen:
            self._chosen = visit
            self._seek(visit)

    def point(self, at: QPointF | None) -> None:
        self.hovered = None if at is None else self._visit_at(at)
        if at is not None:
            self.moving.start()
        self.update()

    def tip(self, at: QPointF) -> str:
        lay = self.layout_now  # inside the plot the words would hide the figures
        return "" if lay is not None and lay.plot.contains(at) else _TIP

    def key(self, event: QKeyEvent) -> bool:
        step = {Qt.Key.Key_PageUp: -1, Qt.Key.Key_PageDown: 1}.get(Qt.Key(event.key()))
        if step is None or self._snapshot is None:
            return False
        length = len(self._snapshot.program)
        visit = self._session.cursor.visit + step * max(length // _PAGES, 1)
        self._seek(min(max(visit, 0), length - 1))
        return True

    def _visit_at(self, at: QPointF) -> int | None:
        lay = self.layout_now
        return None if lay is None else lay.visit_at(at.x())

    def _seek(self, visit: int) -> None:
        if self._snapshot is not None and self._session.trace is not None:
            program = self._session.trace.program
            if program is self._snapshot.program:
                self._session.go(end_of_visit(program, visit))
