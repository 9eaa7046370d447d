"""Gradients at a cursor: what has been made so far, cell by cell, and where it came from."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.base.dtypes import round_to
from simulator.engines.reference import reference_rows
from simulator.problem.scenario import Scenario
from simulator.run.cell_values import cell_value
from simulator.run.explanation import Number
from simulator.run.provenance import explain
from simulator.run.snapshot import Cell, Snapshot
from simulator.run.trace import Trace
from tests.helpers.demos import every_op
from tests.helpers.runs import scenario, scenarios, trace_of

NAME = "flash2-backward"
DRAWN = scenarios(algorithms=(NAME,))
ROUNDING = {"float32": 2e-4, "float16": 8e-3, "bfloat16": 6e-2}
"""How far a sum of some tens of terms may be off: dO and O are rounded, too."""


class Plain:
    """A backward pass in float64, matrix by matrix, without tiles and without a scale of dQ, dK."""

    def __init__(self, trace: Trace) -> None:
        self.w, self.inputs = trace.workload, trace.inputs
        self.upstream = self.inputs.upstream.astype(np.float64)

    def weights(self, head: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return D, P, dP and dS of a head."""
        w, kv = self.w, self.w.kv_head_of[head]
        rows, keys = range(w.seqlen_q), range(w.seqlen_k)
        o, lse = reference_rows(w, self.inputs, head, rows)
        scaled = self.inputs.q[head].astype(np.float64) @ self.inputs.k[kv].T * w.scoring.factor
        seen = w.mask.visible(rows, keys)
        scores = np.where(seen, w.changed(head, rows, keys, scaled), -np.inf)
        with np.errstate(invalid="ignore"):
            p = np.where(seen, np.exp(scores - lse[:, None]), 0.0)
        d = (self.upstream[head] * o).sum(axis=1)
        dp = self.upstream[head] @ self.inputs.v[kv].astype(np.float64).T
        ds = p * (dp - d[:, None])
        if w.scoring.softcap:
            ds = ds * (1 - np.tanh(scaled / w.scoring.softcap) ** 2)
        return d, p, dp, ds


def close(ours: np.ndarray, exact: np.ndarray, trace: Trace, name: str) -> None:
    size = ROUNDING[trace.workload.dtype] * (1 + np.nanmax(np.abs(exact), initial=0))
    np.testing.assert_allclose(ours, exact, atol=size, err_msg=name)


@pytest.mark.long
@given(DRAWN, st.randoms(use_true_random=False))
def test_what_has_been_made_is_the_sum_of_the_tiles_before(chosen: Scenario, random: Any) -> None:
    """At any cursor of the tiles: dQ of all rows, and dK and dV of all keys of the head."""
    trace = trace_of(chosen)
    w, program, plain = trace.workload, trace.program, Plain(trace)
    tiles = [n for n in range(len(trace)) if program.visit(n).launch == program.forming]
    if not tiles:
        return
    visit = program.visit(random.choice(tiles))
    now, factor = trace.snapshot(visit.index), w.scoring.factor
    found, kv = now.head.results, w.kv_head_of[visit.head]
    dq = np.zeros((w.seqlen_q, w.head_dim))
    dk = np.full((w.seqlen_k, w.head_dim), np.nan)
    dv = np.full((w.seqlen_k, w.value_dim), np.nan)
    for j in range(w.grid.Tc):  # zeros in HBM or on chip where there is something
        if j <= visit.j or not w.grid.visited_rows.count(j):
            keys = w.grid.col_range(j)
            dk[keys.start : keys.stop] = dv[keys.start : keys.stop] = 0
    matrices = {head: plain.weights(head) for head in range(w.heads)}
    for index in tiles:
        if index > visit.index:
            break
        own = program.visit(index)
        if w.kv_head_of[own.head] != kv:
            continue
        _, p, _, ds = matrices[own.head]
        rows, keys = (slice(r.start, r.stop) for r in (own.rows, own.cols))
        if own.head == visit.head:
            k = trace.inputs.k[kv].astype(np.float64)
            dq[rows] += ds[rows, keys] @ k[keys]
        q = trace.inputs.q[own.head].astype(np.float64)
        dk[keys] += ds[rows, keys].T @ q[rows]
        dv[keys] += p[rows, keys].T @ plain.upstream[own.head][rows]
    for j in range(w.grid.Tc):  # scaled when the column block is done
        keys = w.grid.col_range(j)
        if j < visit.j or (j == visit.j and visit.last):
            dk[keys.start : keys.stop] *= factor
    close(found["dQ"], dq, trace, "dQ")
    close(found["dK"], dk, trace, "dK")
    close(found["dV"], dv, trace, "dV")
    close(found["D"][:, 0], matrices[visit.head][0], trace, "D")
    np.testing.assert_array_equal(found["LSE"][:, 0], trace.lse[visit.head])
    for name, exact in zip(("P", "dP", "dS"), matrices[visit.head][1:], strict=True):
        ours = now.head.pairs[name]
        there = ~np.isnan(ours)
        seen = there & w.mask.visible(range(w.seqlen_q), range(w.seqlen_k))
        close(ours[seen], exact[seen], trace, name)
        assert there.any()


