"""The softmax's Jacobian against finite differences, eigenvalues and the whole matrix."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.study.jacobian import jacobian_norm, row_jacobian

scores = st.lists(st.floats(-30, 30), min_size=1, max_size=12).map(np.array)


def softmax(s: np.ndarray) -> np.ndarray:
    p = np.exp(s - s.max())
    return p / p.sum()


def whole_jacobian(p: np.ndarray) -> np.ndarray:
    return row_jacobian(p, np.ones(len(p), bool), most=len(p)).values


@given(scores)
def test_it_is_what_finite_differences_find(s: np.ndarray) -> None:
    jacobian, step = whole_jacobian(softmax(s)), 1e-5
    for j in range(len(s)):
        more, less = s.copy(), s.copy()
        more[j] += step
        less[j] -= step
        slope = (softmax(more) - softmax(less)) / (2 * step)
        np.testing.assert_allclose(jacobian[:, j], slope, atol=1e-9)


@given(scores)
def test_norm_and_trace_without_the_matrix(s: np.ndarray) -> None:
    p = softmax(s)
    whole = np.diag(p) - np.outer(p, p)
    found = row_jacobian(p, np.ones(len(p), bool), most=len(p))
    assert found.norm == pytest.approx(np.linalg.norm(whole), rel=1e-9, abs=1e-14)
    assert found.trace == pytest.approx(np.trace(whole), rel=1e-9, abs=1e-14)
    np.testing.assert_allclose(found.values, whole, atol=1e-15)
    assert found.shown == pytest.approx(1)


def test_the_norm_keeps_its_digits_where_one_key_has_nearly_all() -> None:
    small = 1e-20
    p = np.array([1.0, small])  # 1 - small is 1 in float64
    # Four entries of magnitude p (1 - p).
    assert jacobian_norm(p) == pytest.approx(2 * small, abs=0)
    assert jacobian_norm([1.0, 0.0]) == 0.0


def test_only_the_strongest_visible_keys_are_shown() -> None:
    weights = np.array([0.0, 0.3, 0.1, 0.0, 0.5, 0.1], np.float32)
    seen = np.array([False, True, True, False, True, True])
    found = row_jacobian(weights, seen, most=3)
    assert found.keys.tolist() == [1, 2, 4]  # of the two equal ones the first
    assert found.visible == 4
    p = weights[seen].astype(float)
    whole = np.diag(p / p.sum()) - np.outer(p, p) / p.sum() ** 2
    np.testing.assert_allclose(found.values, whole[np.ix_([0, 1, 2], [0, 1, 2])])
    assert found.norm == pytest.approx(np.linalg.norm(whole))
    share = (whole[:3, :3] ** 2).sum() / (whole**2).sum()
    assert found.shown == pytest.approx(share)
    assert found.shown < 1
    twice = row_jacobian(2 * weights, seen, most=3)  # weights are divided by their sum
    np.testing.assert_allclose(twice.values, found.values)


def test_a_row_that_sees_nothing_or_one_key_cannot_move() -> None:
    nothing = row_jacobian(np.zeros(4), np.zeros(4, bool), most=4)
    assert (nothing.visible, nothing.norm, nothing.shown) == (0, 0.0, 1.0)
    one = row_jacobian([0, 1.0], [False, True], most=4)
    assert (one.keys.tolist(), one.norm, one.trace) == ([1], 0.0, 0.0)


def test_what_weights_lack_to_one_is_a_sinks_or_nobodys() -> None:
    weights, seen = np.array([0.25, 0.25, 0.125]), np.ones(3, bool)
    whole = np.diag(weights) - np.outer(weights, weights)
    found = row_jacobian(weights, seen, most=3, sink=True)
    np.testing.assert_allclose(found.values, whole, atol=1e-15)
    assert found.norm == pytest.approx(np.linalg.norm(whole))
    p = weights / weights.sum()
    plain = row_jacobian(weights, seen, most=3)
    np.testing.assert_allclose(plain.values, np.diag(p) - np.outer(p, p), atol=1e-15)


def test_weights_in_float32_are_squared_in_float64() -> None:
    p = softmax(np.linspace(-3, 3, 9)).astype(np.float32)
    assert jacobian_norm(p) == jacobian_norm(p.astype(np.float64))
