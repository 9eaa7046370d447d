"""Bytes, FLOPs, time and shared memory over other sizes and tiles of a scenario, by arithmetic.

Tile programs are built for times by model only. Coefficients (`Cost`) give the requests of a launch
for each tensor; they are multiplied by sums over blocks, which are made for many tile sizes at
once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil
from typing import Any, Literal

import numpy as np

from simulator.base.dtypes import STATISTIC_WIDTH
from simulator.base.matmul import matmul
from simulator.base.parts import Map
from simulator.problem.filling import MAX_BLOCKS, alone
from simulator.problem.hardware import TimeEstimate, time_estimate
from simulator.problem.intervals import I64, Intervals
from simulator.problem.masks import Mask
from simulator.problem.paging import page_size_of
from simulator.problem.scenario import Algorithm, Scenario, TilingRule, with_values
from simulator.problem.tiling import TileGrid, fa2_tiles, fa3_tiles, paper_tiles
from simulator.problem.values import MAX_SEQLEN
from simulator.problem.workload import Workload
from simulator.program.algorithms import BASELINE, algorithm_of, beside, tile_program
from simulator.program.launches import Cost
from simulator.program.traffic import bytes_touching, compulsory_bytes, stored_bytes, touched
from simulator.timing.duration import Duration, duration_of, rough_duration
from simulator.timing.run_time import why_no_time

Axis = Literal["N", "Br", "Bc", "d"]
Progress = Callable[[float], object]
"""Takes the share done, 0 to 1; may raise to stop."""

MAP_SIZES = 64
"""Sizes along each side of a map."""
LARGEST_TILE = 1024
HEAD_DIMS = (16, 24, 32, 40, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 512)
_AT_ONCE = 2**17
"""Blocks that are summed at once, few enough for the processor's cache."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The needs of one algorithm's whole run."""

    read: int  # read, write: requested bytes of all tensors
    write: int
    flops: int  # matmul FLOPs
    compulsory: int  # distinct bytes that each launch reads or writes
    shared: int  # most shared memory, bytes, that tiles of full size take at once
    time: TimeEstimate  # of the requested bytes and the FLOPs, on the workload's GPU
    held: int  # bytes of all tensors that the launches read or write, each once: what HBM holds

    @property
    def bytes(self) -> int:
        """Requested bytes, read and written."""
        return self.read + self.write

    @property
    def seconds(self) -> float:
        """The longer of the two times."""
        return self.time.seconds


@dataclass(frozen=True, slots=True)
class Sweep:
    """Figures of all algorithms along one axis."""

    axis: Axis  # ``N``, ``Br``, ``Bc`` or ``d``
    values: tuple[int, ...]  # places along it, rising
    here: int  # the workload's own place
    figures: Mapping[str, tuple[Figures, ...]]  # algorithm to the figures at each value
    # algorithm to the times at each value; empty if nobody has asked for them, or some algorithm
    # has no model
    durations: Mapping[str, tuple[Duration, ...]] = field(default_factory=dict)
    why: str = ""  # why there is no model of some algorithm, as a sentence


@dataclass(frozen=True, slots=True)
class TileChoice:
    """A published choice of tiles."""

    rule: TilingRule  # ``paper``, ``fa2`` or ``fa3``
    rows: int  # rows, cols: ``Br`` and ``Bc``
    cols: int
    figures: Figures  # the figures of the map's algorithm with them


@dataclass(frozen=True, slots=True)
class TilingMap:
    """Figures of one algorithm over tile sizes."""

    algorithm: Algorithm  # the algorithm
    rows: tuple[int, ...]  # rows, cols: ``Br`` and ``Bc``, rising
    cols: tuple[int, ...]
    figures: tuple[tuple[Figures, ...], ...]  # by place in `rows`, then in `cols`
    here: tuple[int, int]  # the workload's own ``Br`` and ``Bc``
    here_figures: Figures  # the workload's own
    limit: int  # shared memory that one block may take on the workload's GPU, bytes
    choices: tuple[TileChoice, ...]  # the choices of the published rules for this workload


# --- sweeps ----------------------------------------------------------------------------------


def sweep(
    w: Workload,
    axis: Axis,
    values: Sequence[int],
    progress: Progress | None = None,
    *,
    timed: bool = False,
    done: Map = map,
) -> Sweep:
    """Return the figures of all algorithms at each of `values`, all else as in the workload.

    axis: ``N``, ``Br``, ``Bc`` or ``d``; see `workload_at`.
    progress: told the share done.
    timed: whether to add the times by model; at the workload's own place they are exact.
    done: runs a part for each value.
    """
    kept, names = tuple(sorted(set(values))), beside(w.algorithm)
    own = [tile_program(w.as_algorithm(name)) for name in names] if timed else []
    why = next(filter(None, map(why_no_time, own)), "")
    figures: list[list[Figures]] = []
    durations: list[list[Duration]] = []
    for n, (counted, times) in enumerate(
        done(partial(_point, w, axis, timed=timed and not why), kept)
    ):
        figures.append(counted)
        durations.append(times)
        if progress:
            progress((n + 1) / len(kept))
    return Sweep(
        axis, kept, own_value(w, axis), dict(zip(names, zip(*figures, strict=True), strict=True)),
        dict(zip(names, zip(*durations, strict=True), strict=bool(durations[0]))), why,
    )  # fmt: skip


def _point(
    w: Workload, axis: Axis, value: int, *, timed: bool
) -> tuple[list[Figures], list[Duration]]:
    """Return the figures of all algorithms at a value, and their times if they are asked for."""
    exact = value == own_value(w, axis)
    # From each algorithm's workload: one with a state has tiles of its own.
    works = [workload_at(w.as_algorithm(name), axis, value) for name in beside(w.algorithm)]
    time_of = duration_of if exact else rough_duration
    times = [time_of(tile_program(work)) for work in works] if timed else []
    return [figures_of(work) for work in works], times


def tiling_map(
    w: Workload, rows: Sequence[int], cols: Sequence[int], progress: Progress | None = None
) -> TilingMap:
    """Return the figures of the workload's algorithm with each pair of tile sizes.

    rows, cols: ``Br`` and ``Bc``.
    progress: told the share done.
    """
    Br, Bc = tuple(sorted(set(rows))), tuple(sorted(set(cols)))
    tell = progress or (lambda _: None)
    if algorithm_of(w).tensors or not algorithm_of(w).softmax:
        figures = _each(w, Br, Bc, tell)
    else:
        sums, coefficients = _map_sums(w, Br, Bc, tell), _coefficients(w)
        figures = tuple(
            tuple(
                _figures(replace(w, rows=r, cols=c), coefficients, sums[i][j])
                for j, c in enumerate(Bc)
            )
            for i, r in enumerate(Br)
        )  # fmt: skip
    choices = tuple(
        TileChoice(rule, r, c, figures_of(replace(w, rows=r, cols=c)))
        for rule, (r, c) in rule_tiles(w).items()
    )
    return TilingMap(
        w.algorithm, Br, Bc, figures, tiles_of(w), figures_of(w), w.gpu.smem_bytes, choices
    )


def figures_of(w: Workload) -> Figures:
    """Return the figures of a workload's whole run, as its tile program counts them."""
    # There is no closed form here for tensors that launches pass on, or for a state.
    if algorithm_of(w).tensors or not algorithm_of(w).softmax:
        return _counted(w)
    sums = _map_sums(w, (w.rows,), (w.cols,), lambda _: None)
    return _figures(w, _coefficients(w), sums[0][0])


