"""Where the next step leads and how long it lasts, without a clock or a window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from simulator.program.op import Gesture, Op
from simulator.program.tile_program import TileProgram

SPEEDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
"""Speeds of playing; durations are given for speed 1."""
SECONDS_PER_OP = 0.7  # how long an op lasts, and a step that is larger than an op
MOVING = 0.88
"""Share of the time of an op in which something moves; then its result rests to be seen."""
SECONDS_PER_TURN = 2.4  # how long an op lasts in which hands turn, the fastest many times
SECONDS_PER_MOVE = 1.0  # how long an op lasts that moves tiles between HBM and the chip
SECONDS_PER_RESCALE = 3.9
"""How long a rescale lasts, in which old sums may shrink: a quarter of a second in which the camera
comes, three seconds of motion, and a moment in which the camera goes."""
SECONDS_PER_PRESS = 1.4  # how long the maximum rises in a rescale; a fast one plays only this
WHOLE_UP_TO, PRESS_UP_TO = 4.0, 10.0
"""Speeds up to which a whole rescale is played, and up to which its press is played."""
SECONDS_OF_NOTHING = 0.1
"""How long a rescale lasts that changes nothing: the first of a row, or with alpha = 1."""
LONGEST_WAY = 20.0  # most seconds that a way lasts that plays by itself
LONGEST = 3600.0
"""Most seconds that a run should take if nobody has chosen how far a step goes, at speed 1."""


@dataclass(frozen=True, slots=True, order=True)
class Cursor:
    """A place in a run: the ops up to and including `op` of visit `visit` have been done."""

    visit: int
    op: int


class Granularity(StrEnum):
    """How far one step goes."""

    OP = "op"
    TILE = "tile"
    ROW_BLOCK = "row block"
    HEAD = "head"


@dataclass(frozen=True, slots=True)
class Playhead:
    """A place in the time of a run that plays."""

    cursor: Cursor  # the end of the step that is under way
    done: float  # seconds of this step that have passed at speed 1: 0 at its beginning


def first_cursor() -> Cursor:
    """Return the start of a run, where its first op has been done."""
    return Cursor(0, 0)


def last_cursor(program: TileProgram) -> Cursor:
    """Return the end of a run, where everything has been done."""
    return end_of_visit(program, len(program) - 1)


def end_of_visit(program: TileProgram, index: int) -> Cursor:
    """Return the cursor at which visit `index` is done."""
    return Cursor(index, len(program.ops(index)) - 1)


def clamped(program: TileProgram, cursor: Cursor) -> Cursor:
    """Return the nearest cursor that exists."""
    visit = min(max(cursor.visit, 0), len(program) - 1)
    return Cursor(visit, min(max(cursor.op, 0), len(program.ops(visit)) - 1))


def step(program: TileProgram, cursor: Cursor, by: Granularity, forward: bool = True) -> Cursor:
    """Return the cursor one step away; at either end it is the same cursor.

    By op, the next or previous op. By tile, the end of the next or previous visit. By row block (by
    column block if that is the outer loop) or by head, a step forward leads to the end of the first
    visit of the next one; a step back leads to the end of the first visit of this one, then of the
    previous one.
    """
    at = cursor.visit
    if by is Granularity.OP:
        return _step_op(program, cursor, forward)
    if by is Granularity.TILE:
        if forward and cursor < end_of_visit(program, at):
            return end_of_visit(program, at)
        target = at + (1 if forward else -1)
    else:
        target = _next_outer(program, at, by) if forward else _previous_outer(program, at, by)
    if target >= len(program):
        return last_cursor(program)
    return first_cursor() if target < 0 else end_of_visit(program, target)


def path_between(program: TileProgram, start: Cursor, end: Cursor, most: int) -> tuple[Cursor, ...]:
    """Return the cursors that lead from one to another, forwards or backwards.

    start, end: two cursors of the program; the path leaves out `start` and includes `end`.
    most: most cursors, at least 1: op by op if so many are enough, otherwise tile by tile,
        otherwise this many tiles at equal distances.
    """
    forward = end >= start
    path: list[Cursor] = []
    across = abs(end.visit - start.visit)
    if across <= most:
        at = start
        while at != end and len(path) <= most:
            at = _step_op(program, at, forward)
            path.append(at)
        if len(path) <= most:
            return tuple(path)
    stops = min(across, most)
    sign = 1 if forward else -1
    visits = (start.visit + sign * round(across * n / stops) for n in range(1, stops))
    return (*(end_of_visit(program, visit) for visit in visits), end)


def usual_step(program: TileProgram) -> Granularity:
    """Return the smallest step with which a run plays in a sensible time, at most a row block."""
    tiles = len(program)
    ops = tiles * len(program.ops(tiles // 2))
    for steps, by in ((ops, Granularity.OP), (tiles, Granularity.TILE)):
        if steps * SECONDS_PER_OP <= LONGEST:
            return by
    return Granularity.ROW_BLOCK


def seconds_of(op: Op) -> float:
    """Return how long an op lasts at speed 1."""
    if op.turns is not None:
        return SECONDS_PER_TURN
    if op.gesture is Gesture.SHRINK:
        return SECONDS_PER_OP if op.seldom else SECONDS_PER_RESCALE
    return SECONDS_PER_MOVE if (op.loads or op.stores) and op.moves else SECONDS_PER_OP


def seconds_to(program: TileProgram, cursor: Cursor, by: Granularity) -> float:
    """Return how long the step that leads to a cursor lasts at speed 1."""
    if by is not Granularity.OP:
        return SECONDS_PER_OP
    return seconds_of(program.ops(cursor.visit)[cursor.op])


def follows(program: TileProgram, before: Cursor, cursor: Cursor) -> bool:
    """Return whether a cursor is exactly one op after another."""
    return _step_op(program, before, forward=True) == cursor != before


def seconds_between(program: TileProgram, before: Cursor, cursor: Cursor) -> float:
    """Return how long the way from one cursor to another lasts at speed 1, as one step."""
    by_op = follows(program, before, cursor)
    return seconds_to(program, cursor, Granularity.OP if by_op else Granularity.TILE)


def seconds_along(
    program: TileProgram,
    start: Cursor,
    path: Sequence[Cursor],
    pace: float,
    of_rescale: Callable[[Cursor], float | None],
) -> list[float]:
    """Return how long the start of a way and each of its steps last at speed 1.

    of_rescale: returns how long the op at a cursor lasts, if it is a rescale.
    pace: how many times as fast as usual the steps are, before all together are scaled to last
        `LONGEST_WAY` at most.
    """
    lasts = [
        ((follows(program, here, there) and of_rescale(there))
         or seconds_between(program, here, there)) / pace
        for here, there in pairwise((start, *path))
    ]  # fmt: skip
    scale = min(LONGEST_WAY / (SECONDS_PER_OP + sum(lasts)), 1.0)
    return [scale * seconds for seconds in (SECONDS_PER_OP, *lasts)]


def advanced(program: TileProgram, head: Playhead, seconds: float, by: Granularity) -> Playhead:
    """Return the playhead some seconds later, at speed 1; at the end the last step is done."""
    cursor, done = head.cursor, head.done + seconds
    if by is Granularity.OP:
        return _advanced_by_ops(program, cursor, done)
    while done >= SECONDS_PER_OP:
        following = step(program, cursor, by)
        if following == cursor:
            return Playhead(cursor, SECONDS_PER_OP)
        cursor, done = following, done - SECONDS_PER_OP
    return Playhead(cursor, done)


def _advanced_by_ops(program: TileProgram, cursor: Cursor, done: float) -> Playhead:
    """Return the playhead after `done` seconds; a visit's ops are asked for once."""
    visit, op, ops = cursor.visit, cursor.op, program.ops(cursor.visit)
    while done >= (lasts := seconds_of(ops[op])):
        if op + 1 < len(ops):
            op += 1
        elif visit + 1 < len(program):
            visit, op = visit + 1, 0
            ops = program.ops(visit)
        else:
            return Playhead(Cursor(visit, op), lasts)
        done -= lasts
    return Playhead(Cursor(visit, op), done)


