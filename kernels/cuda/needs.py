"""What the thread blocks of a workload's kernels take of a multiprocessor."""

from __future__ import annotations

from kernels.build.nvrtc import limits
from kernels.build.sources import source
from kernels.cuda.specs import SPECS, kernels_of
from simulator.problem.workload import Workload
from simulator.study.schedule.residency import BlockNeeds


def block_needs(w: Workload) -> tuple[BlockNeeds, ...]:
    """Return what a thread block of each launch takes.

    Shared memory is what the kernel is launched with. Registers are the limit that stands beside
    the kernel and that every compilation keeps, so a kernel may take fewer.
    """
    stated = limits(source(w.algorithm), w.value_dim)
    return tuple(
        BlockNeeds(
            name,
            SPECS[name].threads(w),
            SPECS[name].shared(w) + SPECS[name].fixed_bytes,
            stated[name, "fast"].registers,
        )
        for name in kernels_of(w)
    )
