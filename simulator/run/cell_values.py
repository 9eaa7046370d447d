"""The number in one cell at a cursor, exactly as the engine has it, and its state in words."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from simulator.base.dtypes import F32, round_to
from simulator.problem.tiling import TileKind
from simulator.problem.workload import Workload
from simulator.program.algorithms import TENSORS, algorithm_of
from simulator.program.tensors import GATE, symbol
from simulator.run.snapshot import Cell, Snapshot


@dataclass(frozen=True, slots=True)
class CellValue:
    """One cell at a cursor."""

    cell: Cell
    tensor: str  # the tensor there now: ``P`` instead of S when there are exponentials
    # a float32, as the engine has it; None while there is none, or where none is kept
    value: float | None
    state: str  # in words, where it is or why it is not there
    called: str = ""  # the name of the number there, if not the tensor's

    @property
    def name(self) -> str:
        """The cell as the papers write it: ``S[12, 5]``, ``m[12]``."""
        return cell_name(self.cell, self.called or self.tensor)


def cell_name(cell: Cell, tensor: str = "") -> str:
    """Return a cell as the papers write it, ``S[12, 5]``, ``ℓ[12]``, or as another tensor's."""
    places = [cell.split] * (cell.split is not None) + list(cell.at.values())
    return f"{symbol(tensor or cell.tensor)}[{', '.join(map(str, places))}]"


def cell_shape(w: Workload, tensor: str) -> tuple[int, int]:
    """Return rows and columns of a tensor of one head, as `Cell` counts them."""
    lengths = [w.sizes[axis] for axis in TENSORS[tensor].axes if axis != "split"]
    rows, cols = [*lengths, 1][:2]
    return rows, cols


def exists(w: Workload, cell: Cell) -> bool:
    """Return whether a workload has a cell."""
    rows, cols = cell_shape(w, cell.tensor)
    algorithm = algorithm_of(w)
    if cell.tensor in algorithm.missing or "page" in cell.spec.axes:  # no number of the run
        return False
    if cell.tensor == GATE.name:
        return w.gated and 0 <= cell.row < rows and 0 <= cell.col < cols
    if cell.spec.at:
        named = (*algorithm.gates, *algorithm.tensors, *algorithm.chip)
        return cell.spec in named and 0 <= cell.row < rows and 0 <= cell.col < cols
    read = {spec.name for spec in (*algorithm.inputs, *algorithm.gates)}
    if "key" in cell.at and "row" not in cell.at and cell.tensor not in read:
        return False
    of_rows = "key" not in cell.at and cell.split is None
    if of_rows and cell.tensor not in (*read, *algorithm.row_numbers):
        return False
    deals = cell.split is None or (algorithm_of(w).splits and 0 <= cell.split < w.splits)
    return deals and 0 <= cell.row < rows and 0 <= cell.col < cols


def moved_cell(w: Workload, cell: Cell, across: int, down: int) -> Cell:
    """Return the cell at a distance to the right and below, as the board draws them.

    K and V are drawn transposed there, so keys go from left to right. The cell stops at the edges.
    """
    if "row" not in cell.at:
        across, down = down, across
    rows, cols = cell_shape(w, cell.tensor)
    row = min(max(cell.row + down, 0), rows - 1)
    return replace(cell, row=row, col=min(max(cell.col + across, 0), cols - 1))


def tile_of(w: Workload, cell: Cell) -> tuple[int | None, int | None]:
    """Return the row and the column block that a cell belongs to; None if there is none."""
    row, key = cell.at.get("row"), cell.at.get("key")
    return None if row is None else row // w.rows, None if key is None else key // w.cols


def cell_value(snapshot: Snapshot, cell: Cell) -> CellValue:
    """Return the number in a cell of the current head at the cursor."""
    if cell.split is not None:
        return _partial_value(snapshot, cell, cell.split)
    if cell.tensor in snapshot.inputs:
        return _input_value(snapshot, cell)
    if cell.spec.at or cell.tensor in _given_columns(snapshot):
        return _gradient_value(snapshot, cell)
    return _score_value(snapshot, cell) if cell.spec.of_pairs else _result_value(snapshot, cell)


