"""The sequences of a batch in one schedule: no block is lost, and each is found again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import Scenario, load_scenario, with_values
from simulator.problem.workload import resolve
from simulator.program.algorithms import tile_program
from simulator.study.schedule.batch import batch_programs
from simulator.study.schedule.blocks import amounts_of
from simulator.study.schedule.residency import BlockNeeds
from simulator.study.schedule.schedule import Schedule, schedule_of
from simulator.timing.orders import ORDERS, Order
from tests.helpers.runs import program_of, scenario
from tests.simulator.lesson.test_lesson_numbers import computed

NEEDS = BlockNeeds("kernel", 256, 40 * 1024, 128)
DEMO = load_scenario(SCENARIOS / "batch.toml")


def schedule(chosen: Scenario, order: Order = "index") -> Schedule:
    program = program_of(chosen)
    needs = [NEEDS] * len(program.launches)
    return schedule_of(program, needs, order, batch_programs(program))


def alone(chosen: Scenario, number: int) -> Scenario:
    return with_values(chosen, {"batch": {"sequence": number}})


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=5),
    st.sampled_from(ORDERS),
    st.one_of(st.integers(1, 4), st.just("auto")),
    st.data(),
)
def test_sums_are_those_of_each_sequence_by_itself(lengths, order, splits, data) -> None:
    shown = data.draw(st.one_of(st.none(), st.integers(0, len(lengths) - 1)))
    batch = {"lengths": lengths, "sequence": shown}
    chosen = with_values(DEMO, {"batch": batch, "tiling": {"splits": splits}})
    found = schedule(chosen, order)
    each = [tile_program(resolve(alone(chosen, n))) for n in range(len(lengths))]
    for amount in ("bytes", "flops"):
        total = sum(
            int(amounts_of(found.programs, n)[amount == "flops"].sum())
            for n in range(len(found.launches))
        )
        assert total == sum(getattr(program.totals, amount) for program in each)
    assert [program.workload.seqlen_k for program in found.programs] == lengths
    assert found.least <= found.seconds * (1 + 1e-9)
    # The blocks of the shown sequence do what they do by themselves.
    own = schedule_of(found.program, [NEEDS] * len(found.launches), order)
    for visit in {0, len(found.program) // 2, len(found.program) - 1}:
        (launch, blocks), (launch_alone, blocks_alone) = found.at(visit), own.at(visit)
        title = launch_alone.blocks.title(blocks_alone.start)
        if len(lengths) > 1:
            title = f"sequence {shown or 0}, {title}"
        assert launch.blocks.title(blocks.start) == title
        assert launch.works[blocks.start] == launch_alone.works[blocks_alone.start]


def test_sequences_side_by_side_take_less_time_than_one_after_the_other() -> None:
    together = schedule(DEMO)
    lengths = DEMO.batch.lengths
    assert lengths is not None
    one_by_one = [
        schedule_of(program, [NEEDS] * len(program.launches), "index")
        for program in together.programs
    ]
    longest = max(each.seconds for each in one_by_one)
    assert longest * (1 - 1e-9) <= together.seconds < sum(each.seconds for each in one_by_one)
    # Few blocks: each has a multiprocessor of its own, so the longest sequence says how long.
    assert together.seconds == pytest.approx(longest)
    assert len(together.launches[0].blocks) == 3 * len(one_by_one[0].launches[0].blocks)


def test_a_lesson_counts_the_blocks_of_all_sequences() -> None:
    blocks = computed("schedule_blocks()", DEMO)
    assert blocks == sum(computed("schedule_blocks()", scenario_of(n)) for n in DEMO.batch.lengths)


def scenario_of(keys: int) -> Scenario:
    said = {"batch": {"lengths": None}, "attention": {"seqlen_k": keys}}
    return with_values(DEMO, said)


def test_a_run_without_a_batch_is_alone() -> None:
    program = program_of(scenario("flash2", nq=12))
    assert batch_programs(program) == (program,)
