"""The figures of the card in words."""

from __future__ import annotations

from simulator.problem.models import AttentionModel
from simulator.study.kv_cache.counts import ELEMENT_BITS
from simulator.study.kv_cache.memory import MemoryNeed
from ui.look.units import count_text, decimal_bytes_text, plural
from ui.panels.kv_cache.state import CacheChoice


def product_words(model: AttentionModel, dtype: str) -> str:
    """Return the bytes of a token as a product."""
    element = ELEMENT_BITS[dtype] / 8
    each = f"{element:g} byte{'s' * (element != 1)}"
    if model.is_latent:
        return f"{model.layers} layers × ({model.latent_dim} + {model.rope_dim}) × {each}"
    heads = plural(model.kv_heads or 0, "KV head")
    return f"2 × {model.layers} layers × {heads} × {model.head_dim} × {each}"


def figures(count: int, largest: int) -> str:
    """Return bytes in the unit of the largest value in a column."""
    unit = decimal_bytes_text(largest).split(" ")[1]
    scale = 1000 ** ("B", "kB", "MB", "GB", "TB", "PB").index(unit)
    return f"{count / scale:.2f} {unit}"


def conversation_words(found: MemoryNeed) -> tuple[str, ...]:
    """Return from how many conversations on the cache is larger than the weights."""
    many = found.larger_from
    if many is None:
        return ("weights not known",)
    each = "conversation 1" if many == 1 else f"{count_text(many)} conversations on"
    return f"cache larger from {each}", f"from {count_text(many)} on"


def bar_tip(c: CacheChoice, kind: str, dtype: str) -> str:
    """Return the formula of a bar with its numbers."""
    found = c.needed(kind, dtype)
    cache = decimal_bytes_text(found.cache)
    said = f"{kind}: {product_words(found.model, dtype)} a token, {count_text(c.tokens)} tokens"
    if found.weights is None or found.gpus is None or found.read is None:
        return f"{said}: {cache}. Weights not known."
    both = f"{found.weights / 1e9:.1f} + {found.cache / 1e9:.2f}"
    return (
        f"{said}: {cache}. ({both}) / {c.gpu.memory_gb} GB: {plural(found.gpus, 'GPU')}. "
        f"{found.gpus} × {c.gpu.tbps:g} TB/s / ({found.read / 1e9:.1f} + {found.cache / 1e9:.2f}) "
        f"GB: at most {found.tokens_per_second:.1f} tokens a second."
    )


def rate_words(found: MemoryNeed, about: str) -> str:
    """Return tokens a second."""
    rate = found.tokens_per_second
    if rate is None:
        return "–"
    return f"{about}{rate:.1f}" if rate < 1e4 else f"{about}{count_text(rate)}"
