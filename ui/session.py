"""What the window is about: a scenario, its trace, a cursor and a row; no widget in sight."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from PySide6.QtCore import QEventLoop, QObject, QTimer, Signal
from PySide6.QtGui import QUndoCommand, QUndoStack

from kernels.registry import FAULTS_NOTE, choose_engine
from simulator.cell_values import exists, moved_cell
from simulator.compare import EngineRun, run_all
from simulator.engine import Engine, NumpyEngine
from simulator.errors import InputError, refuse
from simulator.playback import (
    SECONDS_PER_OP,
    SPEEDS,
    Granularity,
    clamped,
    end_of_visit,
    first_cursor,
    last_cursor,
    step,
)
from simulator.row_report import RowReport, row_report
from simulator.scenario import Scenario, load_scenario, save_scenario
from simulator.snapshot import Cell, Cursor, Snapshot
from simulator.trace import Trace, trace_of
from simulator.workload import Inputs, Workload, read_inputs, resolve
from ui.runs import Runs, Stop
from ui.tasks import Report, Tasks
from ui.worker import Worker

Accept = Callable[[Trace], None]
"""What takes a trace once it is built."""


@dataclass(frozen=True, slots=True)
class View:
    """What is on show.

    Attributes
    ----------
    snapshot : Snapshot
        The state at the cursor.
    report : RowReport
        The row that the softmax panel explains.
    cell : Cell or None
        The cell that is selected, of the current head.
    models : mapping
        What the panels in sight need beyond the snapshot, by the panel's name.
    """

    snapshot: Snapshot
    report: RowReport
    cell: Cell | None = None
    models: Mapping[str, object] = field(default_factory=dict)


Model = Callable[[Trace, Snapshot, RowReport], object]
"""Makes what a panel needs beyond the snapshot; in a few milliseconds, for it is made with it."""


class Session(QObject):
    """User intent in, immutable views out.

    Intent is a new scenario or a new cursor; both are worked out by the `Worker`. A scenario
    that cannot be used leaves everything as it was and is told through `refused`.
    """

    view_changed = Signal(object)
    """The new `View`."""
    trace_changed = Signal(object)
    """The new `Trace`, before its first view."""
    refused = Signal(object)
    """The `InputError` of a scenario that cannot be used."""
    playing_changed = Signal(bool)
    settings_changed = Signal()
    """Granularity or speed."""
    file_changed = Signal()
    """The scenario's file, or whether it differs from what is saved."""
    fell_back = Signal(str)
    """In words, that a device has failed and NumPy goes on."""
    working = Signal(bool)
    """Whether the engine has been at work for long enough to say so."""

    def __init__(self, engine: str = "auto", parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.engine = engine
        self.note = ""
        self.path: Path | None = None
        self.trace: Trace | None = None
        self.view: View | None = None
        self.granularity = Granularity.OP
        self.speed = 1.0
        self.undo_stack = QUndoStack(self)
        self.undo_stack.cleanChanged.connect(self.file_changed)
        self._cursor = first_cursor()
        self._row = 0
        self._cell: Cell | None = None
        self._models: dict[str, Model] = {}
        self._inputs: tuple[object, Inputs] | None = None
        self._accept: Accept | None = None
        self._worker = Worker(self)
        self._worker.finished.connect(self._finished)
        self._worker.failed.connect(self._failed)
        self._worker.idle.connect(self._rest)
        self.tasks = Tasks(self)
        self.tasks.failed.connect(lambda error: self._failed("task", error))
        self.runs = Runs(self)
        self._patience = QTimer(self, singleShot=True, interval=250)
        self._patience.timeout.connect(self._tell_working)
        self._clock = QTimer(self)
        self._clock.timeout.connect(self._tick)

    # --- scenarios ------------------------------------------------------------------------

    @property
    def scenario(self) -> Scenario | None:
        """The scenario on show."""
        return self.trace.workload.scenario if self.trace else None

    def open(self, path: Path) -> None:
        """Read a scenario file and show it; undo goes back to the one before.

        Raises
        ------
        InputError
            The file cannot be read; its input is checked later and told by `refused`.
        """
        scenario = load_scenario(path)
        self.start(scenario, path)

    def start(self, scenario: Scenario, path: Path | None) -> None:
        """Show another scenario; `path` None when it is not a file yet."""
        self._replace(scenario, path, f"open {path.name}" if path else "open", opened=True)

    def propose(self, scenario: Scenario, what: str) -> None:
        """Change the scenario, as a step that can be undone; `what` names it."""
        if scenario != self.scenario:
            self._replace(scenario, self.path, what, opened=False)

    def _replace(self, scenario: Scenario, path: Path | None, what: str, *, opened: bool) -> None:
        def accept(trace: Trace) -> None:
            if self.trace is None:
                self.path = path
                self._show_trace(trace)
            else:
                self.undo_stack.push(_Change(self, trace, path, what))
            if opened:
                self.undo_stack.setClean()
                self.first()
            self.file_changed.emit()

        self._build(scenario, accept)

    def save(self, path: Path) -> None:
        """Write the scenario to `path` and make that its file.

        Raises
        ------
        InputError
            The file cannot be written; what was there is as it was.
        """
        if self.scenario is None:
            return
        save_scenario(self.scenario, path)
        self.path = path
        self.undo_stack.setClean()
        self.file_changed.emit()

    def _build(self, scenario: Scenario, accept: Accept) -> None:
        self._accept = accept
        self._submit("trace", lambda: (accept, self._make_trace(scenario)))

    def _make_trace(self, scenario: Scenario) -> Trace:
        """Build a trace (in the worker); inputs that did not change are kept."""
        workload = resolve(scenario)
        key = _input_key(workload)
        if self._inputs is None or self._inputs[0] != key:
            self._inputs = (key, read_inputs(workload))
        return trace_of(workload, self._inputs[1], self._engine)

    def _engine(self, workload: Workload, inputs: Inputs) -> Engine:
        try:
            engine, note = choose_engine(self.engine, workload, inputs)
        except InputError:
            raise
        except Exception as error:  # a device fails in ways that only its driver knows
            if self.engine != "auto":
                raise refuse(
                    "--engine", "engine", self.engine, f"one that runs: {error}"
                ) from error
            engine, note = NumpyEngine(workload, inputs), f"the GPU failed ({error})"
        if not workload.faults.on:  # what is said then holds for this scenario alone
            self.note = self.note or note
        return engine

    @property
    def why(self) -> str:
        """In words, why this engine computes and no other; empty where there is no reason."""
        faults = self.trace is not None and bool(self.trace.workload.faults.on)
        return FAULTS_NOTE if faults else self.note

    def _fall_back(self, trace: Trace, error: Exception) -> None:
        """Go on with NumPy where a device has failed: the scenario and the cursor stay."""
        self.engine = "numpy"
        self.note = f"{trace.engine.device} failed ({error})"
        self.fell_back.emit(f"{self.note}: NumPy goes on.")
        self._build(trace.workload.scenario, self._show_trace)

    def _show_trace(self, trace: Trace) -> None:
        if self.trace is not None:
            self._cursor = _carried(self._cursor, self.trace, trace)
            self._cell = _kept(self._cell, trace)
        self.trace = trace
        self._worker.drop("view")
        self.trace_changed.emit(trace)
        self._ask()

    # --- cursor ---------------------------------------------------------------------------

    @property
    def cursor(self) -> Cursor:
        """The cursor asked for last; the view follows."""
        return self._cursor

    def go(self, cursor: Cursor) -> None:
        """Show the nearest existing cursor."""
        if self.trace is not None:
            self._cursor = clamped(self.trace.program, cursor)
            self._ask()

    def go_to_tile(self, i: int, j: int) -> None:
        """Show tile (i, j) of the current head and launch, if it is visited."""
        if self.trace is None:
            return
        program = self.trace.program
        here = program.visit(self._cursor.visit)
        index = program.index(here.head, i, j, here.launch)
        if index is not None:
            self.go(end_of_visit(program, index))

    def step(self, forward: bool = True, by: Granularity | None = None) -> None:
        """Go one step on or back."""
        if self.trace is not None:
            self.go(step(self.trace.program, self._cursor, by or self.granularity, forward))

    def first(self) -> None:
        """Go to the start."""
        self.go(first_cursor())

    def last(self) -> None:
        """Go to the end."""
        if self.trace is not None:
            self.go(last_cursor(self.trace.program))

    def choose_row(self, row: int) -> None:
        """Explain another query row."""
        self._row = row
        self._ask()

    def select(self, cell: Cell | None) -> None:
        """Select a cell that the run has; its row is explained too, unless it is of K or V."""
        if cell is not None and (self.trace is None or not exists(self.trace.workload, cell)):
            return
        self._cell = cell
        if cell is not None and cell.tensor not in "KV":
            self._row = cell.row
        self._ask()

    def move_selection(self, across: int, down: int) -> None:
        """Select the next cell to the right or below; the current tile's first to begin with."""
        if self.trace is None or self.view is None:
            return
        if self._cell is None:
            visit = self.trace.program.visit(self._cursor.visit)
            self.select(Cell("S", self.view.report.row, visit.cols.start))
        else:
            self.select(moved_cell(self.trace.workload, self._cell, across, down))

    def want(self, name: str, model: Model | None) -> None:
        """Put what a panel needs into every view from now on; None: not any more."""
        if model is None:
            self._models.pop(name, None)
        else:
            self._models[name] = model
            self._ask()

    def _ask(self, seek: Callable[[], Stop] | None = None) -> None:
        """Ask for the view at the cursor, or at where a search finds that playing comes to."""
        trace, cursor, row, cell = self.trace, self._cursor, self._row, self._cell
        models = dict(self._models)
        if trace is None:
            return

        def job() -> tuple[Trace, View, tuple[Cursor, Stop] | None]:
            found = (cursor, seek()) if seek else None
            at = found[1].cursor if found else cursor
            snapshot = trace.snapshot(at.visit, at.op)
            report = row_report(snapshot, row)
            made = {name: make(trace, snapshot, report) for name, make in models.items()}
            return trace, View(snapshot, report, cell, made), found

        self._submit("view", job)

    # --- playing --------------------------------------------------------------------------

    @property
    def playing(self) -> bool:
        """Whether the run plays."""
        return self._clock.isActive()

    def play(self, on: bool) -> None:
        """Start or stop playing; at the end it starts over."""
        if on == self.playing or self.trace is None:
            return
        if on:
            if self._cursor == last_cursor(self.trace.program):
                self.first()
            self._clock.start(self._interval())
        else:
            self._clock.stop()
        self.playing_changed.emit(on)

    def set_speed(self, speed: float) -> None:
        """Set how fast to play."""
        self.speed = speed
        self._clock.setInterval(self._interval())
        self.settings_changed.emit()

    def change_speed(self, faster: bool) -> None:
        """Take the next speed up or down."""
        place = SPEEDS.index(self.speed) + (1 if faster else -1)
        self.set_speed(SPEEDS[min(max(place, 0), len(SPEEDS) - 1)])

    def set_granularity(self, granularity: Granularity) -> None:
        """Set how far a step goes."""
        self.granularity = granularity
        self.settings_changed.emit()

    def _interval(self) -> int:
        return max(16, round(1000 * SECONDS_PER_OP / self.speed))

    def _tick(self) -> None:
        assert self.trace is not None
        if self._worker.busy:  # the engine is behind: wait for it rather than skip tiles
            return
        if self._cursor == last_cursor(self.trace.program):
            self.play(False)
        elif not self.runs.breakpoints:
            self.step()
        else:
            target = step(self.trace.program, self._cursor, self.granularity)
            self._ask(self.runs.step_to(self.trace, self._cursor, target))

    def _arrive(self, asked: Cursor, stop: Stop) -> bool:
        """Move the cursor to where a step of playing came to, unless it has been moved since."""
        if self._cursor != asked:
            return False
        self._cursor = stop.cursor
        if stop.condition is not None:
            self.play(False)
            self.runs.stopped.emit(stop.condition.words)
        if self._worker.busy:  # another view of the place that has been left
            self._ask()
        return True

    # --- worker ---------------------------------------------------------------------------

    def background(self, words: str, job: Callable[[Report], object]) -> None:
        """Run something that takes long beside the window; an `InputError` is told."""
        self.tasks.start(words, words, job, lambda _: None)

    def run_all(self, done: Callable[[dict[str, EngineRun]], None]) -> None:
        """Run naive and both FlashAttentions on their engines beside the window, to their ends.

        Parameters
        ----------
        done : callable
            Told what each came to, by algorithm, unless the runs were cancelled.
        """
        trace = self.trace
        if trace is not None:
            self.tasks.start(
                "run all", "running all three",
                lambda report: run_all(trace, self._engine, report), done,
            )  # fmt: skip

    def _submit(self, kind: str, job: Callable[[], object]) -> None:
        self._worker.submit(kind, job)
        if not self._patience.isActive():
            self._patience.start()

    def _tell_working(self) -> None:
        if self._worker.busy:
            self.working.emit(True)

    def _rest(self) -> None:
        self._patience.stop()
        self.working.emit(False)

    def _finished(self, kind: str, result: object) -> None:
        if kind == "trace":
            accept, trace = cast(tuple[Accept, Trace], result)
            if accept is self._accept:  # else a later scenario has been asked for meanwhile
                accept(trace)
        elif kind == "view":
            trace, view, found = cast(tuple[Trace, View, tuple[Cursor, Stop] | None], result)
            if trace is self.trace and (found is None or self._arrive(*found)):
                self.view = view
                self.view_changed.emit(view)

    def _failed(self, kind: str, error: Exception) -> None:
        if isinstance(error, InputError):
            self.refused.emit(error)
        elif kind == "view" and self.trace and self.trace.engine.name != "numpy":
            self._fall_back(self.trace, error)
        elif isinstance(error, MemoryError):
            self.refused.emit(out_of_memory())
        else:
            raise error

    def settle(self, seconds: float = 60.0) -> None:
        """Wait, with a running event loop, until all work is done and shown."""
        loop, deadline = QEventLoop(), time.monotonic() + seconds
        while time.monotonic() < deadline:
            told = self.settled
            loop.processEvents()  # what has been told may ask for more
            if told and self.settled:
                return
            time.sleep(0.001)

    @property
    def settled(self) -> bool:
        """Whether no work runs or waits and every result has been told."""
        return self._worker.settled and self.tasks.settled

    def close(self) -> None:
        """Stop playing and working."""
        self._clock.stop()
        self.tasks.close()
        self._worker.stop()


class _Change(QUndoCommand):
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
            self._session._show_trace(trace)

    def undo(self) -> None:
        self._show(*self._before)

    def _show(self, scenario: Scenario, path: Path | None) -> None:
        def accept(trace: Trace) -> None:
            self._session.path = path
            self._session._show_trace(trace)
            self._session.file_changed.emit()

        self._session._build(scenario, accept)


def out_of_memory() -> InputError:
    """Return the error for a run that needs more memory than there is."""
    return refuse("scenario", "", "", "a problem that fits in memory")


def _kept(cell: Cell | None, trace: Trace) -> Cell | None:
    """Return the cell if the new run has it."""
    return cell if cell is not None and exists(trace.workload, cell) else None


def _input_key(workload: Workload) -> object:
    """Return what Q, K and V depend on."""
    w, file = workload, workload.file
    stamp = (file.path, file.path.stat().st_mtime_ns) if file else w.scenario.input.seed
    shape = (w.seqlen_q, w.seqlen_k, w.head_dim, w.value_dim)
    return (stamp, shape, w.dtype, w.picked, w.kv_heads, w.input_heads)


def _carried(cursor: Cursor, old: Trace, new: Trace) -> Cursor:
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
