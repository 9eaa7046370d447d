"""The comparison's figures are the counters', its places in step are what a plain search finds."""

import json
import math
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator import simulate
from simulator.base.assets import SCENARIOS
from simulator.engines.numpy_engine import NumpyEngine, numpy_engine
from simulator.problem.filling import each_sequence
from simulator.problem.scenario import load_scenario, save_scenario, with_values
from simulator.program.algorithms import tile_program
from simulator.study.compare import (
    Comparison,
    _since,
    at_scale,
    comparison_of,
    run_all,
    same_numbers_key,
    visit_shared_bytes,
)
from simulator.timing.run_time import run_time
from tests.helpers.demos import demo
from tests.helpers.runs import (
    ALGORITHMS,
    program_of,
    scenario,
    scenarios,
    trace_of,
    visits_in_order,
)
from ui.app.cli import main

MIB = 2**20
DEMOS = sorted(path.stem for path in SCENARIOS.glob("*.toml") if path.stem != "real-scale")


def counted(program, visits: int) -> dict[str, int]:
    """Add up the ops of the first visits, one by one."""
    out = {"read": 0, "write": 0, "flops": 0}
    for visit in range(visits):
        for op in program.ops(visit):
            out["flops"] += op.flops
            out["read" if op.loads else "write"] += sum(move.bytes for move in op.moves)
    return out


@pytest.mark.parametrize(
    ("d", "rows", "cols", "mib"),
    [(128, 128, 64, (194.0, 328.0, 66.0)), (64, 128, 128, (161.0, 84.0, 33.0))],
)
def test_no_winner_is_assumed(d, rows, cols, mib):
    program = program_of(scenario("flash2", 4096, d=d, rows=rows, cols=cols, dtype="float16"))
    totals = Comparison(program).totals
    assert tuple(total.algorithm for total in totals) == ALGORITHMS
    for total, expected in zip(totals, mib, strict=True):
        assert round(total.counters.bytes / MIB, 1) == expected
    naive, flash1, flash2 = totals
    assert naive.square == 2 * 2 * 4096**2
    assert flash1.square == flash2.square == 0
    assert flash1.intensity == 4 * 4096**2 * d / flash1.counters.bytes