def unmasked(w: Workload) -> Figures:
    """Return the figures of a workload's whole run in the same tiles, were every pair visible."""
    return figures_of(replace(w, mask=Mask(w.mask.seqlen_q, w.mask.seqlen_k)))


def _each(
    w: Workload, Br: tuple[int, ...], Bc: tuple[int, ...], progress: Progress
) -> tuple[tuple[Figures, ...], ...]:
    out = []
    for n, r in enumerate(Br):
        out.append(tuple(_counted(replace(w, rows=r, cols=c)) for c in Bc))
        progress((n + 1) / len(Br))
    return tuple(out)


def _counted(w: Workload) -> Figures:
    program = tile_program(w)
    totals = program.totals
    return Figures(
        read=totals.read_bytes,
        write=totals.write_bytes,
        flops=totals.flops,
        compulsory=compulsory_bytes(w),
        shared=program.peak_shared_bytes,
        time=time_estimate(w.gpu, totals.bytes, totals.flops, w.dtype),
        held=sum(stored_bytes(w, program.tensors).values()),
    )


def rule_tiles(w: Workload) -> dict[TilingRule, tuple[int, int]]:
    """Return (Br, Bc) as each published rule chooses them for a workload."""
    d, causal, window = w.head_dim, w.mask.reach[1] == 0, w.mask.local
    return {
        "paper": paper_tiles(d, w.dtype, w.gpu),
        "fa2": fa2_tiles(d, causal, window, w.gpu),
        "fa3": fa3_tiles(d, w.value_dim, causal, window),
    }


