"""What exists of a run after each of its ops, told by the interpreter."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from simulator import Trace
from simulator.engines.interpreter import Interpreter
from simulator.program.tile_program import TileProgram, Visit
from simulator.program.visit import Counters


@dataclass
class Exact:
    """The interpreter's numbers at a cursor; NaN where something does not exist."""

    scores: np.ndarray | None
    weights: np.ndarray | None
    m: np.ndarray
    l: np.ndarray
    o: np.ndarray


def counted_by_ops(program: TileProgram) -> Counters:
    """Return what the ops count of a whole run; before each visit the closed form has said it."""
    counted = program.counters(0)
    for index in range(len(program)):
        assert counted == program.counters(index)
        counted = counted.after(program.ops(index))
    assert counted == program.totals
    return counted


def run_op_by_op(trace: Trace) -> Iterator[tuple[Visit, int, Exact]]:
    """Run the interpreter; after each op, tell what exists of the current head and tile."""
    w, interpreter = trace.workload, Interpreter(trace.program, trace.inputs)
    machine = interpreter.state
    heads = [
        {
            "m": np.full(w.seqlen_q, np.nan),
            "l": np.full(w.seqlen_q, np.nan),
            "O": np.full((w.seqlen_q, w.value_dim), np.nan),
        }
        for _ in range(w.heads)
    ]
    exists: set[str] = set()
    for visit, number, op in interpreter.steps():
        if number == 0:
            exists = set()
        state, rows = heads[visit.head], slice(visit.rows.start, visit.rows.stop)
        chip = machine.chip
        if op.name == "clear":
            sinks = w.sink_logits
            l, m = (1, sinks[visit.head]) if sinks else (0, -np.inf)
            for move in op.moves:
                part = slice(move.rows.start, move.rows.stop)
                state["O"][part], state["l"][part], state["m"][part] = 0, l, m
        if op.name == "initialise":
            state["O"][rows] = chip["O"]
            if w.algorithm == "flash2":
                state["m"][rows], state["l"][rows] = chip["m"], chip["l"]
        exists |= PRODUCES.get(op.name, set())
        if op.name == "load":
            exists |= {move.tensor for move in op.moves} & {"S", "P"}
        for name, changed in (("m", CHANGES_M), ("l", CHANGES_L), ("O", CHANGES_O)):
            if op.name in changed[w.algorithm]:
                state[name][rows] = chip[name]
        yield (
            visit,
            number,
            Exact(
                chip["S"].copy() if "S" in exists else None,
                chip["P"].copy() if "P" in exists else None,
                state["m"].copy(),
                state["l"].copy(),
                state["O"].copy(),
            ),
        )


PRODUCES = {"scores": {"S"}, "exponentials": {"P"}}
CHANGES_M = {"flash2": {"row max"}, "flash1": {"combine"}, "naive": {"row max"}}
CHANGES_L = {"flash2": {"row sum"}, "flash1": {"combine"}, "naive": {"row sum"}}
CHANGES_O = {
    "flash2": {"rescale", "accumulate", "normalise"},
    "flash1": {"rescale", "accumulate"},
    "naive": {"accumulate"},
}
