"""The one matrix product; its warnings are judged by its result."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def matmul(a: NDArray[Any], b: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
    """Return ``a @ b``.

    NumPy warns when the processor's flags are set, but they may be set for other numbers than the
    product's: some BLAS libraries fill vector registers with whatever is in memory and compute
    that, too. So a flag counts only if a number of the result is not finite; then the caller's
    `numpy.errstate` decides, as usual.

    a, b: as `numpy.matmul` takes them.
    out: where the product goes; neither `a` nor `b`.
    """
    flags: list[str] = []
    with np.errstate(
        invalid="call", over="call", divide="call", call=lambda kind, _: flags.append(kind)
    ):
        product = np.matmul(a, b, out=out)
    if flags and not np.isfinite(product).all():
        return np.asarray(np.matmul(a, b, out=out))
    return np.asarray(product)
