"""`PtxDevice`: a CPU that runs the PTX that NVRTC makes of a kernel."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kernels.build.cache import kept
from kernels.build.nvrtc import OPTIONS, compile_ptx, nvrtc_reason, nvrtc_version
from kernels.devices.host.compiler import find_compiler
from kernels.devices.host.device import HostDevice
from kernels.devices.host.module import HostModule, ThreadSchedule
from tests.kernels.ptx.translate import USUAL, Semantics, translated

needs_ptx = pytest.mark.skipif(
    bool(nvrtc_reason() or find_compiler().reason)
    and not (os.environ.get("CI") and sys.platform == "linux"),
    reason=f"PTX on the CPU: {nvrtc_reason() or find_compiler().reason}",
)

ARCHITECTURES = ("compute_80", "compute_90", "compute_120")


class PtxDevice(HostDevice):
    """Runs kernels as NVRTC compiles them for an architecture.

    arch: such as ``compute_90``.
    schedule: orders and workers.
    semantics: what the GPU does where it may choose.
    change: returns the CUDA C to compile in the place of a source.
    """

    def __init__(
        self,
        arch: str = "compute_90",
        schedule: ThreadSchedule | None = None,
        semantics: Semantics = USUAL,
        change: Callable[[str], str] = str,
    ) -> None:
        super().__init__(schedule)
        self.label = f"CPU, PTX of {arch}"
        self._arch, self._semantics, self._change = arch, semantics, change

    @staticmethod
    def of(
        arch: str, semantics: Semantics = USUAL, change: Callable[[str], str] = str
    ) -> Callable[[ThreadSchedule], PtxDevice]:
        """Return what makes a device for a schedule."""
        return lambda schedule: PtxDevice(arch, schedule, semantics, change)

    def module(self, code: str, options: tuple[str, ...]) -> HostModule:
        """Compile a source with NVRTC and its PTX with the C++ compiler, or take both as kept."""
        ptx = ptx_of(self._change(code), self._arch, options)
        return HostModule(translated(ptx, self._semantics), (), self.schedule)


def ptx_of(code: str, arch: str, options: tuple[str, ...]) -> str:
    """Return the PTX of a source, made now if it is not kept."""
    parts = (code, arch, options, OPTIONS, nvrtc_version())
    key = hashlib.sha256(repr(parts).encode()).hexdigest()[:24]

    def make(target: Path) -> None:
        target.write_text(compile_ptx(code, "kernel.cu", arch, options), encoding="utf-8")

    return kept(f"{key}.ptx", make).read_text(encoding="utf-8")
