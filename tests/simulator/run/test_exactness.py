"""Errors of rows: against plain float64 and float16 loops, by step, by jump and beside the view."""

from typing import Any

import numpy as np
import pytest

from simulator.problem.scenario import with_values
from simulator.problem.workload import Inputs
from simulator.run.cosimulation import verify
from simulator.run.effort import Effort
from simulator.run.exactness import (
    EXP_OVERFLOW,
    HALF_OVERFLOW,
    ErrorStrip,
    RowError,
    fill_errors,
    first_wrong_step,
)
from simulator.run.row_report import row_report
from simulator.run.trace import Trace, simulate
from tests.helpers.exactness_runs import MASKS, at, run, units
from tests.helpers.runs import (
    ALGORITHMS,
    pairs_of,
    scenario,
    textbook,
    trace_of,
    visits_in_order,
)


def test_limits_are_those_of_the_formats() -> None:
    with np.errstate(over="ignore"):
        for limit, kind in ((EXP_OVERFLOW, np.float32), (HALF_OVERFLOW, np.float16)):
            assert np.isfinite(np.exp(limit).astype(kind))
            assert np.isinf(np.exp(limit + 0.01).astype(kind))


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_step_of_the_current_rows_is_that_of_the_row_report(
    algorithm: str, mask: dict[str, Any]
) -> None:
    trace = simulate(run(algorithm, mask))
    compared = 0
    for visit in range(len(trace)):
        for op in range(len(trace.program.ops(visit))):
            now, model = at(trace, visit, op)
            if "store" in now.done:
                continue  # the report is about O on chip, the strip about HBM from here on
            for row in now.visit.rows:
                found = row_report(now, row).ulp
                if found is None:  # it has seen nothing so far
                    assert model.now.ulp[row] == 0
                    continue
                assert model.now.states[row] == RowError.KNOWN
                assert model.now.ulp[row] == pytest.approx(found, rel=1e-6, abs=1e-6)
                compared += 1
    assert compared > 100


@pytest.mark.sweep(keep=4)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_finished_rows_are_held_against_the_definition(
    algorithm: str, mask: dict[str, Any], dtype: str
) -> None:
    trace = simulate(run(algorithm, mask, dtype=dtype))
    w = trace.workload
    last = next(v for v in reversed(range(len(trace))) if trace.program.visit(v).head == 0)
    _, model = at(trace, last)
    exact, _ = textbook(w, trace.inputs, 0)
    for row in range(w.seqlen_q):
        if model.now.states[row] == RowError.EMPTY:
            assert not pairs_of(w).matrix()[row].any()
            continue
        assert model.now.states[row] == RowError.KNOWN
        expected = units(trace.output[0, row].astype(np.float64), exact[row])
        assert model.now.ulp[row] == pytest.approx(expected, rel=1e-4, abs=1e-4)
    if dtype == "float16" and algorithm != "flash1":
        assert model.rounding == 4096
        assert model.now.ulp.max() > 1000
    else:
        assert model.rounding is None


def test_a_stored_o_is_off_by_half_a_step_of_its_type() -> None:
    # float32 has 23 bits after the point, float16 has 10 and bfloat16 7.
    for dtype, most in (("float32", None), ("float16", 2**13 / 2), ("bfloat16", 2**16 / 2)):
        assert at(simulate(run("flash2", {}, dtype=dtype)), 0)[1].rounding == most


