"""Paints sums that depend on the order of their terms: which move, and the bits of one of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSizeF
from PySide6.QtGui import QPainter

from ui.look.draw import CENTRE, RIGHT, draw_text, outline, text_width, wrapped
from ui.look.heat import colour_map, heat_image, indices, inks, prefers_white
from ui.look.names import first_that_fits, fitting, readable
from ui.look.theme import LABEL, Style
from ui.panels.merge.sums import FIRST, SumsState

MIN_SIZE = QSizeF(430, 300)
"""Below this the text shrinks a little, and less is said."""
_SMALLEST = 0.92
"""Text is no smaller than this scale, as beside it, while anything can be left out."""
_LINE = 16
_SHARE = 0.3
"""Share of the height that the numbers have at least, before words are left out."""
_BITS_LINES = 3
"""Which number, and its bits twice; a line below says what they mean, if there is room."""
_DEEPEST = 26
"""Most pixels of a number's height."""
_WIDEST = 64
_FIELDS = (1, 9)
"""Where sign and exponent of a float32 end."""
_FIELD_NAMES = ("sign", "exponent", "fraction")


@dataclass(frozen=True, slots=True)
class SumsLayout:
    """Where everything is.

    Attributes
    ----------
    style : Style
        In which it is painted.
    said : tuple of str
        The lines below.
    below : QRectF
        Their place.
    cells : QRectF
        The numbers.
    bits : QRectF
        The bits of one of them: a line of words above two of bits.
    """

    style: Style
    said: tuple[str, ...]
    below: QRectF
    cells: QRectF
    bits: QRectF

    def number_at(self, state: SumsState, at: QPointF) -> tuple[int, int] | None:
        """Return row and column of the number at a place; None if none is."""
        if state.sums is None or not self.cells.contains(at):
            return None
        rows, columns = state.apart.shape
        row = int((at.y() - self.cells.y()) / self.cells.height() * rows)
        column = int((at.x() - self.cells.x()) / self.cells.width() * columns)
        return min(row, rows - 1), min(column, columns - 1)


def sums_layout(state: SumsState, style: Style, rect: QRectF) -> SumsLayout:
    """Return where everything is; in a small place less is said, before letters are small."""
    fitted = fitting(style, rect, MIN_SIZE)
    large = replace(fitted, scale=max(fitted.scale, min(style.scale, _SMALLEST)))
    found = _layout(state, readable(large), rect)
    if found.bits.bottom() > found.below.top():
        found = _layout(state, readable(fitted), rect)
    return found


def _layout(state: SumsState, style: Style, rect: QRectF) -> SumsLayout:
    px, font = style.px, style.text_font(LABEL)
    line = px(_LINE)
    top = rect.y() + 2.8 * line
    least = 0.0
    if state.sums is not None:
        least = min(len(state.apart) * line, _SHARE * rect.height())
    for words, named in ((state.words, True), (state.brief, True), (state.brief, False)):
        said = [wrapped(each, font, rect.width()) for each in words]
        deep = (_BITS_LINES + named) * line + px(6)
        room = rect.bottom() - top - deep - least - px(6)
        if line * sum(map(len, said)) <= room:
            break
    while len(said) > 1 and line * sum(map(len, said)) > room:
        said.pop()
    lines = tuple(words for part in said for words in part)
    below = QRectF(rect.x(), rect.bottom() - line * len(lines), rect.width(), line * len(lines))
    if state.sums is None:
        return SumsLayout(style, lines, below, QRectF(), QRectF())
    rows, columns = state.apart.shape
    left = max(text_width(font, f"row {row}") for row in (state.rows[0], state.rows[-1])) + px(8)
    high = below.y() - px(6) - deep - top
    cells = QRectF(
        rect.x() + left,
        top,
        min(rect.width() - left, columns * px(_WIDEST)),
        max(min(high, rows * px(_DEEPEST)), px(6)),
    )
    bits = QRectF(rect.x(), cells.bottom() + px(6), rect.width(), deep - px(6))
    return SumsLayout(style, lines, below, cells, bits)


def paint_sums(painter: QPainter, state: SumsState, style: Style, rect: QRectF) -> None:
    """Paint by how much each sum moves, the bits of one of them, and what an order costs."""
    lay = sums_layout(state, style, rect)
    style, theme = lay.style, lay.style.theme
    px, font, bold = style.px, style.text_font(LABEL), style.text_font(12.5, bold=True)
    line = px(_LINE)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    title = first_that_fits(state.title, rect.width(), bold)
    draw_text(painter, QRectF(rect.x(), rect.y(), rect.width(), line), title, bold, theme.text)
    if state.sums is not None:
        caption = QRectF(rect.x(), rect.y() + 1.4 * line, rect.width(), line)
        words = first_that_fits(_CAPTIONS, rect.width(), font)
        draw_text(painter, caption, words, font, theme.muted)
        _paint_cells(painter, state, lay, rect.x())
        _paint_bits(painter, state, lay)
    for n, words in enumerate(lay.said):
        place = QRectF(lay.below.x(), lay.below.y() + n * line, lay.below.width(), line)
        draw_text(painter, place, words, font, theme.muted)


