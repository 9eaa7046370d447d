"""Naive attention in three launches: S and P are written to HBM and read back.

References: Dao et al. 2022, Algorithm 0 (standard attention implementation).
"""

from __future__ import annotations

from simulator.base.dtypes import STATISTIC_WIDTH
from simulator.problem.intervals import Intervals
from simulator.problem.scores import ROUNDING, SINK
from simulator.problem.workload import Workload
from simulator.program.algorithms import tiles
from simulator.program.gate_ops import gate_cost, gate_ops
from simulator.program.launches import Cost, Launch
from simulator.program.op import Op
from simulator.program.ops import (
    Accumulate,
    Exponentials,
    Initialise,
    LoadTiles,
    Normalise,
    RoundScores,
    RowMax,
    RowSum,
    StoreTiles,
)
from simulator.program.state import ChipTile
from simulator.program.tile_program import TileAlgorithm, Visit

_PAPER = "Dao et al. 2022, Algorithm 0, line"


def launches(w: Workload) -> tuple[Launch, ...]:
    """Return scores, softmax, output. Every tile is visited, whatever the mask."""
    b, d, dv = w.width, w.head_dim, w.value_dim
    Nq, Nk, Tr = w.seqlen_q, w.seqlen_k, w.grid.Tr
    every_tile, one_each = Intervals.every(Tr, w.grid.Tc), Intervals.every(Tr, 1)
    return (
        Launch(
            "scores",
            (Nq, w.rows),
            (Nk, w.cols),
            every_tile,
            by_rows=True,
            reads={"Q": Cost(first=d * b), "K": Cost(inner=d * b)},
            writes={"S": Cost(pair=b)},
            flops=Cost(pair=2 * d),
        ),
        Launch(
            "softmax",
            (Nq, w.rows),
            (Nk, Nk),
            one_each,
            by_rows=True,
            whole_rows=True,
            row_each=True,
            sinks=tiles.sinks_of_blocks(w),
            reads={"S": Cost(pair=b)} | tiles.sink_cost(w, once=1),
            writes={"P": Cost(pair=b)},
            flops=Cost(),
        ),
        Launch(
            "output",
            (Nq, w.rows),
            (Nk, w.cols),
            every_tile,
            by_rows=True,
            continues=True,
            reads={"P": Cost(pair=b), "V": Cost(inner=dv * b)} | gate_cost(w),
            writes={"O": Cost(last=dv * b)},
            flops=Cost(pair=2 * dv),
        ),
    )


def ops(w: Workload, visit: Visit) -> tuple[Op, ...]:
    """Return the ops of one visit."""
    return (_scores_ops, _softmax_ops, _output_ops)[visit.launch](w, visit)


def _scores_ops(w: Workload, visit: Visit) -> tuple[Op, ...]:
    out: list[Op] = []
    if visit.first:
        q = tiles.queries(w, visit)
        staying = tiles.in_shared(q, stays=True)
        out.append(LoadTiles(cites=f"{_PAPER} 1", moves=(q,), allocates=(staying,)))
    k, s = tiles.keys(w, visit), tiles.square(w, visit, "S")
    out.append(LoadTiles(cites=f"{_PAPER} 1", moves=(k,), allocates=(tiles.in_shared(k),)))
    out += tiles.score_ops(w, visit, f"{_PAPER} 1", f"{_PAPER} 1")
    if w.pair_dtype is not None:
        out.append(RoundScores(cites=f"{_PAPER} 1, {ROUNDING}", dtype=w.pair_dtype))
    gone = ("K", "S", "Q") if visit.last else ("K", "S")
    out.append(StoreTiles(cites=f"{_PAPER} 1", moves=(s,), frees=gone))
    return tuple(out)


def _softmax_ops(w: Workload, visit: Visit) -> tuple[Op, ...]:
    # A thread block works on one row, kept on chip so that S is read once.
    one_row = ChipTile("S", len(visit.cols) * STATISTIC_WIDTH, "shared")
    probabilities = ChipTile("P", one_row.bytes, "shared")
    sink, cites = bool(w.sink_logits), f"{_PAPER} 2" + (f", {SINK}" if w.sink_logits else "")
    loads: list[Op] = [
        LoadTiles(cites=f"{_PAPER} 2", moves=(tiles.square(w, visit, "S"),), allocates=(one_row,))
    ]
    if sink:
        loads.append(tiles.load_sink(visit.head, range(1), 1, f"{_PAPER} 2"))
    return (
        *loads,
        RowMax(cites=cites, whole=True, sink=sink),
        Exponentials(cites=f"{_PAPER} 2", running=True, frees=("S",), allocates=(probabilities,)),
        RowSum(cites=cites, whole=True, sink=sink, frees=("sink",) if sink else ()),
        Normalise(cites=f"{_PAPER} 2", tensor="P"),
        *tiles.round_weights(w, f"{_PAPER} 2"),
        StoreTiles(cites=f"{_PAPER} 2", moves=(tiles.square(w, visit, "P"),), frees=("P",)),
    )


def _output_ops(w: Workload, visit: Visit) -> tuple[Op, ...]:
    out: list[Op] = []
    if visit.first:
        out.append(
            Initialise(
                cites=f"{_PAPER} 3",
                rows=len(visit.rows),
                value_dim=w.value_dim,
                statistics=False,
                allocates=tiles.accumulators(w, visit, stays=True)[2:],
            )
        )
    p, v = tiles.square(w, visit, "P"), tiles.values(w, visit)
    loaded = (tiles.in_shared(p), tiles.in_shared(v))
    out.append(LoadTiles(cites=f"{_PAPER} 3", moves=(p, v), allocates=loaded))
    out.append(
        Accumulate(
            cites=f"{_PAPER} 3",
            normalised=False,
            flops=tiles.matmul_flops(visit, w.value_dim),
            frees=("P", "V"),
        )
    )
    if visit.last:
        o = tiles.outputs(w, visit.head, visit.rows)
        out += gate_ops(w, visit, f"{_PAPER} 3")
        out.append(StoreTiles(cites=f"{_PAPER} 3", moves=(o,), frees=("O",)))
    return tuple(out)


ALGORITHM = TileAlgorithm(
    name="naive",
    title="Naive attention",
    short_title="Naive",
    label="naive",
    in_a_sentence="naive attention",
    source="Dao et al. 2022, Algorithm 0",
    about="three launches, S and P in HBM",
    launches=launches,
    visit_ops=ops,
    stores_scores=True,
    skips=False,
    running=False,
)
