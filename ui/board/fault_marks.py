"""Marks of a run with faults: the label on every picture, and marks of wrong numbers."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QImage, QPainter, QPen

from simulator.problem.scenario import Scenario
from simulator.program.algorithms import TENSORS
from simulator.program.faults import fault_labels
from simulator.run.cell_values import row_numbers
from simulator.run.snapshot import Snapshot
from ui.board.layout import BoardLayout
from ui.board.marks import at_least, visible_band
from ui.board.middle import middle_at
from ui.board.scores import clipped
from ui.look.draw import CENTRE, card, draw_text, outline, text_width
from ui.look.heat import KEPT, Sheet, word_image
from ui.look.names import first_that_fits
from ui.look.theme import Style

OUTLINED = 14.0
"""Smallest side of a cell, in pixels at scale 1, that gets an outline; smaller ones a hatch."""
Marks = NDArray[np.bool_]


def paint_fault_label(painter: QPainter, scenario: Scenario, style: Style, rect: QRectF) -> float:
    """Draw ``FAULT: forget alpha`` at the left of `rect`; return its width.

    Without a fault nothing is drawn and 0 is returned. The words are the longest that leave a
    part of a narrow place free.
    """
    texts = fault_labels(scenario)
    if not texts:
        return 0.0
    theme, pad = style.theme, style.px(8)
    size = min(12.0, 0.72 * rect.height() / style.scale)
    font = style.text_font(size, bold=True)
    text = first_that_fits(texts, 0.75 * rect.width() - 2 * pad, font)
    box = QRectF(rect.x(), rect.y(), text_width(font, text) + 2 * pad, rect.height())
    box = box.intersected(rect)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    card(painter, box, theme.bad, theme.bad, style.px(4))
    draw_text(painter, box.adjusted(pad / 2, 0, -pad / 2, 0), text, font, theme.panel, CENTRE)
    painter.restore()
    return box.width()


def paint_wrong(painter: QPainter, snapshot: Snapshot, lay: BoardLayout) -> None:
    """Mark the numbers on the board that differ from float64 by more than rounding explains."""
    wrong, visit = snapshot.wrong, snapshot.visit
    if wrong is None:
        return
    tile = wrong.newest
    for area in middle_at(snapshot).areas(snapshot.program, visit):
        marks: Marks | None = getattr(wrong, area.name.lower())
        if marks is not None:
            rows, cols = area.rows, area.cols
            _paint_marks(painter, marks, lay, "S", range(len(marks)), 0, (rows, cols))
    if tile is not None:
        if snapshot.head is None:
            _paint_tile(painter, tile, snapshot, lay)
        else:
            whole = visit.rows, visit.cols
            _paint_marks(painter, tile, lay, "S", visit.rows, visit.cols.start, whole)
    every = range(snapshot.program.workload.seqlen_q)
    known = every if snapshot.head is not None else visit.rows
    there = wrong.results if snapshot.head is not None else row_numbers(snapshot)
    for name, marks in wrong.results.items():
        if name in there and name in lay.boxes:
            _paint_marks(painter, marks, lay, name, known, 0, (known, range(1)))


def _paint_tile(painter: QPainter, marks: Marks, snapshot: Snapshot, lay: BoardLayout) -> None:
    """Hatch the current tile of a large problem if it has a wrong number."""
    place = lay.tile(snapshot.visit.rows, snapshot.visit.cols)
    if marks.any() and visible_band(place, lay.boxes["S"]):
        place = at_least(place, lay.style.px(9))
        painter.fillRect(place, _hatch(lay.style.theme.bad, lay.style.scale))


def _paint_marks(
    painter: QPainter,
    marks: Marks,
    lay: BoardLayout,
    name: str,
    rows: range,
    first_col: int,
    within: tuple[range, range],
) -> None:
    """Mark cells of a box.

    `marks` begins at the first of `rows` and at column `first_col`; in S only cells
    `within` the given rows and keys are drawn.
    """
    style, box = lay.style, lay.boxes[name]
    top, bottom = lay.row_y(rows.start), lay.row_y(rows.stop)
    if TENSORS[name].of_pairs:
        left, right = lay.col_x(first_col), lay.col_x(first_col + marks.shape[1])
        box = lay.tile(*within)
    elif "key" in TENSORS[name].axes:
        left, right = lay.col_x(0), lay.col_x(len(marks))
        top, bottom, marks = box.top(), box.bottom(), marks.T
    else:
        left, right = box.left(), box.right()
    if box.isEmpty() or not marks.any():
        return
    place = QRectF(left, top, right - left, bottom - top)
    cell_w, cell_h = place.width() / marks.shape[1], place.height() / marks.shape[0]
    with clipped(painter, box):
        if min(cell_w, cell_h) >= style.px(OUTLINED):
            width = min(style.px(2), max(1.0, 0.07 * min(cell_w, cell_h)))
            inset = width / 2
            painter.setPen(QPen(QColor(style.theme.bad), width))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRects(
                [
                    QRectF(left + c * cell_w, top + r * cell_h, cell_w, cell_h).adjusted(
                        inset, inset, -inset, -inset
                    )
                    for r, c in np.argwhere(marks).tolist()
                ]
            )
        else:
            _paint_hatched(painter, marks, style, place, box)


def _paint_hatched(
    painter: QPainter, marks: Marks, style: Style, place: QRectF, box: QRectF
) -> None:
    """Hatch the marked cells of a matrix that covers `place` and is visible in `box`."""
    part = place.intersected(box)
    if part.isEmpty():
        return
    sheet = KEPT.get(marks, "marks", lambda: _mask_sheet(marks))
    ratio = painter.device().devicePixelRatioF()
    size = (part.size() * ratio).toSize()
    layer = QImage(
        max(size.width(), 1), max(size.height(), 1), QImage.Format.Format_ARGB32_Premultiplied
    )
    layer.fill(0)
    whole = QRectF(0, 0, layer.width(), layer.height())
    source = QRectF(
        (part.x() - place.x()) / place.width(), (part.y() - place.y()) / place.height(),
        part.width() / place.width(), part.height() / place.height(),
    )  # fmt: skip
    with QPainter(layer) as inner:
        sheet.draw(inner, whole, source)
        inner.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceIn)
        inner.fillRect(whole, _hatch(style.theme.bad, style.scale * ratio))
    painter.drawImage(part, layer)


def _mask_sheet(marks: Marks) -> Sheet:
    return Sheet(word_image(np.where(marks, np.uint32(0xFFFFFFFF), np.uint32(0))))


@lru_cache(maxsize=16)
def _hatch(colour: str, scale: float) -> QBrush:
    """Return strong lines over a tint, so that a single small cell is seen, too."""
    step = max(round(6 * scale), 4)
    image = QImage(step, step, QImage.Format.Format_ARGB32_Premultiplied)
    tint = QColor(colour)
    tint.setAlphaF(0.45)
    image.fill(tint)
    with QPainter(image) as painter:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(colour), max(1.4 * scale, 1.0)))
        for shift in (-step, 0, step):  # the neighbours' lines, so that the pattern has no seams
            painter.drawLine(shift, 0, shift + step, step)
    return QBrush(image)


def paint_mark_swatch(painter: QPainter, style: Style, box: QRectF) -> None:
    """Draw how a wrong number is marked, for a legend."""
    painter.fillRect(box, _hatch(style.theme.bad, style.scale))
    outline(painter, box.adjusted(-1, -1, 1, 1), style.theme.bad, style.px(1.5))


def paint_inset_marks(painter: QPainter, snapshot: Snapshot, style: Style, box: QRectF) -> None:
    """Mark the wrong cells of the magnified tile, which fills `box`."""
    wrong = snapshot.wrong
    if wrong is None:
        return
    marks = wrong.newest
    if marks is not None and marks.any():
        _paint_hatched(painter, marks, style, box, box)
