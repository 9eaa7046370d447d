"""The ladder from flash2 to the tensor-core kernel: one trick a rung, and what each changes.

``python -m kernels.checks.ladder`` prints the table of docs/ladder.md. It needs no GPU: NVRTC says
what a kernel takes, and a watched run on the CPU shows how warps share the banks of shared memory.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

from kernels.build.nvrtc import Usage, compile_cubin
from kernels.build.sources import whole_source
from kernels.cuda import tensor_core
from kernels.cuda.engine import place_tensors
from kernels.cuda.launch import ELEMENT, Tensors, arguments
from kernels.cuda.specs import SPECS, WARP, LaunchPart
from kernels.devices.host.device import HostDevice
from kernels.devices.host.watch import Phases, WatchedModule
from kernels.errors import KernelError
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import Inputs, Workload, read_inputs, resolve

ROWS, COLS, HEAD_DIM, TILES = tensor_core.ROWS, tensor_core.COLS, 64, 2
"""Rows and columns of a tile, the same on every rung, d, and the tiles of the watched row block."""
ARCHITECTURES = ("sm_80", "sm_90")
PADDED = 8  # elements after a row in shared memory, if its chunks are not swizzled


@dataclass(frozen=True, slots=True)
class Rung:
    """One kernel of the ladder."""

    name: str  # the trick
    source: str  # the file, and the kernel in it
    warps: int
    definitions: dict[str, int] = field(default_factory=dict)
    pads: tuple[int, int, int] = (0, 0, 0)  # elements after each row of Q, K and V on chip
    buffers: int = 2  # tiles each of K and V on chip
    keeps_scores: bool = False  # whether S is on chip, too

    def options(self, w: Workload) -> tuple[str, ...]:
        """Return the definitions for the compiler."""
        sizes = {"BR": ROWS, "BC": COLS, "HEAD_DIM": w.head_dim, "VALUE_DIM": w.head_dim}
        values = sizes | {"WARPS": self.warps, "ELEMENT": ELEMENT[w.dtype]} | self.definitions
        values["CAUSAL"] = int(w.mask.causal)
        return tuple(f"-D{name}={value}" for name, value in values.items())

    def regions(self, w: Workload) -> dict[str, range]:
        """Return the range of shared memory of each tensor, in bytes."""
        q, k, v = (w.width * (w.head_dim + pad) for pad in self.pads)
        sizes = {"S": 4 * ROWS * COLS if self.keeps_scores else 0, "Q": ROWS * q,
                 "K": self.buffers * COLS * k, "V": self.buffers * COLS * v}  # fmt: skip
        found, start = {}, 0
        for name, size in sizes.items():
            found[name] = range(start, start + size)
            start += size
        return found


_FLASH2 = 16  # warps with eight rows each, as flash2 takes them (kernels/cuda/specs.py: warps)
RUNGS = (
    Rung("flash2", "flash2", _FLASH2, pads=(0, 2, 0), buffers=1, keeps_scores=True),
    Rung("16-byte loads", "ladder", _FLASH2, {"RUNG": 1}, (PADDED,) * 3, 1, keeps_scores=True),
    Rung("cp.async", "ladder", _FLASH2, {"RUNG": 2}, (PADDED,) * 3, keeps_scores=True),
    Rung("mma, ldmatrix", "flash2_mma", 8, {"BUFFERS": 2, "SWIZZLE": 0}),
    Rung("swizzle", "flash2_mma", 8, {"BUFFERS": 2, "SWIZZLE": 1}),
    Rung("two fragments a warp", "flash2_mma", 4, {"BUFFERS": 2, "SWIZZLE": 1}),
)


def launched(
    rung: Rung, w: Workload, inputs: Inputs, device: HostDevice, counted: list[Phases] | None = None
) -> Tensors:
    """Run a rung on the CPU.

    w: a workload of flash2 with tiles of `ROWS` by `COLS`.
    counted: the list that gets the phases, if the device watches.
    """
    tensors = place_tensors(device, w, inputs)
    module = device.module(whole_source(rung.source), rung.options(w))
    counting = module if counted is not None and isinstance(module, WatchedModule) else None
    if counting:
        counting.count_phases()
    own = SPECS.get(rung.source)
    module.get_function(rung.source)(
        tensor_core.grid(w),
        (rung.warps * WARP,),
        arguments(own.arguments if own else tensor_core.ARGUMENTS, w, LaunchPart.whole(w), tensors),
        shared_mem=rung.regions(w)["V"].stop,
    )
    if counting and counted is not None:
        counted += counting.phases()
    return tensors


def watched_workload() -> tuple[Workload, Inputs]:
    """Return a workload of one row block and `TILES` whole tiles without a mask, and its inputs."""
    sizes = {"heads": 1, "seqlen_q": ROWS, "seqlen_k": TILES * COLS, "head_dim": HEAD_DIM}
    tiling = {"rows": ROWS, "cols": COLS}
    w = resolve(parse_scenario({"attention": {**sizes, "dtype": "float16"}, "tiling": tiling}))
    return w, read_inputs(w)


def usage(rung: Rung, w: Workload, arch: str) -> Usage:
    """Return the resources that a rung takes on an architecture, as NVRTC says."""
    text, name = whole_source(rung.source), rung.source
    return compile_cubin(text, f"{name}.cu", arch, rung.options(w)).usage[name]


def asked_of(regions: dict[str, range], counted: list[Phases], name: str, *, writes: bool) -> str:
    """Return in words how often warps access a tensor, and in how many phases each time."""
    found = [each for each in counted if each.writes == writes and each.offset in regions[name]]
    accesses = sum(each.accesses for each in found)
    return f"{accesses:,} × {sum(each.phases for each in found) / accesses:g}"


def rows() -> Iterator[tuple[str, ...]]:
    """Yield the table: its header, then a line for each rung."""
    takes = [f"{what}, {arch}" for what in ("registers", "code") for arch in ARCHITECTURES]
    moves = ("K is written", "K is read", "V is read", "all phases")
    yield ("rung", "kernel", *takes, "shared memory", *moves)
    w, inputs = watched_workload()
    for rung in RUNGS:
        taken = [usage(rung, w, arch) for arch in ARCHITECTURES]
        counted: list[Phases] = []
        launched(rung, w, inputs, HostDevice(watch=True), counted)
        regions = rung.regions(w)
        switches = {"WARPS": rung.warps, **rung.definitions}
        yield (
            rung.name,
            f"`{rung.source}` " + ", ".join(f"{name} {value}" for name, value in switches.items()),
            *(f"{each.registers}" for each in taken),
            *(f"{each.code / 1024:.0f} KiB" for each in taken),
            f"{regions['V'].stop / 1024:.0f} KiB",
            asked_of(regions, counted, "K", writes=True),
            asked_of(regions, counted, "K", writes=False),
            asked_of(regions, counted, "V", writes=False),
            f"{sum(each.phases for each in counted):,}",
        )


def table() -> str:
    """Return the table in Markdown."""
    header, *lines = rows()
    rule = ("---", "---", *("---:" for _ in header[2:]))
    return "".join(f"| {' | '.join(line)} |\n" for line in (header, rule, *lines))


def main() -> int:
    """Print the table, or what this machine lacks."""
    try:
        sys.stdout.write(table())
    except KernelError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
