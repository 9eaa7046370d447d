"""The dock in the middle of the window: the board, and the actions of a pointer on it."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QApplication, QSizePolicy, QWidget

from simulator.lesson.places import Framing, Pointer
from simulator.program.playback import moved
from simulator.run.cell_values import exists
from simulator.run.final_weights import with_weights_so_far
from simulator.run.motion import Motion
from simulator.run.snapshot import Cell, Snapshot
from ui.board.board import Marks, moving_layout, paint_board, paint_moving_board
from ui.board.camera import Camera, at_row, between
from ui.board.flights import paint_flights
from ui.board.layout import (
    BoardLayout,
    Viewport,
    board_layout,
    following,
    framing,
    locate,
    panned,
    revealing,
    zoomed,
)
from ui.board.marks import visible_band
from ui.board.partials import partial_at
from ui.board.point_marks import pointed_cell, pointed_words
from ui.board.words import DOT, describe, header_choices
from ui.look.draw import LEFT, card, draw_text, text_width
from ui.look.theme import DARK, Style
from ui.safety.overrides import guarded
from ui.safety.painting import painting

STEP = 1.25
"""Zoom of one notch of the wheel, or one press of a key."""
STILL_MS = 700
"""Milliseconds after its last move from which the pointer counts as still."""
NOTCH = 120
"""Angle that Qt reports for one notch of a wheel, in eighths of a degree."""


@guarded
class BoardPanel(QWidget):
    """Shows a snapshot's matrices; zooms, pans, reads cells, and picks rows and tiles.

    A zoomed view follows the current tile, unless the user has moved the tile out of sight with
    the pointer. The view follows again once the tile, or the whole matrix, is in sight.
    """

    row_chosen = Signal(int)
    """A click on a cell of a query row: its number."""
    tile_chosen = Signal(int, int)
    """A double click on a tile of the score matrix: row block and column block."""
    cell_chosen = Signal(object)
    """A click on any cell: the `Cell`."""
    cell_hovered = Signal(object)
    """The `Cell` under the pointer, or None beside the matrices; emitted when it changes."""
    hovered = Signal(str)
    """Words for the cell under the pointer; empty beside the matrices."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.moving = QTimer(self, singleShot=True, interval=STILL_MS)
        """Runs while the pointer moves, and a moment longer."""
        self.reads_out = False
        """Whether a card reads the cell under the pointer: until the run goes on without it."""
        self.style_now = Style(DARK)
        self.plain = False
        """Whether words do not say where numbers lie, and weights have the inspector's colours."""
        self._snapshot: Snapshot | None = None
        self.motion: Motion | None = None
        """The op that leads to the snapshot; None if the snapshot is shown at once."""
        self.divides = False
        """Whether used tiles show their weights P / l so far, not P as it was computed."""
        self.shares_flights = False
        """Whether tiles in flight are drawn over this and other panels, and so not here."""
        self._share = 1.0
        self._row: int | None = None
        self.camera = Camera(self, self._view_moved)
        self._camera: Framing | None = None
        """The rows and keys that a lesson wants in sight."""
        self._pointer: QPointF | None = None
        self._hit: Cell | None = None
        self.selected: Cell | None = None
        self._points: tuple[Pointer, ...] = ()
        self.lit: tuple[Pointer, ...] = ()
        """Places that are lit while a number that comes from them is under the mouse."""
        self._pressed: tuple[QPointF, BoardLayout] | None = None
        self._dragging = False
        self._follows = True
        self.holds = False
        """Whether the view stays in place, because something is drawn over it."""
        self.setObjectName("board")
        self.setAccessibleName("Tile board")
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumSize(360, 250)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    # --- what is shown --------------------------------------------------------------------

    def show_snapshot(
        self,
        snapshot: Snapshot,
        row: int | None,
        selected: Cell | None = None,
        points: tuple[Pointer, ...] = (),
        before: Snapshot | None = None,
        camera: Framing | None = None,
    ) -> None:
        """Show a snapshot with a marked query row and cell, and the places a lesson points at.

        before: the state from which an op leads to the snapshot; None: show it at once.
        camera: the part of the score matrix that a lesson wants in sight.
        """
        if self.divides:
            snapshot = with_weights_so_far(snapshot)
            before = None if before is None else with_weights_so_far(before)
        self.motion = None if before is None else Motion(before, snapshot)
        self._share = 1.0 if before is None else 0.0
        shown = self._snapshot
        if shown is None or _shape(shown) != _shape(snapshot):
            # Another problem: the old view and a drag in progress mean nothing there.
            self.camera.go(Viewport())
            self._camera = None
            self._pressed, self._dragging = None, False
            self.unsetCursor()
        stepped = shown is not None and shown.cursor != snapshot.cursor
        if stepped and not self.moving.isActive():
            self.reads_out = False  # the card would hide what the step does
        self._snapshot, self._row = snapshot, row
        self._follows = self._follows or self._sees_tile()
        if camera != self._camera and camera is not None:
            self._glide(framing(self._layout_there().shape, camera.rows, camera.keys))
            self._follows = self._sees_tile()
        elif shown is None or shown.visit != snapshot.visit:
            self._follow()
        self._camera = camera
        words = header_choices(snapshot, plain=self.plain)[0]
        if selected is not None:
            words += f"{DOT}selected: {describe(snapshot, selected)}"
            if selected != self.selected:  # out of sight: the view goes there
                self._glide(revealing(self._layout_there(), selected))
                self._follows = self._sees_tile()
        self.selected = selected
        if points != self._points:
            self._points = points
            w = snapshot.program.workload
            for cell in filter(None, (pointed_cell(point, w) for point in reversed(points))):
                self._glide(revealing(self._layout_there(), cell))  # the first has the last word
        words += "".join(f"{DOT}pointed at: {name}" for name in map(pointed_words, points) if name)
        self.setAccessibleDescription(words)
        self._read_pointer()
        self.update()

    def show_share(self, share: float) -> None:
        """Show how much of the op that led here has been done, 0 to 1."""
        if self.motion is not None and moved(share) != self._share:
            self._share = moved(share)
            self.update()

    def light(self, points: tuple[Pointer, ...]) -> None:
        """Light places for a moment, instead of the places a lesson points at."""
        if points != self.lit:
            self.lit = points
            self.update()

    @property
    def _marked(self) -> tuple[Pointer, ...]:
        """The lit places that this run has; if none, the places a lesson points at."""
        if self._snapshot is None or not self.lit:
            return self._points
        w = self._snapshot.program.workload
        cells = ((point, pointed_cell(point, w)) for point in self.lit)
        there = tuple(point for point, cell in cells if cell is not None and exists(w, cell))
        return there or self._points

    def set_style(self, style: Style) -> None:
        """Take new colours or sizes."""
        self.style_now = style
        self.update()

    @property
    def hit(self) -> Cell | None:
        """The cell under the pointer."""
        return self._hit

    @property
    def view(self) -> Viewport:
        """The part of the score matrix on show once the camera has arrived."""
        return self.camera.target

    def frame(self, start: Framing, end: Framing, share: float) -> None:
        """Show the view at a share of the camera's way; at its end follow the current tile."""
        if self._snapshot is not None:
            shape = self._layout_there().shape
            begin, stop = (framing(shape, each.rows, each.keys) for each in (start, end))
            self.camera.go(between(shape, begin, stop, share))
            if share >= 1:
                visit = self._snapshot.visit
                self.camera.go(following(self._layout_there(), visit.rows, visit.cols))

    def zoom_in(self) -> None:
        """Zoom in about the middle; keep the current tile in sight if the view follows it."""
        self._zoom(STEP)
        self._follow()

    def zoom_out(self) -> None:
        """Zoom out about the middle."""
        self._zoom(1 / STEP)

    def zoom_fit(self) -> None:
        """Show the whole matrix."""
        self._glide(Viewport())
        self._follows = True

    def board_layout(self) -> BoardLayout:
        """Return where everything lies now.

        Raises ValueError: nothing is shown yet.
        """
        if self._snapshot is None:
            raise ValueError("the board shows no snapshot yet")
        return self._layout_of(self._view_now)

    @property
    def _view_now(self) -> Viewport:
        """The part of the matrix in sight now; during a rescale the camera goes to the row."""
        if self.motion is None or self.holds:
            return self.camera.view
        return at_row(self.motion, self._share, self.camera.view, self._row)

    def _layout_there(self) -> BoardLayout:
        """Return where everything lies once the camera has arrived."""
        return self._layout_of(self.camera.target)

    def _layout_of(self, view: Viewport) -> BoardLayout:
        assert self._snapshot is not None
        style, rect = self.style_now, QRectF(self.rect())
        if self.motion is not None:
            lay = moving_layout(self.motion, style, rect, view)
        else:
            lay = board_layout(self._snapshot.program.workload, style, rect, view)
        return replace(lay, plain=self.plain)

    def _zoom(self, factor: float) -> None:
        if self._snapshot is not None:
            self._glide(self._zoomed(None, factor))

    def _zoomed(self, about: QPointF | None, factor: float) -> Viewport:
        """Return the view zoomed about a point, or about the middle."""
        assert self._snapshot is not None
        about = about or self._layout_there().boxes["S"].center()
        w, rect = self._snapshot.program.workload, QRectF(self.rect())
        return zoomed(w, self.style_now, rect, self.camera.target, about, factor)

    def _follow(self) -> None:
        """Move a zoomed view to the current tile, if the view follows the tile."""
        still = self._dragging or self.holds
        if self._snapshot is not None and self._follows and not still:
            visit = self._snapshot.visit
            self._glide(following(self._layout_there(), visit.rows, visit.cols))

    def _sees_tile(self) -> bool:
        """Return whether any of the current tile is in sight."""
        if self._snapshot is None:
            return True
        layout, visit = self._layout_there(), self._snapshot.visit
        return visible_band(layout.tile(visit.rows, visit.cols), layout.boxes["S"])

    def _glide(self, view: Viewport) -> None:
        if self._snapshot is not None:
            self.camera.glide(view, self._layout_there().shape)

    def _view_moved(self) -> None:
        self._read_pointer()
        self.update()

    # --- pointer --------------------------------------------------------------------------

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom about the pointer."""
        turns = event.angleDelta().y() / NOTCH
        if turns:
            if self._snapshot is not None:
                self.camera.go(self._zoomed(event.position(), STEP**turns))
            self._follows = self._sees_tile()
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin a click or a drag."""
        if event.button() == Qt.MouseButton.LeftButton and self._snapshot is not None:
            self._pressed, self._dragging = (event.position(), self.board_layout()), False
        event.accept()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Pan while the button is down, else read the cell under the pointer."""
        self._pointer = event.position()
        self.reads_out = True
        self.moving.start()
        if self._pressed is not None:
            start, layout = self._pressed
            moved = event.position() - start
            if moved.manhattanLength() >= QApplication.startDragDistance():
                self._dragging = True
                self.setCursor(Qt.CursorShape.ClosedHandCursor)
            if self._dragging:
                self.camera.go(panned(layout, moved))
                self._follows = self._sees_tile()
        self._read_pointer()
        event.accept()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Choose a row and a cell, unless the mouse was dragged."""
        if event.button() != Qt.MouseButton.LeftButton or self._pressed is None:
            return
        dragged, self._pressed, self._dragging = self._dragging, None, False
        self.unsetCursor()
        hit = self._hit_at(event.position())
        if not dragged and hit is not None and "row" in hit.at:
            self.row_chosen.emit(hit.row)
        if not dragged and hit is not None:
            self.cell_chosen.emit(hit)
        event.accept()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Choose the tile under the pointer."""
        hit = self._hit_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and hit is not None and hit.spec.of_pairs:
            assert self._snapshot is not None  # there is no hit without one
            w = self._snapshot.program.workload
            self.tile_chosen.emit(hit.row // w.rows, hit.col // w.cols)
        event.accept()

    def leaveEvent(self, event: QEvent) -> None:
        """Read no cell any more."""
        self.forget_pointer()
        super().leaveEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Forget the pointer's cell: cells have moved."""
        self.forget_pointer()
        super().resizeEvent(event)

    def forget_pointer(self) -> None:
        """Read nothing until the pointer moves again."""
        self._pointer = None
        self._read_pointer()

    def _hit_at(self, point: QPointF) -> Cell | None:
        if self._snapshot is None:
            return None
        layout = self.board_layout()
        return locate(layout, point) or partial_at(self._snapshot, layout, point)

    def _read_pointer(self) -> None:
        """Find the cell under the pointer; repaint, and emit signals about the cell."""
        hit = None if self._pointer is None or self._dragging else self._hit_at(self._pointer)
        text = describe(self._snapshot, hit) if hit and self._snapshot else ""
        if hit != self._hit or hit is not None:
            other, self._hit = hit != self._hit, hit
            if other:
                self.cell_hovered.emit(hit)
            self.hovered.emit(text)
            self.update()

    # --- painting -------------------------------------------------------------------------

    def sizeHint(self) -> QSize:
        """Return the size that the target picture gives the board."""
        return QSize(1180, 740)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the board, and the card of the pointer's cell on top."""
        with painting(self) as painter:
            rect, moves = QRectF(self.rect()), self.motion is not None and 0 < self._share < 1
            if self.motion is not None and moves:
                self._paint_motion(painter, self.motion)
            else:
                painter.fillRect(rect, QColor(self.style_now.theme.panel))
            if self._snapshot is not None:
                if not moves:
                    begins = self.motion is not None and self._share <= 0
                    paint_board(
                        painter, self.motion.before if self.motion and begins else self._snapshot,
                        self.style_now, rect, view=self._view_now, row=self._row, hover=self._hit,
                        selected=self.selected, points=self._marked, plain=self.plain,
                    )  # fmt: skip
                if self._hit is not None and self._pointer is not None and self.reads_out:
                    text = describe(self._snapshot, self._hit)
                    paint_readout(painter, text, self.style_now, rect, self._pointer)

    def _paint_motion(self, painter: QPainter, motion: Motion) -> None:
        """Draw the moving parts over the still parts, which are painted once for each op."""
        lay = self.board_layout()
        marks = Marks(self._row, self._hit, self.selected, self._marked)
        paint_moving_board(painter, motion, self._share, lay, marks)
        if not self.shares_flights:
            paint_flights(painter, motion, self._share, lay)


