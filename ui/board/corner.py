"""The corners: right of Vᵀ the current tile of a large problem, magnified, and the legend.

Above Q there is the picture that the model was given.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from simulator.run.linear_state import forms_tile
from simulator.run.snapshot import Snapshot
from ui.board.beside import LEGEND_WIDTH
from ui.board.fault_marks import paint_inset_marks, paint_mark_swatch
from ui.board.layout import BoardLayout
from ui.board.middle import LegendRow, middle_at
from ui.board.scores import shown_current
from ui.board.words import sharing_choices
from ui.look.draw import LEFT, RIGHT, draw_text, outline, text_width
from ui.look.heat import KEPT, colour_map, word_image
from ui.look.names import first_that_fits
from ui.look.pieces import (
    key_piece,
    paint_outlines,
    paint_picture,
    picture_of,
    picture_place,
    query_piece,
)
from ui.look.theme import Style

_LINE = 18
"""Height of the words under the magnified tile, at scale 1."""
_LEAST_PICTURE = 32
"""Least width and height of the picture, at scale 1."""


def paint_inset(painter: QPainter, snapshot: Snapshot, lay: BoardLayout) -> None:
    """Magnify the current tile of a large problem, in a frame like on the board.

    No line joins the two tiles: it would cross the matrix and look like the edge of a mask.
    """
    style = lay.style
    if lay.inset.isNull() or not forms_tile(snapshot):
        return
    theme, visit = style.theme, snapshot.visit
    line, box = style.px(_LINE), inset_box(snapshot, lay)
    painter.fillRect(box, QColor(theme.empty))
    shown = shown_current(snapshot, lay)
    if shown is not None:
        sheet = KEPT.get(shown.values, ("current", theme.name, *shown.key), shown.image)
        sheet.draw(painter, box, QRectF(0, 0, 1, 1))
        paint_inset_marks(painter, snapshot, style, box)
    outline(painter, box.adjusted(-2, -2, 2, 2), theme.current, style.px(2))
    text = snapshot.launch.where(visit.i, visit.j)
    font = style.text_font(11)
    end = lay.labels["O"].right() if lay.legend.isNull() else lay.inset.right()
    place = QRectF(lay.inset.left(), box.bottom() + 2, end - lay.inset.left(), line)
    text = first_that_fits((f"{text}, magnified", text), place.width(), font)
    draw_text(painter, place, text, font, theme.muted, LEFT)


def inset_box(snapshot: Snapshot, lay: BoardLayout) -> QRectF:
    """Return where the magnified tile is, in the shape of the current tile."""
    visit = snapshot.visit
    room = lay.inset.adjusted(0, 0, 0, -lay.style.px(_LINE))
    shape = len(visit.rows), min(len(visit.cols), 4 * len(visit.rows) + 64)
    share = min(room.width() / shape[1], room.height() / shape[0])
    width, height = round(shape[1] * share), round(shape[0] * share)
    return QRectF(round(room.left()), round(room.top()), width, height)


def paint_board_picture(painter: QPainter, snapshot: Snapshot, lay: BoardLayout) -> None:
    """Draw the picture above Q, with lines around the current keys and, dashed, around the rows."""
    w, visit, theme = snapshot.program.workload, snapshot.visit, lay.style.theme
    picture, place = picture_of(w), board_picture(snapshot, lay)
    if picture is None or place is None:
        return
    paint_picture(painter, picture, place)
    if snapshot.op.before_tiles:
        return
    thick, keys = max(lay.style.px(2), 1.0), [key_piece(w, key) for key in visit.cols]
    rows = [query_piece(w, row) for row in visit.rows]
    solid = QPen(QColor(theme.tensor(lay.keys)), thick)
    dashed = QPen(QColor(theme.tensor("Q")), thick, Qt.PenStyle.DashLine, Qt.PenCapStyle.FlatCap)
    paint_outlines(painter, picture, ((keys, solid), (rows, dashed)), lay.style, place)


def board_picture(snapshot: Snapshot, lay: BoardLayout) -> QRectF | None:
    """Return where the picture lies, above or left of Q; None without a picture or without room."""
    picture = picture_of(snapshot.program.workload)
    if picture is None:
        return None
    px, keys, q, title = lay.style.px, lay.labels[lay.keys], lay.boxes["Q"], lay.labels["Q"]
    top = (lay.rect.top() if lay.header.isNull() else lay.header.bottom()) + px(6)
    if sharing_choices(snapshot):  # these words stand beside the title of Kᵀ
        top = max(top, keys.bottom())
    left, right = lay.rect.left() + px(8), min(keys.left(), q.right()) - px(8)
    above = QRectF(left, top, right - left, title.top() - px(4) - top)
    right = (q.left() if lay.row_margin.isNull() else lay.row_margin.left()) - px(8)
    beside = QRectF(left, q.top(), right - left, q.height())
    rooms = [beside] if lay.token_room.height() > 0 else [above, beside]  # tokens apart reach up
    places = [picture_place(picture, room, right=True) for room in rooms if room.isValid()]
    place = max(places, key=lambda each: each.width(), default=QRectF())
    if min(place.width(), place.height()) < px(_LEAST_PICTURE):
        return None
    if place.bottom() > q.top():
        place.moveTop(q.top())
    return place


def paint_legend(painter: QPainter, snapshot: Snapshot, lay: BoardLayout) -> None:
    """Draw the maps with their ranges."""
    style = lay.style
    if lay.legend.isNull():
        return
    theme, px = style.theme, style.px
    font = style.text_font(11)
    signed = (*(spec.name for spec in snapshot.program.algorithm.inputs), "O")
    own = LegendRow(" ".join(signed), signed, "−", "+")
    rows = [*middle_at(snapshot).legend(snapshot, plain=lay.plain), own]
    if lay.legend.width() < px(LEGEND_WIDTH):
        _paint_narrow_legend(painter, snapshot, style, lay.legend, rows)
        return
    line = px(17)
    y = lay.legend.top()
    if snapshot.wrong is not None:
        swatch = QRectF(lay.legend.left(), y + px(4), px(14), line - px(8))
        paint_mark_swatch(painter, style, swatch)
        beside = lay.legend.adjusted(px(20), 0, 0, 0)
        beside.setHeight(line)
        draw_text(painter, beside, "differs from float64", font, theme.text, LEFT)
        y += line
        rows = rows[: int((lay.legend.bottom() - y) // line)]
    name_w, end_w = px(62), px(42)
    bar_w = min(px(90), lay.legend.width() - name_w - 2 * end_w)
    for name, maps, left, right in rows:
        x = lay.legend.left()
        draw_text(painter, QRectF(x, y, name_w, line), name, font, theme.muted)
        bar = QRectF(x + name_w + end_w, y + px(4), bar_w, line - px(8))
        before = QRectF(x + name_w, y, end_w - px(4), line)
        draw_text(painter, before, left, font, theme.muted, RIGHT)
        draw_text(painter, QRectF(bar.right() + px(4), y, end_w, line), right, font, theme.muted)
        _paint_maps(painter, style, bar, maps)
        y += line


def _paint_narrow_legend(
    painter: QPainter, snapshot: Snapshot, style: Style, place: QRectF, rows: Sequence[LegendRow]
) -> None:
    """Draw the maps with their ranges beside the magnified tile, the names over the bars."""
    theme, px = style.theme, style.px
    font, line, y = style.text_font(11), px(15), place.top()
    if snapshot.wrong is not None:
        words = first_that_fits(
            ("differs from float64", "not as float64", "wrong"), place.width() - px(18), font
        )
        paint_mark_swatch(painter, style, QRectF(place.left(), y + px(3), px(13), line - px(6)))
        beside = QRectF(place.left() + px(18), y, place.width() - px(18), line)
        draw_text(painter, beside, words, font, theme.text, LEFT)
        y += px(18)
    for name, maps, left, right in rows:
        if y + 2 * line > place.bottom():
            break
        draw_text(painter, QRectF(place.left(), y, place.width(), line), name, font, theme.muted)
        ends = [text_width(font, text) + px(4) for text in (left, right)]
        row = QRectF(place.left(), y + line, min(place.width(), px(150)), line)
        draw_text(painter, row, left, font, theme.muted, LEFT)
        draw_text(painter, row, right, font, theme.muted, RIGHT)
        bar = row.adjusted(ends[0], px(3), -ends[1], -px(3))
        _paint_maps(painter, style, bar, maps)
        y += 2 * line + px(4)


def _paint_maps(painter: QPainter, style: Style, bar: QRectF, maps: Sequence[str]) -> None:
    each = bar.height() / len(maps)
    for n, colours in enumerate(maps):
        words = colour_map(style.theme, colours)[None, :256]
        strip = QRectF(bar.left(), bar.top() + n * each, bar.width(), each)
        painter.drawImage(strip, word_image(words), QRectF(0, 0, 256, 1))
    outline(painter, bar.adjusted(-1, -1, 1, 1), style.theme.grid)
