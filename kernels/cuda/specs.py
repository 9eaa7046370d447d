"""The grid, threads, shared memory and arguments of kernels; a row for each kernel.

A kernel's arguments are in the order of its parameters and have their names in the source, which
`kernels.cuda.launch.Tensors` and `scalars` use, too; a tensor is ``Q_hbm`` there and ``q`` here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, product
from math import ceil, prod
from typing import Any

import numpy as np

from simulator.problem.workload import Workload

WARP = 32
ROWS_OF_A_WARP = 8
"""Query rows of a warp as long as there are warps left: enough rows to use each K and V that the
warp reads several times, and few enough to keep O in registers."""
MOST_WARPS = 16
SOFTMAX_THREADS = 4 * WARP
_LARGEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class LaunchPart:
    """The heads and row blocks that one launch covers."""

    heads: range  # query heads
    blocks: range  # row blocks of each of them
    columns: range | None = None  # column blocks, where a launch goes over them; None for all

    @staticmethod
    def whole(w: Workload) -> LaunchPart:
        """Return the part that is the whole workload."""
        return LaunchPart(range(w.heads), range(w.grid.Tr))

    def column_blocks(self, w: Workload) -> range:
        """Return the column blocks of a launch that goes over them."""
        return range(w.grid.Tc) if self.columns is None else self.columns

    @property
    def place(self) -> tuple[slice, slice]:
        """The slices of the heads and row blocks in an array of all."""
        heads, blocks = self.heads, self.blocks
        return slice(heads.start, heads.stop), slice(blocks.start, blocks.stop)

    def rows(self, w: Workload) -> range:
        """Return the query rows of the row blocks."""
        return range(self.blocks.start * w.rows, min(self.blocks.stop * w.rows, w.seqlen_q))


def warps(w: Workload) -> int:
    """Return the warps of a block that works on a tile."""
    return min(MOST_WARPS, ceil(w.rows / ROWS_OF_A_WARP))


def _tile_rows(w: Workload) -> int:
    return warps(w) * ceil(w.rows / warps(w))


def _scores_bytes(w: Workload) -> int:
    """Return the bytes of S or P of a tile: float32, for the rows of whole warps."""
    return 4 * _tile_rows(w) * w.cols


def _q_bytes(w: Workload) -> int:
    return w.width * _tile_rows(w) * w.head_dim


def _k_bytes(w: Workload) -> int:
    """Return the bytes of the K tile: a key's row is one bank longer than its elements."""
    return w.cols * (w.width * w.head_dim + 4)


def _v_bytes(w: Workload) -> int:
    return w.width * w.cols * w.value_dim


def _all_bytes(w: Workload) -> int:
    return _scores_bytes(w) + _q_bytes(w) + _k_bytes(w) + _v_bytes(w)


def _a_block_each(w: Workload, part: LaunchPart) -> tuple[int, ...]:
    return len(part.blocks), len(part.heads)


def _column_blocks(w: Workload) -> int:
    return w.grid.Tc


def _dv_stride(w: Workload) -> int:
    """Return the bytes of a row of V that is one bank longer than its elements."""
    return w.width * w.value_dim + 4


def _upstream_bytes(w: Workload) -> int:
    return w.width * _tile_rows(w) * w.value_dim


def _a_block_a_column(w: Workload, part: LaunchPart) -> tuple[int, ...]:
    return len(part.column_blocks(w)), w.kv_heads


def _gradient_bytes(w: Workload) -> int:
    """Return the bytes of P and dS of a tile, of its slopes, and of Q, dO, K and V."""
    pairs = (3 if w.scoring.softcap else 2) * _scores_bytes(w)
    return pairs + _q_bytes(w) + _upstream_bytes(w) + _k_bytes(w) + w.cols * _dv_stride(w)


def _always(w: Workload) -> bool:
    return True


def _state_bytes(w: Workload) -> int:
    return 4 * w.sizes["feature"] * w.sizes["total"]


def _phi_q_bytes(w: Workload) -> int:
    """Return the bytes of φ(Q) and Q of a tile."""
    return 4 * _tile_rows(w) * w.sizes["feature"] + _q_bytes(w)


