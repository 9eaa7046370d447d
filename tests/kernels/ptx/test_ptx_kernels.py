"""The PTX that NVRTC makes of every kernel, run on the CPU: `make test-ptx` runs all there is."""

from typing import Any

import pytest

from kernels.checks.ladder import RUNGS, launched
from kernels.checks.numbers import tensor_cores
from kernels.checks.outcome import Setting
from kernels.devices.host.module import ThreadOrder, ThreadSchedule
from simulator.problem.scenario import load_scenario
from tests.conformance.check import HERE
from tests.kernels.helpers import ALGORITHMS, TILINGS, conformance_faults, scenario, workload_of
from tests.kernels.ptx.device import PtxDevice, needs_ptx
from tests.kernels.ptx.runs import (
    IN_ORDER,
    further_apart,
    other_bits,
    ptx_faults,
    run_fast,
    run_traced,
    written,
)
from tests.kernels.ptx.translate import Semantics

pytestmark = needs_ptx

SIZES: dict[str, Any] = {
    "nq": 50, "nk": 90, "heads": 4, "kv_heads": 2, "mask": {"causal": True}, **TILINGS[2],
}  # fmt: skip
"""Several warps and blocks with ragged tails."""
CASES = (
    "naive-small", "flash1-causal-cross", "flash2-causal-gqa-tails", "split-kv-several",
    "paged-small", "mla-small", "linear-performer", "backward-causal-gqa",
)  # fmt: skip
"""Conformance cases: forward and backward, float32 and float16, groups, tails, splits, pages."""


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_in_both_builds(algorithm: str) -> None:
    w, inputs = workload_of(scenario(algorithm, **SIZES))
    schedule = ThreadSchedule(ThreadOrder.RANDOM, seed=ALGORITHMS.index(algorithm))
    assert ptx_faults(w, inputs, schedule, PtxDevice.of("compute_90")) == []


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_conformance(name: str) -> None:
    case = HERE / f"{name}.toml"
    device = PtxDevice("compute_90", IN_ORDER)
    assert conformance_faults(case, device) == []
    w, inputs = workload_of(load_scenario(case))
    assert other_bits(run_fast(w, inputs, device), run_traced(w, inputs, device)) == []


TENSOR_CASE = {
    "causal, ragged, groups": {
        "attention": {"heads": 2, "kv_heads": 1, "seqlen_q": 150, "seqlen_k": 140, "head_dim": 64},
        "mask": {"causal": True},
    }
}


@pytest.mark.long
def test_tensor_cores_that_cut_sums_off() -> None:
    semantics = Semantics(exponential_ulps=2, truncates=True)
    schedule = ThreadSchedule(ThreadOrder.RANDOM, seed=3, late=True)
    device = PtxDevice("compute_80", schedule, semantics)
    assert tensor_cores(Setting(device), TENSOR_CASE).faults == ()


@pytest.mark.long
def test_the_first_rungs_of_the_ladder_leave_the_bits_of_flash2() -> None:
    w, inputs = workload_of(
        scenario(
            "flash2", nq=150, nk=140, d=64, rows=128, cols=64, dtype="float16",
            mask={"causal": True},
        )
    )  # fmt: skip
    device = PtxDevice("compute_80", ThreadSchedule(ThreadOrder.RANDOM, seed=1, late=True))
    flash2, *others = (written(launched(rung, w, inputs, device)) for rung in RUNGS[:3])
    assert [other_bits(flash2, each) for each in others] == [[], []]


@pytest.mark.long
def test_exponentials_that_are_off_stay_within_the_bounds() -> None:
    w, inputs = workload_of(scenario("flash2", **SIZES))
    made = PtxDevice.of("compute_90", Semantics(exponential_ulps=2))
    found = ptx_faults(w, inputs, IN_ORDER, made)
    assert [each for each in found if "from the host build" not in each] == []


@pytest.mark.long
def test_a_gradient_that_is_too_large_in_one_build_is_seen() -> None:
    """No other tensor shows it."""

    def change(code: str) -> str:
        return code.replace("dV, 1.0f, keys, visit, WRITE_dV", "dV, 3.0f, keys, visit, WRITE_dV")

    w, inputs = workload_of(scenario("flash2-backward", **SIZES))
    right = run_fast(w, inputs, PtxDevice("compute_90", IN_ORDER))
    wrong = run_fast(w, inputs, PtxDevice("compute_90", IN_ORDER, change=change))
    assert other_bits(right, wrong) == ["dv"]
    assert list(further_apart(w, right, wrong)) == ["dv"]
