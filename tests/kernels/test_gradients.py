"""The backward kernels on the CPU: in any order of threads and blocks, against float64."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.cuda.engine import widened
from kernels.cuda.fast import FastRun
from kernels.devices.host.device import HostDevice
from kernels.devices.host.module import Order, Schedule
from simulator.engines.protocol import BackwardEngine
from simulator.problem.scenario import Scenario
from simulator.run.cosimulation import verify
from tests.kernels.helpers import (
    SCHEDULES,
    TILINGS,
    ChangedDevice,
    host_trace,
    kernel_scenarios,
    needs_compiler,
    scenario,
    workload_of,
)

pytestmark = needs_compiler

NAME = "flash2-backward"
TENSORS = ("dq", "dk", "dv")
ROUNDING = {"float32": 2e-4, "float16": 4e-3, "bfloat16": 3e-2}
"""How far a gradient may be off: O and what is stored are rounded."""
IN_ORDER = Schedule(Order.FORWARD, workers=1)
MASKS: tuple[dict[str, Any], ...] = (
    {}, {"causal": True}, {"window": 9, "sinks": 2}, {"causal": True, "window": 7, "sinks": 5},
)  # fmt: skip


def launched(chosen: Scenario, schedule: Schedule) -> dict[str, np.ndarray]:
    """Return the gradients that the fast build leaves."""
    workload, inputs = workload_of(chosen)
    run = FastRun(workload, inputs, HostDevice(schedule))
    run.launch()
    return {name: widened(getattr(run.tensors, name), workload.dtype) for name in TENSORS}


@settings(max_examples=settings.default.max_examples * 2 // 5)
@given(chosen=kernel_scenarios(NAME), schedule=st.sampled_from(SCHEDULES))
def test_any_workload(chosen: Scenario, schedule: Schedule) -> None:
    workload, inputs = workload_of(chosen)
    trace, engine = host_trace(workload, inputs, HostDevice(schedule))
    assert verify(trace).difference is None
    summary, arrays = trace.run(keep_arrays=True)
    sizes = [1 + np.abs(arrays[name]).max() for name in TENSORS]
    assert summary["max_abs_error"] <= ROUNDING[workload.dtype] * max(sizes)
    counted, asked = engine.counted(), trace.program.totals
    for way in ("read", "write"):
        ours = {name: n for name, n in getattr(counted, way).items() if n}
        assert ours == {name: n for name, n in getattr(asked, way).items() if n}
    assert counted.flops == asked.flops


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("mask", MASKS, ids=str)
def test_the_order_of_blocks_changes_the_last_bits_of_dq_alone(mask: dict[str, Any]) -> None:
    chosen = scenario(NAME, nq=50, nk=90, heads=4, kv_heads=2, mask=mask, **TILINGS[2])
    found = [launched(chosen, schedule) for schedule in (*SCHEDULES, IN_ORDER)]
    for name in ("dk", "dv"):
        assert len({each[name].tobytes() for each in found}) == 1, name
    for each in found:
        np.testing.assert_allclose(each["dq"], found[-1]["dq"], rtol=1e-5, atol=1e-5)


def test_both_builds_leave_the_same_bits_where_blocks_come_in_order() -> None:
    chosen = scenario(NAME, nq=50, nk=90, heads=4, kv_heads=2, **TILINGS[2])
    workload, inputs = workload_of(chosen)
    trace, engine = host_trace(workload, inputs, HostDevice(IN_ORDER))
    fast, traced = launched(chosen, IN_ORDER), engine.run_everything()
    for name in TENSORS:
        left = widened(getattr(traced, name), workload.dtype)
        assert fast[name].tobytes() == left.tobytes(), name
        assert trace.arrays()[name].tobytes() == left.tobytes(), name


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("mask", MASKS, ids=str)
def test_counters_of_each_visit(mask: dict[str, Any]) -> None:
    """What a tile reads, adds and computes is what its ops say; zeros of unseen keys apart."""
    chosen = scenario(NAME, nq=30, nk=17, heads=2, kv_heads=1, mask=mask, **TILINGS[0])
    trace, engine = host_trace(*workload_of(chosen))
    flops = engine.counted_visits()[1][..., -1]
    for index in range(len(trace)):
        visit = trace.program.visit(index)
        if visit.launch == 1:
            own = sum(op.flops for op in trace.program.ops(index))
            assert flops[visit.head, visit.i, visit.j] == own
            flops[visit.head, visit.i, visit.j] = 0
    assert not flops.any()  # nothing is computed elsewhere


MISTAKES = (
    ("dS_row[n] = P_row[n] * (dS_row[n] - D);", "dS_row[n] = P_row[n] * dS_row[n];"),
    ("exponentials(P_row, LSE, keys);", "exponentials(P_row, 0.5f * LSE, keys);"),
    ("const float dQ = scale * sum;", "const float dQ = sum;"),
    ("if (kv_head_of[head] != kv_head) continue;", "if (head != kv_head) continue;"),
    ("if (head != first_head || tile.at != first_block)", "if (tile.at != first_block)"),
    ("    __syncthreads();  // every warp needs P and dS of all rows", ""),
)


@pytest.mark.parametrize(("line", "other"), MISTAKES, ids=[line[:30] for line, _ in MISTAKES])
def test_a_mistake_in_the_kernel_is_seen(line: str, other: str) -> None:
    chosen = scenario(NAME, nq=20, nk=26, heads=2, kv_heads=1, d=5, dv=7, rows=16, cols=12)

    def changed(code: str) -> str:
        assert line in code or "backward_tiles" not in code
        return code.replace(line, other)

    schedule = Schedule(Order.REVERSE, workers=1)
    trace, _ = host_trace(*workload_of(chosen), ChangedDevice(changed, schedule))
    assert isinstance(trace.engine, BackwardEngine)
    wrong = verify(trace).difference is not None
    assert wrong or not trace.summary()["max_abs_error"] < 1e-4
