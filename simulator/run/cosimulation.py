"""An engine and the float64 interpreter side by side, op by op, up to the first difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from simulator.base.dtypes import F32, F64
from simulator.base.tolerance import allowed, shares
from simulator.engines.interpreter import Interpreter
from simulator.engines.numpy_engine import Tile
from simulator.program.ops import Op, RowMax, RowSum
from simulator.program.tile_program import TileProgram, Visit
from simulator.run.trace import Trace

MAX_VISITS = 4_000
"""Visits that are checked at most, so that a check ends within a minute or so."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first number that differs by more than rounding explains.

    Attributes
    ----------
    visit : Visit
        Where.
    op : str
        The op after which it differs.
    quantity : str
        What differs, such as ``P[3, 7]``, counted inside the tile.
    engine, exact : float
        The engine's number and float64's.
    allowed : float
        The tolerance that it exceeds.
    """

    visit: Visit
    op: str
    quantity: str
    engine: float
    exact: float
    allowed: float

    def __str__(self) -> str:
        at = self.visit
        return (
            f"differs first at visit {at.index} (head {at.head}, row block {at.i}, column block "
            f"{at.j}), {self.op}: {self.quantity} = {self.engine:.9g}, float64 {self.exact:.9g}, "
            f"allowed {self.allowed:.1e}"
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check found.

    Attributes
    ----------
    visits, of : int
        Visits checked, of how many.
    difference : Difference or None
        The first one, if any.
    largest : float
        Largest share of its tolerance that any number used, 0 to 1 when all agree.
    """

    visits: int
    of: int
    difference: Difference | None
    largest: float

    def __str__(self) -> str:
        if self.difference is not None:
            return str(self.difference)
        return f"{self.visits} of {self.of} visits agree with float64"


def verify(trace: Trace, progress: Callable[[float], None] | None = None) -> Verdict:
    """Hold every op of a run, or of whole row blocks spread over it, against float64.

    Parameters
    ----------
    trace : Trace
        The run.
    progress : callable, optional
        Told the share done.
    """
    program = trace.program
    interpreter = Interpreter(program, trace.inputs)
    checked, largest = 0, 0.0
    late_mask = trace.workload.faults.late_mask
    for index in _visits(program):
        visit = program.visit(index)
        tile = trace.engine.tile(visit, trace.row_block(visit.head, visit.i))
        scale = 1.0
        for op in program.ops(index):
            op.apply(interpreter.machine)
            chip = interpreter.machine.chip
            if "S" in chip and op.name in ("load", "scores", "mask"):
                finite = chip["S"][np.isfinite(chip["S"])]
                scale = float(np.max(np.abs(finite), initial=1.0))
            for name, ours, exact in _compared(op, tile, chip, late_mask):
                size = scale * (_summed(chip) if name == "O" else 1.0)
                found, share = _difference(visit, op, name, ours, exact, size)
                largest = max(largest, share)
                if found is not None:
                    return Verdict(checked + 1, len(program), found, largest)
        checked += 1
        if progress and checked % 16 == 0:
            progress(min(1.0, checked / min(len(program), MAX_VISITS)))
    if progress:
        progress(1.0)
    return Verdict(checked, len(program), None, largest)


def _visits(program: TileProgram) -> Iterator[int]:
    """Yield the visits to check: all, else whole row blocks, which depend on nothing else."""
    total = len(program)
    if total <= MAX_VISITS or len(program.launches) > 1 or not program.launches[0].by_rows:
        yield from range(min(total, MAX_VISITS))
        return
    start, left = 0, MAX_VISITS
    w = program.workload
    of_a_block = max(1, total // (w.heads * w.grid.Tr))
    stride = total // max(1, MAX_VISITS // of_a_block)
    while start < total and left > 0:
        first, stop = program.block_bounds(start)
        yield from range(first, stop)
        left -= stop - first
        start = max(stop, start + stride)


def _compared(
    op: Op, tile: Tile, chip: dict[str, F64], late_mask: bool
) -> list[tuple[str, F32, F64]]:
    """Return name, engine's and exact numbers of what an op has made."""
    if op.name == "scores":
        return [("S", tile.s, chip["S"])]
    if op.name == "mask":
        masked = tile.s if late_mask else np.where(tile.seen, tile.s, np.float32(-np.inf))
        return [("S", masked, chip["S"])]
    if op.name == "row max":
        assert isinstance(op, RowMax)
        if not op.running:
            return [("m of the tile", tile.m_tile, chip["m_tile"])]
        return [("m", tile.m, chip["m"]), ("alpha", tile.alpha, chip["alpha"])]
    if op.name == "exponentials":
        return [("P", tile.p, chip["P"])]
    if op.name == "row sum":
        own = ("l of the tile", tile.l_tile, chip["l_tile"])
        assert isinstance(op, RowSum)
        return [own, ("l", tile.l, chip["l"])] if op.running else [own]
    if op.name == "combine":
        names = ("m", "l", "alpha", "beta")
        return [(name, getattr(tile, name), chip[name]) for name in names]
    if op.name == "accumulate":
        return [("O", tile.o, chip["O"])]
    return []


def _summed(chip: dict[str, F64]) -> float:
    """Return the size of the terms that O is a sum of: they may cancel, their errors do not."""
    values = float(np.max(np.abs(chip["V"]), initial=1.0))
    running_sum = "l" in chip and "beta" not in chip
    return values * (float(np.max(chip["l"], initial=1.0)) if running_sum else 1.0)


def _difference(
    visit: Visit, op: Op, name: str, ours: F32, exact: F64, size: float
) -> tuple[Difference | None, float]:
    """Compare; NaN and a wrong infinity never pass."""
    used = shares(ours, exact, size)
    worst = float(used.max())
    if worst <= 1:
        return None, worst
    place = tuple(int(n) for n in np.unravel_index(int(np.argmax(used > 1)), used.shape))
    found = Difference(
        visit,
        op.name,
        f"{name}{list(place)}",
        float(ours[place]),
        float(exact[place]),
        float(allowed(exact, size)[place]),
    )
    return found, worst
