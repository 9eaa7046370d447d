"""The plots of the latent panel: both ways over the queries, and errors of smaller caches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from simulator.program.algorithms import LATENT
from simulator.study.latent.sharing import Family, SharedLayer, SmallerCache
from simulator.study.latent.two_ways import BothWays, LatentLayer, Price, Quantity, Way
from ui.look.units import (
    bytes_text,
    count_text,
    estimate_text,
    number_text,
    plural,
    rate_text,
    tick_text,
    time_text,
)
from ui.plots.model import Axis, Curve, Dash, Level, Marker, PlotMark, PlotModel

WAYS: tuple[Way, ...] = get_args(Way)
QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)
_NAMES: dict[Way, tuple[str, str]] = {
    "absorbed": ("absorbed", "absorbed"),
    "projected": ("K and V made first", "K, V made"),
}
_LOOKS: dict[Way, tuple[str, Dash, Marker]] = {
    "absorbed": (LATENT.name, "solid", "circle"),
    "projected": ("text", "dash", "square"),
}
_FAMILIES: dict[Family, tuple[str, str, Dash, Marker]] = {
    "pooled": ("pooled heads", "Q", "dash", "square"),
    "latent": ("latent", "K", "solid", "circle"),
}
_QUANTITY_WORDS: dict[Quantity, str] = {
    "flops": "FLOPs", "bytes": "requested bytes", "time": "time, estimated",
}  # fmt: skip
_FEWER: dict[Quantity, str] = {
    "flops": "fewer FLOPs", "bytes": "fewer bytes", "time": "less time",
}  # fmt: skip
_LEAST = 1e-6
"""Errors below this are rounding: a logarithmic axis ends there."""


@dataclass(frozen=True, eq=False)
class TwoWays:
    """What both ways cost a layer, and what they compute."""

    layer: LatentLayer  # the layer
    prices: dict[Way, tuple[Price, ...]]  # of each way, for each of the layer's numbers of queries
    # from how many queries on making K and V costs less, of each quantity
    crossovers: dict[Quantity, int | None]
    both: BothWays  # O in both ways
    queries: int | None  # of the run; None if the layer is not the run's


def quantity_text(quantity: Quantity, value: float) -> str:
    """Return a figure of a way in words."""
    if quantity == "bytes":
        return bytes_text(round(value))
    return time_text(value) if quantity == "time" else rate_text(value, "FLOP")


def layer_words(layer: LatentLayer) -> str:
    """Return whose layer it is, and its shapes."""
    w = layer.workload
    whose = "this run" if layer.model is None else layer.model.name
    return (
        f"{whose}: {plural(w.heads, 'head')}, {count_text(w.seqlen_k)} keys, latent {w.value_dim} "
        f"+ {layer.rope}, K and V of a head {layer.nope} + {layer.rope} and {layer.value}"
    )


def crossover_words(found: TwoWays, quantity: Quantity) -> str:
    """Return from where on making K and V costs less."""
    at = found.crossovers[quantity]
    if at is None:
        return f"making K and V never takes {_FEWER[quantity]}"
    return f"from {_queries(at)} on making K and V takes {_FEWER[quantity]}"


def equal_words(found: TwoWays) -> str:
    """Return how far the two ways are apart."""
    both = found.both
    source = "projections of the seed" if both.drawn else "the file's projections"
    heads = "one head" if both.heads == 1 else f"{both.heads} heads"
    return (
        f"both ways have the same O, up to {number_text(both.apart, 2)} of its largest number "
        f"({heads}, {source})"
    )


def crossover_plot(found: TwoWays, quantity: Quantity) -> PlotModel:
    """Return what both ways cost over the number of queries.

    Parameters
    ----------
    quantity : str
        ``flops``, ``bytes`` or ``time``.
    """
    layer, xs = found.layer, tuple(float(n) for n in found.layer.counts)
    curves = []
    for way in WAYS:
        role, dash, marker = _LOOKS[way]
        ys = tuple(price.of(quantity) for price in found.prices[way])
        details = tuple(
            _price_lines(layer, way, round(x), price)
            for x, price in zip(xs, found.prices[way], strict=True)
        )
        name, short = _NAMES[way]
        curves.append(Curve(name, short, role, xs, ys, dash, marker, 1.8, details))
    at, levels = found.crossovers[quantity], []
    if at is not None:
        words = _queries(at)
        levels.append(Level(float(at), words, words, "current", across=False))
    if found.queries is not None:
        levels.append(Level(float(found.queries), "this run", "run", "muted", across=False))
    said = (equal_words(found), crossover_words(found, quantity), layer_words(layer))
    note = " ".join(f"{words[0].upper()}{words[1:]}." for words in said)
    ends = ", ".join(
        f"{_NAMES[way][0]} {quantity_text(quantity, found.prices[way][n].of(quantity))}"
        for n in (0, -1)
        for way in WAYS
    )
    return PlotModel(
        name="A latent attended to in two ways, over the number of queries",
        x=Axis("queries of each head", lambda n: count_text(round(n)), log=True, base=2),
        y=Axis(_QUANTITY_WORDS[quantity], lambda y: quantity_text(quantity, y), log=True),
        curves=tuple(curves),
        levels=tuple(levels),
        note=note,
        summary=f"{note} At one query and at all: {ends}.",
    )


def sharing_plot(found: SharedLayer) -> PlotModel:
    """Return the error of O over the bytes of a token, of both families."""
    curves = []
    for family, (name, role, dash, marker) in _FAMILIES.items():
        kept = found.family(family)[::-1]
        curves.append(
            Curve(
                name, name, role, tuple(float(each.bytes) for each in kept),
                tuple(max(each.error, _LEAST) for each in kept), dash, marker, 1.8,
                tuple(_kept_lines(found, each) for each in kept),
            )
        )  # fmt: skip
    note = (
        f"Without retraining. {found.name}, {found.kv_heads} KV heads, "
        f"{bytes_text(found.bytes)} a token. Pooled: K and V of neighbouring heads are their mean. "
        "Latent: the directions in which K and V of these tokens vary most."
    )
    said = "; ".join(
        f"{name} {bytes_text(each.bytes)}: {number_text(each.error, 2)}"
        for family, (name, *_) in _FAMILIES.items()
        for each in found.family(family)
    )
    own = f"all heads, {bytes_text(found.bytes)}"
    return PlotModel(
        name="What sharing the cache costs a trained layer",
        x=Axis("kept of a token", lambda x: bytes_text(round(x)), log=True, base=2),
        y=Axis("error of O, of its norm", tick_text, log=True),
        curves=tuple(curves),
        marks=tuple(_named(found)),
        levels=(Level(float(found.bytes), own, "all heads", "muted", across=False),),
        note=note,
        summary=f"{note} Errors of O: {said}.",
    )


def _named(found: SharedLayer) -> list[PlotMark]:
    """Return the sizes beside the largest and the smallest pooled heads, and as large latents."""
    pooled, marks = found.family("pooled"), []
    for each in found.kept:
        if each.numbers in (pooled[0].numbers, pooled[-1].numbers):
            role = _FAMILIES[each.family][1]
            own = plural(each.size, "KV head")
            label = own if each.family == "pooled" else f"latent {each.size}"
            short = str(each.size)
            marks.append(PlotMark(float(each.bytes), each.error, label, short, role, None))
    return marks


def _kept_lines(found: SharedLayer, kept: SmallerCache) -> tuple[str, ...]:
    what = (
        f"{plural(kept.size, 'KV head')} in place of {found.kv_heads}"
        if kept.family == "pooled"
        else f"latent of {kept.size} numbers"
    )
    share = kept.numbers / found.numbers
    return (
        what,
        f"{bytes_text(kept.bytes)} a token, {number_text(100 * share, 2)} % of the layer's own",
        f"O is off by {number_text(100 * kept.error, 3)} % of its norm, without retraining",
    )


def _price_lines(layer: LatentLayer, way: Way, queries: int, price: Price) -> tuple[str, ...]:
    own = price.attention
    made = price.flops - own.flops
    return (
        f"{_queries(queries)}, {_NAMES[way][0]}",
        f"{rate_text(price.flops, 'FLOP')}: attention {rate_text(own.flops, 'FLOP')}, "
        f"projections {rate_text(made, 'FLOP')}",
        f"{bytes_text(price.bytes)}: attention {bytes_text(own.bytes)}, "
        f"projections {bytes_text(price.bytes - own.bytes)}",
        estimate_text(price.time.seconds, layer.workload.gpu.name),
    )


def _queries(count: int) -> str:
    return "one query" if count == 1 else f"{count_text(count)} queries"
