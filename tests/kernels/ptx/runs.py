"""What is looked at in a run of PTX: every tensor of both builds, and beside the host's kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import numpy as np

from kernels.cuda.engine import widened
from kernels.cuda.fast import FastRun
from kernels.cuda.launch import Tensors
from kernels.cuda.linear import kernel_engine
from kernels.devices.host.device import HostDevice
from kernels.devices.host.module import ThreadOrder, ThreadSchedule
from simulator.problem.workload import Inputs, Workload
from tests.kernels.helpers import faults

IN_ORDER = ThreadSchedule(ThreadOrder.FORWARD, workers=1)
"""Blocks one after the other: sums that atomics make have the same bits each time."""
UNITS = 4
"""Most by which a float32 number may differ from the host build's, in units in the last place of
the tensor's largest number. Sums and products are the same to the last bit; libm's expf is off by
less than a unit, libdevice's expf and tanhf by up to two."""
NARROW = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 0.0}
"""A unit in the last place, relative, of numbers of two bytes: they may round to a neighbour."""

Left = dict[str, np.ndarray]


def written(tensors: Tensors) -> Left:
    """Return everything that a run may have written, by name."""
    found = {each.name: getattr(tensors, each.name) for each in fields(tensors)}
    return {name: x for name, x in found.items() if isinstance(x, np.ndarray)}


def run_fast(w: Workload, inputs: Inputs, device: HostDevice) -> Left:
    """Return what the fast build leaves."""
    run = FastRun(w, inputs, device)
    run.launch()
    return written(run.tensors)


def run_traced(w: Workload, inputs: Inputs, device: HostDevice) -> Left:
    """Return what the trace build leaves."""
    return written(kernel_engine(w, inputs, device).run_everything())


def other_bits(ours: Left, theirs: Left) -> list[str]:
    """Return the tensors that differ in a bit, or are in one run only."""
    pairs = {name: (ours.get(name), theirs.get(name)) for name in {*ours, *theirs}}
    return sorted(
        name
        for name, (a, b) in pairs.items()
        if a is None or b is None or a.tobytes() != b.tobytes()
    )


def further_apart(w: Workload, ours: Left, theirs: Left, units: float = UNITS) -> dict[str, float]:
    """Return the tensors that are further apart than two exponentials explain, in `UNITS`."""
    found = {}
    for name in other_bits(ours, theirs):
        a, b = ours[name], theirs[name]
        narrow = NARROW[w.dtype] if a.dtype == np.uint16 else 0.0
        a, b = (widened(x, w.dtype) if x.dtype == np.uint16 else x for x in (a, b))
        seen = np.isfinite(a) & np.isfinite(b)
        if a.dtype.kind != "f" or np.any((a != b) & ~(np.isnan(a) & np.isnan(b)) & ~seen):
            found[name] = np.inf  # no rounding explains these
            continue
        a, b = a[seen].astype(np.float64), b[seen].astype(np.float64)
        unit = np.spacing(np.abs(a).max(initial=0).astype(np.float32)).astype(np.float64)
        off = float(np.max(np.abs(a - b) - narrow * np.abs(a), initial=0) / unit)
        if off > units:
            found[name] = off
    return found


def ptx_faults(
    w: Workload,
    inputs: Inputs,
    schedule: ThreadSchedule,
    made: Callable[[ThreadSchedule], HostDevice],
) -> list[str]:
    """Return all that is wrong with the PTX of both builds on a workload.

    Looked at: all that `tests.kernels.helpers.faults` looks at; every tensor of the fast build and
    of the trace build, to the last bit; every tensor of the fast build beside the host's.
    """
    found = faults(w, inputs, (schedule,), made)
    if found:
        return found
    fast = run_fast(w, inputs, made(IN_ORDER))
    differing = other_bits(fast, run_traced(w, inputs, made(IN_ORDER)))
    found = [f"{name} differs between fast and trace build" for name in differing]
    apart = further_apart(w, fast, run_fast(w, inputs, HostDevice(IN_ORDER)))
    return found + [f"{name}: {n:.1f} units from the host build" for name, n in apart.items()]
