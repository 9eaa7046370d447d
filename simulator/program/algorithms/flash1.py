"""FlashAttention-1: outer loop over column blocks; O, l and m go to HBM and back at each tile.

References: Dao, Fu, Ermon, Rudra, Ré 2022, "FlashAttention: Fast and Memory-Efficient Exact
Attention with IO-Awareness", Algorithm 1; masking as in Algorithm 2 (appendix B).
"""

from __future__ import annotations

from simulator.base.dtypes import STATISTIC_WIDTH
from simulator.problem.intervals import I64
from simulator.problem.workload import Workload
from simulator.program.algorithms import tiles
from simulator.program.gate_ops import gate_cost, gate_ops
from simulator.program.launches import Cost, Launch
from simulator.program.op import Op
from simulator.program.ops import (
    Accumulate,
    Combine,
    Exponentials,
    LoadTiles,
    Rescale,
    RowMax,
    RowSum,
    StoreTiles,
    statistics,
)
from simulator.program.state import TileMove
from simulator.program.tile_program import TileAlgorithm, Visit

_PAPER = "Dao et al. 2022, Algorithm 1, line"


def launches(w: Workload) -> tuple[Launch, ...]:
    """Return the one launch. O is float32 in HBM and normalised after every tile."""
    b, d, dv, four = w.width, w.head_dim, w.value_dim, STATISTIC_WIDTH
    launch = Launch(
        "attention",
        (w.seqlen_k, w.cols),
        (w.seqlen_q, w.rows),
        w.grid.visited_rows,
        by_rows=False,
        in_turn=True,  # all column blocks of a head change the same O
        lasts=_last_columns(w),
        reads={
            "Q": Cost(inner=d * b),
            "K": Cost(first=d * b),
            "V": Cost(first=dv * b),
            "O": Cost(inner=dv * four),
            "l": Cost(inner=four),
            "m": Cost(inner=four),
        }
        | tiles.sink_cost(w, start=1)
        | gate_cost(w),
        writes={
            "O": Cost(start=w.seqlen_q * dv * four, inner=dv * four),
            "l": Cost(start=statistics(w.seqlen_q), inner=four),
            "m": Cost(start=statistics(w.seqlen_q), inner=four),
        },
        flops=Cost(pair=2 * (d + dv)),
    )
    return (launch,)


def _last_columns(w: Workload) -> I64 | None:
    """Return the last column block that each row block sees, -1 for none; None without a gate."""
    return w.grid.visited_columns.ends - 1 if w.gated else None


def _ends(w: Workload, visit: Visit) -> bool:
    """Return whether a visit is the last of its row block."""
    return w.grid.visited_columns.last(visit.i) == visit.j


def _running(w: Workload, head: int, rows: range) -> tuple[TileMove, TileMove, TileMove]:
    """Return O, l and m of some rows."""
    return (
        TileMove("O", head, rows, None, len(rows) * w.value_dim * STATISTIC_WIDTH),
        TileMove("l", head, rows, None, statistics(len(rows))),
        TileMove("m", head, rows, None, statistics(len(rows))),
    )


def ops(w: Workload, visit: Visit) -> tuple[Op, ...]:
    """Return the ops of one visit."""
    out: list[Op] = []
    if visit.opens:
        everything = _running(w, visit.head, range(w.seqlen_q))
        out += tiles.store_starts(w, visit, f"{_PAPER} 2", everything, 1, f"{_PAPER} 2")
    if visit.first:
        k, v = tiles.keys(w, visit), tiles.values(w, visit)
        held = (tiles.in_shared(k, stays=True), tiles.in_shared(v, stays=True))
        out.append(LoadTiles(cites=f"{_PAPER} 6", moves=(k, v), allocates=held))
    q, running = tiles.queries(w, visit), _running(w, visit.head, visit.rows)
    out.append(
        LoadTiles(
            cites=f"{_PAPER} 8",
            moves=(q, *running),
            allocates=(tiles.in_shared(q), *tiles.accumulators(w, visit, stays=False)),
        )
    )
    out += tiles.score_ops(w, visit, f"{_PAPER} 9", "Dao et al. 2022, Algorithm 2, line 11")
    out += [
        RowMax(cites=f"{_PAPER} 10"),
        Exponentials(
            cites=f"{_PAPER} 10",
            frees=("S",),
            allocates=(tiles.scores_tile(visit, "P"),),
        ),
        RowSum(cites=f"{_PAPER} 10"),
        *tiles.round_weights(w, f"{_PAPER} 12"),
        Combine(cites=f"{_PAPER} 11"),
        Rescale(
            cites=f"{_PAPER} 12",
            normalised=True,
            seldom=w.grid.visited_columns.first(visit.i) == visit.j,
        ),
        Accumulate(
            cites=f"{_PAPER} 12",
            normalised=True,
            flops=tiles.matmul_flops(visit, w.value_dim),
            frees=("P",),
        ),
        *(gate_ops(w, visit, f"{_PAPER} 12") if _ends(w, visit) else ()),
        StoreTiles(
            cites=f"{_PAPER}s 12-13",
            moves=running,
            frees=("Q", "O", "l", "m", "K", "V") if visit.last else ("Q", "O", "l", "m"),
        ),
    ]
    return tuple(out)


ALGORITHM = TileAlgorithm(
    name="flash1",
    title="FlashAttention-1",
    short_title="FlashAttention-1",
    label="FlashAttention-1",
    in_a_sentence="FlashAttention-1",
    source="Dao et al. 2022, Algorithm 1",
    about="the outer loop goes over column blocks",
    launches=launches,
    visit_ops=ops,
    normalises_each_tile=True,
)