# --- other values of a scenario ----------------------------------------------------------------


def tiles_of(w: Workload) -> tuple[int, int]:
    """Return (Br, Bc) of the algorithms that have tiles: a state of single tokens has none."""
    return w.tile if w.rule and w.rule.tokens else (w.rows, w.cols)


def own_value(w: Workload, axis: Axis) -> int:
    """Return a workload's place along an axis."""
    rows, cols = tiles_of(w)
    return {"N": w.seqlen_k, "Br": rows, "Bc": cols, "d": w.head_dim}[axis]


def workload_at(w: Workload, axis: Axis, value: int) -> Workload:
    """Return the workload at another place along an axis.

    ``N`` is the number of keys, and also the number of queries if the two are equal. ``d`` also
    changes the values' dimension if the two are equal, and the tiles if a rule chooses them.
    """
    if axis in ("Br", "Bc"):
        rows, cols = _tiles_at(w, axis, value)
        return replace(w, rows=rows, cols=cols, tile=(0, 0))
    if axis == "N":
        plain = w.as_algorithm(BASELINE.name)  # each head with its own rows
        queries = value if plain.seqlen_q == plain.seqlen_k else plain.seqlen_q
        mask = plain.mask.of_lengths(queries, value)
        at = replace(plain, seqlen_q=queries, seqlen_k=value, mask=mask)
        return at.as_algorithm(w.algorithm)
    value_dim = value if w.value_dim == w.head_dim else w.value_dim
    at = replace(w, head_dim=value, value_dim=value_dim)
    said = w.scenario.tiling
    if said.rows is None:
        rows, cols = rule_tiles(at)[said.rule or "fa2"]
        return replace(at, rows=rows, cols=cols)
    return at


def _tiles_at(w: Workload, axis: Axis, value: int) -> tuple[int, int]:
    rows, cols = tiles_of(w)
    return (value, cols) if axis == "Br" else (rows, value)


def scenario_at(w: Workload, axis: Axis, value: int) -> Scenario:
    """Return the scenario of a workload at another place along an axis."""
    if axis in ("Br", "Bc"):
        return tiles_scenario(w, *_tiles_at(w, axis, value))
    at = workload_at(w, axis, value)
    said = w.scenario.attention
    changes: dict[str, Any] = {}
    if axis == "d":
        changes["head_dim"] = value
        if said.value_dim is not None:
            changes["value_dim"] = at.value_dim
    else:
        changes["seqlen_q"] = at.queries
        if said.seqlen_k is not None or at.queries != at.seqlen_k:
            changes["seqlen_k"] = at.seqlen_k
        return with_values(alone(w.scenario), {"attention": changes})
    return with_values(w.scenario, {"attention": changes})


