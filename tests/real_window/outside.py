"""Processes of the program, driven from outside by nothing but keys."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.real_window.cases import Life
from tests.real_window.keys import x_keys

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120.0
"""Seconds that a window may take to appear, or to go."""


def _tool(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        ["xdotool", *arguments], env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout


def how_it_ended(code: int) -> str:
    """Return in words how a process ended."""
    return signal.strsignal(-code) or f"signal {-code}" if code < 0 else f"exit status {code}"


def live(life: Life, environment: dict[str, str], folder: Path) -> list[str]:
    """Start the program, press keys, quit; return what went wrong."""
    arguments, keys = life
    environment = environment | {"TILESCOPE_SETTINGS": str(folder / "settings.ini")}
    with subprocess.Popen(
        [sys.executable, "-m", "ui", *arguments], cwd=ROOT, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        deadline = time.monotonic() + PATIENCE
        active = ("getactivewindow", "getwindowname")
        # The engine stands in the title as soon as a run is on show.
        while process.poll() is None and "Tilescope · " not in _tool(environment, *active):
            if time.monotonic() > deadline:
                process.kill()
                return ["no active window shows a run", process.communicate()[0]]
            time.sleep(0.05)
        for key in (*keys, "Ctrl+Q"):
            _tool(environment, "key", x_keys(key))
            time.sleep(0.3)
        try:
            said, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            return ["Ctrl+Q has not ended it", process.communicate()[0]]
    told = [said] if said else []
    if process.returncode:
        told.append(how_it_ended(process.returncode))
    return told
