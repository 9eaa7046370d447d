"""All kernels of a workload, watched for faults that a GPU would not forgive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kernels.cuda.fast import FastRun
from kernels.cuda.linear import kernel_engine
from kernels.cuda.tensor_core import TensorCoreRun, check
from kernels.devices.host.device import HostDevice
from kernels.devices.host.watch import KernelFault
from kernels.errors import KernelError
from simulator.problem.workload import Inputs, Workload
from simulator.program.algorithms import algorithm_of, tile_program

MOST_PAIRS = 2**21
"""Most pairs of a query and a key, in all heads, that are watched: some minutes, and 1 GB."""
BUILDS = ("fast", "trace", "tensor cores")  # the builds of a workload's kernels


def builds_of(w: Workload, device: HostDevice) -> tuple[str, ...]:
    """Return the builds in `BUILDS` that a workload has."""
    try:
        check(w, device)
    except KernelError:
        return BUILDS[:2]
    return BUILDS


def launch_all(w: Workload, inputs: Inputs, device: HostDevice, build: str) -> None:
    """Launch every kernel of one of the `BUILDS` with everything that it can record."""
    if build == "fast":
        FastRun(w, inputs, device).launch()
        if algorithm_of(w).passes_pairs:  # S and P as wide as they are counted, too
            FastRun(w, inputs, device, scores_as_element=True).launch()
    elif build == "trace":
        engine, program = kernel_engine(w, inputs, device), tile_program(w)
        engine.counted()
        for k in {0, len(program) - 1}:  # launches that record details
            visit = program.visit(k)
            engine.tile(visit, engine.row_block(visit.head, visit.i))
        engine.run_everything()
    else:
        for buffers in (2, 1):
            TensorCoreRun(w, inputs, device, buffers=buffers).launch()


def watched(w: Workload, inputs: Inputs, device: HostDevice | None = None) -> Iterator[str]:
    """Launch everything of a workload; yield the name of each build when it is done.

    device: a device that watches; its `faults` grow.
    Raises KernelError: this machine cannot watch, or a kernel did something after which the run
        cannot go on.
    """
    device = device or HostDevice(watch=True)
    for build in builds_of(w, device):
        launch_all(w, inputs, device, build)
        yield build


def told_once(faults: list[KernelFault]) -> list[KernelFault]:
    """Return the faults; the same fault at the same lines in several launches becomes one."""
    kept: dict[object, KernelFault] = {}
    for fault in faults:
        sides = (fault.first, fault.second)
        key = fault.kind, fault.kernel, *(str(side.place) + side.verb for side in sides if side)
        before = kept.get(key)
        kept[key] = replace(before, times=before.times + fault.times) if before else fault
    return list(kept.values())
