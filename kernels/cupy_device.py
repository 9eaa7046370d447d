"""A GPU as a device for kernels, through CuPy.

Not yet run on hardware. It asks of CuPy nothing but memory, copies and raw kernels: an
elementwise function of CuPy would want NVRTC and headers where cubins are shipped.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.device import gpu_status
from kernels.errors import KernelError
from kernels.launch import Module


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
            attributes = cupy.cuda.Device(0).attributes
            self.shared_limit = int(attributes["MaxSharedMemoryPerBlockOptin"])
        except cupy.cuda.runtime.CUDARuntimeError as error:
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
        """Compile a source with NVRTC; CuPy keeps what it has compiled."""
        module: Module = self._cupy.RawModule(code=code, options=("--std=c++17", *options))
        return module
