"""CUDA C to machine code through NVRTC, which needs no GPU, no driver and no headers.

`cupy.RawModule` needs a device before it compiles; NVRTC itself does not, so CuPy's binding of
NVRTC is called here. This module returns the code and what each kernel takes of a multiprocessor,
which comments in the sources limit (`Limit`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kernels.build.elf import code_bytes, elf_size
from kernels.errors import KernelError

Build = Literal["fast", "trace", "in_turn"]

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120")
"""The architectures that kernels are compiled for: Turing to Blackwell."""
OPTIONS = ("--std=c++17", "-ftz=true", "-fmad=false", "--device-as-default-execution-space")
"""The options of CuPy, except that a product is joined to a sum only if the source says so: the
trace build must compute what the fast build does, to the last bit."""

USUAL_NVRTC = 13  # the major version of NVRTC for limits that name none

_INSTALL = "pip install cupy-cuda13x nvidia-cuda-nvrtc nvidia-cuda-runtime"
_OLDER = (
    ": CUDA 12 still knows older ones (pip install cupy-cuda12x nvidia-cuda-nvrtc-cu12 "
    "nvidia-cuda-runtime-cu12 in the place of those for CUDA 13)"
)
_LOG_WORDS = 4000

_ENTRY = re.compile(r"Compiling entry function '(\w+)'")
_STACK = re.compile(
    r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", re.MULTILINE
)
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_KERNEL = re.compile(
    r'^extern "C" __global__ void(?: __launch_bounds__\([^)]*\))? (\w+)\(', re.MULTILINE
)
_LIMIT = re.compile(
    r"^// ptxas (\w+) (fast|trace|in_turn)(?: VALUE_DIM>(\d+))?(?: NVRTC (\d+))?: "
    r"at most (\d+) registers, (\d+) bytes of stack, (\d+) bytes spilled"
    r"(?:, (\d+) KiB of code)?$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Usage:
    """The resources that a kernel takes, as the assembler says, and its machine code."""

    registers: int  # registers of each thread
    # stack, spill_stores, spill_loads: bytes of each thread in local memory, and the bytes that
    # spill instructions move
    stack: int
    spill_stores: int
    spill_loads: int
    shared: int  # static shared memory of a block, in bytes, without the dynamic memory of a launch
    code: int = 0  # bytes of machine code; 0 if only a log is known

    @property
    def spilled(self) -> int:
        """Bytes that stores and loads of spilled registers move."""
        return self.spill_stores + self.spill_loads


@dataclass(frozen=True, slots=True)
class Limit:
    """The most that a build may take on any architecture, in the tilings of the compile gate."""

    registers: int  # registers, stack, spilled: as in `Usage`
    stack: int
    spilled: int
    code: int | None = None  # bytes, as in `Usage`; None: any number


@dataclass(frozen=True, slots=True)
class Compiled:
    """A source compiled for one architecture."""

    code: bytes  # a cubin, which the driver loads as it is
    usage: dict[str, Usage]  # kernel name to `Usage`
    seconds: float  # time of the compilation
    # the PTX of the same number, from which the cubin was assembled, if it was asked for
    ptx: str = ""


def nvrtc_reason() -> str:
    """Return why there is no NVRTC, in words a user can act on; empty if there is one."""
    try:
        from cupy_backends.cuda.libs import nvrtc

        nvrtc.getVersion()
    except ImportError as error:
        return f"CuPy is not installed ({_INSTALL}): {error}"
    except (RuntimeError, OSError) as error:  # what CuPy raises when it finds no library
        words = str(error).partition("\n")[0]
        return f"NVRTC is not installed ({_INSTALL}): {words}"
    return ""


def nvrtc_version() -> str:
    """Return NVRTC's version, such as ``13.0``. Raises KernelError: there is no NVRTC."""
    _need_nvrtc()
    from cupy_backends.cuda.libs import nvrtc

    major, minor = nvrtc.getVersion()
    return f"{major}.{minor}"


def newest_target(capability: int) -> str:
    """Return the target to compile for: the GPU itself, or PTX if NVRTC does not know it yet.

    capability: of the GPU, 90 for sm_90.
    Raises KernelError: there is no NVRTC, or the GPU is older than all targets of NVRTC.
    """
    _need_nvrtc()
    from cupy_backends.cuda.libs import nvrtc

    known = nvrtc.getSupportedArchs()
    if capability in known:
        return f"sm_{capability}"
    earlier = [each for each in known if each < capability]
    if not earlier:
        raise KernelError(
            f"this GPU is sm_{capability}, and NVRTC {nvrtc_version()} begins at sm_{min(known)}"
            + _OLDER * (nvrtc.getVersion() >= (13, 0))
        )
    return f"compute_{max(earlier)}"


