"""Linear attention: chunks, a recurrent network and the definition agree; bytes by plain loops."""

from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.engines.numpy_engine import op_engine
from simulator.problem.scenario import Scenario, parse_scenario, with_values
from simulator.problem.workload import Inputs, read_inputs, resolve
from simulator.program.algorithms import beside, tile_program
from simulator.program.faults import FAULTS, Fault, without_effect
from simulator.program.state_ops import elu_plus_one, positive_features
from simulator.program.traffic import compulsory_bytes
from simulator.run.exactness import exactness
from simulator.run.explanation import Number
from simulator.run.provenance import explain
from simulator.run.row_report import row_report
from simulator.run.snapshot import Cell
from simulator.run.trace import Trace, tile_counts
from simulator.study.roofline import roofline_of
from tests.helpers.refused import refused
from tests.helpers.runs import WIDTHS, check_close, scenario, textbook, trace_of
from tests.helpers.state_runs import check_visits_alone, output_of

MAPS = ({"feature_map": "elu1"}, {"feature_map": "performer", "features": 3}, {})


@st.composite
def linear(draw: st.DrawFn, longest: int = 14, dtypes: tuple[str, ...] = ("float32",)) -> Scenario:
    """Draw scenarios of linear attention of any shape."""
    kv_heads, causal = draw(st.integers(1, 2)), draw(st.booleans())
    nq = draw(st.integers(1, longest))
    return scenario(
        "linear",
        nq=nq,
        nk=nq if causal else draw(st.integers(1, longest)),
        d=draw(st.integers(1, 4)),
        dv=draw(st.integers(1, 4)),
        heads=kv_heads * draw(st.integers(1, 2)),
        kv_heads=kv_heads,
        rows=draw(st.integers(1, longest + 2)),
        cols=draw(st.integers(1, longest + 2)),
        seed=draw(st.integers(0, 99)),
        dtype=draw(st.sampled_from(dtypes)),
        mask={"causal": causal},
        **draw(st.sampled_from(MAPS)),
    )


# --- the numbers -------------------------------------------------------------------------------


@given(linear(), st.integers(1, 9))
def test_chunks_of_any_size_are_the_recurrent_network(chosen: Scenario, chunk: int) -> None:
    def output(cols: int) -> np.ndarray:
        return output_of(
            with_values(chosen, {"mask": {"causal": True}, "attention": {"seqlen_k": None},
                                 "tiling": {"rows": cols, "cols": cols}})
        )  # fmt: skip

    check_close(output(chunk), output(1), 1e-10, "O")


@pytest.mark.long
@given(linear(), st.data())
def test_a_visit_is_the_same_wherever_one_comes_from(chosen: Scenario, data: st.DataObject) -> None:
    check_visits_alone(chosen, data)


def test_elu_and_performer_are_what_the_papers_say() -> None:
    x = np.array([[-2.0, 0.0, 3.0, -0.5]])
    np.testing.assert_allclose(elu_plus_one(x), [[np.exp(-2), 1, 4, np.exp(-0.5)]])
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, 1, 4))
    directions = rng.standard_normal((400_000, 4))
    found = positive_features(q, directions) @ positive_features(k, directions).T
    np.testing.assert_allclose(found, np.exp(q @ k.T / 2), rtol=0.02)


def test_errors_are_those_of_linear_attention() -> None:
    for causal in (True, False):
        trace = trace_of(
            scenario("linear", nq=11, nk=11, heads=2, kv_heads=1, rows=3, cols=4, d=3,
                     mask={"causal": causal})
        )  # fmt: skip
        told = set()
        for index in range(len(trace)):
            for number, op in enumerate(trace.program.ops(index)):
                now = trace.snapshot(index, number)
                report = row_report(now, now.visit.rows.start)
                picture = exactness(trace, now, report)
                told.add((now.visit.launch, op.name, report.error is None))
                assert (report.error or 0.0) < 1e-5
                assert picture.now.ulp.max() < 64
        last = 0 if causal else 1
        assert (last, "read state", False) in told
        assert (last, "features", True) in told
        end = trace.snapshot(len(trace) - 1)
        exact = textbook(trace.workload, trace.inputs, 1)[0]
        np.testing.assert_allclose(end.head.o, exact, atol=1e-5)


