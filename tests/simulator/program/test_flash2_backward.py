"""Backward passes: gradients against float64 and differences; bytes of flash2's by plain loops."""

from itertools import product
from math import ceil
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.base.dtypes import round_to
from simulator.engines.numpy_engine import op_engine
from simulator.engines.protocol import BackwardEngine
from simulator.engines.reference import reference_rows
from simulator.problem.scenario import Scenario, parse_scenario, with_values
from simulator.problem.workload import Inputs, Workload, read_inputs, resolve
from simulator.program.algorithms import ALGORITHMS, tile_program
from simulator.program.faults import FAULTS, without_effect
from simulator.program.tile_program import TileProgram
from simulator.program.traffic import compulsory_bytes
from simulator.run.trace import Trace, tile_counts
from tests.helpers.op_by_op import counted_by_ops
from tests.helpers.refused import refused
from tests.helpers.runs import (
    WIDTHS,
    exact_gradients,
    pairs_of,
    program_of,
    scenario,
    scenarios,
    trace_of,
)

NAME = "flash2-backward"
NAMES = tuple(name for name, of in ALGORITHMS.items() if of.backward)
DRAWN = scenarios(algorithms=(NAME,))
OF_ALL = scenarios(algorithms=NAMES)
ROUNDING = {"float32": 2e-4, "float16": 4e-3, "bfloat16": 3e-2}
"""How far a gradient of some tens of terms may be off: dO and O are rounded, too."""

Gradients = tuple[np.ndarray, np.ndarray, np.ndarray]


# --- visits and bytes ---------------------------------------------------------------------------


def plain_visits(w: Workload) -> list[tuple[int, int, int, int]]:
    """Return (launch, head, i, j) of every visit, by plain loops."""
    kinds = pairs_of(w).kinds(w.rows, w.cols)
    rows = [(head, i) for head, i in product(range(w.heads), range(kinds.shape[0]))]
    tiles = [
        (1, head, i, j)
        for kv, j in product(range(w.kv_heads), range(kinds.shape[1]))
        for head in range(w.heads)
        if w.kv_head_of[head] == kv
        for i in range(kinds.shape[0])
        if kinds[i, j]
    ]
    return [(0, *each, 0) for each in rows] + tiles + [(2, *each, 0) for each in rows]


@given(DRAWN)
def test_visits_are_those_of_plain_loops(chosen: Scenario) -> None:
    program = program_of(chosen)
    w, expected = program.workload, plain_visits(program.workload)
    assert len(program) == len(expected)
    for index, (launch, head, i, j) in enumerate(expected):
        visit = program.visit(index)
        assert (visit.launch, visit.head, visit.i) == (launch, head, i)
        assert program.index(head, i, j, launch) == index
        if launch != 1:
            assert visit.cols == range(w.seqlen_k)
        else:
            assert visit.j == j
            outer = [(kv_of(w, each[1]), each[3]) for each in expected if each[0] == 1]
            nth = index - sum(each[0] == 0 for each in expected)
            assert visit.first == (nth == 0 or outer[nth - 1] != outer[nth])
            assert visit.last == (nth == len(outer) - 1 or outer[nth + 1] != outer[nth])
            assert visit.opens == (nth == 0 or outer[nth - 1][0] != outer[nth][0])


def kv_of(w: Workload, head: int) -> int:
    return w.kv_head_of[head]


@given(DRAWN)
def test_counts_are_those_of_the_ops_and_of_plain_loops(chosen: Scenario) -> None:
    program = program_of(chosen)
    counted = counted_by_ops(program)
    assert (dict(counted.read), dict(counted.write), counted.flops) == brute_force(program)


