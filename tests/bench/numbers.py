"""Measurements of this machine and this version: seeking, whole outputs, program arithmetic.

A time says as much about the machine and its load as about the program. So each figure is compared
with a floor: the time that NumPy alone takes for the same work. Both are measured in turns in the
same run, so that a busy moment affects both. The ratio of their medians is what counts.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from heapq import heapify, heapreplace
from math import isnan
from typing import Any, cast

import numpy as np
import psutil
from numpy.typing import NDArray

from simulator.base.dtypes import F32
from simulator.base.matmul import matmul
from simulator.engines.gradient_engine import GradientEngine
from simulator.engines.numpy_engine import NumpyEngine, numpy_engine
from simulator.engines.protocol import Engine, RowBlock
from simulator.problem.hardware import KIB
from simulator.problem.scenario import Scenario, parse_scenario, with_values
from simulator.problem.workload import Inputs, Workload, read_inputs, resolve
from simulator.program.algorithms import ALGORITHMS, USUAL, beside, tile_program
from simulator.program.playback import Cursor, Granularity, step
from simulator.run.trace import Trace, simulate, trace_of
from simulator.study.schedule.blocks import count_blocks
from simulator.study.schedule.residency import BlockNeeds
from simulator.study.schedule.schedule import schedule_of
from simulator.study.sweep import map_sizes, tiling_map
from simulator.timing.orders import ORDERS

LONG = 2**17
"""Tokens of the long runs: N = 131 072."""
HEADER = (
    f"{'what':56} {'figure':>9} {'':5} {'at most':8} {'':6} {'median':>9} {'floor':>9} {'ratio':>7}"
    "  over what"
)


@dataclass(frozen=True, slots=True)
class Measurement:
    """One figure, what it should not exceed, and the floor with which it is compared."""

    name: str  # what was measured
    figure: float  # the figure, such as a 95th percentile
    unit: str  # its unit, and that of `median` and `floor`
    # median of the numbers of which the figure is a percentile; the figure itself if there is only
    # one number
    median: float
    floor: float  # median of the times that the same work takes without our code, measured in turns
    over: str  # what the floor is
    target: float | None = None  # most that the figure may be; None if it is only told
    most: float | None = None  # most that the ratio may be; None if it is only told

    @property
    def ratio(self) -> float:
        """The median divided by the floor; NaN if the floor is 0."""
        return self.median / self.floor if self.floor else float("nan")

    @property
    def met(self) -> bool:
        """Whether figure and ratio are within their limits; false for NaN."""
        within = self.target is None or self.figure <= self.target
        return within and (self.most is None or self.ratio <= self.most)

    def holds(self, *, busy: bool) -> bool:
        """Return whether what does not depend on the machine is met: memory and ratios, no time.

        busy: whether others compete for the processors: a ratio means little then, and is only
            told.
        """
        if self.met or self.unit not in ("s", "ms", "us"):
            return self.met
        return busy or self.most is None

    @property
    def told(self) -> dict[str, str | float | bool | None]:
        """All of it by name, for programs."""
        finite = None if isnan(self.ratio) else self.ratio
        return asdict(self) | {"ratio": finite, "met": self.met}

    def __str__(self) -> str:
        goal = " ".join(
            [
                *([] if self.target is None else [f"{self.target:g}"]),
                *([] if self.most is None else [f"{self.most:g}x"]),
            ]
        )
        verdict = "" if not goal else "ok" if self.met else "MISSED"
        return (
            f"{self.name:56} {self.figure:9.3g} {self.unit:5} {goal:8} {verdict:6} "
            f"{self.median:9.3g} {self.floor:9.3g} {self.ratio:6.3g}x  {self.over}"
        )


def busy() -> bool:
    """Return whether others compete for this machine's processors."""
    return psutil.getloadavg()[0] > (psutil.cpu_count() or 1) + 1


def tell(rows: Iterable[Measurement], *, as_json: bool) -> bool:
    """Print measurements; return whether all hold.

    rows: what is measured. Each row takes seconds and is printed as soon as it is there.
    as_json: whether all are one list of objects, printed at the end.
    """
    told, held = [], True
    if not as_json:
        print(HEADER, flush=True)
    for row in rows:
        told.append(row.told)
        held = row.holds(busy=busy()) and held
        if not as_json:
            print(row, flush=True)
    if as_json:
        print(json.dumps(told))
    return held


