"""Explanations of cells: the engine's numbers, sums that add up, and nothing before it exists."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator import Snapshot, Trace, simulate
from simulator.cell_values import cell_shape, cell_value, exists, moved_cell
from simulator.provenance import MOST_TERMS, Explanation, Number, explain, masked_because
from simulator.scenario import Scenario, with_values
from simulator.snapshot import Cell
from simulator.workload import resolve
from tests.simulator.helpers import ALGORITHMS, pairs_of, scenario, scenarios, trace_of


def every_op(trace: Trace) -> Iterator[Snapshot]:
    for visit in range(len(trace)):
        for op in range(len(trace.program.ops(visit))):
            yield trace.snapshot(visit, op)


def cells_of(now: Snapshot) -> Iterator[Cell]:
    """Yield cells of every tensor, inside and outside the current tile."""
    w = now.program.workload
    for tensor in "QKVSmlO":
        rows, cols = cell_shape(w, tensor)
        own = now.visit.cols if tensor in "KV" else now.visit.rows
        for row in {0, own.start, own.stop - 1, rows - 1}:
            for col in {0, min(now.visit.cols.start, cols - 1), cols - 1}:
                yield Cell(tensor, row, col)


def numbers_of(found: Explanation) -> list[Number]:
    return [part for line in found.lines for part in line if isinstance(part, Number)]


def words_of(found: Explanation) -> str:
    shown = (part if isinstance(part, str) else "#" for line in found.lines for part in line)
    return "".join(shown)


@given(scenarios(longest=9))
def test_every_number_of_every_explanation_is_one_of_the_snapshot(chosen: Scenario) -> None:
    trace = trace_of(chosen)
    w = trace.workload
    for now in every_op(trace):
        for cell in cells_of(now):
            found = explain(now, cell)
            value = cell_value(now, cell)
            assert found.value == value
            assert value.state
            for number in numbers_of(found):
                assert exists(w, number.cell)
                assert not np.isnan(number.value)
                assert number.name
            if found.sum is not None:
                check_sum(found, now)


def check_sum(found: Explanation, now: Snapshot) -> None:
    """Hold that terms are made of the cells they name, and add up to the total."""
    sums = found.sum
    assert sums is not None
    for term in sums.terms:
        assert term.product == np.prod([factor.value for factor in term.factors])
        for factor in term.factors:
            cell = factor.cell
            if cell.tensor in "QKV":
                held = {"Q": now.q, "K": now.k, "V": now.v}[cell.tensor][cell.row, cell.col]
                assert factor.value == float(held)
            else:
                r, c = cell.row - now.visit.rows.start, cell.col - now.visit.cols.start
                assert factor.value == float(now.tile.p[r, c])
    assert sums.count == len(sums.terms)
    assert sums.total == pytest.approx(sum(term.product for term in sums.terms), abs=1e-12)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_score_is_its_products(algorithm: str) -> None:
    trace = trace_of(scenario(algorithm, nq=8, d=6, temperature=2.0))
    now = next(n for n in every_op(trace) if "scores" in n.done and n.visit.j == 1)
    cell = Cell("S", now.visit.rows.start + 1, now.visit.cols.start + 2)
    found = explain(now, cell)
    assert found.sum is not None
    assert found.sum.name == f"q{cell.row} · k{cell.col}"
    assert [t.index for t in found.sum.terms] == list(range(6))
    pairs = [(t.factors[0].cell, t.factors[1].cell) for t in found.sum.terms]
    assert pairs == [(Cell("Q", cell.row, n), Cell("K", cell.col, n)) for n in range(6)]
    exact = float(now.q[cell.row].astype(float) @ now.k[cell.col].astype(float))
    assert found.sum.total == pytest.approx(exact, abs=1e-14)
    _, scaled, engine = numbers_of(found)[:3]
    assert scaled.value == pytest.approx(exact * trace.workload.scale / 2.0, abs=1e-14)
    assert engine.value == float(now.tile.s[1, 2])
    assert "in the last place" in words_of(found) or "the same in float32" in words_of(found)


def test_flash2_statistics_and_output() -> None:
    trace = trace_of(scenario("flash2", nq=8, d=4, mask={"causal": True}, seed=3))
    now = trace.snapshot(2)  # tile (1, 1), after all its ops
    t, row = now.tile, 6
    r = row - now.visit.rows.start
    top = int(np.argmax(np.where(t.seen[r], t.s[r], -np.inf))) + now.visit.cols.start

    def values(cell: Cell) -> list[float]:
        return [number.value for number in numbers_of(explain(now, cell))]

    m = explain(now, Cell("m", row, 0))
    assert values(m.value.cell) == [
        t.m_prev[r], t.m_tile[r], t.m[r], t.m_tile[r], t.m_prev[r], t.m[r], t.alpha[r],
    ]  # fmt: skip
    assert f"held by key {top}" in words_of(m)
    assert numbers_of(m)[1].cell == Cell("S", row, top)
    l = values(Cell("l", row, 0))
    assert l[:4] == [t.l_tile[r], t.alpha[r], t.l_prev[r], t.l_tile[r]]
    assert l[5] == t.l[r]
    o = explain(now, Cell("O", row, 2))
    assert o.sum is not None
    assert o.sum.total == pytest.approx(
        float(t.p[r].astype(float) @ now.v[4:8, 2].astype(float)), abs=1e-14
    )
    shown = values(Cell("O", row, 2))
    assert shown[:3] == [t.o[r, 2], t.l[r], now.o[r, 2]]
    assert shown[3:5] == [t.alpha[r], t.o_prev[r, 2]]
    assert shown[6] == pytest.approx(t.alpha[r] * t.o_prev[r, 2] + o.sum.total)
    assert shown[7] == t.o[r, 2]


def test_flash1_joins_its_tile() -> None:
    trace = trace_of(scenario("flash1", nq=8, d=4))
    now = trace.snapshot(3)
    t, row = now.tile, 5
    r = row - now.visit.rows.start
    m = explain(now, Cell("m", row, 0))
    assert "m̃ = max S of this tile" in words_of(m)
    assert "α = exp(" in words_of(m)
    assert "β = exp(" in words_of(m)
    assert [n.value for n in numbers_of(m)][-1] == t.beta[r]
    o = [n.value for n in numbers_of(explain(now, Cell("O", row, 0)))]
    assert o[0] == now.rescale_factor[r]
    assert o[2] == pytest.approx(t.beta[r] / t.l[r])
    p = explain(now, Cell("S", row, 5))
    assert "P̃ = exp(S − m̃)" in words_of(p)


def test_each_launch_of_naive() -> None:
    trace = trace_of(scenario("naive", nq=8, d=4))
    launches = {now.visit.launch: now for now in every_op(trace)}
    first, second, third = (launches[n] for n in range(3))
    assert explain(first, Cell("m", 7, 0)).value.value is None
    l = explain(second, Cell("l", 7, 0))
    assert l.sum is not None
    assert l.sum.count == 8
    assert "P = exp(S − m) / ℓ" in words_of(explain(second, Cell("S", 7, 0)))
    assert "from launch 2" in words_of(explain(third, Cell("l", 7, 0)))
    assert "from launch 2" in words_of(explain(third, Cell("m", 7, 0)))
    assert "written to HBM by launch 2" in words_of(explain(third, Cell("S", 7, 5)))
    assert words_of(explain(third, Cell("O", 7, 0))).startswith("O = O before + Σ p v")


def test_what_is_not_there_is_said() -> None:
    trace = trace_of(scenario("flash2", nq=12, d=4, mask={"causal": True}))
    now = trace.snapshot(2, 1)  # tile (1, 1), before its maximum
    assert now.visit.i == now.visit.j == 1
    for cell, words in (
        (Cell("S", 1, 9), "tile (0, 2) is skipped: never loaded"),
        (Cell("S", 9, 1), "tile (2, 0) is not loaded yet"),
        (Cell("S", 1, 1), "tile (0, 0) was used and dropped"),
        (Cell("m", 9, 0), "not there yet"),
        (Cell("O", 9, 1), "not there yet"),
    ):
        assert explain(now, cell).value.state == words
    assert "has not been joined in yet" in words_of(explain(now, Cell("m", 5, 0)))
    assert "has not been added yet" in words_of(explain(now, Cell("O", 5, 0)))
    assert explain(now, Cell("O", 1, 0)).value.state == "of row block 0, finished"


@given(scenarios(longest=14))
def test_the_mask_is_named_for_hidden_pairs_alone(chosen: Scenario) -> None:
    w = resolve(chosen)
    pairs = pairs_of(w)
    for i in range(w.seqlen_q):
        for j in range(w.seqlen_k):
            why = masked_because(w, Cell("S", i, j))
            assert bool(why) is not pairs.sees(i, j)
            if why.startswith("causal"):
                assert w.mask.causal
                assert j > i + w.seqlen_k - w.seqlen_q
            elif why:
                assert why.startswith("window")
                assert w.mask.window


def test_a_long_sum_is_handed_out_in_part() -> None:
    trace = trace_of(scenario("naive", nq=2, nk=1200, rows=2, cols=600, d=2))
    now = next(n for n in every_op(trace) if n.op.name == "row sum")
    found = explain(now, Cell("l", 1, 0))
    assert found.sum is not None
    assert len(found.sum.terms) == MOST_TERMS
    assert found.sum.count == 1200
    assert found.sum.total == pytest.approx(float(now.tile.p[1].astype(float).sum()), abs=1e-9)


def test_cells_move_as_the_board_draws_them() -> None:
    w = resolve(scenario(nq=8, nk=6, d=4))
    moves: list[tuple[Cell, tuple[int, int], Cell]] = [
        (Cell("S", 2, 3), (1, 0), Cell("S", 2, 4)),
        (Cell("S", 2, 5), (1, 0), Cell("S", 2, 5)),
        (Cell("K", 2, 3), (1, 0), Cell("K", 3, 3)),
        (Cell("K", 2, 3), (0, -1), Cell("K", 2, 2)),
        (Cell("V", 5, 0), (1, 0), Cell("V", 5, 0)),
        (Cell("m", 2, 0), (1, 0), Cell("m", 2, 0)),
        (Cell("O", 7, 0), (0, 1), Cell("O", 7, 0)),
    ]
    for cell, by, expected in moves:
        assert moved_cell(w, cell, *by) == expected


@given(scenarios(longest=10, dtypes=("float16",), algorithms=("flash2", "naive")), st.data())
def test_at_the_end_o_is_what_lies_in_hbm(chosen: Scenario, data: Any) -> None:
    trace = trace_of(chosen)
    now = trace.snapshot(len(trace) - 1)
    row = data.draw(st.sampled_from(list(now.visit.rows)))
    found = cell_value(now, Cell("O", row, 0))
    assert found.value == float(trace.output[now.visit.head, row, 0])


def test_a_number_that_a_fault_made_nan_is_a_number() -> None:
    chosen = scenario("flash2", nq=8, d=4, temperature=1e-4)
    trace = simulate(with_values(chosen, {"faults": {"no_maximum": True}}))
    now = trace.snapshot(len(trace) - 1)
    values = now.o.reshape(-1)
    row, col = divmod(int(np.flatnonzero(np.isnan(values))[0]), now.o.shape[1])
    found = cell_value(now, Cell("O", now.visit.rows.start + row, col))
    assert found.value is not None
    assert np.isnan(found.value)
    first = trace.snapshot(0, 0)
    assert cell_value(first, Cell("O", 0, 0)).value is None
