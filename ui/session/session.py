"""The session behind the window: a scenario, its trace, a cursor and a row; no widget."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

from PySide6.QtCore import QEventLoop, QObject, QTimer, Signal
from PySide6.QtGui import QUndoGroup

from kernels.errors import comes_from_device
from simulator.base.errors import InputError, refuse, safe_text
from simulator.lesson.places import Framing, Pointer
from simulator.problem.scenario import Scenario, load_scenario, save_scenario
from simulator.problem.workload import Workload
from simulator.program.playback import Cursor, clamped, end_of_visit, first_cursor
from simulator.run.cell_values import exists, moved_cell
from simulator.run.snapshot import Cell
from simulator.run.trace import Trace
from simulator.study.compare import EngineRun, run_all
from simulator.study.what_if import asked
from ui.safety.heap import give_back
from ui.session.engines import Engines
from ui.session.history import Aside, Change, File, Steps, carried, kept_cell, retitled
from ui.session.model_choice import ModelChoice
from ui.session.painting import MaskPainting
from ui.session.playing import Playing
from ui.session.reading import Reading
from ui.session.runs import RunUntil, Stop
from ui.session.sequences import Sequences
from ui.session.tasks import Derivation, Found, Report, Tasks
from ui.session.view import Need, View, make_view, nothing
from ui.session.what_if import Before, WhatIfs
from ui.session.worker import Attended, Worker

Accept = Callable[[Trace], None]  # receives a trace when it is built
_MOST_READ = 4096  # rows whose tokens `telling_row` looks through


class Session(Playing):
    """Takes the user's requests and gives immutable views.

    The user asks for a new scenario or a new cursor; the `Worker` computes both. A scenario that
    cannot be used changes nothing and is reported by `refused`.
    """

    view_changed = Signal(object)  # the new `View`
    trace_changed = Signal(object)  # the new `Trace`, before its first view
    refused = Signal(object)  # the `InputError` of a scenario that cannot be used
    withdrawn = Signal()  # a refused entry is no longer in its field
    undo_changed = Signal()  # another step, or none, can be undone
    open_wanted = Signal(object)
    """The path of a file that a panel offers; the window asks about unsaved changes first."""
    word_asked = Signal(str)  # the name of a word of the glossary about which a panel was asked
    file_changed = Signal()  # the scenario's file, or whether the scenario differs from it
    fell_back = Signal(str)  # in words, that a device has failed and NumPy continues
    working = Signal(bool)  # whether the engine has been at work for long enough to say so

    def __init__(
        self,
        engine: str | Engines = "auto",
        parent: QObject | None = None,
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(parent, now)
        self.engines = Engines(engine) if isinstance(engine, str) else engine
        self.file = File()
        self.model_choice = ModelChoice(self)
        self.trace: Trace | None = None
        self.view: View | None = None
        self.undo_group = QUndoGroup(self)
        self.undo_group.setActiveStack(Steps(self.undo_group))
        self.undo_group.cleanChanged.connect(self.file_changed)
        self.undo_group.canUndoChanged.connect(self.undo_changed)
        self.undo_group.undoTextChanged.connect(self.undo_changed)
        self._entry: Callable[[], bool] | None = None
        self._cursor = first_cursor()
        self._row = 0
        self._chosen = False  # whether the row was chosen by hand and is not explained yet
        self._cell: Cell | None = None
        self._points: tuple[Pointer, ...] = ()
        self._camera: Framing | None = None
        self._pointed = (self._cursor, self._row)  # the place of a lesson's pointers
        self._needs: dict[Need[Any], None] = {}
        self._others: list[Attended] = []
        self._accept: Accept | None = None
        self._worker = Worker(self)
        self._worker.finished.connect(self._finished)
        self._worker.failed.connect(self._failed)
        self._worker.idle.connect(self._rest)
        self.tasks = Tasks(self)
        self.reading = Reading(self)
        for tasks in (self.tasks, self.reading):
            tasks.failed.connect(lambda error: self._failed("task", error))
        self.runs = RunUntil(self)
        self.sequences = Sequences(self)
        self.painting = MaskPainting(self)
        self.what_ifs = WhatIfs(self, now)
        self._patience = QTimer(self, singleShot=True, interval=250)
        self._patience.timeout.connect(self._tell_working)

    # --- scenarios ------------------------------------------------------------------------

    @property
    def undo_stack(self) -> Steps:
        """The undo stack in use; a lesson has its own stack."""
        stack = self.undo_group.activeStack()
        assert isinstance(stack, Steps)
        return stack

    def hold(self, take_back: Callable[[], bool], on: bool) -> None:
        """Let undo first take back a refused entry, which is no step; or no longer, if not `on`."""
        self._entry = take_back if on else None
        self.undo_changed.emit()

    @property
    def undo_text(self) -> str | None:
        """The step that would be undone, in words; None if there is none."""
        if self._entry is not None:
            return "the refused entry"
        return self.undo_group.undoText() if self.undo_group.canUndo() else None

    def undo(self) -> None:
        """Take back a refused entry, or else the last step."""
        if self._entry is None or not self._entry():
            self.undo_stack.undo()

    @property
    def path(self) -> Path | None:
        """The scenario's file; None if it has none yet."""
        return self.file.path

    @property
    def scenario(self) -> Scenario | None:
        """The scenario that is shown."""
        return self.trace.workload.scenario if self.trace else None

    def open(self, path: Path) -> None:
        """Read a scenario file and show it; undo goes back to the previous one."""
        scenario = load_scenario(path)
        self.start(scenario, path)

    def start(
        self, scenario: Scenario, path: Path | None, *, telling: bool = False,
        at: tuple[Cursor, int] | None = None,
    ) -> None:  # fmt: skip
        """Show another scenario; `path` is None if it is not a file yet.

        telling: whether the `telling_row` is explained, not the row from before.
        at: the cursor and the row to show, or the nearest ones that exist.
        """
        what = f"open {safe_text(path.name)}" if path else "open"
        file = File(path, scenario)
        self._replace(scenario, file, what, opened=True, telling=telling, at=at)

    def propose(self, scenario: Scenario, what: str, *, what_if: bool = False) -> None:
        """Change the scenario, as a step that can be undone; `what` names the step.

        what_if: whether the scenario becomes a what-if where it disagrees with its file.
        """
        if self.scenario is not None:
            scenario = retitled(scenario, self.scenario, self.file.opened)
            self.sequences.note_said(scenario, self.scenario)
        if scenario != self.scenario:
            self._replace(scenario, self.file, what, opened=False, what_if=what_if)

    def _replace(
        self, scenario: Scenario, file: File, what: str, *, opened: bool, what_if: bool = False,
        telling: bool = False, at: tuple[Cursor, int] | None = None,
    ) -> None:  # fmt: skip
        self.reading.cancel()  # a file that is still being read comes too late

        def accept(trace: Trace) -> None:
            if telling:
                self._row = telling_row(trace.workload)
            if self.trace is None:
                self.file = file
                self.show_trace(trace)
            else:
                if not opened:
                    self.what_ifs.note(self._before(self.trace))
                steps = self.undo_stack
                steps.push(Change(self, trace, file, what))
                steps.show()
            if opened:
                self.undo_stack.setClean()
                self.first()
            if at is not None:
                self.go(at[0])
                self.choose_row(min(at[1], trace.workload.seqlen_q - 1))
            self.file_changed.emit()

        self.build(scenario, accept, what_if=what_if)

    def _before(self, trace: Trace) -> Before:
        """Return the state on show, for `return_to`."""
        here = (self._cursor, self._row) == self._pointed
        return Before(
            trace.workload.scenario, self.file, self._cursor, self._row, self._cell,
            self._points if here else (), self._camera, trace.workload, trace.program,
            self.undo_stack, self.undo_stack.index(),
        )  # fmt: skip

    def return_to(self, before: Before | None) -> None:
        """Return to the state before some steps, which are undone; None: call off."""
        if before is None:
            self._call_off()
            return

        def accept(trace: Trace) -> None:
            self.file, self._cursor, self._row = before.file, before.cursor, before.row
            self._cell, self._points, self._camera = before.cell, before.points, before.camera
            self._pointed = before.cursor, before.row
            before.steps.count_as_shown(before.index)
            self._take(trace)
            self.file_changed.emit()

        self.play(False)
        self.clock.finish()
        self.build(before.scenario, accept)

    def save(self, path: Path) -> None:
        """Write the scenario to `path` and make `path` its file.

        Raises InputError: the file cannot be written; the old file stays as it was.
        """
        if self.scenario is None:
            return
        written = self.sequences.authored(self.scenario)
        save_scenario(written, path)
        if self.undo_stack.moving:  # the scenario on show is written, not the awaited one
            self._call_off()
        self.file.path, self.file.opened = path, written
        self.undo_stack.setClean()
        self.file_changed.emit()

    def build(
        self, scenario: Scenario, accept: Accept, *, undo: bool = False, what_if: bool = False
    ) -> None:
        """Build a trace in the worker; `accept` gets the trace, unless another is asked for first.

        `undo` says that the undo stack asks; of several undo and redo steps the last counts.
        what_if: whether the scenario becomes a what-if where it disagrees with its file.
        """
        if not undo:
            self.undo_stack.return_to_show()
        self._accept = accept

        def job() -> tuple[Accept, Trace]:
            return accept, self.engines.trace(asked(scenario) if what_if else scenario)

        self._submit("trace", job)

    def run_of(self, scenario: Scenario) -> Trace:
        """Return the run of a scenario, beside the window: the run on show, or a new one."""
        trace = self.trace
        if trace is not None and trace.workload.scenario == scenario:
            return trace
        return self.engines.trace(scenario)

    def awaits(self, accept: Accept) -> bool:
        """Return whether `accept` still gets the trace that was asked for last."""
        return self._accept is accept

    def _call_off(self) -> None:
        """Discard the trace that was asked for."""
        self._accept = None
        self.undo_stack.return_to_show()

    @property
    def why(self) -> str:
        """In words, why this engine was chosen; empty if there is no reason."""
        return self.engines.why(self.trace.workload) if self.trace else self.engines.note

    def _fall_back(self, trace: Trace, error: Exception) -> None:
        """Continue with NumPy because a device has failed: the scenario and the cursor stay."""
        self.engines.give_up(trace.engine, error)
        self.fell_back.emit(f"{self.engines.note}: NumPy goes on.")
        self.build(trace.workload.scenario, self.show_trace)

    def show_trace(self, trace: Trace, cursor: Cursor | None = None) -> None:
        """Show another trace: at a cursor, or at the part of the matrix that is shown now."""
        if self.trace is not None:
            self._cursor = cursor or carried(self._cursor, self.trace, trace)
            self._cell = kept_cell(self._cell, trace)
        self._points, self._camera = (), None
        self._take(trace)

    def _take(self, trace: Trace) -> None:
        if self.trace is not None and self.trace is not trace:
            # Hidden panels, and a run that was set aside, may keep the trace for long. It is
            # forgotten in the engine's thread, because it may be at work there.
            self._worker.submit(f"forget {id(self.trace)}", partial(_forget, self.trace))
        self.trace, self._chosen = trace, False
        self.suit_step(trace.program)
        self._worker.drop("view")
        self.trace_changed.emit(trace)
        self._ask()

    # --- lessons --------------------------------------------------------------------------

    def show_place(
        self,
        scenario: Scenario,
        cursor: Cursor,
        row: int,
        points: tuple[Pointer, ...] = (),
        then: Accept = lambda trace: None,
        camera: Framing | None = None,
        trace: Trace | None = None,
    ) -> None:
        """Show a place of a scenario for a lesson; undo does not count this as a step.

        If the scenario is another one, earlier steps cannot be undone either: undo would show the
        scenario of one step under the words of the next.

        trace: the run, if it has been built ahead.
        """
        self.play(False)
        self.clock.finish()

        def accept(trace: Trace) -> None:
            self._cursor, self._row, self._cell, self._points = cursor, row, None, points
            self._camera, self._pointed, self._chosen = camera, (cursor, row), False
            if trace is self.trace:
                self._ask()
            else:
                self.file = File(opened=scenario)
                self.undo_stack.clear()
                self.undo_stack.show()
                self._take(trace)
                self.file_changed.emit()
            then(trace)

        if self.trace is not None and scenario == self.scenario:
            trace = self.trace
        if trace is not None:
            self._call_off()  # a run that was asked for earlier comes too late
            accept(trace)
        else:
            self.build(scenario, accept)

    def set_aside(self) -> Aside | None:
        """Return the state on show, for `put_back`; until then undo uses another stack."""
        if self.trace is None:
            return None
        self._call_off()
        kept = Aside(self.trace, self.file, self._cursor, self._row, self._cell, self.undo_stack)
        self.undo_group.setActiveStack(Steps(self.undo_group))
        return kept

    def put_back(self, kept: Aside) -> None:
        """Show the run that was set aside, as before."""
        self.play(False)
        borrowed = self.undo_stack
        self._accept = None
        self.file, self._points, self._camera = kept.file, (), None
        self._cursor, self._row, self._cell = kept.cursor, kept.row, kept.cell
        self.undo_group.setActiveStack(kept.stack)
        borrowed.deleteLater()
        self._take(kept.trace)
        self.file_changed.emit()

    def point_at_nothing(self) -> None:
        """Remove the marks of a lesson, and its camera."""
        if self._points or self._camera is not None:
            self._points, self._camera = (), None
            self._ask()

    def attend(self, other: Attended) -> None:
        """Count other work as the session's: `settle` waits for it, `close` ends it."""
        self._others.append(other)

    # --- cursor ---------------------------------------------------------------------------

    @property
    def cursor(self) -> Cursor:
        return self._cursor

    @property
    def row(self) -> int:
        """The query row that was asked for last."""
        return self._row

    def go(self, cursor: Cursor, seconds: float | None = None) -> None:
        if self.trace is not None:
            if self.sequences.moving:
                self._call_off()
            self._cursor = clamped(self.trace.program, cursor)
            self.clock.follow(self.trace.program, self._cursor, seconds)
            self._ask()

    def choose_row(self, row: int) -> None:
        """Explain another query row, as soon as its row block is at hand."""
        self._row, self._chosen = row, True
        self._ask()

    def explain(self, head: int, row: int, key: int | None = None) -> None:
        """Show a row of one of the picked heads at a key, or else in a tile of that row."""
        trace = self.trace
        if trace is None:
            return
        w, program, here = trace.workload, trace.program, trace.program.visit(self._cursor.visit)
        own = min(max(row + trace.single_heads[0].mask.shift, 0), w.seqlen_k - 1) // w.cols
        head, row = w.packed(head, row)
        for j in (here.j, own) if key is None else (key // w.cols,):
            visit = program.index(head, row // w.rows, j, here.launch)
            if visit is not None:
                self.go(end_of_visit(program, visit))
                break
        if key is None:
            self.choose_row(row)
        else:
            self.select(Cell("S", row, key))

    def select(self, cell: Cell | None) -> None:
        """Select a cell that the run has; its row is explained, too, except for K and V."""
        if cell is not None and (self.trace is None or not exists(self.trace.workload, cell)):
            return
        self._cell = cell
        if cell is not None and "row" in cell.at:
            self._row, self._chosen = cell.row, True
        self._ask()

    def move_selection(self, across: int, down: int) -> None:
        """Select the next cell to the right or below; at first, a cell of the current tile."""
        if self.trace is None or self.view is None:
            return
        if self._cell is None:
            visit = self.trace.program.visit(self._cursor.visit)
            self.select(Cell("S", self.view.report.row, visit.cols.start))
        else:
            self.select(moved_cell(self.trace.workload, self._cell, across, down))

    def want(self, need: Need[Any], on: bool = True) -> None:
        """Put the model of a need into every view from now on, or no longer."""
        if on and need.make is not nothing:
            self._needs[need] = None
            self._ask()
        else:
            self._needs.pop(need, None)

    def _ask(self, seek: Callable[[], Stop] | None = None) -> None:
        """Ask for the view at the cursor, or at the end of a search."""
        trace, cursor, row, cell = self.trace, self._cursor, self._row, self._cell
        needs, camera = tuple(self._needs), self._camera
        points = self._points if (cursor, row) == self._pointed else ()
        chosen = self._chosen
        if trace is None:
            return
        self.clock.follow(trace.program, cursor)

        def job() -> tuple[Trace, View, tuple[Cursor, Stop] | None]:
            found = (cursor, seek()) if seek else None
            at = found[1].cursor if found else cursor
            view = make_view(trace, at, row, cell, needs, points, camera, chosen=chosen)
            return trace, view, found

        self._submit("view", job)

    # --- playing --------------------------------------------------------------------------

    def play_on(self, cursor: Cursor, seek: Callable[[], Stop] | None = None) -> None:
        self._cursor = cursor
        self._ask(seek)

    def _arrive(self, asked: Cursor, stop: Stop) -> bool:
        """Move the cursor to the end of a step of playing, unless it has been moved since."""
        if self._cursor != asked:
            return False
        self._cursor = stop.cursor
        self.clock.found(stop.cursor)
        if stop.condition is not None:
            self.play(False)
            self.runs.stopped.emit(stop.condition.words)
            self.runs.play_ended.emit(stop)
        if self._worker.busy:  # another view of the place that the cursor has left
            self._ask()
        return True

    # --- worker ---------------------------------------------------------------------------

    def background(self, words: str, job: Callable[[Report], object]) -> None:
        """Do something that takes long beside the window; an `InputError` is reported."""
        self.tasks.start(words, words, job, lambda _: None, aside=True)

    def derive(
        self, study: Derivation[Found], needs: Any, done: Callable[[Found], None],
        so_far: Callable[[Found], None],
    ) -> None:  # fmt: skip
        """Compute for a study beside the window, with progress and a way to cancel."""
        if self.trace is not None:
            self.tasks.derive(study, self.trace, needs, done, so_far)

    def run_all(self, done: Callable[[dict[str, EngineRun]], None]) -> None:
        """Run each compared algorithm to its end on its engine, beside the window."""
        trace = self.trace
        if trace is not None:
            self.tasks.start(
                "run all", "running all algorithms",
                lambda report: run_all(trace, self.engines.make, report), done,
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
            if accept is self._accept:  # otherwise a later scenario has been asked for
                accept(trace)
        elif kind == "view":
            trace, view, found = cast(tuple[Trace, View, tuple[Cursor, Stop] | None], result)
            if trace is self.trace and (found is None or self._arrive(*found)):
                self._chosen = self._chosen and view.report.row != self._row
                self.view = self.clock.shown(view, self.view)
                self.view_changed.emit(self.view)
                self.clock.tell_shown(self.view)

    def _failed(self, kind: str, error: Exception) -> None:
        if kind == "trace":
            self.undo_stack.return_to_show()
            self.sequences.give_up()
        if isinstance(error, InputError):
            self.refused.emit(error)
        elif (
            (kind == "view" or comes_from_device(error))
            and self.trace
            and self.trace.engine.name != "numpy"
        ):
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
            loop.processEvents()  # a reported result may ask for more work
            if told and self.settled:
                return
            time.sleep(0.001)

    @property
    def busy(self) -> bool:
        return self._worker.busy

    @property
    def shown(self) -> bool:
        """Whether the picture has all results of the engine and of the panels."""
        return self._worker.settled and self.tasks.shown

    @property
    def settled(self) -> bool:
        """Whether no work runs or waits and every result has been reported."""
        workers = all(worker.settled for worker in (self._worker, *self._others))
        return workers and self.tasks.settled and self.reading.settled

    def close(self) -> None:
        """Stop playing and working."""
        self.clock.stop()
        self.tasks.close()
        self.reading.close()
        for worker in (self._worker, *self._others):
            worker.stop()


def _forget(trace: Trace) -> None:
    """Forget the values of a hidden run that can be computed again, and return their memory."""
    trace.forget()
    give_back()


def out_of_memory() -> InputError:
    """Return the error of a run that needs more memory than there is."""
    return refuse("scenario", "", "", "a problem that fits in memory")


def telling_row(w: Workload) -> int:
    """Return the row of “it”, whose weights say what the word stands for; 0 where there is none."""
    rows = range(min(w.seqlen_q, _MOST_READ))
    return next((row for row in rows if w.query_token(row) == "it"), 0)