@pytest.mark.sweep(keep=4)
@pytest.mark.parametrize("name", DEMOS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_totals_are_those_of_the_run_command(name, algorithm, tmp_path, capsys):
    chosen = each_sequence(load_scenario(SCENARIOS / f"{name}.toml"))[0]
    totals = comparison_of(demo(name).program).totals
    total = totals[ALGORITHMS.index(algorithm)]
    algorithm = total.algorithm  # a backward pass is set beside others
    path = tmp_path / "one.toml"
    save_scenario(with_values(chosen, {"attention": {"algorithm": algorithm}}), path)
    assert main(["run", str(path), "--json", "--engine", "numpy"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["algorithm"] == total.algorithm
    assert told["hbm"]["read_bytes"] == total.counters.read_bytes
    assert told["hbm"]["write_bytes"] == total.counters.write_bytes
    assert told["hbm"]["compulsory_bytes"] == total.compulsory
    by_tensor = {
        tensor: {"read": total.counters.read[tensor], "write": total.counters.write[tensor]}
        for tensor in total.counters.read
    }
    assert told["hbm"]["by_tensor"] == by_tensor
    assert told["sram"]["peak_bytes"] == total.peak
    assert told["matmul_flops"] == total.counters.flops
    assert told["visits"] == total.visits


@pytest.mark.long
@settings(max_examples=settings.default.max_examples * 2 // 3)
@given(scenarios(longest=12), st.data())
def test_all_three_are_kept_in_step(chosen, data):
    trace = trace_of(chosen)
    if not len(trace):
        return
    comparison = Comparison(trace.program)
    w = trace.workload
    visit = data.draw(st.integers(0, len(trace) - 1))
    op = data.draw(st.integers(0, len(trace.program.ops(visit)) - 1))
    now = trace.snapshot(visit, op)
    done = visit + (op == len(now.ops) - 1)
    step = comparison.at(now)
    for by_tile, by_time in zip(step.by_tile, step.by_time, strict=True):
        name = by_tile.algorithm
        other = replace(w, algorithm=name)
        program, visits = tile_program(other), list(visits_in_order(other))
        if name == w.algorithm:
            assert by_tile == by_time
            assert by_tile.counters == now.counters
            assert (by_tile.visits, by_tile.finished) == (done, done == len(visits))
            continue
        assert by_tile.visits == min(done, len(visits))
        slowest, spent = 0, 0.0  # a plain search: as many visits as stay within the time
        launches = run_time(program).launches
        for k in range(len(visits)):
            of = program.visit(k).launch
            spent += sum(each.seconds for each in launches if each.number == of) / program.sizes[of]
            if spent <= now.seconds * (1 + 1e-9):
                slowest = k + 1
        assert by_time.visits == slowest
        for place in (by_tile, by_time):
            sums = counted(program, place.visits)
            assert place.counters.read_bytes == sums["read"]
            assert place.counters.write_bytes == sums["write"]
            assert place.counters.flops == sums["flops"]
            assert place.finished is (place.visits == len(visits))
            if place.visits:
                launch, head, i, j = visits[place.visits - 1]
                found = (place.visit.launch, place.visit.head, place.visit.i, place.visit.j)
                assert found == (launch, head, i, j)
            else:
                assert place.visit is None


@pytest.mark.parametrize("name", ["naive", "flash1", "flash2", "causal", "grouped-heads"])
def test_shared_memory_of_a_visit_is_the_most_over_its_ops(name):
    program = demo(name).program
    for visit in range(len(program)):
        held = [
            sum(tile.bytes for tile in program.on_chip(visit, op) if tile.place == "shared")
            for op in range(len(program.ops(visit)))
        ]
        assert visit_shared_bytes(program, visit) == max(held) <= program.peak_shared_bytes


def requested(w, algorithm: str, keys: int, rows: int, cols: int) -> int:
    """Count the bytes of a run of another length and with other tiles by its tile program."""
    mask = replace(w.mask, seqlen_q=keys, seqlen_k=keys)
    at = replace(w, algorithm=algorithm, seqlen_q=keys, seqlen_k=keys, mask=mask)
    return tile_program(replace(at, rows=rows, cols=cols)).totals.bytes


@pytest.mark.parametrize("name", ["flash2", "flash1", "causal", "large-logits"])
def test_a_short_run_is_held_against_a_long_one(name):
    program = demo(name).program
    scale, w = at_scale(program), program.workload
    assert (scale.keys, scale.rows, scale.cols) == (16384, 128, 128)

    def count(algorithm: str, keys: int) -> int:
        return requested(w, algorithm, keys, scale.rows, scale.cols)

    assert scale.bytes == {each: count(each, 16384) for each in ALGORITHMS}
    assert scale.times("flash2") == count("naive", 16384) / count("flash2", 16384)
    assert scale.times("flash2") > scale.times("flash1") > 1, "what the lessons claim"
    assert count("flash1", scale.since) < count("naive", scale.since)
    assert count("flash1", scale.since - 1) >= count("naive", scale.since - 1)


def test_a_run_that_shows_it_itself_is_held_against_nothing():
    long = scenario("flash2", 4096, d=64, rows=128, cols=128, dtype="float16")
    assert at_scale(program_of(long)) is None
    assert at_scale(demo("kv-cache").program) is None, "decoding never saves much"
    small_tiles = scenario("flash2", 32768, d=64, rows=16, cols=16, dtype="float16")
    assert at_scale(program_of(small_tiles)) is None, "nothing longer to hold it against"


@pytest.mark.long
def test_a_run_is_short_if_it_shows_less_than_half_of_what_a_long_one_would():
    found = set()
    for keys, tile in product((64, 512, 1024, 2048, 4096, 8192, 16383, 16384), (16, 64, 128)):
        program = program_of(scenario("flash2", keys, d=64, rows=tile, cols=tile, dtype="float16"))
        w = program.workload
        here = {name: requested(w, name, keys, tile, tile) for name in ALGORITHMS}
        there = {name: requested(w, name, 16384, 128, 128) for name in ALGORITHMS}
        best = min(there, key=there.get)
        share = (here["naive"] / here[best]) / (there["naive"] / there[best])
        is_short = keys < 16384 and share < 0.5
        assert (at_scale(program) is not None) == is_short
        found.add((is_short, round(share, 1)))
    assert {(True, 0.4), (False, 0.6), (False, 1.0)} <= found


def test_the_least_n_from_which_on_something_holds_is_found():
    for first in (*range(1, 20), 1000, 1024, 1025, 2**17 - 1, 2**17, 2**17 + 1):
        found = _since(lambda keys, first=first: keys >= first)
        assert found == (first if first <= 2**17 else None)


def test_engines_run_all_three_on_the_same_numbers():
    trace = demo("grouped-heads")
    told = []
    runs = run_all(trace, NumpyEngine, told.append)
    assert list(runs) == list(ALGORITHMS)
    assert told == sorted(told)
    assert told[-1] == 1
    for name, run in runs.items():
        workload = replace(trace.workload, algorithm=name)
        own = simulate(with_values(trace.workload.scenario, {"attention": {"algorithm": name}}))
        assert run.max_abs_error == own.summary()["max_abs_error"] < 2e-3  # O is float16
        assert run.checked_rows == workload.heads * workload.seqlen_q
        assert run.engine == "numpy"
        assert run.seconds > 0


def test_results_hold_while_only_the_algorithm_changes():
    trace = trace_of(scenario("flash2"))
    other = trace_of(scenario("naive"), trace.inputs)
    assert same_numbers_key(trace) == same_numbers_key(other)
    assert same_numbers_key(trace) != same_numbers_key(trace_of(scenario("flash2")))
    wider = trace_of(scenario("flash2", rows=8), trace.inputs)
    assert same_numbers_key(trace) != same_numbers_key(wider)


def test_an_error_that_a_fault_has_made_infinite_is_no_number() -> None:
    chosen = with_values(
        scenario("flash2", nq=8, d=4, temperature=1e-4), {"faults": {"no_maximum": True}}
    )
    told: list[float] = []
    runs = run_all(simulate(chosen), numpy_engine, told.append)
    assert list(runs) == ["naive", "flash1", "flash2"]
    assert all(math.isnan(run.max_abs_error) for run in runs.values())
    told.clear()
    clean = run_all(simulate(scenario("flash2", nq=8, d=4, rows=4)), numpy_engine, told.append)
    assert told == pytest.approx([n / 6 for n in range(1, 7)])  # two row blocks of each
    assert all(0 <= run.max_abs_error < 1e-5 for run in clean.values())


def test_a_position_tells_what_its_last_visit_holds_on_chip():
    program = program_of(scenario("flash2", nq=10, nk=10, mask={"causal": True}))
    comparison = Comparison(program)
    for name in ALGORITHMS:
        own = comparison.programs[name]
        start = comparison.after(name, 0)
        assert (start.visit, start.on_chip, start.finished) == (None, 0, False)
        for visits in range(1, len(own) + 1):
            found = comparison.after(name, visits)
            assert found.visit == own.visit(visits - 1)
            assert found.on_chip == visit_shared_bytes(own, visits - 1) > 0
            assert found.finished == (visits == len(own))
