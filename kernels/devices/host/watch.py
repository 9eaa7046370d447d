"""Modules whose reads and writes are watched: races, places outside of arrays, unwritten memory."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from kernels.build.sources import FOLDER, whole_lines
from kernels.devices.host.compiler import SECONDS, find_compiler, preprocessed
from kernels.devices.host.module import HostKernel, HostModule, ThreadSchedule
from kernels.errors import KernelError

Kind = Literal["race", "outside", "unwritten", "unwaited"]
KINDS: tuple[Kind, ...] = ("race", "outside", "unwritten", "unwaited")
"""The kinds of faults, in the order of watch.cpp."""
IN_TURN = "-DIN_TURN"  # the definition that promises that blocks add up floats one after the other
MOST = 4096  # most pairs of places in machine code, and most places, that one launch tells apart
_SHARED, _FIXED, _NOWHERE = -1, -2, -3


@cache
def watch_reason() -> str:
    """Return why kernels cannot be watched on this machine, and what to do; empty if they can."""
    if sys.platform != "linux":
        return "kernels can be watched on Linux only: try a container with g++"
    compiler = find_compiler()
    if not compiler.available:
        return f"{compiler.reason}; install g++"
    if shutil.which("addr2line") is None:
        return "addr2line, which says of which line machine code is, is missing: install binutils"
    command = [compiler.command, "-x", "c++", "-fsanitize=thread", "-S", "-o", "-", "-"]
    done = subprocess.run(
        command, input="", capture_output=True, text=True, timeout=SECONDS, check=False
    )
    if done.returncode:
        return f"{compiler.word} does not know -fsanitize=thread: install g++ 10 or later"
    return ""


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a kernel's source."""

    file: str  # such as ``flash2.cu``
    line: int  # in the file, counted from 1
    text: str  # text of the line
    # lines of the text that was compiled: the one that accesses memory, then the call of its
    # function, and so on to the kernel itself
    within: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Side:
    """One of the accesses of a fault."""

    place: Place  # line of the access, in the kernel or a function that it calls
    called: Place  # the kernel's own line: `place`, or the call that leads there
    verb: str  # ``reads``, ``writes``, or ``adds to`` in the case of an atomic operation
    thread: int  # thread, block: the thread that did it first, and its block, counted from 0
    block: int

    def __str__(self) -> str:
        """Return the line, and the kernel's own line if it is another."""
        called = f" (called at {self.called})" if self.called.within != self.place.within else ""
        return f"{self.place}{called}"


