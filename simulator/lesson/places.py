"""Places of a run in the words of a lesson: where a step is and what it points at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simulator.base.errors import refuse
from simulator.code.paper import PAPERS
from simulator.program.playback import Cursor, end_of_visit, first_cursor, last_cursor
from simulator.program.tile_program import TileProgram
from simulator.run.cell_values import cell_shape, exists
from simulator.run.snapshot import Cell

if TYPE_CHECKING:
    from simulator.lesson.tables import CameraTable, PlaceTable, PointTable


@dataclass(frozen=True, slots=True)
class Pointer:
    """One thing that a step points at; the other fields are None."""

    tile: tuple[int, int] | None = None  # row block and column block
    row: int | None = None  # query row
    cell: Cell | None = None  # a cell of the current head
    # place in the lines of the algorithm's paper, from 0, as `code_lines` counts them
    line: int | None = None
    # the comment beside the barrier that is taken out of the algorithm's kernel; "" for none
    barrier: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a number comes from."""

    points: tuple[Pointer, ...]  # on the board
    setting: str = ""  # a number of the scenario by its name in texts; "" for none


@dataclass(frozen=True, slots=True)
class NumberPlace:
    """A number in a step's text that has an origin."""

    part: str  # which text: ``caption`` or ``answer``
    start: int  # its first letter
    text: str  # the number as the text writes it
    origin: Origin


@dataclass(frozen=True, slots=True)
class Framing:
    """The part of the score matrix in sight, as far as the shape of the board allows."""

    # rows, keys: first and last, from 0; they may reach beyond the matrix
    rows: tuple[float, float]
    keys: tuple[float, float]


def cursor_of(program: TileProgram, place: PlaceTable, here: Cursor, key: str) -> Cursor:
    """Return the cursor that a place means."""
    if place.end:
        return first_cursor() if place.end == "first" else last_cursor(program)
    index = here.visit
    if place.visit is not None:
        index = place.visit
    elif place.tile is not None:
        index = _visit_of(program, place, key)
    if index >= len(program):
        raise refuse("", f"{key}.visit", index, f"0 to {len(program) - 1}")
    if place.op is None:
        return end_of_visit(program, index)
    names = [op.name for op in program.ops(index)]
    if isinstance(place.op, str):
        if place.op not in names:
            raise refuse("", f"{key}.op", place.op, f"one of {', '.join(names)} at this visit")
        return Cursor(index, names.index(place.op))
    if place.op >= len(names):
        raise refuse("", f"{key}.op", place.op, f"0 to {len(names) - 1} at this visit")
    return Cursor(index, place.op)


def _visit_of(program: TileProgram, place: PlaceTable, key: str) -> int:
    assert place.tile is not None
    w, (i, j) = program.workload, place.tile
    limits = (("head", place.head, w.heads), ("launch", place.launch, len(program.launches)))
    for name, number, count in limits:
        if number >= count:
            raise refuse("", f"{key}.{name}", number, f"0 to {count - 1}")
    _check_tile(program, place.tile, f"{key}.tile")
    index = program.index(place.head, i, j, place.launch)
    if index is None:
        raise refuse("", f"{key}.tile", list(place.tile), "a tile that is visited")
    return index


def _check_tile(program: TileProgram, tile: tuple[int, int], key: str) -> None:
    grid = program.workload.grid
    if tile[0] >= grid.Tr or tile[1] >= grid.Tc:
        raise refuse("", key, list(tile), f"a tile of {grid.Tr} x {grid.Tc}")


def framing_of(program: TileProgram, camera: CameraTable) -> Framing:
    """Return the part of the score matrix that a step wants in sight."""
    w = program.workload
    if camera.tile is None:
        return whole(program)
    _check_tile(program, camera.tile, "camera.tile")
    spans = []
    for block, size in zip(camera.tile, (w.rows, w.cols), strict=True):
        middle = (block + 0.5) * size
        spans.append((middle - camera.tiles * size / 2, middle + camera.tiles * size / 2))
    return Framing(*spans)


def whole(program: TileProgram) -> Framing:
    """Return the framing of all rows and keys."""
    w = program.workload
    return Framing((0, w.seqlen_q), (0, w.seqlen_k))


def pointer_of(program: TileProgram, point: PointTable) -> Pointer:
    """Return the thing that a step points at."""
    w = program.workload
    if point.tile is not None:
        _check_tile(program, point.tile, "point.tile")
        return Pointer(tile=point.tile)
    if point.row is not None:
        if point.row >= w.seqlen_q:
            raise refuse("", "point.row", point.row, f"0 to {w.seqlen_q - 1}")
        return Pointer(row=point.row)
    if point.cell is not None:
        cell = Cell(*point.cell)
        if not exists(w, cell):
            rows, cols = cell_shape(w, cell.tensor)
            raise refuse("", "point.cell", list(point.cell), f"a cell of {rows} x {cols}")
        return Pointer(cell=cell)
    if point.barrier is not None:
        return Pointer(barrier=point.barrier)
    labels = [line.label for line in PAPERS[w.algorithm].lines]
    if point.line not in labels:
        raise refuse("", "point.line", point.line, f"one of {', '.join(labels)}")
    return Pointer(line=labels.index(point.line))
