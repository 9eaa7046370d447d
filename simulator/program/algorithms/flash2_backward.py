"""FlashAttention-2, backward pass: S and P are computed again, tile by tile, and never stored.

The outer loop goes over column blocks, whose dK and dV stay on chip while the row blocks of all
query heads that share them come by. dQ is added up in HBM, in float32, because every column block
adds to it. The forward pass has left O and LSE: LSE gives P back without another softmax.

References: Dao 2023, "FlashAttention-2: Faster Attention with Better Parallelism and Work
Partitioning", Algorithm 2 (backward pass). Dao et al. 2022, "FlashAttention: Fast and
Memory-Efficient Exact Attention with IO-Awareness", Algorithm 4 (appendix B.4).
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from simulator.base.dtypes import STATISTIC_WIDTH
from simulator.problem.intervals import Intervals
from simulator.problem.scores import SOFTCAP
from simulator.problem.workload import Workload
from simulator.program.algorithms import gradients, tiles
from simulator.program.gradient_ops import (
    AddKeyGradient,
    AddQueryGradient,
    AddValueGradient,
    CapGradient,
    ConvertQueryGradient,
    RowDots,
    ScaleKeyGradient,
    ScoreGradient,
    WeightGradient,
    WeightsAgain,
)
from simulator.program.group_launch import GroupLaunch
from simulator.program.launches import Cost, Launch
from simulator.program.op import Op
from simulator.program.ops import LoadTiles, StoreConstants, StoreTiles
from simulator.program.state import ChipTile, TileMove
from simulator.program.tile_program import TileAlgorithm, Visit

_PAPER = "Dao 2023, Algorithm 2, line"


@lru_cache(maxsize=4)  # the first visit of each KV head asks for it, and panels ask for its ops
def _blind_keys(w: Workload) -> tuple[range, ...]:
    """Return the keys of the column blocks that nobody sees, neighbouring blocks as one."""
    blind = np.concatenate([[False], w.grid.visited_rows.counts == 0, [False]])
    starts, stops = (np.flatnonzero(np.diff(blind.astype(np.int8)) == n) for n in (1, -1))
    found = zip(starts.tolist(), stops.tolist(), strict=True)
    return tuple(range(j * w.cols, min(k * w.cols, w.seqlen_k)) for j, k in found)


def launches(w: Workload) -> tuple[Launch, ...]:
    """Return D by row blocks, the gradients by column blocks, and dQ by row blocks."""
    b, d, dv, four = w.width, w.head_dim, w.value_dim, STATISTIC_WIDTH
    blind = sum(map(len, _blind_keys(w)))
    one_each = Intervals.every(w.grid.Tr, 1)
    return (
        Launch(
            "row dots",
            (w.seqlen_q, w.rows),
            (1, 1),
            one_each,
            by_rows=True,
            whole_rows=True,
            forms=False,
            reads={"O": Cost(first=dv * b), "dO": Cost(first=dv * b)},
            writes={"D": Cost(last=four), "dQ_acc": Cost(last=d * four)},
            flops=Cost(),
        ),
        GroupLaunch(
            "gradients",
            (w.seqlen_k, w.cols),
            (w.seqlen_q, w.rows),
            w.grid.visited_rows,
            kv_head_of=w.kv_head_of,
            reads={
                "K": Cost(first=d * b),
                "V": Cost(first=dv * b),
                "Q": Cost(inner=d * b),
                "dO": Cost(inner=dv * b),
                "LSE": Cost(inner=four),
                "D": Cost(inner=four),
                "dQ_acc": Cost(inner=d * four),
            },
            writes={
                "dQ_acc": Cost(inner=d * four),
                "dK": Cost(start=blind * d * b, last=d * b),
                "dV": Cost(start=blind * dv * b, last=dv * b),
            },
            flops=Cost(pair=2 * (3 * d + 2 * dv)),
        ),
        Launch(
            "convert",
            (w.seqlen_q, w.rows),
            (1, 1),
            one_each,
            by_rows=True,
            whole_rows=True,
            forms=False,
            reads={"dQ_acc": Cost(first=d * four)},
            writes={"dQ": Cost(last=d * b)},
            flops=Cost(),
        ),
    )


def _sum(w: Workload, visit: Visit) -> TileMove:
    """Return the visit's rows of the sum of dQ in HBM."""
    return gradients.of_rows(w, visit, "dQ_acc", w.head_dim, STATISTIC_WIDTH)


def _of_keys(w: Workload, head: int, keys: range) -> tuple[TileMove, TileMove]:
    """Return dK and dV of some keys."""
    return gradients.of_keys(w, head, keys), gradients.of_values(w, head, keys)


def ops(w: Workload, visit: Visit) -> tuple[Op, ...]:
    """Return the ops of one visit."""
    return (_row_ops, _tile_ops, _convert_ops)[visit.launch](w, visit)


def _row_ops(w: Workload, visit: Visit) -> tuple[Op, ...]:
    o = tiles.outputs(w, visit.head, visit.rows)
    upstream, dots = gradients.upstream(w, visit), tiles.statistic(visit, "D")
    return (
        LoadTiles(
            cites=f"{_PAPER} 4",
            moves=(o, upstream),
            allocates=(tiles.in_shared(o), tiles.in_shared(upstream)),
        ),
        RowDots(cites=f"{_PAPER} 4", allocates=(ChipTile("D", dots.bytes, "registers"),)),
        StoreTiles(cites=f"{_PAPER} 4", moves=(dots,), frees=("O", "dO", "D")),
        StoreConstants(cites=f"{_PAPER} 3", moves=(_sum(w, visit),)),
    )


