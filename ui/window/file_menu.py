"""The actions of the File menu: opening, saving and exporting, with their dialogs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QMenu

from simulator.base.assets import ASSETS, SCENARIOS
from simulator.base.errors import InputError, safe_text
from simulator.problem.input_files import InputFile, read_header
from simulator.problem.scenario import (
    Scenario,
    load_scenario,
    parse_scenario,
    scenario_tables,
    with_values,
)
from simulator.problem.tiling import seen_size
from simulator.program.algorithms import ALGORITHMS
from ui.export.writers.metadata import READS as EXPORTS
from ui.export.writers.metadata import read_scenario
from ui.look.units import count_text
from ui.panels.scenario.fields import with_input
from ui.widgets.message_bar import MessageKind
from ui.widgets.replace import ask_replace

if TYPE_CHECKING:
    from ui.export.picture import WidgetPicture
    from ui.panels.schedule.study import SchedulePanel
    from ui.window.main_window import MainWindow

READS = (".toml", ".md", ".safetensors", ".npz", *EXPORTS)
"""Endings of files that the window opens; exports name their scenario in their metadata."""

_OF_LAYERS = ("mask", "scores", "position")
"""Tables of a scenario that also hold settings of a layer."""
_TRACES = "Traces of Chrome and Perfetto (*.json)"

DEMOS = {
    **{name: algorithm.title for name, algorithm in ALGORITHMS.items()},
    "causal": "Causal mask",
    "window-sinks": "Sliding window and sinks",
    "grouped-heads": "Grouped heads (GQA)",
    "multi-query": "One KV head (MQA)",
    "kv-cache": "Decoding with a KV cache",
    "batch": "A batch in the pages of one cache",
    "inspector": "Twelve heads of a real layer",
    "large-logits": "Scores that would overflow",
    "translation": "Cross attention: words of two texts",
    "rescale-threshold": "Rescales that are skipped",
    "layer": "The whole layer, from X to Y",
    "induction-by-hand": "Induction, by hand",
    "induction-early": "A small transformer, early in training",
    "induction": "The same, trained: an induction head",
    "real-scale": "131\u2009072 tokens",
}
"""The names of the demos in the menu, in order: a demo of each algorithm, then other topics."""


def demo_paths() -> list[Path]:
    """Return the files of the demos, in the order of the menu."""
    found = {path.stem: path for path in sorted(SCENARIOS.glob("*.toml"))}
    names = [*(name for name in DEMOS if name in found), *(found.keys() - DEMOS.keys())]
    return [found[name] for name in names]


def demo_title(path: Path) -> str:
    """Return a demo's name in the menu."""
    return DEMOS.get(path.stem, path.stem)


