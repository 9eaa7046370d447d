"""Sequences of a batch: each as if it were alone, with pages of its own in one cache."""

import json
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from simulator.base.errors import InputError
from simulator.problem.filling import each_sequence
from simulator.problem.paging import batch_tables
from simulator.problem.scenario import parse_scenario, scenario_tables, with_values
from simulator.problem.workload import Workload, read_inputs, resolve
from simulator.program.algorithms import ALGORITHMS
from simulator.run.batch_run import blind_of, run_all, traces_of
from simulator.study.pages.pages import paged_waste, stretched_waste
from simulator.study.pages.run_cache import run_cache
from simulator.study.sweep import scenario_at, workload_at
from tests.helpers.refused import refused
from ui.app.cli import main

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


@pytest.mark.sweep(keep=3)
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
JOINED = ("split-kv", "paged", "mla")


def of_queries(sequences: list[tuple[int, int]], name: str, **tables: Any) -> dict[str, Any]:
    """Return a batch of sequences of queries and keys."""
    out = batch([keys for _, keys in sequences], name, **tables)
    del out["attention"]["seqlen_q"]
    out["batch"]["queries"] = [queries for queries, _ in sequences]
    return out


@pytest.mark.long
@given(sequences=SEQUENCES, name=st.sampled_from(["naive", "flash1", "flash2", *JOINED[:2]]))
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


STORES = {
    # of n rows of 3 float32 numbers: O, and LSE or l and m
    "naive": lambda n: {"O": 12 * n},
    "flash1": lambda n: {"O": 12 * n, "l": 4 * n, "m": 4 * n},
    "flash2": lambda n: {"O": 12 * n, "LSE": 4 * n},
}
"""What rows that see nothing cost: written once, and never read."""


def by_tensor(hbm: dict[str, Any], way: str) -> dict[str, int]:
    return {name: size[way] for name, size in hbm["by_tensor"].items() if size[way]}


@pytest.mark.long
@given(
    sequences=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 14)), min_size=1, max_size=5)
    .filter(lambda drawn: any(queries and keys for queries, keys in drawn)),
    name=st.sampled_from([*STORES, *JOINED]),
)  # fmt: skip
def test_a_sequence_without_keys_costs_its_stores(
    sequences: list[tuple[int, int]], name: str
) -> None:
    tables, splits = of_queries(sequences, name), 2
    if name == "mla":
        del tables["attention"]["kv_heads"], tables["attention"]["head_dim"]
        tables["attention"] |= {"latent_dim": 3, "rope_dim": 2}
    scenario = parse_scenario(tables)
    blind = blind_of(scenario)
    together = run_all(traces_of(scenario), None, blind)
    seen = [each for each in sequences if each[0] and each[1]]
    left = [queries for queries, keys in sequences if queries and not keys]
    assert list(blind.values()) == left
    asked = [each for each in sequences if each[0]]
    assert together["sequences"] == [keys for _, keys in asked]
    assert together["queries"] == [queries for queries, _ in asked]
    changes = {"queries": [queries for queries, _ in seen], "lengths": [keys for _, keys in seen]}
    alone = run_all(traces_of(with_values(scenario, {"batch": changes})))
    for key in (*ADDED, "model"):
        assert together[key] == alone[key], key
    rows = 4 * sum(left)
    stored = {"O_partial": splits * 12 * rows, "LSE_partial": splits * 4 * rows,
              "O": 12 * rows, "LSE": 4 * rows}  # fmt: skip
    stored = STORES[name](rows) if name in STORES else stored
    read = {n: size for n, size in stored.items() if n.endswith("_partial")}
    for way, more in (("read", read), ("write", stored)):
        before = by_tensor(alone["hbm"], way)
        expected = {n: before.get(n, 0) + more.get(n, 0) for n in {**before, **more}}
        assert by_tensor(together["hbm"], way) == {n: x for n, x in expected.items() if x}
        total = alone["hbm"][f"{way}_bytes"] + sum(more.values())
        assert together["hbm"][f"{way}_bytes"] == total
    once = sum(stored.values()) + sum(read.values())
    assert together["hbm"]["compulsory_bytes"] == alone["hbm"]["compulsory_bytes"] + once


@pytest.mark.parametrize("name", ["flash1", "flash2", "split-kv"])
def test_rows_without_keys_cost_what_they_cost_where_a_mask_hides_all_keys(name: str) -> None:
    """Two rows more than there are keys, in a row block of their own, see none of them."""
    tables: dict[str, Any] = {
        "attention": {"heads": 4, "kv_heads": 4, "head_dim": 3, "algorithm": name},
        "mask": {"causal": True}, "tiling": {"rows": 2, "cols": 8, "splits": 2},
    }  # fmt: skip

    def hbm(**changes: dict[str, Any]) -> dict[str, Any]:
        own = {**tables, **changes}
        own["attention"] = {**tables["attention"], **changes.get("attention", {})}
        scenario = parse_scenario(own)
        found = run_all(traces_of(scenario), None, blind_of(scenario))["hbm"]["by_tensor"]
        return dict(found)

    hidden = hbm(attention={"seqlen_q": 10, "seqlen_k": 8})
    assert hidden == hbm(batch={"lengths": [8, 0], "queries": [8, 2]})
    assert hidden != hbm(attention={"seqlen_q": 8, "seqlen_k": 8})


