"""Paged split-KV: pages at any places, against the definition, split-KV and plain loops."""

import re
from dataclasses import replace
from math import ceil, gcd
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from simulator.base.errors import InputError
from simulator.problem.paging import PageTable, page_size_of
from simulator.problem.scenario import Scenario, parse_scenario, with_values
from simulator.problem.workload import Workload, read_inputs, resolve
from simulator.program.algorithms import tile_program
from simulator.program.tensors import TensorSpec
from simulator.program.traffic import compulsory_bytes
from simulator.run.cosimulation import verify
from tests.helpers.op_by_op import counted_by_ops
from tests.helpers.refused import refused
from tests.helpers.runs import scenario, scenarios, trace_of

SPLITS = st.integers(1, 5)


def paged(chosen: Scenario, splits: int, page: int | None = None, seed: int = 0) -> Scenario:
    """Return the scenario with all its heads, in pages as large as may be if `page` is not said."""
    changes: dict[str, Any] = {
        "attention": {"algorithm": "paged"},
        "tiling": {"splits": splits, "page_size": page},
        "input": {"head": "all", "seed": seed},
    }
    return with_values(chosen, changes)


def pages(chosen: Scenario) -> st.SearchStrategy[int]:
    """Draw a number of tokens that divides a tile."""
    cols = chosen.tiling.cols or 1
    return st.sampled_from([n for n in range(1, cols + 1) if cols % n == 0])


@st.composite
def paged_scenarios(draw: st.DrawFn, longest: int = 14) -> Scenario:
    """Draw tails, windows, blind rows, empty splits, a single query and a single page."""
    plain = draw(scenarios(algorithms=["flash2"], longest=longest))
    return paged(plain, draw(SPLITS), draw(pages(plain)), draw(st.integers(0, 99)))


def with_table(w: Workload, entries: list[int]) -> Workload:
    """Return the same workload whose pages lie elsewhere."""
    other = replace(w)
    table = PageTable(w.page_size, w.seqlen_k, np.array(entries, dtype=np.int32))
    other.__dict__["pages"] = table  # as the property keeps it
    return other


# --- the numbers -------------------------------------------------------------------------------


@pytest.mark.long
@given(paged_scenarios(), st.randoms(use_true_random=False))
def test_pages_in_any_order_give_the_same_bits_as_keys_that_lie_together(
    chosen: Scenario, random: Any
) -> None:
    together = trace_of(resolve(with_values(chosen, {"attention": {"algorithm": "split-kv"}})))
    w = resolve(chosen)
    order = list(range(w.pages.pages))
    for places in (order, order[::-1], random.sample(order, len(order))):
        trace = trace_of(with_table(w, places))
        assert trace.output.tobytes() == together.output.tobytes()
        assert trace.lse.tobytes() == together.lse.tobytes()


@pytest.mark.long
@given(paged_scenarios(), st.randoms(use_true_random=False))
def test_what_is_no_key_of_the_sequence_is_never_read(chosen: Scenario, random: Any) -> None:
    """Slots after the last key and free places are NaN; entries after the last page lie."""
    w = resolve(chosen)
    used, places = w.pages.pages, w.pages.pages + 3
    table = [*random.sample(range(places), used), -1, 10**9, 0]
    poisoned = with_table(w, table)
    inputs = read_inputs(w)
    k = poisoned.pages.scattered(inputs.k)
    assert np.isnan(k).sum() == k.size - inputs.k.size
    trace = trace_of(poisoned)
    assert not np.isnan(trace.output).any()
    assert trace.output.tobytes() == trace_of(w).output.tobytes()
    assert verify(trace).difference is None


# --- what is counted ---------------------------------------------------------------------------


@given(paged_scenarios())
def test_counters_are_those_of_the_ops_and_of_plain_loops(chosen: Scenario) -> None:
    w = resolve(chosen)
    program = tile_program(w)
    now = counted_by_ops(program)
    entries = distinct = 0
    kinds, size = w.grid.kinds(), w.page_size
    for j in range(w.grid.Tc):
        keys = min((j + 1) * w.cols, w.seqlen_k) - j * w.cols
        entries += w.heads * int((kinds[:, j] > 0).sum()) * ceil(keys / size)
        distinct += ceil(keys / size) * bool((kinds[:, j] > 0).any())
    assert now.read.get("table", 0) == (4 * entries if len(program) else 0)
    split = tile_program(resolve(with_values(chosen, {"attention": {"algorithm": "split-kv"}})))
    rest = {name: size for name, size in now.read.items() if name != "table"}
    assert rest == split.totals.read
    assert now.write == {**split.totals.write, "table": 0}
    assert now.flops == split.totals.flops
    assert compulsory_bytes(w) == compulsory_bytes(split.workload) + 4 * distinct


def test_the_table_is_held_once_for_all_heads() -> None:
    w = resolve(paged(scenario(nq=1, nk=41, heads=8, kv_heads=4, cols=8), 2, 4))
    spec = TensorSpec("table", ("page",), width="int32")
    assert spec.bytes_in(w) == 4 * 11


# --- the table ---------------------------------------------------------------------------------


