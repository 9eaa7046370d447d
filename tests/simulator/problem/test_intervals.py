"""Intervals of visited blocks against plain sets, whatever their number and their places."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.problem.intervals import Intervals

MOST = 14
Lists = list[list[tuple[int, int]]]


@st.composite
def lists(draw: st.DrawFn) -> Lists:
    """Draw ascending disjoint intervals of some blocks; neighbours may touch."""
    out = []
    for _ in range(draw(st.integers(0, 6))):
        seen = draw(st.lists(st.booleans(), min_size=MOST, max_size=MOST))
        cuts = draw(st.sets(st.integers(1, MOST - 1)))
        pairs: list[tuple[int, int]] = []
        for inner in (n for n, is_seen in enumerate(seen) if is_seen):
            if pairs and pairs[-1][1] == inner and inner not in cuts:
                pairs[-1] = (pairs[-1][0], inner + 1)
            else:
                pairs.append((inner, inner + 1))
        out.append(pairs)
    return out


def sets_of(blocks: Lists) -> list[list[int]]:
    """Return the inner blocks of each block."""
    return [[inner for pair in pairs for inner in range(*pair)] for pairs in blocks]


@given(lists())
def test_one_block(blocks: Lists) -> None:
    visits, expected = Intervals.of(blocks), sets_of(blocks)
    assert len(visits) == len(blocks)
    for block, inner in enumerate(expected):
        assert visits.pairs(block) == blocks[block]
        assert visits.count(block) == len(inner)
        assert visits.visited(block).tolist() == inner
        assert [visits.nth(block, n) for n in range(len(inner))] == inner
        assert visits.first(block) == (inner[0] if inner else None)
        assert visits.last(block) == (inner[-1] if inner else None)
        for j in range(-2, MOST + 3):
            assert visits.place(block, j) == (inner.index(j) if j in inner else None)
            assert visits.before(block, j) == sum(each < j for each in inner)
            for stop in range(j + 1, MOST + 3):
                held = any(start <= j and stop <= end for start, end in blocks[block])
                assert visits.covers(block, range(j, stop)) == held
        for n in (-1, len(inner)):
            with pytest.raises(IndexError, match=f"visit {n} of block {block}, which has"):
                visits.nth(block, n)
    for block in (-1, len(blocks)):
        with pytest.raises(IndexError, match=f"block {block} of {len(blocks)}"):
            visits.pairs(block)


@given(lists(), st.data())
def test_all_blocks_at_once(blocks: Lists, data: st.DataObject) -> None:
    visits, expected = Intervals.of(blocks), sets_of(blocks)
    counts = [len(inner) for inner in expected]
    assert visits.counts.tolist() == counts
    assert visits.sums.tolist() == [sum(counts[:n]) for n in range(len(counts) + 1)]
    assert visits.ends.tolist() == [max(inner, default=-1) + 1 for inner in expected]
    assert visits.visitors(MOST).tolist() == [
        sum(j in inner for inner in expected) for j in range(MOST)
    ]
    everything = [
        (block, j, nth) for block, inner in enumerate(expected) for nth, j in enumerate(inner)
    ]
    assert [visits.locate(n) for n in range(sum(counts))] == everything
    reached = data.draw(st.lists(st.integers(0, MOST), min_size=len(counts), max_size=len(counts)))
    before = visits.before_each(np.array(reached, dtype=np.int64))
    assert before.tolist() == [
        sum(j < end for j in inner) for inner, end in zip(expected, reached, strict=True)
    ]


@given(lists().filter(bool), st.data())
def test_pairs_of_blocks(blocks: Lists, data: st.DataObject) -> None:
    visits, expected = Intervals.of(blocks), sets_of(blocks)
    some = data.draw(st.lists(st.integers(0, len(blocks) - 1), max_size=8))
    inner = sorted(data.draw(st.lists(st.integers(0, MOST + 2), max_size=20)))
    held = [[j in expected[block] for j in inner] for block in some]
    i, j = np.array(some, dtype=np.int64), np.array(inner, dtype=np.int64)
    matrix = np.array(held, dtype=bool).reshape(len(i), len(j))
    np.testing.assert_array_equal(visits.among(i, j), matrix)
    np.testing.assert_array_equal(visits.contains(i[:, None], j), matrix)
    assert visits.contains(i, -1).tolist() == [False] * len(i)
    for block in some[:2]:
        np.testing.assert_array_equal(visits.contains(block, j), [n in expected[block] for n in j])


@given(lists())
def test_bounds_side_by_side_are_the_lists(blocks: Lists) -> None:
    most = max((len(pairs) for pairs in blocks), default=0) + 1
    bounds = np.full((len(blocks), 2 * most), MOST)
    for row, pairs in zip(bounds, blocks, strict=True):
        row[: 2 * len(pairs)] = np.array(pairs, dtype=np.int64).ravel()  # and empty ones after them
    visits = Intervals.between(*bounds.T)
    assert [visits.pairs(block) for block in range(len(visits))] == blocks


def test_loops_that_lie_one_above_the_other_follow_each_other() -> None:
    start, stop = np.array([[0, 1], [2, 3]]), np.array([[1, 1], [5, 4]])
    visits = Intervals.between(start, stop)
    assert [visits.pairs(block) for block in range(4)] == [[(0, 1)], [], [(2, 5)], [(3, 4)]]


def test_every() -> None:
    visits = Intervals.every(3, 5)
    assert [visits.pairs(block) for block in range(3)] == [[(0, 5)]] * 3
    assert Intervals.every(2, 7).sums.tolist() == [0, 7, 14]


@given(lists(), st.data())
def test_two_loops_together(blocks: Lists, data: st.DataObject) -> None:
    other = data.draw(lists().filter(lambda drawn: len(drawn) >= len(blocks)))[: len(blocks)]
    one, two = Intervals.of(blocks), Intervals.of(other)
    pairs = list(zip(sets_of(blocks), sets_of(other), strict=True))
    for got, expected in (
        (one.joined(two), [set(a) | set(b) for a, b in pairs]),
        (one.common(two), [set(a) & set(b) for a, b in pairs]),
    ):
        assert [got.visited(n).tolist() for n in range(len(got))] == [sorted(e) for e in expected]


@pytest.mark.long
@given(lists())
def test_a_turned_loop_has_the_same_visits(blocks: Lists) -> None:
    turned, expected = Intervals.of(blocks).turned(MOST), sets_of(blocks)
    assert len(turned) == MOST
    for inner in range(MOST):
        visitors = [n for n, visits in enumerate(expected) if inner in visits]
        assert turned.visited(inner).tolist() == visitors
        assert all(a[1] < b[0] for a, b in pairwise(turned.pairs(inner)))
