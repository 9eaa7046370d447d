"""Tile programs: the visits of a scenario and the ops of each, by arithmetic.

A run at N = 131 072 with 128-wide tiles has a million visits for each head. This module makes no
list of them. A launch is two nested loops over blocks, and the inner loop visits some intervals. So
the visit at any index, the index of any tile and the counters before any visit follow from sums
over the outer blocks, which are made once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, Literal

import numpy as np

from simulator.problem.intervals import I64, Intervals, sums
from simulator.problem.scenario import Algorithm
from simulator.problem.tiling import TileKind
from simulator.problem.workload import Workload
from simulator.program.op import Op
from simulator.program.state import ChipTile, Move, Numbers
from simulator.program.tensors import INPUTS, TensorSpec
from simulator.program.visit import Counters, Visit

__all__ = ["Cost", "Counters", "Launch", "TileAlgorithm", "TileProgram", "Visit"]


@dataclass(frozen=True, slots=True)
class Cost:
    """What one launch requests of a tensor, as coefficients of sizes.

    All are in bytes (FLOPs for the entry ``flops``). With `s` the valid size of an outer block and
    `t` that of an inner one: `start` once for each head, ``first · s`` and ``last · s`` for each
    outer block that is visited, ``(inner + pair · s) · t`` for each visit. `once` for each sink
    logit that an outer block loads, if it is visited.
    """

    start: int = 0
    first: int = 0
    inner: int = 0
    pair: int = 0
    last: int = 0
    once: int = 0


class Launch:
    """One kernel launch: heads, then outer blocks, then the visited inner blocks.

    Parameters
    ----------
    name : str
        What the launch computes.
    outer : tuple of int
        Length and block size of the outer loop.
    inner : tuple of int
        Length and block size of the inner loop.
    visits : Intervals
        Visited inner blocks of each outer block; with `splits`, of each run of each outer block.
    by_rows : bool
        Whether the outer blocks are row blocks.
    whole_rows : bool
        Whether a visit works on its whole row block at once; then there is one inner block.
    splits : int
        Into how many runs the inner blocks are divided; at the start of each run no key has been
        seen.
    continues : bool
        Whether an outer block continues with the numbers that the previous launch left of its rows.
    combines : bool
        Whether a visit joins what the splits of its row block have left in HBM.
    carries : bool
        Whether what a row block leaves on chip goes on to the next, so that it depends on all
        before it.
    of_keys : sequence of int, optional
        For a launch that works on keys alone, once for each KV head: the KV head of each query
        head. Its visits are in the first query head of each KV head, and in row block 0, though
        they have no rows.
    in_turn : bool
        Whether one thread block works on all outer blocks of a head, one after the other.
    row_each : bool
        Whether each row of an outer block is the work of a thread block of its own.
    sinks : ndarray, optional
        How many sink logits each outer block loads; none without it.
    reads, writes : mapping of str to Cost
        By tensor.
    flops : Cost
        Matmul FLOPs.
    """

    def __init__(
        self,
        name: str,
        outer: tuple[int, int],
        inner: tuple[int, int],
        visits: Intervals,
        *,
        by_rows: bool,
        whole_rows: bool = False,
        splits: int = 1,
        continues: bool = False,
        combines: bool = False,
        carries: bool = False,
        of_keys: Sequence[int] | None = None,
        in_turn: bool = False,
        row_each: bool = False,
        sinks: I64 | None = None,
        reads: Mapping[str, Cost],
        writes: Mapping[str, Cost],
        flops: Cost,
    ) -> None:
        self.name = name
        self.by_rows = by_rows
        self.whole_rows = whole_rows
        self.splits = splits
        self.continues = continues
        self.combines = combines
        self.carries = carries
        self.of_keys = of_keys is not None
        self.in_turn = in_turn or carries
        self.row_each = row_each
        self._kv_head_of = of_keys or ()
        self.reads = reads
        self.writes = writes
        self.flops = flops
        self._outer_len, self._outer_block = outer
        self._inner_len, self._inner_block = inner
        self.inner_blocks = -(-self._inner_len // self._inner_block)
        self.visits = visits
        self.run = -(-self.inner_blocks // splits)
        start = np.arange(len(visits)) // splits * self._outer_block
        size = np.minimum(self._outer_block, self._outer_len - start)
        count = visits.counts
        # Inner sizes of all visits of an outer block: whole blocks, less what the last block is
        # short of.
        reaches_end = visits.ends == self.inner_blocks
        inner_size = count * self._inner_block - np.where(reaches_end, self._lacking, 0)
        self._size_before = sums(np.where(count > 0, size, 0))
        self._inner_before = sums(inner_size)
        self._pair_before = sums(inner_size * size)
        logits = np.zeros_like(count) if sinks is None else sinks
        self._sinks_before = sums(np.where(count > 0, logits, 0))
        self.per_head = int(visits.sums[-1])

    @property
    def writes_output(self) -> bool:
        """Whether it makes O of whole rows, not only scores or a part of O."""
        return "O" in self.writes

    @property
    def _lacking(self) -> int:
        """By how much the last inner block is short of a whole one."""
        return self.inner_blocks * self._inner_block - self._inner_len

    def times(self, heads: int) -> int:
        """Return how often its blocks are gone through in a run of so many query heads."""
        return len(set(self._kv_head_of)) or heads

    def total(self, heads: int) -> int:
        """Return how many visits it has in a run of so many query heads."""
        return self.per_head * self.times(heads)

    def place(self, index: int) -> tuple[int, int, int, int]:
        """Return (head, outer block, inner block, number of earlier visits of the block)."""
        head, rest = divmod(index, self.per_head)
        if self.of_keys:
            head = self._kv_head_of.index(head)
        return head, *self.visits.locate(rest)

    def owner(self, index: int) -> tuple[int, int]:
        """Return in which round (`times`) visit `index` is, and in which outer block."""
        time, rest = divmod(index, self.per_head)
        return time, self.visits.locate(rest)[0]

    def before(self, head: int) -> int:
        """Return how many of its visits come before those of a head."""
        return self.per_head * (self._kv_head_of[head] if self.of_keys else head)

    def needed(self, block: int) -> range:
        """Return the outer blocks that a row block depends on, in a launch by rows."""
        return range(1) if self.of_keys else range(0 if self.carries else block, block + 1)

    def count(self, block: int) -> int:
        """Return how many visits an outer block has."""
        return self.visits.count(block)

    def block_bounds(self, index: int) -> tuple[int, int]:
        """Return the first visit of the outer block that `index` is in, and of the next."""
        _, block, _, nth = self.place(index)
        return index - nth, index - nth + self.visits.count(block)

    def outer_size(self, block: int) -> int:
        """Return the valid rows or keys of an outer block."""
        start = block // self.splits * self._outer_block
        return min(self._outer_block, self._outer_len - start)

    def visited(self, block: int) -> I64:
        """Return the inner blocks that an outer block visits, in all its runs, in order."""
        runs = range(block * self.splits, (block + 1) * self.splits)
        return np.concatenate([self.visits.visited(run) for run in runs])

    def index(self, head: int, block: int, inner: int) -> int | None:
        """Return the index of a visit in this launch, or None if there is no such visit."""
        block = block * self.splits + (inner // self.run if self.splits > 1 else 0)
        nth = self.visits.place(block, inner) if 0 <= block < len(self.visits) else None
        return None if nth is None else self.before(head) + int(self.visits.sums[block]) + nth

    def cost_before(self, index: int) -> Callable[[Cost], int]:
        """Return the function that gives a cost's amount before visit `index`."""
        head, rest = divmod(index, self.per_head)
        block, _, nth = self.visits.locate(rest)
        done, inner, pair = (int(a[block]) for a in self._sums)
        begun = done
        logits = int(self._sinks_before[block + (nth > 0)]) + head * int(self._sinks_before[-1])
        if nth:  # then the index is inside the block; otherwise it is at a block's start
            size = self.outer_size(block)
            seen = nth * self._inner_block  # none is the last inner block: one follows
            begun, inner, pair = begun + size, inner + seen, pair + size * seen
        heads_begun = head + (rest > 0)
        whole = [head * int(a[-1]) for a in self._sums]
        done, inner, pair = done + whole[0], inner + whole[1], pair + whole[2]
        begun += whole[0]

        def amount(cost: Cost) -> int:
            return (
                cost.start * heads_begun
                + cost.first * begun
                + cost.inner * inner
                + cost.pair * pair
                + cost.last * done
                + cost.once * logits
            )

        return amount

    def amounts(self, cost: Cost, heads: int) -> I64:
        """Return a cost's amount in each outer block, (`times` of so many heads, outer blocks).

        What is counted once for a head is in the first block that is visited, as in the visits.
        """
        size, inner, pair = (np.diff(before) for before in self._sums)
        out: I64 = (cost.first + cost.last) * size + cost.inner * inner + cost.pair * pair
        out += cost.once * np.diff(self._sinks_before)
        if self.per_head:
            out[np.flatnonzero(self.visits.counts)[0]] += cost.start
        return np.broadcast_to(out, (self.times(heads), len(out)))

    @property
    def _sums(self) -> tuple[I64, I64, I64]:
        return self._size_before, self._inner_before, self._pair_before


