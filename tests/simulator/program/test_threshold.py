"""FlashAttention-4's conditional rescale: m moves only if it grows by more than a threshold."""

from dataclasses import replace
from math import log2
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from simulator.base.dtypes import E4M3_LARGEST
from simulator.engines.numpy_engine import numpy_engine, op_engine
from simulator.engines.reference import reference_rows
from simulator.problem.scenario import Scenario, with_values
from simulator.problem.workload import Inputs, Workload, read_inputs, resolve
from simulator.program.algorithms import tile_program
from simulator.program.faults import FAULTS, FP8_OFFSET, without_effect
from simulator.run.cosimulation import verify
from simulator.run.provenance import explain, maximum_of_tile
from simulator.run.rescales import rescaled, warps_that_rescale
from simulator.run.snapshot import Cell
from simulator.run.trace import Trace
from tests.helpers.op_by_op import counted_by_ops
from tests.helpers.runs import masks, scenario, trace_of

NEAR = 1e-3
"""How near to the threshold a step may not be, in log2: float32 could take the other side."""


def told(threshold: float | None, algorithm: str = "flash2", **said: Any) -> Scenario:
    """Return a run whose scores spread far, so that maxima rise by many powers of two."""
    known = {"nq": 20, "nk": 33, "d": 4, "rows": 4, "cols": 3, "scale": 6.0, "seed": 3, **said}
    one = scenario(algorithm, **known)
    return with_values(one, {"attention": {"rescale_threshold": threshold}})


def walked(
    w: Workload, inputs: Inputs, head: int, row: int
) -> tuple[list[float], int, float, float]:
    """Return the kept m after each tile, rescales, the largest P, and how near a step is."""
    k = inputs.k[w.kv_head_of[head]].astype(float)
    scores = k @ inputs.q[head, row].astype(float) * w.logit_scale
    scores = w.changed(head, range(row, row + 1), range(w.seqlen_k), scores[None])[0]
    seen = w.mask.visible(range(row, row + 1), range(w.seqlen_k))[0]
    m, l, out, count, largest, near = -np.inf, 0.0, list[float](), 0, 0.0, np.inf
    if w.sink_logits:
        m, l = w.sink_logits[head], 1.0
    by = w.scenario.attention.rescale_threshold or 0.0
    for start in range(0, w.seqlen_k, w.cols):
        keys = [j for j in range(start, min(start + w.cols, w.seqlen_k)) if seen[j]]
        if keys:
            top = max(scores[keys])
            step = (top - m) * log2(np.e) if m > -np.inf else np.inf
            near = min(near, abs(step - by)) if step > 0 else near
            if step > by:
                count += l > 0
                l *= np.exp(m - top) if l else 0.0
                m = top
            p = np.exp(scores[keys] - m)
            l, largest = l + p.sum(), max(largest, p.max())
        out.append(m)
    return out, count, largest, near


@st.composite
def chosen(draw: st.DrawFn) -> Scenario:
    heads = draw(st.sampled_from([1, 2, 4]))
    sinks = {"sink_logits": [0.5, -20.0, 9.0, 3.0][:heads]} if draw(st.booleans()) else {}
    changes = draw(st.sampled_from([{}, {"softcap": 30.0}, {"alibi": True}]))
    turns = draw(st.sampled_from([{}, {"kind": "rope", "fraction": 0.5}]))
    return told(
        draw(st.sampled_from([0.0, 1.0, 4.0, 8.0, 20.0])),
        draw(st.sampled_from(["flash2", "flash2", "split-kv"])),
        nq=draw(st.integers(1, 20)), nk=draw(st.integers(1, 30)), heads=heads,
        kv_heads=draw(st.sampled_from([n for n in (1, 2, 4) if heads % n == 0])),
        rows=draw(st.integers(1, 9)), cols=draw(st.integers(1, 9)),
        mask=draw(masks(30)), scores={**changes, **sinks}, position=turns,
        scale=draw(st.sampled_from([0.5, 1.0, 2.0])), seed=draw(st.integers(0, 99)),
    )  # fmt: skip


