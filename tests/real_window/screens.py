"""Screens of their own to open windows on: an X server with a window manager, or Wayland."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ui.safety.system_libraries import advice, missing_libraries

KEYS_OF_OPENBOX = Path(__file__).with_name("openbox.xml")
PATIENCE = 60.0
"""Seconds that a server may take to start."""


def why_no_screen(platform: str, *programs: str) -> str:
    """Return why no window can be opened on a screen of our own; empty where it can."""
    if not sys.platform.startswith("linux"):
        return "screens of our own are for Linux"
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        return f"not installed, and `make test` could not install it: {', '.join(missing)}"
    return advice(missing_libraries([platform]))


WHY_NO_X = why_no_screen("xcb", "Xvfb", "openbox", "xdotool")
WHY_NO_WAYLAND = why_no_screen("wayland", "weston")


def surroundings(folder: Path, **more: str) -> dict[str, str]:
    """Return the environment of a program that shares neither screen nor files with anybody."""
    ours = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM", "XAUTHORITY", "XDG_SESSION_TYPE")
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    runtime = folder / "runtime"
    runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in ("config", "cache", "data"):
        kept[f"XDG_{name.upper()}_HOME"] = str(folder / name)
    return {**kept, "XDG_RUNTIME_DIR": str(runtime), **more}


@contextmanager
def x_screen(folder: Path, size: str = "1920x1080") -> Iterator[dict[str, str]]:
    """Start an X server and a window manager; yield the environment of what is to be seen on it."""
    environment = surroundings(folder)
    told, tell = os.pipe()
    words = ("Xvfb", "-displayfd", str(tell), "-screen", "0", f"{size}x24", "-nolisten", "tcp",
             "-noreset")  # fmt: skip
    with os.fdopen(told) as answer, _server(folder, environment, *words, pass_fds=[tell]) as log:
        os.close(tell)
        number = answer.readline().strip()
        if not number:
            raise OSError(f"Xvfb does not start: {log.read_text('utf-8', 'replace')}")
        environment |= {"DISPLAY": f":{number}", "QT_QPA_PLATFORM": "xcb"}
        up = folder / "up"
        words = ("openbox", "--config-file", str(KEYS_OF_OPENBOX), "--startup", f"touch {up}")
        with _server(folder, environment, *words) as log:
            _await(up, log)
            yield environment


@contextmanager
def wayland_screen(folder: Path) -> Iterator[dict[str, str]]:
    """Start Weston without a monitor; yield the environment of what is to be seen on it."""
    environment = surroundings(folder)
    words = ("weston", "--backend=headless-backend.so", "--socket=tilescope", "--no-config",
             "--width=1920", "--height=1080", "--idle-time=0")  # fmt: skip
    with _server(folder, environment, *words) as log:
        _await(Path(environment["XDG_RUNTIME_DIR"]) / "tilescope", log)
        yield environment | {"WAYLAND_DISPLAY": "tilescope", "QT_QPA_PLATFORM": "wayland"}


@contextmanager
def _server(
    folder: Path, environment: dict[str, str], *words: str, pass_fds: Sequence[int] = ()
) -> Iterator[Path]:
    """Run a server until the end of the block; yield the file with what it says."""
    log = folder / f"{words[0]}.log"
    with (
        log.open("w", encoding="utf-8") as said,
        subprocess.Popen(
            words, env=environment, pass_fds=pass_fds,
            stdin=subprocess.DEVNULL, stdout=said, stderr=said,
        ) as process,
    ):  # fmt: skip
        try:
            yield log
        finally:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()


def _await(sign: Path, log: Path) -> None:
    """Wait for a file that says that a server has started."""
    deadline = time.monotonic() + PATIENCE
    while not sign.exists():
        if time.monotonic() > deadline:
            raise OSError(f"{log.stem} does not start: {log.read_text('utf-8', 'replace')}")
        time.sleep(0.02)
