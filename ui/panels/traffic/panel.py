"""The dock of requested bytes over the run, where the cursor is a line with a card of figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QColor, QKeyEvent, QPainter

from simulator.program.playback import end_of_visit
from simulator.program.tensors import symbol
from simulator.program.tile_program import Counters, TileProgram
from simulator.run.row_report import RowReport
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace
from simulator.study.traffic_curve import RunTraffic, run_traffic
from ui.board.panel import STILL_MS
from ui.look.draw import card, draw_text, fitted, text_width
from ui.look.kept import draw_kept, place_key
from ui.look.units import bytes_text, count_text
from ui.panels.base import Panel
from ui.panels.traffic.painter import TrafficLayout, heights, paint_curves, traffic_layout
from ui.session.session import Session
from ui.session.view import View

_LINE = 15
_COLUMNS = 256
"""Number of places along the run at which curves are sampled."""
_CURVE = 20.0
"""How much worse it is to cover curves than anything else."""


def paint_place(painter: QPainter, now: Snapshot, lay: TrafficLayout, hovered: int | None) -> None:
    """Paint the cursor's place and the bytes requested so far, or up to the pointer's visit."""
    at, program, theme = now.cursor.visit, now.program, lay.style.theme
    painter.save()
    _paint_cursor(painter, lay, at + 0.5, theme.current, 2)
    if hovered is None:
        _paint_card(painter, lay, at, figures(program, at, now.counters))
    else:
        _paint_cursor(painter, lay, hovered + 0.5, theme.text, 1)
        said = figures(program, hovered, program.counters(hovered + 1))
        _paint_card(painter, lay, hovered, said)
    painter.restore()


def figures(program: TileProgram, visit: int, counters: Counters) -> tuple[str, ...]:
    """Return the bytes so far in words: the total first, then each tensor."""
    place = f"visit {count_text(visit + 1)}"
    total = f"{bytes_text(counters.bytes)} requested"
    each = [
        f"{symbol(t)} {bytes_text(counters.read[t] + counters.write[t])}"
        for t in program.tensors
        if counters.read[t] + counters.write[t]
    ]
    return f"{place}: {total}", *each


def _paint_cursor(
    painter: QPainter, lay: TrafficLayout, visits: float, colour: str, width: float
) -> None:
    wide = max(round(lay.style.px(width)), 1)
    x = round(lay.x(visits) - wide / 2)
    painter.fillRect(QRectF(x, lay.plot.y(), wide, lay.plot.height()), QColor(colour))


def _paint_card(painter: QPainter, lay: TrafficLayout, visit: int, said: tuple[str, ...]) -> None:
    """Write the figures of a visit on a card, beside its line and where no curve is covered."""
    style, theme, px = lay.style, lay.style.theme, lay.style.px
    lines, box = figures_place(said, lay, visit)
    bold, font = style.text_font(11, bold=True), style.text_font(11)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    card(painter, box, theme.panel, theme.border, px(3))
    for n, text in enumerate(lines):
        row = QRectF(box.x() + px(7), box.y() + px(2) + n * px(_LINE),
                     box.width() - px(13), px(_LINE))  # fmt: skip
        draw_text(painter, row, text, bold if n == 0 else font, theme.text)


def figures_place(
    said: tuple[str, ...], lay: TrafficLayout, visit: int
) -> tuple[tuple[str, ...], QRectF]:
    """Return the lines of the card with the `figures` of a visit, and the card's place."""
    px, plot, x = lay.style.px, lay.plot, lay.x(visit + 0.5)
    bold, font = lay.style.text_font(11, bold=True), lay.style.text_font(11)
    first, *each = said
    lower, upper = _curve_heights(lay)
    best, least = None, np.inf
    half = -(-len(each) // 2)
    wordings = [
        (said, 0.0), ((first, "  ".join(each[:half]), "  ".join(each[half:])), 0.02),
        ((first, "  ".join(each)), 0.04), ((first,), 0.3), ((first.split(": ")[1],), 0.35),
    ]  # fmt: skip
    for lines, loss in wordings if len(each) > 1 else wordings[3:] if not each else wordings[2:]:
        width = max(text_width(bold if n == 0 else font, text) for n, text in enumerate(lines))
        width, height = width + px(14), len(lines) * px(_LINE) + px(4)
        if width > plot.width() or height > plot.height() - px(3):
            continue
        free = np.linspace(plot.x(), plot.right() - width, 24).tolist()
        beside = [start for start in (x + px(6), x - px(6) - width) if free[0] <= start <= free[-1]]
        for start in [*beside, *free]:
            box = QRectF(start, plot.y() + px(3), width, height)
            gap = max(start - x, x - start - width)
            cost = loss + 0.35 * max(gap, 0) / plot.width() + (0.5 if gap < px(2) else 0.0)
            if cost >= least:
                continue
            cost += _CURVE * _covered(box.adjusted(-2, 0, 2, 2), lay, lower, upper)
            if cost < least:
                best, least = (tuple(lines), box), cost
    if best is None:
        return (fitted(bold, first, plot.width() - px(14)),), plot
    return best


def _curve_heights(
    lay: TrafficLayout,
) -> tuple[list[NDArray[np.floating[Any]]], NDArray[np.floating[Any]]]:
    """Return the heights of the other runs' lines and of the areas' upper edge, in columns."""
    out = []
    for curve in (lay.traffic.own, *lay.traffic.others):
        at = np.linspace(0, curve.length, _COLUMNS)
        out.append(heights(np.interp(at, curve.visits, curve.totals), lay))
    return out[1:], out[0]


def _covered(
    box: QRectF,
    lay: TrafficLayout,
    lines: Sequence[NDArray[np.floating[Any]]],
    edge: NDArray[np.floating[Any]],
) -> float:
    """Return how much of the curves a box covers: 1 for one curve across its whole width."""
    scale = (_COLUMNS - 1) / lay.plot.width()
    first = int((box.left() - lay.plot.x()) * scale)
    last = max(int((box.right() - lay.plot.x()) * scale) + 1, first + 1)
    part = slice(max(first, 0), last)
    met = float((edge[part] < box.bottom()).mean())
    return met + sum(
        float(((box.top() < line[part]) & (line[part] < box.bottom())).mean()) for line in lines
    )


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
        paint_place(painter, now, traffic_layout(traffic, style, place), self.hovered)

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