_CAPTIONS = (
    "How many float32 numbers each sum is from that in order; press one to see its bits",
    "How many float32 numbers each is from the sum in order",
    "Float32 numbers from the sum in order",
)


def _paint_cells(painter: QPainter, state: SumsState, lay: SumsLayout, left: float) -> None:
    style, cells, theme = lay.style, lay.cells, lay.style.theme
    px, font = style.px, style.text_font(LABEL)
    rows, columns = state.apart.shape
    values = np.where(state.apart > 0, state.apart, -np.inf).astype(np.float32)
    most, ground = max(float(state.apart.max()), 1.0), colour_map(theme, "P")
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
    painter.drawImage(cells, heat_image(values, 0.0, most, ground))
    outline(painter, cells, theme.grid, px(1), px(2))
    size = QSizeF(cells.width() / columns, cells.height() / rows)

    def place(row: int, column: int) -> QRectF:
        corner = QPointF(cells.x() + column * size.width(), cells.y() + row * size.height())
        return QRectF(corner, size)

    widest = text_width(font, str(int(most))) + px(4)
    if size.height() >= px(_LINE) and size.width() >= widest:
        inside, shades = inks(ground), indices(values, 0.0, most)
        for row, column in np.argwhere(state.apart > 0).tolist():
            white = prefers_white(ground[shades[row, column : column + 1]])[0]
            words = str(int(state.apart[row, column]))
            draw_text(painter, place(row, column), words, font, inside[int(white)], CENTRE)
    outline(painter, place(*state.at), theme.current, px(2), px(2))
    ends = (0, rows - 1) if cells.height() >= 2 * px(_LINE) else (0,)
    for row in sorted(set(ends)):
        y = min(max(place(row, 0).center().y() - px(_LINE) / 2, cells.y()),
                cells.bottom() - px(_LINE))  # fmt: skip
        beside = QRectF(left, y, cells.x() - left - px(6), px(_LINE))
        draw_text(painter, beside, f"row {state.rows[row]}", font, theme.muted, RIGHT)


def _paint_bits(painter: QPainter, state: SumsState, lay: SumsLayout) -> None:
    """Paint two lines of bits, where they differ with a frame, and what sign and exponent are."""
    style, place, theme = lay.style, lay.bits, lay.style.theme
    px, font = style.px, style.text_font(LABEL)
    line = px(_LINE)
    first, second = state.bits
    differ = sum(one != other for one, other in zip(first, second, strict=True))
    same = _differing(differ, len(first)) if differ else "the same bits"
    heading = QRectF(place.x(), place.y(), place.width(), line)
    draw_text(painter, heading, f"{state.number}: {same}", font, theme.text)
    names = (FIRST, state.order if state.order != FIRST else "again")
    left = max(text_width(font, name) for name in names) + px(8)
    wide = min((place.width() - left) / len(first), px(14))
    for n, (name, bits) in enumerate(zip(names, (first, second), strict=True)):
        y = place.y() + (1 + n) * line
        draw_text(painter, QRectF(place.x(), y, left, line), name, font, theme.muted)
        for k, bit in enumerate(bits):
            box = QRectF(place.x() + left + k * wide, y, wide, line)
            other = first[k] != second[k]
            field = sum(k >= end for end in _FIELDS)
            colour = theme.bad if other else (theme.muted if field == 1 else theme.text)
            draw_text(painter, box, bit, font, colour, CENTRE)
            if other:
                outline(painter, box.adjusted(px(0.5), px(1), -px(0.5), -px(1)), theme.bad, px(1.2))
    starts = (0, *_FIELDS, len(first))
    named = place.height() > (_BITS_LINES + 0.5) * line
    for n, name in enumerate(_FIELD_NAMES if named else ()):
        begin, end = starts[n], starts[n + 1]
        under = QRectF(place.x() + left + begin * wide, place.y() + 3 * line, (end - begin) * wide,
                       place.bottom() - place.y() - 3 * line)  # fmt: skip
        if under.width() >= text_width(font, name):
            draw_text(painter, under, name, font, theme.muted, CENTRE)


def _differing(count: int, bits: int) -> str:
    return f"{count} of {bits} bits differ{'s' * (count == 1)}"


def sums_summary(state: SumsState) -> str:
    """Return what the picture says, for screen readers."""
    return ". ".join(_said(state))


def _said(state: SumsState) -> Iterator[str]:
    yield state.title[0]
    if state.sums is not None:
        first, second = state.bits
        differ = sum(one != other for one, other in zip(first, second, strict=True))
        yield f"{state.number}: {_differing(differ, len(first))}"
    yield from state.words
