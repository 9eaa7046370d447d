"""Sequences of a batch: each as if it were alone, with pages of its own in one cache."""

from math import ceil
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.base.errors import InputError
from simulator.problem.filling import each_sequence
from simulator.problem.paging import batch_tables
from simulator.problem.scenario import parse_scenario, scenario_tables, with_values
from simulator.problem.workload import Workload, read_inputs, resolve
from simulator.program.algorithms import ALGORITHMS
from simulator.run.batch_run import run_all, traces_of
from simulator.study.pages.pages import paged_waste, stretched_waste
from simulator.study.pages.run_cache import run_cache
from simulator.study.sweep import scenario_at, workload_at

LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=5)
SIZES = st.integers(1, 9)


def batch(lengths: list[int], algorithm: str = "paged", **tables: Any) -> dict[str, Any]:
    sizes = {"heads": 4, "kv_heads": 2, "seqlen_q": 1, "head_dim": 3}
    return {
        "attention": {"algorithm": algorithm, **sizes},
        "batch": {"lengths": lengths},
        "mask": {"causal": True},
        "tiling": {"rows": 2, "cols": 8, "splits": 2, "page_size": 4},
        **tables,
    }


def workloads(lengths: list[int], **tables: Any) -> list[Workload]:
    return [resolve(each) for each in each_sequence(parse_scenario(batch(lengths, **tables)))]


# --- the pages ---------------------------------------------------------------------------------


@given(LENGTHS, SIZES, st.integers(0, 99))
def test_each_place_of_the_cache_has_one_page_of_one_sequence(
    lengths: list[int], size: int, seed: int
) -> None:
    tables = batch_tables(tuple(lengths), size, seed)
    counts = [ceil(length / size) for length in lengths]
    places = [place for table in tables for place in table.used.tolist()]
    assert sorted(places) == list(range(sum(counts)))
    for n, table in enumerate(tables):
        assert (table.pages, table.places) == (counts[n], sum(counts))
        assert table.others == set(range(sum(counts))) - set(table.used.tolist())
        assert table.owners is not None
        for place, owner in enumerate(table.owners.tolist()):
            assert (owner == n) == (table.page_at(place) is not None)


@given(LENGTHS)
def test_pages_are_handed_out_as_sequences_grow_side_by_side(lengths: list[int]) -> None:
    """If places were not shuffled, first pages would lie first, then second ones, and so on."""
    tables, size = batch_tables(tuple(lengths), 4, 0), 4
    shuffled = np.random.default_rng([0, 2]).permutation(tables[0].places).tolist()
    grown = [
        tables[n].used[page]
        for page in range(ceil(max(lengths) / size))
        for n, length in enumerate(lengths)
        if page * size < length
    ]
    assert grown == shuffled


def test_what_others_have_is_never_read() -> None:
    """In the memory of a kernel it is NaN, and the sequence does not notice how many they are."""
    alone, among = workloads([37])[0], workloads([37, 5, 90])[0]
    inputs = read_inputs(among)
    assert among.pages is not None
    free = among.pages.others
    scattered = among.pages.scattered(inputs.k).reshape(2, among.pages.places, -1)
    assert len(free) == 2 + 23
    assert np.isnan(scattered[:, sorted(free)]).all()
    one, other = (traces_of(w.scenario)[0] for w in (alone, among))
    assert one.output.tobytes() == other.output.tobytes()
    assert np.isfinite(other.output).all()


# --- what runs ---------------------------------------------------------------------------------


def test_each_sequence_has_numbers_of_its_own_and_its_own_keys() -> None:
    runs = workloads([37, 37, 5])
    assert [w.seqlen_k for w in runs] == [37, 37, 5]
    first, second, _ = (read_inputs(w).k for w in runs)
    assert first.shape == second.shape
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("name", ["naive", "flash2", "split-kv", "paged"])
@pytest.mark.parametrize("lengths", [[38, 13, 61], [8], [1, 16, 1]], ids=str)
def test_a_batch_costs_what_its_sequences_cost_alone(name: str, lengths: list[int]) -> None:
    scenario = parse_scenario(batch(lengths, name))
    together = run_all(traces_of(scenario))
    assert together["sequences"] == lengths
    pages, keys = sum(ceil(n / 4) for n in lengths), sum(lengths)
    if ALGORITHMS[name].splits:  # K and V once for each of two KV heads, whose queries are packed
        tensors = together["hbm"]["by_tensor"]
        assert tensors["K"] == {"read": 2 * keys * 3 * 4, "write": 0}
        assert tensors.get("table", {"read": 2 * pages * 4})["read"] == 2 * pages * 4
        assert together["matmul_flops"] == 2 * 2 * 2 * keys * (3 + 3)
        tiles = 2 * sum(ceil(n / 8) for n in lengths)
        assert together["visits"] == tiles + 2 * len(lengths)
        assert together["tiles"]["visited"] == tiles
    single = [
        run_all(traces_of(parse_scenario(batch([n], name))))["hbm"]["read_bytes"] for n in lengths
    ]
    assert together["hbm"]["read_bytes"] == sum(single)
    assert together["max_abs_error"] < 1e-5
    assert together["checked_rows"] == 4 * len(lengths)


SEQUENCES = st.lists(
    st.tuples(st.integers(0, 9), st.integers(1, 14)) | st.tuples(st.just(0), st.just(0)),
    min_size=1, max_size=4,
).filter(lambda drawn: any(queries for queries, _ in drawn))  # fmt: skip
ADDED = ("tiles", "visits", "matmul_flops", "checked_rows")


