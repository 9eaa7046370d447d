"""A GPU as a device for kernels, through CuPy.

It uses only memory, copies and raw kernels of CuPy: an elementwise function of CuPy would need
NVRTC and headers, which a bundle does not have.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.build.cache import kept
from kernels.build.nvrtc import (
    compile_cubin,
    compile_ptx,
    kernel_names,
    newest_target,
    nvrtc_reason,
    nvrtc_version,
)
from kernels.build.shipped import kept_name, machine_code
from kernels.cuda.launch import Kernel, Module
from kernels.devices.driver import gpu_status
from kernels.errors import KernelError
from simulator.base.dtypes import TYPE_NAMES

BLOCK_FLOPS, WATCHED_FLOPS = 2**33, 2**31
"""Most work of a thread block in a launch: some 0.1 s of a multiprocessor, several times as long in
the trace build. Where a watchdog looks after a screen, a launch is ended after some 2 s."""


def block_flops(attributes: Mapping[str, int]) -> int:
    """Return the most work of a thread block, from what CUDA says about a GPU."""
    return WATCHED_FLOPS if attributes.get("KernelExecTimeout") else BLOCK_FLOPS


class CupyDevice:
    """Runs the kernels on the first GPU.

    Raises KernelError: there is no usable GPU, or CuPy is not installed: why, in words a user can
        act on.
    """

    name = "cupy"
    block_flops = BLOCK_FLOPS

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
            self.blocks_at_once = int(device.attributes["MultiProcessorCount"])
            self.block_flops = block_flops(device.attributes)
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
        """Load a source's kernels: from the bundle, or else as NVRTC compiles them."""
        found = machine_code(code, options, self.capability)
        content = compiled(code, options, self.capability) if found is None else found[1]
        return self.loaded(content, code)

    def forget(self) -> None:
        """Give back to other programs the memory that CuPy keeps for its next buffers."""
        self._cupy.get_default_memory_pool().free_all_blocks()

    def loaded(self, content: bytes, code: str) -> Module:
        """Load a cubin or PTX that was made of a source.

        The driver gets the bytes and not a file, which it may not find under a user's name.
        """
        cuda = self._cupy.cuda
        try:  # the driver reads it only when something is asked about a kernel
            loaded = cuda.function.Module()
            loaded.load(content)
            module = CupyModule(loaded)
            _ = module.get_function(kernel_names(code)[0]).max_dynamic_shared_size_bytes
        except (cuda.driver.CUDADriverError, cuda.runtime.CUDARuntimeError) as error:
            raise KernelError(f"the GPU's driver does not take the kernel: {error}") from error
        return module


class CupyModule:
    """Compiled source in the GPU's memory."""

    def __init__(self, loaded: Any) -> None:
        self._loaded = loaded

    def get_function(self, name: str) -> Kernel:
        """Return a kernel by name."""
        return CupyKernel(self._loaded.get_function(name))


class CupyKernel:
    """A kernel in the GPU's memory."""

    def __init__(self, function: Any) -> None:
        from cupy_backends.cuda.api import driver

        self._function, self._driver = function, driver

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """Bytes of dynamic shared memory that a launch may take; may be set."""
        return self._asked("MAX_DYNAMIC_SHARED_SIZE_BYTES")

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size: int) -> None:
        self._set("MAX_DYNAMIC_SHARED_SIZE_BYTES", size)

    @property
    def preferred_shared_memory_carveout(self) -> int:
        """Per cent of a multiprocessor's L1 cache that become shared memory; may be set."""
        return self._asked("PREFERRED_SHARED_MEMORY_CARVEOUT")

    @preferred_shared_memory_carveout.setter
    def preferred_shared_memory_carveout(self, share: int) -> None:
        self._set("PREFERRED_SHARED_MEMORY_CARVEOUT", share)

    def _asked(self, name: str) -> int:
        attribute = getattr(self._driver, f"CU_FUNC_ATTRIBUTE_{name}")
        return int(self._driver.funcGetAttribute(attribute, self._function.ptr))

    def _set(self, name: str, number: int) -> None:
        attribute = getattr(self._driver, f"CU_FUNC_ATTRIBUTE_{name}")
        self._driver.funcSetAttribute(self._function.ptr, attribute, number)

    def __call__(
        self, grid: tuple[int, ...], block: tuple[int, ...], args: Sequence[Any], *, shared_mem: int
    ) -> None:
        """Launch the kernel."""
        self._function(grid, block, args, shared_mem=shared_mem)


def compiled(code: str, options: tuple[str, ...], capability: int) -> bytes:
    """Return the code that NVRTC makes of a source for a GPU; the user's cache keeps it."""
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
        path.write_bytes(content)

    name = kept_name(code, options, nvrtc_version(), target)
    try:
        return kept(name, make).read_bytes()
    except FileNotFoundError:  # another process has found the cache too full
        return kept(name, make).read_bytes()


def _tiles(options: Sequence[str]) -> str:
    """Return in words the tiles, d and type of kernels with these options."""
    said = dict(re.findall(r"-D(\w+)=(\d+)", " ".join(options)))
    dtype = TYPE_NAMES[int(said["ELEMENT"])]
    return f"tiles of {said['BR']} × {said['BC']}, d = {said['HEAD_DIM']}, {dtype}"
