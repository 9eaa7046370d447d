"""Numbers of the studies that a lesson's text may ask for; they join `FUNCTIONS`."""

from __future__ import annotations

import math
from functools import cache, lru_cache

import numpy as np

from simulator.base.errors import refuse
from simulator.engines.numpy_engine import numpy_engine
from simulator.lesson.numbers import Numbers, known
from simulator.problem.masks import Mask
from simulator.problem.scenario import Scenario, with_values
from simulator.problem.workload import read_inputs, resolve
from simulator.program.algorithms import BASELINE
from simulator.run.rescales import WARP, rescaled
from simulator.study.jacobian import RowJacobian, row_jacobian
from simulator.study.order.reach import MOST_TOKENS, cone, stack
from simulator.study.order.reach import global_layers as spread_layers
from simulator.study.order.shuffle import PLACES as DEPENDS
from simulator.study.order.shuffle import order_of, shuffled
from simulator.study.positions.choices import FACTOR, SHIFT, TRAINED
from simulator.study.positions.scores import (
    PLACES,
    PlacedScores,
    Stretched,
    placed,
    rotary_of,
    speeds_of,
    stretched,
)
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
from simulator.study.sparse.patterns import Priced, patterns, priced, usual_knobs
from simulator.study.sqrt_d.experiment import KEYS, Softness, one_draw, sqrt_d_experiment
from simulator.study.sqrt_d.trained_scores import TrainedScores, shipped_scores, trained_scores
from simulator.study.variants import VariantCost, variant_table

_MOST_D = 4096