def tiles_scenario(w: Workload, rows: int, cols: int) -> Scenario:
    """Return the scenario with other tiles, without a rule that chose the old ones.

    Its pages stay, unless the tiles would cut them, and the size of its splits, unless they would
    cut tiles.
    """
    page, split = w.scenario.tiling.page_size, w.scenario.tiling.split_size
    changes: dict[str, Any] = {"rows": rows, "cols": cols, "rule": None}
    if page:
        changes["page_size"] = page_size_of(page, cols)
    if split:
        changes["split_size"] = max(1, split // cols) * cols
    return with_values(w.scenario, {"tiling": changes})


def in_kernel_tiles(w: Workload) -> Workload:
    """Return a workload in the tiles of the published FlashAttention-2 kernels."""
    rows, cols = rule_tiles(w)["fa2"]
    return replace(w, rows=rows, cols=cols, scenario=tiles_scenario(w, rows, cols))


def axis_values(w: Workload, axis: Axis) -> tuple[int, ...]:
    """Return interesting places along an axis, including the workload's own.

    Documents and blocks say nothing of other lengths: then the workload's own place is the only one
    over ``N``.
    """
    own = own_value(w, axis)
    if axis == "N" and w.mask.of_these_lengths:
        return (own,)
    if axis == "d":
        return tuple(sorted({*HEAD_DIMS, own}))
    steps = {m * 2**n for n in range(MAX_SEQLEN.bit_length()) for m in (1, 3)}
    if axis == "N":
        least, most = min(max(16, own // 64), own), min(max(2**12, 8 * own), MAX_SEQLEN)
        blocks = w.cols if w.seqlen_q != w.seqlen_k else min(w.rows, w.cols)
        most = max(min(most, MAX_BLOCKS * blocks), own)
    else:
        length = w.seqlen_q if axis == "Br" else w.seqlen_k
        least = min(max(1 if length < 256 else 8, _smallest_tile(length)), own)
        most = max(min(LARGEST_TILE, length), own)
    return tuple(sorted({own, *(n for n in steps if least <= n <= most)}))


def map_sizes(length: int) -> tuple[int, ...]:
    """Return tile sizes for one side of a map: at most `MAP_SIZES`, evenly spread.

    length: rows or keys to cut: no size is larger, and none makes too many blocks.
    """
    most = min(length, LARGEST_TILE)
    step = 1
    while step * MAP_SIZES < most:
        step *= 2
    sizes = range(step, most + 1, step)
    least = _smallest_tile(length)
    return tuple(size for size in sizes if size >= least)


def _smallest_tile(length: int) -> int:
    return ceil(length / MAX_BLOCKS)


# --- figures -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums over the visited blocks of one head, for flash1 over its column blocks.

    `outer`: sizes of outer blocks that have a visit; `inner`: of the inner blocks of all visits;
    `pair`: rows times keys of all visits; `rows`, `keys`: rows and keys in blocks with a visit.
    """

    outer: int
    inner: int
    pair: int
    rows: int
    keys: int


@dataclass(frozen=True, slots=True)
class _Coefficients:
    """Costs of a whole run: one for all bytes read, one for all written, one for FLOPs.

    `tensors`: the tensors that its launches read or write.
    """

    read: Cost
    write: Cost
    flops: Cost
    tensors: frozenset[str]


def _figures(w: Workload, by: _Coefficients, sums: _Sums) -> Figures:
    def amount(cost: Cost) -> int:
        return w.heads * (
            cost.start
            + cost.first * sums.outer
            + cost.inner * sums.inner
            + cost.pair * sums.pair
            + cost.last * w.seqlen_q  # every row once, seen or not: so row blocks are stored
            + cost.final * sums.rows
            + cost.once * -(-w.seqlen_q // w.rows)  # likewise every row block
        )

    read, write, flops = amount(by.read), amount(by.write), amount(by.flops)
    return Figures(
        read=read,
        write=write,
        flops=flops,
        compulsory=bytes_touching(w, sums.rows, sums.keys),
        shared=shared_bytes(w),
        time=time_estimate(w.gpu, read + write, flops, w.dtype),
        held=sum(stored_bytes(w, by.tensors).values()),
    )


def shared_bytes(w: Workload) -> int:
    """Return the most shared memory, in bytes, that tiles of full size take at once.

    It is the closed form of `TileProgram.peak_shared_bytes`, which goes through the ops.
    """
    b, d, dv = w.width, w.head_dim, w.value_dim
    Br, Bc = min(w.rows, w.seqlen_q), min(w.cols, w.seqlen_k)
    if algorithm_of(w).stores_scores:
        return max(b * d * (Br + Bc), STATISTIC_WIDTH * w.seqlen_k, b * Bc * (Br + dv))
    return b * (Br * d + Bc * (d + dv))


def _coefficients(w: Workload) -> _Coefficients:
    """Return the costs of an algorithm, from its launches over a single row block."""
    # The visited tiles change the costs only by row blocks that see nothing. The last row sees the
    # last key, so one block of all rows is not such a block.
    launches = algorithm_of(w).launches(replace(w, rows=w.seqlen_q))
    return _Coefficients(
        read=_added([cost for launch in launches for cost in launch.reads.values()]),
        write=_added([cost for launch in launches for cost in launch.writes.values()]),
        flops=_added([launch.flops for launch in launches]),
        tensors=frozenset(name for each in launches for name in (*each.reads, *each.writes)),
    )


def _added(costs: Sequence[Cost]) -> Cost:
    fields = (
        "start",
        "first",
        "inner",
        "pair",
        "last",
        "once",
        "final",
    )  # no closed form here has pages
    return Cost(**{field: sum(getattr(cost, field) for cost in costs) for field in fields})


def _map_sums(
    w: Workload, Br: tuple[int, ...], Bc: tuple[int, ...], progress: Progress
) -> list[list[_Sums]]:
    """Return the sums for every pair of tile sizes, by place in `Br`, then in `Bc`."""
    Nq, Nk, mask = w.seqlen_q, w.seqlen_k, w.mask
    by_rows = not algorithm_of(w).normalises_each_tile
    if algorithm_of(w).stores_scores or not mask.hides:
        outer = Nq if by_rows else Nk
        return [
            [
                _Sums(outer, -(-Nq // r) * Nk if by_rows else -(-Nk // c) * Nq, Nq * Nk, Nq, Nk)
                for c in Bc
            ]
            for r in Br
        ]
    rows = [touched(TileGrid(mask, r, Nk))[0] for r in Br]
    keys = [touched(TileGrid(mask, Nq, c))[1] for c in Bc]
    outers, inners = (Br, Bc) if by_rows else (Bc, Br)
    table = []
    for n, size in enumerate(outers):
        table.append(_visited(w, size, inners, by_rows=by_rows))
        progress((n + 1) / len(outers))
    out = []
    for i in range(len(Br)):
        line = []
        for j in range(len(Bc)):
            inner, pair = table[i][j] if by_rows else table[j][i]
            line.append(_Sums(rows[i] if by_rows else keys[j], inner, pair, rows[i], keys[j]))
        out.append(line)
    return out


def _visited(
    w: Workload, outer: int, inners: tuple[int, ...], *, by_rows: bool
) -> list[tuple[int, int]]:
    """Return the sums `inner` and `pair` for one size of outer blocks and several inner ones."""
    length, across = (w.seqlen_q, w.seqlen_k) if by_rows else (w.seqlen_k, w.seqlen_q)
    blocks = -(-length // outer)
    size = np.minimum(outer, length - np.arange(blocks) * outer)
    few = max(_AT_ONCE // blocks, 1)
    out: list[tuple[int, int]] = []
    for start in range(0, len(inners), few):
        inner = np.array(inners[start : start + few])[:, None]
        mask = w.mask
        visits = mask.visited_columns(outer, inner) if by_rows else mask.visited_rows(inner, outer)
        seen = _inner_sizes(visits, inner, across)
        out += zip(seen.sum(axis=1).tolist(), matmul(seen, size).tolist(), strict=True)
    return out


def _inner_sizes(visits: Intervals, inner: I64, across: int) -> I64:
    """Return how many keys (or rows) the visits of each outer block cover, (n, blocks)."""
    count, ends = (each.reshape(len(inner), -1) for each in (visits.counts, visits.ends))
    blocks = -(-across // inner)
    reaches_end = ends == blocks  # never if nothing is seen
    return np.asarray(count * inner - np.where(reaches_end, blocks * inner - across, 0))
