"""What a cell holds: of large problems as of small ones, and its name and tile."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from simulator.cell_values import CellValue, cell_name, cell_shape, cell_value, tile_of
from simulator.scenario import Scenario
from simulator.snapshot import Cell
from simulator.workload import resolve
from tests.simulator.helpers import scenario, scenarios, trace_of


@settings(max_examples=20)
@given(scenarios(longest=8))
def test_of_a_large_problem_the_current_row_block_is_as_of_a_small_one(chosen: Scenario) -> None:
    trace = trace_of(chosen)
    for visit in range(len(trace)):
        for op in range(len(trace.program.ops(visit))):
            small = trace.snapshot(visit, op)
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
        assert here.value is not None
        assert not np.isnan(here.value)


@pytest.mark.parametrize(
    ("cell", "tile"),
    [
        (Cell("S", 7, 9), (1, 3)),
        (Cell("Q", 7, 1), (1, None)),
        (Cell("m", 3, 0), (0, None)),
        (Cell("O", 11, 1), (2, None)),
        (Cell("K", 9, 1), (None, 3)),
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


@pytest.mark.parametrize("algorithm", ["naive", "flash1", "flash2"])
def test_an_input_is_in_shared_memory_while_its_block_is_on_chip(algorithm: str) -> None:
    trace = trace_of(scenario(algorithm, nq=8, nk=12, d=3, dv=2))
    told = set()
    for visit in range(len(trace)):
        for op in range(len(trace.program.ops(visit))):
            now = trace.snapshot(visit, op)
            held = {tile.name for tile in now.on_chip}
            for tensor, own, values in (
                ("Q", now.visit.rows, now.q), ("K", now.visit.cols, now.k),
                ("V", now.visit.cols, now.v),
            ):  # fmt: skip
                for row in {0, own.start, own.stop - 1, min(own.stop, len(values) - 1)}:
                    found = cell_value(now, Cell(tensor, row, 1))
                    there = tensor in held and row in own
                    assert found.state == ("in shared memory" if there else "in HBM")
                    assert found.value == float(values[row, 1])
                    told.add((tensor, there))
    assert len(told) == 6
