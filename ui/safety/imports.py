"""Keeps Qt for Python from slowing down imports."""

from __future__ import annotations

import builtins


def import_qt() -> None:
    """Import Qt for Python, and keep Python's own import statement.

    Qt for Python replaces this statement with a hook that reads the source of every module, in
    search of ``from __feature__ import``: a tenth of a start. Tilescope has no such line.
    """
    plain = builtins.__import__
    import PySide6.QtCore  # noqa: F401 - sets the hook

    builtins.__import__ = plain
