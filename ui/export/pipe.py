"""An export in a second process: the reports of this process, and the waiting of the first.

Widgets are painted in the GUI thread, so the window could not be used in the meantime.
"""

from __future__ import annotations

import os
import queue
import secrets
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from simulator.base.errors import InputError, Mistake
from simulator.problem.scenario import Scenario, scenario_toml
from ui.safety.program import started_again

if TYPE_CHECKING:
    from ui.export.options import ExportOptions
    from ui.session.tasks import Report

_SHARE, _MADE = "share ", "made "
_TELL_EVERY = 0.05
_LOOK = 0.03  # seconds between two checks whether the export is still wanted


# --- in the process that makes it ----------------------------------------------------------------


class _Teller:
    """Reports shares, but not too often."""

    def __init__(self) -> None:
        self._told = 0.0

    def __call__(self, share: float) -> None:
        now = time.monotonic()
        if share >= 1 or now - self._told > _TELL_EVERY:
            self._told = now
            print(f"{_SHARE}{share:.6f}", flush=True)


tell_share = _Teller()


def tell_made(words: str) -> None:
    """Report the file that has been made."""
    print(f"{_MADE}{words}", flush=True)


# --- in the process that waits -------------------------------------------------------------------


class ChildError(InputError):
    """The line of an export that failed."""

    def __init__(self, line: str) -> None:
        super().__init__("export", [Mistake("", "", line)])
        self._line = line

    def __str__(self) -> str:
        return self._line


def make_beside(
    options: ExportOptions, source: Scenario | Path, named: str, engine: str, report: Report
) -> str:
    """Make an export in another process.

    source: the current scenario, saved or not, or the file of a lesson.
    report: called with the share done; an error in it ends the process, and the target stays as
        it was.
    """
    options = replace(options, token=secrets.token_hex(4))
    with tempfile.TemporaryDirectory(prefix="tilescope-") as folder:
        file = source
        if isinstance(source, Scenario):
            file = Path(folder) / "scenario.toml"
            file.write_text(scenario_toml(source), encoding="utf-8")
        words = [*options.words(str(file)), "--engine", engine, "--named", named]
        return _run([*words, "--token", options.token, "--shares"], options, report)


def _run(words: Sequence[str], options: ExportOptions, report: Report) -> str:
    program, folder = started_again()
    process = subprocess.Popen(
        [*program, *words],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, encoding="utf-8",
        cwd=folder,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen", "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    lines: queue.Queue[str] = queue.Queue()
    said: list[str] = []
    threads = [
        threading.Thread(target=_read, args=(process.stdout, lines.put), daemon=True),
        threading.Thread(target=_read, args=(process.stderr, said.append), daemon=True),
    ]
    for thread in threads:
        thread.start()
    made, share = "", 0.0
    try:
        while threads[0].is_alive() or not lines.empty():
            with suppress(queue.Empty):
                line = lines.get(timeout=_LOOK)
                if line.startswith(_SHARE):
                    share = float(line.removeprefix(_SHARE))
                elif line.startswith(_MADE):
                    made = line.removeprefix(_MADE).rstrip("\n")
            report(share)
        process.wait()
    except BaseException:
        process.kill()
        process.wait()
        _remove_parts(options)
        raise
    for thread in threads:
        thread.join()
    if process.returncode or not made:
        _remove_parts(options)
        last = said[-1].strip() if said else f"it ended with status {process.returncode}"
        raise ChildError(last)
    return made


def _read(pipe: IO[str] | None, take: Callable[[str], None]) -> None:
    assert pipe is not None
    with pipe:
        for line in pipe:
            take(line)


def _remove_parts(options: ExportOptions) -> None:
    """Remove the files that an ended process was writing."""
    from ui.export.job import parts_of

    for part in parts_of(options):
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            with suppress(OSError):
                part.unlink(missing_ok=True)