@pytest.mark.parametrize(("name", "loads"), [("flash2", 3), ("flash1", 1), ("naive", 0)])
def test_sinks_of_rows_without_keys_are_loaded_for_what_is_stored(name: str, loads: int) -> None:
    """Once for each of three row blocks, or for each head."""
    scores = {"scores": {"sink_logits": [0.5, 1.0, -1.0, 2.0]}}
    scenario = parse_scenario(of_queries([(4, 5), (6, 0)], name, **scores))
    one = parse_scenario(of_queries([(4, 5)], name, **scores))
    both, alone = (run_all(traces_of(each), None, blind_of(each)) for each in (scenario, one))
    sinks = [each["hbm"]["by_tensor"]["sink"]["read"] for each in (both, alone)]
    assert sinks[0] - sinks[1] == 4 * 4 * loads


@pytest.mark.parametrize("splits", [{"splits": 3}, {"splits": "auto"}, {"split_size": 8}])
def test_it_has_as_many_splits_as_the_batch_or_one(splits: dict[str, Any]) -> None:
    tiling = {"rows": 2, "cols": 8, **splits}
    scenario = parse_scenario(of_queries([(1, 70), (1, 0)], "split-kv", tiling=tiling))
    one = parse_scenario(of_queries([(1, 70)], "split-kv", tiling=tiling))
    traces = traces_of(scenario)
    counts = [run_all(traces, None, blind_of(scenario)), run_all(traces_of(one))]
    sizes = [each["hbm"]["by_tensor"]["LSE_partial"]["write"] for each in counts]
    expected = 1 if "split_size" in splits else traces[0].workload.splits
    assert sizes[0] - sizes[1] == 4 * 4 * expected


def test_without_queries_of_their_own_all_have_those_of_the_scenario() -> None:
    tables = batch([5, 0, 3], "flash2")
    tables["attention"]["seqlen_q"] = 2
    scenario = parse_scenario(tables)
    assert blind_of(scenario) == {1: 2}
    assert scenario.batch.running == (0, 2)
    summary = run_all(traces_of(scenario), None, blind_of(scenario))
    assert summary["sequences"] == [5, 0, 3]
    assert "queries" not in summary
    assert summary["hbm"]["by_tensor"]["O"]["write"] == 4 * 3 * 2 * 3 * 4
    assert blind_of(parse_scenario({**tables, "batch": {"lengths": [5, 0], "sequence": 0}})) == {}


def test_the_command_counts_them_and_writes_no_arrays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "batch.toml"
    path.write_text(tomli_w.dumps(of_queries([(2, 5), (3, 0)], "flash2")), encoding="utf-8")
    assert main(["run", str(path), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["sequences"], summary["queries"]) == ([5, 0], [2, 3])
    assert summary["hbm"]["by_tensor"]["LSE"]["write"] == 4 * 4 * (2 + 3)
    assert main(["run", str(path)]) == 0
    assert "2, of 5, 0 keys" in capsys.readouterr().out
    assert main(["run", str(path), "-o", str(tmp_path / "out.npz")]) == 2
    assert "batch.sequence" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["linear", "gla", "flash2-backward", "naive-backward"])
def test_where_more_than_rows_is_stored_a_sequence_without_keys_is_refused(name: str) -> None:
    scenario = parse_scenario(of_queries([(5, 5), (2, 0)], name))
    with pytest.raises(InputError, match=rf"batch\.lengths.*keys of each.*{name} needs some"):
        traces_of(scenario)


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
        ({"batch": {"lengths": [0, 0]}}, ["batch.lengths", "a sequence that has keys"]),
        ({"batch": {"lengths": [3, -1]}}, ["batch.lengths", "each at least 0"]),
        ({"batch": {"queries": [3]}}, ["batch.queries = [3]", "for each of the 2 of batch.len"]),
        ({"batch": {"queries": [0, 0]}}, ["batch.queries", "a sequence that has queries"]),
        ({"batch": {"queries": [2, 0], "sequence": 1}}, ["batch.sequence = 1", "one of 0, which"]),
        (
            {"batch": {"queries": [2, 2], "lengths": [0, 2], "sequence": 0}},
            ["batch.sequence", "one of 1, which have queries and keys"],
        ),
        ({"batch": {"queries": [2, 0], "lengths": [0, 2]}}, ["batch.queries", "queries and keys"]),
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
    told = refused(lambda: resolve(with_values(scenario, changes)))
    for word in words:
        assert word in told
