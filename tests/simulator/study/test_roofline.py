"""The roofline's figures against tile programs and the data sheets."""

from dataclasses import replace

import pytest
from hypothesis import given

from simulator.problem.hardware import gpus, time_estimate
from simulator.problem.scenario import Scenario
from simulator.problem.workload import resolve
from simulator.program.algorithms import ALGORITHMS as ALL
from simulator.program.algorithms import tile_program
from simulator.program.traffic import compulsory_bytes
from simulator.study.compare import comparison_of
from simulator.study.roofline import decode_workload, roof_of, roofline_of, timed_roofline
from tests.helpers.runs import ALGORITHMS, scenario, scenarios

BACKWARD = [name for name, each in ALL.items() if each.backward]


def test_the_roof_of_a_data_sheet() -> None:
    roof = roof_of(gpus()["H100-SXM"], "float16")
    assert (roof.bandwidth, roof.rate) == (3.35e12, 989e12)
    assert roof.ridge == pytest.approx(295.2, abs=0.1)
    assert roof.at(1.0) == 3.35e12
    assert roof.at(1000.0) == 989e12
    assert roof.at(roof.ridge) == pytest.approx(989e12)


def test_float32_has_only_the_bandwidth_as_a_roof() -> None:
    roof = roof_of(gpus()["A100-80-SXM"], "float32")
    assert roof.rate is None
    assert roof.ridge is None
    assert roof.at(1e6) == pytest.approx(2.039e18)


@given(scenarios(longest=24))
def test_places_are_those_of_the_tile_programs(chosen: Scenario) -> None:
    program = tile_program(resolve(chosen))
    w = program.workload
    found = roofline_of(program)
    assert len(found.places) == 6
    for phase, work in (("prefill", w), ("decode", decode_workload(w))):
        for name in ALGORITHMS:
            here = replace(work, algorithm=name)
            total, place = tile_program(here).totals, found.place(name, phase)
            assert (place.flops, place.requested) == (total.flops, total.bytes)
            assert place.compulsory == compulsory_bytes(here)
            assert place.intensity == total.flops / total.bytes
            assert place.best_intensity == total.flops / place.compulsory
            assert place.time == time_estimate(w.gpu, total.bytes, total.flops, w.dtype)
            # An estimate stands on the roof: that is what it means.
            assert place.rate == pytest.approx(found.roof.at(place.intensity))


def test_decode_is_the_scenario_with_one_query() -> None:
    mask = {"causal": True, "window": 20, "sinks": 2}
    w = resolve(scenario(nq=48, nk=64, heads=4, kv_heads=2, dtype="float16", mask=mask))
    by_file = resolve(scenario(nq=1, nk=64, heads=4, kv_heads=2, dtype="float16", mask=mask))
    decode = decode_workload(w)
    assert decode.mask == by_file.mask
    assert tile_program(decode).totals == tile_program(by_file).totals
    # One row cannot use a byte of K twice: decode is far left of the ridge.
    place = roofline_of(tile_program(w)).place("flash2", "decode")
    assert place.time.bound == "memory"
    assert place.intensity < 2


def test_another_gpu_has_other_roofs_and_times_but_the_same_work() -> None:
    found = roofline_of(tile_program(resolve(scenario(nq=64, d=16, dtype="float16"))))
    other = found.on(gpus()["T4"])
    assert other.roof == roof_of(gpus()["T4"], "float16")
    for one, two in zip(found.places, other.places, strict=True):
        assert (one.flops, one.requested, one.compulsory) == (
            two.flops, two.requested, two.compulsory,
        )  # fmt: skip
        assert two.time == time_estimate(gpus()["T4"], two.requested, two.flops, "float16")
        assert two.time.seconds > one.time.seconds


def test_the_part_of_a_run_ends_at_the_whole_run() -> None:
    program = tile_program(resolve(scenario("flash1", nq=32, d=8, dtype="float16")))
    found = roofline_of(program)
    before = found.part("flash1", program.counters(0))
    assert (before.intensity, before.rate, before.best_intensity) == (0.0, 0.0, None)
    whole = found.part("flash1", program.totals)
    end = found.place("flash1", "prefill")
    assert (whole.flops, whole.requested, whole.time) == (end.flops, end.requested, end.time)
    half = found.part("flash1", program.counters(len(program) // 2))
    assert 0 < half.time.seconds < whole.time.seconds


@pytest.mark.parametrize("name", BACKWARD)
def test_a_backward_pass_is_no_prefill(name: str) -> None:
    program = tile_program(resolve(scenario(name, nq=32, d=8)))
    found = roofline_of(program)
    whole = found.part(name, program.totals)
    assert whole.phase == "backward"
    place = found.place(name, "backward")
    assert (whole.flops, whole.requested) == (place.flops, place.requested)
    forward = ALL[name].forward
    assert found.place(forward, "prefill").flops < place.flops


def test_runs_take_the_same_time_as_in_compare_and_reach_less_than_the_roof_of_dram() -> None:
    chosen = scenario("split-kv", nq=256, nk=512, d=64, rows=64, cols=64, dtype="float16")
    program = tile_program(resolve(chosen))
    found = timed_roofline(program, program.workload.gpu)
    for total in comparison_of(program).totals:
        place = found.place(total.algorithm, "prefill")
        if total.duration.model is None:
            assert place.reached is place.dram_intensity is None
            continue
        assert place.duration.seconds == total.duration.seconds
        assert place.reached == total.counters.flops / total.duration.seconds
        assert place.reached <= found.roof.at(place.dram_intensity)
        assert place.intensity <= place.dram_intensity


@pytest.mark.long
def test_flash2_would_be_above_the_roof_if_every_requested_byte_were_of_dram() -> None:
    more = {"heads": 4, "mask": {"causal": True}, "dtype": "float16"}
    program = tile_program(resolve(scenario("flash2", 8192, d=128, rows=128, cols=128, **more)))
    place = timed_roofline(program, gpus()["A100-80-SXM"]).place("flash2", "prefill")
    assert place.duration.model.gpu.name == "A100-80-SXM"
    roof = roof_of(gpus()["A100-80-SXM"], "float16")
    assert place.dram_intensity > roof.ridge > place.intensity
