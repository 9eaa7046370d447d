"""Naive attention, backward pass: P of the forward pass is read back, one launch for each product.

Nothing is computed again. dP and dS are as large as P, go to HBM and come back, and every tile is
visited, whatever the mask.

References: Dao et al. 2022, "FlashAttention: Fast and Memory-Efficient Exact Attention with
IO-Awareness", Algorithm 3 (appendix B.2, standard attention backward pass).
"""

from __future__ import annotations

from simulator.base.dtypes import STATISTIC_WIDTH
from simulator.problem.intervals import Intervals
from simulator.problem.scores import SOFTCAP
from simulator.problem.workload import Workload
from simulator.program.algorithms import gradients, tiles
from simulator.program.gradient_ops import (
    AddKeyGradient,
    AddQueryGradient,
    AddValueGradient,
    ConvertQueryGradient,
    ScaleKeyGradient,
    ScoreGradient,
    StoredCapGradient,
    WeightedMeans,
    WeightGradient,
)
from simulator.program.group_launch import GroupLaunch
from simulator.program.launches import Cost, Launch
from simulator.program.op import Op
from simulator.program.ops import LoadTiles, StoreTiles
from simulator.program.state import ChipTile
from simulator.program.tile_program import TileAlgorithm, Visit

_PAPER = "Dao et al. 2022, Algorithm 3, line"


def launches(w: Workload) -> tuple[Launch, ...]:
    """Return dV by column blocks, dP, dS and dQ by row blocks, and dK by column blocks."""
    b, d, dv = w.width, w.head_dim, w.value_dim
    rows, keys = (w.seqlen_q, w.rows), (w.seqlen_k, w.cols)
    by_keys = Intervals.every(w.grid.Tc, w.grid.Tr)
    by_rows = Intervals.every(w.grid.Tr, w.grid.Tc)
    pairs = {"P": Cost(pair=b), "dP": Cost(pair=b)}
    scores = {"S": Cost(pair=b)} if w.scoring.softcap else {}
    return (
        GroupLaunch(
            "dV",
            keys,
            rows,
            by_keys,
            kv_head_of=w.kv_head_of,
            reads={"P": Cost(pair=b), "dO": Cost(inner=dv * b)},
            writes={"dV": Cost(last=dv * b)},
            flops=Cost(pair=2 * dv),
        ),
        Launch(
            "dP",
            rows,
            keys,
            by_rows,
            by_rows=True,
            reads={"dO": Cost(first=dv * b), "V": Cost(inner=dv * b)},
            writes={"dP": Cost(pair=b)},
            flops=Cost(pair=2 * dv),
        ),
        Launch(
            "dS",
            rows,
            (w.seqlen_k, w.seqlen_k),
            Intervals.every(w.grid.Tr, 1),
            by_rows=True,
            whole_rows=True,
            row_each=True,
            makes=(gradients.DOTS.name,),
            reads=pairs | scores,
            writes={"dS": Cost(pair=b)},
            flops=Cost(),
        ),
        Launch(
            "dQ",
            rows,
            keys,
            by_rows,
            by_rows=True,
            reads={"dS": Cost(pair=b), "K": Cost(inner=d * b)},
            writes={"dQ": Cost(last=d * b)},
            flops=Cost(pair=2 * d),
        ),
        GroupLaunch(
            "dK",
            keys,
            rows,
            by_keys,
            kv_head_of=w.kv_head_of,
            reads={"dS": Cost(pair=b), "Q": Cost(inner=d * b)},
            writes={"dK": Cost(last=d * b)},
            flops=Cost(pair=2 * d),
        ),
    )


def ops(w: Workload, visit: Visit) -> tuple[Op, ...]:
    """Return the ops of one visit."""
    made = (_value_ops, _weight_ops, _score_ops, _query_ops, _key_ops)[visit.launch]
    return tuple(made(w, visit))


def _value_ops(w: Workload, visit: Visit) -> list[Op]:
    keys, out = visit.cols, list[Op]()
    if visit.first:
        out.append(gradients.started(f"{_PAPER} 1", ("dV", len(keys), w.value_dim)))
    p, upstream = tiles.square(w, visit, "P"), gradients.upstream(w, visit)
    loaded = tiles.in_shared(p), tiles.in_shared(upstream)
    out += [
        LoadTiles(cites=f"{_PAPER} 1", moves=(p, upstream), allocates=loaded),
        AddValueGradient(
            cites=f"{_PAPER} 1", flops=tiles.matmul_flops(visit, w.value_dim), frees=("P", "dO")
        ),
    ]
    if visit.last:
        made = gradients.of_values(w, visit.head, keys)
        out.append(StoreTiles(cites=f"{_PAPER} 1", moves=(made,), frees=("dV",)))
    return out


