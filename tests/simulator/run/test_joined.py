"""What splits leave and how they are joined, as the panels are told of it."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.base.assets import SCENARIOS
from simulator.code.tile_script import save_tile
from simulator.problem.scenario import with_values
from simulator.problem.workload import resolve
from simulator.run.cell_values import cell_value, exists
from simulator.run.explanation import Number
from simulator.run.provenance import explain
from simulator.run.snapshot import Cell, Snapshot
from simulator.run.trace import Trace, simulate
from simulator.study.captions import Numbers
from tests.helpers.demos import every_op
from tests.helpers.process import python
from tests.helpers.refused import refused
from tests.helpers.runs import scenario, scenarios, scored, trace_of
from tests.simulator.program.test_split_kv import even, split


@pytest.fixture(scope="module")
def trace() -> Trace:
    return simulate(SCENARIOS / "split-kv.toml")


def own_part(now: Snapshot, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return O and LSE of a split from the definition, in float64."""
    w, rows = now.program.workload, now.visit.rows
    keys = w.split_keys(n)
    scores = now.q[rows.start : rows.stop].astype(float) @ now.k.astype(float).T * w.logit_scale
    scores = scored(w, now.visit.head, rows, range(w.seqlen_k), scores)
    scores = np.where(w.mask.visible(rows, range(w.seqlen_k)), scores, -np.inf)
    scores = scores[:, keys.start : keys.stop]
    sink = np.full((len(rows), 1), -np.inf)
    if w.sink_logits and n == 0:
        sink[:, 0] = [w.sink_logits[w.single(now.visit.head, row)[0]] for row in rows]
    top = np.append(scores, sink, axis=1).max(axis=1)
    floor = np.where(np.isneginf(top), 0, top)[:, None]
    p = np.exp(scores - floor)
    total = p.sum(axis=1) + np.exp(sink - floor)[:, 0]
    o = p @ now.v[keys.start : keys.stop].astype(float)
    with np.errstate(divide="ignore"):
        lse = np.where(total > 0, top + np.log(total), -np.inf)
    return o / np.where(total > 0, total, 1)[:, None], lse


@pytest.mark.long
@given(
    scenarios(algorithms=["flash2"], longest=10, dtypes=["float32"]), st.integers(1, 7), st.data()
)
def test_partials_are_those_of_the_keys_of_each_split(chosen, splits, data):
    chosen = even(chosen)
    trace = trace_of(split(chosen, splits))
    now = trace.snapshot(data.draw(st.integers(0, len(trace) - 1)))
    for n in range(splits):
        o, lse = own_part(now, n)
        np.testing.assert_allclose(now.partials.o[n], o, atol=2e-5)
        np.testing.assert_allclose(now.partials.lse[n], lse, atol=2e-5)


def test_a_split_lies_in_hbm_once_it_is_stored(trace):
    stores = False
    for now in every_op(trace):
        place, last = now.visit, len(now.ops) - 1
        done = place.split + (place.last and now.cursor.op == last)
        expected = (True,) * 3 if now.launch.combines else tuple(n < done for n in range(3))
        assert now.partials.stored == expected
        joined = now.launch.combines and "exponentials" in now.done
        assert (now.partials.weights is not None) == joined
        stores = stores or done == 3
    assert stores


def test_splits_without_a_visible_key_lie_there_from_the_first_op():
    chosen = split(simulate(SCENARIOS / "causal.toml").workload.scenario, 4)
    trace = trace_of(chosen)
    first = trace.snapshot(0, 0)
    assert first.partials.stored == (False, True, True, True)
    assert np.isneginf(first.partials.lse[1:]).all()


# --- cells and where they come from ------------------------------------------------------------