def test_numbers_of_a_chunk_came_from_the_state_and_its_own_keys() -> None:
    trace = trace_of(scenario("linear", nq=10, d=3, dv=2, rows=4, cols=4, mask={"causal": True}))
    names = [op.name for op in trace.program.ops(1)]
    now = trace.snapshot(1, names.index("accumulate"))
    phi, state = (now.tile.first(name).astype(float) for name in ("phi_Q", "state"))
    p = elu_plus_one(now.q.astype(float)) @ elu_plus_one(now.k.astype(float)).T
    for cell, column, v in ((Cell("O", 6, 1), 1, now.v[:, 1]), (Cell("l", 6, 0), -1, np.ones(10))):
        told = explain(now, cell).lines
        found = [part.value for line in told for part in line if isinstance(part, Number)]
        before, own = phi[2] @ state[:, column], p[6, 4:7] @ v[4:7]
        assert found == pytest.approx([before, own, before + own, before + own], abs=1e-5)
    end = trace.snapshot(1)
    divided = explain(end, Cell("O", 6, 1)).lines[0][1]
    assert isinstance(divided, Number)
    assert (divided.cell, divided.value) == (Cell("l", 6, 0), float(end.l[2]))


# --- what is counted ---------------------------------------------------------------------------


@given(linear(dtypes=("float32", "float16")))
def test_bytes_and_flops_are_those_of_plain_loops(chosen: Scenario) -> None:
    w = resolve(chosen)
    b, d, dv, said = WIDTHS[w.dtype], w.head_dim, w.value_dim, chosen.attention
    projects = said.feature_map == "performer"
    f = 3 if projects else d
    project, state = 2 * d * f * projects, 4 * f * (dv + 1)
    causal = bool(chosen.mask.causal)
    read = dict.fromkeys(("Q", "K", "V"), 0) | ({} if causal else {"state": 0})
    write, flops = {"O": 0} | ({} if causal else {"state": 0}), 0
    if causal:
        for _ in range(w.heads):
            for start in range(0, w.seqlen_k, w.cols):
                c = min(w.cols, w.seqlen_k - start)
                for name, wide in (("Q", d), ("K", d), ("V", dv)):
                    read[name] += c * wide * b
                write["O"] += c * dv * b
                flops += 2 * c * f * dv + 2 * c * c * (f + dv) + 2 * c * f * dv + 2 * c * project
    else:
        for _ in range(w.kv_heads):
            read["K"] += w.seqlen_k * d * b
            read["V"] += w.seqlen_k * dv * b
            write["state"] += state
            flops += w.seqlen_k * (2 * f * dv + project)
        for _ in range(w.heads):
            for start in range(0, w.seqlen_q, w.rows):
                rows = min(w.rows, w.seqlen_q - start)
                read["state"] += state
                read["Q"] += rows * d * b
                write["O"] += rows * dv * b
                flops += rows * (2 * f * dv + project)
    total = tile_program(w).totals
    assert {name: n for name, n in total.read.items() if n} == read
    assert {name: n for name, n in total.write.items() if n} == write
    assert total.flops == flops
    once = b * (w.heads * w.seqlen_q * (d + dv) + w.kv_heads * w.seqlen_k * (d + dv))
    assert compulsory_bytes(w) == once + (0 if causal else 2 * w.kv_heads * state)


def test_it_costs_as_much_more_as_there_are_more_keys() -> None:
    small, large = (
        tile_program(resolve(scenario("linear", nq=n, rows=4, cols=4, mask={"causal": True})))
        for n in (64, 640)
    )
    assert large.totals.flops == 10 * small.totals.flops
    assert large.totals.bytes == 10 * small.totals.bytes
    assert large.peak_shared_bytes == small.peak_shared_bytes


