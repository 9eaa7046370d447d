"""The ladder from flash2 to tensor cores: the same numbers on every rung, and its page."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels.build.nvrtc import nvrtc_reason, nvrtc_version
from kernels.checks.ladder import COLS, ROWS, RUNGS, Rung, launched, table, watched_workload
from kernels.cuda.fast import FastRun
from kernels.cuda.specs import shared_bytes
from kernels.cuda.tensor_core import TensorCoreRun
from kernels.cuda.tensor_core import shared_bytes as tensor_bytes
from kernels.devices.host.device import HostDevice
from kernels.devices.host.module import ThreadOrder, ThreadSchedule
from kernels.devices.host.watch import Phases, watch_reason
from tests.kernels.helpers import needs_compiler
from tests.kernels.test_tensor_core import CASES, workload, wrong

PAGE = Path(__file__).parents[2] / "docs" / "ladder.md"
SCHEDULES = (
    ThreadSchedule(ThreadOrder.FORWARD),
    ThreadSchedule(ThreadOrder.REVERSE, late=True),
    ThreadSchedule(ThreadOrder.RANDOM, seed=5, late=True),
)
needs_watch = pytest.mark.skipif(
    bool(watch_reason()) and not os.environ.get("CI"), reason=watch_reason()
)


def bits(o: Any, lse: Any) -> bytes:
    return bytes(o.tobytes() + lse.tobytes())


@pytest.mark.sweep(keep=1)
@needs_compiler
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name)
def test_every_rung_computes_flash2(rung: Rung, case: str) -> None:
    w, inputs = workload(rows=ROWS, cols=COLS, **CASES[case])
    flash2 = FastRun(w, inputs, HostDevice())
    flash2.launch()
    for schedule in SCHEDULES:
        left = launched(rung, w, inputs, HostDevice(schedule))
        if rung.keeps_scores:
            assert bits(left.o, left.lse) == bits(flash2.tensors.o, flash2.tensors.lse)
        else:
            assert isinstance(left.o, np.ndarray)
            assert isinstance(left.lse, np.ndarray)
            assert wrong(w, inputs, left.o, left.lse) == []


@pytest.mark.long
@needs_compiler
def test_the_last_rung_is_the_tensor_core_kernel() -> None:
    w, inputs = workload(rows=ROWS, cols=COLS, **CASES["causal, ragged"])
    run = TensorCoreRun(w, inputs, HostDevice())
    run.launch()
    for rung in RUNGS[3:]:
        left = launched(rung, w, inputs, HostDevice())
        assert bits(left.o, left.lse) == bits(run.tensors.o, run.tensors.lse)


def test_shared_memory_is_what_the_kernels_take() -> None:
    w, _ = workload(rows=ROWS, cols=COLS)
    sizes = [rung.regions(w)["V"].stop for rung in RUNGS]
    assert sizes[0] == shared_bytes(w, "flash2")
    assert sizes[3:] == [tensor_bytes(w, 2)] * 3


@pytest.mark.long
@needs_watch
@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name)
def test_nothing_is_told_of_a_rung(rung: Rung) -> None:
    device = HostDevice(ThreadSchedule(late=True), watch=True)
    launched(rung, *watched_workload(), device)
    assert [str(fault) for fault in device.faults] == []


def read(rung: Rung, name: str) -> tuple[int, set[float]]:
    """Return how often warps read a tensor from shared memory, and phases a time."""
    w, inputs = watched_workload()
    counted: list[Phases] = []
    launched(rung, w, inputs, HostDevice(watch=True), counted)
    region = rung.regions(w)[name]
    found = [each for each in counted if not each.writes and each.offset in region]
    return sum(each.accesses for each in found), {each.phases / each.accesses for each in found}


@pytest.mark.long
@needs_watch
def test_the_swizzle_takes_the_conflicts_of_ldmatrix_away() -> None:
    """Eight rows of 16 bytes in the same four banks take eight phases for each of four matrices."""
    conflicts, swizzled, two_fragments = (read(rung, "K") for rung in RUNGS[3:])
    assert conflicts == (512, {32.0})
    assert swizzled == (512, {4.0})
    assert two_fragments == (256, {4.0})


@pytest.mark.long
@needs_watch
@pytest.mark.skipif(bool(nvrtc_reason()), reason=nvrtc_reason())
def test_the_page_is_true() -> None:
    text = PAGE.read_text(encoding="utf-8")
    words = [line for line in text.splitlines() if not line.startswith("|")]
    assert len(" ".join(words).split()) <= 300
    if nvrtc_version().startswith("13."):
        assert table() in text
