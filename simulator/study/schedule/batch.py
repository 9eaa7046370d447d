"""The sequences of a batch, whose thread blocks run in the same launches."""

from __future__ import annotations

from simulator.problem.scenario import with_values
from simulator.problem.workload import resolve
from simulator.program.algorithms import tile_program
from simulator.program.tile_program import TileProgram


def batch_programs(program: TileProgram) -> tuple[TileProgram, ...]:
    """Return the programs of all sequences of a run's batch, its own among them.

    Without a batch the result is the run alone.
    """
    w = program.workload
    batch = w.scenario.batch
    if not batch.lengths:
        return (program,)
    others = (
        resolve(with_values(w.scenario, {"batch": {"sequence": number}}))
        for number in batch.running
    )
    return tuple(
        program if number == batch.shown else tile_program(other.as_algorithm(w.algorithm))
        for number, other in zip(batch.running, others, strict=True)
    )
