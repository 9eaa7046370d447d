"""Merging in any order against the definition in float64, and the orders themselves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.engines.numpy_engine import numpy_engine
from simulator.engines.reference import reference_rows
from simulator.problem.scenario import with_values
from simulator.problem.workload import read_inputs, resolve
from simulator.program.algorithms import ALGORITHMS
from simulator.study.merge.merging import (
    MOST_PARTS,
    ORDERS,
    Node,
    Partial,
    apart,
    as_list,
    as_tree,
    height,
    leaves,
    merged,
    moved,
    parts_of,
    why_no_parts,
)
from tests.helpers.runs import scenario, trace_of


def parts(algorithm: str = "flash2", head: int = 1, row: int = 5, **said):
    chosen = scenario(algorithm, **{"nq": 40, "heads": 2, "rows": 8, "cols": 4, **said})
    w = resolve(chosen)
    return w, parts_of(w, read_inputs(w), head, row)


def plain(scores: np.ndarray, values: np.ndarray, keys: list[int]) -> Partial:
    """Return the partial of some keys from the definition, in float64."""
    if not keys:
        return Partial(np.array([-np.inf]), np.zeros((1, values.shape[1])))
    s = scores[keys]
    weights = np.exp(s - s.max())
    lse = s.max() + np.log(weights.sum())
    return Partial(np.array([lse]), (weights @ values[keys] / weights.sum())[None])


OPS = parts()[1].ops


@given(st.data())
def test_any_order_of_any_partition_is_the_whole(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 12))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    scores, values = 6 * rng.standard_normal(count), rng.standard_normal((count, 3))
    owner = data.draw(st.lists(st.integers(0, 4), min_size=count, max_size=count))
    found = [plain(scores, values, [n for n in range(count) if owner[n] == p]) for p in range(5)]
    order = data.draw(st.permutations(found))
    while len(order) > 1:
        many = data.draw(st.integers(2, len(order)))
        order = [merged(order[:many], OPS), *order[many:]]
        order = data.draw(st.permutations(order))
    whole = plain(scores, values, list(range(count)))
    np.testing.assert_allclose(order[0].o, whole.o, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(order[0].lse, whole.lse, rtol=1e-12)


def test_keys_that_are_not_seen_change_nothing() -> None:
    nothing = Partial(np.array([-np.inf]), np.zeros((1, 3)))
    both = merged([nothing, nothing], OPS)
    assert both.lse == -np.inf
    assert (both.o == 0).all()


@pytest.mark.parametrize("algorithm", [name for name, a in ALGORITHMS.items() if a.compared])
def test_partials_of_a_row_merge_to_its_o_in_every_order(algorithm: str) -> None:
    if not ALGORITHMS[algorithm].softmax:
        return
    w, found = parts(algorithm, mask={"causal": True}, row=30)
    exact, _ = reference_rows(w, read_inputs(w), 1, range(30, 31))
    np.testing.assert_array_equal(found.exact, exact)
    assert len(found.partials) == len(found.keys) == 5  # ten column blocks in runs of two
    assert [key for keys in found.keys for key in keys] == list(range(40))
    nodes = range(len(found.partials))
    for order in ORDERS.values():
        node = order(tuple(nodes))
        assert sorted(leaves(node)) == list(nodes)
        np.testing.assert_allclose(found.result(node).o, exact, rtol=1e-5, atol=1e-6)
        assert found.error(node) < 8
        assert found.result(node).o.dtype == np.float32


def test_a_running_update_is_the_list() -> None:
    """After each column block m + ln l of a run is the LSE of the list so far, and O is its O."""
    w, found = parts(nq=32, rows=8, cols=4, heads=1, head=0, row=13)
    assert [len(keys) for keys in found.keys] == [4] * 8  # as the column blocks of the run
    block = numpy_engine(w, read_inputs(w)).row_block(0, 1)
    node: Node = 0
    for j in range(8):
        node = (node, j) if j else 0
        lse = block.m[5, j] + np.log(block.l[5, j])
        assert float(found.result(node).lse[0]) == pytest.approx(float(lse), abs=1e-6)
    np.testing.assert_allclose(found.result(node).o[0], block.o[5], rtol=1e-5, atol=1e-6)


def test_packed_heads_have_the_partials_of_their_own_row() -> None:
    w, found = parts("split-kv", nq=2, nk=24, heads=4, kv_heads=2, head=1, row=3)
    single = w.as_algorithm("flash2")
    inputs = single.posed(read_inputs(w))
    exact, _ = reference_rows(single, inputs, *_single(w, 1, 3))
    np.testing.assert_array_equal(found.exact, exact)


@pytest.mark.parametrize(("splits", "own"), [(1, False), (2, True), (8, True), (9, False)])
def test_the_splits_of_a_run_are_its_partials_if_they_can_be_merged_by_hand(splits, own) -> None:
    sizes = {"nq": 1, "nk": 36, "cols": 4, "heads": 4, "kv_heads": 2}
    chosen = scenario("split-kv", **sizes)
    trace = trace_of(with_values(chosen, {"tiling": {"splits": splits}}))
    found = parts_of(trace.workload, trace.inputs, 1, 1)
    assert found.own_splits == splits
    assert found.dealt_anew == (not own)
    if not own:
        assert [len(keys) for keys in found.keys] == [8, 8, 8, 8, 4]
        return
    left = trace.snapshot(trace.program.joining(1, 0), 0).partials
    each = 4 * -(-9 // splits)
    assert [(keys.start, keys.stop) for keys in found.keys] == [
        (start, min(start + each, 36)) for start in range(0, 36, each)
    ]
    for n, part in enumerate(found.partials):
        np.testing.assert_array_equal(part.lse[0], left.lse[n, 1])
        np.testing.assert_array_equal(part.o[0], left.o[n, 1])


def _single(w, head: int, row: int) -> tuple[int, range]:
    own, query = w.single(head, row)
    return own, range(query, query + 1)


def test_orders_differ_in_their_rounding_alone() -> None:
    _, found = parts(nq=256, d=64, cols=16, row=200)
    nodes = tuple(range(len(found.partials)))
    assert len(nodes) == MOST_PARTS
    results = [found.result(order(nodes)).o for order in ORDERS.values()]
    assert any((one != results[0]).any() for one in results[1:])
    for one in results[1:]:
        np.testing.assert_allclose(one, results[0], rtol=1e-4, atol=1e-6)


def test_shapes_of_the_orders() -> None:
    assert as_list(range(4)) == (((0, 1), 2), 3)
    assert as_tree(range(5)) == (((0, 1), (2, 3)), 4)
    assert ORDERS["all at once"](range(3)) == (0, 1, 2)
    assert ORDERS["list, from the last"](range(3)) == ((2, 1), 0)
    assert [height(order(range(8))) for order in ORDERS.values()] == [7, 7, 3, 1]
    assert [order((0,)) for order in ORDERS.values()] == [0, 0, 0, 0]


def test_merging_by_hand_and_taking_it_back() -> None:
    forest: tuple[Node, ...] = (0, 1, 2)
    forest = moved(forest, 2, 0)
    assert forest == ((0, 2), 1)
    forest = moved(forest, 0, 1)
    assert forest == ((1, (0, 2)),)
    assert apart(forest, 0) == (1, (0, 2))
    assert apart(apart(forest, 0), 0) == (1, (0, 2))


def test_what_has_nothing_to_merge_says_why() -> None:
    linear = resolve(scenario("linear", nq=8, mask={"causal": True}))
    assert why_no_parts(linear).startswith("Without a softmax")
    sinks = resolve(scenario(nq=8, scores={"sink_logits": [0.5]}))
    assert why_no_parts(sinks).startswith("A sink logit")
    assert not why_no_parts(resolve(scenario(nq=8)))
