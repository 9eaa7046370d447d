"""Caches that keep few tokens: policies one by one in plain loops, and what they cost."""

from dataclasses import replace
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.engines.reference import reference_rows
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import read_inputs, resolve
from simulator.study.kv_cache.costs import budgets_of, relative_error, shown_run, weight_gone
from simulator.study.kv_cache.decoding import SEED, DecodedLayer, decoded, layer_of
from simulator.study.kv_cache.policies import POLICIES, SINKS, Full, policy_named
from tests.helpers.refused import refused


def layer(tokens: int, heads: int = 4, kv_heads: int = 2, seed: int = 1, **scores) -> DecodedLayer:
    shapes = {"seqlen_q": tokens, "heads": heads, "kv_heads": kv_heads, "head_dim": 4}
    said = {"attention": shapes, "input": {"seed": seed}, "scores": scores}
    w = resolve(parse_scenario(said))
    return layer_of(w, read_inputs(w))


def by_hand(layer: DecodedLayer, name: str, budget: int) -> tuple[list[list[set[int]]], np.ndarray]:
    """Return what each KV head keeps at each step, and O, one token after another."""
    w, rng = layer.workload, np.random.default_rng(SEED)
    draws = {t: rng.random((w.kv_heads, layer.tokens)) for t in range(budget, layer.tokens)}
    group = w.heads // w.kv_heads
    o = np.zeros((w.heads, layer.tokens, w.value_dim))
    all_kept = []
    for kv in range(w.kv_heads):
        held: list[int] = []
        mass = dict.fromkeys(range(layer.tokens), 0.0)
        kept = []
        for t in range(layer.tokens):
            if len(held) == budget:
                if name == "window":
                    gone = min(held)
                elif name == "sinks + recent":
                    first = range(min(SINKS, budget - 1))
                    gone = min(set(held) - set(first))
                elif name == "heavy hitters":
                    recent = set(range(t - max(budget // 2, 1) + 1, t + 1))
                    gone = min((j for j in held if j not in recent), key=lambda j: (mass[j], j))
                else:
                    gone = min(held, key=lambda j: draws[t][kv, j])
                held.remove(gone)
            held.append(t)
            kept.append(set(held))
            for head in range(kv * group, (kv + 1) * group):
                weights = {j: exp(layer.scores[head, t, j]) for j in held}
                total = sum(weights.values())
                for j, weight in weights.items():
                    mass[j] += weight / total
                    o[head, t] += weight / total * layer.values[kv, j]
        all_kept.append(kept)
    return all_kept, o


@given(
    st.integers(1, 14), st.integers(1, 15), st.sampled_from([(4, 2), (2, 2), (3, 1)]),
    st.sampled_from([policy.name for policy in POLICIES]), st.integers(0, 99),
)  # fmt: skip
def test_policies_are_those_of_plain_loops(tokens, budget, heads, name, seed):
    own = layer(tokens, *heads, seed=seed)
    found = decoded(own, policy_named(name), budget)
    kept, o = by_hand(own, name, budget)
    assert [[set(np.flatnonzero(row)) for row in head] for head in found.kept] == kept
    np.testing.assert_allclose(found.o, o, rtol=1e-9, atol=1e-12)
    assert found.kept.sum(axis=2).max() == min(budget, tokens)
    sums = 4 * own.workload.kv_heads if name == "heavy hitters" else 0
    row = 2 * own.workload.kv_heads * 4 * own.workload.width
    assert found.bytes == min(budget, tokens) * (row + sums)


@pytest.mark.parametrize("sinks", [(), (0.5, 1.0, -1.0, 2.0)])
@pytest.mark.parametrize("name", [policy.name for policy in POLICIES])
def test_the_weight_of_tokens_that_left_is_that_of_plain_loops(
    name: str, sinks: tuple[float, ...]
) -> None:
    own = layer(9, **({"sink_logits": sinks} if sinks else {}))
    budget = 3
    found = decoded(own, policy_named(name), budget)
    gone = []
    for head in range(4):
        for t in range(budget, 9):
            weights = [exp(score) for score in own.scores[head, t, : t + 1]]
            stays = found.kept[head // 2, t]
            gone.append(sum(w for j, w in enumerate(weights) if not stays[j]))
            gone[-1] /= sum(weights) + (exp(sinks[head]) if sinks else 0)
    assert weight_gone(own, found, budget) == pytest.approx(np.mean(gone), rel=1e-12)
    assert weight_gone(own, decoded(own, policy_named(name), 9), 9) == 0


@pytest.mark.parametrize("scores", [{}, {"softcap": 2.0}, {"sink_logits": [0.5, 1.0, -1.0, 2.0]}])
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_a_cache_for_all_tokens_is_exact(policy, scores):
    own = layer(12, **scores)
    w, rows = own.workload, range(12)
    exact = np.stack([reference_rows(w, own.inputs, head, rows)[0] for head in range(w.heads)])
    for budget in (12, 40):
        np.testing.assert_allclose(decoded(own, policy, budget).o, exact, rtol=1e-9, atol=1e-12)
    assert relative_error(decoded(own, policy, 3).o, exact) > 1e-3


@pytest.mark.parametrize(
    ("budget", "leaves"), [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (6, 3), (7, 4), (8, 4), (9, 5)]
)
def test_half_of_a_heavy_hitters_cache_rounded_down_is_recent(budget, leaves):
    """With sums that fall with age the first token before the recent ones leaves."""
    kept = np.ones((1, budget), dtype=bool)
    mass = np.arange(budget, 0, -1, dtype=float)[None]
    full = Full(kept, mass, budget, coming=budget, draw=np.zeros((1, budget)))
    assert policy_named("heavy hitters").leaves(full).tolist() == [leaves]


def test_a_window_is_a_windowed_mask():
    own = layer(12)
    mask = {"mask": {"causal": True, "window": 5}}
    said = own.workload.scenario.model_dump(exclude_none=True, exclude_defaults=True)
    w = resolve(parse_scenario(said | mask))
    windowed = np.stack([reference_rows(w, own.inputs, h, range(12))[0] for h in range(w.heads)])
    budget = int(w.mask.visible(range(12), range(12)).sum(axis=1).max())
    np.testing.assert_allclose(decoded(own, policy_named("window"), budget).o, windowed, rtol=1e-9)


def test_a_budget_of_nothing_is_refused():
    assert "budget" in refused(decoded, layer(3), POLICIES[0], 0)


@given(st.integers(4, 2000))
def test_budgets_rise_and_leave_some_tokens_out(tokens):
    budgets = budgets_of(tokens)
    assert list(budgets) == sorted(set(budgets))
    assert budgets[0] >= 1
    assert budgets[-1] < tokens


def test_short_runs_and_random_numbers_are_replaced_by_a_layer():
    w = resolve(parse_scenario({"attention": {"seqlen_q": 8, "head_dim": 4}}))
    shown, _ = shown_run(w, read_inputs(w))
    assert (shown.file.title, shown.seqlen_k) == ("all-MiniLM-L6-v2, layer 1", 495)
    short = resolve(parse_scenario({"input": {"source": "capture", "name": "cat-because-layer2"}}))
    assert shown_run(short, read_inputs(short))[0] is shown
    own = resolve(parse_scenario({"input": {"source": "capture", "name": "passage-layer1"}}))
    assert shown_run(own, read_inputs(own))[0] is own
    for tokens, fits in ((63, False), (64, True), (591, True), (592, False)):  # twelve heads
        other = replace(own, seqlen_q=tokens, seqlen_k=tokens)
        assert (shown_run(other, read_inputs(own))[0] is other) is fits
