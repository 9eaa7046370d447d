"""The board: the attention of one head as its matrices lie in the formula.

References
----------
LOOK.md, "The board".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from PySide6.QtCore import QLineF, QRectF
from PySide6.QtGui import QColor, QPainter, QPen

from simulator.base.dtypes import F32
from simulator.lesson.places import Pointer
from simulator.program.algorithms import TENSORS
from simulator.program.playback import eased
from simulator.run.final_weights import used_keys
from simulator.run.motion import Motion
from simulator.run.snapshot import Cell, Snapshot
from ui.board.corner import inset_box, paint_board_picture, paint_inset, paint_legend
from ui.board.fault_marks import paint_wrong
from ui.board.gestures import paint_gesture
from ui.board.hands import paint_hands
from ui.board.key_state import paint_state, state_places
from ui.board.layout import (
    MOST_ROWS,
    BoardLayout,
    Viewport,
    board_layout,
    locate,
)
from ui.board.marks import (
    VEILED,
    paint_bands,
    paint_current_outline,
    paint_frames,
    paint_hover,
    paint_row_mark,
    paint_selection,
    paint_skips,
    paint_veil,
    veiled_rows,
)
from ui.board.middle import middle_at
from ui.board.pages import paint_pages
from ui.board.partials import (
    paint_partial_mark,
    paint_partials,
    paint_split_edges,
)
from ui.board.point_marks import paint_points
from ui.board.scores import (
    Shown,
    clipped,
    hall_numbers_fit,
    numbers_fit,
    paint_numbers,
    paint_scores,
    paint_tile,
    paint_used,
)
from ui.board.text import paint_margins, paint_titles, paint_words
from ui.board.words import describe
from ui.look.draw import mixed
from ui.look.heat import (
    KEPT,
    Sheet,
    colour_map,
    finite_range,
    heat_image,
    pooled,
    signed_limit,
)
from ui.look.kept import draw_kept, kept, place_key
from ui.look.theme import Style, Theme

__all__ = ["Cell", "Viewport", "board_layout", "describe", "locate", "paint_board"]


def paint_board(
    painter: QPainter,
    snapshot: Snapshot,
    style: Style,
    rect: QRectF,
    *,
    view: Viewport | None = None,
    row: int | None = None,
    hover: Cell | None = None,
    selected: Cell | None = None,
    points: Collection[Pointer] = (),
    plain: bool = False,
) -> None:
    """Draw the board.

    rect: room for the board; from about 420 × 320 times the scale.
    view: the part of the score matrix on show; the whole matrix by default.
    hover: the cell under the pointer.
    plain: whether words do not say where numbers lie, and the inspector's colours are used.
    """
    lay = replace(board_layout(snapshot.program.workload, style, rect, view), plain=plain)
    marks = Marks(row, hover, selected, tuple(points))
    paint_still_board(painter, snapshot, lay)
    paint_live_board(painter, snapshot, lay, marks)


@dataclass(frozen=True, slots=True)
class Marks:
    """Marks on the board: row, cells and pointers."""

    row: int | None = None  # the selected query row
    # hover, selected: the cell under the pointer, and the one that is selected
    hover: Cell | None = None
    selected: Cell | None = None
    points: tuple[Pointer, ...] = ()  # places that a lesson points at


def paint_still_board(painter: QPainter, snapshot: Snapshot, lay: BoardLayout) -> None:
    """Draw the parts that stay while an op is being done: they may be kept as a picture."""
    with _plain(painter):
        for name in snapshot.inputs:
            if name in lay.boxes:
                _paint_input(painter, snapshot, lay, name)
        paint_scores(painter, snapshot, lay)
        paint_split_edges(painter, snapshot, lay)
        paint_pages(painter, snapshot, lay)
        paint_frames(painter, lay)
        paint_margins(painter, snapshot, lay)
        paint_board_picture(painter, snapshot, lay)
        paint_titles(painter, snapshot, lay)
        paint_words(painter, snapshot, lay)
        paint_legend(painter, snapshot, lay)


def paint_live_board(painter: QPainter, snapshot: Snapshot, lay: BoardLayout, marks: Marks) -> None:
    """Draw the parts that an op changes, and the marks, over the parts that stay."""
    with _plain(painter):
        for name in lay.boxes:
            if name not in snapshot.inputs and not TENSORS[name].of_pairs:
                _paint_result(painter, snapshot, lay, name)
        paint_tile(painter, snapshot, lay)
        paint_partials(painter, snapshot, lay, marks.row)
        paint_wrong(painter, snapshot, lay)
        _paint_marks(painter, snapshot, lay, marks)
        paint_hands(painter, snapshot, lay, marks.row)
        paint_state(painter, snapshot, lay)
        paint_inset(painter, snapshot, lay)
        paint_points(painter, marks.points, snapshot.program.workload, lay)


def _paint_marks(painter: QPainter, snapshot: Snapshot, lay: BoardLayout, marks: Marks) -> None:
    """Draw the marks in the matrices, made by the op and by the user."""
    pointed = {point.row for point in marks.points if point.row is not None}
    pointed |= {point.cell.row for point in marks.points if point.cell is not None}
    if veiled := veiled_rows(snapshot, lay, marks.row, pointed):
        paint_veil(painter, veiled, lay)
        painter.setOpacity(1 - VEILED)  # so their numbers stand back half as far
        for name in (each for each in ("m", "l") if each in lay.boxes):
            values, along = middle_at(snapshot).held(snapshot, name)
            if snapshot.head is None and values is not None:
                _paint_numbers(painter, snapshot, lay, name, values, along, veiled)
        painter.setOpacity(1.0)
    if marks.row is not None:
        paint_row_mark(painter, lay, marks.row)
    paint_bands(painter, snapshot, lay)
    paint_current_outline(painter, snapshot, lay)
    paint_skips(painter, snapshot, lay)
    for cell, mark in ((marks.selected, paint_selection), (marks.hover, paint_hover)):
        if cell is not None and cell.split is not None:
            paint_partial_mark(painter, snapshot, lay, cell)
        elif cell is not None:
            mark(painter, lay, cell)


def paint_moving_board(
    painter: QPainter,
    motion: Motion,
    share: float,
    lay: BoardLayout,
    marks: Marks,
    *,
    ground: bool = True,
) -> None:
    """Draw the board while an op is being done.

    At both ends of the op the states are drawn whole instead, by `paint_board`.

    ground: whether the board has a ground of the panel's colour; if not, `paint_still_board` has
        already drawn the state after the op.
    """
    now = motion.at(share)
    fades = motion.after.so_far is not None and motion.before.so_far is None
    # Pointers and marks of wrong numbers may lie over numbers that change, and are translucent.
    whole = bool(marks.points) or now.wrong is not None
    if fades:
        now = replace(now, so_far=None)
    apart = None if whole else _painted_again(motion, now, lay)

    def paint(inner: QPainter) -> None:
        paint_still_board(inner, motion.after, lay)
        if apart is not None:
            paint_live_board(inner, now, lay, marks)

    if ground:
        stage = share >= motion.after.op.lands, motion.landed(share)
        seen = marks.row, marks.hover, marks.selected
        key = "board", place_key(lay.style, lay.rect), lay.view, seen, stage, whole
        draw_kept(painter, motion, key, lay.rect, lay.style.theme.panel, paint)
    if not ground or apart is None:
        if fades:
            _paint_fading(painter, motion, share, lay)
        _paint_used(painter, motion, share, lay)
        paint_live_board(painter, now, lay, marks)
    else:
        if fades:
            with clipped(painter, lay.boxes["S"]):
                _paint_fading(painter, motion, share, lay)
            apart.append((lay.boxes["S"], partial(paint_tile, snapshot=now, lay=lay)))
        if motion.reweighs:
            fill = partial(_paint_used, motion=motion, share=share, lay=lay)
            apart.append((lay.tile(now.visit.rows, used_keys(now)), fill))
        for box, again in apart:
            with _plain(painter), clipped(painter, box):
                again(painter)
                _paint_marks(painter, now, lay, marks)
                paint_state(painter, now, lay)
    paint_gesture(painter, motion, share, lay, marks.row or 0)


def _paint_fading(painter: QPainter, motion: Motion, share: float, lay: BoardLayout) -> None:
    """Draw the scores as they were computed, fading out over the final weights."""

    def paint(inner: QPainter) -> None:
        with _plain(inner):
            paint_scores(inner, motion.before, lay)

    painter.save()
    painter.setOpacity(1 - eased(share))
    key = "scores before", place_key(lay.style, lay.rect), lay.view
    draw_kept(painter, motion, key, lay.boxes["S"], lay.style.theme.empty, paint)
    painter.restore()


def _paint_used(painter: QPainter, motion: Motion, share: float, lay: BoardLayout) -> None:
    """Draw the weights of used keys in the current rows where an op changes them."""
    weights, now = motion.used_weights(share), motion.after
    if weights is None:
        return
    with _plain(painter), clipped(painter, lay.tile(now.visit.rows, used_keys(now))):
        paint_used(painter, now, weights, lay)
        paint_split_edges(painter, now, lay)


def moving_layout(
    motion: Motion, style: Style, rect: QRectF, view: Viewport | None = None
) -> BoardLayout:
    """Return the layout of the board, made once for each op."""
    key = "board layout", place_key(style, rect), view
    return kept(motion, key, lambda: board_layout(motion.after.program.workload, style, rect, view))


def _painted_again(
    motion: Motion, now: Snapshot, lay: BoardLayout
) -> list[tuple[QRectF, Callable[[QPainter], None]]]:
    """Return the boxes whose sums are under way, each with the function that fills it."""
    found: list[tuple[QRectF, Callable[[QPainter], None]]] = []
    places = state_places(now, lay)
    for name in motion.sums:
        if places is not None and (name in now.program.algorithm.left or places.strip(name)):
            fill = partial(paint_state, snapshot=now, lay=lay)
            found.append((places.card, fill))
        place = lay.box_of(name)
        if not place or place in now.inputs:  # a small board has no box for a gradient
            continue
        if not TENSORS[place].of_pairs:
            fill = partial(_paint_result, snapshot=now, lay=lay, name=place)
            found.append((lay.boxes[place], fill))
            continue
        tile = lay.tile(now.visit.rows, now.visit.cols)
        found.append((tile, partial(paint_tile, snapshot=now, lay=lay)))
        if not lay.inset.isNull():
            fill = partial(paint_inset, snapshot=now, lay=lay)
            found.append((inset_box(now, lay), fill))
    return found


@contextmanager
def _plain(painter: QPainter) -> Iterator[None]:
    """Draw with whole pixels."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    yield
    painter.restore()


