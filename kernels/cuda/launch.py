"""The options of a kernel, its shared memory, its grid and its arguments.

They follow from the workload and are the same for every device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kernels.cuda.specs import (
    CHANGES,
    LAST_GATE,
    PATTERN,
    SOFTMAX_SINK,
    SPECS,
    THRESHOLD,
    TURNS,
    LaunchPart,
    scalars,
    warps,
)
from simulator.base.dtypes import TYPE_NAMES
from simulator.problem.workload import Workload
from simulator.program.algorithms import takes_turns

ELEMENT = {name: code for code, name in enumerate(TYPE_NAMES)}
"""The value of ``-DELEMENT`` for an element type, which common.cuh reads."""


class Buffer(Protocol):
    """Memory of a device, with the shape and type that it was made with."""

    @property
    def nbytes(self) -> int:
        """Bytes of the buffer."""

    def __getitem__(self, index: Any, /) -> Any:
        """Return a part of the buffer."""


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
        """Launch the kernel."""


class Module(Protocol):
    """Compiled source, as `cupy.RawModule` presents it."""

    def get_function(self, name: str) -> Kernel:
        """Return a kernel by name."""


class Device(Protocol):
    """A machine that runs kernels."""

    name: str  # ``host`` or ``cupy``
    label: str  # its name for people
    shared_limit: int  # shared memory that one block may take, in bytes
    # most work of one thread block in a launch, so that a run can be stopped, its progress shown,
    # and no watchdog of a screen ends the launch
    block_flops: int
    # thread blocks that work at the same time, at least: launches of more take longer
    blocks_at_once: int

    def upload(self, array: NDArray[Any]) -> Buffer:
        """Return a buffer that holds `array`."""

    def filled(self, shape: tuple[int, ...], dtype: type[np.generic], byte: int) -> Buffer:
        """Return a buffer whose every byte is `byte`; 0xff makes NaN of floats."""

    def download(self, buffer: Any) -> NDArray[Any]:
        """Return the numbers of a buffer, or of a part of one, once all launches are done."""

    def module(self, code: str, options: tuple[str, ...]) -> Module:
        """Compile a source."""

    def forget(self) -> None:
        """Give memory back that no buffer needs."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Buffers that the trace build fills; None: not recorded."""

    kinds: Buffer | None = None  # (heads, row blocks, columns) uint8, kind of each tile
    # m, l, alpha: (heads, row blocks * Br, columns) float32, after each visit
    m: Buffer | None = None
    l: Buffer | None = None
    alpha: Buffer | None = None
    counters: Buffer | None = None  # (heads, row blocks, columns, counters) uint64
    # as `kernels.cuda.records.detail_type` lays them out, one for each of `columns`
    details: Buffer | None = None
    # column blocks that have details; if there are any, the launch covers a single row block
    columns: range = range(0)

    def arguments(self) -> list[Any]:
        """Return the arguments of the trace build, which follow the others."""
        buffers = (self.kinds, self.m, self.l, self.alpha, self.counters, self.details)
        return [
            *(np.uint64(0) if buffer is None else buffer for buffer in buffers),
            np.int32(self.columns.start),
            np.int32(self.columns.stop),
        ]


@dataclass(frozen=True, slots=True)
class Tensors:
    """The tensors of a workload in a device's memory."""

    # q, k, v: (heads, Nq, d), (kv_heads, Nk, d), (kv_heads, Nk, dv), as wide as the dtype
    q: Buffer
    k: Buffer
    v: Buffer
    kv_head_of: Buffer  # (heads,) int32
    o: Buffer  # (heads, Nq, dv), as wide as the dtype; float32 in flash1
    # lse, m, l: (heads, Nq) float32: LSE of flash2 and split-kv, m and l of flash1
    lse: Buffer | None = None
    m: Buffer | None = None
    l: Buffer | None = None
    # s, p: (heads of the launch, rows of the launch, Nk) for naive, float32 unless the build says
    # that they are as wide as the dtype
    s: Buffer | None = None
    p: Buffer | None = None
    # o_partial, lse_partial: (heads of the launch, splits, rows of the launch, dv) and the same
    # without dv, float32: the results of the splits of split-kv
    o_partial: Buffer | None = None
    lse_partial: Buffer | None = None
    # run_offsets, runs: which tiles are visited: `kernels.cuda.runs.Runs`
    run_offsets: Buffer | None = None
    runs: Buffer | None = None
    slopes: Buffer | None = None  # (query heads,) float32, ALiBi's; None without them
    # (query heads, bias_span) float32, the bias of scores at each distance; None for no bias
    biases: Buffer | None = None
    # document_of, block_mask: (Nk,) int32, which document each key is in; (row blocks, key blocks)
    # uint8, which are visible. None if the mask says nothing of them
    document_of: Buffer | None = None
    block_mask: Buffer | None = None
    sink: Buffer | None = None  # (query heads,) float32, sink logits; None without any
    # projection, state: (f, d) and (kv_heads, f, dv + 1) float32 for linear attention: the
    # directions of a feature map that has some, and the sums over the keys
    projection: Buffer | None = None
    state: Buffer | None = None
    # gate, last_columns: (heads, Nq, dv) as wide as the dtype, the factor of O, and (row blocks,)
    # int32, the last column block that each sees; None without a gate
    gate: Buffer | None = None
    last_columns: Buffer | None = None
    c: Buffer | None = None  # (kv_heads, Nk, d), a latent in the place of K and V
    # decay, strength: (kv_heads, Nk, f) and (kv_heads, Nk) float32, the gates of rules that update
    # a state
    decay: Buffer | None = None
    strength: Buffer | None = None
    # (places,) int32, where the pages of K and V lie; K and V are then (kv_heads, places * page
    # size, width)
    table: Buffer | None = None
    # do, d: (heads, Nq, dv) as wide as the dtype and (heads, Nq) float32: the gradient of O that a
    # backward pass starts with, and its products with O
    do: Buffer | None = None
    d: Buffer | None = None
    # dq_acc, dq, dk, dv: (heads, Nq, d) float32, and the gradients, as wide as the dtype
    dq_acc: Buffer | None = None
    dq: Buffer | None = None
    dk: Buffer | None = None
    dv: Buffer | None = None
    # (heads, row blocks + 1) int32, where column blocks add to dQ in turn: how many have added to
    # the rows of each row block, and at last a number for each that starts
    turns: Buffer | None = None
    # column_offsets, columns: like `run_offsets` and `runs`, where turns are taken: which column
    # blocks visit each row block
    column_offsets: Buffer | None = None
    columns: Buffer | None = None
    dp: Buffer | None = None  # dp, ds: (heads, Nq, Nk), gradients of P and S as wide as these
    ds: Buffer | None = None


