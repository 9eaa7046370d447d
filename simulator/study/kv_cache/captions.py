"""Numbers of models and their KV caches that captions may ask for."""

from __future__ import annotations

from simulator.base.errors import refuse
from simulator.problem.models import AttentionModel, models, with_kv_heads
from simulator.run.trace import Trace
from simulator.study.captions import Numbers, chosen, gpu_named, known, named, once_a_run, whole
from simulator.study.heads.published import published_scores
from simulator.study.heads.sharing import head_sharing
from simulator.study.kv_cache.costs import Pressure, quantised, shown_run, unpressed, weight_gone
from simulator.study.kv_cache.counts import (
    CONVENTIONS,
    bytes_per_token,
    cache_bytes,
    decode_step,
    fit,
    weight_bytes,
)
from simulator.study.kv_cache.policies import POLICIES, policy_named
from simulator.study.kv_cache.quantise import GRAINS, SMALL


@known
def model(_: Numbers, name: str, key: str) -> int:
    """A whole number from assets/models.toml, such as `kv_heads`."""
    found = getattr(_model(name), key, None)
    if not isinstance(found, int) or isinstance(found, bool):
        raise refuse("", "model", key, f"a whole number that {name} has")
    return found


@known
def kv_cache(_: Numbers, name: str, tokens: int, convention: str = "logical") -> int:
    """Bytes of a float16 cache of one sequence: `logical`, `window_capped` or `allocated`."""
    found: int = getattr(
        cache_bytes(_model(name), tokens), chosen("kv_cache", convention, CONVENTIONS)
    )
    return found


@known
def kv_per_token(_: Numbers, name: str, kv_heads: int = 0) -> int:
    """Bytes that a token adds to a float16 cache; with other KV heads than the model's if said."""
    return bytes_per_token(_model(name, kv_heads))


@known
def kv_share(_: Numbers, name: str, kv_heads: int = 0) -> float:
    """Cache of a token over that of one KV head for each query head."""
    return float(head_sharing(_model(name, kv_heads)).share_of_mha)


@known
def decode_seconds(n: Numbers, name: str, tokens: int) -> float:
    """Seconds that reading the cache for one new token takes at the GPU's bandwidth."""
    return decode_step(_model(name), tokens).seconds(n.workload.gpu)


@known
def sequences(
    n: Numbers,
    name: str,
    tokens: int,
    gpu: str = "",
    cache: str = "float16",
    weights: str = "float16",
) -> int:
    """Whole sequences that a GPU holds beside the model's weights, each of an element type."""
    found = fit(_model(name), tokens, gpu_named(n, gpu), cache, weights_dtype=weights)
    return _published(name, found)


@known
def model_weights(_: Numbers, name: str, dtype: str = "float16") -> int:
    """Bytes of a model's weights."""
    return _published(name, weight_bytes(_model(name), dtype))


@known
def gpu_memory(n: Numbers, gpu: str = "") -> int:
    """Bytes of a GPU's memory."""
    return gpu_named(n, gpu).memory_bytes


@known
def published(_: Numbers, model: str, figure: str = "score") -> float:
    """A figure of assets/quality.toml: `score`, `seconds` of a sample, or `cached`, thousands."""
    found = named("model", model, published_scores(), "; ")
    value = {"score": found.score, "seconds": found.seconds, "cached": found.cached}
    out = named("figure", figure, value)
    if out is None:
        raise refuse("", "figure", figure, f"one that is published of {model}")
    return out


# --- a smaller one ------------------------------------------------------------------------------


@known
def evicted(n: Numbers, policy: str, budget: int, figure: str = "error") -> float:
    """`error` of O with a cache of so few `tokens` by a policy, relative, its `bytes`, or `gone`.

    `gone` is the weight of tokens that have left, had they stayed, a mean over later rows. It is
    of the layer that “Keep less” shows.
    """
    tokens = _pressed(n.trace).layer.tokens
    name = chosen("policy", policy, [each.name for each in POLICIES])
    figures = _evicted(n.trace, name, whole("budget", budget, 1, tokens))
    return named("figure", figure, figures)


@known
def rounded_cache(n: Numbers, dtype: str, grain: str, figure: str = "error") -> float:
    """`error` of O with a cache of `fp8`, `int8` or `int4`, or its `bytes`.

    `grain` is what has a scale: `tensor`, `head` or `token`.
    """
    kind = chosen("dtype", dtype, SMALL), chosen("grain", grain, GRAINS)
    one = quantised(_pressed(n.trace), *kind)
    return named("figure", figure, {"error": one.error, "bytes": one.bytes})


@known
def whole_cache(n: Numbers, part: str) -> int:
    """`bytes`, `tokens` or `heads` of the whole cache of the layer that “Keep less” shows."""
    found = _pressed(n.trace)
    layer = found.layer
    parts = {"bytes": found.bytes, "tokens": layer.tokens, "heads": layer.workload.kv_heads}
    return named("part", part, parts)


@once_a_run
def _pressed(trace: Trace) -> Pressure:
    return unpressed(*shown_run(*trace.single_heads))


@once_a_run
def _evicted(trace: Trace, policy: str, budget: int) -> dict[str, float]:
    found = _pressed(trace)
    kept, cost = found.decoded(policy_named(policy), budget)
    gone = weight_gone(found.layer, kept, budget)
    return {"error": cost.error, "bytes": cost.bytes, "tokens": cost.budget, "gone": gone}


def _published(name: str, found: int | None) -> int:
    if found is None:
        raise refuse("", "model", name, "one with a published number of parameters")
    return found


def _model(name: str, kv_heads: int = 0) -> AttentionModel:
    found = named("model", name, models())
    return with_kv_heads(found, kv_heads) if kv_heads else found
