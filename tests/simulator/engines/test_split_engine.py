"""Tiles of a split many at a time, against the same run op by op: the same bits everywhere."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.base.cache import ARRAY
from simulator.engines.numpy_engine import numpy_engine, op_engine
from simulator.engines.split_engine import SplitEngine
from simulator.problem.scenario import Scenario, with_values
from simulator.problem.workload import Inputs, Workload, read_inputs, resolve
from simulator.program.algorithms import ALGORITHMS, tile_program
from tests.helpers.runs import fitted, masks, scenario, score_tables

SPLIT = [name for name, each in ALGORITHMS.items() if each.splits]
LONGEST = 40


NUMBERS = st.integers(1, 7).map(lambda number: {"splits": number})


@st.composite
def split_runs(draw: st.DrawFn) -> Scenario:
    """Draw tails, empty splits, one page, shuffled pages, windows, blind rows, a threshold."""
    name = draw(st.sampled_from(SPLIT))
    kv_heads, group = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    nq = draw(st.one_of(st.just(1), st.integers(1, LONGEST)))
    cols = draw(st.integers(1, 9))
    said = fitted(
        name,
        nq=nq,
        nk=draw(st.integers(1, LONGEST)),
        d=draw(st.integers(1, 5)),
        dv=draw(st.integers(1, 5)),
        heads=kv_heads * group,
        kv_heads=kv_heads,
        rows=draw(st.integers(1, 9)),
        cols=cols,
        dtype=draw(st.sampled_from(["float32", "float16", "bfloat16"])),
        seed=draw(st.integers(0, 99)),
        mask=draw(masks(LONGEST)),
        scores=draw(score_tables(kv_heads * group)),
        rescale_threshold=draw(st.sampled_from([None, 0.0, 0.5, 8.0])),
    )
    pages = [n for n in range(1, cols + 1) if cols % n == 0]
    tiling = {"page_size": draw(st.sampled_from(pages))}
    dealt = draw(st.one_of(NUMBERS, st.integers(1, 4).map(lambda n: {"split_size": n * cols})))
    return with_values(scenario(name, **said), {"tiling": tiling | dealt})


def check_same(w: Workload, inputs: Inputs) -> None:
    """Compare every number of a run with those of the engine that does op by op."""
    quick, plain = numpy_engine(w, inputs), op_engine(w, inputs)
    assert isinstance(quick, SplitEngine)
    program = tile_program(w)
    blocks = {
        (head, i): (quick.row_block(head, i), plain.row_block(head, i))
        for head in range(w.heads)
        for i in range(w.grid.Tr)
    }
    for (head, i), (ours, theirs) in blocks.items():
        for name in ("m", "l", "o", "lse"):
            one, other = getattr(ours, name), getattr(theirs, name)
            assert one.dtype == other.dtype
            assert one.shape == other.shape
            assert one.tobytes() == other.tobytes(), f"{name} of head {head}, row block {i}"
            assert not one.flags.writeable
        for one, other in zip(
            quick.row_matrices(head, i, ours), plain.row_matrices(head, i, theirs), strict=True
        ):
            assert one.tobytes() == other.tobytes()
    for index in range(len(program)):
        visit = program.visit(index)
        ours, theirs = (
            engine.tile(visit, block)
            for engine, block in zip((quick, plain), blocks[visit.head, visit.i], strict=True)
        )
        assert ours.seen.tobytes() == theirs.seen.tobytes()
        for op, one, other in zip((None, *ours.ops), ours.states, theirs.states, strict=True):
            assert one.keys() == other.keys()
            for name in one:
                assert one[name].tobytes() == other[name].tobytes(), f"{name} after {op}"


@pytest.mark.long
@given(split_runs())
def test_every_number_has_the_bits_of_the_same_run_op_by_op(chosen: Scenario) -> None:
    w = resolve(chosen)
    check_same(w, w.posed(read_inputs(w)))


@pytest.mark.parametrize("name", SPLIT)
def test_tiles_of_published_sizes_have_them_too(name: str) -> None:
    """Wide tiles, more of them than a stack has, and a last one with fewer keys."""
    said = fitted(name, nq=3, nk=5000, d=64, dv=32, heads=8, kv_heads=2, rows=16, cols=64)
    w = resolve(with_values(scenario(name, **said), {"tiling": {"splits": 2}}))
    check_same(w, w.posed(read_inputs(w)))


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("name", SPLIT)
def test_sums_that_are_not_kept_are_added_up_again(name: str) -> None:
    """So many rows that O after every tile would take more than what is kept of a split."""
    said = fitted(name, nq=97, nk=130, d=3, dv=255, heads=1, kv_heads=1, rows=97, cols=1)
    w = resolve(with_values(scenario(name, **said), {"tiling": {"splits": 1}}))
    inputs = w.posed(read_inputs(w))
    block = numpy_engine(w, inputs).row_block(0, 0)
    every = 130 * block.o.nbytes
    assert block.bytes < every - 20 * ARRAY
    check_same(w, inputs)


def test_numbers_that_overflow_do_so_alike() -> None:
    w = resolve(with_values(scenario("split-kv", nq=2, nk=30, heads=2), {"tiling": {"splits": 3}}))
    inputs = w.posed(read_inputs(w))
    huge = inputs.k.copy()
    huge[:, 7:19] *= np.float32(1e38)
    check_same(w, replace(inputs, k=huge))
