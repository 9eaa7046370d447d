"""What is done to a sum of O: ℓ divides it, a gate multiplies it, storing it rounds it."""

from __future__ import annotations

from simulator.base.dtypes import F32
from simulator.program.algorithms import algorithm_of
from simulator.program.gate_ops import ApplyGate
from simulator.program.tensors import GATE
from simulator.run.cell_values import cell_name
from simulator.run.explanation import Number, Part
from simulator.run.snapshot import Cell, Snapshot


def before_gate(snapshot: Snapshot) -> F32:
    """Return O of the current row block, (r, dv), as it is or was before its gate."""
    states = zip(snapshot.past, snapshot.tile.states, strict=False)
    return next((state["O"] for op, state in states if isinstance(op, ApplyGate)), snapshot.o)


def lines_after_sum(snapshot: Snapshot, now: Number, total: Number) -> tuple[tuple[Part, ...], ...]:
    """Return a line for each thing that has been done to a sum of O, the last thing first."""
    cell, w, out = now.cell, snapshot.program.workload, list[tuple[Part, ...]]()
    r = cell.row - snapshot.visit.rows.start
    before = float(before_gate(snapshot)[r, cell.col])
    own_type = not algorithm_of(w).normalises_each_tile and w.dtype != "float32"
    if snapshot.stored("O") and own_type:
        out.append((f"stored as {w.dtype}: ", now))
    if snapshot.gated:
        own = Cell(GATE.name, cell.row, cell.col)
        out.append((
            "times its gate: ", Number(before, cell, f"{cell_name(cell)} before its gate"), " × ",
            Number(float(snapshot.state[GATE.name][r, cell.col]), own, cell_name(own)), " = ",
            Number(float(snapshot.state["O"][r, cell.col]), cell, cell_name(cell)),
        ))  # fmt: skip
    if snapshot.normalised and not snapshot.stores_scores:
        l = Number(float(snapshot.tile.l[r]), Cell("l", cell.row, 0), f"ℓ, row {cell.row}")
        ready = Number(before, cell, f"{cell_name(cell)}, normalised")
        out.append(("normalised: O / ℓ = ", total, " / ", l, " = ", ready))
    return tuple(out)
