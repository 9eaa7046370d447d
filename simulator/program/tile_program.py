"""Tile programs: the visits of a scenario and the ops of each, by arithmetic.

A run at N = 131 072 with 128-wide tiles has a million visits for each head. This module makes no
list of them. A launch is two nested loops over blocks, and the inner loop visits some intervals. So
the visit at any index, the index of any tile and the counters before any visit follow from sums
over the outer blocks, which are made once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from simulator.problem.scenario import Algorithm
from simulator.problem.tiling import TileKind
from simulator.problem.workload import Workload
from simulator.program.launches import Launch
from simulator.program.op import Op
from simulator.program.position_ops import BEFORE_TILES
from simulator.program.state import ChipTile, Numbers, TileMove
from simulator.program.tensors import COMMON, INPUTS, TensorSpec
from simulator.program.visit import Counters, Visit

__all__ = ["Counters", "TileAlgorithm", "TileProgram", "Visit"]


@dataclass(frozen=True)
class TileAlgorithm:
    """An algorithm as a tile program uses it."""

    name: Algorithm  # its name in scenarios and commands
    # title, short_title: its name in full, and on a button
    title: str
    short_title: str
    # label, in_a_sentence: its name beside a figure, and its name after other words
    label: str
    in_a_sentence: str
    source: str  # the paper
    about: str  # what sets it apart from the others, in a few words
    launches: Callable[[Workload], tuple[Launch, ...]]  # workload to the launches in their order
    # workload and visit to the visit's ops in their order; `ops` adds the ops before the tiles
    visit_ops: Callable[[Workload, Visit], tuple[Op, ...]]
    # whether S and P go to HBM and back: launches follow each other over the same tiles, and the
    # softmax works on whole rows
    stores_scores: bool = False
    skips: bool = True  # whether tiles that the mask hides whole are left out
    # whether its thread blocks add to the same sums in HBM: in any order, or in turn if a scenario
    # is deterministic
    adds: bool = False
    # whether O is divided by l after each tile and, as l and m, goes to HBM and back in float32
    normalises_each_tile: bool = False
    # whether O is divided by l once, at the end of its row block or of its split
    normalises_last: bool = False
    # whether many of its tiles can be computed at once: by `simulator.engines.row_walk`, with
    # splits by `simulator.engines.split_engine`
    walks: bool = True
    # whether m and l after a column block count all keys of the row so far
    running: bool = True
    # whether runs of other algorithms are compared with it; otherwise only its own runs show the
    # comparison
    compared: bool = True
    # tensors that it writes to HBM, in addition to `COMMON`
    tensors: tuple[TensorSpec, ...] = ()
    # numbers that a visit leaves on chip for the next visit of its row block or for the next row
    # block
    left: tuple[str, ...] = ("m", "l", "O")
    # tensors of queries, keys and values: one each, or one for keys and values together
    inputs: tuple[TensorSpec, ...] = INPUTS
    gates: tuple[TensorSpec, ...] = ()  # tensors that it reads beside `inputs`
    softmax: bool = True  # whether its weights come from a softmax: there are scores, m and LSE
    sums: bool = True  # whether there is an l, the sum of a row's weights, by which O is divided
    forms: bool = True  # whether it forms weights of pairs, of some tiles at least
    formula: str = ""  # its weights, or how its state changes with a token; empty with a softmax
    # numbers of a token that are as long as a value; a token adds the features of its key times the
    # last of these to the state
    rows: tuple[str, ...] = ("V",)
    row_title: str = "Online softmax"  # title of the picture of one row
    near: tuple[Algorithm, ...] = ()  # other algorithms that it is set beside, where they can run
    # The size of the terms of a number, to which its rounding errors are relative: from its name,
    # the numbers on chip, and an upper bound of V or, in a backward pass, of products of dO and V.
    # None: the size of the terms of scores.
    error_size: Callable[[str, Numbers, float], float] | None = None
    # numbers that it makes on chip beside S and P, of pairs or of rows
    chip: tuple[TensorSpec, ...] = ()
    # the algorithm of the forward pass before it, if it computes gradients
    forward: Algorithm | None = None
    # tensors of its forward pass that it always reads; `TileProgram.kept` may have more
    after: tuple[str, ...] = ()
    # values that small runs change in the usual one (causal, more queries than keys), so that all
    # forms of its ops occur in one of these runs
    exemplars: tuple[Mapping[str, Mapping[str, Any]], ...] = ({},)

    def ops(self, w: Workload, visit: Visit) -> tuple[Op, ...]:
        """Return the ops of a visit; a run's first visit begins with the ops before all tiles."""
        own = self.visit_ops(w, visit)
        return own if visit.index or w.position is None else (*BEFORE_TILES, *own)

    def formula_of(self, w: Workload) -> str:
        """Return its formula with the φ of a workload in words; empty with a softmax."""
        phi = w.feature_map
        return f"{self.formula}, φ: {phi.words}" if phi and "φ" in self.formula else self.formula

    @property
    def backward(self) -> bool:
        """Whether it computes gradients."""
        return self.forward is not None

    @property
    def result(self) -> str:
        """``gradients`` or ``O``."""
        return "gradients" if self.backward else "O"

    @property
    def missing(self) -> tuple[str, ...]:
        """Numbers of every row of a softmax that the algorithm does not have."""
        return (
            ("m", "LSE") * (not self.softmax)
            + ("m",) * self.backward
            + ("l",) * (not self.sums or self.backward)
        )

    @property
    def passes_pairs(self) -> bool:
        """Whether numbers of pairs go from one launch to the next through HBM."""
        return self.stores_scores or any(spec.of_pairs for spec in self.tensors)

    @property
    def keys(self) -> str:
        """The tensor in HBM whose rows are keys."""
        return self.inputs[1].name

    @property
    def values(self) -> str:
        """The tensor in HBM whose rows begin with values; it may also be the keys' tensor."""
        return self.inputs[-1].name

    @property
    def outside(self) -> dict[str, str]:
        """The tensors beside inputs or O, away from the scores, by the name of the input or O."""
        there = {*(spec.name for spec in self.inputs), "O"}
        own = (*self.gates, *self.tensors)
        return {spec.at: spec.name for spec in own if spec.at in there and len(spec.axes) > 1}

    @property
    def reads_weights(self) -> bool:
        """Whether it reads the weights of pairs of its forward pass, and computes none."""
        return any(spec.of_pairs for spec in COMMON if spec.name in self.after)

    @property
    def columns(self) -> tuple[str, ...]:
        """Numbers of every row that lie between the scores and O."""
        made = (*self.tensors, *self.chip)
        own = (spec.name for spec in made if spec.axes == ("row",) and spec.at)
        given = (spec.name for spec in COMMON if spec.name in self.after and spec.axes == ("row",))
        return (*(name for name in ("m", "l") if name not in self.missing), *given, *own)

    @property
    def kept_columns(self) -> tuple[str, ...]:
        """The `columns` that are kept from visit to visit: a softmax of whole rows keeps none."""
        return self.columns if self.backward or not self.stores_scores else ()

    @property
    def row_numbers(self) -> tuple[str, ...]:
        """All numbers of a row: its columns, and O."""
        return (*self.columns, "O")

    @property
    def pairs(self) -> tuple[TensorSpec, ...]:
        """Numbers of pairs of a row and a key that the program makes on chip beside S and P."""
        return tuple(spec for spec in self.chip if spec.of_pairs)

    def called(self, name: str) -> str:
        """Return the shown name of a number: a sum on chip is named as the tensor it becomes."""
        own = next((spec for spec in self.chip if spec.name == name), None)
        if own is None:
            return name
        becomes = (spec.name for spec in self.tensors if spec.name == own.at)
        return next(becomes, name)

    @property
    def splits(self) -> bool:
        """Whether keys are dealt out to splits, which are joined at the end."""
        return any("split" in spec.axes for spec in self.tensors)


