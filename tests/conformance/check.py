#!/usr/bin/env python3
"""Run the conformance cases of a folder through the command line.

From the project's root: `.venv/bin/python tests/conformance/check.py [FOLDER]`.
Exit status 0 when there are cases and all of them hold.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
SECONDS = 120


def find_cases(folder: Path) -> list[Path]:
    """Return the scenario file of every case in `folder`, by name."""
    return sorted(folder.glob("*.toml"))


def array_fault(name: str, got: np.ndarray, want: np.ndarray, tolerance: float) -> str | None:
    """Say how `got` misses `want`, or None. The error is relative above 1, absolute below."""
    if got.shape != want.shape:
        return f"{name}: shape {got.shape}, expected {want.shape}"
    # Rows that see nothing have -inf, which no tolerance reaches.
    infinite = np.isinf(want)
    if not np.array_equal(got[infinite], want[infinite]):
        return f"{name}: expected -inf for the rows that see nothing"
    got, want = got[~infinite].astype(np.float64), want[~infinite].astype(np.float64)
    if not np.isfinite(got).all():
        return f"{name}: NaN or Inf where a number is expected"
    worst = np.max(np.abs(got - want) / (1 + np.abs(want)), initial=0.0)
    return None if worst <= tolerance else f"{name}: off by {worst:.2e}, allowed {tolerance:.0e}"


def array_faults(
    got: Mapping[str, np.ndarray], want: Mapping[str, np.ndarray], tolerance: Mapping[str, float]
) -> list[str]:
    """Compare every expected array; more arrays than expected are no fault."""
    faults = (
        array_fault(name, got[name], want[name], tolerance[name])
        if name in got
        else f"{name}: missing"
        for name in want
    )
    return [fault for fault in faults if fault]


def count_faults(got: Any, want: Any, name: str = "") -> list[str]:
    """Compare every expected count exactly; keys that are not expected are no fault."""
    if isinstance(want, dict) and isinstance(got, dict):
        return [
            fault
            for key, value in want.items()
            for fault in count_faults(got.get(key), value, f"{name}.{key}" if name else key)
        ]
    return [] if got == want else [f"{name}: {got}, expected {want}"]


def case_faults(case: Path, summary: dict[str, Any], out: Path) -> list[str]:
    """Compare what one run printed (`summary`) and stored (`out`) with what `case` expects."""
    counts = json.loads(case.with_suffix(".expected.json").read_text(encoding="utf-8"))
    tolerance = counts.pop("tolerance")
    counts.pop("on_chip", None)  # of numbers that no run writes
    with np.load(case.with_suffix(".expected.npz")) as want, np.load(out) as got:
        return array_faults(got, want, tolerance) + count_faults(summary, counts)


def run_case(case: Path, engine: str) -> list[str]:
    """Run one case in a process of its own and return its faults."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.npz"
        command = [sys.executable, "-m", "ui", "run", str(case), "-o", str(out)]
        done = subprocess.run(
            [*command, "--json", "--engine", engine],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
            check=False,
        )
        if done.returncode:
            return [f"exit {done.returncode}: {done.stderr.strip()[-300:]}"]
        return case_faults(case, json.loads(done.stdout), out)


def main() -> int:
    """Run the cases that the arguments choose, print a line for each, return the status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=HERE)
    parser.add_argument("--engine", default="numpy")
    parser.add_argument("--only", default="", help="part of a case's name")
    chosen = parser.parse_args()
    passed = failed = 0
    for case in find_cases(chosen.folder.resolve()):
        if chosen.only not in case.stem:
            continue
        try:
            faults = run_case(case, chosen.engine)
        except Exception as error:  # whatever goes wrong is a fault of this case, not of the sweep
            faults = [f"{type(error).__name__}: {error}"]
        passed, failed = passed + (not faults), failed + bool(faults)
        print("\n       ".join([f"{'FAIL' if faults else 'ok  '} {case.stem}", *faults]))
    print(f"{passed} passed, {failed} failed")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
