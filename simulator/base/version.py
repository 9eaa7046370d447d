"""Which version of Tilescope this is."""

from __future__ import annotations

from pathlib import Path

BUILT = Path(__file__).parents[2] / "built"
"""A file that `make package` puts into a bundle: the day of its sources, as ``2026-11-21``."""


def version() -> str:
    """Return the program's version."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("tilescope")
    except PackageNotFoundError:
        return "unknown"


def built(path: Path = BUILT) -> str:
    """Return the day of the sources that this bundle was built from; "" outside a bundle."""
    return path.read_text(encoding="ascii").strip() if path.exists() else ""
