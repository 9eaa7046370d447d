"""Starts Qt: the window, or an application without a display for the commands that draw."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtWidgets import QApplication

from simulator.base.assets import DEMO
from simulator.base.errors import InputError, refuse
from simulator.base.version import version
from simulator.lesson.link import is_link
from ui.safety.collector import collect_here
from ui.safety.crash import CrashDesk
from ui.safety.log import log_start, start_log, stop_log
from ui.safety.overrides import guarded
from ui.safety.settings import Settings
from ui.safety.streams import lack
from ui.session.log_lines import follow
from ui.session.session import Session
from ui.widgets.application import application
from ui.window.autosave import Autosave, offer
from ui.window.cover import show_welcome
from ui.window.main_window import MainWindow


def has_display() -> bool:
    """Return whether a window can be shown; Qt itself would end the process if not."""
    if os.environ.get("QT_QPA_PLATFORM"):
        return True
    if sys.platform.startswith("linux"):
        return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return True


def open_window(
    scenario: str | None, lesson: Path | None, engine: str, present: bool, log: str | None = None
) -> int:
    """Open the window and run until it is closed.

    log: file for a log of all that is done; empty for the usual place. Without it only what goes
        wrong is kept, in the usual place.
    Raises InputError: the log cannot be written, or there is no display.
    """
    if not has_display():
        raise refuse("tilescope", "", "", "a display; `run` and `export` work without one")
    start_log(log)
    log_start(version())
    application()
    crashes = CrashDesk()
    crashes.install()
    try:
        opened = (
            scenario if scenario and is_link(scenario) else Path(scenario) if scenario else lesson
        )
        return _run(crashes, opened, lesson, engine, present)
    finally:
        crashes.uninstall()
        stop_log()


def _run(
    crashes: CrashDesk, opened: Path | str | None, lesson: Path | None, engine: str, present: bool
) -> int:
    try:
        window = make_window(opened, engine)
        autosave = Autosave(window.session, window.settings.folder)
        crashes.window, crashes.session, crashes.autosave = window, window.session, autosave
        window.show()
    except Exception as error:  # there is no window that could show it
        if isinstance(error, InputError) or lack(error):
            raise
        crashes.take(type(error), error, error.__traceback__)
        return QApplication.exec()
    follow(window.session)
    ask_system(window)
    if lesson is not None and opened is not lesson:
        window.session.trace_changed.connect(
            lambda _: window.lessons.open(lesson), Qt.ConnectionType.SingleShotConnection
        )
    if present:
        window.actions_by_name["present"].setChecked(True)
    if os.environ.get("TILESCOPE_TIME_START"):
        _FirstFrame(window)
    QTimer.singleShot(0, lambda: offer(window, autosave))
    code = QApplication.exec()
    # The display may have gone, or the desktop's session: then the next start offers the changes.
    if code or crashes.cut_short or window.unsaved.session_ends:
        autosave.flush()
    else:
        autosave.finish()
    return code


def make_window(
    scenario: Path | str | None, engine: str = "auto", settings: Settings | None = None
) -> MainWindow:
    """Return a window that opens a scenario, or an export's; the window shows mistakes in it.

    scenario: the file, or a link; without one the first page is shown, over the demo.
    Raises InputError: there is no view that the link says.
    """
    collect_here(application())
    session = Session(engine)
    window = MainWindow(session, settings or Settings())
    if isinstance(scenario, str):
        link = window.links.read(scenario)
        # Its panels are arranged once the window is there.
        QTimer.singleShot(0, window, lambda: window.links.show(link, scenario))
        return window
    if scenario is not None and scenario.suffix == ".md":
        window.lessons.open(scenario)
        return window
    window.files.open_first(scenario or DEMO, telling=scenario is None)
    if scenario is None:
        show_welcome(window)
    return window


def ask_system(window: MainWindow) -> None:
    """Let a window move as the system wants it, unless the user has chosen.

    The system is asked beside the window, after what it shows first: it may be slow to answer.
    """

    def ask() -> None:
        from ui.safety.system_motion import system_reduces_motion

        window.session.tasks.start(
            "motion",
            "asking the system whether to move",
            lambda _: system_reduces_motion(),
            window.follow_system,
            aside=True,
        )

    if window.settings.follows_system:
        window.session.view_changed.connect(ask, Qt.ConnectionType.SingleShotConnection)


@guarded
class _FirstFrame(QObject):
    """Prints when a view has been painted, and ends: for the measurement of the start."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        window.session.view_changed.connect(lambda _: window.installEventFilter(self))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.UpdateRequest:  # it paints everything that has changed
            self._window.removeEventFilter(self)
            QTimer.singleShot(0, self._leave)
        return False

    def _leave(self) -> None:
        print("first frame", flush=True)
        self._window.close()
        QApplication.exit(0)
