"""What of a snapshot the board shows where, before anything is painted."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.base.dtypes import F32
from simulator.problem.workload import Workload
from simulator.program.algorithms import TENSORS, algorithm_of
from simulator.program.tile_program import TileProgram, Visit
from simulator.run.cell_values import row_numbers
from simulator.run.snapshot import Snapshot
from simulator.run.trace import DETAIL_CELLS, DETAIL_TILES


def is_detailed(workload: Workload) -> bool:
    """Return whether the board shows cells: the rule by which snapshots carry all numbers."""
    grid = workload.grid
    cells = workload.seqlen_q * max(workload.seqlen_k, workload.value_dim)
    return cells <= DETAIL_CELLS and grid.Tr * grid.Tc <= DETAIL_TILES


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle of the score matrix whose tiles were worked on before the current one."""

    name: str  # ``S`` or ``P``: what it shows
    dropped: bool  # whether its numbers are gone from the machine; else they lie in HBM
    rows: range  # rows, cols: query rows and keys; skipped tiles among them stay as they are
    cols: range


def past_areas(snapshot: Snapshot) -> tuple[Area, ...]:
    """Return where tiles were worked on before the current one."""
    return areas_before(snapshot.program, snapshot.visit)


def areas_before(program: TileProgram, visit: Visit) -> tuple[Area, ...]:
    """Return where tiles were worked on: programs run in order, so it is a few rectangles."""
    w = program.workload
    stores = algorithm_of(w).stores_scores
    rows, cols = range(w.seqlen_q), range(w.seqlen_k)
    if algorithm_of(w).passes_pairs and not stores:  # a forward pass has left all of it
        return (Area("P", False, rows, cols),)
    if algorithm_of(w).backward and visit.launch != program.forming:
        return (Area("P", True, rows, cols),) * (visit.launch > program.forming)
    above, left = range(visit.rows.start), range(visit.cols.start)
    if stores and visit.launch == 1:
        below = range(visit.rows.stop, w.seqlen_q)
        return Area("P", False, above, cols), Area("S", False, below, cols)
    if stores and visit.launch == 2:
        return (Area("P", False, rows, cols),)
    if not algorithm_of(w).softmax:
        # Of a chunk with itself, as many as are drawn one by one.
        formed = w.chunked and algorithm_of(w).forms
        blocks = range(visit.i) if formed and w.grid.Tr * w.grid.Tc <= DETAIL_TILES else ()
        grid = w.grid
        return tuple(Area("P", True, grid.row_range(i), grid.col_range(i)) for i in blocks)
    if program.launches[visit.launch].combines:
        return (Area("P", True, rows, cols),)
    name, dropped = ("S", False) if stores else ("P", True)
    if program.launches[visit.launch].by_rows:
        return Area(name, dropped, above, cols), Area(name, dropped, visit.rows, left)
    return Area(name, dropped, rows, left), Area(name, dropped, above, visit.cols)


def current_values(snapshot: Snapshot) -> tuple[str, F32] | None:
    """Return what the current tile holds: ``P`` once there are exponentials, before that ``S``."""
    return snapshot.newest_pairs


def tensors_at_work(snapshot: Snapshot) -> frozenset[str]:
    """Return the tensors whose blocks the current visit works on."""
    algorithm = snapshot.program.algorithm
    if snapshot.op.before_tiles:
        return frozenset()
    if snapshot.launch.combines:
        return frozenset("O")
    if snapshot.launch.of_keys:
        return frozenset({algorithm.keys, algorithm.values})
    if algorithm.backward:
        return frozenset({*snapshot.launch.reads, *snapshot.launch.writes})
    if snapshot.launch.whole_rows and not snapshot.stores_scores:
        return frozenset("QO")
    if not snapshot.stores_scores:
        return frozenset({"O", *(spec.name for spec in algorithm.inputs)})
    return frozenset(("QK", "ml", "VO")[snapshot.visit.launch])


def moved_rows(snapshot: Snapshot) -> dict[str, range]:
    """Return the rows (keys for K and V) that the op just done moved, by tensor."""
    moves = snapshot.op.moves if snapshot.op.loads or snapshot.op.stores else ()
    return {move.tensor: move.rows for move in moves}


def numbers_in(snapshot: Snapshot, name: str) -> tuple[F32 | None, range]:
    """Return what the current rows, or keys, have in a box now, and which they are."""
    found, visit = row_numbers(snapshot).get(name), snapshot.visit
    if not snapshot.program.algorithm.backward:
        return found, visit.rows
    own = visit.cols if "key" in TENSORS[name].axes else visit.rows
    tensors = snapshot.program.algorithm.tensors
    forms = (name, *(spec.name for spec in tensors if spec.at == name))
    numbers = (snapshot.state.get(form) for form in forms)
    found = next((each for each in numbers if each is not None and len(each) == len(own)), None)
    return None if found is None else found.reshape(len(own), -1), own


def finished_rows(snapshot: Snapshot, name: str) -> tuple[range, ...]:
    """Return the rows outside the current row block that hold m, l or O already."""
    w, visit = snapshot.program.workload, snapshot.visit
    above, below = range(visit.rows.start), range(visit.rows.stop, w.seqlen_q)
    if snapshot.program.algorithm.backward:
        return _finished_by_backward(snapshot, name)
    if snapshot.stores_scores:
        if name == "O":
            return (above,) if visit.launch == 2 else ()
        return ((), (above,), (above, below))[visit.launch]
    if snapshot.launch.by_rows:
        return (above,) if snapshot.launch.writes_output else ()
    # flash1 wrote its blank m, l and O for all rows at the start.
    return above, below


def _finished_by_backward(snapshot: Snapshot, name: str) -> tuple[range, ...]:
    """Return the rows, or keys, of other blocks of which a backward pass has begun a result."""
    w, visit, launches = snapshot.program.workload, snapshot.visit, snapshot.program.launches
    by_key = "key" in TENSORS[name].axes
    own, count = (visit.cols, w.seqlen_k) if by_key else (visit.rows, w.seqlen_q)
    before, after = range(own.start), range(own.stop, count)
    tensors = snapshot.program.algorithm.tensors
    forms = {name, *(spec.name for spec in tensors if spec.at == name)}
    numbers = ({*each.writes, *each.makes} for each in launches)
    first = next((n for n, each in enumerate(numbers) if forms & each), -1)
    if visit.launch > first:
        here = ({*op.makes, *(move.tensor for move in op.moves)} for op in snapshot.ops)
        return (before, after) if any(forms & each for each in here) else (range(count),)
    return (before,) if visit.launch == first else ()
