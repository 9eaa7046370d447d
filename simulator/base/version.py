"""Which version of Tilescope this is."""

from __future__ import annotations


def version() -> str:
    """Return the program's version."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("tilescope")
    except PackageNotFoundError:
        return "unknown"
