"""The board: the attention of one head as its matrices lie in the formula.

References
----------
LOOK.md, "The board".
"""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QImage, QPainter, QPen, QPolygonF

from simulator.dtypes import F32
from simulator.snapshot import Snapshot
from simulator.workload import Workload
from ui.scene.board_layout import (
    NUMBER_CELL,
    BoardLayout,
    Hit,
    View,
    board_layout,
    is_detailed,
    locate,
)
from ui.scene.board_scores import (
    Shown,
    clipped,
    paint_cell_numbers,
    paint_scores,
    shown_current,
    value_range,
)
from ui.scene.board_state import (
    finished_rows,
    moved_rows,
    row_numbers,
    tensors_at_work,
)
from ui.scene.board_words import DOT, caption_phrases, describe, header_choices
from ui.scene.draw import CENTRE, LEFT, RIGHT, draw_text, mixed, outline, text_width
from ui.scene.heat import (
    KEPT,
    Sheet,
    colour_map,
    finite_range,
    heat_image,
    pooled,
    signed_limit,
    word_image,
)
from ui.theme import Style, Theme
from ui.units import number_text

__all__ = ["Hit", "View", "board_layout", "describe", "locate", "paint_board"]

MOST_ROWS = 4096
"""Rows of an input drawn one by one; more are averaged."""


def paint_board(
    painter: QPainter,
    snapshot: Snapshot,
    style: Style,
    rect: QRectF,
    *,
    view: View | None = None,
    row: int | None = None,
    hover: Hit | None = None,
) -> None:
    """Draw the board.

    Parameters
    ----------
    painter : QPainter
        On a ground of the theme's panel colour.
    snapshot : Snapshot
        What is shown.
    style : Style
        Colours and sizes.
    rect : QRectF
        Room for the board; from about 420 × 320 times the scale.
    view : View, optional
        What part of the score matrix; all of it by default.
    row : int, optional
        The selected query row.
    hover : Hit, optional
        The cell under the pointer.
    """
    lay = board_layout(snapshot.program.workload, style, rect, view)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    for name in "QKV":
        _paint_input(painter, snapshot, style, lay, name)
    for name in "mlO":
        _paint_result(painter, snapshot, style, lay, name)
    paint_scores(painter, snapshot, style, lay)
    _paint_frames(painter, style.theme, lay)
    if row is not None:
        _paint_row_mark(painter, style, lay, row)
    _paint_bands(painter, snapshot, style, lay)
    _paint_current_outline(painter, snapshot, style, lay)
    if hover is not None:
        _paint_hover(painter, style, lay, hover)
    _paint_margins(painter, snapshot, style, lay)
    _paint_titles(painter, snapshot, style, lay)
    _paint_words(painter, snapshot, style, lay)
    _paint_inset(painter, snapshot, style, lay)
    _paint_legend(painter, snapshot, style, lay)
    painter.restore()


# --- Q, Kᵀ, Vᵀ --------------------------------------------------------------------------------


def _paint_input(
    painter: QPainter, snapshot: Snapshot, style: Style, lay: BoardLayout, name: str
) -> None:
    theme, box = style.theme, lay.boxes[name]
    values = {"Q": snapshot.q, "K": snapshot.k, "V": snapshot.v}[name]
    along = lay.visible_rows() if name == "Q" else lay.visible_keys()
    begin, length = (lay.view.y, lay.visible[0]) if name == "Q" else (lay.view.x, lay.visible[1])
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
    if name == "Q":
        sheet.draw(painter, box, QRectF(0, start, 1, share))
    else:
        sheet.draw(painter, box, QRectF(start, 0, share, 1))


def _input_sheet(values: F32, theme: Theme, name: str, limit: float | None = None) -> Sheet:
    limit = limit or signed_limit(values)
    upright = values if name == "Q" else values.T
    return Sheet(heat_image(upright, -limit, limit, colour_map(theme, name)))


# --- m, l, O ----------------------------------------------------------------------------------


def _paint_result(
    painter: QPainter, snapshot: Snapshot, style: Style, lay: BoardLayout, name: str
) -> None:
    theme, box = style.theme, lay.boxes[name]
    painter.fillRect(box, QColor(theme.empty))
    with clipped(painter, box):
        if snapshot.head is not None:
            head = snapshot.head
            values = {"m": head.m[:, None], "l": head.l[:, None], "O": head.o}[name]
            _paint_rows(painter, snapshot, style, lay, name, values, range(len(values)))
            return
        faint = mixed(theme.empty, theme.tensor(name), 0.22)
        for done in finished_rows(snapshot, name):
            painter.fillRect(lay.row_band(name, done), faint)
        found = row_numbers(snapshot).get(name)
        if found is not None:
            _paint_rows(painter, snapshot, style, lay, name, found, snapshot.visit.rows)


