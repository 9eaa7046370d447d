"""The one matrix product: judged by its result."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def matmul(a: NDArray[Any], b: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
    """Return ``a @ b``.

    NumPy warns of what the processor's flags say, and those are set for more than the product:
    some BLAS fill vector registers up with whatever lies in memory and compute that, too. So a
    flag counts only where a number of the result is not finite; then the caller's
    `numpy.errstate` decides, as ever.

    Parameters
    ----------
    a, b : ndarray
        As `numpy.matmul` takes them.
    out : ndarray, optional
        Where the product goes; neither `a` nor `b`.
    """
    flags: list[str] = []
    with np.errstate(
        invalid="call", over="call", divide="call", call=lambda kind, _: flags.append(kind)
    ):
        product = np.matmul(a, b, out=out)
    if flags and not np.isfinite(product).all():
        return np.asarray(np.matmul(a, b, out=out))
    return np.asarray(product)
