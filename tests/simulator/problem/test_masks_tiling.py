"""Masks and tiles against the definition, pair by pair; the published tile sizes."""

from dataclasses import replace
from itertools import product
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.problem.hardware import gpus
from simulator.problem.intervals import Intervals
from simulator.problem.masks import FAR, Align, BlockMask, Mask, PairMask
from simulator.problem.scenario import parse_scenario
from simulator.problem.tiling import TileGrid, TileKind, fa2_tiles, fa3_tiles, paper_tiles
from simulator.problem.workload import resolve
from tests.helpers.runs import Pairs, fitting, windows


@st.composite
def grids(draw: st.DrawFn) -> tuple[Pairs, TileGrid]:
    """Draw a mask as pairs, and the same as a grid of tiles."""
    sizes = st.integers(1, 40)
    nq, nk = draw(sizes), draw(sizes)
    causal = draw(st.booleans())
    window = draw(windows(45))
    some = st.one_of(st.just(0), st.integers(1, 45))
    rows, cols = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    align = draw(st.sampled_from(get_args(Align)))
    pairs = Pairs(nq, nk, causal, window, draw(some), align=align)
    if draw(st.booleans()):
        lengths = draw(st.lists(st.integers(1, 30), max_size=6))
        pairs = replace(
            pairs, dilation=draw(st.integers(1, 6)), global_tokens=draw(some),
            documents=fitting(lengths, nk),
        )  # fmt: skip
    if draw(st.integers(0, 3)) == 0:
        block = draw(st.integers(1, 12))
        number, seed = -(-nk // block), draw(st.integers(0, 99))
        table = np.random.default_rng(seed).random((-(-nq // block), number)) < 0.4
        pairs = replace(pairs, block=block, blocks=tuple(map(tuple, table.tolist())))
    if draw(st.integers(0, 3)) == 0:
        table = np.random.default_rng(draw(st.integers(0, 99))).random((nq, nk)) < 0.7
        pairs = replace(pairs, tensor=tuple(map(tuple, table.tolist())))
    return pairs, TileGrid(pairs.mask(), rows, cols)


def covered(visits: Intervals, length: int) -> np.ndarray:
    """Return which of `length` blocks lie in the intervals of each block."""
    out = np.zeros((len(visits), length), dtype=bool)
    for block, row in enumerate(out):
        end = 0
        for start, stop in visits.pairs(block):
            assert end <= start < stop <= length  # ascending, no block twice
            row[start:stop] = True
            end = stop
    return out


@given(grids())
def test_mask_is_the_definition(drawn: tuple[Pairs, TileGrid]) -> None:
    pairs, grid = drawn
    mask = grid.mask
    whole = mask.visible(range(pairs.nq), range(pairs.nk))
    np.testing.assert_array_equal(whole, pairs.matrix())
    for i, j in ((0, 0), (grid.Tr - 1, grid.Tc - 1)):
        rows, cols = grid.row_range(i), grid.col_range(j)
        part = whole[rows.start : rows.stop, cols.start : cols.stop]
        np.testing.assert_array_equal(mask.visible(rows, cols), part)
    more = bool(pairs.documents or pairs.block or pairs.tensor)
    assert mask.hides == (pairs.causal or bool(pairs.window) or more)
    if not mask.hides:
        assert whole.all()


@given(grids())
def test_what_a_row_sees(drawn: tuple[Pairs, TileGrid]) -> None:
    pairs, mask = drawn[0], drawn[1].mask
    seen = pairs.matrix()
    np.testing.assert_array_equal(covered(mask.keys, pairs.nk), seen)
    assert mask.pairs == seen.sum()
    why = [[mask.why_hidden(i, j) for j in range(pairs.nk)] for i in range(pairs.nq)]
    np.testing.assert_array_equal([[not each for each in row] for row in why], seen)


def why(pairs: Pairs, i: int, j: int) -> str:
    """Return the condition that hides a pair, the first of them as they are told."""
    at = pairs.aligned(i)
    if replace(pairs, tensor=()).sees(i, j):
        return f"file: the mask of the input file hides key {j} from row {i}"
    alone = Pairs(pairs.nq, pairs.nk, pairs.causal, pairs.window, pairs.sinks, align=pairs.align)
    parts = {
        "causal: ": replace(alone, window=0, sinks=0),
        "documents: ": Pairs(pairs.nq, pairs.nk, documents=pairs.documents, align=pairs.align),
        "block: ": Pairs(pairs.nq, pairs.nk, block=pairs.block, blocks=pairs.blocks),
    }
    found = next((words for words, part in parts.items() if not part.sees(i, j)), None)
    far = "the window is" if not alone.sees(i, j) else f"no multiple of {pairs.dilation}"
    return found or f"window: key {j} is {abs(at - j)} away from row {i} {far}"


@given(grids())
def test_a_hidden_pair_is_told_by_the_condition_that_hides_it(
    drawn: tuple[Pairs, TileGrid],
) -> None:
    pairs, mask = drawn[0], drawn[1].mask
    for i, j in np.argwhere(~pairs.matrix())[:: max(1, pairs.nq * pairs.nk // 40)].tolist():
        told, (start, *end) = mask.why_hidden(i, j), why(pairs, i, j).split(f" row {i} ")
        assert told.startswith(start)
        assert all(each in told for each in end)


def test_arguments_of_a_kernel_are_those_of_what_is_set() -> None:
    few = {"causal": 1, "window": 5, "sinks": 2}
    ahead = {"ahead": 1, "shift": 0}
    assert Mask(9, 9, causal=True, window=5, sinks=2).arguments == few
    assert Mask(9, 9).arguments == {"causal": 0, "window": 0, "sinks": 0}
    more = {"dilation": 3, "global_tokens": 0, "block": 0, "blocks_across": 0, "blocks_of_head": 0}
    dilated = Mask(9, 9, causal=True, window=5, sinks=2, dilation=3)
    assert dilated.arguments == few | ahead | more
    blocks = Pairs(9, 7, block=4, blocks=((True, False),) * 3).mask()
    assert blocks.arguments == {
        "causal": 0, "window": 0, "sinks": 0, "ahead": FAR + 1, "shift": -2, "dilation": 1,
        "global_tokens": 0, "block": 4, "blocks_across": 2, "blocks_of_head": 0,
    }  # fmt: skip


@given(grids())
def test_edges_are_where_visible_pairs_end(drawn: tuple[Pairs, TileGrid]) -> None:
    check_edges(drawn[0])


def check_edges(pairs: Pairs) -> None:
    """Compare the edges of a mask with the keys before which a row's visible pairs end."""
    mask = pairs.mask()
    if not mask.simple:
        assert not mask.diagonals
        assert not mask.uprights
        return
    seen = np.pad(pairs.matrix(), 1, mode="edge")[1:-1]
    for row, line in enumerate(seen):
        drawn_here = {row + offset for first, offset in mask.diagonals if row >= first}
        drawn_here |= {key for key, rows in mask.uprights if row in rows}
        changes = np.flatnonzero(line[1:] != line[:-1])  # the key before which something ends
        assert set(changes.tolist()) <= drawn_here
        # Where the window begins where the sinks end, a line between them does no harm.
        inside = {key for key in drawn_here if 0 < key < pairs.nk}
        assert inside - set(changes.tolist()) <= {mask.sinks}


@given(grids())
def test_tiles_are_the_definition(drawn: tuple[Pairs, TileGrid]) -> None:
    pairs, grid = drawn
    kinds = pairs.kinds(grid.rows, grid.cols)
    assert (grid.Tr, grid.Tc) == kinds.shape
    np.testing.assert_array_equal(grid.kinds(), kinds)
    for i, j in np.ndindex(*kinds.shape):
        assert grid.kind(i, j) == kinds[i, j]
    assert grid.full_tiles == (kinds == TileKind.FULL).sum()


@given(grids())
def test_intervals_are_the_definition(drawn: tuple[Pairs, TileGrid]) -> None:
    check_intervals(*drawn)


def check_intervals(pairs: Pairs, grid: TileGrid) -> None:
    """Compare the blocks that each row block and each column block sees with pairs, one by one."""
    kinds = pairs.kinds(grid.rows, grid.cols)
    np.testing.assert_array_equal(covered(grid.visited_columns, grid.Tc), kinds > 0)
    np.testing.assert_array_equal(covered(grid.visited_rows, grid.Tr), (kinds > 0).T)
    np.testing.assert_array_equal(covered(grid.full_columns, grid.Tc), kinds == 2)
    np.testing.assert_array_equal(covered(grid.full_rows, grid.Tr), (kinds == 2).T)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("align", get_args(Align))
@pytest.mark.parametrize("causal", [False, True])
def test_intervals_of_small_masks(align: Align, causal: bool) -> None:
    windows = (0, 1, 2, (0, 0), (2, -1), (-1, 0), (-1, 2), (3, 1))
    for nq, nk, window, sinks in product((1, 5, 9), (3, 6), windows, (0, 1, 2, 4)):
        pairs = Pairs(nq, nk, causal, window, sinks, align=align)
        check_intervals(pairs, TileGrid(pairs.mask(), 2, 4))
        check_edges(pairs)


@given(grids())
def test_blocks_cover_every_row_and_key_once(drawn: tuple[Pairs, TileGrid]) -> None:
    pairs, grid = drawn
    rows = [r for i in range(grid.Tr) for r in grid.row_range(i)]
    keys = [c for j in range(grid.Tc) for c in grid.col_range(j)]
    assert rows == list(range(pairs.nq))
    assert keys == list(range(pairs.nk))


# --- published tiles -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head_dim", "causal", "preset", "tiles"),
    [
        (32, False, "H100-SXM", (128, 128)),
        # sm_120 has as little shared memory as sm_89, and is not among "sm8x".
        (96, True, "RTX-5090", (128, 64)),
        (128, False, "RTX-5090", (128, 64)),
        (128, True, "RTX-5090", (128, 64)),
        (64, False, "A100-80-SXM", (128, 128)),
        (64, True, "RTX-4090", (128, 128)),
        (96, False, "RTX-4090", (128, 64)),
        (96, True, "RTX-4090", (64, 64)),
        (128, False, "A100-80-SXM", (128, 64)),
        (128, True, "H100-SXM", (128, 64)),
        (128, False, "RTX-4090", (128, 32)),
        (128, True, "RTX-4090", (64, 64)),
        (192, False, "H100-SXM", (128, 64)),
        # "For A100, we want to run with 128 x 64. For H100 we want to run with 64 x 64".
        (256, False, "A100-80-SXM", (128, 64)),
        (256, False, "H100-SXM", (64, 64)),
        (256, False, "RTX-4090", (64, 64)),
    ],
)
def test_fa2_tiles(head_dim: int, causal: bool, preset: str, tiles: tuple[int, int]) -> None:
    assert fa2_tiles(head_dim, causal, False, gpus()[preset]) == tiles


@pytest.mark.parametrize(
    ("head_dim", "smem_kib", "capability", "causal", "tiles"),
    [
        # Where one choice ends and the next begins.
        (64, 99, 8.9, True, (128, 128)),
        (65, 99, 8.9, True, (64, 64)),
        (65, 99, 9.0, True, (128, 64)),
        (65, 100, 8.9, True, (128, 64)),
        (96, 99, 8.9, False, (128, 64)),
        (97, 99, 8.9, False, (128, 32)),
        (97, 100, 8.9, False, (128, 64)),
        (128, 99, 8.9, False, (128, 32)),
        (129, 99, 8.9, False, (128, 64)),
        (129, 99, 8.9, True, (128, 64)),
        (193, 127, 8.0, False, (64, 64)),
        (193, 128, 8.0, False, (128, 64)),
        (193, 190, 8.0, False, (128, 64)),
        (193, 191, 8.0, False, (64, 64)),
    ],
)
def test_fa2_tiles_at_the_edges(
    head_dim: int, smem_kib: int, capability: float, causal: bool, tiles: tuple[int, int]
) -> None:
    card = replace(gpus()["T4"], smem_kib=smem_kib, capability=capability)
    assert fa2_tiles(head_dim, causal, False, card) == tiles


def test_with_a_window_fa2_takes_no_causal_kernel() -> None:
    card = gpus()["RTX-4090"]
    assert fa2_tiles(96, True, True, card) == fa2_tiles(96, False, False, card) == (128, 64)
    assert fa2_tiles(128, True, True, card) == fa2_tiles(128, False, False, card) == (128, 32)
    table = {"seqlen_q": 512, "head_dim": 128}
    data = {"attention": table, "mask": {"causal": True}, "hardware": {"preset": "RTX-4090"}}
    plain, windowed = data, {**data, "mask": {"causal": True, "window": 64}}
    narrow = {**data, "mask": {"causal": True, "window": 1}}
    bounded = {**data, "mask": {"window": [-1, 0]}}  # the same pairs, and the same kernel
    taken = [resolve(parse_scenario(each)) for each in (plain, windowed, narrow, bounded)]
    assert [(w.rows, w.cols) for w in taken] == [(64, 64), (128, 32), (128, 32), (64, 64)]


@pytest.mark.parametrize(
    ("dims", "causal", "window", "tiles"),
    [
        ((64, 64), False, False, (192, 192)),
        ((64, 64), True, False, (192, 128)),
        ((64, 64), False, True, (192, 160)),
        ((64, 64), True, True, (192, 160)),
        ((64, 128), False, False, (128, 112)),
        ((64, 300), False, False, (64, 64)),
        ((64, 256), False, False, (128, 112)),
        ((64, 257), False, False, (64, 64)),
        ((64, 65), False, False, (128, 112)),
        ((65, 300), False, False, (192, 144)),
        ((97, 97), False, False, (128, 176)),
        ((129, 128), False, False, (128, 128)),
        ((192, 129), False, False, (128, 112)),
        ((193, 193), False, False, (128, 80)),
        ((64, 512), True, False, (64, 64)),
        ((96, 96), False, False, (192, 144)),
        ((96, 96), False, True, (192, 128)),
        ((128, 128), False, False, (128, 176)),
        ((128, 128), True, False, (128, 128)),
        ((128, 128), False, True, (128, 128)),
        ((192, 128), False, False, (128, 128)),
        ((192, 192), True, False, (128, 112)),
        ((192, 192), False, True, (128, 96)),
        ((256, 256), False, False, (128, 80)),
        ((256, 256), False, True, (128, 64)),
    ],
)
def test_fa3_tiles(
    dims: tuple[int, int], causal: bool, window: bool, tiles: tuple[int, int]
) -> None:
    assert fa3_tiles(*dims, causal, window) == tiles


@pytest.mark.parametrize(
    ("head_dim", "dtype", "preset", "tiles"),
    [
        # M = 163 KiB / 2 B = 83 456 elements, / (4 * 64) = 326
        (64, "float16", "A100-80-SXM", (64, 326)),
        # M = 227 KiB / 4 B = 58 112, / (4 * 128) = 113.5
        (128, "float32", "H100-SXM", (114, 114)),
        (128, "bfloat16", "H100-SXM", (128, 227)),
        # M = 64 KiB / 4 B = 16 384, / (4 * 4096) = 1
        (4096, "float32", "T4", (1, 1)),
    ],
)
def test_paper_tiles(head_dim: int, dtype: str, preset: str, tiles: tuple[int, int]) -> None:
    assert paper_tiles(head_dim, dtype, gpus()[preset]) == tiles


@pytest.mark.parametrize(
    ("tiling", "tiles"),
    [
        ({}, (128, 64)),
        ({"rule": "fa2"}, (128, 64)),
        ({"rule": "fa3"}, (128, 176)),
        ({"rule": "paper"}, (128, 227)),
        ({"rows": 3, "cols": 5}, (3, 5)),
    ],
)
def test_scenario_picks_the_tiles(tiling: dict[str, object], tiles: tuple[int, int]) -> None:
    said = {"seqlen_q": 300, "head_dim": 128, "dtype": "float16"}
    w = resolve(parse_scenario({"attention": said, "tiling": tiling}))
    assert (w.rows, w.cols) == tiles


def test_a_key_that_a_window_hides_is_told_apart_from_those_that_stay_free() -> None:
    told = [
        Mask(9, 9, causal=True, window=2, sinks=sinks, global_tokens=others).why_hidden(8, 4)
        for sinks, others in ((0, 0), (2, 0), (2, 1), (1, 3))
    ]
    away = "window: key 4 is 4 away from row 8, the window is 2"
    assert told == [
        away,
        f"{away}, and key 4 is none of the 2 sinks",
        f"{away}, and key 4 is none of the 2 sinks",
        f"{away}, and key 4 is none of the 3 global tokens",
    ]


def test_sinks_that_end_where_a_row_block_begins_are_seen_in_full() -> None:
    pairs = Pairs(16, 16, causal=True, window=3, sinks=8)
    grid = TileGrid(pairs.mask(), 8, 1)
    full = pairs.matrix().reshape(2, 8, 16).all(axis=1)
    np.testing.assert_array_equal(covered(grid.full_columns, grid.Tc), full)
    assert full[1].tolist() == [True] * 8 + [False] * 8


@pytest.mark.parametrize(
    "mask",
    [Mask(6, 6, causal=True), Mask(6, 8, window=3, causal=True),
     Mask(6, 6, blocks=BlockMask(2, np.tri(3, k=-1, dtype=np.bool_))),
     Mask(6, 5, tensor=PairMask(np.arange(60).reshape(2, 6, 5) % 7 < 3))],
    ids=["causal", "window", "blocks", "pairs"],
)  # fmt: skip
def test_the_mask_of_the_last_row_is_its_row_of_the_mask(mask: Mask) -> None:
    keys = range(mask.seqlen_k)
    for head in range(2):
        whole, last = mask.of_head(head), mask.of_last_row().of_head(head)
        assert np.array_equal(last.visible(range(1), keys), whole.visible(range(5, 6), keys))
