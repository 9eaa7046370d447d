"""The dock with exact values: the cell under the pointer, pinned cells, the tile for NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QRectF, QSize, Qt
from PySide6.QtGui import QAction, QColor, QKeyEvent, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QFileDialog,
    QHeaderView,
    QTableWidget,
    QTableWidgetItem,
    QToolBar,
    QVBoxLayout,
    QWidget,
)

from simulator.code.tile_script import save_tile
from simulator.problem.workload import Workload
from simulator.run.cell_values import CellValue, cell_value, exists, tile_of
from simulator.run.snapshot import Cell, Snapshot
from simulator.run.trace import Trace
from ui.look.draw import LEFT, RIGHT, draw_text, text_width
from ui.look.names import first_that_fits
from ui.look.theme import DARK, Style
from ui.look.units import copied_text, exact_text, number_text
from ui.panels.base import Panel
from ui.safety.overrides import guarded
from ui.safety.painting import painting
from ui.session.session import Session
from ui.session.view import View

COLUMNS = ("Cell", "Value", "Exactly", "Tile", "State")
NO_VALUE = "—"
_HINT = ("Point at a cell on the board; P pins it.", "Point at a cell; P pins it.", "P pins a cell")
_COMMANDS: tuple[tuple[str, str, str, Callable[[ValuesPanel], None]], ...] = (
    ("pin", "Pin", "Keep the selected cell in the table, whatever the step (P).",
     lambda panel: panel.pin()),
    ("unpin", "Unpin", "Take the marked rows out of the table (Delete).",
     lambda panel: panel.unpin()),
    ("copy_value", "Copy value", "Put the exact value of the marked row on the clipboard.",
     lambda panel: panel.copy_value()),
    ("copy_table", "Copy table", "Put all rows on the clipboard, tab separated (Ctrl+C).",
     lambda panel: panel.copy_table()),
    ("open_in_numpy", "Open in NumPy…",
     "Save this tile's arrays and a short script that recomputes them in float64.",
     lambda panel: panel.open_in_numpy()),
)  # fmt: skip


def tile_text(w: Workload, cell: Cell) -> str:
    """Return the tile, row block or column block of a cell: ``(2, 1)``, ``i = 2``."""
    i, j = tile_of(w, cell)
    if i is not None and j is not None:
        return f"({i}, {j})"
    return f"i = {i}" if j is None else f"j = {j}"


def value_row(snapshot: Snapshot, cell: Cell) -> tuple[str, ...]:
    """Return what the table says about a cell, in the order of `COLUMNS`."""
    found = cell_value(snapshot, cell)
    w = snapshot.program.workload
    shown = NO_VALUE if found.value is None else number_text(found.value)
    exact = NO_VALUE if found.value is None else exact_text(found.value)
    return found.name, shown, exact, tile_text(w, cell), found.state


@guarded
class LiveValue(QWidget):
    """One line: the cell under the pointer, with its exact value."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("live_value")
        self.setAccessibleName("Cell under the pointer")
        self.found: CellValue | None = None
        self.style_now = Style(DARK)

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self.style_now = style
        self.setFixedHeight(round(style.px(26)))
        self.update()

    def show_value(self, found: CellValue | None) -> None:
        """Show a cell, or how to choose one."""
        self.found = found
        words = _HINT[0]
        if found is not None:
            value = NO_VALUE if found.value is None else exact_text(found.value)
            words = f"{found.name} = {value}, {found.state}"
        self.setAccessibleDescription(words)
        self.update()

    def sizeHint(self) -> QSize:
        """Return a line of text."""
        return QSize(280, round(self.style_now.px(26)))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw name, value, exact value and state; what does not fit is left out from the right."""
        with painting(self) as painter:
            style = self.style_now
            theme, px = style.theme, style.px
            painter.fillRect(self.rect(), QColor(theme.panel))
            room = QRectF(self.rect()).adjusted(px(8), 0, -px(8), 0)
            font, text = style.code_font(13), style.text_font(12)
            if self.found is None:
                words = first_that_fits(_HINT, room.width(), text)
                draw_text(painter, room, words, text, theme.muted, LEFT)
                return
            found = self.found
            name, letter = found.name, text_width(font, "0")
            x = room.x()
            # Fixed columns, so that nothing moves when the pointer moves.
            shown = NO_VALUE if found.value is None else number_text(found.value)
            exact = NO_VALUE if found.value is None else exact_text(found.value)
            colour = theme.tensor(found.tensor)
            for words, width, ink, align in (
                (name, max(13 * letter, text_width(font, name)), colour, LEFT),
                (shown, max(8 * letter, text_width(font, shown)), QColor(theme.text), RIGHT),
                (exact, 16 * letter, QColor(theme.muted), LEFT),
                (found.state, text_width(text, found.state), QColor(theme.muted), LEFT),
            ):
                own = text if words is found.state else font
                if x + width > room.right() + 1:
                    break
                place = QRectF(x, room.y(), width + 1, room.height())
                draw_text(painter, place, words, own, ink, align)
                x += width + px(14)


@guarded
class ValuesPanel(Panel[None]):
    """Exact values of the cell under the pointer and of pinned cells.

    Parameters
    ----------
    session : Session
        The session; pinned cells stay in the table from step to step.
    """

    def __init__(self, session: Session) -> None:
        super().__init__("values_panel", "Values")
        self._session = session
        self._hover: Cell | None = None
        self.pinned: list[Cell] = []
        self.live = LiveValue()
        self.table = QTableWidget(0, len(COLUMNS))
        self.bar = QToolBar()
        self.commands = {
            name: self._command(name, text, tip, does) for name, text, tip, does in _COMMANDS
        }
        self._set_up_table()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for widget in (self.live, self.table, self.bar):
            column.addWidget(widget)
        session.trace_changed.connect(self._take_run)
        self._tell_commands()

    def _command(
        self, name: str, text: str, tip: str, does: Callable[[ValuesPanel], None]
    ) -> QAction:
        action = QAction(text, self)
        action.setObjectName(name)
        action.setToolTip(tip)
        action.triggered.connect(partial(self._run, does))
        self.bar.addAction(action)
        button = self.bar.widgetForAction(action)
        button.setAccessibleName(text.rstrip("…"))
        button.setAccessibleDescription(tip)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        return action

    def _set_up_table(self) -> None:
        table = self.table
        table.setObjectName("pinned")
        table.setAccessibleName("Pinned cells")
        table.setAccessibleDescription("Enter selects the cell on the board, Delete unpins it")
        table.setHorizontalHeaderLabels(COLUMNS)
        table.verticalHeader().hide()
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        table.setWordWrap(False)
        table.setTabKeyNavigation(False)
        table.itemSelectionChanged.connect(self._tell_commands)
        table.itemActivated.connect(lambda item: self._session.select(self.pinned[item.row()]))
        table.itemClicked.connect(lambda item: self._session.select(self.pinned[item.row()]))
        table.installEventFilter(self)
        header = table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.setHighlightSections(False)

    # --- what is shown --------------------------------------------------------------------

    def set_style(self, style: Style) -> None:
        super().set_style(style)
        self.live.set_style(style)
        code, text, px = style.code_font(12), style.text_font(12), style.px
        self.table.setFont(code)
        self.table.horizontalHeader().setFont(text)
        self.table.verticalHeader().setDefaultSectionSize(round(px(22)))
        letter = text_width(code, "0")
        for column, letters in enumerate((14, 9, 15, 10)):
            self.table.setColumnWidth(column, round(letters * letter + px(8)))
        self.bar.setFont(text)
        for action in self.commands.values():
            self.bar.widgetForAction(action).setFont(text)
        self._fill()

    def show_view(self, view: View, model: None = None) -> None:
        """Show a view: the same cells with their current values."""
        self._fill()
        self._read_hover()
        self._tell_commands()

    def show_hover(self, cell: Cell | None) -> None:
        """Show the cell under the pointer."""
        self._hover = cell
        self._read_hover()

    def _snapshot(self) -> Snapshot | None:
        view = self._session.view
        return view.snapshot if view else None

    def _read_hover(self) -> None:
        snapshot, cell = self._snapshot(), self._hover
        if snapshot is None or cell is None or not exists(snapshot.program.workload, cell):
            self.live.show_value(None)
        else:
            self.live.show_value(cell_value(snapshot, cell))

    def _fill(self) -> None:
        snapshot = self._snapshot()
        if snapshot is None:
            return
        # A cell of the previous run may have been pinned after this run was made and before it was
        # seen.
        self._keep(snapshot.program.workload)
        for row, cell in enumerate(self.pinned):
            texts = value_row(snapshot, cell)
            for column, text in enumerate(texts):
                item = self.table.item(row, column)
                if item is None:
                    item = QTableWidgetItem()
                    right = column in (1, 2)
                    side = Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft
                    item.setTextAlignment(side | Qt.AlignmentFlag.AlignVCenter)
                    self.table.setItem(row, column, item)
                item.setText(text)
                item.setToolTip(text)
            shown = "P" if texts[0].startswith("P") else cell.tensor
            first = self.table.item(row, 0)
            assert first is not None
            first.setForeground(self.style_now.theme.tensor(shown))
        self._widen()

    def _widen(self) -> None:
        """Give the last column the rest of the width, or what its longest words need."""
        font, last = self.style_now.code_font(12), len(COLUMNS) - 1
        items = [self.table.item(row, last) for row in range(self.table.rowCount())]
        need = max((text_width(font, item.text()) for item in items if item), default=0.0)
        used = sum(self.table.columnWidth(column) for column in range(last))
        rest = self.table.viewport().width() - used
        self.table.setColumnWidth(last, max(round(need + self.style_now.px(12)), rest, 40))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the last column."""
        super().resizeEvent(event)
        self._widen()

    def _take_run(self, trace: Trace) -> None:
        self._keep(trace.workload)

    def _keep(self, w: Workload) -> None:
        """Forget the cells that another run does not have."""
        self.pinned = [cell for cell in self.pinned if exists(w, cell)]
        if self._hover is not None and not exists(w, self._hover):
            self._hover = None
        self.table.setRowCount(len(self.pinned))
        self._tell_commands()

    def _tell_commands(self) -> None:
        view = self._session.view
        able = {
            "pin": view is not None and view.cell is not None and view.cell not in self.pinned,
            "unpin": bool(self._marked()),
            "copy_value": len(self._marked()) == 1 or len(self.pinned) == 1,
            "copy_table": bool(self.pinned),
            "open_in_numpy": view is not None,
        }
        for name, on in able.items():
            self.commands[name].setEnabled(on)

    # --- commands -------------------------------------------------------------------------

    def _run(self, does: Callable[[ValuesPanel], None], checked: bool = False) -> None:
        does(self)

    def pin(self, cell: Cell | None = None) -> None:
        """Keep a cell in the table; the selected one if none is given."""
        view = self._session.view
        cell = cell or (view.cell if view else None)
        has = cell is not None and view is not None and exists(view.snapshot.program.workload, cell)
        if cell is not None and has and cell not in self.pinned:
            self.pinned.append(cell)
            self._fill()
            self.table.selectRow(len(self.pinned) - 1)
        self._tell_commands()

    def unpin(self) -> None:
        """Remove the marked rows from the table."""
        marked = self._marked()
        self.pinned = [cell for n, cell in enumerate(self.pinned) if n not in marked]
        self.table.clearSelection()
        self._fill()
        self._tell_commands()

    def _marked(self) -> set[int]:
        return {index.row() for index in self.table.selectionModel().selectedRows()}

    def copy_value(self) -> None:
        """Copy the exact value of the marked row to the clipboard, in a form that programs read."""
        snapshot, marked = self._snapshot(), self._marked() or {0}
        if snapshot is not None and self.pinned:
            value = cell_value(snapshot, self.pinned[min(marked)]).value
            QApplication.clipboard().setText("" if value is None else copied_text(value))

    def copy_table(self) -> None:
        """Copy the table to the clipboard, tab separated, with values as programs read them."""
        snapshot = self._snapshot()
        if snapshot is None:
            return
        lines = ["\t".join(("Cell", "Value", "Tile", "State"))]
        for cell in self.pinned:
            found = cell_value(snapshot, cell)
            value = "" if found.value is None else copied_text(found.value)
            tile = tile_text(snapshot.program.workload, cell)
            lines.append("\t".join((found.name, value, tile, found.state)))
        QApplication.clipboard().setText("\n".join(lines) + "\n")

    def open_in_numpy(self) -> None:
        """Ask for a file and save the current tile, and the script in the same folder."""
        snapshot = self._snapshot()
        if snapshot is None:
            return
        visit = snapshot.visit
        name, _ = QFileDialog.getSaveFileName(
            self, "Open in NumPy", f"tile-{visit.i}-{visit.j}.npz", "NumPy arrays (*.npz)"
        )
        if name:
            path = Path(name)
            path = path if path.suffix else path.with_suffix(".npz")
            self._session.background("saving the tile", lambda report: save_tile(snapshot, path))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Unpin with Delete and copy the table with Ctrl+C while it has the focus."""
        if watched is self.table and isinstance(event, QKeyEvent):
            deletes = event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace)
            copies = event.key() == Qt.Key.Key_C and (
                event.modifiers() == Qt.KeyboardModifier.ControlModifier
            )
            if deletes and event.type() is QEvent.Type.ShortcutOverride:
                event.accept()  # no shortcut gets it
            elif event.type() == QEvent.Type.KeyPress and (deletes or copies):
                (self.unpin if deletes else self.copy_table)()
                return True
        return super().eventFilter(watched, event)