def _weight_ops(w: Workload, visit: Visit) -> list[Op]:
    out = list[Op]()
    if visit.first:
        upstream = gradients.upstream(w, visit)
        staying = tiles.in_shared(upstream, stays=True)
        out.append(LoadTiles(cites=f"{_PAPER} 2", moves=(upstream,), allocates=(staying,)))
    v = tiles.values(w, visit)
    return [
        *out,
        LoadTiles(cites=f"{_PAPER} 2", moves=(v,), allocates=(tiles.in_shared(v),)),
        WeightGradient(
            cites=f"{_PAPER} 2",
            flops=tiles.matmul_flops(visit, w.value_dim),
            allocates=(tiles.scores_tile(visit, "dP"),),
        ),
        StoreTiles(
            cites=f"{_PAPER} 2",
            moves=(tiles.square(w, visit, "dP"),),
            frees=("V", "dP", *(("dO",) if visit.last else ())),
        ),
    ]


def _score_ops(w: Workload, visit: Visit) -> list[Op]:
    # A thread block works on one row, kept on chip so that P and dP are read once.
    capped = bool(w.scoring.softcap)
    names = ("P", "dP", "S") if capped else ("P", "dP")
    rows = {name: ChipTile(name, len(visit.cols) * STATISTIC_WIDTH, "shared") for name in names}
    out: list[Op] = [
        LoadTiles(
            cites=f"{_PAPER} 3",
            moves=tuple(tiles.square(w, visit, name) for name in names),
            allocates=tuple(rows.values()),
        ),
        WeightedMeans(
            cites=f"{_PAPER} 3", allocates=(ChipTile("D", STATISTIC_WIDTH, "registers"),)
        ),
        ScoreGradient(
            cites=f"{_PAPER} 3",
            frees=("P", "dP", "D"),
            allocates=(ChipTile("dS", rows["dP"].bytes, "shared"),),
        ),
    ]
    if capped:
        out.append(
            StoredCapGradient(
                cites=f"{_PAPER} 3, {SOFTCAP}",
                cap=w.scoring.softcap,
                bias=w.bias(visit.head),
                rows=visit.rows,
                cols=visit.cols,
                frees=("S",),
            )
        )
    out += gradients.round_scores(w, f"{_PAPER} 3")
    made = tiles.square(w, visit, "dS")
    return [*out, StoreTiles(cites=f"{_PAPER} 3", moves=(made,), frees=("dS",))]


def _query_ops(w: Workload, visit: Visit) -> list[Op]:
    rows, d, out = len(visit.rows), w.head_dim, list[Op]()
    if visit.first:
        out.append(gradients.started(f"{_PAPER} 4", ("dQ_acc", rows, d)))
    ds, k = tiles.square(w, visit, "dS"), tiles.keys(w, visit)
    loaded = tiles.in_shared(ds), tiles.in_shared(k)
    out += [
        LoadTiles(cites=f"{_PAPER} 4", moves=(ds, k), allocates=loaded),
        AddQueryGradient(
            cites=f"{_PAPER} 4", flops=tiles.matmul_flops(visit, d), frees=("dS", "K")
        ),
    ]
    if visit.last:
        held = ChipTile("dQ", rows * d * STATISTIC_WIDTH, "registers")
        out += [
            ConvertQueryGradient(
                cites=f"{_PAPER} 4", scale=w.scoring.factor, frees=("dQ_acc",), allocates=(held,)
            ),
            StoreTiles(cites=f"{_PAPER} 4", moves=(gradients.of_queries(w, visit),), frees=("dQ",)),
        ]
    return out


def _key_ops(w: Workload, visit: Visit) -> list[Op]:
    keys, d, out = visit.cols, w.head_dim, list[Op]()
    if visit.first:
        out.append(gradients.started(f"{_PAPER} 5", ("dK", len(keys), d)))
    ds, q = tiles.square(w, visit, "dS"), tiles.queries(w, visit)
    loaded = tiles.in_shared(ds), tiles.in_shared(q)
    out += [
        LoadTiles(cites=f"{_PAPER} 5", moves=(ds, q), allocates=loaded),
        AddKeyGradient(cites=f"{_PAPER} 5", flops=tiles.matmul_flops(visit, d), frees=("dS", "Q")),
    ]
    if visit.last:
        made = gradients.of_keys(w, visit.head, keys)
        out += [
            ScaleKeyGradient(cites=f"{_PAPER} 5", scale=w.scoring.factor),
            StoreTiles(cites=f"{_PAPER} 5", moves=(made,), frees=("dK",)),
        ]
    return out


ALGORITHM = TileAlgorithm(
    name="naive-backward",
    title="Naive attention, backward",
    short_title="Naive backward",
    label="naive backward",
    in_a_sentence="naive attention's backward pass",
    source="Dao et al. 2022, Algorithm 3",
    about="gradients, with P read back as the forward pass has stored it",
    launches=launches,
    visit_ops=ops,
    skips=False,
    walks=False,
    running=False,
    compared=False,
    tensors=(
        gradients.OF_WEIGHTS,
        gradients.OF_SCORES,
        gradients.OF_QUERIES,
        gradients.OF_KEYS,
        gradients.OF_VALUES,
    ),
    left=("dQ_acc", "dK", "dV"),
    gates=(gradients.UPSTREAM,),
    chip=(gradients.OF_WEIGHTS, gradients.OF_SCORES, gradients.DOTS, gradients.QUERY_SUM),
    row_title="Gradients of one row",
    forward="naive",
    after=("P",),
    error_size=gradients.error_size,
)
