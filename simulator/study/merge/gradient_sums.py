"""dQ of a backward pass, added up in a chosen order and in any: what differs, and what order costs.

Every column block adds to dQ of its rows in HBM. With atomic additions whoever comes first adds
first, and a sum of float32 numbers depends on the order of its terms. If each column block stores a
share of its own instead, the shares can be added up in one order, and need room of their own.

References
----------
Dao 2023, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning",
section 3.2; `deterministic` of flash_attn_func in Dao-AILab/flash-attention.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from simulator.base.dtypes import F32
from simulator.base.matmul import matmul
from simulator.program.gradient_ops import AddQueryGradient
from simulator.run.trace import Trace


@dataclass(frozen=True, slots=True)
class Orders:
    """Sums of dQ in random orders beside those in the order of column blocks.

    Attributes
    ----------
    numbers : int
        Numbers of dQ, all heads.
    moved : int
        Of these, how many have other bits in at least one order.
    most_ulp : int
        By how many float32 numbers one of them moves at most.
    sum_bytes, share_bytes : int
        Room in HBM for one sum of each number, and for a share from each tile.
    """

    numbers: int
    moved: int
    most_ulp: int
    sum_bytes: int
    share_bytes: int


def adds_to_rows(trace: Trace) -> bool:
    """Return whether tiles of a run add to sums of rows that other tiles add to, too."""
    launch = trace.program.launches[trace.program.forming]
    return bool(launch.reads.keys() & launch.writes.keys())


def random_orders(trace: Trace, orders: int = 20, seed: int = 0) -> Orders:
    """Return what random orders of the column blocks change in the sums of dQ.

    Parameters
    ----------
    trace : Trace
        A run whose tiles add to dQ in HBM.
    orders : int
        How many random orders each row block is tried in.
    seed : int
        Of the orders.
    """
    w, random = trace.workload, np.random.default_rng(seed)
    numbers = moved = most = 0
    for head in range(w.heads):
        for i in range(w.grid.Tr):
            terms = list(shares(trace, head, i))
            if not terms:
                continue
            chosen = added_up(terms)
            off = np.zeros(chosen.shape, np.int64)
            for _ in range(orders):
                other = added_up([terms[n] for n in random.permutation(len(terms))])
                off = np.maximum(off, _apart(chosen, other))
            numbers += chosen.size
            moved += int(np.count_nonzero(off))
            most = max(most, int(off.max()))
    totals, launch = trace.program.totals, trace.program.launches[trace.program.forming]
    (name,) = launch.reads.keys() & launch.writes.keys()
    room = next(spec for spec in trace.program.algorithm.tensors if spec.name == name).bytes_in(w)
    return Orders(numbers, moved, most, room, totals.write[name] - room)  # less the zeros


def shares(trace: Trace, head: int, i: int) -> Iterator[F32]:
    """Yield what each tile of a row block adds to dQ, in the order of column blocks, float32."""
    program = trace.program
    for index in program.of_row_block(head, i):
        adds = any(isinstance(op, AddQueryGradient) for op in program.ops(index))
        if adds:
            last = trace.tile(index).states[-1]
            weights, rows = (last[name] for name in AddQueryGradient.factors)
            yield matmul(weights, rows).astype(np.float32)


def added_up(terms: list[F32]) -> F32:
    """Return a float32 sum, term by term from zero, as HBM would have it."""
    total = np.zeros_like(terms[0])
    for term in terms:
        total = total + term
    return total


def _apart(one: F32, other: F32) -> np.ndarray:
    """Return how many float32 numbers lie between two, and one of them."""
    first, second = (x.view(np.int32).astype(np.int64) for x in (one, other))
    # Negative numbers count downwards from zero, so that neighbours are one apart.
    first, second = (np.where(x < 0, -(x & 0x7FFFFFFF), x) for x in (first, second))
    return np.asarray(np.abs(first - second))
