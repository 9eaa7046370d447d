"""The bytes of a KV cache written out as a product."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod

from simulator.problem.models import AttentionModel
from simulator.study.kv_cache.counts import (
    ELEMENT_BITS,
    PAGE_SIZE,
    Convention,
    LayerGroup,
    layer_groups,
    layer_row_bytes,
)


@dataclass(frozen=True, slots=True)
class Factor:
    """One factor of the product."""

    value: Fraction  # the number
    name: str  # what is counted
    bytes: bool = False  # whether it is in bytes


@dataclass(frozen=True, slots=True)
class FormulaTerm:
    """Layers that keep equally many tokens."""

    layers: int
    tokens: int


@dataclass(frozen=True, slots=True)
class CacheFormula:
    """Factors of all layers, times the sum of layers × tokens."""

    factors: tuple[Factor, ...]  # factors that every layer has in common
    terms: tuple[FormulaTerm, ...]  # layers and the tokens of each; one unless some have a window

    @property
    def total(self) -> int:
        """The bytes of the cache."""
        whole = prod((each.value for each in self.factors), start=Fraction(1))
        return int(whole * sum(term.layers * term.tokens for term in self.terms))


def cache_formula(
    model: AttentionModel,
    tokens: int,
    dtype: str = "float16",
    batch: int = 1,
    page_size: int = PAGE_SIZE,
    convention: Convention = "window_capped",
) -> CacheFormula:
    """Return the product behind one of the counts of `cache_bytes`."""

    def held(group: LayerGroup) -> int:
        if convention == "allocated":
            return group.allocated(tokens, page_size)
        return tokens if convention == "logical" else group.held(tokens)

    many: dict[int, int] = {}
    for group in layer_groups(model, dtype):
        many[held(group)] = many.get(held(group), 0) + group.layers
    terms = tuple(FormulaTerm(layers, length) for length, layers in many.items())
    return CacheFormula((*_row(model, dtype), Factor(Fraction(batch), "conversations")), terms)


def _row(model: AttentionModel, dtype: str) -> tuple[Factor, ...]:
    """Return the factors of one token in one layer."""
    if model.cached_numbers * ELEMENT_BITS[dtype] % 8:  # rounded up, so it is no product
        return (Factor(Fraction(layer_row_bytes(model, dtype)), f"row of {dtype}", bytes=True),)
    element = Factor(Fraction(ELEMENT_BITS[dtype], 8), dtype, bytes=True)
    if model.kv_heads is None:
        return Factor(Fraction(model.cached_numbers), "latent + rope"), element
    return (
        Factor(Fraction(2), "K and V"), Factor(Fraction(model.kv_heads), "KV heads"),
        Factor(Fraction(model.head_dim), "head size"), element,
    )  # fmt: skip
