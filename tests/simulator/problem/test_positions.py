"""Rotary positions: what Q and K become, by plain loops, and what follows for scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.base.dtypes import round_to
from simulator.problem.positions import Rotary
from simulator.problem.scenario import with_values
from simulator.problem.workload import read_inputs, resolve
from tests.helpers.refused import refused
from tests.helpers.runs import scenario


def with_position(**said: object):
    plain = scenario(nq=5, nk=7, d=8, heads=4, kv_heads=2, dtype="float32", head=[1, 3])
    return with_values(plain, {"position": {"kind": "rope", **said}})


@given(st.integers(-1000, 1000), st.integers(0, 30), st.integers(0, 30), st.booleans())
def test_a_score_depends_on_the_distance_alone(shift, i, j, interleaved) -> None:
    q, k = np.random.default_rng(3).standard_normal((2, 1, 1, 16)).astype(np.float32)

    def score(a: int, b: int) -> float:
        turn = Rotary(10000.0, 16, interleaved)
        rows = turn.turned(q, a, "float32"), turn.turned(k, b, "float32")
        return float((rows[0].astype(float) * rows[1]).sum())

    assert score(i + shift, j + shift) == pytest.approx(score(i, j), abs=2e-5)


def test_lengths_stay_and_what_is_not_turned_stays_as_it_is() -> None:
    x = np.random.default_rng(0).standard_normal((2, 9, 12)).astype(np.float32)
    out = Rotary(10000.0, 6).turned(x, 100, "float32")
    np.testing.assert_array_equal(out[..., 6:], x[..., 6:])
    assert not np.allclose(out[..., :6], x[..., :6])
    np.testing.assert_allclose((out**2).sum(-1), (x**2).sum(-1), rtol=1e-5)
    half = Rotary(10000.0, 6).turned(x, 100, "float16")
    np.testing.assert_array_equal(half, round_to(half, "float16"))


@given(st.integers(1, 6), st.integers(0, 3), st.booleans())
def test_numbers_of_a_pair_know_each_other(pairs: int, rest: int, interleaved: bool) -> None:
    """What a number becomes depends on itself and its partner alone, at the speed of its pair."""
    said = Rotary(10.0, 2 * pairs, interleaved)
    for column in range(2 * pairs + rest):
        row = np.zeros((1, 1, 2 * pairs + rest), np.float32)
        row[..., column] = 1
        turned = said.turned(row, 3, "float32")[0, 0]
        partner = said.partner(column)
        assert set(np.flatnonzero(turned)) == {column, partner} - {None}
        if partner is None:
            assert column >= said.width
            continue
        assert said.partner(partner) == column
        assert said.pair_of(partner) == said.pair_of(column)
        angle = said.angles(np.array([3]))[0, said.pair_of(column)]
        assert turned[column] == pytest.approx(np.cos(angle), abs=1e-6)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"fraction": 0.3}, "position.fraction = 0.3: expected a share of the 8 numbers"),
        ({"fraction": 0.0}, "position.fraction"),
        ({"theta": 1.0}, "position.theta"),
        ({"kind": "learned"}, "position.kind"),
    ],
)
def test_what_cannot_be_used_is_named(said, words) -> None:
    assert words in refused(lambda: resolve(with_position(**said)))


def test_heads_that_are_packed_keep_their_rows_as_they_were_before() -> None:
    said = {"nq": 3, "nk": 8, "d": 4, "heads": 4, "kv_heads": 2, "rows": 2, "cols": 2}
    plain, turned = (
        read_inputs(resolve(scenario("split-kv", **said, **more)))
        for more in ({}, {"position": {"kind": "rope"}})
    )
    np.testing.assert_array_equal(turned.unturned[0], plain.q)
    assert not np.array_equal(turned.q, plain.q)
