"""Titles, the lines above and below the board, and the labels beside Q and Kᵀ."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPen

from simulator.program.algorithms import TENSORS
from simulator.program.tensors import symbol
from simulator.run.snapshot import Snapshot
from ui.board.beside import LEAD, LINE, apart, shared_label
from ui.board.corner import board_picture
from ui.board.fault_marks import paint_fault_label
from ui.board.layout import MOST_ROWS, BoardLayout
from ui.board.words import DOT, PICTURE_LINES, caption_phrases, header_choices, sharing_choices
from ui.look.draw import CENTRE, LEFT, RIGHT, draw_text, hairline, text_width
from ui.look.pieces import key_piece, paint_beside, picture_of, query_piece
from ui.look.theme import Style
from ui.look.units import count_text


def paint_titles(painter: QPainter, snapshot: Snapshot, lay: BoardLayout) -> None:
    """Name the boxes, with their sizes where these fit."""
    w, font = snapshot.program.workload, lay.style.text_font(13 * lay.growth, bold=True)
    rows = count_text(w.seqlen_q)
    titles = {name: symbol(name) for name in lay.labels}
    by_key = [name for name in lay.labels if "key" in TENSORS[name].axes]
    titles |= {name: f"{name}ᵀ" for name in by_key}
    sized = {"Q": f"Q {rows}×{w.head_dim}", "O": f"O {rows}×{w.value_dim}"}
    if all(text_width(font, text) <= _title_room(lay, name) for name, text in sized.items()):
        titles |= sized
    outer = [TENSORS[name] for name in snapshot.program.algorithm.outside.values()]
    for name, box in lay.labels.items():
        text = titles[name]
        align = LEFT if "value" in TENSORS[name].axes else CENTRE
        if name in by_key or (name in snapshot.inputs and TENSORS[name] not in outer):
            align = RIGHT
        own = lay.boxes[name]
        left, right = max(own.left(), box.left()), min(own.right(), box.right())
        alone = name in sized or TENSORS[name] in outer
        if alone and name not in by_key and text_width(font, text) <= right - left:
            box, align = QRectF(left, box.top(), right - left, box.height()), CENTRE
        draw_text(painter, box, text, font, lay.style.theme.tensor(name), align)
    _paint_sharing(painter, snapshot, lay)


def _title_room(lay: BoardLayout, name: str) -> float:
    """Return how wide a title may be: lines from tokens to their cells may run beside the title."""
    box, own = lay.labels[name], lay.boxes[name]
    if lay.token_room.isNull():
        return box.width()
    return min(own.right(), box.right()) - max(own.left(), box.left())


def _paint_sharing(painter: QPainter, snapshot: Snapshot, lay: BoardLayout) -> None:
    """Say beside Kᵀ and Vᵀ which query heads use them, where heads share and there is room."""
    choices, font = sharing_choices(snapshot), lay.style.text_font(11 * lay.growth)
    titles = lay.labels["Q"]
    for name in dict.fromkeys((lay.keys, lay.values)):
        label = lay.labels[name]
        room = QRectF(titles.left(), label.top(), label.left() - titles.left(), label.height())
        if room.intersects(titles):  # a flat Kᵀ is named beside Q
            continue
        fits = (text for text in choices if text_width(font, text) <= room.width())
        if text := next(fits, ""):
            draw_text(painter, room, text, font, lay.style.theme.muted, RIGHT)


def paint_words(painter: QPainter, snapshot: Snapshot, lay: BoardLayout) -> None:
    """Write the run's place above the board, and the caption below it."""
    style, theme, font = lay.style, lay.style.theme, lay.style.text_font(12)
    if not lay.header.isNull():
        scenario = snapshot.program.workload.scenario
        used = paint_fault_label(painter, scenario, style, lay.header)
        room = lay.header.adjusted(used + style.px(10) if used else 0, 0, 0, 0)
        for text in header_choices(snapshot, plain=lay.plain):
            if text_width(font, text) <= room.width():
                draw_text(painter, room, text, font, theme.muted, RIGHT)
                break
    if lay.caption.isNull():
        return
    font = style.text_font(11.5)
    grid = snapshot.program.workload.grid
    tile = min(lay.cell[0] * grid.cols, lay.cell[1] * grid.rows)
    count = max(1, round(lay.caption.height() / style.px(18)))
    of_keys = ", ".join(dict.fromkeys((lay.keys, lay.values)))
    averaged = [
        name
        for name, seen in (("Q", lay.visible_rows()), (of_keys, lay.visible_keys()))
        if len(seen) > MOST_ROWS
    ]
    phrases = caption_phrases(snapshot, tile, ", ".join(averaged), plain=lay.plain)
    if board_picture(snapshot, lay) and not snapshot.op.before_tiles:
        phrases.insert(1, PICTURE_LINES)
    if snapshot.wrong is not None and lay.legend.isNull():
        here = "" if snapshot.head is not None else " in this row block"
        phrases.insert(0, f"red marks: wrong numbers{here}")
    lines = wrapped(phrases, font, lay.caption.width(), count)
    for n, line in enumerate(lines):
        place = QRectF(
            lay.caption.left(), lay.caption.top() + n * style.px(18), lay.caption.width(),
            style.px(18),
        )  # fmt: skip
        draw_text(painter, place, line, font, theme.muted, CENTRE)


