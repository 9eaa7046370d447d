"""What every program with a state must hold, whatever its update."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

from simulator.engines.interpreter import Interpreter
from simulator.engines.numpy_engine import op_engine
from simulator.problem.scenario import Scenario
from simulator.problem.workload import Inputs, Workload, read_inputs, resolve
from simulator.program.algorithms import tile_program
from simulator.run.cosimulation import verify
from tests.helpers.runs import check_close, program_of, trace_of

Definition = Callable[[Workload, Inputs, int], np.ndarray]
"""O of a head in float64, from a formula alone."""


def output_of(chosen: Scenario) -> np.ndarray:
    """Return O of all heads as the ops make it in float64."""
    w = resolve(chosen)
    machine = Interpreter(tile_program(w), read_inputs(w))
    machine.run()
    return machine.output


def check_outputs(chosen: Scenario, definition: Definition) -> None:
    """Compare the ops in float64, and the engine, with a definition."""
    w = resolve(chosen)
    inputs = read_inputs(w)
    exact, trace = output_of(chosen), trace_of(chosen)
    for head in range(w.heads):
        o = definition(w, inputs, head)
        check_close(exact[head], o, 1e-10, "O in float64")
        check_close(trace.output[head], o, 1e-4, "O")
    error = trace.summary()["max_abs_error"]
    assert error is not None
    assert error < 1e-4


def check_every_op(chosen: Scenario) -> None:
    """Compare the engine with float64 after each op."""
    verdict = verify(trace_of(chosen))
    assert verdict.difference is None, str(verdict)


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


def check_counters(chosen: Scenario) -> None:
    """Compare the closed forms of the counters with sums over the ops, at every visit."""
    program = program_of(chosen)
    now = program.counters(0)
    for index in range(len(program)):
        now = now.after(program.ops(index))
        assert now == program.counters(index + 1)
        assert program.visit(index).index == index
