"""A program that runs some kernels once, for tools that watch a process.

``python -m kernels.checks.case scenarios.json --build fast`` runs each scenario of a list.
With ``--cubins`` NVRTC is made unusable and the kernels come from cubins.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kernels.build import shipped
from kernels.build.nvrtc import compile_cubin
from kernels.build.sources import file_name, whole_source
from kernels.checks.left import Left, left_by
from kernels.checks.numbers import numbers_of
from kernels.checks.outcome import Setting, capability
from kernels.cuda.fast import FastRun
from kernels.cuda.launch import Module, build_options
from kernels.cuda.linear import kernel_engine
from kernels.cuda.tensor_core import TensorCoreRun
from kernels.devices.cupy import CupyDevice
from kernels.errors import KernelError
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import Workload
from simulator.program.algorithms import algorithm_of

TENSOR_CORES = "tensor cores"  # the build that is the tensor-core kernel of flash2


class CubinDevice(CupyDevice):
    """A GPU that gets machine code and never a source."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def module(self, code: str, options: tuple[str, ...]) -> Module:
        """Load the cubin that was made of a source with these options."""
        found = shipped.machine_code(code, options, self.capability, self._folder)
        if found is None:
            raise KernelError(f"no cubin was made with {' '.join(options)}")
        return self.loaded(found[1], code)


def write_cubin(folder: Path, algorithm: str, options: tuple[str, ...], arch: str) -> Path:
    """Compile an algorithm's kernels into a folder, as a bundle holds them; return the file."""
    code = whole_source(algorithm)
    path = folder / f"{shipped.key(code, options)}.tar.xz"
    cubin = compile_cubin(code, file_name(algorithm), arch, options).code
    path.write_bytes(shipped.packed({arch: cubin}))
    return path


def forbid_nvrtc() -> None:
    """Make every use of NVRTC in this process an error."""
    from cupy_backends.cuda.libs import nvrtc

    def refuse(*_: object) -> None:
        raise KernelError("NVRTC was asked to compile, where cubins should do")

    for name in ("createProgram", "compileProgram", "getCUBIN", "getPTX"):
        setattr(nvrtc, name, refuse)


def nvrtc_is_loaded() -> bool:
    """Return whether the library itself is in this process; False if that is not known."""
    try:
        return "/libnvrtc" in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def without_pool() -> None:
    """Give every array its own allocation, so that a tool sees where each one ends."""
    import cupy

    cupy.cuda.set_allocator(None)


def options_of(w: Workload, build: str) -> tuple[str, ...]:
    """Return the options with which `run` compiles a build."""
    options = build_options(w, trace=build == "trace")
    return (
        (*options, "-DSCORES_AS_ELEMENT")
        if algorithm_of(w).passes_pairs and build == "fast"
        else options
    )


def run(table: dict[str, Any], builds: Sequence[str], on: Setting) -> list[Left]:
    """Run a scenario once in each build; return the tensors that each run leaves."""
    workload, inputs = numbers_of(parse_scenario(table))
    outputs = []
    for build in builds:
        if build == "fast":
            # As in the timing: naive's S and P are as wide as their bytes are counted.
            fast = FastRun(workload, inputs, on.device, scores_as_element=True)
            fast.launch()
            tensors = fast.tensors
        elif build == TENSOR_CORES:
            kernel = TensorCoreRun(workload, inputs, on.device, capability(on))
            kernel.launch()
            tensors = kernel.tensors
        else:
            engine = kernel_engine(workload, inputs, on.device)
            engine.counted()
            engine.row_block(0, 0)  # a launch that records details
            tensors = engine.run_everything()
        outputs.append(left_by(tensors, on.device))
    return outputs


def write_left(path: Path, outputs: Sequence[Left]) -> None:
    """Write the tensors that each run has left, as .npz; `read_left` is the inverse."""
    named = {f"{n} {name}": x for n, left in enumerate(outputs) for name, x in left.items()}
    np.savez(path, allow_pickle=False, **named)


def read_left(path: Path) -> list[Left]:
    """Return the tensors that each run has left, in the order of runs."""
    found: list[Left] = []
    with np.load(path) as stored:
        for each in stored.files:
            number, _, name = each.partition(" ")
            found += [{} for _ in range(len(found), int(number) + 1)]
            found[int(number)][name] = stored[each]
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the scenarios that the arguments name; return 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("scenarios", type=Path, help="file: JSON list of scenarios")
    parser.add_argument(
        "--build", action="append", choices=("fast", "trace", TENSOR_CORES), required=True
    )
    parser.add_argument("--cubins", type=Path, help="folder of cubins to use instead of NVRTC")
    parser.add_argument("--no-pool", action="store_true", help="an allocation for each array")
    parser.add_argument("-o", "--output", type=Path, help=".npz of what each run leaves, as bits")
    chosen = parser.parse_args(arguments)
    if chosen.cubins:
        forbid_nvrtc()
    device = CubinDevice(chosen.cubins) if chosen.cubins else CupyDevice()
    if chosen.no_pool:
        without_pool()
    outputs = [
        output
        for table in json.loads(chosen.scenarios.read_text(encoding="utf-8"))
        for output in run(table, chosen.build, Setting(device))
    ]
    if chosen.cubins and nvrtc_is_loaded():
        raise KernelError("libnvrtc was loaded, where cubins should do")
    if chosen.output:
        write_left(chosen.output, outputs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
