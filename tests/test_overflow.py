"""Scores that float32 cannot hold: NaN stays NaN in every engine, and nobody writes a warning."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from kernels.devices.host.compiler import find_compiler
from kernels.devices.registry import make_engine
from simulator.problem.scenario import load_scenario, with_values
from simulator.run.trace import simulate
from tests.helpers.written_files import write_safetensors
from ui.app.cli import main

SOFTMAX = ("naive", "flash1", "flash2", "split-kv", "paged")


@pytest.fixture
def huge(tmp_path: Path) -> Path:
    """Two heads, in the first of which rows 3 and 5 have q·k of 4e40."""
    rng = np.random.default_rng(5)
    q, k, v = rng.standard_normal((3, 2, 8, 4)).astype(np.float32)
    q[0, [3, 5]], k[0] = 1e20, 1e20
    q[0, [0, 1, 2, 4, 6, 7]] *= np.float32(1e-20)
    write_safetensors(tmp_path / "huge.safetensors", {"q": q, "k": k, "v": v})
    path = tmp_path / "huge.toml"
    path.write_text(
        '[input]\nsource = "file"\npath = "huge.safetensors"\n[tiling]\nrows = 4\ncols = 4\n',
        encoding="utf-8",
    )
    return path


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("algorithm", SOFTMAX)
@pytest.mark.parametrize("engine", ["numpy", "host"])
def test_rows_that_overflow_are_nan_and_others_are_right(
    huge: Path, algorithm: str, engine: str
) -> None:
    if engine == "host" and find_compiler() is None:
        pytest.skip("no compiler")
    chosen = with_values(load_scenario(huge), {"attention": {"algorithm": algorithm}})
    trace = simulate(chosen, partial(make_engine, engine))
    summary, arrays = trace.run(keep_arrays=True)
    lost = np.zeros((2, 8), dtype=bool)
    lost[0, [3, 5]] = True
    assert np.array_equal(np.isnan(arrays["o"]).any(axis=2), lost)
    assert np.array_equal(np.isnan(arrays["o"]).all(axis=2), lost)
    assert np.array_equal(np.isnan(arrays["lse"]), lost)
    assert summary["max_abs_error"] is None
    q, k, v = (x.astype(np.float64) for x in (trace.inputs.q, trace.inputs.k, trace.inputs.v))
    scores = q.reshape(2, 8, 4) @ k.transpose(0, 2, 1) / 2
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    exact = weights @ v / weights.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(arrays["o"][~lost], exact[~lost], atol=1e-5)


def test_nothing_but_the_answer_is_written(
    huge: Path, capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    assert main(["run", str(huge), "--json"]) == 0
    said = capfd.readouterr()
    assert json.loads(said.out)["max_abs_error"] is None
    assert said.err == ""
    assert not list(recwarn)
