"""Whether there is a GPU, and if not, why: asks the driver itself, before CuPy is imported."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class GpuStatus:
    """The CUDA driver's answer about the first GPU."""

    name: str  # name of the first device, empty when there is none
    driver: str  # CUDA version that the driver supports, such as ``13.0``; empty without a driver
    reason: str  # why there is no usable GPU, in words a user can act on; empty when there is one

    @property
    def available(self) -> bool:
        """Whether a device answers."""
        return not self.reason


@cache
def gpu_status() -> GpuStatus:
    """Ask the driver for its first device; this takes about 0.1 ms if there is none."""
    library = {"win32": "nvcuda.dll", "darwin": ""}.get(sys.platform, "libcuda.so.1")
    if not library:
        return GpuStatus("", "", "CUDA does not run on macOS")
    try:
        cuda = ctypes.CDLL(library)
    except OSError:
        return GpuStatus("", "", f"no NVIDIA driver is installed ({library} not found)")
    error = cuda.cuInit(0)
    if error:
        return GpuStatus("", "", f"the NVIDIA driver does not start (cuInit: error {error})")
    version, count = ctypes.c_int(), ctypes.c_int()
    cuda.cuDriverGetVersion(ctypes.byref(version))
    driver = f"{version.value // 1000}.{version.value % 1000 // 10}"
    if cuda.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        return GpuStatus("", driver, "the NVIDIA driver finds no GPU")
    name, device = ctypes.create_string_buffer(128), ctypes.c_int()
    cuda.cuDeviceGet(ctypes.byref(device), 0)
    cuda.cuDeviceGetName(name, len(name), device)
    return GpuStatus(name.value.decode(errors="replace"), driver, "")
