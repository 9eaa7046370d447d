"""How errors in our code are handled: stopped at Qt's calls, or raised for code that makes a file.

These are the two ways. In other places, unknown errors are caught only if they are passed on
unchanged (a worker's failure, a command's trial), or if another library may raise anything.

No error may leave a method that Qt calls. PySide 6.10 keeps an error that leaves an override and
raises it when the next call into Qt returns, and overrides that Qt calls in the meantime crash the
process. `Border` catches the error and reports it once to `sys.excepthook`, which `crash` has set.
`@guarded` does this for every override (`overrides`), and `painting` for methods that paint, whose
painter has to end, too (`painting`). Slots need neither, because PySide reports their errors to the
hook.

Code that makes a picture or a film has to know of errors, because no file may be half right:
`raising` raises the errors that were caught at the border and in slots in the meantime. `Errand`
raises the errors of a thread for which this code waits.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, TypeVar

from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from simulator.base.errors import refuse

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class _Failure:
    """An error at the border without its frames, which would keep the painted widgets alive."""

    where: str
    error: BaseException
    trace: str


@dataclass(slots=True)
class _Waiting:
    """Collects errors for code that waits for them."""

    border: list[_Failure] = field(default_factory=list)
    slots: list[Exception] = field(default_factory=list)

    def take(
        self, kind: type[BaseException], error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Receive an error from a slot, or from the work itself."""
        if isinstance(error, Exception):
            error.add_note("".join(traceback.format_exception(kind, error, trace)))
            self.slots.append(error.with_traceback(None))
        sys.last_value = sys.last_traceback = None


_told: set[tuple[object, ...]] = set()
"""Hook, kind and lines of errors that have been told: a panel may be painted 60 times a second."""
_waiting: list[_Waiting] = []  # the code that waits for errors; the innermost is told


class Border:
    """Qt's border: an error that is raised inside is reported and goes no further."""

    __slots__ = ("_what", "failed")

    def __init__(self, what: object) -> None:
        self._what = what
        self.failed = False

    def __enter__(self) -> Border:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if error is not None:
            self.failed = True
            _tell(self._what, error)
        return True


def _tell(what: object, error: BaseException) -> None:
    """Report an error at the border: to the code that waits for it, else once to the hook."""
    trace = error.__traceback__
    if _waiting:
        where = type(what).__name__
        if isinstance(what, QWidget) and isValid(what):
            where = what.accessibleName() or what.objectName() or where
        text = "".join(traceback.format_exception(error))
        _waiting[-1].border.append(_Failure(where, error.with_traceback(None), text))
        return
    lines = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(trace)]
    key = (sys.excepthook, type(error).__name__, *lines)
    if key not in _told or not isinstance(error, Exception):
        _told.add(key)
        with suppress(Exception):
            sys.excepthook(type(error), error, trace)


@contextmanager
def raising() -> Iterator[None]:
    """Raise at the end the errors inside Qt, which otherwise are only reported.

    The frames of the error are not kept, because they contain painters, which must not live longer
    than the device they paint on. The text of the traceback becomes a note.

    Raises Exception: the error of a slot, or of the work itself.
    """
    found = _Waiting()
    _waiting.append(found)
    before, sys.excepthook = sys.excepthook, found.take
    try:
        yield
    except Exception as error:
        found.take(type(error), error, error.__traceback__)
    finally:
        sys.excepthook = before
        _waiting.remove(found)
    if found.slots:
        raise found.slots[0]
    if not found.border:
        return
    first = found.border[0]
    if not isinstance(first.error, Exception):
        raise first.error
    why = f"{type(first.error).__name__}: {first.error}"
    refusal = refuse("picture", first.where, why, "a panel that can be drawn")
    refusal.add_note(first.trace)
    raise refusal


class Errand(threading.Thread, Generic[Result]):
    """Work in another thread, whose error is raised with its result; `failed` is called there."""

    def __init__(
        self, name: str, job: Callable[[], Result], failed: Callable[[], Any] = lambda: None
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._job, self._failed = job, failed
        self._results: list[Result] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        """Do the work."""
        try:
            self._results.append(self._job())
        except BaseException as error:
            self._error = error
            self._failed()

    def check(self) -> None:
        """Raise the error of the work, if there is one."""
        if self._error is not None:
            raise self._error

    def result(self) -> Result:
        """Return the result of the work, after it has ended."""
        self.check()
        return self._results[0]