def measured(
    name: str,
    unit: str,
    times: list[float],
    floors: list[float],
    over: str,
    *,
    figure: Callable[[list[float]], float] | None = None,
    target: float | None = None,
    most: float | None = None,
) -> Measurement:
    """Return the measurement of times that were taken in turns.

    name, unit, over, target, most: as in `Measurement`; `unit` is ``s``, ``ms`` or ``us``.
    times, floors: in seconds.
    figure: which figure of the times is told, such as `p95`; by default their median.
    """
    by = {"s": 1.0, "ms": 1e3, "us": 1e6}[unit]
    median, floor = float(np.median(times)), float(np.median(floors))
    told = median if figure is None else figure(times)
    return Measurement(name, by * told, unit, by * median, by * floor, over, target, most)


def turns(most: int, budget: float, least: int = 3) -> Iterator[int]:
    """Yield the numbers of turns: as many as fit into a budget of time.

    most, least: turns at most and at least.
    budget: seconds after which no further turn begins.
    """
    started = time.perf_counter()
    for n in range(most):
        if n >= least and time.perf_counter() - started > budget:
            return
        yield n


def measure_all() -> Iterator[Measurement]:
    """Yield all measurements of this module; takes most of a minute."""
    yield from seek_measurements()
    yield from decoding_measurements()
    yield from column_block_measurements()
    yield from stepping_measurements()
    yield from whole_output_measurements()
    yield from arithmetic_measurements()
    yield from sweep_measurements()
    yield from schedule_measurements()


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


def seek_measurements(seeks: int = 200, row_blocks: int = 40) -> list[Measurement]:
    """Return how long seeks to random visits take at N = 131 072, and what they keep in memory.

    After the first visit of a row block, NumPy alone computes the same rows; after another visit of
    it, NumPy alone computes its tile.
    """
    trace = simulate(benchmark_scenario(LONG))  # its engine keeps BLAS to one thread
    random = np.random.default_rng(0)
    Tr, Tc = trace.workload.grid.Tr, trace.workload.grid.Tc
    trace.snapshot(0)  # what is made only once, such as the threads
    process = psutil.Process()
    inputs = process.memory_info().rss
    most = 0
    for _ in turns(seeks, 15):
        trace.snapshot(int(random.integers(0, len(trace))))
        most = max(most, process.memory_info().rss - inputs)

    # Nothing is kept from before: every row block is computed for the first time.
    trace = Trace(trace.program, NumpyEngine(trace.workload, trace.inputs), trace.inputs)
    first, again, plain, tiles = [], [], [], []
    blocks = random.permutation(Tr).tolist()
    for n in turns(row_blocks, 20):
        i, columns = blocks[n], random.integers(0, Tc, 6).tolist()
        first.append(seconds(lambda: trace.snapshot(i * Tc + columns[0])))  # noqa: B023
        for j in columns[1:]:
            again.append(seconds(lambda: trace.snapshot(i * Tc + j)))  # noqa: B023
            tiles.append(seconds(lambda: plain_tile(trace, i, j)))  # noqa: B023
        plain.append(seconds(lambda: plain_attention(trace, i)))  # noqa: B023
    held = sum(t.nbytes for t in (trace.inputs.q, trace.inputs.k, trace.inputs.v)) / 1e6
    return [
        measured("seek: first touch of a row block, p95", "ms", first, plain,
                 "NumPy on the same rows", figure=p95, target=100, most=1.25),
        measured("seek: another visit of the row block, p95", "ms", again, tiles,
                 "NumPy on its tile", figure=p95, target=5),
        Measurement("seek: memory over the inputs", most / 1e6, "MB", most / 1e6, held,
                    "the inputs", 300),
    ]  # fmt: skip


