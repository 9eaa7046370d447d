"""One run has one time: below the board, in Compare, its race, Schedule, Sweep and Roofline."""

import pytest

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import load_scenario, with_values
from simulator.program.algorithms import beside
from simulator.run.trace import simulate
from simulator.study.compare import comparison_of
from simulator.study.race import race_of
from simulator.study.roofline import timed_roofline, whole_phase
from simulator.study.sweep import own_value, sweep
from simulator.timing.duration import duration_of
from tests.helpers.runs import program_of, scenario
from ui.panels.roofline.study import ROOFLINE
from ui.panels.schedule.study import schedule_state
from ui.panels.schedule.words import figures

FULL = scenario("flash2", nq=16384, d=128, heads=1, rows=128, cols=128, dtype="float16")
RUNS = {
    "causal": load_scenario(SCENARIOS / "causal.toml"),
    "naive": load_scenario(SCENARIOS / "naive.toml"),
    "flash1": load_scenario(SCENARIOS / "flash1.toml"),
    "grouped": scenario("flash2", nq=1000, d=64, heads=8, kv_heads=2, rows=64, cols=64,
                        dtype="bfloat16", mask={"causal": True, "window": 300}),
    "small tiles": scenario("flash1", nq=512, d=32, heads=4, rows=16, cols=16),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_all_say_the_same_seconds(name: str) -> None:
    program = program_of(RUNS[name])
    w, own = program.workload, duration_of(program)
    assert own.model is not None
    expected = {each: duration_of(program_of(with_values(RUNS[name], {"attention": {
        "algorithm": each}}))).seconds for each in beside(w.algorithm)}  # fmt: skip
    assert expected[w.algorithm] == own.seconds
    compared = {each.algorithm: each.duration.seconds for each in comparison_of(program).totals}
    assert compared == expected
    rows = schedule_state(program, "algorithms", "model").rows
    assert {row.schedule.program.algorithm.name: row.schedule.seconds for row in rows} == expected
    (alone,) = schedule_state(program, "run", "model").rows
    assert alone.schedule.seconds == own.seconds
    for axis in ("N", "Br", "Bc", "d"):
        found = sweep(w, axis, [own_value(w, axis)], timed=True)
        assert {each: times[0].seconds for each, times in found.durations.items()} == expected
    runs = timed_roofline(program, w.gpu)
    for each, seconds in expected.items():
        assert runs.place(each, whole_phase(each)).duration.seconds == seconds


@pytest.mark.parametrize("name", ["causal", "naive"])
def test_the_line_below_the_board_ends_with_these_seconds(name: str) -> None:
    trace = simulate(RUNS[name])
    last = len(trace.program) - 1
    snapshot = trace.snapshot(last, len(trace.program.ops(last)) - 1)
    assert snapshot.seconds == duration_of(trace.program).seconds


def test_the_first_view_of_roofline_has_them(qapp) -> None:
    trace = simulate(RUNS["causal"])
    *_, found = ROOFLINE.results(trace, ("H100-SXM", False), lambda _: None)
    assert found.spent.seconds == duration_of(trace.program).seconds


def test_a_race_says_of_how_many_runs_its_seconds_are() -> None:
    program = program_of(FULL)
    race = race_of(program)
    assert race.copies == 16
    for lane in race.lanes:
        own = race.comparison.programs[lane.algorithm]
        assert lane.seconds == duration_of(own, race.copies).seconds
    one = race_of(program_of(with_values(FULL, {"attention": {"heads": 16, "kv_heads": 16}})))
    assert one.copies == 1
    for lane in one.lanes:
        assert lane.seconds == duration_of(one.comparison.programs[lane.algorithm]).seconds


@pytest.mark.parametrize("algorithm", ["flash2-backward", "split-kv", "linear"])
def test_all_say_why_there_is_no_model(algorithm: str) -> None:
    program = program_of(scenario(algorithm, nq=64, d=16, rows=16, cols=16, dtype="float16"))
    own = duration_of(program)
    assert own.model is None
    assert own.why
    state = schedule_state(program, "run", "model")
    assert own.why in " ".join(state.sentences)
    assert figures(state, state.rows[0])[0].startswith("≥ ")
    found = sweep(program.workload, "N", [64], timed=True)
    assert not found.durations
    assert found.why
    place = timed_roofline(program, program.workload.gpu).place(algorithm, whole_phase(algorithm))
    assert place.duration.why == own.why
