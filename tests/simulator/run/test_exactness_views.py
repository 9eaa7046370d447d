"""How much a view of the errors works out, and what is left to the work beside it."""

from typing import Any

import numpy as np
import pytest

from simulator.run.effort import Effort
from simulator.run.exactness import RowError, fill_errors
from simulator.run.trace import simulate
from tests.helpers.exactness_runs import at, run
from tests.helpers.runs import scenario

LARGE = Effort(small=0)
"""As if every head were large."""
ONE_TILE = Effort(small=0, step=6 * 4 * 16)
"""And a view waits for one tile at a time."""


def test_stopping_keeps_what_is_done() -> None:
    trace = simulate(run("flash2", {}))
    now, _ = at(trace, len(trace) // 2 - 1, effort=LARGE)

    def stop(share: float) -> None:
        if share > 0:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        fill_errors(trace, now, stop)
    states = at(trace, len(trace) // 2 - 1, effort=LARGE)[1].half.states
    assert (states[:6] == RowError.KNOWN).all()
    assert (states[6:] == RowError.UNKNOWN).all()


def test_a_long_way_is_left_to_the_work_beside_the_view() -> None:
    trace = simulate(run("flash2", {}))
    far = trace.program.index(0, 2, 3) or 0
    now, model = at(trace, far, effort=ONE_TILE)
    assert (model.now.states[12:18] == RowError.UNKNOWN).all()
    fill_errors(trace, now, lambda share: None)
    _, model = at(trace, far, effort=ONE_TILE)
    assert (model.now.states[:18] == RowError.KNOWN).all()
    _, model = at(trace, far + 1, effort=ONE_TILE)  # and from there it goes on step by step
    assert (model.now.states[:18] == RowError.KNOWN).all()


def test_of_very_long_heads_some_row_blocks_are_worked_out() -> None:
    """As many as the scores of one row block go into the limit, spread from first to last."""
    for fit, wanted in ((3, {0, 4, 8}), (1, {0, 8}), (4, {0, 3, 5, 8})):
        trace = simulate(run("flash2", {}, nq=54))  # nine row blocks of six rows, 18 keys
        effort = Effort(small=0, scores=fit * 6 * 18)
        now, _ = at(trace, trace.program.index(0, 6, 4) or 0, effort=effort)
        fill_errors(trace, now, lambda share: None, effort)
        _, model = at(trace, now.cursor.visit, effort=effort)
        assert not model.missing
        known = {row // 6 for row in np.flatnonzero(model.half.states >= RowError.KNOWN).tolist()}
        assert known == wanted | {6}  # and the current one
    effort = Effort(small=0, scores=54 * 18)
    trace = simulate(run("flash2", {}, nq=54))
    now, _ = at(trace, 0, effort=effort)
    fill_errors(trace, now, lambda share: None, effort)
    assert (at(trace, 0, effort=effort)[1].half.states >= RowError.KNOWN).all()


def asks_for_more(**shape: Any) -> bool:
    """Return whether the first view of a head leaves rows to the work beside it."""
    return at(simulate(scenario("flash2", **shape)), 0)[1].missing


def test_small_heads_are_worked_out_with_the_view() -> None:
    # Eight row blocks of 128 rows, 1024 keys, d and dv: 2**25 products, then a few more.
    assert not asks_for_more(nq=1024, d=15, dv=17, rows=128, cols=128)
    assert asks_for_more(nq=1024, d=15, dv=18, rows=128, cols=128)
    # A hundred tiles, then two more.
    assert not asks_for_more(nq=20, nk=5, rows=1, cols=1)
    assert asks_for_more(nq=51, nk=2, rows=1, cols=1)


def test_a_view_waits_for_so_many_products_and_no_more() -> None:
    # A tile has 64 x 64 scores of 48 and 80 products: 512 of them take 2**28.
    trace = simulate(scenario("flash2", nq=64, nk=2**15 + 64, d=48, dv=80, rows=64, cols=64))
    assert (at(trace, 512)[1].now.states == RowError.UNKNOWN).all()
    assert (at(trace, 511)[1].now.states == RowError.KNOWN).all()
    assert (at(trace, 512)[1].now.states == RowError.KNOWN).all()  # now it is a step away


def test_naive_goes_on_step_by_step_from_what_was_worked_out_beside_the_view() -> None:
    trace = simulate(run("naive", {}))
    first = trace.program.index(0, 1, 1, 2) or 0
    now, model = at(trace, first, effort=ONE_TILE)
    assert (model.now.states[6:12] == RowError.UNKNOWN).all()
    fill_errors(trace, now, lambda share: None)
    for visit in range(first, first + 4):
        now, model = at(trace, visit, effort=ONE_TILE)
        assert now.visit.i == 1
        assert (model.now.states[6:12] == RowError.KNOWN).all()