@dataclass(frozen=True)
class TileAlgorithm:
    """An algorithm as a tile program uses it.

    Attributes
    ----------
    name : str
        What scenarios and commands call it.
    title, short_title : str
        Its name in full, and on a button.
    label, in_a_sentence : str
        Its name beside a figure, and its name after other words.
    colour : str
        Its role in the theme, the same in all plots: "bad", "text", "good", or a tensor's.
    line, mark : str
        How its curves are drawn, and the points on them.
    source : str
        The paper.
    launches : callable
        Workload to the launches in their order.
    ops : callable
        Workload and visit to the visit's ops in their order.
    stores_scores : bool
        Whether S and P go to HBM and back: launches follow each other over the same tiles, every
        tile is visited, and the softmax works on whole rows.
    normalises_each_tile : bool
        Whether O is divided by l after each tile and, as l and m, goes to HBM and back in float32.
    normalises_last : bool
        Whether O is divided by l once, at the end of its row block or of its split.
    walks : bool
        Whether `simulator.engines.row_walk` can compute its numbers, many tiles at a time.
    running : bool
        Whether m and l after a column block are those of all keys of the row so far.
    compared : bool
        Whether other algorithms are compared with it; otherwise it is compared with them when it is
        shown itself.
    tensors : tuple of TensorSpec
        What it writes to HBM in addition to the tensors that every algorithm has.
    left : tuple of str
        What a visit leaves on chip for the next of its row block, or for the next row block.
    inputs : tuple of TensorSpec
        What it reads for queries, keys and values: a tensor each, or one for keys and values.
    gates : tuple of TensorSpec
        What it reads beside these.
    softmax : bool
        Whether its weights are those of a softmax: there are scores, m and LSE.
    sums : bool
        Whether there is an l, the sum of a row's weights, by which O is divided.
    forms : bool
        Whether it forms weights of pairs, of some tiles at least.
    formula : str
        How its state changes with a token, in a line; empty where a tile is formed.
    rows : tuple of str
        Numbers of a token that are as long as a value; what is added to the state is the features
        of its key times the last of them.
    row_title : str
        What the picture of one row is called.
    near : tuple of str
        Other algorithms that it is set beside, where they can run.
    error_size : callable, optional
        The size of the terms of a number, to which its rounding errors are relative: from its name,
        what is on chip with it, and the largest magnitude in V. Without it, it is that of scores.
    exemplars : tuple of mapping
        What small runs change in the usual one (causal, more queries than keys), so that all forms
        of its ops occur in one of them.
    """

    name: Algorithm
    title: str
    short_title: str
    label: str
    in_a_sentence: str
    colour: str
    line: Literal["solid", "dash", "dot", "dashdot"]
    mark: Literal["square", "triangle", "circle", "diamond", "cross"]
    source: str
    launches: Callable[[Workload], tuple[Launch, ...]]
    ops: Callable[[Workload, Visit], tuple[Op, ...]]
    stores_scores: bool = False
    normalises_each_tile: bool = False
    normalises_last: bool = False
    walks: bool = True
    running: bool = True
    compared: bool = True
    tensors: tuple[TensorSpec, ...] = ()
    left: tuple[str, ...] = ("m", "l", "O")
    inputs: tuple[TensorSpec, ...] = INPUTS
    gates: tuple[TensorSpec, ...] = ()
    softmax: bool = True
    sums: bool = True
    forms: bool = True
    formula: str = ""
    rows: tuple[str, ...] = ("V",)
    row_title: str = "Online softmax"
    near: tuple[Algorithm, ...] = ()
    error_size: Callable[[str, Numbers, float], float] | None = None
    exemplars: tuple[Mapping[str, Mapping[str, Any]], ...] = ({},)

    @property
    def missing(self) -> tuple[str, ...]:
        """Numbers of every row of a softmax that it does not have."""
        return ("m", "LSE") * (not self.softmax) + ("l",) * (not self.sums)

    @property
    def keys(self) -> str:
        """The tensor in HBM whose rows are keys."""
        return self.inputs[1].name

    @property
    def values(self) -> str:
        """The tensor in HBM whose rows begin with values: that of the keys, if one has both."""
        return self.inputs[-1].name

    @property
    def splits(self) -> bool:
        """Whether keys are dealt out to splits, which are joined at the end."""
        return any("split" in spec.axes for spec in self.tensors)


