"""Updates of a state, token by token: recurrent and chunked linear attention, decay, delta rule."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.problem.facts import RULES
from simulator.problem.scenario import Scenario, parse_scenario, with_values
from simulator.problem.workload import Inputs, Workload, read_inputs, resolve
from simulator.program.algorithms import ALGORITHMS, beside, tile_program
from simulator.program.traffic import compulsory_bytes
from simulator.run.exactness import exactness
from simulator.run.explanation import Number
from simulator.run.linear_state import forms_tile
from simulator.run.provenance import explain
from simulator.run.row_report import row_report
from simulator.run.row_sums import row_weights
from simulator.run.snapshot import Cell
from simulator.run.trace import tile_counts
from tests.helpers.refused import refused
from tests.helpers.runs import WIDTHS, check_close, gated, scenario, trace_of
from tests.helpers.state_runs import check_visits_alone, output_of

TOKENS = tuple(name for name, rule in RULES.items() if rule.tokens)
GATED = tuple(name for name, rule in RULES.items() if rule.gate)


@st.composite
def runs(
    draw: st.DrawFn, names: tuple[str, ...] = TOKENS, dtypes: tuple[str, ...] = ("float32",)
) -> Scenario:
    """Draw runs token by token of any shape."""
    name, kv_heads = draw(st.sampled_from(names)), draw(st.integers(1, 2))
    n = draw(st.integers(1, 12))
    maps = ({}, {"feature_map": "performer", "features": 3}) if name not in GATED else ({},)
    return scenario(
        name,
        nq=n,
        nk=n,
        d=draw(st.integers(1, 4)),
        dv=draw(st.integers(1, 4)),
        heads=kv_heads * draw(st.integers(1, 2)),
        kv_heads=kv_heads,
        rows=draw(st.integers(1, 9)),
        cols=draw(st.integers(1, 9)),
        seed=draw(st.integers(0, 99)),
        dtype=draw(st.sampled_from(dtypes)),
        mask={"causal": True},
        **draw(st.sampled_from(maps)),
    )


def by_hand(w: Workload, inputs: Inputs, head: int) -> np.ndarray:
    """Return O of a head as a plain loop over its tokens has it."""
    kv = w.kv_head_of[head]
    q, k, v, gate = (
        x.astype(float) for x in (inputs.q[head], inputs.k[kv], inputs.v[kv], inputs.gate[kv])
    )
    return gated(w.algorithm, q, k, v, gate)


# --- recurrent and chunked are one function -----------------------------------------------------


@pytest.mark.long
@given(runs(("linear-recurrent",)), st.integers(1, 9))
def test_the_recurrent_and_the_chunked_program_have_one_result(chosen: Scenario, c: int) -> None:
    changes = {"attention": {"algorithm": "linear"}, "tiling": {"rows": c, "cols": c}}
    chunked = with_values(chosen, changes)
    check_close(output_of(chosen), output_of(chunked), 1e-10, "O in float64")
    check_close(trace_of(chosen).output, trace_of(chunked).output, 1e-4, "O")


@given(runs(("linear-recurrent",), dtypes=("float32", "float16")))
def test_both_move_the_same_bytes_and_what_they_compute_is_that_of_plain_loops(
    chosen: Scenario,
) -> None:
    w, said = resolve(chosen), chosen.attention
    chunked = resolve(with_values(chosen, {"attention": {"algorithm": "linear"}}))
    ours, theirs = tile_program(w).totals, tile_program(chunked).totals
    assert (ours.read, ours.write) == (theirs.read, theirs.write)
    f = said.features or w.head_dim
    own = in_chunks = 0
    for _ in range(w.heads):
        for _ in range(w.seqlen_k):
            own += 2 * f * w.value_dim  # the key and the value make a matrix
            own += 2 * f * w.value_dim  # the query reads the state
            own += 2 * 2 * w.head_dim * f * bool(said.features)
        for start in range(0, w.seqlen_k, chunked.cols):
            c = min(chunked.cols, w.seqlen_k - start)
            in_chunks += 2 * 2 * c * f * w.value_dim + 2 * c * c * (f + w.value_dim)
            in_chunks += 2 * 2 * c * w.head_dim * f * bool(said.features)
    assert (ours.flops, theirs.flops) == (own, in_chunks)


def test_either_can_be_chosen_and_they_are_set_side_by_side() -> None:
    assert beside("linear-recurrent") == ("naive", "flash1", "flash2", "linear", "linear-recurrent")
    chosen = scenario("linear-recurrent", nq=12, rows=3, cols=4, mask={"causal": True})
    w = resolve(chosen)
    assert (w.rows, w.cols) == (1, 1)
    other = w.as_algorithm("linear")
    assert (other.rows, other.cols) == (4, 4)
    flash = other.as_algorithm("linear-recurrent").as_algorithm("flash2")
    assert (flash.rows, flash.cols) == (4, 4)
    assert w.as_algorithm("flash2").rows == 3


def test_what_the_delta_rule_asks_for_is_on_chip_until_it_is_used() -> None:
    program = run_of("deltanet").program
    names = [op.name for op in program.ops(3)]
    held = {
        name: {tile.name for tile in program.on_chip(3, n)} & {"v_old", "u", "strength", "O"}
        for n, name in enumerate(names)
    }
    assert held == {
        "load": {"strength"}, "features": {"strength"}, "recall": {"strength", "v_old"},
        "correct": {"u"}, "update state": set(), "read state": {"O"}, "store": set(),
    }  # fmt: skip


@pytest.mark.parametrize("name", TOKENS)
def test_it_is_set_beside_the_others_only_when_it_is_shown(name: str) -> None:
    assert name in beside(name)
    assert name not in beside("flash2")


@pytest.mark.parametrize("name", TOKENS)
def test_no_tile_of_scores_is_formed(name: str) -> None:
    program = run_of(name).program
    assert tile_counts(program)["visited"] == 0
    assert not any("S" in op.makes or "P" in op.makes for n in range(9) for op in program.ops(n))


# --- decay and delta rule -----------------------------------------------------------------------


@pytest.mark.long
@given(runs(), st.data())
def test_a_visit_is_the_same_wherever_one_comes_from(chosen: Scenario, data: st.DataObject) -> None:
    check_visits_alone(chosen, data)


@given(runs(GATED, dtypes=("float32", "float16")))
def test_bytes_and_flops_are_those_of_plain_loops(chosen: Scenario) -> None:
    w = resolve(chosen)
    b, d, dv = WIDTHS[w.dtype], w.head_dim, w.value_dim
    gate, wide = ("decay", 4 * d) if w.algorithm == "gla" else ("strength", 4)
    read, flops = dict.fromkeys(("Q", "K", "V", gate), 0), 0
    for _ in range(w.heads):
        for _ in range(w.seqlen_k):
            for name, size in (("Q", d * b), ("K", d * b), ("V", dv * b), (gate, wide)):
                read[name] += size
            flops += 2 * d * dv * (2 if w.algorithm == "gla" else 3)
    total = tile_program(w).totals
    assert {name: n for name, n in total.read.items() if n} == read
    assert {name: n for name, n in total.write.items() if n} == {"O": w.heads * w.seqlen_q * dv * b}
    assert total.flops == flops
    rows, keys = w.heads * w.seqlen_q * (d + dv), w.kv_heads * w.seqlen_k * (d + dv)
    assert compulsory_bytes(w) == b * (rows + keys) + w.kv_heads * w.seqlen_k * wide


def run_of(name: str, **said: Any) -> Any:
    return trace_of(scenario(name, nq=9, d=4, dv=3, rows=2, cols=2, mask={"causal": True}, **said))


def test_without_decay_it_is_linear_attention_that_is_not_divided() -> None:
    trace = run_of("gla", decay=1.0)
    q, k, v = (x[0].astype(float) for x in (trace.inputs.q, trace.inputs.k, trace.inputs.v))
    check_close(trace.output[0], np.tril(q @ k.T) @ v, 1e-5, "O")
    halved = run_of("gla", decay=0.5)
    age = np.arange(9)[:, None] - np.arange(9)
    check_close(halved.output[0], np.tril(q @ k.T * 0.5**age) @ v, 1e-5, "O")


def test_the_delta_rule_answers_a_key_with_the_value_that_was_written_last() -> None:
    trace = run_of("deltanet", strength=1.0)
    now = trace.snapshot(len(trace) - 1)
    last = now.state["phi_K"].astype(float) @ now.state["state"].astype(float)
    np.testing.assert_allclose(last[0], now.v[-1], atol=1e-5)
    assert np.abs(now.state["v_old"][0] - now.v[-1]).max() > 0.1


def test_gates_come_from_the_scenario_the_file_or_the_seed(tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal((2, 5, 3)).astype(np.float32) for name in "qkv"}
    decay = rng.random((2, 5, 3)).astype(np.float32)
    np.savez(tmp_path / "with.npz", decay=decay, **arrays)
    np.savez(tmp_path / "without.npz", **arrays)
    np.savez(tmp_path / "wrong.npz", decay=decay[:1], **arrays)
    np.savez(tmp_path / "high.npz", decay=decay + 1, **arrays)

    def gate(name: str, **said: Any) -> np.ndarray:
        source = {"source": "file", "path": str(tmp_path / name), "seed": 7, **said.pop("of", {})}
        attention = {"algorithm": "gla", **said}
        mask = {"causal": True}
        w = resolve(parse_scenario({"attention": attention, "input": source, "mask": mask}))
        found = read_inputs(w).gate
        assert found is not None
        return found

    np.testing.assert_array_equal(gate("with.npz"), decay)
    np.testing.assert_array_equal(gate("with.npz", of={"head": [1]}), decay[1:])
    np.testing.assert_array_equal(gate("with.npz", decay=0.25), np.full((2, 5, 3), 0.25))
    normal = np.random.default_rng([7, 1]).standard_normal((2, 5, 3))
    drawn = (1 / (1 + np.exp(-normal))) ** (1 / 16)
    np.testing.assert_array_equal(gate("without.npz"), drawn.astype(np.float32))
    assert "shape of decay = (1, 5, 3): expected (2, 5, 3)" in refused(gate, "wrong.npz")
    assert "expected numbers in 0 to 1" in refused(gate, "high.npz")


@pytest.mark.parametrize("name", TOKENS)
def test_a_run_that_sees_later_keys_is_refused_in_one_line(name: str) -> None:
    assert "mask.causal = false: expected true: a run token by token" in refused(
        resolve, scenario(name, nq=4)
    )


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("name", TOKENS)
def test_errors_are_those_of_the_definition(name: str) -> None:
    trace = run_of(name, heads=2, kv_heads=1)
    for index in range(len(trace)):
        for number, op in enumerate(trace.program.ops(index)):
            now = trace.snapshot(index, number)
            report = row_report(now, now.visit.i)
            known = now.made("O")
            assert (report.error is not None) == known, op.name
            assert (report.error or 0.0) < 1e-5
            assert exactness(trace, now, report).now.ulp.max() < 256
    weights = row_weights(
        trace.workload, now.q, now.k, None, now.gate, range(trace.workload.seqlen_q)
    )
    np.testing.assert_allclose(report.scores, weights[-1], rtol=1e-5)
    exact = weights @ now.v
    if ALGORITHMS[name].sums:
        exact /= weights.sum(axis=1)[:, None]
    np.testing.assert_allclose(now.head.o, exact, atol=1e-5)


def off_by(words: str) -> int:
    """Return how many units in the last place an explanation says."""
    found = re.search(r"(\d+) units? in the last place", words)
    assert found is not None or words == ", the same in float32"
    return int(found[1]) if found else 0


@pytest.mark.parametrize("name", TOKENS)
def test_a_number_of_a_row_came_from_the_state(name: str) -> None:
    trace = run_of(name)
    now = trace.snapshot(5)
    told = explain(now, Cell("O", 5, 1))
    said = [part for line in told.lines for part in line]
    numbers = [part.value for part in said if isinstance(part, Number)]
    exact = now.state["phi_Q"].astype(float) @ now.state["state"].astype(float)
    sums = trace.program.algorithm.sums
    over = [exact[0, 1] / exact[0, -1], exact[0, -1]] if sums else []
    assert sorted(numbers) == pytest.approx(sorted([exact[0, 1]] * 2 + over), abs=1e-5)
    words = [part for part in said if isinstance(part, str)]
    assert any("state" in part for part in words)
    assert off_by(words[-1]) <= 4
    if sums:
        lines = explain(now, Cell("l", 5, 0)).lines
        found = [part.value for line in lines for part in line if isinstance(part, Number)]
        assert found == pytest.approx([exact[0, -1]] * 2, abs=1e-5)
        assert off_by(str(lines[-1][-1])) <= 4
    gate = trace.program.algorithm.gates
    for spec in gate:
        value = explain(now, Cell(spec.name, 5, 0)).value.value
        assert value == now.inputs[spec.name][5, 0]


def test_a_state_forms_a_tile_of_a_chunk_alone_and_none_before_the_tiles() -> None:
    for name in ("linear", *TOKENS, "flash2"):
        trace = trace_of(scenario(name, nq=6, rows=3, cols=3, mask={"causal": True}))
        assert forms_tile(trace.snapshot(0)) == (name in ("linear", "flash2")), name
    assert not forms_tile(trace_of(scenario("linear", nq=6, rows=3, cols=3)).snapshot(0))
    turned = trace_of(scenario(nq=6, d=2, rows=3, cols=3, position={"kind": "rope"}))
    now = trace_of(turned.workload.scenario).snapshot(0, 0)
    assert now.op.before_tiles
    assert forms_tile(now) is False