def decoding_measurements(seqlen: int = LONG, steps: int = 40) -> list[Measurement]:
    """Return how long seeks and steps take in the decoding of one token, 32 heads over 8.

    In turns for the usual algorithm and those that deal keys out to splits, on the same numbers.
    The bounds are those of seeking and stepping elsewhere.
    """
    sizes = {"heads": 32, "kv_heads": 8, "seqlen_q": 1, "seqlen_k": seqlen, "head_dim": 128}
    tiling = {"rows": 128, "cols": 128, "splits": "auto"}
    w = resolve(parse_scenario({"attention": sizes, "mask": {"causal": True}, "tiling": tiling}))
    inputs, random = read_inputs(w), np.random.default_rng(0)
    traces: dict[str, Trace] = {}
    rows: dict[str, tuple[list[list[float]], list[list[float]]]] = {}
    for each in ALGORITHMS.values():
        if each is USUAL or (each.splits and each.inputs == USUAL.inputs):
            own = w.as_algorithm(each.name)
            traces[each.name] = trace_of(own, own.posed(inputs), numpy_engine)
            rows[each.name] = [[], [], []], [[], []]
    for kv_head in turns(w.kv_heads, 30):
        for name, trace in traces.items():
            (first, again, stepping), (plain, tiles) = rows[name]
            launch, head = trace.program.launches[0], trace.workload.kv_head_of.index(kv_head)
            visits = launch.before(head) + random.integers(0, launch.per_head, 6)
            first.append(seconds(lambda: trace.snapshot(int(visits[0]))))  # noqa: B023
            again += [seconds(lambda: trace.snapshot(k)) for k in visits[1:].tolist()]  # noqa: B023
            at = Cursor(int(visits[0]), 0)
            for _ in range(steps):
                at = step(trace.program, at, Granularity.OP)
                stepping.append(seconds(lambda: trace.snapshot(at.visit, at.op)))  # noqa: B023
                tiles.append(seconds(lambda: plain_tile(trace, 0, kv_head)))  # noqa: B023
            plain.append(seconds(lambda: plain_attention(trace, 0)))  # noqa: B023
    return [
        measured(f"decode: {name}, {what}, p95", "ms", times, floor, over, figure=p95, target=most)
        for name, (mine, (plain, tiles)) in rows.items()
        for what, times, floor, over, most in (
            ("first touch of a row block", mine[0], plain, "NumPy on the same rows", 100),
            ("another visit of it", mine[1], tiles, "NumPy on a tile", 5),
            ("a step by op", mine[2], tiles, "NumPy on a tile", 33),
        )
    ]


def plain_attention(trace: Trace, i: int, keys: int | None = None) -> None:
    """Compute row block `i` with NumPy alone: a product, exp, a product, one half in each thread.

    There are two threads, as in the engine, instead of those of BLAS: these use a processor while
    they wait, so on a busy machine the floor would be ten times too high.

    trace: the run.
    i: row block of head 0.
    keys: how many of the first keys; all by default.
    """
    rows = trace.workload.grid.row_range(i)
    middle = (rows.start + rows.stop) // 2

    def half(start: int, stop: int) -> None:
        q = trace.workload.scoring.queries(trace.inputs.q[0, start:stop])
        p = matmul(q, trace.inputs.k[0, :keys].T)
        np.exp(p, out=p)
        o: F32 = matmul(p, trace.inputs.v[0, :keys])
        o /= p.sum(axis=1, keepdims=True)

    with ThreadPoolExecutor(2) as pool:
        other = pool.submit(half, middle, rows.stop)
        half(rows.start, middle)
        other.result()


def plain_tile(trace: Trace, i: int, j: int) -> F32:
    """Return what tile (i, j) of head 0 adds to O, computed with NumPy alone."""
    rows, keys = trace.workload.grid.row_range(i), trace.workload.grid.col_range(j)
    q = trace.workload.scoring.queries(trace.inputs.q[0, rows.start : rows.stop])
    s = matmul(q, trace.inputs.k[0, keys.start : keys.stop].T)
    p = np.exp(s - s.max(axis=1, keepdims=True))
    o: F32 = matmul(p, trace.inputs.v[0, keys.start : keys.stop])
    o /= p.sum(axis=1, keepdims=True)
    return o


class _ForwardPass:
    """A forward pass that is done: HBM has O and LSE, and which these are changes no time."""

    def __init__(self, w: Workload, inputs: Inputs) -> None:
        self._workload, self._inputs = w, inputs

    def row_block(self, head: int, i: int) -> RowBlock:
        """Return V of the rows for O, and the LSE of scores that are all 0."""
        rows = self._workload.grid.row_range(i)
        o = self._inputs.v[head, rows.start : rows.stop]
        lse = np.full(len(rows), np.log(self._workload.seqlen_k), np.float32)
        nothing = np.broadcast_to(np.float32(np.nan), (len(rows), self._workload.grid.Tc))
        return RowBlock(nothing, nothing, o, lse, None, o.nbytes + lse.nbytes)

    def forget(self) -> None:
        """Nothing is kept."""