def test_rows_are_empty_until_they_have_an_output() -> None:
    naive = simulate(run("naive", {}))
    launch = [naive.program.visit(v).launch for v in range(len(naive))]
    for visit in (0, launch.index(1), launch.index(2) - 1):
        assert (at(naive, visit)[1].now.states == RowError.EMPTY).all()
    flash2 = simulate(run("flash2", {}))
    now, model = at(flash2, flash2.program.index(0, 1, 2) or 0)
    assert (model.now.states == RowError.KNOWN).tolist() == [row < 12 for row in range(21)]
    flash1 = simulate(run("flash1", {}))
    now, model = at(flash1, flash1.program.index(0, 1, 0) or 0)
    assert (model.now.states == RowError.KNOWN).tolist() == [row < 12 for row in range(21)]
    now, model = at(flash1, flash1.program.index(0, 1, 1) or 0)
    assert (model.now.states == RowError.KNOWN).all()
    assert now.visit.j == 1


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("mask", MASKS[1:])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_jump_and_a_walk_and_work_beside_the_view_agree(
    algorithm: str, mask: dict[str, Any]
) -> None:
    chosen = run(algorithm, mask)
    trace = simulate(chosen)
    walked = [at(trace, visit)[1] for visit in range(len(trace))]
    large = Effort(small=0)  # as if it were
    for visit in range(0, len(trace), 5):
        fresh = simulate(chosen)
        now, jumped = at(fresh, visit, effort=large)
        assert jumped.missing
        told: list[float] = []
        fill_errors(fresh, now, told.append)
        assert told == [n / (len(told) - 1) for n in range(len(told))]
        _, filled = at(fresh, visit, effort=large)
        assert not filled.missing
        other = jumped.now.states != RowError.KNOWN
        assert (jumped.now.ulp[other] == 0).all()
        np.testing.assert_array_equal(filled.now.states, walked[visit].now.states)
        np.testing.assert_allclose(filled.now.ulp, walked[visit].now.ulp, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(filled.half.ulp, walked[visit].half.ulp, rtol=1e-6)
        assert filled.rescale == pytest.approx(walked[visit].rescale)
        assert filled.largest == pytest.approx(walked[visit].largest)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_errors_of_all_rows_are_those_of_o_as_it_lies_in_hbm(algorithm: str) -> None:
    """Over the keys of the tiles visited so far, with a gap between sinks and window."""
    trace = simulate(run(algorithm, {"causal": True, "window": 5, "sinks": 2}, rows=3, cols=2))
    w, pairs, order = trace.workload, pairs_of(trace.workload), []
    for visit, (launch, head, i, j) in enumerate(visits_in_order(w)):
        order.append((launch, head, i, j))
        if head != 1 or (algorithm == "naive" and launch < 2):
            continue
        now, model = at(trace, visit)
        known = np.zeros(w.seqlen_q, dtype=bool)
        for row in (*range(now.visit.rows.start), *range(now.visit.rows.stop, w.seqlen_q)):
            columns = {place[3] for place in order if place[:3] == (launch, 1, row // 3)}
            known[row] = bool(columns) or (algorithm == "flash2" and row < now.visit.rows.start)
            keys = [
                key for key in range(w.seqlen_k) if key // 2 in columns and pairs.sees(row, key)
            ]
            if keys:
                s = trace.inputs.k[0, keys].astype(float) @ trace.inputs.q[1, row] * w.logit_scale
                p = np.exp(s - s.max())
                exact = p @ trace.inputs.v[0, keys] / p.sum()
                expected = units(now.head.o[row].astype(float), exact)
                assert model.now.ulp[row] == pytest.approx(expected, rel=1e-4, abs=1e-4)
            else:
                assert model.now.ulp[row] == 0
        known[now.visit.rows.start : now.visit.rows.stop] = True
        assert ((model.now.states == RowError.KNOWN) == known).all()


@pytest.mark.parametrize("algorithm", ["flash1", "flash2"])
def test_an_error_of_another_time_is_not_shown(algorithm: str) -> None:
    trace, large = simulate(run(algorithm, {})), Effort(small=0)
    at(trace, trace.program.index(0, 1, 2) or 0, effort=large)  # rows 6 to 11 after three tiles
    _, model = at(trace, trace.program.index(0, 2, 4) or 0, effort=large)  # five, or stored
    s = trace.inputs.q[0].astype(float) @ trace.inputs.k[0].astype(float).T
    s *= trace.workload.logit_scale
    assert s[6:12, :12].max() > s[12:18].max()
    assert model.largest == pytest.approx(s[12:18].max())
    assert (model.now.states[6:12] == RowError.UNKNOWN).all()
    assert (model.now.states[12:18] == RowError.KNOWN).all()
    _, model = at(trace, trace.program.index(0, 1, 2) or 0, effort=large)
    assert (model.now.states[6:12] == RowError.KNOWN).all()


# --- figures -----------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["flash1", "flash2"])
def test_rescale_and_largest_score(algorithm: str) -> None:
    trace = simulate(run(algorithm, {"causal": True}))
    w, inputs = trace.workload, trace.inputs
    now, model = at(trace, trace.program.index(0, 3, 2) or 0)
    seen = pairs_of(w).matrix()
    s = inputs.q[0].astype(np.float64) @ inputs.k[0].astype(np.float64).T * w.logit_scale
    s = np.where(seen, s, -np.inf)
    reached = 12 if algorithm == "flash1" else 18
    alphas = []
    for row in range(w.seqlen_q):
        tops = [s[row, : 4 * (j + 1)].max() for j in range(5)]
        full = row < now.visit.rows.start and algorithm == "flash2"
        for j in range(1, 5 if full else 3):
            if tops[j - 1] > -np.inf:
                alphas.append(np.exp(tops[j - 1] - tops[j]))
    assert model.rescale == pytest.approx(min(alphas), rel=1e-4)
    done = s[:18] if algorithm == "flash2" else s[:, :reached]
    last = s[18:, :12]
    assert model.largest == pytest.approx(max(done.max(), last.max()))


def plain_half(w: Any, inputs: Any, head: int, row: int) -> tuple[np.ndarray, bool]:
    """Return O of a row and whether an exponential overflowed, one number at a time."""
    group, pairs = w.kv_head_of[head], pairs_of(w)
    l, o, over = np.float16(0), np.zeros(w.value_dim, dtype=np.float16), False
    for first in range(0, w.seqlen_k, w.cols):
        keys = [j for j in range(first, min(first + w.cols, w.seqlen_k)) if pairs.sees(row, j)]
        if not keys:
            continue
        exact = inputs.k[group, keys].astype(np.float64) @ inputs.q[head, row] * w.logit_scale
        p = np.exp(exact.astype(np.float16).astype(np.float32)).astype(np.float16)
        over |= bool(np.isinf(p).any())
        wide = p.astype(np.float32)
        l = np.float16(np.float32(l) + wide.sum())
        o = (o.astype(np.float32) + wide @ inputs.v[group, keys]).astype(np.float16)
    quotient = (o.astype(np.float32) / np.float32(l)).astype(np.float16)
    return quotient.astype(np.float64), over


@pytest.mark.parametrize("temperature", [1.0, 0.15, 0.01])
def test_float16_without_a_maximum(temperature: float) -> None:
    trace = simulate(run("flash2", {"causal": True}, temperature=temperature, nk=21))
    w = trace.workload
    _, model = at(trace, 0)
    exact, _ = textbook(w, trace.inputs, 0)
    overs = broken = 0
    for row in range(w.seqlen_q):
        with np.errstate(all="ignore"):
            half, over = plain_half(w, trace.inputs, 0, row)
        expected = units(half, exact[row])
        overs, broken = overs + over, broken + (not np.isfinite(expected))
        if np.isfinite(expected):
            # A sum of a few terms may round the other way where its order differs.
            assert model.half.ulp[row] == pytest.approx(expected, rel=0.5, abs=9000)
    assert (model.half_overflows, model.half.count(RowError.BROKEN)) == (overs, broken)
    assert (overs > 0) == (temperature < 1)


def test_broken_rows_are_told_from_large_errors() -> None:
    chosen = with_values(run("flash2", {}, temperature=0.005), {"faults": {"no_maximum": True}})
    trace = simulate(chosen)
    _, model = at(trace, len(trace) // 2 - 1)
    broken = ~np.isfinite(trace.output[0]).all(axis=1)
    assert broken.any()
    assert (model.now.states == RowError.BROKEN).tolist() == broken.tolist()
    assert broken[model.now.worst]


def test_pooling_shows_the_worst_row() -> None:
    ulp = np.array([1.0, 5.0, 2.0, 0.0, 0.0, 7.0, 3.0])
    states = np.array([2, 2, 2, 3, 0, 1, 0], dtype=np.uint8)
    pooled = ErrorStrip(np.where(states == 2, ulp, 0), states).pooled(3)
    assert pooled.ulp.tolist() == [5.0, 0.0, 0.0]
    assert pooled.states.tolist() == [2, 3, 0]
    assert ErrorStrip(ulp, states).worst == 3
    assert ErrorStrip(ulp[:3], states[:3]).worst == 1
    assert ErrorStrip(ulp[4:], states[4:]).worst is None
    assert ErrorStrip(np.zeros(3), np.array([0, 1, 2], dtype=np.uint8)).worst == 2
    for most in (0, 1):
        assert ErrorStrip(ulp, states).pooled(most).ulp.tolist() == [7.0]


def test_the_first_wrong_step_is_that_of_verify() -> None:
    trace = simulate(
        with_values(run("flash2", {"causal": True}), {"faults": {"forget_alpha": True}})
    )
    found = first_wrong_step(trace, lambda share: None)
    assert found == verify(trace)
    assert found.difference is not None


def test_a_wrong_step_of_naive_is_looked_for_while_float64_holds_s_and_p() -> None:
    trace = simulate(with_values(run("naive", {}), {"faults": {"no_maximum": True}}))
    found = first_wrong_step(trace, lambda share: None)
    assert found.difference is not None
    for most, known in ((2 * 21 * 18, True), (2 * 21 * 18 - 1, False)):  # of two heads
        found = first_wrong_step(trace, lambda share: None, Effort(searched=most))
        assert (found is not None) == known
    huge = simulate(
        with_values(scenario("naive", nq=2**13 + 1, nk=2**14, d=1, rows=128, cols=128),
                    {"faults": {"no_maximum": True}})
    )  # fmt: skip
    assert first_wrong_step(huge, lambda share: None) is None


@pytest.mark.parametrize("algorithm", ["flash1", "flash2"])
def test_two_tiles_have_an_alpha_between_them(algorithm: str) -> None:
    trace = simulate(run(algorithm, {}, nq=6, nk=8, heads=1))
    m = trace.row_block(0, 0).m.astype(np.float64)
    turns = m[:, 0] - m[:, 1]
    assert at(trace, 0)[1].rescale is None
    found = at(trace, len(trace) - 1)[1].rescale
    assert found == pytest.approx(np.exp(turns[np.argmax(np.abs(turns))]))
    assert found != 1.0


def test_an_alpha_counts_from_its_rescale_on() -> None:
    trace = simulate(run("flash2", {}, nq=6, nk=12, heads=1, seed=3))
    m = trace.row_block(0, 0).m.astype(np.float64)
    turns = [0.0, 0.0]
    for j in (1, 2):
        new = m[:, j - 1] - m[:, j]
        turns = [turns[1], min(turns[1], new.min())]
        for number, op in enumerate(trace.program.ops(j)):
            names = [each.name for each in trace.program.ops(j)[: number + 1]]
            model = at(trace, j, number)[1]
            expected = turns["rescale" in names]
            assert model.rescale == (pytest.approx(np.exp(expected)) if expected else None), op
    assert turns[0] != turns[1]


@pytest.mark.parametrize("splits", [1, 2, 5])
def test_no_alpha_is_between_the_maxima_of_two_splits(splits: int) -> None:
    trace = simulate(with_values(run("split-kv", {}), {"tiling": {"splits": splits}}))
    w, inputs = trace.workload, trace.inputs
    s = inputs.q[0].astype(np.float64) @ inputs.k[0].astype(np.float64).T * w.logit_scale
    alphas = [1.0]
    for keys in w.split_ranges:
        for stop in range(keys.start + w.cols, keys.stop, w.cols):
            now = slice(keys.start, min(stop + w.cols, keys.stop))
            alphas += np.exp(s[:, keys.start : stop].max(1) - s[:, now].max(1)).tolist()
    found = at(trace, len(trace) - 1)[1].rescale
    assert found == (pytest.approx(min(alphas), rel=1e-4) if min(alphas) < 1 else None)


@pytest.mark.parametrize("fault", [None, "drop_previous_maximum"])
def test_the_furthest_alpha_of_a_head_is_between_two_maxima_that_exist(fault: str | None) -> None:
    """Also with a fault by which a maximum falls, so that alpha is above 1."""
    chosen = run("flash2", {"window": 3}, seed=3)
    trace = simulate(with_values(chosen, {"faults": {fault: True}}) if fault else chosen)
    w, inputs = trace.workload, trace.inputs
    s = inputs.q[0].astype(np.float64) @ inputs.k[0].astype(np.float64).T * w.logit_scale
    seen, kinds = pairs_of(w).matrix(), pairs_of(w).kinds(w.rows, w.cols)
    turns, blind = [], 0
    for row in range(w.seqlen_q):
        top = -np.inf
        for j in np.flatnonzero(kinds[row // w.rows]).tolist():
            tile = slice(j * w.cols, (j + 1) * w.cols)
            new = s[row, tile][seen[row, tile]].max(initial=-np.inf)
            new = new if fault else max(top, new)
            turns += [top - new] if np.isfinite(top) and np.isfinite(new) else []
            blind += not np.isfinite(new)
            top = new
    assert blind > 0
    last = next(v for v in reversed(range(len(trace))) if trace.program.visit(v).head == 0)
    furthest = max(turns, key=abs)
    assert (furthest > 0) == bool(fault)
    model = at(trace, last)[1]
    assert model.rescale == pytest.approx(np.exp(furthest), rel=1e-4)
    assert model.largest == pytest.approx(s[seen].max())


def rising(faults: dict[str, bool]) -> Trace:
    """Return a run whose second tile holds scores so large that its alpha is 0 in float32."""
    k = np.array([0, 0, 200, 200], dtype=np.float32).reshape(1, 4, 1)
    v = np.array([1, 2, 4, 8], dtype=np.float32).reshape(1, 4, 1)
    chosen = scenario("flash2", nq=2, nk=4, d=1, rows=2, cols=2, scale=1.0)
    inputs = Inputs(np.ones((1, 2, 1), dtype=np.float32), k, v)
    return trace_of(with_values(chosen, {"faults": faults}) if faults else chosen, inputs)


def test_what_an_alpha_of_zero_leaves_is_no_error() -> None:
    trace = rising({})
    names = [op.name for op in trace.program.ops(1)]
    rescale, accumulate = names.index("rescale"), names.index("accumulate")
    assert (at(trace, 1, rescale)[1].now.states == RowError.UNKNOWN).all()
    _, model = at(trace, 1, accumulate)
    assert (model.now.states == RowError.KNOWN).all()
    assert (model.now.ulp == 0).all()
    assert (at(trace, 1, rescale)[1].now.states == RowError.UNKNOWN).all()


def test_with_a_fault_an_accumulator_of_zero_is_an_error() -> None:
    trace = rising({"half_accumulator": True})
    rescale = [op.name for op in trace.program.ops(1)].index("rescale")
    _, model = at(trace, 1, rescale)
    assert (model.now.states == RowError.KNOWN).all()
    # O is 1.5, of which nothing is left.
    assert model.now.ulp.tolist() == [1.5 / np.spacing(np.float32(1.5))] * 2


def test_without_a_maximum_float16_loses_rows_of_low_scores() -> None:
    """exp(-20) is 0 in float16, and 0 / 0 no number; a row that sees no key is 0 by right."""
    k = np.full((1, 4, 1), -20, dtype=np.float32)
    chosen = scenario("flash2", nq=5, nk=4, d=1, rows=2, cols=2, scale=1.0, mask={"causal": True})
    trace = trace_of(chosen, Inputs(np.ones((1, 5, 1), dtype=np.float32), k, np.ones_like(k)))
    _, model = at(trace, 0)
    known, broken = RowError.KNOWN, RowError.BROKEN
    assert model.half.states.tolist() == [known, broken, broken, broken, broken]
    assert model.half_overflows == 0


@pytest.mark.long
def test_rows_are_joined_where_they_see_nothing_of_the_first_keys() -> None:
    chosen = run("split-kv", {"causal": True, "window": 5})
    program = (trace := trace_of(with_values(chosen, {"tiling": {"splits": 2}}))).program
    joins = [n for n in range(len(program)) if program.launches[program.visit(n).launch].combines]
    blind = [
        n
        for n in joins
        if 0 not in program.workload.grid.visited_columns.visited(program.visit(n).i)
    ]
    assert blind
    for visit in blind:
        now, found = at(trace, visit)
        known = found.now.ulp[now.visit.rows.start : now.visit.rows.stop]
        assert (known < 8).all()