def _paint_rows(
    painter: QPainter,
    snapshot: Snapshot,
    style: Style,
    lay: BoardLayout,
    name: str,
    values: F32,
    rows: range,
) -> None:
    """Draw numbers of some rows in their box."""
    words = colour_map(style.theme, name)
    low, high, scaled = _result_range(snapshot, name, values)
    sheet = KEPT.get(
        values, (style.theme.name, name), lambda: Sheet(heat_image(scaled, low, high, words))
    )
    box = lay.boxes[name]
    top, bottom = lay.row_y(rows.start), lay.row_y(rows.stop)
    whole = QRectF(box.left(), top, box.width(), bottom - top)
    sheet.draw(painter, whole, QRectF(0, 0, 1, 1))
    cell_w, cell_h = box.width() / lay.depth(name), lay.cell[1]
    if cell_w < style.px(NUMBER_CELL[0]) or cell_h < style.px(NUMBER_CELL[1]):
        return
    visible = lay.visible_rows()
    seen = range(max(rows.start, visible.start), min(rows.stop, visible.stop))
    boxes = [
        [
            QRectF(box.left() + n * cell_w, lay.row_y(row), cell_w, cell_h)
            for n in range(lay.depth(name))
        ]
        for row in seen
    ]
    if boxes:
        cut = slice(seen.start - rows.start, seen.stop - rows.start)
        shown = Shown(values[cut], words, low, high)
        paint_cell_numbers(painter, shown, boxes, style, False)


def _result_range(snapshot: Snapshot, name: str, values: F32) -> tuple[float, float, F32]:
    """Return what the map of m, l or O spans, and the numbers as it takes them."""
    if name == "l":
        return 0.0, finite_range(values)[1] or 1.0, values
    if name == "m":
        if snapshot.head is None:
            return (*finite_range(values), values)
        scores = snapshot.head.s
        ends = KEPT.get(scores, "largest", lambda: finite_range(_row_largest(scores)))
        return (*ends, values)
    # Sums grow along a row block until they are divided by l: each has a scale of its own.
    starts = np.arange(0, len(values), snapshot.program.workload.rows)
    largest = np.maximum.reduceat(np.abs(values).max(axis=1), starts)
    scale = np.repeat(np.where(largest > 0, largest, 1.0), snapshot.program.workload.rows)
    scaled = values / scale[: len(values), None].astype(np.float32)
    return -0.8, 0.8, scaled


def _row_largest(scores: F32) -> F32:
    return np.asarray(np.where(np.isnan(scores), -np.inf, scores).max(axis=1), dtype=np.float32)


# --- outlines ---------------------------------------------------------------------------------


def _paint_frames(painter: QPainter, theme: Theme, lay: BoardLayout) -> None:
    for box in lay.boxes.values():
        outline(painter, box.adjusted(-1, -1, 1, 1), theme.grid)


def _paint_bands(painter: QPainter, snapshot: Snapshot, style: Style, lay: BoardLayout) -> None:
    """Outline the current row and column block in all their boxes, what just moved thicker."""
    theme, visit = style.theme, snapshot.visit
    at_work, moved = tensors_at_work(snapshot), moved_rows(snapshot)
    for name in ("K", "V", "Q", "O"):
        last = "O" if name == "O" else ""
        first = "m" if name == "O" else name
        own = visit.cols if name in "KV" else visit.rows
        if name not in at_work and not (name == "O" and snapshot.in_softmax_launch):
            continue
        if snapshot.in_softmax_launch:
            last = "l"
        names = {"O", "m", "l", "LSE"} if name == "O" else {name}
        moves = [rows for tensor, rows in moved.items() if tensor in names]
        band = lay.col_band(name, own) if name in "KV" else lay.row_band(first, own, last)
        colour = theme.tensor(name)
        if moves and moves[0] != own:  # cleared in HBM: rows of other blocks
            other = lay.row_band(first, moves[0], last)
            if not other.isEmpty():
                outline(painter, other, colour, style.px(1.5))
        width = style.px(4 if moves and moves[0] == own else 2)
        if visible_band(band, lay.boxes[first]):
            outline(painter, at_least(band, style.px(5)), colour, width)


