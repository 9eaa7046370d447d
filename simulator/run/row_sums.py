"""Sums of a row block over its keys in float64, and in float16 without a maximum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.base.cache import ARRAY
from simulator.base.dtypes import F32, F64
from simulator.base.matmul import matmul
from simulator.problem.features import FeatureMap
from simulator.problem.workload import Inputs, Workload
from simulator.program.op import Op
from simulator.program.ops import Accumulate, Exponentials, Rescale, RowMax, RowSum
from simulator.program.state import State


@dataclass(frozen=True, slots=True)
class RowSums:
    """Sums of a row block over some tiles, relative to the maximum so far."""

    # m, l: (rows,) float64, largest score and sum of exponentials
    m: F64
    l: F64
    o: F64  # (rows, dv) float64, not divided by l

    @property
    def top(self) -> float:
        """Largest score of the row block; -inf if it sees nothing."""
        return float(self.m.max())

    @property
    def bytes(self) -> int:
        """Memory of the sums."""
        return 3 * ARRAY + self.m.nbytes + self.l.nbytes + self.o.nbytes


@dataclass(frozen=True, slots=True)
class HalfSums:
    """Sums of a row block in float16 without a maximum.

    S, exp(S), l and O are rounded to float16 after every tile; products of a tile are summed in
    float32, as tensor cores may.
    """

    # l, o: (rows,) and (rows, dv) float32, numbers that float16 has
    l: F32
    o: F32
    over: NDArray[np.bool_]  # (rows,) bool, whether an exponential overflowed

    def add(self, s: F64, v: F32) -> HalfSums:
        """Return the sums after one more tile; every result is rounded to float16."""
        return self.weighted(np.exp(to_half(s.astype(np.float32))), v)

    def weighted(self, weights: F32, v: F32) -> HalfSums:
        """Return the sums after one more tile, whose weights are given."""
        p = to_half(weights)
        l = to_half(self.l + p.sum(axis=1))
        o = to_half(self.o + matmul(p, v))
        return HalfSums(l, o, self.over | np.isinf(p).any(axis=1))


def to_half(values: F32) -> F32:
    """Return `values` rounded to float16."""
    return values.astype(np.float16).astype(np.float32)


def blank_sums(w: Workload, head: int, rows: range, split: int = 0) -> RowSums:
    """Return the sums of rows that have seen nothing, or a sink alone."""
    return RowSums(*w.start(head, rows, split), np.zeros((len(rows), w.value_dim)))


def blank_half(w: Workload, head: int, rows: range) -> HalfSums:
    """Return the sums of rows that have seen nothing, or a sink alone."""
    o = np.zeros((len(rows), w.value_dim), dtype=np.float32)
    with np.errstate(over="ignore"):
        l = to_half(np.exp(to_half(w.start(head, rows)[0].astype(np.float32))))
    return HalfSums(l, o, np.isinf(l))


def tile_scores(w: Workload, inputs: Inputs, number: int, i: int, j: int) -> tuple[F64, F32]:
    """Return the masked scores of a tile in float64, and its rows of V."""
    rows, keys, kv = w.grid.row_range(i), w.grid.col_range(j), w.kv_head_of[number]
    q = inputs.q[number, rows.start : rows.stop].astype(np.float64)
    k = inputs.k[kv, keys.start : keys.stop].astype(np.float64)
    scores = pair_scores(w, q, k, inputs.projection, number, rows, keys)
    s = np.where(w.mask.of_head(number).visible(rows, keys), scores, -np.inf)
    return s, inputs.v[kv, keys.start : keys.stop]


def of_whole_rows(
    w: Workload, inputs: Inputs, number: int, i: int
) -> tuple[RowSums, HalfSums] | None:
    """Return a row block's sums over all keys at once, in a program by token; else None.

    m is ln of the largest weight; l is 1 where nothing is divided.
    """
    if w.rule is None or not w.rule.tokens or w.feature_map is None:
        return None
    rows, kv = w.grid.row_range(i), w.kv_head_of[number]
    q = inputs.q[number, rows.start : rows.stop].astype(np.float64)
    gate = None if inputs.gate is None else inputs.gate[kv]
    weights = row_weights(w, q, inputs.k[kv], inputs.projection, gate, rows)
    o = matmul(weights, inputs.v[kv].astype(np.float64))
    l = weights.sum(axis=1) if w.rule.sums else np.ones(len(rows))
    with np.errstate(divide="ignore"):
        m = np.log(np.abs(weights).max(axis=1))
    half = blank_half(w, number, rows).weighted(weights.astype(np.float32), inputs.v[kv])
    half_l = half.l if w.rule.sums else np.ones_like(half.l)
    return RowSums(m, l, o), HalfSums(half_l, half.o, half.over)


def row_weights(
    w: Workload,
    q: NDArray[Any],
    k: NDArray[Any],
    projection: F32 | None,
    gate: F32 | None,
    rows: range,
) -> F64:
    """Return by how much each key counts in some rows of linear attention, 0 if it is hidden."""
    phi, rule = w.feature_map, w.rule
    assert phi is not None
    assert rule is not None
    mapped = [phi.of(x.astype(np.float64), projection) for x in (q, k)]
    wide = None if gate is None else gate.astype(np.float64)
    found = rule.weights(mapped[0], mapped[1], wide, rows)
    return np.where(w.mask.visible(rows, range(w.seqlen_k)), found, 0.0)


def pair_scores(
    w: Workload, q: F64, k: F64, projection: F32 | None, head: int, rows: range, keys: range
) -> F64:
    """Return scores before the mask, (rows, keys); in linear attention they are ln φ(q)·φ(k)."""
    if w.feature_map is None:
        return w.changed(head, rows, keys, matmul(w.scoring.queries(q), k.T))
    with np.errstate(divide="ignore"):  # all features of a row may have become 0
        return np.asarray(np.log(similarities(w.feature_map, q, k, projection)))


def similarities(
    phi: FeatureMap, q: NDArray[Any], k: NDArray[Any], projection: F32 | None
) -> NDArray[Any]:
    """Return φ(q)·φ(k) of rows and keys, (rows, keys)."""
    return matmul(phi.of(q, projection), phi.of(k, projection).T)


_PAPER = "Milakov & Gimelshein 2018, Algorithm 3"
_UPDATE: tuple[Op, ...] = (
    RowMax(cites=_PAPER, running=True),
    Exponentials(cites=_PAPER, running=True),
    RowSum(cites=_PAPER, running=True),
    Rescale(cites=_PAPER, normalised=False),
    Accumulate(cites=_PAPER, normalised=False),
)


def added(sums: RowSums, s: F64, v: NDArray[np.floating]) -> RowSums:
    """Return the sums after one more tile: its masked scores (rows, keys) and V (keys, dv)."""
    state = State.on_chip(m=sums.m, l=sums.l, O=sums.o, S=s, V=v.astype(np.float64))
    for op in _UPDATE:
        op.apply(state)
    return RowSums(state.chip["m"], state.chip["l"], state.chip["O"])


def over(
    values: NDArray[np.floating],
    total: NDArray[np.floating],
    blind: NDArray[np.bool_] | None = None,
) -> F64:
    """Return rows of `values` divided by `total`; 0 for blind rows, which have seen nothing."""
    zero = total == 0 if blind is None else blind
    by = np.where(zero, 1.0, total)[:, None]
    return np.asarray(np.where(zero[:, None], 0.0, values / by), dtype=np.float64)


def ulps(ours: NDArray[np.floating], exact: F64) -> F64:
    """Return each row's largest error in float32 units of the last place, (rows,) float64.

    ours: (rows, dv), O.
    exact: (rows, dv) float64.
    Returns: infinite if `ours` contains NaN or an infinity. The unit is the spacing of float32 at
        the row's largest exact magnitude.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(ours.astype(np.float64) - exact).max(axis=1)
    largest = np.abs(exact).max(axis=1).astype(np.float32)
    unit = np.spacing(np.maximum(largest, np.finfo(np.float32).tiny)).astype(np.float64)
    return np.where(np.isfinite(off), off / unit, np.inf)
