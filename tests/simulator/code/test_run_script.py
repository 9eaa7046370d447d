"""The script of a whole run computes its O with NumPy alone, and finds a number that is wrong."""

import re
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from simulator import Trace
from simulator.base.assets import CAPTURES
from simulator.code.run_script import run_script, shown_rows
from simulator.problem.masks import Mask
from simulator.problem.scenario import parse_scenario, with_values
from simulator.program.algorithms import tile_program
from tests.helpers.refused import refused
from tests.helpers.runs import scenario, trace_of
from tests.helpers.written_files import file_scenario, numbers, write_safetensors

SHAPES: dict[str, dict[str, Any]] = {
    "plain": {"nq": 8, "d": 4},
    "blind": {"nq": 9, "nk": 5, "rows": 4, "cols": 3, "mask": {"causal": True}},
    "window": {"nq": 16, "d": 8, "mask": {"window": 5}},
    "sinks beside global tokens": {"nq": 16, "d": 8, "mask": {"window": 3, "sinks": 4,
        "global_tokens": 2}},
    "sinks": {"nq": 16, "d": 8, "mask": {"causal": True, "window": 5, "sinks": 2}},
    "half": {"nq": 9, "heads": 4, "kv_heads": 2, "dtype": "float16", "temperature": 0.5},
    "rope": {"nq": 9, "nk": 12, "d": 8, "position": {"kind": "rope", "offset": 5}},
    "pairs": {"nq": 9, "d": 8, "heads": 2, "dtype": "float16", "position": {"kind": "rope",
              "interleaved": True, "fraction": 0.5, "theta": 100.0}},
    "softcap": {"nq": 9, "nk": 12, "d": 8, "scale": 3.0, "scores": {"softcap": 2.0}},
    "alibi": {"nq": 9, "heads": 4, "kv_heads": 2, "mask": {"causal": True},
              "scores": {"softcap": 5.0, "alibi": True}},
    "pattern": {"nq": 9, "nk": 14, "mask": {"causal": True, "window": 5, "sinks": 1, "dilation": 2,
                "global_tokens": 2, "documents": [3, 6, 5]}},
    "two sides": {"nq": 12, "nk": 9, "mask": {"window": [2, 4], "sinks": 1}},
    "aligned": {"nq": 9, "nk": 13, "scores": {"alibi": True}, "mask": {"causal": True,
                "align": "top-left", "window": [-1, 3], "dilation": 2}},
    "past the keys": {"nq": 15, "nk": 9, "mask": {"align": "top-left", "window": [3, -1],
                      "documents": [4, 5]}},
    "logits": {"nq": 9, "nk": 7, "heads": 2, "mask": {"causal": True},
               "scores": {"sink_logits": [1.0, 30.0]}},
    "bfloat16": {"nq": 7, "nk": 12, "d": 5, "dv": 3, "dtype": "bfloat16"},
}  # fmt: skip


