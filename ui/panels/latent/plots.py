"""The plots of the Latent dock: both ways over the queries, and errors of smaller caches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from simulator.program.algorithms import LATENT
from simulator.study.latent.sharing import Family, SharedLayer, SmallerCache
from simulator.study.latent.two_ways import LatentLayer, Price, Quantity, TwoWays, Way
from ui.look.units import (
    bytes_text,
    count_text,
    estimate_text,
    flops_text,
    number_text,
    plural,
    tick_text,
    time_text,
)
from ui.plots.model import Axis, Curve, Level, PlotMark, PlotModel, Words

_WAYS: dict[Way, Curve] = {
    "absorbed": Curve("absorbed", "absorbed", LATENT.name, (), ()),
    "projected": Curve("K and V made first", "K, V made", "text", (), (), "dash", "square"),
}
_FAMILIES: dict[Family, Curve] = {
    "pooled": Curve("pooled heads", "pooled heads", "Q", (), (), "dash", "square"),
    "latent": Curve("latent", "latent", "K", (), ()),
}
_LEAST = 1e-6
"""Errors below this are rounding: a logarithmic axis ends there."""


_QUANTITIES: dict[Quantity, tuple[str, str, Words]] = {
    "flops": ("FLOPs", "fewer FLOPs", flops_text),
    "bytes": ("requested bytes", "fewer bytes", bytes_text),
    "time": ("least time, by the data sheet", "less time", time_text),
}
"""What stands on the axis of a figure, what the cheaper way takes, and a value in words."""


def ways_plot(found: TwoWays, quantity: Quantity) -> PlotModel:
    """Return what both ways cost over the number of queries."""
    layer, at = found.layer, found.crossovers[quantity]
    axis, fewer, text = _QUANTITIES[quantity]
    curves = []
    for way, curve in _WAYS.items():
        priced = list(zip(layer.counts, found.prices[way], strict=True))
        xs, ys = tuple(map(float, layer.counts)), tuple(each.of(quantity) for _, each in priced)
        details = tuple(_price_lines(layer, curve.name, n, price) for n, price in priced)
        curves.append(replace(curve, xs=xs, ys=ys, details=details))
    levels, takes = [], f"Making K and V never takes {fewer}"
    if at is not None:
        levels.append(Level(float(at), _queries(at), _queries(at), "current", across=False))
        takes = f"From {_queries(at)} on making K and V takes {fewer}"
    if found.queries is not None:
        levels.append(Level(float(found.queries), "this run", "run", "muted", across=False))
    same, computed = _same(found)
    note = f"{same}. {takes}. {computed}. {_whose(layer)}."
    ends = ", ".join(f"{each.name} {text(each.ys[n])}" for n in (0, -1) for each in curves)
    return PlotModel(
        name="A latent attended to in two ways, over the number of queries",
        x=Axis("queries of each head", count_text, log=True, base=2),
        y=Axis(axis, text, log=True),
        curves=tuple(curves),
        levels=tuple(levels),
        note=note,
        summary=f"{note} At one query and at all: {ends}.",
    )


def _same(found: TwoWays) -> tuple[str, str]:
    """Return how far the two ways are apart, and what was computed in both."""
    both, heads = found.both, "one head" if found.both.heads == 1 else f"{found.both.heads} heads"
    source = "projections of the seed" if both.drawn else "the file's projections"
    apart = f"Both ways have the same O, up to {number_text(both.apart, 2)} of its largest number"
    return apart, f"O is that of {heads} with {source}"


def _whose(layer: LatentLayer) -> str:
    """Return whose layer it is, and its shapes."""
    w, whose = layer.workload, "This run" if layer.model is None else layer.model.name
    return (
        f"{whose}: {plural(w.heads, 'head')}, {count_text(w.seqlen_k)} keys, latent {w.value_dim} "
        f"+ {layer.rope}, K and V of a head {layer.nope} + {layer.rope} and {layer.value}"
    )


def _price_lines(layer: LatentLayer, way: str, queries: int, price: Price) -> tuple[str, ...]:
    own = price.attention
    return (
        f"{_queries(queries)}, {way}",
        _parts(flops_text, price.flops, own.flops),
        _parts(bytes_text, price.bytes, own.bytes),
        estimate_text(price.time.seconds, layer.workload.gpu.name),
    )


def _parts(text: Words, whole: int, own: int) -> str:
    return f"{text(whole)}: attention {text(own)}, projections {text(whole - own)}"


def _queries(count: int) -> str:
    return "one query" if count == 1 else f"{count_text(count)} queries"


def sharing_plot(found: SharedLayer) -> PlotModel:
    """Return the error of O over the bytes of a token, of both families."""
    curves, said = [], []
    for family, curve in _FAMILIES.items():
        kept = found.family(family)[::-1]
        xs = tuple(float(each.bytes) for each in kept)
        ys = tuple(max(each.error, _LEAST) for each in kept)
        details = tuple(_kept_lines(found, each) for each in kept)
        curves.append(replace(curve, xs=xs, ys=ys, details=details))
        for each in kept[::-1]:
            said.append(f"{curve.name} {bytes_text(each.bytes)}: {number_text(each.error, 2)}")
    own = bytes_text(found.bytes)
    note = (
        f"Without retraining. {found.name}, {found.kv_heads} KV heads, {own} a token. Pooled: K "
        "and V of neighbouring heads are their mean. Latent: the directions in which K and V of "
        "these tokens vary most."
    )
    whole = Level(float(found.bytes), f"all heads, {own}", "all heads", "muted", across=False)
    return PlotModel(
        name="What sharing the cache costs a trained layer",
        x=Axis("kept of a token", bytes_text, log=True, base=2),
        y=Axis("error of O, of its norm", tick_text, log=True),
        curves=tuple(curves),
        marks=tuple(_named(found)),
        levels=(whole,),
        note=note,
        summary=f"{note} Errors of O: {'; '.join(said)}.",
    )


def _named(found: SharedLayer) -> Iterator[PlotMark]:
    """Yield the sizes of the largest and the smallest pooled heads, and of latents as large."""
    pooled = found.family("pooled")
    for each in found.kept:
        if each.numbers in (pooled[0].numbers, pooled[-1].numbers):
            label, role = _size(each, f"latent {each.size}"), _FAMILIES[each.family].role
            yield PlotMark(float(each.bytes), each.error, label, str(each.size), role, None)


def _kept_lines(found: SharedLayer, kept: SmallerCache) -> tuple[str, ...]:
    share = number_text(100 * kept.numbers / found.numbers, 2)
    return (
        _size(kept, f"latent of {kept.size} numbers", f" in place of {found.kv_heads}"),
        f"{bytes_text(kept.bytes)} a token, {share} % of the layer's own",
        f"O is off by {number_text(100 * kept.error, 3)} % of its norm, without retraining",
    )


def _size(kept: SmallerCache, latent: str, of: str = "") -> str:
    return latent if kept.family == "latent" else f"{plural(kept.size, 'KV head')}{of}"