def test_tiles_are_formed_of_a_chunk_with_itself_alone() -> None:
    causal = tile_program(
        resolve(scenario("linear", nq=11, heads=2, cols=4, mask={"causal": True}))
    )
    assert tile_counts(causal) == {"total": 18, "visited": 6, "skipped": 12, "full": 0,
                                   "partial": 6}  # fmt: skip
    whole = tile_program(resolve(scenario("linear", nq=11, heads=2, cols=4)))
    assert tile_counts(whole)["visited"] == 0


# --- the program -------------------------------------------------------------------------------


def test_the_state_stays_on_chip_until_its_head_is_done() -> None:
    program = tile_program(
        resolve(scenario("linear", nq=11, heads=2, rows=9, cols=4, mask={"causal": True}))
    )
    assert len(program) == 2 * ceil(11 / 4)
    for index in range(len(program)):
        held = [tile.name for tile in program.on_chip(index, 0)]
        assert "state" in held
        last = len(program.ops(index)) - 1
        assert [tile.name for tile in program.on_chip(index, last)] == (
            [] if index % 3 == 2 else ["state"]
        )
    assert list(program.of_row_block(1, 2)) == [3, 4, 5]


def test_heads_that_share_keys_share_their_state() -> None:
    chosen = scenario("linear", nq=4, nk=10, heads=4, kv_heads=2, rows=4, cols=4, head=[0, 2, 3])
    program = tile_program(resolve(chosen))
    visits = [program.visit(n) for n in range(len(program))]
    assert [(v.launch, v.head, v.i, v.j) for v in visits] == [
        (0, 0, 0, 0), (0, 0, 0, 1), (0, 0, 0, 2), (0, 1, 0, 0), (0, 1, 0, 1), (0, 1, 0, 2),
        (1, 0, 0, 0), (1, 1, 0, 0), (1, 2, 0, 0),
    ]  # fmt: skip
    assert list(program.of_row_block(2, 0)) == [3, 4, 5, 8]
    assert [op.moves[0].head for op in program.ops(8) if op.loads] == [1]


def test_it_is_another_function_and_set_beside_the_others_only_when_it_is_shown() -> None:
    assert beside("linear") == ("naive", "flash1", "flash2", "linear")
    assert "linear" not in beside("flash2")


# --- what cannot be used -----------------------------------------------------------------------


def tables(**changes: dict[str, Any]) -> dict[str, Any]:
    attention = {"algorithm": "linear", "seqlen_q": 8, "head_dim": 4}
    return {"attention": attention | changes.pop("attention", {}), **changes}


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"mask": {"window": 3}}, "mask.window = 3: expected 0: linear attention is causal or"),
        ({"attention": {"seqlen_k": 9}, "mask": {"causal": True}},
         "attention.seqlen_q = 8: expected 9 like seqlen_k: causal linear attention"),
        ({"mask": {"sinks": 2}}, "mask.sinks = 2: expected 0"),
        ({"attention": {"scale": 0.5}}, "attention.scale = 0.5: expected no scale: linear"),
        ({"attention": {"temperature": 2.0}},
         "attention.temperature = 2.0: expected no temperature"),
        ({"scores": {"softcap": 9.0}}, "scores.softcap = 9.0: expected none: linear attention"),
        ({"mask": {"documents": [4, 4]}}, "mask.documents = [4, 4]: expected none: linear"),
        ({"mask": {"global_tokens": 1, "window": 2}}, "mask.window = 2: expected 0: linear"),
        ({"scores": {"alibi": [1.0]}}, 'scores.alibi = "set": expected none: linear attention'),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_told_in_one_line(changes: dict[str, Any], line: str) -> None:
    chosen = parse_scenario(tables(**changes))  # a click on the algorithm comes as far as that
    assert line in refused(resolve, chosen)


