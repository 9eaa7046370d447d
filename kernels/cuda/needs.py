"""The resources of a multiprocessor that thread blocks of a workload's kernels take."""

from __future__ import annotations

from kernels.build.cache import cache_folder
from kernels.build.elf import registers
from kernels.build.nvrtc import limits
from kernels.build.shipped import kept_name
from kernels.build.sources import source, whole_source
from kernels.cuda.launch import build_options
from kernels.cuda.specs import SPECS, kernels_of
from simulator.problem.workload import Workload
from simulator.study.schedule.residency import BlockNeeds


def block_needs(w: Workload, cubin: bytes | None = None) -> tuple[BlockNeeds, ...]:
    """Return the resources that a thread block of each launch takes.

    Shared memory is the memory that the kernel is launched with.

    cubin: the compiled kernels, with the registers that they take. Without a cubin, registers are
        the limit that stands beside the kernel. It was checked at some tilings; at others a kernel
        may take more, or fewer.
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


def known_cubin(w: Workload) -> bytes | None:
    """Return the cached cubin of a workload's fast kernels for its GPU; None if there is none."""
    code, options = whole_source(w.algorithm), build_options(w, trace=False)
    name = kept_name(code, options, "*", f"sm_{round(10 * w.gpu.capability)}")
    try:
        return max(cache_folder().glob(name)).read_bytes()
    except (ValueError, OSError):  # none, or no longer
        return None
