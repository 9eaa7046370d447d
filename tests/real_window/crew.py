"""Tries many cases in several processes at once, each on a screen of its own.

A process that crashes is a fault of the case at hand; another one goes on with the next.
"""

from __future__ import annotations

import json
import queue
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict
from pathlib import Path

from tests.real_window.cases import LIVES, Case
from tests.real_window.outside import how_it_ended, live

ROOT = Path(__file__).resolve().parents[2]
_LINES = 30
"""Of a crash's traceback that are told."""

Screen = Callable[[Path], AbstractContextManager[dict[str, str]]]


class Worker:
    """One process on one screen.

    kind: "x" or "wayland".
    environment: of the screen.
    folder: where it keeps what it needs.
    """

    def __init__(self, kind: str, environment: dict[str, str], folder: Path) -> None:
        self._kind, self._environment = kind, environment
        self._errors = folder / "stderr"
        self._process: subprocess.Popen[str] | None = None

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            with self._errors.open("w") as errors:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "tests.real_window.child", self._kind],
                    cwd=ROOT, env=self._environment, text=True,
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                )  # fmt: skip
        return self._process

    def tried(self, case: Case, folder: Path) -> str:
        """Try a case with its settings in a folder; return what went wrong, empty if nothing."""
        if case.script == "processes":
            for life in LIVES[case.name]:
                if told := live(life, self._environment, folder):
                    return "\n".join((case.command, f"{life}:", *told, *_crash(folder)))
            return ""
        process = self._started()
        assert process.stdin
        assert process.stdout
        before = self._errors.stat().st_size
        try:
            process.stdin.write(json.dumps({"case": asdict(case), "folder": str(folder)}) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if answer:
            told = json.loads(answer)
            faults, done = list(told["faults"]), " ".join(told["done"])
        else:
            faults, done = [how_it_ended(process.wait()), *_crash(folder)], ""
        said = self._errors.read_text("utf-8", errors="replace")[before:].strip()
        if said:
            faults.append(f"on standard error:\n{said}")
        if faults:
            self.end()  # what it left behind is not to spoil the next case
        return "\n".join((case.command, done, *faults)) if faults else ""

    def end(self) -> None:
        """Let the process end, if there is one."""
        if self._process is not None:
            process, self._process = self._process, None
            with suppress(BrokenPipeError), process:  # closes its pipes and waits
                pass


def _crash(folder: Path) -> list[str]:
    """Return what the log says about where the interpreter crashed."""
    log = folder / "tilescope.log"
    text = log.read_text("utf-8", "replace") if log.exists() else ""
    _, mark, after = text.rpartition("Current thread")
    return (mark + after).splitlines()[:_LINES]


def try_all(
    cases: Sequence[Case], screen: Screen, kind: str,
    folder: Path, left: Path, screens: Path, workers: int,
) -> dict[Case, str]:  # fmt: skip
    """Try cases; return what went wrong with each, empty where nothing did.

    cases: the cases.
    screen: starts a screen that keeps its files in a folder.
    kind: "x" or "wayland".
    folder: for settings and logs.
    left: where the settings that cases begin with lie.
    screens: for what servers write.
    workers: how many processes are at work at once.
    """
    todo: queue.SimpleQueue[Case] = queue.SimpleQueue()
    for case in cases:
        todo.put(case)
    out: dict[Case, str] = {}
    errors: list[BaseException] = []

    def work(place: Path) -> None:
        try:
            place.mkdir(parents=True)
            with screen(place) as environment:
                worker = Worker(kind, environment, place)
                try:
                    while not errors:
                        case = todo.get_nowait()
                        out[case] = _try(worker, case, folder, left)
                except queue.Empty:
                    pass
                finally:
                    worker.end()
        except BaseException as error:
            errors.append(error)

    threads = [
        threading.Thread(target=work, args=(screens / str(n),))
        for n in range(min(workers, len(cases)))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return out


def settings_of(case: Case, folder: Path) -> Path:
    """Return the folder of a case's settings."""
    return folder / re.sub(r"\W+", "-", f"{case.script} {case.name}")


def _try(worker: Worker, case: Case, folder: Path, left: Path) -> str:
    own = settings_of(case, folder)
    own.mkdir()
    if case.left and case.script != "leave":
        found = left / re.sub(r"\W+", "-", f"leave {case.left}") / "settings.ini"
        if not found.exists():
            return f"{case.command}\nthere are no settings that {case.left!r} left"
        shutil.copy(found, own)
    return worker.tried(case, own)