def column_block_measurements(seqlen: int = LONG, seeks: int = 12) -> list[Measurement]:
    """Return how long a seek to the end of a column block of a backward pass takes.

    O and LSE of the forward pass, and D, are in HBM. The engine goes through all row blocks of the
    column block, and through the column blocks before it for dQ of the last row block. NumPy alone
    makes the same five products at once, in one thread, as the engine does.
    """
    rows = []
    for each in ALGORITHMS.values():
        if not (each.backward and each.skips):
            continue
        w = resolve(benchmark_scenario(seqlen, algorithm=each.name))
        inputs, program = read_inputs(w), tile_program(w)
        numpy_engine(resolve(benchmark_scenario(256)), inputs)  # keeps BLAS to one thread
        engine = GradientEngine(w, inputs, cast(Engine, _ForwardPass(w, inputs)))
        trace = Trace(program, engine, inputs)
        random, times, plain = np.random.default_rng(0), list[float](), list[float]()
        blocks = random.permutation(w.grid.Tc).tolist()
        for n in turns(min(seeks, len(blocks) - 1) + 1, 45):
            index = program.index(0, w.grid.Tr - 1, blocks[n], program.forming)
            assert index is not None
            taken = seconds(lambda: trace.tile(index))  # noqa: B023
            plain.append(seconds(lambda: plain_column_block(trace, blocks[n])))  # noqa: B023
            if n:  # the first one makes D of all rows
                times.append(taken)
        rows.append(
            measured(
                f"seek: a column block of {each.label}, p95", "ms", times, plain[1:],
                "NumPy on its five products", figure=p95, most=2.5,
            )
        )  # fmt: skip
    return rows


def plain_column_block(trace: Trace, j: int) -> tuple[F32, F32, F32]:
    """Return dK and dV of column block `j` of head 0, and what it adds to dQ, with NumPy alone."""
    w, inputs = trace.workload, trace.inputs
    assert inputs.upstream is not None
    keys = w.grid.col_range(j)
    q, upstream = w.scoring.queries(inputs.q[0]), inputs.upstream[0]
    k, v = (x[0, keys.start : keys.stop] for x in (inputs.k, inputs.v))
    p = matmul(q, k.T)
    p -= np.float32(np.log(w.seqlen_k))
    np.exp(p, out=p)
    dv: F32 = matmul(p.T, upstream)
    ds = matmul(upstream, v.T)
    ds -= (upstream * inputs.v[0]).sum(axis=1, keepdims=True)
    ds *= p
    return matmul(ds.T, q), dv, matmul(ds, k)


