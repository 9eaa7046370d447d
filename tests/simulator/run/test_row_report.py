"""One row beside the exact numbers: its scores, the keys it has seen and its error."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator import Snapshot, Trace, simulate
from simulator.problem.scenario import Scenario, with_values
from simulator.problem.workload import Inputs
from simulator.run.row_report import row_report
from tests.helpers.op_by_op import run_op_by_op
from tests.helpers.runs import (
    ALGORITHMS,
    check_close,
    pairs_of,
    rounding,
    scenario,
    scenarios,
    scored,
    textbook,
    trace_of,
    visits_in_order,
)
from tests.helpers.tiles import with_state


@given(scenarios(longest=12), st.integers(0, 40))
def test_row_report(chosen: Scenario, row: int) -> None:
    """Compare the reports of all cursors with plain loops, and the errors with a bound."""
    trace = trace_of(chosen)
    w, eps = trace.workload, rounding(trace.workload, trace.inputs)
    biggest = max(1.0, float(np.abs(trace.inputs.v).max()))
    half_ulp = 0.0 if w.dtype == "float32" else 2.0**-8  # a rounded O lies no further off
    pairs, worked = pairs_of(w), set[int]()
    before: tuple[int, int, int] | None = None
    for visit, number, _ in run_op_by_op(trace):
        at = min(max(row, visit.rows.start), visit.rows.stop - 1)
        if (visit.launch, visit.head, visit.i) != before and w.algorithm != "flash1":
            worked, before = set(), (visit.launch, visit.head, visit.i)
        now = trace.snapshot(visit.index, number)
        if w.algorithm == "flash1":
            worked = {
                key for n, h, i, j in visits_in_order(w) if (n, h, i) == (0, visit.head, visit.i)
                and j < visit.j for key in w.grid.col_range(j)
            }  # fmt: skip
        report = row_report(now, row)
        assert report.row == at
        visible = [pairs.sees(at, key) for key in range(w.seqlen_k)]
        s = trace.inputs.k[w.kv_head_of[visit.head]].astype(float) @ now.q[at] * w.logit_scale
        s = scored(w, visit.head, [at], range(w.seqlen_k), s[None, :])[0]
        check_close(report.scores, np.where(visible, s, -np.inf), eps, "scores")
        expected = set(range(w.seqlen_k)) if visit.launch == 1 else worked
        assert set(report.seen.nonzero()[0].tolist()) == expected
        done = worked | (set(visit.cols) if "accumulate" in now.done else set())
        seen = [key for key in sorted(done) if visible[key]]
        if not seen or (w.algorithm == "naive" and visit.launch < 2):
            assert report.error is report.ulp is None
        elif report.error is not None:  # None if all of it has faded away to 0
            shrunk = shrinkage(now, at)
            assert report.error <= (eps * biggest * w.seqlen_k) / shrunk + half_ulp * biggest
            assert report.ulp is not None
            assert report.ulp >= 0
        if number == len(now.ops) - 1 and w.algorithm != "flash1":
            worked |= set(visit.cols)
    last = trace.snapshot(len(trace) - 1)
    check_final_report(trace, last)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_error_is_that_of_o_divided_by_what_it_still_lacks(algorithm: str) -> None:
    """At every op, of an O that is off by a known amount."""
    trace = trace_of(scenario(algorithm, nq=4, nk=9, d=2, dv=2, rows=4, cols=3))
    w, v = trace.workload, trace.inputs.v[0].astype(float)
    s = trace.inputs.q[0, 2].astype(float) @ trace.inputs.k[0].astype(float).T * w.logit_scale
    for visit, number, _ in run_op_by_op(trace):
        now = trace.snapshot(visit.index, number)
        keys = 3 * (visit.j + ("accumulate" in now.done))
        if not keys or (algorithm == "naive" and visit.launch < 2):
            assert row_report(now, 2).error is None
            continue
        p = np.exp(s)
        exact = p[:keys] @ v[:keys] / p[: None if algorithm == "naive" else keys].sum()
        between = "rescale" in now.done and "accumulate" not in now.done
        weight = 1.0
        if algorithm == "flash1" and between:
            weight = p[:keys].sum() / p[: keys + 3].sum()
        if algorithm == "flash2" and "normalise" not in now.done:
            weight = p[:keys].sum() / p[: keys + 3 * between].max()
        o = now.o.astype(float)
        o[2] = (exact + np.array([0.25, -0.5])) * weight
        report = row_report(with_state(now, O=o), 2)
        unit = np.spacing(np.float32(np.abs(exact).max()))
        assert report.error == pytest.approx(0.5, rel=1e-5)
        assert report.ulp == pytest.approx(0.5 / unit, rel=1e-5)


def test_keys_are_summed_a_few_thousand_at_a_time() -> None:
    nk = 2 * 8192 + 5
    trace = trace_of(scenario("flash2", nq=2, nk=nk, d=2, rows=2, cols=4096, temperature=0.3))
    for visit in range(5):
        for row in range(2):
            assert (row_report(trace.snapshot(visit), row).error or 1.0) < 1e-5


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_mask_that_comes_late_leaves_hidden_keys_their_scores(algorithm: str) -> None:
    mask = {"causal": True, "window": 2, "sinks": 1}
    chosen = scenario(algorithm, nq=12, rows=3, cols=2, mask=mask)
    trace = simulate(with_values(chosen, {"faults": {"late_mask": True}}))
    w = trace.workload
    s = trace.inputs.q[0].astype(float) @ trace.inputs.k[0].astype(float).T * w.logit_scale
    kinds = pairs_of(w).kinds(w.rows, w.cols)
    for visit in range(len(trace)):
        now = trace.snapshot(visit)
        row = now.visit.rows.stop - 1
        visited = kinds[now.visit.i].repeat(w.cols) > 0
        counted = visited | (algorithm == "naive")
        check_close(row_report(now, row).scores, np.where(counted, s[row], -np.inf), 1e-5)


def test_an_accumulator_that_a_fault_has_emptied_is_an_error() -> None:
    """What has faded beside a larger maximum is none."""
    k = np.array([0, 0, 200, 200], dtype=np.float32).reshape(1, 4, 1)
    inputs = Inputs(np.ones((1, 2, 1), dtype=np.float32), k, np.ones_like(k))
    chosen = scenario("flash2", nq=2, nk=4, d=1, rows=2, cols=2, scale=1.0)
    for faults, error in (({}, None), ({"half_accumulator": True}, 1.0)):
        trace = trace_of(with_values(chosen, {"faults": faults}) if faults else chosen, inputs)
        rescale = [op.name for op in trace.program.ops(1)].index("rescale")
        errors = [row_report(trace.snapshot(1, rescale + n), 0).error for n in (-1, 0, 1)]
        assert errors == [0.0, error, 0.0]


def shrinkage(now: Snapshot, row: int) -> float:
    """Return how far the rescaling has shrunk O's share that is compared, at most 1."""
    if "rescale" not in now.done or "accumulate" in now.done:
        return 1.0
    return max(min(1.0, float(now.rescale_factor[row - now.visit.rows.start])), 1e-30)


