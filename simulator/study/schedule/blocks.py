"""The thread blocks of each launch, with the bytes and FLOPs of their tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from simulator.problem.intervals import I64
from simulator.program.launches import Launch
from simulator.program.tile_program import TileProgram, Visit
from simulator.timing.accesses import share_of

_EVERY = slice(None)
MOST_BLOCKS = 2**16
"""Most thread blocks of a run that are placed one by one: with more a picture shows none of them,
and placing them takes seconds."""


@dataclass(frozen=True, eq=False)
class ThreadBlocks:
    """The thread blocks of one launch, in the order in which its grid counts them.

    The blocks of a head follow each other, then the heads, then the splits or the shares of a
    head's rows, then the sequences of a batch.
    """

    launch: Launch  # their launch; in a batch, the first sequence's
    # for each sequence: splits, heads (KV heads where they work on keys alone), and blocks of each
    shapes: tuple[tuple[int, int, int], ...]
    shared: bool = False  # whether a head here is a KV head with all query heads that share it

    def __len__(self) -> int:
        return self.before(len(self.shapes))

    def before(self, sequence: int) -> int:
        """Return how many thread blocks the sequences before one have."""
        return sum(prod(shape) for shape in self.shapes[:sequence])

    @property
    def heads(self) -> I64:
        """The owner of each, (thread blocks,): split or share, and head, numbered in order."""
        each = [np.full(splits * heads, blocks) for splits, heads, blocks in self.shapes]
        counts = np.concatenate(each)
        return np.repeat(np.arange(len(counts)), counts)

    def place(self, number: int) -> tuple[int, int, int, int]:
        """Return sequence, split, head and block of a thread block."""
        ends = np.cumsum([prod(shape) for shape in self.shapes])
        sequence = int(np.searchsorted(ends, number, side="right"))
        shape = self.shapes[sequence]
        split, head, block = np.unravel_index(number - int(ends[sequence]) + prod(shape), shape)
        return sequence, int(split), int(head), int(block)

    def title(self, number: int) -> str:
        """Return the place of a thread block in words."""
        sequence, split, head, block = self.place(number)
        said = [f"sequence {sequence}"] if len(self.shapes) > 1 else []
        said.append(f"KV head {head}" if self.shared else f"head {head}")
        splits, _, blocks = self.shapes[sequence]
        if blocks > 1:
            kind = "row block" if self.launch.by_rows else "column block"
            said.append(f"{'row' if self.launch.row_each else kind} {block}")
        if splits > 1:
            said.append(f"share {split} of its rows" if self.launch.in_turn else f"split {split}")
        return ", ".join(said)


def count_blocks(launch: Launch, heads: int) -> int:
    """Return how many thread blocks a launch has, without making them."""
    return prod(_shape(launch, heads))


def _shape(launch: Launch, heads: int, shares: int = 1) -> tuple[int, int, int]:
    blocks = len(launch.visits) // launch.splits
    if launch.row_each:
        blocks = sum(launch.outer_size(block) for block in range(blocks))
    return launch.splits * shares, launch.times(heads), 1 if launch.in_turn else blocks


def blocks_of(
    programs: Sequence[TileProgram], launch: int, shares: Sequence[int] = ()
) -> ThreadBlocks:
    """Return the thread blocks of a launch of all sequences of a batch, by its number.

    shares: of each sequence: into how many thread blocks the rows of a head are dealt out.
    """
    own, first = programs[0].launches[launch], programs[0].workload
    shapes = tuple(
        _shape(each.launches[launch], each.workload.heads, parts)
        for each, parts in zip(programs, shares or [1] * len(programs), strict=True)
    )
    shared = first.group > 1 or own.of_keys or own.times(first.heads) < first.heads
    return ThreadBlocks(own, shapes, shared)


def amounts_of(programs: Sequence[TileProgram], launch: int) -> tuple[I64, I64]:
    """Return requested bytes, read or written, and matmul FLOPs of each thread block of a launch.

    A thread block whose rows see nothing has no visit, so it has no work here: stores for such rows
    are counted in the first visit of their head, as in the tile program.
    """
    moved, done = [], []
    for program in programs:
        own, heads = program.launches[launch], program.workload.heads
        costs = [cost for each in (own.reads, own.writes) for cost in each.values()]
        amounts = (own.amounts(cost, heads) for cost in costs)
        moved.append(_in_grid_order(own, np.asarray(sum(amounts))))
        done.append(_in_grid_order(own, own.amounts(own.flops, heads)))
    return np.concatenate(moved), np.concatenate(done)


def count_all(programs: Sequence[TileProgram], launches: slice = _EVERY) -> int:
    """Return how many thread blocks all sequences of a batch have in some launches."""
    return sum(
        count_blocks(launch, each.workload.heads)
        for each in programs
        for launch in each.launches[launches]
    )


def _in_grid_order(launch: Launch, amounts: I64) -> I64:
    """Return the amounts of thread blocks, from amounts of (heads, outer blocks)."""
    if launch.in_turn:
        amounts = amounts.sum(axis=1, keepdims=True)
    if launch.row_each:
        rows = np.array([launch.outer_size(block) for block in range(len(launch.visits))])
        each, rest = np.divmod(amounts, rows)
        amounts = np.repeat(each, rows, axis=1)
        amounts[:, np.cumsum(rows) - rows] += rest  # loads once for all rows of a block
    # Outer blocks are row blocks, and in each of them the splits.
    ordered: I64 = np.moveaxis(amounts.reshape(len(amounts), -1, launch.splits), 2, 0).ravel()
    return ordered


def of_visit(program: TileProgram, visit: Visit, shares: int = 1) -> range:
    """Return which thread blocks of its launch do a visit: one, or one for each row."""
    launch = program.launches[visit.launch]
    shape = _shape(launch, program.workload.heads, shares)
    head, outer = launch.owner(visit.index - sum(program.sizes[: visit.launch]))
    block, split = divmod(outer, launch.splits)
    if shares > 1:
        split = share_of(visit.i, launch.inner_blocks, shares)
    first = 0 if launch.in_turn else visit.rows.start if launch.row_each else block
    number = int(np.ravel_multi_index((split, head, first), shape))
    return range(number, number + (len(visit.rows) if launch.row_each else 1))
