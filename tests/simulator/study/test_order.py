"""Shuffled tokens and the reach of layers, against definitions that share no code with them."""

import math
from dataclasses import replace
from itertools import product as pairs_of

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.base.assets import SCENARIOS
from simulator.base.tolerance import STEP
from simulator.problem.masks import Mask
from simulator.problem.scenario import load_scenario
from simulator.problem.scores import BiasTable
from simulator.problem.workload import resolve
from simulator.run.trace import Trace, simulate
from simulator.study.order.choices import USUAL_WINDOW
from simulator.study.order.reach import LayerStack, cone, global_layers, stack
from simulator.study.order.shuffle import MOST, order_of, shuffle_why_not, shuffled
from simulator.study.order.state import layer_masks
from tests.helpers.refused import refused
from tests.helpers.runs import scenario, trace_of

ALGORITHMS = ("naive", "flash1", "flash2", "linear")


def attention(q, k, v, scale, seen):  # its definition, in float64
    s = np.where(seen, q.astype(float) @ k.astype(float).T * scale, -np.inf)
    p = np.exp(s - s.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True) @ v.astype(float)


def output(trace: Trace, head: int):  # of the whole run, as it is written to a file
    return trace.arrays()["o"][head]


@settings(max_examples=settings.default.max_examples * 2 // 5)
@given(
    st.sampled_from(ALGORITHMS), st.integers(2, 17), st.integers(1, 6), st.integers(1, 5),
    st.integers(1, 4), st.integers(0, 2**20), st.sampled_from(["float32", "float16"]),
)  # fmt: skip
def test_without_places_every_row_follows_its_token(algorithm, n, d, rows, cols, seed, dtype):
    trace = trace_of(scenario(algorithm, nq=n, d=d, rows=rows, cols=cols, seed=seed, dtype=dtype))
    found = shuffled(trace.workload, trace.inputs, 0, order_of(n, seed), "none")
    assert sorted(found.order) == list(range(n))
    assert found.follows, (found.apart.max(), found.bound)
    assert found.bound < 0.05


@settings(max_examples=settings.default.max_examples // 3)
@given(st.integers(3, 14), st.integers(2, 6), st.integers(0, 2**20))
def test_with_a_causal_mask_rows_are_those_of_the_definition(n, d, seed):
    trace = trace_of(scenario("flash2", nq=n, d=d, rows=4, cols=3, seed=seed))
    w, inputs, order = trace.workload, trace.inputs, order_of(n, seed)
    found = shuffled(w, inputs, 0, order, "causal")
    q, k, v = inputs.q[0], inputs.k[0], inputs.v[0]
    seen = np.tril(np.ones((n, n), dtype=bool))
    exact = attention(q[order], k[order], v[order], w.logit_scale, seen)
    np.testing.assert_allclose(found.after, exact, atol=1e-5)
    np.testing.assert_allclose(found.before, attention(q, k, v, w.logit_scale, seen), atol=1e-5)
    if (order != np.arange(n)).any():
        assert not found.follows


@pytest.mark.parametrize("places", ["run", "rope"])
def test_positions_do_not_let_rows_follow(places):
    turned = {"position": {"kind": "rope"}} if places == "run" else {}
    trace = trace_of(scenario("flash2", nq=12, d=8, rows=4, cols=4, **turned))
    found = shuffled(trace.workload, trace.inputs, 0, order_of(12, 3), places)
    assert not found.follows
    assert found.apart.max() > 0.05
    if places == "run":  # as the run has computed it
        np.testing.assert_allclose(found.before, output(trace, 0), atol=1e-6)
        plain = trace_of(scenario("flash2", nq=12, d=8, rows=4, cols=4))
        same = shuffled(plain.workload, plain.inputs, 0, order_of(12, 3), "rope")
        np.testing.assert_allclose(found.after, same.after, atol=1e-5)


@pytest.mark.parametrize("places", ["run", "rope"])
def test_shuffled_tokens_are_turned_by_their_new_places(places):
    turned = trace_of(scenario("flash2", nq=9, d=8, rows=4, cols=4, position={"kind": "rope"}))
    plain, order = trace_of(scenario("flash2", nq=9, d=8, rows=4, cols=4)), order_of(9, 4)
    found = shuffled(turned.workload, turned.inputs, 0, order, places)
    q, k = (
        turned.workload.position.turned(x[:, order], 0, "float32")[0]
        for x in (plain.inputs.q, plain.inputs.k)
    )
    v, scale = plain.inputs.v[0][order], turned.workload.logit_scale
    exact = attention(q, k, v, scale, np.ones((9, 9), dtype=bool))
    np.testing.assert_allclose(found.after, exact, atol=1e-5)


@pytest.mark.parametrize("places", ["none", "causal", "rope"])
def test_positions_of_the_run_are_taken_back_first(places):
    shape = {"nq": 9, "d": 8, "rows": 4, "cols": 4, "seed": 6}
    plain, turned = (
        trace_of(scenario("flash2", **shape, position=said))
        for said in ({}, {"kind": "rope", "offset": 5, "theta": 50.0})
    )
    want, found = (
        shuffled(trace.workload, trace.inputs, 0, order_of(9, 4), places)
        for trace in (plain, turned)
    )
    np.testing.assert_allclose(found.before, want.before, atol=1e-5)
    np.testing.assert_allclose(found.after, want.after, atol=1e-5)


def test_how_far_rows_are_is_a_share_of_their_length():
    trace = trace_of(scenario("flash2", nq=9, d=4, rows=4, cols=4))
    w, inputs, order = trace.workload, trace.inputs, order_of(9, 2)
    found, large = (
        shuffled(w, replace(inputs, v=inputs.v * np.float32(size)), 0, order, "causal")
        for size in (1, 64)
    )
    length = math.sqrt(sum(float(x) ** 2 for x in found.before.ravel()) / 9)
    for token in range(9):
        row = found.after[list(order).index(token)]
        assert found.apart[token] == pytest.approx(
            math.dist(row, found.before[token]) / length, abs=1e-6
        )
    np.testing.assert_allclose(large.apart, found.apart, rtol=1e-5)
    assert large.bound == pytest.approx(found.bound, rel=1e-5)


@pytest.mark.parametrize(("dtype", "rounds"), [("float32", 24), ("float16", 11), ("bfloat16", 8)])
def test_the_bound_is_that_of_the_largest_numbers(dtype, rounds):
    trace = trace_of(scenario("flash2", nq=7, d=3, rows=4, cols=4, dtype=dtype, seed=5))
    w, inputs = trace.workload, trace.inputs
    found = shuffled(w, inputs, 0, order_of(7, 2), "none")
    q, k, v = (
        max(math.hypot(*map(float, row)) for row in x[0]) for x in (inputs.q, inputs.k, inputs.v)
    )
    length = math.sqrt(sum(float(x) ** 2 for x in found.before.ravel()) / 7)
    size = 1 + q * k * w.logit_scale
    assert found.bound == pytest.approx(2 * (STEP * size + 2.0**-rounds) * v / length)
    nothing = shuffled(w, replace(inputs, v=0 * inputs.v), 0, order_of(7, 2), "none")
    assert nothing.follows
    assert nothing.apart.tolist() == [0.0] * 7


def test_a_head_of_many_is_that_head():
    trace = simulate(load_scenario(SCENARIOS / "grouped-heads.toml"))
    w, inputs = trace.single_heads
    found = shuffled(w, inputs, 5, order_of(w.seqlen_k, 1), "run")
    np.testing.assert_allclose(found.before, output(trace, 5), atol=1e-6)


def test_a_head_has_its_own_bias_of_distances():
    trace = trace_of(scenario("flash2", nq=5, d=3, heads=2, rows=2, cols=2))
    table = np.random.default_rng(4).standard_normal((2, 9)).astype(np.float32)
    w = replace(trace.workload, biases=BiasTable(table))
    q, k, v = (x[1].astype(float) for x in (trace.inputs.q, trace.inputs.k, trace.inputs.v))
    distances = np.arange(5) - np.arange(5)[:, None]
    for places, gain in (("run", table[1][distances + 4]), ("none", 0), ("causal", 0)):
        s = q @ k.T * w.logit_scale + gain
        if places == "causal":
            s = np.where(distances <= 0, s, -np.inf)
        p = np.exp(s - s.max(axis=1, keepdims=True))
        exact = p / p.sum(axis=1, keepdims=True) @ v
        found = shuffled(w, trace.inputs, 1, order_of(5, 1), places)
        np.testing.assert_allclose(found.before, exact, atol=1e-5)


@pytest.mark.parametrize("places", ["run", "none"])
def test_a_head_has_its_own_sink(places):
    logits = [0.5, -2.0]
    trace = trace_of(scenario("flash2", nq=5, d=3, heads=2, rows=2, cols=2,
                              scores={"sink_logits": logits}))  # fmt: skip
    w = trace.workload
    for head, sink in enumerate(logits):
        q, k, v = (x[head].astype(float) for x in (trace.inputs.q, trace.inputs.k, trace.inputs.v))
        p = np.exp(q @ k.T * w.logit_scale)
        exact = p / (p.sum(axis=1, keepdims=True) + math.exp(sink)) @ v
        found = shuffled(w, trace.inputs, head, order_of(5, 1), places)
        np.testing.assert_allclose(found.before, exact, atol=1e-5)


def test_what_cannot_be_shuffled_says_why():
    trace = trace_of(scenario("flash2", nq=3, nk=5, d=2, rows=2, cols=2))
    assert "different tokens" in shuffle_why_not(trace.workload)
    assert "as many as keys" in refused(shuffled, trace.workload, trace.inputs, 0, order_of(3, 0))
    fits = trace_of(scenario("flash2", nq=3, d=2, rows=2, cols=2))
    assert shuffle_why_not(fits.workload) == ""
    most = replace(fits.workload, seqlen_q=MOST, seqlen_k=MOST)
    assert shuffle_why_not(most) == ""
    long = trace_of(scenario("flash2", nq=MOST + 1, d=2, rows=64, cols=64))
    assert str(MOST) in shuffle_why_not(long.workload)


# --- reach --------------------------------------------------------------------------------------

MASKS = st.builds(
    lambda n, causal, window, sinks, dilation: Mask(
        n, n, causal=causal, window=window, sinks=sinks * bool(window), dilation=dilation
    ),
    st.integers(1, 9), st.booleans(), st.integers(0, 5), st.integers(0, 2), st.integers(1, 3),
)  # fmt: skip


def test_of_a_long_run_the_first_tokens_are_looked_at():
    for tokens, shown in ((511, 511), (512, 512), (600, 512)):
        found = stack(Mask(tokens, tokens, causal=True), Mask(tokens, tokens), (False,))
        assert found.local.shape == found.everything.shape == (shown, shown)
        assert not found.local.flags.writeable


@given(MASKS, st.lists(st.booleans(), min_size=1, max_size=4), st.integers(0, 2**20))
def test_a_cone_has_those_to_whom_there_is_a_way(local, is_global, seed):
    n = local.seqlen_k
    found = stack(local, Mask(n, n, causal=local.causal), is_global)
    if seed % 2:  # any pattern: a row need not see its own token
        some = np.random.default_rng(seed).random((2, n, n)) < 0.25
        found = LayerStack(some[0], some[1], tuple(is_global))
    ways = {(i, i) for i in range(n)}  # of a row at the top and a token
    levels = [set(ways)]
    for table in reversed(found.tables):
        steps = {(i, j) for i, j in pairs_of(range(n), repeat=2) if table[i, j] or i == j}
        ways = {(top, j) for top, i in ways for k, j in steps if k == i}
        levels.append(ways)
    for token in range(n):
        got = cone(found.tables, token)
        for level, want in zip(got[::-1], levels, strict=True):
            assert {int(j) for j in np.flatnonzero(level)} == {j for t, j in want if t == token}


@given(st.integers(1, 24), st.data())
def test_global_layers_are_evenly_spread(layers, data):
    count = data.draw(st.integers(0, layers))
    found = global_layers(layers, count)
    assert (len(found), sum(found)) == (layers, count)
    places = np.flatnonzero(found)
    if count:  # as many below the first as above the last, but for one
        assert abs(int(places[0]) - (layers - 1 - int(places[-1]))) <= 1
    if count > 1:
        assert np.ptp(np.diff(places)) <= 1


@pytest.mark.parametrize(
    ("mask", "window", "found"),
    [({"causal": True, "window": 3}, 0, 0), ({"causal": True, "window": 3}, 5, 5),
     ({"causal": True}, 0, USUAL_WINDOW), ({}, 0, USUAL_WINDOW)],
)  # fmt: skip
def test_without_a_window_local_layers_have_a_mask_that_hides_more(mask, window, found):
    w = resolve(scenario(nq=24, nk=24, mask=mask))
    masks = layer_masks(w, window)
    assert masks.window == found
    own = Mask(24, 24, causal=True, window=found) if found else w.mask
    assert np.array_equal(masks.local, own.visible(range(24), range(24)))
