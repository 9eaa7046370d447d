"""FlashAttention-2: outer loop over row blocks; O stays on chip until its row block is done.

References: Dao 2023, "FlashAttention-2: Faster Attention with Better Parallelism and Work
Partitioning", Algorithm 1 (forward pass).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from simulator.base.dtypes import STATISTIC_WIDTH
from simulator.problem.workload import Workload
from simulator.program.algorithms import tiles
from simulator.program.gate_ops import gate_cost, gate_ops
from simulator.program.launches import Cost, Launch
from simulator.program.op import Op
from simulator.program.ops import Normalise, StoreTiles, statistics
from simulator.program.state import TileMove
from simulator.program.tile_program import TileAlgorithm, Visit

_PAPER = "Dao 2023, Algorithm 1, line"


@lru_cache(maxsize=4)  # the first visit of each head asks for it, and panels ask for its ops
def _blind_rows(w: Workload) -> tuple[range, ...]:
    """Return the rows of the row blocks that see nothing, neighbouring row blocks as one."""
    blind = np.concatenate([[False], w.grid.visited_columns.counts == 0, [False]])
    starts, stops = (np.flatnonzero(np.diff(blind.astype(np.int8)) == n) for n in (1, -1))
    found = zip(starts.tolist(), stops.tolist(), strict=True)
    return tuple(range(i * w.rows, min(j * w.rows, w.seqlen_q)) for i, j in found)


def _blind_sinks(w: Workload) -> int:
    """Return how many sink logits are loaded for row blocks that see nothing: one for each."""
    return int((w.grid.visited_columns.counts == 0).sum())


def launches(w: Workload) -> tuple[Launch, ...]:
    """Return the one launch: every row block is a thread block of its own."""
    b, d, dv = w.width, w.head_dim, w.value_dim
    blind, sinks = sum(map(len, _blind_rows(w))), tiles.sinks_of_blocks(w)
    launch = Launch(
        "attention",
        (w.seqlen_q, w.rows),
        (w.seqlen_k, w.cols),
        w.grid.visited_columns,
        by_rows=True,
        sinks=sinks,
        reads={"Q": Cost(first=d * b), "K": Cost(inner=d * b), "V": Cost(inner=dv * b)}
        | tiles.sink_cost(w, _blind_sinks(w), once=1)
        | gate_cost(w),
        writes={
            "O": Cost(start=blind * dv * b, last=dv * b),
            "LSE": Cost(start=statistics(blind), last=STATISTIC_WIDTH),
        },
        flops=Cost(pair=2 * (d + dv)),
    )
    return (launch,)


def ops(w: Workload, visit: Visit) -> tuple[Op, ...]:
    """Return the ops of one visit."""
    out: list[Op] = []
    output = tiles.outputs(w, visit.head, visit.rows)
    lse = tiles.statistic(visit, "LSE")
    blind = _blind_rows(w) if visit.opens else ()
    if blind:
        cleared = tuple(
            move
            for rows in blind
            for move in (
                tiles.outputs(w, visit.head, rows),
                TileMove("LSE", visit.head, rows, None, statistics(len(rows))),
            )
        )
        cites = f"{_PAPER}s 14-15, rows that see nothing"
        out += tiles.store_starts(w, visit, cites, cleared, _blind_sinks(w), f"{_PAPER} 5")
    out += tiles.row_block_ops(w, visit, _PAPER, "Dao 2023, section 3.1")
    if visit.last:
        out.append(Normalise(cites=f"{_PAPER}s 12-13", tensor="O"))
        out += gate_ops(w, visit, f"{_PAPER} 12")
        out.append(
            StoreTiles(cites=f"{_PAPER}s 14-15", moves=(output, lse), frees=("Q", "m", "l", "O"))
        )
    return tuple(out)


ALGORITHM = TileAlgorithm(
    name="flash2",
    title="FlashAttention-2",
    short_title="FlashAttention-2",
    label="FlashAttention-2",
    in_a_sentence="FlashAttention-2",
    source="Dao 2023, Algorithm 1",
    about="the outer loop goes over row blocks",
    launches=launches,
    visit_ops=ops,
    normalises_last=True,
)
