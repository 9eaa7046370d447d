"""Numbers of a head as a kernel smoother and of other scores that captions may ask for."""

from __future__ import annotations

from simulator.base.errors import refuse
from simulator.run.trace import Trace
from simulator.study.captions import Numbers, known, named, once_a_run, whole
from simulator.study.jacobian import RowJacobian, row_jacobian
from simulator.study.smoothing.kernel_smoother import (
    Factors,
    HeadPoints,
    factors,
    head_points,
    key_plane,
)
from simulator.study.smoothing.other_scores import ScoreCost, score_kinds
from simulator.study.smoothing.regression import BANDWIDTHS, Regression, regression
from simulator.study.smoothing.repeated import Repeated, repeated


@known
def plane_share(n: Numbers) -> float:
    """Share of the keys' variance that lies in the plane in which they spread most."""
    return key_plane(_points(n)).share


@known
def identity_off(n: Numbers) -> float:
    """Largest relative difference between exp(q·k) and the product of its three factors."""
    return _factors(n).off


@known
def norms_move(n: Numbers, row: int) -> float:
    """Share of a row's weight that the norms of the keys move to other keys."""
    return float(_factors(n).moved[_place(n, row)])


@known
def jacobian_norm(n: Numbers, row: int) -> float:
    """Frobenius norm of the Jacobian of the softmax of a row."""
    return _jacobian(n, row).norm


@known
def jacobian_trace(n: Numbers, row: int) -> float:
    """Trace of the same, 1 − Σ p²."""
    return _jacobian(n, row).trace


def _jacobian(n: Numbers, row: int) -> RowJacobian:
    points, at = _points(n), _place(n, row)
    return row_jacobian(points.weights[at], points.seen[at], 1)


@known
def rows_differ(n: Numbers, times: int, skip: int = 0) -> float:
    """How far rows still differ after attention was done so often; with 1, with skips."""
    found = _again(n)
    values = found.skipped if skip else found.spread
    return float(values[whole("times", times, 0, len(values) - 1)])


@known
def rank_after(n: Numbers, times: int) -> int:
    """Rank of the weights to that power, of singular values above 1 % of the largest."""
    ranks = _again(n).ranks
    return ranks[whole("times", times, 0, len(ranks) - 1)]


def _again(n: Numbers) -> Repeated:
    points = _points(n)
    return repeated(points.weights, points.v)


def _points(n: Numbers) -> HeadPoints:
    return _of_head(n.trace, n.first_head)


@once_a_run
def _of_head(trace: Trace, head: int) -> HeadPoints:
    return head_points(*trace.single_heads, head, 0)


def _factors(n: Numbers) -> Factors:
    return factors(_points(n))


def _place(n: Numbers, row: int) -> int:
    """Return where a row is among the rows that are shown."""
    rows = _points(n).rows
    if row not in rows:
        raise refuse("", "row", row, "a row of the run, of a long one those that are shown")
    return rows.index(row)


@known
def regression_off(_: Numbers, h: float) -> float:
    """Largest difference between attention and the Nadaraya–Watson estimator of a bandwidth."""
    return _regression(h).off


@known
def regression_error(_: Numbers, h: float) -> float:
    """How far it is from the function, root mean square."""
    return _regression(h).error


@known
def best_bandwidth(_: Numbers) -> float:
    """The bandwidth with the least leave-one-out error."""
    return _regression(BANDWIDTHS[0]).best


def _regression(h: float) -> Regression:
    low, high = BANDWIDTHS[0] / 10, BANDWIDTHS[-1] * 10
    if not low <= h <= high:
        raise refuse("", "h", h, f"a number from {low:g} to {high:g}")
    return regression(bandwidth=h)


@known
def score_flops(n: Numbers, name: str) -> int:
    """FLOPs of a pair under `scaled dot`, `dot`, `cosine` or `additive`, a tanh as one."""
    return _cost(n, name).flops


@known
def score_tanh(n: Numbers, name: str) -> int:
    """Values of tanh of a pair under a score."""
    return _cost(n, name).special


def _cost(n: Numbers, name: str) -> ScoreCost:
    w = n.workload
    kinds = score_kinds(w.head_dim, w.head_dim, w.logit_scale)
    return named("score", name, {kind.name: kind.cost for kind in kinds})
