"""Numbers of models and their KV caches that captions may ask for."""

from __future__ import annotations

from simulator.base.errors import refuse
from simulator.problem.models import AttentionModel, models, with_kv_heads
from simulator.study.captions import Numbers, chosen, gpu_named, known, named
from simulator.study.heads.sharing import head_sharing
from simulator.study.kv_cache.counts import (
    CONVENTIONS,
    bytes_per_token,
    cache_bytes,
    decode_step,
    fit,
    weight_bytes,
)


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


def _published(name: str, found: int | None) -> int:
    if found is None:
        raise refuse("", "model", name, "one with a published number of parameters")
    return found


def _model(name: str, kv_heads: int = 0) -> AttentionModel:
    found = named("model", name, models())
    return with_kv_heads(found, kv_heads) if kv_heads else found
