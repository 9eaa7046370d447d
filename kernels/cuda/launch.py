"""What a kernel is compiled with, how much shared memory it takes, its grid and its arguments.

All of it follows from the workload and is the same for every device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from simulator.problem.workload import Workload

WARP = 32
ROWS_OF_A_WARP = 8
"""Query rows that a warp takes while there are warps left: enough that what it reads of K and V
serves several, few enough that O stays in registers."""
MOST_WARPS = 16
SOFTMAX_THREADS = 4 * WARP
FIXED_BYTES = {"naive_softmax": 4 * SOFTMAX_THREADS // WARP}
"""Shared memory of a kernel beside what a launch gives it: one float a warp."""

KERNELS: dict[str, tuple[str, ...]] = {
    "naive": ("naive_scores", "naive_softmax", "naive_output"),
    "flash1": ("flash1",),
    "flash2": ("flash2",),
}
"""The kernels of each algorithm, in the order of its launches."""

_ELEMENT = {"float32": 0, "float16": 1, "bfloat16": 2}
_LARGEST = 2**31 - 1


class Buffer(Protocol):
    """Memory of a device, with the shape and type that it was made with."""

    @property
    def nbytes(self) -> int:
        """Its size."""

    def __getitem__(self, index: Any, /) -> Any:
        """Return a part of it."""


class Kernel(Protocol):
    """A compiled kernel."""

    max_dynamic_shared_size_bytes: int
    preferred_shared_memory_carveout: int

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: Sequence[Any],
        *,
        shared_mem: int,
    ) -> None:
        """Launch it."""


class Module(Protocol):
    """Compiled source, as `cupy.RawModule` presents it."""

    def get_function(self, name: str) -> Kernel:
        """Return a kernel by name."""


class Device(Protocol):
    """Where kernels run.

    Attributes
    ----------
    name : str
        ``host`` or ``cupy``.
    label : str
        What it is, for people.
    shared_limit : int
        Shared memory that one block may take, in bytes.
    batch_flops : int
        Work that one launch should not exceed, so that a run can be stopped and watched.
    """

    name: str
    label: str
    shared_limit: int
    batch_flops: int

    def upload(self, array: NDArray[Any]) -> Buffer:
        """Return a buffer that holds `array`."""

    def filled(self, shape: tuple[int, ...], dtype: type[np.generic], byte: int) -> Buffer:
        """Return a buffer whose every byte is `byte`; 0xff makes NaN of floats."""

    def download(self, buffer: Any) -> NDArray[Any]:
        """Return the numbers of a buffer, or of a part of one, once all launches are done."""

    def module(self, code: str, options: tuple[str, ...]) -> Module:
        """Compile a source."""


@dataclass(frozen=True, slots=True)
class Part:
    """The heads and row blocks that one launch covers.

    Attributes
    ----------
    heads : range
        Query heads.
    blocks : range
        Row blocks of each of them.
    """

    heads: range
    blocks: range

    @staticmethod
    def whole(w: Workload) -> Part:
        """Return all of a workload."""
        return Part(range(w.heads), range(w.grid.Tr))

    def rows(self, w: Workload) -> range:
        """Return the query rows of the row blocks."""
        return range(self.blocks.start * w.rows, min(self.blocks.stop * w.rows, w.seqlen_q))


@dataclass(frozen=True, slots=True)
class Recording:
    """Buffers that the trace build fills; None: not recorded.

    Attributes
    ----------
    kinds : Buffer or None
        (heads, row blocks, columns) uint8, kind of each tile.
    m, l, alpha : Buffer or None
        (heads, row blocks * Br, columns) float32, after each visit.
    counters : Buffer or None
        (heads, row blocks, columns, counters) uint64.
    details : Buffer or None
        As `kernels.cuda.records.detail_type` lays them out, one for each of `columns`.
    columns : range
        Column blocks that have details; then the launch covers a single row block.
    """

    kinds: Buffer | None = None
    m: Buffer | None = None
    l: Buffer | None = None
    alpha: Buffer | None = None
    counters: Buffer | None = None
    details: Buffer | None = None
    columns: range = range(0)

    def arguments(self) -> list[Any]:
        """Return what the trace build takes after the other arguments."""
        buffers = (self.kinds, self.m, self.l, self.alpha, self.counters, self.details)
        return [
            *(np.uint64(0) if buffer is None else buffer for buffer in buffers),
            np.int32(self.columns.start),
            np.int32(self.columns.stop),
        ]


@dataclass(frozen=True, slots=True)
class Tensors:
    """The tensors of a workload in a device's memory.

    Attributes
    ----------
    q, k, v : Buffer
        (heads, Nq, d), (kv_heads, Nk, d), (kv_heads, Nk, dv), as wide as the dtype.
    kv_head_of : Buffer
        (heads,) int32.
    o : Buffer
        (heads, Nq, dv), as wide as the dtype; float32 in flash1.
    lse, m, l : Buffer or None
        (heads, Nq) float32: LSE of flash2, m and l of flash1.
    s, p : Buffer or None
        (heads of the launch, rows of the launch, Nk) of naive, float32 unless the build says
        that they are as wide as the dtype.
    """

    q: Buffer
    k: Buffer
    v: Buffer
    kv_head_of: Buffer
    o: Buffer
    lse: Buffer | None = None
    m: Buffer | None = None
    l: Buffer | None = None
    s: Buffer | None = None
    p: Buffer | None = None


def warps(w: Workload) -> int:
    """Return the warps of a block that works on a tile."""
    return min(MOST_WARPS, ceil(w.rows / ROWS_OF_A_WARP))


def build_options(w: Workload, *, trace: bool) -> tuple[str, ...]:
    """Return the definitions that a workload's kernels are compiled with."""
    values = {
        "BR": w.rows,
        "BC": w.cols,
        "HEAD_DIM": w.head_dim,
        "VALUE_DIM": w.value_dim,
        "WARPS": warps(w),
        "ELEMENT": _ELEMENT[w.dtype],
    }
    return (*(f"-D{name}={value}" for name, value in values.items()), *(["-DTRACE"] * trace))


