"""All PTX of the kernels for three architectures (`make test-ptx`): half an hour of a processor."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from kernels.checks.numbers import TENSOR_CASES, tensor_cores
from kernels.checks.outcome import Setting
from kernels.cuda.specs import KERNELS
from kernels.devices.host.module import ThreadOrder, ThreadSchedule
from simulator.problem.scenario import load_scenario, with_values
from simulator.program.algorithms import takes_turns
from tests.conformance.check import HERE, find_cases
from tests.kernels.helpers import ALGORITHMS, TILINGS, conformance_faults, scenario, workload_of
from tests.kernels.ptx.device import ARCHITECTURES, PtxDevice, needs_ptx
from tests.kernels.ptx.runs import IN_ORDER, other_bits, ptx_faults, run_fast, run_traced
from tests.kernels.ptx.translate import USUAL, Semantics

pytestmark = needs_ptx

CASES = [each for each in find_cases(HERE) if load_scenario(each).attention.algorithm in KERNELS]
ORDERS = (ThreadOrder.FORWARD, ThreadOrder.REVERSE, ThreadOrder.RANDOM)
SHAPES: tuple[dict[str, Any], ...] = (
    {"nq": 50, "nk": 90, "heads": 4, "kv_heads": 2, "mask": {"causal": True}, **TILINGS[2]},
    {"nq": 13, "nk": 17, "heads": 2, "mask": {"window": 5, "sinks": 2}, **TILINGS[0]},
)
"""Several warps and blocks with ragged tails; small tiles of float16."""
FREE = Semantics(exponential_ulps=2, truncates=True)
"""What a GPU may do: exponentials that are off, sums that are cut off."""


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("shape", SHAPES, ids=("float32", "float16"))
def test_every_algorithm_in_both_builds(shape: dict[str, Any], algorithm: str, arch: str) -> None:
    w, inputs = workload_of(scenario(algorithm, **shape))
    schedule = ThreadSchedule(ORDERS[ARCHITECTURES.index(arch)], seed=5)
    assert ptx_faults(w, inputs, schedule, PtxDevice.of(arch)) == []


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_column_blocks_that_take_turns(arch: str) -> None:
    chosen = with_values(
        scenario("flash2-backward", **SHAPES[0]), {"attention": {"deterministic": True}}
    )
    w, inputs = workload_of(chosen)
    assert takes_turns(w)
    left = [
        run_fast(w, inputs, PtxDevice(arch, ThreadSchedule(order, seed=2, workers=4)))
        for order in ORDERS
    ]
    traced = run_traced(w, inputs, PtxDevice(arch, IN_ORDER))
    for each in (*left[1:], traced):
        assert [x for x in other_bits(left[0], each) if x not in ("turns", "dq_acc")] == []


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_conformance(case: Path, arch: str) -> None:
    device = PtxDevice(arch, ThreadSchedule(ThreadOrder.REVERSE))
    assert conformance_faults(case, device) == []
    w, inputs = workload_of(load_scenario(case))
    left = [run(w, inputs, PtxDevice(arch, IN_ORDER)) for run in (run_fast, run_traced)]
    assert other_bits(*left) == []


TURNS = list(enumerate(product(ORDERS, (False, True))))
"""Schedules; each with an architecture and with what a GPU does or may do."""


@pytest.mark.parametrize(
    ("number", "schedule"), TURNS, ids=lambda x: "" if isinstance(x, int) else f"{x[0].name}-{x[1]}"
)
@pytest.mark.parametrize("name", TENSOR_CASES)
def test_tensor_cores(name: str, number: int, schedule: tuple[ThreadOrder, bool]) -> None:
    order, late = schedule
    semantics = (USUAL, FREE)[number // 3]
    arch = ARCHITECTURES[number % 3]
    device = PtxDevice(
        arch, ThreadSchedule(order, seed=1, late=late), replace(semantics, optimise=1)
    )
    assert tensor_cores(Setting(device), {name: TENSOR_CASES[name]}).faults == ()
