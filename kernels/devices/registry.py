"""Which engine a name means on this machine, and why another one is not available.

`simulator` must not import kernels; modules that may import both ask here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernels.devices.driver import GpuStatus, gpu_status
from kernels.errors import KernelError
from simulator.base.errors import InputError, refuse
from simulator.engines.numpy_engine import numpy_engine
from simulator.engines.protocol import Engine
from simulator.problem.workload import Inputs, Workload

if TYPE_CHECKING:
    from kernels.cuda.launch import Device


def _opened() -> Device:
    from kernels.devices.cupy import CupyDevice

    return CupyDevice()


@dataclass(frozen=True, slots=True)
class GpuAccess:
    """The GPU of a machine."""

    status: Callable[[], GpuStatus] = gpu_status  # returns whether there is one
    opened: Callable[[], Device] = _opened  # returns the GPU as a device


GPU = GpuAccess()  # the GPU of this machine
ENGINES = ("auto", "numpy", "cupy", "host")
FAULTS_NOTE = "faults are switched on: computed with NumPy, the CUDA kernels have none"


def make_engine(name: str, workload: Workload, inputs: Inputs) -> Engine:
    """Return the engine of a name; see `choose_engine`."""
    return choose_engine(name, workload, inputs)[0]


def choose_engine(
    name: str, workload: Workload, inputs: Inputs, gpu: GpuAccess | None = None
) -> tuple[Engine, str]:
    """Return the engine of a name, and why ``auto`` did not take the GPU, in words; "" if it did.

    gpu: which GPU; None: the GPU of this machine.
    Raises InputError: the engine cannot be used, as told for `--engine`; never with ``auto``.
    """
    gpu = gpu or GPU
    if workload.faults.on and name in ENGINES:
        if name in ("cupy", "host"):
            expected = "auto or numpy while faults are switched on: the CUDA kernels have none"
            raise refuse("--engine", "engine", name, expected)
        return numpy_engine(workload, inputs), FAULTS_NOTE
    if name == "numpy":
        return numpy_engine(workload, inputs), ""
    if name in ("cupy", "host"):
        try:
            return _kernel_engine(name, workload, inputs, gpu), ""
        except KernelError as error:
            expected = f"a machine that can run it: {_first_line(error)}"
            raise refuse("--engine", "engine", name, expected) from error
    if name != "auto":
        raise refuse("--engine", "engine", name, f"one of {', '.join(ENGINES)}")
    note = gpu.status().reason
    if not note:
        try:
            return _kernel_engine("cupy", workload, inputs, gpu), ""
        except InputError as error:
            note = error.mistakes[0].expected
        except KernelError as error:
            note = _first_line(error)
    return numpy_engine(workload, inputs), note


def _kernel_engine(name: str, workload: Workload, inputs: Inputs, gpu: GpuAccess) -> Engine:
    from kernels.cuda.linear import kernel_engine

    if name == "host":
        from kernels.devices.host.device import HostDevice

        return kernel_engine(workload, inputs, HostDevice())
    try:
        return kernel_engine(workload, inputs, gpu.opened())
    except (InputError, KernelError):
        raise
    except Exception as error:  # out of memory, a lost device: only its driver knows how
        raise KernelError(f"the GPU failed ({error})") from error


def _first_line(error: KernelError) -> str:
    return str(error).partition("\n")[0]
