"""What Qt calls in our classes: nothing that is raised comes out of it.

PySide 6.10 keeps an error that leaves an override and raises it where the next call into Qt
returns, in whatever method that is; overrides that Qt calls meanwhile crash the process. So it is
told to `sys.excepthook` from here, and Qt goes on as if the override had done nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import isfunction
from typing import Any, TypeVar

from PySide6.QtCore import QRectF, QSize

from ui.safety.painting import take_failure

_Kind = TypeVar("_Kind", bound=type)

_INSTEAD: dict[str, Callable[[], object]] = {
    "event": bool,
    "eventFilter": bool,
    "viewportEvent": bool,
    "focusNextPrevChild": bool,
    "sizeHint": QSize,
    "minimumSizeHint": QSize,
    "heightForWidth": lambda: -1,
    "boundingRect": QRectF,
}
"""What makes the answer of an override that has failed; of all others Qt asks for none."""


def guarded(kind: _Kind) -> _Kind:
    """Keep in what the overrides of a class raise; a decorator for every class that has any."""
    for name, method in list(vars(kind).items()):
        if overrides(kind, name):
            setattr(kind, name, _guarded(method, _INSTEAD.get(name, type(None))))
    return kind


def overrides(kind: type, name: str) -> bool:
    """Return whether a class has a method of its own for one of Qt's."""
    qt = (base for base in kind.__mro__ if base.__module__.startswith("PySide6"))
    own = isfunction(vars(kind).get(name)) and not name.startswith("__")
    return own and any(name in vars(base) for base in qt)


def _guarded(method: Callable[..., Any], instead: Callable[[], object]) -> Callable[..., Any]:
    @wraps(method)
    def run(self: object, *arguments: object) -> object:
        try:
            return method(self, *arguments)
        except BaseException as error:
            take_failure(self, error)
            return instead()

    return run
