"""What is said of the cell under the mouse, of every algorithm at every op."""

from __future__ import annotations

from itertools import product

import pytest
from PySide6.QtCore import QPointF, QRectF

from simulator.program.algorithms import ALGORITHMS
from simulator.run.cell_values import cell_value
from simulator.run.snapshot import Cell, Snapshot
from tests.helpers.runs import fitted, needed_mask, scenario, trace_of
from ui.board.board import board_layout
from ui.board.layout import locate
from ui.board.partials import partial_at
from ui.board.words import describe
from ui.look.theme import DARK, Style
from ui.look.units import number_text

pytestmark = pytest.mark.usefixtures("qapp")
ROOM = QRectF(0, 0, 800, 600)
STEP = 19
"""Pixels between two places of the mouse: less than a cell is wide here."""


def under_the_mouse(now: Snapshot) -> set[Cell]:
    """Return the cells that a mouse finds on its way over the board."""
    style = Style(DARK)
    lay = board_layout(now.program.workload, style, ROOM)
    places = product(range(0, int(ROOM.width()), STEP), range(0, int(ROOM.height()), STEP))
    points = [QPointF(x, y) for x, y in places]
    found = {locate(lay, point) or partial_at(now, lay, point) for point in points}
    return found - {None}


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_cell_is_described_with_the_number_that_it_has(algorithm: str) -> None:
    sizes = {"nq": 7, "nk": 7, "d": 3, "heads": 2, "rows": 3, "cols": 2}
    mask = needed_mask(algorithm) or {"causal": True}
    trace = trace_of(scenario(algorithm, **fitted(algorithm, **sizes, mask=mask)))
    cells = under_the_mouse(trace.snapshot(0))
    told = set()
    for visit in range(0, len(trace), 1 + len(trace) // 24):
        for op in range(len(trace.program.ops(visit))):
            now = trace.snapshot(visit, op)
            for cell in cells | ({*under_the_mouse(now)} if op == 0 else set()):
                text = describe(now, cell)
                value = cell_value(now, cell).value
                if value is not None and number_text(value) in text:
                    told.add(cell.tensor)
                assert text
    never = set() if trace.program.algorithm.forms else {"S"}
    assert told >= {cell.tensor for cell in cells if "row" in cell.at and not cell.split} - never
