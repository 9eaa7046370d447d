"""What every program with a state must hold, whatever its update."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from simulator.engines.interpreter import Interpreter
from simulator.engines.numpy_engine import op_engine
from simulator.problem.scenario import Scenario
from simulator.problem.workload import read_inputs, resolve
from simulator.program.algorithms import tile_program


def output_of(chosen: Scenario) -> np.ndarray:
    """Return O of all heads as the ops make it in float64."""
    w = resolve(chosen)
    machine = Interpreter(tile_program(w), read_inputs(w))
    machine.run()
    return machine.output


def check_visits_alone(chosen: Scenario, data: st.DataObject) -> None:
    """Compare visits of an engine that has been asked for others with those of a new one.

    What an engine has kept of other visits changes no number.
    """
    w = resolve(chosen)
    inputs = read_inputs(w)
    fresh, used = (op_engine(w, inputs, np.float64) for _ in range(2))
    program = tile_program(w)
    for index in data.draw(st.lists(st.integers(0, len(program) - 1), max_size=6)):
        used.tile(program.visit(index), used.row_block(0, 0))
    for index in range(len(program)):
        visit = program.visit(index)
        ours, theirs = (e.tile(visit, e.row_block(visit.head, visit.i)) for e in (fresh, used))
        for one, two in zip(ours.states, theirs.states, strict=True):
            assert one.keys() == two.keys()
            for name in one:
                np.testing.assert_array_equal(one[name], two[name], err_msg=name)
