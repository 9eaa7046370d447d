"""The layer over the scores while a mask is painted on the board."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QLineF, QObject, QPointF, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QShowEvent,
)
from PySide6.QtWidgets import QApplication, QLabel, QWidget

from simulator.problem.masks import Mask
from simulator.problem.tiling import TileGrid
from ui.board.layout import BoardLayout
from ui.board.marks import at_least
from ui.board.panel import BoardPanel
from ui.board.scores import clipped
from ui.look.draw import card, hairline, outline, text_width
from ui.look.mask_picture import mask_image
from ui.look.names import first_that_fits
from ui.look.theme import Style
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.session.painting import PAINTED, Block
from ui.session.session import Session
from ui.widgets.choice_bar import Button, bar_sheet
from ui.widgets.mask_file import use_mask
from ui.widgets.named import named
from ui.widgets.sheet import set_sheet

_VEIL = 0.72
"""Opacity of the mask over the scores: the user edits the mask."""
_LINED = 6
"""Smallest block, in pixels, between which lines are drawn."""
_LINE, _SIDE = 26.0, 8.0
"""Height of the line with the hint, and room around its parts, at scale 1."""


@guarded
class MaskBrush(QWidget):
    """Lies over the board while a mask is painted there.

    A drag over the scores paints; a drag that begins beside them moves the view, and the wheel
    zooms it.
    """

    def __init__(self, board: BoardPanel, session: Session) -> None:
        super().__init__(board)
        self._board, self._session, self._painting = board, session, session.painting
        self._mask: Mask | None = None
        self._kinds = np.zeros((0, 0), dtype=np.uint8)
        self._at: Block | None = None
        """The block under the pointer."""
        self._draws = False
        self.setObjectName("mask_brush")
        self.setAccessibleName("Mask painted on the board")
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_NoSystemBackground)
        self.hint = QLabel(self)
        self.use_button = self._button("use_painted", "Use…", "Use the painted mask",
                                       "Run the scenario with this mask; its blocks are saved in a"
                                       " copy of its input.")  # fmt: skip
        self.use_button.clicked.connect(self._use)
        self.done_button = self._button("stop_painting", "Done", "Stop painting",
                                        "Leave the board as it is; what is painted stays in the"
                                        " panel Masks. (Esc)")  # fmt: skip
        self.done_button.clicked.connect(self._painting.stop)
        board.installEventFilter(self)
        self._painting.switched.connect(self._show)
        self._painting.changed.connect(self._take)
        session.trace_changed.connect(self._take)
        self.hide()

    def _button(self, name: str, text: str, said: str, tip: str) -> Button:
        button = named(Button(self), name, said, tip)
        button.setText(text)
        button.setCursor(Qt.CursorShape.ArrowCursor)
        return button

    # --- what is shown --------------------------------------------------------------------

    def _show(self, on: bool) -> None:
        if on == self.isVisibleTo(self._board):
            return
        focused = QApplication.focusWidget()
        if not on and focused is not None and (focused is self or self.isAncestorOf(focused)):
            self._board.setFocus()
        self._board.forget_pointer()
        self._draws = self._board.holds = False
        self._at = None
        self._take()
        self.setVisible(on)
        if on:
            self._cover()
            self.raise_()
            self.setFocus()

    def _take(self) -> None:
        """Take the mask that is being painted."""
        if not self._painting.on:
            return
        mask = self._painting.ground
        if mask is None or mask is self._mask or mask.blocks is None:
            return
        self._mask = mask
        self._kinds = TileGrid(mask, mask.blocks.size, mask.blocks.size).kinds()
        self.setAccessibleDescription(f"{self._words()[0]}. {self._counted()}.")
        self.arrange()
        self.update()

    def _counted(self) -> str:
        seen = int(np.count_nonzero(self._kinds))
        return f"{seen} of {self._kinds.size} blocks have a visible pair"

    def _words(self) -> tuple[str, ...]:
        """Return wordings of the hint, the longest first."""
        size = self._mask.blocks.size if self._mask and self._mask.blocks else 0
        blocks = f"blocks of {size} × {size}"
        return (
            f"Painting a mask: drag over S to show (filled) or hide {blocks}; Ctrl+Z undoes it",
            f"Painting a mask: drag over S to show (filled) or hide {blocks}",
            f"Painting a mask: drag over S to show or hide {blocks}",
            f"Drag over S to show or hide {blocks}",
            f"Drag over S: {blocks}",
            "Drag over S",
            "",
        )

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self.arrange()
        self.update()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Stay as large as the board."""
        if event.type() is QEvent.Type.Resize and not self.isHidden():
            self._cover()
        return False

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._cover()

    def _cover(self) -> None:
        self.setGeometry(self._board.rect())
        self.arrange()

    def arrange(self) -> None:
        """Place the hint and its buttons in a line at the lower edge of the board."""
        style, room = self._board.style_now, self._line()
        font, side = style.text_font(12), round(style.px(_SIDE))
        right = round(room.right()) - side // 2
        height = round(room.height()) - side // 2
        top = round(room.y() + (room.height() - height) / 2)
        for button in (self.done_button, self.use_button):
            set_sheet(button, bar_sheet(style))
            button.setFont(font)
            width = round(text_width(font, button.text())) + 2 * side
            right -= width
            button.setGeometry(right, top, width, height)
            right -= side // 2
        left = round(room.x()) + side
        set_sheet(self.hint, f"color: {style.theme.text}; background: transparent;")
        self.hint.setFont(font)
        self.hint.setText(first_that_fits(self._words(), right - left, font))
        self.hint.setGeometry(left, top, max(right - left, 0), height)

    def _line(self) -> QRectF:
        """Return where the hint stands: in the place of the caption, if there is one."""
        px, rect = self._board.style_now.px, QRectF(self.rect())
        return rect.adjusted(px(4), rect.height() - px(_LINE) - px(4), -px(4), -px(4))

    # --- pointer and keys -----------------------------------------------------------------

    def _layout(self) -> BoardLayout | None:
        """Return the board's layout; None while the board shows no run, or an earlier one."""
        view, trace = self._session.view, self._session.trace
        if view is None or trace is None or view.snapshot.program is not trace.program:
            return None
        return self._board.board_layout()

    def _block(self, at: QPointF, *, inside: bool) -> Block | None:
        """Return the block at a point; outside the scores the nearest one, or None if `inside`."""
        lay, trace = self._layout(), self._session.trace
        if lay is None or trace is None or self._mask is None or self._mask.blocks is None:
            return None
        box, (wide, high) = lay.boxes["S"], lay.cell
        if inside and not box.contains(at):
            return None
        rows, keys = lay.visible_rows(), lay.visible_keys()
        key = int(np.clip(lay.view.x + (at.x() - box.x()) / wide, keys.start, keys.stop - 1))
        row = int(np.clip(lay.view.y + (at.y() - box.y()) / high, rows.start, rows.stop - 1))
        size = self._mask.blocks.size
        return row % trace.workload.queries // size, key // size  # packed heads share a mask

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin a stroke over the scores; elsewhere the board gets the button."""
        block = self._block(event.position(), inside=True)
        if block is None or self._mask is None:
            event.ignore()
        elif event.button() == Qt.MouseButton.LeftButton:
            self._draws = self._board.holds = True
            self._at = block
            self._painting.begin(block, self._mask)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Go on painting, else mark the block under the pointer."""
        at = self._block(event.position(), inside=not self._draws)
        if at != self._at:
            self._at = at
            self.update()
        if at is None:
            self.unsetCursor()
            event.ignore()
            return
        self.setCursor(Qt.CursorShape.CrossCursor)
        if self._draws:
            self._painting.go_on(at)
        else:
            self._board.forget_pointer()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """End the stroke."""
        if not self._draws:
            event.ignore()
        elif event.button() == Qt.MouseButton.LeftButton:
            self._draws = self._board.holds = False
            self._painting.end()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Paint with each click, however quick."""
        self.mousePressEvent(event)

    def leaveEvent(self, event: QEvent) -> None:
        """Mark no block any more."""
        self._at = None
        self.update()
        super().leaveEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Show or hide the block of the selected cell with Enter."""
        cell, trace = self._board.selected, self._session.trace
        enters = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        enters = enters and self._layout() is not None
        if not enters or cell is None or not cell.spec.of_pairs or trace is None:
            super().keyPressEvent(event)
            return
        if self._mask is not None and self._mask.blocks is not None:
            size = self._mask.blocks.size
            row = cell.row % trace.workload.queries
            self._painting.begin((row // size, cell.col // size), self._mask)
            self._painting.end()

    def _use(self) -> None:
        if self._mask is not None:
            use_mask(self, self._session, PAINTED, self._mask)

    # --- painting -------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the mask over the scores, and the line with the hint."""
        with painting(self) as painter:
            style, lay, trace = self._board.style_now, self._layout(), self._session.trace
            if lay is None or trace is None or self._mask is None or self._mask.blocks is None:
                return
            queries = trace.workload.queries
            for first in range(0, trace.workload.seqlen_q, queries):
                paint_blocks(painter, self._kinds, self._mask, lay, first, self._at)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            card(painter, self._line(), style.theme.field, style.theme.current, style.px(5))


def paint_blocks(
    painter: QPainter,
    kinds: NDArray[np.uint8],
    mask: Mask,
    lay: BoardLayout,
    first: int,
    marked: Block | None,
) -> None:
    """Draw the blocks of a mask over the scores of one head.

    kinds: (row blocks, key blocks) uint8: hidden, partly visible, visible.
    """
    style = lay.style
    assert mask.blocks is not None
    size, (down, across) = mask.blocks.size, kinds.shape
    rows, keys = lay.visible_rows(), lay.visible_keys()
    top = max((rows.start - first) // size, 0)
    bottom = min(-((first - rows.stop) // size), down)
    left, right = keys.start // size, min(-(-keys.stop // size), across)
    if top >= bottom or left >= right:
        return
    theme, ends = style.theme, (first + mask.seqlen_q, mask.seqlen_k)

    def place(i: range, j: range) -> QRectF:
        """Return where blocks lie; the last of a row or column may be smaller."""
        return lay.tile(
            range(first + i.start * size, min(first + i.stop * size, ends[0])),
            range(j.start * size, min(j.stop * size, ends[1])),
        )

    shown = range(top, bottom), range(left, right)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
    with clipped(painter, lay.boxes["S"]):
        image = mask_image(kinds[top:bottom, left:right], theme)
        wide, high = (size * length for length in lay.cell)
        whole = QRectF(lay.col_x(left * size), lay.row_y(first + top * size),
                       (right - left) * wide, (bottom - top) * high)  # fmt: skip
        painter.setOpacity(_VEIL)
        with clipped(painter, place(*shown)):
            painter.drawImage(whole, image)
        painter.setOpacity(1.0)
        if min(lay.cell) * size >= _LINED:
            painter.setPen(QPen(QColor(theme.grid), hairline(style)))
            box = place(*shown)
            ys = (round(lay.row_y(first + i * size)) for i in shown[0])
            xs = (round(lay.col_x(j * size)) for j in shown[1])
            painter.drawLines([QLineF(box.left(), y, box.right(), y) for y in ys])
            painter.drawLines([QLineF(x, box.top(), x, box.bottom()) for x in xs])
        if marked is not None:
            i, j = marked
            around = at_least(place(range(i, i + 1), range(j, j + 1)), style.px(5))
            outline(painter, around, theme.empty, style.px(4))
            outline(painter, around, theme.text, style.px(2))
    painter.restore()