def test_cells_of_partials_are_the_numbers_of_their_split(trace):
    joins = trace.snapshot(len(trace) - 1)
    for n, row, col in product(range(3), range(4), range(8)):
        o = cell_value(joins, Cell("O_partial", row, col, n))
        assert o.value == joins.partials.o[n, row, col]
        assert o.name == f"O_partial[{n}, {row}, {col}]"
        lse = cell_value(joins, Cell("LSE_partial", row, 0, n))
        assert lse.value == joins.partials.lse[n, row]
        assert lse.name == f"LSE_partial[{n}, {row}]"
    early = trace.snapshot(0)
    assert cell_value(early, Cell("O_partial", 0, 0, 1)).value is None
    assert "not left it yet" in cell_value(early, Cell("O_partial", 0, 0, 1)).state


@pytest.mark.parametrize("is_large", [False, True])
def test_m_l_and_o_are_there_from_the_op_that_makes_them(is_large: bool) -> None:
    """O of a split is not rounded when the split is stored: in HBM it is float32."""
    chosen = split(simulate(SCENARIOS / "split-kv.toml").workload.scenario, 3)
    half = chosen.attention.model_copy(update={"dtype": "float16"})
    trace = trace_of(chosen.model_copy(update={"attention": half}))
    for now in every_op(trace):
        now = replace(now, head=None) if is_large else now
        row = now.visit.rows.start
        for name in ("m", "l", "O"):
            made = now.state.get(name)
            expected = None if made is None else float(made.flat[0])
            if name == "O" and now.launch.combines and "store" in now.done:
                expected = float(np.float16(expected))
            assert cell_value(now, Cell(name, row, 0)).value == expected, (now.cursor, name)


def test_a_cell_of_a_split_that_is_not_there_does_not_exist(trace):
    w = trace.workload
    assert exists(w, Cell("O_partial", 3, 7, 2))
    assert not exists(w, Cell("O_partial", 3, 7, 3))
    assert not exists(w, Cell("O_partial", 4, 0, 0))
    other = w.as_algorithm("flash2")
    assert not exists(other, Cell("O_partial", 0, 0, 0))


@pytest.mark.parametrize("op", range(7))
def test_a_joined_row_is_the_sum_that_is_told_of_it(trace, op):
    now = trace.snapshot(18, op)
    partials = now.partials
    for name, after in (("m", 1), ("l", 3), ("O", 4)):
        found = explain(now, Cell(name, 2, 0))
        if op < after:
            assert found.value.value is None
            assert found.lines == ()
            continue
        numbers = [part for line in found.lines for part in line if isinstance(part, Number)]
        if name == "m":
            assert found.value.value == partials.lse[:, 2].max()
            assert [n.value for n in numbers[1:]] == partials.lse[:, 2].tolist()
            continue
        assert found.sum.over == "split"
        assert found.sum.count == 3
        of = partials.o[:, 2, 0].astype(float) if name == "O" else np.ones(3)
        exact = (partials.weights[:, 2].astype(float) * of).sum()
        assert found.sum.total == pytest.approx(exact, rel=1e-12)
        if name == "l" or op == 4:
            assert found.value.value == pytest.approx(exact, rel=1e-6)


def test_a_partial_says_of_which_keys_it_is(trace):
    now = trace.snapshot(18)
    (line,) = explain(now, Cell("O_partial", 1, 2, 1)).lines
    assert line == ("Σ P V / ℓ of the keys 12 to 23 alone, in float32",)


@pytest.mark.long
def test_the_script_of_a_joining_visit_agrees(trace, tmp_path):

    for visit in (0, 8, 18):
        arrays, script = save_tile(trace.snapshot(visit), tmp_path / f"tile{visit}.npz")
        ran = python(script)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert "o " in ran.stdout
        assert arrays.exists()
    told = (tmp_path / "tile18.py").read_text()
    assert "launch 2 (combine), head 0–3, row block 0" in told