def test_pages_are_shuffled_by_the_seed_and_the_largest_that_divide_a_tile() -> None:
    w = resolve(paged(scenario(nq=1, nk=90, cols=24), 2))
    assert w.page_size == 8
    assert sorted(w.pages.entries.tolist()) == list(range(12))
    assert w.pages.entries.tolist() != list(range(12))
    assert w.pages == resolve(paged(scenario(nq=1, nk=90, cols=24), 2)).pages
    assert w.pages != resolve(paged(scenario(nq=1, nk=90, cols=24), 2, seed=1)).pages
    assert [page_size_of(None, cols) for cols in (64, 16, 12, 7)] == [16, 16, 4, 1]
    assert resolve(with_values(w.scenario, {"attention": {"algorithm": "flash2"}})).pages is None


@given(st.integers(1, 60), st.integers(1, 9), st.integers(0, 4), st.randoms())
def test_every_token_has_one_slot(tokens: int, size: int, free: int, random: Any) -> None:
    pages = ceil(tokens / size)
    places = random.sample(range(pages + free), pages)
    table = PageTable(size, tokens, np.array(places + [-7] * free, dtype=np.int32))
    where = table.tokens_at(np.arange(table.places))
    assert sorted(where[where >= 0].tolist()) == list(range(tokens))
    for token in range(tokens):
        slot = places[token // size] * size + token % size
        assert where[slot] == token
        assert table.page_at(slot // size) == token // size
    spare = set(range(table.places)) - set(places)
    assert all(table.page_at(place) is None for place in spare)
    assert table.pages_with(range(tokens)) == range(pages)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([0, 1, 2**22, 2, 4], r"table\[2\] = 4194304: expected places from 0 to 4194303"),
        ([0, 1, -1, 2, 4], r"table\[2\] = -1: expected places from 0 to 4194303"),
        ([0, 1, 3, 1, 4], r"table\[3\] = 1: expected a place of its own for each page"),
        ([0, 1, 2, 3], r"shape of table = \(4,\): expected one axis of at least 5"),
        ([[0, 1, 2, 3, 4]], r"shape of table = \(1, 5\): expected one axis of at least 5"),
        (
            np.arange(5.0, dtype=np.float32),
            'tensor table = "{float}": expected whole numbers, int32',
        ),
        (np.arange(5), 'tensor table = "{long}": expected whole numbers, int32'),
    ],
)
@pytest.mark.parametrize("ending", ["safetensors", "npz"])
def test_a_bad_table_is_refused_in_a_line(
    table: Any, message: str, ending: str, tmp_path: Path
) -> None:
    chosen, path = in_file(tmp_path, ending, np.asarray(table, dtype=getattr(table, "dtype", "i4")))
    names = (
        {"float": "float32", "long": "int64"}
        if ending == "npz"
        else {"float": "F32", "long": "I64"}
    )
    for kind, name in names.items():
        message = message.replace(f"{{{kind}}}", name)
    told = refused(resolve, chosen)
    assert re.search(message, told)
    assert str(path) in told


@pytest.mark.parametrize("ending", ["safetensors", "npz"])
def test_a_longer_table_leaves_places_free(ending: str, tmp_path: Path) -> None:
    table = np.array([6, 0, 3, 1, 5, -1, 10**9], dtype=np.int32)
    w = resolve(in_file(tmp_path, ending, table)[0])
    assert w.pages.entries.tolist() == table.tolist()
    assert (w.pages.pages, w.pages.places) == (5, 7)
    assert verify(trace_of(w)).difference is None


@pytest.mark.parametrize("ending", ["safetensors", "npz"])
def test_a_table_may_name_places_of_a_larger_cache(ending: str, tmp_path: Path) -> None:
    """Nothing is counted and no number changes where pages lie far apart."""
    chosen, _ = in_file(tmp_path, ending, np.array([4, 1, 7, 0, 90], dtype=np.int32))
    far = resolve(chosen)
    assert (far.pages.pages, far.pages.places) == (5, 91)
    assert np.isnan(far.pages.scattered(read_inputs(far).k)[0, 8 * 4 : 90 * 4]).all()
    near = resolve(in_file(tmp_path, ending, np.arange(5, dtype=np.int32))[0])
    far_run, near_run = trace_of(far), trace_of(near)
    assert verify(far_run).difference is None
    assert far_run.output.tobytes() == near_run.output.tobytes()
    assert far_run.program.counters(len(far_run.program)) == near_run.program.counters(
        len(near_run.program)
    )


def in_file(folder: Path, ending: str, table: np.ndarray) -> tuple[Scenario, Path]:
    """Return a scenario of 17 keys in pages of 4, whose file has a table."""
    rng, path = np.random.default_rng(0), folder / f"mine.{ending}"
    sizes = {"q": (1, 1, 4), "k": (1, 17, 4), "v": (1, 17, 4)}
    tensors = {name: rng.random(size, dtype=np.float32) for name, size in sizes.items()}
    tensors["table"] = table
    if ending == "npz":
        np.savez(path, **tensors)
    else:
        save_file(tensors, path)
    said = {
        "attention": {"algorithm": "paged"},
        "tiling": {"rows": 4, "cols": 8, "splits": 2, "page_size": 4},
        "input": {"source": "file", "path": str(path)},
    }
    return parse_scenario(said), path


def test_a_page_that_a_tile_would_cut_is_refused() -> None:
    with pytest.raises(InputError, match=r"tiling\.page_size = 3: expected a divisor of Bc = 8"):
        resolve(paged(scenario(nq=1, nk=9, cols=8), 1, 3))
    assert gcd(3, 8) == page_size_of(3, 8)  # where tiles are swept, pages follow them
