"""Split-KV: packed rows, splits and their joining, against the definition and plain loops."""

from itertools import product
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.base.errors import shown
from simulator.engines.reference import reference_rows
from simulator.problem.filling import each_sequence
from simulator.problem.hardware import gpus
from simulator.problem.packing import PackedMask, chosen_splits
from simulator.problem.scenario import Scenario, parse_scenario, scenario_tables, with_values
from simulator.problem.tiling import TileGrid, TileKind
from simulator.problem.workload import resolve
from simulator.program.algorithms import tile_program
from simulator.run.exactness import exactness
from simulator.run.row_report import row_report
from simulator.run.trace import tile_counts
from tests.helpers.op_by_op import counted_by_ops
from tests.helpers.refused import refused
from tests.helpers.runs import Pairs, fitted, scenario, scenarios, trace_of

DEALT = st.tuples(st.sampled_from(["splits", "split_size"]), st.integers(1, 7))
"""A number of splits, or column blocks of each."""


def split(chosen: Scenario, number: int, key: str = "splits") -> Scenario:
    """Return a scenario of so many splits, or of splits of so many column blocks."""
    tiling = {key: number * (1 if key == "splits" else resolve(chosen).cols)}
    return with_values(chosen, {"attention": {"algorithm": "split-kv"}, "tiling": tiling})


def even(chosen: Scenario) -> Scenario:
    """Return the scenario with all its heads: those that are picked may not fill groups."""
    return with_values(chosen, {"input": {"head": "all"}})


# --- the numbers -------------------------------------------------------------------------------


def test_a_split_begins_with_nothing_seen_and_ends_with_its_own_share() -> None:
    trace = trace_of(split(scenario(nq=1, nk=24, heads=2, kv_heads=1, rows=4, cols=4, d=3), 3))
    w, inputs = trace.workload, trace.inputs
    scores = inputs.q[0].astype(float) @ inputs.k[0].astype(float).T * w.logit_scale
    assert [trace.program.visit(n).split for n in range(6)] == [0, 0, 1, 1, 2, 2]
    for index in range(6):
        visit = trace.program.visit(index)
        own = scores[:, visit.split * 8 : visit.cols.stop]
        now = trace.snapshot(index)
        np.testing.assert_allclose(now.m, own.max(axis=1), rtol=1e-5)
        np.testing.assert_allclose(
            now.l, np.exp(own - own.max(axis=1)[:, None]).sum(axis=1), rtol=1e-5
        )
        assert visit.first == (index % 2 == 0)
    joined = trace.snapshot(6)
    np.testing.assert_allclose(joined.state["w"].sum(axis=0), joined.l, rtol=1e-6)
    lse = [np.log(np.exp(scores[:, 8 * s : 8 * s + 8]).sum(axis=1)) for s in range(3)]
    np.testing.assert_allclose(joined.state["LSE_partial"], lse, rtol=1e-5)


def test_errors_are_those_of_what_o_adds_up() -> None:
    """In a split of its own keys, joined of all; in between no row has an output."""
    trace = trace_of(split(scenario(nq=2, nk=23, heads=4, kv_heads=2, rows=3, cols=4, d=3), 3))
    told = set()
    for index in range(len(trace)):
        for number, op in enumerate(trace.program.ops(index)):
            now = trace.snapshot(index, number)
            report = row_report(now, now.visit.rows.start + 1)
            picture = exactness(trace, now, report)
            told.add((now.visit.launch, op.name, report.error is None))
            assert (report.error or 0.0) < 1e-6
            assert picture.now.ulp.max() < 32
            if now.visit.i == 0:
                assert np.isnan(now.head.o[3:]).all()
    assert (0, "accumulate", False) in told
    assert (1, "load", True) in told
    assert (1, "accumulate", False) in told
    end = trace.snapshot(len(trace) - 1)
    exact, lse = reference_rows(trace.workload, trace.inputs, 1, range(4))
    np.testing.assert_allclose(end.head.o, exact, atol=1e-6)
    np.testing.assert_allclose(end.head.m + np.log(end.head.l), lse, atol=1e-6)


# --- what is counted ---------------------------------------------------------------------------


@given(scenarios(algorithms=["flash2"], longest=14), DEALT)
def test_counters_are_those_of_the_ops(chosen: Scenario, dealt: tuple[str, int]) -> None:
    key, number = dealt
    program = tile_program(resolve(split(even(chosen), number, key)))
    now = counted_by_ops(program)
    for index in range(len(program)):
        visit = program.visit(index)
        assert program.index(visit.head, visit.i, visit.j, visit.launch) == index
    if not program.launches[0].per_head:
        return
    w = program.workload
    rows = w.heads * w.seqlen_q
    assert now.write["O_partial"] == now.read["O_partial"] == 4 * w.splits * rows * w.value_dim
    assert now.write["LSE_partial"] == now.read["LSE_partial"] == 4 * w.splits * rows
    assert (now.write["O"], now.write["LSE"]) == (w.width * rows * w.value_dim, 4 * rows)
    run_of = number if key == "split_size" else ceil(w.grid.Tc / number)
    assert w.splits == (ceil(w.grid.Tc / number) if key == "split_size" else number)
    kinds = w.grid.kinds()
    loads = sum(
        len(w.grid.row_range(i))
        for i, n in product(range(w.grid.Tr), range(w.splits))
        if kinds[i, n * run_of : (n + 1) * run_of].any()
    )
    assert now.read["Q"] == w.heads * loads * w.head_dim * w.width
    assert tile_counts(program)["visited"] == w.heads * int((kinds > 0).sum())


