"""Where a step goes: by op, tile, row block and head, from anywhere, to either end."""

import random
from itertools import accumulate, pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simulator.problem.scenario import Scenario
from simulator.program.playback import (
    SECONDS_PER_MOVE,
    SECONDS_PER_OP,
    Cursor,
    Granularity,
    Playhead,
    advanced,
    clamped,
    end_of_visit,
    first_cursor,
    follows,
    last_cursor,
    moved,
    path_between,
    seconds_of,
    share,
    step,
)
from simulator.program.tile_program import TileProgram
from tests.helpers.demos import every_cursor
from tests.helpers.runs import program_of, scenario, scenarios, visits_in_order

SMALL = scenarios(longest=10)
GRANULARITIES = st.sampled_from(list(Granularity))
SOME = {
    "heads": 3, "nq": 3, "nk": 4, "d": 1, "rows": 1, "cols": 2, "mask": {"causal": True},
}  # fmt: skip
"""Three heads of row blocks of one and of two visits."""


def walk(program: TileProgram, start: Cursor, by: Granularity, forward: bool) -> list[Cursor]:
    """Return the cursors from `start` until a step stays where it is."""
    out = [start]
    while (following := step(program, out[-1], by, forward)) != out[-1]:
        assert (following > out[-1]) == forward
        out.append(following)
    return out


def any_cursor(program: TileProgram, data: st.DataObject) -> Cursor:
    visit = data.draw(st.integers(0, len(program) - 1))
    return Cursor(visit, data.draw(st.integers(0, len(program.ops(visit)) - 1)))


@given(SMALL)
@example(scenario("naive", **SOME))
@example(scenario("flash2", **SOME))
def test_steps_by_op_go_through_every_cursor(chosen: Scenario) -> None:
    program = program_of(chosen)
    every = every_cursor(program)
    assert walk(program, first_cursor(), Granularity.OP, forward=True) == every
    back = walk(program, last_cursor(program), Granularity.OP, forward=False)
    assert back == every[::-1]


@given(SMALL, GRANULARITIES, st.booleans(), st.data())
def test_both_ends_are_reached_from_anywhere(
    chosen: Scenario, by: Granularity, forward: bool, data: st.DataObject
) -> None:
    program = program_of(chosen)
    path = walk(program, any_cursor(program, data), by, forward)
    assert path[-1] == (last_cursor(program) if forward else first_cursor())
    for cursor in path:
        assert clamped(program, cursor) == cursor


@pytest.mark.long
@given(SMALL)
@example(scenario("naive", **SOME))
@example(scenario("flash2", **SOME))
def test_steps_by_tile_stop_at_the_end_of_every_visit(chosen: Scenario) -> None:
    program = program_of(chosen)
    ends = [end_of_visit(program, index) for index in range(len(program))]
    path = walk(program, first_cursor(), Granularity.TILE, forward=True)
    assert path == sorted({first_cursor(), *ends})
    back = walk(program, last_cursor(program), Granularity.TILE, forward=False)
    assert back == path[::-1]


@pytest.mark.long
@given(SMALL, st.sampled_from([Granularity.ROW_BLOCK, Granularity.HEAD]))
@example(scenario("naive", **SOME), Granularity.HEAD)
@example(scenario("flash1", **SOME), Granularity.ROW_BLOCK)
@example(scenario("flash1", **SOME), Granularity.HEAD)
@example(scenario("flash2", **SOME), Granularity.ROW_BLOCK)
def test_larger_steps_stop_at_the_first_visit_of_each(chosen: Scenario, by: Granularity) -> None:
    program = program_of(chosen)
    w = program.workload
    groups = [
        (launch, head) if by is Granularity.HEAD
        else (launch, head, j if w.algorithm == "flash1" else i)
        for launch, head, i, j in visits_in_order(w)
    ]  # fmt: skip
    starts = [n for n, key in enumerate(groups) if n == 0 or groups[n - 1] != key]
    ends = [end_of_visit(program, index) for index in starts]
    path = walk(program, first_cursor(), by, forward=True)
    assert path == sorted({first_cursor(), *ends[1:], last_cursor(program)})
    back = walk(program, last_cursor(program), by, forward=False)
    assert back == sorted({first_cursor(), *ends, last_cursor(program)}, reverse=True)


@given(SMALL, st.data())
def test_a_step_back_undoes_a_step_by_op(chosen: Scenario, data: st.DataObject) -> None:
    program = program_of(chosen)
    at = any_cursor(program, data)
    for forward in (True, False):
        there = step(program, at, Granularity.OP, forward)
        if forward:
            assert step(program, at, Granularity.OP) == there
        if there != at:
            assert step(program, there, Granularity.OP, not forward) == at


@given(SMALL, st.integers(-5, 10**6), st.integers(-5, 50))
def test_clamping(chosen: Scenario, visit: int, op: int) -> None:
    program = program_of(chosen)
    cursor = clamped(program, Cursor(visit, op))
    assert cursor.visit == min(max(visit, 0), len(program) - 1)
    assert cursor.op == min(max(op, 0), len(program.ops(cursor.visit)) - 1)


