"""Attention again and again: rows only come together, by the second eigenvalue in the end."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.base.softmax import softmax_rows
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import read_inputs, resolve
from simulator.study.smoothing.kernel_smoother import head_points
from simulator.study.smoothing.repeated import RANKED, repeated, row_spread
from tests.helpers.refused import refused


def drawn(n: int, c: int, seed: int, sharp: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return softmax_rows(sharp * rng.standard_normal((n, n))), rng.standard_normal((n, c))


@given(st.integers(1, 8), st.integers(1, 4), st.integers(0, 999), st.floats(0, 20))
def test_rows_never_go_apart(n: int, c: int, seed: int, sharp: float) -> None:
    found = repeated(*drawn(n, c, seed, sharp), times=8)
    assert (np.diff(found.spread) <= 1e-12).all()
    assert (np.diff(found.skipped) <= 1e-12).all()
    assert found.spread[0] == 1
    assert found.ranks[0] == n
    assert min(found.ranks) >= 1


def test_each_step_is_one_more_product() -> None:
    weights, x = drawn(5, 3, seed=1)
    found = repeated(weights, x, times=3)
    plain, skipped = x, x
    for n in range(1, 4):
        plain, skipped = weights @ plain, (skipped + weights @ skipped) / 2
        assert found.spread[n] == pytest.approx(row_spread(plain) / row_spread(x))
        assert found.skipped[n] == pytest.approx(row_spread(skipped) / row_spread(x))
        sizes = np.linalg.svd(np.linalg.matrix_power(weights, n), compute_uv=False)
        assert found.ranks[n] == (sizes >= RANKED * sizes[0]).sum()


def test_in_the_end_the_second_eigenvalue_decides() -> None:
    turn = np.linalg.qr(np.random.default_rng(3).standard_normal((4, 4)))[0]
    turn[:, 0] = 0.5  # the first direction: all rows alike
    turn = np.linalg.qr(turn)[0]
    weights = turn @ np.diag([1, 0.6, 0.3, 0.1]) @ turn.T  # its rows sum to 1
    found = repeated(weights, np.random.default_rng(4).standard_normal((4, 3)), times=20)
    assert found.rate == pytest.approx(0.6)
    assert found.spread[20] / found.spread[19] == pytest.approx(0.6, rel=1e-3)
    assert found.ranks[-1] == 1
    assert found.below == np.flatnonzero(found.spread < RANKED)[0]


def test_equal_weights_make_all_rows_alike_at_once_and_the_identity_never() -> None:
    x = np.arange(6.0).reshape(3, 2)
    even = repeated(np.full((3, 3), 1 / 3), x)
    assert even.ranks[1] == 1
    assert even.spread[1] == pytest.approx(0, abs=1e-15)
    assert even.skipped[1] == pytest.approx(0.5)
    kept = repeated(np.eye(3), x)
    assert (kept.ranks[-1], kept.spread[-1], kept.rate, kept.below) == (3, 1.0, 1.0, None)


def test_a_trained_head_loses_its_rank() -> None:
    w = resolve(parse_scenario({"input": {"source": "capture", "name": "robot-ball-layer2"}}))
    points = head_points(w, read_inputs(w), 0, 0)
    found = repeated(points.weights, points.v)
    assert found.ranks[0] == w.seqlen_k
    assert found.ranks[-1] == 1
    assert found.below is not None
    assert found.skipped[found.below] > found.spread[found.below]


def test_what_cannot_be_repeated() -> None:
    assert "as many rows as keys" in refused(repeated, np.full((2, 3), 1 / 3), np.zeros((3, 1)))
    said = refused(repeated, np.array([[1.0, 0.0], [0.0, 0.0]]), np.zeros((2, 1)))
    assert "sum of row 1" in said
    assert said.endswith("1: it sees a key, and no sink")


def test_one_key_has_no_second_eigenvalue() -> None:
    assert repeated(np.ones((1, 1)), np.ones((1, 2))).rate == 0
