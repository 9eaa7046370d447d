"""`make mutants`: which small mistakes in the program do no test notice?

    python -m tests.mutants [MODULE...] [--sample N] [--seed N] [--processes N] [--again]

MODULE is a file or a folder; without one, all of simulator/ and what belongs to ui/session.
--sample 0 tries every mutant, which takes hours.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutants.changes import Mutant, mutant, places
from tests.mutants.runs import (
    CONTROL,
    KILLED,
    NOT_RUN,
    QUIET,
    SURVIVED,
    TIMEOUT,
    Record,
    Recorder,
    Trial,
)
from tests.mutants.typed import refused_by_types

SIMULATOR = sorted(Path("simulator").rglob("*.py"))
SESSION = [
    Path(f"ui/session/{name}.py") for name in ("session", "history", "runs", "tasks", "worker")
]
SUITES = {
    "simulator": (
        SIMULATOR,
        ["tests/simulator", "tests/test_conformance.py", "tests/test_random_scenarios.py"],
    ),
    "ui": (
        SESSION,
        [
            "tests/ui/session",
            *(f"tests/ui/window/test_{name}.py" for name in ("controls", "main_window")),
            "tests/ui/talk/test_lessons.py",
        ],
    ),
}  # fmt: skip
"""The modules of each part, and the tests that are to notice."""
ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "QT_QPA_PLATFORM": "offscreen",
    "HYPOTHESIS_PROFILE": "mutants",
}
BUILD = Path("build/mutants")
MOST_SECONDS = 30.0
"""Of tests for one mutant: what lives longer is told as a survivor."""
TYPES = "types"
"""No test notices it, but `make lint` does."""
COLUMNS = (KILLED, TIMEOUT, TYPES, SURVIVED, NOT_RUN)


def run_pytest(tests: list[str], plugin: object) -> None:
    """Run pytest over some tests with a plugin of ours; its own words go to /dev/null."""
    ended = pytest.main([*tests, *QUIET, "-s", "--no-summary"], plugins=[plugin])
    if ended in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.USAGE_ERROR):
        sys.exit(2)


def drawn(paths: list[Path], sample: int, seed: int) -> list[Mutant]:
    """Return mutants of some modules, of each its share of the sample; all where that is 0."""
    found = {path: places(path) for path in paths}
    total = sum(map(len, found.values()))
    out: list[Mutant] = []
    for path, all_of_it in found.items():
        draw = random.Random(f"{seed} {path}")
        share = len(all_of_it) * min(sample, total) / total if sample else len(all_of_it)
        count = int(share) + (draw.random() < share % 1)
        draw.shuffle(all_of_it)
        made = (m for m in (mutant(place) for place in all_of_it) if m is not None)
        out += [m for _, m in zip(range(count), made, strict=False)]
    random.Random(seed).shuffle(out)
    return out


def part(name: str, chosen: list[Path], given: argparse.Namespace) -> dict[Path, Counter[str]]:
    """Try the mutants of one part; return what came of them by module."""
    modules, tests = SUITES[name]
    record = BUILD / f"{name}.json"
    if not record.exists() or given.again:
        print(f"Noting which lines each test of {name} runs ...", flush=True)
        child = os.fork()  # Qt, once started, bears no fork
        if not child:
            run_pytest(tests, Recorder(modules, record))
            os._exit(0)
        os.waitpid(child, 0)
    known = Record(record)
    mutants = drawn(chosen, given.sample, given.seed)
    if given.lines:
        mutants = [m for m in mutants if m.line in given.lines]
    came: dict[Path, Counter[str]] = defaultdict(Counter)
    started, done = time.monotonic(), 0
    BUILD.mkdir(parents=True, exist_ok=True)
    survivors, all_of_it = (BUILD / f"{name}-{end}.txt" for end in ("survivors", "all"))
    with survivors.open("w", encoding="utf-8") as file, all_of_it.open("w") as log:

        def tell(m: Mutant, what: str) -> None:
            nonlocal done
            if m.kind == CONTROL:
                if what in (KILLED, TIMEOUT):
                    pytest.exit(f"tests of {m.path} fail where nothing has been changed")
                return
            if what == SURVIVED and refused_by_types(m):
                what = TYPES
            done += 1
            came[m.path][what] += 1
            line = f"{done}/{len(mutants)} {time.monotonic() - started:.0f} s  {what}: {m}"
            print(line, file=log, flush=True)
            if what in (SURVIVED, NOT_RUN):
                print(line, flush=True)
                print(f"{what}: {m}", file=file, flush=True)

        controls = [replace(m, kind=CONTROL, source=m.path.read_text("utf-8")) for m in mutants[:3]]
        trial = Trial(
            (
                (m, known.tests(m, given.seconds), known.is_imported(m))
                for m in (*controls, *mutants)
            ),
            lambda chosen: 10 + 4 * sum(known.seconds.get(test, 1.0) for test in chosen),
            given.processes, tell, known.seconds,
        )  # fmt: skip
        run_pytest(tests, trial)
    return came


def main() -> int:
    """Run the command."""
    asked = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    asked.add_argument("modules", nargs="*", type=Path)
    asked.add_argument("--sample", type=int, default=200)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--processes", type=int, default=2)
    asked.add_argument("--seconds", type=float, default=MOST_SECONDS)
    asked.add_argument("--lines", type=int, nargs="*", help="only mutants of these lines")
    asked.add_argument("--again", action="store_true", help="note again which lines tests run")
    given = asked.parse_args()
    os.environ.update(ENVIRONMENT)
    total: Counter[str] = Counter()
    for name, (modules, _) in SUITES.items():
        wanted = [m for m in modules if not given.modules or {m, *m.parents} & {*given.modules}]
        if not wanted:
            continue
        came = part(name, wanted, given)
        print(f"\n{'module':40} {' '.join(f'{each:>9}' for each in COLUMNS)}")
        for path, counts in [*sorted(came.items()), (name, sum(came.values(), Counter()))]:
            figures = " ".join(f"{counts[each]:9}" for each in COLUMNS)
            print(f"{path!s:40} {figures}")
        total += sum(came.values(), Counter())
    alive = total[SURVIVED] + total[NOT_RUN]
    print(f"\n{alive} of {total.total()} survive: {alive / max(total.total(), 1):.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
