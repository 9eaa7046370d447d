"""A whole layer: Q, K and V of x and weights, Y of O, and what its file must hold."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from simulator.problem.facts import RULES
from simulator.problem.linear import fitting
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import read_inputs, resolve
from simulator.run.trace import simulate
from tests.helpers.refused import refused

ARRAYS = {"x": (6, 10), "wq": (10, 8), "wk": (10, 4), "wv": (10, 6), "wo": (12, 10)}
"""Four heads of 2 on two KV heads, values of 3."""


def arrays(seed: int = 0, **shapes: tuple[int, ...]) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        name: rng.standard_normal(shape).astype(np.float32)
        for name, shape in {**ARRAYS, **shapes}.items()
    }


def scenario(path: Path, **attention: Any) -> Any:
    tables = {
        "attention": {"heads": 4, **attention},
        "tiling": {"rows": 4, "cols": 3},
        "input": {"source": "layer", "path": str(path)},
    }
    return parse_scenario(tables)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "layer.safetensors"
    save_file(arrays(bq=(8,), bo=(10,)), path)
    return path


def test_y_is_the_heads_side_by_side_times_wo(file: Path) -> None:
    trace = simulate(scenario(file))
    summary, found = trace.run(keep_arrays=True)
    stored = arrays(bq=(8,), bo=(10,))
    flat = found["o"].transpose(1, 0, 2).reshape(6, 12).astype(float)
    np.testing.assert_allclose(found["y"], flat @ stored["wo"] + stored["bo"], rtol=1e-4, atol=1e-5)
    assert summary["layer"]["max_abs_error"] < 1e-5
    flops = {"q": 2 * 6 * 80, "k": 2 * 6 * 40, "v": 2 * 6 * 60, "y": 2 * 6 * 120}
    assert summary["layer"]["matmul_flops"] == {**flops, "total": sum(flops.values())}
    layer = trace.inputs.layer
    shares = layer.shares(found["o"])
    assert shares.shape == (4, 6, 10)
    np.testing.assert_allclose(shares.sum(axis=0) + stored["bo"], found["y"], rtol=1e-4, atol=1e-5)


def test_a_wrong_y_is_told(file: Path) -> None:
    right = simulate(scenario(file))
    tables = scenario(file).model_dump(exclude_unset=True) | {"faults": {"forget_alpha": True}}
    wrong = simulate(parse_scenario(tables))
    errors = [trace.run()[0]["layer"]["max_abs_error"] for trace in (right, wrong)]
    assert errors[0] < 1e-5 < errors[1]


@pytest.mark.parametrize("algorithm", RULES)
def test_y_of_an_algorithm_without_a_softmax_is_compared_with_its_own(
    tmp_path: Path, algorithm: str
) -> None:
    path = tmp_path / "layer.safetensors"
    save_file(arrays(), path)
    tables = fitting(scenario(path, algorithm=algorithm).model_dump(exclude_unset=True))
    summary, found = simulate(parse_scenario(tables)).run(keep_arrays=True)
    largest = np.abs(found["y"]).max()  # nothing is divided by a sum
    assert summary["layer"]["max_abs_error"] < 1e-6 * largest


def test_without_all_heads_there_is_no_y(file: Path) -> None:
    tables = scenario(file).model_dump(exclude_unset=True)
    tables["input"] |= {"head": [0, 2]}
    summary, found = simulate(parse_scenario(tables)).run(keep_arrays=True)
    assert "layer" not in summary
    assert "y" not in found


@pytest.mark.parametrize(
    ("shapes", "attention", "told"),
    [
        ({}, {"heads": None}, "attention.heads: expected a number"),
        ({}, {"heads": 3}, "columns of wq = 8: expected a multiple of 3 heads"),
        ({"x": (6, 9)}, {}, "shape of wq = (10, 8): expected 9 rows, as x is wide"),
        ({"wk": (10, 5)}, {}, "columns of wk = 5: expected a multiple of 2 columns a head"),
        ({"wk": (10, 6)}, {}, "shape of wk = (10, 6): expected a number of heads that divides"),
        ({"wv": (10, 5)}, {}, "columns of wv = 5: expected a multiple of 2 KV heads"),
        ({"wo": (11, 10)}, {}, "shape of wo = (11, 10): expected 12 rows: 4 heads of 3"),
        ({"bq": (7,)}, {}, "shape of bq = (7,): expected 8 numbers"),
        ({"bq": (1, 8)}, {}, "shape of bq = (1, 8): expected one axis"),
        ({"x": (6, 10, 1)}, {}, "shape of x = (6, 10, 1): expected two axes"),
        ({}, {"head_dim": 4}, "attention.head_dim = 4: expected 2 as in layer.safetensors"),
    ],
)
def test_a_file_that_is_no_layer_is_refused_in_one_line(
    tmp_path: Path, shapes: dict[str, tuple[int, ...]], attention: dict[str, Any], told: str
) -> None:
    path = tmp_path / "layer.safetensors"
    save_file(arrays(**shapes), path)
    said = {name: value for name, value in {"heads": 4, **attention}.items() if value is not None}
    tables = scenario(path).model_dump(exclude_unset=True) | {"attention": said}
    assert told in refused(resolve, parse_scenario(tables))


def test_a_missing_weight_and_a_number_that_is_none_are_named(tmp_path: Path) -> None:
    path, stored = tmp_path / "layer.safetensors", arrays()
    save_file({name: values for name, values in stored.items() if name != "wo"}, path)
    assert "tensor wo: expected tensors x, wq, wk, wv, wo" in refused(resolve, scenario(path))
    stored["wk"][3, 1] = np.nan
    save_file(stored, path)
    assert "wk[3, 1]" in refused(read_inputs, resolve(scenario(path)))
