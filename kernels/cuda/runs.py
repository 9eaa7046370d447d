"""The tiles that kernels visit, as the kernels read them: runs of one kind for each outer block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.problem.intervals import I64, Intervals, sums
from simulator.problem.tiling import TileGrid

I32 = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs that `Walk` of common.cuh goes through."""

    offsets: I32  # (outer blocks,) int32: where the runs of each block begin
    # (runs, 3) int32, laid out as `Run` of common.cuh: the first inner block, the one after the
    # last, and their `TileKind`. After the runs of each block there is an empty one.
    runs: I32


def tile_runs(grid: TileGrid, visits: Intervals, *, by_rows: bool) -> Runs:
    """Return the tiles that a launch visits.

    visits: the inner blocks that each outer block visits, with or without tiles that the mask
        empties.
    """
    visited = grid.visited_columns if by_rows else grid.visited_rows
    full = grid.full_columns if by_rows else grid.full_rows
    outer, inner = (grid.Tr, grid.Tc) if by_rows else (grid.Tc, grid.Tr)
    # The kind changes only at the ends of intervals, where visits begin or end, too.
    cuts = [each for held in (visits, visited, full) for each in _ends(held, inner + 1)]
    cuts += [np.arange(outer) * (inner + 1), np.arange(outer) * (inner + 1) + inner]
    line = np.unique(np.concatenate(cuts))
    block, start = np.divmod(line[:-1], inner + 1)
    seen = visits.contains(block, start)
    block, start, stop = block[seen], start[seen], (line[1:] - line[:-1] + start)[seen]
    kind = visited.contains(block, start).astype(np.int64) + full.contains(block, start)
    # Neighbours of the same kind become one run: both may be sinks, or both in the window.
    alike = (block[1:] == block[:-1]) & (kind[1:] == kind[:-1]) & (start[1:] == stop[:-1])
    begins, ends = np.append(True, ~alike), np.append(~alike, True)
    block, start, stop, kind = block[begins], start[begins], stop[ends], kind[begins]
    number = np.bincount(block, minlength=outer) + 1
    offsets = sums(number)
    runs = np.zeros((int(offsets[-1]), 3), dtype=np.int32)
    # The number of empty runs before this one: one for each block before.
    runs[np.arange(len(block)) + block] = np.stack([start, stop, kind], axis=1)
    return Runs(offsets[:-1].astype(np.int32), runs)


def _ends(held: Intervals, reach: int) -> tuple[I64, I64]:
    """Return starts and stops on a line on which each outer block has `reach` places."""
    begins = np.repeat(np.arange(len(held)) * reach, np.diff(held.offsets))
    return begins + held.bounds[:, 0], begins + held.bounds[:, 1]
