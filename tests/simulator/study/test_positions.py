"""Positions in scores: one vector at all places, a shift of them, and untrained distances."""

import math
from pathlib import Path

import numpy as np
import pytest

from simulator.problem.positions import Rotary
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import read_inputs, resolve
from simulator.study.positions.scores import (
    energies,
    far_scores,
    learned_scores,
    off_toeplitz,
    pairs_of,
    placed,
    positions_state,
    rotary_of,
    shift_errors,
    sinusoid_scores,
    sinusoids,
    speeds_of,
    stretched,
)
from tests.helpers.runs import scenario, trace_of
from tests.helpers.small_language_model import put_in_place

ROTARY = Rotary(10000.0, 32)


def vector(width: int = 32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(width)


@pytest.mark.parametrize("interleaved", [False, True])
def test_scores_of_one_vector_depend_on_the_distance_alone_under_rope_and_alibi(
    interleaved,
) -> None:
    position = {"kind": "rope", "interleaved": interleaved}
    w = resolve(scenario(nq=4, d=32, position=position))
    kinds = {kind.name: kind for kind in placed(w, vector(), 20, 7)}
    assert kinds["rope"].off < 1e-6
    assert kinds["rope"].moved < 1e-6
    assert kinds["alibi"].off == kinds["alibi"].moved == 0
    for name in ("sinusoids", "learned"):
        assert kinds[name].off > 0.1
        assert kinds[name].moved > 0.05
    # By the formula alone: q turned by i, k by j, pair by pair.
    x, speeds = vector(), speeds_of(rotary_of(w))
    pairs = [(x[2 * n], x[2 * n + 1]) if interleaved else (x[n], x[n + 16]) for n in range(16)]
    for i, j in ((0, 0), (3, 11), (19, 2)):
        want = sum((a * a + b * b) * math.cos((i - j) * s)
                   for (a, b), s in zip(pairs, speeds, strict=True)) / math.sqrt(32)  # fmt: skip
        assert kinds["rope"].scores[i, j] == pytest.approx(want, abs=1e-5)
        away = abs(i - j) * 2.0**-1  # the steepest of eight slopes
        assert kinds["alibi"].scores[i, j] == pytest.approx(x @ x / math.sqrt(32) - away)
    assert pairs_of(x[None], rotary_of(w))[0] == pytest.approx([complex(*pair) for pair in pairs])


def test_a_shift_moves_scores_by_rounding_alone() -> None:
    w = resolve(scenario(nq=4, d=32))
    errors = shift_errors(w, vector(), 20, 1000)
    assert errors["float32"] < 1e-6 < 1e-5 < errors["float16"] < 2e-3 < errors["bfloat16"] < 2e-2


def test_sinusoids_are_those_of_the_paper() -> None:
    found = sinusoids(np.arange(5), 6)
    for place in range(5):
        for n in range(3):
            angle = place / 10000 ** (2 * n / 6)
            assert found[place, 2 * n : 2 * n + 2] == pytest.approx(
                [math.sin(angle), math.cos(angle)]
            )


def test_scores_with_added_positions_are_sums_of_products() -> None:
    w, x, first = resolve(scenario(nq=4, d=6, position={"kind": "rope", "offset": 5})), vector(6), 5
    kinds = {kind.name: kind for kind in placed(w, x, 4, 7)}
    waves = sinusoids(np.arange(30), 6)
    for i in range(4):
        for j in range(4):
            one, two = (x + waves[first + n] for n in (i, j))
            assert kinds["sinusoids"].scores[i, j] == pytest.approx(w.logit_scale * one @ two)
    there = [[(x + waves[12 + i]) @ (x + waves[12 + j]) for j in range(4)] for i in range(4)]
    here = kinds["sinusoids"].scores / w.logit_scale
    off = np.abs(np.array(there) - here).max() / np.abs(here).max()
    assert kinds["sinusoids"].moved == pytest.approx(off)


def test_places_may_lie_before_the_first() -> None:
    near, far = learned_scores(vector(6), -3, 6), learned_scores(vector(6), -2, 6)
    np.testing.assert_array_equal(near[1:, 1:], far[:-1, :-1])  # a place has one row of the table
    assert len(set(near.diagonal().tolist())) == 6
    w = resolve(scenario(nq=4, d=6, position={"kind": "rope", "offset": -3}))
    assert all(np.isfinite(kind.scores).all() for kind in placed(w, vector(6), 4, 7))


def test_a_vector_of_noughts_has_no_score_that_a_shift_could_move() -> None:
    w, nothing = resolve(scenario(nq=4, d=6, position={"kind": "rope"})), np.zeros(6)
    moved = {kind.name: kind.moved for kind in placed(w, nothing, 4, 7)}
    assert moved["rope"] == 0.0
    assert 0 < moved["learned"] < np.inf
    assert set(shift_errors(w, nothing, 4, 7).values()) == {0.0}


def test_what_is_not_toeplitz_is_told() -> None:
    assert off_toeplitz(np.array([[1.0, 2.0], [3.0, 1.0]])) == 0
    assert off_toeplitz(np.array([[1.0, 2.0], [3.0, 2.0]])) == 0.5


def test_stretched_positions_are_those_of_their_papers() -> None:
    plain, flat, ntk, yarn = stretched(ROTARY, 2048, 4.0)
    speeds = [10000 ** (-2 * n / 32) for n in range(16)]
    assert plain.speeds == pytest.approx(speeds)
    assert flat.speeds == pytest.approx([speed / 4 for speed in speeds])
    # NTK-aware: the fastest pair as it was, the slowest interpolated whole.
    assert ntk.speeds[0] == 1
    assert ntk.speeds[-1] == pytest.approx(speeds[-1] / 4)
    assert np.all(ntk.speeds[1:-1] > flat.speeds[1:-1])
    turns = [2048 * speed / (2 * math.pi) for speed in speeds]
    for n, turned in enumerate(turns):
        if turned > 32:
            assert yarn.speeds[n] == pytest.approx(speeds[n])
        elif turned < 1:
            assert yarn.speeds[n] == pytest.approx(speeds[n] / 4)
        else:
            assert speeds[n] / 4 < yarn.speeds[n] < speeds[n]
    assert yarn.temper == pytest.approx((0.1 * math.log(4) + 1) ** 2)
    slow = sum(turned < 1 for turned in turns)
    assert [way.new_angles(2048, 4.0, plain.speeds) for way in (plain, flat, ntk, yarn)] == [
        slow, 0, slow - 1, 0,
    ]  # fmt: skip
    assert slow == 5


def test_scores_over_distance_are_weighted_means_of_cosines() -> None:
    way, x = stretched(ROTARY, 64, 2.0)[3], vector()
    squares = energies(x, ROTARY)
    assert squares.sum() == pytest.approx(x @ x)
    assert np.abs(pairs_of(x[None], ROTARY)[0]) ** 2 == pytest.approx(squares)
    middles, means = far_scores(way, squares, 127, 16)
    assert len(middles) == 16
    for middle, mean in zip(middles, means, strict=True):
        # Eight distances and a triangle of their differences: every pair of two of them.
        own = [middle + s - t for s in range(8) for t in range(8)]
        want = np.mean([np.sum(squares * np.cos(d * way.speeds)) for d in own]) * way.temper
        assert mean == pytest.approx(want, abs=1e-9)
    one, every = far_scores(way, squares, 9, 10)
    assert one.tolist() == list(range(10))
    assert every[0] == pytest.approx(squares.sum() * way.temper)


def test_a_run_with_rope_is_shown_with_its_own() -> None:
    position = {"kind": "rope", "theta": 500.0, "fraction": 0.5, "offset": 3}
    w = resolve(scenario(nq=4, d=32, position=position))
    own = rotary_of(w)
    assert (own.theta, own.width, own.offset) == (500.0, 16, 3)
    assert read_inputs(w).q.shape == (1, 4, 32)
    odd = resolve(scenario(nq=4, d=5))
    assert rotary_of(odd).width == 4


def test_a_number_alone_turns_with_a_nought_beside_it() -> None:
    w = resolve(scenario(nq=4, d=1))
    kinds = {kind.name: kind for kind in placed(w, np.array([3.0]), 5, 7)}
    distances = np.arange(5)[:, None] - np.arange(5)
    assert kinds["rope"].scores == pytest.approx(9 * np.cos(distances), abs=1e-5)
    assert pairs_of(np.array([[3.0]]), rotary_of(w)).tolist() == [[3.0]]
    assert shift_errors(w, np.array([3.0]), 5, 7)["float32"] < 1e-6


def test_rows_of_a_drawn_table_are_as_long_as_sinusoids() -> None:
    """Of 2000 numbers the squares of a row add up to half of them, but for some per cent."""
    nothing = np.zeros(2000)
    lengths = np.diag(learned_scores(nothing, 5, 4))
    np.testing.assert_allclose(lengths, np.diag(sinusoid_scores(nothing, 5, 4)), rtol=0.15)
    own = learned_scores(nothing, 7, 2)
    np.testing.assert_allclose(own, learned_scores(nothing, 5, 4)[2:, 2:])  # whatever the place is
    ones = np.ones(2000)
    assert learned_scores(ones, 5, 1).item() == pytest.approx(3000, rel=0.15)


def test_hands_of_a_typed_text_are_those_before_the_model_turned_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_in_place(tmp_path, monkeypatch)
    said = {"source": "sentence", "text": "t,t,t,t", "layer": 0}
    w, inputs = trace_of(parse_scenario({"input": said})).single_heads
    state = positions_state(w, inputs, 1, 4, 100, 4096, 4)
    assert state.rotary == Rotary(10_000.0, w.head_dim)
    # In the first layer a query depends on its token alone, but for its place.
    same = [row for row, token in enumerate(w.tokens) if token == ","]
    assert len(same) == 3
    for row in same[1:]:
        np.testing.assert_allclose(state.pairs[row], state.pairs[same[0]], rtol=1e-4, atol=1e-5)
    assert not np.allclose(inputs.q[1, same[1]], inputs.q[1, same[0]], atol=1e-2)
