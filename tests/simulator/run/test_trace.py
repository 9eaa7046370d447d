"""Traces: any cursor at once, in any order, and what a snapshot says there, op by op."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator import Cursor, Snapshot, Trace, simulate
from simulator.base.assets import SCENARIOS
from simulator.base.errors import SCENARIO, InputError
from simulator.engines.interpreter import Interpreter
from simulator.problem.scenario import Scenario, save_scenario
from simulator.program.op import Op
from simulator.run.row_report import row_report
from tests.helpers.demos import every_cursor
from tests.helpers.op_by_op import run_op_by_op
from tests.helpers.runs import (
    ALGORITHMS,
    check_close,
    pairs_of,
    rounding,
    scenario,
    scenarios,
    textbook,
    trace_of,
    visits_in_order,
)
from tests.helpers.tile_states import TileState, tile_states
from tests.helpers.tiles import NUMBERS

# --- seeking -------------------------------------------------------------------------------


def arrays_of(snapshot: Snapshot) -> dict[str, np.ndarray]:
    """Return every array that a snapshot hands out."""
    out = {name: getattr(snapshot, name) for name in ("q", "k", "v", "m", "l", "o")}
    out |= {f"tile.{name}": getattr(snapshot.tile, name) for name in NUMBERS}
    out |= {name: getattr(snapshot, name) for name in ("scores", "weights", "rescale_factor")}
    if snapshot.head is not None:
        numbers = {**snapshot.head.pairs, **snapshot.head.results}
        out |= {f"head.{name}": values for name, values in numbers.items()}
    return {name: array for name, array in out.items() if array is not None}


def check_same(one: Snapshot, other: Snapshot) -> None:
    """Two snapshots of one cursor, to the last bit."""
    assert (one.cursor, one.visit, one.ops) == (other.cursor, other.visit, other.ops)
    assert (one.counters, one.on_chip) == (other.counters, other.on_chip)
    states = (tile_states(state.program, state.visit) for state in (one, other))
    np.testing.assert_array_equal(*states)
    first, second = arrays_of(one), arrays_of(other)
    assert first.keys() == second.keys()
    for name, array in first.items():
        assert array.dtype == second[name].dtype
        assert array.tobytes() == second[name].tobytes(), name


@pytest.mark.long
@given(scenarios(longest=12, most_groups=1), st.randoms(use_true_random=False))
def test_seeking_in_any_order_is_stepping(chosen: Scenario, random: Any) -> None:
    stepping, seeking = trace_of(chosen), trace_of(chosen)
    places = every_cursor(stepping.program)
    seen = {at: stepping.snapshot(at.visit, at.op) for at in places[:200]}
    order = list(seen)
    random.shuffle(order)
    for at in order[:60]:
        seeking.forget()  # so that all is computed again and again
        check_same(seeking.snapshot(at.visit, at.op), seen[at])


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_seeking_across_many_checkpoints_is_stepping(algorithm: str) -> None:
    chosen = scenario(
        algorithm, nq=40, nk=5000, d=4, rows=20, cols=32, mask={"window": 3000, "sinks": 50}
    )
    stepping, seeking = trace_of(chosen), trace_of(chosen)
    places = sorted(np.random.default_rng(0).integers(0, len(stepping), 40).tolist())
    seen = [stepping.snapshot(index) for index in places]
    for index, snapshot in reversed(list(zip(places, seen, strict=True))):
        seeking.forget()
        check_same(seeking.snapshot(index), snapshot)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("mask", [{}, {"causal": True, "window": 900, "sinks": 40}])
def test_a_visit_starts_where_the_one_before_ended(algorithm: str, mask: dict[str, Any]) -> None:
    # Also across checkpoints, from which the numbers are computed anew: one number, one source.
    chosen = scenario(algorithm, nq=70, nk=3000, d=4, rows=35, cols=32, mask=mask)
    trace = trace_of(chosen)
    last: dict[tuple[int, int], Snapshot] = {}
    pairs = 0
    for index in range(len(trace)):
        now = trace.snapshot(index)
        key = (now.visit.launch, now.visit.i)
        if key in last and now.visit.launch != 1:
            before = last[key].tile
            pairs += 1
            for name in ("m", "l", "o"):
                left, found = getattr(before, name), getattr(now.tile, f"{name}_prev")
                assert left.tobytes() == found.tobytes(), f"{name} at {now.visit}"
        last[key] = now
    assert pairs > 50


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_there_is_no_cursor_outside(algorithm: str) -> None:
    trace = trace_of(scenario(algorithm))
    last = len(trace) - 1
    ops = len(trace.program.ops(last))
    assert trace.snapshot(last, ops - 1).cursor == trace.snapshot(last).cursor
    for visit, op in ((-1, None), (last + 1, None), (last, ops), (last, -1), (-1, 0), (10**9, 0)):
        with pytest.raises(IndexError, match=f"visit {visit}"):
            trace.snapshot(visit, op)


@pytest.mark.long
@given(scenarios(longest=10))
def test_nothing_that_is_handed_out_can_be_changed(chosen: Scenario) -> None:
    trace = trace_of(chosen)
    for at in every_cursor(trace.program)[::5]:
        snapshot = trace.snapshot(at.visit, at.op)
        handed = arrays_of(snapshot)
        report = row_report(snapshot, snapshot.visit.rows.start)
        handed |= {"report.scores": report.scores, "report.seen": report.seen}
        for name, array in handed.items():
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
            assert not array.flags.writeable, name
    for name in ("output", "lse"):
        assert not getattr(trace, name).flags.writeable
    with pytest.raises(AttributeError):
        snapshot.cursor = Cursor(0, 0)


# --- what a snapshot says, against the interpreter -----------------------------------------


@pytest.mark.long
@given(scenarios(longest=12, dtypes=("float32",)))
def test_snapshots_say_what_the_interpreter_holds(chosen: Scenario) -> None:
    check_ops(trace_of(chosen))


@pytest.mark.long
def test_snapshots_of_one_run_of_each_algorithm() -> None:
    """With two heads, rows that see nothing, a gap between sinks and window, and ragged ends."""
    for algorithm in ALGORITHMS:
        mask = {"causal": True, "window": 2, "sinks": 1}
        check_ops(trace_of(scenario(algorithm, nq=9, nk=7, dv=3, heads=2, rows=2, cols=2,
                                    mask=mask)))  # fmt: skip


def check_ops(trace: Trace) -> None:
    """Compare snapshots at every op with the interpreter."""
    w, eps = trace.workload, rounding(trace.workload, trace.inputs)
    biggest = max(1.0, float(np.abs(trace.inputs.v).max()))
    weigh = {"m": 1.0, "l": float(w.seqlen_k), "o": biggest * w.seqlen_k}
    for visit, number, exact in run_op_by_op(trace):
        now = trace.snapshot(visit.index, number)
        what = f"at {visit}, {now.op.name}"
        for name in ("scores", "weights"):
            ours, theirs = getattr(now, name), getattr(exact, name)
            assert (ours is None) == (theirs is None), f"{name} {what}"
            if theirs is not None:
                check_close(ours, theirs, eps, f"{name} {what}")
        assert now.head is not None
        rows = slice(visit.rows.start, visit.rows.stop)
        for name, factor in weigh.items():
            whole = getattr(exact, name)
            check_close(getattr(now.head, name), whole, eps * factor, f"head.{name} {what}")
            if not np.isnan(whole[rows]).any():
                check_close(getattr(now, name), whole[rows], eps * factor, f"{name} {what}")


@given(scenarios(longest=12))
def test_head_matrices_hold_every_visited_tile(chosen: Scenario) -> None:
    trace = trace_of(chosen)
    w, eps = trace.workload, rounding(trace.workload, trace.inputs)
    s = np.full((w.heads, w.seqlen_q, w.seqlen_k), np.nan)
    p = s.copy()
    interpreter = Interpreter(trace.program, trace.inputs)
    for visit, _, op in interpreter.steps():
        tile = (visit.head, slice(visit.rows.start, visit.rows.stop),
                slice(visit.cols.start, visit.cols.stop))  # fmt: skip
        if op.name in ("scores", "soft-cap", "bias", "mask"):
            s[tile] = interpreter.state.chip["S"]
        if op.name in ("exponentials", "normalise") and interpreter.state.chip["P"].size:
            p[tile] = p[tile] if w.algorithm == "flash2" and op.name == "normalise" else (
                interpreter.state.chip["P"]
            )  # fmt: skip
    for index in (0, len(trace) - 1):
        now = trace.snapshot(index)
        check_close(now.head.s, s[now.visit.head], eps, "s")
        check_close(now.head.p, p[now.visit.head], eps, "p")


@pytest.mark.parametrize(
    ("most", "more"),
    [
        ({"nq": 2**10, "nk": 2**10}, {"nk": 2**10 + 1}),  # 2**20 scores
        ({"nq": 2**12, "nk": 8, "dv": 2**8}, {"dv": 2**8 + 1}),  # numbers of O
        ({"nq": 2**7, "nk": 2**7, "rows": 1, "cols": 1}, {"nq": 2**7 + 1}),  # 2**14 tiles
    ],
)
def test_up_to_which_size_snapshots_carry_all_numbers(
    most: dict[str, int], more: dict[str, int]
) -> None:
    shape = {"rows": 64, "cols": 64, "d": 1, **most}
    assert trace_of(scenario("flash2", **shape)).has_detail
    assert not trace_of(scenario("flash2", **{**shape, **more})).has_detail


@pytest.mark.long
@given(scenarios(longest=14))
def test_tile_states(chosen: Scenario) -> None:
    trace = trace_of(chosen)
    w = trace.workload
    kinds = pairs_of(w).kinds(w.rows, w.cols)
    order = list(visits_in_order(w))
    for index, (launch, head, i, j) in list(enumerate(order))[::3]:
        states = tile_states(trace.program, trace.snapshot(index).visit)
        past = {(a, b) for n, h, a, b in order[:index] if (n, h) == (launch, head)}
        assert states.dtype == np.uint8
        for tile in np.ndindex(*kinds.shape):
            if launch == 1:
                expected = TileState.CURRENT if tile[0] == i else TileState.USED
            elif tile == (i, j):
                expected = TileState.CURRENT
            elif w.algorithm != "naive" and not kinds[tile]:
                expected = TileState.SKIPPED
            elif tile in past or launch > 0:
                expected = TileState.USED
            else:
                expected = TileState.PENDING
            assert states[tile] == expected


@pytest.mark.long
@given(scenarios(longest=12))
def test_counters_rise_to_the_summary(chosen: Scenario) -> None:
    trace, before = trace_of(chosen), (0, 0, 0)
    for at in every_cursor(trace.program):
        counters = trace.snapshot(at.visit, at.op).counters
        now = (counters.read_bytes, counters.write_bytes, counters.flops)
        op: Op = trace.program.ops(at.visit)[at.op]
        step = (op.read_bytes, op.write_bytes, op.flops)
        assert now == tuple(a + b for a, b in zip(before, step, strict=True))
        before = now
    summary = trace.summary()
    assert (summary["hbm"]["read_bytes"], summary["hbm"]["write_bytes"]) == before[:2]
    assert summary["matmul_flops"] == before[2]
    assert counters == trace.program.totals


# --- the run as a whole --------------------------------------------------------------------

SUMMARY_KEYS = {
    "algorithm", "engine", "tiles", "hbm", "sram", "matmul_flops", "visits", "max_abs_error",
    "seconds", "checked_rows", "model",
}  # fmt: skip


@given(scenarios(longest=14))
def test_summary(chosen: Scenario) -> None:
    trace = trace_of(chosen)
    w, shares = trace.workload, []
    started = time.perf_counter()
    summary = trace.summary(shares.append)
    assert 0 <= summary["seconds"] <= time.perf_counter() - started
    assert set(summary) == SUMMARY_KEYS
    assert set(summary["tiles"]) == {"total", "visited", "skipped", "full", "partial"}
    assert set(summary["hbm"]) == {"read_bytes", "write_bytes", "compulsory_bytes", "by_tensor"}
    assert set(summary["sram"]) == {"peak_bytes", "budget_bytes"}
    assert all(set(entry) == {"read", "write"} for entry in summary["hbm"]["by_tensor"].values())
    assert (summary["algorithm"], summary["engine"]) == (w.algorithm, "numpy")
    assert summary["visits"] == len(trace)
    assert summary["checked_rows"] == w.heads * w.seqlen_q
    assert summary["sram"]["budget_bytes"] == w.gpu.smem_bytes
    worst = max(
        float(np.abs(trace.output[head] - textbook(w, trace.inputs, head)[0]).max())
        for head in range(w.heads)
    )
    assert summary["max_abs_error"] == pytest.approx(worst, abs=1e-12)
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_arrays_tell_how_far_they_are() -> None:
    trace, shares = trace_of(scenario("flash2", nq=10, heads=2)), []
    assert trace.run()[1] == {}  # kept only where they are asked for
    trace.arrays(shares.append)
    assert shares == pytest.approx([n / 6 for n in range(1, 7)])

    class StoppedError(Exception):
        pass

    def stop(_: float) -> None:
        raise StoppedError

    with pytest.raises(StoppedError):
        trace.arrays(stop)


def test_simulate() -> None:
    trace = simulate(scenario("flash2", nq=9, heads=2), engine="numpy")
    assert (len(trace), trace.output.shape, trace.lse.shape) == (18, (2, 9, 4), (2, 9))
    assert trace.snapshot(visit=5).cursor.visit == 5
    assert trace.snapshot(visit=5, op=3).op.name == trace.program.ops(5)[3].name
    with pytest.raises(InputError, match='simulate: engine = "abacus": expected "numpy"'):
        simulate(scenario(), engine="abacus")


def test_time_so_far_ends_at_that_of_the_summary() -> None:
    trace = trace_of(scenario("flash2", nq=9, dtype="float16"))
    last = len(trace) - 1
    ops = len(trace.program.ops(last))
    spent = [trace.snapshot(last, op).seconds for op in range(ops)]
    assert spent == sorted(set(spent))
    assert spent[-1] == pytest.approx(trace.summary()["model"]["seconds"])
    assert 0 < trace.snapshot(0, 0).seconds < spent[0]


def test_what_is_wrong_is_told_of_the_file_that_was_given(tmp_path: Path) -> None:
    path, chosen = tmp_path / "far.toml", scenario(heads=2, head=[5])  # there is no head 5
    save_scenario(chosen, path)
    for what, source in ((path, str(path)), (chosen, SCENARIO)):
        with pytest.raises(InputError, match=r"input\.head") as told:
            simulate(what)
        assert told.value.source == source
    path.write_text('[input]\nsource = "file"\npath = "none.npz"\n')
    with pytest.raises(InputError) as told:
        simulate(path)
    assert told.value.source.endswith("none.npz")


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_trace_that_has_forgotten_tells_the_same_again(algorithm: str) -> None:
    trace = simulate(SCENARIOS / f"{algorithm}.toml")
    middle = len(trace) // 2
    before = trace.snapshot(middle)
    assert trace.kept_bytes > 0
    trace.forget()
    assert trace.kept_bytes == 0
    assert trace.engine._stretches.bytes == 0
    after = trace.snapshot(middle)
    assert after.tile is not before.tile
    for name in ("s", "p", "m", "l", "o"):
        np.testing.assert_array_equal(getattr(after.tile, name), getattr(before.tile, name))
