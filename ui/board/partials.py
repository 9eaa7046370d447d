"""O and LSE that the splits of a row block leave in HBM: below each split's keys, until joined."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF
from PySide6.QtGui import QColor, QPainter, QPen

from simulator.base.dtypes import F32
from simulator.run.snapshot import Cell, Partials, Snapshot
from simulator.run.touched import touched
from ui.board.layout import BoardLayout, number_size
from ui.board.marks import at_least
from ui.board.middle import middle_at
from ui.board.scores import numbers_fit
from ui.look.draw import CENTRE, RIGHT, draw_text, mixed, outline, text_width
from ui.look.heat import (
    KEPT,
    Sheet,
    colour_map,
    finite_range,
    heat_image,
    indices,
    inks,
    prefers_white,
)
from ui.look.names import first_that_fits
from ui.look.theme import Style
from ui.look.units import number_text

_LSE_WIDTH = 46.0
"""Room for LSE with its numbers, at scale 1."""
_LSE_SHARE = 0.33
"""Share of a narrower part that LSE takes."""
_NARROW = 14.0
"""Narrowest part, at scale 1, in which LSE and O are drawn."""


def paint_split_edges(painter: QPainter, snapshot: Snapshot, lay: BoardLayout) -> None:
    """Draw a line between the keys of one split and the next, through Kᵀ, S and Vᵀ."""
    if snapshot.partials is None:
        return
    w = snapshot.program.workload
    painter.setPen(QPen(QColor(lay.style.theme.text), round(lay.style.px(2))))
    for keys in w.split_ranges[1:]:
        x = round(lay.col_x(keys.start))
        for name in (lay.keys, "S", lay.values):
            box = lay.boxes[name]
            if keys and box.left() < x < box.right():
                painter.drawLine(QLineF(x, box.top(), x, box.bottom()))


def split_places(snapshot: Snapshot, lay: BoardLayout) -> dict[int, QRectF]:
    """Return where each split's O and LSE are drawn: below the visible part of its keys."""
    if lay.partials.isNull():
        return {}
    w, room = snapshot.program.workload, lay.partials
    places = {}
    for split, keys in enumerate(w.split_ranges):
        band = lay.col_band(lay.values, keys) if keys else QRectF()
        if band.width() >= 2:
            gap = min(round(lay.style.px(4)), int(band.width() / 8))
            places[split] = QRectF(
                band.left() + gap, room.top(), band.width() - 2 * gap, room.height()
            )
    return places


def partial_at(snapshot: Snapshot, lay: BoardLayout, point: QPointF) -> Cell | None:
    """Return the cell of a split's O or LSE under a point; None beside them."""
    rows, depth = snapshot.visit.rows, snapshot.program.workload.value_dim
    for split, place in split_places(snapshot, lay).items():
        if not place.contains(point):
            continue
        row = rows[min(int((point.y() - place.top()) / place.height() * len(rows)), len(rows) - 1)]
        left = _lse_width(lay.style, place)
        if point.x() < place.left() + left:
            return Cell("LSE_partial", row, 0, split)
        across = (point.x() - place.left() - left) / (place.width() - left)
        return Cell("O_partial", row, min(int(across * depth), depth - 1), split)
    return None


def paint_partial_mark(painter: QPainter, snapshot: Snapshot, lay: BoardLayout, cell: Cell) -> None:
    """Outline a cell of a split's O or LSE: the cell under the pointer, or the selected one."""
    rows, depth = snapshot.visit.rows, snapshot.program.workload.value_dim
    place = split_places(snapshot, lay).get(-1 if cell.split is None else cell.split)
    if place is None or cell.row not in rows:
        return
    left, height = _lse_width(lay.style, place), place.height() / len(rows)
    x, wide = place.left(), float(left)
    if "value" in cell.at:
        wide = (place.width() - left) / depth
        x += left + cell.col * wide
    top = place.top() + (cell.row - rows.start) * height
    box = at_least(QRectF(x, top, wide, height), 3)
    outline(painter, box, QColor(lay.style.theme.text), lay.style.px(2))


def _lse_width(style: Style, place: QRectF) -> int:
    """Return the width of LSE at the left of O; 0 where there is no room for both."""
    if place.width() < style.px(_NARROW):
        return 0
    return round(min(style.px(_LSE_WIDTH), _LSE_SHARE * place.width()))


def lse_cell(style: Style, place: QRectF, r: int, count: int) -> QRectF:
    """Return where LSE of one of `count` rows stands in the place of a split."""
    height = place.height() / count
    return QRectF(place.left(), place.top() + r * height, _lse_width(style, place), height)


