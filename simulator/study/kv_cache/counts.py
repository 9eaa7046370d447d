"""The KV cache: how many bytes it takes, what a decoding step moves, how many sequences fit.

There are three counts, which are never mixed (docs/counting.md, "KV cache"):

- **logical**: every token in every layer, no cap;
- **window-capped**: a windowed layer holds ``min(tokens, window)`` tokens;
- **allocated**: window-capped, each sequence of each layer rounded up to whole pages.

A single count is an exact int. A curve is float64, exact up to 2**53 bytes, for a plot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simulator.base.dtypes import frozen
from simulator.base.errors import refuse
from simulator.problem.hardware import Gpu
from simulator.problem.models import AttentionModel

ElementType = Literal["float32", "float16", "bfloat16", "fp8", "int8", "int4"]
ELEMENT_TYPES: tuple[ElementType, ...] = get_args(ElementType)
ELEMENT_BITS: Mapping[str, int] = {
    "float32": 32, "float16": 16, "bfloat16": 16, "fp8": 8, "int8": 8, "int4": 4,
}  # fmt: skip
Convention = Literal["logical", "window_capped", "allocated"]
CONVENTIONS: tuple[Convention, ...] = get_args(Convention)

PAGE_SIZE = 16
"""Tokens of a page unless told otherwise, as in vLLM (Kwon et al. 2023, section 4.3)."""
MOST_TOKENS = 2**24
MOST_SEQUENCES = 2**20
MOST_PAGE = 2**16

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LayerGroup:
    """Layers of a model whose caches are alike."""

    layers: int  # how many, at least 1
    window: int  # tokens that each of them keeps at most; 0: all
    row_bytes: int  # bytes of one token of one sequence in all of these layers

    def held(self, tokens: int) -> int:
        """Return how many of `tokens` each layer keeps."""
        return min(tokens, self.window) if self.window else tokens

    def allocated(self, tokens: int, page_size: int) -> int:
        """Return for how many tokens each layer has pages."""
        return -(-self.held(tokens) // page_size) * page_size


@dataclass(frozen=True, slots=True)
class CacheBytes:
    """Bytes of a cache by the three conventions."""

    logical: int
    window_capped: int
    allocated: int


@dataclass(frozen=True, slots=True)
class CacheCurve:
    """A cache while its sequences grow."""

    tokens: I64  # ndarray of int64, shape (n,): tokens of each sequence
    # logical, window_capped, allocated: ndarray of float64, shape (n,): bytes; whole numbers, exact
    # up to 2**53
    logical: F64
    window_capped: F64
    allocated: F64


def layer_row_bytes(model: AttentionModel, dtype: str) -> int:
    """Return the bytes that one token of one sequence takes in one layer.

    The bytes are whole: the numbers of a token, K and V together, are rounded up to a byte. This
    matters only for int4 and an odd count. Scales of fp8, int8 and int4 are not counted.

    Raises InputError: the element type is not known.
    """
    return whole_bytes(model.cached_numbers, dtype)


def whole_bytes(numbers: int, dtype: str) -> int:
    """Return the whole bytes that so many numbers take.

    Raises InputError: the element type is not known.
    """
    if dtype not in ELEMENT_BITS:
        raise refuse("KV cache", "dtype", dtype, f"one of {', '.join(ELEMENT_TYPES)}")
    return -(-numbers * ELEMENT_BITS[dtype] // 8)


def bytes_per_token(model: AttentionModel, dtype: str = "float16") -> int:
    """Return the bytes that one more token of one sequence takes in all layers, with no cap."""
    return model.layers * layer_row_bytes(model, dtype)


def layer_groups(model: AttentionModel, dtype: str = "float16") -> tuple[LayerGroup, ...]:
    """Return the layers without a window, then those with one; groups of no layer are left out."""
    row = layer_row_bytes(model, dtype)
    kinds = ((model.layers - model.windowed_layers, 0), (model.windowed_layers, model.window))
    return tuple(LayerGroup(layers, window, layers * row) for layers, window in kinds if layers)


def cache_bytes(
    model: AttentionModel,
    tokens: int,
    dtype: str = "float16",
    batch: int = 1,
    page_size: int = PAGE_SIZE,
) -> CacheBytes:
    """Return the exact bytes of the cache of `batch` sequences of `tokens` tokens each.

    Raises InputError: a count is out of range, or the element type is not known.
    """
    _check("tokens", tokens, 0, MOST_TOKENS)
    _check("batch", batch, 1, MOST_SEQUENCES)
    _check("page_size", page_size, 1, MOST_PAGE)
    groups = layer_groups(model, dtype)
    return CacheBytes(
        logical=batch * sum(g.row_bytes * tokens for g in groups),
        window_capped=batch * sum(g.row_bytes * g.held(tokens) for g in groups),
        allocated=batch * sum(g.row_bytes * g.allocated(tokens, page_size) for g in groups),
    )


def cache_curve(
    model: AttentionModel,
    tokens: ArrayLike,
    dtype: str = "float16",
    batch: int = 1,
    page_size: int = PAGE_SIZE,
) -> CacheCurve:
    """Return `cache_bytes` for many lengths at once.

    tokens: array_like of int, shape (n,): tokens of each sequence.
    Raises InputError: a count is out of range, or the element type is not known.
    """
    n = _lengths(tokens)
    _check("batch", batch, 1, MOST_SEQUENCES)
    _check("page_size", page_size, 1, MOST_PAGE)
    logical, capped, allocated = (np.zeros(n.shape) for _ in CONVENTIONS)
    for group in layer_groups(model, dtype):
        row = float(group.row_bytes * batch)
        held = np.minimum(n, group.window) if group.window else n
        logical += row * n
        capped += row * held
        allocated += row * (-(-held // page_size) * page_size)
    return CacheCurve(frozen(n), frozen(logical), frozen(capped), frozen(allocated))


def deepseek_latent(head_dim: int) -> tuple[int, int]:
    """Return DeepSeek's choice of (latent_dim, rope_dim) for heads of a width.

    References
    ----------
    DeepSeek-AI 2024, "DeepSeek-V2", section 2.1.4: d_c = 4 d_h, d_h^R = d_h / 2.
    """
    return 4 * head_dim, max(1, head_dim // 2)


def weight_bytes(
    model: AttentionModel, dtype: str = "float16", *, active: bool = False
) -> int | None:
    """Return the bytes of the model's weights, None if their number is not known.

    The number is published and rounded, so the bytes are exact to two or three digits.

    dtype: element type of the weights, which need not be the cache's.
    active: only the weights that one token uses: fewer in a mixture of experts.
    """
    billions = model.params_billion
    if active and model.active_params_billion is not None:
        billions = model.active_params_billion
    return None if billions is None else whole_bytes(round(billions * 10**9), dtype)


def fit(
    model: AttentionModel,
    tokens: int,
    gpu: Gpu,
    dtype: str = "float16",
    page_size: int = PAGE_SIZE,
    weights_dtype: str = "float16",
) -> int | None:
    """Return how many sequences of `tokens` tokens, allocated, one GPU holds beside all weights.

    0 if the weights alone do not fit, None if they are not known. No part of the data sheet's
    memory is reserved for activations or a runtime.

    Raises InputError: a count is out of range, or an element type is not known.
    """
    _check("tokens", tokens, 1, MOST_TOKENS)
    sequence = cache_bytes(model, tokens, dtype, page_size=page_size).allocated
    weights = weight_bytes(model, weights_dtype)
    return None if weights is None else max(0, gpu.memory_bytes - weights) // sequence


@dataclass(frozen=True, slots=True)
class GroupStep:
    """A decoding step in the cache of one layer group; bytes count the whole batch."""

    group: LayerGroup  # the layers
    held: int  # tokens that each layer keeps after the step, including the new one
    dropped: bool  # whether the new token replaces the oldest, which has left the window
    written: int  # written, read: bytes
    read: int


@dataclass(frozen=True, slots=True)
class DecodeStep:
    """One new token for each sequence of a batch."""

    tokens: int  # tokens of each sequence, including the new one
    batch: int  # sequences
    groups: tuple[GroupStep, ...]  # what happens to the cache

    @property
    def written(self) -> int:
        """Bytes that the new tokens write to the cache."""
        return sum(g.written for g in self.groups)

    @property
    def read(self) -> int:
        """Bytes that the step reads of the cache, window-capped and once for each KV head."""
        return sum(g.read for g in self.groups)

    def seconds(self, gpu: Gpu) -> float:
        """Return how long reading the cache takes at the full bandwidth of a GPU."""
        return self.read / (gpu.tbps * 1e12)


def decode_step(
    model: AttentionModel, tokens: int, dtype: str = "float16", batch: int = 1
) -> DecodeStep:
    """Return the step that gives each sequence its token number `tokens`, counted from 1.

    The new token's row is written in every layer; then its query reads everything that the layer
    contains, including this row.

    Raises InputError: a count is out of range, or an element type is not known.
    """
    _check("tokens", tokens, 1, MOST_TOKENS)
    _check("batch", batch, 1, MOST_SEQUENCES)
    groups = tuple(
        GroupStep(
            group,
            held=group.held(tokens),
            dropped=group.held(tokens) == group.held(tokens - 1),
            written=batch * group.row_bytes,
            read=batch * group.row_bytes * group.held(tokens),
        )
        for group in layer_groups(model, dtype)
    )
    return DecodeStep(tokens, batch, groups)


def _lengths(tokens: ArrayLike) -> I64:
    n = np.array(tokens, dtype=np.int64)
    if n.size:
        _check("tokens", int(n.min()), 0, MOST_TOKENS)
        _check("tokens", int(n.max()), 0, MOST_TOKENS)
    return frozen(n)


def _check(key: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise refuse("KV cache", key, value, f"{least} to {most}")
