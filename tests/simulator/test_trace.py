"""Traces: any cursor at once, in any order, and what a snapshot says there, op by op."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator import Cursor, Snapshot, Trace, simulate
from simulator.assets import SCENARIOS
from simulator.cache import BoundedCache
from simulator.errors import InputError
from simulator.interpreter import Interpreter
from simulator.ops import Op
from simulator.program import TileProgram, Visit
from simulator.row_report import row_report
from simulator.scenario import Scenario
from simulator.snapshot import TileState, tile_states
from simulator.workload import Inputs
from tests.simulator.helpers import (
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

# --- seeking -------------------------------------------------------------------------------


def arrays_of(snapshot: Snapshot) -> dict[str, np.ndarray]:
    """Return every array that a snapshot hands out."""
    out = {name: getattr(snapshot, name) for name in ("q", "k", "v", "m", "l", "o")}
    out |= {f"tile.{f.name}": getattr(snapshot.tile, f.name) for f in fields(snapshot.tile)}
    out |= {name: getattr(snapshot, name) for name in ("scores", "weights", "rescale_factor")}
    if snapshot.head is not None:
        out |= {f"head.{f.name}": getattr(snapshot.head, f.name) for f in fields(snapshot.head)}
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


def cursors(program: TileProgram) -> list[Cursor]:
    """Return every cursor of a run, in order."""
    visits = range(len(program))
    return [Cursor(visit, op) for visit in visits for op in range(len(program.ops(visit)))]


@given(scenarios(longest=12, most_groups=1), st.randoms(use_true_random=False))
def test_seeking_in_any_order_is_stepping(chosen: Scenario, random: Any) -> None:
    stepping, seeking = trace_of(chosen), trace_of(chosen)
    # A cache of nothing keeps the newest alone, so that all is computed again and again.
    seeking._blocks = BoundedCache(0, lambda block: block.bytes)
    seeking._heads = BoundedCache(0, lambda pair: pair[0].nbytes)
    seeking.engine._stretches = BoundedCache(0, lambda stretch: stretch.bytes)
    places = cursors(stepping.program)
    seen = {at: stepping.snapshot(at.visit, at.op) for at in places[:200]}
    order = list(seen)
    random.shuffle(order)
    for at in order[:60]:
        check_same(seeking.snapshot(at.visit, at.op), seen[at])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_seeking_across_many_checkpoints_is_stepping(algorithm: str) -> None:
    chosen = scenario(
        algorithm, nq=40, nk=5000, d=4, rows=20, cols=32, mask={"window": 3000, "sinks": 50}
    )
    stepping, seeking = trace_of(chosen), trace_of(chosen)
    seeking._blocks = BoundedCache(0, lambda block: block.bytes)
    seeking.engine._stretches = BoundedCache(0, lambda stretch: stretch.bytes)
    places = sorted(np.random.default_rng(0).integers(0, len(stepping), 40).tolist())
    seen = [stepping.snapshot(index) for index in places]
    for index, snapshot in reversed(list(zip(places, seen, strict=True))):
        check_same(seeking.snapshot(index), snapshot)


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


def test_caches_hold_no_more_than_they_may() -> None:
    made = []

    def make(size: int) -> Any:
        return lambda: made.append(size) or "x" * size

    cache: BoundedCache[str] = BoundedCache(10, len)
    assert cache.get("a", make(4)) == "xxxx"
    cache.get("b", make(4))
    cache.get("a", make(4))  # held, and now the newest
    cache.get("c", make(4))
    assert made == [4, 4, 4]
    assert ("a" in cache, "b" in cache, "c" in cache, cache.bytes) == (True, False, True, 8)
    cache.get("d", make(50))  # the newest is kept whatever its size
    assert ("d" in cache, "c" in cache, cache.bytes) == (True, False, 50)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_trace_keeps_a_bounded_number_of_row_blocks(algorithm: str) -> None:
    trace = trace_of(scenario(algorithm, nq=64, nk=512, rows=4, cols=16, d=8))
    trace._blocks = BoundedCache(trace.row_block(0, 0).bytes * 3, lambda block: block.bytes)
    for index in range(0, len(trace), 7):
        trace.snapshot(index)
    assert trace._blocks.bytes <= trace.row_block(0, 0).bytes * 3


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_there_is_no_cursor_outside(algorithm: str) -> None:
    trace = trace_of(scenario(algorithm))
    last = len(trace) - 1
    ops = len(trace.program.ops(last))
    assert trace.snapshot(last, ops - 1).cursor == trace.snapshot(last).cursor
    for visit, op in ((-1, None), (last + 1, None), (last, ops), (last, -1), (-1, 0), (10**9, 0)):
        with pytest.raises(IndexError, match=f"visit {visit}"):
            trace.snapshot(visit, op)


@given(scenarios(longest=10))
def test_nothing_that_is_handed_out_can_be_changed(chosen: Scenario) -> None:
    trace = trace_of(chosen)
    for at in cursors(trace.program)[::5]:
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


@dataclass
class Exact:
    """The interpreter's numbers at a cursor; NaN where something does not exist."""

    scores: np.ndarray | None
    weights: np.ndarray | None
    m: np.ndarray
    l: np.ndarray
    o: np.ndarray


