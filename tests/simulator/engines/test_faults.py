"""Faults: each does what it says, `verify` names its first step, and nothing breaks of NaN."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from kernels.devices.registry import FAULTS_NOTE, choose_engine
from simulator.base.errors import InputError
from simulator.engines.numpy_engine import numpy_engine
from simulator.engines.op_engine import OpEngine
from simulator.problem.scenario import (
    Scenario,
    load_scenario,
    parse_scenario,
    save_scenario,
    scenario_tables,
    scenario_toml,
    with_values,
)
from simulator.problem.workload import Inputs, Workload, read_inputs, resolve
from simulator.program.faults import FAULTS, without_effect
from simulator.program.ops import over
from simulator.run.cosimulation import verify
from simulator.run.row_report import row_report
from tests.helpers.demos import every_op
from tests.helpers.faulty_runs import EVERY, NAMES, causal, faulty
from tests.helpers.runs import ALGORITHMS, check_close, pairs_of, scenario, scenarios, trace_of
from tests.helpers.tiles import NUMBERS

# --- without a fault ---------------------------------------------------------------------------


@pytest.mark.long
@given(scenarios())
def test_without_a_fault_the_engine_agrees_with_float64_and_with_numpy(chosen: Scenario) -> None:
    trace, other = faulty(chosen), trace_of(chosen)
    verdict = verify(trace)
    assert verdict.difference is None, str(verdict)
    # Each has passed the tolerance of `verify`; what that does not see is compared here.
    check_close(trace.output, other.output.astype(np.float64), 2e-2, "O in HBM")
    check_close(trace.lse, other.lse.astype(np.float64), 1e-4, "lse")
    for head in range(trace.workload.heads):
        for i in range(trace.workload.grid.Tr):
            blocks = trace.row_block(head, i), other.row_block(head, i)
            pairs = zip(
                *(
                    t.engine.row_matrices(head, i, b)
                    for t, b in zip((trace, other), blocks, strict=True)
                ),
                strict=True,
            )
            for ours, theirs in pairs:
                np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_in_float64_it_is_exact_to_float64() -> None:
    for algorithm in ALGORITHMS:
        trace = trace_of(causal(algorithm))
        engine = OpEngine(trace.workload, trace.inputs, np.float64)
        for index in range(len(trace)):
            visit = trace.program.visit(index)
            tile = engine.tile(visit, engine.row_block(visit.head, visit.i))
            kinds = {getattr(tile, name).dtype for name in NUMBERS if name != "seen"}
            assert kinds == {np.dtype(np.float64)}
        block = engine.row_block(0, 0)
        for array in (block.m, block.l, block.lse, *engine.row_matrices(0, 0, block)):
            assert array.dtype == np.float64


# --- what each does, by hand -------------------------------------------------------------------


def half(x: Any) -> Any:
    return np.asarray(x).astype(np.float16).astype(np.float64)


def by_hand(w: Workload, inputs: Inputs, head: int, row: int, fault: str) -> np.ndarray:
    """Return O of a row with one fault, in float64, as its sentence says it."""
    pairs, group = pairs_of(w), w.kv_head_of[head]
    q, k, v = (
        x.astype(np.float64) for x in (inputs.q[head, row], inputs.k[group], inputs.v[group])
    )
    seen = np.array([pairs.sees(row, j) for j in range(w.seqlen_k)])
    scale = w.scale / w.temperature
    s = k @ q * (1.0 if fault == "late_scale" else scale)
    kinds = pairs.kinds(w.rows, w.cols)[row // w.rows]
    naive = w.algorithm == "naive"
    tiles = [
        range(j * w.cols, min((j + 1) * w.cols, w.seqlen_k))
        for j in range(len(kinds))
        if naive or kinds[j]
    ]
    counted = np.ones_like(seen) if fault == "late_mask" else seen
    late = (lambda p: np.where(seen, p, 0.0)) if fault == "late_mask" else (lambda p: p)
    after = scale if fault == "late_scale" else 1.0
    keep = half if fault == "half_accumulator" else (lambda x: x)
    m, l, o = -np.inf, 0.0, np.zeros(w.value_dim)
    if naive:
        keys = [j for tile in tiles for j in tile]
        m = 0.0 if fault == "no_maximum" else s[keys][counted[keys]].max(initial=-np.inf)
        m = m if m > -np.inf else 0.0
        for tile in tiles:
            l = float(keep(l + np.exp(s[tile])[counted[tile]].sum() * np.exp(-m)))
        for tile in tiles:
            p = late(np.where(counted, np.exp(s - m), 0.0))[tile] * after / (l or 1.0)
            o = keep(o + p @ v[tile])
        return o
    for tile in tiles:
        here = s[tile][counted[tile]]
        top = here.max(initial=-np.inf)
        new = max(m, top)
        if fault == "no_maximum":
            new = 0.0
        if fault == "drop_previous_maximum":
            new = top
        by = 0.0 if new == -np.inf else new
        alpha = 0.0 if m == -np.inf else np.exp(m - by)
        if fault == "forget_alpha":
            alpha = 1.0
        p = np.where(counted[tile], np.exp(np.where(counted[tile], s[tile], 0) - by), 0.0)
        used = late(np.where(counted, np.exp(np.where(counted, s, 0.0) - by), 0.0))[tile] * after
        if w.algorithm == "flash2":
            l, o = float(keep(alpha * l + p.sum())), keep(keep(alpha * o) + used @ v[tile])
        else:
            before, l = alpha * l, float(keep(alpha * l + p.sum()))
            o = keep(keep(before / (l or 1) * o) + used @ v[tile] / (l or 1))
        m = new
    return o if w.algorithm == "flash1" else o / (l or 1.0)


@pytest.mark.long
def test_a_fault_does_what_it_says() -> None:
    for fault, algorithm in product(NAMES, ALGORITHMS):
        trace = faulty(causal(algorithm), fault)
        # Rounding to float16 may fall the other way where float32 is a hair off.
        near = 2e-3 if fault == "half_accumulator" else 2e-5
        for head, row in product(range(2), range(24)):
            hand = by_hand(trace.workload, trace.inputs, head, row, fault)
            what = f"{fault} in {algorithm}, head {head}, row {row}"
            check_close(trace.output[head, row], hand, near, what)


def test_late_faults_change_what_is_multiplied_by_v_alone() -> None:
    for algorithm, launch in (("naive", 1), ("flash1", 0), ("flash2", 0)):
        right, wrong = (faulty(causal(algorithm), *names) for names in ((), ("late_mask",)))
        scaled = faulty(causal(algorithm), "late_scale")
        both = faulty(causal(algorithm), "late_mask", "late_scale")
        index = right.program.index(0, 1, 1, launch) or 0
        scale = np.float32(right.workload.logit_scale)
        plain, masked, late, all_late = (t.tile(index) for t in (right, wrong, scaled, both))
        assert not plain.seen.all()
        hidden = np.where(plain.seen, masked.p, 0)
        both_late = np.where(plain.seen, all_late.p * scale, 0)
        assert (masked.p[~plain.seen] > 0).all()
        used = (plain.p, hidden, late.p * scale, both_late)
        for tile, weights in zip((plain, masked, late, all_late), used, strict=True):
            by = over(np.ones_like(tile.l), tile.l)[:, None] if algorithm == "naive" else 1
            np.testing.assert_allclose(tile.p_used, weights * by, rtol=1e-6)


FIRST = {
    ("forget_alpha", "flash1"): ("combine", "l"),
    ("forget_alpha", "flash2"): ("row sum", "l"),
    ("no_maximum", "naive"): ("row max", "m"),
    ("no_maximum", "flash1"): ("row max", "m of the tile"),
    ("no_maximum", "flash2"): ("row max", "m"),
    ("drop_previous_maximum", "flash1"): ("combine", "m"),
    ("drop_previous_maximum", "flash2"): ("row max", "m"),
    ("late_scale", "naive"): ("scores", "S"),
    ("late_scale", "flash1"): ("scores", "S"),
    ("late_scale", "flash2"): ("scores", "S"),
    ("late_mask", "naive"): ("mask", "S"),
    ("late_mask", "flash1"): ("mask", "S"),
    ("late_mask", "flash2"): ("mask", "S"),
    ("half_accumulator", "naive"): ("row sum", "l"),
    ("half_accumulator", "flash1"): ("combine", "l"),
    ("half_accumulator", "flash2"): ("row sum", "l"),
}


@pytest.mark.sweep(keep=9)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("fault", NAMES)
@pytest.mark.parametrize("temperature", [1.0, 0.1])
def test_verify_names_the_first_step(fault: str, algorithm: str, temperature: float) -> None:
    chosen = causal(algorithm, temperature=temperature)
    assert verify(faulty(chosen)).difference is None
    found = verify(faulty(chosen, fault)).difference
    spec = next(each for each in FAULTS if each.name == fault)
    if algorithm not in spec.algorithms:
        assert found is None
        assert without_effect(spec, resolve(chosen))
        return
    assert not without_effect(spec, resolve(chosen))
    op, quantity = FIRST[fault, algorithm]
    assert (found.op, found.quantity.split("[")[0]) == (op, quantity)


def test_drop_previous_maximum_is_right_until_a_row_sees_nothing_in_a_tile() -> None:
    # Without a mask any reference cancels: m is wrong, O is not.
    open_, cut = (
        scenario("flash2", nq=16, d=8, rows=8, cols=4, mask=mask)
        for mask in ({}, {"causal": True, "window": 3, "sinks": 2})
    )
    for chosen, right in ((open_, True), (cut, False)):
        trace = faulty(chosen, "drop_previous_maximum")
        assert verify(trace).difference is not None
        assert (trace.summary()["max_abs_error"] < 1e-5) is right


# --- infinities and NaN ------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_overflow_is_quiet_and_its_summary_is_json(algorithm: str) -> None:
    unscaled = tuple(name for name in NAMES if name != "late_scale")
    for names in (("no_maximum",), unscaled, ("no_maximum", "half_accumulator")):
        trace = faulty(causal(algorithm, temperature=0.001), *names)
        assert not np.isfinite(trace.output).all()
        summary = trace.summary()
        assert summary["max_abs_error"] is None
        text = json.dumps(summary, allow_nan=False)
        assert json.loads(text)["engine"] == "numpy"
        for now in every_op(trace):
            assert now.wrong is not None
            row_report(now, now.visit.rows.start)


# --- scenarios, engines, words -----------------------------------------------------------------


def test_files_without_faults_are_as_before(tmp_path: Path) -> None:
    chosen = causal("flash2")
    assert "faults" not in scenario_tables(chosen)
    assert "faults" not in scenario_toml(chosen)
    on = with_values(chosen, {"faults": {"late_mask": True}})
    assert scenario_tables(on)["faults"] == {"late_mask": True}
    assert with_values(on, {"faults": {"late_mask": None}}) == chosen
    assert scenario_toml(with_values(on, {"faults": {"late_mask": None}})) == scenario_toml(chosen)
    path = tmp_path / "on.toml"
    save_scenario(on, path)
    assert load_scenario(path) == on


def test_the_keys_are_those_of_the_table_and_no_others() -> None:
    assert tuple(type(Scenario().faults).model_fields) == EVERY
    with pytest.raises(InputError, match=r"faults\.no_max = true: expected one of forget_alpha"):
        parse_scenario({"faults": {"no_max": True}})
    with pytest.raises(InputError, match=r"faults\.late_mask = 1: expected true or false"):
        parse_scenario({"faults": {"late_mask": 1}})


def test_only_numpy_makes_faults() -> None:
    w = resolve(with_values(causal("flash2"), {"faults": {"no_maximum": True}}))
    inputs = read_inputs(w)
    for name in ("auto", "numpy"):
        engine, note = choose_engine(name, w, inputs)
        assert isinstance(engine, OpEngine)
        assert note == FAULTS_NOTE
    for name in ("host", "cupy"):
        with pytest.raises(InputError, match=f'engine = "{name}": expected auto or numpy') as told:
            choose_engine(name, w, inputs)
        assert "\n" not in str(told.value)
    assert isinstance(numpy_engine(w, inputs), OpEngine)
    assert not isinstance(numpy_engine(resolve(causal("flash2")), inputs), OpEngine)


@pytest.mark.parametrize(
    ("fault", "chosen", "why"),
    [
        ("late_mask", scenario("flash2"), "there is no mask here"),
        ("late_mask", scenario("flash2", mask={"causal": True}), ""),
        ("late_mask", scenario("flash2", mask={"window": 1}), ""),
        ("late_scale", scenario("flash2", scale=1.0), "the scale is 1 here"),
        ("late_scale", scenario("flash2", scale=2.0, temperature=2.0), "the scale is 1 here"),
        ("late_scale", scenario("flash2", scale=1.0, temperature=2.0), ""),
        ("no_maximum", scenario("flash2"), ""),
    ],
)
def test_why_a_fault_does_nothing_here(fault: str, chosen: Scenario, why: str) -> None:
    row = next(each for each in FAULTS if each.name == fault)
    assert without_effect(row, resolve(chosen)) == why


def test_why_a_fault_does_nothing_in_an_algorithm() -> None:
    for row in (fault for fault in FAULTS if fault.name in NAMES):
        for algorithm in ALGORITHMS:
            why = without_effect(row, resolve(scenario(algorithm, mask={"causal": True})))
            assert why == ("" if algorithm in row.algorithms else row.instead)


def test_the_matrices_of_a_head_leave_no_tile_behind() -> None:
    trace = faulty(causal("flash2"), "half_accumulator")
    block = trace.row_block(0, 2)
    engine = trace.engine
    assert isinstance(engine, OpEngine)
    s, p = engine.row_matrices(0, 2, block)
    assert engine.kept_bytes == 0
    for index in trace.program.of_row_block(0, 2):
        visit = trace.program.visit(index)
        tile = engine.tile(visit, block)
        cols = slice(visit.cols.start, visit.cols.stop)
        assert np.array_equal(tile.last("S"), s[:, cols])
        assert np.array_equal(tile.last("P"), p[:, cols])


@pytest.mark.long
def test_a_row_block_of_many_visits() -> None:
    shape = {"nq": 1, "nk": 4_000, "d": 4, "rows": 1, "cols": 1}
    chosen = with_values(scenario("flash2", **shape), {"faults": {"late_scale": True}})
    trace = trace_of(chosen)
    block = trace.row_block(0, 0)
    last = len(trace.program) - 1
    for visit in (0, 31, 32, 2_000, last):
        tile = trace.tile(visit)
        assert tile.last("m")[0] == block.m[0, trace.program.visit(visit).j]
        assert tile.last("l")[0] == block.l[0, trace.program.visit(visit).j]
