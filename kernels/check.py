"""Everything that needs a GPU, in one command: ``python -m kernels.check``.

Exit status 0: all that could be run has passed; 1: something failed; 3: there is no usable GPU,
and nothing is written.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import IO

from kernels.checks import report
from kernels.checks.apart import CHECKS, outcome_apart
from kernels.checks.outcome import ROOT, Outcome
from kernels.device import gpu_status
from simulator.files import write_atomically

PASSED, FAILED, NO_GPU, INTERRUPTED = 0, 1, 3, 130

Runner = Callable[[str, bool], Outcome]


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; return the exit status."""
    parser = argparse.ArgumentParser(prog="kernels.check", description=(__doc__ or "").strip())
    parser.add_argument("--quick", action="store_true", help="small sizes, fewer measurements")
    parser.add_argument(
        "--only", action="append", choices=CHECKS, help="do these alone, and write no report"
    )
    parser.add_argument(
        "--output", type=Path, default=ROOT / "docs" / "gpu", help="folder of the report"
    )
    chosen = parser.parse_args(arguments)
    reason = gpu_status().reason
    if reason:
        return _no_gpu(reason)
    try:
        return check_all(
            chosen.only or list(CHECKS),
            lambda name, quick: outcome_apart(name, quick=quick),
            quick=chosen.quick,
            output=None if chosen.only else chosen.output,
        )
    except KeyboardInterrupt:
        print("Interrupted; nothing is written.", file=sys.stderr)
        return INTERRUPTED


def check_all(names: Sequence[str], run: Runner, *, quick: bool, output: Path | None) -> int:
    """Do the checks one after another, tell what becomes of each, write the report.

    Parameters
    ----------
    names : sequence of str
        Which; the device is looked at first in any case.
    run : callable
        Does one of them.
    quick : bool
        Whether only what is short is asked for.
    output : Path or None
        Folder of the report; None: it is not written.

    Returns
    -------
    int
        Exit status.
    """
    device = run("device", quick)
    if device.status != "passed":
        return _no_gpu(" ".join((device.summary, *device.faults)))
    print(report.line(device), flush=True)
    outcomes = [device]
    for name in names:
        if name != "device":
            outcomes.append(run(name, quick))
            print(report.line(outcomes[-1]), flush=True)
    if output is not None:
        write_report(outcomes, quick=quick, output=output)
        print(f"The report is in {output}")
    print(report.counts(outcomes))
    return FAILED if any(o.status == "failed" for o in outcomes) else PASSED


def write_report(outcomes: Sequence[Outcome], *, quick: bool, output: Path) -> None:
    """Write REPORT.md, report.json and, where there are curves, curves.svg."""
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
