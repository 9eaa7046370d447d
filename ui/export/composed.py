"""The composed picture of exports: board, memory, softmax and progress."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from PySide6.QtCore import QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QPainter, QRegion

from simulator.lesson.places import Pointer
from simulator.program.tile_program import TileProgram
from simulator.run.motion import Motion
from simulator.run.row_report import RowReport
from simulator.run.snapshot import Snapshot
from ui.board.board import (
    Marks,
    Viewport,
    board_layout,
    moving_layout,
    paint_live_board,
    paint_moving_board,
    paint_still_board,
)
from ui.board.camera import at_row
from ui.board.fault_marks import paint_fault_label
from ui.board.flights import paint_flights
from ui.board.layout import BoardLayout
from ui.look.draw import LEFT, RIGHT, card, draw_text, text_width
from ui.look.run_words import engine_words, scenario_words
from ui.look.theme import Style, Theme
from ui.look.units import count_text
from ui.panels.memory.model import MemoryState, baseline_total
from ui.panels.memory.views import berths_of, paint_view
from ui.panels.softmax.model import moves_softmax
from ui.panels.softmax.painter import paint_softmax
from ui.panels.transport.painter import paint_chips, paint_scrubber, time_words

DESIGN = QSizeF(1600, 900)  # picture size at which the style's scale is 1


def scene_style(theme: Theme, size: QSizeF) -> Style:
    """Return the style of a picture of that size: everything is scaled with it."""
    scale = min(size.width() / DESIGN.width(), size.height() / DESIGN.height())
    return Style(theme, max(scale, 0.8))


@dataclass(frozen=True, slots=True)
class ScenePlaces:
    """Places of board, memory, softmax and transport in the picture."""

    title: QRectF  # title, board, memory, softmax, foot: the title, and the cards
    board: QRectF
    memory: QRectF
    softmax: QRectF
    foot: QRectF

    @property
    def cards(self) -> tuple[QRectF, ...]:
        """All but the title."""
        return self.board, self.memory, self.softmax, self.foot


def scene_places(style: Style, rect: QRectF) -> ScenePlaces:
    """Return the places of the picture's parts."""
    px = style.px
    gap = px(10)
    inner = rect.adjusted(gap, 0, -gap, -gap)
    title_height, foot_height = px(40), px(70)
    title = QRectF(inner.x(), inner.y(), inner.width(), title_height)
    body_height = inner.height() - title_height - foot_height - gap
    right_width = max(px(430), inner.width() * 0.36)
    board = QRectF(inner.x(), title.bottom(), inner.width() - right_width - gap, body_height)
    right = QRectF(board.right() + gap, board.y(), right_width, body_height)
    memory = QRectF(right.x(), right.y(), right_width, body_height * 0.4 - gap / 2)
    softmax = QRectF(right.x(), memory.bottom() + gap, right_width, 0)
    softmax.setBottom(right.bottom())
    foot = QRectF(inner.x(), board.bottom() + gap, inner.width(), foot_height)
    return ScenePlaces(title, board, memory, softmax, foot)


def paint_scene(
    painter: QPainter,
    snapshot: Snapshot,
    report: RowReport,
    style: Style,
    rect: QRectF,
    *,
    ground: bool = True,
    points: Collection[Pointer] = (),
) -> None:
    """Draw the whole picture; `ground`: also the ground between and around the parts."""
    lay = paint_still_scene(painter, snapshot, report, style, rect, ground=ground)
    paint_still_board(painter, snapshot, lay)
    paint_live_board(painter, snapshot, lay, Marks(report.row, points=tuple(points)))


def paint_moving_scene(
    painter: QPainter,
    motion: Motion,
    share: float,
    report: RowReport,
    style: Style,
    rect: QRectF,
    *,
    ground: bool = True,
    over: bool = False,
) -> None:
    """Draw moving parts over `paint_still_scene`; `over`: the still board is drawn already, too."""
    places, after = scene_places(style, rect), motion.after
    board, memory, softmax = (inside(box, style.px(8)) for box in places.cards[:3])
    view = at_row(motion, share, Viewport(), report.row)
    lay = moving_layout(motion, style, board, view)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    berths = None
    if after.op.moves:
        state = MemoryState(after, _baseline_bytes(after.program), motion, share)
        paint_view(painter, "plain", state, style, memory)
        berths = berths_of("plain", motion, style, memory)
    if moves_softmax(after.op):
        paint_softmax(painter, after, report, style, softmax, motion=motion, share=share)
    ground = not (over and view == Viewport())
    paint_moving_board(painter, motion, share, lay, Marks(report.row), ground=ground)
    paint_flights(painter, motion, share, lay, berths)


