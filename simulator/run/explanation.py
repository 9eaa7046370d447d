"""What an explanation of a number is made of: words, numbers that know their cell, and sums."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from simulator.base.dtypes import F32
from simulator.run.cell_values import CellValue, cell_name
from simulator.run.snapshot import Cell, Snapshot

MOST_TERMS = 512
"""Terms of a sum that are handed out; the total is over all of them."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number of an explanation.

    Attributes
    ----------
    value : float
        What it is.
    cell : Cell
        The cell that it is, or of whose row it is a statistic.
    name : str
        What it is called: ``q[12, 3]``, ``m before this tile, row 12``.
    full : bool
        Whether its last place matters, because another stands beside it.
    """

    value: float
    cell: Cell
    name: str
    full: bool = False


Part = str | Number


@dataclass(frozen=True, slots=True)
class Term:
    """One term of a sum.

    Attributes
    ----------
    index : int
        What is summed over: a depth or a key.
    factors : tuple of Number
        One or two.
    product : float
        Their exact product.
    """

    index: int
    factors: tuple[Number, ...]
    product: float


@dataclass(frozen=True, slots=True)
class TermSum:
    """A sum, term by term.

    Attributes
    ----------
    name : str
        What it is: ``q12 · k5``.
    over : str
        What its index is: ``n`` for a depth, ``key``.
    terms : tuple of Term
        The first of them, at most `MOST_TERMS`.
    count : int
        How many there are.
    total : float
        All of them, added in float64.
    """

    name: str
    over: str
    terms: tuple[Term, ...]
    count: int
    total: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """The origin of the number in a cell.

    Attributes
    ----------
    value : CellValue
        The cell, its value now and what has become of it.
    lines : tuple of tuple
        Sentences and equations, of words and numbers.
    sum : TermSum or None
        The sum that the lines speak of.
    """

    value: CellValue
    lines: tuple[tuple[Part, ...], ...]
    sum: TermSum | None = None


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
    """Return the engine's own number, and why it may not be the exact one."""
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
