"""Other scores: their formulas pair by pair, the same tiles for all of them, what a pair costs."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.study.smoothing.other_scores import additive, cosine, dot, score_kinds


def vectors(n: int, m: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.standard_normal((m, d))


sizes = st.tuples(st.integers(1, 7), st.integers(1, 7), st.integers(1, 5), st.integers(0, 999))


@given(sizes)
def test_formulas_pair_by_pair(size: tuple[int, ...]) -> None:
    n, m, d, seed = size
    q, k = vectors(n, m, d, seed)
    wq, wk = vectors(4, 4, d, seed + 1)
    v = np.arange(1.0, 5.0)
    found = dot(q, k), cosine(q, k), additive(q, k, wq, wk, v)
    for i in range(n):
        for j in range(m):
            product = sum(a * b for a, b in zip(q[i], k[j], strict=True))
            length = math.hypot(*q[i]) * math.hypot(*k[j])
            hidden = [
                math.tanh(sum(wq[a, x] * q[i, x] + wk[a, x] * k[j, x] for x in range(d)))
                for a in range(4)
            ]
            total = sum(v[a] * hidden[a] for a in range(4))
            assert [each[i, j] for each in found] == pytest.approx(
                [product, product / length, total], abs=1e-12
            )


def test_the_cosine_is_the_scaled_dot_product_of_vectors_of_length_root_d() -> None:
    q, k = vectors(5, 6, 16, 0)
    q, k = (4 * x / np.linalg.norm(x, axis=1, keepdims=True) for x in (q, k))
    by_name = {kind.name: kind for kind in score_kinds(16, 16, 0.25)}
    np.testing.assert_allclose(by_name["cosine"].of(q, k), by_name["scaled dot"].of(q, k))
    assert cosine(np.zeros((1, 3)), np.ones((1, 3))).tolist() == [[0.0]]


def test_lengths_matter_to_the_dot_product_alone() -> None:
    q, k = vectors(3, 4, 8, 1)
    for kind in score_kinds(8, 8, 1 / math.sqrt(8)):
        same = np.allclose(kind.of(q, 3 * k), kind.of(q, k))
        assert same == (kind.name == "cosine")


def test_costs_are_the_operations_of_the_formulas() -> None:
    """Counted one by one: a product and a sum for each of d terms, and so on."""
    d, a = 5, 7
    by_name = {kind.name: kind.cost for kind in score_kinds(d, a, 0.5)}
    multiplications = additions = d  # of q·k, the first addition to 0 as hardware does it
    assert by_name["dot"].flops == multiplications + additions
    assert by_name["scaled dot"].flops == multiplications + additions + 1
    assert by_name["cosine"].flops == multiplications + additions + 1
    summed, weighted, collected = a, a, a  # W_q q + W_k k, times v, into the sum
    cost = by_name["additive"]
    assert cost.flops == summed + weighted + collected + a
    assert (cost.plain, cost.special, cost.matmul) == (3 * a, a, 0)
    assert cost.once == 2 * d * a
    assert [each.kept for each in by_name.values()] == [1, 1, 1, a]
    assert [name for name, each in by_name.items() if not each.on_tensor_cores] == ["additive"]


def test_what_nobody_has_trained_is_drawn_from_the_seed() -> None:
    q, k = vectors(2, 3, 4, 0)
    first, again, other = (score_kinds(4, 4, 0.5, seed)[-1].of(q, k) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)
