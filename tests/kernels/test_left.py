"""Everything that kernels write is compared: between builds, from run to run, with cubins."""

import re
from pathlib import Path

import numpy as np
import pytest

from kernels.build.sources import FOLDER, whole_source
from kernels.checks import case, numbers, tools
from kernels.checks.left import differing, left_by, of_any_order
from kernels.checks.outcome import Setting
from kernels.cuda.fast import FastRun
from kernels.cuda.launch import WRITTEN
from kernels.devices.host.device import HostDevice
from kernels.devices.host.module import HostModule
from kernels.errors import KernelError
from simulator.problem.scenario import Scenario, with_values
from tests.helpers.runs import scenario
from tests.kernels.helpers import ChangedDevice, needs_compiler, workload_of

BACKWARD = scenario(
    "flash2-backward",
    nq=20,
    nk=26,
    heads=2,
    kv_heads=1,
    d=5,
    dv=7,
    rows=16,
    cols=12,
    dtype="float16",
)
IN_TURN = with_values(BACKWARD, {"attention": {"deterministic": True}})
STORED_VALUES = "dV, 1.0f, keys, visit, WRITE_dV"
CONVERTED = "const float dQ = scale * sum;"


class FastIsOther(HostDevice):
    """A CPU whose fast build of one kernel has one text in the place of another."""

    def __init__(self, was: str, now: str) -> None:
        super().__init__()
        self._was, self._now = was, now

    def module(self, code: str, options: tuple[str, ...]) -> HostModule:
        if "-DTRACE" not in options and self._was in code:
            assert code.count(self._was) == 1
            code = code.replace(self._was, self._now)
        return super().module(code, options)


@pytest.mark.long
@needs_compiler
@pytest.mark.parametrize(
    ("chosen", "was", "now", "tensor"),
    [
        (BACKWARD, STORED_VALUES, STORED_VALUES.replace("1.0f", "3.0f"), "dv"),
        (BACKWARD, CONVERTED, CONVERTED.replace("scale", "1.01f * scale"), "dq"),
        (IN_TURN, CONVERTED, CONVERTED.replace("scale", "1.01f * scale"), "dq"),
    ],
    ids=["dV", "dQ added up in any order", "dQ added up in turn"],
)
def test_a_wrong_gradient_of_the_fast_build_is_found(
    chosen: Scenario, was: str, now: str, tensor: str
) -> None:
    on = Setting(FastIsOther(was, now))
    found = numbers.same_bits(on, {"one": chosen}).faults
    assert found == (f"one: {tensor} differs between fast and trace build",)
    assert numbers.same_bits(Setting(HostDevice()), {"one": chosen}).faults == ()


@pytest.mark.long
@needs_compiler
def test_cubins_are_compared_in_all_that_they_write(tmp_path: Path) -> None:
    table = next(
        t for t in tools.small_scenarios() if t["attention"]["algorithm"] == "flash2-backward"
    )
    want = case.run(table, ("fast",), Setting(HostDevice()))
    got = case.run(
        table, ("fast",), Setting(FastIsOther(STORED_VALUES, STORED_VALUES.replace("1.0f", "3.0f")))
    )
    case.write_left(tmp_path / "left.npz", got)
    again = case.read_left(tmp_path / "left.npz")
    assert [set(left) for left in again] == [set(left) for left in want]
    w = numbers.resolve(numbers.parse_scenario(table))
    assert tools.cubin_faults([(w, "fast")], again, want) == [
        "flash2-backward fast: dv is not what the kernel leaves that NVRTC compiled"
    ]
    assert tools.cubin_faults([(w, "fast")], want, want) == []
    assert tools.cubin_faults([(w, "fast")], [], want) == ["0 outputs, expected 1"]


@pytest.mark.long
@needs_compiler
def test_what_is_added_in_any_order_may_differ_by_rounding_alone() -> None:
    w, inputs = workload_of(BACKWARD)
    run = FastRun(w, inputs, HostDevice())
    run.launch()
    want = left_by(run.tensors, HostDevice())
    assert of_any_order(w) == {"dq_acc", "dq"}
    for share, found in ((2.0**-22, []), (2.0**-12, ["dq_acc"]), (np.nan, ["dq_acc"])):
        got = {**want, "dq_acc": want["dq_acc"] * np.float32(1 + share)}
        assert differing(w, got, want) == found
    assert differing(w, {**want, "dk": want["dk"] ^ 1}, want) == ["dk"]
    assert of_any_order(workload_of(IN_TURN)[0]) == frozenset()


def test_no_tensor_that_a_kernel_writes_is_left_out() -> None:
    """What the sources take as a pointer to numbers that are not constant."""
    found = set()
    for path in FOLDER.glob("*.cu"):
        text = whole_source(path.stem)
        for taken in re.findall(r'^extern "C" .*?\)\n\{', text, re.MULTILINE | re.DOTALL):
            found |= set(re.findall(r"^ +\w+\* (\w+)_hbm\b", taken, re.MULTILINE))
    assert {name.lower() for name in found} == set(WRITTEN)


@pytest.mark.long
@needs_compiler
def test_the_first_kernel_on_the_host() -> None:
    found = numbers.first_kernel(Setting(HostDevice()))
    assert found.faults == ()
    assert found.summary == "naive, 45 × 70: all bits of S as on the CPU, O against float64"

    def no_compiler() -> HostDevice:
        raise KernelError("no C++ compiler: neither g++ nor clang++ is installed")

    alone = numbers.first_kernel(Setting(HostDevice()), no_compiler)
    assert alone.faults == ()
    assert "S is compared with nothing: no C++ compiler" in alone.summary

    def off(code: str) -> str:
        return code.replace("return scale * product;", "return 1.0000001f * scale * product;")

    told = numbers.first_kernel(Setting(ChangedDevice(off))).faults
    assert told == ("S has other bits than on the CPU",)
