"""Keys and values in elements of fewer bits, with scales, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np

from simulator.base.dtypes import E4M3_LARGEST, F64, STATISTIC_WIDTH, round_to_e4m3
from simulator.base.errors import refuse
from simulator.study.kv_cache.counts import whole_bytes

Small = Literal["fp8", "int8", "int4"]
SMALL: tuple[Small, ...] = get_args(Small)
Grain = Literal["tensor", "head", "token"]
GRAINS: tuple[Grain, ...] = get_args(Grain)
"""The part with a scale of its own: K or V of a layer, of a KV head, or of a token in a KV head."""
LARGEST: Mapping[str, float] = {"fp8": E4M3_LARGEST, "int8": 127.0, "int4": 7.0}
"""The code of the largest number of a scale: whole numbers are symmetric, without the least."""
_AXES: Mapping[str, tuple[int, ...]] = {"tensor": (0, 1, 2), "head": (1, 2), "token": (2,)}
_LEAST = float(np.finfo(np.float32).smallest_normal)
"""The least scale: a row of zeros has it."""


def scales_of(x: F64, dtype: Small, grain: Grain) -> F64:
    """Return the scales of K or V, which are float32 numbers.

    Parameters
    ----------
    x : ndarray
        (kv_heads, tokens, n) float64, finite.
    dtype, grain : str
        Element type, and the part with a scale of its own.

    Returns
    -------
    scales : ndarray
        float64, of as many axes as `x`.

    Raises
    ------
    InputError
        A number is infinite or NaN: no scale suits it.
    """
    if not np.isfinite(x).all():
        raise refuse("quantisation", "K or V", float(x[~np.isfinite(x)][0]), "finite numbers")
    largest = np.abs(x).max(axis=_AXES[grain], keepdims=True)
    # In float32 as they are stored; a scale may be a little less than asked for.
    scales: F64 = np.maximum(largest / LARGEST[dtype], _LEAST).astype(np.float32).astype(np.float64)
    return scales


def rounded(x: F64, dtype: Small, grain: Grain) -> F64:
    """Return K or V, (kv_heads, tokens, n) float64, as they are after quantisation and back.

    Raises InputError: a number is infinite or NaN.
    """
    scales, most = scales_of(x, dtype, grain), LARGEST[dtype]
    units = x / scales
    codes = round_to_e4m3(units) if dtype == "fp8" else np.clip(np.rint(units), -most, most)
    return codes * scales


def stored_bytes(shape: tuple[int, int, int], dtype: Small, grain: Grain) -> int:
    """Return the bytes of K or V of a shape (kv_heads, tokens, n), a float32 for each scale."""
    heads, tokens, numbers = shape
    scales = {"tensor": 1, "head": heads, "token": heads * tokens}[grain]
    return whole_bytes(heads * tokens * numbers, dtype) + scales * STATISTIC_WIDTH