def check_final_report(trace: Trace, last: Snapshot) -> None:
    """Compare the error at the end with that of the output."""
    w = trace.workload
    o, _ = textbook(w, trace.inputs, last.visit.head)
    for row in last.visit.rows:
        report = row_report(last, row)
        if report.error is not None:
            ours = last.o[row - last.visit.rows.start].astype(np.float64)
            assert report.error == pytest.approx(np.abs(ours - o[row]).max(), abs=1e-12)
            unit = float(np.spacing(np.float32(np.abs(o[row]).max())))
            assert report.ulp == pytest.approx(report.error / unit, abs=1e-3)


def test_row_report_finds_a_wrong_number() -> None:
    trace = trace_of(scenario("flash1", nq=8, d=3))
    now = trace.snapshot(len(trace) - 1)
    wrong = now.tile.o.copy()
    wrong[1, 2] += 0.25
    off, row = with_state(now, O=wrong), now.visit.rows.start
    assert row_report(off, row).error < 1e-5
    assert row_report(off, row + 1).error == pytest.approx(0.25, abs=1e-5)
    assert math.isnan(row_report(with_state(now, O=np.full_like(wrong, np.nan)), row).error)


def test_a_row_outside_the_row_block_is_taken_into_it() -> None:
    trace = trace_of(scenario(nq=12, rows=4))
    now = trace.snapshot(trace.program.index(0, 1, 0) or 0)
    assert [row_report(now, row).row for row in (-5, 3, 4, 5, 7, 8, 99)] == [4, 4, 4, 5, 7, 7, 7]