def run_op_by_op(trace: Trace) -> Iterator[tuple[Visit, int, Exact]]:
    """Run the interpreter; after each op, tell what exists of the current head and tile."""
    w, interpreter = trace.workload, Interpreter(trace.program, trace.inputs)
    machine = interpreter.machine
    heads = [
        {
            "m": np.full(w.seqlen_q, np.nan),
            "l": np.full(w.seqlen_q, np.nan),
            "O": np.full((w.seqlen_q, w.value_dim), np.nan),
        }
        for _ in range(w.heads)
    ]
    exists: set[str] = set()
    for visit, number, op in interpreter.steps():
        if number == 0:
            exists = set()
        state, rows = heads[visit.head], slice(visit.rows.start, visit.rows.stop)
        chip = machine.chip
        if op.name == "clear":
            for move in op.moves:
                part = slice(move.rows.start, move.rows.stop)
                state["O"][part], state["l"][part], state["m"][part] = 0, 0, -np.inf
        if op.name == "initialise":
            state["O"][rows] = chip["O"]
            if w.algorithm == "flash2":
                state["m"][rows], state["l"][rows] = chip["m"], chip["l"]
        exists |= PRODUCES.get(op.name, set())
        if op.name == "load":
            exists |= {move.tensor for move in op.moves} & {"S", "P"}
        for name, changed in (("m", CHANGES_M), ("l", CHANGES_L), ("O", CHANGES_O)):
            if op.name in changed[w.algorithm]:
                key = f"{name}_tile" if w.algorithm == "naive" and name != "O" else name
                state[name][rows] = chip[key]
        yield (
            visit,
            number,
            Exact(
                chip["S"].copy() if "S" in exists else None,
                chip["P"].copy() if "P" in exists else None,
                state["m"].copy(),
                state["l"].copy(),
                state["O"].copy(),
            ),
        )


PRODUCES = {"scores": {"S"}, "exponentials": {"P"}}
CHANGES_M = {"flash2": {"row max"}, "flash1": {"combine"}, "naive": {"row max"}}
CHANGES_L = {"flash2": {"row sum"}, "flash1": {"combine"}, "naive": {"row sum"}}
CHANGES_O = {
    "flash2": {"rescale", "accumulate", "normalise"},
    "flash1": {"rescale", "accumulate"},
    "naive": {"accumulate"},
}


@given(scenarios(longest=12, dtypes=("float32",)))
def test_snapshots_say_what_the_interpreter_holds(chosen: Scenario) -> None:
    check_ops(trace_of(chosen))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    ("shape", "mask"),
    [
        ({"nq": 9, "nk": 4, "rows": 2, "cols": 2}, {"causal": True}),  # blind row blocks
        ({"nq": 9, "nk": 5, "rows": 2, "cols": 2}, {"causal": True}),  # and a block half blind
        ({"nq": 6, "nk": 6, "rows": 2, "cols": 9}, {"causal": True}),  # one column block
        ({"nq": 3, "nk": 3, "rows": 4, "cols": 4}, {}),  # one tile
        ({"nq": 12, "nk": 12, "rows": 3, "cols": 2}, {"causal": True, "window": 2, "sinks": 1}),
        ({"nq": 5, "nk": 7, "rows": 1, "cols": 1, "heads": 2}, {}),
    ],
)
def test_snapshots_of_corner_cases(
    algorithm: str, shape: dict[str, Any], mask: dict[str, Any]
) -> None:
    check_ops(trace_of(scenario(algorithm, mask=mask, **shape)))


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
        if op.name in ("scores", "mask"):
            s[tile] = interpreter.machine.chip["S"]
        if op.name in ("exponentials", "normalise") and interpreter.machine.chip["P"].size:
            p[tile] = p[tile] if w.algorithm == "flash2" and op.name == "normalise" else (
                interpreter.machine.chip["P"]
            )  # fmt: skip
    for index in (0, len(trace) - 1):
        now = trace.snapshot(index)
        assert now.head is not None
        check_close(now.head.s, s[now.visit.head], eps, "s")
        check_close(now.head.p, p[now.visit.head], eps, "p")


def test_large_problems_have_no_head_numbers() -> None:
    trace = trace_of(scenario("flash2", nq=1100, d=2, rows=64, cols=64))
    assert not trace.has_detail
    assert trace.snapshot(0).head is None
    many = trace_of(scenario("flash2", nq=200, d=2, rows=1, cols=1))
    assert not many.has_detail


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


@given(scenarios(longest=12))
def test_counters_rise_to_the_summary(chosen: Scenario) -> None:
    trace = trace_of(chosen)
    before = (0, 0, 0)
    for at in cursors(trace.program):
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


