"""Whole schedules: their sums, what limits blocks, and what cannot be placed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.problem.hardware import LAUNCH_SECONDS, gpus, time_estimate
from simulator.problem.scenario import Scenario, with_values
from simulator.study.schedule.residency import BlockNeeds, residency
from simulator.study.schedule.schedule import Schedule, schedule_of, why_no_schedule
from simulator.timing.duration import duration_of
from simulator.timing.orders import ORDERS, Order
from simulator.timing.run_time import run_time, why_no_time
from tests.helpers.runs import program_of, scenario, scenarios

NEEDS = BlockNeeds("kernel", 256, 40 * 1024, 128)


def schedule(chosen: Scenario, order: Order = "model", needs: BlockNeeds = NEEDS) -> Schedule:
    program = program_of(chosen)
    return schedule_of(program, [needs] * len(program.launches), order)


@given(scenarios(longest=24), st.sampled_from(ORDERS), st.sampled_from(sorted(gpus())))
def test_a_run_takes_its_one_time_or_the_data_sheets(
    chosen: Scenario, order: Order, gpu: str
) -> None:
    chosen = with_values(chosen, {"hardware": {"preset": gpu}})
    found = schedule(chosen, order)
    totals, w = found.program.totals, found.program.workload
    assert found.least == time_estimate(w.gpu, totals.bytes, totals.flops, w.dtype).seconds
    assert 0 <= found.idle < 1
    last = found.launches[-1]
    assert found.seconds == pytest.approx(last.begins + last.seconds, rel=1e-9)
    if found.model is None:
        assert found.why == why_no_time(found.program)
        # No schedule is faster than the roofline of all bytes and FLOPs at once.
        assert found.seconds >= found.least * (1 - 1e-9)
    else:
        assert not found.why
        own = duration_of(found.program).seconds
        assert found.usual.seconds == own
        assert found.what_if == (order != "model")
        if order == "model":
            assert found.seconds == own
        else:
            assert found.seconds == run_time(found.program, order=order).seconds
    for each in found.launches:
        busy = sum(max((e for s, e in zip(each.placed.sm, each.placed.end, strict=True) if s == n),
                       default=0) for n in range(w.gpu.sms))  # fmt: skip
        assert each.idle == pytest.approx(1 - busy / (w.gpu.sms * each.seconds))


def test_a_launch_begins_when_the_one_before_has_ended() -> None:
    found = schedule(scenario("naive", nq=16, heads=2))
    first, second, third = found.launches
    # A launch begins with what starting it takes.
    assert first.begins == LAUNCH_SECONDS
    assert second.begins == first.begins + first.seconds + LAUNCH_SECONDS
    assert third.begins == second.begins + second.seconds + LAUNCH_SECONDS
    launch, doing = found.at(len(found.program) - 1)
    assert launch is third
    assert doing == range(len(third.blocks) - 1, len(third.blocks))
    masked = schedule(scenario("naive", nq=16, heads=2, mask={"causal": True}))
    assert masked.launches[0].begins == 2 * LAUNCH_SECONDS  # that of the mask, too


def test_rows_of_a_head_are_dealt_out_where_its_blocks_must_follow_each_other() -> None:
    """FlashAttention-1's release fills a GPU with shares of rows."""
    found = schedule(scenario("flash1", nq=4096, heads=4, rows=32, cols=32))
    (launch,) = found.launches
    ((shares, heads, each),) = launch.blocks.shapes
    assert (shares, heads, each) == (2 * 132 // 4, 4, 1)
    assert launch.blocks.title(5) == "head 1, share 1 of its rows"
    for index in range(0, len(found.program), 101):
        visit = found.program.visit(index)
        _, (number,) = found.at(index)
        assert number == visit.i * shares // 128 * heads + visit.head


def test_blocks_are_stretched_where_memory_is_slower() -> None:
    sizes = {"nq": 2048, "heads": 8, "d": 64, "rows": 128, "cols": 64, "dtype": "float16"}
    found = schedule(scenario("flash2", **sizes))
    (launch,), (time,) = found.launches, found.model.launches
    assert launch.works == pytest.approx(time.blocks.seconds.tolist())  # bound by products
    small = schedule(scenario("flash2", **sizes | {"rows": 16, "cols": 16}))
    (launch,), (time,) = small.launches, small.model.launches
    assert small.model.bound_by == "L2"
    assert time.l2 > time.busy
    stretched = time.blocks.seconds * (time.l2 / time.busy)
    assert launch.works == pytest.approx(stretched.tolist())


def test_long_rows_of_each_head_come_first_by_model() -> None:
    chosen = scenario("flash2", nq=2048, heads=6, rows=32, cols=32, mask={"causal": True})
    (launch,) = schedule(chosen).launches
    starts = np.array(launch.placed.start).reshape(6, 64)  # heads, row blocks
    assert (np.diff(starts, axis=1) <= 0).all()
    assert (starts[:-1].max(axis=1) <= starts[1:].max(axis=1)).all()


def test_another_order_may_ask_dram_for_more() -> None:
    """All heads at once need more keys than L2 holds, so loads miss it."""
    chosen = scenario("flash2", nq=4096, heads=64, d=128, rows=128, cols=128, dtype="float16",
                      mask={"causal": True})  # fmt: skip
    moved = {order: schedule(chosen, order).model.dram_bytes for order in ORDERS}
    assert moved["longest"] > 1.2 * moved["model"]


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
