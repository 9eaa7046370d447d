"""The numbers of one visit, made from the records of the kernels."""

from __future__ import annotations

from functools import partial

import numpy as np

from kernels.cuda.records import Details
from simulator.base.dtypes import F32
from simulator.engines.protocol import RowBlock, Tile, gone_through
from simulator.problem.workload import Inputs, Workload
from simulator.program.algorithms import algorithm_of
from simulator.program.ops import rounded
from simulator.program.tile_program import Visit


def recorded_tile(
    w: Workload, inputs: Inputs, visit: Visit, block: RowBlock, details: Details
) -> Tile:
    """Return a visit's numbers, the kernel's own where it recorded them.

    details: the records; if the visit works on whole rows, of all their columns.
    """
    algorithm, r, c = algorithm_of(w), len(visit.rows), len(visit.cols)
    again = partial(gone_through, w, inputs, visit)
    joined = details.joined
    if joined is not None and visit.launch:
        partials = {"O_partial": joined.o_partial, "LSE_partial": joined.lse_partial}
        made = {"m": joined.m, "w": joined.w, "l": joined.l, "O": joined.o}
        return again(before={}, loads=partials, recorded=made)
    ends = {"m": block.m[:, -1], "l": block.l[:, -1]}
    if algorithm.stores_scores and visit.launch == 1:
        s, p = (_whole_rows(w, visit, details, name) for name in ("s", "p"))
        masked = w.changed(visit.head, visit.rows, visit.cols, s)
        masked = np.where(
            w.mask.of_head(visit.head).visible(visit.rows, visit.cols), masked, np.float32(-np.inf)
        )
        if w.pair_dtype is not None:
            masked = rounded(masked, w.pair_dtype)
        # With a sink the ends include the sink; the ops compute m and l of the tile alone.
        tiles = {} if w.sink_logits else {"m_tile": ends["m"], "l_tile": ends["l"]}
        found = {**tiles, "P": p, **ends}
        return again(before={}, loads={"S": masked}, recorded=found, unmasked=s)
    fields = details.visit(visit.j)
    s = fields["s"][:r, :c]
    if algorithm.stores_scores and visit.launch == 0:
        return again(before={}, recorded={"S": s})
    o_prev, o = fields["o_before"][:r], fields["o"][:r]
    if algorithm.stores_scores:
        assert details.p is not None
        p = details.p[:, visit.cols.start : visit.cols.stop]
        before = ends if visit.first else {**ends, "O": o_prev}
        return again(before=before, loads={"P": p}, recorded={"O": o}, unmasked=s)
    m_prev, l_prev = (x.astype(np.float32) for x in w.start(visit.head, visit.rows))
    if visit.j:  # a skipped tile has left m and l as they were
        m_prev, l_prev = block.m[:, visit.j - 1], block.l[:, visit.j - 1]
    starts = visit.first and algorithm.normalises_last
    return again(
        before={} if starts else {"m": m_prev, "l": l_prev, "O": o_prev},
        recorded={
            "S": s,
            "m_tile": fields["m_tile"][:r],
            "m": block.m[:, visit.j],
            "alpha": details.alpha[:, visit.j - details.columns.start],
            "beta": fields["beta"][:r],
            "P": fields["p"][:r, :c],
            "l_tile": fields["l_tile"][:r],
            "l": block.l[:, visit.j],
            "O": o,
        },
    )


def _whole_rows(w: Workload, visit: Visit, details: Details, name: str) -> F32:
    """Return a field of all column blocks next to each other, (rows, Nk)."""
    r = len(visit.rows)
    tiles = [details.visit(j)[name][:r, : len(w.grid.col_range(j))] for j in details.columns]
    return np.concatenate(tiles, axis=1)
