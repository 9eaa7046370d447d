"""What the File menu does: opening, saving and exporting, with their dialogs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QFileDialog, QMenu

from simulator.assets import ASSETS, SCENARIOS
from simulator.errors import InputError
from simulator.scenario import with_values
from ui.export.picture import save_picture, save_widget
from ui.panels.scenario_fields import with_input

if TYPE_CHECKING:
    from ui.main_window import MainWindow

READS = (".toml", ".safetensors", ".npz")
"""Endings of files that the window opens."""


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
            self._window, "Open", "", f"Scenarios and tensors ({endings})"
        )
        if name:
            self.open_path(Path(name))

    def open_path(self, path: Path) -> None:
        """Open a scenario, or take a tensor file as input of the one on show."""
        try:
            if path.suffix in (".safetensors", ".npz"):
                self._take_tensors(path)
            else:
                self._session.open(path)
                self._window.settings.add_recent(path)
        except InputError as error:
            self._window.show_error(error)

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

    def export_picture(self) -> None:
        """Ask for a file and draw the scene into it."""
        view = self._session.view
        path = self._ask_picture("Export picture", "Pictures (*.png)")
        if view is None or path is None:
            return
        theme = self._window.style_now.theme
        self._session.background(
            "drawing", lambda report: save_picture(view, theme, (1920, 1080), path)
        )

    def export_panel(self, name: str) -> None:
        """Ask for a file and draw one panel into it, as it is seen."""
        path = self._ask_picture("Export panel", "Pictures (*.png *.svg)")
        if path is not None:
            try:
                save_widget(self._window.docks.panel(name), path)
            except InputError as error:
                self._window.show_error(error)

    def _ask_picture(self, title: str, kinds: str) -> Path | None:
        name, _ = QFileDialog.getSaveFileName(self._window, title, "", kinds)
        path = Path(name)
        return None if not name else path if path.suffix else path.with_suffix(".png")

    # --- menus that are filled as they open -----------------------------------------------

    def add_menus(self, menu: QMenu) -> None:
        """Add the menus of recent files and demos."""
        for title, fill in (("Recent", self._fill_recent), ("Demos", self._fill_demos)):
            inner = menu.addMenu(title)
            inner.aboutToShow.connect(lambda inner=inner, fill=fill: fill(inner))

    def add_panel_menu(self, menu: QMenu) -> None:
        """Add the menu that exports a panel in sight."""
        inner = menu.addMenu("Export panel")
        inner.aboutToShow.connect(lambda: self._fill_panels(inner))

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
            action.triggered.connect(lambda _=False, path=path: self._session.open(path))

    def _fill_panels(self, menu: QMenu) -> None:
        menu.clear()
        for spec, dock in self._window.docks:
            if dock.isVisible():
                action = menu.addAction(f"{spec.title}…")
                action.triggered.connect(lambda _=False, name=spec.name: self.export_panel(name))
