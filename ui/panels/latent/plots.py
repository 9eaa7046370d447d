"""The plots of the Latent dock: both ways over the queries, and errors of smaller caches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from simulator.program.algorithms import LATENT
from simulator.study.latent.sharing import Family, SharedLayer, SmallerCache
from simulator.study.latent.two_ways import Quantity, TwoWays, Way
from ui.look.units import (
    bytes_text,
    count_text,
    estimate_text,
    flops_text,
    number_text,
    plural,
    queries_text,
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
"""The axis title of a quantity, words on the cheaper way, and the text of a value."""


def ways_plot(found: TwoWays, quantity: Quantity) -> PlotModel:
    """Return the costs of both ways over the number of queries."""
    layer, at = found.layer, found.crossovers[quantity]
    axis, fewer, text = _QUANTITIES[quantity]
    curves = []
    for way, curve in _WAYS.items():
        priced = list(zip(layer.counts, found.prices[way], strict=True))
        xs, ys = tuple(map(float, layer.counts)), tuple(each.of(quantity) for _, each in priced)
        details = tuple(
            (f"{queries_text(n)}, {curve.name}",
             _parts(flops_text, price.flops, price.attention.flops),
             _parts(bytes_text, price.bytes, price.attention.bytes),
             estimate_text(price.time.seconds, layer.workload.gpu.name))
            for n, price in priced
        )  # fmt: skip
        curves.append(replace(curve, xs=xs, ys=ys, details=details))
    levels, takes = [], f"Making K and V never takes {fewer}"
    if at is not None:
        levels.append(Level(float(at), queries_text(at), queries_text(at), "current", across=False))
        takes = f"From {queries_text(at)} on making K and V takes {fewer}"
    if found.queries is not None:
        levels.append(Level(float(found.queries), "this run", "run", "muted", across=False))
    both, w = found.both, layer.workload
    source = "projections of the seed" if both.drawn else "the file's projections"
    note = (
        f"Both ways have the same O, up to {number_text(both.apart, 2)} of its largest number. "
        f"{takes}. O is that of {'one' if both.heads == 1 else both.heads} "
        f"head{'s' * (both.heads != 1)} with {source}. "
        f"{'This run' if layer.model is None else layer.model.name}: {plural(w.heads, 'head')}, "
        f"{plural(w.seqlen_k, 'key')}, latent {w.value_dim} + {layer.rope}, K and V of a head "
        f"{layer.nope} + {layer.rope} and {layer.value}."
    )
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


def _parts(text: Words, whole: int, own: int) -> str:
    return f"{text(whole)}: attention {text(own)}, projections {text(whole - own)}"


def sharing_plot(found: SharedLayer) -> PlotModel:
    """Return the error of O over the bytes of a token, of both families."""
    curves, said = [], []
    for family, curve in _FAMILIES.items():
        kept = found.family(family)[::-1]
        xs = tuple(float(each.bytes) for each in kept)
        ys = tuple(max(each.error, _LEAST) for each in kept)
        details = tuple(
            (_size(each, f"latent of {each.size} numbers", f" in place of {found.kv_heads}"),
             f"{bytes_text(each.bytes)} a token, "
             f"{number_text(100 * each.numbers / found.numbers, 2)} % of the layer's own",
             f"O is off by {number_text(100 * each.error, 3)} % of its norm, without retraining")
            for each in kept
        )  # fmt: skip
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


def _size(kept: SmallerCache, latent: str, of: str = "") -> str:
    return latent if kept.family == "latent" else f"{plural(kept.size, 'KV head')}{of}"
