"""The CPU as a device for kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.devices.host.compiler import find_compiler
from kernels.devices.host.module import SHARED_LIMIT, HostModule, ThreadSchedule
from kernels.devices.host.watch import KernelFault, WatchedModule, watch_reason
from kernels.errors import KernelError


class HostDevice:
    """Runs unmodified CUDA kernels on the CPU.

    watch: whether reads and writes of kernels are watched. One worker then runs all blocks.
    faults: the faults that have been seen so far.
    Raises KernelError: there is no C++ compiler, or none that can watch.
    """

    name = "host"
    shared_limit = SHARED_LIMIT
    block_flops = 2**29  # about half a second
    blocks_at_once = 1

    def __init__(self, schedule: ThreadSchedule | None = None, *, watch: bool = False) -> None:
        compiler = find_compiler()
        if reason := watch_reason() if watch else compiler.reason:
            raise KernelError(reason)
        self.watch = watch
        self.faults: list[KernelFault] = []
        self.label = f"CPU, CUDA kernels through {compiler.word}"
        self.schedule = schedule or ThreadSchedule()

    def upload(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the array itself: the kernels only read uploaded arrays."""
        return np.ascontiguousarray(array)

    def filled(self, shape: tuple[int, ...], dtype: type[np.generic], byte: int) -> NDArray[Any]:
        """Return an array whose every byte is `byte`."""
        array = np.empty(shape, dtype)
        array.reshape(-1).view(np.uint8).fill(byte)
        return array

    def download(self, buffer: NDArray[Any]) -> NDArray[Any]:
        """Return a copy: the next launch may write to the buffer."""
        return buffer.copy()

    def module(self, code: str, options: tuple[str, ...]) -> HostModule:
        """Compile a source with the C++ compiler, or take it from the cache."""
        if self.watch:
            return WatchedModule(code, options, self.schedule, self.faults)
        return HostModule(code, options, self.schedule)

    def forget(self) -> None:
        """Do nothing: arrays return their memory when nobody uses them."""