def compile_cubin(
    text: str, name: str, arch: str, options: Sequence[str] = (), *, with_ptx: bool = False
) -> Compiled:
    """Compile a source for one architecture.

    text: CUDA C without includes, because no folder of headers is given.
    name: its name in messages, such as ``flash2.cu``.
    arch: such as ``sm_90a``.
    options: definitions, in addition to `OPTIONS`.
    with_ptx: return the PTX as well, which then needs no compilation of its own.
    Raises KernelError: there is no NVRTC, or NVRTC refuses the source; the message has NVRTC's own
        words.
    """
    started = time.perf_counter()
    asked = (f"-arch={arch}", "--ptxas-options=-v", *options)
    code, ptx, log = _compile(text, name, asked, cubin=True, ptx=with_ptx)
    # CuPy's binding takes the last byte for the end of a text and removes it.
    whole = code.ljust(elf_size(code), b"\0")
    sizes = code_bytes(whole)
    usage = {name: replace(each, code=sizes[name]) for name, each in parse_usage(log).items()}
    return Compiled(whole, usage, time.perf_counter() - started, ptx)


def compile_ptx(text: str, name: str, arch: str, options: Sequence[str] = ()) -> str:
    """Compile a source to PTX, which drivers of later GPUs compile further."""
    return _compile(text, name, (f"-arch={arch}", *options), ptx=True)[1]


def _need_nvrtc() -> None:
    reason = nvrtc_reason()
    if reason:
        raise KernelError(reason)


def _compile(
    text: str, name: str, options: Sequence[str], *, cubin: bool = False, ptx: bool = False
) -> tuple[bytes, str, str]:
    """Return cubin and PTX, empty if not asked for, and NVRTC's log."""
    _need_nvrtc()
    from cupy_backends.cuda.libs import nvrtc

    program = nvrtc.createProgram(text, name, (), ())
    try:
        try:
            nvrtc.compileProgram(program, (*OPTIONS, *options))
        except nvrtc.NVRTCError as error:
            log = nvrtc.getProgramLog(program).strip() or str(error)
            said = " ".join(options)
            raise KernelError(f"NVRTC refuses {name} ({said}):\n{log[:_LOG_WORDS]}") from None
        code = bytes(nvrtc.getCUBIN(program)) if cubin else b""
        words = bytes(nvrtc.getPTX(program)).rstrip(b"\0").decode() if ptx else ""
        return code, words, nvrtc.getProgramLog(program)
    finally:
        nvrtc.destroyProgram(program)


def parse_usage(log: str) -> dict[str, Usage]:
    """Return what each kernel takes, from the log of the assembler's option ``-v``.

    Raises KernelError: the log names a kernel but not its figures: a later assembler may use other
        words, and a check that finds no figures would accept everything.
    """
    found: dict[str, Usage] = {}
    pieces = _ENTRY.split(log)
    for name, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        stack, registers = _STACK.search(piece), _REGISTERS.search(piece)
        if stack is None or registers is None:
            raise KernelError(f"the assembler's log does not say what {name} takes:\n{log[:2000]}")
        shared = _SHARED.search(piece)
        frame, stores, loads = (int(n) for n in stack.groups())
        found[name] = Usage(
            int(registers[1]), frame, stores, loads, int(shared[1]) if shared else 0
        )
    return found


def kernel_names(text: str) -> tuple[str, ...]:
    """Return the kernels of a source, in their order."""
    return tuple(_KERNEL.findall(text))


def limits(text: str, value_dim: int = 0, nvrtc: int = USUAL_NVRTC) -> dict[tuple[str, str], Limit]:
    """Return the limits that a source states, by kernel and build.

    Limits stand beside each kernel, one line for each build::

        // ptxas flash2 fast: at most 128 registers, 0 bytes of stack, 0 bytes spilled

    A line may end with ``, 40 KiB of code``. A line for ``fast VALUE_DIM>128`` replaces an earlier
    line where values are longer; a line for ``fast NVRTC 12`` does so where that compiler needs
    more.
    """
    return {
        (kernel, build): Limit(int(registers), int(stack), int(spilled), _bytes(code))
        for kernel, build, over, major, registers, stack, spilled, code in _LIMIT.findall(text)
        if (not over or value_dim > int(over)) and (not major or nvrtc == int(major))
    }


def _bytes(kib: str) -> int | None:
    return 1024 * int(kib) if kib else None
