"""What the thread blocks of a workload's kernels take of a multiprocessor."""

from __future__ import annotations

from kernels.build.elf import registers
from kernels.build.nvrtc import limits
from kernels.build.sources import source
from kernels.cuda.specs import SPECS, kernels_of
from simulator.problem.workload import Workload
from simulator.study.schedule.residency import BlockNeeds


def block_needs(w: Workload, cubin: bytes | None = None) -> tuple[BlockNeeds, ...]:
    """Return what a thread block of each launch takes.

    Shared memory is what the kernel is launched with.

    Parameters
    ----------
    w : Workload
        Shapes and tiles.
    cubin : bytes, optional
        The kernels as they were compiled: with the registers that they take. Without it, registers
        are the limit that stands beside the kernel. It was checked at some tilings; at others a
        kernel may take more, or fewer.
    """
    stated = limits(source(w.algorithm), w.value_dim)
    taken = registers(cubin) if cubin else {}
    return tuple(
        BlockNeeds(
            name,
            SPECS[name].threads(w),
            SPECS[name].shared(w) + SPECS[name].fixed_bytes,
            taken.get(name, stated[name, "fast"].registers),
            name in taken,
        )
        for name in kernels_of(w)
    )
