"""What the File menu does: opening, saving and exporting, with their dialogs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QFileDialog, QMenu

from simulator.assets import ASSETS, SCENARIOS
from simulator.errors import InputError
from simulator.scenario import load_scenario, with_values
from ui.export.metadata import READS as EXPORTS
from ui.export.metadata import read_scenario
from ui.export.picture import WidgetPicture
from ui.panels.scenario_fields import with_input

if TYPE_CHECKING:
    from ui.main_window import MainWindow

READS = (".toml", ".md", ".safetensors", ".npz", *EXPORTS)
"""Endings of files that the window opens; exports name their scenario in their metadata."""


class Files(QObject):
    """Files of a window.

    Parameters
    ----------
    window : MainWindow
        Whose session is read and written.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._session = window.session

    def open_scenario(self) -> None:
        """Ask for a file and open it."""
        endings = " ".join(f"*{ending}" for ending in READS)
        name, _ = QFileDialog.getOpenFileName(
            self._window, "Open", "", f"Scenarios, lessons, tensors, exports ({endings})"
        )
        if name:
            self.open_path(Path(name))

    def open_path(self, path: Path) -> None:
        """Open a lesson, a scenario or that of an export, or take a tensor file as input."""
        try:
            if path.suffix == ".md":
                self._window.lessons.open(path)
            elif path.suffix in (".safetensors", ".npz"):
                self._take_tensors(path)
            else:
                self._open_scenario(path)
                self._window.settings.add_recent(path)
        except InputError as error:
            self._window.show_error(error)

    def _open_scenario(self, path: Path) -> None:
        """Open a scenario or that of an export; a lesson, which would take its place, is left."""
        exported = path.suffix.lower() in EXPORTS
        scenario = read_scenario(path) if exported else load_scenario(path)
        self._window.lessons.player.leave()
        self._session.start(scenario, None if exported else path)

    def _take_tensors(self, path: Path) -> None:
        trace = self._session.trace
        if trace is not None:
            values = {"source": "file", "path": str(path.absolute())}
            scenario = with_input(trace.workload.scenario, values, trace.workload)
            self._session.propose(scenario, f"input {path.name}")

    def save(self) -> None:
        """Save to the scenario's file; ask for one if there is none or it is a shipped one."""
        path = self._session.path
        if path is None or path.is_relative_to(ASSETS):
            self.save_as()
        else:
            self.save_to(path)

    def save_as(self) -> None:
        """Ask for a file and save to it."""
        name, _ = QFileDialog.getSaveFileName(self._window, "Save", "", "Scenarios (*.toml)")
        if name:
            path = Path(name)
            self.save_to(path if path.suffix else path.with_suffix(".toml"))

    def save_to(self, path: Path) -> None:
        """Save to a file."""
        try:
            self._session.save(path)
            self._window.settings.add_recent(path)
        except InputError as error:
            self._window.show_error(error)

    def choose_algorithm(self, name: str) -> None:
        """Propose the same scenario with another algorithm."""
        scenario = self._session.scenario
        if scenario is not None:
            changed = with_values(scenario, {"attention": {"algorithm": name}})
            self._session.propose(changed, f"algorithm {name}")

    # --- pictures -------------------------------------------------------------------------

    def export(self) -> None:
        """Open the dialog that exports pictures and films of the run."""
        from ui.export.dialog import ExportDialog

        if self._session.trace is not None:
            player = self._window.lessons.player
            ExportDialog(self._session, self._window.style_now, self._window, player).open()

    def export_picture(self) -> None:
        """Ask for a file and draw the scene at the cursor, or this layout, into it."""
        endings = "(*.png *.svg *.pdf)"
        kinds = {f"Board, memory and softmax {endings}": "scene"}
        kinds[f"This layout {endings}"] = self._window.desk.current
        path, kind = self._ask_picture("Export picture", ";;".join(kinds))
        if path is not None:
            from ui.export.options import ExportOptions
            from ui.export.window_job import still_options, submit

            theme = self._window.style_now.theme.name
            asked = ExportOptions(str(path), theme=theme, scene=kinds.get(kind, "scene"))
            wanted = still_options(self._session, asked)
            if wanted is not None:
                submit(self._session, wanted, lambda _: None)

    def export_panel(self, name: str) -> None:
        """Ask for a file and draw one panel into it, as it is seen."""
        path, _ = self._ask_picture("Export panel", "Pictures (*.png *.svg)")
        if path is not None:
            try:
                self._panel_picture(name).save(path)
            except InputError as error:
                self._window.show_error(error)

    def copy_panel(self, name: str) -> None:
        """Put one panel, as it is seen, on the clipboard."""
        try:
            self._panel_picture(name).copy()
        except InputError as error:
            self._window.show_error(error)

    def _panel_picture(self, name: str) -> WidgetPicture:
        scenario = self._session.scenario
        faults = scenario.faults if scenario else None
        return WidgetPicture(self._window.docks.panel(name), faults, self._window.style_now)

    def _ask_picture(self, title: str, kinds: str) -> tuple[Path | None, str]:
        """Ask for a picture's file; return it and which of the kinds was chosen."""
        name, kind = QFileDialog.getSaveFileName(self._window, title, "", kinds)
        path = Path(name)
        return (path if path.suffix else path.with_suffix(".png")) if name else None, kind

    # --- menus that are filled as they open -----------------------------------------------

    def add_menus(self, menu: QMenu) -> None:
        """Add the menus of recent files and demos."""
        for title, fill in (("Recent", self._fill_recent), ("Demos", self._fill_demos)):
            inner = menu.addMenu(title)
            inner.aboutToShow.connect(lambda inner=inner, fill=fill: fill(inner))

    def add_panel_menu(self, menu: QMenu) -> None:
        """Add the menus that export or copy a panel in sight."""
        for title, act in (("Export panel", self.export_panel), ("Copy panel", self.copy_panel)):
            inner = menu.addMenu(title)
            inner.aboutToShow.connect(lambda inner=inner, act=act: self._fill_panels(inner, act))

    def _fill_recent(self, menu: QMenu) -> None:
        menu.clear()
        for path in self._window.settings.recent:
            action = menu.addAction(str(path))
            action.setEnabled(path.exists())
            action.triggered.connect(lambda _=False, path=path: self.open_path(path))
        if menu.isEmpty():
            menu.addAction("None yet").setEnabled(False)

    def _fill_demos(self, menu: QMenu) -> None:
        menu.clear()
        for path in sorted(SCENARIOS.glob("*.toml")):
            action = menu.addAction(path.stem.replace("-", " ").capitalize())
            action.triggered.connect(lambda _=False, path=path: self._open_demo(path))

    def _open_demo(self, path: Path) -> None:
        try:
            self._open_scenario(path)
        except InputError as error:
            self._window.show_error(error)

    def _fill_panels(self, menu: QMenu, act: Callable[[str], None]) -> None:
        menu.clear()
        for spec, dock in self._window.docks:
            if dock.isVisible():
                action = menu.addAction(spec.title)
                action.triggered.connect(lambda _=False, name=spec.name: act(name))
