"""The race: its totals are the comparison's, and everybody only ever goes forwards."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.base.assets import SCENARIOS
from simulator.base.errors import InputError
from simulator.problem.hardware import time_estimate
from simulator.problem.scenario import Scenario, load_scenario
from simulator.program.algorithms import BASELINE, beside
from simulator.program.tile_program import TileProgram
from simulator.study.compare import SCALE_N, at_scale
from simulator.study.race import RUN_SECONDS, Race, race_of, seconds_after
from tests.helpers.runs import ALGORITHMS, program_of, scenarios

ALL = (*ALGORITHMS, "split-kv")
DEMOS = ["causal", "kv-cache", "linear", "naive-backward", "split-kv"]


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


@pytest.mark.long
@settings(deadline=None, max_examples=8)
@given(RUNS, st.lists(st.floats(0, 1.2), min_size=2, max_size=8))
def test_nobody_goes_back_and_nothing_is_lost(chosen: Scenario, shares: list[float]) -> None:
    run = race(chosen)
    names = tuple(lane.algorithm for lane in run.lanes)
    assert sorted((*names, *run.left_out)) == sorted(beside(chosen.attention.algorithm))
    assert all(lane.duration.model for lane in run.lanes)
    for standing in run.at(0.0):
        assert standing.share == standing.counters.bytes == standing.counters.flops == 0
        assert (standing.launch, standing.idle, standing.finished) == (None, None, False)
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


@pytest.mark.long
@pytest.mark.parametrize("name", DEMOS)
def test_launches_end_one_after_the_other(name: str) -> None:
    for lane in race_of(demo(name)).lanes:
        assert lane.launches[-1].end == lane.seconds
        assert lane.launches[-1].stop == lane.total.visits
        assert all(one.end < two.end for one, two in pairwise(lane.launches))


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("name", DEMOS)
def test_it_is_run_at_the_length_of_the_long_comparison(name: str) -> None:
    program = demo(name)
    run = race_of(program)
    assert run.workload.seqlen_k == max(program.workload.seqlen_k, SCALE_N)
    scale = at_scale(program)
    if scale is not None:
        found = {lane.algorithm: lane.total.counters.bytes for lane in run.lanes}
        assert found.items() <= scale.bytes.items()
        tiled = run.workload.as_algorithm(BASELINE.name)
        assert (tiled.rows, tiled.cols) == (scale.rows, scale.cols)
    if program.workload.seqlen_k >= SCALE_N:
        assert run.comparison.programs[run.comparison.shown] is program


@pytest.mark.long
@pytest.mark.parametrize("name", ["flash2", "flash2-backward"])
def test_units_have_nothing_to_do_outside_of_products(name: str) -> None:
    run = race_of(demo(name))
    for n, lane in enumerate(run.lanes):
        start = 0.0
        for number, launch in enumerate(lane.launches):
            now = run.at((start + launch.end) / 2)[n]
            assert now.launch == number
            assert now.idle == launch.idle
            assert (now.idle is None) == (lane.duration.model is None)
            assert now.idle is None or 0 <= now.idle <= 1
            start = launch.end
            at_its_end = run.at(start)[n].launch
            assert at_its_end == (number + 1 if launch is not lane.launches[-1] else None)
        end = run.at(run.seconds)[n]
        assert (end.launch, end.idle) == (None, lane.idle)


@pytest.mark.long
def test_flash2_is_first_and_bound_by_products_and_naive_waits_for_dram() -> None:
    run = race_of(demo("real-scale"))
    scores, softmax, output = run.lanes[0].launches
    assert run.at((scores.end + softmax.end) / 2)[0].idle == 1
    assert output.end == run.seconds
    assert [lane.place for lane in run.lanes] == [3, 2, 1]
    assert [lane.bound_by for lane in (run.last, run.first)] == ["DRAM", "products"]
    assert run.time_factor == run.lanes[0].seconds / run.lanes[2].seconds
    assert run.byte_factor == pytest.approx(5.98, abs=0.01)
    assert run.copies == 16


def test_passes_without_a_model_race_by_the_data_sheet() -> None:
    run = race_of(demo("flash2-backward"))
    assert {lane.bound_by for lane in run.lanes} == {None}
    for lane in run.lanes:
        w, counters = lane.duration.program.workload, lane.total.counters
        least = time_estimate(w.gpu, counters.bytes, counters.flops, w.dtype).seconds
        assert lane.seconds == pytest.approx(run.copies * least)


@pytest.mark.long
def test_time_passes_in_proportion_until_the_last_is_there() -> None:
    run = race_of(demo("causal"))
    assert seconds_after(run, -1.0) == seconds_after(run, 0.0) == 0
    assert seconds_after(run, RUN_SECONDS / 4) == run.seconds / 4
    assert seconds_after(run, RUN_SECONDS) == seconds_after(run, 100.0) == run.seconds
    assert seconds_after(run, 1.0, length=4.0) == run.seconds / 4