def brute_force(program: TileProgram) -> tuple[dict[str, int], dict[str, int], int]:
    """Return what the conventions count, element by element."""
    w = program.workload
    b, d, dv = WIDTHS[w.dtype], w.head_dim, w.value_dim
    kinds = pairs_of(w).kinds(w.rows, w.cols)
    rows = [min(w.rows, w.seqlen_q - i * w.rows) for i in range(kinds.shape[0])]
    keys = [min(w.cols, w.seqlen_k - j * w.cols) for j in range(kinds.shape[1])]
    queries = w.heads * w.seqlen_q
    read, write = dict.fromkeys(program.tensors, 0), dict.fromkeys(program.tensors, 0)
    read |= {"O": queries * dv * b, "dO": queries * dv * b, "dQ_acc": queries * d * 4}
    write |= {"D": queries * 4, "dQ_acc": queries * d * 4, "dQ": queries * d * b}
    write |= {"dK": w.kv_heads * w.seqlen_k * d * b, "dV": w.kv_heads * w.seqlen_k * dv * b}
    seen = w.kv_heads * sum(size for size, of in zip(keys, kinds.T, strict=True) if of.any())
    read |= {"K": seen * d * b, "V": seen * dv * b}
    flops = 0
    for i, j in zip(*np.nonzero(kinds), strict=True):
        own = w.heads * rows[i]
        for tensor, bytes_of in (("Q", d * b), ("dO", dv * b), ("LSE", 4), ("D", 4)):
            read[tensor] += own * bytes_of
        read["dQ_acc"] += own * d * 4
        write["dQ_acc"] += own * d * 4
        flops += 2 * own * keys[j] * (3 * d + 2 * dv)
    return read, write, flops


def test_the_least_bytes_count_each_launch_once() -> None:
    program = program_of(scenario(NAME, nq=6, nk=8, d=3, dv=2, heads=2, kv_heads=1, rows=2, cols=4))
    dots = 12 * (2 * 2 * 4 + 4 + 3 * 4)  # O, dO, D and zeros
    tiles = 12 * ((3 + 2) * 4 + 2 * 4 + 3 * 4) + 2 * 8 * (3 + 2) * 4  # K and V, dK and dV
    assert compulsory_bytes(program.workload) == dots + tiles + 12 * 3 * (4 + 4)


def test_tiles_are_those_of_each_query_head() -> None:
    program = program_of(
        scenario(NAME, nq=10, heads=4, kv_heads=2, rows=3, cols=4, mask={"causal": True})
    )
    seen = program.workload.heads * np.count_nonzero(pairs_of(program.workload).kinds(3, 4))
    assert tile_counts(program)["visited"] == seen
    assert tile_counts(program)["total"] == 4 * ceil(10 / 3) * ceil(10 / 4)


# --- numbers --------------------------------------------------------------------------------------


