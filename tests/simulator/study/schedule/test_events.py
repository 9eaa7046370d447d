"""Events on lanes against plain loops over the thread blocks, and splits with their reasons."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import load_scenario, with_values
from simulator.problem.workload import resolve
from simulator.program.algorithms import tile_program
from simulator.study.schedule.events import Events, at_work, events_of
from simulator.study.schedule.splits import PACKS_BELOW, packing_reasons, splitting, with_splits
from tests.helpers.runs import scenario
from tests.simulator.study.schedule.test_schedule import schedule

NOTHING = np.zeros(0)


@pytest.mark.parametrize(
    ("algorithm", "several"), [("naive", True), ("flash2", False), ("split-kv", True)]
)
def test_events_are_the_blocks_of_all_launches(algorithm: str, several: bool) -> None:
    own = schedule(scenario(algorithm, nq=40, heads=9, mask={"causal": True}))
    found = events_of(own)
    assert found.lanes == tuple(f"SM {n}" for n in range(own.gpu.sms))
    n = 0
    for launch in own.launches:
        places = 1 + max(launch.placed.slot)  # as many parts as a lane has in use
        longest = max(launch.works)
        for block in range(len(launch.blocks)):
            assert found.lane[n] == launch.placed.sm[block]
            assert found.above[n] == pytest.approx(launch.placed.slot[block] / places)
            assert found.height[n] == pytest.approx(1 / places)
            assert found.top[n] == pytest.approx(found.lane[n] + found.above[n])
            assert found.start[n] == pytest.approx(launch.begins + launch.placed.start[block])
            assert found.end[n] == pytest.approx(launch.begins + launch.placed.end[block])
            assert found.weight[n] == pytest.approx(launch.works[block] / longest)
            before = f"{launch.blocks.launch.name}, " if several else ""
            assert found.names[n] == before + launch.blocks.title(block)
            n += 1
    assert n == len(found.names) == len(found.lane)
    assert found.seconds == pytest.approx(own.seconds)
    assert found.used == int(found.lane[found.end > found.start].max()) + 1
    for index in range(len(own.program)):
        launch, blocks = own.at(index)
        doing = at_work(own, index)
        before = sum(len(each.blocks) for each in own.launches[: own.launches.index(launch)])
        assert [*doing] == [before + block for block in blocks]


def test_more_blocks_than_a_lane_has_places_share_it() -> None:
    found = events_of(schedule(scenario("linear", nq=64, heads=300)))
    assert set(found.height[-480:]) == {1 / 2}  # two at once on each of 132
    assert set(found.above) == {0.0, 0.5}


def test_a_lane_whose_events_take_no_time_has_nothing_to_do() -> None:
    """Of one query's 16 splits of nine column blocks six see no key."""
    demo = load_scenario(SCENARIOS / "split-kv.toml")
    found = events_of(schedule(with_values(demo, {"tiling": {"splits": 8}})))
    busy = {*found.lane[found.end > found.start].tolist()}
    assert found.used == len(busy) == 10 < len({*found.lane.tolist()}) == 16


PIECES = st.lists(
    st.tuples(
        st.integers(0, 2), st.sampled_from([0.0, 0.25, 0.5]), st.sampled_from([0.25, 0.5]),
        st.integers(0, 5), st.integers(1, 4),
    ),
    max_size=6,
)  # fmt: skip


@given(PIECES, st.integers(0, 12), st.integers(0, 9))
def test_what_is_at_a_point_is_the_last_event_around_it(
    drawn: list, quarter: int, now: int
) -> None:
    lane, above, height, start, last = (np.array([each[n] for each in drawn]) for n in range(5))
    names = tuple(map(str, range(len(drawn))))
    found = Events(
        ("a", "b", "c"), lane.astype(np.int64), above, height, start, start + last, above, names
    )
    down, want = quarter / 4, None
    for n, (own, part, size, begun, lasts) in enumerate(drawn):
        if own + part <= down < own + part + size and begun <= now < begun + lasts:
            want = n
    assert found.at(down, now) == want


# --- splits -------------------------------------------------------------------------------------


def test_what_packing_changes_is_counted_as_its_runs() -> None:
    chosen = scenario("split-kv", nq=3, nk=64, heads=6, kv_heads=2, rows=16, cols=8)
    w = resolve(with_values(chosen, {"tiling": {"splits": 4}}))
    packed = resolve(with_values(chosen, {"tiling": {"splits": 1}}))
    alone = resolve(with_values(chosen, {"attention": {"algorithm": "flash2"}}))
    shared, blocks, used, moved = packing_reasons(w)
    assert shared == (
        "packing: 3 query heads share each KV head; their queries, 3 of each, are 9 rows of one "
        "block"
    )
    assert blocks == "thread blocks before splits: 2 packed, 6 not packed"
    assert used.startswith(f"rows of tiles in use: {9 / 16:.3f} packed, {3 / 16:.3f} not packed")
    assert used.endswith("so FlashAttention-3 packs")
    bytes_of = [tile_program(each).totals.bytes for each in (alone, packed)]
    assert moved == f"bytes: {bytes_of[0] / bytes_of[1]:.2f} times as many not packed"
    assert packing_reasons(resolve(scenario("split-kv", nq=3, nk=64, heads=2))) == ()


def test_heads_are_packed_only_where_tiles_gain_much() -> None:
    """Of a tile's 16 rows 8 queries use half, packed or not packed 16 use all."""
    for queries, packs in ((8, True), (16, False)):
        chosen = scenario("split-kv", nq=queries, nk=64, heads=4, kv_heads=2, rows=16, cols=8)
        assert (queries / 16 < PACKS_BELOW) == packs
        words = "packs" if packs else "does not pack"
        assert packing_reasons(resolve(chosen))[2].endswith(f"so FlashAttention-3 {words}")


def test_splits_are_those_of_a_run_that_has_some() -> None:
    plain = resolve(scenario("flash2", nq=2, nk=64, heads=6, kv_heads=2, rows=16, cols=8))
    dealt = splitting(plain)
    assert dealt.algorithm == "split-kv"
    paged = resolve(scenario("paged", nq=2, nk=64, cols=8))
    assert splitting(paged) is paged  # it has splits of its own
    assert with_splits(dealt, 3).splits == 3
    choice = dealt.split_choice
    assert choice.reasons[0].startswith(f"without splits {2} thread blocks for {dealt.gpu.sms} SMs")
    assert 1 < choice.splits <= dealt.grid.Tc
