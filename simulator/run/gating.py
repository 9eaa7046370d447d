"""O before its gate, and how the gate changes a number of O."""

from __future__ import annotations

from simulator.base.dtypes import F32
from simulator.program.gate_ops import ApplyGate
from simulator.program.tensors import GATE
from simulator.run.cell_values import cell_name
from simulator.run.explanation import Number, Part
from simulator.run.snapshot import Cell, Snapshot


def before_gate(snapshot: Snapshot) -> F32:
    """Return O of the current row block, (r, dv), as it is or was before its gate."""
    for op, state in zip(snapshot.past, snapshot.tile.states, strict=False):
        if isinstance(op, ApplyGate):
            return state["O"]
    return snapshot.o


def gate_lines(snapshot: Snapshot, cell: Cell) -> tuple[tuple[Part, ...], ...]:
    """Return the line on the gate of a number of O; nothing before O is multiplied by the gate."""
    if not snapshot.gated:
        return ()
    r, own = cell.row - snapshot.visit.rows.start, Cell(GATE.name, cell.row, cell.col)
    before, gate, after = before_gate(snapshot), snapshot.state[GATE.name], snapshot.state["O"]
    line = (
        "times its gate: ",
        Number(float(before[r, cell.col]), cell, f"{cell_name(cell)} before its gate"), " × ",
        Number(float(gate[r, cell.col]), own, cell_name(own)), " = ",
        Number(float(after[r, cell.col]), cell, cell_name(cell)),
    )  # fmt: skip
    return (line,)
