"""Jobs of heads and their distances against plain loops, and what a head gives to Y."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.base.assets import CAPTURES
from simulator.problem.masks import Mask
from simulator.problem.scenario import parse_scenario
from simulator.run.trace import simulate
from simulator.study.attention_map import HeadScores
from simulator.study.jobs.jobs import JOB_NAMES, head_distances, head_jobs, shares_of_y

MASKS = st.builds(
    Mask,
    seqlen_q=st.integers(1, 7),
    seqlen_k=st.integers(1, 9),
    causal=st.booleans(),
    window=st.integers(0, 5),
    sinks=st.integers(0, 2),
)


def counts(job: str, i: int, j: int, tokens: list[str]) -> bool:
    """Whether key j counts for a row that stands at place i."""
    if job == "first":
        return j == 0
    if job in ("same", "induction"):
        at = j if job == "same" else j - 1
        return at >= 0 and j < i and tokens[at] == tokens[i]
    return j == {"previous": i - 1, "next": i + 1, "self": i}[job]


def random_weights(mask: Mask, heads: int, seed: int) -> np.ndarray:
    """Return a softmax of random scores over what each row sees."""
    rng = np.random.default_rng(seed)
    seen = mask.visible(range(mask.seqlen_q), range(mask.seqlen_k))
    raw = np.where(seen, rng.random((heads, *seen.shape)), 0.0)
    total = raw.sum(axis=2, keepdims=True)
    return raw / np.where(total > 0, total, 1.0)


@given(mask=MASKS, heads=st.integers(1, 3), words=st.integers(1, 4), seed=st.integers(0, 999))
def test_scores_are_those_of_plain_loops(mask: Mask, heads: int, words: int, seed: int) -> None:
    weights = random_weights(mask, heads, seed)
    tokens = [str(n) for n in np.random.default_rng(seed).integers(0, words, mask.seqlen_k)]
    found = head_jobs(weights, mask, range(mask.seqlen_q), tokens)
    seen = mask.visible(range(mask.seqlen_q), range(mask.seqlen_k))
    for n, job in enumerate(JOB_NAMES):
        sums, even = [], []
        for row in range(mask.seqlen_q):
            i = row + mask.seqlen_k - mask.seqlen_q
            keys = [j for j in range(mask.seqlen_k) if seen[row, j]]
            own = [j for j in keys if i >= 0 and counts(job, i, j, tokens)]
            if own and len(keys) > 1:
                sums.append([sum(weights[h, row, j] for j in own) for h in range(heads)])
                even.append(len(own) / len(keys))
        assert found.rows[n] == len(sums)
        if sums:
            np.testing.assert_allclose(found.scores[:, n], np.mean(sums, axis=0), atol=1e-12)
            assert found.even[n] == pytest.approx(np.mean(even))
        else:
            assert np.isnan(found.scores[:, n]).all()
            assert math.isnan(found.even[n])


def test_without_tokens_only_places_count() -> None:
    mask = Mask(5, 5, causal=True)
    found = head_jobs(random_weights(mask, 2, 0), mask, range(5))
    known = dict(zip(JOB_NAMES, ~np.isnan(found.scores).any(axis=0), strict=True))
    assert known == {
        "previous": True, "next": False, "first": True, "self": True,
        "same": False, "induction": False,
    }  # fmt: skip


@given(mask=MASKS, heads=st.integers(2, 4), seed=st.integers(0, 999))
def test_distances_are_those_of_plain_loops(mask: Mask, heads: int, seed: int) -> None:
    weights = random_weights(mask, heads, seed)
    found = head_distances(weights)

    def apart(p: np.ndarray, q: np.ndarray) -> float:
        middle = (p + q) / 2
        parts = [
            0.5 * each[j] * math.log2(each[j] / middle[j])
            for each in (p, q) for j in range(len(p)) if each[j] > 0
        ]  # fmt: skip
        return sum(parts)

    for a in range(heads):
        for b in range(heads):
            rows = [apart(weights[a, r], weights[b, r]) for r in range(mask.seqlen_q)]
            assert found[a, b] == pytest.approx(np.mean(rows), abs=1e-12)


def test_distance_ends_at_0_and_1() -> None:
    ends = np.eye(4)[None].repeat(3, axis=0).copy()
    ends[2] = np.roll(ends[2], 1, axis=1)
    np.testing.assert_allclose(head_distances(ends), [[0, 0, 1], [0, 0, 1], [1, 1, 0]], atol=1e-15)


def test_y_without_a_head_is_y_of_the_others() -> None:
    rng = np.random.default_rng(1)
    o, wo, bias = (rng.standard_normal(shape) for shape in ((3, 6, 4), (12, 5), (5,)))

    def y(heads: np.ndarray) -> np.ndarray:
        return heads.transpose(1, 0, 2).reshape(6, 12) @ wo + bias

    for head, share in enumerate(shares_of_y(o, wo, bias)):
        off = o.copy()
        off[head] = 0
        assert share == pytest.approx(np.linalg.norm(y(o) - y(off)) / np.linalg.norm(y(o)))


def test_heads_of_a_real_layer_have_scores() -> None:
    """A layer of MiniLM: its weights are those of float64, and so are its scores."""
    name = "cat-because-layer2"
    trace = simulate(parse_scenario({"input": {"source": "capture", "name": name}}))
    w, inputs = trace.single_heads
    maps = HeadScores(w, inputs).maps()
    found = head_jobs(maps.weights, w.mask, maps.rows, w.tokens)
    assert (CAPTURES / f"{name}.safetensors").is_file()
    assert found.scores.shape == (12, len(JOB_NAMES))
    q, k = inputs.q[8].astype(float), inputs.k[8].astype(float)
    scores = q @ k.T * w.scale
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    assert found.of("self")[8] == pytest.approx(np.trace(p) / len(p), abs=1e-6)
    assert found.of("next")[8] == pytest.approx(np.diag(p, 1).mean(), abs=1e-6)