@dataclass(frozen=True, slots=True)
class KernelFault:
    """Something that a kernel must not do."""

    # ``race``, ``outside`` (of all arrays), ``unwritten`` (shared memory is read before anything is
    # written there), ``unwaited`` (a copy may not have landed yet)
    kind: Kind
    kernel: str  # its name
    array: str  # the parameter's name, or ``shared memory``; the nearest one to an access outside
    offset: int  # offset, bytes: bytes from the start of the array, and how many are accessed there
    bytes: int
    size: int  # bytes of the array; 0 if that is not known
    first: Side | None  # the earlier access of two
    second: Side  # the access, or the later one
    times: int  # how often it happened

    @property
    def apart(self) -> int:
        """0 if one warp does both accesses, 1 if one block does, 2 if different blocks do."""
        if self.first is None or self.first.block != self.second.block:
            return 2
        return int(self.first.thread // 32 != self.second.thread // 32)

    @property
    def missing(self) -> str:
        """The barrier that would order the two accesses of a race; empty if no barrier would."""
        if self.kind != "race":
            return ""
        return ("__syncwarp()", "__syncthreads()", "")[self.apart]

    def __str__(self) -> str:
        """Return the fault in one line."""
        now = self.second
        who = f"thread {now.thread} of block {now.block}"
        times = "" if self.times == 1 else f" ({self.times} times)"
        where = f"{self.array}, byte {self.offset}"
        before = self.first
        if self.kind == "outside":
            said = f"{who} {now.verb} {self.bytes} bytes {self._outside()}: {now}"
        elif before is None:
            said = f"{who} reads {where}, which nobody has written: {now}"
        elif self.kind == "unwaited":
            said = (
                f"{who} {now.verb} {where}, before thread {before.thread} has waited for its copy: "
                f"copy at {before}, then {now}"
            )
        else:
            other = f"thread {before.thread} of block {before.block}"
            ends = f"no {self.missing} in between" if self.missing else "blocks have no order"
            said = (
                f"race in {where}: {other} {before.verb} at {before}, then {who} {now.verb} at "
                f"{now}; {ends}"
            )
        return f"{self.kernel}: {said}{times}"

    def _outside(self) -> str:
        if self.size == 0:
            return "outside of all arrays"
        if self.offset < 0:
            return f"at {-self.offset} bytes before {self.array}"
        return f"at byte {self.offset} of {self.array}, which has {self.size}"


@dataclass(frozen=True, slots=True)
class Phases:
    """Accesses of warps to dynamic shared memory at one place of a kernel, and their phases."""

    bytes: int  # of one lane
    writes: bool  # whether it writes
    offset: int  # the first byte of shared memory that is accessed there
    accesses: int  # of warps
    phases: int  # of all these accesses together; one serves a word of each of the 32 banks


class _Given(ctypes.Structure):
    _fields_ = (("start", ctypes.c_uint64), ("bytes", ctypes.c_uint64), ("item", ctypes.c_uint))


class _Found(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_int),
        ("array", ctypes.c_int),
        ("offset", ctypes.c_int64),
        ("bytes", ctypes.c_int),
        ("writes", ctypes.c_int * 2),
        ("atomic", ctypes.c_int * 2),
        ("places", ctypes.c_uint64 * 2),
        ("threads", ctypes.c_int * 2),
        ("blocks", ctypes.c_int64 * 2),
        ("told", ctypes.c_int),
        ("times", ctypes.c_uint64),
    )


class _Counted(ctypes.Structure):
    _fields_ = (
        ("place", ctypes.c_uint64),
        ("accesses", ctypes.c_uint64),
        ("phases", ctypes.c_uint64),
        ("offset", ctypes.c_uint64),
        ("bytes", ctypes.c_int),
        ("writes", ctypes.c_int),
    )