class TileProgram:
    """All visits of a workload and the ops of each.

    Parameters
    ----------
    workload : Workload
        The resolved scenario.
    algorithm : TileAlgorithm
        Its algorithm.

    Attributes
    ----------
    sizes : tuple of int
        Visits of each launch.
    """

    def __init__(self, workload: Workload, algorithm: TileAlgorithm) -> None:
        self.workload = workload
        self.algorithm = algorithm
        self.launches = algorithm.launches(workload)
        self.sizes = tuple(launch.total(workload.heads) for launch in self.launches)
        self._starts = list(accumulate(self.sizes, initial=0))
        self.tensors = tuple(dict.fromkeys(t for n in self.launches for t in (*n.reads, *n.writes)))

    def __len__(self) -> int:
        return self._starts[-1]

    def visit(self, index: int) -> Visit:
        """Return visit `index`.

        Raises
        ------
        IndexError
            `index` is not in ``0 .. len - 1``.
        """
        if not 0 <= index < len(self):
            raise IndexError(f"visit {index}: expected 0 to {len(self) - 1}")
        number = bisect_right(self._starts, index) - 1
        launch = self.launches[number]
        head, outer, inner, nth = launch.place(index - self._starts[number])
        block, split = divmod(outer, launch.splits)
        i, j = (block, inner) if launch.by_rows else (inner, block)
        grid = self.workload.grid
        cols = range(self.workload.seqlen_k) if launch.whole_rows else grid.col_range(j)
        # Naive visits tiles that the mask empties, too: there they are partial.
        whole = launch.whole_rows and grid.full_columns.count(i) < grid.Tc
        kind = TileKind.PARTIAL if whole else max(TileKind.PARTIAL, grid.kind(i, j))
        return Visit(
            index=index,
            launch=number,
            head=head,
            i=i,
            j=j,
            rows=grid.row_range(i),
            cols=cols,
            kind=kind,
            first=nth == 0,
            last=nth == launch.count(outer) - 1,
            opens=(index - self._starts[number]) % launch.per_head == 0,
            split=split,
        )

    def index(self, head: int, i: int, j: int, launch: int = 0) -> int | None:
        """Return the visit of a launch to tile (head, i, j), None if it never visits it."""
        owner = self.launches[launch]
        outer, inner = (i, j) if owner.by_rows else (j, i)
        if owner.whole_rows:
            inner = 0
        if owner.of_keys:
            outer = 0
        place = owner.index(head, outer, inner)
        return None if place is None else self._starts[launch] + place

    def of_row_block(self, head: int, i: int) -> Iterator[int]:
        """Yield the visits that a row block depends on, in order: it depends on no other."""
        for launch, owner in enumerate(self.launches):
            if owner.by_rows:
                found = ((block, j) for block in owner.needed(i) for j in owner.visited(block))
            else:
                blocks = np.arange(len(owner.visits))
                found = ((i, j) for j in blocks[owner.visits.contains(blocks, i)])
            for block, j in found:  # one at a time: a row block may have 100 000
                index = self.index(head, block, int(j), launch)
                assert index is not None
                yield index

    def joining(self, head: int, i: int) -> int | None:
        """Return the visit that joins the splits of a row block; None where there are none."""
        for number, launch in enumerate(self.launches):
            if launch.combines:
                return self.index(head, i, 0, number)
        return None

    def opening(self, head: int) -> Iterator[int]:
        """Yield the first visit of a head in each launch: it may clear what others do not."""
        for start, launch in zip(self._starts, self.launches, strict=False):
            if launch.per_head:
                yield start + launch.before(head)

    def ops(self, index: int) -> tuple[Op, ...]:
        """Return the ops of visit `index`, in order."""
        return self.algorithm.ops(self.workload, self.visit(index))

    def counters(self, index: int) -> Counters:
        """Return what has been requested before visit `index` (0 to len, both included)."""
        if not 0 <= index <= len(self):
            raise IndexError(f"visit {index}: expected 0 to {len(self)}")
        read = dict.fromkeys(self.tensors, 0)
        write = dict.fromkeys(self.tensors, 0)
        flops = 0
        for number, launch in enumerate(self.launches):
            start, stop = self._starts[number], self._starts[number + 1]
            if index <= start:
                break
            amount = launch.cost_before(min(index, stop) - start)
            for tensor, cost in launch.reads.items():
                read[tensor] += amount(cost)
            for tensor, cost in launch.writes.items():
                write[tensor] += amount(cost)
            flops += amount(launch.flops)
        return Counters(read, write, flops)

    @cached_property
    def totals(self) -> Counters:
        """Counters of the whole run."""
        return self.counters(len(self))

    def block_bounds(self, index: int) -> tuple[int, int]:
        """Return the first visit of the outer block that `index` is in, and of the next."""
        number = bisect_right(self._starts, index) - 1
        start = self._starts[number]
        first, stop = self.launches[number].block_bounds(index - start)
        return start + first, start + stop

    def head_bounds(self, index: int) -> tuple[int, int]:
        """Return the first visit of the head that `index` is in, in its launch, and of the next."""
        number = bisect_right(self._starts, index) - 1
        start, per_head = self._starts[number], self.launches[number].per_head
        head = (index - start) // per_head
        return start + head * per_head, start + (head + 1) * per_head

    def on_chip(self, index: int, op: int) -> tuple[ChipTile, ...]:
        """Return the tiles on chip after op `op` of visit `index`."""
        visit = self.visit(index)
        ops = self.algorithm.ops(self.workload, visit)
        held: dict[str, ChipTile] = {}
        if not visit.first or (self.launches[visit.launch].carries and not visit.opens):
            for tile in self._staying(visit):
                held[tile.name] = tile
        for done in ops[: op + 1]:
            for name in done.frees:
                held.pop(name, None)
            for tile in done.allocates:
                held[tile.name] = tile
        return tuple(held.values())

    def _staying(self, visit: Visit) -> tuple[ChipTile, ...]:
        """Return the tiles that the first visit of the outer block left on chip for the others."""
        opener = self.algorithm.ops(self.workload, replace(visit, first=True, opens=True))
        return tuple(tile for op in opener for tile in op.allocates if tile.stays)

    def held(self, visit: Visit) -> tuple[Move, ...]:
        """Return what the first visit of the outer block has also loaded for this visit."""
        if visit.first:
            return ()
        opener = self.algorithm.ops(self.workload, replace(visit, first=True))
        staying = {tile.name for op in opener for tile in op.allocates if tile.stays}
        return tuple(
            move for op in opener if op.loads for move in op.moves if move.tensor in staying
        )

    @cached_property
    def peak_shared_bytes(self) -> int:
        """Most shared memory that tiles of full size take at once."""
        w = self.workload
        peak = 0
        for start, launch in zip(self._starts, self.launches, strict=False):
            keys = w.seqlen_k if launch.whole_rows else min(w.cols, w.seqlen_k)
            largest = replace(
                self.visit(start), rows=range(min(w.rows, w.seqlen_q)), cols=range(keys)
            )
            held: dict[str, int] = {}
            for op in self.algorithm.ops(w, largest):
                for name in op.frees:
                    held.pop(name, None)
                held |= {tile.name: tile.bytes for tile in op.allocates if tile.place == "shared"}
                peak = max(peak, sum(held.values()))
        return peak
