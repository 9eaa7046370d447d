"""Tiles that more than one algorithm moves or holds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simulator.base.dtypes import STATISTIC_WIDTH
from simulator.problem.intervals import I64
from simulator.problem.scores import ROUNDING, SINK, SKIP, SOFTCAP
from simulator.problem.tiling import TileKind
from simulator.problem.workload import Workload
from simulator.program.launches import Cost
from simulator.program.op import Op
from simulator.program.ops import (
    Accumulate,
    ApplyMask,
    Bias,
    Exponentials,
    Initialise,
    InitialiseWithSink,
    LoadSink,
    LoadTiles,
    Rescale,
    RoundWeights,
    RowMax,
    RowSum,
    Scores,
    SoftCap,
    StoreConstants,
    StoreSinks,
    statistics,
)
from simulator.program.state import ChipTile, TileMove
from simulator.program.tile_program import Visit

Loading = Callable[[Workload, Visit, str], list[Op]]
"""Returns the ops that load a visit's keys and values; they cite lines of the paper given."""


def queries(w: Workload, visit: Visit) -> TileMove:
    """Return the Q tile of the visit's row block."""
    return TileMove("Q", visit.head, visit.rows, None, len(visit.rows) * w.head_dim * w.width)


def keys(w: Workload, visit: Visit) -> TileMove:
    """Return the K tile of the visit's column block."""
    kv_head = w.kv_head_of[visit.head]
    return TileMove("K", kv_head, visit.cols, None, len(visit.cols) * w.head_dim * w.width)


def values(w: Workload, visit: Visit) -> TileMove:
    """Return the V tile of the visit's column block."""
    kv_head = w.kv_head_of[visit.head]
    return TileMove("V", kv_head, visit.cols, None, len(visit.cols) * w.value_dim * w.width)


def outputs(w: Workload, head: int, rows: range) -> TileMove:
    """Return some rows of O, as wide as Q."""
    return TileMove("O", head, rows, None, len(rows) * w.value_dim * w.width)


def square(w: Workload, visit: Visit, tensor: str) -> TileMove:
    """Return the visit's tile of S or P in HBM."""
    count = len(visit.rows) * len(visit.cols)
    return TileMove(tensor, visit.head, visit.rows, visit.cols, count * w.width)


def statistic(visit: Visit, tensor: str) -> TileMove:
    """Return m, l or LSE of the visit's rows."""
    return TileMove(tensor, visit.head, visit.rows, None, statistics(len(visit.rows)))


