"""How far the gradients of a backward pass are from float64 during a run.

A gradient so far is held against the same ops in float64 at the same cursor, row by row or key by
key.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.base.dtypes import F32, F64, frozen
from simulator.program.algorithms import TENSORS
from simulator.run.exactness import ROUNDING, ErrorStrip, Exactness, RowError
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace


def gradient_errors(trace: Trace, now: Snapshot) -> Exactness:
    """Return the errors of the gradients of the current head so far.

    Returns: one strip for gradients of rows and one for gradients of keys, in units in the last
        place of the largest number of each gradient so far, because a row that sees one key alone
        has a dQ of 0. Errors are unknown if the run is too large to keep all numbers of a head.
    """
    algorithm, w = trace.program.algorithm, trace.workload
    given = {spec.name for spec in algorithm.gates}
    made = [TENSORS[name] for name in algorithm.outside.values() if name not in given]
    of_rows = tuple(spec.name for spec in made if "row" in spec.axes)
    of_keys = tuple(spec.name for spec in made if "key" in spec.axes)
    exact = None if now.head is None else trace.exact(now)
    return Exactness(
        now=_strip(now, exact, of_rows, w.seqlen_q),
        half=_strip(now, exact, of_keys, w.seqlen_k),
        half_overflows=0,
        rescale=None,
        largest=None,
        rounding=ROUNDING[w.dtype],
        missing=False,
        gradients=(of_rows, of_keys),
    )


def _strip(now: Snapshot, exact: Snapshot | None, names: Sequence[str], count: int) -> ErrorStrip:
    """Return the largest error of some gradients in each row, or of each key."""
    worst = np.zeros(count)
    if now.head is None or exact is None or exact.head is None:
        return ErrorStrip(frozen(worst), frozen(np.full(count, RowError.UNKNOWN, dtype=np.uint8)))
    there = np.zeros(count, dtype=np.bool_)
    for name in names:
        ours, theirs = now.head.others[name], exact.head.others[name].astype(np.float64)
        exists = ~np.isnan(theirs).any(axis=1)
        there |= exists
        worst[exists] = np.maximum(worst[exists], _units(ours[exists], theirs[exists]))
    broken = there & ~np.isfinite(worst)
    states = np.where(broken, RowError.BROKEN, np.where(there, RowError.KNOWN, RowError.EMPTY))
    return ErrorStrip(frozen(np.where(broken, 0.0, worst)), frozen(states.astype(np.uint8)))


def _units(ours: F32, exact: F64) -> F64:
    """Return each row's largest error in units in the last place of the largest exact number."""
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(ours.astype(np.float64) - exact).max(axis=1)
    largest = np.float32(np.abs(exact).max(initial=0.0))
    unit = float(np.spacing(max(largest, np.finfo(np.float32).tiny)))
    return np.where(np.isfinite(off), off / unit, np.inf)
