"""The state of the Kernel smoother dock for a head, as plain data, made in the background."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from simulator.base.errors import InputError
from simulator.base.softmax import softmax_rows
from simulator.problem.workload import Inputs, Workload
from simulator.program.algorithms import algorithm_of
from simulator.study.features import FeatureErrors, Progress, feature_errors
from simulator.study.smoothing.choices import KEYS
from simulator.study.smoothing.kernel_smoother import (
    Factors,
    HeadPoints,
    KeyPlane,
    MovedQuery,
    factors,
    head_points,
    key_plane,
    moved_query,
    rounding_bound,
)
from simulator.study.smoothing.other_scores import ScoreKind, score_kinds
from simulator.study.smoothing.regression import Regression
from simulator.study.smoothing.repeated import Repeated, repeated
from ui.look.units import count_text, plural

F64 = NDArray[np.float64]

COUNTS = tuple(2**n for n in range(4, 12))
"""Numbers of random features that are tried."""
DRAWS = 8
"""Draws of each number."""
HOT = 4.0
"""A temperature at which queries and keys are short, and estimates good."""
_MOST_KEYS = 1024
"""Keys of a head up to which estimates take no longer than a second or two."""


@dataclass(frozen=True, eq=False)
class Estimates:
    """How far random features are from the softmax of a head."""

    own: FeatureErrors  # with the run's temperature
    hot: FeatureErrors  # `HOT` times as hot


@dataclass(frozen=True, eq=False)
class ScoredRow:
    """One row under one score."""

    kind: ScoreKind  # the score
    weights: F64  # (keys,) float64, softmax of the scores over the visible keys, read-only
    entropy: float  # of the weights, in bits


@dataclass(frozen=True, eq=False)
class SmoothingState:
    """A head, and the row that is explained."""

    workload: Workload  # shapes and tokens, heads one by one
    row: int  # the query row
    points: HeadPoints  # queries and keys
    plane: KeyPlane  # where they lie in two dimensions
    factors: Factors  # norm factor and radial factor
    bound: float  # how far the two sides of the identity may be apart by rounding
    # attention done again and again; None: `why` not, or nobody has asked for it
    again: Repeated | None
    why: str  # why attention cannot be done again
    # the row's reading with its query moved elsewhere; None: the query is not moved
    moved: MovedQuery | None = None
    # random features in place of the softmax; None: `unfit` says why not, or nobody has asked
    estimates: Estimates | None = None
    unfit: str = ""  # why no estimates
    shows: str = KEYS
    regression: Regression | None = None
    moves: bool = True  # whether somebody may click and drag: not in a film

    @property
    def at(self) -> int:
        """The row's place among the rows that were taken."""
        return self.points.rows.index(self.row)

    @property
    def head_name(self) -> str:
        """The head in words."""
        return f"head {self.workload.picked[self.points.head]}"

    def key_label(self, n: int) -> str:
        """Return a short name of the n-th key."""
        key = self.points.keys[n]
        return self.workload.key_token(key) or f"key {count_text(key)}"

    @property
    def part_words(self) -> str:
        """A note on the run; empty if none is needed."""
        other = ""
        if not algorithm_of(self.workload).softmax:
            other = " This run has no softmax: shown is what one would make of its Q and K."
        if self.points.whole:
            return other
        count, whole = count_text(len(self.points.keys)), plural(self.points.of_keys, "key")
        return f" Weights are among {count} of {whole}, evenly spread.{other}"

    def scored(self) -> tuple[ScoredRow, ...]:
        """Return the row under every score."""
        points, w = self.points, self.workload
        root = math.sqrt(w.logit_scale)
        q, k = points.q[self.at : self.at + 1] / root, points.k / root
        seen = points.seen[self.at : self.at + 1]
        out = []
        for kind in score_kinds(w.head_dim, w.head_dim, w.logit_scale):
            p = softmax_rows(np.where(seen, kind.of(q, k), -np.inf))[0]
            some = p[p > 0]
            entropy = float(-(some * np.log2(some)).sum()) + 0.0
            p.flags.writeable = False
            out.append(ScoredRow(kind, p, entropy))
        return tuple(out)


def smoothing_state(w: Workload, inputs: Inputs, head: int, row: int) -> SmoothingState:
    """Return the state of a head, without attention done again; it takes some milliseconds."""
    points = head_points(w, inputs, head, row)
    return SmoothingState(
        w, row, points, key_plane(points), factors(points), rounding_bound(points), None, "",
    )  # fmt: skip


def with_again(state: SmoothingState) -> SmoothingState:
    """Return the state with attention done again and again; 512 keys take a second or two."""
    try:
        return replace(state, again=repeated(state.points.weights, state.points.v))
    except InputError as error:
        return replace(state, why=str(error))


def with_estimates(state: SmoothingState, inputs: Inputs, progress: Progress) -> SmoothingState:
    """Return the state with random features tried in place of the softmax."""
    w, head = state.workload, state.points.head
    if max(w.seqlen_q, w.seqlen_k) > _MOST_KEYS:
        return replace(
            state, unfit=f"it takes too long for more than {count_text(_MOST_KEYS)} keys"
        )
    if w.variant - {"rounding"}:
        return replace(state, unfit="random features estimate the softmax of q·k alone")
    seeds = range(DRAWS)
    own = feature_errors(w, inputs, head, COUNTS, seeds, lambda share: progress(share / 2))
    hotter = replace(w, temperature=HOT * w.temperature)
    hot = feature_errors(
        hotter, inputs, head, COUNTS, seeds, lambda share: progress(0.5 + share / 2)
    )
    return replace(state, estimates=Estimates(own, hot))


def at_row(state: SmoothingState, row: int) -> SmoothingState | None:
    """Return the state with another row of the head; None if that row was not taken."""
    return replace(state, row=row, moved=None) if row in state.points.rows else None


def with_query_at(state: SmoothingState, place: tuple[float, float]) -> SmoothingState:
    """Return the state with the row's query elsewhere in the plane."""
    return replace(state, moved=moved_query(state.points, state.plane, state.at, place))
