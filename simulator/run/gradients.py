"""The gradients of a backward pass as cells: their numbers, and where each came from.

Numbers are those of the current visit: a tile is used and dropped, and the sums of other rows and
keys lie in HBM.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simulator.base.dtypes import F32
from simulator.run.cell_values import cell_name, cell_value
from simulator.run.explanation import Explanation, Number, Part, beside
from simulator.run.snapshot import Cell, Snapshot


def is_gradient(snapshot: Snapshot, cell: Cell) -> bool:
    """Return whether a cell is of what a backward pass makes."""
    algorithm = snapshot.program.algorithm
    made = {spec.name for spec in (*algorithm.tensors, *algorithm.pairs)}
    return algorithm.backward and cell.tensor in made


def explain_gradient(snapshot: Snapshot, cell: Cell) -> Explanation:
    """Return where a number came from: what this visit adds to it, and what was there before."""
    value = cell_value(snapshot, cell)
    if value.value is None:
        return Explanation(value, ())
    now = Number(value.value, cell, cell_name(cell))
    return Explanation(value, _LINES[cell.tensor](snapshot, now))


def _numbers(snapshot: Snapshot, name: str) -> F32:
    return np.asarray(snapshot.tile.first(name), dtype=np.float64)


def _local(snapshot: Snapshot, cell: Cell) -> tuple[int, int]:
    """Return the row of a cell in the current tile, and its column: of pairs that in the tile."""
    visit = snapshot.visit
    own = visit.rows if "row" in cell.at else visit.cols
    return cell.row - own.start, cell.col - (visit.cols.start if cell.spec.of_pairs else 0)


Lines = tuple[tuple[Part, ...], ...]


def _dots(snapshot: Snapshot, now: Number) -> Lines:
    r, _ = _local(snapshot, now.cell)
    exact = float((_numbers(snapshot, "dO")[r] * _numbers(snapshot, "O")[r]).sum())
    return ("D = Σ dO · O over the columns of the row: ", now), beside(snapshot, now, exact)


def _of_weight(snapshot: Snapshot, now: Number) -> Lines:
    r, c = _local(snapshot, now.cell)
    exact = float((_numbers(snapshot, "dO")[r] * _numbers(snapshot, "V")[c]).sum())
    words = f"dP = dO[{now.cell.row}] · v{now.cell.col}, a sum over the columns of V: "
    return (words, now), beside(snapshot, now, exact)


def _of_score(snapshot: Snapshot, now: Number) -> Lines:
    r, c = _local(snapshot, now.cell)
    row, key = now.cell.row, now.cell.col
    p, dp, d = (_numbers(snapshot, name) for name in ("P", "dP", "D"))
    parts = (
        Number(float(p[r, c]), Cell("S", row, key), f"P[{row}, {key}]"),
        Number(float(dp[r, c]), Cell("dP", row, key), f"dP[{row}, {key}]"),
        Number(float(d[r]), Cell("D", row, 0), f"D[{row}]"),
    )
    exact = float(p[r, c] * (dp[r, c] - d[r]))
    line = ("dS = P · (dP − D) = ", parts[0], " · (", parts[1], " − ", parts[2], ") = ", now)
    return line, beside(snapshot, now, exact)


def _summed(weights: str, rows: str, words: str, *, over_rows: bool) -> Callable[..., Lines]:
    """Return what explains a sum: what a tile adds, with its weights and what they weigh."""

    def lines(snapshot: Snapshot, now: Number) -> Lines:
        n, column = _local(snapshot, now.cell)
        of_pairs, x = _numbers(snapshot, weights), _numbers(snapshot, rows)
        own = of_pairs[:, n] if over_rows else of_pairs[n]
        added = float((own * x[:, column]).sum())
        part = Number(added, now.cell, "what this tile adds, in float64")
        whose = snapshot.visit.rows if over_rows else snapshot.visit.cols
        what = "rows" if over_rows else "keys"
        said = f"{words}, of {what} {whose.start} to {whose.stop - 1}: "
        return (said, part), ("with what was added before: ", now)

    return lines


def _scaled(snapshot: Snapshot, now: Number) -> Lines:
    r, column = _local(snapshot, now.cell)
    factor = snapshot.program.workload.scoring.factor
    total = float(_numbers(snapshot, "dQ_acc")[r, column])
    before = Number(total, Cell("dQ_acc", now.cell.row, now.cell.col), "the sum of all tiles")
    line = (f"dQ = scale · Σ dS k = {factor:.6g} × ", before, " = ", now)
    return line, beside(snapshot, now, factor * total)


_LINES: dict[str, Callable[[Snapshot, Number], Lines]] = {
    "D": _dots,
    "dP": _of_weight,
    "dS": _of_score,
    "dV": _summed("P", "dO", "dV: Σ P · dO", over_rows=True),
    "dK": _summed("dS", "Q", "dK: Σ dS · q", over_rows=True),
    "dQ_acc": _summed("dS", "K", "dQ: Σ dS · k", over_rows=False),
    "dQ": _scaled,
}
