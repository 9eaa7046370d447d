"""The KV cache of a model as curves: ways to share it, and the GPU's memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from simulator.problem.models import AttentionModel, with_window
from simulator.study.kv_cache.counts import bytes_per_token, cache_bytes, cache_curve, weight_bytes
from simulator.study.kv_cache.memory import sharings
from ui.look.units import count_text, decimal_bytes_text, plural, rate_text
from ui.panels.kv_cache.state import ALL_TOKENS, TYPE_NAMES, CacheChoice, count_name, counted
from ui.plots.model import Axis, Curve, Dash, Level, Marker, PlotMark, PlotModel

_SUPPOSED_WINDOW = 4096
"""Window for a model without one: the window of Mistral 7B (Jiang et al. 2023, table 1)."""
_LINES: dict[str, tuple[str, Dash, Marker]] = {
    "MHA": ("text", "dash", "square"),
    "GQA": ("K", "solid", "circle"),
    "MQA": ("V", "dashdot", "triangle"),
    "MLA": ("S", "dot", "diamond"),
    "windowed": ("l", "dash", "cross"),
}


@dataclass(frozen=True, slots=True)
class Way:
    """One way in which the model's heads could keep their cache."""

    name: str  # ``MHA``, ``GQA``, ``MQA``, ``MLA`` or ``windowed``
    words: str  # its shape
    model: AttentionModel  # the model in this way
    own: bool  # whether the model itself uses this way


def ways(model: AttentionModel) -> tuple[Way, ...]:
    """Return MHA, GQA, MQA, MLA and windowed, with usual shapes if the model has none.

    These are 8 KV heads, or the middle divisor; DeepSeek's latent; Mistral's window.
    """
    own_name = "windowed" if model.windowed_layers else model.kind
    window = model.window or _SUPPOSED_WINDOW, model.windowed_layers or model.layers
    found = {**sharings(with_window(model, 0, 0)), "windowed": with_window(model, *window)}
    return tuple(
        Way(
            name,
            f"window {count_text(way.window)} in {way.windowed_layers} of {way.layers} layers"
            if name == "windowed" else shape_words(way),
            way, name == own_name,
        )
        for name, way in found.items()
    )  # fmt: skip


def shape_words(model: AttentionModel) -> str:
    """Return in words what a layer keeps of a token."""
    if model.is_latent:
        return f"latent {model.latent_dim} + {model.rope_dim}"
    return plural(model.kv_heads or 0, "KV head")


def cache_plot(choice: CacheChoice) -> PlotModel:
    """Return the curves of all ways, the weights and the GPU's memory as lines, the tokens.

    An audience sees only the model's own way, and the model without its window if it has one.
    """
    curves = _curves(replace(choice, tokens=choice.most, opened="", decodes=False, controls=True))
    memory, weights = choice.gpu.memory_bytes, weight_bytes(choice.model, choice.weights_dtype)
    tokens, now = choice.tokens, getattr(choice.counts, choice.convention)
    levels = [
        Level(memory, f"{choice.gpu.name}: {choice.gpu.memory_gb} GB",
              f"{choice.gpu.memory_gb} GB", "hbm_line"),
        Level(tokens, f"{count_text(tokens)} tokens", count_text(tokens), "current", across=False),
    ]  # fmt: skip
    if weights is not None:
        text = f"weights {decimal_bytes_text(weights)} in {TYPE_NAMES[choice.weights_dtype]}"
        levels.insert(0, Level(weights, text, "weights", "muted"))
    name = count_name(choice)
    many = f", {count_text(choice.batch)} conversations" if choice.batch > 1 else ""
    room = 100.0 if choice.log else 1.2  # for the words above the higher line
    top = max(room * max(memory, weights or 0), *(max(curve.ys) for curve in curves))
    low = min(min(y for y in curve.ys if y) for curve in curves) if choice.log else 0.0
    label = decimal_bytes_text(now)
    own = next(way for way in ways(choice.model) if way.own)
    here = PlotMark(tokens, now, label, label, "current", "ring", 6.0, _details(own, choice))
    sizes = [f"{way.name} {decimal_bytes_text(_size(way, choice))}" for way in ways(choice.model)]
    return PlotModel(
        name=f"KV cache of {choice.model.name}",
        x=Axis("tokens of each conversation", count_text, log=choice.log, base=2, whole=True),
        y=Axis(
            f"cache, {name}{many}", lambda n: rate_text(n, "B") if n >= 1 else "0 B", log=choice.log
        ),
        curves=curves,
        marks=(here,),
        levels=tuple(levels),
        note="" if choice.slide else _note(choice),
        x_range=(1.0 if choice.log else 0.0, float(choice.most)),
        y_range=(float(low), float(top)),
        summary=f"At {count_text(tokens)} tokens{many}, {TYPE_NAMES[choice.dtype]}, {name}: "
        f"{', '.join(sizes)}.",
    )