# --- one row beside the exact numbers ------------------------------------------------------


@given(scenarios(longest=12), st.integers(0, 40))
def test_row_report(chosen: Scenario, row: int) -> None:
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
        np.testing.assert_array_equal(np.isfinite(report.scores), visible)
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


def test_row_report_finds_a_wrong_number(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = trace_of(scenario("flash1", nq=8, d=3))
    now = trace.snapshot(len(trace) - 1)
    wrong = now.tile.o.copy()
    wrong[1, 2] += 0.25
    monkeypatch.setitem(now.__dict__, "o", wrong)
    assert row_report(now, now.visit.rows.start).error < 1e-5
    assert row_report(now, now.visit.rows.start + 1).error == pytest.approx(0.25, abs=1e-5)
    monkeypatch.setitem(now.__dict__, "o", np.full_like(wrong, np.nan))
    assert math.isnan(row_report(now, now.visit.rows.start).error)


# --- the run as a whole --------------------------------------------------------------------

SUMMARY_KEYS = {
    "algorithm", "engine", "tiles", "hbm", "sram", "matmul_flops", "visits", "max_abs_error",
    "seconds", "checked_rows",
}  # fmt: skip


@given(scenarios(longest=14))
def test_summary(chosen: Scenario) -> None:
    trace = trace_of(chosen)
    w, shares = trace.workload, []
    summary = trace.summary(shares.append)
    assert set(summary) == SUMMARY_KEYS
    assert set(summary["tiles"]) == {"total", "visited", "skipped", "full", "partial"}
    assert set(summary["hbm"]) == {"read_bytes", "write_bytes", "compulsory_bytes", "by_tensor"}
    assert set(summary["sram"]) == {"peak_bytes", "budget_bytes"}
    assert all(set(entry) == {"read", "write"} for entry in summary["hbm"]["by_tensor"].values())
    assert (summary["algorithm"], summary["engine"]) == (w.algorithm, "numpy")
    assert summary["visits"] == len(trace)
    assert summary["checked_rows"] == w.heads * w.seqlen_q
    assert summary["sram"]["budget_bytes"] == w.gpu.smem_bytes
    assert summary["seconds"] >= 0
    worst = max(
        float(np.abs(trace.output[head] - textbook(w, trace.inputs, head)[0]).max())
        for head in range(w.heads)
    )
    assert summary["max_abs_error"] == pytest.approx(worst, abs=1e-12)
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_arrays_tell_how_far_they_are() -> None:
    trace, shares = trace_of(scenario("flash2", nq=10, heads=2)), []
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


def test_time_is_that_of_bytes_and_flops() -> None:
    trace = trace_of(scenario("flash2", nq=9, dtype="float16"))
    end = trace.snapshot(len(trace) - 1)
    w = trace.workload
    assert end.time.memory == pytest.approx(end.counters.bytes / (w.gpu.tbps * 1e12))
    assert end.time.compute == pytest.approx(end.counters.flops / (w.gpu.tflops * 1e12))
    assert end.time.seconds == max(end.time.memory, end.time.compute)
    assert end.time.bound == ("memory" if end.time.memory >= end.time.compute else "compute")
    wide = trace_of(scenario("flash2", nq=9))
    assert wide.snapshot(0).time.compute is None
    assert wide.snapshot(0).time.bound == "memory"


def test_inputs_are_the_traces_own(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = scenario("flash2", nq=4)
    numbers = Inputs(*(np.zeros((1, 4, 4), np.float32) for _ in "qkv"))
    assert not trace_of(chosen, numbers).output.any()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_trace_that_has_forgotten_tells_the_same_again(algorithm: str) -> None:
    trace = simulate(SCENARIOS / f"{algorithm}.toml")
    middle = len(trace) // 2
    before = trace.snapshot(middle)
    assert trace.kept_bytes > 0
    trace.forget()
    assert trace.kept_bytes == 0
    after = trace.snapshot(middle)
    assert after.tile is not before.tile
    for name in ("s", "p", "m", "l", "o"):
        np.testing.assert_array_equal(getattr(after.tile, name), getattr(before.tile, name))


def test_a_row_outside_the_row_block_is_taken_into_it() -> None:
    trace = trace_of(scenario(nq=12, rows=4))
    now = trace.snapshot(trace.program.index(0, 1, 0) or 0)
    assert [row_report(now, row).row for row in (-5, 3, 4, 5, 7, 8, 99)] == [4, 4, 4, 5, 7, 7, 7]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_numbers_of_a_head_are_float32(algorithm: str) -> None:
    trace = trace_of(scenario(algorithm, nq=8, mask={"causal": True}))
    for visit in range(len(trace)):
        head = trace.snapshot(visit).head
        assert head is not None
        for values in (head.s, head.p, head.m, head.l, head.o):
            assert values.dtype == np.float32