@settings(max_examples=settings.default.max_examples // 3)
@given(OF_ALL, st.randoms(use_true_random=False))
def test_a_number_is_the_same_wherever_one_comes_from(chosen: Scenario, random: Any) -> None:
    """Tiles in any order leave the bits of the whole run."""
    trace = trace_of(chosen)
    engine, w = trace.engine, trace.workload
    assert isinstance(engine, BackwardEngine)
    visits = [trace.program.visit(index) for index in range(len(trace))]
    random.shuffle(visits)
    whole = {kv: engine.gradients(kv) for kv in range(w.kv_heads)}
    if w.dtype != "float32":
        return  # what is stored is rounded
    for visit in visits:
        last = trace.tile(visit.index).states[-1]
        kv = w.kv_head_of[visit.head]
        keys = slice(visit.cols.start, visit.cols.stop)
        writes = trace.program.launches[visit.launch].writes
        for name in ("dK", "dV"):
            if visit.last and name in writes:
                np.testing.assert_array_equal(last[name], whole[kv][name][keys])
        if visit.last and "dQ" in writes:
            own = [head for head in range(w.heads) if w.kv_head_of[head] == kv]
            rows = slice(visit.rows.start, visit.rows.stop)
            want = whole[kv]["dQ"][own.index(visit.head), rows]
            np.testing.assert_array_equal(last["dQ"], want)


DIFFERENCES: tuple[dict[str, Any], ...] = (
    {},
    {"mask": {"causal": True}, "heads": 4, "kv_heads": 2, "nk": 11},
    {"mask": {"causal": True, "window": 3, "sinks": 1}, "temperature": 0.5},
    {"scores": {"softcap": 2.0, "alibi": True}},
    {"scores": {"sink_logits": [0.5, -1.0]}, "nk": 4, "mask": {"causal": True}},
)


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("said", DIFFERENCES, ids=str)
def test_gradients_are_finite_differences(said: dict[str, Any], name: str) -> None:
    """Of the loss Σ dO · O in float64: every number of Q, K and V, moved a little both ways."""
    chosen = scenario(name, **{"nq": 7, "d": 3, "dv": 2, "heads": 2, "kv_heads": 1, **said})
    w = resolve(chosen)
    inputs = read_inputs(w)
    names = ("q", "k", "v")
    numbers = {name: getattr(inputs, name).astype(np.float64) for name in names}

    def loss(**moved: np.ndarray) -> float:
        own = Inputs(**{**numbers, **moved}, upstream=inputs.upstream)
        rows = range(w.seqlen_q)
        o = np.stack([reference_rows(w, own, head, rows)[0] for head in range(w.heads)])
        return float((o * own.upstream).sum())

    made = Trace(tile_program(w), op_engine(w, inputs, np.float64), inputs).arrays()
    step = 1e-5
    for tensor, exact in zip(names, exact_gradients(w, inputs), strict=True):
        found = np.zeros_like(exact)
        for place in np.ndindex(*exact.shape):
            ends = []
            for sign in (1, -1):
                moved = numbers[tensor].copy()
                moved[place] += sign * step
                ends.append(loss(**{tensor: moved}))
            found[place] = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(exact, found, rtol=1e-6, atol=1e-6 * np.abs(exact).max())
        ours = made[f"d{tensor}"]  # rounded to float32 at the end
        np.testing.assert_allclose(ours, found, rtol=1e-6, atol=1e-6 * np.abs(exact).max())


@pytest.mark.parametrize("name", NAMES)
def test_keys_that_nobody_sees_have_no_gradient(name: str) -> None:
    trace = trace_of(scenario(name, nq=3, nk=12, rows=2, cols=2, mask={"window": 2}))
    arrays = trace.arrays()
    assert not arrays["dk"][:, :8].any()
    assert not arrays["dv"][:, :8].any()
    assert arrays["dk"][:, 10:].all()


# --- FlashAttention's shapes ----------------------------------------------------------------------

SHAPES = tuple(
    (d, nq, nk, dtype, causal)
    for d in (32, 40, 59, 64, 96, 111, 128, 160, 192, 224, 256)
    for nq, nk in ((113, 203), (108, 256), (1, 147), (3, 799))
    for dtype in ("float16", "bfloat16")
    for causal in (False, True)
)
"""Of tests/test_flash_attn.py of Dao-AILab/flash-attention."""
TIMES = 3
"""How many times the error of plain operations of the same dtype a gradient may have there."""


def plain_gradients(w: Workload, inputs: Inputs) -> Gradients:
    """Return the gradients as operations of the dtype make them: each result is rounded."""

    def rounded(x: np.ndarray) -> np.ndarray:
        return round_to(x.astype(np.float32), w.dtype)

    dq, dk, dv = (np.zeros(x.shape, np.float32) for x in (inputs.q, inputs.k, inputs.v))
    seen = w.mask.visible(range(w.seqlen_q), range(w.seqlen_k))
    for head, kv in enumerate(w.kv_head_of):
        k, v, upstream = inputs.k[kv], inputs.v[kv], inputs.upstream[head]
        q = rounded(inputs.q[head] * np.float32(w.scale))
        scores = np.where(seen, rounded(q @ k.T), np.float32(-np.inf))
        top = scores.max(axis=1, keepdims=True)
        weights = np.exp(scores - np.where(np.isneginf(top), np.float32(0), top))
        total = weights.sum(axis=1, keepdims=True)
        p = rounded(weights / np.where(total == 0, np.float32(1), total))
        dp = rounded(upstream @ v.T)
        ds = rounded(p * (dp - (p * dp).sum(axis=1, keepdims=True)))
        dq[head] = rounded(rounded(ds @ k) * np.float32(w.scale))
        dk[kv] += rounded(ds.T @ q)
        dv[kv] += rounded(p.T @ upstream)
    return dq, rounded(dk), rounded(dv)


@pytest.mark.sweep(keep=3)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("d", "nq", "nk", "dtype", "causal"), SHAPES)
def test_errors_are_those_that_flash_attention_allows(
    d: int, nq: int, nk: int, dtype: str, causal: bool, name: str
) -> None:
    chosen = scenario(
        name, nq=nq, nk=nk, d=d, heads=2, kv_heads=1, rows=64, cols=64, dtype=dtype,
        mask={"causal": causal},
    )  # fmt: skip
    trace = trace_of(chosen)
    arrays, exact = trace.arrays(), exact_gradients(trace.workload, trace.inputs)
    plain = plain_gradients(trace.workload, trace.inputs)
    for made, want, other in zip(("dq", "dk", "dv"), exact, plain, strict=True):
        ours = float(np.abs(arrays[made] - want).max())
        assert ours <= TIMES * float(np.abs(other - want).max()) + 1e-5, made


