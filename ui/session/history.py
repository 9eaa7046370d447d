"""The steps of undo, and the parts of a session that a new run keeps."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtGui import QUndoCommand, QUndoStack

from simulator.problem.scenario import Batch, Scenario, with_values
from simulator.program.playback import Cursor, clamped, first_cursor
from simulator.run.cell_values import exists
from simulator.run.snapshot import Cell
from simulator.run.trace import Trace
from ui.safety.overrides import guarded

if TYPE_CHECKING:
    from ui.session.session import Session


MOST_STEPS = 100  # steps of undo: each keeps two scenarios


@dataclass(slots=True)
class File:
    """The file of a scenario and of all scenarios made from it, also after undo."""

    path: Path | None = None  # set by saving; None if there is no file yet
    opened: Scenario | None = None  # the scenario in the file, with its own title
    # the batches in which the user has gone to another sequence, and for each the sequence that
    # the file's author has chosen
    gone_to: dict[Batch, int | None] = field(default_factory=dict)


_CHANGED = " (changed)"


def retitled(scenario: Scenario, shown: Scenario, opened: Scenario | None) -> Scenario:
    """Return a changed scenario with a title that is still true.

    A title belongs to the run for which it was written. If anything but the GPU has been changed
    since, the title says so; if the run is again the one that was opened, it gets its old title. A
    title that somebody has just written stays as it is.
    """
    if not shown.title or scenario.title != shown.title:
        return scenario
    plain = shown.title.removesuffix(_CHANGED)
    own = opened is not None and opened.title.removesuffix(_CHANGED) == plain
    if opened is not None and own and _run_of(scenario) == _run_of(opened):
        return with_values(scenario, {"title": opened.title})
    if _run_of(scenario) == _run_of(shown):
        return scenario
    return with_values(scenario, {"title": plain + _CHANGED})


def _run_of(scenario: Scenario) -> dict[str, object]:
    """Return the fields on which the numbers and the bytes of a run depend."""
    return scenario.model_dump(exclude={"title", "hardware"})


@dataclass(frozen=True, slots=True)
class Aside:
    """The state before a lesson: its run, file and place, and its undo steps."""

    trace: Trace
    file: File
    cursor: Cursor
    row: int
    cell: Cell | None
    stack: Steps


class Steps(QUndoStack):
    """The undo stack, and the index that is shown.

    Qt counts a step as undone at once, but its run has to be built first. Building takes a moment,
    and the run may be refused, or another run may be asked for in the meantime.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.setUndoLimit(MOST_STEPS)
        self._shown = self._counted = 0
        self.indexChanged.connect(self._count)
        self.going_back = False  # whether steps are only counted, not shown

    @property
    def moving(self) -> bool:
        """Whether the run of another step than the one shown is being built."""
        return self.index() != self._shown

    def show(self) -> None:
        """Note that the stack's index is shown now."""
        self._shown = self.index()

    def count_as_shown(self, index: int) -> None:
        """Set the stack to an index that is shown again, without building a run."""
        self.going_back = True
        self.setIndex(index)
        self.going_back = False
        self.show()

    def _count(self, index: int) -> None:
        """Note a step that builds nothing as shown, unless a run is awaited."""
        passed = range(*sorted((self._counted, index)))
        if self._counted == self._shown and all(
            isinstance(self.command(n), AtOnce) for n in passed
        ):
            self._shown = index
        self._counted = index

    def return_to_show(self) -> None:
        """Return to the index that is shown; undo and redo that are under way are dropped."""
        if self.moving:
            self.count_as_shown(self._shown)


class AtOnce(QUndoCommand):
    """A step that builds no run: its change is seen as soon as the step is counted."""


@guarded
class Change(QUndoCommand):
    """One scenario and its file, replaced by another; undo builds the old run again."""

    def __init__(self, session: Session, trace: Trace, file: File, what: str) -> None:
        super().__init__(what)
        assert session.scenario is not None
        self._session = session
        self._steps = session.undo_stack
        self._before = session.scenario, session.file
        self._after = trace.workload.scenario, file
        self._trace: Trace | None = trace

    def redo(self) -> None:
        if self._trace is None:
            self._show(*self._after)
        else:  # the first time, the trace is already there
            trace, self._trace = self._trace, None
            self._session.file = self._after[1]
            self._session.show_trace(trace)

    def undo(self) -> None:
        self._show(*self._before)

    def _show(self, scenario: Scenario, file: File) -> None:
        if self._steps.going_back:
            return

        def accept(trace: Trace) -> None:
            self._session.file = file
            self._steps.show()
            self._session.show_trace(trace)
            self._session.file_changed.emit()

        self._session.build(scenario, accept, undo=True)


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