def paint_partials(
    painter: QPainter, snapshot: Snapshot, lay: BoardLayout, row: int | None
) -> None:
    """Draw O and LSE of each split of the current row block, as far as they lie in HBM."""
    style, theme = lay.style, lay.style.theme
    partials, visit = snapshot.partials, snapshot.visit
    if partials is None:
        return
    places = split_places(snapshot, lay)
    moved = _moved(snapshot)
    held = {tile.name for tile in snapshot.on_chip} & snapshot.split_tensors
    for split, place in places.items():
        painter.fillRect(place, QColor(theme.empty))
        if partials.stored[split]:
            _paint_split(painter, partials, split, style, place)
        outline(painter, place.adjusted(-1, -1, 1, 1), theme.grid)
        if row is not None and row in visit.rows and partials.stored[split]:
            height = place.height() / len(visit.rows)
            top = place.top() + (row - visit.rows.start) * height
            outline(painter, QRectF(place.left(), top, place.width(), height), theme.text)
        if held and not moved & {split, None}:
            outline(painter, place, theme.tensor("O"), style.px(2))
        for name, band in lit_partials(snapshot, style, place, split).items():
            outline(painter, band, theme.tensor(name), style.px(4))
    _paint_names(painter, snapshot, lay, places, row)


def _moved(snapshot: Snapshot) -> set[int | None]:
    """Return the splits whose tensors the op moves for the row block; None means all splits."""
    return {
        move.split
        for move in snapshot.op.moves
        if move.tensor in snapshot.split_tensors and snapshot.visit.rows.start in move.rows
    }


def lit_partials(snapshot: Snapshot, style: Style, place: QRectF, split: int) -> dict[str, QRectF]:
    """Return the parts of a split's place that are lit with the formula: LSE, O, or both as O."""
    moved = _moved(snapshot)
    if moved and not moved & {split, None}:
        return {}
    found, left = touched(snapshot) & snapshot.split_tensors, _lse_width(style, place)
    if len(found) != 1 or not left:
        return {"O": place} if found else {}
    if "O_partial" in found:
        return {"O": place.adjusted(left, 0, 0, 0)}
    return {"LSE": QRectF(place.left(), place.top(), left, place.height())}


def _paint_split(
    painter: QPainter, partials: Partials, split: int, style: Style, place: QRectF
) -> None:
    """Draw LSE of a split, and O at its right."""
    theme = style.theme
    left = _lse_width(style, place)
    if not left:  # too narrow for numbers: a colour shows that the split is there
        painter.fillRect(place, mixed(theme.empty, theme.tensor("O"), 0.5))
        return
    o, lse = partials.o[split], partials.lse[split]
    # A fault may have made some numbers infinite.
    largest = KEPT.get(
        partials.o,
        ("largest", split),
        lambda: float(np.max(np.abs(o), initial=0.0, where=np.isfinite(o))) or 1.0,
    )
    sheet = KEPT.get(
        partials.o,
        ("split", split, theme.name),
        lambda: Sheet(heat_image(o, -0.8 * largest, 0.8 * largest, colour_map(theme, "O"))),
    )
    sheet.draw(painter, place.adjusted(left, 0, 0, 0), QRectF(0, 0, 1, 1))
    words = colour_map(theme, "LSE")
    low, high = KEPT.get(partials.lse, "range", lambda: finite_range(partials.lse))
    image = KEPT.get(
        partials.lse,
        ("split", split, theme.name),
        lambda: Sheet(heat_image(lse[:, None], low, high, words)),
    )
    box = QRectF(place.left(), place.top(), left - 1, place.height())
    image.draw(painter, box, QRectF(0, 0, 1, 1))
    height = place.height() / len(lse)
    if numbers_fit(style, box.width(), height):
        font = style.code_font(number_size(style, box.width(), height))
        colours = words[indices(lse, low, high)]
        for r, white in enumerate(prefers_white(colours)):
            at = QRectF(box.left(), place.top() + r * height, box.width(), height)
            text = number_text(float(lse[r]), 2)
            draw_text(painter, at, text, font, inks(words)[int(white)], CENTRE)


def _paint_names(
    painter: QPainter,
    snapshot: Snapshot,
    lay: BoardLayout,
    places: Mapping[int, QRectF],
    row: int | None,
) -> None:
    """Name the tensors at the left, and the splits below, each with its weight in the row."""
    style, theme = lay.style, lay.style.theme
    partials, visit = snapshot.partials, snapshot.visit
    assert partials is not None
    font = style.text_font(11 * lay.growth)
    room = lay.partials
    title = QRectF(lay.labels["Q"].left(), room.top(), 0, style.px(18))
    title.setRight(room.left() - style.px(4))
    text = first_that_fits(("LSE, O of each split", "LSE, O"), title.width(), font)
    draw_text(painter, title, text, font, theme.tensor("O"), RIGHT)
    if lay.split_names.isNull():
        return
    weights: F32 | None = None
    if partials.weights is not None and row is not None and row in visit.rows:
        weights = partials.weights[:, row - visit.rows.start]
    for split, place in places.items():
        choices = [f"split {split}", str(split)]
        if weights is not None:
            choices.insert(0, f"split {split}: w = {number_text(float(weights[split]))}")
        at = QRectF(place.left(), lay.split_names.top(), place.width(), lay.split_names.height())
        text = next((text for text in choices if text_width(font, text) <= at.width()), "")
        if text:
            current = split == visit.split or middle_at(snapshot).joins
            draw_text(painter, at, text, font, theme.text if current else theme.muted, CENTRE)
