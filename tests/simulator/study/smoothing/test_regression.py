"""Regression in context: attention is the Nadaraya-Watson estimator, and a constant stays one."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.study.smoothing.regression import (
    BANDWIDTHS,
    attend,
    function,
    nadaraya_watson,
    radial_keys,
    radial_queries,
    regression,
)
from tests.helpers.refused import refused

places = st.lists(st.floats(0, 1), min_size=1, max_size=12).map(np.array)
widths = st.floats(0.02, 1)


@given(places, places, widths, st.integers(0, 99))
def test_attention_is_the_estimator(at: np.ndarray, xs: np.ndarray, h: float, seed: int) -> None:
    ys = np.random.default_rng(seed).standard_normal(len(xs))
    attended = attend(radial_queries(at, h), radial_keys(xs, h), ys)
    for n, x in enumerate(at):
        squares = [((x - each) / h) ** 2 / 2 for each in xs]
        kernel = [math.exp(min(squares) - square) for square in squares]
        by_hand = sum(w * y for w, y in zip(kernel, ys, strict=True)) / sum(kernel)
        assert attended[n] == pytest.approx(by_hand, abs=1e-8)
    np.testing.assert_allclose(nadaraya_watson(at, xs, ys, h), attended, atol=1e-8)


@given(places, places, widths, st.floats(-5, 5))
def test_a_constant_is_predicted_exactly_and_nothing_beyond_the_examples(
    at: np.ndarray, xs: np.ndarray, h: float, value: float
) -> None:
    flat = nadaraya_watson(at, xs, np.full(len(xs), value), h)
    np.testing.assert_allclose(flat, value, atol=1e-12)
    ys = np.cos(9 * xs)
    found = nadaraya_watson(at, xs, ys, h)
    assert ((found >= ys.min() - 1e-12) & (found <= ys.max() + 1e-12)).all()


def test_a_narrow_kernel_repeats_the_nearest_example_and_a_wide_one_means_them_all() -> None:
    xs, ys = np.array([0.1, 0.5, 0.8]), np.array([3.0, -1.0, 2.0])
    assert nadaraya_watson([0.55], xs, ys, 1e-3)[0] == pytest.approx(-1)
    assert nadaraya_watson([0.55], xs, ys, 1e3)[0] == pytest.approx(ys.mean(), abs=1e-4)


def test_what_is_shown() -> None:
    found = regression(2, 0.08)
    assert found.off < 1e-9
    np.testing.assert_allclose(found.truth, function(found.places))
    assert found.error == pytest.approx(np.sqrt(((found.smoothed - found.truth) ** 2).mean()))
    # Without the norm factor taken out, far keys have too much weight.
    dot_error = np.sqrt(((found.dot - found.truth) ** 2).mean())
    assert dot_error > 2 * found.error
    for h, error in zip(BANDWIDTHS, found.left_out, strict=True):
        squares = []
        for n in range(len(found.xs)):
            rest = np.arange(len(found.xs)) != n
            guess = nadaraya_watson(found.xs[n : n + 1], found.xs[rest], found.ys[rest], h)[0]
            squares.append((guess - found.ys[n]) ** 2)
        assert error == pytest.approx(math.sqrt(np.mean(squares)))
    assert found.best in BANDWIDTHS[1:-1]  # neither nearly a lookup nor nearly the mean
    assert regression(2, 0.16).ys.tolist() == found.ys.tolist()
    assert regression(3).ys.tolist() != found.ys.tolist()


@pytest.mark.parametrize(("seed", "h"), [(-1, 0.1), (0, 0.0), (0, math.nan), (0, math.inf)])
def test_what_cannot_be_used(seed: int, h: float) -> None:
    assert "regression" in refused(regression, seed, h)


def test_the_function_is_the_sum_of_two_waves() -> None:
    found = function([0.0, 0.25, 0.5, 1 / 12])
    assert found == pytest.approx([0.0, 0.6, 0.0, 0.9], abs=1e-12)
