"""A GPU as a device for kernels, through CuPy.

It uses only memory, copies and raw kernels of CuPy: an elementwise function of CuPy would need
NVRTC and headers, which a bundle does not have.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.build.nvrtc import (
    compile_cubin,
    compile_ptx,
    kernel_names,
    newest_target,
    nvrtc_reason,
)
from kernels.build.shipped import file_name, key, machine_code
from kernels.cuda.launch import Module
from kernels.devices.driver import gpu_status
from kernels.devices.host.compiler import kept
from kernels.errors import KernelError
from simulator.base.dtypes import TYPE_NAMES


class CupyDevice:
    """Runs the kernels on the first GPU.

    Raises
    ------
    KernelError
        There is no usable GPU, or CuPy is not installed: why, in words a user can act on.
    """

    name = "cupy"
    batch_flops = 2**40

    def __init__(self) -> None:
        status = gpu_status()
        if not status.available:
            raise KernelError(status.reason)
        try:
            import cupy
        except ImportError as error:
            raise KernelError(
                f"CuPy is not installed (pip install cupy-cuda13x or -cuda12x): {error}"
            ) from error
        self._cupy = cupy
        self.label = status.name
        try:
            device = cupy.cuda.Device(0)
            self.shared_limit = int(device.attributes["MaxSharedMemoryPerBlockOptin"])
            self.capability = int(device.compute_capability)
        except (RuntimeError, OSError) as error:  # of CUDA, or of a library that is not there
            raise KernelError(f"CuPy cannot use the GPU: {error}") from error

    def upload(self, array: NDArray[Any]) -> Any:
        """Return a copy in the GPU's memory."""
        buffer = self._cupy.empty(array.shape, array.dtype)
        buffer.set(np.ascontiguousarray(array))
        return buffer

    def filled(self, shape: tuple[int, ...], dtype: type[np.generic], byte: int) -> Any:
        """Return memory whose every byte is `byte`."""
        buffer = self._cupy.empty(shape, dtype)
        buffer.data.memset(byte, buffer.nbytes)
        return buffer

    def download(self, buffer: Any) -> NDArray[Any]:
        """Return a copy in the host's memory, once all launches are done."""
        numbers: NDArray[Any] = buffer.get()
        return numbers

    def module(self, code: str, options: tuple[str, ...]) -> Module:
        """Load a source's kernels: from the bundle, or else as NVRTC compiles them.

        Raises
        ------
        KernelError
            They are not in the bundle and there is no NVRTC, or the driver does not accept them.
        """
        found = machine_code(code, options, self.capability)
        if found is None:
            return self.loaded(compiled(code, options, self.capability), code)
        name, content = found
        make = partial(_write, content)
        return self.loaded(kept(f"shipped-{key(code, options)}-{name}", make), code)

    def loaded(self, path: Path, code: str) -> Module:
        """Load a cubin or PTX that was made of a source."""
        cuda = self._cupy.cuda
        module: Module = self._cupy.RawModule(path=str(path))
        try:  # the driver reads it only when something is asked about a kernel
            _ = module.get_function(kernel_names(code)[0]).max_dynamic_shared_size_bytes
        except (cuda.driver.CUDADriverError, cuda.runtime.CUDARuntimeError) as error:
            raise KernelError(f"the GPU's driver does not take the kernel: {error}") from error
        return module


def compiled(code: str, options: tuple[str, ...], capability: int) -> Path:
    """Return a source compiled by NVRTC for a GPU, kept in the user's cache.

    Raises
    ------
    KernelError
        There is no NVRTC, or it refuses the source.
    """
    reason = nvrtc_reason()
    if reason and getattr(sys, "frozen", False):
        raise KernelError(
            f"this copy brings no GPU kernel for {_tiles(options)}, and NVRTC of CUDA 13, which "
            "would make it, is not installed"
        )
    if reason:
        raise KernelError(reason)
    target = newest_target(capability)

    def make(path: Path) -> None:
        if target.startswith("sm_"):
            content = compile_cubin(code, "kernel.cu", target, options).code
        else:
            content = compile_ptx(code, "kernel.cu", target, options).encode()
        _write(content, path)

    return kept(f"{key(code, options)}-{file_name(target)}", make)


def _write(content: bytes, path: Path) -> None:
    path.write_bytes(content)


def _tiles(options: Sequence[str]) -> str:
    """Return in words what kernels with these options are for."""
    said = dict(re.findall(r"-D(\w+)=(\d+)", " ".join(options)))
    dtype = TYPE_NAMES[int(said["ELEMENT"])]
    return f"tiles of {said['BR']} × {said['BC']}, d = {said['HEAD_DIM']}, {dtype}"
