"""The list of the search: a model of entries, and the delegate that draws rows of every kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QKeySequence, QPainter
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from ui.kit.boxes import Box, Column, Row, scene
from ui.kit.shapes import Cap, Card, Text
from ui.look.draw import (
    CAP_HIGH,
    CENTRE,
    LEFT,
    RIGHT,
    card,
    draw_text,
    fitted,
    mixed,
    text_width,
    wrapped,
)
from ui.look.theme import DARK, Style
from ui.safety.overrides import guarded
from ui.widgets.matching import Span, lit
from ui.window.search.entries import SearchEntry

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow

AT_ONCE = 30
"""Rows that the list gets at once."""
ENTRY = Qt.ItemDataRole.UserRole
_INDEX = QModelIndex | QPersistentModelIndex
_NONE = QModelIndex()
_KIND, _SIDE, _GAP = 84, 28, 20
"""Width of the box with the kind, margin left and right, and gaps between, at scale 1."""
_TITLE, _DOES, _SMALL = 19, 15.5, 14
"""Sizes of letters: title, effect, kind and value, keys."""
_TITLE_LINE, _DOES_LINE, _MARGIN, _LEAST_HIGH, _MOST_VALUE = 26, 22, 10, 74, 240
_MOST_LINES = 2


@dataclass(frozen=True, slots=True)
class TextLine:
    """One line of a text that is broken."""

    text: str
    start: int  # where the line begins in the whole text
    whole: int  # number of its letters that are the text's; after them an ellipsis

    def lit(self, spans: Sequence[Span]) -> list[Span]:
        """Return the parts of the whole text that are in this line."""
        inside = ((max(a - self.start, 0), min(b - self.start, self.whole)) for a, b in spans)
        return [(a, b) for a, b in inside if a < b]


def broken(text: str, font: QFont, width: float) -> list[TextLine]:
    """Return a text in at most two lines; a text that is too long ends in an ellipsis."""
    lines = wrapped(text, font, width)
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES - 1 :] = [" ".join(lines[_MOST_LINES - 1 :])]
    out, at = [], 0
    for line in lines:
        shown = fitted(font, line, width)
        out.append(TextLine(shown, at, len(shown) - (shown != line)))
        at += len(line) + 1
    return out


def told(entry: SearchEntry, query: str) -> str:
    """Return an entry's effect, and its other name if the entry was found by that alone."""
    if lit(query, entry.title) or lit(query, entry.does):
        return entry.does
    other = next((name for name in entry.also if lit(query, name)), "")
    return f"{entry.does} ({other})" if other else entry.does


