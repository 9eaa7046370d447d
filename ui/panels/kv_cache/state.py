"""The state of the memory card: the words of its sentence, and the choices of views below it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from simulator.problem.hardware import Gpu
from simulator.problem.models import AttentionModel, with_shapes
from simulator.study.heads.sharing import kv_head_counts
from simulator.study.kv_cache.counts import PAGE_SIZE, CacheBytes, Convention, cache_bytes
from simulator.study.kv_cache.memory import MemoryNeed, need, sharings
from ui.session.model_choice import FIRST_TOKENS

MOST_TOKENS = 2**20
_LINEAR_MOST = 2**17
CONVENTION_NAMES: dict[Convention, str] = {
    "logical": "logical",
    "window_capped": "window-capped",
    "allocated": "allocated",
}
ALL_TOKENS = "all tokens"
"""The name of two counts that are the same because no layer has a window."""
TYPE_NAMES: Mapping[str, str] = {
    "float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "fp8": "fp8", "int8": "int8",
    "int4": "int4",
}  # fmt: skip
CURVE, TABLE, FORMULA, DECODING = "curve", "table", "formula", "decoding"
LAYERS, KV_HEADS, HEAD_SIZE = "layers", "KV heads", "head size"
_MOST_LAYERS, _MOST_SIZE, _SIZE_STEP = 160, 512, 8


@dataclass(frozen=True, slots=True)
class CacheChoice:
    """The choices to count the cache for."""

    published: AttentionModel
    gpu: Gpu
    tokens: int = FIRST_TOKENS  # of each conversation
    dtype: str = "float16"  # element type of the cache
    weights_dtype: str = "float16"
    changed: AttentionModel | None = None  # the model with other shapes or parameters
    kind: str = ""  # MHA, GQA, MQA or MLA, where it is not the model's own
    batch: int = 1  # conversations
    convention: Convention = "window_capped"  # which count curve and formula show
    page_size: int = PAGE_SIZE
    log: bool = True  # whether the axes of the curve are logarithmic
    opened: str = ""  # the view that is open in place of the bars
    decodes: bool = False  # whether every conversation is given one token after another
    controls: bool = True  # whether somebody can use the words of the sentence
    slide: bool = False  # whether an audience sees the card: then a curve has all the room

    @property
    def base(self) -> AttentionModel:
        """The model with its own way to share heads."""
        return self.changed or self.published

    @property
    def model(self) -> AttentionModel:
        """The model that shares its heads in the chosen way."""
        return sharings(self.base)[self.kind] if self.kind else self.base

    @property
    def most(self) -> int:
        """Tokens at the right end of the axis."""
        return MOST_TOKENS if self.log else max(_LINEAR_MOST, self.tokens)

    @property
    def counts(self) -> CacheBytes:
        """The cache by the three conventions."""
        return cache_bytes(self.model, self.tokens, self.dtype, self.batch, self.page_size)

    @property
    def types(self) -> tuple[str, str, str]:
        """A wide element type, one of a byte and one of half a byte; `dtype` takes its place."""
        wide = self.dtype if self.dtype in ("float32", "bfloat16") else "float16"
        return wide, "int8" if self.dtype == "int8" else "fp8", "int4"

    def needed(self, kind: str = "", dtype: str = "") -> MemoryNeed:
        """Return the memory needed with heads shared as `kind` and a cache of type `dtype`."""
        model = sharings(self.base)[kind] if kind else self.model
        wide = dtype or self.dtype
        return need(model, self.tokens, self.gpu, wide, self.weights_dtype, self.batch)

    def taking(self, kind: str, dtype: str) -> CacheChoice:
        """Return the choice with heads shared as `kind` and a cache of type `dtype`."""
        return replace(self, kind="" if kind == self.base.kind else kind, dtype=dtype)

    def at(self, tokens: int) -> CacheChoice:
        """Return the choice at another length."""
        return replace(self, tokens=min(max(tokens, 1), MOST_TOKENS))

    def shaped(self, name: str, more: int) -> CacheChoice:
        """Return the choice with one more or fewer layer, divisor or step of the head size."""
        m = self.base
        layers, heads, size = m.layers, m.kv_heads, m.head_dim
        if name == LAYERS:
            layers = min(max(layers + more, 1), max(_MOST_LAYERS, layers))
        elif name == KV_HEADS and heads is not None:
            counts = kv_head_counts(m.heads)[::-1]
            heads = counts[min(max(counts.index(heads) + more, 0), len(counts) - 1)]
        elif name == HEAD_SIZE:
            step = size + more * _SIZE_STEP
            size = min(max(step - step % _SIZE_STEP, _SIZE_STEP), max(_MOST_SIZE, size))
        changed = with_shapes(self.published, layers, heads, size)
        return replace(self, kind="", changed=None if changed is self.published else changed)


def counted(model: AttentionModel) -> dict[str, tuple[Convention, ...]]:
    """Return the names of the counts of a model, and which conventions each stands for."""
    if model.windowed_layers:
        return {name: (key,) for key, name in CONVENTION_NAMES.items()}
    allocated = CONVENTION_NAMES["allocated"]
    return {ALL_TOKENS: ("logical", "window_capped"), allocated: ("allocated",)}


def count_name(choice: CacheChoice) -> str:
    """Return the name of the chosen count for the model."""
    return next(name for name, keys in counted(choice.model).items() if choice.convention in keys)
