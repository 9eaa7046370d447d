"""The row that the softmax picture explains: its scores as bars, and its maximum."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import F32
from simulator.program.algorithms import worked_columns
from simulator.program.op import Gesture, Op
from simulator.program.playback import eased, rescaling, stood
from simulator.run.final_weights import is_rescaled, maximum_of_output
from simulator.run.motion import Motion
from simulator.run.row_report import RowReport
from simulator.run.snapshot import Snapshot
from ui.look.kept import kept


class KeyState(IntEnum):
    """The state of a bar's key; where several keys share a bar, the highest state counts."""

    HIDDEN = 0
    LATER = 1
    ELSEWHERE = 2
    """Seen by another split: m and l do not include the key."""
    SEEN = 3
    CURRENT = 4


@dataclass(frozen=True, slots=True)
class ScoreBars:
    """The row's scores, one for each key or for as many keys as share a bar."""

    values: F32  # (bars,), largest score of the bar's keys, -inf where all are hidden
    states: NDArray[np.uint8]  # (bars,), `KeyState`
    keys_per_bar: int
    # low, high: smallest and largest finite number among the values, the running maximum, the
    # sink logit and 0
    low: float
    high: float
    strange: int = 0  # how many scores are infinite or NaN


def score_bars(snapshot: Snapshot, report: RowReport, most: int) -> ScoreBars:
    """Return at most `most` bars."""
    scores = row_scores(snapshot, report)
    if snapshot.joined is not None:
        # A fault may have made some scores infinite: these have no bar.
        seen = np.where(np.isfinite(scores), KeyState.CURRENT, KeyState.HIDDEN).astype(np.uint8)
        scores = np.where(np.isfinite(scores), scores, np.float32(-np.inf))
        return _bars(scores, seen, 1, _others(snapshot, report))
    states = np.full(len(scores), KeyState.LATER, dtype=np.uint8)
    states[report.seen] = KeyState.SEEN
    states[: own_begin(snapshot)] = KeyState.ELSEWHERE
    cols = snapshot.visit.cols
    if is_worked_on(snapshot):
        states[cols.start : cols.stop] = KeyState.CURRENT
    states[scores == -np.inf] = KeyState.HIDDEN
    per = -(-len(states) // max(most, 1))
    return _bars(scores, states, per, _others(snapshot, report))


def _others(snapshot: Snapshot, report: RowReport) -> list[float]:
    """Return numbers drawn among the bars: the sink logit, which no key has, and the maximum."""
    w, visit, now = snapshot.program.workload, snapshot.visit, running_maximum(snapshot, report)
    rows = range(report.row, report.row + 1)
    joins = snapshot.joined is not None
    sink = -np.inf if joins else w.start(visit.head, rows, visit.split)[0][0]
    of_m = () if now is None else (now.now, now.now if now.old is None else now.old)
    return [float(sink), *of_m]


def _bars(scores: F32, states: NDArray[np.uint8], per: int, others: list[float]) -> ScoreBars:
    """Return bars of `per` scores each, on an axis that has room for other numbers, too."""
    starts = np.arange(0, len(states), per)
    values = np.maximum.reduceat(scores, starts)
    states = np.maximum.reduceat(states, starts)
    ends = np.append(values.astype(np.float64), others)
    ends = ends[np.isfinite(ends)]
    low, high = float(ends.min(initial=0.0)), float(ends.max(initial=0.0))
    strange = int(np.count_nonzero(np.isnan(scores) | np.isposinf(scores)))
    return ScoreBars(values, states, per, low, high if high > low else low + 1.0, strange)


def row_weights(snapshot: Snapshot, report: RowReport) -> F32 | None:
    """Return ``exp(s - m)`` of the keys of the row, (Nk,), with the m that O is relative to.

    The weights of the tile are its P, as soon as P is relative to m. NaN where there is no weight;
    None without a rescale.
    """
    if not is_rescaled(snapshot) or snapshot.joined is not None:
        return None
    r, cols = report.row - snapshot.visit.rows.start, snapshot.visit.cols
    with np.errstate(all="ignore"):
        weights = np.exp(report.scores - maximum_of_output(snapshot)[r])
    if not snapshot.made("O"):
        made = None if snapshot.program.algorithm.normalises_each_tile else snapshot.weights
        weights[cols.start : cols.stop] = np.nan if made is None else made[r]
    there = report.seen.copy()
    there[: own_begin(snapshot)] = False
    there[cols.start : cols.stop] = True
    weights[~there | (report.scores == -np.inf)] = np.nan
    return np.asarray(weights, dtype=np.float32)


def row_scores(snapshot: Snapshot, report: RowReport) -> F32:
    """Return the row's scores, (Nk,): in the current tile its S until its mask is done.

    Where splits are joined, the scores are the LSE of each split, (splits,).
    """
    if snapshot.joined is not None:
        return snapshot.joined[:, report.row - snapshot.visit.rows.start]
    waits = any(op.changed for op in snapshot.ops[snapshot.cursor.op + 1 :])  # all of S
    if snapshot.scores is None or not waits:
        return report.scores
    cols, scores = snapshot.visit.cols, report.scores.copy()
    scores[cols.start : cols.stop] = snapshot.scores[report.row - snapshot.visit.rows.start]
    return scores


def own_begin(snapshot: Snapshot) -> int:
    """Return the first key that m and l include: the split's first, where keys are dealt out."""
    return snapshot.begun_at * snapshot.program.workload.cols


def is_worked_on(snapshot: Snapshot) -> bool:
    """Whether the current tile has been turned into scores or weights."""
    made = snapshot.joined, snapshot.scores, snapshot.weights
    return any(each is not None for each in made)


@dataclass(frozen=True, slots=True)
class Maximum:
    """The running maximum of the row: now, before this visit, and where the line is drawn."""

    now: float
    old: float | None


def running_maximum(snapshot: Snapshot, report: RowReport) -> Maximum | None:
    """Return the row's maximum at the cursor; None while there is none on chip.

    `old` is given once the visit has changed it, if there was one before.
    """
    if not snapshot.made("m") and all(tile.name != "m" for tile in snapshot.on_chip):
        return None
    r = report.row - snapshot.visit.rows.start
    now, before = float(snapshot.m[r]), float(snapshot.tile.m_prev[r])
    return Maximum(now, before if now != before and before > -np.inf else None)


@dataclass(frozen=True, slots=True)
class SumBar:
    """The running sum of the row as a bar, with a part for each tile."""

    parts: NDArray[np.float64]  # (tiles,), relative to the maximum that the sum is relative to
    most: float  # the largest possible sum: the keys that the row sees


_AS_RECORDED = 1e-3
"""How far the parts may be from the recorded sum: a fault may record another sum."""


def sum_bar(snapshot: Snapshot, report: RowReport) -> SumBar | None:
    """Return the running sum at the cursor; None while there is none, or if it is another sum."""
    if snapshot.stores_scores or snapshot.joined is not None:
        return None
    r, w, visit = report.row - snapshot.visit.rows.start, snapshot.program.workload, snapshot.visit
    done = snapshot.made("l")
    top, total = (
        float(values[r])
        for values in (
            (snapshot.m, snapshot.l) if done else (snapshot.tile.m_prev, snapshot.tile.l_prev)
        )
    )
    if not np.isfinite(top):
        return None
    with np.errstate(all="ignore"):
        terms = np.exp(report.scores.astype(np.float64) - top)
        blocks = worked_columns(w).visited(visit.i)
        blocks = blocks[(blocks >= snapshot.begun_at) & (blocks < visit.j + done)]
        # A row may have 100 000 tiles, and this is asked for by the painter.
        parts = np.add.reduceat(terms, np.arange(0, len(terms), w.cols))[blocks]
        sink, weight = w.start(visit.head, range(report.row, report.row + 1), visit.split)
        if weight[0]:  # a key that every row sees first
            parts = np.append(np.exp(sink - top), parts)
        # Without a maximum a sum may be infinite, undefined, or longer than the bar.
        far = abs(parts.sum() - total) / max(total, 1.0)
    most = float(np.count_nonzero(np.isfinite(report.scores)) + weight[0])
    if not len(parts) or not most or not far <= _AS_RECORDED or total > most * (1 + _AS_RECORDED):
        return None
    return SumBar(parts, most)


def sum_by_now(motion: Motion, share: float, report: RowReport) -> SumBar | None:
    """Return the bar while it is being summed: old parts shrink, then the new part has grown.

    The length of the old parts on their way is a blend; the new part is the sum of its first terms.
    A rescale shows both once more: the old parts shrink with all old sums, and the new weights are
    added as they stand up.
    """
    after = sum_bar(motion.after, report)
    if after is None:
        return None
    if motion.gesture is Gesture.SHRINK:
        return _sum_of_rescale(motion, share, report, after)
    visit = motion.after.visit
    with np.errstate(all="ignore"):
        factor = float(
            np.exp(motion.after.tile.m_prev - motion.after.m)[report.row - visit.rows.start]
        )
        now, old, new = eased(share), after.parts[:-1], after.parts[-1]
        before = old / factor
    shrunk = before + (old - before) * now if np.isfinite(before).all() else old
    summed = motion.added(share) / motion.terms if motion.terms else now
    cols = motion.after.visit.cols
    count = round(summed * len(cols))
    scores = report.scores[cols.start : cols.start + count].astype(np.float64)
    top = float(motion.after.m[report.row - visit.rows.start])
    grown = float(np.exp(scores - top).sum()) if motion.terms else new * now
    return SumBar(np.append(shrunk, grown), after.most)


def _sum_of_rescale(motion: Motion, share: float, report: RowReport, after: SumBar) -> SumBar:
    moments, visit = rescaling(share), motion.after.visit
    r, cols = report.row - visit.rows.start, visit.cols
    alpha = float(motion.after.carried[r])
    scores = report.scores[cols.start : cols.stop].astype(np.float64)
    with np.errstate(all="ignore"):
        weights = np.exp(scores - float(motion.after.m[r]))
    joined = float((weights * stood(len(cols), moments.joined)).sum())
    return SumBar(np.append(after.parts[:-1] * alpha ** (moments.risen - 1), joined), after.most)


# --- the picture -----------------------------------------------------------------------------


def moves_softmax(op: Op) -> bool:
    """Return whether an op is seen here: bars rise or shrink, the maximum jumps, the sum grows."""
    return op.gesture is Gesture.SHRINK or not {"S", "m", "l"}.isdisjoint(op.makes)


def weights_by_now(motion: Motion, share: float, report: RowReport) -> F32 | None:
    """Return the weights while old sums are rescaled: by 1 to alpha of the trace.

    The weights of the tile stand up afterwards.
    """
    key = "weights before", report.row
    before = kept(motion, key, lambda: row_weights(motion.before, report))
    if before is None or not motion.is_sound:
        return before
    now, visit, moments = before.copy(), motion.after.visit, rescaling(share)
    now[: visit.cols.start] *= motion.after.carried[report.row - visit.rows.start] ** moments.risen
    now[visit.cols.start : visit.cols.stop] *= stood(len(visit.cols), moments.joined)
    return now


def scores_by_now(motion: Motion, share: float, row: int) -> F32 | None:
    """Return a row's scores of the current tile while they are being summed; else None."""
    visit = motion.after.visit
    if "S" not in motion.after.op.makes or row not in visit.rows or not 0 < share < 1:
        return None
    scores = motion.at(share).scores
    return (
        np.zeros(len(visit.cols), np.float32) if scores is None else scores[row - visit.rows.start]
    )
