"""What a session can go back to, and what it keeps from one run to the next."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtGui import QUndoCommand, QUndoStack

from simulator.cell_values import exists
from simulator.playback import clamped, first_cursor
from simulator.scenario import Scenario
from simulator.snapshot import Cell, Cursor
from simulator.trace import Trace

if TYPE_CHECKING:
    from ui.session import Session


@dataclass(frozen=True, slots=True)
class Aside:
    """What was on show before a lesson: its run, file and place, and what undo had."""

    trace: Trace
    path: Path | None
    cursor: Cursor
    row: int
    cell: Cell | None
    stack: QUndoStack


class Change(QUndoCommand):
    """One scenario, and its file, replaced by another; undo builds the old one anew."""

    def __init__(self, session: Session, trace: Trace, path: Path | None, what: str) -> None:
        super().__init__(what)
        assert session.scenario is not None
        self._session = session
        self._before = session.scenario, session.path
        self._after = trace.workload.scenario, path
        self._trace: Trace | None = trace

    def redo(self) -> None:
        if self._trace is None:
            self._show(*self._after)
        else:  # the first time the trace is at hand
            trace, self._trace = self._trace, None
            self._session.path = self._after[1]
            self._session.show_trace(trace)

    def undo(self) -> None:
        self._show(*self._before)

    def _show(self, scenario: Scenario, path: Path | None) -> None:
        def accept(trace: Trace) -> None:
            self._session.path = path
            self._session.show_trace(trace)
            self._session.file_changed.emit()

        self._session.build(scenario, accept)


def kept_cell(cell: Cell | None, trace: Trace) -> Cell | None:
    """Return the cell if the new run has it."""
    return cell if cell is not None and exists(trace.workload, cell) else None


def carried(cursor: Cursor, old: Trace, new: Trace) -> Cursor:
    """Return the cursor in `new` that looks at the same part of the matrix as in `old`."""
    visit = old.program.visit(cursor.visit)
    grid = new.workload.grid
    head = min(visit.head, new.workload.heads - 1)
    i = min(visit.rows.start, new.workload.seqlen_q - 1) // grid.rows
    j = min(visit.cols.start, new.workload.seqlen_k - 1) // grid.cols
    launch = min(visit.launch, len(new.program.launches) - 1)
    index = new.program.index(head, i, j, launch)
    if index is None:
        return clamped(new.program, Cursor(min(cursor.visit, len(new.program) - 1), cursor.op))
    at_start = cursor == first_cursor()
    return first_cursor() if at_start else clamped(new.program, Cursor(index, cursor.op))
