"""The window: puts header, board, docks and transport together and routes what the user does."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from PySide6.QtCore import QEvent, Qt, QTimer
from PySide6.QtGui import (
    QAction,
    QCloseEvent,
    QDragEnterEvent,
    QDropEvent,
    QKeySequence,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QApplication,
    QDockWidget,
    QFileDialog,
    QLabel,
    QMainWindow,
    QMenu,
    QMessageBox,
    QToolBar,
    QVBoxLayout,
    QWidget,
)

from simulator.assets import ASSETS, DEMO, SCENARIOS
from simulator.errors import InputError
from simulator.scenario import save_scenario, with_values
from simulator.trace import Trace
from ui.actions import ACTIONS, MENUS, ActionSpec
from ui.export.picture import save_picture
from ui.icons import app_icon, icon
from ui.panel_specs import PANELS
from ui.panels.board_panel import BoardPanel
from ui.panels.header import Header, engine_words
from ui.panels.scenario_fields import with_input
from ui.panels.transport_bar import TransportBar
from ui.session import Session, View
from ui.settings import Settings
from ui.theme import TEXT_SCALES, THEMES, Style, palette, stylesheet

WIDE = 1600
"""Window width from which a new window has room for every dock."""
FIRST_SIZE = (1440, 900)


class MainWindow(QMainWindow):
    """Tilescope's window.

    Parameters
    ----------
    session : Session
        What it shows.
    settings : Settings
        What it remembers.
    """

    def __init__(self, session: Session, settings: Settings) -> None:
        super().__init__()
        self.session = session
        self.settings = settings
        self.style_now = Style(THEMES[settings.theme], settings.text_scale)
        self._shown: QWidget | None = None
        self._fell_back = False
        self.setObjectName("window")
        self.setWindowIcon(app_icon())
        self.setAcceptDrops(True)
        self.setDockNestingEnabled(True)
        self.board = BoardPanel()
        self.header = Header()
        self.transport = TransportBar()
        self._banner = QLabel()
        self._blank = QWidget(self)
        self._assemble()
        self.actions_by_name = self._make_actions()
        self.docks = self._make_docks()
        self._make_menus()
        self._connect()
        self._restore()
        self._apply_style()

    # --- assembly -------------------------------------------------------------------------

    def _assemble(self) -> None:
        self._banner.setObjectName("banner")
        self._banner.setWordWrap(True)
        self._banner.setMargin(8)
        self._banner.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._banner.hide()
        centre = QWidget()
        column = QVBoxLayout(centre)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._banner)
        column.addWidget(self.board, 1)
        self.setCentralWidget(centre)
        self._add_bar("header", self.header, Qt.ToolBarArea.TopToolBarArea)
        self._add_bar("transport", self.transport, Qt.ToolBarArea.BottomToolBarArea)
        self._blank.setAutoFillBackground(True)
        self._blank.setPalette(Qt.GlobalColor.black)
        self._blank.hide()

    def _add_bar(self, name: str, widget: QWidget, area: Qt.ToolBarArea) -> None:
        bar = QToolBar(name.title())
        bar.setObjectName(name)
        bar.setMovable(False)
        bar.setFloatable(False)
        bar.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        bar.toggleViewAction().setVisible(False)
        bar.addWidget(widget)
        self.addToolBar(area, bar)

    def _make_actions(self) -> dict[str, QAction]:
        actions = {}
        for spec in ACTIONS:
            action = QAction(spec.text, self)
            action.setObjectName(spec.name)
            action.setShortcuts([QKeySequence(keys) for keys in spec.keys])
            action.setCheckable(spec.checkable)
            if spec.checkable:
                action.toggled.connect(partial(spec.run, self))
            else:
                action.triggered.connect(partial(self._act, spec))
            self.addAction(action)
            actions[spec.name] = action
        return actions

    def _act(self, spec: ActionSpec, checked: bool = False) -> None:
        spec.run(self)

    def _make_docks(self) -> dict[str, QDockWidget]:
        docks = {}
        for number, spec in enumerate(PANELS, start=1):
            dock = QDockWidget(spec.title, self)
            dock.setObjectName(spec.name)
            dock.setWidget(spec.make(self.session))
            toggle = dock.toggleViewAction()
            toggle.setShortcut(QKeySequence(str(number)))
            self.addAction(toggle)
            self.addDockWidget(spec.area, dock)
            docks[spec.name] = dock
        self.setCorner(Qt.Corner.BottomRightCorner, Qt.DockWidgetArea.RightDockWidgetArea)
        return docks

    def _make_menus(self) -> None:
        self.menus: dict[str, QMenu] = {}
        for title in MENUS:
            menu = self.menuBar().addMenu(title)
            menu.setObjectName(f"menu_{title.lower()}")
            self.menus[title] = menu
            if title == "View":
                menu.addActions([dock.toggleViewAction() for dock in self.docks.values()])
            for spec in (spec for spec in ACTIONS if spec.menu == title):
                if spec.separated:
                    menu.addSeparator()
                menu.addAction(self.actions_by_name[spec.name])
                if spec.name == "open_scenario":
                    self._recent = menu.addMenu("Recent")
                    self._demos = menu.addMenu("Demos")
        self._recent.aboutToShow.connect(self._fill_recent)
        self._demos.aboutToShow.connect(self._fill_demos)

    def _connect(self) -> None:
        session, bar, stack = self.session, self.transport, self.session.undo_stack
        session.view_changed.connect(self._show_view)
        session.trace_changed.connect(self._show_trace)
        session.refused.connect(self.show_error)
        session.fell_back.connect(self.say)
        session.playing_changed.connect(self._show_playing)
        session.settings_changed.connect(self._show_pace)
        session.file_changed.connect(self._show_title)
        session.working.connect(self._show_working)
        self.header.algorithm_chosen.connect(self._choose_algorithm)
        self.header.scenario_asked.connect(self.docks["scenario"].show)
        self.board.tile_chosen.connect(session.go_to_tile)
        self.board.row_chosen.connect(session.choose_row)
        bar.cursor_chosen.connect(session.go)
        bar.step_asked.connect(session.step)
        bar.first_asked.connect(session.first)
        bar.last_asked.connect(session.last)
        bar.play_toggled.connect(session.play)
        bar.granularity_chosen.connect(session.set_granularity)
        bar.speed_chosen.connect(session.set_speed)
        for name, able in (("undo", stack.canUndoChanged), ("redo", stack.canRedoChanged)):
            self.actions_by_name[name].setEnabled(False)
            able.connect(self.actions_by_name[name].setEnabled)
        stack.undoTextChanged.connect(self._name_undo)
        stack.redoTextChanged.connect(self._name_redo)

    def _restore(self) -> None:
        self.actions_by_name["set_motion"].setChecked(self.settings.motion)
        self.set_motion(self.settings.motion)
        saved = self.settings.layout()
        if saved is None or not self.restoreGeometry(saved[0]):
            self.resize(*FIRST_SIZE)
            self.reset_layout()
        else:
            self.restoreState(saved[1])

    # --- showing --------------------------------------------------------------------------

    def _show_view(self, view: View) -> None:
        self.board.show_snapshot(view.snapshot, view.report.row)
        self.transport.show_snapshot(view.snapshot)
        for spec in PANELS:
            widget = self.docks[spec.name].widget()
            if spec.show is not None:
                spec.show(widget, view)

    def _show_trace(self, trace: Trace) -> None:
        if self._fell_back:
            self._fell_back = False  # the demo stands in; the message says for what
        else:
            self._banner.hide()
        self.header.show_trace(trace, self.style_now, self.engine_note(trace))
        self._show_title()

    def engine_note(self, trace: Trace) -> str:
        """Return, in words, what computes and why it is not a GPU."""
        engine = trace.engine
        if engine.name != "numpy":
            return f"Numbers recorded from CUDA kernels: {engine.device}."
        why = f": {self.session.note}" if self.session.note else ""
        return f"Numbers computed with NumPy on the CPU{why}."

    def _show_title(self) -> None:
        scenario = self.session.scenario
        path = self.session.path
        name = (scenario.title if scenario else "") or (path.stem if path else "Untitled")
        trace = self.session.trace
        engine = f" · {engine_words(trace.engine.name, trace.engine.device)}" if trace else ""
        why = f" ({self.session.note})" if engine and self.session.note else ""
        self.setWindowTitle(f"{name}[*] — Tilescope{engine}{why}")
        self.setWindowModified(not self.session.undo_stack.isClean())

    def _show_working(self, busy: bool) -> None:
        self.header.show_busy(busy, self.session.trace)

    def _name_undo(self, text: str) -> None:
        self.actions_by_name["undo"].setText(f"Undo {text}".strip())

    def _name_redo(self, text: str) -> None:
        self.actions_by_name["redo"].setText(f"Redo {text}".strip())

    def _show_playing(self, on: bool) -> None:
        self.transport.set_playing(on)
        action = self.actions_by_name["play"]
        action.setChecked(on)
        action.setText("Pause" if on else "Play")

    def _show_pace(self) -> None:
        self.transport.set_speed(self.session.speed)
        self.transport.set_granularity(self.session.granularity)

    def say(self, line: str) -> None:
        """Show one line above the board, until another scenario is shown."""
        self._banner.setText(line)
        self._banner.show()

    def show_error(self, error: InputError) -> None:
        """Show one line about what cannot be used; everything else stays as it is.

        With nothing on show yet, the demo takes its place.
        """
        self.say(str(error))
        if self.session.trace is None and not self._fell_back:
            self._fell_back = True
            self.session.open(DEMO)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._blank.setGeometry(self.rect())
        self._apply_style()

    def _apply_style(self) -> None:
        """Take theme and text scale; a window larger than 1920×1080 has larger text."""
        room = min(self.width() / 1920, self.height() / 1080)
        scale = self.settings.text_scale * max(1.0, int(room * 4) / 4)
        style = Style(THEMES[self.settings.theme], scale)
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        if style == self.style_now and self._shown is self.centralWidget():
            return
        self.style_now, self._shown = style, self.centralWidget()
        app.setPalette(palette(style.theme))
        app.setFont(style.text_font(13))  # dialogs, menus and tool tips
        self.setFont(style.text_font(13))
        self.setStyleSheet(stylesheet(style))
        for widget in (self.board, self.header, self.transport):
            widget.set_style(style)
        for dock in self.docks.values():
            dock.widget().set_style(style)  # type: ignore[attr-defined]
        for spec in ACTIONS:
            if spec.icon:
                self.actions_by_name[spec.name].setIcon(icon(spec.icon, style.theme.text))
        if self.session.trace is not None:
            trace = self.session.trace
            self.header.show_trace(trace, style, self.engine_note(trace))

    # --- files ----------------------------------------------------------------------------

    def open_scenario(self) -> None:
        """Ask for a file and open it."""
        name, _ = QFileDialog.getOpenFileName(
            self, "Open", "", "Scenarios and tensors (*.toml *.safetensors *.npz)"
        )
        if name:
            self.open_path(Path(name))

    def open_path(self, path: Path) -> None:
        """Open a scenario, or take a tensor file as input of the one on show."""
        try:
            if path.suffix in (".safetensors", ".npz"):
                self._take_tensors(path)
            else:
                self.session.open(path)
                self.settings.add_recent(path)
        except InputError as error:
            self.show_error(error)

    def _take_tensors(self, path: Path) -> None:
        trace = self.session.trace
        if trace is not None:
            values = {"source": "file", "path": str(path.absolute())}
            scenario = with_input(trace.workload.scenario, values, trace.workload)
            self.session.propose(scenario, f"input {path.name}")

    def save_scenario(self) -> None:
        """Save to the scenario's file; ask for one if there is none or it is a shipped one."""
        path = self.session.path
        if path is None or path.is_relative_to(ASSETS):
            self.save_scenario_as()
        else:
            self._save(path)

    def save_scenario_as(self) -> None:
        """Ask for a file and save to it."""
        name, _ = QFileDialog.getSaveFileName(self, "Save", "", "Scenarios (*.toml)")
        if name:
            path = Path(name)
            self._save(path if path.suffix else path.with_suffix(".toml"))

    def _save(self, path: Path) -> None:
        try:
            self.session.save(path)
            self.settings.add_recent(path)
        except InputError as error:
            self.show_error(error)

    def export_picture(self) -> None:
        """Ask for a file and draw the scene into it."""
        view = self.session.view
        if view is None:
            return
        name, _ = QFileDialog.getSaveFileName(self, "Export picture", "", "Pictures (*.png)")
        if not name:
            return
        path = Path(name)
        path = path if path.suffix else path.with_suffix(".png")
        theme = self.style_now.theme
        self.session.background(lambda: save_picture(view, theme, (1920, 1080), path))

    def _fill_recent(self) -> None:
        self._recent.clear()
        for path in self.settings.recent:
            action = self._recent.addAction(str(path))
            action.setEnabled(path.exists())
            action.triggered.connect(lambda _=False, path=path: self.open_path(path))
        if self._recent.isEmpty():
            self._recent.addAction("None yet").setEnabled(False)

    def _fill_demos(self) -> None:
        self._demos.clear()
        for path in sorted(SCENARIOS.glob("*.toml")):
            action = self._demos.addAction(path.stem.replace("-", " ").capitalize())
            action.triggered.connect(lambda _=False, path=path: self.session.open(path))

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        urls = event.mimeData().urls()
        if any(Path(u.toLocalFile()).suffix in (".toml", ".safetensors", ".npz") for u in urls):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        for url in event.mimeData().urls():
            self.open_path(Path(url.toLocalFile()))
        event.acceptProposedAction()

    def _choose_algorithm(self, name: str) -> None:
        scenario = self.session.scenario
        if scenario is not None:
            changed = with_values(scenario, {"attention": {"algorithm": name}})
            self.session.propose(changed, f"algorithm {name}")

    # --- view -----------------------------------------------------------------------------

    def next_theme(self) -> None:
        """Take the next theme."""
        names = list(THEMES)
        self.settings.theme = names[(names.index(self.settings.theme) + 1) % len(names)]
        self._apply_style()

    def change_text(self, by: int) -> None:
        """Take the text scale that many places up or down."""
        place = TEXT_SCALES.index(self.settings.text_scale) + by
        self.settings.text_scale = TEXT_SCALES[min(max(place, 0), len(TEXT_SCALES) - 1)]
        self._apply_style()

    def set_motion(self, on: bool) -> None:
        """Animate moves or not."""
        self.settings.motion = on
        for spec in PANELS:
            widget = self.docks[spec.name].widget()
            if hasattr(widget, "set_motion"):
                widget.set_motion(on)

    def full_screen(self, on: bool) -> None:
        """Fill the screen or not."""
        self.setWindowState(
            self.windowState() | Qt.WindowState.WindowFullScreen
            if on
            else self.windowState() & ~Qt.WindowState.WindowFullScreen
        )

    def present(self, on: bool) -> None:
        """Full screen without menus and without the scenario dock, or back."""
        self.menuBar().setVisible(not on)
        if on:
            self._before_present = self.docks["scenario"].isVisible()
            self.docks["scenario"].hide()
        else:
            self.docks["scenario"].setVisible(getattr(self, "_before_present", False))
        self.actions_by_name["full_screen"].setChecked(on)

    def blank(self, on: bool) -> None:
        """Black out the window, for a word without a picture."""
        self._blank.setVisible(on)
        self._blank.raise_()

    def reset_layout(self) -> None:
        """Put the docks where a new window has them."""
        for spec in PANELS:
            dock = self.docks[spec.name]
            dock.setFloating(False)
            self.addDockWidget(spec.area, dock)
            room = self.width() >= WIDE * self.settings.text_scale
            dock.setVisible(not spec.wide_only or room)
        right = [self.docks[s.name] for s in PANELS if not s.wide_only]
        width = max(380, round(self.width() * 0.34))
        self.resizeDocks(right, [width] * len(right), Qt.Orientation.Horizontal)
        self.resizeDocks(right, [40, 60], Qt.Orientation.Vertical)
        side = round(self.style_now.px(270))
        self.resizeDocks([self.docks["scenario"]], [side], Qt.Orientation.Horizontal)

    # --- help and end ---------------------------------------------------------------------

    def show_keys(self) -> None:
        """List the keys."""
        rows = [(", ".join(spec.keys), spec.text) for spec in ACTIONS if spec.keys]
        rows += [(str(n), spec.title) for n, spec in enumerate(PANELS, start=1)]
        table = "".join(f"<tr><td><b>{k}</b>&nbsp;&nbsp;</td><td>{t}</td></tr>" for k, t in rows)
        self._tell("Keys", f"<table>{table}</table>")

    def about(self) -> None:
        """Say what this is."""
        trace = self.session.trace
        note = self.engine_note(trace) if trace else ""
        self._tell("About Tilescope", f"<b>Tilescope</b><br>Attention, tile by tile.<br>{note}")

    def _tell(self, title: str, text: str) -> None:
        box = QMessageBox(self)
        box.setObjectName("message")
        box.setWindowTitle(title)
        box.setText(text)
        box.open()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() is QEvent.Type.WindowStateChange:
            action = self.actions_by_name["full_screen"]
            QTimer.singleShot(0, lambda: action.setChecked(self.isFullScreen()))

    def _keep_unsaved(self) -> None:
        """Put a scenario that is not saved among the recent files: closing loses nothing."""
        scenario, stack = self.session.scenario, self.session.undo_stack
        if scenario is not None and not stack.isClean():
            path = self.settings.folder / "unsaved.toml"
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                save_scenario(scenario, path)
                self.settings.add_recent(path)
            except (InputError, OSError) as error:
                print(f"unsaved changes are lost: {error}", file=sys.stderr)

    def closeEvent(self, event: QCloseEvent) -> None:
        self._keep_unsaved()
        self.settings.save_layout(self.saveGeometry(), self.saveState())
        self.settings.sync()
        self.session.close()
        super().closeEvent(event)
