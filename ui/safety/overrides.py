"""Guards for methods of ours that Qt calls: no error leaves them (`faults`).

After an error Qt continues as if the override had done nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import isfunction
from typing import Any, TypeVar

from PySide6.QtCore import QRectF, QSize

from ui.safety.faults import Border

_Kind = TypeVar("_Kind", bound=type)

_INSTEAD: dict[str, Callable[[], object]] = {
    "event": bool,
    "eventFilter": bool,
    "viewportEvent": bool,
    "focusNextPrevChild": bool,
    "sizeHint": QSize,
    "minimumSizeHint": QSize,
    "heightForWidth": lambda: -1,
    "rowCount": int,
    "columnCount": int,
    "boundingRect": QRectF,
}
"""The answers of overrides that have failed; for all others Qt needs no answer."""


def guarded(kind: _Kind) -> _Kind:
    """Keep errors of a class's overrides inside; a decorator for every class that has overrides."""
    for name, method in list(vars(kind).items()):
        if overrides(kind, name):
            setattr(kind, name, _guarded(method, _INSTEAD.get(name, type(None))))
    return kind


def overrides(kind: type, name: str) -> bool:
    """Return whether a class overrides one of Qt's methods."""
    qt = (base for base in kind.__mro__ if base.__module__.startswith("PySide6"))
    own = isfunction(vars(kind).get(name)) and not name.startswith("__")
    return own and any(name in vars(base) for base in qt)


def _guarded(method: Callable[..., Any], instead: Callable[[], object]) -> Callable[..., Any]:
    @wraps(method)
    def run(self: object, *arguments: object) -> object:
        with Border(self):
            return method(self, *arguments)
        return instead()

    return run