def wrapped(phrases: list[str], font: QFont, width: float, most: int) -> list[str]:
    """Return phrases in at most `most` lines; phrases at the end that do not fit are left out."""
    phrases = [phrase for phrase in phrases if text_width(font, phrase) <= width]
    while True:
        lines: list[str] = []
        for phrase in phrases:
            longer = f"{lines[-1]}{DOT}{phrase}" if lines else phrase
            if lines and text_width(font, longer) <= width:
                lines[-1] = longer
            else:
                lines.append(phrase)
        if len(lines) <= most:
            return lines
        phrases = phrases[:-1]


def paint_margins(painter: QPainter, snapshot: Snapshot, lay: BoardLayout) -> None:
    """Write tokens, or the numbers of blocks, beside Q and above Kᵀ."""
    if lay.row_margin.isNull():
        return
    if lay.tokens:
        _paint_tokens(painter, snapshot, lay)
    else:
        _paint_block_numbers(painter, snapshot, lay)


def _paint_tokens(painter: QPainter, snapshot: Snapshot, lay: BoardLayout) -> None:
    style, theme = lay.style, lay.style.theme
    w, visit = snapshot.program.workload, snapshot.visit
    font, step, picture = style.text_font(lay.token_size), lay.token_step, picture_of(w)
    line, room = style.px(LINE * lay.token_size), lay.token_room
    lead = 0.0 if room.isNull() else style.px(LEAD)
    cell_w, cell_h = lay.cell
    margin = lay.row_margin
    rows = [
        (row, lay.row_y(row + 0.5))
        for row in _every(step, lay.visible_rows())
        if margin.top() <= lay.row_y(row + 0.5) <= margin.bottom()
    ]
    middles = [y for _, y in rows]
    if lead:
        middles = apart(middles, line, room.top(), room.bottom() - style.px(6))
    for (row, y), middle in zip(rows, middles, strict=True):
        colour = theme.text if row in visit.rows else theme.muted
        high = line if lead else cell_h
        place = QRectF(margin.left(), middle - high / 2, margin.width() - lead, high)
        text, piece = w.query_token(row), query_piece(w, row)
        if picture and piece:
            side, text = shared_label(place.width(), high if lead else cell_h * step, font, text)
            place = paint_beside(painter, picture, piece, place, side, Qt.Edge.RightEdge)
        draw_text(painter, place, text, font, colour, RIGHT)
        if lead:
            end = QPointF(place.right() + style.px(2), middle)
            _lead(painter, style, end, QPointF(margin.right(), y))
    margin = lay.key_margin
    keys = [
        (key, lay.col_x(key + 0.5))
        for key in _every(step, lay.visible_keys())
        if margin.left() <= lay.col_x(key + 0.5) <= margin.right()
    ]
    middles = [x for _, x in keys]
    if lead:
        middles = apart(middles, line, margin.left() - style.px(40), room.right())
    for (key, x), middle in zip(keys, middles, strict=True):
        wide = line if lead else cell_w
        colour = theme.text if key in visit.cols else theme.muted
        place = QRectF(middle - wide / 2, margin.top(), wide, margin.height() - lead)
        text, piece = w.key_token(key), key_piece(w, key)
        if picture and piece:
            side, text = shared_label(place.height(), wide if lead else cell_w * step, font, text)
            place = paint_beside(painter, picture, piece, place, side, Qt.Edge.BottomEdge)
        painter.save()
        painter.translate(middle, place.bottom())
        painter.rotate(-90)
        draw_text(painter, QRectF(0, -wide / 2, place.height(), wide), text, font, colour, LEFT)
        painter.restore()
        if lead:
            end = QPointF(middle, margin.bottom() - lead + style.px(2))
            _lead(painter, style, end, QPointF(x, margin.bottom()))


def _lead(painter: QPainter, style: Style, start: QPointF, end: QPointF) -> None:
    """Draw the line from a token to its cell."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
    painter.setPen(QPen(QColor(style.theme.muted), hairline(style)))
    painter.drawLine(start, end)
    painter.restore()


def _every(step: int, seen: range) -> range:
    """Return every `step`-th visible row or key, the same ones wherever the view begins."""
    return range(-(-seen.start // step) * step, seen.stop, step)


def _paint_block_numbers(painter: QPainter, snapshot: Snapshot, lay: BoardLayout) -> None:
    style, grid, visit = lay.style, snapshot.program.workload.grid, snapshot.visit
    cell_w, cell_h = lay.cell
    digit, line = style.px(7.5 * lay.growth), style.px(16 * lay.growth)
    whole = snapshot.launch.whole_rows
    sides = (
        (True, visit.i, lay.visible_rows(), grid.rows, cell_h, line),
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
        for block in [*([current] if current in blocks else []), *marked]:
            middle = (start(block * size) + start(min((block + 1) * size, count))) / 2
            middle = min(max(middle, first + least / 2), last - least / 2)
            if any(abs(middle - other) < least for other in taken):
                continue
            taken.append(middle)
            if upright:
                place = QRectF(room.left(), middle - least / 2, room.width(), least)
            else:
                place = QRectF(middle - least / 2, room.top(), least, room.height())
            font = style.text_font(11 * lay.growth, bold=block == current)
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
