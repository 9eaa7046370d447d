"""Faults that public trackers report: each does what it says, and `verify` names its step."""

from typing import Any

import numpy as np
import pytest

from simulator.problem.scenario import Scenario, with_values
from simulator.problem.workload import resolve
from simulator.program.faults import FAULTS, without_effect
from simulator.run.cosimulation import verify
from simulator.run.provenance import maximum_of_tile
from simulator.run.trace import Trace
from tests.helpers.faulty_runs import OF_TRACKERS, causal, faulty
from tests.helpers.runs import check_close, scenario

FORWARD = ("naive", "flash1", "flash2", "split-kv", "paged")


def run(algorithm: str, splits: int | None = None, **said: Any) -> Scenario:
    shape = {"nq": 10, "nk": 26, "d": 8, "heads": 2, "kv_heads": 1, "rows": 4, "cols": 4}
    chosen = scenario(algorithm, **{**shape, **said})
    return with_values(chosen, {"tiling": {"splits": splits}}) if splits else chosen


def row_of(trace: Trace, head: int, row: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return scores of a row before the mask, what it sees, and which tiles are visited."""
    w = trace.workload
    own, query = w.single(head, row)
    q = trace.inputs.q[head, row].astype(np.float64)
    s = trace.inputs.k[w.kv_head_of[head]].astype(np.float64) @ q * w.logit_scale
    if w.softcap:
        s = w.softcap * np.tanh(s / w.softcap)
    i = query + w.seqlen_k - w.queries
    if w.slopes:
        s = s - w.slopes[own] * np.abs(i - np.arange(w.seqlen_k))
    seen = w.mask.visible(range(row, row + 1), range(w.seqlen_k))[0]
    block = range(row // w.rows * w.rows, min((row // w.rows + 1) * w.rows, w.seqlen_q))
    whole = w.mask.visible(block, range(w.seqlen_k)).any(axis=0)
    if w.algorithm == "naive":
        return s, seen, np.ones_like(seen)
    tiles = [whole[j : j + w.cols].any() for j in range(0, w.seqlen_k, w.cols)]
    return s, seen, np.repeat(tiles, w.cols)[: w.seqlen_k]


def softmax(trace: Trace, head: int, s: np.ndarray, extra: float = 0.0) -> tuple[Any, float]:
    """Return O and LSE of scores in float64, with something more in the sum."""
    top = s.max() if s.max() > -np.inf else 0.0
    p = np.exp(s - top)
    total = p.sum() + extra * np.exp(-top)
    v = trace.inputs.v[trace.workload.kv_head_of[head]].astype(np.float64)
    if total == 0:
        return np.zeros(v.shape[1]), -np.inf
    return p @ v / total, top + np.log(total)


def rows_of(trace: Trace) -> list[tuple[int, int]]:
    w = trace.workload
    return [(head, row) for head in range(w.heads) for row in range(w.seqlen_q)]


def check_row(trace: Trace, head: int, row: int, right: tuple[Any, float], what: str) -> None:
    block = trace.row_block(head, row // trace.workload.rows)
    at = row % trace.workload.rows
    check_close(block.o[at], right[0], 3e-5, f"O of {what}, head {head}, row {row}")
    if np.isfinite(right[1]):
        check_close(block.lse[at : at + 1], np.array([right[1]]), 3e-5, f"LSE of {what}")
    else:
        assert block.lse[at] == right[1]


# --- LSE in base 2 -----------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["split-kv", "paged"])
def test_partials_in_base_2_weigh_as_powers_of_their_sums(algorithm: str) -> None:
    trace = faulty(run(algorithm, splits=2), "lse_base_2")
    w = trace.workload
    keys = [w.split_keys(n) for n in range(2)]
    assert [len(each) for each in keys] == [16, 10]
    for head, row in rows_of(trace):
        s, _, _ = row_of(trace, head, row)
        parts = [
            softmax(trace, head, np.where(np.isin(np.arange(w.seqlen_k), each), s, -np.inf))
            for each in keys
        ]
        base_2 = np.array([lse / np.log(2) for _, lse in parts])
        weights = np.exp(base_2 - base_2.max())
        o = sum(by * part for by, (part, _) in zip(weights, parts, strict=True)) / weights.sum()
        check_row(trace, head, row, (o, np.logaddexp.reduce(base_2)), algorithm)


def test_one_split_in_base_2_has_a_right_o_and_a_wrong_lse() -> None:
    right, wrong = (faulty(run("split-kv", splits=1), *on) for on in ((), ("lse_base_2",)))
    np.testing.assert_allclose(wrong.output, right.output, atol=1e-6)
    np.testing.assert_allclose(wrong.lse, right.lse / np.log(2), rtol=1e-5)


# --- masks -------------------------------------------------------------------------------------


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("alibi", [False, True])
@pytest.mark.parametrize("algorithm", FORWARD)
def test_a_mask_before_the_cap_leaves_hidden_keys_the_score_of_the_cap(
    algorithm: str, alibi: bool
) -> None:
    chosen = run(algorithm, nk=10, mask={"causal": True}, scores={"softcap": 1.5, "alibi": alibi})
    trace = faulty(chosen, "early_mask")
    for head, row in rows_of(trace):
        s, seen, visited = row_of(trace, head, row)
        own, query = trace.workload.single(head, row)
        slope = trace.workload.slopes[own] if alibi else 0.0
        capped = -1.5 - slope * np.abs(query - np.arange(10))
        s = np.where(visited, np.where(seen, s, capped), -np.inf)
        check_row(trace, head, row, softmax(trace, head, s), algorithm)


@pytest.mark.parametrize("algorithm", FORWARD)
def test_a_row_that_sees_nothing_becomes_a_mean_where_the_mask_is_finite(algorithm: str) -> None:
    trace = faulty(run(algorithm, nk=7, mask={"causal": True}), "finite_mask")
    right, means = faulty(run(algorithm, nk=7, mask={"causal": True})), 0
    for head, row in rows_of(trace):
        _, seen, visited = row_of(trace, head, row)
        o = trace.row_block(head, row // 4).o[row % 4]
        if seen.any():
            np.testing.assert_allclose(o, right.row_block(head, row // 4).o[row % 4], atol=1e-6)
        elif visited.any():
            mean = trace.inputs.v[trace.workload.kv_head_of[head]][visited].mean(axis=0)
            np.testing.assert_allclose(o, mean, atol=1e-6)
            means += 1
    assert means


@pytest.mark.sweep(keep=6)
@pytest.mark.parametrize(
    ("mask", "wider"),
    [
        ({"causal": True, "window": 5}, {"causal": True, "window": 6}),
        ({"window": 3}, {"window": 4}),
        ({"window": [2, 4], "sinks": 2}, {"window": [3, 5], "sinks": 2}),
        ({"window": [-1, 2]}, {"window": [-1, 3]}),
        ({"causal": True, "window": 5, "align": "top-left"},
         {"causal": True, "window": 6, "align": "top-left"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("algorithm", FORWARD)
def test_a_wide_window_is_the_next_one_where_tiles_are_visited(
    algorithm: str, mask: dict[str, Any], wider: dict[str, Any]
) -> None:
    trace = faulty(run(algorithm, mask=mask), "wide_window")
    other, more = resolve(run(algorithm, mask=wider)).mask, 0
    for head, row in rows_of(trace):
        s, seen, visited = row_of(trace, head, row)
        wide = other.visible(range(row, row + 1), range(len(s)))[0] & visited
        more += int(wide.sum()) - int(seen.sum())
        check_row(trace, head, row, softmax(trace, head, np.where(wide, s, -np.inf)), algorithm)
    assert more >= 8


def test_the_key_that_holds_the_maximum_may_be_one_that_the_mask_hides() -> None:
    trace = faulty(run("flash2", mask={"causal": True, "window": 5}), "wide_window")
    hidden = 0
    for index in range(len(trace)):
        now = trace.snapshot(index)
        for row in now.visit.rows:
            found = maximum_of_tile(now, row)
            if found.value > -np.inf:
                s = trace.inputs.q[now.visit.head, row] @ trace.inputs.k[0, found.cell.col]
                assert found.value == pytest.approx(s * trace.workload.logit_scale, abs=1e-5)
                hidden += not now.tile.seen[row - now.visit.rows.start,
                                            found.cell.col - now.visit.cols.start]  # fmt: skip
    assert hidden


# --- sums --------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [0, 6])
@pytest.mark.parametrize("algorithm", ["split-kv", "paged"])
def test_a_sink_in_each_split_counts_once_for_each_that_has_tiles(
    algorithm: str, window: int
) -> None:
    mask = {"causal": True, "window": window}
    chosen = run(algorithm, splits=4, nq=1, mask=mask, scores={"sink_logits": [1.0, 2.5]})
    trace = faulty(chosen, "repeated_sink")
    w = trace.workload
    keys, found = [w.split_keys(n) for n in range(4)], set()
    for head, row in rows_of(trace):
        s, seen, visited = row_of(trace, head, row)
        own, _ = w.single(head, row)
        has = [bool(len(each)) and bool(visited[each.start : each.stop].any()) for each in keys]
        times = sum(has[1:]) + 1  # the first counts it also where it has no tile
        found.add(times)
        sinks = times * np.exp([1.0, 2.5][own])
        check_row(trace, head, row, softmax(trace, head, np.where(seen, s, -np.inf), sinks), "it")
    assert found == ({4} if not window else {3})


@pytest.mark.parametrize("algorithm", ["flash1", "flash2", "split-kv"])
def test_a_sum_without_its_tiles_stays_empty(algorithm: str) -> None:
    trace = faulty(run(algorithm), "forget_tile_sum")
    assert not trace.output.any()
    assert np.isneginf(trace.lse).all()


def test_a_sum_without_its_tiles_is_the_sink_alone() -> None:
    trace = faulty(run("flash2", scores={"sink_logits": [0.5, -1.0]}), "forget_tile_sum")
    for head, row in rows_of(trace):
        s, _, _ = row_of(trace, head, row)
        sink = [0.5, -1.0][head]
        o = np.exp(s - sink) @ trace.inputs.v[0].astype(np.float64)
        check_row(trace, head, row, (o, sink), "sinks")


# --- what is said ------------------------------------------------------------------------------

SAID: dict[str, dict[str, Any]] = {
    "lse_base_2": {"splits": 3},
    "early_mask": {"mask": {"causal": True}, "scores": {"softcap": 2.0}},
    "finite_mask": {"nk": 7, "mask": {"causal": True}},
    "repeated_sink": {"splits": 3, "scores": {"sink_logits": [-9.0, -9.0]}},
    "forget_tile_sum": {},
    "wide_window": {"mask": {"window": 5}},
}
FIRST = {
    "lse_base_2": ("row max", "m"),
    "early_mask": ("mask", "S"),
    "finite_mask": ("mask", "S"),
    "repeated_sink": ("row max", "alpha"),
    "forget_tile_sum": ("row sum", "l"),
    "wide_window": ("mask", "S"),
}


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("algorithm", FORWARD)
@pytest.mark.parametrize("name", OF_TRACKERS)
def test_verify_names_the_step(name: str, algorithm: str) -> None:
    said = dict(SAID[name])
    if algorithm not in ("split-kv", "paged"):
        said.pop("splits", None)
    chosen = run(algorithm, **said)
    spec = next(each for each in FAULTS if each.name == name)
    assert verify(faulty(chosen)).difference is None
    trace = faulty(chosen, name)
    found, why = verify(trace).difference, without_effect(spec, trace.workload)
    if algorithm not in spec.algorithms:
        assert found is None
        assert why == spec.instead
        return
    assert not why
    op, quantity = FIRST[name]
    if (name, algorithm) == ("forget_tile_sum", "flash1"):
        op = "combine"
    assert (found.op, found.quantity.split("[")[0]) == (op, quantity)
    marks = trace.snapshot(found.visit.index).wrong
    assert marks is not None
    last = trace.snapshot(len(trace) - 1).wrong
    assert last is not None
    assert any(each.any() for now in (marks, last) for each in (now.l, now.o, now.m))


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize(
    ("name", "chosen", "why"),
    [
        ("lse_base_2", run("flash2"), "only splits are joined by their LSE"),
        ("repeated_sink", run("split-kv", splits=2), "there is no sink logit here"),
        ("repeated_sink", run("split-kv", splits=1, scores={"sink_logits": [1.0, 1.0]}),
         "there is one split here"),
        ("early_mask", run("flash2", scores={"softcap": 1.0}), "there is no mask here"),
        ("early_mask", causal("flash2"), "there is no soft-cap here"),
        ("finite_mask", run("flash2"), "there is no mask here"),
        ("wide_window", causal("flash2"), "there is no window here"),
        ("wide_window", run("flash2", mask={"causal": True, "window": [-1, 2]}),
         "there is no window here"),
        ("forget_tile_sum", run("naive"), "naive sums the whole row at once"),
    ],
)  # fmt: skip
def test_why_it_does_nothing_here(name: str, chosen: Scenario, why: str) -> None:
    spec = next(each for each in FAULTS if each.name == name)
    assert without_effect(spec, resolve(chosen)) == why
    right, wrong = faulty(chosen), faulty(chosen, name)
    np.testing.assert_array_equal(wrong.output, right.output)


def test_each_names_the_tracker_that_reports_it() -> None:
    for spec in FAULTS:
        if spec.name in OF_TRACKERS:
            assert spec.cites.split()[-1].startswith("#")
