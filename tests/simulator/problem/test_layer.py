"""A whole layer: Q, K and V of x and weights, Y of O, and what its file must hold."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from simulator.base.dtypes import round_to
from simulator.base.errors import InputError
from simulator.problem.linear import fitting
from simulator.problem.recurrence import RULES
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import read_inputs, resolve
from simulator.run.trace import simulate

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


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_heads_are_columns_of_the_products(file: Path, dtype: str) -> None:
    w = resolve(scenario(file, dtype=dtype))
    assert (w.heads, w.kv_heads, w.seqlen_q, w.head_dim, w.value_dim) == (4, 2, 6, 2, 3)
    found, stored = read_inputs(w), arrays(bq=(8,), bo=(10,))
    exact = stored["x"].astype(float) @ stored["wq"] + stored["bq"]
    for head in range(4):
        mine = round_to(exact[:, 2 * head : 2 * head + 2].astype(np.float32), w.dtype)
        np.testing.assert_allclose(found.q[head], mine, rtol=2e-2 if dtype != "float32" else 1e-5)
    exact = stored["x"].astype(float) @ stored["wv"]
    np.testing.assert_allclose(found.v[1], exact[:, 3:6], rtol=2e-2, atol=2e-2)


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
    assert layer is not None
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


@given(
    heads=st.sampled_from([(1, 1), (2, 1), (4, 2), (3, 3)]), rows=st.integers(1, 9),
    depth=st.integers(1, 5), value=st.integers(1, 5), wide=st.integers(1, 12),
    algorithm=st.sampled_from(["naive", "flash1", "flash2", "split-kv"]),
    biased=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
def test_y_is_that_of_float64(
    tmp_path_factory: pytest.TempPathFactory, heads: tuple[int, int], rows: int, depth: int,
    value: int, wide: int, algorithm: str, biased: bool, seed: int,
) -> None:  # fmt: skip
    own, shared = heads
    shapes = {
        "x": (rows, wide), "wq": (wide, own * depth), "wk": (wide, shared * depth),
        "wv": (wide, shared * value), "wo": (own * value, wide),
    }  # fmt: skip
    if biased:
        shapes |= {"bk": (shared * depth,), "bv": (shared * value,)}
    path = tmp_path_factory.mktemp("layer") / "a.npz"
    stored = {name: made for name, made in arrays(seed, **shapes).items() if name in shapes}
    np.savez(path, **stored)
    trace = simulate(scenario(path, heads=own, algorithm=algorithm))
    summary, found = trace.run(keep_arrays=True)
    q, k, v = (
        (stored["x"].astype(float) @ stored[f"w{n}"] + stored.get(f"b{n}", 0.0))
        .astype(np.float32).reshape(rows, count, -1).transpose(1, 0, 2).astype(float)
        for n, count in (("q", own), ("k", shared), ("v", shared))
    )  # fmt: skip
    k, v = (np.repeat(each, own // shared, axis=0) for each in (k, v))
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(depth)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    o = weights @ v / weights.sum(axis=2, keepdims=True)
    y = o.astype(np.float32).transpose(1, 0, 2).reshape(rows, -1).astype(float) @ stored["wo"]
    np.testing.assert_allclose(found["y"], y, rtol=2e-4, atol=2e-4)
    assert summary["layer"]["max_abs_error"] < 1e-3
    assert found["q"].shape == (own, rows, depth)


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
    with pytest.raises(InputError) as error:
        resolve(parse_scenario(tables))
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_weight_and_a_number_that_is_none_are_named(tmp_path: Path) -> None:
    path, stored = tmp_path / "layer.safetensors", arrays()
    save_file({name: values for name, values in stored.items() if name != "wo"}, path)
    with pytest.raises(InputError, match="tensor wo: expected tensors x, wq, wk, wv, wo"):
        resolve(scenario(path))
    stored["wk"][3, 1] = np.nan
    save_file(stored, path)
    with pytest.raises(InputError, match=r"wk\[3, 1\]"):
        read_inputs(resolve(scenario(path)))