def readout_lines(text: str, style: Style, room: QRectF) -> list[str]:
    """Return the pointer's words in lines short enough not to cover the matrices."""
    font, most = style.code_font(12), min(style.px(340), room.width() - style.px(22))
    lines: list[str] = []
    for part in text.split(DOT):
        longer = f"{lines[-1]}{DOT}{part}" if lines else part
        if lines and text_width(font, longer) <= most:
            lines[-1] = longer
        else:
            lines.append(part)
    return lines


def readout_rect(lines: list[str], style: Style, room: QRectF, pointer: QPointF) -> QRectF:
    """Return a card for some lines of text beside the pointer, inside `room`."""
    widest = max(text_width(style.code_font(12), line) for line in lines)
    width = min(widest + style.px(22), room.width())
    height = style.px(10) + len(lines) * style.px(18)
    x = min(pointer.x() + style.px(14), room.right() - width)
    y = pointer.y() + style.px(18)
    if y + height > room.bottom():
        y = max(pointer.y() - height - style.px(8), room.top())
    return QRectF(x, y, width, height)


def paint_readout(
    painter: QPainter, text: str, style: Style, room: QRectF, pointer: QPointF
) -> None:
    """Draw the pointer's words on a card beside the pointer."""
    lines = readout_lines(text, style, room)
    box = readout_rect(lines, style, room, pointer)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    card(painter, box, style.theme.field, style.theme.muted, style.px(5))
    line = QRectF(box.left() + style.px(10), box.top() + style.px(5),
                  box.width() - style.px(20), style.px(18))  # fmt: skip
    for words in lines:
        draw_text(painter, line, words, style.code_font(12), style.theme.text, LEFT)
        line.translate(0, style.px(18))


def _shape(snapshot: Snapshot) -> tuple[int, int]:
    w = snapshot.program.workload
    return w.seqlen_q, w.seqlen_k
