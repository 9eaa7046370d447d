"""Where a run is to stop: conditions on ops, tiles and numbers, and the search for the next place.

Conditions on the tile program alone are searched block by block of the outer loop, without going
through the visits. A change of a maximum is searched in numbers: m of one row block after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from simulator.problem.intervals import I64
from simulator.program.op import Op
from simulator.program.playback import Cursor, end_of_visit, last_cursor
from simulator.program.tile_program import TileProgram, Visit
from simulator.run.trace import Trace

Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class LoopTurn:
    """The visits of one turn of the outer loop, and which of them are searched."""

    # launch, head, outer, split: kernel launch, query head, number of the outer block and of the
    # split
    launch: int
    head: int
    outer: int
    split: int
    start: int  # its first visit
    inner: I64  # (visits,) int64, the inner block of each of its visits
    looked: range  # which of its visits are searched, counted from `start`

    def order(self, forward: bool) -> range:
        """Return the visits to be searched in the order of the search, counted from `start`."""
        return self.looked if forward else self.looked[::-1]


@dataclass(frozen=True)
class Condition:
    """When to stop. Each subclass says what exactly counts; conditions can be compared."""

    numeric: ClassVar[bool] = False  # whether it needs the engine's numbers

    @property
    def words(self) -> str:
        """The condition in a few words."""
        raise NotImplementedError

    def cursors(self, finder: Finder, block: LoopTurn, forward: bool) -> Iterator[Cursor]:
        """Yield the cursors of a block at which to stop, in the order of the search."""
        raise NotImplementedError


@dataclass(frozen=True)
class OpCondition(Condition):
    """A condition that some ops of a visit meet; earlier ops do not matter."""

    def ops(self, program: TileProgram, visit: Visit) -> tuple[int, ...]:
        """Return which ops of a visit meet the condition.

        The method may use the launch, the sizes and kind of the tile and whether the visit is the
        first or last of its outer block or the first of its head, and nothing else.
        """
        raise NotImplementedError

    def cursors(self, finder: Finder, block: LoopTurn, forward: bool) -> Iterator[Cursor]:
        met = finder.ops_met(self, block)
        codes = finder.codes(block)
        hits = np.isin(codes, [code for code, ops in met.items() if ops])
        hits[: block.looked.start] = False
        hits[block.looked.stop :] = False
        for n in np.flatnonzero(hits)[:: 1 if forward else -1].tolist():
            for op in met[int(codes[n])][:: 1 if forward else -1]:
                yield Cursor(block.start + n, op)


@dataclass(frozen=True)
class AtOp(OpCondition):
    """Stops when an op of this name has been done."""

    name: str

    @property
    def words(self) -> str:
        return f"op “{self.name}”"

    def ops(self, program: TileProgram, visit: Visit) -> tuple[int, ...]:
        ops = program.algorithm.ops(program.workload, visit)
        return tuple(n for n, op in enumerate(ops) if op.name == self.name)


@dataclass(frozen=True)
class AtLine(OpCondition):
    """Stops when an op of one line of code has been done."""

    algorithm: str  # whose code it is: other algorithms never meet it
    tab: str  # which text: ``paper``, ``numpy`` or ``cuda``
    line: int  # line of that text
    label: str = field(compare=False)  # the line in words
    # whether an op belongs to the line
    runs: Callable[[Op], bool] = field(compare=False, repr=False)
    # whether ops of the line that follow one another in a visit count once, so that the run stops
    # only at the first of them
    once: bool = field(compare=False, default=False)

    @property
    def words(self) -> str:
        return self.label

    def ops(self, program: TileProgram, visit: Visit) -> tuple[int, ...]:
        if program.workload.algorithm != self.algorithm:
            return ()
        met = [self.runs(op) for op in program.algorithm.ops(program.workload, visit)]
        begins = [not self.once or n == 0 or not met[n - 1] for n in range(len(met))]
        return tuple(n for n in range(len(met)) if met[n] and begins[n])


@dataclass(frozen=True)
class AtTurn(OpCondition):
    """Stops when a loop begins a new turn: at the first op of a visit.

    `outer`: only in the first visit of an outer block: a row block or a column block.
    """

    outer: bool

    @property
    def words(self) -> str:
        return "next turn of the outer loop" if self.outer else "next tile"

    def ops(self, program: TileProgram, visit: Visit) -> tuple[int, ...]:
        return (0,) if visit.first or not self.outer else ()


@dataclass(frozen=True)
class AtEnd(Condition):
    """Stops when everything has been done."""

    words = "end of the run"

    def cursors(self, finder: Finder, block: LoopTurn, forward: bool) -> Iterator[Cursor]:
        last = last_cursor(finder.program)
        if last.visit - block.start in block.looked:
            yield last


@dataclass(frozen=True)
class AtTile(Condition):
    """Stops at the first op of a visit of tile (i, j), in any head and launch.

    A visit of naive's softmax launch works on the tile's whole row block, so it counts.
    """

    i: int
    j: int

    @property
    def words(self) -> str:
        return f"tile ({self.i}, {self.j})"

    def cursors(self, finder: Finder, block: LoopTurn, forward: bool) -> Iterator[Cursor]:
        launch = finder.program.launches[block.launch]
        outer, inner = (self.i, self.j) if launch.by_rows else (self.j, self.i)
        if block.outer != outer or self.j >= finder.program.workload.grid.Tc:
            return
        inner = 0 if launch.whole_rows else inner
        for n in np.flatnonzero(block.inner == inner).tolist():
            if n in block.looked:
                yield Cursor(block.start + n, 0)


@dataclass(frozen=True)
class AtRow(Condition):
    """Stops at the start of the work on the row block of a query row.

    The place is the first op of the first visit of the row block. If the outer loop is over column
    blocks, every visit loads O, m and l of its row block again, so the first op of every visit to
    the row block counts.
    """

    row: int

    @property
    def words(self) -> str:
        return f"row {self.row}"

    def cursors(self, finder: Finder, block: LoopTurn, forward: bool) -> Iterator[Cursor]:
        w = finder.program.workload
        i = self.row // w.rows
        if self.row >= w.seqlen_q:
            return
        if finder.program.launches[block.launch].by_rows:
            found = [0] if block.outer == i else []
        else:
            found = np.flatnonzero(block.inner == i).tolist()
        for n in found:
            if n in block.looked:
                yield Cursor(block.start + n, 0)


@dataclass(frozen=True)
class TileSkipped(Condition):
    """Stops after a skipped tile, at the next op that is done.

    Naive visits every tile. Nothing stops after the last visit, whatever is skipped there.
    """

    words = "a skipped tile"

    def cursors(self, finder: Finder, block: LoopTurn, forward: bool) -> Iterator[Cursor]:
        passed = np.diff(finder.places(block), prepend=finder.place_before(block)) > 1
        for n in block.order(forward):
            if passed[n]:
                yield Cursor(block.start + n, 0)


@dataclass(frozen=True)
class OverLimit(OpCondition):
    """Stops where an op first makes tiles in shared memory larger than a block may have."""

    words = "SRAM over the limit"

    def ops(self, program: TileProgram, visit: Visit) -> tuple[int, ...]:
        limit = program.workload.gpu.smem_bytes
        count = len(program.algorithm.ops(program.workload, visit))
        held = [shared_bytes(program, visit.index, op) for op in range(count)]
        before = 0 if visit.first else shared_bytes(program, visit.index - 1)
        over = [was > limit for was in (before, *held)]
        return tuple(n for n in range(count) if over[n + 1] and not over[n])


def shared_bytes(program: TileProgram, visit: int, op: int | None = None) -> int:
    """Return the bytes in shared memory after an op of a visit, or after the visit."""
    if op is None:
        op = end_of_visit(program, visit).op
    return sum(tile.bytes for tile in program.on_chip(visit, op) if tile.place == "shared")


@dataclass(frozen=True)
class MaximumChanged(OpCondition):
    """Stops when the running maximum of any row has risen, at the op that raises it.

    The op is the row maximum in flash2, the combination in flash1. A row's first maximum, from
    -inf, is no change; naive has no running maximum and never stops.
    """

    numeric: ClassVar[bool] = True

    words = "a maximum changed"

    def ops(self, program: TileProgram, visit: Visit) -> tuple[int, ...]:
        ops = program.algorithm.ops(program.workload, visit)
        running = not program.launches[visit.launch].whole_rows
        return tuple(n for n, op in enumerate(ops) if running and op.makes_maximum)

    def cursors(self, finder: Finder, block: LoopTurn, forward: bool) -> Iterator[Cursor]:
        by_rows = finder.program.launches[block.launch].by_rows
        # If the outer loop is over column blocks, each visit is to another row block, so row blocks
        # are searched one at a time.
        for cursor in super().cursors(finder, block, forward):
            inner = int(block.inner[cursor.visit - block.start])
            i, j = (block.outer, inner) if by_rows else (inner, block.outer)
            if finder.maximum_changed(block.head, i)[j]:
                yield cursor


@dataclass(frozen=True, slots=True)
class Hit:
    """The end of a search."""

    cursor: Cursor  # the place
    condition: Condition  # the condition met there


class Finder:
    """Searches a run and keeps the results for the next search; only numbers need the engine."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.program = trace.program
        self._report: Progress | None = None
        self._met: dict[tuple[OpCondition, int], tuple[int, ...]] = {}
        self._changed: dict[tuple[int, int], NDArray[np.uint8]] = {}

    def find(
        self,
        cursor: Cursor,
        conditions: Sequence[Condition],
        progress: Progress | None = None,
        *,
        forward: bool = True,
        until: Cursor | None = None,
    ) -> Hit | None:
        """Return the nearest place strictly after (or before) a cursor that meets a condition.

        until: the farthest place that counts.
        """
        self._report = progress
        # Numeric conditions come last: they need not search beyond the place that others found.
        ranked = sorted(conditions, key=lambda condition: condition.numeric)
        numeric = any(condition.numeric for condition in ranked)
        for block in self._blocks(cursor, forward, until, every_head=numeric) if ranked else ():
            best: Hit | None = None
            for condition in ranked:
                for found in condition.cursors(self, _up_to(block, best, forward), forward):
                    if _beyond(found, cursor, forward):
                        if best is None or _beyond(best.cursor, found, forward):
                            best = Hit(found, condition)
                        break
            if best is not None:
                past = until is not None and _beyond(best.cursor, until, forward)
                return None if past else best
            if progress is not None:
                progress(self._share(cursor, block.start, forward))
        return None

    def _share(self, cursor: Cursor, at: int, forward: bool) -> float:
        whole = len(self.program) - cursor.visit if forward else cursor.visit
        return min(1.0, abs(at - cursor.visit) / max(whole, 1))

    def _blocks(
        self, cursor: Cursor, forward: bool, until: Cursor | None, *, every_head: bool
    ) -> Iterator[LoopTurn]:
        """Yield the outer blocks from a cursor on.

        All heads of a launch are alike except for their numbers and for where the run ends. If
        numbers do not matter, one head that was searched completely is enough for all heads but the
        last.
        """
        program, at = self.program, cursor.visit
        last = until.visit if until is not None else len(program) - 1 if forward else 0
        while (at <= last) if forward else (at >= last):
            start, stop = program.block_bounds(at)
            visit = program.visit(start)
            launch = program.launches[visit.launch]
            outer = visit.i if launch.by_rows else visit.j
            run = outer * launch.splits + visit.split
            ends = (at, min(stop - 1, last)) if forward else (max(start, last), at)
            looked = range(ends[0] - start, ends[1] - start + 1)
            inner = launch.visits.visited(run)
            yield LoopTurn(visit.launch, visit.head, outer, visit.split, start, inner, looked)
            at = stop if forward else start - 1
            head_start, head_stop = program.head_bounds(start)
            if every_head or at in range(head_start, head_stop):
                continue
            whole = cursor.visit < head_start if forward else cursor.visit >= head_stop
            if whole:
                at = self._past_other_heads(visit.launch, at, forward)

    def _past_other_heads(self, launch: int, at: int, forward: bool) -> int:
        """Return the first visit of a launch's last head; backwards, the last before the launch."""
        sizes = self.program.sizes
        if not forward:
            return sum(sizes[:launch]) - 1
        return max(at, sum(sizes[: launch + 1]) - self.program.launches[launch].per_head)

    # --- what conditions ask ----------------------------------------------------------------

    def codes(self, block: LoopTurn) -> I64:
        """Return the class of each visit, (visits,): visits of a class have equal ops and costs."""
        launch = self.program.launches[block.launch]
        grid = self.program.workload.grid
        full = (block.outer, block.inner) if launch.by_rows else (block.inner, block.outer)
        place = np.arange(len(block.inner))
        begins_head = block.start == self.program.head_bounds(block.start)[0]
        codes: I64 = np.full_like(place, block.launch)
        for flag in (
            place == 0,
            place == place[-1],
            (place == 0) & begins_head,
            grid.full_columns.contains(*full),
            # The last block may be smaller than the others.
            block.inner == launch.inner_blocks - 1,
            launch.outer_size(block.outer * launch.splits) < launch.outer_size(0),
        ):
            codes = 2 * codes + flag
        return codes

    def ops_met(self, condition: OpCondition, block: LoopTurn) -> dict[int, tuple[int, ...]]:
        """Return which ops meet a condition, for each class of the block's visits."""
        met = {}
        for code, n in zip(*np.unique(self.codes(block), return_index=True), strict=True):
            key = (condition, int(code))
            if key not in self._met:
                visit = self.program.visit(block.start + int(n))
                self._met[key] = condition.ops(self.program, visit)
            met[int(code)] = self._met[key]
        return met

    def places(self, block: LoopTurn) -> I64:
        """Return the place of each visit among all tiles of the launch, in the loops' order."""
        turn = block.head * self._turns(block.launch) + block.outer
        return turn * self.program.launches[block.launch].inner_blocks + block.inner

    def place_before(self, block: LoopTurn) -> int:
        """Return the place of the visit before a block's first; -1 before a launch's first."""
        if block.start == 0:
            return -1
        launch = self.program.launches[block.launch]
        before = self.program.visit(block.start - 1)
        if before.launch != block.launch:
            return -1
        outer, inner = (before.i, before.j) if launch.by_rows else (before.j, before.i)
        turn = before.head * self._turns(block.launch) + outer
        return turn * launch.inner_blocks + inner

    def _turns(self, launch: int) -> int:
        """Return how many turns the outer loop of a head has."""
        grid = self.program.workload.grid
        return grid.Tr if self.program.launches[launch].by_rows else grid.Tc

    def maximum_changed(self, head: int, i: int) -> NDArray[np.bool_]:
        """Return after which column blocks a maximum of row block `i` has risen, (Tc,) bool."""
        w = self.program.workload
        grid, key = w.grid, (head, i)
        if key not in self._changed:
            if self._report is not None:
                self._report(min(1.0, len(self._changed) / (w.heads * grid.Tr)))
            visited = grid.visited_columns.visited(i)
            rises = np.zeros(grid.Tc, dtype=bool)
            start = w.start(head, grid.row_range(i))[0][:, None]  # a sink is a maximum to rise from
            new = self.trace.row_block(head, i).m[:, visited]
            old = np.concatenate([start, new[:, :-1]], axis=1)
            # Each split but the first, which counts the sink, begins anew.
            begins = np.diff(visited // w.split_blocks, prepend=0) > 0
            rises[visited] = (np.isfinite(old) & (new > old)).any(axis=0) & ~begins
            self._changed[key] = np.packbits(rises)
        return np.unpackbits(self._changed[key], count=grid.Tc).astype(bool)


def _up_to(block: LoopTurn, hit: Hit | None, forward: bool) -> LoopTurn:
    """Return the block without the visits that are farther than a place found in it."""
    if hit is None:
        return block
    at, looked = hit.cursor.visit - block.start, block.looked
    near = range(looked.start, at + 1) if forward else range(at, looked.stop)
    return replace(block, looked=near)


def _beyond(cursor: Cursor, other: Cursor, forward: bool) -> bool:
    """Return whether a cursor is farther on in the search than another."""
    return cursor > other if forward else cursor < other