# --- rescales ----------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def _rescales(scenario: Scenario, threshold: float) -> tuple[int, int, int]:
    """Return the rows and the warps that rescale in all tiles, and how often a row could."""
    said = with_values(scenario, {"attention": {"rescale_threshold": threshold}})
    w = resolve(with_values(said, {"faults": dict.fromkeys(said.faults.on)}))
    engine, rows, warps, could = numpy_engine(w, w.posed(read_inputs(w))), 0, 0, 0
    for head in range(w.heads):
        for i, block in enumerate(engine.row_blocks(head)):
            moved = rescaled(w, head, i, block)
            rows += len(moved[0])
            warps += len({(row // WARP, j) for row, j in zip(*moved, strict=True)})
            could += len(block.o) * max(w.grid.visited_columns.count(i) - 1, 0)
    return rows, warps, could


@known
def rescales(n: Numbers, threshold: float) -> int:
    """How often m of a row moves in the run with a threshold, in log2; 0: whenever it grows."""
    return _rescales(n.workload.scenario, threshold)[0]


@known
def warp_rescales(n: Numbers, threshold: float) -> int:
    """How often one of the 32 rows of a warp has a maximum that moves."""
    return _rescales(n.workload.scenario, threshold)[1]


@known
def row_tiles(n: Numbers) -> int:
    """Pairs of a row and a tile after its first: as often it could rescale."""
    return _rescales(n.workload.scenario, 0.0)[2]


@known
def largest_weight(n: Numbers) -> float:
    """Largest P of the current tile."""
    tile, visit = n.snapshot.tile, n.snapshot.visit
    if tile.recorded("P") is None and tile.last("P") is None:
        raise refuse("", "visit", visit.index, "a visit that makes weights P")
    return float(tile.p.max())


@known
def sink(n: Numbers, head: int = 0) -> float:
    """Sink logit of a head."""
    logits = n.workload.sink_logits
    if not 0 <= head < len(logits):
        raise refuse("", "head", head, f"a head from 0 to {len(logits) - 1} of a run with sinks")
    return logits[head]


# --- why √d -------------------------------------------------------------------------------------


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
    draw = one_draw(0, _least(d, "d", 1, _MOST_D))
    weights = draw.scaled if scaled else draw.plain
    return float(weights[_least(place, "place", 0, len(weights) - 1)])


@known
def trained_variance(n: Numbers, scaled: int = 0) -> float:
    """Variance of the run's scores about the mean of their row; of a shipped layer's if random."""
    found = _trained(n.scenario)
    return (found.scaled if scaled else found.plain).variance.mean


@cache
def _softness(d: int, keys: int, scaled: bool) -> Softness:
    _least(d, "d", 1, 1024)
    _least(keys, "keys", 2, KEYS)
    *_, last = sqrt_d_experiment(dims=(d,), keys=keys)
    return last.points[0].scaled if scaled else last.points[0].plain


@lru_cache(maxsize=4)
def _trained(scenario: Scenario) -> TrainedScores:
    w = resolve(scenario)
    single = w.as_algorithm(BASELINE.name)
    found = None if w.file is None else trained_scores(single, single.posed(read_inputs(w)))
    return found or shipped_scores()


# --- the order of tokens ------------------------------------------------------------------------


@known
def shuffle_apart(n: Numbers, places: str = "run") -> float:
    """Largest distance of a row of O from where it was before its tokens were shuffled.

    It is a share of a row's length; `places` is what depends on places: "run", "none", "causal" or
    "rope".
    """
    single, inputs = n.trace.single_heads
    order, head = order_of(single.seqlen_k, 0), n.head * n.workload.group
    for each in DEPENDS:
        if each == places:
            return float(shuffled(single, inputs, head, order, each).apart.max())
    raise refuse("", "places", places, f"one of {', '.join(DEPENDS)}")


@known
def reach_of(n: Numbers, token: int, window: int, layers: int, global_layers: int = 0) -> int:
    """Of how many tokens a token can hear through layers with a causal window, some global."""
    tokens = min(n.workload.seqlen_k, MOST_TOKENS)
    token = _least(token, "token", 0, tokens - 1)
    window, layers = _least(window, "window", 1, tokens), _least(layers, "layers", 1, 64)
    count = _least(global_layers, "global layers", 0, layers)
    local, whole = (Mask(tokens, tokens, causal=True, window=each) for each in (window, 0))
    tables = stack(local, whole, spread_layers(layers, count)).tables
    return int(cone(tables, token)[0].sum())


# --- a head as a kernel smoother ---------------------------------------------------------------


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
    points = _points(n)
    if row not in points.rows:
        raise refuse("", "row", row, "a row of the run, of a long one those that are shown")
    return float(_factors(n).moved[points.rows.index(row)])


@known
def jacobian_norm(n: Numbers, row: int) -> float:
    """Frobenius norm of the Jacobian of the softmax of a row."""
    return _jacobian(n, row).norm


@known
def jacobian_trace(n: Numbers, row: int) -> float:
    """Trace of the same, 1 − Σ p²."""
    return _jacobian(n, row).trace


def _jacobian(n: Numbers, row: int) -> RowJacobian:
    points = _points(n)
    if row not in points.rows:
        raise refuse("", "row", row, "a row of the run, of a long one those that are shown")
    at = points.rows.index(row)
    return row_jacobian(points.weights[at], points.seen[at], 1)


@known
def rows_differ(n: Numbers, times: int, skip: int = 0) -> float:
    """How far rows still differ after attention was done so often; with 1, with skips."""
    found = _again(n)
    values = found.skipped if skip else found.spread
    return float(values[_least(times, "times", 0, len(values) - 1)])


@known
def rank_after(n: Numbers, times: int) -> int:
    """Rank of the weights to that power, of singular values above 1 % of the largest."""
    ranks = _again(n).ranks
    return ranks[_least(times, "times", 0, len(ranks) - 1)]


def _again(n: Numbers) -> Repeated:
    points = _points(n)
    return repeated(points.weights, points.v)


def _points(n: Numbers) -> HeadPoints:
    return head_points(*n.trace.single_heads, n.head * n.workload.group, 0)


def _factors(n: Numbers) -> Factors:
    return factors(_points(n))


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


# --- other scores, and variants ------------------------------------------------------------------


@known
def score_flops(n: Numbers, name: str) -> int:
    """FLOPs of a pair under a score, a tanh as one."""
    return _cost(n, name).flops


@known
def score_tanh(n: Numbers, name: str) -> int:
    """Values of tanh of a pair under a score."""
    return _cost(n, name).special


def _cost(n: Numbers, name: str) -> ScoreCost:
    w = n.workload
    found = {kind.name: kind.cost for kind in score_kinds(w.head_dim, w.head_dim, w.logit_scale)}
    if name not in found:
        raise refuse("", "score", name, f"one of {', '.join(found)}")
    return found[name]


@known
def variant_cost(n: Numbers, variant: str, cost: str) -> float:
    """What a variant costs at the scenario's N: seconds, held, cached or parameters."""
    return _variant(n.scenario, variant, cost).here


@known
def variant_power(n: Numbers, variant: str, cost: str) -> float:
    """The fitted power of N with which that grows."""
    power = _variant(n.scenario, variant, cost).power
    if power is None:
        raise refuse("", "variant", variant, "a mask that holds at other lengths, too")
    return power.exponent


@known
def mask_price(n: Numbers, mask: str, figure: str) -> float:
    """Tiles, bytes, flops or seconds of a sparse mask over those of dense; or its error."""
    rows = {each.pattern.name: each for each in _priced(n.scenario)}
    if mask not in rows:
        raise refuse("", "mask", mask, f"one of {'; '.join(rows)}")
    ours, dense = (_mask_figures(rows[name]) for name in (mask, "dense"))
    if figure not in ours:
        raise refuse("", "figure", figure, f"one of {', '.join(ours)}")
    return ours[figure] if figure == "error" else ours[figure] / dense[figure]


def _mask_figures(each: Priced) -> dict[str, float]:
    f = each.figures
    return {"tiles": each.visited, "bytes": f.bytes, "flops": f.flops, "seconds": f.time.seconds,
            "error": math.nan if each.error is None else each.error}  # fmt: skip


@lru_cache(maxsize=4)
def _priced(scenario: Scenario) -> tuple[Priced, ...]:
    w = resolve(scenario)
    inputs = read_inputs(w)
    return priced(w, inputs, patterns(w, inputs, usual_knobs(w)))


_COSTS = ("seconds", "held", "cached", "parameters")


@lru_cache(maxsize=32)
def _variant(scenario: Scenario, variant: str, cost: str) -> VariantCost:
    rows = {row.name: row for row in variant_table(resolve(scenario)).rows}
    if variant not in rows:
        raise refuse("", "variant", variant, f"one of {'; '.join(rows)}")
    if cost not in _COSTS:
        raise refuse("", "cost", cost, f"one of {', '.join(_COSTS)}")
    out: VariantCost = getattr(rows[variant], cost)
    return out


def _least(value: float, name: str, least: int, most: int) -> int:
    """Return a whole number that is within its bounds."""
    if not isinstance(value, int) or not least <= value <= most:
        raise refuse("", name, value, f"a whole number from {least} to {most}")
    return value


# --- positions ----------------------------------------------------------------------------------

_MANY = 100
"""Places of a turn that are told whole."""
_SETTINGS = {"places": PLACES, "shift": SHIFT, "trained": TRAINED, "factor": FACTOR}


@known
def position_setting(n: Numbers, name: str) -> int:
    """What the panel of positions shows first; and ``pairs``, how many hands a token has."""
    known_ones = {**_SETTINGS, "pairs": rotary_of(n.workload).width // 2}
    if name not in known_ones:
        raise refuse("", "position_setting", name, f"one of {', '.join(known_ones)}")
    return known_ones[name]


@known
def turn_of(n: Numbers, pair: int) -> float:
    """After how many places a pair has turned once, whole if many; -1 is the slowest pair."""
    speeds = speeds_of(rotary_of(n.workload))
    if not -len(speeds) <= pair < len(speeds):
        raise refuse("", "pair", pair, f"a pair from 0 to {len(speeds) - 1}, or -1 for the last")
    turn = float(2 * math.pi / speeds[pair])
    return round(turn) if turn >= _MANY else turn


@known
def diagonals_differ(n: Numbers, kind: str, row: int) -> float:
    """By how much scores of one distance differ, of a row's query at all places."""
    return _placed(n, kind, row).off


@known
def shift_moves(n: Numbers, kind: str, row: int) -> float:
    """By how much a shift of all places moves those scores, over the largest."""
    return _placed(n, kind, row).moved


@known
def untrained_pairs(n: Numbers, way: str) -> int:
    """How many pairs reach angles beyond the trained length that training has not shown."""
    rotary = rotary_of(n.workload)
    ways = {each.name: each for each in stretched(rotary, TRAINED, FACTOR)}
    if way not in ways:
        raise refuse("", "way", way, f"one of {', '.join(ways)}")
    found: Stretched = ways[way]
    return found.new_angles(TRAINED, FACTOR, speeds_of(rotary))


def _placed(n: Numbers, kind: str, row: int) -> PlacedScores:
    count = n.workload.queries
    if not 0 <= row < count:
        raise refuse("", "row", row, f"a row from 0 to {count - 1}")
    single, inputs = n.trace.single_heads
    vector = inputs.q[n.head * n.workload.group, row].astype(np.float64)
    found = {each.name: each for each in placed(single, vector, PLACES, SHIFT)}
    if kind not in found:
        raise refuse("", "kind", kind, f"one of {', '.join(found)}")
    return found[kind]
