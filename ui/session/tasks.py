"""Work that takes long: in another thread, with progress, time left and a way to stop it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

from PySide6.QtCore import QObject, QTimer, Signal

from simulator.base.errors import InputError
from simulator.run.trace import Trace
from ui.safety.log import LOG
from ui.session.worker import Worker

Report = Callable[[float], None]
"""Called with the share done, 0 to 1; raises `Cancelled` when the work is no longer wanted."""
_TELL_EVERY = 0.05  # seconds between two reports of progress that are passed on
_SHOW_EVERY = 0.03  # seconds between two partial results that are shown


Found = TypeVar("Found")
Found_co = TypeVar("Found_co", covariant=True)


class Derivation(Protocol[Found_co]):
    """How a study computes a result that a panel shows of a run."""

    name: str  # name of the study; only the latest result of each study counts
    doing: str  # text for the user during the work

    def results(self, trace: Trace, needs: Any, report: Report) -> Iterator[Found_co]:
        """Yield partial results, then the whole one; they depend only on the run and `needs`."""


class Cancelled(Exception):  # noqa: N818 - it is no error
    """The work is no longer wanted."""


@dataclass(slots=True)
class _Task:
    words: str
    done: Callable[[Any], object]
    refused: Callable[[InputError], object] | None
    aside: bool
    stopped: threading.Event = field(default_factory=threading.Event)
    started: float = 0.0
    told: float = 0.0


class Tasks(QObject):
    """Long pieces of work, one after another; only the latest of each kind counts.

    Views still come in the meantime, because they have another `Worker`.
    """

    progressed = Signal(str, float, float)
    """Words for the task at work, its share done, and the seconds left (NaN: not known yet)."""
    failed = Signal(object)  # the exception of a task
    rested = Signal()  # no work is left
    met = Signal(str, object)
    """Kind of a task and a function that shows a partial result, from the task's thread."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tasks: dict[str, _Task] = {}
        self._shown = 0.0
        self._seen = threading.Event()
        self._seen.set()
        self.met.connect(self._show)
        self._worker = Worker(self)
        self._worker.finished.connect(self._finished)
        self._worker.failed.connect(self._failed)
        self._worker.idle.connect(self._rest)

    def start(
        self,
        kind: str,
        words: str,
        job: Callable[[Report], Any],
        done: Callable[[Any], object],
        *,
        refused: Callable[[InputError], object] | None = None,
        aside: bool = False,
    ) -> None:
        """Do some work, which replaces earlier work of its kind.

        kind: kind of work; only the latest of each kind is finished.
        words: text for the user during the work, such as ``running to the next row``.
        job: does the work in the other thread; gets a `Report`, which it calls often.
        done: gets the result, in this thread, unless the task was cancelled or replaced.
        refused: gets an `InputError` that the job raises, in place of a result; by default the
            task has failed.
        aside: whether the result is no part of the picture in the window, as with an export.
        """
        self._stop(kind)
        task = self._tasks[kind] = _Task(words, done, refused, aside)

        def report(share: float) -> None:
            if task.stopped.is_set():
                raise Cancelled
            now = time.monotonic()
            if now - task.told > _TELL_EVERY:
                task.told = now
                spent = now - task.started
                left = spent * (1 - share) / share if share > 0 else float("nan")
                self.progressed.emit(words, share, left)

        def run() -> tuple[_Task, Any]:
            task.started = task.told = time.monotonic()
            LOG.info("%s: begun", words)
            try:
                report(0.0)
                result = job(report)
            except Cancelled:
                task.stopped.set()
                LOG.info("%s: cancelled", words)
                return task, None
            except InputError as error:
                if refused is None:
                    raise
                LOG.info("%s: refused: %s", words, error)
                return task, error
            LOG.info("%s: done in %.1f s", words, time.monotonic() - task.started)
            return task, result

        self._worker.submit(kind, run)

    def derive(
        self, study: Derivation[Found], trace: Trace, needs: Any, done: Callable[[Found], None],
        so_far: Callable[[Found], None],
    ) -> None:  # fmt: skip
        """Compute for a study.

        `done` gets the result, unless the work was cancelled or replaced.
        `so_far` gets partial results, as often as they can be shown.
        """

        def job(report: Report) -> Found:
            results = study.results(trace, needs, report)
            found = next(results)
            for after in results:
                self.show(study.name, partial(so_far, found))
                found = after
            return found

        self.start(study.name, study.doing, job, done)

    def show(self, kind: str, what: Callable[[], None]) -> None:
        """Let the window show a partial result of some work; call this for every one.

        A result is skipped while the window is still showing the last one, or has just shown it,
        and when the work of this kind has been stopped.
        """
        now = time.monotonic()
        if self._seen.is_set() and now - self._shown > _SHOW_EVERY:
            self._seen.clear()
            self._shown = now
            self.met.emit(kind, what)

    def _show(self, kind: str, what: Callable[[], None]) -> None:
        if kind in self._tasks:  # otherwise the window may be gone already
            what()
        QTimer.singleShot(0, self._seen.set)

    def cancel(self, kind: str | None = None) -> None:
        """Stop the work of a kind, or all work; its result is dropped."""
        # Work that has not begun ends here: the thread will report nothing.
        if self._stop(kind) and self._worker.settled:
            self.rested.emit()

    def _stop(self, kind: str | None) -> bool:
        """Stop the work of a kind, or all work; return whether there was some."""
        found = False
        for name in list(self._tasks) if kind is None else [kind]:
            task = self._tasks.pop(name, None)
            if task is not None:
                task.stopped.set()
                self._worker.drop(name)
                found = True
        return found

    @property
    def shown(self) -> bool:
        """Whether the picture in the window awaits no task."""
        return all(task.aside for task in self._tasks.values())

    @property
    def settled(self) -> bool:
        """Whether nothing runs or waits and every result has been reported."""
        return self._worker.settled

    def close(self) -> None:
        """Stop everything."""
        self._stop(None)
        self._worker.stop()

    def _finished(self, kind: str, result: tuple[_Task, Any]) -> None:
        task, value = result
        if not task.stopped.is_set() and self._tasks.get(kind) is task:
            del self._tasks[kind]
            if task.refused is not None and isinstance(value, InputError):
                task.refused(value)
            else:
                task.done(value)

    def _rest(self) -> None:
        if self._worker.settled:  # otherwise more work has been started since
            self.rested.emit()

    def _failed(self, kind: str, error: Exception) -> None:
        self._tasks.pop(kind, None)
        LOG.info("%s: failed: %s", kind, error)
        self.failed.emit(error)
