"""The Formula panel's picture: the update large, its numbers as links, and a cell's explanation.

If there is little space, the other lines of the update are left out first, with a note of their
number, then the words of the explanation, then terms of its sum; letters are never cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from PySide6.QtCore import QPointF, QRectF, QSizeF
from PySide6.QtGui import QColor, QFont, QPainter, QPen

from simulator.run.snapshot import Cell
from ui.look.draw import LEFT, card, draw_text, mixed, outline, text_width, wrapped
from ui.look.formula import draw_part, formula
from ui.look.lit import alpha_boxes, paint_lit
from ui.look.names import first_that_fits, fitting
from ui.look.theme import Style
from ui.look.units import plural
from ui.panels.formula.lines import ExplanationText, FormulaModel
from ui.panels.update_lines import LinePiece, Pieces, UpdateLine

MIN_SIZE = QSizeF(300, 136)
HINT = "Click a number above, or a cell on the board, to see where it came from."
_TEXT, _BIG, _SMALL = 12, 17, 13
_NUMBERS = 17
"""Height of the row of numbers below a large formula."""
_NOTE = 15
"""Height of the words for lines that have no room."""


class CellLink(NamedTuple):
    """A number that selects its cell."""

    rect: QRectF  # its place
    text: str  # as it is written
    cell: Cell  # the cell that it selects
    hint: str  # its name


class PlainText(NamedTuple):
    """Text that is not a link."""

    rect: QRectF
    text: str
    role: str
    font: str = "code"


class Maths(NamedTuple):
    """A typeset formula: left end, baseline and size of its letters."""

    latex: str
    x: float
    baseline: float
    pixels: int
    role: str
    part: str = ""  # the beginning that the op is about; "" for the whole formula


@dataclass(slots=True)
class FormulaLayout:
    """Everything that is painted, and where."""

    style: Style  # with the text scale that fits
    links: list[CellLink] = field(default_factory=list)  # numbers, in reading order
    words: list[PlainText] = field(default_factory=list)  # all other text
    maths: list[Maths] = field(default_factory=list)  # formulas
    # around the lines of the current op; null without any
    frame: QRectF = field(default_factory=QRectF)
    rule: QRectF = field(default_factory=QRectF)  # between update and explanation; null without it

    def font(self, name: str = "code") -> QFont:
        """Return one of the three fonts of the picture."""
        if name == "bold":
            return self.style.text_font(_TEXT, bold=True)
        return self.style.text_font(_TEXT) if name == "text" else self.style.code_font(_TEXT)

    def link_at(self, point: QPointF) -> int | None:
        """Return the number of the link under a point."""
        return next((n for n, link in enumerate(self.links) if link.rect.contains(point)), None)

    def width(self, pieces: Pieces) -> float:
        """Return the width of pieces in a row."""
        return text_width(self.font(), "".join(piece.padded for piece in pieces))

    def choice(self, choices: Sequence[Pieces], width: float) -> Pieces:
        """Return the first pieces that fit; none if none do."""
        return next((pieces for pieces in choices if self.width(pieces) <= width), ())

    def say(self, words: str, place: QRectF, role: str = "muted") -> None:
        """Place words that are not numbers."""
        self.words.append(PlainText(place, words, role, "text"))

    def put(self, pieces: Pieces, row: QRectF, role: str) -> None:
        """Place pieces in one row, into which they fit."""
        x, font = row.x(), self.font()
        for piece in pieces:
            text = piece.text.strip()
            whole, own = text_width(font, piece.padded), text_width(font, text)
            if piece.cell is not None:
                place = QRectF(x + whole - own, row.y(), own + 1, row.height())
                self.links.append(CellLink(place, text, piece.cell, piece.hint))
            elif text:
                place = QRectF(x, row.y(), whole + 1, row.height())
                self.words.append(PlainText(place, piece.text, role))
            x += whole


def formula_layout(
    model: FormulaModel, explanation: ExplanationText | None, style: Style, rect: QRectF
) -> FormulaLayout:
    """Return the places of everything, also of the explanation if a cell is selected.

    rect: at least `MIN_SIZE`.
    """
    lay = FormulaLayout(fitting(style, rect, MIN_SIZE))
    px = lay.style.px
    y = _head(lay, model, rect)
    y = _update(lay, model.lines, QRectF(rect.x(), y, rect.width(), rect.bottom() - y), explanation)
    lay.rule = QRectF(rect.x(), y + px(3), rect.width(), 1)
    below = QRectF(rect.x(), y + px(7), rect.width(), rect.bottom() - y - px(7))
    if explanation is not None:
        _explanation(lay, explanation, below)
    else:
        for n, words in enumerate(wrapped(HINT, lay.font("text"), below.width())):
            place = QRectF(below.x(), below.y() + n * px(16), below.width(), px(16))
            if place.bottom() <= below.bottom():
                lay.say(words, place)
    return lay


def _head(lay: FormulaLayout, model: FormulaModel, rect: QRectF) -> float:
    """Place op and citation, side by side or, if they are long, one below the other."""
    px, bold, text = lay.style.px, lay.font("bold"), lay.font("text")
    row = QRectF(rect.x(), rect.y(), rect.width(), px(17))
    title = first_that_fits(model.title, rect.width(), bold)
    room = rect.width() - px(14)
    # A shorter title is better than no citation.
    for title in model.title:
        left = room - text_width(bold, title)
        cite = next((c for c in model.cites if text_width(text, c) <= left), "")
        if cite:
            break
    lay.words.append(PlainText(row, title, "text", "bold"))
    width = text_width(text, cite) + 1
    lay.say(cite, QRectF(row.right() - width, row.y(), width, row.height()))
    return row.bottom() + px(3)


def _update(
    lay: FormulaLayout,
    lines: Sequence[UpdateLine],
    rect: QRectF,
    explanation: ExplanationText | None,
) -> float:
    """Place the lines of the current op, large, and as many others as fit around them."""
    px = lay.style.px
    current = {n for n, one in enumerate(lines) if one.current}
    # With little space, formula and numbers of the current lines also share a row.
    below = px(58 if explanation is not None else 26)
    least = below + px(_NOTE) * (len(current) < len(lines))
    large = sum(_line_height(lay, lines[n], True) for n in current) + least <= rect.height()
    heights = [_line_height(lay, one, large) for one in lines]
    wanted = px(118 if explanation is not None else 24)
    free = rect.height() - wanted - sum(heights[n] for n in current)
    for notes in range(3):  # how many rows say that there are more lines, above and below
        kept = _fitting_lines(heights, current, free - notes * px(_NOTE))
        above, after = min(kept, default=0), len(lines) - 1 - max(kept, default=-1)
        if (above > 0) + (after > 0) <= notes:
            break
    spare = rect.height() - sum(heights[n] for n in kept) - min(below, wanted)
    first, last = _more_lines(above, after, rows=int(spare / px(_NOTE)))
    y, left = rect.y(), rect.x() + px(8)
    if first:
        y = _note(lay, first, QRectF(left, y, rect.right() - left, 0))
    small = [lines[n].latex for n in kept if not (large and lines[n].current)]
    widest = max((formula(latex, round(px(_SMALL))).width for latex in small), default=0.0)
    for n in sorted(kept):
        one = lines[n]
        place = QRectF(left, y, rect.right() - px(6) - left, heights[n])
        if one.current and large:
            _large_line(lay, one, place)
        else:
            _small_line(lay, one, place, widest)
        if one.current:
            framed = QRectF(rect.x(), y, rect.width(), heights[n])
            lay.frame = framed if lay.frame.isNull() else lay.frame.united(framed)
        y += heights[n]
    if last:
        y = _note(lay, last, QRectF(left, y, rect.right() - left, 0))
    return y


def _fitting_lines(heights: Sequence[float], current: set[int], free: float) -> set[int]:
    """Return which lines fit: the current ones, and the nearest others in the free height."""
    kept, middle = set(current), min(current, default=0)
    for n in sorted(set(range(len(heights))) - kept, key=lambda n: abs(n - middle)):
        if heights[n] > free:
            break
        kept.add(n)
        free -= heights[n]
    return kept


def _more_lines(above: int, below: int, rows: int) -> tuple[str, str]:
    """Return the notes before and after the lines about other lines that have no room."""
    first = f"{plural(above, 'more line')} above" if above else ""
    last = f"{plural(below, 'more line')} below" if below else ""
    if first and last and rows == 1:
        return "", f"{first}, {below} below"
    return (first, last) if rows > 0 else ("", "")


def _note(lay: FormulaLayout, words: str, place: QRectF) -> float:
    """Place words in a row of their own, and return where the row ends."""
    place.setHeight(lay.style.px(_NOTE))
    lay.say(words, place)
    return place.bottom()


def _line_height(lay: FormulaLayout, one: UpdateLine, large: bool) -> float:
    """Return the height of a line: a fraction is higher than the distance of the rows."""
    px = lay.style.px
    large = large and one.current
    picture = formula(one.latex, round(px(_BIG if large else _SMALL)))
    deep = picture.ascent + picture.descent
    if large:
        return max(px(56 if one.tall else 48), deep + px(_NUMBERS + 7))
    return max(px(30 if one.tall else 21), deep + px(4))


def _large_line(lay: FormulaLayout, one: UpdateLine, place: QRectF) -> None:
    """Place a line of the current op: the formula, and the numbers below it."""
    px = lay.style.px
    size = round(px(_BIG))
    width = formula(one.latex, size).width
    if width > place.width():  # a narrow place
        size = max(int(size * place.width() / width), 8)
    picture = formula(one.latex, size)
    high = place.height() - px(_NUMBERS + 4)
    baseline = place.y() + px(3) + (high - picture.ascent - picture.descent) / 2 + picture.ascent
    lay.maths.append(Maths(one.latex, place.x(), baseline, size, "text", one.part))
    row = QRectF(place.x(), place.bottom() - px(_NUMBERS + 2), place.width(), px(_NUMBERS))
    lay.put(lay.choice(one.choices, row.width()), row, "text")


def _small_line(lay: FormulaLayout, one: UpdateLine, place: QRectF, widest: float) -> None:
    """Place another line: formula and numbers in one row."""
    px = lay.style.px
    picture = formula(one.latex, round(px(_SMALL)))
    middle = place.center().y()
    baseline = middle + (picture.ascent - picture.descent) / 2
    role = "text" if one.current else "muted" if one.reached else "faint"
    lay.maths.append(Maths(one.latex, place.x(), baseline, round(px(_SMALL)), role, one.part))
    x = place.x() + widest + px(12)
    row = QRectF(x, middle - px(8.5), max(place.right() - x, 0.0), px(17))
    lay.put(lay.choice(one.choices, row.width()), row, role)


# --- the explanation ---------------------------------------------------------------------------


def _explanation(lay: FormulaLayout, said: ExplanationText, rect: QRectF) -> None:
    px = lay.style.px
    step, y = px(18), rect.y()
    if rect.height() < step:
        return
    title = lay.choice(said.title, rect.width())
    lay.put(title, QRectF(rect.x(), y, rect.width(), step), "text")
    used = lay.width(title) + px(16)
    y += step
    if used + text_width(lay.font("text"), said.state) <= rect.width():
        lay.say(said.state, QRectF(rect.x() + used, y - step, rect.width() - used, step))
    else:
        y = _flow(lay, (LinePiece(said.state),), rect, y, "muted")
    # A row of terms and their sum are more important than the last of the lines.
    kept = 2 * step if said.terms else 0.0
    for pieces in said.lines:
        if y + len(_rows(lay, pieces, rect.width())) * step > rect.bottom() - kept:
            break
        y = _flow(lay, pieces, rect, y, "text")
    if said.terms:
        _terms(lay, said, QRectF(rect.x(), y, rect.width(), rect.bottom() - y))


def _rows(lay: FormulaLayout, pieces: Pieces, width: float) -> list[list[LinePiece]]:
    """Break pieces into rows between words; a number is never broken."""
    font, indent = lay.font(), lay.style.px(14)
    rows: list[list[LinePiece]] = [[]]
    used = 0.0
    for piece in pieces:
        for word in _split(piece):
            wide = text_width(font, word.padded)
            room = width - (indent if len(rows) > 1 else 0.0)
            if rows[-1] and used + text_width(font, word.padded.rstrip()) > room:
                rows.append([])
                used = 0.0
            if not rows[-1] and len(rows) > 1 and word.cell is None:
                word = LinePiece(word.text.lstrip())
                wide = text_width(font, word.text)
            rows[-1].append(word)
            used += wide
    return rows


def _split(piece: LinePiece) -> list[LinePiece]:
    """Return the words of a piece, each with the space that follows it."""
    if piece.cell is not None:
        return [piece]
    parts = piece.text.split(" ")
    words = [LinePiece(f"{part} ") for part in parts[:-1]]
    return [*words, LinePiece(parts[-1])] if parts[-1] else words


def _flow(lay: FormulaLayout, pieces: Pieces, rect: QRectF, y: float, role: str) -> float:
    """Place pieces in as many rows as they need; return where the next begins."""
    step = lay.style.px(18)
    for n, row in enumerate(_rows(lay, pieces, rect.width())):
        if y + step > rect.bottom() + 1:
            break
        indent = lay.style.px(14) if n else 0.0
        lay.put(tuple(row), QRectF(rect.x() + indent, y, rect.width() - indent, step), role)
        y += step
    return y


def _terms(lay: FormulaLayout, said: ExplanationText, rect: QRectF) -> None:
    """Place as many terms as fit, column by column, the number of further terms, and the sum."""
    px = lay.style.px
    step = px(18)
    if rect.height() < step:
        return
    width = max(lay.width(pieces) for pieces in said.terms) + px(16)
    columns = max(int((rect.width() + px(16)) / width), 0)
    rows = max(int(rect.height() / step) - 1, 0)
    rows = min(rows, -(-len(said.terms) // columns)) if columns else 0
    shown = min(columns * rows, len(said.terms))
    for n in range(shown):
        column, row = divmod(n, rows)
        place = QRectF(rect.x() + column * width, rect.y() + row * step, width, step)
        lay.put(said.terms[n], place, "muted")
    last = QRectF(rect.x(), rect.y() + rows * step, rect.width(), step)
    left = said.count - shown
    more = LinePiece(f"+ {plural(left, 'more term')}; sum ")
    totals = ((more, *said.total), said.total) if left else (said.total,)
    lay.put(lay.choice(totals, last.width()), last, "text")


# --- painting ----------------------------------------------------------------------------------


def paint_formula(
    painter: QPainter,
    lay: FormulaLayout,
    *,
    hover: int | None = None,
    focus: int | None = None,
    lit: bool = False,
) -> None:
    """Paint the panel, and mark the links under the pointer and with the keyboard's focus.

    lit: whether α is lit, wherever it stands.
    """
    theme, px = lay.style.theme, lay.style.px
    roles = {
        "text": QColor(theme.text), "muted": QColor(theme.muted),
        "faint": mixed(theme.panel, theme.muted, 0.75),
    }  # fmt: skip
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    if not lay.frame.isNull():
        card(painter, lay.frame, theme.accent, theme.current, px(4), px(1.4))
    painter.fillRect(lay.rule, QColor(theme.border))
    for maths in lay.maths:
        where = maths.latex, maths.pixels, maths.x, maths.baseline
        for box in alpha_boxes(*where, lay.style) if lit else ():
            paint_lit(painter, box, lay.style)
        draw_part(painter, *where, maths.part, (roles[maths.role], roles["faint"]))
    for words in lay.words:
        draw_text(painter, words.rect, words.text, lay.font(words.font), roles[words.role], LEFT)
    font = lay.font()
    for n, link in enumerate(lay.links):
        tensor = "P" if link.hint.startswith("P") else link.cell.tensor
        colour = theme.tensor(tensor)
        draw_text(painter, link.rect, link.text, font, colour, LEFT)
        if n in (hover, focus):
            y = round(link.rect.bottom() - px(2)) + 0.5
            painter.setPen(QPen(colour, max(px(1.2), 1.0)))
            painter.drawLine(QPointF(link.rect.left(), y), QPointF(link.rect.right(), y))
        if n == focus:
            outline(painter, link.rect.adjusted(-2, 0, 2, 0), theme.text, px(1.2), px(2))
    painter.restore()
