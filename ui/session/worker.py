"""Engine work outside of the GUI thread: one thread, and only the latest job of each kind."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from PySide6.QtCore import QObject, Signal, SignalInstance


class Attended(Protocol):
    """Work beside the session's own."""

    @property
    def settled(self) -> bool:
        """Whether nothing runs or waits."""

    def stop(self) -> None:
        """End the work for good."""


class Worker(QObject):
    """Runs jobs one after another in its own thread.

    A job that waits is replaced by a later one of the same kind, so that stepping quickly
    never queues work. Results come back as signals, in the thread that made the worker.
    """

    finished = Signal(str, object)  # kind and result of a job
    failed = Signal(str, object)  # kind and exception of a job
    idle = Signal()  # no job is left; it comes after the last result

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs: dict[str, Callable[[], Any]] = {}
        self._changed = threading.Condition()
        self._stopping = False
        self._working = False
        self._started = self._told = 0
        self.finished.connect(self._count)
        self.failed.connect(self._count)
        self._thread = threading.Thread(target=self._loop, name="engine", daemon=True)
        self._thread.start()

    def submit(self, kind: str, job: Callable[[], Any]) -> None:
        """Run `job` soon, instead of a job of the same kind that is still waiting."""
        with self._changed:
            self._jobs.pop(kind, None)
            self._jobs[kind] = job
            self._changed.notify()

    def drop(self, kind: str) -> None:
        """Forget a job that is still waiting."""
        with self._changed:
            self._jobs.pop(kind, None)

    @property
    def busy(self) -> bool:
        """Whether a job runs or waits."""
        with self._changed:
            return self._working or bool(self._jobs)

    @property
    def settled(self) -> bool:
        """Whether nothing runs or waits and every result has been reported, or nobody listens."""
        with self._changed:
            done = not self._working and not self._jobs and self._started == self._told
            return done or self._stopping

    def _count(self, kind: str, result: object) -> None:
        self._told += 1

    def stop(self) -> None:
        """Drop all jobs; the result of the job that runs is not awaited or reported."""
        with self._changed:
            self._stopping = True
            self._jobs.clear()
            self._changed.notify()

    def _loop(self) -> None:
        while True:
            with self._changed:
                self._working = False
                if not self._jobs and not self._stopping:
                    self.idle.emit()
                while not self._jobs and not self._stopping:
                    self._changed.wait()
                if self._stopping:
                    return
                kind = next(iter(self._jobs))
                job = self._jobs.pop(kind)
                self._working = True
                self._started += 1
            self._do(kind, job)
            del job  # frees its memory: the next job may come much later

    def _do(self, kind: str, job: Callable[[], Any]) -> None:
        try:
            result = job()
        except Exception as error:  # every failure is reported, and none ends the thread
            self._report(self.failed, kind, error)
        else:
            self._report(self.finished, kind, result)

    def _report(self, signal: SignalInstance, kind: str, result: object) -> None:
        with self._changed:
            if not self._stopping:  # afterwards this object may be deleted
                signal.emit(kind, result)
