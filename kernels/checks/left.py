"""All tensors that kernels leave in memory, and whether two runs leave the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.cuda.engine import widened
from kernels.cuda.launch import Device, Tensors, written
from simulator.problem.workload import Workload
from simulator.program.algorithms import algorithm_of, takes_turns, tile_program

Left = dict[str, NDArray[Any]]
"""Bits of the tensors that kernels write, by their names in `Tensors`."""

ROUNDING = {"float16": 2.0**-11, "bfloat16": 2.0**-8}  # half a unit in the last place, relative
_SMALLEST = 2.0**-24
"""The step of float16 where it is finest; also half a unit in the last place of float32."""


def left_by(tensors: Tensors, device: Device) -> Left:
    """Return everything that kernels have written."""
    return {name: device.download(buffer) for name, buffer in written(tensors).items()}


def of_any_order(w: Workload) -> frozenset[str]:
    """Return the tensors whose last bits depend on the order in which thread blocks add."""
    if not algorithm_of(w).adds or takes_turns(w):
        return frozenset()
    found: set[str] = set()
    for launch in tile_program(w).launches:
        if found & launch.reads.keys():
            found |= set(launch.writes)
        found |= launch.reads.keys() & set(launch.writes)
    return frozenset(name.lower() for name in found)


def differing(w: Workload, got: Left, want: Left) -> list[str]:
    """Return the tensors in which two runs differ by more than the order of sums."""
    if set(got) != set(want):
        return [f"{sorted(got)}, where {sorted(want)} were expected"]
    loose = of_any_order(w)
    return [
        name
        for name, ours in got.items()
        if ours.tobytes() != want[name].tobytes()
        and not (name in loose and _same_but_for_order(w, ours, want[name]))
    ]


def _same_but_for_order(w: Workload, got: NDArray[Any], want: NDArray[Any]) -> bool:
    """Return whether the order of sums, one term a column block, explains the difference."""
    ours, theirs = (widened(x, w.dtype) for x in (got, want))
    largest = float(np.abs(theirs).max())
    allowed = w.grid.Tc * 4 * _SMALLEST * largest + _SMALLEST
    if got.dtype != np.float32:  # each was rounded on its way to HBM
        allowed += 2 * ROUNDING[w.dtype] * largest
    # Written so that NaN, for which every comparison is false, counts as a difference.
    return bool(np.all(np.abs(ours - theirs) <= allowed))
