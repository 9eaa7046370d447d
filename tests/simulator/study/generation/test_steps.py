"""Generation step by step: rows of one pass, costs of plain formulas, and a mask that is needed."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.base.tolerance import STEP
from simulator.problem.scenario import Scenario, parse_scenario, with_values
from simulator.problem.workload import read_inputs, resolve
from simulator.program.algorithms import tile_program
from simulator.study.generation.steps import AT_ONCE, TOKENS, generation, shipped_run, suits
from simulator.timing.duration import rough_duration
from tests.helpers.runs import scenario


def made(chosen: Scenario, head: int = 0, at_once: int = 1):
    w = resolve(chosen)
    return generation(w, read_inputs(w), head, at_once)


@pytest.mark.long
@pytest.mark.parametrize("at_once", AT_ONCE)
def test_rows_of_64_tokens_are_those_of_one_pass(at_once):
    w, inputs = shipped_run()
    found = generation(w, inputs, 0, at_once)
    tokens = [row for step in found.steps for row in step.rows]
    assert tokens == list(range(w.seqlen_k))
    assert sum(len(step.rows) for step in found.steps[1:]) == TOKENS
    size = max(np.abs(q @ k.T).max() for q, k in zip(inputs.q, inputs.k, strict=True)) * w.scale
    assert found.apart.max() <= STEP * size
    assert found.unmasked[1:].min() > 1e-3  # without the mask every step moves an old row


@pytest.mark.long
@given(
    st.integers(4, 40), st.integers(1, 3), st.integers(1, 4), st.integers(1, 9), st.integers(1, 9),
    st.sampled_from([0, 5]),
)  # fmt: skip
def test_steps_are_counted_as_their_runs(n, heads, at_once, rows, cols, window):
    sizes = {"nq": n, "heads": heads, "d": 3, "rows": rows, "cols": cols}
    found = made(scenario("flash2", mask={"window": window}, **sizes), at_once=at_once)
    first = max(n - TOKENS, n // 2)
    assert found.steps[0].rows == range(first)
    mask = {"causal": True, "window": window}
    for step in found.steps:
        for cached, queries in ((True, len(step.rows)), (False, step.keys)):
            own = scenario("flash2", mask=mask, **sizes | {"nq": queries}, nk=step.keys)
            program = tile_program(resolve(own))
            assert step.of("bytes", cached=cached) == program.totals.bytes
            assert step.of("flops", cached=cached) == program.totals.flops
            assert step.of("time", cached=cached) == rough_duration(program).seconds
    for quantity in ("bytes", "flops", "time"):
        for cached in (True, False):
            steps = [step.of(quantity, cached=cached) for step in found.steps[1:]]
            assert found.total(quantity, cached=cached) == sum(steps)
    assert found.apart.max() < 1e-5


def test_weights_and_what_moves_without_the_mask_are_those_of_the_definition():
    found = made(scenario("flash2", nq=8, heads=2, d=3, seed=3), head=1)
    w = resolve(scenario("flash2", nq=8, heads=2, d=3, seed=3))
    inputs = read_inputs(w)
    s = inputs.q[1].astype(float) @ inputs.k[1].astype(float).T / np.sqrt(3)
    own = made(scenario("flash2", nq=8, heads=2, d=3, seed=3, mask={"causal": True}), head=1)
    np.testing.assert_array_equal(found.unmasked, own.unmasked)  # whatever mask the run has
    np.testing.assert_array_equal(found.free, own.free)
    p = np.exp(np.where(np.tri(8, dtype=bool), s, -np.inf))
    np.testing.assert_allclose(found.weights, p / p.sum(axis=1, keepdims=True), atol=1e-6)
    v, moved = inputs.v[1].astype(float), []
    for keys in range(5, 9):
        both = []
        for n in (keys - 1, keys):
            weights = np.exp(s[: keys - 1, :n])
            both.append(weights / weights.sum(axis=1, keepdims=True) @ v[:n])
        before, after = both
        moved.append(
            (np.linalg.norm(after - before, axis=1) / np.linalg.norm(before, axis=1)).max()
        )
    np.testing.assert_allclose(found.unmasked, [0.0, *moved], atol=1e-9)
    assert [len(rows) for rows in found.moved] == [0, 4, 5, 6, 7]


@pytest.mark.parametrize("scores", [{}, {"sink_logits": [0.5, -1.0]}])
def test_weights_at_a_step_without_the_mask_are_those_of_its_keys(scores):
    chosen = scenario("flash2", nq=8, heads=2, d=3, seed=3, scores=scores)
    w, found = resolve(chosen), made(chosen, head=1)
    inputs = read_inputs(w)
    sink = np.exp(w.sink_logits[1]) if w.sink_logits else 0.0
    s = inputs.q[1].astype(float) @ inputs.k[1].astype(float).T / np.sqrt(3)
    for at, step in enumerate(found.steps):
        p = np.exp(s[: step.keys, : step.keys])
        own = p / (p.sum(axis=1, keepdims=True) + sink)
        np.testing.assert_allclose(found.seen(at, masked=False), own, atol=1e-6)
        masked = found.seen(at, masked=True)
        np.testing.assert_array_equal(masked, found.weights[: step.keys, : step.keys])


@pytest.mark.long
def test_how_far_apart_steps_are_is_relative_to_o():
    w = resolve(scenario("flash2", nq=24, d=5, cols=3, seed=3))
    inputs = read_inputs(w)
    small, large = (
        generation(w, replace(inputs, v=inputs.v * np.float32(size)), 0) for size in (1, 2**10)
    )
    assert small.apart.any()
    np.testing.assert_array_equal(small.apart, large.apart)


def test_sums_end_with_the_total():
    found = made(scenario("flash2", nq=9, d=3))
    for cached in (True, False):
        sums = found.so_far("bytes", cached=cached)
        assert len(sums) == len(found.steps) - 1
        assert sums[0] == found.steps[1].of("bytes", cached=cached)
        assert sums[-1] == found.total("bytes", cached=cached)


def test_rows_that_are_zero_are_moved_by_their_own_length():
    w = resolve(scenario("flash2", nq=8, d=3, seed=3))
    inputs = read_inputs(w)
    v = np.zeros_like(inputs.v)
    v[0, 4] = [3.0, 0.0, 4.0]
    found = generation(w, replace(inputs, v=v), 0)
    s = inputs.q[0].astype(float) @ inputs.k[0].astype(float).T / np.sqrt(3)
    weights = np.exp(s[:4, :5])
    moved = (weights / weights.sum(axis=1, keepdims=True))[:, 4] * 5.0
    assert found.unmasked[1] == pytest.approx(moved.max())


@pytest.mark.parametrize(
    ("change", "fits"),
    [
        ({}, True), ({"nk": 12}, False), ({"nq": 2}, False), ({"mask": {"window": 3}}, True),
        ({"mask": {"documents": [4, 4]}}, False), ({"scores": {"alibi": True}}, True),
        ({"scores": {"softcap": 2.0}}, True), ({"nq": 3}, False), ({"nq": 4}, True),
        ({"nq": 1024}, True), ({"nq": 1025}, False), ({"nk": 4}, False),
    ],
)  # fmt: skip
def test_what_could_not_have_been_generated_is_not_shown(change, fits):
    assert suits(resolve(scenario("flash2", **{"nq": 8, **change}))) is fits
    wrong = with_values(scenario("flash2", nq=8), {"faults": {"forget_alpha": True}})
    assert not suits(resolve(wrong))
    linear = parse_scenario(
        {
            "attention": {"algorithm": "linear", "seqlen_q": 8, "head_dim": 4},
            "mask": {"causal": True},
        }
    )
    assert not suits(resolve(linear))
