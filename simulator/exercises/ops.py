"""Ops that a student writes in NumPy: arguments, results, usual mistakes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.base.matmul import matmul
from simulator.engines.interpreter import Interpreter
from simulator.problem.scenario import Scenario
from simulator.problem.workload import read_inputs
from simulator.program.op import Op
from simulator.program.ops import ApplyMask, Scores
from simulator.study.captions import program_of

Array = NDArray[np.float64]
Wrong = Callable[[dict[str, Array]], Array]

CALLS = 400  # most calls of a student's function: the ops of its name in the first visits


@dataclass(frozen=True, slots=True)
class OpTask:
    """An op that a student writes."""

    name: str  # as the program calls it
    function: str  # name of the student's function
    takes: tuple[str, ...]  # arguments, by the names of the papers
    gives: tuple[str, ...]  # results, likewise
    says: str  # shapes, in words
    solution: str
    mistakes: tuple[tuple[str, Wrong], ...]  # words for a mistake, and the first result with it

    @property
    def head(self) -> str:
        """The first line of the function."""
        return f"def {self.function}({', '.join(self.takes)}):"


@dataclass(frozen=True, slots=True)
class Call:
    """One op of the run, with its inputs and its results."""

    place: str  # in words
    given: dict[str, Array]
    expected: dict[str, Array]


def _shift(high: Array, low: Array) -> Array:
    floor = np.where(np.isneginf(low), 0.0, low)
    return np.asarray(np.exp(high - floor))


OPS = {
    task.name: task
    for task in (
        OpTask(
            "scores", "scores", ("Q", "K", "scale"), ("S",),
            "Q has (rows, d) numbers, K (keys, d); return S, (rows, keys).",
            "def scores(Q, K, scale):\n    return scale * Q @ K.T\n",
            (
                ("It leaves out the scale, 1 / sqrt(d).", lambda x: matmul(x["Q"], x["K"].T)),
                (
                    "It divides by d, not by sqrt(d).",
                    lambda x: matmul(x["Q"], x["K"].T) / x["Q"].shape[1],
                ),
                ("It divides by the scale.", lambda x: matmul(x["Q"], x["K"].T) / x["scale"]),
            ),
        ),
        OpTask(
            "mask", "mask", ("S", "rows", "cols"), ("S",),
            "S has (rows, keys) scores; rows and cols are their places in the sequence. The mask is"
            " causal: return S with hidden scores at -inf.",
            "def mask(S, rows, cols):\n"
            "    return np.where(cols[None, :] <= rows[:, None], S, -np.inf)\n",
            (
                (
                    "It is off by one: a token also sees itself.",
                    lambda x: np.where(x["cols"] < x["rows"][:, None], x["S"], -np.inf),
                ),
                (
                    "It hides the past and shows the future.",
                    lambda x: np.where(x["cols"] >= x["rows"][:, None], x["S"], -np.inf),
                ),
                (
                    "Hidden scores are 0: exp(0) is 1, so hidden keys still weigh.",
                    lambda x: np.where(x["cols"] <= x["rows"][:, None], x["S"], 0.0),
                ),
            ),
        ),
        OpTask(
            "row max", "row_max", ("S", "m"), ("m",),
            "S has (rows, keys) scores of this tile, m the maximum of each row so far; return the"
            " new m, (rows,).",
            "def row_max(S, m):\n    return np.maximum(m, S.max(axis=1))\n",
            (
                (
                    "It forgets the maximum of the tiles before.",
                    lambda x: np.asarray(x["S"].max(axis=1)),
                ),
                (
                    "It takes one maximum for the whole tile, not one for each row.",
                    lambda x: np.maximum(x["m"], x["S"].max()),
                ),
            ),
        ),
        OpTask(
            "exponentials", "exponentials", ("S", "m"), ("P",),
            "S has (rows, keys) scores, m the maximum of each row; return P, (rows, keys). A score"
            " of -inf becomes 0.",
            "def exponentials(S, m):\n"
            "    safe = np.where(np.isneginf(m), 0, m)\n"
            "    return np.exp(S - safe[:, None])\n",
            (
                ("It does not subtract m.", lambda x: np.asarray(np.exp(x["S"]))),
                (
                    "It is a power of 2, not of e.",
                    lambda x: np.asarray(np.exp2(x["S"] - x["m"][:, None])),
                ),
            ),
        ),
        OpTask(
            "row sum", "row_sum", ("P", "l", "alpha"), ("l",),
            "P has (rows, keys) numbers of this tile; l is the sum of each row so far, alpha ="
            " exp(m before - m); return the new l, (rows,).",
            "def row_sum(P, l, alpha):\n    return alpha * l + P.sum(axis=1)\n",
            (
                (
                    "l of the tiles before is not multiplied by alpha.",
                    lambda x: np.asarray(x["l"] + x["P"].sum(axis=1)),
                ),
                (
                    "alpha also multiplies the sum of this tile.",
                    lambda x: np.asarray(x["alpha"] * (x["l"] + x["P"].sum(axis=1))),
                ),
                (
                    "It forgets the sum of the tiles before.",
                    lambda x: np.asarray(x["P"].sum(axis=1)),
                ),
            ),
        ),
        OpTask(
            "rescale", "rescale", ("O", "alpha"), ("O",),
            "O has (rows, dv) numbers, alpha = exp(m before - m) one for each row; return the new"
            " O, (rows, dv).",
            "def rescale(O, alpha):\n    return alpha[:, None] * O\n",
            (
                ("O is not multiplied by alpha.", lambda x: x["O"]),
                ("It divides by alpha.", lambda x: np.asarray(x["O"] / x["alpha"][:, None])),
            ),
        ),
        OpTask(
            "accumulate", "accumulate", ("O", "P", "V"), ("O",),
            "O has (rows, dv) numbers, P (rows, keys), V (keys, dv); return O with this tile's part"
            " added.",
            "def accumulate(O, P, V):\n    return O + P @ V\n",
            (
                ("It forgets O of the tiles before.", lambda x: matmul(x["P"], x["V"])),
                (
                    "It divides P by its sum here; O is divided once, at the end.",
                    lambda x: x["O"] + matmul(x["P"] / x["P"].sum(axis=1, keepdims=True), x["V"]),
                ),
            ),
        ),
        OpTask(
            "normalise", "normalise", ("O", "l"), ("O",),
            "O has (rows, dv) sums, l one sum for each row; return O divided, (rows, dv).",
            "def normalise(O, l):\n    return O / l[:, None]\n",
            (
                ("O is not divided by l.", lambda x: x["O"]),
                ("It multiplies by l.", lambda x: np.asarray(x["O"] * x["l"][:, None])),
            ),
        ),
    )
}  # fmt: skip
"""The ops that an exercise may ask for, by their name."""


def calls_of(task: OpTask, scenario: Scenario) -> list[Call]:
    """Return the ops of a run in their order, with inputs and results in float64."""
    program = program_of(scenario)
    interpreter = Interpreter(program, read_inputs(program.workload))
    found: list[Call] = []
    state = interpreter.state
    for index in range(len(program)):
        visit = program.visit(index)
        for number, op in enumerate(program.ops(index)):
            before = dict(state.chip)
            op.apply(state)
            if op.name == task.name:
                place = f"head {visit.head}, tile ({visit.i}, {visit.j}), op {number}"
                given = _given(task, op, before, dict(state.chip))
                found.append(Call(place, given, {name: state.chip[name] for name in task.gives}))
                if len(found) == CALLS:
                    return found
    return found


def _given(task: OpTask, op: Op, before: dict[str, Array], after: dict[str, Array]) -> dict[
    str, Array
]:  # fmt: skip
    extra: dict[str, Array] = {}
    if isinstance(op, Scores):
        extra["scale"] = np.asarray(op.scale)
    if isinstance(op, ApplyMask):
        extra = {"rows": np.array(op.rows), "cols": np.array(op.cols)}
    found = {**before, **extra}
    return {name: np.array(found[name]) for name in task.takes}
