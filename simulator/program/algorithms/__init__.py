"""The tile programs, one module each."""

from __future__ import annotations

from simulator.problem.workload import Workload
from simulator.program.algorithms import flash1, flash2, naive
from simulator.program.tile_program import TileAlgorithm, TileProgram

ALGORITHMS: dict[str, TileAlgorithm] = {
    "naive": naive.ALGORITHM,
    "flash1": flash1.ALGORITHM,
    "flash2": flash2.ALGORITHM,
}


def tile_program(workload: Workload) -> TileProgram:
    """Return the tile program of a workload."""
    return TileProgram(workload, ALGORITHMS[workload.algorithm])
