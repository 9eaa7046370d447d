"""How far the rows of O are from float64, row by row, during a run.

The float64 numbers follow the cursor: with each step the state of the current row block is advanced
by one tile, and the results of finished row blocks are kept. If the cursor has jumped over rows,
their errors are unknown until `fill_errors` has computed them in the background.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from simulator.base.cache import BoundedCache
from simulator.base.dtypes import F64, DType, frozen
from simulator.engines.numpy_engine import numpy_engine
from simulator.engines.reference import gated
from simulator.problem.workload import Workload
from simulator.program.algorithms import algorithm_of, worked_columns
from simulator.program.ops import exp_shift
from simulator.run.cosimulation import Verdict, verify
from simulator.run.effort import EFFORT, Effort
from simulator.run.rounding_errors import RoundingError, Way, rounding_errors
from simulator.run.row_report import RowReport, o_weight
from simulator.run.row_sums import (
    RowSums,
    added,
    blank_half,
    blank_sums,
    of_whole_rows,
    over,
    tile_scores,
    to_half,
    ulps,
)
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace

Progress = Callable[[float], None]
MIB = 2**20

EXP_OVERFLOW = float(np.log(np.float64(np.finfo(np.float32).max)))
"""Largest argument of exp in float32: 88.72."""
HALF_OVERFLOW = float(np.log(np.float64(np.finfo(np.float16).max)))
"""Largest argument of exp in float16: 11.09."""
ROUNDING: dict[DType, float | None] = {"float32": None, "float16": 2.0**12, "bfloat16": 2.0**15}
"""Largest error of storing O in a dtype, in float32 units of the last place."""

_COMPARED = 2**17  # most pairs of a head for which ways to round are compared at once: some 0.1 s
_STATES = 48 * MIB
_TOLD = 256  # tiles of a row block after which its progress is told, and the work may be stopped
_APART = 8  # tiles between two states that are kept: a step back adds at most as many again
_NEVER, _STORED = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)
"""Stages of a row block without an O, and with its O in HBM; other stages count its tiles."""


class RowError(IntEnum):
    """Whether a row's error is known; rows that share a pixel show the highest state."""

    EMPTY = 0  # it has no output yet
    UNKNOWN = 1  # its output has not been compared with float64
    KNOWN = 2
    BROKEN = 3  # the row of O contains NaN or an infinity


@dataclass(frozen=True, slots=True)
class ErrorStrip:
    """Errors of all rows of a head."""

    # (Nq,) float64, largest absolute error of the row's O in units of the last place, as a float32,
    # of its largest exact magnitude; 0 where it is not known
    ulp: F64
    states: NDArray[np.uint8]  # (Nq,) uint8, `RowError`

    @property
    def worst(self) -> int | None:
        """The row with the largest known error (a broken row counts as largest), or None."""
        known = self.states >= RowError.KNOWN
        if not known.any():
            return None
        size = np.where(self.states == RowError.BROKEN, np.inf, self.ulp)
        return int(np.argmax(np.where(known, size, -np.inf)))

    def count(self, state: RowError) -> int:
        """Return how many rows are in a state."""
        return int((self.states == state).sum())

    def pooled(self, most: int) -> ErrorStrip:
        """Return the worst of neighbouring rows, at most `most` of them."""
        run = -(-len(self.ulp) // max(most, 1))
        starts = np.arange(0, len(self.ulp), run)
        return ErrorStrip(
            np.maximum.reduceat(self.ulp, starts), np.maximum.reduceat(self.states, starts)
        )


@dataclass(frozen=True, slots=True)
class Exactness:
    """The errors of the current head that are known at a cursor."""

    # errors of O so far: of the current row block on chip, of the others in HBM
    now: ErrorStrip
    # errors of the same rows at their end with exp(S), l and O in float16 and no maximum
    half: ErrorStrip
    half_overflows: int  # rows among these in which an exp(S) overflows
    # the alpha of known rows so far that is furthest from 1; None if there is none
    rescale: float | None
    largest: float | None  # the largest visible score of known rows so far
    # largest error of storing O in the dtype, in the strip's units; None where it is float32
    rounding: float | None
    missing: bool  # whether `fill_errors` has something to compute
    # whether a larger maximum rescales O: not where m is the maximum of a whole row
    rescales: bool = True
    features: str = ""  # without a softmax, φ in words
    # of a backward pass, the gradients whose errors are in `now` (rows) and in `half` (keys); then
    # nothing is known in float16, of alpha and of scores
    gradients: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    # errors of O with P and S rounded, beside float32 P; none where this has no sense or takes long
    ways: Mapping[Way, RoundingError] = field(default_factory=dict)


@dataclass(slots=True)
class _Head:
    """The errors of one head; `stage`: the stage of each row block when they were computed."""

    stage: NDArray[np.int64]
    ulp: F64
    rescale: F64  # ln of the alpha furthest from 1, 0 for none, per row block
    top: F64  # largest score, per row block
    half_known: NDArray[np.bool_]
    half_ulp: F64
    half_over: NDArray[np.bool_]


@dataclass(slots=True)
class _Record:
    """The errors computed for a trace; the engine's thread and the long work share them."""

    heads: dict[int, _Head] = field(default_factory=dict)
    states: BoundedCache[RowSums] = field(
        default_factory=lambda: BoundedCache(_STATES, lambda s: s.bytes)
    )
    ways: dict[int, Mapping[Way, RoundingError]] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)


