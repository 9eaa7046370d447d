"""The unmodified kernels on the CPU, held against float64, against NumPy and against the plan."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.cuda import engine as engine_module
from kernels.cuda.counters import COUNTERS
from kernels.cuda.engine import KernelEngine, Room
from kernels.cuda.fast import FastRun
from kernels.cuda.records import carried_on
from kernels.cuda.specs import KERNELS
from kernels.devices.host.device import HostDevice
from simulator.problem.facts import PACKED
from simulator.problem.scenario import Scenario, load_scenario, parse_scenario
from simulator.problem.workload import Inputs, resolve
from simulator.run.cosimulation import verify
from tests.conformance.check import HERE, find_cases
from tests.kernels.helpers import (
    ALGORITHMS,
    SCHEDULES,
    TILINGS,
    conformance_faults,
    faults,
    few,
    host_trace,
    kernel_scenarios,
    needs_compiler,
    scenario,
    workload_of,
)

pytestmark = needs_compiler

MASKS = ({}, {"causal": True}, {"window": 9, "sinks": 2}, {"causal": True, "window": 7, "sinks": 5})


CASES = [each for each in find_cases(HERE) if load_scenario(each).attention.algorithm in KERNELS]


@pytest.mark.sweep(keep=4)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_conformance(case: Path) -> None:
    assert conformance_faults(case) == []


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@settings(max_examples=few(6))
@given(data=st.data())
def test_any_workload(algorithm: str, data: st.DataObject) -> None:
    chosen = data.draw(kernel_scenarios(algorithm))
    schedule = data.draw(st.sampled_from(SCHEDULES))
    assert faults(*workload_of(chosen), (schedule,)) == []


@pytest.mark.long
@pytest.mark.parametrize("algorithm", PACKED)
def test_splits_of_a_size_are_not_those_of_a_number(algorithm: str) -> None:
    """Nine column blocks are dealt out 4, 4, 1; to three splits 3, 3, 3."""
    said = {"nq": 2, "nk": 27, "heads": 2, "kv_heads": 1, **TILINGS[0], "dtype": "float32"}
    outputs = []
    for dealt in ({"split_blocks": 4}, {"splits": 3}):
        workload, inputs = workload_of(scenario(algorithm, **dealt, **said))
        assert workload.splits == 3
        assert faults(workload, inputs, SCHEDULES[:1]) == []
        run = FastRun(workload, inputs, HostDevice())
        run.launch()
        outputs.append(run.tensors.o.tobytes())
    assert outputs[0] != outputs[1]


@pytest.mark.long
@pytest.mark.parametrize("algorithm", PACKED)
def test_a_prompts_rows_have_the_bits_of_their_steps_of_decoding(algorithm: str) -> None:
    """Splits of a size are cut at places alone; a number cuts each length anew."""
    said = {"heads": 2, "kv_heads": 1, "rows": 4, "cols": 8, "d": 5, "dv": 7}
    differing = {}
    for key, dealt in (("size", {"split_blocks": 2}), ("number", {"splits": 3})):
        told = {**said, **dealt, "mask": {"causal": True}}
        workload, inputs = workload_of(scenario(algorithm, nq=40, nk=40, **told))
        prompt = host_trace(workload, inputs)[0].output
        q, differing[key] = inputs.q.reshape(2, 40, -1), 0
        for place in (0, 7, 8, 20, 33, 39):
            w = resolve(scenario(algorithm, nq=1, nk=place + 1, **told))
            own = q[:, place : place + 1].reshape(w.heads, w.seqlen_q, -1)
            seen = slice(place + 1)
            step = host_trace(w, Inputs(own, inputs.k[:, seen], inputs.v[:, seen]))[0].output
            differing[key] += step[:, 0].tobytes() != prompt[:, place].tobytes()
    assert differing["size"] == 0 < differing["number"]


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("mask", [MASKS[0], MASKS[-1]], ids=str)
def test_every_order_gives_the_same_bits(algorithm: str, mask: dict[str, int]) -> None:
    chosen = scenario(algorithm, nq=50, nk=90, heads=4, kv_heads=2, mask=mask, **TILINGS[2])
    workload, inputs = workload_of(chosen)
    assert faults(workload, inputs, SCHEDULES) == []
    outputs = []
    for schedule in SCHEDULES:
        run = FastRun(workload, inputs, HostDevice(schedule))
        run.launch()
        outputs.append(run.tensors.o.tobytes())
    assert len(set(outputs)) == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("dtype", "rows", "cols", "d"),
    [("float16", 64, 64, 64), ("bfloat16", 128, 128, 32), ("float32", 24, 64, 96)],
)
def test_published_tiles(dtype: str, rows: int, cols: int, d: int) -> None:
    chosen = scenario(
        "flash2", nq=200, d=d, rows=rows, cols=cols, dtype=dtype, mask={"causal": True}
    )
    assert faults(*workload_of(chosen), SCHEDULES[:1]) == []


def whole_kinds(engine: KernelEngine) -> np.ndarray:
    """Return the kinds that a kernel met, (heads, Tr, Tc)."""
    w = engine.workload
    part = engine_module.LaunchPart.whole(w)
    return engine._run(part, range(0)).kinds


@pytest.mark.long
@settings(max_examples=settings.default.max_examples * 2 // 3)
@given(chosen=kernel_scenarios("flash2"))
def test_kinds_are_the_grids(chosen: Scenario) -> None:
    workload, inputs = workload_of(chosen)
    kinds = whole_kinds(host_trace(workload, inputs)[1])
    np.testing.assert_array_equal(kinds, np.stack([workload.grid.kinds()] * workload.heads))


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("mask", MASKS, ids=str)
def test_counters_of_each_visit(algorithm: str, mask: dict[str, int]) -> None:
    """What a visit reads and computes is what its ops say; stores outside of visits apart."""
    chosen = scenario(algorithm, nq=30, nk=17, heads=2, mask=mask, **TILINGS[0])
    trace, engine = host_trace(*workload_of(chosen))
    counted = engine.counted_visits()
    for index in range(len(trace)):
        visit, ops = trace.program.visit(index), trace.program.ops(index)
        launched = counted[visit.launch]
        column = min(visit.j, launched.shape[2] - 1)  # of a chunk with itself alone
        ours = launched[visit.head, visit.i, column].tolist()
        theirs = dict.fromkeys(COUNTERS, 0)
        for op in ops:
            theirs[("flops", "")] += op.flops
            for move in op.moves:
                # Zeros of a backward pass are a row block's own, where it has no tile.
                if op.name != "clear" or not trace.program.launches[visit.launch].forms:
                    theirs[("read" if op.loads else "write", move.tensor)] += move.bytes
        got = dict(zip(COUNTERS, ours, strict=True))
        if algorithm == "flash1" and visit.j == 0:  # the row block was cleared there
            rows = len(visit.rows)
            for tensor, bytes_of in (("O", 4 * rows * 7), ("l", 4 * rows), ("m", 4 * rows)):
                got["write", tensor] -= bytes_of
        if algorithm in PACKED and visit.launch == 0 and visit.j == 0:  # empty splits, too
            dealt = trace.program.launches[0].visits.counts[3 * visit.i : 3 * visit.i + 3]
            empty = len(visit.rows) * int((dealt == 0).sum())
            got["write", "O_partial"] -= 4 * empty * 7
            got["write", "LSE_partial"] -= 4 * empty
        assert got == theirs, visit


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_long_row_blocks_are_recorded_in_stretches(algorithm: str) -> None:
    chosen = scenario(algorithm, nq=21, nk=30, heads=2, mask={"causal": True}, **TILINGS[0])
    workload, inputs = workload_of(chosen)
    per_visit = engine_module.detail_type(workload).itemsize
    plain, _ = host_trace(workload, inputs)
    cut, engine = host_trace(workload, inputs, room=Room(details=3 * per_visit, batch=1500))
    assert verify(cut).difference is None
    assert engine.row_blocks_at_once < workload.grid.Tr
    for name, array in plain.arrays().items():
        assert array.tobytes() == cut.arrays()[name].tobytes(), name
    s, p = engine.row_matrices(0, 5, engine.row_block(0, 5))
    for got, want in zip(
        (s, p), plain.engine.row_matrices(0, 5, plain.row_block(0, 5)), strict=True
    ):
        np.testing.assert_array_equal(got, want)


@pytest.mark.long
def test_naive_with_rounded_scores() -> None:
    """S and P as wide as the dtype, as they are timed: O still holds its tolerance."""
    chosen = scenario("naive", nq=33, nk=40, d=16, rows=16, cols=16, dtype="float16")
    workload, inputs = workload_of(chosen)
    trace, _ = host_trace(workload, inputs)
    run = FastRun(workload, inputs, HostDevice(), scores_as_element=True)
    run.launch()
    assert run.tensors.s.dtype == np.uint16
    o = engine_module.widened(run.tensors.o, workload.dtype)
    assert np.all(np.abs(o - trace.output) <= 2e-3 * (1 + np.abs(trace.output)))
    assert not np.array_equal(o, trace.output)


@pytest.mark.long
def test_rows_before_the_first_key_see_nothing_of_a_dilated_window() -> None:
    """Nothing is a global token there, though their places are below 0."""
    mask = {"window": 1, "dilation": 2}
    chosen = scenario("flash2", nq=8, nk=5, d=8, dv=33, rows=20, cols=40, mask=mask)
    assert faults(*workload_of(chosen), SCHEDULES[:1]) == []


def test_large_logits_hold() -> None:
    chosen = scenario("flash2", nq=40, d=8, rows=16, cols=16, scale=60.0)
    workload, inputs = workload_of(chosen)
    trace, _ = host_trace(workload, inputs)
    assert np.abs(trace.lse).max() > 200
    assert verify(trace).difference is None


def test_carried_on() -> None:
    nothing = np.array([-np.inf], dtype=np.float32)
    values = np.array([[np.nan, 1, np.nan, np.nan, 2, np.nan]], dtype=np.float32)
    out = carried_on(values, np.array([0, 1, 0, 0, 1, 0], dtype=bool), nothing)
    np.testing.assert_array_equal(out, [[-np.inf, 1, 1, 1, 2, 2]])


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ["naive", "flash1", "flash2", "split-kv", "paged"])
def test_a_block_mask_with_all_that_can_be_beside_it(algorithm: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    shapes = {"q": (4, 21, 5), "k": (2, 26, 5), "v": (2, 26, 3)}
    tensors = {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    np.savez(tmp_path / "in.npz", **tensors, block_mask=rng.random((6, 7)) < 0.6)
    said = {
        "attention": {"algorithm": algorithm},
        "mask": {"causal": True, "window": 9, "sinks": 1, "dilation": 2, "global_tokens": 3,
                 "documents": [9, 10, 7], "block": 4},
        "scores": {"softcap": 2.0, "alibi": True},
        "tiling": {"rows": 8, "cols": 6},
        "input": {"source": "file", "path": str(tmp_path / "in.npz")},
    }  # fmt: skip
    assert faults(*workload_of(parse_scenario(said)), SCHEDULES) == []