def test_rows_are_told_by_their_heads(trace):
    w = trace.workload
    assert w.row_name(1, 2) == "row 2 (head 6)"
    two = resolve(scenario("split-kv", nq=2, nk=8, heads=4, kv_heads=2))
    assert two.row_name(1, 1) == "row 1 (head 2, query 1)"
    for head, row in product(range(w.heads), range(w.seqlen_q)):
        assert w.packed(*w.single(head, row)) == (head, row)
    single, inputs = trace.single_heads
    assert (single.heads, single.seqlen_q) == (8, 1)
    np.testing.assert_array_equal(inputs.q[6, 0], trace.inputs.q[1, 2])


def test_lessons_may_ask_for_splits(trace):
    from simulator.lesson.expressions import FUNCTIONS
    from simulator.lesson.numbers import QUANTITIES
    from simulator.program.playback import Cursor

    w = trace.workload
    told = {name: QUANTITIES[name](w) for name in ("heads", "Nq", "splits", "kv_heads")}
    assert told == {"heads": 8, "Nq": 1, "splits": 3, "kv_heads": 2}
    n = Numbers(w.scenario, Cursor(18, 6))
    now = trace.snapshot(18, 6)
    lse, weight = FUNCTIONS["lse_of_split"], FUNCTIONS["weight_of_split"]
    for each in range(3):
        assert lse(n, each, 2) == float(now.partials.lse[each, 2])
    assert lse(n, 1, 2) == pytest.approx(float(now.partials.lse[1, 2]))
    assert weight(n, 1, 2) == pytest.approx(float(now.partials.weights[1, 2]))
    assert FUNCTIONS["error"](n, 2) < 1e-6
    shares = [FUNCTIONS["weight"](n, 2, key) for key in range(w.seqlen_k)]
    assert sum(shares) == pytest.approx(1, abs=1e-5)
    early = Numbers(w.scenario, Cursor(0, 0))
    for asked in (lambda: weight(early, 1, 2), lambda: lse(early, 1, 2), lambda: lse(n, 3, 2)):
        assert "split" in refused(asked)


def test_rows_of_a_later_block_are_joined_from_their_own_partials() -> None:
    chosen = scenario("split-kv", nq=6, nk=30, d=2, dv=3, rows=4, cols=2)
    trace = trace_of(with_values(chosen, {"tiling": {"splits": 3}}))
    index = trace.program.joining(0, 1)
    assert index is not None
    now = trace.snapshot(index)
    partials = now.partials
    for row in now.visit.rows:
        lines = explain(now, Cell("m", row, 0)).lines
        lse = [part.value for line in lines for part in line if isinstance(part, Number)]
        assert lse[1:] == partials.lse[:, row - 4].tolist()
        found = explain(now, Cell("l", row, 0))
        assert found.sum.total == pytest.approx(float(now.l[row - 4]), rel=1e-6)


def test_a_row_that_sees_nothing_has_no_maximum_of_splits() -> None:
    blind = trace_of(split(scenario("flash2", nq=4, nk=2, mask={"causal": True}), 2))
    now = blind.snapshot(len(blind) - 1, len(blind.program.ops(len(blind) - 1)) - 1)
    assert now.partials is not None
    told = explain(now, Cell("m", 0, 0))
    assert told.value.value == -np.inf
    (line,) = told.lines
    assert line[-1] == ": no split has seen a key of this row"
    weights = explain(now, Cell("l", 0, 0)).lines
    assert [line[-1] for line in weights[-2:]] == [": it has seen no key of this row"] * 2
    words = explain(now, Cell("m", 3, 0)).lines[0]
    assert str(words[-1]).startswith(", left by split")


def test_splits_have_cells_from_the_first_to_the_last_where_keys_are_dealt_out(trace):
    w = trace.workload
    there = [exists(w, Cell("LSE_partial", 2, 0, split)) for split in range(-1, w.splits + 1)]
    assert there == [False, *[True] * w.splits, False]
    plain = simulate(SCENARIOS / "flash2.toml").workload
    assert not exists(plain, Cell("O", 0, 0, 0))