_RECORDS: weakref.WeakKeyDictionary[Trace, _Record] = weakref.WeakKeyDictionary()
_RECORDS_LOCK = threading.Lock()


def _record(trace: Trace) -> _Record:
    with _RECORDS_LOCK:
        return _RECORDS.setdefault(trace, _Record())


def exactness(
    trace: Trace, snapshot: Snapshot, report: RowReport, effort: Effort = EFFORT
) -> Exactness:
    """Return the known errors at a cursor, after computing the errors that this step changed."""
    record, w = _record(trace), trace.workload
    with record.lock:
        head = _head(record, w, snapshot.visit.head)
        _note_current(trace, record, head, snapshot, effort)
    needed = _needed(snapshot)
    if effort.is_small(w) and _missing(w, head, needed, snapshot.visit.i, effort).any():
        fill_errors(trace, snapshot, lambda share: None, effort)
    ways = _ways(trace, record, snapshot.visit.head)
    with record.lock:
        return replace(_picture(w, head, needed, snapshot.visit.i, effort), ways=ways)


def _ways(trace: Trace, record: _Record, number: int) -> Mapping[Way, RoundingError]:
    """Return the errors of standard attention and flash with rounded P, of a head at hand."""
    w = trace.workload
    no_sense = w.dtype == "float32" or w.rule is not None or w.latent
    if no_sense or w.seqlen_q // w.group * w.seqlen_k > _COMPARED:
        return {}
    with record.lock:
        if number not in record.ways:
            record.ways[number] = rounding_errors(*trace.single_heads, number * w.group)
        return record.ways[number]


def fill_errors(
    trace: Trace, snapshot: Snapshot, progress: Progress, effort: Effort = EFFORT
) -> None:
    """Compute the missing errors at a cursor; this takes long for long sequences.

    trace: the run; asked for row blocks from this thread.
    """
    record, w = _record(trace), trace.workload
    number, needed = snapshot.visit.head, _needed(snapshot)
    head = _head(record, w, number)
    todo = np.flatnonzero(_missing(w, head, needed, snapshot.visit.i, effort)).tolist()
    for done, i in enumerate(todo):

        def part(share: float, done: int = done) -> None:
            progress((done + share) / len(todo))

        part(0.0)
        _fill_block(trace, record, head, number, i, int(needed[i]), part)
    progress(1.0)


def first_wrong_step(trace: Trace, progress: Progress, effort: Effort = EFFORT) -> Verdict | None:
    """Return the verdict of `verify` on an engine of its own; None if memory is too small."""
    w = trace.workload
    if not effort.searches(w):
        return None
    own = Trace(trace.program, numpy_engine(w, trace.inputs), trace.inputs)
    return verify(own, progress)


# --- which row blocks are known, and at which stage --------------------------------------------


def _head(record: _Record, w: Workload, number: int) -> _Head:
    with record.lock:
        if number not in record.heads:
            blocks, rows = w.grid.Tr, w.seqlen_q
            record.heads[number] = _Head(
                stage=np.full(blocks, _NEVER), ulp=np.zeros(rows),
                rescale=np.zeros(blocks), top=np.full(blocks, -np.inf),
                half_known=np.zeros(blocks, dtype=np.bool_), half_ulp=np.zeros(rows),
                half_over=np.zeros(rows, dtype=np.bool_),
            )  # fmt: skip
        return record.heads[number]


def _needed(now: Snapshot) -> NDArray[np.int64]:
    """Return the stage of every row block at a cursor, (Tr,); `_NEVER` if it has no output."""
    w, visit = now.program.workload, now.visit
    needed = np.full(w.grid.Tr, _NEVER)
    if not now.launch.writes_output:
        return needed
    if algorithm_of(w).normalises_each_tile:
        reached = np.where(np.arange(w.grid.Tr) < visit.i, visit.j + 1, visit.j)
        before = w.grid.visited_columns.before_each(reached)
        needed = np.where(before > 0, before, _NEVER)
    else:
        needed[: visit.i] = _STORED
    needed[visit.i] = _stage_now(now)
    return needed


