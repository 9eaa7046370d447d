"""Starts Qt: the window for people, an offscreen application for the commands that draw."""

from __future__ import annotations

import os
import sys
import traceback
from functools import partial
from pathlib import Path
from types import TracebackType

from PySide6.QtCore import QTimer, qInstallMessageHandler
from PySide6.QtWidgets import QApplication

from simulator.assets import DEMO
from simulator.errors import InputError
from ui.cli import version
from ui.collector import collect_here
from ui.export.metadata import READS as EXPORTS
from ui.export.metadata import read_scenario
from ui.main_window import MainWindow
from ui.session import Session
from ui.settings import Settings
from ui.theme import load_fonts


def application() -> QApplication:
    """Return the Qt application, made now if there is none: Fusion, own fonts."""
    existing = QApplication.instance()
    if isinstance(existing, QApplication):
        load_fonts()
        return existing
    app = QApplication(sys.argv[:1])
    app.setApplicationName("Tilescope")
    app.setApplicationVersion(version())
    app.setStyle("Fusion")
    load_fonts()
    return app


def has_display() -> bool:
    """Return whether a window can be shown: asked before Qt is, which would abort."""
    if os.environ.get("QT_QPA_PLATFORM"):
        return True
    if sys.platform.startswith("linux"):
        return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return True


def open_window(scenario: str | None, engine: str, present: bool) -> int:
    """Open the window and run until it is closed.

    Parameters
    ----------
    scenario : str or None
        Scenario file; the demo without one.
    engine : str
        What computes.
    present : bool
        Whether to start in full screen.

    Raises
    ------
    InputError
        The scenario file cannot be read, or there is no display.
    """
    if not has_display():
        from simulator.errors import refuse

        raise refuse("tilescope", "", "", "a display; `run` and `export` work without one")
    qInstallMessageHandler(quiet)
    app = application()
    window = make_window(Path(scenario) if scenario else DEMO, engine)
    sys.excepthook = partial(_tell_fault, window)
    window.show()
    if present:
        window.actions_by_name["present"].setChecked(True)
    if os.environ.get("TILESCOPE_TIME_START"):
        _report_start(window)
    return app.exec()


def make_window(
    scenario: Path, engine: str = "auto", settings: Settings | None = None
) -> MainWindow:
    """Return a window that opens a scenario, or an export's; mistakes are told in the window."""
    collect_here(application())
    session = Session(engine)
    window = MainWindow(session, settings or Settings())
    try:
        if scenario.suffix.lower() in EXPORTS:
            session.start(read_scenario(scenario), None)
        else:
            session.open(scenario)
    except InputError as error:
        window.show_error(error)
    return window


def _report_start(window: MainWindow) -> None:
    """Leave at the first painted view, for the measurement of the start."""

    def leave() -> None:
        print("first frame", flush=True)
        window.close()
        QApplication.exit(0)

    window.session.view_changed.connect(lambda _: QTimer.singleShot(0, leave))


def _tell_fault(
    window: MainWindow,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
) -> None:
    """Write a fault of ours to a file and say one line in the window; it goes on."""
    if issubclass(kind, KeyboardInterrupt):
        window.close()
        return
    report = window.settings.folder / "fault.txt"
    try:
        report.parent.mkdir(parents=True, exist_ok=True)
        lines = traceback.format_exception(kind, error, trace)
        report.write_text(f"Tilescope {version()}\n{''.join(lines)}", encoding="utf-8")
        place = f"a report is in {report}"
    except OSError:
        place = "no report could be written"
    window.say(f"Something went wrong inside Tilescope ({kind.__name__}); {place}.")


def quiet(kind: object, context: object, message: str) -> None:
    """Drop Qt's own remarks: the user can do nothing about them."""
    if os.environ.get("TILESCOPE_QT_LOG"):
        print(message, file=sys.stderr)
