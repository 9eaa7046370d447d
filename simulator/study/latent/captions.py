"""Numbers of a latent that captions may ask for."""

from __future__ import annotations

from functools import lru_cache
from typing import get_args

import numpy as np

from simulator.base.errors import refuse
from simulator.base.matmul import matmul
from simulator.problem.positions import Rotary
from simulator.problem.scenario import PositionTable, Scenario
from simulator.program.algorithms import USUAL
from simulator.run.trace import Trace
from simulator.study.captions import Numbers, chosen, known, named, once_a_run, program_of, whole
from simulator.study.latent.sharing import (
    Family,
    SharedLayer,
    SmallerCache,
    is_shown,
    shared_layer,
    shipped_layer,
)
from simulator.study.latent.two_ways import (
    QUANTITIES,
    WAYS,
    LatentLayer,
    both_ways,
    latent_layer,
    projections,
)

_FAMILIES: tuple[Family, ...] = get_args(Family)


@known
def latent_cost(n: Numbers, way: str, figure: str, queries: int) -> float:
    """`flops`, `bytes` or seconds (`time`) of a latent `absorbed` or `projected`, for queries."""
    layer = _layer(n.scenario)
    price = layer.price(chosen("way", way, WAYS), whole("queries", queries, 1, layer.counts[-1]))
    return price.of(chosen("figure", figure, QUANTITIES))


@known
def latent_crossover(n: Numbers, figure: str) -> int:
    """From how many queries on making K and V of a latent costs less."""
    found = _layer(n.scenario).crossover(chosen("figure", figure, QUANTITIES))
    if found is None:
        raise refuse("", "figure", figure, "one of which the ways cross")
    return found


@known
def latent_apart(n: Numbers) -> float:
    """How far O of both ways is apart, relative to its largest number."""
    return _apart(n.trace)


@known
def latent_heads(n: Numbers) -> int:
    """Heads of the layer of which the panel Latent shows both ways."""
    return _layer(n.scenario).workload.heads


@known
def latent_width(n: Numbers, part: str) -> int:
    """Numbers of its `latent`, of the `rope` beside it, or of a `key` or `value` of a head."""
    layer = _layer(n.scenario)
    sizes = {
        "latent": layer.workload.value_dim, "rope": layer.rope, "key": layer.nope + layer.rope,
        "value": layer.value,
    }  # fmt: skip
    return named("part", part, sizes)


@known
def latent_turned(n: Numbers, distance: int) -> float:
    """How far an absorbed query moves, of its length, if RoPE turned the keys by a distance."""
    layer = _layer(n.scenario)
    wuk = projections(layer, 1)[0][0].astype(float).T  # (nope, dc): q wuk is the absorbed query
    rope = Rotary(PositionTable().theta, layer.nope, False, 0)
    angles = rope.angles(np.array([whole("distance", distance, 0, 2**20)]))
    q = np.random.default_rng([n.workload.scenario.input.seed, 1]).standard_normal(layer.nope)
    moved = matmul(rope.rotated(q[None], angles) - q, wuk)
    return float(np.linalg.norm(moved) / np.linalg.norm(matmul(q[None], wuk)))


@known
def shared_error(n: Numbers, family: str, size: int) -> float:
    """Error of O of a trained layer with `pooled` heads or a `latent` of a size, not retrained."""
    return _smaller(n, family, size).error


@known
def shared_bytes(n: Numbers, family: str, size: int) -> int:
    """Bytes of a token in the cache of such a layer."""
    return _smaller(n, family, size).bytes


@lru_cache(maxsize=4)
def _layer(scenario: Scenario) -> LatentLayer:
    return latent_layer(program_of(scenario).workload.as_algorithm(USUAL.name))


@once_a_run
def _apart(trace: Trace) -> float:
    w, inputs = trace.single_heads
    layer = latent_layer(w)
    return both_ways(layer, None if layer.model else inputs).apart


def _smaller(n: Numbers, family: str, size: int) -> SmallerCache:
    found, kind = _shared(n.trace), chosen("family", family, _FAMILIES)
    sizes = [each.size for each in found.family(kind)]
    return found.one(kind, chosen("size", size, sizes))


@once_a_run
def _shared(trace: Trace) -> SharedLayer:
    w, inputs = trace.single_heads
    return shared_layer(w, inputs) if is_shown(w) else shipped_layer()