def visible_band(band: QRectF, box: QRectF) -> bool:
    """Return whether any of a band can be seen in its box."""
    return band.width() > 0 and band.height() >= 0 and band.intersects(box.adjusted(-1, -1, 1, 1))


def at_least(rect: QRectF, size: float) -> QRectF:
    """Return the rectangle grown about its centre where a side is shorter than `size`."""
    x, y = max(size - rect.width(), 0.0) / 2, max(size - rect.height(), 0.0) / 2
    return rect.adjusted(-x, -y, x, y)


def _paint_current_outline(
    painter: QPainter, snapshot: Snapshot, style: Style, lay: BoardLayout
) -> None:
    tile = lay.tile(snapshot.visit.rows, snapshot.visit.cols)
    if not visible_band(tile, lay.boxes["S"]):
        return
    around = at_least(tile, style.px(9)).adjusted(-1, -1, 1, 1)
    width = style.px(3)
    outline(painter, around.adjusted(-1, -1, 1, 1), style.theme.empty, width + 2)
    outline(painter, around, style.theme.current, width)


def _paint_row_mark(painter: QPainter, style: Style, lay: BoardLayout, row: int) -> None:
    """Draw a thin line around the selected row, from Q to O, and a pointer at either end."""
    if not row < lay.shape[0]:
        return
    middle = lay.row_y(row + 0.5)
    if not lay.boxes["S"].top() <= middle <= lay.boxes["S"].bottom():
        return
    ink = QColor(style.theme.text)
    for first, last in (("Q", ""), ("S", ""), ("m", "O")):
        band = lay.row_band(first, range(row, row + 1), last)
        if band.height() >= 4:
            outline(painter, band, ink)
        else:
            painter.setPen(QPen(ink, 1))
            painter.drawLine(QLineF(band.left(), round(middle), band.right(), round(middle)))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(ink)
    size, x = style.px(4), lay.boxes["O"].right() + 2
    painter.drawPolygon(
        QPolygonF(
            [
                QPointF(x, middle),
                QPointF(x + size * 1.4, middle - size),
                QPointF(x + size * 1.4, middle + size),
            ]
        )
    )
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)


def _paint_hover(painter: QPainter, style: Style, lay: BoardLayout, hit: Hit) -> None:
    """Outline the cell under the pointer and, for a score, its row of Q and column of Kᵀ."""
    ink = QColor(style.theme.text)
    row, key = range(hit.row, hit.row + 1), range(hit.col, hit.col + 1)
    if hit.tensor == "S":
        bands = [lay.tile(row, key), lay.row_band("Q", row), lay.col_band("K", key)]
    elif hit.tensor in "KV":
        bands = [lay.col_band(hit.tensor, row)]
    else:
        bands = [lay.row_band(hit.tensor, row)]
    for band in bands:
        if not band.isNull():
            outline(painter, at_least(band, 3), ink)


# --- words ------------------------------------------------------------------------------------


def _paint_titles(painter: QPainter, snapshot: Snapshot, style: Style, lay: BoardLayout) -> None:
    w, font = snapshot.program.workload, style.text_font(13, bold=True)
    sizes = {"Q": f"{w.seqlen_q}×{w.head_dim}", "O": f"{w.seqlen_q}×{w.value_dim}"}
    titles = {"K": "Kᵀ", "V": "Vᵀ", "l": "ℓ"}
    for name, box in lay.labels.items():
        text = titles.get(name, name)
        if name in sizes and text_width(font, f"{text} {sizes[name]}") <= box.width():
            text = f"{text} {sizes[name]}"
        align = RIGHT if name in "KVQ" else LEFT if name == "O" else CENTRE
        if name in "QO" and text_width(font, text) <= min(box.width(), lay.boxes[name].width()):
            box = box.intersected(QRectF(lay.boxes[name].left(), box.top(), lay.boxes[name].width(), box.height()))
            align = CENTRE
        draw_text(painter, box, text, font, style.theme.tensor(name), align)


