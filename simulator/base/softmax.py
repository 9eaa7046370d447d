"""The softmax of rows, in float64."""

from __future__ import annotations

import numpy as np

from simulator.base.dtypes import F64


def softmax_rows(scores: F64, sink: float | None = None) -> F64:
    """Return the softmax of each row; 0 for a row of −∞. A sink joins its denominator."""
    # In a row of nothing but −∞, any finite top makes the weights 0.
    top = np.maximum(scores.max(axis=1, keepdims=True), np.finfo(scores.dtype).min)
    if sink is not None:
        top = np.maximum(top, sink)
    p = np.exp(scores - top)
    total = p.sum(axis=1, keepdims=True)
    if sink is not None:
        total = total + np.exp(sink - top)
    # The largest score adds 1, so a smaller total belongs to a row of nothing but −∞.
    return np.asarray(p / np.maximum(total, 1.0))
