"""What becomes of a fault of ours: it is contained at Qt's border, or raised for who makes a file.

These are the two ways. Elsewhere what is not known is caught only where it is handed on as it is (a
worker's failure, a command's trial), or where a foreign library raises what it likes.

At Qt's border, in what Qt calls of ours, nothing may come out: PySide 6.10 keeps an error that
leaves an override and raises it where the next call into Qt returns, and overrides that Qt calls
meanwhile crash the process. `Border` keeps it in and tells `sys.excepthook`, where `crash` listens,
once. `@guarded` stands at the border for every override (`overrides`), `painting` for what paints,
whose painter has to end too (`painting`). Slots need neither: PySide tells the hook of them.

Who makes a picture or a film has to know, for none may be half right: `raising` gives it what went
wrong at the border and in slots meanwhile. What goes wrong in a thread that it waits for an
`Errand` gives it.
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
    """An error at the border, without its frames: they would keep what they paint on."""

    where: str
    error: BaseException
    trace: str


@dataclass(slots=True)
class _Waiting:
    """What has gone wrong for somebody who waits to know."""

    border: list[_Failure] = field(default_factory=list)
    slots: list[Exception] = field(default_factory=list)

    def take(
        self, kind: type[BaseException], error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take what went wrong in a slot, or in the very work."""
        if isinstance(error, Exception):
            error.add_note("".join(traceback.format_exception(kind, error, trace)))
            self.slots.append(error.with_traceback(None))
        sys.last_value = sys.last_traceback = None


_told: set[tuple[object, ...]] = set()
"""Hook, kind and lines of what has been told: a panel may be painted 60 times a second."""
_waiting: list[_Waiting] = []
"""Those who want to know: the innermost is told."""


class Border:
    """Qt's border: what is raised inside is told and stays in.

    Parameters
    ----------
    what : object
        Of ours, that Qt has called.

    Attributes
    ----------
    failed : bool
        Whether anything was raised.
    """

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
    """Tell of an error at the border: who waits for it, else the hook, and that once."""
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
    """Raise, in the end, what went wrong in Qt inside, which else is only told.

    The frames of what failed are not kept: they hold painters, which must not outlive what they
    paint on. What the traceback said is a note.

    Raises
    ------
    InputError
        Which widget could not be drawn, and why, in one line.
    Exception
        What a slot raised, or the work itself.
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
    """Work in a thread of its own; what it raises is raised where its result is asked for.

    Parameters
    ----------
    name : str
        Of the thread.
    job : callable
        The work.
    failed : callable, optional
        Called in the thread where the work fails.
    """

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
        """Raise what the work has raised, if anything."""
        if self._error is not None:
            raise self._error

    def result(self) -> Result:
        """Return what the work came to, once it has ended."""
        self.check()
        return self._results[0]