class WatchedModule(HostModule):
    """A module whose kernels' reads and writes are watched; one worker runs all blocks."""

    def __init__(
        self, code: str, options: Sequence[str], schedule: ThreadSchedule, faults: list[KernelFault]
    ) -> None:
        super().__init__(code, options, replace(schedule, workers=1), watch=True)
        self.faults = faults
        self._code = code

    def get_function(self, name: str) -> HostKernel:
        super().get_function(name)
        return WatchedKernel(self, name)

    def count_phases(self) -> None:
        """Count the phases of all launches that follow."""
        self.library.watch_count(1)

    def phases(self) -> list[Phases]:
        """Return the counted phases, an entry for each place."""
        found = (_Counted * MOST)()
        count = min(self.library.watch_counted(found, MOST), MOST)
        return [
            Phases(each.bytes, bool(each.writes), each.offset, each.accesses, each.phases)
            for each in found[:count]
        ]

    @cached_property
    def origins(self) -> list[tuple[str, int]]:
        """File and line of each line of the code."""
        return _origins(self._code)

    def place(self, line: int, within: tuple[int, ...]) -> Place:
        """Return a line of the code as a place in its file."""
        file, number = self.origins[line - 1]
        return Place(file, number, self._code.splitlines()[line - 1].strip(), within)

    def parameters(self, kernel: str) -> list[str]:
        """Return the names of a kernel's parameters."""
        text = preprocessed(self.unit, self.definitions)
        found = re.search(rf'extern "C"\s+void\s+{kernel}\(([^)]*)\)', text)
        return [part.split()[-1].strip("*") for part in found[1].split(",")] if found else []

    def lines(self, places: Sequence[int]) -> dict[int, tuple[str, tuple[int, ...]]]:
        """Return file and lines of the code for places in machine code, innermost line first."""
        asked = sorted(set(places) - {0})
        command = ["addr2line", "-a", "-i", "-e", str(self.path)]
        words = "\n".join(hex(place - 1) for place in asked)  # within the call
        done = subprocess.run(
            command, input=words, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        if done.returncode:
            raise KernelError(f"addr2line fails: {done.stderr.strip()[:200]}")
        found: dict[int, list[str]] = {}
        for said in done.stdout.splitlines():
            if said.startswith("0x"):
                frames = found.setdefault(int(said, 16) + 1, [])
            else:
                frames.append(said.partition(" (")[0])
        known = {}
        for place, frames in found.items():
            parts = [frame.rpartition(":") for frame in frames]
            lines = [
                int(n) for file, _, n in parts if Path(file).name == "kernel.cu" and n.isdigit()
            ]
            known[place] = Path(parts[0][0]).name, tuple(lines)
        return known


class WatchedKernel(HostKernel):
    """A kernel of a watched module; its faults are added to the module's faults."""

    def __init__(self, module: WatchedModule, name: str) -> None:
        super().__init__(module.library, name, module.schedule)
        self._module = module

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: Sequence[Any],
        *,
        shared_mem: int = 0,
    ) -> None:
        """Run the kernel to its end; see `HostKernel`."""
        arrays = [(n, each) for n, each in enumerate(args) if isinstance(each, np.ndarray)]
        given = (_Given * len(arrays))(
            *(_Given(each.ctypes.data, each.nbytes, each.itemsize) for _, each in arrays)
        )
        library = self._module.library
        library.watch_start(given, len(arrays), IN_TURN in self._module.definitions)
        try:
            super().__call__(grid, block, args, shared_mem=shared_mem)
        finally:
            found = (_Found * MOST)()
            count = min(library.watch_end(found, MOST), MOST)
            self._add(found[:count], arrays, shared_mem)

    def _add(
        self, found: list[_Found], arrays: list[tuple[int, np.ndarray]], shared_mem: int
    ) -> None:
        """Turn the findings of watch.cpp into faults, one for each pair of lines."""
        if not found:
            return
        module = self._module
        lines = module.lines([place for each in found for place in each.places])
        names = module.parameters(self.name)
        faults: dict[object, KernelFault] = {}
        for each in found:
            file, inner = lines[each.places[1]]
            emulated = file not in ("kernel.cu", "cuda_on_cpu.h") and not each.told
            if not inner or (KINDS[each.kind] == "outside" and emulated):
                continue  # the emulation's own memory
            array, size = "shared memory", shared_mem
            if each.array in (_FIXED, _NOWHERE):
                size = 0
            elif each.array >= 0:
                number, buffer = arrays[each.array]
                array = names[number] if number < len(names) else f"argument {number}"
                size = buffer.nbytes
            sides = [self._side(each, n, lines) if each.places[n] else None for n in (0, 1)]
            second = sides[1]
            assert second is not None
            fault = KernelFault(
                KINDS[each.kind], self.name, array, each.offset, each.bytes, size, sides[0], second,
                each.times,
            )  # fmt: skip
            key = (
                fault.kind, array,
                *((side.place.within, side.verb) for side in sides if side is not None),
            )  # fmt: skip
            before = faults.get(key, fault)
            times = before.times + fault.times if key in faults else fault.times
            faults[key] = replace(max(before, fault, key=lambda each: each.apart), times=times)
        module.faults += faults.values()

    def _side(
        self, each: _Found, n: int, lines: dict[int, tuple[str, tuple[int, ...]]]
    ) -> Side | None:
        inner = lines[each.places[n]][1]
        if not inner:
            return None
        verb = "writes" if each.writes[n] else "reads"
        if each.atomic[n] and each.writes[n]:
            verb = "adds to"
        place = self._module.place(inner[0], inner)
        called = self._module.place(inner[-1], inner[-1:])
        return Side(place, called, verb, each.threads[n], each.blocks[n])


def _origins(code: str) -> list[tuple[str, int]]:
    """Return file and line of each line of a kernel's text with all headers in their places."""
    lines = code.splitlines()
    for path in sorted(FOLDER.glob("*.cu")):
        if path.read_text(encoding="utf-8").partition("\n")[0] == lines[0]:
            found = [(line.file, line.shown) for line in whole_lines(path.stem)]
            if abs(len(found) - len(lines)) <= 1:
                return found + [(path.name, found[-1][1])] * (len(lines) - len(found))
    return [("kernel.cu", n) for n in range(1, len(lines) + 1)]
