"""Numbers of the experiment of why √d that captions may ask for."""

from __future__ import annotations

from functools import cache

from simulator.run.trace import Trace
from simulator.study.captions import Numbers, known, once_a_run, whole
from simulator.study.sqrt_d.experiment import KEYS, Softness, one_draw, sqrt_d_experiment
from simulator.study.sqrt_d.trained_scores import TrainedScores, shipped_scores, trained_scores

_MOST_D = 4096


@known
def score_variance(_: Numbers, d: int, scaled: int = 0) -> float:
    """Measured variance of q·k of random vectors of d entries; with 1, of q·k/sqrt(d)."""
    return _softness(d, KEYS, bool(scaled)).variance.mean


@known
def score_entropy(_: Numbers, d: int, scaled: int = 0) -> float:
    """Measured entropy, in bits, of the softmax over the experiment's keys."""
    return _softness(d, KEYS, bool(scaled)).entropy.mean


@known
def score_gradient(_: Numbers, d: int, scaled: int = 0) -> float:
    """Measured trace of the softmax's Jacobian."""
    return _softness(d, KEYS, bool(scaled)).gradient.mean


@known
def score_keys(_: Numbers) -> int:
    """Keys of the experiment."""
    return KEYS


@known
def gradient_of(_: Numbers, d: int, keys: int = KEYS, scaled: int = 0) -> float:
    """Mean trace of the softmax's Jacobian over random queries of so many keys."""
    return _softness(d, keys, bool(scaled)).gradient.mean


@known
def gradient_median(_: Numbers, d: int, keys: int = KEYS, scaled: int = 0) -> float:
    """Median of the same: half of the queries have less."""
    return _softness(d, keys, bool(scaled)).gradient.median


@known
def drawn_weight(_: Numbers, d: int, place: int, scaled: int = 0) -> float:
    """Weight of the key at a place, 0 for the strongest, of one random query."""
    draw = one_draw(0, whole("d", d, 1, _MOST_D))
    weights = draw.scaled if scaled else draw.plain
    return float(weights[whole("place", place, 0, len(weights) - 1)])


@known
def trained_variance(n: Numbers, scaled: int = 0) -> float:
    """Variance of the run's scores about the mean of their row; of a shipped layer's if random."""
    found = _trained(n.trace)
    return (found.scaled if scaled else found.plain).variance.mean


@cache
def _softness(d: int, keys: int, scaled: bool) -> Softness:
    whole("d", d, 1, 1024)
    whole("keys", keys, 2, KEYS)
    *_, last = sqrt_d_experiment(dims=(d,), keys=keys)
    return last.points[0].scaled if scaled else last.points[0].plain


@once_a_run
def _trained(trace: Trace) -> TrainedScores:
    w, inputs = trace.single_heads
    found = None if w.file is None else trained_scores(w, inputs)
    return found or shipped_scores()
