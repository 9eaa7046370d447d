"""The backward kernels on the CPU: in any order of threads and blocks, against float64."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.cuda.engine import widened
from kernels.cuda.fast import FastRun
from kernels.devices.host.device import HostDevice
from kernels.devices.host.module import ThreadOrder, ThreadSchedule
from simulator.problem.scenario import Scenario, with_values
from simulator.program.algorithms import takes_turns
from simulator.run.cosimulation import verify
from simulator.study.merge.gradient_sums import random_orders
from tests.kernels.helpers import (
    GRADIENT_ROUNDING,
    SCHEDULES,
    TILINGS,
    ChangedDevice,
    faults,
    few,
    host_trace,
    kernel_scenarios,
    needs_compiler,
    scenario,
    workload_of,
)

pytestmark = needs_compiler

NAME = "flash2-backward"
NAIVE = "naive-backward"
TENSORS = ("dq", "dk", "dv")
IN_ORDER = ThreadSchedule(ThreadOrder.FORWARD, workers=1)
MASKS: tuple[dict[str, Any], ...] = (
    {}, {"causal": True}, {"window": 9, "sinks": 2}, {"causal": True, "window": 7, "sinks": 5},
)  # fmt: skip


def launched(chosen: Scenario, schedule: ThreadSchedule) -> dict[str, np.ndarray]:
    """Return the gradients that the fast build leaves."""
    workload, inputs = workload_of(chosen)
    run = FastRun(workload, inputs, HostDevice(schedule))
    run.launch()
    return {name: widened(getattr(run.tensors, name), workload.dtype) for name in TENSORS}


@pytest.mark.long
@settings(max_examples=few(24))
@given(
    chosen=st.sampled_from((NAME, NAIVE)).flatmap(kernel_scenarios),
    schedule=st.sampled_from(SCHEDULES),
)
def test_any_workload(chosen: Scenario, schedule: ThreadSchedule) -> None:
    workload, inputs = workload_of(chosen)
    trace, engine = host_trace(workload, inputs, HostDevice(schedule))
    assert verify(trace).difference is None
    summary, arrays = trace.run(keep_arrays=True)
    sizes = [1 + np.abs(arrays[name]).max() for name in TENSORS]
    assert summary["max_abs_error"] <= GRADIENT_ROUNDING[workload.dtype] * max(sizes)
    counted, asked = engine.counted(), trace.program.totals
    for way in ("read", "write"):
        ours = {name: n for name, n in getattr(counted, way).items() if n}
        assert ours == {name: n for name, n in getattr(asked, way).items() if n}
    assert counted.flops == asked.flops


@pytest.mark.long
@pytest.mark.parametrize("mask", MASKS, ids=str)
def test_the_order_of_blocks_changes_the_last_bits_of_dq_alone(mask: dict[str, Any]) -> None:
    chosen = scenario(NAME, nq=50, nk=90, heads=4, kv_heads=2, mask=mask, **TILINGS[2])
    found = [launched(chosen, schedule) for schedule in (*SCHEDULES, IN_ORDER)]
    for name in ("dk", "dv"):
        assert len({each[name].tobytes() for each in found}) == 1, name
    for each in found:
        np.testing.assert_allclose(each["dq"], found[-1]["dq"], rtol=1e-5, atol=1e-5)


@pytest.mark.long
def test_atomics_in_any_order_leave_other_bits_than_those_in_one() -> None:
    """dQ of column blocks one after the other is the same each time; in other orders it is not."""
    chosen = scenario(NAME, nq=40, nk=200, d=8, dv=8, rows=20, cols=20)
    again = [launched(chosen, IN_ORDER)["dq"] for _ in range(2)]
    assert again[0].tobytes() == again[1].tobytes()
    schedules = [ThreadSchedule(ThreadOrder.RANDOM, seed=seed, workers=1) for seed in range(4)]
    others = [launched(chosen, schedule)["dq"] for schedule in schedules]
    moved = np.any([other != again[0] for other in others], axis=0)
    assert moved.mean() > 0.2
    for other in others:
        np.testing.assert_allclose(other, again[0], rtol=1e-5, atol=1e-5)
    study = random_orders(host_trace(*workload_of(chosen), HostDevice(IN_ORDER))[0], orders=4)
    assert study.numbers == again[0].size
    assert study.moved > 0.2 * study.numbers


@pytest.mark.long
@pytest.mark.parametrize("mask", MASKS, ids=str)
def test_in_turn_every_order_leaves_the_bits_of_blocks_one_by_one(mask: dict[str, Any]) -> None:
    """With as many workers as blocks each waits; without turns some bits move."""
    sizes = {"nq": 50, "nk": 90, "heads": 4, "kv_heads": 2, **TILINGS[2]}
    chosen = scenario(NAME, mask=mask, **sizes)
    in_turn = with_values(chosen, {"attention": {"deterministic": True}})
    assert takes_turns(workload_of(in_turn)[0])
    schedules = [ThreadSchedule(ThreadOrder.RANDOM, seed=seed, workers=4) for seed in range(4)]
    found = [launched(in_turn, schedule) for schedule in (*SCHEDULES, IN_ORDER, *schedules)]
    for name in TENSORS:
        assert len({each[name].tobytes() for each in found}) == 1, name
    in_order = launched(chosen, IN_ORDER)
    assert found[0]["dq"].tobytes() == in_order["dq"].tobytes()
    others = [launched(chosen, schedule)["dq"] for schedule in SCHEDULES]
    assert any(other.tobytes() != in_order["dq"].tobytes() for other in others)
    engine = host_trace(*workload_of(in_turn), HostDevice(schedules[0]))[1]
    left = widened(engine.run_everything().dq, in_turn.attention.dtype or "float32")
    assert left.tobytes() == in_order["dq"].tobytes()


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("name", [NAME, NAIVE])
def test_both_builds_leave_the_same_bits_where_blocks_come_in_order(name: str) -> None:
    chosen = scenario(name, nq=50, nk=90, heads=4, kv_heads=2, **TILINGS[2])
    workload, inputs = workload_of(chosen)
    trace, engine = host_trace(workload, inputs, HostDevice(IN_ORDER))
    fast, traced = launched(chosen, IN_ORDER), engine.run_everything()
    for tensor in TENSORS:
        left = widened(getattr(traced, tensor), workload.dtype)
        assert fast[tensor].tobytes() == left.tobytes(), tensor
        assert trace.arrays()[tensor].tobytes() == left.tobytes(), tensor


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("name", [NAME, NAIVE])
@pytest.mark.parametrize("mask", MASKS, ids=str)
def test_counters_of_each_visit(mask: dict[str, Any], name: str) -> None:
    """What a tile computes is what its ops say, and nothing is computed elsewhere."""
    chosen = scenario(name, nq=30, nk=17, heads=2, kv_heads=1, mask=mask, **TILINGS[0])
    trace, engine = host_trace(*workload_of(chosen))
    flops = [launch[..., -1] for launch in engine.counted_visits()]
    for index in range(len(trace)):
        visit = trace.program.visit(index)
        own = sum(op.flops for op in trace.program.ops(index))
        assert flops[visit.launch][visit.head, visit.i, visit.j] == own
        flops[visit.launch][visit.head, visit.i, visit.j] = 0
    assert not any(launch.any() for launch in flops)


MISTAKES = (
    (NAIVE, "const float D = warp_sum(sum);", "const float D = sum;"),
    (NAIVE, "(dP_shared[key] - D);", "dP_shared[key];"),
    (NAIVE, "dS *= 1.0f - tanh_s * tanh_s;", "dS *= 1.0f - tanh_s;"),
    (NAIVE, "S - score.changed(0.0f, mask, head, row, key)", "S"),
    (NAIVE, "const float sum = scale * dQ[r][n];", "const float sum = dQ[r][n];"),
    (NAIVE, "        scale,  // [scale keys]", "        1.0f,  // [scale keys]"),
    (NAIVE, "if (kv_head_of[head] != kv_head) continue;", "if (head != kv_head) continue;"),
    (NAIVE, "        __syncthreads();  // dO and V are whole", ""),
    (NAIVE, "            __syncthreads();  // the tiles are whole", ""),
    (NAIVE, "if (head != first_head || i != first_block)", "if (i != first_block)"),
    (NAIVE, "detail_of(visit)->d[blockIdx.x % BR] = D;",
     "detail_of(visit)->d[blockIdx.x % BR] = 0;"),
    (NAME, "dS_row[n] = P_row[n] * (dS_row[n] - D);", "dS_row[n] = P_row[n] * dS_row[n];"),
    (NAME, "exponentials(P_row, LSE, keys);", "exponentials(P_row, 0.5f * LSE, keys);"),
    (NAME, "const float dQ = scale * sum;", "const float dQ = sum;"),
    (NAME, "if (kv_head_of[head] != kv_head) continue;", "if (head != kv_head) continue;"),
    (NAME, "if (head != first_head || tile.at != first_block)", "if (tile.at != first_block)"),
    (NAME, "dV, 1.0f, keys, visit, WRITE_dV", "dV, 3.0f, keys, visit, WRITE_dV"),
    (NAME, "    __syncthreads();  // every warp needs P and dS of all rows", ""),
)  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "line", "other"), MISTAKES, ids=[f"{name} {line[:30]}" for name, line, _ in MISTAKES]
)
def test_a_mistake_in_the_kernel_is_seen(name: str, line: str, other: str) -> None:
    capped = {"softcap": 2.0, "alibi": True} if "S" in line and name == NAIVE else {}
    chosen = scenario(
        name, nq=20, nk=26, heads=2, kv_heads=1, d=5, dv=7, rows=16, cols=12, scores=capped
    )

    def changed(code: str) -> str:
        assert line in code or "backward" not in code
        return code.replace(line, other)

    schedule = ThreadSchedule(ThreadOrder.REVERSE, workers=1)
    assert faults(*workload_of(chosen), (schedule,), lambda s: ChangedDevice(changed, s))
