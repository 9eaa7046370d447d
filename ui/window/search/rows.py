"""The list of the search: a model of entries, and the one delegate that draws a row of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QKeySequence, QPainter
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from ui.look.draw import (
    CAP,
    CENTRE,
    LEFT,
    RIGHT,
    card,
    draw_cap,
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
"""Sizes of letters: title, what it does, kind and value, keys."""
_TITLE_LINE, _DOES_LINE, _MARGIN = 26, 22, 10
_MOST_LINES = 2


@dataclass(frozen=True, slots=True)
class TextLine:
    """One line of a text that is broken."""

    text: str
    start: int  # where it begins in the whole text
    whole: int  # so many of its letters are the text's; after them an ellipsis

    def lit(self, spans: Sequence[Span]) -> list[Span]:
        """Return the parts of the whole text that are in this line."""
        inside = ((max(a - self.start, 0), min(b - self.start, self.whole)) for a, b in spans)
        return [(a, b) for a, b in inside if a < b]


def broken(text: str, font: QFont, width: float) -> list[TextLine]:
    """Return a text in at most two lines; what is too long for them ends in an ellipsis."""
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
    """Return what an entry does, and by which other name alone it was found."""
    if lit(query, entry.title) or lit(query, entry.does):
        return entry.does
    other = next((name for name in entry.also if lit(query, name)), "")
    return f"{entry.does} ({other})" if other else entry.does


@guarded
class SearchModel(QAbstractListModel):
    """The entries on show, and what was asked for."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__()
        self._window = window
        self._shown: tuple[SearchEntry, ...] = ()
        self._values: dict[str, str] = {}
        self._listed = 0
        """So many of them the list has: more when it is scrolled to its end."""
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
        """Forget what was said of entries: something was done."""
        self._values.clear()

    def value(self, entry: SearchEntry) -> str:
        """Return what is said of an entry now."""
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


@dataclass(frozen=True, slots=True)
class RowSizes:
    """A row laid out for a width."""

    keys: tuple[str, ...]  # the key caps
    value: str
    title: list[TextLine]
    does: list[TextLine]
    aside: float  # width of keys and value
    height: float


@guarded
class SearchRows(QStyledItemDelegate):
    """Draws a row: kind, title with the letters that were found, what it does, keys and value."""

    def __init__(self, model: SearchModel) -> None:
        super().__init__()
        self._model = model
        self.style_now = Style(DARK)
        self._width = 0.0
        self._rows: dict[tuple[str, str, str], RowSizes] = {}

    @property
    def width(self) -> float:
        """The width of a row."""
        return self._width

    @width.setter
    def width(self, width: float) -> None:
        if width != self._width:
            self._width = width
            self._rows.clear()

    def laid_out(self, entry: SearchEntry) -> RowSizes:
        """Return a row for the width of the list."""
        known = entry.id, self._model.value(entry), told(entry, self._model.query)
        if known not in self._rows:
            self._rows[known] = self._lay_out(entry, *known[1:])
        return self._rows[known]

    def _lay_out(self, entry: SearchEntry, value: str, words: str) -> RowSizes:
        px = self.style_now.px
        keys = tuple(_caps(entry.keys))
        value = fitted(self._small, value, px(240))
        caps = sum(self._cap_width(key) + px(6) for key in keys)
        aside = max(caps, text_width(self._small, value))
        room = self.width - px(_SIDE + _KIND + 2 * _GAP + _SIDE) - aside
        title = broken(entry.title, self._title, room)
        does = broken(words, self._does, room)
        height = px(_TITLE_LINE * len(title) + _DOES_LINE * len(does) + 2 * _MARGIN + 6)
        return RowSizes(keys, value, title, does, aside, max(height, px(74)))

    @property
    def _title(self) -> QFont:
        return self.style_now.text_font(_TITLE, bold=True)

    @property
    def _does(self) -> QFont:
        return self.style_now.text_font(_DOES)

    @property
    def _small(self) -> QFont:
        return self.style_now.text_font(_SMALL)

    def _cap_width(self, key: str) -> float:
        font = self.style_now.text_font(CAP, bold=True)
        return max(text_width(font, key) + self.style_now.px(14), self.style_now.px(26))

    def sizeHint(self, option: QStyleOptionViewItem, index: _INDEX) -> QSize:
        return QSize(round(self.width), round(self.laid_out(index.data(ENTRY)).height))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _INDEX) -> None:
        entry = index.data(ENTRY)
        style, theme, px = self.style_now, self.style_now.theme, self.style_now.px
        row = self.laid_out(entry)
        place = QRectF(option.rect)
        state = option.state
        chosen = bool(state & QStyle.StateFlag.State_Selected)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if chosen:
            ground = place.adjusted(px(10), px(2), -px(10), -px(4))
            card(painter, ground, theme.accent, theme.tensors["Q"], px(9), px(1.5))
        lines = _TITLE_LINE * len(row.title) + _DOES_LINE * len(row.does)
        top = place.y() + (place.height() - px(2) - px(lines)) / 2
        box = QRectF(place.x() + px(_SIDE), place.center().y() - px(15), px(_KIND), px(28))
        share = 0.3 if chosen else 0.14
        ground_colour = mixed(theme.panel, theme.muted, share)
        card(painter, box, ground_colour, mixed(theme.panel, theme.muted, 0.5), px(6))
        draw_text(painter, box, entry.kind.title, self._small, theme.text, CENTRE)
        x = box.right() + px(_GAP)
        width = place.right() - px(_SIDE) - row.aside - px(_GAP) - x
        in_title = lit(self._model.query, entry.title)
        in_does = [] if in_title else lit(self._model.query, told(entry, self._model.query))
        for font, lines_of, spans, height, colour in (
            (self._title, row.title, in_title, px(_TITLE_LINE), theme.text),
            (self._does, row.does, in_does, px(_DOES_LINE), theme.muted),
        ):
            for line in lines_of:
                box = QRectF(x, top, width, height)
                draw_lit(painter, box, line.text, line.lit(spans), font, colour, style)
                top += height
        self._draw_aside(painter, place, row, entry.keys)
        painter.restore()

    def _draw_aside(self, painter: QPainter, place: QRectF, row: RowSizes, keys: str) -> None:
        """Draw keys and value at the right: above each other if there are both."""
        px, theme = self.style_now.px, self.style_now.theme
        right, middle = place.right() - px(_SIDE), place.center().y() - px(1)
        both = bool(row.keys and row.value)
        if row.value:
            top = middle + px(4) if both else middle - px(12)
            box = QRectF(right - row.aside, top, row.aside, px(24))
            draw_text(painter, box, row.value, self._small, theme.muted, RIGHT)
        top = middle - px(24) if both else middle - px(13)
        for key in reversed(row.keys):
            width = self._cap_width(key)
            draw_cap(painter, QRectF(right - width, top, width, px(26)), key, self.style_now)
            right -= width + px(6)


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
