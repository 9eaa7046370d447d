"""What a cell holds: of large problems as of small ones, and its name and tile."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from simulator import simulate
from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import Scenario, load_scenario, with_values
from simulator.problem.workload import resolve
from simulator.program.algorithms import ALGORITHMS, TENSORS, USUAL, beside
from simulator.run.cell_values import (
    CellValue,
    cell_name,
    cell_shape,
    cell_value,
    exists,
    is_wrong,
    stored_output,
    tile_of,
    was_visited,
)
from simulator.run.snapshot import Cell
from simulator.run.trace import Trace
from tests.helpers.demos import every_op
from tests.helpers.runs import fitted, pairs_of, scenario, scenarios, trace_of


@settings(max_examples=settings.default.max_examples // 3)
@given(scenarios(longest=8))
def test_of_a_large_problem_the_current_row_block_is_as_of_a_small_one(chosen: Scenario) -> None:
    trace = trace_of(chosen)
    for small in every_op(trace):
        large = replace(small, head=None)
        for tensor in "mlO":
            rows, cols = cell_shape(trace.workload, tensor)
            for row in {0, small.visit.rows.start, small.visit.rows.stop - 1, rows - 1}:
                cell = Cell(tensor, row, cols - 1)
                found = cell_value(large, cell)
                if row in small.visit.rows:
                    same = cell_value(small, cell)
                    assert (found.value, found.state) == (same.value, same.state)
                else:
                    assert found.value is None
                    assert found.state == "numbers are kept for the current row block alone"


def test_of_a_large_problem_other_tiles_are_told_to_be_gone_to() -> None:
    for algorithm, words in (("flash2", "was used and dropped"), ("naive", "lies in HBM")):
        trace = trace_of(scenario(algorithm, nq=8))
        now = replace(trace.snapshot(3), head=None)
        found = cell_value(now, Cell("S", 0, 0))
        assert found.value is None
        assert found.state == f"tile (0, 0) {words}: go there to see its numbers"
        assert found.tensor == ("S" if algorithm == "naive" else "P")
        here = cell_value(now, Cell("S", 7, 7))
        assert not np.isnan(here.value)


@pytest.mark.parametrize(
    ("cell", "tile"),
    [
        (Cell("S", 7, 8), (1, 2)),
        (Cell("Q", 7, 1), (1, None)),
        (Cell("m", 3, 0), (0, None)),
        (Cell("O", 11, 1), (2, None)),
        (Cell("K", 8, 1), (None, 2)),
        (Cell("V", 2, 1), (None, 0)),
    ],
)
def test_the_tile_that_a_cell_is_of(cell: Cell, tile: tuple[int | None, int | None]) -> None:
    w = resolve(scenario(nq=12, nk=10, d=2, rows=4, cols=3))
    assert tile_of(w, cell) == tile


def test_cells_are_named_as_the_papers_write_them() -> None:
    assert cell_name(Cell("S", 12, 5)) == "S[12, 5]"
    assert cell_name(Cell("S", 12, 5), "P") == "P[12, 5]"
    assert cell_name(Cell("m", 12, 0)) == "m[12]"
    assert cell_name(Cell("l", 3, 0)) == "ℓ[3]"
    assert CellValue(Cell("S", 1, 2), "P", 0.5, "").name == "P[1, 2]"


@pytest.mark.sweep(keep=3)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_input_is_in_shared_memory_while_its_block_is_on_chip(algorithm: str) -> None:
    trace = trace_of(scenario(algorithm, **fitted(algorithm, nq=8, nk=12, d=3, dv=2)))
    told = set()
    for now in every_op(trace):
        held = {tile.name for tile in now.on_chip}
        specs, columns = trace.program.algorithm.inputs, now.visit.cols
        for tensor, own, values in zip(
            (spec.name for spec in specs),
            (now.visit.rows, columns, columns),
            (now.q, now.k, now.v),
            strict=False,
        ):
            for row in {0, own.start, own.stop - 1, min(own.stop, len(values) - 1)}:
                found = cell_value(now, Cell(tensor, row, 1))
                there = tensor in held and row in own
                assert found.state == ("in shared memory" if there else "in HBM")
                assert found.value == float(values[row, 1])
                told.add((tensor, there))
    assert len(told) == 2 * len(specs)


SHAPE: dict[str, Any] = {"nq": 8, "nk": 7, "d": 3, "rows": 3, "cols": 2, "mask": {"causal": True}}
"""Skipped, partial and full tiles; the first row sees nothing."""


def scores_of(trace: Trace) -> np.ndarray:
    """Return S of the only head in float64, -inf where the mask hides a pair."""
    q, k, w = trace.inputs.q[0].astype(float), trace.inputs.k[0].astype(float), trace.workload
    return np.where(pairs_of(w).matrix(), q @ k.T * w.scale, -np.inf)


def p_of_its_tile(trace: Trace) -> np.ndarray:
    """Return P as its tile makes it: relative to the maximum of what has been seen till then."""
    s, w = scores_of(trace), trace.workload
    out = np.zeros(s.shape)
    for i, j in np.ndindex(s.shape):
        first = j // w.cols * w.cols
        start = first if w.algorithm == "flash1" else 0
        seen = s[i] if w.algorithm == "naive" else s[i, start : first + w.cols]
        if np.isfinite(s[i, j]):
            out[i, j] = np.exp(s[i, j] - seen.max())
            if w.algorithm == "naive":
                out[i, j] /= np.exp(s[i] - seen.max()).sum()
    return out


@pytest.mark.parametrize("algorithm", beside(USUAL.name))
def test_a_score_of_another_tile_is_what_that_tile_left(algorithm: str) -> None:
    trace = trace_of(scenario(algorithm, **SHAPE))
    w, s, p = trace.workload, scores_of(trace), p_of_its_tile(trace)
    skipped = pairs_of(w).kinds(w.rows, w.cols) == 0
    where = "lies in HBM" if algorithm == "naive" else "was used and dropped"
    words = set()
    for now in every_op(trace):
        at = now.visit
        for row, key in ((1, 0), (2, 1), (3, 0), (4, 3), (5, 4), (5, 6), (6, 1), (7, 6)):
            if row in at.rows and key in at.cols:
                continue
            i, j, cell = row // w.rows, key // w.cols, Cell("S", row, key)
            before = (j, i) < (at.j, at.i) if algorithm == "flash1" else (i, j) < (at.i, at.j)
            made, normalised = before, True
            if algorithm == "naive":
                made = before or at.launch > 0
                normalised = at.launch == 2 or (at.launch == 1 and i < at.i)
            tensor, value = ("P", p[row, key]) if normalised else ("S", s[row, key])
            if algorithm != "naive" and skipped[i, j]:
                expected = ("S", None, f"tile ({i}, {j}) is skipped: never loaded")
            elif not made:
                expected = ("S", None, f"tile ({i}, {j}) is not loaded yet")
            else:
                expected = (tensor, pytest.approx(value, abs=1e-6), f"tile ({i}, {j}) {where}")
            found = cell_value(now, cell)
            assert (found.tensor, found.value, found.state) == expected
            words.add(found.state.partition(") ")[2])
            if made and expected[1] is not None:
                large = cell_value(replace(now, head=None), cell)
                told = f"tile ({i}, {j}) {where}: go there to see its numbers"
                assert (large.tensor, large.value, large.state) == (tensor, None, told)
            assert not was_visited(now, at.i, at.j) or at.launch > 0
    assert where in words
    assert "is not loaded yet" in words


@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize("algorithm", beside(USUAL.name))
def test_statistics_and_output_are_there_once_they_are_made(algorithm: str, is_large: bool) -> None:
    """Of a large problem the numbers of the current row block alone are kept."""
    trace = trace_of(scenario(algorithm, **SHAPE))
    w, s = trace.workload, scores_of(trace)
    for now in every_op(trace):
        now = replace(now, head=None) if is_large else now
        at, done = now.visit, now.done
        for row in (0, 2, 3, 5, 6, 7):
            i, here = row // w.rows, row in at.rows
            begun = i < at.i or (here and (not at.first or "initialise" in done))
            there = {"m": begun, "l": begun, "O": begun}
            if algorithm == "flash1":  # all are cleared first
                there = dict.fromkeys("mlO", True)
            if algorithm == "naive":
                there["O"] = begun and at.launch == 2
                for name, op in (("m", "row max"), ("l", "row sum")):
                    made = i < at.i or (here and op in done)
                    there[name] = at.launch == 2 or (at.launch == 1 and made)
            for tensor, exists_now in there.items():
                found = cell_value(now, Cell(tensor, row, 0))
                if not here and is_large:
                    state = "numbers are kept for the current row block alone"
                    assert (found.value, found.state) == (None, state)
                    continue
                if not exists_now:
                    assert (found.value, found.state) == (None, "not there yet")
                    continue
                state = "of the current row block"
                state += ", on chip" if tensor in {tile.name for tile in now.on_chip} else ""
                if not here:
                    finished = algorithm != "flash1" and i < at.i
                    state = f"of row block {i}" + (
                        ", finished" if finished else ", as it lies in HBM"
                    )
                assert found.state == state
                assert found.value is not None
                if not here and finished:
                    top, finite = s[row].max(), np.isfinite(s[row]).any()
                    total = np.exp(s[row] - top).sum() if finite else 0.0
                    if tensor != "O":
                        expected = {"m": top, "l": total}[tensor]
                        assert found.value == pytest.approx(expected, abs=1e-5)


def test_a_workload_has_the_cells_within_its_shapes() -> None:
    w = resolve(scenario(nq=5, nk=7, d=3, dv=2))
    for tensor, (rows, cols) in {
        "Q": (5, 3), "K": (7, 3), "V": (7, 2), "S": (5, 7), "O": (5, 2), "m": (5, 1), "l": (5, 1),
    }.items():  # fmt: skip
        assert cell_shape(w, tensor) == (rows, cols)
        assert exists(w, Cell(tensor, 0, 0))
        assert exists(w, Cell(tensor, rows - 1, cols - 1))
        for row, col in ((-1, 0), (0, -1), (rows, 0), (0, cols)):
            assert not exists(w, Cell(tensor, row, col))
    for tensor in ("LSE", "D", "dO"):  # of the backward pass
        assert not exists(w, Cell(tensor, 0, 0))
        assert exists(resolve(scenario("flash2-backward")), Cell(tensor, 0, 0))


@pytest.mark.parametrize("is_large", [False, True])
def test_a_number_is_wrong_where_a_fault_has_made_it_so(is_large: bool) -> None:
    chosen = scenario("flash2", nq=8, d=2, rows=2, seed=1)
    clean = simulate(chosen)
    wrong = simulate(with_values(chosen, {"faults": {"forget_alpha": True}}))
    now = wrong.snapshot(3)  # the second row block, all its keys seen
    now = replace(now, head=None) if is_large else now
    if is_large:
        rows = slice(now.visit.rows.start, now.visit.rows.stop)
        marks = replace(now.wrong, m=now.wrong.m[rows], l=now.wrong.l[rows], o=now.wrong.o[rows])
        now = replace(now, wrong=marks)
    right = clean.snapshot(3)
    told = set()
    for cell in (Cell(tensor, row, 0) for tensor in "mlO" for row in now.visit.rows):
        ours, exact = (cell_value(each, cell).value for each in (now, right))
        assert is_wrong(now, cell) == (abs(ours - exact) > 1e-3)
        told.add((cell.tensor, is_wrong(now, cell)))
    assert {("m", False), ("l", True), ("O", True)} <= told
    assert is_wrong(right, Cell("m", now.visit.rows.start, 0)) is False
    for row in (now.visit.rows.start - 1, now.visit.rows.stop) if is_large else ():
        assert not is_wrong(now, Cell("O", row, 0))


def test_o_is_rounded_once_it_is_stored_and_too_large_a_number_is_infinite() -> None:
    trace = trace_of(scenario("flash2", nq=4, nk=4, d=2, dtype="float16"))
    names = [op.name for op in trace.program.ops(0)]
    numbers = np.array([[1.0 + 2.0**-12, 1e6]], dtype=np.float32)
    before, after = (trace.snapshot(0, names.index("store") + n) for n in (-1, 0))
    assert stored_output(before, numbers).tolist() == numbers.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert stored_output(after, numbers).tolist() == [[1.0, np.inf]]
    first = trace_of(scenario("flash1", nq=4, nk=4, d=2, dtype="float16")).snapshot(0)
    assert "store" in first.done  # to be read again by the next column block: in float32
    assert stored_output(first, numbers).tolist() == numbers.tolist()


@pytest.mark.sweep(keep=3)
@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_of_each_cell_that_a_run_has_something_is_said(name: str) -> None:
    trace = trace_of(load_scenario(SCENARIOS / f"{name}.toml"))
    for tensor, spec in TENSORS.items():
        cell = Cell(tensor, 0, 0)
        if "split" not in spec.axes and exists(trace.workload, cell):
            found = cell_value(trace.snapshot(0), cell)
            assert found.state or found.value is not None


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_a_number_in_hbm_says_of_which_block_it_is(name: str) -> None:
    trace = trace_of(load_scenario(SCENARIOS / f"{name}.toml"))
    last = trace.snapshot(len(trace) - 1, len(trace.program.ops(len(trace) - 1)) - 1)
    for tensor in last.head.results:
        cell = Cell(tensor, 0, 0)
        i, j = tile_of(trace.workload, cell)
        said = cell_value(last, cell).state
        if "lies in HBM" in said:
            assert (f"row block {i}" in said) == (i is not None)
            assert (f"column block {j}" in said) == (i is None)