@guarded
class SearchModel(QAbstractListModel):
    """The entries on show, and the query."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__()
        self._window = window
        self._shown: tuple[SearchEntry, ...] = ()
        self._values: dict[str, str] = {}
        self._listed = 0
        """Number of entries that the list has; it gets more when scrolled to its end."""
        self.query = ""

    @property
    def shown(self) -> tuple[SearchEntry, ...]:
        """The entries, from top to bottom."""
        return self._shown

    def show(self, shown: Sequence[SearchEntry], query: str) -> None:
        """Show other entries."""
        self.beginResetModel()
        self._shown, self.query = tuple(shown), query
        self._listed = min(AT_ONCE, len(self._shown))
        self.endResetModel()

    def forget(self) -> None:
        """Forget the values of entries, after an act of an entry."""
        self._values.clear()

    def value(self, entry: SearchEntry) -> str:
        """Return the present value of an entry in words."""
        if entry.id not in self._values:
            self._values[entry.id] = entry.value(self._window)
        return self._values[entry.id]

    def rowCount(self, parent: _INDEX = _NONE) -> int:
        return 0 if parent.isValid() else self._listed

    def canFetchMore(self, parent: _INDEX = _NONE) -> bool:
        return self._listed < len(self._shown)

    def fetchMore(self, parent: _INDEX = _NONE) -> None:
        more = min(AT_ONCE, len(self._shown) - self._listed)
        self.beginInsertRows(QModelIndex(), self._listed, self._listed + more - 1)
        self._listed += more
        self.endInsertRows()

    def data(self, index: _INDEX, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        entry = self._shown[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return entry.title
            case Qt.ItemDataRole.ToolTipRole:
                return entry.does
            case Qt.ItemDataRole.AccessibleTextRole:
                return entry.said(self._window)
        return entry if role == ENTRY else None


@dataclass(frozen=True, eq=False)
class LitText(Box):
    """Words in at most two lines; the letters that were found are lit."""

    words: str
    spans: Sequence[Span]
    tone: str
    size: float
    line: float  # its height
    bold: bool = False

    def lines(self, style: Style, width: float) -> list[TextLine]:
        """Return the lines at a width."""
        return broken(self.words, style.text_font(self.size, bold=self.bold), width)

    def height(self, style: Style, width: float) -> float:
        return style.px(self.line) * len(self.lines(style, width))

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        font, colour = style.text_font(self.size, bold=self.bold), getattr(style.theme, self.tone)
        place = QRectF(rect.x(), rect.y(), rect.width(), style.px(self.line))
        for line in self.lines(style, rect.width()):
            draw_lit(painter, place, line.text, line.lit(self.spans), font, colour, style)
            place.translate(0, place.height())


@guarded
class SearchRows(QStyledItemDelegate):
    """Draws a row: kind, title with the letters that were found, effect, keys and value.

    width: the width of a row.
    """

    def __init__(self, model: SearchModel) -> None:
        super().__init__()
        self._model = model
        self.style_now = Style(DARK)
        self.width = 0.0
        self._heights: dict[tuple[str, str, str, float], float] = {}

    def height(self, entry: SearchEntry) -> float:
        """Return the height of a row for the width of the list."""
        words = told(entry, self._model.query)
        known = entry.id, self._model.value(entry), words, self.width
        if known not in self._heights:
            row, style = self.box(entry), self.style_now
            texts = row.parts[3]
            beside = sum(part.width(style) for part in row.parts if part is not texts)
            high = texts.height(style, self.width - beside) + style.px(2 * _MARGIN + 6)
            self._heights[known] = max(high, style.px(_LEAST_HIGH))
        return self._heights[known]

    def box(self, entry: SearchEntry, *, chosen: bool = False) -> Row:
        """Return a row: kind, title and effect of an entry, and at the right keys and value."""
        query, value = self._model.query, self._model.value(entry)
        does = told(entry, query)
        in_title = lit(query, entry.title)
        in_does = [] if in_title else lit(query, does)
        texts = Column((
            Box(grow=1), LitText(entry.title, in_title, "text", _TITLE, _TITLE_LINE, bold=True),
            LitText(does, in_does, "muted", _DOES, _DOES_LINE), Box(grow=1),
        ), gap=0, grow=1)  # fmt: skip
        ground = ("panel", "muted", 0.3 if chosen else 0.14)
        kind = Card(Text(entry.kind.title, align=CENTRE, size=_SMALL), ("panel", "muted", 0.5),
                    ground=ground, pad=0, high=28, wide=_KIND)  # fmt: skip
        keys = Row((Box(grow=1), *(Cap(key, CAP_HIGH) for key in _caps(entry.keys))))
        said = Text(value, "muted", RIGHT, size=_SMALL, high=24)
        if said.width(self.style_now) > self.style_now.px(_MOST_VALUE):
            said = replace(said, wide=_MOST_VALUE)
        aside = (*((keys,) if entry.keys else ()), *((said,) if value else ()))
        side, gap = Box(wide=_SIDE), Box(wide=_GAP)
        return Row((side, _middle(kind), gap, texts, gap, _middle(*aside), side), gap=0)

    def sizeHint(self, option: QStyleOptionViewItem, index: _INDEX) -> QSize:
        return QSize(round(self.width), round(self.height(index.data(ENTRY))))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _INDEX) -> None:
        style, theme, px = self.style_now, self.style_now.theme, self.style_now.px
        place, state = QRectF(option.rect), option.state
        chosen = bool(state & QStyle.StateFlag.State_Selected)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if chosen:
            ground = place.adjusted(px(10), px(2), -px(10), -px(4))
            card(painter, ground, theme.accent, theme.tensors["Q"], px(9), px(1.5))
        row = self.box(index.data(ENTRY), chosen=chosen)
        scene(row, style, place.adjusted(0, 0, 0, -px(2))).paint(painter)
        painter.restore()


def _middle(*parts: Box) -> Column:
    """Return boxes in the middle of a row's height."""
    return Column((Box(grow=1), *parts, Box(grow=1)), gap=1)


def draw_lit(
    painter: QPainter,
    box: QRectF,
    text: str,
    spans: Sequence[Span],
    font: QFont,
    colour: str,
    style: Style,
) -> None:
    """Draw a line of text with its lit parts."""
    theme = style.theme
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    for number, (begin, end) in enumerate(pairwise(edges)):
        if begin == end:
            continue
        # From the line's begin, because letters that meet are not as wide as each alone.
        x, right = text_width(font, text[:begin]), text_width(font, text[:end])
        place = QRectF(box.x() + x, box.y(), right - x + 1, box.height())
        found = number % 2 == 1
        if found:
            ground = place.adjusted(-1, style.px(1), 0, -style.px(1))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(mixed(theme.panel, theme.current, 0.25))
            painter.drawRoundedRect(ground, style.px(3), style.px(3))
        draw_text(painter, place, text[begin:end], font, theme.current if found else colour, LEFT)


def _caps(keys: str) -> list[str]:
    """Return the caps of a shortcut."""
    text = QKeySequence(keys).toString(QKeySequence.SequenceFormat.NativeText)
    plus = text.endswith("+")
    return [*filter(None, text.split("+")), *(["+"] if plus else [])]
