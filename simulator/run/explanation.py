"""The parts of an explanation of a number: words, numbers that know their cell, and sums."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from simulator.base.dtypes import F32
from simulator.run.cell_values import CellValue, cell_name
from simulator.run.snapshot import Cell, Snapshot

MOST_TERMS = 512  # terms of a sum that are handed out; the total is over all of them


@dataclass(frozen=True, slots=True)
class Number:
    """A number of an explanation."""

    value: float
    cell: Cell  # its cell, or a cell in the row whose statistic it is
    name: str  # its name in words: ``q[12, 3]``, ``m before this tile, row 12``
    full: bool = False  # whether its last place matters, because another stands beside it


Part = str | Number


@dataclass(frozen=True, slots=True)
class Term:
    """One term of a sum."""

    index: int  # its place in the sum: a depth or a key
    factors: tuple[Number, ...]  # one or two
    product: float  # their exact product


@dataclass(frozen=True, slots=True)
class TermSum:
    """A sum, term by term."""

    name: str  # the sum as a formula: ``q12 · k5``
    over: str  # the name of its index: ``n`` for a depth, ``key``
    terms: tuple[Term, ...]  # the first of them, at most `MOST_TERMS`
    count: int  # how many there are
    total: float  # all of them, added in float64


@dataclass(frozen=True, slots=True)
class Explanation:
    """The origin of the number in a cell."""

    value: CellValue  # the cell, its value now and its state in words
    lines: tuple[tuple[Part, ...], ...]  # sentences and equations, of words and numbers
    sum: TermSum | None = None  # the sum that the lines speak of


def products(
    name: str, over: str, a: F32, b: F32, first: list[Cell], second: list[Cell], indices: range
) -> TermSum:
    """Return a sum of products, term by term."""
    with np.errstate(all="ignore"):  # a fault may have made some infinite
        exact = a.astype(np.float64) * b.astype(np.float64)
        total = float(exact.sum())
    terms = tuple(
        Term(
            indices[n],
            (
                Number(float(a[n]), first[n], cell_name(first[n], _written(first[n]))),
                Number(float(b[n]), second[n], cell_name(second[n], _written(second[n]))),
            ),
            float(exact[n]),
        )
        for n in range(min(len(exact), MOST_TERMS))
    )
    return TermSum(name, over, terms, len(exact), total)


def _written(cell: Cell) -> str:
    return {"S": "P", "Q": "q", "K": "k"}.get(cell.tensor, cell.tensor)


def beside(snapshot: Snapshot, engine: Number, exact: float) -> tuple[Part, ...]:
    """Return the line on the engine's own number, and why it may differ from the exact one."""
    words: tuple[Part, ...] = (f"the engine ({snapshot.engine}) has ", replace(engine, full=True))
    with np.errstate(all="ignore"):  # a fault may have made either infinite
        ours, theirs = float(np.float32(exact)), engine.value
        unit = float(np.spacing(np.float32(max(abs(ours), abs(theirs), 1e-38))))
        off = abs(ours - theirs) / unit
    if ours == theirs:
        return (*words, ", the same in float32")
    if not off < 1e6:
        return (*words, ": a fault is on" if snapshot.program.workload.faults.on else "")
    return (*words, f": its own float32 sum, {_units(off)} in the last place away")


def _units(count: float) -> str:
    return "1 unit" if round(count) == 1 else f"{count:.0f} units"
