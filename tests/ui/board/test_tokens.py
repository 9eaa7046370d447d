"""Tokens on the stage: each is written, as large as the last row needs, with a line to its cell."""

from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ui.board.beside import apart


@given(
    count=st.integers(1, 40),
    start=st.floats(-100, 100),
    cell=st.floats(1, 60),
    line=st.floats(5, 40),
    spare=st.floats(0, 300),
)
def test_tokens_do_not_overlap_and_stay_as_near_as_they_can(count, start, cell, line, spare):
    assume(abs(cell - line) > 1e-3)
    middles = [start + n * cell for n in range(count)]
    low = start - spare
    high = low + count * max(line, cell) + spare
    places = apart(middles, line, low, high)
    assert len(places) == count
    assert all(after - before >= min(line, cell) - 1e-6 for before, after in pairwise(places))
    if cell >= line:
        assert places == middles
    else:
        assert all(after - before == pytest.approx(line) for before, after in pairwise(places))
        if count > 1:
            assert low - 1e-6 <= places[0] - line / 2
            assert places[-1] + line / 2 <= high + 1e-6
