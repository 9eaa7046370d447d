"""Partials with LSE in base 2, merged rightly and wrongly, and empty ones."""

import numpy as np
import pytest

from simulator.problem.workload import read_inputs, resolve
from simulator.study.merge.by_hand import row_merge, two_states
from simulator.study.merge.choices import BASE_2, BASE_E, BASES, EMPTY, MIXED
from simulator.study.merge.merging import ORDERS, parts_of
from tests.helpers.runs import scenario, trace_of

RUN = scenario("flash2", nq=12, nk=40, heads=2, d=8, cols=4, mask={"causal": True})


def partials(lse: str):
    w = resolve(RUN)
    return parts_of(w, read_inputs(w), 1, 9).with_lse(lse)


def plain(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float) -> tuple[float, np.ndarray]:
    """Return LSE and O of a row from the definition, in float64."""
    s = k.astype(np.float64) @ q.astype(np.float64) * scale
    p = np.exp(s - s.max())
    return s.max() + np.log(p.sum()), p @ v.astype(np.float64) / p.sum()


def test_base_2_merged_with_powers_of_2_is_the_same() -> None:
    right, other = partials(BASE_E), partials(BASE_2)
    for order in ORDERS.values():
        node = order(tuple(range(len(right.partials))))
        one, two = right.result(node), other.result(node)
        np.testing.assert_allclose(two.o, one.o, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(two.lse, np.log2(np.exp(one.lse.astype(float))), rtol=1e-6)
    assert other.result(0).lse == pytest.approx(right.result(0).lse / np.log(2), rel=1e-6)


def test_mixed_bases_make_the_same_wrong_o_in_every_order() -> None:
    found = partials(MIXED)
    weights = np.exp([float(part.lse[0]) / np.log(2) for part in found.partials])
    hand = weights @ np.concatenate([part.o for part in found.partials]) / weights.sum()
    for order in ORDERS.values():
        node = order(tuple(range(len(found.partials))))
        np.testing.assert_allclose(found.result(node).o[0], hand, rtol=1e-5, atol=1e-6)
        assert found.result(node).lse[0] == pytest.approx(np.log(weights.sum()), rel=1e-6)
        off = np.linalg.norm(hand - found.exact[0]) / np.linalg.norm(found.exact[0])
        assert found.off(node) == pytest.approx(off, rel=1e-4)
        assert off > 0.01


def test_an_empty_partial_changes_no_bit_in_any_order() -> None:
    right, more = partials(BASE_E), partials(EMPTY)
    count = len(right.partials)
    assert len(more.partials) == count + 1
    assert np.isneginf(more.partials[-1].lse).all()
    for order in ORDERS.values():
        one = right.result(order(tuple(range(count))))
        for nodes in ((*range(count), count), (count, *range(count)), (0, count, *range(1, count))):
            if order is ORDERS["tree"] and nodes[-1] != count:
                continue  # it pairs others
            two = more.result(order(nodes))
            np.testing.assert_array_equal(two.o, one.o)
            np.testing.assert_array_equal(two.lse, one.lse)
    both = more.result(((count, count), 0))
    np.testing.assert_array_equal(both.o, right.partials[0].o)
    for lse in BASES:
        assert len(more.with_lse(lse).partials) == count + (lse == EMPTY)


def test_the_case_of_the_report() -> None:
    """A prefix of 3072 keys, a suffix of 64: 2.0 % weigh 0.4 %, and O is some 12 % off."""
    trace = trace_of(scenario("flash2", nq=1, nk=3136, d=64, cols=64, rows=4, heads=8))
    offs, rights, wrongs = [], [], []
    for head in range(8):
        found = two_states(trace.workload, trace.inputs, head, 0)
        assert found.keys == (3072, 64)
        q, k, v = trace.inputs.q[head, 0], trace.inputs.k[head], trace.inputs.v[head]
        parts = [plain(q, k[part], v[part], 1 / 8) for part in (slice(3072), slice(3072, None))]
        powers = [2.0 ** (lse / np.log(2)) for lse, _ in parts]
        mixed = np.exp([lse / np.log(2) for lse, _ in parts])
        o, wrong = ((by[0] * parts[0][1] + by[1] * parts[1][1]) / sum(by) for by in (powers, mixed))
        np.testing.assert_allclose(found.right.o[0], o, rtol=1e-9)
        np.testing.assert_allclose(found.right.o[0], plain(q, k, v, 1 / 8)[1], rtol=1e-9)
        np.testing.assert_allclose(found.mixed.o[0], wrong, rtol=1e-9)
        assert found.off == pytest.approx(np.linalg.norm(wrong - o) / np.linalg.norm(o))
        assert found.shares == pytest.approx((powers[1] / sum(powers), mixed[1] / sum(mixed)))
        assert found.empty_stays_empty
        offs.append(found.off)
        rights.append(found.shares[0])
        wrongs.append(found.shares[1])
    assert np.median(rights) == pytest.approx(0.0204, abs=0.002)
    assert np.median(wrongs) == pytest.approx(0.0038, abs=0.001)
    assert 0.08 < np.median(offs) < 0.16


@pytest.mark.parametrize(
    ("nk", "mask", "keys"),
    [
        (98, {}, (96, 2)),
        (40, {}, (39, 1)),
        (9_000, {}, (8_936, 64)),
        (40, {"causal": True, "window": 6, "sinks": 2}, (7, 1)),
    ],
)
def test_the_suffix_is_the_end_of_what_the_row_sees(nk: int, mask: dict, keys: tuple) -> None:
    trace = trace_of(scenario("flash2", nq=2, nk=nk, d=4, cols=64, mask=mask))
    found = two_states(trace.workload, trace.inputs, 0, 1)
    assert found.keys == keys
    seen = trace.workload.mask.visible(range(1, 2), range(nk))[0]
    q, k, v = trace.inputs.q[0, 1], trace.inputs.k[0][seen], trace.inputs.v[0][seen]
    lse, o = plain(q, k[-keys[1] :], v[-keys[1] :], trace.workload.logit_scale)
    np.testing.assert_allclose(found.states[1].o[0], o, rtol=1e-9)
    np.testing.assert_allclose(found.states[1].lse, [lse], rtol=1e-9)
    np.testing.assert_allclose(found.right.o[0], trace.output[0, 1], rtol=1e-4, atol=1e-5)


def test_a_row_of_one_key_has_no_prefix() -> None:
    trace = trace_of(scenario("flash2", nq=4, mask={"causal": True}))
    assert two_states(trace.workload, trace.inputs, 0, 0) is None
    assert two_states(trace.workload, trace.inputs, 0, 1) is not None


def test_another_lse_keeps_what_is_merged_by_hand_and_an_empty_one_the_order() -> None:
    state = row_merge(trace_of(RUN), 1, 9).ordered("tree")
    more = state.with_lse(EMPTY)
    assert more.done
    assert len(more.parts.partials) == len(state.parts.partials) + 1
    assert more.with_lse(BASE_E).forest == state.forest
    apart = state.ordered("apart")
    by_hand = apart.merge(3, 1)
    assert len(by_hand.forest) == len(apart.forest) - 1
    assert apart.merge(1, 1) == apart.merge(1, 99) == apart
    assert (by_hand.selected, apart.merge(0, 2).selected) == (1, 1)
    assert state.take_back().order == by_hand.order == ""
    assert by_hand.with_lse(MIXED).forest == by_hand.forest
    assert by_hand.with_lse(EMPTY).forest == tuple(range(len(state.parts.partials) + 1))
