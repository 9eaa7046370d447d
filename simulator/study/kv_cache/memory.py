"""How many GPUs a model and its cache need, and how fast these decode at most.

Powers of ten throughout: a GB is 10**9 bytes, as in data sheets. The cache is window-capped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from simulator.problem.hardware import Gpu
from simulator.problem.models import AttentionModel, with_kv_heads, with_latent
from simulator.study.heads.sharing import head_sharing, kv_head_counts
from simulator.study.kv_cache.counts import cache_bytes, deepseek_latent, weight_bytes

_USUAL_GROUPS = 8


def gpus_for(count: int, gpu: Gpu) -> int:
    """Return how many GPUs have a memory of so many bytes together, at least 1."""
    return max(1, -(-count // gpu.memory_bytes))


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """The needs of some conversations of equal length."""

    model: AttentionModel
    gpu: Gpu
    cache: int  # bytes, of all conversations
    weights: int | None  # bytes; None: not known
    read: int | None  # bytes of the weights that a step reads: of a mixture, one token's experts
    batch: int = 1  # conversations

    @property
    def gpus(self) -> int | None:
        """The fewest GPUs whose memory holds weights and cache, with nothing else in it."""
        return None if self.weights is None else gpus_for(self.weights + self.cache, self.gpu)

    @property
    def tokens_per_second(self) -> float | None:
        """An upper bound for all conversations: weights and cache are read once for each token.

        All is dealt out evenly to the GPUs that are needed, and nothing but their data sheet's
        bandwidth takes any time.
        """
        if self.gpus is None or self.read is None:
            return None
        return self.batch * self.gpus * self.gpu.tbps * 1e12 / (self.read + self.cache)

    @property
    def larger_from(self) -> int | None:
        """The fewest conversations whose caches are larger than the weights."""
        return None if self.weights is None else self.batch * self.weights // self.cache + 1

    def filled(self) -> Iterator[tuple[int, int]]:
        """Yield the bytes of weights and of cache on each GPU, filled one after another."""
        weights, cache = self.weights or 0, self.cache
        for _ in range(self.gpus or 0):
            first = min(weights, self.gpu.memory_bytes)
            second = min(cache, self.gpu.memory_bytes - first)
            weights, cache = weights - first, cache - second
            yield first, second


def need(
    model: AttentionModel,
    tokens: int,
    gpu: Gpu,
    dtype: str = "float16",
    weights_dtype: str = "float16",
    batch: int = 1,
) -> MemoryNeed:
    """Return the needs of conversations of so many tokens.

    Raises InputError: a count is out of range, or an element type is not known.
    """
    cache = cache_bytes(model, tokens, dtype, batch).window_capped
    read = weight_bytes(model, weights_dtype, active=True)
    return MemoryNeed(model, gpu, cache, weight_bytes(model, weights_dtype), read, batch)


def usual_groups(heads: int) -> int | None:
    """Return 8 KV heads or the middle divisor; None if GQA cannot differ from MHA and MQA."""
    between = [n for n in kv_head_counts(heads) if 1 < n < heads]
    if _USUAL_GROUPS in between:
        return _USUAL_GROUPS
    return between[len(between) // 2] if between else None


@lru_cache(maxsize=64)
def sharings(model: AttentionModel) -> Mapping[str, AttentionModel]:
    """Return the model as MHA, GQA, MQA and MLA: one as published, others supposed and named so.

    Windows stay. Parameters change by the known sizes of the projections: W_K and W_V, or MLA's
    down and up projections and the columns of W_Q for RoPE. They are None if a width is not known.
    """
    groups = usual_groups(model.heads)
    supposed = {
        "MHA": with_kv_heads(model, model.heads),
        **({"GQA": with_kv_heads(model, groups)} if groups else {}),
        "MQA": with_kv_heads(model, 1),
        "MLA": with_latent(model, *deepseek_latent(model.head_dim)),
        model.kind: model,
    }
    return {
        kind: each
        if each is model
        else replace(_weighed(each, model), name=f"{model.name} as {kind}")
        for kind, each in supposed.items()
    }


def _weighed(supposed: AttentionModel, model: AttentionModel) -> AttentionModel:
    """Return a model that shares its heads in another way, with its new number of parameters."""
    then, now = _key_parameters(supposed), _key_parameters(model)
    if then is None or now is None or model.params_billion is None:
        return replace(supposed, params_billion=None, active_params_billion=None)
    more, active = model.layers * (then - now) / 1e9, model.active_params_billion
    return replace(
        supposed,
        params_billion=model.params_billion + more,
        active_params_billion=None if active is None else active + more,
    )


def _key_parameters(model: AttentionModel) -> int | None:
    """Return the parameters of a layer from which keys, values and queries for RoPE are made."""
    total = 0
    for each in head_sharing(model).projections:
        if each.part_of in ("W_K", "W_V") or each.name == "W_QR":
            if each.parameters is None:
                return None
            total += each.parameters
    return total
