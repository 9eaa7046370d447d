"""Split-KV (Flash-Decoding): keys are dealt out, each split leaves a partial O, all are joined.

For few queries and a long cache: one thread block for each row block would leave a GPU empty, so
several share its keys. The query heads of a KV head are packed into the rows, head after head, so
K and V are loaded once for all of them.

References: Dao, Haziza, Massa, Sizov 2023, "Flash-Decoding for long-context inference"; the splits
as in Dao-AILab/flash-attention, csrc/flash_attn/src/flash_fwd_kernel.h (``n_blocks_per_split``) and
the joining as in ``combine_attn_seqk_parallel``; one split as in Dao 2023, Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from simulator.base.dtypes import STATISTIC_WIDTH
from simulator.problem.intervals import Intervals
from simulator.problem.workload import Workload
from simulator.program.algorithms import tiles
from simulator.program.gate_ops import gate_cost, gate_ops
from simulator.program.launches import Cost, Launch
from simulator.program.op import Op
from simulator.program.ops import (
    LoadTiles,
    MergeMax,
    MergeOutputs,
    MergeSum,
    MergeWeights,
    Normalise,
    StorePartials,
    StoreTiles,
    statistics,
)
from simulator.program.state import ChipTile, TileMove
from simulator.program.tensors import TensorSpec
from simulator.program.tile_program import TileAlgorithm, Visit

_PAPER = "Dao 2023, Algorithm 1, line"
_JOIN = "Dao et al. 2023, Flash-Decoding, step"


def _dealt(w: Workload) -> Intervals:
    return w.grid.visited_columns.dealt(w.splits, w.split_blocks)


def launches(w: Workload) -> tuple[Launch, ...]:
    """Return the launches if a tile of K and one of V are loaded at each visit."""
    return launches_reading(w, keys_and_values(w))


def keys_and_values(w: Workload) -> dict[str, Cost]:
    """Return the costs of a tile of K and of a tile of V."""
    b, d, dv = w.width, w.head_dim, w.value_dim
    return {"K": Cost(inner=d * b), "V": Cost(inner=dv * b)}


def launches_reading(w: Workload, reads: Mapping[str, Cost], page: int = 1) -> tuple[Launch, ...]:
    """Return the launches: a thread block for each split of each row block, then the joining."""
    b, d, dv = w.width, w.head_dim, w.value_dim
    partial = dv * STATISTIC_WIDTH
    dealt = _dealt(w)
    empty = sum(len(rows) for rows, _ in _unseen(w))
    needed = np.repeat(tiles.sinks_of_blocks(w), w.splits)
    splits = Launch(
        "splits",
        (w.seqlen_q, w.rows),
        (w.seqlen_k, w.cols),
        dealt,
        by_rows=True,
        splits=w.splits,
        run=w.split_blocks,
        sinks=np.where(np.arange(w.grid.Tr * w.splits) % w.splits == 0, needed, 0),
        page=page,
        reads={"Q": Cost(first=d * b), **reads, **tiles.sink_cost(w, _blind_sinks(w), once=1)},
        writes={
            "O_partial": Cost(start=empty * partial, last=partial),
            "LSE_partial": Cost(start=statistics(empty), last=STATISTIC_WIDTH),
        },
        flops=Cost(pair=2 * (d + dv)),
    )
    combine = Launch(
        "combine",
        (w.seqlen_q, w.rows),
        (w.seqlen_k, w.seqlen_k),
        Intervals.every(w.grid.Tr, 1),
        by_rows=True,
        whole_rows=True,
        combines=True,
        reads={
            "O_partial": Cost(last=w.splits * partial),
            "LSE_partial": Cost(last=w.splits * STATISTIC_WIDTH),
        }
        | gate_cost(w, every=True),
        writes={"O": Cost(last=dv * b), "LSE": Cost(last=STATISTIC_WIDTH)},
        flops=Cost(),
    )
    return splits, combine


@lru_cache(maxsize=4)  # the first visit of each head asks for it, and panels ask for its ops
def _unseen(w: Workload) -> list[tuple[range, int]]:
    """Return the rows of each split that see none of its keys; neighbouring row blocks as one."""
    blind = (_dealt(w).counts == 0).reshape(w.grid.Tr, w.splits)
    edge = np.zeros((1, w.splits), np.int8)
    changes = np.diff(np.concatenate([edge, blind, edge]), axis=0)
    # By split, then by row: a first row block and the one after the last take turns.
    splits, starts = np.nonzero(changes.T == 1)
    stops = np.nonzero(changes.T == -1)[1]
    found = zip(splits.tolist(), starts.tolist(), stops.tolist(), strict=True)
    return [
        (range(start * w.rows, min(stop * w.rows, w.seqlen_q)), split)
        for split, start, stop in found
    ]


def _blind_sinks(w: Workload) -> int:
    """Return how many sink logits are loaded for row blocks whose first split sees nothing."""
    blind = _dealt(w).counts.reshape(w.grid.Tr, w.splits)[:, 0] == 0
    return int(tiles.sinks_of_blocks(w)[blind].sum())


def _partials(w: Workload, head: int, rows: range, split: int | None) -> tuple[TileMove, TileMove]:
    """Return the partial O and LSE of some rows, of one split or of all."""
    number = len(rows) * (w.splits if split is None else 1)
    return (
        TileMove("O_partial", head, rows, None, number * w.value_dim * STATISTIC_WIDTH, split),
        TileMove("LSE_partial", head, rows, None, statistics(number), split),
    )


def ops(w: Workload, visit: Visit, loading: tiles.Loading = tiles.load_keys) -> tuple[Op, ...]:
    """Return the ops of one visit, whose keys and values come to the chip by `loading`."""
    return _combine_ops(w, visit) if visit.launch else _split_ops(w, visit, loading)


def _split_ops(w: Workload, visit: Visit, loading: tiles.Loading) -> tuple[Op, ...]:
    out: list[Op] = []
    unseen = _unseen(w) if visit.opens else []
    if unseen:
        # Only the first split of a row counts its sink.
        for counts in (True, False):
            cleared = tuple(
                move
                for rows, split in unseen
                if counts == (bool(w.sink_logits) and split == 0)
                for move in _partials(w, visit.head, rows, split)
            )
            if cleared:
                sinks = _blind_sinks(w) if counts else None
                starts = f"{_JOIN} 1", cleared, sinks, f"{_PAPER} 5"
                out += tiles.store_starts(w, visit, *starts)
    out += tiles.row_block_ops(w, visit, _PAPER, "Dao 2023, section 3.1", loading)
    if visit.last:
        out.append(Normalise(cites=f"{_PAPER}s 12-13", tensor="O"))
        moves = _partials(w, visit.head, visit.rows, visit.split)
        out.append(StorePartials(cites=f"{_JOIN} 2", moves=moves, frees=("Q", "m", "l", "O")))
    return tuple(out)


def _combine_ops(w: Workload, visit: Visit) -> tuple[Op, ...]:
    moves = _partials(w, visit.head, visit.rows, None)
    held = tuple(ChipTile(move.tensor, move.bytes, "registers") for move in moves)
    m, l, o = tiles.accumulators(w, visit, stays=False)
    output = tiles.outputs(w, visit.head, visit.rows)
    return (
        LoadTiles(cites=f"{_JOIN} 3", moves=moves, allocates=held),
        MergeMax(cites=f"{_JOIN} 3", allocates=(m,)),
        MergeWeights(cites=f"{_JOIN} 3"),
        MergeSum(cites=f"{_JOIN} 3", allocates=(l,)),
        MergeOutputs(
            cites=f"{_JOIN} 3", allocates=(o,), frees=tuple(move.tensor for move in moves)
        ),
        Normalise(cites=f"{_JOIN} 3", tensor="O"),
        *gate_ops(w, visit, f"{_JOIN} 3"),
        StoreTiles(
            cites=f"{_JOIN} 3", moves=(output, tiles.statistic(visit, "LSE")), frees=("m", "l", "O")
        ),
    )


ALGORITHM = TileAlgorithm(
    name="split-kv",
    title="Split-KV (Flash-Decoding)",
    short_title="Split-KV",
    label="split-kv",
    in_a_sentence="split-KV",
    source="Dao et al. 2023, Flash-Decoding",
    about="keys are dealt out to splits, which are joined",
    launches=launches,
    visit_ops=ops,
    normalises_last=True,
    running=False,
    compared=False,
    tensors=(
        TensorSpec("O_partial", ("split", "row", "value"), width="float32"),
        TensorSpec("LSE_partial", ("split", "row"), -np.inf, "float32", "logit"),
    ),
)
