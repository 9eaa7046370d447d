"""Y of a whole layer against float64, from x to Y."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from simulator.base.dtypes import F32
from simulator.engines.reference import reference_rows
from simulator.problem.layer import Layer
from simulator.problem.workload import Inputs, Workload


def output_error(
    workload: Workload, inputs: Inputs, layer: Layer, found: Iterable[tuple[range, F32]]
) -> float:
    """Return the largest difference of Y from float64, 0 where nothing was checked.

    inputs: Q, K and V of the run; the comparison makes its own from x in float64, rounded alike.
    found: some rows, and O of all heads in these rows, (H, rows, dv).
    """
    q, k, v = layer.heads(exact=True)
    exact = replace(inputs, q=q.reshape(inputs.q.shape), k=k, v=v)  # gates stay as they are
    worst = 0.0
    for rows, o in found:
        parts = [reference_rows(workload, exact, head, rows)[0] for head in range(workload.heads)]
        with np.errstate(invalid="ignore"):  # a NaN must not count as a small error
            difference = layer.output(o) - layer.output(np.stack(parts), exact=True)
            worst = float(np.max([worst, np.max(np.abs(difference))]))
    return worst