def share(program: TileProgram, head: Playhead, by: Granularity) -> float:
    """Return how much of the step under way has been done, 0 to 1."""
    return min(max(head.done / seconds_to(program, head.cursor, by), 0.0), 1.0)


def moved(time: float) -> float:
    """Return how much of a motion is to be seen at a share of its time: at its end, it rests."""
    return min(max(time / MOVING, 0.0), 1.0)


def eased(share: float) -> float:
    """Return the progress of a motion at a share of its time: slow at both ends."""
    return 4 * share**3 if share < 0.5 else 1 - (2 - 2 * share) ** 3 / 2


@dataclass(frozen=True, slots=True)
class Rescaling:
    """How far each part of a rescale has come, 0 to 1."""

    near: float  # the camera and the veil over other rows, which go again at the end
    passed: float  # the parts of bars above the old maximum
    named: float  # the chip with alpha, above 1 while it swings in
    risen: float  # the maximum, from the old to the new one: old sums shrink by alpha**risen
    joined: float  # the tile's own weights, which stand up one after the other
    gone: float  # the chip, which fades
    lit: bool  # whether alpha is lit, in formula, code and board


def rescaling(share: float) -> Rescaling:
    """Return the parts of a rescale at a share of its motion, one after the other."""
    ms = share * _MOTION_MS - _COMES_MS

    def part(begin: float, end: float) -> float:
        return min(max((ms - begin) / (end - begin), 0.0), 1.0)

    comes, goes = part(-_COMES_MS, 0), part(3000, _MOTION_MS - _COMES_MS)
    return Rescaling(
        near=eased(comes) - eased(goes),
        passed=1 - (1 - part(0, 250)) ** 3,
        named=_swung(part(600, 800)),
        risen=eased(part(*_PRESS)),
        joined=part(2400, 3000),
        gone=part(2400, 2700),
        lit=600 <= ms < 2400,
    )