@given(SMALL, st.integers(1, 40), st.data())
def test_a_walk_goes_op_by_op_then_by_tiles_then_evenly(
    chosen: Scenario, most: int, data: st.DataObject
) -> None:
    program = program_of(chosen)
    start, end = any_cursor(program, data), any_cursor(program, data)
    every = every_cursor(program)
    one, two = every.index(start), every.index(end)
    between = every[one + 1 : two + 1] if two >= one else every[two:one][::-1]
    path = path_between(program, start, end, most)
    if len(between) <= most:
        assert path == tuple(between)
        return
    across = abs(end.visit - start.visit)
    assert path[-1] == end
    assert len(path) == max(min(across, most), 1)
    assert all(cursor == end_of_visit(program, cursor.visit) for cursor in path[:-1])
    stops = [start.visit, *(cursor.visit for cursor in path)]
    for here, there in pairwise(stops):
        gap = there - here if end >= start else here - there
        assert abs(gap - across / len(path)) < 1
    # Evenly from the start on: each where an even walk would be, to the nearest visit.
    for n, visit in enumerate(stops):
        assert abs(abs(visit - start.visit) - across * n / len(path)) <= 0.5


# --- time ------------------------------------------------------------------------------------


def durations(program: TileProgram, path: list[Cursor], by: Granularity) -> list[float]:
    """Return how long each step of a path from the start lasts, from what the ops say."""
    found, begun = [], {}
    for cursor in path:
        op, visit = program.ops(cursor.visit)[cursor.op], program.visit(cursor.visit)
        first = begun.setdefault((visit.head, visit.i), visit.index) == visit.index
        long = 3.9 if op.name == "rescale" and not first else 0.7
        moves = op.moves and (op.loads or op.stores)
        found.append((1.0 if moves else long) if by is Granularity.OP else 0.7)
    return found


def test_what_moves_tiles_lasts_longer() -> None:
    assert (SECONDS_PER_OP, SECONDS_PER_MOVE) == (0.7, 1.0)
    program = program_of(scenario("flash2", **SOME))
    named: dict[str, set[float]] = {}
    for visit in range(len(program)):
        for op in program.ops(visit):
            named.setdefault(op.name, set()).add(seconds_of(op))
    assert named.pop("load") == named.pop("store") == {1.0}
    assert named.pop("rescale") == {0.7, 3.9}  # the first of a row has nothing to rescale
    assert set().union(*named.values()) == {0.7}


@given(SMALL, GRANULARITIES, st.lists(st.floats(0, 9), max_size=12))
@example(scenario("flash2", **SOME), Granularity.OP, [0.0, 1.0, 0.7, 40.0])
def test_time_is_spent_step_by_step_and_none_of_it_is_lost(
    chosen: Scenario, by: Granularity, pauses: list[float]
) -> None:
    program = program_of(chosen)
    path = walk(program, first_cursor(), by, forward=True)
    ends = list(accumulate(durations(program, path, by)))
    head, now = Playhead(path[0], 0.0), 0.0
    for pause in pauses:
        before, now = head, now + pause
        head = advanced(program, head, pause, by)
        place = path.index(head.cursor)
        passed = min(now, ends[-1])
        assert head.done + (ends[place - 1] if place else 0) == pytest.approx(passed, abs=1e-9)
        assert 0 <= share(program, head, by) <= 1
        assert head.cursor >= before.cursor
    head = advanced(program, head, ends[-1] + 1, by)
    assert head.cursor == last_cursor(program)
    assert share(program, head, by) == 1
    assert advanced(program, head, 5.0, by) == head, "the end is the end"


def test_a_step_lasts_ten_times_as_long_at_a_tenth_of_the_speed() -> None:
    program = program_of(scenario("flash2", **SOME))

    def ticks(speed: float) -> int:
        """Return how many ticks of a sixtieth of a second pass before the next op begins."""
        head = Playhead(first_cursor(), 0.0)
        count = 0
        while head.cursor == first_cursor():
            head = advanced(program, head, speed / 60, Granularity.OP)
            count += 1
        return count

    assert ticks(1.0) == pytest.approx(60, abs=1)
    assert ticks(0.1) == pytest.approx(600, abs=1)


def test_an_op_moves_and_then_rests() -> None:
    shares = [moved(n / 100) for n in range(101)]
    assert shares[0] == 0
    assert shares == sorted(shares)
    assert 5 < shares.count(1.0) < 20


@pytest.mark.long
def test_an_hour_of_jitter_and_stalls_keeps_the_clock() -> None:
    """At 20×, steps last less than the time between two late ticks."""
    program = program_of(scenario("flash2", nq=4096, nk=4096, d=1, rows=16, cols=16))
    random_ = random.Random(16)
    head, now = Playhead(first_cursor(), 0.0), 0.0
    while now < 3600:
        tick = 1 / 60 * random_.uniform(0.5, 3) if random_.random() < 0.99 else 2 * random_.random()
        head, now = advanced(program, head, 20 * tick, Granularity.OP), now + tick
    passed = head.done
    at = head.cursor
    assert at < last_cursor(program), "it is long enough"
    counts = {n: len(program.ops(n)) for n in range(at.visit)} | {at.visit: at.op}
    path = [Cursor(visit, op) for visit, count in counts.items() for op in range(count)]
    passed += sum(durations(program, path, Granularity.OP))
    assert passed == pytest.approx(20 * now, rel=1e-6)


@given(SMALL, st.data())
def test_a_cursor_follows_the_one_an_op_before_and_no_other(chosen: Scenario, data) -> None:
    program = program_of(chosen)
    start = first_cursor()
    whole = (start, *path_between(program, start, last_cursor(program), 10_000))
    at = data.draw(st.integers(0, len(whole) - 1))
    later = [n for n, cursor in enumerate(whole) if follows(program, whole[at], cursor)]
    assert later == [at + 1][: len(whole) - 1 - at]


@pytest.mark.long
def test_of_a_step_no_less_than_nothing_and_no_more_than_all_is_done() -> None:
    program = program_of(scenario("flash2", nq=4))
    for by in Granularity:
        for done, part in ((-1.0, 0.0), (0.0, 0.0), (1e3, 1.0)):
            assert share(program, Playhead(Cursor(0, 1), done), by) == part
