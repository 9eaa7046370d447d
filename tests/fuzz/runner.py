"""Makes files, has workers open them, and tells which of them were not taken well."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.fuzz.mutate import mutated

ROOT = Path(__file__).resolve().parents[2]
MOST_SECONDS, MOST_BYTES = 2.0, 500 * 10**6
"""Of the processor for one file, and of memory over the file's own size."""
PATIENCE = 180
"""Seconds after which a worker that does not answer counts as hanging: it waits for something."""


@dataclass(frozen=True, slots=True)
class Case:
    """A file to open."""

    name: str  # its kind comes first, its ending last
    data: bytes  # what it holds
    number: int  # by which it can be made again

    @property
    def kind(self) -> str:
        """What it is opened as."""
        return self.name.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Finding:
    """A file that was not taken well, and why."""

    case: Case
    why: str


@dataclass(slots=True)
class Tally:
    """What came of all files."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")
    largest: tuple[int, str] = (0, "")


def case_of(seeds: Sequence[Path], seed: int, number: int) -> Case:
    """Return file `number` of a run: it depends on both numbers and on the seeds alone."""
    rng = Random(f"{seed}/{number}")
    # Of each kind as many, whatever there are of seeds.
    kinds = sorted({(path.name.partition(".")[0], path.suffix) for path in seeds})
    kind, ending = kinds[number % len(kinds)]
    of = [path for path in seeds if (path.name.partition(".")[0], path.suffix) == (kind, ending)]
    data = [path.read_bytes() for path in of]
    n = rng.randrange(len(of))
    return Case(f"{kind}.{number}{ending}", mutated(data[n], ending, rng, data), number)


class Worker:
    """A process that opens files; a new one takes its place when it dies.

    folder: where the file that is being opened lies.
    warm: files that are opened first: the imports that they need count for no other.
    """

    def __init__(self, folder: Path, warm: Sequence[Path]) -> None:
        self._folder = folder
        self._folder.mkdir(parents=True, exist_ok=True)
        self._warm = [f"{path.name.partition('.')[0]}\t{path}" for path in warm]
        self.process: subprocess.Popen[str] | None = None

    def open(self, case: Case) -> tuple[str, float, int, str]:
        """Return what came of a file, seconds of the processor, bytes over its size, and words."""
        process = self.process or self._start()
        path = self._folder / case.name
        path.write_bytes(case.data)
        assert process.stdin is not None
        patience = threading.Timer(PATIENCE, process.kill)
        patience.start()
        try:
            process.stdin.write(f"{case.kind}\t{path}\n")
            process.stdin.flush()
            line = self._line(process)
        except BrokenPipeError:
            line = ""
        finally:
            patience.cancel()
            path.unlink(missing_ok=True)
        if not line:
            self.process = None
            process.communicate()
            code = process.returncode
            words = _DEATHS.get(-code, f"the process ended with status {code}")
            return "died", 0.0, 0, words
        said = json.loads(line)
        return said["outcome"], said["seconds"], said["bytes"] - len(case.data), said["told"]

    def _start(self) -> subprocess.Popen[str]:
        environment = {
            **os.environ, "QT_QPA_PLATFORM": "offscreen", "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1", "TILESCOPE_SETTINGS": str(self._folder / "settings.ini"),
        }  # fmt: skip
        errors = self._folder / "worker.err"
        with errors.open("w") as stream:
            self.process = subprocess.Popen(
                [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz.worker", *self._warm],
                cwd=ROOT, env=environment, text=True, encoding="utf-8",
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stream,
            )  # fmt: skip
        ready = self._line(self.process)
        if ready != "ready\n":
            raise RuntimeError(f"the worker does not start: {errors.read_text(errors='replace')}")
        return self.process

    @staticmethod
    def _line(process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        return process.stdout.readline()

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()


_DEATHS = {
    9: "it was killed: it waited for something, or memory ran out",
    11: "segmentation fault",
    6: "aborted",
    27: "it did not end",
}
"""By the signal that ended the process; 27 comes after the seconds that a worker gives a file."""


def judged(case: Case, outcome: str, seconds: float, over: int, told: str) -> Finding | None:
    """Return what is wrong with how a file was taken, None if nothing is."""
    if outcome not in ("read", "refused"):
        return Finding(case, _last_lines(told))
    if seconds > MOST_SECONDS:
        return Finding(case, f"{seconds:.1f} s of the processor")
    if over > MOST_BYTES:
        return Finding(case, f"{over / 1e6:.0f} MB over its own {len(case.data) / 1e3:.0f} kB")
    return None


def _last_lines(told: str) -> str:
    """Return the end of a traceback: that is where it was raised."""
    return "\n".join(line[:300] for line in told.strip().split("\n")[-12:])


def run(
    cases: Iterator[Case],
    warm: Sequence[Path],
    folder: Path,
    jobs: int = 1,
    told: Callable[[Tally], None] = lambda tally: None,
) -> Tally:
    """Have all files opened and return what came of them.

    cases: the files.
    warm: as in `Worker`.
    folder: for files that are being opened.
    jobs: how many processes there are.
    told: called after every file.
    """
    tally, lock = Tally(), threading.Lock()
    failures: queue.SimpleQueue[BaseException] = queue.SimpleQueue()

    def work(number: int) -> None:
        worker = Worker(folder / str(number), warm)
        try:
            while failures.empty():
                with lock:
                    case = next(cases, None)
                if case is None:
                    return
                outcome, seconds, over, words = worker.open(case)
                with lock:
                    tally.outcomes[case.kind, outcome] += 1
                    finding = judged(case, outcome, seconds, over, words)
                    if finding is not None:
                        tally.findings.append(finding)
                    tally.slowest = max(tally.slowest, (seconds, case.name))
                    tally.largest = max(tally.largest, (over, case.name))
                    told(tally)
        except BaseException as error:
            failures.put(error)
        finally:
            worker.close()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if not failures.empty():
        raise failures.get()
    return tally
