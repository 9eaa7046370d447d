"""P, S and dS in the storage type: where they are rounded, and by which engines."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels.checks.variants import small
from simulator.base.dtypes import DType, round_to
from simulator.base.errors import InputError
from simulator.code.run_script import run_script
from simulator.code.tile_script import save_tile
from simulator.engines.numpy_engine import numpy_engine
from simulator.engines.protocol import Engine
from simulator.engines.reference import reference_rows
from simulator.problem.scenario import load_scenario, parse_scenario, with_values
from simulator.problem.workload import Inputs, Workload, read_inputs, resolve
from simulator.program.algorithms import ALGORITHMS, tile_program
from simulator.program.ops import rounded
from simulator.run.cosimulation import verify
from simulator.run.trace import Trace
from tests.helpers.process import python
from tests.helpers.runs import trace_of
from tests.kernels.helpers import ChangedDevice, host_trace, needs_compiler

CASES = Path(__file__).parents[2] / "conformance"
SOFTMAX = [name for name, algorithm in ALGORITHMS.items() if algorithm.softmax]


def run_of(algorithm: str, dtype: DType = "float16", p: str = "storage", **more: Any) -> Trace:
    tables = small(algorithm, {"attention": {"dtype": dtype, "p_dtype": p}, **more})
    return trace_of(parse_scenario(tables))


def outputs(engine: Engine, w: Workload) -> np.ndarray:
    return np.concatenate([block.o for head in range(w.heads) for block in engine.row_blocks(head)])


def by_hand(w: Workload, inputs: Inputs, head: int, rows: range) -> np.ndarray:
    """Return O of some rows, tile after tile in float64, as no op computes it."""
    q = inputs.q[head, rows.start : rows.stop].astype(np.float64) * w.logit_scale
    k, v = (x[w.kv_head_of[head]].astype(np.float64) for x in (inputs.k, inputs.v))
    s = np.where(w.mask.of_head(head).visible(rows, range(w.seqlen_k)), q @ k.T, -np.inf)

    def stored(x: np.ndarray) -> np.ndarray:
        return round_to(x.astype(np.float32), w.dtype).astype(np.float64)

    if w.algorithm == "naive":
        s = stored(s)
        p = np.exp(s - s.max(axis=1, keepdims=True))
        return np.asarray(stored(p / p.sum(axis=1, keepdims=True)) @ v)
    o, l, m = np.zeros((len(rows), v.shape[1])), np.zeros(len(rows)), np.full(len(rows), -1e300)
    for at in range(0, w.seqlen_k, w.cols):
        tile = s[:, at : at + w.cols]
        own = np.maximum(tile.max(axis=1), -1e300)
        now = np.maximum(m, own)
        top = own if w.algorithm == "flash1" else now
        p = np.exp(tile - top[:, None])
        old, new = np.exp(m - now), np.exp(top - now)
        l = old * l + new * p.sum(axis=1)
        o = old[:, None] * o + new[:, None] * (stored(p) @ v[at : at + w.cols])
        m = now
    return np.asarray(o / l[:, None])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_rounded_is_what_storing_does(dtype: DType) -> None:
    draw = np.random.default_rng(0)
    numbers = draw.standard_normal(4000) * 2.0 ** draw.integers(-120, 15, 4000)
    single = np.concatenate([numbers, [0, -0.0, np.inf, -np.inf]]).astype(np.float32)
    assert np.array_equal(rounded(single, dtype), round_to(single, dtype))
    assert np.array_equal(rounded(single.astype(np.float64), dtype), round_to(single, dtype))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("algorithm", ["naive", "flash1", "flash2"])
def test_numbers_are_rounded_where_kernels_round_them(algorithm: str, dtype: DType) -> None:
    trace = run_of(algorithm, dtype, mask={"causal": True})
    w, plain = trace.workload, run_of(algorithm, dtype, "float32", mask={"causal": True})
    far, without = [], []
    for i in range(w.grid.Tr):
        rows = w.grid.row_range(i)
        expected = by_hand(w, trace.inputs, 1, rows)
        for engine, errors in ((trace.engine, far), (plain.engine, without)):
            errors.append(np.abs(engine.row_block(1, i).o - expected).max())
    unit = {"float16": 2.0**-11, "bfloat16": 2.0**-8}[dtype]
    if algorithm == "flash1":  # its O is float32 in HBM
        assert max(far) < unit / 8 < max(without)
    assert max(far) < 1.01 * unit * np.abs(trace.inputs.v).max()
    means = [np.mean(errors) for errors in (far, without)]
    assert means[0] < means[1]


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("algorithm", SOFTMAX)
def test_the_engine_and_float64_round_at_the_same_places(algorithm: str) -> None:
    for scores in ({}, {"softcap": 2.0}):
        verdict = verify(run_of(algorithm, "bfloat16", scores=scores))
        assert verdict.difference is None, verdict


@pytest.mark.long
@needs_compiler
@pytest.mark.parametrize("algorithm", SOFTMAX)
def test_kernels_round_at_the_same_places(algorithm: str) -> None:
    trace = run_of(algorithm)
    verdict = verify(host_trace(trace.workload, trace.inputs)[0])
    assert verdict.difference is None, verdict


@pytest.mark.long
@needs_compiler
@pytest.mark.parametrize("algorithm", SOFTMAX)
def test_kernels_that_leave_the_rounding_out_differ(algorithm: str) -> None:
    trace = run_of(algorithm)
    exact = ChangedDevice(lambda code: re.sub(r"widen\(narrow\((\*x|p|dS)\)\)", r"\1", code))
    wrong = host_trace(trace.workload, trace.inputs, exact)[0]
    assert verify(wrong).difference is not None


def test_the_case_of_flash2_before_its_output_is_stored() -> None:
    """O is stored in float16: only what is on chip is nearer to the case than its rounding."""
    w = resolve(load_scenario(CASES / "p16-flash2.toml"))
    inputs = read_inputs(w)
    allowed = json.loads((CASES / "p16-flash2.expected.json").read_text())["tolerance"]
    allowed = allowed["o_before_it_is_stored"]
    with np.load(CASES / "p16-flash2.expected.npz") as arrays:
        expected = arrays["o"][0]
    program, shares = tile_program(w), []
    plain = resolve(with_values(w.scenario, {"attention": {"p_dtype": None}}))
    for run in (w, plain):
        engine, o = numpy_engine(run, inputs), []
        for i in range(w.grid.Tr):
            last = program.visit(w.grid.Tc * (i + 1) - 1)
            o.append(engine.tile(last, engine.row_block(0, i)).last("O"))
        shares.append(np.max(np.abs(np.concatenate(o) - expected) / (1 + np.abs(expected))))
    assert shares[0] < allowed < shares[1]


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ["naive", "flash1", "flash2"])
def test_scripts_agree_with_a_run_that_rounds(algorithm: str, tmp_path: Path) -> None:
    trace = run_of(algorithm, "bfloat16")
    whole = tmp_path / "run.py"
    whole.write_text(run_script(trace, 1, 30), encoding="utf-8")
    last = [int(n) - 1 for n in np.cumsum(trace.program.sizes)]  # of each launch
    scripts = [save_tile(trace.snapshot(n, None), tmp_path / f"{n}.npz")[1] for n in last]
    for script in (whole, *scripts):
        done = python(script)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("algorithm", SOFTMAX)
def test_nothing_changes_in_float32(algorithm: str) -> None:
    trace, plain = run_of(algorithm, "float32"), run_of(algorithm, "float32", "float32")
    assert trace.workload.pair_dtype is None
    assert type(trace.engine) is type(plain.engine)
    assert [op for n in range(len(trace.program)) for op in trace.program.ops(n)] == [
        op for n in range(len(plain.program)) for op in plain.program.ops(n)
    ]


@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if name not in SOFTMAX])
def test_it_is_refused_where_there_is_no_p(algorithm: str) -> None:
    said = {"algorithm": algorithm, "seqlen_q": 4, "head_dim": 4, "heads": 1, "p_dtype": "storage"}
    with pytest.raises(InputError, match=r"attention\.p_dtype.*no P"):
        resolve(parse_scenario({"attention": said, "mask": {"causal": True}}))


@pytest.mark.parametrize(("dtype", "naive"), [("float16", 8.7e-4), ("bfloat16", 5.5e-3)])
def test_standard_attention_is_less_exact_and_flash_is_not(dtype: DType, naive: float) -> None:
    def errors(algorithm: str, p: str) -> tuple[float, float]:
        said = {"algorithm": algorithm, "heads": 1, "seqlen_q": 256, "head_dim": 64,
                "dtype": dtype, "p_dtype": p}  # fmt: skip
        w = resolve(parse_scenario({"attention": said}))
        inputs = read_inputs(w)
        exact, _ = reference_rows(w, inputs, 0, range(256))
        off = np.abs(outputs(numpy_engine(w, inputs), w) - exact)
        return float(off.max()), float(off.mean())

    assert errors("naive", "storage")[0] == pytest.approx(naive, rel=0.2)
    (most, mean), (most_32, mean_32) = (errors("flash2", p) for p in ("storage", "float32"))
    assert most == pytest.approx(most_32, rel=0.05)
    assert mean == pytest.approx(1.47 * mean_32, rel=0.1)