# --- the gradient of O ----------------------------------------------------------------------------


def saved(folder: Any, **changed: np.ndarray) -> Scenario:
    """Return a scenario whose numbers are in a file."""
    rng = np.random.default_rng(0)
    shapes = {"q": (2, 5, 4), "k": (1, 6, 4), "v": (1, 6, 3), "do": (2, 5, 3)}
    tensors = {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    np.savez(folder / "in.npz", **tensors | changed)
    return parse_scenario(
        {
            "attention": {"algorithm": NAME},
            "tiling": {"rows": 2, "cols": 2},
            "input": {"source": "file", "path": str(folder / "in.npz")},
        }
    )


def test_it_is_that_of_the_file(tmp_path: Any) -> None:
    mine = np.full((2, 5, 3), 0.25, np.float32)
    upstream = read_inputs(resolve(saved(tmp_path, do=mine))).upstream
    np.testing.assert_array_equal(upstream, mine)


def test_it_is_drawn_after_v() -> None:
    w = resolve(scenario(NAME, nq=3, nk=5, d=2, dv=4, heads=2, kv_heads=1, seed=7))
    rng = np.random.default_rng(7)
    for shape in ((2, 3, 2), (1, 5, 2), (1, 5, 4)):
        rng.standard_normal(shape)
    want = rng.standard_normal((2, 3, 4)).astype(np.float32)
    np.testing.assert_array_equal(read_inputs(w).upstream, want)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros((2, 5, 4), np.float32), "shape of do = (2, 5, 4): expected (2, 5, 3)"),
        (np.full((2, 5, 3), np.nan, np.float32), "tensor do, head 0, row 0, column 0"),
    ],
)
def test_one_that_is_not_of_o_is_refused(wrong: np.ndarray, message: str, tmp_path: Any) -> None:
    assert message in refused(read_inputs, resolve(saved(tmp_path, do=wrong)))


def test_a_snapshot_has_the_numbers_of_its_rows() -> None:
    trace: Trace = trace_of(scenario(NAME, nq=8, heads=2, kv_heads=1))
    visit = trace.program.index(1, 1, 0, 1)
    assert visit is not None
    now = trace.snapshot(visit)
    np.testing.assert_array_equal(now.inputs["dO"], trace.inputs.upstream[1])
    np.testing.assert_array_equal(now.head.o if now.head else None, trace.output[1])


def test_faults_of_the_forward_pass_leave_it_alone() -> None:
    chosen = scenario(NAME, nq=6, mask={"causal": True})
    right = trace_of(chosen).arrays()
    for fault in (each for each in FAULTS if NAME not in each.algorithms):
        wrong = with_values(chosen, {"faults": {fault.name: True}})
        assert "forward pass" in without_effect(fault, resolve(wrong))
        for name, array in trace_of(wrong).arrays().items():
            np.testing.assert_array_equal(array, right[name], err_msg=f"{fault.name}, {name}")


def test_an_engine_that_has_forgotten_makes_the_same_again() -> None:
    trace = trace_of(scenario("flash2-backward", nq=6, d=2, rows=2, cols=2))
    visit = trace.program.visit(trace.program.head_bounds(len(trace) // 2)[1] - 1)
    engine = trace.engine
    block = engine.row_block(visit.head, visit.i)
    before = engine.tile(visit, block)
    assert engine.tile(visit, block) is before
    engine.forget()
    after = engine.tile(visit, block)
    assert after is not before
    for one, other in zip(before.states, after.states, strict=True):
        assert one.keys() == other.keys()
        for name in one:
            np.testing.assert_array_equal(one[name], other[name])
