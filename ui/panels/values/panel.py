"""The dock with exact values: the cell under the pointer, pinned cells, the tile for NumPy."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QAction, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QFileDialog,
    QHeaderView,
    QLabel,
    QSizePolicy,
    QTableWidget,
    QTableWidgetItem,
    QToolBar,
    QVBoxLayout,
)

from simulator.code.tile_script import save_tile
from simulator.problem.workload import Workload
from simulator.run.cell_values import CellValue, cell_value, exists, tile_of
from simulator.run.snapshot import Cell, Snapshot
from simulator.run.trace import Trace
from ui.look.draw import LEFT, RIGHT, text_width
from ui.look.theme import DARK, Style
from ui.look.units import copied_text, exact_text, number_text
from ui.panels.base import Panel
from ui.safety.overrides import guarded
from ui.session.session import Session
from ui.session.view import View
from ui.widgets.named import named
from ui.widgets.parts import with_parts

COLUMNS = ("Cell", "Value", "Exactly", "Tile", "State")
NO_VALUE = "—"
_HINT = "Point at a cell on the board; P pins it."
_COMMANDS = (
    ("pin", "Pin", "Keep the selected cell in the table, whatever the step (P)."),
    ("unpin", "Unpin", "Take the marked rows out of the table (Delete)."),
    ("copy_value", "Copy value", "Put the exact value of the marked row on the clipboard."),
    ("copy_table", "Copy table", "Put all rows on the clipboard, tab separated (Ctrl+C)."),
    ("open_in_numpy", "Open in NumPy…",
     "Save this tile's arrays and a short script that recomputes them in float64."),
)  # fmt: skip


def tile_text(w: Workload, cell: Cell) -> str:
    """Return the tile, row block or column block of a cell: ``(2, 1)``, ``i = 2``."""
    i, j = tile_of(w, cell)
    if i is not None and j is not None:
        return f"({i}, {j})"
    return f"i = {i}" if j is None else f"j = {j}"


def value_texts(value: float | None) -> tuple[str, str]:
    """Return a value as it is shown elsewhere, and exactly."""
    return (NO_VALUE, NO_VALUE) if value is None else (number_text(value), exact_text(value))


def value_row(snapshot: Snapshot, cell: Cell) -> tuple[str, ...]:
    """Return the table's row for a cell, in the order of `COLUMNS`."""
    found = cell_value(snapshot, cell)
    tile = tile_text(snapshot.program.workload, cell)
    return found.name, *value_texts(found.value), tile, found.state


@guarded
class LiveValue(QLabel):
    """One line, which can be marked and copied: the cell under the pointer, its exact value."""

    def __init__(self) -> None:
        super().__init__()
        named(self, "live_value", "Cell under the pointer")
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.found: CellValue | None = None
        self.style_now = Style(DARK)

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self.style_now = style
        self.setFixedHeight(round(style.px(26)))
        self.show_value(self.found)

    def show_value(self, found: CellValue | None) -> None:
        """Show a cell, in columns that stand still, or how to choose one."""
        self.found = found
        style, colour, words, said = self.style_now, self.style_now.theme.muted, "", _HINT
        font = style.text_font(12)
        if found is not None:
            shown, exact = value_texts(found.value)
            said = f"{found.name} = {exact}, {found.state}"
            ink, font = style.theme.tensor(found.tensor).name(), style.code_font(13)
            parts = f"{found.name:<13}", f" {shown:>8}", f"  {exact:<16}  "
            fits = text_width(font, "".join((*parts, found.state))) + style.px(16) <= self.width()
            words = (
                f'<span style="color: {ink}">{parts[0]}</span>'
                f'<span style="color: {style.theme.text}">{parts[1]}</span>{parts[2]}'
                f"{found.state if fits else ''}"
            )
        self.setFont(font)
        self.setText(
            f'<p style="white-space: pre; color: {colour}; margin: 0 {style.px(8):.0f}px">'
            f"{words or said}</p>"
        )
        self.setAccessibleDescription(said)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the state into the new width."""
        super().resizeEvent(event)
        self.show_value(self.found)


@guarded
class ValuesPanel(Panel[None]):
    """Exact values of the cell under the pointer, and of pinned cells from step to step."""

    ground = False

    def __init__(self, session: Session) -> None:
        super().__init__("values_panel", "Values")
        self._session = session
        self._hover: Cell | None = None
        self.pinned: list[Cell] = []
        self.live = LiveValue()
        self.table = QTableWidget(0, len(COLUMNS))
        self.bar = QToolBar()
        self.commands = {name: self._command(name, text, tip) for name, text, tip in _COMMANDS}
        self._set_up_table()
        with_parts(QVBoxLayout(self), self.live, self.table, self.bar, margin=0, gap=0)
        session.trace_changed.connect(self._take_run)
        self._tell_commands()

    def _command(self, name: str, text: str, tip: str) -> QAction:
        action = QAction(text, self)
        action.setObjectName(name)
        action.setToolTip(tip)
        action.triggered.connect(lambda _=False: getattr(self, name)())
        self.bar.addAction(action)
        button = self.bar.widgetForAction(action)
        button.setAccessibleName(text.rstrip("…"))
        button.setAccessibleDescription(tip)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        return action

    def _set_up_table(self) -> None:
        table = self.table
        named(table, "pinned", "Pinned cells")
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
        # A cell of the run before may have been pinned after this run was made.
        self._keep(snapshot.program.workload)
        for row, cell in enumerate(self.pinned):
            texts = value_row(snapshot, cell)
            tensor = "P" if texts[0].startswith("P") else cell.tensor
            for column, text in enumerate(texts):
                item = self.table.item(row, column) or QTableWidgetItem()
                item.setTextAlignment(RIGHT if column in (1, 2) else LEFT)
                item.setText(text)
                item.setToolTip(text)
                if not column:
                    item.setForeground(self.style_now.theme.tensor(tensor))
                self.table.setItem(row, column, item)
        self._widen()

    def _widen(self) -> None:
        """Give the last column the rest of the width, or the width of its longest words."""
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
        lines: list[tuple[str, ...]] = [("Cell", "Value", "Tile", "State")]
        for cell in self.pinned:
            found = cell_value(snapshot, cell)
            value = "" if found.value is None else copied_text(found.value)
            tile = tile_text(snapshot.program.workload, cell)
            lines.append((found.name, value, tile, found.state))
        QApplication.clipboard().setText("".join("\t".join(each) + "\n" for each in lines))

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
