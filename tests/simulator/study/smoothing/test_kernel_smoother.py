"""Attention as a kernel smoother: the identity to rounding, the plane, what the norms move."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import read_inputs, resolve
from simulator.study.attention_map import HeadScores
from simulator.study.smoothing.kernel_smoother import (
    HeadPoints,
    factors,
    head_points,
    key_plane,
    moved_query,
    rounding_bound,
)


def points(most: int = 512, head: int = 0, row: int = 0, **tables) -> HeadPoints:
    w = resolve(parse_scenario(tables))
    return head_points(w, read_inputs(w), head, row, most)


CAPTURE = {"input": {"source": "capture", "name": "robot-ball-layer2"}}
sizes = st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 6), st.integers(0, 999))


@given(sizes, st.floats(0.01, 4))
def test_the_identity_holds_to_rounding(size: tuple[int, ...], scale: float) -> None:
    nq, nk, d, seed = size
    found = points(
        attention={"seqlen_q": nq, "seqlen_k": nk, "head_dim": d, "scale": scale},
        input={"seed": seed},
    )
    both = factors(found)
    assert both.off <= rounding_bound(found) < 1e-10
    for i in range(nq):
        for j in range(nk):
            score = sum(a * b for a, b in zip(found.q[i], found.k[j], strict=True))
            terms = (both.log_query[i], both.log_norm[j], both.log_radial[i, j])
            assert math.prod(map(math.exp, terms)) == pytest.approx(math.exp(score), rel=1e-9)


@given(sizes)
def test_weights_are_norm_times_radial_factor(size: tuple[int, ...]) -> None:
    nq, nk, d, seed = size
    found = points(
        attention={"seqlen_q": nq, "seqlen_k": nk, "head_dim": d}, mask={"causal": True},
        input={"seed": seed},
    )  # fmt: skip
    both = factors(found)
    kernel = np.where(found.seen, np.exp(both.log_norm + both.log_radial), 0.0)
    total = kernel.sum(axis=1, keepdims=True)
    by_kernel = np.divide(kernel, total, out=np.zeros_like(kernel), where=total > 0)
    np.testing.assert_allclose(found.weights, by_kernel, rtol=1e-9, atol=1e-15)
    for alone in (both.radial_weights, both.norm_weights):
        np.testing.assert_allclose(alone.sum(axis=1), found.seen.any(axis=1), atol=1e-12)
    assert ((both.moved >= 0) & (both.moved <= 1 + 1e-12)).all()


def test_keys_of_one_length_leave_the_radial_kernel_alone() -> None:
    found = points(**CAPTURE)
    unit = found.k / np.linalg.norm(found.k, axis=1, keepdims=True)
    same = replace(found, k=unit)
    assert factors(same).moved.max() < 1e-12
    assert factors(found).moved.max() > 0.1  # a trained head's keys are not


@pytest.mark.parametrize("scores", [{}, {"softcap": 3.0}, {"alibi": True}], ids=str)
def test_weights_are_those_of_the_inspector(scores: dict[str, object]) -> None:
    w = resolve(parse_scenario(CAPTURE | {"scores": scores}))
    inputs = read_inputs(w)
    maps = HeadScores(w, inputs).maps()
    for head in (0, 7):
        found = head_points(w, inputs, head, 3)
        assert found.whole
        np.testing.assert_allclose(found.weights, maps.of(head), atol=1e-6)
        assert found.changed == bool(scores)
        apart = np.abs(found.weights - found.plain_weights).max()
        assert (apart > 1e-3) == bool(scores)


@given(st.integers(2, 20), st.integers(1, 6), st.integers(0, 999))
def test_no_other_plane_has_more_of_the_variance(n: int, d: int, seed: int) -> None:
    found = points(attention={"seqlen_q": n, "head_dim": d}, input={"seed": seed})
    plane = key_plane(found)
    covariance = np.atleast_2d(np.cov(found.k.T, bias=True))
    values = np.sort(np.linalg.eigvalsh(covariance))[::-1]
    assert plane.share == pytest.approx(values[:2].sum() / values.sum())
    assert plane.shares[0] >= plane.shares[1] >= 0
    # Distances in the plane are none that are not there.
    flat = np.linalg.norm(plane.keys[:, None] - plane.keys, axis=-1)
    whole = np.linalg.norm(found.k[:, None] - found.k, axis=-1)
    assert (flat <= whole + 1e-9).all()
    if d <= 2:
        np.testing.assert_allclose(flat, whole, atol=1e-9)


def test_a_blend_lies_among_the_keys_that_are_seen() -> None:
    found = points(attention={"seqlen_q": 12, "head_dim": 8}, mask={"causal": True})
    plane = key_plane(found)
    for row in range(12):
        seen = plane.keys[: row + 1]
        assert (plane.blends[row] >= seen.min(axis=0) - 1e-12).all()
        assert (plane.blends[row] <= seen.max(axis=0) + 1e-12).all()
    np.testing.assert_allclose(plane.blends[0], plane.keys[0])


@given(st.integers(0, 11), st.floats(-3, 3), st.floats(-3, 3))
def test_a_moved_query_reads_what_its_scores_say(row: int, x: float, y: float) -> None:
    found = points(attention={"seqlen_q": 12, "head_dim": 8}, mask={"causal": True})
    plane = key_plane(found)
    still = moved_query(found, plane, row, tuple(plane.queries[row].tolist()))
    np.testing.assert_allclose(still.weights, found.weights[row], atol=1e-12)
    np.testing.assert_allclose(still.blend, plane.blends[row], atol=1e-12)
    moved = moved_query(found, plane, row, (x, y))
    q = found.q[row] + (x - plane.queries[row, 0]) * plane.axes[0]
    q = q + (y - plane.queries[row, 1]) * plane.axes[1]
    scores = found.k[: row + 1] @ q
    p = np.exp(scores - scores.max())
    np.testing.assert_allclose(moved.weights[: row + 1], p / p.sum(), atol=1e-12)
    assert not moved.weights[row + 1 :].any()
    np.testing.assert_allclose(moved.blend, moved.weights @ plane.keys, atol=1e-12)


def test_a_query_where_it_was_reads_as_before_beside_a_sink() -> None:
    found = points(attention={"seqlen_q": 5, "head_dim": 4}, scores={"sink_logits": [1.0]})
    plane = key_plane(found)
    still = moved_query(found, plane, 2, tuple(plane.queries[2].tolist()))
    np.testing.assert_allclose(still.weights, found.weights[2], atol=1e-12)


def test_a_query_far_away_reads_the_key_that_is_farthest_that_way() -> None:
    found = points(**CAPTURE)
    plane = key_plane(found)
    for angle in np.linspace(0, 2 * np.pi, 16, endpoint=False):
        way = np.array([np.cos(angle), np.sin(angle)])
        moved = moved_query(found, plane, 3, tuple((1e4 * way).tolist()))
        assert moved.weights.argmax() == (plane.keys @ way).argmax()
        assert moved.weights.max() > 0.999


@pytest.mark.parametrize("row", [0, 777, 1999])
def test_of_a_long_input_the_row_and_its_key_are_among_those_taken(row: int) -> None:
    found = points(
        most=50, row=row, attention={"seqlen_q": 2000, "head_dim": 4}, mask={"causal": True}
    )
    assert len(found.rows) == len(found.keys) == 50
    assert row in found.rows
    assert row in found.keys
    assert not found.whole
    assert list(found.rows) == sorted(set(found.rows))
    np.testing.assert_allclose(found.weights.sum(axis=1), 1)
    at = found.rows.index(row)
    assert found.seen[at].tolist() == [key <= row for key in found.keys]


def test_one_key_has_no_variance() -> None:
    plane = key_plane(points(attention={"seqlen_q": 2, "seqlen_k": 1, "head_dim": 3}))
    assert (plane.share, plane.shares) == (0.0, (0.0, 0.0))
    assert not plane.keys.any()
