"""Where m, l and O of a visit that joins splits come from.

References: Dao, Haziza, Massa, Sizov 2023, "Flash-Decoding for long-context inference", step 3.
"""

from __future__ import annotations

import numpy as np

from simulator.base.dtypes import F32
from simulator.run.after_sum import lines_after_sum
from simulator.run.cell_values import CellValue, cell_name
from simulator.run.explanation import Explanation, Number, Part, Term, TermSum, beside
from simulator.run.snapshot import Cell, Snapshot


def explain_joined(snapshot: Snapshot, value: CellValue) -> Explanation:
    """Return where m, l or O of a row of the visit's row block come from."""
    make = {"m": _maximum, "l": _sum, "O": _output}[value.cell.tensor]
    return make(snapshot, value)


def _of_row(snapshot: Snapshot, values: F32 | None, row: int) -> F32:
    """Return what each split has of a row: a number, or of O a row of dv numbers."""
    assert values is not None
    return values[:, row - snapshot.visit.rows.start]


def _left(snapshot: Snapshot, row: int) -> list[Number]:
    """Return LSE of each split in a row."""
    partials = snapshot.partials
    assert partials is not None
    return [
        Number(float(lse), Cell("LSE_partial", row, 0, split), f"LSE of split {split}, row {row}")
        for split, lse in enumerate(_of_row(snapshot, partials.lse, row))
    ]


def _weights(snapshot: Snapshot, row: int) -> list[Number]:
    """Return by how much each split counts in a row."""
    weights = _of_row(snapshot, snapshot.tile.last("w"), row)
    return [
        Number(float(w), Cell("l", row, 0), f"w of split {split}, row {row}")
        for split, w in enumerate(weights)
    ]


def _maximum(snapshot: Snapshot, value: CellValue) -> Explanation:
    assert value.value is not None
    row = value.cell.row
    now, left = Number(value.value, value.cell, f"m, row {row}"), _left(snapshot, row)
    if now.value == -np.inf:
        return Explanation(value, (("m = ", now, ": no split has seen a key of this row"),))
    which = int(np.argmax([number.value for number in left]))
    words = ("m = max LSE over the splits = ", now, f", left by split {which}")
    return Explanation(value, (words, *_listed("LSE of split", left)))


def _listed(name: str, numbers: list[Number]) -> tuple[tuple[Part, ...], ...]:
    return tuple((f"{name} {split} = ", number) for split, number in enumerate(numbers))


def _sum(snapshot: Snapshot, value: CellValue) -> Explanation:
    assert value.value is not None
    row = value.cell.row
    now, weights = Number(value.value, value.cell, f"ℓ, row {row}"), _weights(snapshot, row)
    top = Number(float(snapshot.m[row - snapshot.visit.rows.start]), Cell("m", row, 0), "m")
    terms = tuple(Term(split, (w,), w.value) for split, w in enumerate(weights))
    sums = TermSum("Σ w", "split", terms, len(terms), sum(w.value for w in weights))
    made = tuple(
        (f"w of split {split} = exp(LSE − m) = exp(", lse, " − ", top, ") = ", w)
        if top.value > -np.inf
        else (f"w of split {split} = ", w, ": it has seen no key of this row")
        for split, (lse, w) in enumerate(zip(_left(snapshot, row), weights, strict=True))
    )
    line: tuple[Part, ...] = (
        "ℓ = Σ w over the splits = ", Number(sums.total, value.cell, "in float64", full=True)
    )  # fmt: skip
    return Explanation(value, (line, beside(snapshot, now, sums.total), *made), sums)


def _output(snapshot: Snapshot, value: CellValue) -> Explanation:
    assert value.value is not None
    assert snapshot.partials is not None
    cell = value.cell
    parts = _of_row(snapshot, snapshot.partials.o, cell.row)[:, cell.col]

    def place(split: int) -> Cell:
        return Cell("O_partial", cell.row, cell.col, split)

    terms = tuple(
        Term(
            split, (w, Number(float(o), place(split), cell_name(place(split)))), w.value * float(o)
        )
        for split, (w, o) in enumerate(zip(_weights(snapshot, cell.row), parts, strict=True))
    )
    sums = TermSum("Σ w O", "split", terms, len(terms), sum(term.product for term in terms))
    o = float(snapshot.tile.o[cell.row - snapshot.visit.rows.start, cell.col])
    total = Number(o, cell, f"{cell_name(cell)} as a sum")
    lines: tuple[tuple[Part, ...], ...] = (
        *lines_after_sum(snapshot, Number(value.value, cell, cell_name(cell)), total),
        ("O = Σ w O over the splits = ", Number(sums.total, cell, "in float64", full=True)),
        beside(snapshot, total, sums.total),
    )
    return Explanation(value, lines, sums)
