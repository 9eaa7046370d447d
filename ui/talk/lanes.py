"""Paths through the course as lanes: on the map, and in the menu that lists lessons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QAction, QColor, QIcon, QPainter, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import QMenu, QWidget

from ui.look.theme import DARK, Style
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.widgets.sheet import set_sheet

_DASHES = (None, None, (2.2, 1.4))
_WIDE = 3.0
"""Width of a lane in a menu, at scale 1."""
_LANE, _FIRST, _AFTER = 14.0, 14.0, 26.0
"""Distances in a menu: from lane to lane, from the edge to the first, from the last to names."""


def lane_colour(style: Style, *, chosen: bool) -> str:
    """Return the colour of a lane."""
    return style.theme.current if chosen else style.theme.muted


def lane_pen(style: Style, number: int, *, chosen: bool, wide: float = 4.5) -> QPen:
    """Return the pen of the lane of a path; the third is dashed."""
    pen = QPen(QColor(lane_colour(style, chosen=chosen)), style.px(wide))
    pen.setCapStyle(Qt.PenCapStyle.FlatCap)
    dashes = _DASHES[number]
    if dashes is not None:
        pen.setDashPattern(dashes)
    return pen


def paint_ring(
    painter: QPainter, style: Style, at: QPointF, ground: str, *, chosen: bool, size: float = 7.0
) -> None:
    """Paint the ring of a lesson on a path."""
    painter.setPen(QPen(QColor(lane_colour(style, chosen=chosen)), style.px(size / 2)))
    painter.setBrush(QColor(ground))
    painter.drawEllipse(at, style.px(size), style.px(size))


def lane_icon(style: Style, number: int, *, chosen: bool) -> QIcon:
    """Return a piece of a path's lane, for the path's name in a menu."""
    side = round(style.px(16))
    picture = QPixmap(side, side)
    picture.fill(Qt.GlobalColor.transparent)
    with QPainter(picture) as painter:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(lane_pen(style, number, chosen=chosen, wide=_WIDE))
        painter.drawLine(QPointF(side / 2, 0), QPointF(side / 2, side))
    return QIcon(picture)


@dataclass(frozen=True, slots=True)
class PathLane:
    """A path beside the entries of a menu."""

    path: int  # number of the path
    stops: tuple[QAction, ...]  # entries of the path's lessons
    # above, below: whether the path has lessons before the menu's first entry, and after its last
    above: bool
    below: bool
    chosen: bool


@guarded
class LaneMenu(QMenu):
    """A menu of lessons with the lanes of paths left of their names."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._style, self.lanes = Style(DARK), tuple[PathLane, ...]()

    def show_lanes(self, style: Style, lanes: Sequence[PathLane]) -> None:
        """Take the lanes, and keep room for them."""
        self._style, self.lanes = style, tuple(lanes)
        px = style.px
        wide = px(_FIRST + _LANE * (len(lanes) - 1) + _AFTER)
        set_sheet(
            self,
            f"""
            QMenu::item {{ padding: {px(4)}px {px(14)}px {px(4)}px {wide}px; }}
            QMenu::item:disabled {{ color: {style.theme.muted}; }}
            QMenu::indicator {{ left: {wide - px(_AFTER) + px(9)}px; }}
        """,
        )

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        with painting(self, covers=False) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            for n, lane in enumerate(self.lanes):
                self._paint(painter, n, lane)

    def _paint(self, painter: QPainter, n: int, lane: PathLane) -> None:
        x = self._style.px(_FIRST + _LANE * n)
        stops = [self.actionGeometry(action).center().y() for action in lane.stops]
        if not stops and not (lane.above and lane.below):
            return
        top = 0.0 if lane.above else float(stops[0])
        bottom = float(self.height()) if lane.below else float(stops[-1])
        painter.setPen(lane_pen(self._style, lane.path, chosen=lane.chosen, wide=_WIDE))
        painter.drawLine(QPointF(x, top), QPointF(x, bottom))
        for y in stops:
            at = QPointF(x, y)
            paint_ring(
                painter, self._style, at, self._style.theme.panel, chosen=lane.chosen, size=4.5
            )