def _note(choice: CacheChoice) -> str:
    if not choice.model.windowed_layers:
        if choice.convention == "allocated":
            return f"allocated: in whole pages of {choice.page_size} tokens; no layer has a window"
        supposed = "; one curve supposes a window" * (choice.convention == "window_capped")
        return f"{ALL_TOKENS} in every layer: no layer has a window{supposed}"
    return {
        "logical": f"logical: {ALL_TOKENS} in every layer, no cap",
        "window_capped": "window-capped: a windowed layer holds its window at most",
        "allocated": f"allocated: window-capped, in whole pages of {choice.page_size} tokens",
    }[choice.convention]


@lru_cache(maxsize=32)
def _curves(choice: CacheChoice) -> tuple[Curve, ...]:
    """Return the curves, whose figures do not depend on the choice's tokens."""
    out = []
    for way in ways(choice.model):
        if choice.slide and not (way.own or way.name == choice.model.kind):
            continue
        role, dash, marker = _LINES[way.name]
        xs = _places(choice, way.model)
        found = cache_curve(way.model, xs, choice.dtype, choice.batch, choice.page_size)
        model = way.model
        size = f"{model.latent_dim} + {model.rope_dim}" if model.is_latent else str(model.kv_heads)
        brief = f"window {count_text(model.window)}" if way.name == "windowed" else (
            f"{way.name} {size}")  # fmt: skip
        names = (f"{brief}, its own", f"{way.name} (own)") if way.own else (f"if {brief}", way.name)
        if choice.slide:
            names = (choice.model.name if way.own else "without a window",) * 2
        out.append(
            Curve(
                *names,
                role,
                tuple(float(n) for n in xs),
                tuple(getattr(found, choice.convention).tolist()),
                dash,
                marker,
                3.0 if way.own else 1.6,
                tuple(_details(way, replace(choice, tokens=n)) for n in xs),
                tuple(max(n, 1) for n in xs),
            )
        )
    return tuple(out)


def _places(choice: CacheChoice, model: AttentionModel) -> list[int]:
    if choice.log:
        places = {2**n for n in range(choice.most.bit_length())}
    else:
        places = set(range(0, choice.most + 1, choice.most // 32))
    if model.windowed_layers and model.window < choice.most:
        places.add(model.window)
    return sorted(places)


def _size(way: Way, choice: CacheChoice) -> int:
    counts = cache_bytes(way.model, choice.tokens, choice.dtype, choice.batch, choice.page_size)
    return int(getattr(counts, choice.convention))


def _details(way: Way, choice: CacheChoice) -> tuple[str, ...]:
    """Return a way's figures at some length: all three conventions."""
    counts = cache_bytes(way.model, choice.tokens, choice.dtype, choice.batch, choice.page_size)
    named = counted(way.model).items()
    made = "as the model is made" if way.own else "if the model were made so"
    row = bytes_per_token(way.model, choice.dtype)
    return (
        f"{way.name}, {way.words}: {made}",
        f"{count_text(choice.tokens)} tokens × {count_text(choice.batch)}, "
        f"{TYPE_NAMES[choice.dtype]}",
        *(f"{name}: {_exact(getattr(counts, keys[0]))}" for name, keys in named),
        f"pages of {choice.page_size} tokens",
        f"{decimal_bytes_text(row)} a token in all layers, no cap",
    )


def _exact(count: int) -> str:
    short = decimal_bytes_text(count)
    return short if count < 1000 else f"{short} = {count_text(count)} B"
