"""How many visits of a run are to tiles that the mask hides in part."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simulator.program.tile_program import TileProgram


def partial_before(program: TileProgram) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the visits at which outer blocks begin, and the partial ones before each."""
    grid = program.workload.grid
    full_of_column = grid.full_columns.visitors(grid.Tc)
    starts, parts = [], []
    heads = program.workload.heads
    for launch in program.launches:
        visits = launch.visits.counts
        if not program.algorithm.softmax:  # a chunk is partial unless it is one key
            blocks = np.arange(grid.Tr)
            own = 1 - grid.full_columns.contains(blocks, blocks).astype(np.int64)
            partial = own if launch.carries else np.zeros_like(visits)
        elif launch.whole_rows:
            partial = (grid.full_columns.counts < grid.Tc).astype(np.int64)
        else:
            full_of_row = grid.full_columns.dealt(launch.splits, launch.run).counts
            partial = visits - (full_of_row if launch.by_rows else full_of_column)
        starts.append(launch.along(visits, heads))
        parts.append(launch.along(partial, heads))
    at = np.concatenate([[0], np.cumsum(np.concatenate(starts))]).astype(np.float64)
    before = np.concatenate([[0], np.cumsum(np.concatenate(parts))]).astype(np.float64)
    return at, before