def _tile_ops(w: Workload, visit: Visit) -> tuple[Op, ...]:
    d, dv = w.head_dim, w.value_dim
    keys, k, v = len(visit.cols), tiles.keys(w, visit), tiles.values(w, visit)
    out: list[Op] = []
    if visit.opens and _blind_keys(w):
        cleared = tuple(move for own in _blind_keys(w) for move in _of_keys(w, visit.head, own))
        cites = f"{_PAPER} 18, keys that nobody sees"
        out.append(StoreConstants(cites=cites, moves=cleared))
    if visit.first:
        loaded = (tiles.in_shared(k, stays=True), tiles.in_shared(v, stays=True))
        out.append(LoadTiles(cites=f"{_PAPER} 6", moves=(k, v), allocates=loaded))
        out.append(gradients.started(f"{_PAPER} 7", ("dK", keys, d), ("dV", keys, dv)))
    q, upstream = tiles.queries(w, visit), gradients.upstream(w, visit)
    lse, dots = tiles.statistic(visit, "LSE"), tiles.statistic(visit, "D")
    out.append(
        LoadTiles(
            cites=f"{_PAPER} 9",
            moves=(q, upstream, lse, dots),
            allocates=(
                tiles.in_shared(q),
                tiles.in_shared(upstream),
                ChipTile("LSE", lse.bytes, "registers"),
                ChipTile("D", dots.bytes, "registers"),
            ),
        )
    )
    out += tiles.score_ops(w, visit, f"{_PAPER} 10", "Dao 2023, section 3.1")
    total = _sum(w, visit)
    # dS is made of P before rounding: where P is rounded, its product with dO comes after dS.
    late = tiles.round_weights(w, f"{_PAPER} 12")
    to_values = AddValueGradient(cites=f"{_PAPER} 12", flops=tiles.matmul_flops(visit, dv))
    out += [
        WeightsAgain(
            cites=f"{_PAPER} 11", frees=("S", "LSE"), allocates=(tiles.scores_tile(visit, "P"),)
        ),
        *([] if late else [to_values]),
        WeightGradient(
            cites=f"{_PAPER} 13",
            flops=tiles.matmul_flops(visit, dv),
            allocates=(tiles.scores_tile(visit, "dP"),),
        ),
        ScoreGradient(
            cites=f"{_PAPER} 14",
            frees=("dP", "D") if late else ("P", "dP", "D", "dO"),
            allocates=(tiles.scores_tile(visit, "dS"),),
        ),
    ]
    if w.scoring.softcap:
        out.append(
            CapGradient(
                cites=f"{_PAPER} 14, {SOFTCAP}", scale=w.scoring.factor, cap=w.scoring.softcap
            )
        )
    if late:
        out += [*late, replace(to_values, frees=("P", "dO"))]
    out += gradients.round_scores(w, f"{_PAPER} 14")
    out += [
        LoadTiles(
            cites=f"{_PAPER} 15",
            moves=(total,),
            allocates=(ChipTile("dQ_acc", total.bytes, "registers"),),
        ),
        AddQueryGradient(cites=f"{_PAPER} 15", flops=tiles.matmul_flops(visit, d)),
        StoreTiles(cites=f"{_PAPER} 15", moves=(total,), frees=("dQ_acc",)),
        AddKeyGradient(cites=f"{_PAPER} 16", flops=tiles.matmul_flops(visit, d), frees=("dS", "Q")),
    ]
    if visit.last:
        out += [
            ScaleKeyGradient(cites=f"{_PAPER} 16", scale=w.scoring.factor),
            StoreTiles(
                cites=f"{_PAPER} 18",
                moves=_of_keys(w, visit.head, visit.cols),
                frees=("K", "V", "dK", "dV"),
            ),
        ]
    return tuple(out)


def _convert_ops(w: Workload, visit: Visit) -> tuple[Op, ...]:
    total, stored = _sum(w, visit), gradients.of_queries(w, visit)
    return (
        LoadTiles(
            cites=f"{_PAPER} 20",
            moves=(total,),
            allocates=(ChipTile("dQ_acc", total.bytes, "registers"),),
        ),
        ConvertQueryGradient(
            cites=f"{_PAPER} 20",
            scale=w.scoring.factor,
            frees=("dQ_acc",),
            allocates=(ChipTile("dQ", total.bytes, "registers"),),
        ),
        StoreTiles(cites=f"{_PAPER} 20", moves=(stored,), frees=("dQ",)),
    )


ALGORITHM = TileAlgorithm(
    name="flash2-backward",
    title="FlashAttention-2, backward",
    short_title="Backward",
    label="backward",
    in_a_sentence="FlashAttention-2's backward pass",
    source="Dao 2023, Algorithm 2",
    about="gradients, with S and P computed again",
    launches=launches,
    visit_ops=ops,
    walks=False,
    running=False,
    compared=False,
    adds=True,
    tensors=(
        gradients.DOTS,
        gradients.QUERY_SUM,
        gradients.OF_QUERIES,
        gradients.OF_KEYS,
        gradients.OF_VALUES,
    ),
    left=("dK", "dV"),
    gates=(gradients.UPSTREAM,),
    chip=(gradients.OF_WEIGHTS, gradients.OF_SCORES),
    after=("O", "LSE"),
    row_title="Gradients of one row",
    forward="flash2",
    error_size=gradients.error_size,
    # In the second run there are keys that nobody sees.
    exemplars=({}, {"attention": {"seqlen_q": 4}, "mask": {"window": 2}}),
)
