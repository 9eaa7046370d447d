"""Measurements of this machine and this version: seeking, whole outputs, program arithmetic."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from simulator.base.dtypes import F32
from simulator.base.matmul import matmul
from simulator.engines.numpy_engine import NumpyEngine
from simulator.problem.scenario import Scenario, parse_scenario, with_values
from simulator.problem.workload import resolve
from simulator.program.algorithms import ALGORITHMS, USUAL, tile_program
from simulator.program.playback import Cursor, Granularity, step
from simulator.program.tile_program import TileProgram
from simulator.run.trace import Trace, simulate
from simulator.study.sweep import map_sizes, tiling_map

LONG = 2**17
"""Tokens of the long runs: N = 131 072."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One figure, and what it should not exceed.

    Attributes
    ----------
    name : str
        What was measured.
    figure : float
        The figure.
    unit : str
        Its unit; ``x`` for a ratio.
    target : float or None
        Most that it may be; None where it is only told.
    """

    name: str
    figure: float
    unit: str
    target: float | None = None

    @property
    def met(self) -> bool:
        """Whether the figure is within its target; false for NaN."""
        return self.target is None or self.figure <= self.target

    def __str__(self) -> str:
        goal = "" if self.target is None else f"at most {self.target:g} {self.unit}"
        verdict = "" if self.target is None else "ok" if self.met else "MISSED"
        return f"{self.name:62} {self.figure:9.3g} {self.unit:5} {goal:18} {verdict}".rstrip()


def measure_all() -> Iterator[Measurement]:
    """Yield all measurements of this module; takes about two minutes."""
    yield from seek_measurements()
    yield from stepping_measurements()
    yield from whole_output_measurements()
    yield from arithmetic_measurements()
    yield from sweep_measurements()


def benchmark_scenario(
    seqlen: int, *, heads: int = 1, causal: bool = False, algorithm: str = USUAL.name
) -> Scenario:
    """Return random input of d = 128 in tiles of 128 by 128."""
    return parse_scenario(
        {
            "attention": {
                "algorithm": algorithm,
                "heads": heads,
                "seqlen_q": seqlen,
                "head_dim": 128,
            },
            "mask": {"causal": causal},
            "tiling": {"rows": 128, "cols": 128},
        }
    )


def seek_measurements(seeks: int = 1000, row_blocks: int = 60) -> list[Measurement]:
    """Return how long seeks to random visits take at N = 131 072, and what they keep in memory.

    Every first touch of a row block is followed by plain NumPy on the same rows, with as many
    BLAS threads as there are processors.
    """
    trace = simulate(benchmark_scenario(LONG))
    random = np.random.default_rng(0)
    Tr, Tc = trace.workload.grid.Tr, trace.workload.grid.Tc
    trace.snapshot(0)  # what is made once, such as the threads
    process = psutil.Process()
    inputs = process.memory_info().rss
    most = 0
    for index in random.integers(0, len(trace), seeks).tolist():
        trace.snapshot(index)
        most = max(most, process.memory_info().rss - inputs)

    # Nothing kept from before: every row block is touched for the first time.
    trace = Trace(trace.program, NumpyEngine(trace.workload, trace.inputs), trace.inputs)
    first, again, plain = [], [], []
    for i in random.permutation(Tr)[:row_blocks].tolist():
        columns = random.integers(0, Tc, 6).tolist()
        first.append(seconds(lambda: trace.snapshot(i * Tc + columns[0])))  # noqa: B023
        again += [seconds(lambda: trace.snapshot(i * Tc + j)) for j in columns[1:]]  # noqa: B023
        with threadpool_limits(os.cpu_count(), user_api="blas"):
            plain.append(seconds(lambda: plain_attention(trace, i)))  # noqa: B023
        time.sleep(0.2)  # the threads of BLAS spin for a while after a product, on our processors
    ratios = np.array(first) / np.array(plain)
    return [
        Measurement("seek: first touch of a row block, p95", p95(first) * 1e3, "ms", 100),
        Measurement("seek: plain NumPy on the same rows, p95", p95(plain) * 1e3, "ms"),
        Measurement("seek: first touch / plain NumPy, of the p95", p95(first) / p95(plain), "x", 1),
        Measurement("seek: first touch / plain NumPy, median", float(np.median(ratios)), "x", 1),
        Measurement("seek: another visit of the row block, p95", p95(again) * 1e3, "ms", 5),
        Measurement(f"seek: memory over the inputs, {seeks} seeks", most / 1e6, "MB", 300),
    ]


def plain_attention(trace: Trace, i: int) -> F32:
    """Return row block `i` as plain NumPy computes it: a product, exp, a product."""
    rows = trace.workload.grid.row_range(i)
    q = trace.inputs.q[0, rows.start : rows.stop] * np.float32(trace.workload.logit_scale)
    p = matmul(q, trace.inputs.k[0].T)
    np.exp(p, out=p)
    o: F32 = matmul(p, trace.inputs.v[0])
    o /= p.sum(axis=1, keepdims=True)
    return o


def stepping_measurements(steps: int = 400) -> list[Measurement]:
    """Return how long one step by op takes at N = 4096 without drawing."""
    out = []
    for algorithm in ALGORITHMS:
        trace = simulate(benchmark_scenario(4096, algorithm=algorithm))
        at, times = Cursor(len(trace) // 2, 0), []
        for _ in range(steps):
            at = step(trace.program, at, Granularity.OP)
            times.append(seconds(lambda: trace.snapshot(at.visit, at.op)))  # noqa: B023
        out.append(Measurement(f"step: {algorithm}, N = 4096, p95", p95(times) * 1e3, "ms", 33))
    return out


def whole_output_measurements(seqlen: int = 4096, rounds: int = 5) -> list[Measurement]:
    """Return how long the whole output of one head takes, full and causal; the best round."""
    out = []
    for causal in (False, True):
        trace = simulate(benchmark_scenario(seqlen, causal=causal))
        best = min(seconds(fresh(trace)) for _ in range(rounds))
        what = "causal" if causal else "full"
        out.append(Measurement(f"whole output: N = {seqlen}, {what}", best * 1e3, "ms"))
    return out


def fresh(trace: Trace) -> Callable[[], F32]:
    """Return what computes the output of a trace anew."""
    again = Trace(trace.program, trace.engine, trace.inputs)
    return lambda: again.output


def arithmetic_measurements(calls: int = 2000) -> list[Measurement]:
    """Return how long the tile program of 32 heads at N = 131 072 takes to answer."""
    workload = resolve(benchmark_scenario(LONG, heads=32, causal=True))
    program = tile_program(workload)
    places = np.random.default_rng(0).integers(0, len(program), calls).tolist()
    return [
        Measurement("program: making it", seconds(lambda: tile_program(workload)) * 1e6, "us"),
        _each("len", program, places, lambda _: len(program)),
        _each("visit(k)", program, places, program.visit),
        _each("counters before visit k", program, places, program.counters),
        _each("index(head, i, j)", program, places, lambda k: program.index(k % 32, k % 1024, 0)),
    ]


def sweep_measurements() -> list[Measurement]:
    """Return how long a map over 64 by 64 tilings takes at N = 131 072, under each mask."""
    plain = benchmark_scenario(LONG)
    window = {"window": 4096, "sinks": 16}
    masks: dict[str, dict[str, Any]] = {
        "no mask": {}, "causal": {"causal": True}, "window + sinks": window,
    }  # fmt: skip
    sizes, out = map_sizes(LONG), []
    for algorithm in ALGORITHMS:
        for words, mask in masks.items():
            changes = {"attention": {"algorithm": algorithm}, "mask": mask}
            workload = resolve(with_values(plain, changes))
            took = seconds(lambda: tiling_map(workload, sizes, sizes))  # noqa: B023
            name = f"sweep: {len(sizes)} x {len(sizes)} tilings, {algorithm}, {words}"
            out.append(Measurement(name, took, "s", 1))
    return out


def _each(
    name: str, program: TileProgram, places: list[int], ask: Callable[[int], object]
) -> Measurement:
    ask(places[0])
    times = [seconds(lambda: ask(place)) for place in places]  # noqa: B023
    return Measurement(f"program: {name}, {len(program)} visits, p95", p95(times) * 1e6, "us", 50)


def seconds(work: Callable[[], object]) -> float:
    """Return how long `work` takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def p95(times: list[float]) -> float:
    """Return the time that 95 of 100 stay below."""
    sorted_times: NDArray[np.float64] = np.percentile(times, [95])
    return float(sorted_times[0])
