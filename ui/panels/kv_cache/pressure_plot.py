"""The error of O against bytes, of a cache of few tokens and of one of few bits."""

from __future__ import annotations

from simulator.study.kv_cache.costs import Evicted, Pressure, Rounded
from simulator.study.kv_cache.policies import POLICIES
from simulator.study.kv_cache.quantise import SMALL
from ui.look.units import decimal_bytes_text, number_text, plural, rate_text, tick_text
from ui.plots.model import Axis, Curve, Dash, Level, Marker, PlotMark, PlotModel

_LEAST = 1e-6
"""Errors below this are rounding: a logarithmic axis ends there."""
_POLICY_LOOKS: tuple[tuple[str, Dash, Marker], ...] = (
    ("K", "solid", "circle"), ("Q", "dash", "square"), ("V", "dashdot", "triangle"),
    ("muted", "dot", "cross"),
)  # fmt: skip
_TYPE_LOOKS: tuple[tuple[str, Dash, Marker], ...] = (
    ("O", "solid", "diamond"), ("S", "dash", "ring"), ("l", "dashdot", "star"),
)  # fmt: skip
_GRAINS = {
    "tensor": "one scale for K and one for V",
    "head": "a scale for each KV head",
    "token": "a scale for each token of a KV head",
}
_SHORT_GRAINS = {"tensor": "per tensor", "head": "per head", "token": "per token"}
_TYPES = {"fp8": "fp8 e4m3", "int8": "int8", "int4": "int4"}


def source_words(found: Pressure) -> str:
    """Return which layer it is, and how it is masked."""
    w = found.layer.workload
    name = "this run" if w.file is None else w.file.title
    trained = w.file is not None and w.file.said.causal is False
    heads = plural(w.heads, "head")
    shared = f" over {w.kv_heads}" if w.kv_heads != w.heads else ""
    return (
        f"{name}: {heads}{shared}, {plural(found.layer.tokens, 'token')}, one after another under "
        f"a causal mask{', which it was not trained with' if trained else ''}"
    )


def pressure_plot(found: Pressure, now: Evicted) -> PlotModel:
    """Return the error of O over the bytes that are kept.

    found: what was tried; a click on a point of a policy stands for that policy and its budget.
    """
    curves = []
    for policy, (role, dash, marker) in zip(POLICIES, _POLICY_LOOKS, strict=True):
        tried = found.of_policy(policy)
        curves.append(
            Curve(
                policy.name, policy.name, role, tuple(float(each.bytes) for each in tried),
                tuple(max(each.error, _LEAST) for each in tried), dash, marker, 1.8,
                tuple(_evicted_lines(found, each) for each in tried),
                tuple((policy.name, each.budget) for each in tried),
            )
        )  # fmt: skip
    for dtype, (role, dash, marker) in zip(SMALL, _TYPE_LOOKS, strict=True):
        small = found.of_type(dtype)
        curves.append(
            Curve(
                _TYPES[dtype], dtype, role, tuple(float(each.bytes) for each in small),
                tuple(max(each.error, _LEAST) for each in small), dash, marker, 1.8,
                tuple(_rounded_lines(found, each) for each in small),
            )
        )  # fmt: skip
    words = f"{now.policy.name}, {plural(now.budget, 'token')}: {_share(now.error)}"
    here = PlotMark(
        float(now.bytes), max(now.error, _LEAST), words, _share(now.error), "current", "ring", 6.5,
        _evicted_lines(found, now),
    )  # fmt: skip
    own = f"all tokens, {decimal_bytes_text(found.bytes)}"
    note = (
        f"{_begun(source_words(found))}. Nothing is retrained. Bytes of K and V of the layer after "
        "the last token; sums of heavy hitters and scales, float32, are counted. Points of fp8, "
        "int8 and int4: a scale per tensor, per head, per token."
    )
    said = [f"{each.policy.name}, {plural(each.budget, 'token')}: {_share(each.error)}"
            for each in found.evicted]  # fmt: skip
    said += [f"{_TYPES[each.dtype]} {_SHORT_GRAINS[each.grain]}: {_share(each.error)}"
             for each in found.rounded]  # fmt: skip
    return PlotModel(
        name="What a smaller cache costs a layer",
        x=Axis("kept of the layer's cache", lambda x: rate_text(x, "B"), log=True),
        y=Axis("error of O, of its norm", tick_text, log=True),
        curves=tuple(curves),
        marks=(here,),
        levels=(Level(float(found.bytes), own, "all tokens", "muted", across=False),),
        note=note,
        summary=f"{note} Errors of O: {'; '.join(said)}.",
    )


def _evicted_lines(found: Pressure, each: Evicted) -> tuple[str, ...]:
    return (
        f"{each.policy.name}, {plural(each.budget, 'token')} of {found.layer.tokens}",
        *_cost_lines(found, each.bytes, each.error),
    )


def _rounded_lines(found: Pressure, each: Rounded) -> tuple[str, ...]:
    return (
        f"{_TYPES[each.dtype]}, {_GRAINS[each.grain]}",
        *_cost_lines(found, each.bytes, each.error),
    )


def _cost_lines(found: Pressure, size: int, error: float) -> tuple[str, str]:
    return (
        f"{decimal_bytes_text(size)}, {number_text(100 * size / found.bytes, 1)} % of the whole "
        "cache",
        f"O is off by {_share(error)} of its norm",
    )


def _share(error: float) -> str:
    return f"{number_text(100 * error, 2)} %"


def _begun(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}" if text.startswith("this") else text
