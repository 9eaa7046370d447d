"""Every condition against a walk over all cursors; searches that are cancelled or find nothing."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.engines.numpy_engine import NumpyEngine
from simulator.problem.workload import Inputs, read_inputs, resolve
from simulator.program.algorithms import tile_program
from simulator.program.playback import Cursor, end_of_visit
from simulator.program.tile_program import TileProgram
from simulator.run.breakpoints import (
    AtEnd,
    AtLine,
    AtOp,
    AtRow,
    AtTile,
    AtTurn,
    Finder,
    Hit,
    MaximumChanged,
    OverLimit,
    TileSkipped,
)
from simulator.run.trace import Trace
from tests.helpers.demos import every_cursor
from tests.helpers.runs import ALGORITHMS, pairs_of, scenario, scenarios, trace_of, visits_in_order
from tests.simulator.program.test_split_kv import even, split

OPS = (
    "load", "store", "clear", "initialise", "scores", "mask", "row max", "exponentials",
    "row sum", "combine", "rescale", "accumulate", "normalise",
)  # fmt: skip


def whole(trace: Trace, visit: int) -> bool:
    return trace.program.launches[trace.program.visit(visit).launch].whole_rows


def brute_tile(trace: Trace, i: int, j: int) -> list[Cursor]:
    w = trace.workload
    found = []
    for index, (_, _, a, b) in enumerate(visits_in_order(w)):
        if a == i and (b == j or (whole(trace, index) and j < w.grid.Tc)):
            found.append(Cursor(index, 0))
    return found


def brute_row(trace: Trace, row: int) -> list[Cursor]:
    found, before = [], None
    for index, (launch, head, i, _) in enumerate(visits_in_order(trace.workload)):
        if trace.workload.algorithm == "flash1":
            before = None  # each visit takes its row block up anew
        rows = trace.program.visit(index).rows
        if row in rows and before != (launch, head, i):
            found.append(Cursor(index, 0))
        before = (launch, head, i)
    return found


def brute_skipped(trace: Trace) -> list[Cursor]:
    """Walk over all tiles of all heads, skipped ones too, in the order of the loops."""
    w = trace.workload
    if w.algorithm == "naive":
        return []
    kinds = pairs_of(w).kinds(w.rows, w.cols)
    Tr, Tc = kinds.shape
    if w.algorithm == "flash2":
        order = [(i, j) for i in range(Tr) for j in range(Tc)]
    else:
        order = [(i, j) for j in range(Tc) for i in range(Tr)]
    found, passed, visit = [], False, 0
    for tile in order * w.heads:
        if not kinds[tile]:
            passed = True
            continue
        if passed:
            found.append(Cursor(visit, 0))
        passed, visit = False, visit + 1
    assert visit == len(trace.program)
    # The last row sees the last key, unless the mask is aligned at the top left.
    assert not passed or w.mask.moved
    return found


def brute_maximum(trace: Trace) -> list[Cursor]:
    """Compare m of the current row block before and after every op."""
    found = []
    if trace.workload.algorithm == "naive":
        return found
    for visit in range(len(trace.program)):
        if trace.program.launches[trace.program.visit(visit).launch].combines:
            continue  # the largest of some parts, no maximum that runs
        old = trace.tile(visit).m_prev
        for op in range(len(trace.program.ops(visit))):
            new = trace.snapshot(visit, op).m
            if any(np.isfinite(a) and b > a for a, b in zip(old, new, strict=True)):
                found.append(Cursor(visit, op))
            old = new
    return found


def brute_limit(trace: Trace) -> list[Cursor]:
    found, was = [], False
    for cursor in every_cursor(trace.program):
        held = trace.program.on_chip(cursor.visit, cursor.op)
        over = (
            sum(tile.bytes for tile in held if tile.place == "shared")
            > trace.workload.gpu.smem_bytes
        )
        if over and not was:
            found.append(cursor)
        was = over
    return found


def brute_op(trace: Trace, name: str) -> list[Cursor]:
    cursors = every_cursor(trace.program)
    return [c for c in cursors if trace.program.ops(c.visit)[c.op].name == name]


def brute_turn(trace: Trace, outer: bool) -> list[Cursor]:
    by_rows = trace.workload.algorithm != "flash1"
    found, before = [], None
    for index, (launch, head, i, j) in enumerate(visits_in_order(trace.workload)):
        turn = (launch, head, i if by_rows else j)
        if not outer or turn != before:
            found.append(Cursor(index, 0))
        before = turn
    return found


def check_search(trace: Trace, condition, expected: list[Cursor], starts: list[Cursor]) -> None:
    """Hold the search from some cursors, in both directions, against all places."""
    finder = Finder(trace)
    for start in starts:
        later = [cursor for cursor in expected if cursor > start]
        earlier = [cursor for cursor in expected if cursor < start]
        want = Hit(min(later), condition) if later else None
        assert finder.find(start, [condition]) == want, (start, condition)
        want = Hit(max(earlier), condition) if earlier else None
        assert finder.find(start, [condition], forward=False) == want, (start, condition)


def find_first(trace: Trace, condition, progress=None) -> Cursor | None:
    """Return the first cursor after the start of a run that meets a condition."""
    hit = Finder(trace).find(Cursor(0, 0), [condition], progress)
    return hit.cursor if hit else None


def limited(trace: Trace, smem_kib: float) -> Trace:
    """Return the run on a GPU with so much shared memory."""
    w = trace.workload
    w = replace(w, gpu=replace(w.gpu, smem_kib=smem_kib))
    return trace_of(w, trace.inputs)


@pytest.mark.long
@settings(max_examples=settings.default.max_examples)
@given(scenarios(longest=14), st.data())
def test_conditions_stop_where_a_walk_over_all_cursors_does(chosen, data):
    trace = trace_of(chosen)
    w = trace.workload
    if not len(trace.program):
        return
    cursors = every_cursor(trace.program)
    starts = [cursors[0], cursors[-1], *data.draw(st.lists(st.sampled_from(cursors), max_size=4))]
    i = data.draw(st.integers(0, w.grid.Tr))
    j = data.draw(st.integers(0, w.grid.Tc))
    row = data.draw(st.integers(0, w.seqlen_q))
    name = data.draw(st.sampled_from(OPS))
    check_search(trace, AtTile(i, j), brute_tile(trace, i, j), starts)
    check_search(trace, AtRow(row), brute_row(trace, row), starts)
    check_search(trace, AtOp(name), brute_op(trace, name), starts)
    check_search(trace, TileSkipped(), brute_skipped(trace), starts)
    check_search(trace, MaximumChanged(), brute_maximum(trace), starts)
    check_search(trace, AtEnd(), [cursors[-1]], starts)
    for outer in (False, True):
        check_search(trace, AtTurn(outer), brute_turn(trace, outer), starts)
    small = limited(trace, data.draw(st.integers(0, trace.program.peak_shared_bytes)) / 1024)
    check_search(small, OverLimit(), brute_limit(small), starts)


@pytest.mark.long
@settings(max_examples=settings.default.max_examples // 2)
@given(scenarios(algorithms=["flash2"], longest=12), st.integers(1, 5), st.data())
def test_splits_are_turns_of_their_own(chosen, splits, data):
    trace = trace_of(split(even(chosen), splits))
    w, program = trace.workload, trace.program
    cursors, visits = every_cursor(program), [program.visit(n) for n in range(len(program))]
    starts = [cursors[0], cursors[-1], *data.draw(st.lists(st.sampled_from(cursors), max_size=4))]
    firsts = [visit for visit in visits if visit.first]
    row, name = data.draw(st.integers(0, w.seqlen_q - 1)), data.draw(st.sampled_from(OPS))
    i, j = data.draw(st.integers(0, w.grid.Tr)), data.draw(st.integers(0, w.grid.Tc - 1))
    own = [Cursor(v.index, 0) for v in firsts if row in v.rows]
    tiles = [v for v in visits if v.i == i and (v.j == j or whole(trace, v.index))]
    check_search(trace, AtRow(row), own, starts)
    check_search(trace, AtTurn(outer=True), [Cursor(v.index, 0) for v in firsts], starts)
    check_search(trace, AtTurn(outer=False), [Cursor(v.index, 0) for v in visits], starts)
    check_search(trace, AtTile(i, j), [Cursor(v.index, 0) for v in tiles], starts)
    check_search(trace, AtOp(name), brute_op(trace, name), starts)
    check_search(trace, MaximumChanged(), brute_maximum(trace), starts)
    check_search(trace, AtEnd(), [cursors[-1]], starts)
    small = limited(trace, data.draw(st.integers(0, program.peak_shared_bytes)) / 1024)
    check_search(small, OverLimit(), brute_limit(small), starts)


@pytest.mark.long
@settings(max_examples=settings.default.max_examples * 2 // 3)
@given(scenarios(longest=12), st.data())
def test_of_several_conditions_the_nearest_counts_and_none_beyond_the_end(chosen, data):
    trace = trace_of(chosen)
    if not len(trace.program):
        return
    cursors = every_cursor(trace.program)
    places = {
        AtOp("scores"): brute_op(trace, "scores"),
        AtRow(0): brute_row(trace, 0),
        TileSkipped(): brute_skipped(trace),
        MaximumChanged(): brute_maximum(trace),
    }
    chosen_ones = data.draw(st.lists(st.sampled_from(list(places)), unique=True))
    start, until = data.draw(st.tuples(st.sampled_from(cursors), st.sampled_from(cursors)))
    expected = {c for condition in chosen_ones for c in places[condition] if start < c <= until}
    hit = Finder(trace).find(start, chosen_ones, until=until)
    assert (hit.cursor if hit else None) == min(expected, default=None)
    if hit:
        assert hit.cursor in places[hit.condition]
    expected = {c for condition in chosen_ones for c in places[condition] if until <= c < start}
    hit = Finder(trace).find(start, chosen_ones, forward=False, until=until)
    assert (hit.cursor if hit else None) == max(expected, default=None)


def test_a_search_can_be_stopped_and_tells_how_far_it_is():
    class StoppedError(Exception):
        pass

    told = []

    def progress(share):
        told.append(share)
        if len(told) == 3:
            raise StoppedError

    # One tile a row: no maximum ever changes, so every row block is asked for.
    trace = trace_of(scenario("flash2", nq=40, nk=4, rows=4, cols=4))
    with pytest.raises(StoppedError):
        find_first(trace, MaximumChanged(), progress)
    assert told == sorted(told)
    assert 0 <= told[-1] <= 1


def test_numbers_are_asked_for_only_as_far_as_needed(monkeypatch):
    trace = trace_of(scenario("flash1", nq=40, nk=40, rows=4, cols=4, heads=2))
    asked = []
    real = trace.row_block
    monkeypatch.setattr(trace, "row_block", lambda h, i: asked.append((h, i)) or real(h, i))
    finder = Finder(trace)
    tile = finder.find(Cursor(0, 0), [AtTile(3, 0), MaximumChanged()])
    assert tile.condition == AtTile(3, 0)  # in the first column block no maximum can have changed
    assert len(asked) <= 4
    hit = finder.find(tile.cursor, [MaximumChanged()])
    before = len(asked)
    assert finder.find(tile.cursor, [MaximumChanged()]) == hit
    assert len(asked) == before
    assert not [condition for condition in (AtTile(0, 0), AtRow(0)) if condition.numeric]


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_search_in_a_million_visits_looks_at_few(algorithm, monkeypatch):
    """Sixteen heads at N = 16 384: what never comes is known after less than two heads."""
    chosen = scenario(algorithm, nq=16384, d=64, heads=16, rows=128, cols=128, head=[0])
    w = resolve(chosen)
    program = tile_program(replace(w, heads=16, kv_head_of=(0,) * 16))
    inputs = read_inputs(w)
    trace = Trace(program, NumpyEngine(w, inputs), inputs)
    looked = []
    real = TileProgram.visit
    monkeypatch.setattr(TileProgram, "visit", lambda p, n: looked.append(n) or real(p, n))
    assert find_first(trace, AtOp("no such op")) is None
    assert len(looked) < 3000
    assert find_first(trace, AtEnd()) == end_of_visit(program, len(program) - 1)


def test_conditions_say_what_they_wait_for() -> None:
    assert [
        condition.words
        for condition in (
            AtOp("row max"), AtTurn(outer=True), AtTurn(outer=False), AtEnd(), AtTile(2, 1),
            AtRow(12), TileSkipped(), OverLimit(), MaximumChanged(),
            AtLine("flash2", "cuda", 84, "flash2.cu:84", lambda op: True),
        )
    ] == [
        "op “row max”", "next turn of the outer loop", "next tile", "end of the run",
        "tile (2, 1)", "row 12", "a skipped tile", "SRAM over the limit", "a maximum changed",
        "flash2.cu:84",
    ]  # fmt: skip


def test_a_search_tells_the_share_that_it_has_passed() -> None:
    """Of row blocks that begin at visits 0, 1, 3 and 6 of ten."""
    trace = trace_of(scenario("flash2", nq=8, rows=2, cols=2, mask={"causal": True}))
    assert len(trace) == 10
    never = [AtRow(10**6)]
    for start, forward, told in (
        (Cursor(0, 0), True, [0.0, 0.1, 0.3, 0.6]),
        (Cursor(2, 0), True, [0.125, 0.125, 0.5]),
        (Cursor(9, 0), True, [1.0]),
        (Cursor(9, 0), False, [3 / 9, 6 / 9, 8 / 9, 1.0]),
    ):
        found: list[float] = []
        assert Finder(trace).find(start, never, found.append, forward=forward) is None
        assert found == pytest.approx(told)
    found = []
    until = Cursor(3, 0)  # no block beyond is looked at
    assert Finder(trace).find(Cursor(0, 0), never, found.append, until=until) is None
    assert found == pytest.approx([0.0, 0.1, 0.3])
    short = trace_of(scenario("flash2", nq=4, rows=2, cols=2, mask={"causal": True}))
    found = []
    assert Finder(short).find(Cursor(2, 0), never, found.append) is None
    assert found == [1.0]  # nothing is left after the last visit


def test_a_search_for_maxima_tells_the_share_of_row_blocks_asked_for() -> None:
    """One tile a row in two heads of two row blocks: each is asked for, then passed."""
    trace = trace_of(scenario("flash2", nq=8, nk=4, heads=2, rows=4, cols=4))
    told: list[float] = []
    assert Finder(trace).find(Cursor(0, 0), [MaximumChanged()], told.append) is None
    assert told == [0.0, 0.0, 0.25, 0.25, 0.5, 0.5, 0.75, 0.75]


def test_a_search_ends_at_its_farthest_place() -> None:
    trace = trace_of(scenario("flash2", nq=8, rows=2, cols=2, mask={"causal": True}))
    find, start, tile = Finder(trace).find, Cursor(0, 0), [AtTile(2, 1)]
    assert find(start, tile, until=Cursor(4, 0)) == Hit(Cursor(4, 0), AtTile(2, 1))
    assert find(start, tile, until=Cursor(3, 99)) is None
    end = Cursor(9, 0)
    assert find(end, tile, forward=False, until=Cursor(4, 0)) == Hit(Cursor(4, 0), AtTile(2, 1))
    assert find(end, tile, forward=False, until=Cursor(4, 1)) is None


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_of_two_conditions_the_nearer_counts_in_both_directions(algorithm):
    trace = trace_of(scenario(algorithm, nq=7, nk=5, d=2, heads=2, rows=3, cols=2))
    finder = Finder(trace)
    for pair, every in (
        ((AtTile(1, 1), AtOp("mask")), brute_tile(trace, 1, 1) + brute_op(trace, "mask")),
        ((AtOp("scores"), AtTile(2, 1)), brute_op(trace, "scores") + brute_tile(trace, 2, 1)),
        ((AtOp("clear"), MaximumChanged()), brute_op(trace, "clear") + brute_maximum(trace)),
        ((AtRow(4), AtTile(1, 2)), brute_row(trace, 4) + brute_tile(trace, 1, 2)),
    ):
        for start in every_cursor(trace.program)[::3]:
            for order in (pair, pair[::-1]):
                hit = finder.find(start, order)
                later = [cursor for cursor in every if cursor > start]
                assert (hit.cursor if hit else None) == min(later, default=None)
                hit = finder.find(start, order, forward=False)
                earlier = [cursor for cursor in every if cursor < start]
                assert (hit.cursor if hit else None) == max(earlier, default=None)


@pytest.mark.parametrize("algorithm", ["flash1", "flash2"])
def test_a_maximum_that_changes_in_one_head_alone_is_found(algorithm):
    """Heads are alike but for their numbers: in the third of five the second key is the larger."""
    w = resolve(scenario(algorithm, nq=2, nk=4, d=1, heads=5, rows=2, cols=1))
    k = np.zeros((5, 4, 1), dtype=np.float32)
    k[2, 1] = 1
    trace = trace_of(w.scenario, Inputs(np.ones((5, 2, 1), dtype=np.float32), k, k))
    (place,) = brute_maximum(trace)
    assert trace.program.visit(place.visit).head == 2
    check_search(trace, MaximumChanged(), [place], every_cursor(trace.program)[::7])


@pytest.mark.long
@pytest.mark.parametrize(
    ("algorithm", "blocks", "launches"), [("naive", 3, 3), ("flash1", 2, 1), ("flash2", 3, 1)]
)
def test_what_never_comes_is_known_after_one_whole_head_and_the_last(algorithm, blocks, launches):
    """All heads are alike: those between are looked at no more. No condition: none is."""
    heads = 5
    trace = trace_of(scenario(algorithm, nq=3, nk=2, d=1, heads=heads, rows=1, cols=1))
    program = trace.program
    per_launch = (1 + min(1, heads - 1)) * blocks
    for visit in range(len(program)):
        here = program.visit(visit)
        block = here.j if algorithm == "flash1" else here.i
        left = min(2, heads - 1 - here.head) * blocks
        forward = blocks - block + left + (launches - 1 - here.launch) * per_launch
        told: list[float] = []
        finder = Finder(trace)
        assert finder.find(Cursor(visit, 0), [AtOp("nothing")], told.append) is None
        assert len(told) == forward
        told.clear()
        found = finder.find(Cursor(visit, 0), [AtOp("nothing")], told.append, forward=False)
        assert found is None
        assert len(told) == block + 1 + (min(1, here.head) + here.launch) * blocks
        told.clear()
        assert finder.find(Cursor(visit, 0), [], told.append) is None
        assert not told


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_visits_of_one_class_are_alike(algorithm):
    shape = {"nq": 13, "nk": 11, "d": 1, "heads": 2, "rows": 3, "cols": 2}
    for mask in {"causal": True}, {"causal": True, "window": 6, "sinks": 2}, {"window": 6}:
        trace = trace_of(scenario(algorithm, **shape, mask=mask))
        finder, program, classes = Finder(trace), trace.program, {}
        for block in finder._blocks(Cursor(0, 0), True, None, every_head=True):
            for n, code in enumerate(finder.codes(block).tolist(), block.start):
                ops = [
                    (op.name, op.cites, op.flops, [(m.tensor, m.bytes) for m in op.moves],
                     sorted((tile.name, tile.bytes) for tile in program.on_chip(n, at)))
                    for at, op in enumerate(program.ops(n))
                ]  # fmt: skip
                assert classes.setdefault(code, ops) == ops
        assert len(classes) > 3


def test_of_two_skips_in_one_block_the_nearer_counts():
    """Between the sinks and the window, and before the sinks of the next row block."""
    mask = {"causal": True, "window": 2, "sinks": 1}
    for algorithm in ("flash1", "flash2"):
        trace = trace_of(scenario(algorithm, nq=8, d=1, heads=2, rows=1, cols=2, mask=mask))
        check_search(trace, TileSkipped(), brute_skipped(trace), every_cursor(trace.program)[::13])


def test_a_line_is_its_place_whatever_it_is_called():
    one, other = (AtLine("naive", "cuda", 3, name, name.isalpha, once=name == "b") for name in "ab")
    assert one == other
    assert "isalpha" not in repr(one)


def test_a_line_stops_at_the_first_of_the_ops_that_follow_one_another():
    trace = trace_of(scenario("flash2", nq=4, nk=4, mask={"causal": True}))
    program, visit = trace.program, trace.program.visit(0)
    names = [op.name for op in program.ops(0)]

    def stops(once, *runs):
        said = {"once": True} if once else {}
        line = AtLine("flash2", "paper", 1, "", lambda op: op.name in runs, **said)
        return [names[n] for n in line.ops(program, visit)]

    assert AtLine("naive", "paper", 1, "", lambda op: True).ops(program, visit) == ()
    assert stops(True, *names) == names[:1]
    assert stops(False, *names) == names
    assert stops(True, "mask", "row max", "row sum") == ["mask", "row sum"]
    assert stops(True, "load", names[-1]) == ["load", "load", "store"]  # of Q; of K and V
