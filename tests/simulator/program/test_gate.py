"""O times the gate of a layer: where, by which engines, and what it costs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.checks.variants import small
from kernels.cuda.launch import build_options
from kernels.cuda.tensor_core import check
from kernels.devices.host.device import HostDevice
from kernels.errors import KernelError
from simulator.base.dtypes import round_to
from simulator.base.errors import InputError
from simulator.code.run_script import run_script
from simulator.code.tile_script import save_tile
from simulator.engines.interpreter import Interpreter
from simulator.engines.numpy_engine import op_engine
from simulator.engines.reference import reference_rows
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import Workload, read_inputs, resolve
from simulator.program.algorithms import ALGORITHMS, tile_program
from simulator.program.gate_ops import ApplyGate
from simulator.program.traffic import compulsory_bytes
from simulator.run.cosimulation import verify
from simulator.run.provenance import explain
from simulator.run.row_report import row_report
from simulator.run.snapshot import Cell
from simulator.run.trace import simulate
from simulator.study.sweep import figures_of
from tests.helpers.op_by_op import counted_by_ops
from tests.helpers.process import python
from tests.helpers.refused import refused
from tests.helpers.runs import trace_of
from tests.kernels.helpers import ChangedDevice, host_trace, needs_compiler

TAKES = [n for n, each in ALGORITHMS.items() if each.softmax and not each.backward]
SPLITS = [name for name in TAKES if ALGORITHMS[name].splits]
FLASH = [name for name in TAKES if name not in SPLITS and name != "naive"]
HEADS, NQ, NK, D = 2, 13, 17, 6


def gated(
    folder: Path, algorithm: str, *, gate: bool = True, changes: Mapping[str, Any] | None = None,
    nq: int = NQ, dtype: str = "float32",
) -> Workload:  # fmt: skip
    """Return a workload of a file with a gate, or of the same file without it."""
    mask = {"causal": True}
    tables = small(algorithm, {"mask": mask, "tiling": {"rows": 4, "cols": 5}, **(changes or {})})
    said = tables["attention"]
    said |= {"heads": HEADS, "seqlen_q": nq, "seqlen_k": NK, "dtype": dtype}
    latent = said.get("latent_dim")
    if latent is None:
        said["head_dim"] = D
    value, draw = latent or D, np.random.default_rng(1)
    wide = latent + said["rope_dim"] if latent else D

    def drawn(*shape: int) -> np.ndarray:
        return draw.standard_normal(shape).astype(dtype)

    q = drawn(HEADS, nq, wide)
    keys = {"latent": drawn(NK, wide)} if latent else {n: drawn(1, NK, D) for n in "kv"}
    own = {"gate": 3 * drawn(HEADS, nq, value)} if gate else {}
    path = folder / f"{'gated' if gate else 'plain'}-{algorithm}-{nq}-{dtype}.npz"
    np.savez(path, q=q, **keys, **own)
    tables["input"] = {"source": "file", "path": str(path)}
    return resolve(parse_scenario(tables))


def by_hand(w: Workload) -> np.ndarray:
    """Return O of all heads, float64, as no op computes it."""
    w, inputs = trace_of(w).single_heads
    out = []
    for head in range(w.heads):
        q, k = (x.astype(np.float64) for x in (inputs.q[head], inputs.k[w.kv_head_of[head]]))
        seen = w.mask.visible(range(w.seqlen_q), range(w.seqlen_k))
        p = np.where(seen, np.exp(w.logit_scale * q @ k.T), 0.0)
        total = np.maximum(p.sum(axis=1, keepdims=True), 1e-300)
        o = p / total @ inputs.v[w.kv_head_of[head]].astype(np.float64)
        with np.load(str(w.file and w.file.path)) as file:
            out.append(o * file["gate"][head].astype(np.float64) if "gate" in file else o)
    return np.stack(out)


@pytest.mark.sweep(keep=4)
@pytest.mark.parametrize("nq", [1, NQ, 25])
@pytest.mark.parametrize("algorithm", TAKES)
def test_all_engines_and_the_reference_gate_o(algorithm: str, nq: int, tmp_path: Path) -> None:
    """With 25 queries, the first rows see nothing."""
    w = gated(tmp_path, algorithm, nq=nq)
    trace, expected = trace_of(w), by_hand(w)
    near = {"rtol": 0, "atol": 2e-5}
    np.testing.assert_allclose(trace.output, expected, **near)
    every = op_engine(w, trace.inputs)
    walked = np.stack([np.concatenate([b.o for b in every.row_blocks(h)]) for h in range(w.heads)])
    np.testing.assert_allclose(w.unpacked(walked), expected, **near)
    interpreter = Interpreter(trace.program, trace.inputs)
    interpreter.run()
    np.testing.assert_allclose(w.unpacked(interpreter.output), expected, atol=1e-12)
    exact = [reference_rows(w, trace.inputs, h, range(w.seqlen_q))[0] for h in range(w.heads)]
    np.testing.assert_allclose(w.unpacked(np.stack(exact)), expected, atol=1e-12)
    assert trace.summary()["max_abs_error"] < 2e-5
    assert verify(trace).difference is None


@pytest.mark.long
@needs_compiler
@pytest.mark.parametrize("nq", [1, NQ, 25])
@pytest.mark.parametrize("algorithm", TAKES)
def test_kernels_gate_o_and_count_it(algorithm: str, nq: int, tmp_path: Path) -> None:
    w = gated(tmp_path, algorithm, nq=nq)
    trace, engine = host_trace(w, read_inputs(w))[:2]
    np.testing.assert_allclose(trace.output, by_hand(w), atol=2e-5)
    assert verify(trace).difference is None
    counted = engine.counted()
    totals = trace.program.totals
    assert counted.read["gate"] == totals.read["gate"] > 0
    assert counted.read_bytes == totals.read_bytes
    assert counted.write_bytes == totals.write_bytes
    assert counted.flops == totals.flops


@pytest.mark.long
@needs_compiler
def test_a_kernel_that_leaves_the_gate_out_is_noticed(tmp_path: Path) -> None:
    w = gated(tmp_path, "flash1")
    wrong = ChangedDevice(lambda code: code.replace("if (last_columns[tile.at] == j)", ""))
    trace = host_trace(w, read_inputs(w), wrong)[0]
    assert np.abs(trace.output - by_hand(w)).max() > 1e-3


@pytest.mark.parametrize("algorithm", TAKES)
def test_without_a_gate_kernels_are_compiled_as_before(algorithm: str, tmp_path: Path) -> None:
    with_it, without = (gated(tmp_path, algorithm, gate=own) for own in (True, False))
    assert "-DOUTPUT_GATE" not in build_options(without, trace=False)
    changed = {*build_options(with_it, trace=False)} ^ {*build_options(without, trace=False)}
    assert changed == {"-DOUTPUT_GATE"}


@pytest.mark.sweep(keep=9)
@pytest.mark.parametrize("nq", [1, NQ, 25])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("algorithm", TAKES)
def test_it_is_read_once_for_each_row(algorithm: str, dtype: str, nq: int, tmp_path: Path) -> None:
    """Rows whose row block sees nothing read none of it, unless something works on all rows."""
    w, plain = (gated(tmp_path, algorithm, gate=own, nq=nq, dtype=dtype) for own in (True, False))
    program, before = tile_program(w), tile_program(plain)
    grid, rows = w.grid, w.seqlen_q
    seen = w.mask.visible(range(w.seqlen_q), range(w.seqlen_k))
    if algorithm in FLASH:
        rows = sum(len(grid.row_range(i)) for i in range(grid.Tr)
                   if seen[grid.row_range(i).start : grid.row_range(i).stop].any())  # fmt: skip
    once = w.heads * rows * w.value_dim * w.width
    counted = counted_by_ops(program)
    assert counted.read == {**before.totals.read, "gate": once}
    assert counted.write == {**before.totals.write, "gate": 0}
    assert counted.flops == before.totals.flops
    assert compulsory_bytes(w) == compulsory_bytes(plain) + once
    loads = [m for n in range(len(program)) for op in program.ops(n) for m in op.moves
             if m.tensor == "gate"]  # fmt: skip
    assert sorted((m.head, r) for m in loads for r in m.rows) == sorted(
        {(m.head, r) for m in loads for r in m.rows}
    )


@given(
    st.integers(1, 30), st.integers(1, 30), st.integers(1, 7), st.integers(1, 7), st.booleans(),
    st.integers(0, 6), st.sampled_from(FLASH),
)  # fmt: skip
def test_counters_follow_it_from_visit_to_visit(
    nq: int, nk: int, rows: int, cols: int, causal: bool, window: int, algorithm: str
) -> None:
    tables = {
        "attention": {"algorithm": algorithm, "heads": 2, "seqlen_q": nq, "seqlen_k": nk,
                      "head_dim": 3},
        "mask": {"causal": causal, **({"window": window} if window else {})},
        "tiling": {"rows": rows, "cols": cols},
    }  # fmt: skip
    try:
        w = resolve(parse_scenario(tables))
    except InputError:  # a mask that hides everything
        return
    w = replace(w, gated=True)
    counted = counted_by_ops(tile_program(w))
    assert figures_of(w).read == sum(counted.read.values())
    per_block = [
        launch.amounts(cost, w.heads).sum()
        for launch in tile_program(w).launches
        for name, cost in launch.reads.items()
        if name == "gate"
    ]
    assert per_block == [counted.read["gate"]]


@pytest.mark.parametrize("algorithm", TAKES)
def test_o_is_gated_before_it_is_rounded(algorithm: str, tmp_path: Path) -> None:
    w = gated(tmp_path, algorithm, dtype="float16")
    expected = by_hand(w)
    if algorithm != "flash1":  # its O is float32
        expected = round_to(expected.astype(np.float32), "float16")
    off = np.abs(trace_of(w).output - expected)
    assert (off > 2e-5).mean() < 0.05  # where float32 is on the other side of a tie


@pytest.mark.parametrize("algorithm", TAKES)
def test_what_is_shown_follows_the_gate(algorithm: str, tmp_path: Path) -> None:
    """O of a cell, its source and the error of its row, op by op, in the visit that gates it."""
    trace = trace_of(gated(tmp_path, algorithm))
    index = next(
        n for n in range(len(trace)) if any(isinstance(o, ApplyGate) for o in trace.program.ops(n))
    )
    ops = trace.program.ops(index)
    at = next(n for n, op in enumerate(ops) if isinstance(op, ApplyGate))
    before, after = (trace.snapshot(index, n) for n in (at - 1, at))
    rows = after.visit.rows
    gate = trace.inputs.output_gate[after.visit.head, rows.start : rows.stop]
    np.testing.assert_array_equal(after.o, before.o * gate)
    assert not before.gated
    cell = Cell("O", rows.start, 1)
    line = explain(after, cell).lines[0]
    assert line[0] == "times its gate: "
    shown = [float(part.value) for part in line if not isinstance(part, str)]
    assert shown == [float(x[0, 1]) for x in (before.o, gate, after.o)]
    own = explain(after, Cell("gate", rows.start, 1))
    assert own.value.value == gate[0, 1]
    assert line[0] not in str(explain(before, cell).lines[0])
    for now in (before, after, trace.snapshot(index)):
        error = row_report(now, rows.start).error
        assert error is None or error < 2e-5
    if not ALGORITHMS[algorithm].splits:
        assert row_report(after, rows.start).error is not None


@pytest.mark.long
@pytest.mark.parametrize("algorithm", TAKES)
def test_scripts_agree_with_a_run_that_is_gated(algorithm: str, tmp_path: Path) -> None:
    for dtype in ("float32", "float16"):
        trace = trace_of(gated(tmp_path, algorithm, dtype=dtype))
        whole = tmp_path / f"run-{dtype}.py"
        whole.write_text(run_script(trace, 0, 9), encoding="utf-8")
        last = [int(n) - 1 for n in np.cumsum(trace.program.sizes)]
        scripts = [save_tile(trace.snapshot(n, None), tmp_path / f"{n}.npz")[1] for n in last]
        for script in (whole, *scripts):
            done = python(script)
            assert done.returncode == 0, done.stderr
        assert "o_out" in done.stdout
        wrong = whole.read_text("utf-8").replace("o = GATE[head", "o = 1.01 * GATE[head")
        whole.write_text(wrong, encoding="utf-8")
        done = python(whole, text=False)
        assert done.returncode != 0


@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if name not in TAKES])
def test_others_refuse_it_in_one_line(algorithm: str, tmp_path: Path) -> None:
    told = refused(gated, tmp_path, algorithm, nq=NK, changes={"mask": {"causal": True}})
    assert re.search("attention.algorithm.*a forward pass with a softmax.*the gate of", told)


def test_the_kernel_of_tensor_cores_refuses_it(tmp_path: Path) -> None:
    shape = {"attention": {"heads": 1, "seqlen_q": 64, "head_dim": 64, "dtype": "float16"}}
    w = resolve(parse_scenario(shape))
    check(w, HostDevice())
    with pytest.raises(KernelError, match="a gate"):
        check(replace(w, gated=True), HostDevice())


def test_a_run_without_it_has_no_op_of_it(tmp_path: Path) -> None:
    trace = trace_of(gated(tmp_path, "flash2", gate=False))
    assert "gate" not in trace.program.tensors
    assert not any(
        isinstance(op, ApplyGate) for n in range(len(trace)) for op in trace.program.ops(n)
    )


@pytest.mark.parametrize("algorithm", ["flash2", "split-kv", "naive"])
def test_y_of_a_whole_layer_is_of_the_gated_o(algorithm: str, tmp_path: Path) -> None:
    draw = np.random.default_rng(2)
    shapes = {"x": (7, 10), "wq": (10, 8), "wk": (10, 4), "wv": (10, 6), "wo": (12, 10),
              "gate": (4, 7, 3)}  # fmt: skip
    tensors = {name: draw.standard_normal(s).astype(np.float32) for name, s in shapes.items()}
    np.savez(tmp_path / "layer.npz", **tensors)
    said = {"attention": {"heads": 4, "algorithm": algorithm}, "mask": {"causal": True},
            "input": {"source": "layer", "path": str(tmp_path / "layer.npz")}}  # fmt: skip
    summary, arrays = simulate(parse_scenario(said)).run(keep_arrays=True)
    x, wq, wk, wv, wo, gate = (tensors[name].astype(np.float64) for name in shapes)
    q, k, v = ((x @ weight).reshape(7, n, -1).transpose(1, 0, 2)
               for weight, n in ((wq, 4), (wk, 2), (wv, 2)))  # fmt: skip
    k, v = (np.repeat(each, 2, axis=0) for each in (k, v))
    p = np.exp(q @ k.transpose(0, 2, 1) / np.sqrt(2)) * np.tri(7)
    o = p / p.sum(axis=2, keepdims=True) @ v * gate
    np.testing.assert_allclose(arrays["o"], o, atol=1e-4)
    np.testing.assert_allclose(arrays["y"], o.transpose(1, 0, 2).reshape(7, 12) @ wo, atol=1e-4)
    assert summary["layer"]["max_abs_error"] < 1e-4
