"""The element types of Q, K, V and O in HBM, and rounding to them."""

from __future__ import annotations

from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

TYPE_NAMES = ("float32", "float16", "bfloat16")
DType = Literal["float32", "float16", "bfloat16"]
WIDTH: dict[str, int] = {"float32": 4, "float16": 2, "bfloat16": 2}
UNIT: dict[str, float] = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""The step from 1 to the next number: the largest relative unit in the last place."""
STATISTIC_WIDTH = 4
"""Bytes of one number of m, l, lse, and of an O that is kept in float32."""

E4M3_LARGEST = 448.0
"""Largest number of e4m3, which has no infinity (Micikevicius et al. 2022, table 1)."""
_E4M3_FRACTION, _E4M3_LEAST = 3, -6
"""Bits of e4m3's fraction, and the exponent below which e4m3 numbers are evenly spaced."""

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
A = TypeVar("A", bound=np.generic)


def frozen(array: NDArray[A]) -> NDArray[A]:
    """Make an array read-only and return it."""
    array.flags.writeable = False
    return array


def bfloat16_from_bits(bits: NDArray[np.uint16]) -> F32:
    """Return the float32 values of bfloat16 bit patterns (any shape)."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def round_to(values: F32, dtype: DType) -> F32:
    """Return `values` (float32, any shape) rounded to `dtype`, to nearest even, as float32."""
    if dtype == "float32":
        return values
    if dtype == "float16":
        return values.astype(np.float16).astype(np.float32)
    bits = np.ascontiguousarray(values).view(np.uint32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    rounded = (bits + np.uint32(0x7FFF) + odd) & np.uint32(0xFFFF0000)
    # The rounding add would turn some NaN patterns into infinity.
    return np.where(np.isnan(values), values, rounded.view(np.float32))


def round_to_e4m3(values: F64) -> F64:
    """Return `values` (any shape) rounded to e4m3, to nearest even; larger numbers become 448.

    Infinities become 448 as well, and NaN stays.

    References
    ----------
    Micikevicius et al. 2022, "FP8 Formats for Deep Learning", section 3.
    """
    exponents = np.frexp(values)[1] - 1  # frexp's fraction is from 0.5 to 1
    steps = np.ldexp(1.0, np.maximum(exponents, _E4M3_LEAST) - _E4M3_FRACTION)
    nearest: F64 = np.rint(values / steps) * steps
    return nearest.clip(-E4M3_LARGEST, E4M3_LARGEST)
