"""The branch of NSA that attends to compressed blocks of keys: its cost, and its change of O.

A compressed key stands for `length` tokens, the next one for the tokens `stride` further on; a row
sees a compressed key if all its tokens came before the row or are its own. NSA compresses with a
trained function; here the mean of the keys, and of the values, takes its place.

References
----------
Yuan et al. 2025, "Native Sparse Attention", arXiv 2502.11089, section 3.3.1, token compression:
the keys of row t are φ(k of tokens i·stride + 1 to i·stride + length) for i up to
⌊(t − length) / stride⌋.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from simulator.base.dtypes import F64
from simulator.base.matmul import matmul
from simulator.problem.hardware import LAUNCH_SECONDS, time_estimate
from simulator.problem.intervals import Bools
from simulator.problem.masks import BlockMask, Mask
from simulator.problem.workload import Inputs, Workload
from simulator.program.algorithms import BASELINE, USUAL, algorithm_of, tile_program
from simulator.study.sparse.patterns import (
    MOST_PAIRS,
    MOST_SCORES,
    Knobs,
    Pattern,
    Priced,
    attended,
    dense_mask,
)
from simulator.study.sweep import figures_of
from simulator.timing.duration import rough_duration

NAME = "NSA, compressed"


@dataclass(frozen=True, slots=True)
class Compression:
    """Which tokens each compressed key stands for."""

    length: int  # length, stride: tokens of one, and from one to the next
    stride: int

    def count(self, keys: int) -> int:
        """Return how many compressed keys there are; tokens that fill no whole block have none."""
        return max((keys - self.length) // self.stride + 1, 0)

    def means(self, x: F64) -> F64:
        """Return the mean of the rows of each block, (count, width) of (keys, width)."""
        starts = np.arange(self.count(len(x))) * self.stride
        sums = np.concatenate([np.zeros((1, x.shape[1])), np.cumsum(x, axis=0)])
        return np.asarray((sums[starts + self.length] - sums[starts]) / self.length)

    def seen(self, dense: Mask) -> Bools:
        """Return which rows see which compressed keys, (rows, count)."""
        last = np.arange(self.count(dense.seqlen_k)) * self.stride + self.length - 1
        at = dense.aligned(range(dense.seqlen_q))[:, None]
        return np.asarray((last <= at) if dense.causal else np.ones((len(at), len(last)), bool))


def usual_compression(knobs: Knobs) -> Compression:
    """Return blocks as long as in the other patterns, which overlap by half, as in NSA."""
    return Compression(knobs.block, max(knobs.block // 2, 1))


def compressed(
    w: Workload, inputs: Inputs, knobs: Knobs, *, errors: bool = True
) -> tuple[Priced, ...]:
    """Return the price of the branch; nothing if it has no keys or the run is too long.

    The bytes of compressing are added to the bytes of attention over the compressed keys: K and V
    read once, and their means written once, in a launch of its own. A scenario's biases, which
    depend on the distance of two tokens, have no meaning here, so with any the branch has no price.

    w, inputs, knobs, errors: as in `patterns` and `priced`.
    """
    own = algorithm_of(w)
    name = w.algorithm if own.softmax and not own.stores_scores else USUAL.name
    single = w.as_algorithm(BASELINE.name)
    numbers, dense, made = single.posed(inputs), dense_mask(single), usual_compression(knobs)
    count = made.count(single.seqlen_k)
    few = single.queries * single.seqlen_k <= MOST_PAIRS
    if not count or not few or single.slopes or single.biases is not None:
        return ()
    seen = made.seen(dense)
    mask = Mask(single.queries, count, blocks=BlockMask(1, seen))
    words = (
        f"{count} keys, each the mean of {made.length}, one every {made.stride}; NSA's first branch"
    )
    run = replace(single, seqlen_k=count, mask=mask).as_algorithm(name)
    width = single.kv_heads * (single.head_dim + single.value_dim) * single.width
    found, full, less = figures_of(run), width * single.seqlen_k, width * count
    read, write = found.read + full, found.write + less
    figures = replace(
        found, read=read, write=write, compulsory=found.compulsory + full + less,
        held=found.held + full, time=time_estimate(w.gpu, read + write, found.flops, w.dtype),
    )  # fmt: skip
    exact = errors and single.heads * single.seqlen_q * single.seqlen_k <= MOST_SCORES
    error = _error(single, numbers, made, seen) if exact else None
    time = rough_duration(tile_program(run))
    seconds = time.seconds + LAUNCH_SECONDS + (full + less) / (w.gpu.tbps * 1e12)
    if time.model is None:
        seconds = figures.time.seconds
    tiles = run.heads * int(run.grid.visited_columns.sums[-1])
    share = mask.pairs / dense.pairs
    pattern, modelled = Pattern(NAME, words, mask, of_keys=False), time.model is not None
    return (Priced(pattern, tiles, figures, share, error, seconds, modelled),)


def _error(w: Workload, inputs: Inputs, made: Compression, seen: Bools) -> float:
    """Return how far O is from O without compression, all heads and rows together."""
    size = apart = 0.0
    rows, keys = range(w.seqlen_q), range(w.seqlen_k)
    open_to = dense_mask(w).visible(rows, keys)
    for head, kv in enumerate(w.kv_head_of):
        q, k, v = (x.astype(np.float64) for x in (inputs.q[head], inputs.k[kv], inputs.v[kv]))
        sink = w.scoring.sink(head)
        s, short = (
            w.scoring.capped(w.scoring.of(matmul(q, each.T))) for each in (k, made.means(k))
        )
        dense = attended(s, open_to, v, sink)
        brief = attended(short, seen, made.means(v), sink)
        size += float(np.square(dense).sum())
        apart += float(np.square(brief - dense).sum())
    return float(np.sqrt(apart / max(size, 1e-300)))
