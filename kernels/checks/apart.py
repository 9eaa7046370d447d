"""The table of checks, each of which is done in its own process.

A wrong kernel can make the GPU unusable for its whole process, or never end, so no two checks share
a process.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from kernels.checks import machine, measure, numbers, tools
from kernels.checks.outcome import Check, Outcome, Setting, carry_out
from kernels.checks.process import ended
from kernels.devices.cupy import CupyDevice

SECONDS = 3600  # seconds after which a check is stopped

CHECKS: dict[str, Check] = {
    "device": machine.device,
    "first kernel": numbers.first_kernel,
    "conformance": numbers.conformance,
    "tensor cores": numbers.tensor_cores,
    "fast and trace build": numbers.same_bits,
    "counters": numbers.counted,
    "cubins": tools.cubins,
    "memcheck": partial(tools.sanitized, what="memcheck"),
    "racecheck": partial(tools.sanitized, what="racecheck"),
    "float64": numbers.against_float64,
    "benchmark, d = 128": partial(measure.benchmark, head_dim=128),
    "benchmark, d = 64": partial(measure.benchmark, head_dim=64),
    "DRAM bytes": tools.dram_bytes,
    "naive and flash2": measure.curves,
    "trace overhead": measure.trace_overhead,
    "synccheck": partial(tools.sanitized, what="synccheck"),
    "initcheck": partial(tools.sanitized, what="initcheck"),
}
"""The checks by name, in the order in which they are done: the checks that say most come first,
because a GPU may be there for a short time only."""


def outcome_apart(
    name: str, *, quick: bool, seconds: float = SECONDS, most: float = SECONDS
) -> Outcome:
    """Do one of `CHECKS` in its own process; if stopped before `most` seconds, it did not fail."""
    with tempfile.TemporaryDirectory(prefix="tilescope-check-") as folder:
        path = Path(folder) / "outcome.json"
        command = [sys.executable, "-m", f"{__package__}.apart", name, str(path)]
        try:
            done = ended([*command, *["--quick"] * quick], seconds)
        except subprocess.TimeoutExpired:
            if seconds < most:
                words = f"time was over after {seconds:.0f} seconds, before it had ended"
                return Outcome(name, "not run", words, seconds=seconds)
            words = f"it did not end within {seconds:.0f} seconds"
            return Outcome(name, "failed", "it broke off", (words,), seconds=seconds)
        if path.exists():
            return Outcome.from_json(json.loads(path.read_text(encoding="utf-8")))
        words = (done.stderr or done.stdout).strip()[-1500:]
        return Outcome(
            name, "failed", "it broke off", (f"its process ended with {done.returncode}: {words}",)
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Do the check that the arguments name; write its outcome; return 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", choices=CHECKS)
    parser.add_argument("path", type=Path, help="JSON of the outcome")
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args(arguments)

    def setting() -> Setting:
        return Setting(CupyDevice(), chosen.quick)

    outcome = carry_out(chosen.name, CHECKS[chosen.name], setting)
    beside = chosen.path.with_suffix(".part")
    beside.write_text(json.dumps(outcome.as_json(), allow_nan=False), encoding="utf-8")
    beside.replace(chosen.path)  # the whole file or none, because the process may be killed
    return 0


if __name__ == "__main__":
    sys.exit(main())
