"""Numbers of rescales, of why √d, and of variants that captions may ask for."""

from __future__ import annotations

from functools import cache, lru_cache

from simulator.base.errors import refuse
from simulator.engines.numpy_engine import numpy_engine
from simulator.problem.scenario import Scenario, with_values
from simulator.problem.workload import read_inputs, resolve
from simulator.run.rescales import WARP, rescaled
from simulator.run.trace import Trace
from simulator.study.captions import Numbers, chosen, known, named, once_a_run, program_of, whole
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


# --- variants -----------------------------------------------------------------------------------


@known
def variant_cost(n: Numbers, variant: str, cost: str) -> float:
    """`seconds`, `held`, `cached` or `parameters` of a variant of Sweep, at the scenario's N."""
    return _variant(n.scenario, variant, cost).here


@known
def variant_power(n: Numbers, variant: str, cost: str) -> float:
    """The fitted power of N with which that grows."""
    power = _variant(n.scenario, variant, cost).power
    if power is None:
        raise refuse("", "variant", variant, "a mask that holds at other lengths, too")
    return power.exponent


_COSTS = ("seconds", "held", "cached", "parameters")


@lru_cache(maxsize=32)
def _variant(scenario: Scenario, variant: str, cost: str) -> VariantCost:
    rows = {row.name: row for row in variant_table(program_of(scenario).workload).rows}
    found = named("variant", variant, rows, "; ")
    out: VariantCost = getattr(found, chosen("cost", cost, _COSTS))
    return out
