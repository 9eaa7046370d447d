"""The tolerance of float32 numbers, by hand: powers of two, so that every figure is exact."""

import numpy as np
import pytest

from simulator.base.tolerance import allowed, shares

STEP = 1 / 1_048_576  # 2**-20


def test_what_is_allowed_grows_with_the_scores_and_with_the_number() -> None:
    exact = np.array([0.0, 1.0, -3.0, np.inf, -np.inf, np.nan])
    assert (allowed(exact, 1.0) / STEP).tolist() == [1.0, 2.0, 4.0, 1.0, 1.0, 1.0]
    assert (allowed(exact, 8.0) / STEP).tolist() == [8.0, 16.0, 32.0, 8.0, 8.0, 8.0]


def test_shares_of_the_tolerance() -> None:
    exact = np.array([0.0, 1.0, -3.0])
    off = np.array([STEP, -STEP, 6 * STEP])
    assert shares(exact + off, exact, 1.0).tolist() == [1.0, 0.5, 1.5]
    assert shares(exact + off, exact, 4.0).tolist() == [0.25, 0.125, 0.375]


@pytest.mark.parametrize(
    ("ours", "exact", "share"),
    [
        (-np.inf, -np.inf, 0.0),
        (np.inf, 1.0, np.inf),
        (-np.inf, 1.0, np.inf),
        (1.0, -np.inf, np.inf),
        (np.inf, -np.inf, np.inf),
        (-np.inf, np.inf, np.inf),
        (np.nan, 1.0, np.inf),
        (np.nan, -np.inf, np.inf),
    ],
)
def test_of_what_is_not_finite_only_a_hidden_score_is_right(
    ours: float, exact: float, share: float
) -> None:
    assert shares(np.array([ours], dtype=np.float32), np.array([exact]), 1.0).tolist() == [share]


def test_a_share_beyond_all_numbers_is_infinite_without_a_warning() -> None:
    assert shares(np.array([1e308]), np.array([0.0]), 1.0).tolist() == [np.inf]