SMALL: dict[str, Any] = {"nq": 6, "nk": 8, "d": 3, "dv": 2, "heads": 2, "kv_heads": 1, "rows": 4}


def test_gradients_only_grow_and_end_as_those_of_the_run() -> None:
    trace = trace_of(scenario(NAME, **SMALL, mask={"causal": True}))
    arrays, filled = trace.arrays(), dict[tuple[int, str], int]()
    for now in every_op(trace):
        for name in ("D", "dQ", "dK", "dV"):
            key = now.visit.head if name in ("D", "dQ") else 0, name
            there = int((~np.isnan(now.head.results[name])).sum())
            assert there >= filled.get(key, 0), (now.cursor, name)
            filled[key] = there
    assert filled == {
        (0, "D"): 6, (1, "D"): 6, (0, "dQ"): 18, (1, "dQ"): 18, (0, "dK"): 24, (0, "dV"): 16,
    }  # fmt: skip
    last = trace.snapshot(len(trace) - 1).head
    for name, want in (("dQ", arrays["dq"][1]), ("dK", arrays["dk"][0]), ("dV", arrays["dv"][0])):
        np.testing.assert_array_equal(last.results[name], want)


@pytest.mark.long
def test_cells_have_the_numbers_of_the_board() -> None:
    """Every cell of what is drawn, at every cursor, also in the place of S the newest number."""
    trace = trace_of(scenario(NAME, **SMALL, mask={"causal": True}))
    for now in every_op(trace):
        for name, values in now.head.results.items():
            if name in ("m", "l", "O"):
                continue
            for row, col in np.ndindex(*values.shape):
                found = cell_value(now, Cell(name, row, col)).value
                want = float(values[row, col])
                assert (found is None) == bool(np.isnan(want)), (now.cursor, name, row, col)
                assert found is None or found == pytest.approx(want, rel=1e-6)
        newest = now.newest_pairs
        if newest is not None:
            name, values = newest
            row, key = now.visit.rows.start, now.visit.cols.start
            found = cell_value(now, Cell("S", row, key))
            assert (found.tensor, found.value) == (name, float(values[0, 0]))


def test_the_newest_number_of_a_pair_goes_from_scores_to_their_gradients() -> None:
    trace = trace_of(scenario(NAME, nq=4, d=3))
    index = trace.program.index(0, 0, 0, 1)
    assert index is not None
    ops = trace.program.ops(index)
    names = [trace.snapshot(index, op).newest_pairs for op in range(len(ops))]
    seen = list(dict.fromkeys(found[0] for found in names if found is not None))
    assert seen == ["S", "P", "dP", "dS"]


@pytest.mark.parametrize("mask", [{}, {"causal": True}])
def test_the_explanation_of_a_sum_is_that_sum(mask: dict[str, Any]) -> None:
    """Terms of the tile, what was there before, and the tiles that have added something."""
    trace = trace_of(scenario(NAME, **SMALL, mask=mask))
    program = trace.program
    index = program.index(1, 1, 0, 1)
    now = trace.snapshot(index)
    q, k = trace.inputs.q[1].astype(np.float64), trace.inputs.k[0].astype(np.float64)
    ds, p = (now.head.pairs[name].astype(np.float64) for name in ("dS", "P"))
    upstream = now.inputs["dO"].astype(np.float64)
    expected = {
        Cell("dK", 2, 1): sum(ds[row, 2] * q[row, 1] for row in (4, 5)),
        Cell("dV", 3, 0): sum(p[row, 3] * upstream[row, 0] for row in (4, 5)),
        Cell("dQ", 5, 2): sum(ds[5, key] * k[key, 2] for key in range(4)),
    }
    for cell, added in expected.items():
        found = explain(now, cell)
        assert found.sum is not None, cell
        assert found.sum.total == pytest.approx(added)
        assert sum(term.product for term in found.sum.terms) == pytest.approx(added)
        assert found.sum.count == (4 if cell.tensor == "dQ" else 2)
    # Two heads share the keys, each with both row blocks; the rows' first column block is this one.
    assert program.block_bounds(index) == (index - 3, index + 1)
    assert "added by 4 of 4 tiles: (0, 0) of head 0" in lines_of(now, Cell("dK", 2, 1))
    assert "added by 1 of 2 tiles: (1, 0)" in lines_of(now, Cell("dQ", 5, 2))


