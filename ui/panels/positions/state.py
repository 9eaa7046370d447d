"""What the positions panel shows of a row, as plain data, made beside the window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import DType
from simulator.problem.positions import Rotary
from simulator.problem.workload import Inputs, Workload
from simulator.study.positions import (
    C128,
    FACTOR,
    PLACES,
    SHIFT,
    TRAINED,
    PlacedScores,
    Stretched,
    energies,
    far_scores,
    pairs_of,
    placed,
    rotary_of,
    shift_errors,
    speeds_of,
    stretched,
)
from ui.look.units import count_text

F64 = NDArray[np.float64]

AROUND = 48
"""Rows before and after the one that is explained whose queries are kept."""
POINTS = 120
"""Points of a curve over distance."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Choices in the panel."""

    # what clocks show: the ``angles`` of places alone, or pairs of the queries ``before`` they are
    # turned or ``turned``
    hands: str = "angles"
    shift: int = SHIFT  # added to all places
    trained: int = TRAINED  # the longest text of a training
    factor: int = FACTOR  # how many times as long texts are to be


@dataclass(frozen=True, eq=False)
class PositionsState:
    """A row of a head, and what positions make of its query.

    Attributes
    ----------
    workload : Workload
        Shapes and tokens, heads one by one.
    head, row : int
        Which row.
    asked : Asked
        What is chosen.
    rotary : Rotary
        The run's, or RoPE's own.
    rows : range
        Rows around it.
    pairs : ndarray
        (rows, pairs) complex128, their queries' pairs before they are turned.
    speeds : ndarray
        (pairs,) radians from place to place.
    kinds : tuple of Placed
        Scores of the row's query at all places, under every kind of positions.
    errors : dict of float
        By how much the shift moves them in each element type, under RoPE.
    ways : tuple of Stretched
        RoPE for longer texts.
    far : tuple of (ndarray, ndarray)
        Distances and scores of each of them.
    """

    workload: Workload
    head: int
    row: int
    asked: Asked
    rotary: Rotary
    rows: range
    pairs: C128
    speeds: F64
    kinds: tuple[PlacedScores, ...]
    errors: dict[DType, float]
    ways: tuple[Stretched, ...]
    far: tuple[tuple[F64, F64], ...]

    @property
    def own(self) -> bool:
        """Whether the run itself is turned by positions."""
        return self.workload.position is not None

    @property
    def place(self) -> int:
        """The position of the row."""
        rows = range(self.row, self.row + 1)
        return int(self.workload.mask.positions(rows)[0]) + self.rotary.offset

    @property
    def row_name(self) -> str:
        """The row in words: ``row 8 “it”``."""
        token = self.workload.query_token(self.row)
        return f"row {count_text(self.row)} “{token}”" if token else f"row {count_text(self.row)}"

    def hand(self, row: int, pair: int) -> complex:
        """Return a hand: its length, 1 for the longest of the row, and its angle from 0."""
        turned = complex(np.exp(1j * (self.place + row - self.row) * self.speeds[pair]))
        if self.asked.hands == "angles":
            return turned
        own = self.pairs[row - self.rows.start]
        longest = float(np.abs(own).max()) or 1.0
        before = complex(own[pair]) / longest
        return before if self.asked.hands == "before" else before * turned

    def turn(self, pair: int) -> float:
        """Return after how many places a pair has turned once."""
        return float(2 * np.pi / self.speeds[pair])


def positions_state(
    w: Workload, inputs: Inputs, head: int, row: int, asked: Asked
) -> PositionsState:
    """Return what is shown of a row; it takes some milliseconds."""
    rotary = rotary_of(w)
    vector = inputs.q[head, row].astype(np.float64)
    rows = range(max(0, row - AROUND), min(w.queries, row + AROUND + 1))
    pairs = pairs_of(inputs.q[head, rows.start : rows.stop], rotary)
    if w.position is not None:  # they were turned when they were read
        pairs = pairs * np.exp(-1j * rotary.angles(w.mask.positions(rows)))
    ways = stretched(rotary, asked.trained, asked.factor)
    squares = energies(vector, rotary) * w.logit_scale
    longest = asked.trained * asked.factor - 1
    return PositionsState(
        w, head, row, asked, rotary, rows, pairs, speeds_of(rotary),
        placed(w, vector, PLACES, asked.shift), shift_errors(w, vector, PLACES, asked.shift),
        ways, tuple(far_scores(way, squares, longest, POINTS) for way in ways),
    )  # fmt: skip