def _phi_k_bytes(w: Workload) -> int:
    """Return the bytes of φ(K), whose rows are one bank longer, and of K and V of a tile."""
    own = 4 * (w.sizes["feature"] + 1) + w.width * (w.head_dim + w.value_dim)
    return w.cols * own


def _token_bytes(w: Workload) -> int:
    """Return the bytes of a token's rows and features, and of the state."""
    rows = w.width * (2 * w.head_dim + w.value_dim)
    return rows + 8 * w.sizes["feature"] + _state_bytes(w)


def _a_block_a_head(w: Workload, part: LaunchPart) -> tuple[int, ...]:
    return 1, len(part.heads)


def _a_tile_threads(w: Workload) -> int:
    return warps(w) * WARP


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """One kernel."""

    name: str  # its name in the source
    arguments: tuple[str, ...]  # the arguments of every build, in the order of its parameters
    # workload to the dynamic shared memory of a block, in bytes. Operands are as wide there as in
    # HBM
    shared: Callable[[Workload], int]
    # workload and part to the thread blocks across, down and, if they have it, in depth
    grid: Callable[[Workload, LaunchPart], tuple[int, ...]] = _a_block_each
    threads: Callable[[Workload], int] = _a_tile_threads  # workload to the threads of a block
    fixed_bytes: int = 0  # fixed shared memory of a block, in addition to the dynamic memory
    # workload to the columns that are recorded of each row block: its column blocks, unless the
    # kernel has none
    columns: Callable[[Workload], int] = _column_blocks
    whole_rows: bool = False  # whether a block works on whole rows of S
    joins: bool = False  # whether it joins the results of the splits of a row block
    # workload to whether the kernel is one of the workload's, among those of its algorithm
    when: Callable[[Workload], bool] = _always

    @property
    def by_columns(self) -> bool:
        """Whether the kernel goes over the column blocks of a part, of all heads."""
        return self.grid is _a_block_a_column

    def rows_apart(self, w: Workload) -> bool:
        """Return whether the row blocks of a head have thread blocks of their own."""
        return not self.by_columns and self.grid(w, LaunchPart.whole(w))[0] > 1

    def row_blocks(self, w: Workload, block_flops: int, at_once: int) -> int:
        """Return how many row blocks of a head a launch may take; arguments as in `pieces`."""
        spread = prod(self.grid(w, LaunchPart(range(1), range(w.grid.Tr))))
        flops = 2 * w.rows * w.seqlen_k * (w.head_dim + w.value_dim)
        return max(1, block_flops * min(spread, at_once) // flops)

    def pieces(
        self, w: Workload, block_flops: int, at_once: int, *, by_rows: bool
    ) -> Iterator[LaunchPart]:
        """Yield a workload in parts, each small enough for a launch.

        A part is some heads, some row blocks of one head, or some column blocks. The work of one
        thread block is not cut: a head of FlashAttention-1 would load K and V again, a head of a
        recurrence would go through earlier tokens again, and dK and dV of a column block are sums.

        block_flops, at_once: most work of a thread block, and thread blocks that work at the same
            time.
        """
        whole = LaunchPart.whole(w)
        step = self.row_blocks(w, block_flops, at_once)
        if by_rows and self.rows_apart(w) and step < w.grid.Tr:
            for head, start in product(whole.heads, range(0, w.grid.Tr, step)):
                blocks = range(start, min(start + step, w.grid.Tr))
                yield LaunchPart(range(head, head + 1), blocks)
            return
        places = range(w.grid.Tc) if self.by_columns else whole.heads
        flops = 2 * w.heads * w.seqlen_q * w.seqlen_k * (w.head_dim + w.value_dim) // len(places)
        spread = max(1, prod(self.grid(w, whole)) // len(places))
        most = max(1, at_once // spread, block_flops * at_once // flops)
        # Query heads that share a KV head stay together: the first of a launch may work for all.
        firsts = {kv_head: n for n, kv_head in reversed(list(enumerate(w.kv_head_of)))}
        cuts = [*(places if self.by_columns else sorted(firsts.values())), len(places)]
        start = 0
        for cut, after in pairwise(cuts):
            if after - start > most and cut > start:
                yield _piece(whole, range(start, cut), by_columns=self.by_columns)
                start = cut
        yield _piece(whole, range(start, len(places)), by_columns=self.by_columns)


def _piece(whole: LaunchPart, places: range, *, by_columns: bool) -> LaunchPart:
    return replace(whole, **{"columns" if by_columns else "heads": places})


VISITS = ("run_offsets", "runs")
"""`VISIT_PARAMETERS` of common.cuh."""
_SIZES = ("seqlen_q", "seqlen_k")
PATTERN = (
    "ahead", "shift", "dilation", "global_tokens", "block", "blocks_across", "blocks_of_head",
    "document_of", "block_mask",
)  # fmt: skip
MASK = (*_SIZES, "causal", "window", "sinks", *PATTERN)
"""`MASK_PARAMETERS` of common.cuh; `PATTERN` only for masks that the rest cannot express."""
CHANGES = ("softcap", "slopes", "biases", "bias_span")
SCORE = ("scale", *CHANGES)
"""`SCORE_PARAMETERS` of common.cuh; `CHANGES` only where scores are changed."""
SINK = ("sink",)
"""`SINK_PARAMETERS` of common.cuh; only where there are sink logits."""
OUTPUT_GATE = ("gate",)
"""`GATE_PARAMETERS` of common.cuh; only where O is gated."""
LAST_GATE = (*OUTPUT_GATE, "last_columns")
"""`ENDING_PARAMETERS` of common.cuh."""
THRESHOLD = ("threshold",)
"""`THRESHOLD_PARAMETERS` of common.cuh; only where rescales are skipped."""
SOFTMAX_SINK = (*SINK, "sink_head")
"""`LOGIT_PARAMETERS` of common.cuh."""
OPERANDS = ("q", "k", "v", "kv_head_of", "o")
PARTIALS = ("o_partial", "lse_partial")
GRADIENTS = ("dk", "dv")
TURNS = ("turns", "column_offsets", "columns")
"""`TURN_PARAMETERS` of flash2_backward.cu; only in its fast build, where turns are taken."""
_FIRST = ("first_head", "first_block")

SPECS: dict[str, KernelSpec] = {
    spec.name: spec
    for spec in (
        KernelSpec(
            "naive_scores",
            ("q", "k", "kv_head_of", "s", *VISITS, *MASK, *SCORE, *_FIRST),
            shared=lambda w: _scores_bytes(w) + _q_bytes(w) + _k_bytes(w),
        ),
        KernelSpec(
            "naive_softmax",
            ("s", "p", "seqlen_k", *SOFTMAX_SINK),
            shared=lambda w: 4 * w.seqlen_k,
            grid=lambda w, part: (len(part.rows(w)), len(part.heads)),
            threads=lambda w: SOFTMAX_THREADS,
            fixed_bytes=4 * SOFTMAX_THREADS // WARP,  # one float a warp
            columns=lambda w: 1,
            whole_rows=True,
        ),
        KernelSpec(
            "naive_output",
            ("p", "v", "kv_head_of", "o", *_SIZES, *OUTPUT_GATE, *_FIRST),
            shared=lambda w: _scores_bytes(w) + _v_bytes(w),
        ),
        KernelSpec(
            "flash1",
            (*OPERANDS, "l", "m", *VISITS, *MASK, *SCORE, *SINK, *LAST_GATE, *_FIRST, "blocks"),
            shared=_all_bytes,
            grid=lambda w, part: (1, len(part.heads)),
        ),
        KernelSpec(
            "flash2",
            (*OPERANDS, "lse", *VISITS, *MASK, *SCORE, *SINK, *THRESHOLD, *OUTPUT_GATE, *_FIRST),
            shared=_all_bytes,
        ),
        *(
            KernelSpec(
                name,
                (
                    *OPERANDS[:4],
                    *cache,
                    *PARTIALS,
                    *VISITS,
                    *MASK,
                    "queries",
                    "split_blocks",
                    *SCORE,
                    *SINK,
                    *THRESHOLD,
                    *_FIRST,
                ),
                shared=_all_bytes,
                grid=lambda w, part: (len(part.blocks), len(part.heads), w.splits),
            )
            for name, cache in (("split_kv", ()), ("paged", ("table", "page_size", "places")))
        ),
        KernelSpec(
            "mla",
            (
                "q",
                "c",
                *PARTIALS,
                *VISITS,
                *MASK,
                "queries",
                "split_blocks",
                *SCORE,
                *SINK,
                *THRESHOLD,
                *_FIRST,
            ),
            shared=lambda w: _scores_bytes(w) + _q_bytes(w) + _k_bytes(w),
            grid=lambda w, part: (len(part.blocks), len(part.heads), w.splits),
        ),
        KernelSpec(
            "split_kv_combine",
            (*PARTIALS, "o", "lse", "seqlen_q", "splits", *OUTPUT_GATE, *_FIRST),
            shared=lambda w: 4 * warps(w) * w.splits,
            columns=lambda w: w.splits,
            joins=True,
        ),
        KernelSpec(
            "linear_chunks",
            (*OPERANDS[:4], "projection", "o", "seqlen_k", *_FIRST, "blocks"),
            shared=lambda w: _phi_q_bytes(w) + _phi_k_bytes(w) + _scores_bytes(w) + _state_bytes(w),
            grid=_a_block_a_head,
            columns=lambda w: 1,
            when=lambda w: w.chunked,
        ),
        KernelSpec(
            "linear_state",
            ("k", "v", "kv_head_of", "projection", "state", "seqlen_k", "first_head", "blocks"),
            shared=lambda w: _phi_k_bytes(w) + _state_bytes(w),
            grid=_a_block_a_head,
            when=lambda w: not w.chunked,
        ),
        KernelSpec(
            "linear_rows",
            ("q", "kv_head_of", "projection", "state", "o", "seqlen_q", *_FIRST),
            shared=lambda w: _phi_q_bytes(w) + _state_bytes(w),
            columns=lambda w: 1,
            when=lambda w: not w.chunked,
        ),
        KernelSpec(
            "backward_dots",
            ("o", "do", "d", "dq_acc", "seqlen_q", *_FIRST, TURNS[0]),
            shared=lambda w: 0,
            columns=lambda w: 1,
        ),
        KernelSpec(
            "backward_tiles",
            (
                *OPERANDS[:4],
                "do",
                "lse",
                "d",
                "dq_acc",
                *GRADIENTS,
                *VISITS,
                *MASK,
                *SCORE,
                "heads",
                "first_column",
                *_FIRST,
                *TURNS,
            ),
            shared=_gradient_bytes,
            grid=_a_block_a_column,
        ),
        KernelSpec(
            "backward_convert",
            ("dq_acc", "dq", "seqlen_q", "scale", *_FIRST),
            shared=lambda w: 0,
            columns=lambda w: 1,
        ),
        KernelSpec(
            "naive_backward_values",
            ("p", "kv_head_of", "do", "dv", *_SIZES, "heads", "first_column", *_FIRST),
            shared=lambda w: _scores_bytes(w) + _upstream_bytes(w),
            grid=_a_block_a_column,
        ),
        KernelSpec(
            "naive_backward_weights",
            ("do", "v", "kv_head_of", "dp", *_SIZES, *_FIRST),
            shared=lambda w: _scores_bytes(w) + _upstream_bytes(w) + w.cols * _dv_stride(w),
        ),
        KernelSpec(
            "naive_backward_scores",
            ("p", "dp", "s", "ds", *MASK, *SCORE, *_FIRST),
            shared=lambda w: 8 * w.seqlen_k,
            grid=lambda w, part: (len(part.rows(w)), len(part.heads)),
            threads=lambda w: WARP,
            columns=lambda w: 1,
            whole_rows=True,
        ),
        KernelSpec(
            "naive_backward_queries",
            ("ds", "k", "kv_head_of", "dq", *_SIZES, "scale", *_FIRST),
            shared=lambda w: _scores_bytes(w) + _k_bytes(w),
        ),
        KernelSpec(
            "naive_backward_keys",
            ("ds", "q", "kv_head_of", "dk", *_SIZES, "scale", "heads", "first_column", *_FIRST),
            shared=lambda w: _scores_bytes(w) + _q_bytes(w),
            grid=_a_block_a_column,
        ),
        *(
            KernelSpec(
                name,
                (*OPERANDS[:4], beside, "o", "seqlen_k", *_FIRST, "blocks"),
                shared=shared,
                grid=_a_block_a_head,
                columns=lambda w: 1,
            )
            for name, beside, shared in (
                ("linear_recurrent", "projection", _token_bytes),
                ("gla", "decay", lambda w: _token_bytes(w) + 4 * w.sizes["feature"]),
                ("deltanet", "strength", lambda w: _token_bytes(w) + 4),
            )
        ),
    )
}
"""The kernels by name."""

KERNELS: dict[str, tuple[str, ...]] = {
    "naive": ("naive_scores", "naive_softmax", "naive_output"),
    "flash1": ("flash1",),
    "flash2": ("flash2",),
    "split-kv": ("split_kv", "split_kv_combine"),
    "paged": ("paged", "split_kv_combine"),
    "mla": ("mla", "split_kv_combine"),
    "linear": ("linear_chunks", "linear_state", "linear_rows"),
    "linear-recurrent": ("linear_recurrent",),
    "gla": ("gla",),
    "deltanet": ("deltanet",),
    "naive-backward": tuple(
        f"naive_backward_{made}" for made in ("values", "weights", "scores", "queries", "keys")
    ),
    "flash2-backward": ("backward_dots", "backward_tiles", "backward_convert"),
}
"""The kernels of each algorithm, in the order of its launches."""


def kernels_of(w: Workload) -> tuple[str, ...]:
    """Return the kernels that a workload launches, in their order."""
    return tuple(name for name in KERNELS[w.algorithm] if SPECS[name].when(w))


def scalars(w: Workload, part: LaunchPart) -> dict[str, Any]:
    """Return the arguments that are numbers, by name."""
    # A window of 2**31 keys and more hides as much as one of 2**31 - 1: nothing.
    mask = {name: np.int32(min(number, _LARGEST)) for name, number in w.mask.arguments.items()}
    return {
        **mask,
        "seqlen_q": np.int32(w.seqlen_q),
        "seqlen_k": np.int32(w.seqlen_k),
        "queries": np.int32(w.queries),
        "splits": np.int32(w.splits),
        "split_blocks": np.int32(min(w.split_blocks, w.grid.Tc)),
        "page_size": np.int32(w.page_size),
        "places": np.int32(0 if w.pages is None else w.pages.places),
        "bias_span": np.int32(w.queries + w.seqlen_k - 1),
        **{name: np.float32(number) for name, number in w.scoring.arguments.items()},
        "first_head": np.int32(part.heads.start),
        "threshold": np.float32(w.keeps or 0.0),
        "sink_head": np.int32(part.heads.start),
        "first_block": np.int32(part.blocks.start),
        "blocks": np.int32(len(part.blocks)),
        "heads": np.int32(w.heads),
        "first_column": np.int32(part.column_blocks(w).start),
    }


def shared_bytes(w: Workload, kernel: str) -> int:
    """Return the dynamic shared memory that a block of a kernel takes."""
    return SPECS[kernel].shared(w)


def most_shared_bytes(w: Workload) -> int:
    """Return the most shared memory that a kernel of the workload takes, fixed arrays included."""
    specs = (SPECS[name] for name in kernels_of(w))
    return max(spec.shared(w) + spec.fixed_bytes for spec in specs)


def joins_splits(w: Workload) -> bool:
    """Return whether one of the workload's kernels joins the results of its splits."""
    return any(SPECS[name].joins for name in kernels_of(w))
