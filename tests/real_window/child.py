"""A process that opens windows one after another: told cases on stdin, it answers how each went.

`python -m tests.real_window.child x|wayland` is started by `crew`.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEvent, QTimer
from PySide6.QtWidgets import QApplication

from tests.real_window.cases import Case
from tests.real_window.hand import SCRIPTS, Fault, Hand, HandWithoutKeys, Script, ways_of
from tests.real_window.newcomer import first_minutes
from ui.app.cli import main
from ui.widgets.application import application
from ui.window.main_window import MainWindow

STUCK = 120
"""Seconds after which a case is taken for stuck, and its process ends."""
TICK = 4
"""Milliseconds between two turns of a script."""
_SCRIPTS = {**SCRIPTS, "newcomer": first_minutes}
_DEPTH = 128
"""Functions of a native stack that are told at most."""


@ctypes.CFUNCTYPE(None, ctypes.c_int)
def _native_stack(number: int) -> None:
    """Tell the functions that were at work, then let the signal end the process."""
    libc = ctypes.CDLL(None)
    frames = (ctypes.c_void_p * _DEPTH)()
    libc.backtrace_symbols_fd(frames, libc.backtrace(frames, _DEPTH), 2)
    libc.signal(number, None)  # the instruction is tried again, and nobody catches it


def tell_native_stacks() -> None:
    """Let a crash tell Qt's functions on stderr, of which Python's traceback says nothing.

    `faulthandler` writes its own first and then calls the handler that was there before it.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "backtrace_symbols_fd"):
        libc.backtrace((ctypes.c_void_p * 1)(), 1)  # loads what a handler must not load
        for number in (signal.SIGSEGV, signal.SIGFPE, signal.SIGABRT, signal.SIGBUS):
            libc.signal(number, _native_stack)


class Player:
    """Runs a script in the program's event loop."""

    def __init__(self, script: Script) -> None:
        self.fault = ""
        self.over = False
        self._script = script
        self._clock = QTimer(interval=TICK)
        self._clock.timeout.connect(self._turn)
        self._clock.start()

    def _turn(self) -> None:
        if self.over:
            return
        try:
            next(self._script)
        except StopIteration:
            self._end()
        except Fault as fault:
            self._end(str(fault))
        except BaseException:
            self._end(traceback.format_exc())

    def finish(self) -> None:
        """Take the turns that are left after the program has ended."""
        deadline = time.monotonic() + 2
        while not self.over and time.monotonic() < deadline:
            self._turn()
            time.sleep(0.001)

    def _end(self, fault: str = "") -> None:
        self.fault, self.over = fault, True
        self._clock.stop()
        if fault:
            QApplication.exit(3)


def play(case: Case, folder: Path, hand: Hand) -> list[str]:
    """Try a case and return what went wrong."""
    faults = []
    lives = ways_of(hand) if case.script == "sequence" else [case.arguments]
    for arguments in lives:
        typed = [word.format(folder=folder) for word in arguments]
        hand.done.append(f"[ui {' '.join(typed)}]")
        player = Player(_SCRIPTS[case.script](hand, case))
        code = main(typed)
        player.finish()
        faulthandler.enable()  # the program's log is closed by now
        if player.fault:
            faults.append(player.fault)
        elif not player.over:
            faults.append("the program ended by itself")
        if code and not player.fault:
            faults.append(f"exit status {code}")
        # The program ends with its window; here the next one comes, and this one would stay.
        for widget in QApplication.topLevelWidgets():
            if isinstance(widget, MainWindow):
                widget.deleteLater()
        gc.collect()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        QCoreApplication.processEvents()
        if faults:
            break
    log = folder / "tilescope.log"
    if log.exists():
        faults += [line for line in log.read_text("utf-8").splitlines() if " ERROR " in line]
    return faults


def serve(kind: str) -> None:
    """Try what is told on stdin, a line each."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever is printed counts as a fault
    tell_native_stacks()
    application()
    gc.freeze()  # modules are not looked through after each window
    for line in sys.stdin:
        asked = json.loads(line)
        case, folder = Case(**asked["case"]), Path(asked["folder"])
        os.environ["TILESCOPE_SETTINGS"] = str(folder / "settings.ini")
        faulthandler.dump_traceback_later(STUCK, exit=True)
        hand = (HandWithoutKeys if kind == "wayland" else Hand)(case.seed)
        faults = play(case, folder, hand)
        faulthandler.cancel_dump_traceback_later()
        print(json.dumps({"faults": faults, "done": hand.done}), file=answers, flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
