"""The matrices of a head give its scores and its share of Y; what more heads cost is counted."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from simulator.base.assets import SCENARIOS
from simulator.problem.layer import Layer
from simulator.problem.scenario import load_scenario, parse_scenario
from simulator.run.trace import simulate
from simulator.run.whole_layer import compute_layer
from simulator.study.layer.heads import head_counts, head_matrices, row_shares


def layer_of(path: Path, seed: int = 0, same: bool = False) -> Layer:
    """Return a layer without biases: four heads of 3 on two KV heads, values of 2."""
    rng = np.random.default_rng(seed)
    shapes = {"x": (6, 5), "wq": (5, 12), "wk": (5, 6), "wv": (5, 4), "wo": (8, 5)}
    made = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    if same:
        made["wq"] = np.repeat(made["wk"].reshape(5, 2, 3), 2, axis=1).reshape(5, 12)
    save_file(made, path)
    tables = {"attention": {"heads": 4}, "input": {"source": "layer", "path": str(path)}}
    layer = simulate(parse_scenario(tables)).whole_layer
    assert layer is not None
    return layer


@pytest.mark.parametrize("head", range(4))
def test_scores_and_shares_follow_from_the_matrices_of_a_head(tmp_path: Path, head: int) -> None:
    layer = layer_of(tmp_path / "a.safetensors")
    found, x = head_matrices(layer, head), layer.x.astype(float)
    q, k, v = layer.heads(exact=True)
    np.testing.assert_allclose(x @ found.reads @ x.T, q[head] @ k[head // 2].T, atol=1e-4)
    weights = np.random.default_rng(1).random((6, 6))
    o = np.zeros((4, 6, 2), dtype=np.float32)
    o[head] = weights @ v[head // 2]
    np.testing.assert_allclose(weights @ x @ found.writes, layer.shares(o)[head], atol=1e-4)


@given(st.integers(0, 10**6))
def test_pieces_of_a_stack_are_what_heads_give_and_end_at_y(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    path = tmp_path_factory.mktemp("layer") / "a.safetensors"
    layer_of(path, seed)
    tables = {"attention": {"heads": 4}, "input": {"source": "layer", "path": str(path)}}
    run = compute_layer(simulate(parse_scenario(tables)))
    for row in range(6):
        found = row_shares(run, row)
        size = np.abs(found.given).sum() + 1
        np.testing.assert_allclose(found.given.sum(axis=0), found.total, atol=1e-6 * size)
        np.testing.assert_allclose(found.total, run.arrays["y"][row], atol=1e-6 * size)
        start, end = found.ends
        np.testing.assert_allclose(end - start, found.given, atol=1e-12 * size)
        np.testing.assert_allclose(
            np.maximum(start, end).max(axis=0) + np.minimum(start, end).min(axis=0),
            found.total, atol=1e-6 * size,
        )  # fmt: skip
        for column in range(5):  # no two pieces of a stack overlap
            both = zip(start[:, column], end[:, column], strict=True)
            pieces = sorted(sorted(pair) for pair in both)
            assert all(b[0] >= a[1] - 1e-12 for a, b in pairwise(pieces))
        assert found.along.sum() == pytest.approx(1, abs=1e-5)
        assert found.size == pytest.approx(np.sqrt((found.given**2).sum(axis=1)))


def test_asymmetry_is_0_for_equal_weights_and_2_for_a_turn(tmp_path: Path) -> None:
    same = layer_of(tmp_path / "a.safetensors", same=True)
    assert all(head_matrices(same, head).asymmetry < 1e-12 for head in range(4))
    drawn = head_matrices(layer_of(tmp_path / "b.safetensors"), 0)
    by_hand = np.sqrt(((drawn.reads - drawn.reads.T) ** 2).sum() / (drawn.reads**2).sum())
    assert drawn.asymmetry == pytest.approx(by_hand)
    assert 0.1 < drawn.asymmetry < 2
    turn = np.array([[0, 1], [-1, 0]], np.float32)
    made = {"x": np.ones((1, 2), np.float32), "wq": turn, "wk": np.eye(2, dtype=np.float32)}
    layer = Layer(made["x"], {**made, "wv": turn, "wo": turn}, ((1, 1, 2),) * 3, "float32")
    assert head_matrices(layer, 0).asymmetry == pytest.approx(2)
    zero = Layer(
        made["x"], dict.fromkeys(("wq", "wk", "wv", "wo"), 0 * turn), ((1, 1, 2),) * 3, "float32"
    )
    assert head_matrices(zero, 0).asymmetry == 0


def test_the_worked_example_happens_to_be_symmetric() -> None:
    layer = simulate(load_scenario(SCENARIOS / "layer.toml")).whole_layer
    found = head_matrices(layer, 0)
    w = {name: layer.weights[name].astype(float) for name in ("wq", "wk", "wv", "wo")}
    np.testing.assert_array_equal(found.reads, w["wq"] @ w["wk"].T)
    np.testing.assert_array_equal(found.writes, w["wv"] @ w["wo"])
    assert found.asymmetry == 0


@pytest.mark.long
@given(st.integers(1, 4), st.sampled_from([4, 6, 12, 16]))
def test_more_heads_cost_what_a_run_counts(rows: int, width: int) -> None:
    found = head_counts(width, rows)
    assert [one.heads for one in found] == [h for h in range(1, width + 1) if width % h == 0]
    for one in found:
        tables = {
            "attention": {
                "heads": one.heads, "seqlen_q": rows, "head_dim": width // one.heads,
            },
            "tiling": {"rows": 2, "cols": 3},
        }  # fmt: skip
        trace = simulate(parse_scenario(tables))
        assert trace.program.totals.flops == 4 * rows**2 * width
        scores = sum(
            visit.seen.size for visit in (trace.tile(index) for index in range(len(trace.program)))
        )
        assert one.scores == scores
        assert one.parameters == 4 * width**2
