"""The tile programs, one module each."""

from __future__ import annotations

from simulator.algorithms import flash1, flash2, naive
from simulator.program import TileAlgorithm, TileProgram
from simulator.workload import Workload

ALGORITHMS: dict[str, TileAlgorithm] = {
    "naive": naive.ALGORITHM,
    "flash1": flash1.ALGORITHM,
    "flash2": flash2.ALGORITHM,
}


def tile_program(workload: Workload) -> TileProgram:
    """Return the tile program of a workload."""
    return TileProgram(workload, ALGORITHMS[workload.algorithm])
