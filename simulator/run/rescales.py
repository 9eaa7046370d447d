"""In which tiles the maximum of a row has moved, so that its sums were rescaled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import F32
from simulator.engines.protocol import RowBlock
from simulator.problem.workload import Workload
from simulator.program.op import Gesture
from simulator.program.playback import (
    PRESS_UP_TO,
    SECONDS_OF_NOTHING,
    SECONDS_PER_PRESS,
    SECONDS_PER_RESCALE,
    WHOLE_UP_TO,
    Cursor,
)
from simulator.run.snapshot import Snapshot

if TYPE_CHECKING:
    from simulator.run.trace import Trace

WARP = 32  # rows of a warp of FlashAttention-4's correction group: each of its lanes has one


def rescaled(
    w: Workload, head: int, i: int, block: RowBlock
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows and column blocks at which m has moved though l was above 0.

    block: has m and l after every column block; a skipped tile leaves both as they were.
    """
    rows = w.grid.row_range(i)
    m, l = (_with_start(w, head, rows, values, n) for n, values in enumerate((block.m, block.l)))
    moved = (m[:, 1:] != m[:, :-1]) & (l[:, :-1] > 0)
    if w.splits > 1:  # each split begins with nothing seen
        visited = w.grid.visited_columns.visited(i)
        split, first = np.unique(visited // w.split_blocks, return_index=True)
        moved[:, visited[first[split > 0]]] = False
    r, j = np.nonzero(moved)
    return r, j


@dataclass(frozen=True, slots=True)
class Skips:
    """Which rows of the current tile rescale, and which skip the rescale."""

    moved: NDArray[np.bool_]  # (r,) bool, rows whose m has moved, so that their sums are rescaled
    # (r,) bool, rows whose maximum has grown by too little: m is kept, and P is above 1
    skipped: NDArray[np.bool_]
    warps: NDArray[np.bool_]  # (warps,) bool, which of the warps of 32 rows rescale


def skips(now: Snapshot) -> Skips | None:
    """Return which rows of the current tile skip; None without a threshold or before m is made."""
    if now.program.workload.threshold is None or now.launch.combines or not now.made("m"):
        return None
    tile = now.tile
    with np.errstate(invalid="ignore"):
        seen = tile.l_prev > 0
        moved = seen & (tile.m != tile.m_prev)
        skipped = seen & ~moved & (tile.m_tile > tile.m_prev)
    return Skips(moved, skipped, warps_that_rescale(moved))


def shrinking(now: Snapshot) -> NDArray[np.bool_]:
    """Return the rows, (r,), whose O this rescale makes smaller; only rows that have seen keys."""
    return has_seen(now) & np.asarray(now.rescale_factor < 1)


def rescales(now: Snapshot) -> bool:
    """Return whether the op of a state makes the old sums of any row smaller."""
    return now.op.gesture is Gesture.SHRINK and bool(shrinking(now).any())


def row_at_hand(now: Snapshot, row: int | None) -> int | None:
    """Return the row whose rescale is shown: the chosen, else the one of least alpha, or None."""
    shrinks, rows = shrinking(now), now.visit.rows
    if row is not None and row in rows and shrinks[row - rows.start]:
        return row
    least = np.where(shrinks, now.rescale_factor, np.inf)
    return rows.start + int(np.argmin(least)) if shrinks.any() else None


def rescale_seconds(now: Snapshot, speed: float = 1.0) -> float | None:
    """Return how long the op of a state lasts at speed 1, if it is a rescale; else None.

    speed: the speed of playing; a fast rescale plays its press alone, a very fast one nothing.
    """
    if now.op.gesture is not Gesture.SHRINK:
        return None
    if speed > PRESS_UP_TO or not shrinking(now).any():
        return SECONDS_OF_NOTHING
    return SECONDS_PER_PRESS if speed > WHOLE_UP_TO else SECONDS_PER_RESCALE


def rescale_seconds_at(trace: Trace, cursor: Cursor, speed: float = 1.0) -> float | None:
    """Return how long the op at a cursor lasts at speed 1, if it is a rescale; else None."""
    if trace.program.ops(cursor.visit)[cursor.op].gesture is not Gesture.SHRINK:
        return None
    return rescale_seconds(trace.snapshot(cursor.visit, cursor.op), speed)


def has_seen(now: Snapshot) -> NDArray[np.bool_]:
    """Return which rows have seen a key before this visit, (r,)."""
    w, visit = now.program.workload, now.visit
    m, l = w.start(visit.head, visit.rows, visit.split)
    return np.asarray((now.tile.m_prev != m.astype(np.float32)) | (now.tile.l_prev != l))


def _with_start(w: Workload, head: int, rows: range, values: F32, which: int) -> F32:
    start = w.start(head, rows)[which].astype(values.dtype)
    return np.concatenate([start[:, None], values], axis=1)


def warps_that_rescale(moved: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return for each warp of 32 rows whether one of them rescales: then all of its lanes do."""
    starts = np.arange(0, len(moved), WARP)
    return np.logical_or.reduceat(moved, starts)
