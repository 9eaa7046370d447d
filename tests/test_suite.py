"""The suite itself: what it sees to whoever starts it, and how."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.process import python

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.skipif(sys.platform == "win32", reason="signals are another thing there")
def test_what_is_started_in_the_background_can_be_interrupted():
    child = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    lines = f"import sys, subprocess as s, tests.conftest; s.run([sys.executable, '-c', {child!r}])"
    done = subprocess.run(
        ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-c", lines],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.parametrize(
    ("arguments", "cases"),
    [
        ((), 4),
        pytest.param(("--all",), 57, marks=pytest.mark.long),
    ],
)
def test_of_a_sweep_some_cases_are_tried_unless_all_are_asked_for(arguments, cases):
    done = python(
        "-m", "pytest", "-q", "--collect-only", "tests/kernels/test_faults.py", *arguments
    )
    found = [line for line in done.stdout.splitlines() if "::test_a_planted_fault_" in line]
    assert len(found) == cases, done.stdout
    assert done.returncode == 0
