"""dQ of a backward pass, added up in a chosen order and in any order: differences, and costs.

Every column block adds to dQ of its rows in HBM. With atomic additions whoever comes first adds
first, and a sum of float32 numbers depends on the order of its terms. FlashAttention-3 and 4 give
each row block a counter instead: a column block waits until the column blocks before it have added
(`turns` says how long). FlashAttention-2 gives a thread block a sum of its own, and the sums are
added up in one order at the end; then they need room of their own.

References
----------
Dao 2023, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning",
section 3.2; `deterministic` in Dao-AILab/flash-attention: dq_accum_split_stride in
csrc/flash_attn/src/flash_bwd_kernel.h, dq_semaphore in hopper/mainloop_bwd_sm90_tma_gmma_ws.hpp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.base.dtypes import F32
from simulator.base.matmul import matmul
from simulator.engines.protocol import BackwardEngine
from simulator.problem.intervals import I64
from simulator.program.algorithms import TENSORS
from simulator.program.gradient_ops import AddQueryGradient
from simulator.run.trace import Trace
from simulator.study.merge.choices import DRAWN, FIRST, REVERSED, TREE
from simulator.study.merge.merging import Node, as_list, as_tree, backwards

MOST_TERMS = 128
"""Most column blocks of a row block whose sums are shown: S of more would fill the memory."""

(SUM,) = AddQueryGradient.recorded
"""The tensor in HBM to which tiles add."""


def _drawn(nodes: Sequence[Node], seed: int) -> Node:
    """Return the list in a random order, like additions that nobody puts in order."""
    places = np.random.default_rng(seed).permutation(len(nodes))
    return as_list([nodes[n] for n in places])


ORDERS: dict[str, Callable[[Sequence[Node], int], Node]] = {
    FIRST: lambda nodes, seed: as_list(nodes),
    REVERSED: lambda nodes, seed: backwards(nodes),
    TREE: lambda nodes, seed: as_tree(nodes),
    DRAWN: _drawn,
}
"""Orders of adding up, by their names; each takes the seed of a random order."""


@dataclass(frozen=True, eq=False)
class BlockTerms:
    """The terms that column blocks add to dQ of a row block."""

    columns: tuple[int, ...]  # the column blocks, ascending
    terms: tuple[F32, ...]  # (rows, d) float32, the term of each

    def total(self, order: str, seed: int = 0) -> F32:
        """Return the sum in a named order, (rows, d) float32."""
        return self._sum(ORDERS[order](tuple(range(len(self.terms))), seed))

    def apart(self, order: str, seed: int = 0) -> I64:
        """Return how many float32 numbers each sum is from the sum in order, (rows, d)."""
        return _apart(self.total(FIRST), self.total(order, seed))

    def _sum(self, node: Node) -> F32:
        if isinstance(node, int):
            return self.terms[node]
        return added_up([self._sum(each) for each in node])


@dataclass(frozen=True, slots=True)
class Orders:
    """Sums of dQ in random orders, compared with the sums in the order of column blocks."""

    numbers: int  # numbers of dQ, all heads
    moved: int  # of these, how many have other bits in at least one order
    most_ulp: int  # by how many float32 numbers one of them moves at most
    # sum_bytes, share_bytes: room in HBM for one sum of each number, and for a share from each tile
    sum_bytes: int
    share_bytes: int


def adds_to_rows(trace: Trace) -> bool:
    """Return whether tiles of a run add to sums of rows that other tiles add to, too."""
    launch = trace.program.launches[trace.program.forming]
    return SUM in launch.reads.keys() & launch.writes.keys()


def random_orders(trace: Trace, orders: int = 20, seed: int = 0) -> Orders:
    """Return the changes that random orders of the column blocks make in the sums of dQ.

    orders: how many random orders each row block is tried in.
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
    return Orders(numbers, moved, most, *rooms(trace))


def rooms(trace: Trace) -> tuple[int, int]:
    """Return the bytes of one sum of each number, and of a share from each tile."""
    spec = TENSORS[SUM]
    room = spec.bytes_in(trace.workload)
    return room, trace.program.totals.write[spec.name] - room  # less the zeros


def shares(trace: Trace, head: int, i: int) -> Iterator[F32]:
    """Yield the term that each tile of a row block adds to dQ, by column blocks, float32."""
    return iter(row_sums(trace, head, i).terms)


def row_sums(trace: Trace, head: int, i: int) -> BlockTerms:
    """Return the terms that the column blocks of a run add to dQ of a row block."""
    program, w = trace.program, trace.workload
    assert isinstance(trace.engine, BackwardEngine)
    weights_name, rows_name = AddQueryGradient.factors
    visits = [
        visit
        for visit in map(program.visit, program.of_row_block(head, i))
        if any(isinstance(op, AddQueryGradient) for op in program.ops(visit.index))
    ]
    if not visits:  # its rows see nothing
        return BlockTerms((), ())
    weights = trace.engine.row_pairs(head, i)[weights_name]
    keys = getattr(trace.inputs, rows_name.lower())[w.kv_head_of[head]]
    terms = (
        matmul(
            np.ascontiguousarray(weights[:, visit.cols.start : visit.cols.stop]),
            keys[visit.cols.start : visit.cols.stop],
        ).astype(np.float32)
        for visit in visits
    )
    return BlockTerms(tuple(visit.j for visit in visits), tuple(terms))


def added_up(terms: Sequence[F32]) -> F32:
    """Return a float32 sum, term by term from zero, as HBM would have it."""
    total = np.zeros_like(terms[0])
    for term in terms:
        total = total + term
    return total


def _apart(one: F32, other: F32) -> I64:
    """Return the distance of two numbers in float32 numbers; neighbours are one apart."""
    first, second = (x.view(np.int32).astype(np.int64) for x in (one, other))
    # Negative numbers count downwards from zero, so that neighbours are one apart.
    first, second = (np.sign(x) * (x & 0x7FFFFFFF) for x in (first, second))
    return np.asarray(np.abs(first - second))