def paint_still_scene(
    painter: QPainter,
    snapshot: Snapshot,
    report: RowReport,
    style: Style,
    rect: QRectF,
    *,
    ground: bool = True,
) -> BoardLayout:
    """Draw the parts that stay still during the op that leads to a state: all around the board.

    Returns: the places on the board.
    """
    places = scene_places(style, rect)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    if ground:
        _paint_ground(painter, style, rect, places.cards)
    _paint_title(painter, snapshot, style, places.title)
    for box in places.cards:
        _paint_card(painter, style, box)
    board, memory, softmax, foot = (inside(box, style.px(8)) for box in places.cards)
    state = MemoryState(snapshot, _baseline_bytes(snapshot.program))
    paint_view(painter, "plain", state, style, memory)
    paint_softmax(painter, snapshot, report, style, softmax)
    _paint_foot(painter, snapshot, style, foot)
    return board_layout(snapshot.program.workload, style, board)


def _paint_card(painter: QPainter, style: Style, box: QRectF) -> None:
    card(painter, box, style.theme.panel, style.theme.border, style.px(6))


def _paint_ground(painter: QPainter, style: Style, rect: QRectF, boxes: tuple[QRectF, ...]) -> None:
    """Fill the space outside of the boxes: filling all of a large picture twice takes a while."""
    free = QRegion(rect.toAlignedRect())
    for box in boxes:
        free = free.subtracted(QRegion(inside(box, style.px(8)).toRect()))
    painter.save()
    painter.setClipRegion(free, Qt.ClipOperation.IntersectClip)
    painter.fillRect(rect, QColor(style.theme.window))
    painter.restore()


@lru_cache(maxsize=8)
def _baseline_bytes(program: TileProgram) -> int:
    return baseline_total(program.workload)


def inside(rect: QRectF, by: float) -> QRectF:
    """Return a place without a margin at all sides."""
    return rect.adjusted(by, by, -by, -by)


def _paint_title(painter: QPainter, snapshot: Snapshot, style: Style, rect: QRectF) -> None:
    w, theme = snapshot.program.workload, style.theme
    engine = engine_words(snapshot.engine, snapshot.device)
    small, large = style.text_font(12), style.text_font(16, bold=True)
    right = text_width(small, engine) + style.px(8)
    draw_text(painter, rect, engine, small, theme.muted, RIGHT)
    title = w.scenario.title or snapshot.program.algorithm.title
    room = rect.adjusted(0, 0, -right - style.px(16), 0)
    inset = (room.height() - style.px(22)) / 2
    used = paint_fault_label(painter, w.scenario, style, room.adjusted(0, inset, 0, -inset))
    room.setLeft(room.left() + (used + style.px(12) if used else 0))
    draw_text(painter, room, title, large, theme.text, LEFT)
    used = text_width(large, title) + style.px(18)
    words = " · ".join([snapshot.program.algorithm.title, *scenario_words(w)])
    rest = room.adjusted(used, 0, 0, 0)
    if rest.width() > style.px(120):
        draw_text(painter, rest, words, small, theme.muted, LEFT)


def _paint_foot(painter: QPainter, snapshot: Snapshot, style: Style, rect: QRectF) -> None:
    px, theme = style.px, style.theme
    lines = (
        f"visit {count_text(snapshot.cursor.visit + 1)} of {count_text(len(snapshot.program))}",
        time_words(snapshot),
    )
    font = style.text_font(12)
    words = max(text_width(font, line) for line in lines) + px(4)
    left = rect.adjusted(0, 0, -words - px(14), 0)
    half = left.height() / 2
    row = QRectF(left.x(), left.y(), left.width(), half - px(2))
    paint_scrubber(painter, snapshot, style, row)
    paint_chips(painter, snapshot, style, row.translated(0, half + px(2)))
    for n, line in enumerate(lines):
        place = QRectF(rect.right() - words, rect.y() + n * half, words, half)
        draw_text(painter, place, line, font, theme.text if n == 0 else theme.muted, LEFT)
