"""Which engine a name means on this machine, and why another one cannot be had.

`simulator` must not know of kernels; whoever may know both asks here.
"""

from __future__ import annotations

from kernels.cupy_device import CupyDevice
from kernels.device import gpu_status
from kernels.engine import KernelEngine
from kernels.errors import KernelError
from kernels.host.device import HostDevice
from kernels.launch import Device
from simulator.engine import Engine, NumpyEngine
from simulator.errors import InputError, refuse
from simulator.workload import Inputs, Workload

ENGINES = ("auto", "numpy", "cupy", "host")


def make_engine(name: str, workload: Workload, inputs: Inputs) -> Engine:
    """Return the engine of that name; see `choose_engine`."""
    return choose_engine(name, workload, inputs)[0]


def choose_engine(name: str, workload: Workload, inputs: Inputs) -> tuple[Engine, str]:
    """Return the engine of that name, and why ``auto`` did not take the GPU.

    Parameters
    ----------
    name : str
        One of `ENGINES`; ``auto`` takes the GPU where there is one and else NumPy.
    workload : Workload
        What it is to run.
    inputs : Inputs
        Q, K and V.

    Returns
    -------
    engine : Engine
        Ready to run.
    note : str
        In words a user can act on; empty unless ``auto`` had to do without a GPU.

    Raises
    ------
    InputError
        There is no such engine, this machine lacks what it needs, or the tiles do not fit it.
        Never with ``auto``.
    """
    if name == "numpy":
        return NumpyEngine(workload, inputs), ""
    if name in ("cupy", "host"):
        return _kernel_engine(name, workload, inputs), ""
    if name != "auto":
        raise refuse("--engine", "engine", name, f"one of {', '.join(ENGINES)}")
    note = gpu_status().reason
    if not note:
        try:
            return _kernel_engine("cupy", workload, inputs), ""
        except InputError as error:
            note = error.mistakes[0].expected
    return NumpyEngine(workload, inputs), note


def _kernel_engine(name: str, workload: Workload, inputs: Inputs) -> Engine:
    try:
        device: Device = CupyDevice() if name == "cupy" else HostDevice()
        return KernelEngine(workload, inputs, device)
    except KernelError as error:
        words = str(error).partition("\n")[0]
        raise refuse("--engine", "engine", name, f"a machine that can run it: {words}") from error