WRITTEN = (
    "o", "lse", "m", "l", "s", "p", "o_partial", "lse_partial", "state", "d", "dq_acc", "dq", "dk",
    "dv", "dp", "ds",
)  # fmt: skip
"""The tensors that kernels write; they only read the others, except `turns`."""


def written(tensors: Tensors) -> dict[str, Buffer]:
    """Return the tensors that a workload's kernels write, by name."""
    every = ((name, getattr(tensors, name)) for name in WRITTEN)
    return {name: buffer for name, buffer in every if buffer is not None}


def build_options(w: Workload, *, trace: bool) -> tuple[str, ...]:
    """Return the definitions that a workload's kernels are compiled with."""
    values = {
        "BR": w.rows,
        "BC": w.cols,
        "HEAD_DIM": w.head_dim,
        "VALUE_DIM": w.value_dim,
        "WARPS": warps(w),
        "ELEMENT": ELEMENT[w.dtype],
    }
    if w.feature_map:
        values |= {"FEATURES": w.feature_map.features, "PROJECTS": int(w.feature_map.projects)}
    defined = {**{change.key.upper(): True for change in w.score_changes},
               "PATTERN": w.mask.patterned, "SINK": w.sink_logits,
               "THRESHOLD": w.keeps is not None, "ROUND_PAIRS": w.pair_dtype is not None,
               "OUTPUT_GATE": w.gated,
               "TRACE": trace,
               # The trace build launches one column block after the other.
               "IN_TURN": takes_turns(w) and not trace}  # fmt: skip
    return (
        *(f"-D{name}={value}" for name, value in values.items()),
        *(f"-D{name}" for name, on in defined.items() if on),
    )


def prepared(
    module: Module,
    w: Workload,
    kernel: str,
    part: LaunchPart,
    tensors: Tensors,
    recording: Recording | None = None,
) -> Callable[[], None]:
    """Return a function that launches one kernel, once or again and again.

    module: the workload's kernels, the trace build if there is a recording.
    kernel: name, one of `SPECS`.
    recording: what the trace build fills.
    Returns: the function. All other slow work on the host has been done before.
    """
    spec, function = SPECS[kernel], module.get_function(kernel)
    shared = spec.shared(w)
    # A GPU gives 48 KiB, including fixed arrays, unless it is asked for more.
    if shared + spec.fixed_bytes > function.max_dynamic_shared_size_bytes:
        function.max_dynamic_shared_size_bytes = shared
    threads, grid = spec.threads(w), spec.grid(w, part)
    in_turn = takes_turns(w) and recording is None
    names = [name for name in spec.arguments if name not in TURNS or in_turn]
    taken = arguments(names, w, part, tensors)
    if recording is not None:
        taken += recording.arguments()
    return lambda: function(grid, (threads,), taken, shared_mem=shared)


def arguments(names: Sequence[str], w: Workload, part: LaunchPart, tensors: Tensors) -> list[Any]:
    """Return the argument for each of a kernel's parameters in a launch."""
    known = scalars(w, part)
    unused = (
        *(() if w.changes_scores else CHANGES),
        *(() if w.mask.patterned else PATTERN),
        *(() if w.sink_logits else SOFTMAX_SINK),
        *(() if w.keeps is not None else THRESHOLD),
        *(() if w.gated else LAST_GATE),
    )
    taken = [name for name in names if name not in unused]
    given = (known[name] if name in known else getattr(tensors, name) for name in taken)
    return [np.uint64(0) if each is None else each for each in given]
