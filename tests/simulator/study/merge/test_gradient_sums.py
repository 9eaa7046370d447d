"""dQ added up in other orders: bits, bounds, and the room that a chosen order needs."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from simulator.run.trace import Trace
from simulator.study.merge.gradient_sums import (
    added_up,
    adds_to_rows,
    random_orders,
    row_sums,
    shares,
)
from tests.helpers.runs import scenario, trace_of


def run(**more: Any) -> Trace:
    shape = {"nq": 12, "d": 4, "heads": 2, "kv_heads": 1, "rows": 4, "cols": 3}
    return trace_of(scenario("flash2-backward", **{**shape, **more}))


@pytest.mark.parametrize("mask", [{}, {"causal": True}, {"window": 3}])
def test_in_the_order_of_column_blocks_they_are_dq_to_the_last_bit(mask: dict[str, Any]) -> None:
    trace = run(mask=mask)
    for head in range(2):
        for i in range(trace.workload.grid.Tr):
            index = trace.program.index(head, i, 0, 2)
            assert index is not None
            before = trace.tile(index).states[1]["dQ_acc"]
            np.testing.assert_array_equal(added_up(list(shares(trace, head, i))), before)


def test_what_moves_is_what_some_order_moves() -> None:
    """With four terms all orders can be tried: none moves a number that random ones have not."""
    trace = run()
    found = random_orders(trace, orders=200)
    moved, numbers = 0, 0
    for head in range(2):
        for i in range(trace.workload.grid.Tr):
            terms = list(shares(trace, head, i))
            sums = np.stack([added_up(list(order)) for order in permutations(terms)])
            moved += int((sums != sums[0]).any(axis=0).sum())
            numbers += sums[0].size
            exact = np.sum(np.stack(terms).astype(np.float64), axis=0)
            size = np.abs(np.stack(terms)).sum(axis=0)
            assert (np.abs(sums - exact) <= 4 * 2.0**-24 * size).all()  # the bound of any order
    assert (found.numbers, found.moved) == (numbers, moved)
    assert 0 < found.moved < found.numbers
    assert found.most_ulp >= 1


def test_two_terms_have_one_sum() -> None:
    """An addition may be turned round: only from three terms on does the order matter."""
    found = random_orders(run(cols=6))
    assert (found.moved, found.most_ulp) == (0, 0)
    assert random_orders(run(cols=4)).moved > 0


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_share_of_each_tile_takes_its_own_room(dtype: str) -> None:
    trace = run(mask={"causal": True}, dtype=dtype)
    found = random_orders(trace, orders=1)
    w = trace.workload
    tiles = [trace.program.visit(n) for n in range(len(trace))]
    rows = sum(len(tile.rows) for tile in tiles if tile.launch == 1)
    assert found.share_bytes == rows * w.head_dim * 4
    assert found.sum_bytes == w.heads * w.seqlen_q * w.head_dim * 4
    assert found.share_bytes > found.sum_bytes


def test_an_order_with_a_name_adds_in_that_order() -> None:
    trace = run(d=16)
    found = row_sums(trace, 1, 2)
    a, b, c, d = terms = list(shares(trace, 1, 2))
    assert found.columns == (0, 1, 2, 3)
    for own, term in zip(found.terms, terms, strict=True):
        np.testing.assert_array_equal(own, term)
    sums = {"in order": ((a + b) + c) + d, "from the last": ((d + c) + b) + a,
            "tree": (a + b) + (c + d)}  # fmt: skip
    for name, expected in sums.items():
        np.testing.assert_array_equal(found.total(name), expected)
        bits = [x.view(np.int32).astype(np.int64) for x in (expected, sums["in order"])]
        apart = np.abs(np.subtract(*(np.sign(x) * (x & 0x7FFFFFFF) for x in bits)))
        np.testing.assert_array_equal(found.apart(name), apart)
    assert found.apart("from the last").any()
    drawn = {found.total("any order", seed).tobytes() for seed in range(40)}
    every = {added_up(order).tobytes() for order in permutations(terms)}
    assert 1 < len(drawn) <= len(every)
    assert drawn <= every


def test_who_adds_to_sums_of_rows() -> None:
    """FlashAttention-1 reads and writes rows of O in every tile, too, but no sum is left there."""
    assert adds_to_rows(run())
    for name in ("naive-backward", "flash1", "flash2"):
        assert not adds_to_rows(trace_of(scenario(name, nq=8)))
