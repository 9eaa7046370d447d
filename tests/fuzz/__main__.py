"""`make fuzz`: opens thousands of damaged files as the program would, and tells what goes wrong.

    make fuzz                      20 000 files, some twenty minutes of one core
    make fuzz FILES=500 SEED=7     fewer, and others
    python -m tests.fuzz --seed 7 --number 123     one of them again
    python -m tests.fuzz --open build/fuzz/FILE    a file that was kept

Every file is to be read or refused in one line, within 2 s of the processor and 500 MB over its own
size. Seconds are those of the worker's processor, not of the clock: other work on the machine makes
no file slow. What is not taken so is kept in build/fuzz, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from tests.fuzz.bombs import bombs
from tests.fuzz.runner import ROOT, Case, Tally, case_of, run
from tests.fuzz.seeds import write_seeds

KEPT = ROOT / "build" / "fuzz"
EVERY = 500
"""Files after which a line is printed."""


def main() -> int:
    """Run and tell."""
    parser = argparse.ArgumentParser(prog="tests.fuzz")
    parser.add_argument("--files", type=int, default=20_000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="other files")
    parser.add_argument("--number", type=int, help="one file of a run alone")
    parser.add_argument("--open", type=Path, help="a file that was kept")
    parser.add_argument("--jobs", type=int, default=1, help="processes beside each other")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seeds = write_seeds(folder / "seeds")
        started = time.monotonic()

        def told(tally: Tally) -> None:
            done = sum(tally.outcomes.values())
            if done % EVERY == 0:
                count = len(tally.findings)
                print(
                    f"{done} files, {count} found, {time.monotonic() - started:.0f} s", flush=True
                )

        tally = run(_cases(options, seeds), seeds, folder, options.jobs, told)
    return _report(tally, options.seed)


def _cases(options: argparse.Namespace, seeds: list[Path]) -> Iterator[Case]:
    if options.open is not None:
        yield Case(options.open.name, options.open.read_bytes(), 0)
        return
    if options.number is not None:
        yield case_of(seeds, options.seed, options.number)
        return
    known = (Case(name, data, -1) for name, data in bombs())
    yield from chain(known, (case_of(seeds, options.seed, n) for n in range(options.files)))


def _report(tally: Tally, seed: int) -> int:
    for (kind, outcome), count in sorted(tally.outcomes.items()):
        print(f"{kind:12} {outcome:8} {count}")
    print(f"slowest {tally.slowest[0]:.2f} s ({tally.slowest[1]})")
    print(f"largest {tally.largest[0] / 1e6:.0f} MB over its size ({tally.largest[1]})")
    for finding in tally.findings:
        KEPT.mkdir(parents=True, exist_ok=True)
        path = KEPT / finding.case.name
        path.write_bytes(finding.case.data)
        print(f"\n{path.relative_to(ROOT)} (seed {seed}, number {finding.case.number})")
        print(finding.why)
    total = sum(tally.outcomes.values())
    print(f"{total} files, {len(tally.findings)} not taken well")
    return 1 if tally.findings else 0


if __name__ == "__main__":
    sys.exit(main())