# --- packed rows -------------------------------------------------------------------------------


@given(
    st.integers(1, 12), st.integers(1, 4), st.integers(1, 30), st.booleans(),
    st.integers(0, 20), st.integers(0, 12), st.integers(1, 9), st.integers(1, 9),
)  # fmt: skip
def test_tiles_of_packed_rows_are_those_that_some_row_sees(
    queries: int, group: int, nk: int, causal: bool, window: int, sinks: int, rows: int, cols: int
) -> None:
    one = Pairs(queries, nk, causal, window, sinks).matrix()
    seen = np.concatenate([one] * group)
    mask = PackedMask(group * queries, nk, causal, window, sinks, queries=queries)
    np.testing.assert_array_equal(mask.visible(range(len(seen)), range(nk)), seen)
    grid = TileGrid(mask, rows, cols)
    for i, j in product(range(grid.Tr), range(grid.Tc)):
        a, b = grid.row_range(i), grid.col_range(j)
        part = seen[a.start : a.stop, b.start : b.stop]
        kind = TileKind.FULL if part.all() else TileKind(int(part.any()))
        assert grid.kind(i, j) is kind, (i, j)
        assert (grid.visited_rows.place(j, i) is not None) == (kind is not TileKind.SKIPPED)
        assert (grid.full_rows.place(j, i) is not None) == (kind is TileKind.FULL)


def test_heads_that_do_not_fill_groups_are_refused() -> None:
    chosen = split(scenario(nq=1, nk=8, heads=4, kv_heads=2, head=[0, 1, 2]), 2)
    assert "input.head = [0, 1, 2]: expected as many query" in refused(resolve, chosen)
    w = resolve(with_values(chosen, {"input": {"head": [2, 3]}}))
    assert (w.heads, w.group, w.head_name(0), w.seqlen_q) == (1, 2, "2–3", 2)


# --- how many splits ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("blocks", "thread_blocks", "splits"),
    [
        (4, 1, 1),  # four column blocks or fewer
        (64, 106, 1),  # 106 of 132 SMs are more than 0.8 of them
        (64, 105, 5),  # 525 of 528, where one wave holds 105 of 132
        (64, 33, 4),
        (1024, 1, 109),  # 128 at most would be 0.970 of a wave, 109 are 0.826
        (16, 8, 14),  # no more than the 16 column blocks, 0.970 of a wave; 14 are 0.848
    ],
)
def test_auto_is_flash_attention_3s_choice(blocks: int, thread_blocks: int, splits: int) -> None:
    gpu = gpus()["H100-SXM"]
    assert gpu.sms == 132
    found = chosen_splits(blocks, thread_blocks, gpu)
    assert found.splits == splits
    assert found.answer.startswith(f"{splits} split{'s' * (splits > 1)}, ")


def test_the_choice_says_line_by_line_why() -> None:
    gpu = gpus()["H100-SXM"]
    full, few, many, fullest = (
        chosen_splits(*each, gpu) for each in ((64, 106), (4, 1), (1024, 1), (5, 105))
    )
    assert full.answer == "1 split, because without splits the GPU is full enough"
    assert full.reasons == (
        "without splits 106 thread blocks for 132 SMs: 0.803 of them, at least 0.8",
    )
    assert few.answer == "1 split, because the column blocks are too few to divide"
    assert few.reasons[1:] == ("4 column blocks, at most 4",)
    assert many.answer == (
        "109 splits, the fewest whose waves (0.826 full) are at least 0.85 as full as the fullest "
        "(0.970, 128 splits)"
    )
    assert many.reasons == (
        "without splits 1 thread block for 132 SMs: 0.008 of them, fewer than 0.8",
        "1024 column blocks, more than 4: they can be divided",
        "at most 128 splits: of 128, 132 SMs, 1024 column blocks",
    )
    assert fullest.reasons[0].endswith("132 SMs: 0.795 of them, fewer than 0.8")
    assert fullest.answer == (
        "5 splits, whose waves are the fullest (0.994 full): no fewer are at least 0.85 as full"
    )