def _paint_words(painter: QPainter, snapshot: Snapshot, style: Style, lay: BoardLayout) -> None:
    theme, font = style.theme, style.text_font(12)
    if not lay.header.isNull():
        for text in header_choices(snapshot):
            if text_width(font, text) <= lay.header.width():
                break
        draw_text(painter, lay.header, text, font, theme.muted, RIGHT)
    if lay.caption.isNull():
        return
    font = style.text_font(11.5)
    grid = snapshot.program.workload.grid
    tile = min(lay.cell[0] * grid.cols, lay.cell[1] * grid.rows)
    count = max(1, round(lay.caption.height() / style.px(18)))
    averaged = [
        name
        for name, seen in (("Q", lay.visible_rows()), ("K, V", lay.visible_keys()))
        if len(seen) > MOST_ROWS
    ]
    phrases = caption_phrases(snapshot, tile, ", ".join(averaged))
    lines = wrapped(phrases, font, lay.caption.width(), count)
    for n, line in enumerate(lines):
        place = QRectF(
            lay.caption.left(), lay.caption.top() + n * style.px(18), lay.caption.width(),
            style.px(18),
        )  # fmt: skip
        draw_text(painter, place, line, font, theme.muted, CENTRE)


def wrapped(phrases: list[str], font: QFont, width: float, most: int) -> list[str]:
    """Return phrases in at most `most` lines, those at the end left out where they do not fit."""
    while True:
        lines: list[str] = []
        for phrase in phrases:
            longer = f"{lines[-1]}{DOT}{phrase}" if lines else phrase
            if lines and text_width(font, longer) <= width:
                lines[-1] = longer
            else:
                lines.append(phrase)
        if len(lines) <= most or len(phrases) == 1:
            return lines[:most]
        phrases = phrases[:-1]


def _paint_margins(painter: QPainter, snapshot: Snapshot, style: Style, lay: BoardLayout) -> None:
    """Write tokens, or the numbers of blocks, beside Q and above Kᵀ."""
    if lay.row_margin.isNull():
        return
    if lay.tokens:
        _paint_tokens(painter, snapshot, style, lay)
    else:
        _paint_block_numbers(painter, snapshot, style, lay)


def _paint_tokens(painter: QPainter, snapshot: Snapshot, style: Style, lay: BoardLayout) -> None:
    w, visit, theme = snapshot.program.workload, snapshot.visit, style.theme
    font = style.text_font(11)
    cell_w, cell_h = lay.cell
    margin = lay.row_margin
    for row in lay.visible_rows():
        place = QRectF(margin.left(), lay.row_y(row), margin.width(), cell_h)
        if margin.top() <= place.center().y() <= margin.bottom():
            colour = theme.text if row in visit.rows else theme.muted
            draw_text(painter, place, w.query_token(row), font, colour, RIGHT)
    margin = lay.key_margin
    for key in lay.visible_keys():
        x = lay.col_x(key) + cell_w / 2
        if not margin.left() <= x <= margin.right() or key >= len(w.tokens):
            continue
        painter.save()
        painter.translate(x, margin.bottom())
        painter.rotate(-90)
        place = QRectF(0, -cell_w / 2, margin.height(), cell_w)
        colour = theme.text if key in visit.cols else theme.muted
        draw_text(painter, place, w.tokens[key], font, colour, LEFT)
        painter.restore()


