"""Pictures of the jobs panel: heads × jobs, and how unlike heads are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSizeF
from PySide6.QtGui import QColor, QPainter, QPen

from simulator.base.dtypes import F64
from ui.look.draw import CENTRE, LEFT, RIGHT, draw_text, mixed, outline, text_width, wrapped
from ui.look.heat import colour_map, heat_image, indices, inks, prefers_white
from ui.look.names import first_that_fits, fitting
from ui.look.theme import LABEL, Style
from ui.panels.jobs.model import JobsState, head_name, short_name

MIN_SIZE = QSizeF(430, 210)
"""Below this the text shrinks."""
_LINE, _TALLEST, _LOW, _WIDEST = 16.0, 34.0, 13.0, 56.0
_WEIGHT = ("mean weight on the", "weight on the", "weight")
_TINY = 0.005
"""Below this a score is 0.00."""


@dataclass(frozen=True, slots=True)
class TablePlaces:
    """Places of rows and columns of the table.

    Attributes
    ----------
    style : Style
        At the text scale that fits.
    title, head : QRectF
        The line above, and the two lines of headings.
    rows : tuple of (int, QRectF)
        The heads that are shown, and their rows.
    after : tuple of (str, QRectF)
        Names and places of the rows after them.
    names : float
        Width of the heads' names.
    notes : tuple of (str, QRectF)
        Lines below.
    """

    style: Style
    title: QRectF
    head: QRectF
    rows: tuple[tuple[int, QRectF], ...]
    after: tuple[tuple[str, QRectF], ...]
    names: float
    notes: tuple[tuple[str, QRectF], ...]

    def head_at(self, point: QPointF) -> int | None:
        """Return which head's row is at a point; None: no row."""
        return next((at for at, box in self.rows if box.contains(point)), None)


