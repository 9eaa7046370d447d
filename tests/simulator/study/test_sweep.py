"""Sweeps and maps against the tile programs that they do without."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.base.errors import InputError
from simulator.problem.filling import MAX_BLOCKS
from simulator.problem.hardware import time_estimate
from simulator.problem.scenario import Scenario, parse_scenario, with_values
from simulator.problem.workload import Workload, resolve
from simulator.program.algorithms import tile_program
from simulator.program.traffic import compulsory_bytes
from simulator.study.sweep import (
    HEAD_DIMS,
    Figures,
    axis_values,
    figures_of,
    map_sizes,
    own_value,
    rule_tiles,
    scenario_at,
    sweep,
    tiles_scenario,
    tiling_map,
    workload_at,
)
from tests.helpers.runs import ALGORITHMS, scenario, scenarios

AXES = ("N", "Br", "Bc", "d")


def counted(w: Workload) -> Figures:
    """Return the figures of a workload as its tile program has them."""
    program = tile_program(w)
    total = program.totals
    return Figures(
        total.read_bytes,
        total.write_bytes,
        total.flops,
        compulsory_bytes(w),
        program.peak_shared_bytes,
        time_estimate(w.gpu, total.bytes, total.flops, w.dtype),
        held(w),
    )


def held(w: Workload) -> int:
    """Return what HBM holds, tensor by tensor, as the papers write their sizes."""
    b, rows, keys = w.width, w.heads * w.seqlen_q, w.kv_heads * w.seqlen_k
    inputs = b * (rows * w.head_dim + keys * (w.head_dim + w.value_dim)) + 4 * len(w.sink_logits)
    outputs = {
        "naive": b * rows * (2 * w.seqlen_k + w.value_dim),  # S, P, O
        "flash1": 4 * rows * (w.value_dim + 2),  # O, l, m
        "flash2": rows * (b * w.value_dim + 4),  # O, LSE
        "split-kv": rows * (b * w.value_dim + 4 + 4 * w.splits * (w.value_dim + 1)),
    }
    return inputs + outputs[w.algorithm]


@given(scenarios(longest=40))
def test_figures_are_those_of_the_tile_program(chosen: Scenario) -> None:
    w = resolve(chosen)
    assert figures_of(w) == counted(w)


@pytest.mark.long
@given(scenarios(longest=30), st.sets(st.integers(1, 35), min_size=1, max_size=6),
       st.sets(st.integers(1, 35), min_size=1, max_size=6))  # fmt: skip
def test_every_cell_of_a_map_is_a_tile_program(
    chosen: Scenario, rows: set[int], cols: set[int]
) -> None:
    w = resolve(chosen)
    found = tiling_map(w, sorted(rows), sorted(cols))
    assert (found.rows, found.cols) == (tuple(sorted(rows)), tuple(sorted(cols)))
    for i, r in enumerate(found.rows):
        for j, c in enumerate(found.cols):
            assert found.figures[i][j] == counted(replace(w, rows=r, cols=c))
    assert found.here_figures == counted(w)
    assert found.limit == w.gpu.smem_kib * 1024


def refused(w: Workload, axis: str, values: set[int]) -> bool:
    """Return whether documents leave no such sizes, after asking for them."""
    if not (w.scenario.mask.documents and axis == "N" and values - {w.seqlen_k}):
        return False
    with pytest.raises(InputError, match=r"mask\.documents = .* expected none: it is of"):
        sweep(w, axis, sorted(values))
    return True


@pytest.mark.long
@given(scenarios(longest=24), st.sampled_from(AXES), st.sets(st.integers(1, 40), max_size=5))
def test_every_point_of_a_sweep_is_a_tile_program(
    chosen: Scenario, axis: str, values: set[int]
) -> None:
    w = resolve(chosen)
    own = own_value(w, axis)
    if refused(w, axis, values):
        return
    found = sweep(w, axis, [*values, own])
    assert found.values == tuple(sorted({*values, own}))
    assert found.here == own
    assert set(found.figures) == set(ALGORITHMS)
    for name in ALGORITHMS:
        for value, figures in zip(found.values, found.figures[name], strict=True):
            assert figures == counted(replace(workload_at(w, axis, value), algorithm=name))


@given(scenarios(longest=24), st.sampled_from(AXES), st.integers(1, 40))
def test_a_point_is_the_scenario_that_it_proposes(chosen: Scenario, axis: str, value: int) -> None:
    w = resolve(chosen)
    if refused(w, axis, {value}):
        return
    again = resolve(scenario_at(w, axis, value))
    expected = workload_at(w, axis, value)
    for name in ("seqlen_q", "seqlen_k", "head_dim", "value_dim", "rows", "cols", "mask"):
        assert getattr(again, name) == getattr(expected, name)
    assert figures_of(again) == figures_of(expected)


@pytest.mark.parametrize("rule", ["paper", "fa2", "fa3", None])
def test_a_rule_follows_the_head_dimension(rule: str | None) -> None:
    table = {"rule": rule} if rule else {}
    chosen = parse_scenario({"attention": {"seqlen_q": 512, "head_dim": 64, "dtype": "float16"},
                             "tiling": table})  # fmt: skip
    w = resolve(chosen)
    again = resolve(scenario_at(w, "d", 128))
    assert (again.rows, again.cols) == rule_tiles(workload_at(w, "d", 128))[rule or "fa2"]
    assert (again.rows, again.cols) != (w.rows, w.cols)
    assert again.scenario.tiling.rule == rule
    assert figures_of(again) == figures_of(workload_at(w, "d", 128))
    cut = resolve(tiles_scenario(w, 16, 32))
    assert (cut.rows, cut.cols, cut.scenario.tiling.rule) == (16, 32, None)


def test_rules_are_those_of_the_scenario_file() -> None:
    base = parse_scenario({"attention": {"seqlen_q": 4096, "head_dim": 128, "dtype": "float16"}})
    rules = rule_tiles(resolve(base))
    assert rules == {"paper": (128, 227), "fa2": (128, 64), "fa3": (128, 176)}
    for rule, tiles in rules.items():
        w = resolve(with_values(base, {"tiling": {"rule": rule}}))
        assert (w.rows, w.cols) == tiles
    for d in (64, 128):
        own = resolve(with_values(base, {"attention": {"head_dim": d}}))
        found = tiling_map(own, (64, 128), (64,))
        assert {c.rule: (c.rows, c.cols) for c in found.choices} == rule_tiles(own)
        for choice in found.choices:
            assert choice.figures == counted(replace(own, rows=choice.rows, cols=choice.cols))


def test_decode_keeps_its_one_query() -> None:
    w = resolve(scenario(nq=1, nk=64))
    at = workload_at(w, "N", 256)
    assert (at.seqlen_q, at.seqlen_k, at.mask.seqlen_k) == (1, 256, 256)
    square = workload_at(resolve(scenario(nq=64)), "N", 256)
    assert (square.seqlen_q, square.seqlen_k) == (256, 256)


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize(
    "mask",
    [{"causal": True}, {"window": 4096, "sinks": 16}, {"causal": True, "window": 999, "sinks": 3}],
    ids=str,
)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_long_maps_are_exact_at_their_corners(algorithm: str, mask: dict[str, object]) -> None:
    # Lengths that no size divides, and more blocks than are summed in one go.
    table = {"algorithm": algorithm, "heads": 3, "kv_heads": 1, "seqlen_q": 70_001,
             "seqlen_k": 131_071, "head_dim": 96, "value_dim": 64, "dtype": "bfloat16"}  # fmt: skip
    w = resolve(parse_scenario({"attention": table, "mask": mask,
                                "tiling": {"rows": 64, "cols": 64}}))  # fmt: skip
    rows, cols = (1, 16, 1000), (2, 16, 176, 1024)
    found = tiling_map(w, rows, cols)
    for i, r in enumerate(rows):
        for j, c in enumerate(cols):
            assert found.figures[i][j] == counted(replace(w, rows=r, cols=c))


# --- where a sweep looks -----------------------------------------------------------------------


@given(st.integers(1, 2**24))
def test_map_sizes_are_few_evenly_spread_and_can_be_resolved(length: int) -> None:
    sizes = map_sizes(length)
    assert 1 <= len(sizes) <= 64
    assert len({b - a for a, b in pairwise(sizes)}) <= 1
    assert sizes[-1] <= max(length, 1)
    assert all(-(-length // size) <= MAX_BLOCKS for size in sizes)


def test_a_map_has_a_full_side_before_its_steps_double() -> None:
    assert map_sizes(64) == tuple(range(1, 65))
    assert map_sizes(65) == tuple(range(2, 66, 2))
    assert map_sizes(128) == tuple(range(2, 129, 2))
    assert map_sizes(1024) == map_sizes(4096) == tuple(range(16, 1025, 16))


def test_head_dimensions_are_those_that_kernels_take() -> None:
    """Multiples of eight, ever wider apart; powers of two and those of models are there."""
    assert all(dim % 8 == 0 for dim in HEAD_DIMS)
    assert {16, 32, 64, 80, 96, 112, 128, 192, 256, 512} <= set(HEAD_DIMS)
    gaps = [b - a for a, b in pairwise(HEAD_DIMS)]
    assert gaps == sorted(gaps)
    assert min(gaps) > 0


@pytest.mark.parametrize(
    ("length", "axis", "values"),
    [
        # Powers of two, those times three, and its own: from 16 or a 64th of it to 8 times it.
        (100, "N", (16, 24, 32, 48, 64, 96, 100, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048,
                    3072, 4096)),
        (8192, "N", (128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192,
                     12288, 16384, 24576, 32768, 49152, 65536)),
        (10, "N", (10, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048,
                   3072, 4096)),
        (100, "Br", (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)),
        (255, "Bc", (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192)),
        (256, "Bc", (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)),
        (4096, "Br", (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)),
    ],
)  # fmt: skip
def test_places_along_an_axis(length: int, axis: str, values: tuple[int, ...]) -> None:
    assert axis_values(resolve(scenario(nq=length, d=16)), axis) == values


@given(scenarios(), st.sampled_from(AXES))
def test_axes_hold_the_scenarios_own_value(chosen: Scenario, axis: str) -> None:
    w = resolve(chosen)
    values = axis_values(w, axis)
    assert own_value(w, axis) in values
    assert list(values) == sorted(set(values))
    if axis == "d":
        assert set(HEAD_DIMS) <= set(values)


def test_long_axes_stay_within_what_can_be_resolved() -> None:
    table = {"seqlen_q": 2**20, "head_dim": 16, "dtype": "float16"}
    w = resolve(parse_scenario({"attention": table, "tiling": {"rows": 4, "cols": 64}}))
    assert max(axis_values(w, "N")) == MAX_BLOCKS * 4
    decode = parse_scenario({"attention": {**table, "seqlen_q": 1, "seqlen_k": 2**20},
                             "tiling": {"rows": 1, "cols": 8}})  # fmt: skip
    assert max(axis_values(resolve(decode), "N")) == MAX_BLOCKS * 8  # its queries stay
    assert min(axis_values(w, "Br")) == 4  # its own; smaller ones make too many blocks
    assert all(-(-(2**20) // value) <= MAX_BLOCKS for value in axis_values(w, "Bc"))


def test_progress_rises_and_may_stop_the_work() -> None:
    w = resolve(scenario(nq=64, mask={"causal": True}))
    told: list[float] = []
    sweep(w, "Br", [4, 8, 16, 32], told.append)
    assert told == [0.25, 0.5, 0.75, 1.0]
    told.clear()
    tiling_map(w, [4, 8], [4, 8, 16], told.append)
    assert told == [0.5, 1.0]

    class StoppedError(Exception):
        pass

    def stop(share: float) -> None:
        raise StoppedError

    with pytest.raises(StoppedError):
        tiling_map(w, [4, 8], [4, 8], stop)


def test_splits_are_of_whole_tiles_whatever_the_tiles_are() -> None:
    chosen = scenario("split-kv", nk=64, rows=4, cols=8)
    w = resolve(with_values(chosen, {"tiling": {"split_size": 24}}))
    for cols, size in ((4, 24), (16, 16), (32, 32)):
        other = tiles_scenario(w, 4, cols)
        assert other.tiling.split_size == size
        assert figures_of(resolve(other)) == figures_of(workload_at(w, "Bc", cols))
    assert figures_of(workload_at(w, "N", 8 * 3 * 400)).bytes > 0  # more splits than can be run


@pytest.mark.long
def test_pages_stay_where_tiles_are_whole_ones() -> None:
    chosen = scenario("paged", nk=64, rows=4, cols=8)
    w = resolve(with_values(chosen, {"tiling": {"page_size": 4}}))
    assert tiles_scenario(w, 8, 16).tiling.page_size == 4
    assert tiles_scenario(w, 8, 6).tiling.page_size in (1, 2, 3, 6)


@pytest.mark.parametrize("algorithm", ["linear", "gla"])
def test_beside_a_state_the_others_have_the_tiles_of_each_point(algorithm: str) -> None:
    table = {"seqlen_q": 12, "head_dim": 4}
    tiling, mask = {"rows": 4, "cols": 4}, {"causal": True}

    def at(name: str, **sizes: int) -> Workload:
        attention = {**table, "algorithm": name}
        tiled = {"attention": attention, "tiling": tiling | sizes, "mask": mask}
        return resolve(parse_scenario(tiled))

    own = at(algorithm)
    for axis, key in (("Br", "rows"), ("Bc", "cols")):
        found = sweep(own, axis, axis_values(own, axis))
        assert found.here == 4
        for value, figures in zip(found.values, found.figures["flash2"], strict=True):
            assert figures == figures_of(at("flash2", **{key: value})), (axis, value)


@pytest.mark.parametrize("algorithm", ["split-kv", "paged", "linear", "flash2-backward"])
def test_every_cell_of_a_map_without_a_closed_form_is_a_tile_program(algorithm: str) -> None:
    w = resolve(scenario(algorithm, nq=8, nk=12, heads=2, kv_heads=1, rows=4, cols=4))
    found = tiling_map(w, (2, 5), (3, 4))
    for i, r in enumerate(found.rows):
        for j, c in enumerate(found.cols):
            total, cell = tile_program(replace(w, rows=r, cols=c)).totals, found.figures[i][j]
            assert (cell.read, cell.write, cell.flops) == (
                total.read_bytes, total.write_bytes, total.flops
            )  # fmt: skip