def lines_of(now: Snapshot, cell: Cell) -> str:
    return " ".join(
        part if isinstance(part, str) else f"{part.value}"
        for line in explain(now, cell).lines
        for part in line
    )


@pytest.mark.long
def test_every_cell_is_explained_at_every_op() -> None:
    trace = trace_of(scenario(NAME, **SMALL, mask={"causal": True}, scores={"softcap": 2.0}))
    for now in every_op(trace):
        for name, values in {**now.head.results, "S": now.head.s}.items():
            if name in ("m", "l", "O"):
                continue
            for row, col in np.ndindex(*values.shape):
                found = explain(now, Cell(name, row, col))
                if found.value.value is None or found.value.tensor == "S":
                    continue  # scores are explained as those of a forward pass
                shown = [part for line in found.lines for part in line if isinstance(part, Number)]
                own = found.value.value
                assert any(each.value == own for each in shown), (now.cursor, name, row, col)


def test_weights_are_explained_by_the_lse_of_the_forward_pass() -> None:
    trace = trace_of(scenario(NAME, nq=4, d=3))
    index = trace.program.index(0, 0, 0, 1)
    assert index is not None
    op = next(n for n, op in enumerate(trace.program.ops(index)) if "P" in op.makes)
    now = trace.snapshot(index, op)
    words = lines_of(now, Cell("S", 1, 2))
    assert "P = exp(S − LSE)" in words
    assert f"{float(trace.lse[0, 1])}" in words
    assert "left by the forward pass" in lines_of(now, Cell("LSE", 1, 0))


def test_a_number_of_another_visit_says_where_its_sum_is() -> None:
    trace = trace_of(scenario(NAME, **SMALL))
    first, later = (trace.program.index(1, 1, j, 1) for j in (0, 1))
    assert first is not None
    assert later is not None
    now = trace.snapshot(later)
    for tensor, row, col, where in (
        ("dQ", 0, 0, "row block 0"), ("D", 0, 0, "row block 0"), ("dK", 1, 2, "column block 0"),
        ("dP", 0, 1, "tile (0, 0)"), ("dS", 5, 2, "tile (1, 0)"), ("LSE", 2, 0, None),
    ):  # fmt: skip
        words = lines_of(now, Cell(tensor, row, col))
        assert ("left by the forward pass" in words) == (where is None), tensor
        assert where is None or f"go to {where} to see its sum" in words, tensor


def test_what_is_done_to_a_sum_is_told_before_it() -> None:
    """The last visit of a column block multiplies dK by the scale; dV stays as it is."""
    trace = trace_of(scenario(NAME, **SMALL))
    index = trace.program.index(1, 1, 0, 1)
    assert index is not None
    now = trace.snapshot(index)
    first, second = (explain(now, Cell("dK", 2, 1)).lines[n] for n in range(2))
    before, after = (part.value for part in first if isinstance(part, Number))
    assert after == pytest.approx(before * trace.workload.scoring.factor, rel=1e-6)
    assert before != after
    assert "before + " in str(second[0])
    assert "before + " in str(explain(now, Cell("dV", 2, 1)).lines[0][0])


def test_of_many_tiles_that_have_added_six_are_named() -> None:
    trace = trace_of(scenario(NAME, **{**SMALL, "nk": 9, "cols": 1}))
    index = trace.program.index(0, 0, 6, 1)
    assert index is not None
    words = lines_of(trace.snapshot(index), Cell("dQ", 0, 0))
    named = ", ".join(f"(0, {j})" for j in range(1, 7))
    assert f"added by 7 of 9 tiles: …, {named}" in words


def test_what_lies_in_hbm_is_rounded_as_it_is_stored() -> None:
    trace = trace_of(scenario(NAME, **SMALL, dtype="float16"))
    now = trace.snapshot(len(trace) - 1)
    found = {name: now.head.results[name] for name in ("dQ", "dK", "dV", "D")}
    as_stored = {name: (x == round_to(x, "float16")).all() for name, x in found.items()}
    assert as_stored == {"dQ": True, "dK": True, "dV": True, "D": False}


def test_sums_of_rows_have_started_when_they_have_been_cleared() -> None:
    trace = trace_of(scenario(NAME, **SMALL))
    assert [trace.snapshot(0, op).started for op in range(4)] == [False, False, False, True]