def shared_bytes(w: Workload, kernel: str) -> int:
    """Return the dynamic shared memory that a block of a kernel takes.

    Operands lie there as wide as in HBM, a key's row one bank longer than its elements, and S
    or P as float32, for the rows of whole warps.
    """
    if kernel == "naive_softmax":
        return 4 * w.seqlen_k
    tile_rows = warps(w) * ceil(w.rows / warps(w))
    scores = 4 * tile_rows * w.cols
    q = w.width * tile_rows * w.head_dim
    k = w.cols * (w.width * w.head_dim + 4)
    v = w.width * w.cols * w.value_dim
    if kernel == "naive_scores":
        return scores + q + k
    if kernel == "naive_output":
        return scores + v
    return scores + q + k + v


def most_shared_bytes(w: Workload) -> int:
    """Return the most that any kernel of the workload's algorithm takes, fixed arrays included."""
    return max(shared_bytes(w, name) + FIXED_BYTES.get(name, 0) for name in KERNELS[w.algorithm])


def prepared(
    module: Module,
    w: Workload,
    kernel: str,
    part: Part,
    tensors: Tensors,
    recording: Recording | None = None,
) -> Callable[[], None]:
    """Return the launch of one kernel, to be called once or again and again.

    Parameters
    ----------
    module : Module
        The workload's kernels, the trace build if there is a recording.
    w : Workload
        Shapes, mask, tiles.
    kernel : str
        Name, one of `KERNELS`.
    part : Part
        Heads and row blocks that it covers.
    tensors : Tensors
        What it reads and writes.
    recording : Recording, optional
        What the trace build fills.

    Returns
    -------
    callable
        Launches it. What takes the host time, beside the launch, has been done.
    """
    function = module.get_function(kernel)
    shared = shared_bytes(w, kernel)
    # A GPU gives 48 KiB, fixed arrays among them, unless it is asked for more.
    if shared + FIXED_BYTES.get(kernel, 0) > function.max_dynamic_shared_size_bytes:
        function.max_dynamic_shared_size_bytes = shared
    threads = SOFTMAX_THREADS if kernel == "naive_softmax" else warps(w) * WARP
    arguments = _arguments(w, kernel, part, tensors)
    if recording is not None:
        arguments += recording.arguments()
    grid = _grid(w, kernel, part)
    return lambda: function(grid, (threads,), arguments, shared_mem=shared)


def _grid(w: Workload, kernel: str, part: Part) -> tuple[int, int]:
    if kernel == "flash1":
        return 1, len(part.heads)
    if kernel == "naive_softmax":
        return len(part.rows(w)), len(part.heads)
    return len(part.blocks), len(part.heads)


def _arguments(w: Workload, kernel: str, part: Part, t: Tensors) -> list[Any]:
    """Return what every build of a kernel takes, in the order of its parameters."""
    sizes = [np.int32(w.seqlen_q), np.int32(w.seqlen_k)]
    # A window or sinks of 2**31 keys and more hide what those of 2**31 - 1 hide: nothing.
    mask = [
        np.int32(w.mask.causal),
        np.int32(min(w.mask.window, _LARGEST)),
        np.int32(min(w.mask.sinks, _LARGEST)),
    ]
    scale = np.float32(w.logit_scale)
    first = [np.int32(part.heads.start), np.int32(part.blocks.start)]
    if kernel == "naive_scores":
        return [t.q, t.k, t.kv_head_of, t.s, *sizes, scale, *mask, *first]
    if kernel == "naive_softmax":
        return [t.s, t.p, np.int32(w.seqlen_k)]
    if kernel == "naive_output":
        return [t.p, t.v, t.kv_head_of, t.o, *sizes, *first]
    operands = [t.q, t.k, t.v, t.kv_head_of, t.o]
    if kernel == "flash1":
        blocks = np.int32(len(part.blocks))
        return [*operands, t.l, t.m, *sizes, scale, *mask, *first, blocks]
    return [*operands, t.lse, *sizes, scale, *mask, *first]