class TileProgram:
    """All visits of a workload and the ops of each."""

    def __init__(self, workload: Workload, algorithm: TileAlgorithm) -> None:
        self.workload = workload
        self.algorithm = algorithm
        self.launches = algorithm.launches(workload)
        self.sizes = tuple(launch.total(workload.heads) for launch in self.launches)
        self._starts = list(accumulate(self.sizes, initial=0))
        self._newest: tuple[int, tuple[Op, ...]] | None = None
        self.tensors = tuple(dict.fromkeys(t for n in self.launches for t in (*n.reads, *n.writes)))

    def __len__(self) -> int:
        return self._starts[-1]

    @cached_property
    def forming(self) -> int:
        """The number of the first launch that forms tiles of scores; 0 if none does."""
        return next((n for n, launch in enumerate(self.launches) if launch.forms), 0)

    @property
    def kept(self) -> tuple[str, ...]:
        """The tensors that the program reads and that an earlier pass has left in HBM."""
        algorithm = self.algorithm
        own = {t.name for t in (*algorithm.inputs, *algorithm.gates, *algorithm.tensors)}
        read = dict.fromkeys(name for launch in self.launches for name in launch.reads)
        return tuple(name for name in read if name not in own) if algorithm.backward else ()

    def visit(self, index: int) -> Visit:
        """Return visit `index`."""
        if not 0 <= index < len(self):
            raise IndexError(f"visit {index}: expected 0 to {len(self) - 1}")
        number = bisect_right(self._starts, index) - 1
        launch = self.launches[number]
        at = index - self._starts[number]
        head, outer, inner, nth = launch.place(at)
        block_end = launch.block_bounds(at)[1]
        block, split = divmod(outer, launch.splits)
        i, j = (block, inner) if launch.by_rows else (inner, block)
        grid = self.workload.grid
        cols = range(self.workload.seqlen_k) if launch.whole_rows else grid.col_range(j)
        # Naive also visits tiles that the mask empties: they count as partial.
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
            last=at + 1 == block_end,
            opens=at == launch.head_bounds(at)[0],
            split=split,
        )

    def index(self, head: int, i: int, j: int, launch: int = 0) -> int | None:
        """Return the visit of a launch to tile (head, i, j); None if there is none."""
        owner = self.launches[launch]
        outer, inner = (i, j) if owner.by_rows else (j, i)
        if owner.whole_rows:
            inner = 0
        if owner.of_keys:
            outer = 0
        place = owner.index(head, outer, inner)
        return None if place is None else self._starts[launch] + place

    def of_row_block(self, head: int, i: int) -> Iterator[int]:
        """Yield all visits that a row block depends on, in order."""
        for launch, owner in enumerate(self.launches):
            if owner.by_rows:
                found = ((block, j) for block in owner.needed(i) for j in owner.visited(block))
            else:
                blocks = np.arange(len(owner.visits))
                found = ((i, j) for j in blocks[owner.visits.contains(blocks, i)])
            for block, j in found:  # one at a time: a row block may have 100 000 visits
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
        """Yield the first visit of a head in each launch, which may clear rows of other visits."""
        for start, launch in zip(self._starts, self.launches, strict=False):
            if launch.per_head:
                yield start + launch.before(head)

    def ops(self, index: int) -> tuple[Op, ...]:
        """Return the ops of visit `index`, in order; the ops that were asked for last are kept."""
        newest = self._newest
        if newest is None or newest[0] != index:
            newest = self._newest = index, self.algorithm.ops(self.workload, self.visit(index))
        return newest[1]

    def counters(self, index: int) -> Counters:
        """Return the bytes and FLOPs requested before visit `index` (0 to len, both included)."""
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
        start = self._starts[number]
        first, stop = self.launches[number].head_bounds(index - start)
        return start + first, start + stop

    def on_chip(self, index: int, op: int) -> tuple[ChipTile, ...]:
        """Return the tiles on chip after op `op` of visit `index`."""
        visit = self.visit(index)
        ops = self.ops(index)
        held: dict[str, ChipTile] = {}
        if not visit.first or (self.launches[visit.launch].carries and not visit.opens):
            for tile in self.staying(visit):
                held[tile.name] = tile
        for done in ops[: op + 1]:
            for name in done.frees:
                held.pop(name, None)
            for tile in done.allocates:
                held[tile.name] = tile
        return tuple(held.values())

    def staying(self, visit: Visit) -> tuple[ChipTile, ...]:
        """Return the tiles that the first visit of the outer block left on chip for the others."""
        opener = self.algorithm.ops(self.workload, replace(visit, first=True, opens=True))
        return tuple(tile for op in opener for tile in op.allocates if tile.stays)

    def held(self, visit: Visit) -> tuple[TileMove, ...]:
        """Return the loads of the outer block's first visit that stay on chip for this visit."""
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
