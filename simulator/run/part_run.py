"""Some rows of some heads of a run that may be larger than memory, and the whole run's counts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from simulator.base.dtypes import F32
from simulator.base.errors import refuse
from simulator.engines.reference import reference_rows
from simulator.problem.filling import each_sequence
from simulator.problem.scenario import Scenario, with_values
from simulator.problem.workload import Workload, read_inputs
from simulator.program.algorithms import algorithm_of, tile_program
from simulator.program.tile_program import TileProgram
from simulator.run.trace import EngineFactory, Progress, resolve_from, summary_of


def whole_of(
    scenario: Scenario, rows: range | None, heads: Sequence[int] | None, source: str = ""
) -> tuple[TileProgram, range, tuple[int, ...]]:
    """Return the program of the whole run, and the rows and heads that are asked for."""
    if len(each_sequence(scenario)) > 1 or scenario.batch.blind:
        raise refuse("run", "--rows", "a batch", "a scenario that says batch.sequence")
    w = resolve_from(source, scenario, computes=False)
    if w.backward:
        raise refuse("run", "--rows", w.algorithm, "a forward pass: gradients need all rows")
    rows = range(w.queries) if rows is None else rows
    if not 0 <= rows.start < rows.stop <= w.queries:
        expected = f"A:B with 0 <= A < B <= {w.queries}"
        raise refuse("run", "--rows", f"{rows.start}:{rows.stop}", expected)
    chosen = tuple(w.picked if heads is None else heads)
    if not chosen or set(chosen) - set(w.picked):
        expected = f"some of {w.picked[0]} to {w.picked[-1]}"
        raise refuse("run", "--heads", ",".join(map(str, chosen)), expected)
    return tile_program(w), rows, chosen


def run_part(
    scenario: Scenario,
    rows: range,
    heads: Sequence[int],
    engine: EngineFactory,
    program: TileProgram,
    source: str = "",
    drawing: Progress | None = None,
    progress: Progress | None = None,
) -> tuple[dict[str, Any], dict[str, F32]]:
    """Compute O and lse of some rows of some heads, with the numbers that they have in the run.

    program: the program of the whole run, whose bytes, FLOPs and visits are counted.
    Returns: the summary, with the error of these rows alone; ``o`` (heads, rows, dv) and ``lse``
        (heads, rows), float32.
    """
    w = _workload_of(scenario, heads, program.workload, source)
    inputs = read_inputs(w, drawing)
    computing = engine(w, inputs)
    o = np.empty((len(heads), len(rows), w.value_dim), np.float32)
    lse = np.empty(o.shape[:2], np.float32)
    error, seconds, done = 0.0, 0.0, 0
    for n, name in enumerate(heads):
        # Heads that are packed into one lie one after the other in its rows.
        head, first = divmod(w.picked.index(name) * w.queries, w.seqlen_q)
        start, stop = first + rows.start, first + rows.stop
        for i in range(start // w.rows, (stop - 1) // w.rows + 1):
            own = w.grid.row_range(i)
            part = range(max(own.start, start), min(own.stop, stop))
            begun = time.perf_counter()
            block = computing.row_block(head, i)
            seconds += time.perf_counter() - begun
            here = slice(part.start - own.start, part.stop - own.start)
            there = slice(part.start - start, part.stop - start)
            o[n, there], lse[n, there] = block.o[here], block.lse[here]
            exact, _ = reference_rows(w, inputs, head, part)
            with np.errstate(invalid="ignore"):
                error = float(np.max([error, np.max(np.abs(o[n, there] - exact))]))
            done += len(part)
            if progress:
                progress(done / (len(heads) * len(rows)))
    summary = summary_of(program, computing.name, error, done, seconds)
    summary |= {"rows": [rows.start, rows.stop], "heads": list(heads)}
    return summary, {"o": o, **({"lse": lse} if algorithm_of(w).softmax else {})}


def _workload_of(
    scenario: Scenario, heads: Sequence[int], whole: Workload, source: str
) -> Workload:
    """Return the workload of some heads, in the tiles and splits of the whole run."""
    values: dict[str, dict[str, object]] = {"input": {"head": sorted(heads)}}
    if algorithm_of(whole).splits:
        values["tiling"] = {"splits": None, "split_size": whole.split_blocks * whole.cols}
    return resolve_from(source, with_values(scenario, values))
