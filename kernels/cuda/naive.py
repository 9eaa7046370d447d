"""Naive's tiles: three launches see the same visit at different stages."""

from __future__ import annotations

import numpy as np

from kernels.cuda.records import Details
from simulator.base.dtypes import F32
from simulator.engines.numpy_engine import RowBlock, Tile
from simulator.problem.workload import Workload
from simulator.program.tile_program import Visit


def naive_tile(w: Workload, visit: Visit, block: RowBlock, details: Details) -> Tile:
    """Return the numbers of a visit of the scores, softmax or output launch.

    Parameters
    ----------
    w : Workload
        Tiles and mask.
    visit : Visit
        Which; one of the softmax launch takes whole rows.
    block : RowBlock
        Its row block.
    details : Details
        All columns of the row block.
    """
    rows, cols = visit.rows, visit.cols
    r, keys = len(rows), slice(cols.start, cols.stop)
    seen = w.mask.visible(rows, cols)
    zero, one = np.zeros(r, dtype=np.float32), np.ones(r, dtype=np.float32)
    nothing = np.full(r, -np.inf, dtype=np.float32)
    no_output = np.zeros((r, w.value_dim), dtype=np.float32)
    m, l = block.m[:, -1], block.l[:, -1]

    def tile(s: F32, p: F32, o_prev: F32, o: F32, before: bool, after: bool) -> Tile:
        """`before`, `after`: whether m and l are known before and after the visit."""
        return Tile(
            s=s,
            seen=seen,
            m_prev=m if before else nothing,
            m=m if after else nothing,
            l_prev=l if before else zero,
            l=l if after else zero,
            m_tile=m if after else nothing,
            l_tile=l if after else zero,
            alpha=one if before else zero,
            beta=one if after else zero,
            p=p,
            o_prev=o_prev,
            o=o,
        )

    if visit.launch == 1:
        s, p = (_whole_rows(w, visit, details, name) for name in ("s", "p"))
        return tile(s, p, no_output, no_output, before=False, after=True)
    fields = details.visit(visit.j)
    s = fields["s"][:r, : len(cols)]
    if visit.launch == 0:
        return tile(s, np.zeros_like(s), no_output, no_output, before=False, after=False)
    assert details.p is not None
    o_prev, o = fields["o_before"][:r], fields["o"][:r]
    return tile(s, details.p[:, keys], o_prev, o, before=True, after=True)


def _whole_rows(w: Workload, visit: Visit, details: Details, name: str) -> F32:
    """Return a field of all column blocks side by side, (rows, Nk)."""
    r = len(visit.rows)
    tiles = [details.visit(j)[name][:r, : len(w.grid.col_range(j))] for j in details.columns]
    return np.concatenate(tiles, axis=1)
