"""Errors of rows: against plain float64 and float16 loops, by step, by jump and beside the view."""

from typing import Any

import numpy as np
import pytest

from simulator import exactness as module
from simulator.cosimulation import verify
from simulator.exactness import (
    EXP_OVERFLOW,
    HALF_OVERFLOW,
    Exactness,
    RowState,
    Strip,
    exactness,
    fill_errors,
    first_wrong_step,
)
from simulator.row_report import row_report
from simulator.row_sums import ulps
from simulator.scenario import Scenario, with_values
from simulator.snapshot import Snapshot
from simulator.trace import Trace, simulate
from tests.simulator.helpers import ALGORITHMS, pairs_of, scenario, textbook

MASKS: tuple[dict[str, Any], ...] = (
    {}, {"causal": True}, {"causal": True, "window": 5, "sinks": 2},
)  # fmt: skip


def run(algorithm: str, mask: dict[str, Any], **more: Any) -> Scenario:
    shape = {"nq": 21, "nk": 18, "d": 8, "heads": 2, "kv_heads": 1, "rows": 6, "cols": 4}
    return scenario(algorithm, **{**shape, "mask": mask, "temperature": 0.3, **more})


def at(trace: Trace, visit: int, op: int | None = None) -> tuple[Snapshot, Exactness]:
    now = trace.snapshot(visit, op)
    return now, exactness(trace, now, row_report(now, 0))


def units(ours: np.ndarray, exact: np.ndarray) -> float:
    """Return the error of one row, as its definition says."""
    if not np.isfinite(ours).all():
        return np.inf
    largest = np.float32(np.abs(exact).max())
    return float(np.abs(ours - exact).max() / np.spacing(max(largest, np.finfo(np.float32).tiny)))


def test_limits_are_those_of_the_formats() -> None:
    with np.errstate(over="ignore"):
        for limit, kind in ((EXP_OVERFLOW, np.float32), (HALF_OVERFLOW, np.float16)):
            assert np.isfinite(np.exp(limit).astype(kind))
            assert np.isinf(np.exp(limit + 0.01).astype(kind))


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
                if found is None:
                    continue
                assert model.now.states[row] == RowState.KNOWN
                assert model.now.ulp[row] == pytest.approx(found, rel=1e-6, abs=1e-6)
                compared += 1
    assert compared > 100


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
        if model.now.states[row] == RowState.EMPTY:
            assert not pairs_of(w).matrix()[row].any()
            continue
        assert model.now.states[row] == RowState.KNOWN
        expected = units(trace.output[0, row].astype(np.float64), exact[row])
        assert model.now.ulp[row] == pytest.approx(expected, rel=1e-4, abs=1e-4)
    if dtype == "float16" and algorithm != "flash1":
        assert model.rounding == 4096
        assert model.now.ulp.max() > 1000
    else:
        assert model.rounding is None


