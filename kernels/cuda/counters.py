"""Requested bytes and FLOPs as the kernels count them, tile by tile."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from simulator.program.tile_program import Counters

_PARTIALS = ("O_partial", "LSE_partial")
_READ = (
    "Q", "K", "V", "S", "P", "O", "l", "m", *_PARTIALS, "state", "sink", "decay", "strength",
    "C", "table", "dO", "LSE", "D", "dQ_acc", "dP", "dS", "gate",
)  # fmt: skip
_WRITTEN = (
    "S", "P", "O", "LSE", "l", "m", *_PARTIALS, "state", "D", "dQ_acc", "dQ", "dK", "dV",
    "dP", "dS",
)  # fmt: skip
COUNTERS = (
    *(("read", name) for name in _READ),
    *(("write", name) for name in _WRITTEN),
    ("flops", ""),
)
"""The enum `Counter` of common.cuh, in its order."""


def total(counted: Iterable[NDArray[np.uint64]], tensors: Iterable[str]) -> Counters:
    """Return the sums of counters, by tensor.

    counted: (..., counters) uint64 of each launch, bytes and FLOPs.
    tensors: tensors that have an entry even if nothing of them was requested.
    """
    sums = np.zeros(len(COUNTERS), dtype=np.uint64)
    for launch in counted:
        sums += launch.reshape(-1, len(COUNTERS)).sum(axis=0)
    read = dict.fromkeys(tensors, 0)
    write = dict.fromkeys(read, 0)
    flops = 0
    for (way, tensor), amount in zip(COUNTERS, sums.tolist(), strict=True):
        if way == "flops":
            flops = amount
            continue
        into = read if way == "read" else write
        if amount or tensor in into:
            into[tensor] = amount
    return Counters(read, write, flops)
