"""The tile programs, one module each."""

from __future__ import annotations

from simulator.problem.intervals import Intervals
from simulator.problem.scenario import Algorithm
from simulator.problem.workload import Workload
from simulator.program.algorithms import (
    deltanet,
    flash1,
    flash2,
    flash2_backward,
    gla,
    linear,
    linear_recurrent,
    mla,
    naive,
    naive_backward,
    paged,
    split_kv,
)
from simulator.program.tensors import COMMON, GATE, INPUTS, SINK
from simulator.program.tile_program import TileAlgorithm, TileProgram

_MODULES = (
    naive, flash1, flash2, split_kv, paged, mla, linear, linear_recurrent, gla, deltanet,
    naive_backward, flash2_backward,
)  # fmt: skip
ALGORITHMS: dict[str, TileAlgorithm] = {each.ALGORITHM.name: each.ALGORITHM for each in _MODULES}
"""All algorithms, by their names in scenarios."""
BASELINE = naive.ALGORITHM  # the algorithm that the others are compared with
USUAL = flash2.ALGORITHM  # the algorithm of a scenario that names none
LATENT = mla.ALGORITHM  # the algorithm that reads keys and values as one latent


TENSORS = {
    spec.name: spec
    for spec in (
        *INPUTS,
        *(own for each in ALGORITHMS.values() for own in each.inputs),
        *COMMON,
        *(own for each in ALGORITHMS.values() for own in (*each.gates, *each.tensors, *each.chip)),
        SINK,
        GATE,
    )
}
"""All tensors, by name."""


def beside(name: str) -> tuple[Algorithm, ...]:
    """Return the algorithms that a run is compared with, and its own, the baseline first.

    A backward pass is compared with all backward passes and their forward passes.
    """
    near = (name, *ALGORITHMS[name].near)
    if ALGORITHMS[name].backward:
        backward = [each for each in ALGORITHMS.values() if each.backward]
        passes = {own for each in backward for own in (each.name, each.forward)}
        return tuple(each.name for each in ALGORITHMS.values() if each.name in passes)
    return tuple(each.name for each in ALGORITHMS.values() if each.compared or each.name in near)


def alike(name: str) -> tuple[Algorithm, ...]:
    """Return the algorithms of `beside` with the same result, O or gradients, baseline first."""
    backward = ALGORITHMS[name].backward
    return tuple(other for other in beside(name) if ALGORITHMS[other].backward == backward)


def baseline_of(name: str) -> TileAlgorithm:
    """Return the baseline of an algorithm: the first one with the same result."""
    return ALGORITHMS[alike(name)[0]]


def algorithm_of(workload: Workload) -> TileAlgorithm:
    """Return the algorithm of a workload."""
    return ALGORITHMS[workload.algorithm]


def takes_turns(workload: Workload) -> bool:
    """Return whether thread blocks that add to the same sums in HBM wait for their turn."""
    return workload.scenario.attention.deterministic and algorithm_of(workload).adds


def worked_columns(workload: Workload) -> Intervals:
    """Return the column blocks that go into each row block's output."""
    grid = workload.grid
    if algorithm_of(workload).skips:
        return grid.visited_columns
    return Intervals.every(grid.Tr, grid.Tc)


def tile_program(workload: Workload) -> TileProgram:
    """Return the tile program of a workload."""
    return TileProgram(workload, algorithm_of(workload))
