"""Everything that needs a GPU, in one command: ``python -m kernels.check``.

Exit status 0: all that could be run has passed, even if a goal of speed is missed; 1: something
failed, or time was over before the GPU had answered; 3: there is no usable GPU. If the GPU does not
answer, nothing is written; otherwise the report is, after every check. If a GPU is available for a
short time only, the work can be done in parts: with ``--seconds 500``, then with
``--add --seconds 500`` until all is done.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Protocol

from kernels.checks import report
from kernels.checks.apart import CHECKS, SECONDS, outcome_apart
from kernels.checks.outcome import DONE, ROOT, Outcome
from kernels.devices.driver import GpuStatus, gpu_status
from simulator.base.files import write_atomically

PASSED, FAILED, NO_GPU, INTERRUPTED = 0, 1, 3, 130

Runner = Callable[[str, bool], Outcome]


class Check(Protocol):
    """Does a check by its name, as `outcome_apart` does."""

    def __call__(self, name: str, /, *, quick: bool, seconds: float) -> Outcome:
        """Return the outcome of the check."""


SAME = ("GPU", "kernel sources")
"""Facts about the machine that must be the same if checks are added to a report."""


def main(
    arguments: Sequence[str] | None = None,
    status: Callable[[], GpuStatus] = gpu_status,
    check: Check = outcome_apart,
) -> int:
    """Run the checks that the command line asks for; return the exit status.

    arguments: the command line; none: the arguments of the process.
    """
    parser = argparse.ArgumentParser(
        prog=f"{__package__}.check", description=(__doc__ or "").strip()
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, fewer measurements")
    parser.add_argument(
        "--only", action="append", choices=CHECKS, help="do these alone, and write no report"
    )
    parser.add_argument(
        "--add",
        action="store_true",
        help="go on with the report that is there: with what has not passed, or with --only",
    )
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="stop when so many have passed"
    )
    parser.add_argument(
        "--output", type=Path, default=ROOT / "docs" / "gpu", help="folder of the report"
    )
    chosen = parser.parse_args(arguments)
    reason = status().reason
    if reason:
        return _no_gpu(reason)
    earlier = reported(chosen.output, quick=chosen.quick) if chosen.add else ()
    passed = {outcome.name for outcome in earlier if outcome.status in DONE}
    try:
        return check_all(
            chosen.only or [name for name in CHECKS if name not in passed],
            in_time(chosen.seconds, check),
            quick=chosen.quick,
            output=None if chosen.only and not chosen.add else chosen.output,
            earlier=earlier,
        )
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return INTERRUPTED


def in_time(seconds: float, check: Check = outcome_apart) -> Runner:
    """Return a function that does a check while there is time, by default in its own process."""
    until = time.monotonic() + seconds

    def run(name: str, quick: bool) -> Outcome:
        left = until - time.monotonic()
        if left <= 0:
            return Outcome(name, "not run", f"no time was left of {seconds:.0f} seconds")
        return check(name, quick=quick, seconds=min(SECONDS, left))

    return run


def reported(folder: Path, *, quick: bool) -> tuple[Outcome, ...]:
    """Return the outcomes in a folder's report; none if it is missing or its `quick` differs."""
    try:
        said = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    except OSError:
        return ()
    if said.get("quick") != quick:
        return ()
    return tuple(o for o in map(Outcome.from_json, said["checks"]) if o.name in CHECKS)


def check_all(
    names: Sequence[str],
    run: Runner,
    *,
    quick: bool,
    output: Path | None,
    earlier: Sequence[Outcome] = (),
) -> int:
    """Do the checks one after another, print the outcome of each, write the report.

    names: their names; the device is checked first in any case.
    output: folder of the report; None: it is not written.
    earlier: the outcomes of an earlier report on the same machine; a check that is done again
        replaces its outcome.
    Returns: exit status.
    """
    device = run("device", quick)
    if device.status == "not run":  # says nothing about the GPU
        print(f"Nothing was checked, the GPU least of all: {device.summary}", file=sys.stderr)
        return FAILED
    if device.status != "passed":
        return _no_gpu(" ".join((device.summary, *device.faults)))
    print(report.line(device), flush=True)
    other = _another_machine(earlier, device)
    if other:
        print(f"Nothing was checked: the report is of another {other}.", file=sys.stderr)
        return FAILED
    waiting = (Outcome(name, "not run", "not yet") for name in names)
    found = {o.name: o for o in (*waiting, *earlier, _both(earlier, device))}
    done = [device]
    for name in [name for name in names if name != "device"]:
        done.append(run(name, quick))
        found[name] = done[-1]
        print(report.line(done[-1]), flush=True)
        if output is not None:  # now: there may be no time for another check
            write_report(_in_order(found), quick=quick, output=output)
    if output is not None:
        write_report(_in_order(found), quick=quick, output=output)
        print(f"The report is in {output}")
    print(report.counts(done))
    return FAILED if any(o.status == "failed" for o in done) else PASSED


def _in_order(found: dict[str, Outcome]) -> list[Outcome]:
    """Return outcomes in the order of the checks."""
    return [found[name] for name in CHECKS if name in found]


def _both(earlier: Sequence[Outcome], device: Outcome) -> Outcome:
    """Return the device's outcome; a changed fact, such as the driver, has both values."""
    facts = report.facts_of([device])
    for key, before in report.facts_of(earlier).items():
        said = before.split("; ")
        now = facts.get(key, before)
        facts[key] = before if now in said else f"{before}; {now}"
    return replace(device, figures={**device.figures, "facts": facts})


def _another_machine(earlier: Sequence[Outcome], device: Outcome) -> str:
    """Return in which facts the machine of a report differs from the device; "" if in none."""
    now, before = report.facts_of([device]), report.facts_of(earlier)
    return " and ".join(key for key in SAME if before and before.get(key) != now.get(key))


def write_report(outcomes: Sequence[Outcome], *, quick: bool, output: Path) -> None:
    """Write REPORT.md, report.json and, if there are curves, curves.svg."""
    output.mkdir(parents=True, exist_ok=True)
    texts = {
        "REPORT.md": report.markdown(outcomes, quick=quick),
        "report.json": report.as_json(outcomes, quick=quick),
    }
    drawn = report.picture(outcomes)
    if drawn is not None:
        texts["curves.svg"] = drawn
    for name, text in texts.items():
        write_atomically(output / name, partial(_write, text.encode()))


def _write(content: bytes, out: IO[bytes]) -> None:
    out.write(content)


def _no_gpu(reason: str) -> int:
    print(f"No usable GPU, so nothing was checked: {reason}", file=sys.stderr)
    return NO_GPU


if __name__ == "__main__":
    sys.exit(main())