def stood(count: int, joined: float) -> list[float]:
    """Return how far each of `count` weights has stood up, one after the other, 0 to 1."""
    parts = (min(max(joined * count / _UPRIGHT - n, 0.0), 1.0) for n in range(count))
    return [1 - (1 - part) ** 3 for part in parts]


def played(share: float, seconds: float) -> float:
    """Return which share of a rescale's time is shown when a share of its seconds has passed.

    seconds: how long it is shown; a fast rescale plays its press alone, a very fast one nothing.
    """
    if seconds >= SECONDS_PER_RESCALE / WHOLE_UP_TO:
        return share
    if seconds < SECONDS_PER_PRESS / PRESS_UP_TO:
        return 1.0
    begin, end = ((_COMES_MS + ms) / (1000 * SECONDS_PER_RESCALE) for ms in _PRESS)
    return begin + (end - begin) * share if share < 1 else 1.0


def in_two_states(share: float) -> float:
    """Return which of two shares of a rescale's time is shown where nothing is to move.

    First a score stands above the line; then the line is at the top, and old sums have shrunk.
    """
    if share >= 1:
        return 1.0
    ms = _STILLS[share >= 0.5]
    return (_COMES_MS + ms) / (1000 * SECONDS_PER_RESCALE)


def _swung(part: float) -> float:
    """Return the progress of a motion that goes a little too far and swings back."""
    return 1 + 2.70158 * (part - 1) ** 3 + 1.70158 * (part - 1) ** 2 if part else 0.0


_MOTION_MS = 1000 * SECONDS_PER_RESCALE * MOVING
_COMES_MS = 250  # how long the camera comes to the row before its rescale begins, at 0 ms
_PRESS = 900, 2300  # when the maximum rises, in milliseconds
_STILLS = 600, 2350
_UPRIGHT = 0.8  # share of the joining time in which weights stand up; then all rests


def _step_op(program: TileProgram, cursor: Cursor, forward: bool) -> Cursor:
    if forward:
        if cursor.op + 1 < len(program.ops(cursor.visit)):
            return Cursor(cursor.visit, cursor.op + 1)
        return Cursor(cursor.visit + 1, 0) if cursor.visit + 1 < len(program) else cursor
    if cursor.op:
        return Cursor(cursor.visit, cursor.op - 1)
    return end_of_visit(program, cursor.visit - 1) if cursor.visit else cursor


def _bounds(program: TileProgram, index: int, by: Granularity) -> tuple[int, int]:
    """Return the first visit of the outer block or head that `index` is in, and of the next."""
    return program.head_bounds(index) if by is Granularity.HEAD else program.block_bounds(index)


def _next_outer(program: TileProgram, index: int, by: Granularity) -> int:
    return _bounds(program, index, by)[1]


def _previous_outer(program: TileProgram, index: int, by: Granularity) -> int:
    start = _bounds(program, index, by)[0]
    if index > start:
        return start
    return _bounds(program, start - 1, by)[0] if start else -1
