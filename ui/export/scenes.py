"""The scenes of exports: a moment of a run as the board, alone or with all around it, or a race."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from PySide6.QtCore import QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QPainter, QRegion

from simulator.program.faults import fault_labels
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
from ui.export.options import RACE
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


@dataclass(frozen=True, slots=True)
class SceneMoment:
    """A state of a run in a scene; base of the scenes that show moments."""

    snapshot: Snapshot
    report: RowReport
    style: Style
    rect: QRectF  # the picture's place

    @property
    def place(self) -> QRectF:
        """The place of the board."""
        raise NotImplementedError

    @property
    def board(self) -> BoardLayout:
        """The places on the board."""
        return board_layout(self.snapshot.program.workload, self.style, self.place)

    def paint_around(self, painter: QPainter, *, ground: bool) -> None:
        """Draw all around the board; `ground`: also the ground between and around the parts."""
        raise NotImplementedError

    def paint_moving(
        self, painter: QPainter, motion: Motion, share: float, *, ground: bool = True,
        over: bool = False,
    ) -> None:  # fmt: skip
        """Draw the motion to this state over its still parts; `over`: also over its still board."""
        raise NotImplementedError

    def paint(self, painter: QPainter, *, ground: bool = True) -> None:
        """Draw the whole state."""
        self.paint_around(painter, ground=ground)
        paint_still_board(painter, self.snapshot, self.board)
        self.paint_live(painter)

    def paint_kept(self, painter: QPainter, *, ground: bool) -> None:
        """Draw the parts that `paint_moving` does not draw itself."""
        self.paint_around(painter, ground=ground)

    def paint_still(self, painter: QPainter) -> None:
        """Draw the parts that stay still during the op that leads to this state, its board too."""
        self.paint_around(painter, ground=True)
        paint_still_board(painter, self.snapshot, self.board)

    def paint_live(self, painter: QPainter) -> None:
        """Draw the moving parts of the board over the still parts."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_live_board(painter, self.snapshot, self.board, Marks(self.report.row))


class BoardMoment(SceneMoment):
    """The board alone, below the label of faults if there are any."""

    @property
    def place(self) -> QRectF:
        return self._places[0]

    @property
    def _places(self) -> tuple[QRectF, QRectF]:
        """The place of the board, and of the label; null without faults."""
        pad = self.style.px(10)
        place = inside(self.rect, pad)
        strip = QRectF(place.x(), place.y(), place.width(), self.style.px(22))
        if not fault_labels(self.snapshot.program.workload.scenario):
            return place, QRectF()
        place.setTop(strip.bottom() + pad / 2)
        return place, strip

    def paint_around(self, painter: QPainter, *, ground: bool) -> None:
        if ground:
            painter.fillRect(self.rect, QColor(self.style.theme.panel))
        scenario = self.snapshot.program.workload.scenario
        paint_fault_label(painter, scenario, self.style, self._places[1])

    def paint_kept(self, painter: QPainter, *, ground: bool) -> None:
        self.paint_around(painter, ground=ground)
        if not ground:
            paint_still_board(painter, self.snapshot, self.board)

    def paint_moving(
        self, painter: QPainter, motion: Motion, share: float, *, ground: bool = True,
        over: bool = False,
    ) -> None:  # fmt: skip
        row, whole = self.report.row, Viewport()
        view = at_row(motion, share, whole, row) if ground else whole
        lay = moving_layout(motion, self.style, self.place, view)
        ground = ground and not (over and view == whole)
        paint_moving_board(painter, motion, share, lay, Marks(row), ground=ground)
        paint_flights(painter, motion, share, lay)


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


class ComposedMoment(SceneMoment):
    """The board with memory, softmax and progress around it."""

    @property
    def places(self) -> ScenePlaces:
        """The places of the picture's parts."""
        return scene_places(self.style, self.rect)

    @property
    def place(self) -> QRectF:
        return inside(self.places.board, self.style.px(8))

    def paint_around(self, painter: QPainter, *, ground: bool) -> None:
        style, now, places = self.style, self.snapshot, self.places
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if ground:
            _paint_ground(painter, style, self.rect, places.cards)
        _paint_title(painter, now, style, places.title)
        for box in places.cards:
            card(painter, box, style.theme.panel, style.theme.border, style.px(6))
        _, memory, softmax, foot = (inside(box, style.px(8)) for box in places.cards)
        paint_view(painter, "plain", MemoryState(now, _baseline(now.program)), style, memory)
        paint_softmax(painter, now, self.report, style, softmax)
        _paint_foot(painter, now, style, foot)

    def paint_moving(
        self, painter: QPainter, motion: Motion, share: float, *, ground: bool = True,
        over: bool = False,
    ) -> None:  # fmt: skip
        style, after, row = self.style, motion.after, self.report.row
        board, memory, softmax, _ = (inside(box, style.px(8)) for box in self.places.cards)
        view = at_row(motion, share, Viewport(), row)
        lay = moving_layout(motion, style, board, view)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        berths = None
        if after.op.moves:
            state = MemoryState(after, _baseline(after.program), motion, share)
            paint_view(painter, "plain", state, style, memory)
            berths = berths_of("plain", motion, style, memory)
        if moves_softmax(after.op):
            paint_softmax(painter, after, self.report, style, softmax, motion=motion, share=share)
        ground = not (over and view == Viewport())
        paint_moving_board(painter, motion, share, lay, Marks(row), ground=ground)
        paint_flights(painter, motion, share, lay, berths)


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
def _baseline(program: TileProgram) -> int:
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


@dataclass(frozen=True, slots=True)
class SceneSpec:
    """One scene."""

    name: str  # on the command line
    title: str  # in the window
    moment: type[SceneMoment] | None  # how a moment is drawn; None if it shows whole runs


SCENES = {
    spec.name: spec
    for spec in (
        SceneSpec("scene", "Board, memory and softmax", ComposedMoment),
        SceneSpec("board", "Board alone", BoardMoment),
        SceneSpec(RACE, "Race of the whole runs", None),
    )
}


def scene_style(theme: Theme, size: QSizeF) -> Style:
    """Return the style of a picture of that size: everything is scaled with it."""
    scale = min(size.width() / DESIGN.width(), size.height() / DESIGN.height())
    return Style(theme, max(scale, 0.8))


def scene_moment(
    scene: str, snapshot: Snapshot, report: RowReport, theme: Theme, size: tuple[int, int]
) -> SceneMoment:
    """Return a state of a run in a scene, as a picture of a size."""
    moment = SCENES[scene].moment
    assert moment is not None
    return moment(snapshot, report, scene_style(theme, QSizeF(*size)), QRectF(0, 0, *size))
