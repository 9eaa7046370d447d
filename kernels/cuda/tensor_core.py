"""FlashAttention-2 on tensor cores: `cuda/flash2_mma.cu`, launched without any record.

It computes what flash2 computes, tile after tile. It is timed together with the other kernels, and
has no trace build.
"""

from __future__ import annotations

from math import ceil

from kernels.build.sources import whole_source
from kernels.cuda.engine import place_tensors
from kernels.cuda.launch import ELEMENT, Device, Tensors, arguments
from kernels.cuda.specs import OPERANDS, WARP, Part
from kernels.errors import KernelError
from simulator.problem.workload import Inputs, Workload
from simulator.program.algorithms import algorithm_of

KERNEL = "flash2_mma"
ROWS = 128
COLS = 64
"""The kernel's own tiles, Br and Bc. It ignores those of the workload: of all numbers only the
order of sums depends on them."""
WARPS = 4
"""Each has 32 query rows. With 8 warps of 16 rows the kernel needs 178 registers instead of 255."""
ARGUMENTS = (*OPERANDS, "lse", "seqlen_q", "seqlen_k", "scale")
TAKES = ("float16", "bfloat16")
HEAD_DIMS = (64, 128)
CAPABILITY = 80
"""The first GPUs that have its instructions: sm_80, Ampere."""


class TensorCoreRun:
    """A workload on the tensor-core kernel, used like `kernels.cuda.fast.FastRun`.

    Parameters
    ----------
    workload : Workload
        Of flash2: shapes, causal or no mask.
    inputs : Inputs
        Q, K and V.
    device : Device
        Where the kernel runs.
    capability : int, optional
        Compute capability of the GPU, 90 for sm_90; none: the CPU, which can emulate any.
    warps : int
        Warps of a block, 4 or 8.

    Attributes
    ----------
    tensors : Tensors
        On the device; O and LSE are NaN until the first launch.

    Raises
    ------
    KernelError
        The kernel cannot run this workload, or not on this device.
    """

    def __init__(
        self,
        workload: Workload,
        inputs: Inputs,
        device: Device,
        capability: int | None = None,
        warps: int = WARPS,
    ) -> None:
        check(workload, device, capability)
        self.workload = workload
        self.tensors: Tensors = place_tensors(device, workload, inputs)
        module = device.module(whole_source(KERNEL), build_options(workload, warps))
        self._kernel = module.get_function(KERNEL)
        self._shared = shared_bytes(workload)
        self._kernel.max_dynamic_shared_size_bytes = self._shared
        # As much of L1 as possible becomes shared memory, so that as many blocks as possible run at
        # once.
        self._kernel.preferred_shared_memory_carveout = 100
        self._places = grid(workload), (warps * WARP,)
        self._arguments = arguments(ARGUMENTS, workload, Part.whole(workload), self.tensors)

    def launch(self) -> None:
        """Launch the kernel for all heads and row blocks."""
        self._kernel(*self._places, self._arguments, shared_mem=self._shared)


def build_options(w: Workload, warps: int = WARPS) -> tuple[str, ...]:
    """Return the definitions that the kernel is compiled with."""
    values = {
        "BR": ROWS,
        "BC": COLS,
        "HEAD_DIM": w.head_dim,
        "VALUE_DIM": w.value_dim,
        "WARPS": warps,
        "ELEMENT": ELEMENT[w.dtype],
        "CAUSAL": int(w.mask.causal),
    }
    return tuple(f"-D{name}={value}" for name, value in values.items())


def shared_bytes(w: Workload) -> int:
    """Return the dynamic shared memory of a block: Q, and two tiles each of K and V."""
    return w.width * w.head_dim * (ROWS + 4 * COLS)


def grid(w: Workload) -> tuple[int, int]:
    """Return the blocks: row blocks, heads."""
    return ceil(w.seqlen_q / ROWS), w.heads


def check(w: Workload, device: Device, capability: int | None = None) -> None:
    """Refuse what the kernel cannot run.

    Parameters
    ----------
    w : Workload
        What it is to run.
    device : Device
        Where.
    capability : int, optional
        Compute capability of the GPU, 90 for sm_90.

    Raises
    ------
    KernelError
        The first thing that it cannot do, and what it could.
    """
    need, limit = shared_bytes(w), device.shared_limit
    for wrong, what in (
        (not algorithm_of(w).normalises_last, f"algorithm {w.algorithm}: it computes flash2"),
        (w.dtype not in TAKES, f"{w.dtype}: it takes {' and '.join(TAKES)}"),
        (
            w.head_dim != w.value_dim or w.head_dim not in HEAD_DIMS,
            f"d = {w.head_dim}, dv = {w.value_dim}: it takes d = dv = 64 or 128",
        ),
        (w.mask.window, f"window {w.mask.window}: it takes causal or no mask"),
        (w.mask.documents, "documents: it takes causal or no mask"),
        (w.mask.blocks, "a block mask: it takes causal or no mask"),
        (w.mask.tensor, "the mask of a file: it takes causal or no mask"),
        (w.scoring.softcap, "a soft-cap: it takes scaled scores alone"),
        (w.slopes, "ALiBi: it takes scaled scores alone"),
        (w.biases is not None, "a position bias: it takes scaled scores alone"),
        (w.threshold is not None, "a rescale threshold: it rescales at every tile"),
        (w.sink_logits, "sink logits: every row starts with nothing seen"),
        (
            capability is not None and capability < CAPABILITY,
            f"sm_{capability}: its instructions came with sm_{CAPABILITY}",
        ),
        (
            need > limit,
            f"d = {w.head_dim} needs {need // 1024} KiB of shared memory, a block has "
            f"{limit // 1024} KiB",
        ),
    ):
        if wrong:
            raise KernelError(f"the tensor-core kernel cannot run {what}")