def test_rows_are_empty_until_they_have_an_output() -> None:
    naive = simulate(run("naive", {}))
    launch = [naive.program.visit(v).launch for v in range(len(naive))]
    for visit in (0, launch.index(1), launch.index(2) - 1):
        assert (at(naive, visit)[1].now.states == RowState.EMPTY).all()
    flash2 = simulate(run("flash2", {}))
    now, model = at(flash2, flash2.program.index(0, 1, 2) or 0)
    assert (model.now.states == RowState.KNOWN).tolist() == [row < 12 for row in range(21)]
    flash1 = simulate(run("flash1", {}))
    now, model = at(flash1, flash1.program.index(0, 1, 0) or 0)
    assert (model.now.states == RowState.KNOWN).tolist() == [row < 12 for row in range(21)]
    now, model = at(flash1, flash1.program.index(0, 1, 1) or 0)
    assert (model.now.states == RowState.KNOWN).all()
    assert now.visit.j == 1


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_jump_and_a_walk_and_work_beside_the_view_agree(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = run(algorithm, {"causal": True})
    trace = simulate(chosen)
    walked = [at(trace, visit)[1] for visit in range(len(trace))]
    monkeypatch.setattr(module, "SMALL_COST", 0)  # as if it were large
    for visit in range(0, len(trace), 5):
        fresh = simulate(chosen)
        now, jumped = at(fresh, visit)
        assert jumped.missing
        told: list[float] = []
        fill_errors(fresh, now, told.append)
        assert told[-1] == 1.0
        _, filled = at(fresh, visit)
        assert not filled.missing
        other = jumped.now.states != RowState.KNOWN
        assert (jumped.now.ulp[other] == 0).all()
        np.testing.assert_array_equal(filled.now.states, walked[visit].now.states)
        np.testing.assert_allclose(filled.now.ulp, walked[visit].now.ulp, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(filled.half.ulp, walked[visit].half.ulp, rtol=1e-6)
        assert filled.rescale == pytest.approx(walked[visit].rescale)
        assert filled.largest == pytest.approx(walked[visit].largest)


@pytest.mark.parametrize("algorithm", ["flash1", "flash2"])
def test_an_error_of_another_time_is_not_shown(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SMALL_COST", 0)
    trace = simulate(run(algorithm, {}))
    at(trace, trace.program.index(0, 1, 2) or 0)  # rows 6 to 11 after three tiles
    _, model = at(trace, trace.program.index(0, 2, 4) or 0)  # five, or stored
    assert (model.now.states[6:12] == RowState.UNKNOWN).all()
    assert (model.now.states[12:18] == RowState.KNOWN).all()
    _, model = at(trace, trace.program.index(0, 1, 2) or 0)
    assert (model.now.states[6:12] == RowState.KNOWN).all()


def test_stopping_keeps_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL_COST", 0)
    trace = simulate(run("flash2", {}))
    now, _ = at(trace, len(trace) // 2 - 1)

    def stop(share: float) -> None:
        if share > 0:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        fill_errors(trace, now, stop)
    states = at(trace, len(trace) // 2 - 1)[1].half.states
    assert (states[:6] == RowState.KNOWN).all()
    assert (states[6:] == RowState.UNKNOWN).all()


def test_a_long_way_is_left_to_the_work_beside_the_view(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL_COST", 0)
    monkeypatch.setattr(module, "STEP_COST", 6 * 4 * 16)  # one tile at a time
    trace = simulate(run("flash2", {}))
    far = trace.program.index(0, 2, 3) or 0
    now, model = at(trace, far)
    assert (model.now.states[12:18] == RowState.UNKNOWN).all()
    fill_errors(trace, now, lambda share: None)
    _, model = at(trace, far)
    assert (model.now.states[:18] == RowState.KNOWN).all()
    _, model = at(trace, far + 1)  # and from there it goes on step by step
    assert (model.now.states[:18] == RowState.KNOWN).all()


def test_of_very_long_heads_some_row_blocks_are_worked_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As many as the scores of one row block go into the limit, spread from first to last."""
    monkeypatch.setattr(module, "SMALL_COST", 0)
    for fit, wanted in ((3, {0, 4, 8}), (1, {0, 8}), (4, {0, 3, 5, 8})):
        trace = simulate(run("flash2", {}, nq=54))  # nine row blocks of six rows, 18 keys
        monkeypatch.setattr(module, "MOST_SCORES", fit * 6 * 18)
        now, _ = at(trace, trace.program.index(0, 6, 4) or 0)
        fill_errors(trace, now, lambda share: None)
        _, model = at(trace, now.cursor.visit)
        assert not model.missing
        known = {row // 6 for row in np.flatnonzero(model.half.states >= RowState.KNOWN).tolist()}
        assert known == wanted | {6}  # and the current one
    monkeypatch.setattr(module, "MOST_SCORES", 54 * 18)
    trace = simulate(run("flash2", {}, nq=54))
    now, _ = at(trace, 0)
    fill_errors(trace, now, lambda share: None)
    assert (at(trace, 0)[1].half.states >= RowState.KNOWN).all()


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
    assert (model.half_overflows, model.half.count(RowState.BROKEN)) == (overs, broken)
    assert (overs > 0) == (temperature < 1)


def test_broken_rows_are_told_from_large_errors() -> None:
    chosen = with_values(run("flash2", {}, temperature=0.005), {"faults": {"no_maximum": True}})
    trace = simulate(chosen)
    _, model = at(trace, len(trace) // 2 - 1)
    broken = ~np.isfinite(trace.output[0]).all(axis=1)
    assert broken.any()
    assert (model.now.states == RowState.BROKEN).tolist() == broken.tolist()
    assert broken[model.now.worst]


def test_ulps_of_one_row() -> None:
    exact = np.array([[1.0, -3.0], [0.0, 0.0]])
    ours = exact.astype(np.float32)
    ours[0, 0] += np.spacing(np.float32(2.0)) * 4  # the unit is that of the row's largest, 3
    assert ulps(ours, exact).tolist() == [4.0, 0.0]
    ours[1, 1] = np.nan
    assert ulps(ours, exact).tolist() == [4.0, np.inf]


def test_pooling_shows_the_worst_row() -> None:
    ulp = np.array([1.0, 5.0, 2.0, 0.0, 0.0, 7.0, 3.0])
    states = np.array([2, 2, 2, 3, 0, 1, 0], dtype=np.uint8)
    pooled = Strip(np.where(states == 2, ulp, 0), states).pooled(3)
    assert pooled.ulp.tolist() == [5.0, 0.0, 0.0]
    assert pooled.states.tolist() == [2, 3, 0]
    assert Strip(ulp, states).worst == 3
    assert Strip(ulp[:3], states[:3]).worst == 1
    assert Strip(ulp[4:], states[4:]).worst is None


def test_the_first_wrong_step_is_that_of_verify() -> None:
    trace = simulate(
        with_values(run("flash2", {"causal": True}), {"faults": {"forget_alpha": True}})
    )
    found = first_wrong_step(trace, lambda share: None)
    assert found is not None
    assert found == verify(trace)
    assert found.difference is not None
    huge = simulate(
        with_values(scenario("naive", nq=2**14, d=1, rows=128, cols=128),
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