# --- Q, K, V ----------------------------------------------------------------------------------


def _input_value(snapshot: Snapshot, cell: Cell) -> CellValue:
    own = snapshot.visit.rows if "row" in cell.at else snapshot.visit.cols
    held = any(tile.name == cell.tensor for tile in snapshot.on_chip)
    state = "in shared memory" if held and cell.row in own else "in HBM"
    if snapshot.op.before_tiles:
        state = "before the tiles"
    value = float(snapshot.inputs[cell.tensor][cell.row, cell.col])
    return CellValue(cell, cell.tensor, value, state)


# --- gradients --------------------------------------------------------------------------------


def _given_columns(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the numbers of rows that a backward pass reads or makes."""
    algorithm = snapshot.program.algorithm
    return algorithm.columns if algorithm.backward else ()


def _gradient_value(snapshot: Snapshot, cell: Cell) -> CellValue:
    """Return a number that a backward pass makes, or the sum that still stands in its place."""
    visit, head = snapshot.visit, snapshot.head
    own = visit.rows if "row" in cell.at else visit.cols
    here = cell.row in own and (not cell.spec.of_pairs or cell.col in visit.cols)
    column = cell.col - (visit.cols.start if cell.spec.of_pairs else 0)
    for name in _forms(snapshot, cell) if here else ():
        values = snapshot.state.get(name)
        if values is not None and len(values) == len(own):
            value = float(values.reshape(len(own), -1)[cell.row - own.start, column])
            held = any(tile.name == name for tile in snapshot.on_chip)
            called = snapshot.program.algorithm.called(name)
            return CellValue(cell, name, value, "on chip" if held else "used, or in HBM", called)
    if head is None or cell.tensor not in {**head.pairs, **head.results}:
        words = "not there yet" if here else "numbers are kept for the current tile alone"
        return CellValue(cell, cell.tensor, None, words)
    i, j = tile_of(snapshot.program.workload, cell)
    if cell.spec.of_pairs:
        return _used_pair(snapshot, cell)
    value = float(head.results[cell.tensor][cell.row, cell.col])
    if np.isnan(value):
        return CellValue(cell, cell.tensor, None, "not there yet")
    in_hbm = not {*_forms(snapshot, cell)}.isdisjoint(snapshot.program.tensors)
    where = f"of {f'column block {j}' if i is None else f'row block {i}'}, "
    where += "as it lies in HBM" if in_hbm else "used and dropped"
    return CellValue(cell, _form_in_hbm(snapshot, cell), value, where)


def _used_pair(snapshot: Snapshot, cell: Cell) -> CellValue:
    """Return a number of a pair of another tile, which has been dropped or lies in HBM."""
    assert snapshot.head is not None
    i, j = cell.row // snapshot.program.workload.rows, cell.col // snapshot.program.workload.cols
    value = float(snapshot.head.pairs[cell.tensor][cell.row, cell.col])
    if np.isnan(value) or not was_visited(snapshot, i, j):
        words = "skipped: never loaded" if np.isnan(value) else "not loaded yet"
        return CellValue(cell, cell.tensor, None, f"tile ({i}, {j}) is {words}")
    program, visit = snapshot.program, snapshot.visit
    writers = (n for n, launch in enumerate(program.launches) if cell.tensor in launch.writes)
    if (writer := next(writers, None)) is None:
        return CellValue(cell, cell.tensor, value, f"tile ({i}, {j}) was used and dropped")
    index = program.index(visit.head, i, j, writer)
    if index is None or index >= visit.index:
        return CellValue(cell, cell.tensor, None, f"tile ({i}, {j}) is not computed yet")
    return CellValue(cell, cell.tensor, value, f"tile ({i}, {j}) lies in HBM")


def _forms(snapshot: Snapshot, cell: Cell) -> tuple[str, ...]:
    """Return the tensors that may lie in a cell: its own, and tensors shown in its place."""
    algorithm = snapshot.program.algorithm
    own = dict.fromkeys((*algorithm.tensors, *algorithm.chip))
    return (cell.tensor, *(spec.name for spec in own if spec.at == cell.tensor))


def _form_in_hbm(snapshot: Snapshot, cell: Cell) -> str:
    """Return the tensor in a cell of another block: its own, or the sum that will become it."""
    program, visit = snapshot.program, snapshot.visit
    launches = enumerate(program.launches)
    writer = next((n for n, launch in launches if cell.tensor in launch.writes), -1)
    i, j = tile_of(program.workload, cell)
    done = i < visit.i if i is not None else j is not None and j < visit.j
    stored = visit.launch > writer or (visit.launch == writer and done)
    return cell.tensor if stored else _forms(snapshot, cell)[-1]


# --- S and P ----------------------------------------------------------------------------------


def in_current_tile(snapshot: Snapshot, cell: Cell) -> bool:
    """Return whether a cell of S lies in the tile that the current visit works on."""
    visit = snapshot.visit
    launch = snapshot.launch
    algorithm = snapshot.program.algorithm
    forms = not launch.combines and (algorithm.softmax or launch.carries) and algorithm.forms
    return forms and cell.row in visit.rows and cell.col in visit.cols


def why_not_formed(snapshot: Snapshot, cell: Cell) -> str:
    """Return why a cell of S has no number; empty if its tile is one of a chunk with itself."""
    w = snapshot.program.workload
    if snapshot.program.algorithm.softmax:
        return ""
    if not w.chunked:
        return "never formed: rows read a state that all keys are added to"
    i, j = cell.row // w.rows, cell.col // w.cols
    if i == j and snapshot.program.algorithm.forms:
        return ""
    if j <= i:
        return "never formed: the key is in the state that this row reads"
    return "hidden by the mask"


def was_visited(snapshot: Snapshot, i: int, j: int) -> bool:
    """Return whether tile (i, j) of S was worked on before the current visit."""
    visit, forming = snapshot.visit, snapshot.program.forming
    if visit.launch != forming:
        return visit.launch > forming
    by_rows = snapshot.program.launches[forming].by_rows
    return (i, j) < (visit.i, visit.j) if by_rows else (j, i) < (visit.j, visit.i)


def _score_value(snapshot: Snapshot, cell: Cell) -> CellValue:
    w, visit = snapshot.program.workload, snapshot.visit
    i, j = cell.row // w.rows, cell.col // w.cols
    if in_current_tile(snapshot, cell):
        return _current_score(snapshot, cell)
    if why := why_not_formed(snapshot, cell):
        return CellValue(cell, "S", None, why)
    if not snapshot.stores_scores and w.grid.kind(i, j) is TileKind.SKIPPED:
        return CellValue(cell, "S", None, f"tile ({i}, {j}) is skipped: never loaded")
    if not was_visited(snapshot, i, j):
        return CellValue(cell, "S", None, f"tile ({i}, {j}) is not loaded yet")
    is_p = not snapshot.stores_scores or visit.launch == 2 or (visit.launch == 1 and i < visit.i)
    tensor = "P" if is_p else "S"
    where = f"tile ({i}, {j}) {'lies in HBM' if snapshot.stores_scores else 'was used and dropped'}"
    if snapshot.head is None:
        return CellValue(cell, tensor, None, f"{where}: go there to see its numbers")
    values = snapshot.head.p if is_p else snapshot.head.s
    return CellValue(cell, tensor, float(values[cell.row, cell.col]), where)


def _current_score(snapshot: Snapshot, cell: Cell) -> CellValue:
    visit = snapshot.visit
    r, c = cell.row - visit.rows.start, cell.col - visit.cols.start
    found = snapshot.newest_pairs
    if found is not None:
        tensor, values = found
        return CellValue(cell, tensor, float(values[r, c]), _current_state(snapshot, tensor))
    if snapshot.stores_scores and visit.launch == 2:
        return CellValue(cell, "P", None, "in HBM, not read yet")
    return CellValue(cell, "S", None, "not computed yet")


def _current_state(snapshot: Snapshot, tensor: str) -> str:
    if any(tile.name == tensor for tile in snapshot.on_chip):
        return "of the current tile, on chip"
    if snapshot.made("O"):
        return "added to O, then dropped"
    if snapshot.program.algorithm.backward:
        return "of the current tile, used and dropped"
    return "of the current tile, in HBM"


# --- what splits leave ------------------------------------------------------------------------


def _partial_value(snapshot: Snapshot, cell: Cell, split: int) -> CellValue:
    partials, visit = snapshot.partials, snapshot.visit
    if cell.row not in visit.rows:
        words = "numbers are kept for the current row block alone"
        return CellValue(cell, cell.tensor, None, words)
    if partials is None or not partials.stored[split]:
        return CellValue(cell, cell.tensor, None, f"split {split} has not left it yet")
    numbers = partials.o[..., cell.col] if "value" in cell.at else partials.lse
    held = any(tile.name == cell.tensor for tile in snapshot.on_chip)
    value = float(numbers[split, cell.row - visit.rows.start])
    return CellValue(cell, cell.tensor, value, "on chip, to be joined" if held else "in HBM")


# --- m, l, O ----------------------------------------------------------------------------------


def row_numbers(snapshot: Snapshot) -> dict[str, F32]:
    """Return m, l and O of the current row block, as far as they exist, (r, n) each."""
    return {
        name: stored_output(snapshot, values) if values.ndim == 2 else values[:, None]
        for name, values in snapshot.results.items()
    }


def is_wrong(snapshot: Snapshot, cell: Cell) -> bool:
    """Return whether a fault has made a number in m, l or O wrong: NaN is then a number, too."""
    wrong = snapshot.wrong
    if wrong is None:
        return False
    row = cell.row if snapshot.head is not None else cell.row - snapshot.visit.rows.start
    marks = wrong.results[cell.tensor]
    return 0 <= row < len(marks) and bool(marks[row, cell.col])


def stored_output(snapshot: Snapshot, o: F32) -> F32:
    """Return O of the current row block; once it has been stored, rounded as it is in HBM."""
    w = snapshot.program.workload
    if not snapshot.stored("O") or algorithm_of(w).normalises_each_tile:
        return o
    with np.errstate(all="ignore"):  # a fault may have made it too large for the dtype
        return round_to(o, w.dtype)


def _result_value(snapshot: Snapshot, cell: Cell) -> CellValue:
    w, visit = snapshot.program.workload, snapshot.visit
    here = cell.row in visit.rows
    value: float | None = None
    if here:
        found = row_numbers(snapshot).get(cell.tensor)
        value = None if found is None else float(found[cell.row - visit.rows.start, cell.col])
    elif snapshot.head is not None:
        value = float(snapshot.head.results[cell.tensor][cell.row, cell.col])
    else:
        words = "numbers are kept for the current row block alone"
        return CellValue(cell, cell.tensor, None, words)
    if value is None or np.isnan(value):
        if not is_wrong(snapshot, cell):
            return CellValue(cell, cell.tensor, None, "not there yet")
        value = float("nan")
    if here:
        held = any(tile.name == cell.tensor for tile in snapshot.on_chip)
        state = "of the current row block" + (", on chip" if held else "")
    else:
        i = cell.row // w.rows
        finished = not algorithm_of(w).normalises_each_tile and i < visit.i
        state = f"of row block {i}" + (", finished" if finished else ", as it lies in HBM")
    return CellValue(cell, cell.tensor, value, state)
