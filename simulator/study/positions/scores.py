"""How positions enter scores: one vector at all places, a shift of them all, and long distances.

References
----------
Vaswani et al. 2017, section 3.5 (sinusoids). Su et al. 2021, "RoFormer", section 3.2 (RoPE). Press
et al. 2022 (ALiBi). Chen et al. 2023, "Extending Context Window of Large Language Models via
Positional Interpolation". bloc97 2023, "NTK-Aware Scaled RoPE". Peng et al. 2023, "YaRN: Efficient
Context Window Extension of Large Language Models", sections 3.2 and 3.4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import DType, round_to
from simulator.base.matmul import matmul
from simulator.problem.positions import Rotary
from simulator.problem.scores import alibi_slopes
from simulator.problem.sentence import sentence_model
from simulator.problem.workload import Inputs, Workload
from simulator.study.positions.choices import CLOCKS

F64 = NDArray[np.float64]
C128 = NDArray[np.complex128]

PLACES = 48
"""Places at which one vector is shown."""
AROUND = 48
"""Rows before and after the explained row whose queries are kept."""
POINTS = 120
"""Points of a curve over distance."""
SLOWEST, FASTEST = 1.0, 32.0
"""Turns in the trained length: YaRN stretches pairs whole below the first, not above the second."""


def rotary_of(w: Workload) -> Rotary:
    """Return the rotation of the run's rows, or else the rotation of RoPE as published."""
    base = sentence_model(w.scenario).shape.base if w.typed else 10000.0
    return w.position or Rotary(base, max(2, w.head_dim // 2 * 2))


def speeds_of(rotary: Rotary) -> F64:
    """Return by how much each pair turns from place to place, (pairs,), in radians."""
    n = np.arange(rotary.width // 2)
    speeds: F64 = rotary.theta ** (-2.0 * n / rotary.width)
    return speeds


def energies(vector: F64, rotary: Rotary) -> F64:
    """Return the squared length of each pair of a vector, (pairs,)."""
    squares: F64 = np.abs(pairs_of(vector[None], rotary)[0]) ** 2
    return squares


def pairs_of(vectors: NDArray[np.floating[Any]], rotary: Rotary) -> C128:
    """Return the pairs of vectors (rows, d) as complex numbers, (rows, pairs)."""
    half = rotary.width // 2
    own = slice(0, rotary.width, 2) if rotary.interleaved else slice(0, half)
    other = slice(1, rotary.width, 2) if rotary.interleaved else slice(half, rotary.width)
    wide = _wide(vectors, rotary).astype(np.float64)
    pairs: C128 = wide[:, own] + 1j * wide[:, other]
    return pairs


def _wide(vectors: NDArray[Any], rotary: Rotary) -> NDArray[Any]:
    """Return vectors of at least one pair: a number alone turns with a 0 beside it."""
    missing = max(0, rotary.width - vectors.shape[-1])
    return np.pad(vectors, [(0, 0)] * (vectors.ndim - 1) + [(0, missing)])


# --- one vector at all places ---------------------------------------------------------------


def rope_scores(vector: F64, rotary: Rotary, first: int, count: int, dtype: DType) -> F64:
    """Return the scores of one vector with itself, turned at places from `first` on and rounded."""
    rows = np.repeat(_wide(vector, rotary)[None, None].astype(np.float32), count, axis=1)
    turned = rotary.turned(rows, first, dtype)[0].astype(np.float64)
    return matmul(turned, turned.T)


def sinusoids(places: NDArray[np.int64], width: int) -> F64:
    """Return the vectors that the first transformer adds to its tokens, (places, width)."""
    n = np.arange((width + 1) // 2)
    angles = places[:, None] * 10000.0 ** (-2.0 * n / width)
    waves = np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(len(places), -1)
    out: F64 = waves[:, :width]
    return out


def sinusoid_scores(vector: F64, first: int, count: int) -> F64:
    """Return the scores of one vector to which sinusoids are added."""
    rows = vector + sinusoids(np.arange(first, first + count), len(vector))
    return matmul(rows, rows.T)


def learned_scores(vector: F64, first: int, count: int) -> F64:
    """Return the scores of one vector to which a table's rows are added.

    The table is drawn, as it is before training: of standard normal numbers times √(1/2), as long
    as sinusoids. It has a row for each place, whatever the place is.
    """
    table = [
        # A seed is no number below 0, a place may be.
        np.random.default_rng(place if place >= 0 else [-place, 1]).standard_normal(len(vector))
        for place in range(first, first + count)
    ]
    rows = vector + np.array(table) * math.sqrt(0.5)
    return matmul(rows, rows.T)


def alibi_scores(vector: F64, scale: float, first: int, count: int) -> F64:
    """Return the scores of one vector, before their scale, less the bias of the steepest slope."""
    places = np.arange(first, first + count)
    away = np.abs(places[:, None] - places[None, :])
    scores: F64 = float(np.sum(vector**2)) - alibi_slopes(8)[0] / scale * away
    return scores


def _moved(here: F64, there: F64) -> float:
    """Return the largest difference of scores, over the largest score; 0 if all scores are 0."""
    largest = float(np.abs(here).max())
    return float(np.abs(there - here).max()) / largest if largest else 0.0


def off_toeplitz(scores: F64) -> float:
    """Return the largest difference of scores of one distance, over the range of all scores."""
    count = len(scores)
    spreads = [float(np.ptp(np.diagonal(scores, n))) for n in range(1 - count, count)]
    span = float(np.ptp(scores))
    return max(spreads) / span if span else 0.0


@dataclass(frozen=True, eq=False)
class PlacedScores:
    """Scores of one vector at all places under one kind of positions; arrays are read-only."""

    # name, title: in figures; in words
    name: str
    title: str
    scores: F64  # (places, places) float64, scaled
    off: float  # how far they are from depending on the distance alone: `off_toeplitz`
    moved: float  # by how much a shift of all places moves a score at most, over the largest score


def placed(w: Workload, vector: F64, count: int, shift: int) -> tuple[PlacedScores, ...]:
    """Return the scores of one vector under every kind of positions, and the effect of a shift.

    vector: (d,) float64, used as query and as key.
    """
    rotary, scale = rotary_of(w), w.logit_scale
    first = rotary.offset
    plain = Rotary(rotary.theta, rotary.width, rotary.interleaved)
    kinds: tuple[tuple[str, str, Callable[[int], F64]], ...] = (
        ("rope", "RoPE", lambda at: rope_scores(vector, plain, at, count, w.dtype)),
        ("sinusoids", "sinusoids", lambda at: sinusoid_scores(vector, at, count)),
        ("learned", "learned", lambda at: learned_scores(vector, at, count)),
        ("alibi", "ALiBi", lambda at: alibi_scores(vector, scale, at, count)),
    )
    out = []
    for name, title, scores in kinds:
        here, there = scores(first) * scale, scores(first + shift) * scale
        moved = _moved(here, there)
        here.flags.writeable = False
        out.append(PlacedScores(name, title, here, off_toeplitz(here), moved))
    return tuple(out)


def shift_errors(w: Workload, vector: F64, count: int, shift: int) -> dict[DType, float]:
    """Return by how much a shift moves scores under RoPE, in each element type.

    Without rounding it would be 0: a score depends on the difference of two angles.
    """
    own = rotary_of(w)
    plain = Rotary(own.theta, own.width, own.interleaved)
    out: dict[DType, float] = {}
    dtypes: tuple[DType, ...] = ("float32", "float16", "bfloat16")
    for dtype in dtypes:
        held = round_to(vector.astype(np.float32), dtype).astype(np.float64)
        here = rope_scores(held, plain, own.offset, count, dtype)
        there = rope_scores(held, plain, own.offset + shift, count, dtype)
        out[dtype] = _moved(here, there)
    return out


# --- longer than it was trained -------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Stretched:
    """One way to use RoPE for longer texts than it was trained on."""

    # name, title: in figures; in words
    name: str
    title: str
    speeds: F64  # (pairs,) float64, radians from place to place
    temper: float = 1.0  # a further factor of scores

    def arcs(self, trained: int, factor: float, before: F64) -> tuple[F64, F64]:
        """Return the largest angles of each pair in training and in the longer text.

        Both in radians, (pairs,), and at most a whole turn.
        """
        turned = 2 * math.pi
        seen: F64 = np.minimum(before * trained, turned)
        reached: F64 = np.minimum(self.speeds * factor * trained, turned)
        return seen, reached

    def new_angles(self, trained: int, factor: float, before: F64) -> int:
        """Return how many pairs reach angles, in the longer text, that training has not seen."""
        seen, reached = self.arcs(trained, factor, before)
        return int((reached > seen * (1 + 1e-9)).sum())


def stretched(rotary: Rotary, trained: int, factor: float) -> tuple[Stretched, ...]:
    """Return RoPE as it is, with positions interpolated, NTK-aware, and YaRN."""
    speeds, width = speeds_of(rotary), rotary.width
    n = np.arange(width // 2)
    base = rotary.theta * factor ** (width / max(width - 2, 1))
    ntk: F64 = base ** (-2.0 * n / width)
    turns = trained * speeds / (2 * math.pi)
    kept = np.clip((turns - SLOWEST) / (FASTEST - SLOWEST), 0.0, 1.0)
    yarn: F64 = (1 - kept) * speeds / factor + kept * speeds
    return (
        Stretched("rope", "RoPE as it is", speeds),
        Stretched("interpolated", "interpolation", speeds / factor),
        Stretched("ntk", "NTK-aware", ntk),
        Stretched("yarn", "YaRN", yarn, (0.1 * math.log(factor) + 1) ** 2),
    )


def far_scores(way: Stretched, squares: F64, longest: int, points: int) -> tuple[F64, F64]:
    """Return the score of a vector with itself over distance: distances and means, (points,) each.

    Each mean is over a stretch of distances, weighted with its two neighbours (a triangle), because
    fast pairs turn many times in a stretch.

    squares: (pairs,) `energies` of the vector, times the scale.
    """
    edges = np.unique(np.linspace(0, longest + 1, points + 1).astype(np.int64))
    starts, counts = edges[:-1], np.diff(edges)
    half = way.speeds / 2
    # The mean of cos(ω (a + t)) over t = 0 .. c - 1 has a closed form (Dirichlet's kernel).
    middles = starts + (counts - 1) / 2
    ratio = np.sin(counts[:, None] * half) / (counts[:, None] * np.sin(half))
    waves = np.cos(middles[:, None] * way.speeds) * ratio**2
    means: F64 = matmul(waves, squares[:, None])[:, 0] * way.temper
    return middles.astype(np.float64), means


# --- what is shown of a row -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PositionsState:
    """A row of a head, and its query under all kinds of positions."""

    workload: Workload  # shapes and tokens, heads one by one
    row: int
    shift: int  # added to all places
    trained: int  # the longest text of a training
    factor: int  # how many times as long texts are to be
    rotary: Rotary  # the run's, or RoPE's own
    rows: range  # rows around it
    pairs: C128  # (rows, pairs), their queries' pairs before they are turned
    speeds: F64  # (pairs,), radians from place to place
    kinds: tuple[PlacedScores, ...]  # its query at all places, under every kind of positions
    errors: dict[DType, float]  # by how much the shift moves scores under RoPE
    ways: tuple[Stretched, ...]  # RoPE for longer texts
    far: tuple[tuple[F64, F64], ...]  # distances and scores of each of them
    view: str = CLOCKS  # what is shown
    # what clocks show: the ``angles`` of places alone, or pairs of the queries ``before`` they are
    # turned or ``turned``
    hands: str = "angles"

    @property
    def place(self) -> int:
        """The position of the row."""
        rows = range(self.row, self.row + 1)
        return int(self.workload.mask.positions(rows)[0]) + self.rotary.offset

    def hand(self, row: int, pair: int) -> complex:
        """Return a hand: its length, 1 for the longest of the row, and its angle from 0."""
        turned = complex(np.exp(1j * (self.place + row - self.row) * self.speeds[pair]))
        if self.hands == "angles":
            return turned
        own = self.pairs[row - self.rows.start]
        before = complex(own[pair]) / (float(np.abs(own).max()) or 1.0)
        return before if self.hands == "before" else before * turned

    def turn(self, pair: int) -> float:
        """Return after how many places a pair has turned once."""
        return float(2 * np.pi / self.speeds[pair])


def positions_state(
    w: Workload, inputs: Inputs, head: int, row: int, shift: int, trained: int, factor: int
) -> PositionsState:
    """Return the state for a row; this takes some milliseconds."""
    rotary = rotary_of(w)
    vector = inputs.q[head, row].astype(np.float64)
    rows = range(max(0, row - AROUND), min(w.queries, row + AROUND + 1))
    pairs = pairs_of(inputs.q[head, rows.start : rows.stop], rotary)
    if w.position is not None or w.typed:  # they were turned when they were read
        pairs = pairs * np.exp(-1j * rotary.angles(w.mask.positions(rows)))
    ways, squares = stretched(rotary, trained, factor), energies(vector, rotary) * w.logit_scale
    return PositionsState(
        w, row, shift, trained, factor, rotary, rows, pairs, speeds_of(rotary),
        placed(w, vector, PLACES, shift), shift_errors(w, vector, PLACES, shift), ways,
        tuple(far_scores(way, squares, trained * factor - 1, POINTS) for way in ways),
    )  # fmt: skip
