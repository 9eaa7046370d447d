"""FlashAttention-2 on tensor cores: `cuda/flash2_mma.cu`, launched without any record.

The kernel computes the same as flash2, tile after tile. It is timed together with the other
kernels, and has no trace build.
"""

from __future__ import annotations

from math import ceil

from kernels.build.sources import whole_source
from kernels.cuda.engine import place_tensors
from kernels.cuda.launch import ELEMENT, Device, Tensors, arguments
from kernels.cuda.specs import OPERANDS, WARP, LaunchPart
from kernels.errors import KernelError
from simulator.problem.hardware import KIB, MULTIPROCESSORS
from simulator.problem.masks import window_text
from simulator.problem.workload import Inputs, Workload
from simulator.program.algorithms import algorithm_of

KERNEL = "flash2_mma"
ROWS = 128
COLS = 64
"""The kernel's own tiles, Br and Bc. It ignores the workload's tiles, which would change nothing
but the order of sums."""
WARPS = 4
"""Warps of 32 query rows each. With 8 warps of 16 rows the kernel needs 190 registers, not 255."""
RESIDENT_WARPS = 8
"""The most warps for which a multiprocessor has registers."""
BUILDS = {"4 warps": (4, 2), "4 warps, one buffer": (4, 1), "8 warps": (8, 2)}
"""Warps of a block and buffers of K and V that are checked and timed."""
ARGUMENTS = (*OPERANDS, "lse", "seqlen_q", "seqlen_k", "scale")
TAKES = ("float16", "bfloat16")
HEAD_DIMS = (64, 128)
CAPABILITY = 80
"""The first GPUs that have its instructions: sm_80, Ampere."""


class TensorCoreRun:
    """A workload on the tensor-core kernel, used like `kernels.cuda.fast.FastRun`.

    workload: a workload of flash2, causal or without a mask.
    capability: compute capability of the GPU, 90 for sm_90; none: the CPU, which can emulate any.
    warps: warps of a block, 4 or 8.
    buffers: tiles each of K and V in shared memory, 1 or 2; none: `most_resident`.
    tensors: on the device; O and LSE are NaN until the first launch.
    Raises KernelError: the kernel cannot run this workload, or not on this device.
    """

    def __init__(
        self,
        workload: Workload,
        inputs: Inputs,
        device: Device,
        capability: int | None = None,
        warps: int = WARPS,
        buffers: int | None = None,
    ) -> None:
        buffers = buffers or most_resident(workload, warps, capability)
        check(workload, device, capability, buffers)
        self.workload = workload
        self.tensors: Tensors = place_tensors(device, workload, inputs)
        module = device.module(whole_source(KERNEL), build_options(workload, warps, buffers))
        self._kernel = module.get_function(KERNEL)
        self._shared = shared_bytes(workload, buffers)
        self._kernel.max_dynamic_shared_size_bytes = self._shared
        # As much of L1 as possible becomes shared memory, so that as many blocks as possible run at
        # once.
        self._kernel.preferred_shared_memory_carveout = 100
        self._places = grid(workload), (warps * WARP,)
        self._arguments = arguments(ARGUMENTS, workload, LaunchPart.whole(workload), self.tensors)

    def launch(self) -> None:
        """Launch the kernel for all heads and row blocks."""
        self._kernel(*self._places, self._arguments, shared_mem=self._shared)


def build_options(w: Workload, warps: int = WARPS, buffers: int = 2) -> tuple[str, ...]:
    """Return the definitions that the kernel is compiled with."""
    values = {
        "BR": ROWS,
        "BC": COLS,
        "HEAD_DIM": w.head_dim,
        "VALUE_DIM": w.value_dim,
        "WARPS": warps,
        "ELEMENT": ELEMENT[w.dtype],
        "CAUSAL": int(w.mask.causal),
        "BUFFERS": buffers,
    }
    return tuple(f"-D{name}={value}" for name, value in values.items())


def shared_bytes(w: Workload, buffers: int) -> int:
    """Return the dynamic shared memory of a block: Q, and some tiles each of K and V."""
    return w.width * w.head_dim * (ROWS + 2 * buffers * COLS)


def resident(w: Workload, warps: int, buffers: int, capability: int | None) -> int:
    """Return how many blocks are on a multiprocessor at once; 0 for an unknown GPU."""
    own = MULTIPROCESSORS.get((capability or 0) / 10)
    if own is None:
        return 0
    shared = shared_bytes(w, buffers) + own.reserved_kib * KIB
    return min(own.shared_kib * KIB // shared, RESIDENT_WARPS // warps)


def most_resident(w: Workload, warps: int, capability: int | None) -> int:
    """Return the number of buffers with which most blocks are on a multiprocessor; two on a tie.

    At d = 128 sm_80 has room for two blocks with one buffer, and for one with two. sm_90 and sm_100
    have room for two in either case, sm_86, sm_89 and sm_120 for one.
    """
    return max((2, 1), key=lambda buffers: resident(w, warps, buffers, capability))


def grid(w: Workload) -> tuple[int, int]:
    """Return the blocks: row blocks, heads."""
    return ceil(w.seqlen_q / ROWS), w.heads


def check(w: Workload, device: Device, capability: int | None = None, buffers: int = 2) -> None:
    """Refuse what the kernel cannot run.

    capability: compute capability of the GPU, 90 for sm_90.
    buffers: tiles each of K and V in shared memory.
    Raises KernelError: the first thing that the kernel cannot do, and what it can do.
    """
    need, limit = shared_bytes(w, buffers), device.shared_limit
    for wrong, what in (
        (not algorithm_of(w).normalises_last, f"algorithm {w.algorithm}: it computes flash2"),
        (w.dtype not in TAKES, f"{w.dtype}: it takes {' and '.join(TAKES)}"),
        (
            w.head_dim != w.value_dim or w.head_dim not in HEAD_DIMS,
            f"d = {w.head_dim}, dv = {w.value_dim}: it takes d = dv = 64 or 128",
        ),
        (w.mask.window, f"window {window_text(w.mask.window)}: it takes causal or no mask"),
        (w.mask.moved, "a mask aligned at the top left: it aligns at the bottom right"),
        (w.mask.documents, "documents: it takes causal or no mask"),
        (w.mask.blocks, "a block mask: it takes causal or no mask"),
        (w.mask.tensor, "the mask of a file: it takes causal or no mask"),
        (
            w.changes_scores,
            f"{' and '.join(w.change_names)}: it takes scaled scores alone",
        ),
        (w.threshold is not None, "a rescale threshold: it rescales at every tile"),
        (w.gated, "a gate: it stores O as it is"),
        (w.sink_logits, "sink logits: every row starts with nothing seen"),
        (
            capability is not None and capability < CAPABILITY,
            f"sm_{capability}: its instructions came with sm_{CAPABILITY}",
        ),
        (
            need > limit,
            f"d = {w.head_dim} needs {need // KIB} KiB of shared memory, a block has "
            f"{limit // KIB} KiB",
        ),
    ):
        if wrong:
            raise KernelError(f"the tensor-core kernel cannot run {what}")