def _stage_now(now: Snapshot) -> int:
    """Return the stage of the current row block."""
    if now.stored("O") and not now.program.algorithm.normalises_each_tile:
        return _STORED
    if now.launch.combines or not now.has_output:
        return _NEVER
    return _visited_before(now) + (now.made("O") and not now.launch.whole_rows) or _NEVER


def _visited_before(now: Snapshot) -> int:
    """Return how many column blocks of the row block come before the visit: all in whole rows."""
    columns, whole = _columns(now.program.workload, now.visit.i), now.launch.whole_rows
    return len(columns) if whole else int(np.searchsorted(columns, now.visit.j))


def _columns(w: Workload, i: int) -> NDArray[np.int64]:
    """Return the column blocks that row block `i` adds to O, ascending."""
    return worked_columns(w).visited(i)


def _missing(
    w: Workload, head: _Head, needed: NDArray[np.int64], current: int, effort: Effort
) -> NDArray[np.bool_]:
    """Return which row blocks are to be computed, (Tr,) bool; always the current one."""
    wanted = np.zeros(w.grid.Tr, dtype=np.bool_)
    wanted[effort.row_blocks(w)] = True
    wanted[current] = True
    behind = (needed != _NEVER) & (head.stage != needed)
    return np.asarray(wanted & (behind | ~head.half_known))


def _picture(
    w: Workload, head: _Head, needed: NDArray[np.int64], current: int, effort: Effort
) -> Exactness:
    rows_of = np.arange(w.seqlen_q) // w.rows
    reached, known = needed != _NEVER, head.stage == needed
    states = np.where(reached, np.where(known, RowError.KNOWN, RowError.UNKNOWN), RowError.EMPTY)
    now = _strip(head.ulp, states[rows_of])
    half_states = np.where(head.half_known, RowError.KNOWN, RowError.UNKNOWN)
    half = _strip(head.half_ulp, half_states[rows_of])
    usable = reached & known
    turns = head.rescale[usable]
    furthest = float(turns[np.argmax(np.abs(turns))]) if turns.size else 0.0
    top = float(head.top[usable].max(initial=-np.inf))
    with np.errstate(over="ignore"):
        rescale = float(np.exp(furthest)) if furthest else None
    return Exactness(
        now=now,
        half=half,
        half_overflows=int(head.half_over[head.half_known[rows_of]].sum()),
        rescale=rescale,
        largest=top if np.isfinite(top) else None,
        rounding=ROUNDING[w.dtype] if not algorithm_of(w).normalises_each_tile else None,
        missing=bool(_missing(w, head, needed, current, effort).any()),
        rescales=not algorithm_of(w).stores_scores,
        features=w.feature_map.words if w.feature_map else "",
    )


def _strip(ulp: F64, states: NDArray[np.int64]) -> ErrorStrip:
    known = states == RowError.KNOWN
    broken = known & ~np.isfinite(ulp)
    marks = np.where(broken, RowError.BROKEN, states).astype(np.uint8)
    return ErrorStrip(frozen(np.where(known & ~broken, ulp, 0.0)), frozen(marks))


# --- working them out --------------------------------------------------------------------------


def _note_current(
    trace: Trace, record: _Record, head: _Head, now: Snapshot, effort: Effort
) -> None:
    """Write the errors of the current row block at the cursor into the record, if known."""
    w, i = trace.workload, now.visit.i
    if not now.launch.writes_output:
        return
    stage = _stage_now(now)
    tiles = len(_columns(w, i)) if stage == _STORED else stage
    if stage == _NEVER:
        return
    exact = _exact_o(trace, record, now.visit.head, i, tiles, effort)
    if exact is None:
        return
    o, top = exact
    rows = now.visit.rows
    if now.gated:
        o = o * now.state["gate"]
    ours: NDArray[np.floating]
    if stage == _STORED:
        ours = trace.row_block(now.visit.head, i).o
    else:
        weight = o_weight(now).astype(np.float64)
        with np.errstate(all="ignore"):
            ours = over(now.o, weight)
        faded = (weight == 0) & (o != 0).any(axis=1)
        if faded.any() and not w.faults.on:  # O is almost 0 until this tile is added
            return
    head.ulp[rows.start : rows.stop] = ulps(ours, o)
    head.stage[i] = stage
    head.top[i] = top
    rescaled = _visited_before(now) + now.rescaled
    head.rescale[i] = _furthest(trace, now.visit.head, i, rescaled)


