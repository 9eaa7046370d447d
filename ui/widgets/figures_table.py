"""A table of figures to look at, to mark and to copy: a model of cells, and its view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QApplication, QTableView, QWidget

from ui.look.draw import LEFT, RIGHT
from ui.look.theme import DARK, Style
from ui.safety.overrides import guarded
from ui.widgets.sheet import set_sheet

Index = QModelIndex | QPersistentModelIndex
_TOP = QModelIndex()


class Figure(NamedTuple):
    """A cell: its words, and their colour in the theme."""

    words: str
    tone: str = "text"


@guarded
class FiguresModel(QAbstractTableModel):
    """Rows of figures; the first of a row is its name."""

    def __init__(self) -> None:
        super().__init__()
        self.style_now = Style(DARK)
        self.heads: tuple[Figure, ...] = ()
        self.rows: tuple[tuple[Figure, ...], ...] = ()

    def show(self, heads: Sequence[Figure], rows: Sequence[Sequence[Figure]]) -> None:
        """Show other figures."""
        if (tuple(heads), tuple(map(tuple, rows))) != (self.heads, self.rows):
            self.beginResetModel()
            self.heads, self.rows = tuple(heads), tuple(map(tuple, rows))
            self.endResetModel()

    def rowCount(self, parent: Index = _TOP) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = _TOP) -> int:
        return 0 if parent.isValid() else len(self.heads)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = 0) -> Any:
        across = orientation == Qt.Orientation.Horizontal
        return self._role(self.heads[section], section, role) if across else None

    def data(self, index: Index, role: int = 0) -> Any:
        return self._role(self.rows[index.row()][index.column()], index.column(), role)

    def _role(self, cell: Figure, column: int, role: int) -> Any:
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return cell.words
        if role == Qt.ItemDataRole.ForegroundRole:
            return self.style_now.theme.role(cell.tone)
        aligns = role == Qt.ItemDataRole.TextAlignmentRole
        return (RIGHT if column else LEFT) if aligns else None


@guarded
class FiguresTable(QTableView):
    """The view: at least as wide as its words; Ctrl+C copies the marked cells, or all cells."""

    def __init__(self, parent: QWidget, name: str, title: str) -> None:
        super().__init__(parent)
        self.figures = FiguresModel()
        self.setModel(self.figures)
        self.setObjectName(name)
        self.setAccessibleName(title)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTabKeyNavigation(False)
        self.setWordWrap(False)
        self.setShowGrid(False)
        self.verticalHeader().hide()
        self.horizontalHeader().setHighlightSections(False)

    def show_figures(self, heads: Sequence[Figure], rows: Sequence[Sequence[Figure]]) -> None:
        """Show other figures."""
        self.figures.show(heads, rows)
        self.fit()

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        if style != self.figures.style_now:
            self.figures.style_now = style
            theme = style.theme
            letters = f"font-size: {style.text_font(12).pixelSize()}px;"
            set_sheet(
                self,
                f"QTableView {{ background: {theme.panel}; border: 0; {letters} }}"
                f"QTableView::item {{ border-top: 1px solid {theme.border}; }}"
                f"QTableView::item:selected {{ background: {theme.accent}; }}"
                f"QHeaderView {{ background: {theme.panel}; }}"
                f"QHeaderView::section {{ background: {theme.panel}; border: 0; {letters} }}",
            )
            self.verticalHeader().setDefaultSectionSize(round(style.px(22)))
            self.fit()

    def fit(self) -> None:
        """Give each column the width that it needs, and its part of the rest."""
        self.resizeColumnsToContents()
        columns, most = range(self.figures.columnCount()), round(0.38 * self.viewport().width())
        self.setColumnWidth(0, min(self.columnWidth(0), most))
        room = self.width() - self.verticalScrollBar().sizeHint().width()
        spare = room - sum(self.columnWidth(n) for n in columns)
        for n in columns[1:] if spare > 0 else ():
            self.setColumnWidth(n, self.columnWidth(n) + spare // (len(columns) - 1))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            QApplication.clipboard().setText(self.copied())
        else:
            super().keyPressEvent(event)

    def copied(self) -> str:
        """Return the marked rows and columns, or all with their names, separated by tabs."""
        marked = self.selectedIndexes()
        if len(marked) < 2:
            lines = [self.figures.heads, *self.figures.rows]
            return "\n".join("\t".join(each.words for each in line) for line in lines)
        rows = sorted({each.row() for each in marked})
        columns = sorted({each.column() for each in marked})
        shown = self.figures.rows
        return "\n".join("\t".join(shown[r][c].words for c in columns) for r in rows)