def stepping_measurements(steps: int = 400) -> list[Measurement]:
    """Return how long one step by op takes at N = 4096 without drawing."""
    out = []
    for algorithm in beside(USUAL.name):
        trace = simulate(benchmark_scenario(4096, algorithm=algorithm))
        at, times, floors = Cursor(len(trace) // 2, 0), [], []
        for n in turns(steps, 4):
            at = step(trace.program, at, Granularity.OP)
            times.append(seconds(lambda: trace.snapshot(at.visit, at.op)))  # noqa: B023
            floors.append(seconds(lambda: plain_tile(trace, n % 32, n // 32)))  # noqa: B023
        name = f"step: {algorithm}, N = 4096, p95"
        out.append(measured(name, "ms", times, floors, "NumPy on a tile", figure=p95, target=33))
    return out


def whole_output_measurements(seqlen: int = 4096, rounds: int = 7) -> list[Measurement]:
    """Return how long the whole output of one head takes, full and causal."""
    out = []
    for causal in (False, True):
        trace = simulate(benchmark_scenario(seqlen, causal=causal))
        grid, times, floors = trace.workload.grid, [], []

        def plain() -> None:
            for i in range(grid.Tr):  # noqa: B023
                plain_attention(trace, i, grid.row_range(i).stop if causal else None)  # noqa: B023

        for _ in turns(rounds, 4):
            times.append(seconds(fresh(trace)))
            floors.append(seconds(plain))
        name = f"whole output: N = {seqlen}, {'causal' if causal else 'full'}"
        out.append(measured(name, "ms", times, floors, "NumPy, row block by row block"))
    return out


def fresh(trace: Trace) -> Callable[[], F32]:
    """Return a function that computes the output of a trace again."""
    again = Trace(trace.program, trace.engine, trace.inputs)
    return lambda: again.output


def arithmetic_measurements(calls: int = 2000) -> list[Measurement]:
    """Return how long the tile program of 32 heads at N = 131 072 takes to answer.

    The floors are the least that arithmetic instead of lists must do: NumPy's sum of the visits
    before each row block, and reading one such sum.
    """
    workload = resolve(benchmark_scenario(LONG, heads=32, causal=True))
    program = tile_program(workload)
    ends = np.arange(1, workload.grid.Tr + 1)
    before = np.cumsum(ends)
    making = [(seconds(lambda: tile_program(workload)), seconds(lambda: np.cumsum(ends)))
              for _ in turns(20, 2)]  # fmt: skip
    times, floors = (list(column) for column in zip(*making, strict=True))
    out = [measured("program: making it", "us", times, floors, "NumPy's sum over row blocks")]
    questions: dict[str, Callable[[int], object]] = {
        "len": lambda _: len(program),
        "visit(k)": program.visit,
        "counters before visit k": program.counters,
        "index(head, i, j)": lambda k: program.index(k % 32, k % 1024, 0),
    }
    places = np.random.default_rng(0).integers(0, len(program), calls).tolist()
    for name, ask in questions.items():
        ask(places[0])
        times, floors = [], []
        for n in turns(calls, 1):
            place = places[n]
            times.append(seconds(lambda: ask(place)))  # noqa: B023
            floors.append(seconds(lambda: np.searchsorted(before, place)))  # noqa: B023
        words = f"program: {name}, {len(program)} visits, p95"
        over = "NumPy's look at a sorted array"
        out.append(measured(words, "us", times, floors, over, figure=p95, target=50))
    return out


def sweep_measurements() -> list[Measurement]:
    """Return how long a map over 64 by 64 tilings takes at N = 131 072, under each mask.

    The floor counts the tiles of a causal mask for each tiling, and does nothing else.
    """
    plain = benchmark_scenario(LONG)
    window = {"window": 4096, "sinks": 16}
    masks: dict[str, dict[str, Any]] = {
        "no mask": {}, "causal": {"causal": True}, "window + sinks": window,
    }  # fmt: skip
    sizes, out = map_sizes(LONG), []

    def counted() -> None:
        across = np.array(sizes)[:, None]
        for size in sizes:
            ends = np.minimum(np.arange(0, LONG, size) + size, LONG)
            np.sum(-(-ends // across), axis=1)

    for algorithm in beside(USUAL.name):
        for words, mask in masks.items():
            changes = {"attention": {"algorithm": algorithm}, "mask": mask}
            workload = resolve(with_values(plain, changes))
            times, floors = [], []
            for _ in turns(5, 2):
                times.append(seconds(lambda: tiling_map(workload, sizes, sizes)))  # noqa: B023
                floors.append(seconds(counted))
            name = f"sweep: {len(sizes)} x {len(sizes)} tilings, {algorithm}, {words}"
            over = "NumPy's count of the tiles"
            out.append(measured(name, "s", times, floors, over, target=1))
    return out


def schedule_measurements(rounds: int = 40) -> list[Measurement]:
    """Return how long it takes to place 4096 thread blocks on a GPU in each order.

    The floor is a heap that is given as many numbers as there are blocks, and loses as many.
    """
    program = tile_program(resolve(benchmark_scenario(2**14, heads=32, causal=True)))
    needs = [BlockNeeds("kernel", 512, 96 * KIB, 128)]
    blocks = sum(count_blocks(each, 32) for each in program.launches)
    work = np.random.default_rng(0).random(blocks).tolist()
    free: list[float] = work[: program.workload.gpu.sms]
    heapify(free)

    def heap() -> None:
        for each in work:
            heapreplace(free, each)

    out = []
    for order in ORDERS:
        times, floors = [], []
        for _ in turns(rounds, 2):
            times.append(seconds(lambda: schedule_of(program, needs, order)))  # noqa: B023
            floors.append(seconds(heap))
        name = f"schedule: {blocks} thread blocks, {order}"
        out.append(measured(name, "ms", times, floors, "a heap of as many", target=50))
    return out


def seconds(work: Callable[[], object]) -> float:
    """Return how long `work` takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def p95(times: list[float]) -> float:
    """Return the time below which 95 of 100 are."""
    sorted_times: NDArray[np.float64] = np.percentile(times, [95])
    return float(sorted_times[0])
