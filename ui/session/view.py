"""What is shown: the state at the cursor, and what panels need in addition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from simulator.lesson.places import Framing, Pointer
from simulator.program.playback import Cursor
from simulator.run.row_report import RowReport, row_report
from simulator.run.snapshot import Cell, Snapshot
from simulator.run.trace import Trace
from simulator.study.compare import at_scale

Model = TypeVar("Model")

Make = Callable[[Trace, Snapshot, RowReport], Model]
"""Makes what a panel needs beyond the snapshot; quickly, because it is made with each view."""


@dataclass(frozen=True, slots=True)
class Need(Generic[Model]):
    """What a panel needs beyond the snapshot: the key to its model in a view, and how it is made.

    Attributes
    ----------
    name : str
        Name of the panel.
    make : callable
        Makes it, in the engine's thread.
    """

    name: str
    make: Make[Model]


def nothing(trace: Trace, snapshot: Snapshot, report: RowReport) -> None:
    """Make the model of a panel that needs no more than the view; it is never asked for."""


@dataclass(frozen=True, slots=True)
class View:
    """What is shown.

    Attributes
    ----------
    snapshot : Snapshot
        The state at the cursor.
    report : RowReport
        The row that the softmax panel explains.
    cell : Cell or None
        The cell that is selected, of the current head.
    models : mapping
        What the visible panels need beyond the snapshot; `model` returns one of them with its type.
    points : tuple of Pointer
        What a lesson points at.
    camera : Framing or None
        What of the score matrix a lesson wants to be in sight; None: what the user chose.
    before : Snapshot or None
        The state that was shown before, if the snapshot is one op after it and the motion between
        them is shown; None: the snapshot is shown at once.
    elsewhere : int or None
        The row that was chosen, if it is in another row block, so that the report is of another
        row; None: it is the row of the report, or nobody has chosen one since.
    """

    snapshot: Snapshot
    report: RowReport
    cell: Cell | None = None
    models: Mapping[Need[Any], Any] = field(default_factory=dict)
    points: tuple[Pointer, ...] = ()
    camera: Framing | None = None
    before: Snapshot | None = None
    elsewhere: int | None = None

    def model(self, need: Need[Model]) -> Model:
        """Return what was made for a need.

        Raises
        ------
        KeyError
            It was not yet needed when the view was asked for.
        """
        made: Any = None if need.make is nothing else self.models[need]
        model: Model = made
        return model

    def has(self, need: Need[Any]) -> bool:
        """Return whether what a panel needs is there."""
        return need.make is nothing or need in self.models


def make_view(
    trace: Trace,
    at: Cursor,
    row: int,
    cell: Cell | None,
    needs: tuple[Need[Any], ...],
    points: tuple[Pointer, ...],
    camera: Framing | None,
    *,
    chosen: bool = False,
) -> View:
    """Compute what is shown at a cursor, in the engine's thread; `chosen`: the row, by hand."""
    snapshot = trace.snapshot(at.visit, at.op)
    report = row_report(snapshot, row)
    at_scale(trace.program)  # kept with the run: painters would be long in finding it
    made = {need: need.make(trace, snapshot, report) for need in needs}
    elsewhere = row if chosen and row not in snapshot.visit.rows else None
    return View(snapshot, report, cell, made, points, camera, elsewhere=elsewhere)
