"""Scores and masks of key ranges, against plain loops over pairs."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simulator.engines.numerics import change_in, joined, mask_into, score_keys
from simulator.program.ops import exp_shift

RANGES = st.lists(st.integers(0, 3), min_size=2, max_size=8).map(
    lambda steps: [
        (start, stop)
        for n, (start, stop) in enumerate(
            zip(np.cumsum(steps).tolist(), np.cumsum(steps).tolist()[1:], strict=False)
        )
        if n % 3 and stop > start
    ]
)
"""Ascending ranges; some follow at once on the one before."""


@given(RANGES)
def test_neighbours_are_joined_and_no_others(ranges: list[tuple[int, int]]) -> None:
    whole = joined(ranges)
    keys = [key for start, stop in ranges for key in range(start, stop)]
    assert [key for start, stop in whole for key in range(start, stop)] == keys
    gaps = sum(b - a > 1 for a, b in pairwise(keys))
    assert len(whole) == (gaps + 1 if keys else 0)


@given(RANGES, st.integers(1, 4), st.integers(0, 99))
def test_scores_and_masks_are_those_of_the_pairs(
    ranges: list[tuple[int, int]], rows: int, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    q = draw.integers(-4, 5, (rows, 3)).astype(np.float32)
    k = draw.integers(-4, 5, (24, 3)).astype(np.float32)
    seen = draw.random((rows, 24)) < draw.choice([0.2, 0.8, 1.0], 24)

    def visible(start: int, stop: int) -> np.ndarray | None:
        part = seen[:, start:stop]
        return None if part.all() else part

    s, masked = score_keys(q, k, 0.5, ranges, visible)
    keys = [key for start, stop in ranges for key in range(start, stop)]
    assert s.shape == masked.shape == (len(keys), rows)
    for n, key in enumerate(keys):
        for row in range(rows):
            exact = 0.5 * float(q[row] @ k[key])
            assert s[n, row] == exact
            assert masked[n, row] == (exact if seen[row, key] else -np.inf)


def test_a_mask_leaves_other_rows_of_its_array_alone() -> None:
    x = np.zeros((5, 2), dtype=np.float32)
    hidden = np.array([[True, False, True], [True, True, True]])
    mask_into(x, [(7, 10)], lambda start, stop: hidden[:, : stop - start])
    assert np.flatnonzero(np.isneginf(x)).tolist() == [2]


def test_what_has_seen_nothing_weighs_nothing() -> None:
    high = np.array([-np.inf, -np.inf, 1.0, 2.0], dtype=np.float32)
    low = np.array([-np.inf, 3.0, 1.0, 4.0], dtype=np.float32)
    assert exp_shift(high, low).tolist() == [0.0, 0.0, 1.0, np.exp(np.float32(-2))]


def test_scores_of_each_range_are_changed_at_their_own_keys() -> None:
    ranges = [(0, 2), (4, 5), (6, 9)]
    x = np.zeros((6, 2), dtype=np.float32)
    change_in(x, ranges, lambda start, stop, s: s + np.arange(start, stop, dtype=np.float32))
    assert x.T.tolist() == [[0, 1, 4, 6, 7, 8]] * 2
