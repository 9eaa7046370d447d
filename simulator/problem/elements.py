"""Element types of tensors in files: the dtype that a run takes them as, and their values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import F32, DType, bfloat16_from_bits, frozen, round_to

Element = Literal["float64", "float32", "float16", "bfloat16", "F8_E4M3", "F8_E5M2"]

SAFETENSORS: dict[str, Element] = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "F8_E4M3",
    "F8_E5M2": "F8_E5M2",
}
"""The element types by their names in the header of a safetensors file."""
NPY: dict[str, Element] = {
    "f8": "float64",
    "f4": "float32",
    "f2": "float16",
    # numpy has no bfloat16: ml_dtypes saves it as a 2-byte void, others as its bit patterns.
    "V2": "bfloat16",
    "u2": "bfloat16",
}
"""The element types by their names in an .npz array's header, without the order of bytes."""
STORED: dict[Element, np.dtype[np.generic]] = {
    "float64": np.dtype("<f8"),
    "float32": np.dtype("<f4"),
    "float16": np.dtype("<f2"),
    "bfloat16": np.dtype("<u2"),
    "F8_E4M3": np.dtype("u1"),
    "F8_E5M2": np.dtype("u1"),
}
F8: tuple[Element, ...] = ("F8_E4M3", "F8_E5M2")
_DTYPES: dict[Element, DType] = {"float32": "float32", "float16": "float16", "bfloat16": "bfloat16"}


def dtype_of(elements: Iterable[Element], said: DType | None = None) -> DType:
    """Return the dtype in which a run has tensors of these element types: the widest of them.

    said: the scenario's dtype, for float64 and F8; without it, float64 becomes float32 and F8
        bfloat16. Float16 and bfloat16 together become float32: neither can represent the other's
        numbers.
    """
    found = set(elements)
    if "float64" in found:
        return said or "float32"
    wide = found - set(F8)
    if not wide:
        return said or "bfloat16"
    return _DTYPES[wide.pop()] if len(wide) == 1 else "float32"


def values_of(stored: NDArray[np.generic], element: Element, dtype: DType) -> F32:
    """Return stored numbers as float32, rounded to a run's dtype; F8 is rounded after its scale."""
    values: F32
    if element in F8:
        values = _F8_VALUES[element][stored.view(np.uint8)]
    elif element == "bfloat16":
        values = bfloat16_from_bits(stored.view(np.uint16))
    else:
        with np.errstate(over="ignore"):  # an infinity is refused in a moment, with its place
            values = stored.astype(np.float32, copy=False)
    if element != dtype and element not in F8:
        with np.errstate(over="ignore"):
            values = round_to(values, dtype)
    return values


def _f8_values(fraction: int, bias: int) -> F32:
    """Return the values of all bit patterns of a sign, an exponent and a fraction, (256,)."""
    bits = np.arange(256)
    exponent, low = (bits & 0x7F) >> fraction, bits & (2**fraction - 1)
    normal = exponent > 0
    size = np.ldexp(low / 2**fraction + normal, np.where(normal, exponent, 1) - bias)
    values: F32 = np.where(bits < 128, size, -size).astype(np.float32)
    return values


def _e4m3() -> F32:
    values = _f8_values(3, 7)
    values[[0x7F, 0xFF]] = np.nan  # e4m3 has no infinities
    return frozen(values)


def _e5m2() -> F32:
    values = _f8_values(2, 15)
    for sign, start in ((1, 0x7C), (-1, 0xFC)):
        values[start : start + 4] = sign * np.inf, np.nan, np.nan, np.nan
    return frozen(values)


_F8_VALUES: dict[Element, F32] = {"F8_E4M3": _e4m3(), "F8_E5M2": _e5m2()}