def test_a_scenario_says_how_many_or_leaves_the_choice() -> None:
    for said, splits in ((3, 3), ("auto", 5), (None, 5)):
        for nq, heads in ((1, 105), (3, 35)):  # as many thread blocks
            chosen = scenario(nq=nq, nk=64, heads=heads, rows=1, cols=1, algorithm="split-kv")
            w = resolve(with_values(chosen, {"tiling": {"splits": said}}))
            assert w.splits == splits


def test_splits_are_a_key_of_the_file() -> None:
    for value in (1, 4, "auto"):
        chosen = parse_scenario({"tiling": {"rows": 4, "cols": 4, "splits": value}})
        assert scenario_tables(chosen)["tiling"]["splits"] == value
    for wrong in (0, 257, "many", 1.5):
        expected = 'a whole number from 1 to 256, or "auto"'
        told = refused(parse_scenario, {"tiling": {"splits": wrong}})
        assert told == f"scenario: tiling.splits = {shown(wrong)}: expected {expected}"


@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 12))
def test_splits_of_a_size_cut_the_keys_at_its_multiples(nk: int, cols: int, blocks: int) -> None:
    chosen = scenario(nq=1, nk=nk, rows=1, cols=cols)
    w = resolve(split(chosen, blocks, "split_size"))
    size = blocks * cols
    assert [w.split_keys(n) for n in range(w.splits)] == [
        range(start, min(start + size, nk)) for start in range(0, nk, size)
    ]
    visits = [tile_program(w).visit(n) for n in range(w.grid.Tc)]
    assert [visit.split for visit in visits] == [visit.cols.start // size for visit in visits]


def test_the_size_of_splits_is_a_key_of_the_file() -> None:
    said = {"rows": 4, "cols": 8, "split_size": 24}
    chosen = parse_scenario({"tiling": said})
    assert scenario_tables(chosen)["tiling"] == said
    for number in (2, "auto"):
        expected = "no tiling.splits beside it: either their number or their size"
        told = refused(parse_scenario, {"tiling": said | {"splits": number}})
        assert told == f"scenario: tiling.split_size = 24: expected {expected}"
    told = refused(parse_scenario, {"tiling": {"split_size": 0}})
    assert "tiling.split_size = 0: expected at least 1" in told


@pytest.mark.parametrize(
    ("size", "nk", "words"),
    [
        (12, 40, "a multiple of Bc = 8: a split is a whole number of tiles"),
        (4, 40, "a multiple of Bc = 8: a split is a whole number of tiles"),
        (8, 8 * 256 + 1, "at least 16: 2049 keys in at most 256 splits"),
        (8, 8 * 256, ""),
    ],
)
@pytest.mark.parametrize("algorithm", ["split-kv", "paged", "mla"])
def test_a_size_that_cannot_be_is_refused_in_a_line(
    algorithm: str, size: int, nk: int, words: str
) -> None:
    said = fitted(algorithm, nq=1, nk=nk, cols=8)
    chosen = with_values(scenario(algorithm, **said), {"tiling": {"split_size": size}})
    if not words:
        assert resolve(chosen).splits == 256
        return
    assert refused(resolve, chosen) == f"scenario: tiling.split_size = {size}: expected {words}"
    # Others have no splits, so the key says nothing.
    plain = scenario("flash2", nq=1, nk=nk, cols=8)
    assert resolve(with_values(plain, {"tiling": {"split_size": size}})).splits == 1


def test_a_batch_has_as_many_thread_blocks_as_its_sequences_together() -> None:
    """Two KV heads of four query heads: the rows of a sequence are tiled by 4."""
    plain = scenario("split-kv", nq=1, nk=64, heads=8, kv_heads=2, rows=4, cols=1)
    for lengths, queries, thread_blocks in (
        ([64], [1], 2),
        ([64, 9, 64], None, 6),
        ([64, 9, 1], [1, 5, 0], 2 + 10),  # 20 rows are five blocks of four
        ([5, 64], [2, 100], 2 * (2 + 100)),
    ):
        batch = {"lengths": lengths} | ({"queries": queries} if queries else {})
        shapes = {"seqlen_k": None, "seqlen_q": None if queries else 1}
        chosen = with_values(plain, {"batch": batch, "attention": shapes})
        splits = chosen_splits(64, thread_blocks, gpus()["H100-SXM"]).splits
        assert [resolve(each).splits for each in each_sequence(chosen)] == [splits] * len(
            chosen.batch.running
        )
        assert chosen_splits(64, thread_blocks, resolve(chosen).gpu) == resolve(chosen).split_choice


# --- commands ----------------------------------------------------------------------------------


@pytest.mark.long
def test_more_splits_than_column_blocks_leave_empty_ones() -> None:
    trace = trace_of(split(scenario(nq=2, nk=9, rows=2, cols=4), 7))
    assert tile_counts(trace.program)["visited"] == 3
    joined = trace.snapshot(len(trace) - 1)
    assert np.isneginf(joined.state["LSE_partial"][3:]).all()
    assert (joined.state["O_partial"][3:] == 0).all()
