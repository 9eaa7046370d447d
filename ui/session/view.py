"""The view: the state at the cursor, and the models that panels need in addition."""

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
"""Makes a panel's model beyond the snapshot; quickly, because each view needs a new one."""


@dataclass(frozen=True, slots=True)
class Need(Generic[Model]):
    """A panel's need beyond the snapshot: the key to its model, and the function that makes it."""

    name: str  # name of the panel
    make: Make[Model]  # makes the model, in the engine's thread


def nothing(trace: Trace, snapshot: Snapshot, report: RowReport) -> None:
    """Stand for the model of a panel that needs no more than the view; never called."""


@dataclass(frozen=True, slots=True)
class View:
    """The state at the cursor, and the models that panels in sight need beside it."""

    snapshot: Snapshot  # the state at the cursor
    report: RowReport  # the row that the softmax panel explains
    cell: Cell | None = None  # the cell that is selected, of the current head
    # the models of visible panels beyond the snapshot; `model` returns one of them with its type
    models: Mapping[Need[Any], Any] = field(default_factory=dict)
    points: tuple[Pointer, ...] = ()  # the pointers of a lesson
    # the part of the score matrix that a lesson frames; None: the user's choice
    camera: Framing | None = None
    # the state that was shown before, if the snapshot is one op after it and the motion between
    # them is shown; None: the snapshot is shown at once
    before: Snapshot | None = None
    # the chosen row, if it is in another row block, so that the report explains another row;
    # None: the report explains the chosen row, or no row has been chosen since
    elsewhere: int | None = None

    def model(self, need: Need[Model]) -> Model:
        """Return the model that was made for a need.

        Raises KeyError: no panel had this need when the view was asked for.
        """
        made: Any = None if need.make is nothing else self.models[need]
        model: Model = made
        return model

    def has(self, need: Need[Any]) -> bool:
        """Return whether the model of a need is there."""
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
    """Compute the view at a cursor, in the engine's thread; `chosen`: the row, by hand."""
    snapshot = trace.snapshot(at.visit, at.op)
    snapshot.seconds  # noqa: B018 - it may take long, and is kept
    report = row_report(snapshot, row)
    at_scale(trace.program)  # kept with the run: too slow for painters
    made = {need: need.make(trace, snapshot, report) for need in needs}
    elsewhere = row if chosen and row not in snapshot.visit.rows else None
    return View(snapshot, report, cell, made, points, camera, elsewhere=elsewhere)