def table_places(state: JobsState, style: Style, rect: QRectF) -> TablePlaces:
    """Return the places of the table in a box."""
    style = fitting(style, rect, MIN_SIZE)
    px, line, count = style.px, style.px(_LINE), len(state.report.heads)
    last = state.rows_after
    room = rect.height() - 3.2 * line
    # The table comes first: with many heads there are fewer notes, then fewer heads.
    wanted = (count + len(last)) * px(_LOW + 3)
    most = max(int((room - wanted) // px(14)), 1)
    below: list[str] = []
    for n, note in enumerate(state.notes):  # whole or not at all, but for the first
        lines = wrapped(note, style.text_font(LABEL), rect.width())
        if len(below) + len(lines) <= most:
            below += lines
        elif not n:
            below.append(note)
    shown, first = count, 0
    high = (room - len(below) * px(14) - px(4)) / (count + len(last))
    if high < px(_LOW):
        shown = min(max(int((room - px(18)) // px(_LOW)) - len(last), 1), count)
        at = next((n for n, head in enumerate(state.report.heads) if head == state.current), 0)
        first = min(max(at - shown // 2, 0), count - shown)
        if shown < count:
            below = [f"Heads {first + 1} to {first + shown} of {count}: a larger dock has more."]
        high = (room - len(below[:1]) * px(14) - px(4)) / (shown + len(last))
        below = below[:1]
    high = min(high, px(_TALLEST))
    top = rect.top() + 3.2 * line

    def row(n: int) -> QRectF:
        return QRectF(rect.left(), top + n * high, rect.width(), high)

    rows = tuple((first + n, row(n)) for n in range(shown))
    after = tuple((words, row(shown + n)) for n, words in enumerate(last))
    font = style.text_font(12)
    widest = max(text_width(font, head_name(head)) for head in state.report.heads)
    names = min(max(widest, text_width(font, last[-1])) + px(14), 0.3 * rect.width())
    y = after[-1][1].bottom() + px(4)
    notes = tuple(
        (text, QRectF(rect.left(), y + n * px(14), rect.width(), px(14)))
        for n, text in enumerate(below)
    )
    title = QRectF(rect.left(), rect.top(), rect.width(), 1.2 * line)
    head = QRectF(rect.left(), title.bottom(), rect.width(), 2 * line)
    return TablePlaces(style, title, head, rows, after, names, notes)


def paint_jobs(painter: QPainter, state: JobsState, style: Style, rect: QRectF) -> None:
    """Draw the table of heads × jobs.

    Parameters
    ----------
    rect : QRectF
        Place; with many heads those around the board's are shown.
    """
    rect = rect.adjusted(8, 0, -8, -2)
    places = table_places(state, style, rect)
    style, theme = places.style, style.theme
    px = style.px
    bold, text, label = style.text_font(13, bold=True), style.text_font(12), style.text_font(LABEL)
    draw_text(painter, places.title, state.title, bold, theme.text, LEFT)
    wide = (rect.width() - places.names) / len(state.columns)
    small = wide < px(60)
    _paint_headings(painter, state, places, wide)
    for at, row in places.rows:
        head = state.report.heads[at]
        off = head == state.off
        name = QRectF(row.left() + px(5), row.top(), places.names - px(8), row.height())
        words = first_that_fits((head_name(head), short_name(head)), name.width(), text)
        draw_text(painter, name, words, text, theme.faint if off else theme.text, LEFT)
        if off:
            painter.setPen(QPen(QColor(theme.bad), px(1.5)))
            y = name.center().y()
            painter.drawLine(QPointF(name.left(), y),
                             QPointF(name.left() + text_width(text, words), y))  # fmt: skip
        for n, column in enumerate(state.columns):
            cell = QRectF(rect.left() + places.names + n * wide, row.top(), wide, row.height())
            cell = cell.adjusted(px(1), px(0.5), -px(1), -px(0.5))
            value = column.values[at] if column.values else float("nan")
            _paint_cell(painter, column.texts[at], value, cell, style, small=small)
        if head == state.current:
            outline(painter, row.adjusted(0, 0, 1, 0), theme.current, px(2))
    for n in range(len(places.after)):
        _paint_after(painter, state, places, wide, n)
    for words, place in places.notes:
        draw_text(painter, place, words, label, theme.muted, LEFT)


def _paint_headings(painter: QPainter, state: JobsState, places: TablePlaces, wide: float) -> None:
    """Write the columns' names, and above some of them what they have in common."""
    style, box = places.style, places.head
    label, line, theme = style.text_font(LABEL), style.px(_LINE), style.theme
    left, columns = box.left() + places.names, state.columns
    for n, column in enumerate(columns):
        place = QRectF(left + n * wide, box.top() + line, wide, line)
        words = first_that_fits(column.headings, wide - style.px(4), label)
        draw_text(painter, place, words, label, theme.muted, CENTRE)
    for group, first in {each.group: n for n, each in reversed([*enumerate(columns)])}.items():
        count = sum(each.group == group for each in columns)
        place = QRectF(left + first * wide, box.top(), count * wide, line)
        words = group or first_that_fits(_WEIGHT, place.width(), label)
        draw_text(painter, place, words, label, theme.text, CENTRE)
        painter.setPen(QPen(QColor(theme.border), style.px(1)))
        edge = style.px(3)
        painter.drawLine(
            place.bottomLeft() + QPointF(edge, 0), place.bottomRight() - QPointF(edge, 0)
        )


def _paint_after(
    painter: QPainter, state: JobsState, places: TablePlaces, wide: float, at: int
) -> None:
    """Write one of the rows after the heads, below a line."""
    style, (words, row) = places.style, places.after[at]
    px, theme, label = style.px, style.theme, style.text_font(LABEL)
    if not at:
        painter.setPen(QPen(QColor(theme.border), px(1)))
        painter.drawLine(row.topLeft(), row.topRight())
    name = QRectF(row.left() + px(5), row.top(), places.names - px(8), row.height())
    draw_text(painter, name, words, label, theme.muted, LEFT)
    for n, column in enumerate(state.columns):
        cell = QRectF(row.left() + places.names + n * wide, row.top(), wide, row.height())
        draw_text(painter, cell, column.after[at], style.code_font(LABEL), theme.muted, CENTRE)


def _paint_cell(
    painter: QPainter, words: str, value: float, cell: QRectF, style: Style, *, small: bool
) -> None:
    """Write a figure, on the colour of its value if it has one."""
    font = style.code_font(LABEL if small else 12)
    if value != value:
        draw_text(painter, cell, words, font, style.theme.muted, CENTRE)
        return
    ground = colour_map(style.theme, "P")
    shade = ground[indices(np.array([value], dtype=np.float32), 0.0, 1.0)]
    painter.fillRect(cell, QColor.fromRgb(int(shade[0])))
    dark, light = inks(ground)
    draw_text(painter, cell, words, font, light if prefers_white(shade)[0] else dark, CENTRE)


def paint_distances(painter: QPainter, state: JobsState, style: Style, rect: QRectF) -> None:
    """Draw how unlike every two heads are, as `paint_jobs`."""
    rect = rect.adjusted(8, 0, -8, -2)
    style = fitting(style, rect, MIN_SIZE)
    px, theme, heads = style.px, style.theme, state.report.heads
    label, bold = style.text_font(LABEL), style.text_font(13, bold=True)
    count, line = len(heads), px(_LINE)
    title = QRectF(rect.left(), rect.top(), rect.width(), 1.2 * line)
    words = "How unlike heads are" + (", each as layer·head" if state.report.layers else "")
    draw_text(painter, title, words, bold, theme.text, LEFT)
    short = max(text_width(label, short_name(head)) for head in heads) + px(6)
    long = max(text_width(label, head_name(head)) for head in heads) + px(6)
    beside = rect.width() > 1.35 * (rect.height() - 2 * line)
    notes_wide = 0.33 * rect.width() if beside else rect.width()
    notes = [
        (each, theme.text if n < 2 else theme.muted)
        for n, pair in enumerate(state.pairs)
        for each in wrapped(pair, label, notes_wide)
    ]
    deep = 0.0 if beside else len(notes) * px(14) + px(4)
    room = QSizeF(rect.width() - (notes_wide + px(12) if beside else 0.0),
                  rect.height() - title.height() - line - deep)  # fmt: skip
    most = min(room.height(), px(_WIDEST) * count)
    names = long if room.width() - long >= 0.85 * most else short
    side = max(min(room.width() - names, most), px(40))
    box = QRectF(rect.left() + names, title.bottom() + px(2), side, side)
    one = side / count
    shades, distances = colour_map(theme, "S"), state.report.distances.astype(np.float32)
    painter.drawImage(box, heat_image(distances, 0.0, 1.0, shades))
    outline(painter, box, theme.border)
    _paint_names(painter, state, style, box, names)
    if one >= px(27):
        _paint_figures(painter, state.report.distances, style, box)
    elif one >= px(6):
        painter.setPen(QPen(mixed(theme.panel, theme.grid, 0.5), 1))
        for n in range(1, count):
            y, x = box.top() + n * one, box.left() + n * one
            painter.drawLine(QPointF(box.left(), y), QPointF(box.right(), y))
            painter.drawLine(QPointF(x, box.top()), QPointF(x, box.bottom()))
    left = box.right() + px(12) if beside else rect.left()
    y = box.top() if beside else box.bottom() + line + px(4)
    for n, (text, colour) in enumerate(notes):
        place = QRectF(left, y + n * px(14), rect.right() - left, px(14))
        if place.bottom() <= rect.bottom() + 1:
            draw_text(painter, place, text, label, colour, LEFT)


def _paint_names(
    painter: QPainter, state: JobsState, style: Style, box: QRectF, names: float
) -> None:
    """Write the heads at the left and below; the board's in the colour of what is current."""
    px, theme, heads = style.px, style.theme, state.report.heads
    label, one = style.text_font(LABEL), box.width() / len(heads)
    wide = max(text_width(label, short_name(head)) for head in heads) + px(4)
    down, across = max(1, round(px(13) / one + 0.49)), max(1, round(wide / one + 0.49))
    for n, head in enumerate(heads):
        colour = theme.current if head == state.current else theme.muted
        if n % down == 0:
            place = QRectF(box.left() - names, box.top() + (n + 0.5) * one - px(7), names - px(4),
                           px(14))  # fmt: skip
            text = first_that_fits((head_name(head), short_name(head)), place.width(), label)
            draw_text(painter, place, text, label, colour, RIGHT)
        if n % across == 0:
            centre = box.left() + (n + 0.5) * one
            place = QRectF(centre - wide / 2, box.bottom() + px(1), wide, px(14))
            draw_text(painter, place, short_name(head), label, colour, CENTRE)


def _paint_figures(painter: QPainter, distances: F64, style: Style, box: QRectF) -> None:
    """Write the distances into their cells."""
    ground = colour_map(style.theme, "S")
    dark, light = inks(ground)
    font, one = style.code_font(LABEL), box.width() / len(distances)
    for (r, c), value in np.ndenumerate(distances):
        shade = ground[indices(np.array([value], dtype=np.float32), 0.0, 1.0)]
        cell = QRectF(box.left() + c * one, box.top() + r * one, one, one)
        words = "0" if value < _TINY else f"{value:.2f}".removeprefix("0")
        ink = light if prefers_white(shade)[0] else dark
        draw_text(painter, cell, words, font, ink, CENTRE)
