"""FlashAttention-2, backward pass: S and P are computed again, tile by tile, and never stored.

The outer loop goes over column blocks, whose dK and dV stay on chip while the row blocks of all
query heads that share them come by. dQ is added up in HBM, in float32, because every column block
adds to it. O and LSE are what the forward pass has left: LSE gives P back without another softmax.

References
----------
Dao 2023, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning",
Algorithm 2 (backward pass).
Dao et al. 2022, "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness",
Algorithm 4 (appendix B.4).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from simulator.base.dtypes import STATISTIC_WIDTH
from simulator.problem.intervals import Intervals
from simulator.problem.scores import SOFTCAP
from simulator.problem.workload import Workload
from simulator.program.algorithms import tiles
from simulator.program.gradient_ops import (
    AddKeyGradient,
    AddQueryGradient,
    AddValueGradient,
    CapGradient,
    ConvertQueryGradient,
    RowDots,
    ScaleKeyGradient,
    ScoreGradient,
    StartGradients,
    WeightGradient,
    WeightsAgain,
)
from simulator.program.group_launch import GroupLaunch
from simulator.program.launches import Cost, Launch
from simulator.program.op import Op
from simulator.program.ops import LoadTiles, StoreConstants, StoreTiles
from simulator.program.state import ChipTile, Move, Numbers
from simulator.program.tensors import TensorSpec
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


def _of_rows(w: Workload, visit: Visit, tensor: str, depth: int, width: int) -> Move:
    """Return some rows of a tensor of queries."""
    return Move(tensor, visit.head, visit.rows, None, len(visit.rows) * depth * width)


def _output_gradient(w: Workload, visit: Visit) -> Move:
    return _of_rows(w, visit, "dO", w.value_dim, w.width)


def _sum(w: Workload, visit: Visit) -> Move:
    return _of_rows(w, visit, "dQ_acc", w.head_dim, STATISTIC_WIDTH)


def _of_keys(w: Workload, head: int, keys: range) -> tuple[Move, Move]:
    """Return dK and dV of some keys."""
    kv_head, b = w.kv_head_of[head], w.width
    return (
        Move("dK", kv_head, keys, None, len(keys) * w.head_dim * b),
        Move("dV", kv_head, keys, None, len(keys) * w.value_dim * b),
    )


def ops(w: Workload, visit: Visit) -> tuple[Op, ...]:
    """Return the ops of one visit."""
    return (_row_ops, _tile_ops, _convert_ops)[visit.launch](w, visit)


def _row_ops(w: Workload, visit: Visit) -> tuple[Op, ...]:
    o = _of_rows(w, visit, "O", w.value_dim, w.width)
    upstream, dots = _output_gradient(w, visit), tiles.statistic(visit, "D")
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
    d, dv, four = w.head_dim, w.value_dim, STATISTIC_WIDTH
    keys, k, v = len(visit.cols), tiles.keys(w, visit), tiles.values(w, visit)
    out: list[Op] = []
    if visit.opens and _blind_keys(w):
        cleared = tuple(move for own in _blind_keys(w) for move in _of_keys(w, visit.head, own))
        cites = f"{_PAPER} 18, keys that nobody sees"
        out.append(StoreConstants(cites=cites, moves=cleared))
    if visit.first:
        loaded = (tiles.in_shared(k, stays=True), tiles.in_shared(v, stays=True))
        out.append(LoadTiles(cites=f"{_PAPER} 6", moves=(k, v), allocates=loaded))
        held = (
            ChipTile("dK", keys * d * four, "registers", stays=True),
            ChipTile("dV", keys * dv * four, "registers", stays=True),
        )
        out.append(
            StartGradients(cites=f"{_PAPER} 7", keys=keys, head_dim=d, value_dim=dv, allocates=held)
        )
    q, upstream = tiles.queries(w, visit), _output_gradient(w, visit)
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
    out += [
        WeightsAgain(
            cites=f"{_PAPER} 11", frees=("S", "LSE"), allocates=(tiles.scores_tile(visit, "P"),)
        ),
        AddValueGradient(cites=f"{_PAPER} 12", flops=tiles.matmul_flops(visit, dv)),
        WeightGradient(
            cites=f"{_PAPER} 13",
            flops=tiles.matmul_flops(visit, dv),
            allocates=(tiles.scores_tile(visit, "dP"),),
        ),
        ScoreGradient(
            cites=f"{_PAPER} 14",
            frees=("P", "dP", "D", "dO"),
            allocates=(tiles.scores_tile(visit, "dS"),),
        ),
    ]
    if w.scoring.softcap:
        out.append(
            CapGradient(
                cites=f"{_PAPER} 14, {SOFTCAP}", scale=w.scoring.factor, cap=w.scoring.softcap
            )
        )
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
    total, stored = _sum(w, visit), _of_rows(w, visit, "dQ", w.head_dim, w.width)
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


def error_size(name: str, chip: Numbers, largest_v: float) -> float:
    """Return the size of the terms of a number, to which its rounding errors are relative.

    Parameters
    ----------
    name : str
        Which number.
    chip : mapping of str to ndarray
        What is on chip with it.
    largest_v : float
        The largest magnitude in V.
    """

    finite = np.abs(chip.get("S", np.ones((1, 1))))
    exponent = float(np.max(finite, initial=1.0, where=np.isfinite(finite)))
    sizes = {"S": exponent, "P": exponent}
    if "D" in chip:
        upstream = np.abs(chip["dO"])
        of_dots = max(1.0, float(upstream.sum(axis=1).max()) * largest_v)
        # What is wrong in a score is a relative error of its weight, and so of all that follows.
        of_pair = exponent * of_dots
        sizes |= {"D": of_dots, "dP": of_dots, "dS": of_pair}
        for tensor, own in (("dV", "dO"), ("dK", "Q"), ("dQ_acc", "K"), ("dQ", "K")):
            if own in chip:
                rows = 1.0 if own == "K" else len(chip[own])  # the weights of a row add up to 1
                terms = exponent if own == "dO" else of_pair
                sizes[tensor] = terms * max(1.0, rows * float(np.abs(chip[own]).max()))
    return sizes.get(name, exponent)


ALGORITHM = TileAlgorithm(
    name="flash2-backward",
    title="FlashAttention-2, backward",
    short_title="Backward",
    label="backward",
    in_a_sentence="FlashAttention-2's backward pass",
    colour="V",
    line="dash",
    mark="triangle",
    source="Dao 2023, Algorithm 2",
    launches=launches,
    ops=ops,
    walks=False,
    running=False,
    compared=False,
    tensors=(
        TensorSpec("D", ("row",), width="float32", at="O"),
        TensorSpec("dQ_acc", ("row", "depth"), width="float32", at="dQ"),
        TensorSpec("dQ", ("row", "depth"), at="Q"),
        TensorSpec("dK", ("key", "depth"), at="K"),
        TensorSpec("dV", ("key", "value"), at="V"),
    ),
    left=("dK", "dV"),
    gates=(TensorSpec("dO", ("row", "value"), at="O"),),
    pairs=(
        TensorSpec("dP", ("row", "key"), width="float32", at="P"),
        TensorSpec("dS", ("row", "key"), width="float32", at="S"),
    ),
    backward=True,
    error_size=error_size,
    # In the second, there are keys that nobody sees.
    exemplars=({}, {"attention": {"seqlen_q": 4}, "mask": {"window": 2}}),
)
