"""One query row against all keys, for the softmax panel beside the engine's numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import F32, frozen
from simulator.base.matmul import matmul
from simulator.program.algorithms import worked_columns
from simulator.run.row_sums import added, blank_sums, pair_scores, row_weights, similarities
from simulator.run.snapshot import Snapshot

_CHUNK = 8192  # keys that are converted to float64 at a time


@dataclass(frozen=True, slots=True)
class RowReport:
    """One row of the current row block at a cursor."""

    row: int  # query row in the whole matrix
    # (Nk,) float32, scaled scores, or similarities φ(q)·φ(k), or the weights that later updates of
    # a state have left; -inf where the mask hides the pair
    scores: F32
    # (Nk,) bool, keys whose tile has been worked on up to the cursor, hidden ones included
    seen: NDArray[np.bool_]
    # largest absolute difference of the row's O so far, normalised, from float64 over the same
    # keys; None before the first accumulation and in launches without O
    error: float | None
    ulp: float | None  # the same in float32 units of the last place at the row's largest |O|


def row_report(snapshot: Snapshot, row: int) -> RowReport:
    """Return the report of a row, or of the nearest one in the snapshot's row block."""
    w, visit = snapshot.program.workload, snapshot.visit
    row = min(max(row, visit.rows.start), visit.rows.stop - 1)
    local = row - visit.rows.start
    head, one, keys = visit.head, range(row, row + 1), range(w.seqlen_k)
    scores = _row_scores(snapshot, row)
    visible = w.mask.of_head(head).visible(one, keys)[0]
    counted = _counted(snapshot, visible)
    scores = np.where(counted, scores, np.float32(-np.inf))
    current = slice(visit.cols.start, visit.cols.stop)
    if snapshot.scores is not None:  # the engine's own numbers if there are some
        own = snapshot.scores
        if w.changes_scores:  # also while they are still being changed
            own = w.changed(head, visit.rows, visit.cols, snapshot.tile.s)
        scores[current] = np.where(counted[current], own[local], -np.inf)
    seen = np.zeros(w.seqlen_k, dtype=np.bool_)
    whole = snapshot.launch.combines or snapshot.launch.whole_rows
    end = w.grid.Tc if whole else visit.j
    if snapshot.launch.whole_rows and not snapshot.formed_before:
        end = 0
    for start, stop in worked_columns(w).pairs(visit.i):
        seen[start * w.cols : min(stop, end) * w.cols] = True
    reached = seen.copy()
    reached[: snapshot.begun_at * w.cols] = False
    if whole or not snapshot.has_output:
        reached[:] = False
    if snapshot.made("O"):
        reached[current] = True
    error, ulp = _error(snapshot, row, reached & visible, visible)
    return RowReport(row, frozen(scores), frozen(seen), error, ulp)


def _row_scores(snapshot: Snapshot, row: int) -> F32:
    """Return the scores of a row, (Nk,); in linear attention its similarities."""
    w, q = snapshot.program.workload, snapshot.q[row]
    if w.feature_map is None:
        scores = matmul(snapshot.k, w.scoring_before_softmax.queries(q)).astype(np.float32)
        head, keys = snapshot.visit.head, range(w.seqlen_k)
        return np.asarray(w.changed(head, range(row, row + 1), keys, scores[None, :])[0])
    projection = snapshot.state.get("projection")
    if snapshot.gate is not None:
        rows = range(row, row + 1)
        weights = row_weights(w, q[None], snapshot.k, projection, snapshot.gate, rows)[0]
        return np.asarray(weights, dtype=np.float32)
    similar = similarities(w.feature_map, q[None], snapshot.k, projection)[0]
    return np.asarray(similar, dtype=np.float32)


def _error(
    snapshot: Snapshot, row: int, keys: NDArray[np.bool_], visible: NDArray[np.bool_]
) -> tuple[float | None, float | None]:
    if not keys.any() or (snapshot.stores_scores and snapshot.visit.launch < 2):
        return None, None
    local = row - snapshot.visit.rows.start
    total = float(o_weight(snapshot)[local])
    if total == 0:
        if not snapshot.program.workload.faults.on:
            return None, None  # the weights of earlier keys are 0 beside a larger maximum
        total = 1.0  # l is 0 where it must not be 0, and so is O
    # Naive's partial O is already divided by the sum over all keys that the row sees.
    exact = _exact(snapshot, row, keys, visible if snapshot.stores_scores else keys)
    if snapshot.gated:
        exact = exact * snapshot.state["gate"][local]
    with np.errstate(all="ignore"):  # a fault may have made O infinite
        ours = snapshot.o[local].astype(np.float64) / total
        difference = float(np.max(np.abs(ours - exact)))
    largest = np.float32(np.max(np.abs(exact)))
    return difference, difference / float(np.spacing(max(largest, np.finfo(np.float32).tiny)))


def _counted(snapshot: Snapshot, visible: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which keys are in the softmax: also hidden ones if a fault masks too late."""
    w = snapshot.program.workload
    if not w.faults.late_mask:
        return visible
    counted = np.zeros_like(visible)
    for start, stop in worked_columns(w).pairs(snapshot.visit.i):
        counted[start * w.cols : stop * w.cols] = True
    return counted


def o_weight(snapshot: Snapshot) -> F32:
    """Return the divisor of O as it is now, (r,): m and l may be a step ahead of O."""
    tile = snapshot.tile
    divides = snapshot.program.algorithm.sums
    if snapshot.stores_scores or snapshot.normalised or not divides:
        return np.ones_like(tile.l)
    if not snapshot.program.algorithm.softmax:
        return tile.l if snapshot.made("O") else tile.first("l")
    normalised = snapshot.program.algorithm.normalises_each_tile
    if snapshot.made("O"):
        return np.ones_like(tile.l) if normalised else tile.l
    before = np.ones_like(tile.l) if normalised else tile.l_prev
    return before * snapshot.rescale_factor if snapshot.rescaled else before


def _exact(
    snapshot: Snapshot, row: int, keys: NDArray[np.bool_], summed: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return O of the row over `keys` in float64, divided by the sum over the keys `summed`."""
    w = snapshot.program.workload
    q, projection = snapshot.q[row].astype(np.float64)[None], snapshot.state.get("projection")
    head, split, one = snapshot.visit.head, snapshot.visit.split, range(row, row + 1)
    if w.rule and not w.rule.sums:
        weights = row_weights(w, q, snapshot.k, projection, snapshot.gate, one)[0]
        return matmul(np.where(keys, weights, 0.0), snapshot.v.astype(np.float64))
    sums = blank_sums(w, head, one, split)
    for start in range(0, w.seqlen_k, _CHUNK):
        part = slice(start, start + _CHUNK)
        if not summed[part].any():
            continue
        k = snapshot.k[part].astype(np.float64)
        inside = range(w.seqlen_k)[part]
        scores = pair_scores(w, q, k, projection, head, one, inside)
        scores = np.where(summed[part], scores, -np.inf)
        sums = added(sums, scores, np.where(keys[part, None], snapshot.v[part], 0.0))
    exact: NDArray[np.float64] = sums.o[0] / sums.l[0]
    return exact