def _fill_block(
    trace: Trace, record: _Record, head: _Head, number: int, i: int, needed: int, progress: Progress
) -> None:
    """Compute one row block at its end, or after `needed` tiles if each tile divides O."""
    w, inputs = trace.workload, trace.inputs
    rows = slice(i * w.rows, min((i + 1) * w.rows, w.seqlen_q))
    columns, own = _columns(w, i), w.grid.row_range(i)
    each_tile = algorithm_of(w).normalises_each_tile
    state, half = blank_sums(w, number, own), blank_half(w, number, own)
    wanted: RowSums | None = None
    whole = of_whole_rows(w, inputs, number, i)
    with np.errstate(all="ignore"):
        if whole is not None:
            (state, half), columns = whole, columns[:0]
        for n, j in enumerate(map(int, columns), start=1):
            if n % _TOLD == 0:
                progress(n / len(columns))
            s, v = tile_scores(w, inputs, number, i, j)
            state = added(state, s, v)
            half = half.add(s, v) if w.feature_map is None else half.weighted(np.exp(s), v)
            if n == needed:
                wanted = state
        exact = over(state.o, state.l)
        quotient = over(half.o, half.l, blind=np.isneginf(state.m))
        half_o = to_half(quotient.astype(np.float32))
    with record.lock:
        head.half_ulp[rows] = ulps(half_o, exact)
        head.half_over[rows] = half.over
        head.half_known[i] = True
        # The view continues from here.
        if wanted is not None:
            record.states.get((number, i, needed), lambda: wanted)
        if wanted is not None and algorithm_of(w).stores_scores:
            record.states.get((number, i, len(columns)), lambda: state)
    if each_tile:
        if wanted is None:
            return
        index = trace.program.index(number, i, int(columns[needed - 1]))
        assert index is not None
        ours, exact, top = trace.tile(index).o, over(wanted.o, wanted.l), wanted.top
        stage, tiles = needed, needed
    else:
        ours, top = trace.row_block(number, i).o, state.top
        exact = gated(w, inputs, number, own, exact)
        stage, tiles = _STORED, len(columns)
        if needed not in (_NEVER, _STORED):
            return  # the cursor is in this row block
    turn = _furthest(trace, number, i, tiles)
    with record.lock:
        head.ulp[rows] = ulps(ours, exact)
        head.stage[i], head.top[i], head.rescale[i] = stage, top, turn


def _exact_o(
    trace: Trace, record: _Record, number: int, i: int, tiles: int, effort: Effort
) -> tuple[F64, float] | None:
    """Return O of a row block over its first tiles in float64, and the largest score in them.

    None if a view would wait too long for it to be computed from the nearest known state.
    """
    state = _state_at(trace, record, number, i, tiles, effort)
    if state is None:
        return None
    if not algorithm_of(trace.workload).stores_scores:
        return over(state.o, state.l), state.top
    # Naive's partial O is already divided by the sum over all keys that the row sees.
    end = _state_at(trace, record, number, i, trace.workload.grid.Tc, effort)
    if end is None:
        return None
    shrink = exp_shift(state.m, end.m)
    return over(state.o * shrink[:, None], end.l), end.top


def _state_at(
    trace: Trace, record: _Record, number: int, i: int, tiles: int, effort: Effort
) -> RowSums | None:
    w, states = trace.workload, record.states
    far = tiles - effort.tiles_of_step(w)  # from farther behind it would take too long
    start = next((n for n in range(tiles, max(far, 0) - 1, -1) if (number, i, n) in states), 0)
    if start < far:
        return None
    whole = of_whole_rows(w, trace.inputs, number, i)
    if whole is not None:
        return whole[0]
    state = states.get((number, i, start), lambda: blank_sums(w, number, w.grid.row_range(i)))
    for n, j in enumerate(map(int, _columns(w, i)[start:tiles]), start=start + 1):
        s, v = tile_scores(w, trace.inputs, number, i, j)
        state = added(state, s, v)
        if n % _APART == 0 or n == tiles:
            states.get((number, i, n), lambda found=state: found)  # type: ignore[misc]
    return state


def _furthest(trace: Trace, number: int, i: int, tiles: int) -> float:
    """Return ln of the alpha furthest from 1 in a row block's first tiles; 0 for none."""
    w = trace.workload
    if algorithm_of(w).stores_scores or tiles < 2:
        return 0.0
    columns = _columns(w, i)[:tiles]
    m = trace.row_block(number, i).m[:, columns].astype(np.float64)
    real = np.isfinite(m[:, :-1]) & np.isfinite(m[:, 1:])
    real &= np.diff(columns // w.split_blocks) == 0  # each split begins with nothing seen
    with np.errstate(invalid="ignore"):
        turns = np.where(real, m[:, :-1] - m[:, 1:], 0.0).ravel()
    return float(turns[np.argmax(np.abs(turns))])
