"""The table of masks with their prices, and the chosen mask as a picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, QSizeF
from PySide6.QtGui import QPainter

from simulator.problem.masks import Mask
from simulator.problem.tiling import TileGrid
from simulator.problem.workload import Workload
from simulator.study.sparse.patterns import Knobs, Priced, blocks_of
from ui.look.draw import LEFT, RIGHT, card, draw_text, hairline, outline, text_width, wrapped
from ui.look.mask_picture import mask_image
from ui.look.names import first_that_fits, fitting, readable
from ui.look.theme import Style
from ui.look.units import LAUNCH, bytes_text, count_text, rate_text, time_text

MIN_SIZE = QSizeF(560, 240)
"""Below this the text shrinks."""
_FINEST = 256
"""Cells of the picture along a side, at most."""
_HEADINGS = (("mask",), ("tiles",), ("bytes",), ("FLOPs",), ("time",), ("error of O", "error"))


@dataclass(frozen=True, slots=True)
class MasksState:
    """The masks on show, and the pointer's place.

    Attributes
    ----------
    workload : Workload
        The run that would have the masks.
    knobs : Knobs
        How much the patterns leave.
    rows : tuple of Priced
        Dense first.
    at : int
        The chosen one.
    kinds : ndarray
        (down, across) uint8: the kinds of the tiles of its picture.
    paints : bool
        Whether anybody can paint in it: not in a film.
    """

    workload: Workload
    knobs: Knobs
    rows: tuple[Priced, ...]
    at: int
    kinds: NDArray[np.uint8]
    paints: bool = True

    @property
    def chosen(self) -> Priced:
        """The mask in the picture."""
        return self.rows[self.at]

    @property
    def note(self) -> str:
        """What has to be known to read it."""
        w = self.workload
        words = f"{self.chosen.pattern.name}: {self.chosen.pattern.words}. "
        words += f"{w.gpu.name}, tiles of {w.rows} × {w.cols}"
        if any(each.figures.time.below_launch for each in self.rows):
            words += f"; a launch takes longer than some of these times, {LAUNCH}"
        paints = self.paints and self.chosen.pattern.of_keys
        words += "; drag in the picture to paint blocks." if paints else "."
        return words

    @property
    def summary(self) -> str:
        """The figures in words."""
        names = [heading[0] for heading in _HEADINGS[1:]]
        rows = [
            f"{each.pattern.name}: "
            + ", ".join(f"{n} {text}" for n, text in zip(names, cells_of(each), strict=True))
            for each in self.rows
        ]
        return f"{self.note} " + ". ".join(rows) + "."


def picture_of(mask: Mask) -> NDArray[np.uint8]:
    """Return which parts of a mask are hidden, partly visible or visible, by arithmetic."""
    size = max(1, -(-max(mask.seqlen_q, mask.seqlen_k) // _FINEST))
    return TileGrid(mask, size, size).kinds()


def cells_of(each: Priced) -> tuple[str, ...]:
    """Return the figures of a mask in the order of the columns."""
    f = each.figures
    error = "–" if each.error is None else f"{100 * each.error:.1f} %"
    return (count_text(each.visited), bytes_text(f.bytes), rate_text(f.flops, "FLOP"),
            time_text(f.time.seconds), error)  # fmt: skip


_LEGEND = ("queries ↓ keys →, filled: seen", "queries ↓ keys →", "")
"""The legend below the picture of a mask, if there is room."""


@dataclass(frozen=True, slots=True)
class MaskPlaces:
    """Places of pictures and table."""

    table: QRectF  # table, picture: the rows, and the mask
    picture: QRectF
    line: float  # height of a row of the table; the heading has one as well
    notes: QRectF  # the lines below

    def row_at(self, y: float) -> int:
        """Return which row of the table is at a height; -1 for its heading."""
        return int((y - self.table.y()) // self.line) - 1


def places_of(state: MasksState, style: Style, rect: QRectF) -> tuple[Style, MaskPlaces]:
    """Return the style that fits, and where things are: the picture beside or below the table."""
    style = readable(fitting(style, rect, MIN_SIZE))
    px, w = style.px, state.workload
    foot = px(14) * 2 + px(4)
    room = rect.adjusted(0, 0, 0, -foot)
    tall, wide = w.queries, w.seqlen_k
    side_by_side = room.width() > 1.25 * room.height()
    if side_by_side:
        height = room.height()
        width = min(height * min(max(wide / tall, 0.5), 2.0), 0.33 * room.width())
        around = QRectF(room.right() - width, room.y(), width, height)
        table = room.adjusted(0, 0, -width - px(12), 0)
    else:
        height = min(0.5 * room.height(), room.width())
        around = QRectF(room.x(), room.bottom() - height, room.width(), height)
        table = room.adjusted(0, 0, 0, -height - px(8))
    scale = min(around.width() / wide, around.height() / tall)
    width, height = max(wide * scale, 4.0), max(tall * scale, 4.0)
    picture = QRectF(around.x() + (around.width() - width) / 2, around.y(), width, height)
    line = min(table.height() / (len(state.rows) + 1), px(24))
    notes = QRectF(rect.x(), rect.bottom() - foot, rect.width(), foot)
    return style, MaskPlaces(table, picture, line, notes)


def block_at(state: MasksState, picture: QRectF, x: float, y: float) -> tuple[int, int]:
    """Return which block of rows and keys is at a point, the nearest one for a point outside."""
    w, size = state.workload, state.knobs.block
    row = int(np.clip((y - picture.y()) / picture.height() * w.queries, 0, w.queries - 1))
    key = int(np.clip((x - picture.x()) / picture.width() * w.seqlen_k, 0, w.seqlen_k - 1))
    return row // size, key // size


def knobs_words(state: MasksState) -> str:
    """Return how much the patterns leave."""
    most = blocks_of(state.workload, state.knobs.block)
    return f"k = {state.knobs.k} of {most} blocks of {count_text(state.knobs.block)} keys"


def paint_masks(painter: QPainter, state: MasksState, style: Style, rect: QRectF) -> None:
    """Paint the table; the chosen mask is framed and drawn."""
    style, places = places_of(state, style, rect)
    px, theme = style.px, style.theme
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    table, line = places.table, places.line
    text, code, small = style.text_font(12), style.code_font(12), style.text_font(11)
    if line < px(17):
        text, code = style.text_font(11), style.code_font(11)
    names = max(text_width(text, each.pattern.name) for each in state.rows) + px(16)
    cells = [cells_of(each) for each in state.rows]
    first = min(names, 0.6 * table.width())
    # Where all do not fit, those that say least are left out: FLOPs, then bytes.
    needs = [max(text_width(code, row[n]) for row in cells) + px(10) for n in range(len(cells[0]))]
    columns = [0, 1, 2, 3, 4]
    room = table.width() - first - px(6)
    for dropped in (2, 1, 0):
        if sum(needs[n] for n in columns) > room:
            columns.remove(dropped)
    spare = max((room - sum(needs[n] for n in columns)) / len(columns), 0.0)
    wides = [needs[n] + spare for n in columns]
    lefts = [table.x() + first + sum(wides[:n]) for n in range(len(columns))]
    head = QRectF(table.x() + px(6), table.y(), first, line)
    draw_text(painter, head, _HEADINGS[0][0], small, theme.muted, LEFT)
    for n, column in enumerate(columns):
        place = QRectF(lefts[n], table.y(), wides[n], line)
        words = first_that_fits(_HEADINGS[column + 1], wides[n] - px(8), small)
        draw_text(painter, place, words, small, theme.muted, RIGHT)
    for n, each in enumerate(state.rows):
        top = table.y() + (n + 1) * line
        if n == state.at:
            frame = QRectF(table.x() + 1, top + 0.5, table.width() - 2, line - 1)
            card(painter, frame, theme.accent, theme.current, px(4), px(1.2))
        box = QRectF(table.x() + px(6), top, first - px(6), line)
        draw_text(painter, box, each.pattern.name, text, theme.text, LEFT)
        for c, column in enumerate(columns):
            place = QRectF(lefts[c], top, wides[c], line)
            draw_text(painter, place, cells[n][column], code, theme.text, RIGHT)
    _paint_picture(painter, state, style, places.picture)
    below = QRectF(places.picture.x(), places.picture.bottom() + px(3),
                   places.picture.width(), px(14))  # fmt: skip
    if below.bottom() <= places.notes.y():
        draw_text(painter, below, first_that_fits(_LEGEND, below.width(), small), small,
                  theme.muted, LEFT)  # fmt: skip
    for n, words in enumerate(wrapped(state.note, small, rect.width())[:2]):
        place = QRectF(
            places.notes.x(), places.notes.y() + px(4) + px(14) * n, rect.width(), px(14)
        )
        draw_text(painter, place, words, small, theme.muted, LEFT)


def _paint_picture(painter: QPainter, state: MasksState, style: Style, box: QRectF) -> None:
    theme = style.theme
    image = mask_image(state.kinds, theme)
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
    # The last row and column of the picture may stand for fewer rows and keys.
    w = state.workload
    size = max(1, -(-max(w.queries, w.seqlen_k) // _FINEST))
    part = QRectF(0, 0, w.seqlen_k / size, w.queries / size)
    painter.drawImage(box, image, part)
    outline(painter, box.adjusted(-1, -1, 1, 1), theme.grid, hairline(style))