def test_directions_come_from_the_file_or_from_the_seed(tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal((1, 5, 4)).astype(np.float32) for name in "qkv"}
    given_ = rng.standard_normal((3, 4)).astype(np.float32)
    np.savez(tmp_path / "with.npz", projection=given_, **arrays)
    np.savez(tmp_path / "without.npz", **arrays)
    np.savez(tmp_path / "wrong.npz", projection=given_.T.copy(), **arrays)

    def inputs(name: str) -> Inputs:
        attention = {"algorithm": "linear", "feature_map": "performer", "features": 3}
        source = {"source": "file", "path": str(tmp_path / name), "seed": 7}
        return read_inputs(resolve(parse_scenario({"attention": attention, "input": source})))

    np.testing.assert_array_equal(inputs("with.npz").projection, given_)
    drawn = inputs("without.npz").projection
    expected = np.random.default_rng(7).standard_normal((3, 4)).astype(np.float32)
    np.testing.assert_array_equal(drawn, expected)
    assert "shape of projection = (4, 3): expected (3, 4)" in refused(inputs, "wrong.npz")


def test_row_blocks_are_the_chunks_if_a_state_goes_on() -> None:
    chosen = scenario("linear", nq=12, rows=9, cols=4, mask={"causal": True})
    w = resolve(chosen)
    assert (w.rows, w.cols) == (4, 4)
    assert replace(w, cols=6).rows == 6
    assert resolve(with_values(chosen, {"mask": {"causal": False}})).rows == 9
    assert isinstance(Trace(tile_program(w), op_engine(w, read_inputs(w)), read_inputs(w)), Trace)


# --- mistakes ----------------------------------------------------------------------------------


def with_fault(name: str) -> Trace:
    chosen = scenario("linear", nq=16, d=4, rows=4, cols=4, mask={"causal": True}, heads=2)
    return trace_of(with_values(chosen, {"faults": {name: True}}))


@pytest.mark.sweep(keep=4)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_only_mistakes_that_it_can_make_change_it(fault: Fault) -> None:
    wrong = with_fault(fault.name)
    right = trace_of(with_values(wrong.workload.scenario, {"faults": {fault.name: None}}))
    same = np.array_equal(wrong.output, right.output)
    assert same is bool(without_effect(fault, wrong.workload))
    assert (fault.name in ("late_mask", "half_accumulator")) is not same
    marks = wrong.snapshot(len(wrong) - 1).wrong
    if same or fault.name == "late_mask":  # O is marked unless float32 might be as far off
        assert marks.o.any() == (not same)


def test_a_late_mask_leaves_later_keys_in_the_sum_of_the_weights() -> None:
    trace = with_fault("late_mask")
    now = trace.snapshot(0)
    exact = elu_plus_one(now.q[:4].astype(float)) @ elu_plus_one(now.k[:4].astype(float)).T
    np.testing.assert_allclose(now.l, exact.sum(axis=1), rtol=1e-5)
    seen = np.tril(exact) @ now.v[:4] / exact.sum(axis=1)[:, None]
    np.testing.assert_allclose(now.o, seen, rtol=1e-4)


def test_a_run_that_it_cannot_have_is_refused_as_one_of_another_algorithm() -> None:
    for said in ({"mask": {"window": 3}}, {"nk": 9, "mask": {"causal": True}}):
        w = resolve(scenario("flash2", nq=8, **said))
        assert refused(w.as_algorithm, "linear")
    w = resolve(scenario("linear", nq=8, cols=2, mask={"causal": True}))
    places = roofline_of(tile_program(w)).places
    assert [p.phase for p in places if p.algorithm == "linear"] == ["prefill"]
    assert {p.algorithm for p in places if p.phase == "decode"} == {"naive", "flash1", "flash2"}


def test_random_features_are_twice_as_many_as_numbers_of_a_key() -> None:
    w = resolve(scenario("linear", nq=4, d=6, feature_map="performer"))
    assert w.feature_map.features == 12