def _paint_block_numbers(
    painter: QPainter, snapshot: Snapshot, style: Style, lay: BoardLayout
) -> None:
    grid, visit = snapshot.program.workload.grid, snapshot.visit
    cell_w, cell_h = lay.cell
    digit = style.px(7)
    whole = snapshot.in_softmax_launch
    sides = (
        (True, visit.i, lay.visible_rows(), grid.rows, cell_h, style.px(16)),
        (False, -1 if whole else visit.j, lay.visible_keys(), grid.cols, cell_w,
         digit * (len(str(grid.Tc)) + 1)),
    )  # fmt: skip
    for upright, current, seen, size, cell, least in sides:
        room = lay.row_margin if upright else lay.key_margin
        first, last = (room.top(), room.bottom()) if upright else (room.left(), room.right())
        start, count = (lay.row_y, lay.shape[0]) if upright else (lay.col_x, lay.shape[1])
        # Numbers at the ends are moved inside by half their width.
        step = _nice_step(1.5 * least / (cell * size))
        blocks = range(seen.start // size, (seen.stop - 1) // size + 1)
        taken: list[float] = []
        # The current block first: the numbers around it make way.
        marked = range(-(-blocks.start // step) * step, blocks.stop, step)
        for block in [*({current} & set(blocks)), *marked]:
            middle = (start(block * size) + start(min((block + 1) * size, count))) / 2
            middle = min(max(middle, first + least / 2), last - least / 2)
            if any(abs(middle - other) < least for other in taken):
                continue
            taken.append(middle)
            if upright:
                place = QRectF(room.left(), middle - least / 2, room.width(), least)
            else:
                place = QRectF(middle - least / 2, room.top(), least, room.height())
            font = style.text_font(10, bold=block == current)
            colour = style.theme.text if block == current else style.theme.muted
            draw_text(painter, place, str(block), font, colour, RIGHT if upright else CENTRE)


def _nice_step(least: float) -> int:
    """Return the smallest of 1, 2, 5, 10, 20, ... that is not below `least`."""
    power = 1
    while True:
        for step in (power, 2 * power, 5 * power):
            if step >= least:
                return step
        power *= 10


# --- the corner -------------------------------------------------------------------------------


def _paint_inset(painter: QPainter, snapshot: Snapshot, style: Style, lay: BoardLayout) -> None:
    """Magnify the current tile of a large problem, with lines from where it lies."""
    if lay.inset.isNull():
        return
    theme, visit = style.theme, snapshot.visit
    line = style.px(18)
    room = lay.inset.adjusted(0, 0, 0, -line)
    shape = len(visit.rows), min(len(visit.cols), 4 * len(visit.rows) + 64)
    share = min(room.width() / shape[1], room.height() / shape[0])
    width, height = round(shape[1] * share), round(shape[0] * share)
    box = QRectF(round(room.left()), round(room.top()), width, height)
    tile = lay.tile(visit.rows, visit.cols)
    if visible_band(tile, lay.boxes["S"]):
        tile = at_least(tile, style.px(9))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        painter.setPen(QPen(mixed(theme.panel, theme.current, 0.6), style.px(1)))
        painter.drawLine(tile.bottomRight(), box.topLeft())  # crosses nothing but pending tiles
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    painter.fillRect(box, QColor(theme.empty))
    shown = shown_current(snapshot, theme)
    if shown is not None:
        sheet = KEPT.get(shown.values, ("inset", theme.name, shown.low, shown.high), shown.image)
        sheet.draw(painter, box, QRectF(0, 0, 1, 1))
    outline(painter, box.adjusted(-2, -2, 2, 2), theme.current, style.px(2))
    whole = snapshot.in_softmax_launch
    text = f"row block {visit.i}" if whole else f"tile ({visit.i}, {visit.j})"
    place = QRectF(lay.inset.left(), box.bottom() + 2, lay.inset.width(), line)
    draw_text(painter, place, text, style.text_font(11), theme.muted, LEFT)


def _paint_legend(painter: QPainter, snapshot: Snapshot, style: Style, lay: BoardLayout) -> None:
    if lay.legend.isNull():
        return
    theme, px = style.theme, style.px
    font = style.text_font(11)
    low, high = value_range(snapshot, "S")
    top = value_range(snapshot, "P")[1]
    rows = [
        ("scores S", ("S",), _short_number(low), _short_number(high)),
        ("weights P", ("P",), "0", f"{top:.2g}"),
        ("Q K V O", ("Q", "K", "V", "O"), "−", "+"),
    ]
    line = px(17)
    y = lay.legend.top()
    name_w, end_w = px(62), px(42)
    bar_w = min(px(90), lay.legend.width() - name_w - 2 * end_w)
    for name, maps, left, right in rows:
        x = lay.legend.left()
        draw_text(painter, QRectF(x, y, name_w, line), name, font, theme.muted)
        bar = QRectF(x + name_w + end_w, y + px(4), bar_w, line - px(8))
        before = QRectF(x + name_w, y, end_w - px(4), line)
        draw_text(painter, before, left, font, theme.muted, RIGHT)
        draw_text(painter, QRectF(bar.right() + px(4), y, end_w, line), right, font, theme.muted)
        each = bar.height() / len(maps)
        for n, colours in enumerate(maps):
            words = colour_map(theme, colours)[None, :256]
            strip = QRectF(bar.left(), bar.top() + n * each, bar.width(), each)
            painter.drawImage(strip, word_image(words), QRectF(0, 0, 256, 1))
        outline(painter, bar.adjusted(-1, -1, 1, 1), theme.grid)
        y += line


def _short_number(value: float) -> str:
    return number_text(value, 0 if abs(value) >= 100 else 1)
