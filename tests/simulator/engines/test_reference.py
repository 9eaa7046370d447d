"""Attention in float64 against the textbook, some rows at a time."""

import numpy as np
import pytest

from simulator.engines import reference
from simulator.engines.reference import error_rows, reference_rows
from simulator.problem.workload import read_inputs, resolve
from tests.helpers.runs import scenario, textbook
from tests.helpers.scarce import peak_memory


@pytest.mark.parametrize("rows_at_once", [0, 1, 4])
def test_rows_are_the_textbooks_however_many_are_held_at_once(
    rows_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference, "CHECKED_SCORES", rows_at_once * 8)
    w = resolve(
        scenario("flash2", nq=13, nk=8, d=3, dv=2, heads=4, kv_heads=2, mask={"causal": True},
                 temperature=0.5)
    )  # fmt: skip
    inputs = read_inputs(w)
    for head in range(4):
        o, lse = textbook(w, inputs, head)
        ours = reference_rows(w, inputs, head, range(3, 12))  # the first two of them see nothing
        np.testing.assert_allclose(ours[0], o[3:12], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(ours[1], lse[3:12], rtol=1e-12, atol=1e-12)
    long = resolve(scenario("flash2", nq=500, nk=500, d=1, rows=250, cols=250))
    inputs = read_inputs(long)
    with peak_memory() as peak:
        reference_rows(long, inputs, 0, range(500))
        assert peak() < 8 * 500 * 500 / 4  # bytes of all scores


def test_all_row_blocks_are_compared_while_float64_is_quick() -> None:
    w = resolve(scenario("flash2", nq=2**14, nk=2**13, d=1, heads=2, rows=2**10, cols=2**10))
    assert list(error_rows(w)) == list(range(16))  # 2**28 scores in all heads
    longer = resolve(
        scenario("flash2", nq=2**14, nk=2**13 + 1, d=1, heads=2, rows=2**10, cols=2**10)
    )
    assert list(error_rows(longer)) == sorted({round(n * 15 / 14) for n in range(15)})
    assert len(list(error_rows(longer))) == 15


def test_errors_are_looked_for_in_evenly_spread_row_blocks() -> None:
    w = resolve(scenario("flash2", nq=20, rows=2))
    assert list(error_rows(w)) == list(range(10))
    assert list(error_rows(w, limit=2 * 20 * 4)) == [0, 3, 6, 9]
    assert list(error_rows(w, limit=1)) == [0, 9]
    assert list(error_rows(resolve(scenario("flash2", nq=4, rows=4)))) == [0]
