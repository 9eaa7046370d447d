"""The checks for a GPU pass on the double, and tell what is wrong with a kernel."""

import re

import pytest

from kernels.build.sources import whole_source
from tests.kernels.gpu_double.build import on_double

CHECKS = ("first kernel", "conformance", "cubins")
"""The quick ones of `kernels.check`; small.py has two more with fewer scenarios."""


@pytest.mark.parametrize("name", CHECKS)
def test_check_passes(name: str) -> None:
    done = on_double("-m", "kernels.check", "--quick", "--only", name)
    assert re.search(rf"^passed +{name} ", done.stdout, re.MULTILINE), done.stdout + done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("name", ["bits", "counters"])
def test_every_variant_of_every_kernel_passes(name: str) -> None:
    done = on_double("-m", "tests.kernels.gpu_double.small", name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.search(r"(\d+) workloads", done.stdout)[1]) > 100  # type: ignore[index]


GUARD = "if (own_row(r) < rows && lane() == 0) {"
CHANGED = f"""
import sys
from kernels.checks import numbers
from kernels.checks.case import without_pool
from kernels.checks.outcome import Setting, carry_out
from kernels.checks.variants import small
from kernels.devices.cupy import CupyDevice
from simulator.problem.scenario import parse_scenario

class Changed(CupyDevice):
    def module(self, code, options):
        return super().module(code.replace({GUARD!r}, sys.argv[1]), options)

without_pool()
chosen = {{"small": parse_scenario(small("flash2"))}}
found = carry_out("bits", lambda on: numbers.same_bits(on, chosen), lambda: Setting(Changed()))
print(found.status, *found.faults, sep="\\n")
"""


def test_a_store_past_the_end_of_an_array_is_told() -> None:
    """A row past a tile's end is stored, in the guard's absence; numbers do not show it."""
    assert whole_source("flash2").count(GUARD) == 1
    right, wrong = (on_double("-c", CHANGED, text) for text in (GUARD, "if (lane() == 0) {"))
    assert right.stdout.split() == ["passed"], right.stderr
    assert wrong.stdout.startswith("failed\nsmall: CUDARuntimeError: cudaErrorIllegalAddress")
    assert re.search(r"flash2, block .*4 bytes at global address .* outside of every", wrong.stderr)
