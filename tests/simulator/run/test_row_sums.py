"""Sums of rows over their tiles: in float64 at once, in float16 one number after the other."""

import numpy as np
import pytest

from simulator.base.cache import ARRAY
from simulator.problem.workload import Inputs, Workload, read_inputs, resolve
from simulator.run.row_sums import added, blank_half, blank_sums, over, tile_scores, ulps
from tests.helpers.runs import pairs_of, scenario, textbook


def drawn(temperature: float = 1.0) -> tuple[Workload, Inputs]:
    """Return two heads of nine rows, of which the last block has one and the first two see none."""
    w = resolve(
        scenario("flash2", nq=9, nk=7, d=3, dv=2, heads=2, kv_heads=1, rows=4, cols=2,
                 mask={"causal": True}, temperature=temperature)
    )  # fmt: skip
    return w, read_inputs(w)


def scores(w: Workload, inputs: Inputs, head: int) -> np.ndarray:
    q, k = inputs.q[head].astype(float), inputs.k[0].astype(float)
    return np.where(pairs_of(w).matrix(), q @ k.T * w.scale / w.temperature, -np.inf)


def test_scores_and_values_of_every_tile() -> None:
    w, inputs = drawn(0.5)
    for head, i, j in np.ndindex(2, 3, 4):
        rows, keys = slice(i * 4, i * 4 + 4), slice(j * 2, j * 2 + 2)
        s, v = tile_scores(w, inputs, head, i, j)
        assert s.dtype == np.float64
        np.testing.assert_allclose(s, scores(w, inputs, head)[rows, keys], rtol=1e-12)
        np.testing.assert_array_equal(v, inputs.v[0, keys])


def test_sums_of_all_tiles_are_the_output() -> None:
    w, inputs = drawn()
    for head, i in np.ndindex(2, 3):
        rows, state = slice(i * 4, min(i * 4 + 4, 9)), blank_sums(w, head, w.grid.row_range(i))
        assert state.top == -np.inf
        for j in range(4):
            state = added(state, *tile_scores(w, inputs, head, i, j))
            so_far = scores(w, inputs, head)[rows, : j * 2 + 2]
            np.testing.assert_allclose(state.m, so_far.max(axis=1), rtol=1e-12)
            assert state.top == state.m.max()
        o, lse = textbook(w, inputs, head)
        np.testing.assert_allclose(over(state.o, state.l), o[rows], rtol=1e-12)
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(state.m + np.log(state.l), lse[rows], rtol=1e-12)
        assert state.bytes == 3 * ARRAY + 8 * len(state.m) * (1 + 1 + 2)


def test_in_float16_every_number_is_rounded() -> None:
    """Tiles of one key, so that no sum is left to the order in which it is made."""
    w, inputs = drawn()
    half = np.float16
    for head, i in np.ndindex(2, 3):
        sums = blank_half(w, head, w.grid.row_range(i))
        s = scores(w, inputs, head)[i * 4 : i * 4 + 4] * 2
        l, o = np.zeros(len(s), dtype=half), np.zeros((len(s), 2), dtype=half)
        for key in range(7):
            v = inputs.v[0, key : key + 1]
            sums = sums.add(s[:, key : key + 1], v)
            p = np.exp(s[:, key].astype(half).astype(np.float32)).astype(half).astype(np.float32)
            l = (l.astype(np.float32) + p).astype(half)
            o = (o.astype(np.float32) + p[:, None] * v).astype(half)
            np.testing.assert_array_equal(sums.l, l)
            np.testing.assert_array_equal(sums.o, o)
            assert sums.l.dtype == sums.o.dtype == np.float32
            assert not sums.over.any()


def test_an_exponential_that_overflows_is_remembered() -> None:
    w, _ = drawn()
    sums, v = blank_half(w, 0, w.grid.row_range(0)), np.ones((2, 2), dtype=np.float32)
    # exp(11) is 59 874, exp(11.5) beyond the 65 504 of float16; 40 000 twice is a sum too large.
    high = np.array([[11.0, 0], [0, 11.5], [10.5, 10.5], [0, 0]])
    low = np.zeros((4, 2))
    # The product of an infinite weight may be called invalid: some BLAS fill up with zeros.
    with np.errstate(over="ignore", invalid="ignore"):
        for s in (low, high, low):
            sums = sums.add(s, v)
    assert sums.over.tolist() == [False, True, False, False]
    assert np.isinf(sums.l).tolist() == [False, True, True, False]


def test_a_quotient_is_zero_where_nothing_was_seen() -> None:
    values, total = np.array([[2.0, 4.0], [0.0, 0.0], [1.0, 3.0]]), np.array([2.0, 0.0, 4.0])
    assert over(values, total).tolist() == [[1.0, 2.0], [0.0, 0.0], [0.25, 0.75]]
    blind = np.array([False, False, True])
    with np.errstate(invalid="ignore"):
        found = over(values, total, blind)
    assert np.isnan(found[1]).all()
    assert found[[0, 2]].tolist() == [[1.0, 2.0], [0.0, 0.0]]


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_an_error_that_is_no_number_is_infinite_without_a_warning(wrong: float) -> None:
    ours = np.array([[1.0, wrong], [3.0, 1.0]], dtype=np.float32)
    exact = np.array([[1.0, 1.0], [4.0, 1.0]])
    assert ulps(ours, exact).tolist() == [np.inf, 2.0**21]
    assert ulps(ours, np.full((2, 2), np.inf)).tolist() == [np.inf, np.inf]


def test_the_unit_is_that_of_the_rows_largest_number_and_never_below_the_smallest_normal() -> None:
    least = float(np.finfo(np.float32).tiny)
    exact = np.array([[-3.0, 0.5], [0.0, 0.0], [least / 64, 0.0]])
    ours = exact + np.array([[0.0, 2.0**-20], [0.0, least], [least / 2, 0.0]])
    assert ulps(ours, exact).tolist() == [4.0, 2.0**23, 2.0**22]


def test_a_sink_beyond_float16_is_infinite_without_a_warning() -> None:
    w = resolve(scenario("flash2", nq=4, scores={"sink_logits": [100.0]}))
    sums = blank_half(w, 0, range(4))
    assert np.isinf(sums.l).all()
