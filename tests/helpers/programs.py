"""The whole program in a process of its own, with a few lines of a test in its event loop."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60
"""After which a process is taken for stuck."""

_AROUND = """
import os, signal, sys, threading
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
import ui.app.start, ui.window.autosave, ui.safety.crash
from simulator.problem.scenario import with_values
from ui.app.cli import leave, main
from ui.window.main_window import MainWindow

ui.window.autosave.WAIT_MS = 20
app = ui.app.start.application()
done = set()

def say(*words):  # in one piece: threads of the program speak at the same time
    sys.stdout.write(" ".join(map(str, words)) + "\\n")
    sys.stdout.flush()

def once(name):
    return not (name in done or done.add(name))

def window():
    found = (w for w in QApplication.topLevelWidgets() if isinstance(w, MainWindow))
    return next(found, None)

def box(name):
    return next((w for w in QApplication.topLevelWidgets() if w.objectName() == name), None)

def button(name, text):
    return next(b for b in box(name).findChildren(ui.safety.crash.QPushButton) if b.text() == text)

def change(**attention):
    session = window().session
    session.propose(with_values(session.scenario, {"attention": attention}), "test")

def copies(of):  # of this process alone
    return list((of.settings.folder / "autosave").glob(f"{os.getpid()}-*.toml"))

def look():
    w = window()
    if w is not None and w.session.view is not None:
        act(w)
"""
_AFTER = """
clock = QTimer(app, interval=10)
clock.timeout.connect(look)
clock.start()
leave(main(sys.argv[1:]))
"""


@contextmanager
def started(
    folder: Path,
    act: str,
    *arguments: str,
    setup: str = "",
    environment: dict[str, str] | None = None,
) -> Iterator[subprocess.Popen[str]]:
    """Start the program with its settings in a folder; it is killed in the end if it still runs.

    folder: where the settings lie.
    act: lines that run over and over once a view is there: the window is ``w``.
    *arguments: the command line.
    setup: lines that run before the program does.
    environment: of a screen; without it windows are drawn nowhere.
    """
    body = textwrap.indent(textwrap.dedent(act), "    ")
    script = f"{_AROUND}{textwrap.dedent(setup)}\ndef act(w):\n{body}\n{_AFTER}"
    nowhere = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    kept = {"TILESCOPE_SETTINGS": str(folder / "settings.ini")}
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT, env=(environment or nowhere) | kept, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        patience = threading.Timer(SECONDS, process.kill)
        patience.start()
        try:
            yield process
        finally:
            patience.cancel()
            process.kill()


def run(
    folder: Path, act: str, *arguments: str, setup: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run the program to its end; `act` is to see to that."""
    with started(folder, act, *arguments, setup=setup) as process:
        out, err = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)