def run(text: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    script = folder / "run.py"
    script.write_text(text, encoding="utf-8")
    command = [sys.executable, "-W", "error", "-I", str(script), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def largest(result: subprocess.CompletedProcess[str]) -> float:
    assert result.returncode == 0, result.stderr
    return float(re.search(r"largest (\S+)", result.stdout)[1])


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("algorithm", ["naive", "flash1", "flash2", "split-kv", "paged"])
def test_the_script_computes_the_run(tmp_path: Path, algorithm: str, shape: str) -> None:
    trace = trace_of(scenario(algorithm, **SHAPES[shape]))
    row = trace.workload.seqlen_q - 2
    result = run(run_script(trace, trace.workload.heads - 1, row), tmp_path)
    assert largest(result) == pytest.approx(np.abs(trace.output).max(), rel=1e-2)
    head, query = trace.workload.single(trace.workload.heads - 1, row)
    assert f"head {head}, row {query}: O off by" in result.stdout


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("what", ["o", "lse"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_script_finds_a_planted_number(tmp_path: Path, dtype: str, what: str) -> None:
    trace = trace_of(scenario("flash2", nq=9, d=4, dtype=dtype))
    text, row = run_script(trace, 0, 4), shown_rows(trace, 0, 4)[0]
    value = row.o[2] if what == "o" else np.float32(row.lse)
    planted = text.replace(str(value), str(value + np.float32(5e-3)), 1)
    assert planted != text
    result = run(planted, tmp_path)
    assert result.returncode == 1
    found = re.search(rf"{'O' if what == 'o' else 'lse'} of head 0, row 4: off by (\S+)$",
                      result.stderr.strip())  # fmt: skip
    assert float(found[1]) == pytest.approx(5e-3, abs=5e-4)


def test_rows_are_those_of_the_engine() -> None:
    trace = trace_of(scenario("flash2", nq=20, d=4, rows=6, heads=2))
    rows = shown_rows(trace, 1, 8)
    assert [(each.head, each.row) for each in rows] == [(1, 8), (1, 6), (1, 7), (1, 9)]
    for each in rows:
        np.testing.assert_array_equal(each.o, trace.output[1, each.row])
        assert each.lse == trace.lse[1, each.row]


@pytest.mark.long
@pytest.mark.parametrize("head", ["all", [3, 5]])
def test_a_capture_is_read_from_its_file(tmp_path: Path, head: object) -> None:
    source = {"source": "capture", "name": "soft-red-mat-layer2", "head": head}
    trace = trace_of(parse_scenario({"input": source}))
    text = run_script(trace, 0, 3)
    assert str(CAPTURES / "soft-red-mat-layer2.safetensors") in text
    assert largest(run(text, tmp_path)) == pytest.approx(np.abs(trace.output).max(), rel=1e-3)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("kind", ["npz", "npz-bfloat16", "safetensors"])
def test_a_file_of_the_user_is_read(tmp_path: Path, kind: str) -> None:
    draw = np.random.default_rng(3).standard_normal
    arrays = {name: draw((1, 2, 6, 4)).astype(np.float32) for name in "qkv"}
    path = tmp_path / f"it's {kind}.{kind.partition('-')[0]}"
    if kind == "safetensors":
        save_file(arrays, path)
    elif kind == "npz":
        np.savez(path, **arrays)
    else:
        np.savez(
            path, **{n: (a.view(np.uint32) >> 16).astype(np.uint16) for n, a in arrays.items()}
        )
    trace = trace_of(parse_scenario({"input": {"source": "file", "path": str(path)}}))
    result = run(run_script(trace, 1, 5), tmp_path)
    assert largest(result) == pytest.approx(np.abs(trace.output).max(), rel=1e-2)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("shape", [(6, 9), (4, 6, 9)])
@pytest.mark.parametrize("kind", ["npz", "safetensors"])
def test_the_mask_of_a_file_is_read(tmp_path: Path, kind: str, shape: tuple[int, ...]) -> None:
    tensors = numbers(q=(4, 6, 3), k=(2, 9, 3), v=(2, 9, 2))
    tensors["mask"] = np.random.default_rng(4).random(shape) < 0.5
    path = tmp_path / f"in.{kind}"
    if kind == "npz":
        np.savez(path, **tensors)
    else:
        write_safetensors(path, tensors)
    trace = trace_of(file_scenario(path, input={"head": [3, 1]}, mask={"window": 5}))
    result = run(run_script(trace, 1, 5), tmp_path)
    assert largest(result) == pytest.approx(np.abs(trace.output).max(), rel=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("biases", [False, True])
def test_a_layer_is_projected(tmp_path: Path, biases: bool) -> None:
    draw = np.random.default_rng(5).standard_normal
    shapes: dict[str, tuple[int, ...]] = {
        "x": (7, 12), "wq": (12, 16), "wk": (12, 8), "wv": (12, 6), "wo": (12, 12),
    }  # fmt: skip
    if biases:
        shapes |= {"bq": (16,), "bv": (6,)}
    path = tmp_path / "layer.safetensors"
    save_file({name: draw(shape).astype(np.float16) for name, shape in shapes.items()}, path)
    trace = trace_of(
        parse_scenario({"attention": {"heads": 4}, "input": {"source": "layer", "path": str(path)}})
    )
    result = run(run_script(trace, 2, 6), tmp_path)
    assert largest(result) == pytest.approx(np.abs(trace.output).max(), rel=1e-2)


def test_a_long_run_is_computed_whole_only_if_asked(tmp_path: Path) -> None:
    trace = trace_of(scenario("flash2", nq=2**14 + 4, d=2, rows=64, cols=256))
    result = run(run_script(trace, 0, 9000), tmp_path)
    assert result.returncode == 0, result.stderr
    assert "head 0, row 9000: O off by" in result.stdout
    assert "O of all rows" not in result.stdout
    assert 'if "--all" in sys.argv' in run_script(trace, 0, 9000)


def test_the_title_ends_no_docstring(tmp_path: Path) -> None:
    titled = scenario("flash2", nq=4, d=2)
    titled = with_values(titled, {"title": 'a """ and \\ and {braces}'})
    assert run(run_script(trace_of(titled), 0, 0), tmp_path).returncode == 0


def test_a_run_with_faults_is_refused() -> None:
    broken: Trace = trace_of(
        with_values(scenario("flash2", nq=4, d=2), {"faults": {"forget_alpha": True}})
    )
    assert "a run without faults" in refused(run_script, broken, 0, 0)


def test_without_a_softmax_there_is_no_script() -> None:
    trace = trace_of(scenario("linear", nq=4, d=2))
    assert "one that has a softmax" in refused(run_script, trace, 0, 0)


def test_a_mask_of_another_kind_is_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Checkered(Mask):
        every: int = 2

    trace = trace_of(scenario("flash2", nq=4, d=2))
    w = replace(trace.workload, mask=Checkered(4, 4))
    other = Trace(tile_program(w), trace.engine, trace.inputs)
    assert 'every = "2": expected a run with none but' in refused(run_script, other, 0, 0)
