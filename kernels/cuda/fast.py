"""The fast build, which is timed; the trace build must agree with it to the last bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernels.build.sources import whole_source
from kernels.cuda.engine import check_fits, place_tensors, with_scratch
from kernels.cuda.launch import Device, Tensors, build_options, prepared
from kernels.cuda.specs import LaunchPart, kernels_of
from simulator.problem.workload import Inputs, Workload
from simulator.program.algorithms import algorithm_of, tile_program
from simulator.program.faults import honest
from simulator.program.tile_program import TileProgram


class FastRun:
    """A workload whose kernels are launched without any record.

    scores_as_element: whether naive's numbers of pairs are as wide in HBM as Q, as their bytes are
        counted and as naive is timed. Otherwise they are float32, as in the trace build.
    tensors: on the device; O and everything else that is written is NaN until the first launch.
    """

    def __init__(
        self,
        workload: Workload,
        inputs: Inputs,
        device: Device,
        *,
        scores_as_element: bool = False,
    ) -> None:
        check_fits(workload, device)
        options = build_options(workload, trace=False)
        stored: type[np.generic] = np.float32
        if scores_as_element and algorithm_of(workload).passes_pairs:
            options += ("-DSCORES_AS_ELEMENT",)
            stored = np.uint16 if workload.width == 2 else np.float32
        self.workload = workload
        module = device.module(whole_source(workload.algorithm), options)
        placed, whole = place_tensors(device, workload, inputs), LaunchPart.whole(workload)
        placed = after_forward(
            device, workload, inputs, placed, scores_as_element=scores_as_element
        )
        self.tensors: Tensors = with_scratch(device, workload, placed, whole, stored)
        self._launches = [
            prepared(module, workload, kernel, whole, self.tensors)
            for kernel in kernels_of(workload)
        ]

    def launch(self) -> None:
        """Launch the algorithm's kernels for all heads and row blocks."""
        for launch in self._launches:
            launch()


def after_forward(
    device: Device,
    w: Workload,
    inputs: Inputs,
    tensors: Tensors,
    *,
    scores_as_element: bool = False,
) -> Tensors:
    """Return the tensors of a workload, with the tensors that its forward pass leaves.

    w: the forward pass of a backward pass runs now; other workloads need none.
    tensors: as `place_tensors` makes them.
    scores_as_element: as in `FastRun`.
    """
    name = algorithm_of(w).forward
    if name is None:
        return tensors
    before = honest(w).as_algorithm(name)
    forward = FastRun(before, inputs, device, scores_as_element=scores_as_element)
    forward.launch()
    return after(forward.tensors, tensors, tile_program(w))


def after(forward: Tensors, tensors: Tensors, program: TileProgram) -> Tensors:
    """Return a backward pass's tensors, with O and others that it reads from its forward pass."""
    kept = {"O", *program.kept}
    return replace(tensors, **{name.lower(): getattr(forward, name.lower()) for name in kept})