# --- Q, Kᵀ, Vᵀ --------------------------------------------------------------------------------


def _paint_input(painter: QPainter, snapshot: Snapshot, lay: BoardLayout, name: str) -> None:
    theme, box = lay.style.theme, lay.boxes[name]
    values, by_key = snapshot.inputs[name], "key" in TENSORS[name].axes
    along = lay.visible_keys() if by_key else lay.visible_rows()
    begin, length = (lay.view.x, lay.visible[1]) if by_key else (lay.view.y, lay.visible[0])
    total = len(values)
    if total <= MOST_ROWS:
        first, span = 0, total
        sheet = KEPT.get(values, (theme.name, name), lambda: _input_sheet(values, theme, name))
    elif len(along) <= MOST_ROWS:
        part = values[along.start : along.stop]
        first, span = along.start, len(along)
        limit = KEPT.get(values, "limit", lambda: signed_limit(values))
        sheet = KEPT.get(part, (theme.name, name), lambda: _input_sheet(part, theme, name, limit))
    else:
        means = KEPT.get(values, "means", lambda: pooled(values, MOST_ROWS // 2))
        run = total // (MOST_ROWS // 2)
        first, span = 0, run * len(means)
        sheet = KEPT.get(values, (theme.name, name), lambda: _input_sheet(means, theme, name))
    start, share = (begin - first) / span, length / span
    shown = QRectF(start, 0, share, 1) if by_key else QRectF(0, start, 1, share)
    sheet.draw(painter, box, shown)
    if name == lay.keys == lay.values:
        values_end = round(lay.value_band(lay.visible_keys()).bottom())
        if values_end < round(box.bottom()):  # the rest of a key is no value
            painter.setPen(QPen(QColor(theme.text), round(lay.style.px(1))))
            painter.drawLine(QLineF(box.left(), values_end, box.right(), values_end))


def _input_sheet(values: F32, theme: Theme, name: str, limit: float | None = None) -> Sheet:
    limit = limit or signed_limit(values)
    upright = values.T if "key" in TENSORS[name].axes else values
    return Sheet(heat_image(upright, -limit, limit, colour_map(theme, name)))


# --- m, l, O, and other results of rows and keys ----------------------------------------------


def _paint_result(painter: QPainter, snapshot: Snapshot, lay: BoardLayout, name: str) -> None:
    theme, box = lay.style.theme, lay.boxes[name]
    painter.fillRect(box, QColor(theme.empty))
    with clipped(painter, box):
        if snapshot.head is not None:
            values = snapshot.head.results[name]
            _paint_values(painter, snapshot, lay, name, values, range(len(values)))
            return
        faint, middle = mixed(theme.empty, theme.tensor(name), 0.22), middle_at(snapshot)
        for done in middle.finished(snapshot, name):
            painter.fillRect(_band(lay, name, done), faint)
        found, own = middle.held(snapshot, name)
        if found is not None:
            _paint_values(painter, snapshot, lay, name, found, own)


def _band(lay: BoardLayout, name: str, along: range) -> QRectF:
    """Return the visible part of some rows, or keys, in a box."""
    return lay.col_band(name, along) if _by_key(name) else lay.row_band(name, along)


def _by_key(name: str) -> bool:
    return "key" in TENSORS[name].axes


def _paint_values(
    painter: QPainter, snapshot: Snapshot, lay: BoardLayout, name: str, values: F32, along: range
) -> None:
    """Draw numbers of some rows, or keys, in their box."""
    words = colour_map(lay.style.theme, name)
    low, high, scaled = _result_range(snapshot, name, values)
    upright = scaled.T if _by_key(name) else scaled
    key = lay.style.theme.name, name, _before_the_tile(snapshot, name)
    sheet = KEPT.get(values, key, lambda: Sheet(heat_image(upright, low, high, words)))
    box = lay.boxes[name]
    if _by_key(name):
        left, right = lay.col_x(along.start), lay.col_x(along.stop)
        sheet.draw(painter, QRectF(left, box.top(), right - left, box.height()), _WHOLE)
        return
    top, bottom = lay.row_y(along.start), lay.row_y(along.stop)
    sheet.draw(painter, QRectF(box.left(), top, box.width(), bottom - top), _WHOLE)
    if values.shape[1] == 1:
        hall = hall_numbers_fit(lay.style, box.width(), lay.cell[1])
        rows = snapshot.visit.rows if hall and name in "ml" else along
        _paint_numbers(painter, snapshot, lay, name, values, along, rows)


def _paint_numbers(
    painter: QPainter,
    snapshot: Snapshot,
    lay: BoardLayout,
    name: str,
    values: F32,
    along: range,
    rows: Collection[int],
) -> None:
    """Write the numbers of some rows into a narrow box, if they fit; in a hall with a digit more.

    values, along: the numbers of a box, and their rows.
    """
    box, height = lay.boxes[name], lay.cell[1]
    hall = hall_numbers_fit(lay.style, box.width(), height)
    if not hall and not numbers_fit(lay.style, box.width(), height):
        return
    low, high, _ = _result_range(snapshot, name, values)
    shown = Shown(values, colour_map(lay.style.theme, name), low, high, digits=3 if hall else 2)
    for row in rows:
        if row in along:
            own = range(row, row + 1)
            paint_numbers(painter, shown, lay, name, own, range(1), (along.start, 0))


_WHOLE = QRectF(0, 0, 1, 1)


def _result_range(snapshot: Snapshot, name: str, values: F32) -> tuple[float, float, F32]:
    """Return the ends of a result's colour map, and the numbers scaled for the map."""
    if name == "l":
        return 0.0, finite_range(values)[1] or 1.0, values
    if name == "m":
        if snapshot.head is None:
            return (*finite_range(values), values)
        scores = snapshot.head.s
        ends = KEPT.get(scores, "largest", lambda: finite_range(_row_largest(scores)))
        return (*ends, values)
    if values.shape[1] == 1:
        limit = KEPT.get(values, "limit", lambda: signed_limit(np.nan_to_num(values)))
        return -limit, limit, values
    # Sums grow along a row block until they are divided by l: each block has its own scale.
    w = snapshot.program.workload
    size = w.cols if _by_key(name) else w.rows
    starts = np.arange(0, len(values), size)
    # A fault may have made some of them infinite.
    sizes = np.nan_to_num(np.abs(values), nan=0.0, posinf=0.0)
    largest = np.maximum.reduceat(sizes.max(axis=1), starts)
    if before := _before_the_tile(snapshot, name):
        block = 0 if snapshot.head is None else snapshot.visit.i
        largest[block] = max(largest[block], before)
    scale = np.repeat(np.where(largest > 0, largest, 1.0), size)
    scaled = values / scale[: len(values), None]
    return -0.8, 0.8, scaled.astype(np.float32)


def _before_the_tile(snapshot: Snapshot, name: str) -> float:
    """Return the largest magnitude of O in the current rows before its rescale; 0 without one.

    O is scaled by it until the end of the visit or O / l, so that O is seen to shrink.
    """
    running = name in snapshot.results and snapshot.tile.last("factor") is not None
    if snapshot.normalised or not running:
        return 0.0
    sums = snapshot.tile.o_prev

    def largest() -> float:
        return float(np.nan_to_num(np.abs(sums), nan=0.0, posinf=0.0).max(initial=0.0))

    return KEPT.get(sums, "largest", largest)


def _row_largest(scores: F32) -> F32:
    return np.asarray(np.where(np.isnan(scores), -np.inf, scores).max(axis=1), dtype=np.float32)
