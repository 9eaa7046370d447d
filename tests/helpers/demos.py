"""Runs of the demos, and states of them."""

from collections.abc import Iterator
from functools import cache

from simulator import simulate
from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import load_scenario
from simulator.program.algorithms import ALGORITHMS
from simulator.program.op import Op
from simulator.program.playback import Cursor
from simulator.program.tile_program import TileProgram
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace
from tests.helpers.runs import program_of


@cache
def demo(name: str) -> Trace:
    return simulate(SCENARIOS / f"{name}.toml")


def every_cursor(program: TileProgram) -> list[Cursor]:
    return [Cursor(n, op) for n in range(len(program)) for op in range(len(program.ops(n)))]


def every_op(trace: Trace) -> Iterator[Snapshot]:
    return (trace.snapshot(at.visit, at.op) for at in every_cursor(trace.program))


@cache
def snapshots() -> tuple[Snapshot, ...]:
    """Every op of a few visits of every small demo: first, middle ones, last."""
    out = []
    for path in sorted(SCENARIOS.glob("*.toml")):
        if path.stem == "real-scale":
            continue
        trace = demo(path.stem)
        n = len(trace)
        for visit in {0, n // 3, n // 2, n - 1}:
            out += [trace.snapshot(visit, op) for op in range(len(trace.program.ops(visit)))]
    return tuple(out)


@cache
def first_users() -> dict[type[Op], str]:
    """Return of each kind of op the first algorithm whose demo has it."""
    found: dict[type[Op], str] = {}
    for name in ALGORITHMS:
        program = program_of(load_scenario(SCENARIOS / f"{name}.toml"))
        for visit in range(len(program)):
            for op in program.ops(visit):
                found.setdefault(type(op), name)
    return found
