"""`HostModule`: the CPU's counterpart of `cupy.RawModule`."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np

from kernels.devices.host.compiler import shared_library
from kernels.errors import KernelError

SHARED_LIMIT = 512 * 1024
"""Most dynamic shared memory of a block. It is more than any GPU has, so a scenario that is too
large for a GPU can still be run here."""

_GUARD = 4096
_MESSAGE = 1024
_KERNEL = re.compile(
    r'extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)'
)
_DYNAMIC = re.compile(r"extern\s+__shared__\s[^;]*?(\w+)\s*\[\s*\]\s*;")


class ThreadOrder(IntEnum):
    """The order of blocks, and of threads that could all continue.

    Forward keeps all threads at the same place. Reverse lets the last warp run as far ahead as the
    barriers allow, and begins with the last block. Random chooses any.
    """

    FORWARD = 0
    REVERSE = 1
    RANDOM = 2


@dataclass(frozen=True, slots=True)
class ThreadSchedule:
    """How the CPU emulates the GPU: a right kernel gives the same numbers with every schedule."""

    order: ThreadOrder = ThreadOrder.FORWARD  # of threads and blocks
    seed: int = 0  # of the random order
    workers: int = 0  # threads of the operating system; 0 for one on each core
    # whether an asynchronous copy arrives only when the kernel waits for it, and there is NaN until
    # then; otherwise it arrives at once
    late: bool = False


class _Launch(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint64),
        ("order", ctypes.c_int),
        ("seed", ctypes.c_uint),
        ("workers", ctypes.c_int),
        ("late", ctypes.c_int),
    )


class HostModule:
    """CUDA C compiled for the CPU, used like `cupy.RawModule`.

    code: raw CUDA C without includes; its kernels are ``extern "C"``.
    options: definitions, ``-DNAME=value``; options of NVRTC alone are left out.
    unit: the code with the functions that Python calls.
    definitions: the options that it was compiled with.
    path: the shared library.
    Raises KernelError: there is no compiler, or it refuses the code.
    """

    def __init__(
        self,
        code: str,
        options: Sequence[str] = (),
        schedule: ThreadSchedule | None = None,
        *,
        watch: bool = False,
    ) -> None:
        self.schedule = schedule or ThreadSchedule()
        self.kernels = tuple(dict.fromkeys(_KERNEL.findall(code)))
        self.unit = _translation_unit(code, self.kernels)
        self.definitions = tuple(option for option in options if option.startswith("-D"))
        self.path = shared_library(self.unit, self.definitions, watch=watch)
        try:
            self.library = ctypes.CDLL(str(self.path))
        except OSError:  # a damaged file of the cache
            self.path = shared_library(self.unit, self.definitions, again=True, watch=watch)
            self.library = _load(self.path)

    def get_function(self, name: str) -> HostKernel:
        """Return a kernel by name."""
        if name not in self.kernels:
            raise KernelError(f"no kernel {name}: there are {', '.join(self.kernels)}")
        return HostKernel(self.library, name, self.schedule)


class HostKernel:
    """A kernel that runs on the CPU; it is called like `cupy.RawKernel`.

    max_dynamic_shared_size_bytes: without effect here; a GPU needs it for more than 48 KiB.
    preferred_shared_memory_carveout: without effect here, too: the share of L1 that a GPU uses as
        shared memory, in percent; -1 lets the GPU choose.
    """

    def __init__(self, library: ctypes.CDLL, name: str, schedule: ThreadSchedule) -> None:
        self.name = name
        self.max_dynamic_shared_size_bytes = 48 * 1024
        self.preferred_shared_memory_carveout = -1
        self._schedule = schedule
        self._launch = getattr(library, f"launch_{name}")
        sizes = getattr(library, f"sizes_{name}")
        sizes.restype = ctypes.POINTER(ctypes.c_int)
        self._sizes: list[int] = []
        while size := sizes()[len(self._sizes)]:
            self._sizes.append(size)

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: Sequence[Any],
        *,
        shared_mem: int = 0,
    ) -> None:
        """Run the kernel to its end.

        args: arrays for pointers (C-contiguous) and NumPy scalars of exactly the right type.
        shared_mem: bytes of dynamic shared memory.
        Raises KernelError: the arguments do not fit the kernel, or it did something forbidden: a
            barrier that not all threads reach, a write past its shared memory.
        """
        if len(args) != len(self._sizes):
            raise KernelError(f"{self.name}: {len(args)} arguments, expected {len(self._sizes)}")
        values = [self._value(n, argument) for n, argument in enumerate(args)]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
        plan = _Launch(
            (ctypes.c_uint * 3)(*_three(grid)),
            (ctypes.c_uint * 3)(*_three(block)),
            shared_mem,
            self._schedule.order,
            self._schedule.seed,
            self._schedule.workers or os.cpu_count() or 1,
            self._schedule.late,
        )
        message = ctypes.create_string_buffer(_MESSAGE)
        if self._launch(ctypes.byref(plan), pointers, message, _MESSAGE):
            raise KernelError(f"{self.name}, {message.value.decode(errors='replace')}")

    def _value(self, number: int, argument: object) -> ctypes.Array[ctypes.c_char]:
        """Return the bytes of one argument; the caller keeps them while the kernel runs."""
        if isinstance(argument, np.ndarray):
            if not argument.flags.c_contiguous:
                raise KernelError(f"{self.name}: argument {number} is not contiguous")
            raw = np.uintp(argument.ctypes.data).tobytes()
        elif isinstance(argument, np.generic):
            raw = argument.tobytes()
        else:
            raise KernelError(
                f"{self.name}: argument {number} is {type(argument).__name__}, expected an array "
                "or a NumPy scalar"
            )
        if len(raw) != self._sizes[number]:
            raise KernelError(
                f"{self.name}: argument {number} has {len(raw)} bytes, expected "
                f"{self._sizes[number]}"
            )
        return ctypes.create_string_buffer(raw, len(raw))


def _load(path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise KernelError(f"a compiled kernel does not load: {error}") from error


def _three(sizes: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def _translation_unit(code: str, kernels: tuple[str, ...]) -> str:
    """Return the code with the functions that Python calls and the shared memory it declares."""
    names = set(_DYNAMIC.findall(code)) or {"host_dynamic"}
    if len(names) > 1:
        raise KernelError(f"dynamic shared memory has one name, not {', '.join(sorted(names))}")
    # An asm label, because the kernel declares the array with another type.
    label = ("_" if sys.platform == "darwin" else "") + names.pop()
    tail = [
        "namespace host {",
        f"alignas(1024) thread_local unsigned char dynamic[{SHARED_LIMIT + _GUARD}] "
        f'asm("{label}");',
        "unsigned char* dynamic_shared() { return dynamic; }",
        f"extern const uint64_t dynamic_limit = {SHARED_LIMIT + _GUARD};",
        "}",
        *(f"HOST_EXPORT({name})" for name in kernels),
    ]
    return "\n".join(['#line 1 "kernel.cu"', code, *tail, ""])
