"""Where the next step leads: cursors, granularity and speed, without a clock or a window."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from simulator.program.tile_program import TileProgram

SPEEDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
"""Speeds of playing; at speed 1 an op takes `SECONDS_PER_OP`."""
SECONDS_PER_OP = 0.5


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

    Parameters
    ----------
    program : TileProgram
        The run.
    start, end : Cursor
        Two cursors of it; the first is left out, the last is included.
    most : int
        Most cursors, at least 1: op by op if that is enough, otherwise tile by tile, otherwise this
        many tiles at equal distances.
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
