"""The weights that the sums so far make: those of the softmax over the keys seen so far."""

from typing import Any

import numpy as np
import pytest

from simulator.problem.scenario import with_values
from simulator.run.final_weights import done_rows, done_weights, weights_so_far, with_weights_so_far
from tests.helpers.demos import every_op
from tests.helpers.runs import scenario, trace_of

SHAPE: dict[str, Any] = {"nq": 14, "nk": 17, "d": 8, "rows": 4, "cols": 3, "temperature": 0.4}


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("algorithm", ["flash1", "flash2"])
@pytest.mark.parametrize("mask", [{}, {"causal": True}])
def test_they_are_the_softmax_of_the_keys_that_have_been_seen(
    algorithm: str, mask: dict[str, Any]
) -> None:
    trace = trace_of(scenario(algorithm, mask=mask, **SHAPE))
    for now in every_op(trace):
        found = weights_so_far(now)
        # The row block at work: its columns before this tile; once O has been rescaled, the
        # weights are those of the softmax with this tile.
        rows = np.arange(now.visit.rows.start, now.visit.rows.stop)
        end = now.visit.cols.stop if now.rescaled else now.visit.cols.start
        scores = now.head.s[rows, :end].astype(float)  # type: ignore[union-attr]
        scores[np.isnan(scores)] = -np.inf  # skipped
        if not np.isfinite(scores).any(axis=1).all():
            continue
        exact = np.exp(scores - scores.max(axis=1, keepdims=True))
        exact /= exact.sum(axis=1, keepdims=True)
        got = np.nan_to_num(found[rows, :end])
        np.testing.assert_allclose(got, exact, rtol=2e-4, atol=1e-7)


def test_at_the_end_every_row_sums_to_1() -> None:
    trace = trace_of(scenario("flash2", mask={"causal": True}, **SHAPE))
    now = with_weights_so_far(trace.snapshot(len(trace.program) - 1))
    assert now.so_far is not None
    np.testing.assert_allclose(np.nansum(now.so_far, axis=1), 1, rtol=1e-5)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("algorithm", ["flash1", "flash2"])
@pytest.mark.parametrize("mask", [{}, {"causal": True}])
def test_they_are_shown_where_all_rows_that_were_begun_are_done(
    algorithm: str, mask: dict[str, Any]
) -> None:
    trace = trace_of(scenario(algorithm, mask=mask, **SHAPE))
    o = trace.output
    ends = 0
    for now in every_op(trace):
        begun = ~np.isnan(now.head.m) & np.isfinite(now.head.m)
        # What O is once its last tile has been added and divided, and not before.
        done = now.cursor.op + 1 == len(now.ops) and np.allclose(
            now.head.o[begun], o[now.visit.head][begun], rtol=1e-4, atol=1e-6
        )
        if now.so_far is not None:
            ends += 1
            assert done
            assert now.completes
    assert now.so_far is not None
    assert ends == (1 if not now.launch.by_rows else now.program.workload.grid.Tr)


@pytest.mark.parametrize("algorithm", ["naive", "split-kv"])
def test_where_p_is_divided_already_or_sums_are_of_splits_there_are_none(algorithm: str) -> None:
    now = trace_of(scenario(algorithm, **SHAPE)).snapshot(2)
    assert with_weights_so_far(now) is now


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("algorithm", ["flash1", "flash2", "split-kv", "paged"])
@pytest.mark.parametrize(
    "tables",
    [
        {},
        {"mask": {"causal": True}},
        {"scores": {"sink_logits": [0.5], "softcap": 3.0}},
        {"rescale_threshold": 2.0},
    ],
    ids=["plain", "causal", "sink", "threshold"],
)
def test_exponentials_of_now_weigh_the_values_in_o(algorithm: str, tables: dict[str, Any]) -> None:
    if algorithm == "flash1" and "rescale_threshold" in tables:
        pytest.skip("it has no threshold")
    trace, tried = trace_of(scenario(algorithm, **SHAPE, **tables)), 0
    cols = trace.workload.cols
    for now in every_op(trace):
        if "O" not in now.state or now.launch.combines:
            continue
        rows = slice(now.visit.rows.start, now.visit.rows.stop)
        end = now.visit.cols.stop if now.made("O") else now.visit.cols.start
        keys = slice(now.begun_at * cols, end)
        used = np.isfinite(now.head.s[rows, keys])
        exact = np.where(used, now.head.weights[rows, keys], 0) @ now.v[keys]
        if algorithm == "flash1" or now.normalised:
            total = (now.l if now.rescaled else now.tile.l_prev)[:, None]
            exact = exact / np.where(total == 0, 1, total)
        np.testing.assert_allclose(now.o, exact, rtol=1e-4, atol=1e-5)
        tried += 1
    assert tried > 50


def test_a_run_with_a_fault_has_no_exponentials_of_now() -> None:
    wrong = with_values(scenario("flash2", **SHAPE), {"faults": {"forget_alpha": True}})
    now = trace_of(wrong).snapshot(2)
    assert now.head.weights is None


@pytest.mark.parametrize("mask", [{}, {"causal": True}])
def test_weights_of_rows_that_are_done_make_their_output(mask: dict[str, Any]) -> None:
    trace = trace_of(scenario("flash2", mask=mask, **SHAPE))
    values, seen = trace.inputs.v[0].astype(float), set()
    for visit in range(len(trace.program)):
        now = trace.snapshot(visit)
        rows, weights = done_rows(now), done_weights(now)
        assert rows == range(now.visit.rows.start)
        assert (weights is None) == (not rows)
        if weights is not None:
            found = np.nan_to_num(weights[: rows.stop]) @ values
            np.testing.assert_allclose(found, trace.output[0, : rows.stop], rtol=1e-3, atol=1e-5)
            seen.add(rows.stop)
    assert len(seen) > 1


@pytest.mark.parametrize("algorithm", ["flash1", "naive"])
def test_no_row_is_done_where_each_column_block_begins_all_again(algorithm: str) -> None:
    trace = trace_of(scenario(algorithm, **SHAPE))
    for visit in range(len(trace.program)):
        assert not done_rows(trace.snapshot(visit))
