"""What has been done with each tile of the score matrix, from the order of the visits alone."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from simulator.program.tile_program import TileProgram, Visit


class TileState(IntEnum):
    """What has been done with a tile of the score matrix at a cursor."""

    SKIPPED = 0
    PENDING = 1
    CURRENT = 2
    USED = 3


def tile_states(program: TileProgram, visit: Visit) -> NDArray[np.uint8]:
    """Return the `TileState` of every tile of the head at a visit, uint8 of shape (Tr, Tc)."""
    states = np.minimum(program.workload.grid.kinds(), 1)
    if program.algorithm.stores_scores:
        states[:] = TileState.PENDING
    launch = program.launches[visit.launch]
    if launch.combines:
        states[states == TileState.PENDING] = TileState.USED
        return states
    if launch.whole_rows:
        states[states == TileState.PENDING] = TileState.USED
        seen = states[visit.i] == TileState.USED
        states[visit.i, seen] = TileState.CURRENT
        return states
    if program.launches[visit.launch].by_rows:
        past = states[: visit.i]
        row = states[visit.i, : visit.j]
    else:
        past = states[:, : visit.j]
        row = states[: visit.i, visit.j]
    past[past == TileState.PENDING] = TileState.USED
    row[row == TileState.PENDING] = TileState.USED
    states[visit.i, visit.j] = TileState.CURRENT
    if visit.launch:  # naive: S and P of the earlier launches are in HBM
        states[states == TileState.PENDING] = TileState.USED
    return states
