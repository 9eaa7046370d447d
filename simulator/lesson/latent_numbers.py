"""Numbers of a latent that a lesson's text may ask for; they join `FUNCTIONS`."""

from __future__ import annotations

from functools import lru_cache

from simulator.base.errors import refuse
from simulator.lesson.numbers import Numbers, known
from simulator.problem.scenario import Scenario
from simulator.problem.workload import read_inputs, resolve
from simulator.program.algorithms import USUAL
from simulator.study.latent.sharing import (
    Family,
    SharedLayer,
    SmallerCache,
    is_shown,
    shared_layer,
    shipped_layer,
)
from simulator.study.latent.two_ways import LatentLayer, Quantity, Way, both_ways, latent_layer

_WAYS: dict[str, Way] = {"absorbed": "absorbed", "projected": "projected"}
_QUANTITIES: dict[str, Quantity] = {"flops": "flops", "bytes": "bytes", "time": "time"}
_FAMILIES: dict[str, Family] = {"pooled": "pooled", "latent": "latent"}


@known
def latent_cost(n: Numbers, way: str, figure: str, queries: int) -> float:
    """FLOPs, bytes or seconds of a latent "absorbed" or "projected", for so many queries."""
    if way not in _WAYS:
        raise refuse("", "way", way, f"one of {', '.join(_WAYS)}")
    most = _layer(n.scenario).counts[-1]
    if not 1 <= queries <= most:
        raise refuse("", "queries", queries, f"1 to {most}")
    return _layer(n.scenario).price(_WAYS[way], queries).of(_quantity(figure))


@known
def latent_crossover(n: Numbers, figure: str) -> int:
    """From how many queries on making K and V of a latent costs less."""
    found = _layer(n.scenario).crossover(_quantity(figure))
    if found is None:
        raise refuse("", "figure", figure, "one of which the ways cross")
    return found


@known
def latent_apart(n: Numbers) -> float:
    """How far O of both ways is apart, relative to its largest number."""
    return _apart(n.scenario)


@known
def latent_heads(n: Numbers) -> int:
    """Heads of the layer of which the panel Latent shows both ways."""
    return _layer(n.scenario).workload.heads


@known
def latent_width(n: Numbers, part: str) -> int:
    """Numbers of its "latent", of the "rope" beside it, or of a "key" or "value" of a head."""
    layer = _layer(n.scenario)
    sizes = {
        "latent": layer.workload.value_dim, "rope": layer.rope, "key": layer.nope + layer.rope,
        "value": layer.value,
    }  # fmt: skip
    if part not in sizes:
        raise refuse("", "part", part, f"one of {', '.join(sizes)}")
    return sizes[part]


@known
def shared_error(n: Numbers, family: str, size: int) -> float:
    """Error of O with "pooled" heads or a "latent" of a size, without retraining."""
    return _kept(n.scenario, family, size).error


@known
def shared_bytes(n: Numbers, family: str, size: int) -> int:
    """Bytes of a token in the same."""
    return _kept(n.scenario, family, size).bytes


def _quantity(figure: str) -> Quantity:
    if figure not in _QUANTITIES:
        raise refuse("", "figure", figure, f"one of {', '.join(_QUANTITIES)}")
    return _QUANTITIES[figure]


@lru_cache(maxsize=4)
def _layer(scenario: Scenario) -> LatentLayer:
    return latent_layer(resolve(scenario).as_algorithm(USUAL.name))


@lru_cache(maxsize=4)
def _apart(scenario: Scenario) -> float:
    layer = _layer(scenario)
    return both_ways(layer, None if layer.model else read_inputs(layer.workload)).apart


def _kept(scenario: Scenario, family: str, size: int) -> SmallerCache:
    if family not in _FAMILIES:
        raise refuse("", "family", family, f"one of {', '.join(_FAMILIES)}")
    found = _shared(scenario)
    sizes = [each.size for each in found.family(_FAMILIES[family])]
    if size not in sizes:
        raise refuse("", "size", size, f"one of {', '.join(map(str, sizes))}")
    return found.one(_FAMILIES[family], size)


@lru_cache(maxsize=4)
def _shared(scenario: Scenario) -> SharedLayer:
    w = resolve(scenario).as_algorithm(USUAL.name)
    return shared_layer(w, read_inputs(w)) if is_shown(w) else shipped_layer()