def of_queries(sequences: list[tuple[int, int]], name: str, **tables: Any) -> dict[str, Any]:
    """Return a batch of sequences of queries and keys."""
    out = batch([keys for _, keys in sequences], name, **tables)
    del out["attention"]["seqlen_q"]
    out["batch"]["queries"] = [queries for queries, _ in sequences]
    return out


@pytest.mark.parametrize("name", ["naive", "flash1", "flash2", "split-kv", "paged"])
@given(sequences=SEQUENCES)
def test_sequences_of_own_queries_cost_what_they_cost_alone(
    sequences: list[tuple[int, int]], name: str
) -> None:
    """One without queries costs nothing and changes nothing."""
    together = run_all(traces_of(parse_scenario(of_queries(sequences, name))))
    running = [(queries, keys) for queries, keys in sequences if queries]
    assert together["queries"] == [queries for queries, _ in running]
    assert together["sequences"] == [keys for _, keys in running]
    single = []
    for queries, keys in running:
        plain = batch([keys], name)
        plain["attention"] |= {"seqlen_q": queries, "seqlen_k": keys}
        del plain["batch"]
        single.append(run_all(traces_of(parse_scenario(plain))))
    for key in ADDED:
        for n, part in together[key].items() if key == "tiles" else [(None, together[key])]:
            assert part == sum(each[key] if n is None else each[key][n] for each in single), key
    hbm = together["hbm"]
    for key in ("read_bytes", "write_bytes", "compulsory_bytes"):
        assert hbm[key] == sum(each["hbm"][key] for each in single), key
    assert together["max_abs_error"] < 1e-5


def test_the_first_sequence_with_queries_is_shown() -> None:
    scenario = parse_scenario(of_queries([(0, 7), (4, 5), (0, 0), (1, 9)], "flash2"))
    assert scenario.batch.shown == 1
    w = resolve(scenario)
    assert (w.queries, w.seqlen_k) == (4, 5)
    assert parse_scenario(scenario_tables(scenario)) == scenario
    other = resolve(scenario_at(w, "N", 64))
    assert (other.queries, other.seqlen_k) == (4, 64)
    assert [resolve(each).queries for each in each_sequence(scenario)] == [4, 1]


def test_a_scenario_that_says_which_sequence_runs_it_alone() -> None:
    scenario = parse_scenario(batch([7, 12]) | {"batch": {"lengths": [7, 12], "sequence": 1}})
    (trace,) = traces_of(scenario)
    assert trace.workload.seqlen_k == 12
    assert parse_scenario(scenario_tables(scenario)) == scenario


def test_another_length_has_no_batch() -> None:
    w = workloads([37, 5])[0]
    other = scenario_at(w, "N", 64)
    assert not other.batch.lengths
    assert resolve(other).seqlen_k == workload_at(w, "N", 64).seqlen_k


# --- the cache beside stretches ----------------------------------------------------------------


@given(LENGTHS)
def test_what_is_held_without_a_token(lengths: list[int]) -> None:
    found = run_cache(workloads(lengths)[0])
    assert found is not None
    server, in_pages, in_stretches = found
    paged, stretched = paged_waste(server, in_pages), stretched_waste(server, in_stretches)
    assert paged.used == stretched.used == sum(lengths)
    assert paged.inside == sum(4 * ceil(n / 4) - n for n in lengths)
    assert stretched.inside == sum(max(lengths) - n for n in lengths)
    for waste in (paged, stretched):
        parts = (waste.used, waste.inside, waste.outside, waste.free)
        assert min(parts) >= 0
        assert sum(parts) == server.slots
    assert run_cache(resolve(parse_scenario(batch(lengths, "split-kv")))) is None


# --- what cannot be ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"batch": {"lengths": [3, 0]}}, ["batch.lengths", "each at least 1"]),
        ({"batch": {"lengths": [3, -1]}}, ["batch.lengths", "each at least 0"]),
        ({"batch": {"queries": [3]}}, ["batch.queries = [3]", "for each of the 2 of batch.len"]),
        ({"batch": {"queries": [0, 0]}}, ["batch.queries", "a sequence that has queries"]),
        ({"batch": {"queries": [2, 0], "sequence": 1}}, ["batch.sequence = 1", "one of 0, which"]),
        ({"batch": {"queries": [2, 2], "lengths": [0, 2]}}, ["batch.lengths", "has queries"]),
        ({"batch": {"queries": [2, 0]}}, ["attention.seqlen_q = 1", "batch.queries says"]),
        ({"batch": {"lengths": 3}}, ["batch.lengths", "a list of numbers of tokens"]),
        ({"batch": {"sequence": 2}}, ["batch.sequence = 2", "a number from 0 to 1"]),
        ({"batch": {"lengths": None, "sequence": 1}}, ["batch.sequence", "batch.lengths beside"]),
        ({"batch": {"lengths": [2**24, 1]}}, ["batch.lengths", "at most 16777216 tokens"]),
        ({"batch": {"length": 3}}, ["batch.length", "lengths, queries, sequence"]),
        ({"attention": {"seqlen_k": 9}}, ["attention.seqlen_k = 9", "batch.lengths says"]),
        (
            {"input": {"source": "capture", "name": "passage-layer1"}},
            ["batch.lengths", 'none with input.source = "capture"'],
        ),
    ],
)
def test_errors_name_the_key_and_what_was_expected(
    changes: dict[str, Any], words: list[str]
) -> None:
    scenario = parse_scenario(batch([3, 9]))
    with pytest.raises(InputError) as error:
        resolve(with_values(scenario, changes))
    assert "\n" not in str(error.value)
    for word in words:
        assert word in str(error.value)
