"""Whole schedules: their sums, what limits blocks, and what cannot be placed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.problem.hardware import gpus, time_estimate
from simulator.problem.scenario import Scenario, with_values
from simulator.study.schedule.placing import ORDERS, Order
from simulator.study.schedule.residency import BlockNeeds, residency
from simulator.study.schedule.schedule import Schedule, schedule_of, why_no_schedule
from tests.helpers.runs import program_of, scenario, scenarios

NEEDS = BlockNeeds("kernel", 256, 40 * 1024, 128)


def schedule(chosen: Scenario, order: Order = "index", needs: BlockNeeds = NEEDS) -> Schedule:
    program = program_of(chosen)
    return schedule_of(program, [needs] * len(program.launches), order)


@given(scenarios(longest=24), st.sampled_from(ORDERS), st.sampled_from(sorted(gpus())))
def test_sums_are_those_of_the_program(chosen: Scenario, order: Order, gpu: str) -> None:
    chosen = with_values(chosen, {"hardware": {"preset": gpu}})
    found = schedule(chosen, order)
    totals, w = found.program.totals, found.program.workload
    assert sum(int(each.blocks.bytes.sum()) for each in found.launches) == totals.bytes
    assert sum(int(each.blocks.flops.sum()) for each in found.launches) == totals.flops
    assert found.seconds == pytest.approx(sum(each.seconds for each in found.launches))
    # No schedule is faster than the roofline of all bytes and FLOPs at once.
    assert found.seconds >= found.least * (1 - 1e-9)
    assert found.least == time_estimate(w.gpu, totals.bytes, totals.flops, w.dtype).seconds
    assert 0 <= found.idle < 1
    for each in found.launches:
        busy = sum(max((e for s, e in zip(each.placed.sm, each.placed.end, strict=True) if s == n),
                       default=0) for n in range(w.gpu.sms))  # fmt: skip
        assert each.idle == pytest.approx(1 - busy / (w.gpu.sms * each.seconds))


def test_a_launch_begins_when_the_one_before_has_ended() -> None:
    found = schedule(scenario("naive", nq=16, heads=2))
    first, second, third = found.launches
    assert (first.begins, second.begins) == (0, first.seconds)
    assert third.begins == pytest.approx(first.seconds + second.seconds)
    launch, doing = found.at(len(found.program) - 1)
    assert launch is third
    assert doing == range(len(third.blocks) - 1, len(third.blocks))


def test_blocks_of_a_head_that_must_follow_each_other_leave_a_gpu_empty() -> None:
    """FlashAttention-1 has one thread block for each head, the other one for each row block."""
    idle = {
        name: schedule(scenario(name, nq=1024, heads=4, rows=32, cols=32)).idle
        for name in ("flash1", "flash2")
    }
    assert idle["flash1"] == pytest.approx(1 - 4 / 132)
    assert idle["flash2"] == pytest.approx(1 - 128 / 132)


def test_a_causal_mask_is_repaired_by_starting_with_the_longest() -> None:
    chosen = scenario("flash2", nq=2048, heads=6, rows=32, cols=32, mask={"causal": True})
    seconds = {order: schedule(chosen, order, NEEDS).seconds for order in ORDERS}
    assert seconds["longest"] < 0.9 * seconds["index"]


@pytest.mark.parametrize(
    ("gpu", "needs", "blocks", "limit"),
    [
        # 228 KiB of a multiprocessor, of which each block takes 1 KiB more than it asks for.
        ("H100-SXM", BlockNeeds("k", 128, 40 * 1024, 32), 5, "shared memory"),
        ("H100-SXM", BlockNeeds("k", 512, 40 * 1024, 128), 1, "registers"),
        ("H100-SXM", BlockNeeds("k", 1024, 1024, 16), 2, "threads"),
        ("H100-SXM", BlockNeeds("k", 32, 1024, 16), 32, "most thread blocks"),
        ("T4", BlockNeeds("k", 128, 20 * 1024, 32), 3, "shared memory"),
        ("RTX-4090", BlockNeeds("k", 32, 1024, 16), 24, "most thread blocks"),
        ("MI300X", BlockNeeds("k", 512, 20 * 1024, 128), 3, "shared memory"),
        ("RTX-4090", BlockNeeds("k", 128, 100 * 1024, 32), 0, "shared memory"),
    ],
)
def test_what_fits_on_a_multiprocessor(
    gpu: str, needs: BlockNeeds, blocks: int, limit: str
) -> None:
    found = residency(needs, gpus()[gpu])
    assert (found.blocks, found.limit) == (blocks, limit)


def test_registers_are_given_to_whole_warps_in_pieces() -> None:
    assert BlockNeeds("k", 33, 0, 30).block_registers == 2 * 1024
    assert BlockNeeds("k", 32, 0, 33).block_registers == 1280


def test_what_cannot_be_placed_says_why() -> None:
    program = program_of(scenario("flash2", nq=16))
    large = BlockNeeds("flash2", 128, 3000 * 1024, 128)
    why = "A thread block of flash2 takes 3000 KiB: H100-SXM gives 227 KiB to one."
    assert why_no_schedule(program, [large]) == why
    with pytest.raises(ValueError, match="takes 3000 KiB"):
        schedule_of(program, [large], "index")
    many = program_of(scenario("flash2", nq=70_000, nk=4, rows=1))
    assert why_no_schedule(many, [NEEDS]) == (
        "70\u2009000 thread blocks are too many to place one by one: at most 65\u2009536."
    )
    assert why_no_schedule(program, [NEEDS]) == ""
