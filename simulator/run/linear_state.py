"""Where the numbers of linear attention came from: the state, and the keys of the chunk."""

from __future__ import annotations

import numpy as np

from simulator.base.matmul import matmul
from simulator.program.state import Values
from simulator.program.state_ops import with_ones
from simulator.run.cell_values import CellValue, cell_name
from simulator.run.explanation import Explanation, Number, Part, beside
from simulator.run.snapshot import Cell, Snapshot


def forms_tile(snapshot: Snapshot) -> bool:
    """Return whether the current visit forms a tile of S: with a state, only in chunks."""
    algorithm, launch = snapshot.program.algorithm, snapshot.launch
    if snapshot.op.before_tiles:
        return False
    formed = launch.forms and not launch.combines if algorithm.softmax else launch.carries
    return algorithm.forms and formed


def added_to_state(snapshot: Snapshot) -> Values | None:
    """Return the matrix that the current keys add, as ``φ(K)ᵀ [V, 1]``; None where not known."""
    phi, cols = snapshot.state.get("phi_K"), snapshot.visit.cols
    if phi is None:
        return None
    if not snapshot.program.algorithm.sums:
        row = snapshot.state.get(snapshot.program.algorithm.rows[-1])
        return None if row is None else matmul(phi.T, row)
    return matmul(phi.T, with_ones(snapshot.v[cols.start : cols.stop]))


def explain_score(snapshot: Snapshot, value: CellValue, hidden: str) -> Explanation:
    """Return where a similarity came from."""
    cell = value.cell
    if value.value is None:
        return Explanation(value, ((f"hidden by the mask: {hidden}",),) if hidden else ())
    f = snapshot.program.workload.sizes["feature"]
    now = Number(value.value, cell, value.name)
    lines: list[tuple[Part, ...]] = [
        (f"φ(q{cell.row}) · φ(k{cell.col}), a sum over {f} features: ", now)
    ]
    if hidden:
        lines.append((f"hidden by the mask, so it counts 0 ({hidden})",))
    return Explanation(value, tuple(lines))


def explain_result(snapshot: Snapshot, value: CellValue) -> Explanation:
    """Return where l or O of a row of the current row block came from."""
    cell = value.cell
    assert value.value is not None
    now = Number(value.value, cell, cell_name(cell))
    r, is_sum = cell.row - snapshot.visit.rows.start, cell.spec.axes == ("row",)
    words = "ℓ = φ(q) z" if is_sum else "O = φ(q) · state"
    read = snapshot.tile.first(cell.tensor)
    first = Number(_of(read, r, cell), cell, f"{cell_name(cell)}, of the keys in the state")
    lines: list[tuple[Part, ...]] = [(f"{words}, of the keys in the state: ", first)]
    if not snapshot.program.algorithm.forms:
        lines += [_read_again(snapshot, cell, first)]
    elif snapshot.made("l_tile") if is_sum else snapshot.made("O") and snapshot.launch.carries:
        total = snapshot.tile.l if is_sum else snapshot.tile.o
        whole = Number(_of(total, r, cell), cell, f"{cell_name(cell)} as a sum")
        p = snapshot.tile.p_used[r].astype(np.float64)
        cols = snapshot.visit.cols
        v = snapshot.v[cols.start : cols.stop, cell.col].astype(np.float64)
        own = float(p.sum() if is_sum else (p * v).sum())
        added = Number(own, cell, "of the keys of the chunk, in float64")
        lines.append((f"+ {'Σ P' if is_sum else 'Σ p v'} of the chunk: ", added, " = ", whole))
        lines.append(beside(snapshot, whole, first.value + own))
    if snapshot.normalised and not is_sum:
        l = Number(float(snapshot.tile.l[r]), Cell("l", cell.row, 0), f"ℓ, row {cell.row}")
        lines.insert(0, ("divided once, at the end: O / ℓ, ℓ = ", l, ": ", now))
    return Explanation(value, tuple(lines))


def _read_again(snapshot: Snapshot, number: Cell, first: Number) -> tuple[Part, ...]:
    """Return the line on the number in float64, from the engine's features and state."""
    phi, state = (snapshot.state[name].astype(np.float64) for name in ("phi_Q", "state"))
    column = number.col if "value" in number.at else -1
    return beside(snapshot, first, float((phi[0] * state[:, column]).sum()))


def _of(values: Values, r: int, cell: Cell) -> float:
    return float(values[r] if values.ndim == 1 else values[r, cell.col])