def heads_in(w: Workload, rows: range) -> range:
    """Return which of the packed query heads have some of these rows."""
    return range(rows.start // w.queries, (rows.stop - 1) // w.queries + 1)


def sinks_of_blocks(w: Workload) -> I64:
    """Return how many sink logits each row block needs, one for each query head; 0 without any."""
    blocks = np.arange(w.grid.Tr) * w.rows
    stops = np.minimum(blocks + w.rows, w.seqlen_q)
    needed: I64 = (stops - 1) // w.queries - blocks // w.queries + 1
    return needed if w.sink_logits else np.zeros_like(needed)


def sink_cost(w: Workload, start: int = 0, once: int = 0) -> dict[str, Cost]:
    """Return the cost of `start` and `once` sink logits that are read; nothing without sinks."""
    if not w.sink_logits:
        return {}
    return {"sink": Cost(start=start * STATISTIC_WIDTH, once=once * STATISTIC_WIDTH)}


def load_sink(head: int, own: range, number: int, cites: str) -> LoadSink:
    """Return the load of some packed heads' logits; `number` counts repeated loads, too."""
    held = ChipTile("sink", statistics(len(own)), "registers")
    move = TileMove("sink", head, own, None, statistics(number))
    return LoadSink(cites=f"{cites}, {SINK}", moves=(move,), allocates=(held,))


def store_starts(
    w: Workload,
    visit: Visit,
    cites: str,
    moves: tuple[TileMove, ...],
    sinks: int | None,
    loads: str,
) -> list[Op]:
    """Return the ops that write the numbers of rows without a key; `sinks`: logits loaded."""
    if not w.sink_logits or sinks is None:
        return [StoreConstants(cites=cites, moves=moves)]
    load = load_sink(visit.head, range(w.group), sinks, loads)
    stored = StoreSinks(cites=f"{cites}, {SINK}", moves=moves, queries=w.queries, frees=("sink",))
    return [load, stored]


def in_shared(move: TileMove, *, stays: bool = False) -> ChipTile:
    """Return the tile of a loaded operand: in shared memory, as wide as in HBM."""
    return ChipTile(move.tensor, move.bytes, "shared", stays)


def scores_tile(visit: Visit, name: str) -> ChipTile:
    """Return S or P of one tile: float32 sums, in registers."""
    count = len(visit.rows) * len(visit.cols)
    return ChipTile(name, count * STATISTIC_WIDTH, "registers")


def accumulators(w: Workload, visit: Visit, *, stays: bool = False) -> tuple[ChipTile, ...]:
    """Return m, l and O of a row block: float32, in registers."""
    rows = len(visit.rows)
    return (
        ChipTile("m", statistics(rows), "registers", stays),
        ChipTile("l", statistics(rows), "registers", stays),
        ChipTile("O", rows * w.value_dim * STATISTIC_WIDTH, "registers", stays),
    )


def matmul_flops(visit: Visit, depth: int) -> int:
    """Return the FLOPs of a product of valid rows and columns with `depth` terms each."""
    return 2 * len(visit.rows) * len(visit.cols) * depth


def score_ops(w: Workload, visit: Visit, cites: str, mask_cites: str) -> list[Op]:
    """Return the ops that make S of the visit's tile, masked where the mask cuts it."""
    out: list[Op] = [
        Scores(
            cites=cites,
            scale=w.scoring.factor,
            flops=matmul_flops(visit, w.head_dim),
            allocates=(scores_tile(visit, "S"),),
        )
    ]
    if w.scoring.softcap:
        out.append(SoftCap(cites=f"{cites}, {SOFTCAP}", cap=w.scoring.softcap))
    if (bias := w.bias(visit.head)) is not None:
        out.append(
            Bias(cites=f"{cites}, {bias.cites}", bias=bias, rows=visit.rows, cols=visit.cols)
        )
    if visit.kind is TileKind.PARTIAL:
        mask = w.mask.of_head(visit.head)
        out.append(ApplyMask(cites=mask_cites, mask=mask, rows=visit.rows, cols=visit.cols))
    return out


def round_weights(w: Workload, cites: str) -> list[Op]:
    """Return the op that rounds P before it is multiplied or stored; none if it stays float32."""
    if w.pair_dtype is None:
        return []
    return [RoundWeights(cites=f"{cites}, {ROUNDING}", dtype=w.pair_dtype)]


def online_ops(w: Workload, visit: Visit, paper: str, loaded: tuple[str, ...]) -> list[Op]:
    """Return the ops that take a tile into running m, l and O; O is divided at the end."""
    rounds = round_weights(w, f"{paper} 10")
    return [
        RowMax(
            cites=f"{paper} 9" if w.keeps is None else f"{paper} 9, {SKIP}",
            running=True,
            by=w.keeps,
        ),
        Exponentials(
            cites=f"{paper} 9",
            running=True,
            frees=("S",),
            allocates=(scores_tile(visit, "P"),),
        ),
        RowSum(cites=f"{paper} 9", running=True),
        *rounds,
        Rescale(cites=f"{paper} 10", normalised=False, seldom=visit.first or w.keeps is not None),
        Accumulate(
            cites=f"{paper} 10",
            normalised=False,
            flops=matmul_flops(visit, w.value_dim),
            frees=("P", *loaded),
        ),
    ]


def load_keys(w: Workload, visit: Visit, paper: str) -> list[Op]:
    """Return the load of the visit's K and V, which lie together in HBM."""
    k, v = keys(w, visit), values(w, visit)
    return [
        LoadTiles(cites=f"{paper} 7", moves=(k, v), allocates=(in_shared(k), in_shared(v))),
    ]


def row_block_ops(
    w: Workload, visit: Visit, paper: str, mask_cites: str, loading: Loading = load_keys
) -> list[Op]:
    """Return the ops of a visit whose Q, m, l and O stay on chip until their row block is done."""
    out: list[Op] = []
    if visit.first:
        q = queries(w, visit)
        out.append(LoadTiles(cites=f"{paper} 4", moves=(q,), allocates=(in_shared(q, stays=True),)))
        held, rows = accumulators(w, visit, stays=True), len(visit.rows)
        if w.sink_logits and not visit.split:
            own = heads_in(w, visit.rows)
            # A row block may begin in the middle of a head.
            heads = np.arange(visit.rows.start, visit.rows.stop) // w.queries - own.start
            out += [
                load_sink(visit.head, own, len(own), f"{paper} 5"),
                InitialiseWithSink(
                    cites=f"{paper} 5, {SINK}",
                    rows=rows,
                    value_dim=w.value_dim,
                    rows_of=tuple(np.bincount(heads).tolist()),
                    allocates=held,
                    frees=("sink",),
                ),
            ]
        else:
            out.append(
                Initialise(cites=f"{paper} 5", rows=rows, value_dim=w.value_dim, allocates=held)
            )
    loads = loading(w, visit, paper)
    out += loads
    out += score_ops(w, visit, f"{paper} 8", mask_cites)
    freed = {name for op in loads for name in op.frees}
    loaded = tuple(tile.name for op in loads for tile in op.allocates if tile.name not in freed)
    return out + online_ops(w, visit, paper, loaded)