@pytest.mark.long
@given(chosen())
def test_engines_are_the_interpreter_and_the_reference_whatever_is_combined(said: Scenario) -> None:
    """Soft-cap, ALiBi, sinks, RoPE, groups, windows and tails, with every threshold."""
    w = resolve(said)
    inputs = read_inputs(w)
    if w.algorithm == "flash2":
        assume(all(walked(w, inputs, head, row)[3] > NEAR
                   for head in range(w.heads) for row in range(w.seqlen_q)))  # fmt: skip
    program = tile_program(w)
    for make in (numpy_engine, op_engine):
        trace = Trace(program, make(w, inputs), inputs)
        if w.algorithm == "flash2":  # in a split a step may be near as well
            verdict = verify(trace)
            assert verdict.difference is None, str(verdict)
        for head in range(w.heads):
            exact, lse = reference_rows(w, inputs, head, range(w.seqlen_q))
            blocks = list(trace.engine.row_blocks(head))
            np.testing.assert_allclose(np.concatenate([b.o for b in blocks]), exact, atol=3e-4)
            np.testing.assert_allclose(np.concatenate([b.lse for b in blocks]), lse, atol=3e-4)
    counted_by_ops(program)


@pytest.mark.long
@given(chosen())
def test_m_and_the_rescales_are_those_of_plain_loops(said: Scenario) -> None:
    said = with_values(said, {"attention": {"algorithm": "flash2"}})
    w = resolve(said)
    trace, total = trace_of(said), 0
    for head in range(w.heads):
        for row in range(w.seqlen_q):
            m, count, _, near = walked(w, trace.inputs, head, row)
            assume(near > NEAR)
            block = trace.row_block(head, row // w.rows)
            np.testing.assert_allclose(block.m[row % w.rows], m, rtol=1e-5, atol=1e-4)
            total += count
    assert trace.summary()["rescales"] == total


@pytest.mark.parametrize("make", [numpy_engine, op_engine])
@pytest.mark.parametrize("ulps", [-1, 0, 1])
def test_a_step_of_the_threshold_but_for_rounding_is_no_difference(make, ulps) -> None:
    """Float32 has no number between 8 ln 2 and the step; float64 may take the other side."""
    said = told(8.0, nq=2, nk=9, d=1, scale=1.0, seed=0)
    w = resolve(said)
    drawn = read_inputs(w)
    k = np.zeros((1, 9, 1), dtype=np.float32)
    step = np.float32(8 * np.log(2))
    k[0, 4, 0] = step + ulps * np.spacing(step)
    inputs = replace(drawn, q=np.ones_like(drawn.q), k=k)
    verdict = verify(Trace(tile_program(w), make(w, inputs), inputs))
    assert verdict.difference is None, str(verdict)
    kept32 = not np.float32(k[0, 4, 0]) > np.float32(w.keeps)
    kept64 = not float(k[0, 4, 0]) > w.keeps
    assert verdict.settled == 2 * (kept32 != kept64)
    assert ("2 rows" in str(verdict)) == (verdict.settled > 0)
    assert (ulps != 0) or verdict.settled


def test_an_engine_that_skips_far_from_the_threshold_is_found_out() -> None:
    w = resolve(told(8.0))
    inputs = read_inputs(w)
    other = resolve(told(20.0))
    verdict = verify(Trace(tile_program(w), numpy_engine(other, inputs), inputs))
    assert verdict.difference.op == "row max"
    assert verdict.settled == 0
    for settled, rows in ((1, "1 row"), (2, "2 rows")):
        agreed = replace(verdict, difference=None, settled=settled)
        assert f"agree with float64; in {rows} m grew" in str(agreed)


def test_a_threshold_of_0_is_none_and_no_other_summary_has_rescales() -> None:
    none, zero = trace_of(told(None)), trace_of(told(0.0))
    np.testing.assert_array_equal(none.output, zero.output)
    assert "rescales" not in none.summary()
    assert zero.summary()["rescales"] > trace_of(told(8.0)).summary()["rescales"] > 0
    assert trace_of(told(64.0, scale=2.0)).summary()["rescales"] == 0
    for algorithm in ("naive", "flash1"):
        assert "rescales" not in trace_of(told(8.0, algorithm)).summary()


def test_weights_are_above_1_by_no_more_than_the_threshold() -> None:
    trace = trace_of(told(8.0))
    largest = max(float(trace.tile(index).p.max()) for index in range(len(trace)))
    assert 1 < largest <= 2**8 * (1 + 1e-5)
    alphas = np.concatenate([trace.tile(index).alpha for index in range(len(trace))])
    assert ((alphas == 1) | (alphas < 2**-8) | (alphas == 0)).all()


def test_splits_begin_with_nothing_seen() -> None:
    said = with_values(told(2.0, "split-kv", heads=2, kv_heads=1), {"tiling": {"splits": 3}})
    trace = trace_of(said)
    w, counted, found = trace.workload, 0, 0
    for index in range(len(trace)):
        visit = trace.program.visit(index)
        if not visit.launch:
            tile = trace.tile(index)
            counted += int(((tile.alpha != 1) & (tile.l_prev > 0)).sum())
    for head in range(w.heads):
        for i in range(w.grid.Tr):
            found += len(rescaled(w, head, i, trace.row_block(head, i))[0])
    assert found == counted > 0


def test_a_warp_rescales_if_one_of_its_rows_does() -> None:
    moved = np.zeros(70, dtype=bool)
    assert warps_that_rescale(moved).tolist() == [False, False, False]
    moved[[32, 33, 69]] = True
    assert warps_that_rescale(moved).tolist() == [False, True, True]


# --- faults --------------------------------------------------------------------------------------


def with_fault(name: str, said: Scenario) -> Trace:
    return trace_of(with_values(said, {"faults": {name: True}}))


@pytest.mark.long
@pytest.mark.parametrize("name", ["stale_frame", "fp8_saturation"])
def test_a_mistake_in_a_skip_goes_wrong_only_where_there_is_one(name: str) -> None:
    right = trace_of(told(8.0)).output
    assert np.abs(with_fault(name, told(8.0)).output - right).max() > 0.1
    for threshold in (None, 0.0):
        np.testing.assert_allclose(with_fault(name, told(threshold)).output, right, atol=1e-5)


def test_stale_frames_count_too_little() -> None:
    said = told(8.0)
    trace, w = with_fault("stale_frame", said), resolve(said)
    for index in range(len(trace)):
        tile = trace.tile(index)
        scores = np.where(tile.seen, tile.s, -np.inf)
        top = np.maximum(tile.m_prev, scores.max(axis=1))
        floor = np.where(np.isneginf(top), 0, top)
        np.testing.assert_allclose(tile.p, np.exp(scores - floor[:, None]), rtol=1e-5)
    assert w.threshold == 8.0


def test_fp8_holds_no_more_than_its_largest_number() -> None:
    trace = with_fault("fp8_saturation", told(8.0))
    most = E4M3_LARGEST / 2**FP8_OFFSET
    tiles = [trace.tile(index) for index in range(len(trace))]
    assert max(float(tile.p_used.max()) for tile in tiles) == most == 1.75
    for tile in tiles:  # l is of P as it was
        np.testing.assert_allclose(tile.l_tile, tile.recorded("P").sum(axis=1), rtol=1e-5)


def test_a_sink_that_is_not_converted_is_another_sink() -> None:
    logits = {"sink_logits": [2.0]}
    trace = with_fault("unconverted_sink", told(None, scores=logits))
    other = trace_of(told(None, scores={"sink_logits": [2.0 * np.log(2)]}))
    np.testing.assert_allclose(trace.output, other.output, atol=1e-5)
    np.testing.assert_allclose(trace.lse, other.lse, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "said", "words"),
    [
        ("stale_frame", told(None), "there is no threshold"),
        ("fp8_saturation", told(0.5), "stays below 448 here"),
        ("fp8_saturation", told(0.9), ""),
        ("stale_frame", told(8.0), ""),
        ("stale_frame", told(8.0, "flash1"), "can skip a rescale"),
        ("unconverted_sink", told(8.0), "there is no sink logit here"),
        ("unconverted_sink", told(8.0, scores={"sink_logits": [1.0]}), ""),
    ],
)
def test_why_a_mistake_changes_nothing(name: str, said: Scenario, words: str) -> None:
    fault = next(each for each in FAULTS if each.name == name)
    found = without_effect(fault, resolve(said))
    assert words in found
    assert bool(found) is bool(words)


@pytest.mark.long
def test_a_maximum_that_is_kept_is_explained_so_and_no_other() -> None:
    trace, kept = trace_of(told(8.0)), []
    for visit in range(len(trace)):
        now = trace.snapshot(visit, len(trace.program.ops(visit)) - 1)
        for r, row in enumerate(now.visit.rows):
            lines = explain(now, Cell("m", row, 0)).lines
            words = "".join(part for line in lines for part in line if isinstance(part, str))
            before, after = float(now.tile.m_prev[r]), float(now.tile.m[r])
            kept.append(before == after < maximum_of_tile(now, row).value)
            assert ("so m is kept" in words) is kept[-1]
    assert {True, False} == set(kept)