class Files(QObject):
    """Files of a window."""

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
            self.open_by_hand(Path(name))

    def open_by_hand(self, path: Path) -> None:
        """Open a file as `open_path` does, after asking about changes that it replaces."""
        if path.suffix.lower() in (".md", ".safetensors", ".npz"):  # these replace no scenario
            self.open_path(path)
            return
        # The file is read before asking, because the answer may write to this very file.
        self._read(
            path, lambda *read: self._window.unsaved.before(partial(self._start, path, *read), path)
        )

    def open_path(self, path: Path) -> None:
        """Open a lesson, a scenario or the scenario of an export, or use a tensor file as input."""
        if path.suffix.lower() == ".md":
            self._window.lessons.open(path)
        elif path.suffix.lower() in (".safetensors", ".npz"):
            self._take_tensors(path)
        else:
            self._read(path, partial(self._start, path))

    def open_first(self, path: Path, *, telling: bool = False) -> None:
        """Open the scenario that a window starts with, or the scenario of an export.

        telling: whether the `telling_row` is explained at first.
        """
        self._read(path, partial(self._session.start, telling=telling))

    def _read(self, path: Path, done: Callable[[Scenario, Path | None], object]) -> None:
        """Read a scenario, or an export's scenario, beside the window unless the file is ours.

        `done` gets the scenario, and the file to save it to, which is None for an export.
        """
        exported = path.suffix.lower() in EXPORTS
        self._session.reading.read(
            path,
            read_scenario if exported else load_scenario,
            lambda found: done(found, None if exported else path),
            self._window.show_error,
            beside=not path.is_relative_to(SCENARIOS),
        )

    def _start(self, path: Path, scenario: Scenario, file: Path | None) -> None:
        """Show the scenario of a file; a lesson that is shown is left."""
        self._window.lessons.player.leave()
        self._session.start(scenario, file, telling=True)
        if not path.is_relative_to(SCENARIOS):
            self._window.settings.add_recent(path)

    def _take_tensors(self, path: Path) -> None:
        """Use a tensor file as input, in tiles that are small enough to watch.

        A file of a model's layer has its own mask, scores and positions.
        """
        trace = self._session.trace
        if trace is None:
            return
        values = {"source": "file", "path": str(path.absolute())}
        workload = trace.workload
        scenario = with_input(workload.scenario, values, workload)

        def take(header: InputFile) -> None:
            changed = scenario
            if header.said.model:
                said = scenario_tables(changed).items()
                changed = parse_scenario({k: v for k, v in said if k not in _OF_LAYERS})
            queries, keys = header.q.shape[1], header.k.shape[1]
            rows, cols = seen_size(workload.rows, queries), seen_size(workload.cols, keys)
            if scenario.tiling.page_size or scenario.tiling.split_size:  # whole pages, whole tiles
                cols = workload.cols
            if (rows, cols) != (workload.rows, workload.cols):
                tiling = {"rows": rows, "cols": cols, "rule": None}
                changed = with_values(changed, {"tiling": tiling})
            propose(changed)

        def propose(changed: Scenario) -> None:
            self._session.propose(changed, f"input {safe_text(path.name)}")

        # Without a header the run is refused, or has other tensors.
        self._session.reading.read(path, read_header, take, lambda _: propose(scenario))

    def save(self) -> None:
        """Save to the scenario's file; ask for a file if there is none or if it is ours."""
        path = self._session.path
        if path is None or path.is_relative_to(ASSETS):
            self.save_as()
        else:
            self.save_to(path)

    def save_as(self) -> None:
        """Ask for a file and save to it; if the file is not the user's, propose the home folder."""
        path = self._session.path
        if path is None or path.is_relative_to(ASSETS):
            path = Path.home() / f"{path.stem if path else 'scenario'}.toml"
        name, _ = QFileDialog.getSaveFileName(self._window, "Save", str(path), "Scenarios (*.toml)")
        if name:
            self._write(name, ".toml", self.save_to)

    def save_to(self, path: Path) -> None:
        """Save to a file."""
        try:
            self._session.save(path)
            self._window.settings.add_recent(path)
        except InputError as error:
            self._window.show_error(error, MessageKind.FAILURE)

    # --- schedules ------------------------------------------------------------------------

    def export_schedule(self) -> None:
        """Ask for a file and write the schedule that is shown as a trace."""
        panel = self._schedule()
        name, _ = QFileDialog.getSaveFileName(self._window, "Export schedule", "", _TRACES)
        if name:
            self._write(name, ".json", lambda path: panel.write(path, self._window.show_error))

    def open_trace(self) -> None:
        """Ask for a trace and set it beside the schedule."""
        from ui.panels.schedule.study import LOGS

        panel = self._schedule()
        kinds = f"Traces and logs (*.json {' '.join(f'*{each}' for each in LOGS)})"
        name, _ = QFileDialog.getOpenFileName(self._window, "Open trace", "", kinds)
        if name:
            panel.open(Path(name), self._window.show_error)

    def _schedule(self) -> SchedulePanel:
        from ui.panels.schedule.study import SchedulePanel

        self._window.docks.open("schedule")
        return self._window.docks.panel(SchedulePanel)

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

        def draw(path: Path, kind: str) -> None:
            from ui.export.options import ExportOptions
            from ui.export.window_job import still_options, submit

            theme = self._window.style_now.theme.name
            asked = ExportOptions(str(path), theme=theme, scene=kinds.get(kind, "scene"))
            wanted = still_options(self._session, asked)
            if wanted is not None:
                submit(self._session, wanted, lambda _: None)

        self._ask_picture("Export picture", ";;".join(kinds), draw)

    def export_panel(self, name: str) -> None:
        """Ask for a file and draw one panel into it, as it is on the screen."""

        def draw(path: Path, kind: str) -> None:
            try:
                self._panel_picture(name).save(path)
            except InputError as error:
                self._window.show_error(error)

        self._ask_picture("Export panel", "Pictures (*.png *.svg)", draw)

    def copy_panel(self, name: str) -> None:
        """Copy one panel, as it is on the screen, to the clipboard."""
        tasks = self._session.tasks
        try:
            self._panel_picture(name).copy(
                lambda make, done: tasks.start(
                    "copy", "copying", lambda report: make(), done, aside=True
                )
            )
        except InputError as error:
            self._window.show_error(error)

    def copy_run(self) -> None:
        """Copy a script of the run to the clipboard; the script checks the explained row."""
        from simulator.code.run_script import run_script

        trace, view = self._session.trace, self._session.view
        if trace is None or view is None or view.snapshot.program is not trace.program:
            return
        head, row = view.snapshot.visit.head, view.report.row

        def done(text: str) -> None:
            QGuiApplication.clipboard().setText(text)
            lines = count_text(text.count("\n"))
            self._window.messages.say(
                f"Copied: {lines} lines of NumPy that compute O of this run and check "
                f"{trace.workload.row_name(head, row)} of head {trace.workload.head_name(head)}."
            )

        self._session.tasks.start(
            "copy run", "writing the script", lambda report: run_script(trace, head, row), done,
            aside=True,
        )  # fmt: skip

    def _panel_picture(self, name: str) -> WidgetPicture:
        from ui.export.picture import WidgetPicture

        panel = self._window.docks.panel(name)
        return WidgetPicture(panel, self._session.scenario, self._window.style_now)

    def _ask_picture(self, title: str, kinds: str, draw: Callable[[Path, str], None]) -> None:
        """Ask for a picture's file; call `draw` with the file and the kind that was chosen."""
        name, kind = QFileDialog.getSaveFileName(self._window, title, "", kinds)
        if name:
            self._write(name, ".png", lambda path: draw(path, kind))

    def _write(self, name: str, ending: str, act: Callable[[Path], None]) -> None:
        """Write a chosen file; ask first if an ending was added and the file exists."""
        path = Path(name)
        whole = path if path.suffix else path.with_suffix(ending)
        there = [whole] if whole != path and whole.exists() else []
        ask_replace(self._window, there, lambda: act(whole))

    # --- menus that are filled as they open -----------------------------------------------

    def add_menus(self, menu: QMenu) -> None:
        """Add the menus of recent files and demos."""
        for title, fill in (("Recent", self._fill_recent), ("Demos", self._fill_demos)):
            inner = menu.addMenu(title)
            inner.aboutToShow.connect(lambda inner=inner, fill=fill: fill(inner))

    def add_panel_menu(self, menu: QMenu) -> None:
        """Add the menus that export or copy a visible panel."""
        for title, act in (("Export panel", self.export_panel), ("Copy panel", self.copy_panel)):
            inner = menu.addMenu(title)
            inner.aboutToShow.connect(lambda inner=inner, act=act: self._fill_panels(inner, act))

    def _fill_recent(self, menu: QMenu) -> None:
        menu.clear()
        for name in self._window.settings.recent_names:
            path = Path(name)
            link = self._window.links.title(name)
            action = menu.addAction(safe_text(link or name).replace("&", "&&"))
            action.setEnabled(bool(link) or path.exists())
            if link:
                action.triggered.connect(lambda _=False, text=name: self._window.links.open(text))
            else:
                action.triggered.connect(lambda _=False, path=path: self.open_by_hand(path))
        if menu.isEmpty():
            menu.addAction("None yet").setEnabled(False)

    def _fill_demos(self, menu: QMenu) -> None:
        menu.clear()
        for path in demo_paths():
            action = menu.addAction(demo_title(path))
            action.triggered.connect(lambda _=False, path=path: self.open_by_hand(path))

    def _fill_panels(self, menu: QMenu, act: Callable[[str], None]) -> None:
        menu.clear()
        for spec, dock in self._window.docks:
            if dock.isVisible():
                action = menu.addAction(spec.title)
                action.triggered.connect(lambda _=False, name=spec.name: act(name))
