"""Bytes that are not requested tile by tile: the least that a perfect cache would move."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import STATISTIC_WIDTH
from simulator.problem.tiling import TileGrid
from simulator.problem.workload import Workload
from simulator.program.algorithms import TENSORS, algorithm_of


def compulsory_bytes(w: Workload) -> int:
    """Return the distinct bytes that each kernel launch reads or writes, summed over launches.

    A byte that a launch reads and writes counts once. K and V count once for each KV head,
    however many query heads share it.
    """
    return bytes_touching(w, *touched(w.grid))


def bytes_touching(w: Workload, rows: int, keys: int) -> int:
    """Return the compulsory bytes for so many rows and keys in visited blocks; naive uses all."""
    b, d, dv = w.width, w.head_dim, w.value_dim
    Nq, Nk, heads = w.seqlen_q, w.seqlen_k, w.heads
    sinks = STATISTIC_WIDTH * len(w.sink_logits)
    output = heads * Nq * dv
    joined = algorithm_of(w).stores_scores or algorithm_of(w).splits
    gate = b * heads * (Nq if joined else rows) * dv * w.gated
    if algorithm_of(w).stores_scores:
        square = heads * Nq * Nk
        scores = heads * Nq * d + w.kv_heads * Nk * d + square
        weighted = square + w.kv_heads * Nk * dv + output
        return b * (scores + 2 * square + weighted) + sinks + gate
    if algorithm_of(w).backward:
        return _backward_bytes(w, rows, keys) if algorithm_of(w).skips else _whole_bytes(w)
    of_keys = (*algorithm_of(w).inputs[1:], *algorithm_of(w).gates)
    operands = b * heads * rows * d + sinks + gate
    operands += sum(spec.bytes_in(w, keys=keys) for spec in of_keys)
    if algorithm_of(w).normalises_each_tile:
        return operands + STATISTIC_WIDTH * (output + 2 * heads * Nq)
    # A state that goes from chunk to chunk stays on chip.
    tensors = () if w.chunked else algorithm_of(w).tensors
    passed = sum(spec.bytes_in(w) for spec in tensors)
    lse = heads * Nq if algorithm_of(w).softmax else 0
    return operands + 2 * passed + b * output + STATISTIC_WIDTH * lse


def _whole_bytes(w: Workload) -> int:
    """Return the compulsory bytes where each launch reads and writes whole tensors."""
    launches = algorithm_of(w).launches(w)
    return sum(sum(stored_bytes(w, {*one.reads, *one.writes}).values()) for one in launches)


def _backward_bytes(w: Workload, rows: int, keys: int) -> int:
    """Return the compulsory bytes of a backward pass: D and zeros, gradients, and the stored dQ.

    A tensor that is added to counts once; dK and dV of keys that nobody sees are written, too.
    """
    b, four, d, dv = w.width, STATISTIC_WIDTH, w.head_dim, w.value_dim
    queries, kv_heads = w.heads * w.seqlen_q, w.kv_heads
    dots = queries * (2 * dv * b + four + d * four)
    tiles = w.heads * rows * ((d + dv) * b + 2 * four + d * four)
    tiles += kv_heads * (keys + w.seqlen_k) * (d + dv) * b
    return dots + tiles + queries * d * (four + b)


def stored_bytes(w: Workload, tensors: Iterable[str]) -> dict[str, int]:
    """Return how large some tensors are in HBM, all heads of each."""
    sums = algorithm_of(w).normalises_each_tile
    return {name: TENSORS[name].bytes_in(w, sums=sums) for name in tensors}


def floor_bytes(w: Workload) -> int:
    """Return Q, K, V (of a latent no V) and O once each: no exact algorithm can move less."""
    queries = w.heads * w.seqlen_q * (w.head_dim + w.value_dim)
    values = 0 if w.latent else w.value_dim
    return w.width * (queries + w.kv_heads * w.seqlen_k * (w.head_dim + values))


def touched(grid: TileGrid) -> tuple[int, int]:
    """Return how many query rows and keys are in blocks with a visited tile."""
    return (
        _length_of(grid.visited_columns.counts > 0, grid.rows, grid.mask.seqlen_q),
        _length_of(grid.visited_columns.visitors(grid.Tc) > 0, grid.cols, grid.mask.seqlen_k),
    )


def _length_of(blocks: NDArray[np.bool_], size: int, length: int) -> int:
    starts = blocks.nonzero()[0] * size
    return int(np.minimum(size, length - starts).sum())
