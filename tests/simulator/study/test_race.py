"""The race: its totals are the comparison's, and everybody only ever goes forwards."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.base.assets import SCENARIOS
from simulator.base.errors import InputError
from simulator.problem.scenario import Scenario, load_scenario
from simulator.program.algorithms import BASELINE, beside
from simulator.program.tile_program import TileProgram
from simulator.study.compare import SCALE_N, Comparison, at_scale
from simulator.study.race import RUN_SECONDS, Race, race_of, seconds_after
from tests.helpers.runs import ALGORITHMS, program_of, scenario, scenarios

ALL = (*ALGORITHMS, "split-kv")
DEMOS = sorted(path.stem for path in SCENARIOS.glob("*.toml"))


def demo(name: str) -> TileProgram:
    return program_of(load_scenario(SCENARIOS / f"{name}.toml"))


def race(chosen: Scenario) -> Race:
    return race_of(program_of(chosen))


def packs(chosen: Scenario) -> bool:
    """Return whether the heads of a scenario can be packed, if its algorithm packs them."""
    try:
        program_of(chosen)
    except InputError:
        return False
    return True


RUNS = scenarios(algorithms=ALL).filter(packs)


@settings(deadline=None)
@given(RUNS, st.lists(st.floats(0, 1.2), min_size=2, max_size=8))
def test_nobody_goes_back_and_nothing_is_lost(chosen: Scenario, shares: list[float]) -> None:
    run = race(chosen)
    assert tuple(lane.algorithm for lane in run.lanes) == beside(chosen.attention.algorithm)
    for standing in run.at(0.0):
        assert standing.share == standing.counters.bytes == standing.counters.flops == 0
        assert (standing.launch, standing.waits, standing.finished) == (None, None, False)
    told = [run.at(share * run.seconds) for share in sorted(shares)]
    for one, two in pairwise(told):
        for before, after in zip(one, two, strict=True):
            assert before.share <= after.share <= 1
            assert before.counters.bytes <= after.counters.bytes
            assert before.counters.flops <= after.counters.flops
            assert before.finished <= after.finished
    for n, lane in enumerate(run.lanes):
        at_its_end = run.at(lane.seconds)[n]
        assert at_its_end.finished
        assert at_its_end.share == 1
        assert at_its_end.counters == lane.total.counters
        just_before = run.at(lane.seconds * (1 - 1e-9))[n]
        assert not just_before.finished
        assert just_before.counters.bytes < lane.total.counters.bytes


@settings(deadline=None)
@given(RUNS)
def test_launches_are_parts_of_the_totals_of_the_comparison(chosen: Scenario) -> None:
    run = race(chosen)
    own = Comparison(run.comparison.programs[run.comparison.shown]).totals
    for lane, total in zip(run.lanes, own, strict=True):
        assert lane.total == total
        assert lane.launches[-1].end == lane.seconds == total.time.seconds
        assert lane.launches[-1].stop == total.visits
        memory = sum(launch.time.memory for launch in lane.launches)
        assert memory == pytest.approx(total.time.memory)
        if total.time.compute is not None:
            compute = sum(launch.time.compute or 0.0 for launch in lane.launches)
            assert compute == pytest.approx(total.time.compute)


@pytest.mark.parametrize("name", DEMOS)
def test_it_is_run_at_the_length_of_the_long_comparison(name: str) -> None:
    program = demo(name)
    run = race_of(program)
    assert run.workload.seqlen_k == max(program.workload.seqlen_k, SCALE_N)
    scale = at_scale(program)
    if scale is not None:
        found = {lane.algorithm: lane.total.counters.bytes for lane in run.lanes}
        assert found == scale.bytes
        tiled = run.workload.as_algorithm(BASELINE.name)
        assert (tiled.rows, tiled.cols) == (scale.rows, scale.cols)
    if program.workload.seqlen_k >= SCALE_N:
        assert run.comparison.programs[run.comparison.shown] is program


@pytest.mark.parametrize("name", DEMOS)
def test_units_wait_for_what_the_roofline_leaves_of_a_launch(name: str) -> None:
    run = race_of(demo(name))
    for n, lane in enumerate(run.lanes):
        start = 0.0
        for number, launch in enumerate(lane.launches):
            now = run.at((start + launch.end) / 2)[n]
            assert now.launch == number
            if launch.time.compute is None:
                assert now.waits is None
            else:
                assert now.waits == 1 - launch.time.compute / launch.time.seconds
                assert 0 <= now.waits <= 1
            start = launch.end
            at_its_end = run.at(start)[n].launch
            assert at_its_end == (number + 1 if launch is not lane.launches[-1] else None)
        end = run.at(run.seconds)[n]
        assert end.launch is None
        whole = lane.total.time
        if whole.compute is not None:
            assert end.waits == 1 - whole.compute / whole.seconds


def test_while_naive_takes_the_softmax_its_matrix_units_do_nothing() -> None:
    run = race_of(demo("real-scale"))
    scores, softmax, output = run.lanes[0].launches
    assert run.at((scores.end + softmax.end) / 2)[0].waits == 1
    assert run.at(0.5 * scores.end)[0].waits == pytest.approx(0.783, abs=0.001)
    assert output.end == run.seconds


def test_places_and_factors_are_those_of_the_times() -> None:
    run = race_of(demo("real-scale"))
    assert [lane.place for lane in run.lanes] == [3, 2, 1]
    assert (run.first.algorithm, run.last.algorithm) == ("flash2", "naive")
    assert run.time_factor == run.lanes[0].seconds / run.lanes[2].seconds
    assert run.byte_factor == pytest.approx(5.98, abs=0.01)


def test_those_who_are_equally_fast_share_a_place() -> None:
    # In tiles this large both FlashAttentions take as long as their matrix products, the same ones.
    run = race(scenario("flash2", SCALE_N, d=256, rows=1024, cols=1024, dtype="float16"))
    assert run.lanes[1].seconds == run.lanes[2].seconds
    assert [lane.place for lane in run.lanes] == [3, 1, 1]
    assert run.first is run.lanes[1]
    assert [standing.waits for standing in run.at(run.seconds)][1:] == [0, 0]


def test_time_passes_in_proportion_until_the_last_is_there() -> None:
    run = race_of(demo("causal"))
    assert seconds_after(run, -1.0) == seconds_after(run, 0.0) == 0
    assert seconds_after(run, RUN_SECONDS / 4) == run.seconds / 4
    assert seconds_after(run, RUN_SECONDS) == seconds_after(run, 100.0) == run.seconds
    assert seconds_after(run, 1.0, length=4.0) == run.seconds / 4
