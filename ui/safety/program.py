"""The kind of this copy of the program, and the command that starts it again."""

from __future__ import annotations

import sys
from pathlib import Path

PACKAGE = __name__.removesuffix(".safety.program")
"""``ui`` in a checkout; the wheel has it inside its own package."""
BINARY = bool(getattr(sys, "frozen", False))
CHECKOUT = PACKAGE == "ui" and not BINARY
KIND = "binary" if BINARY else "checkout" if CHECKOUT else "wheel"
TYPED = ("python", "-m", PACKAGE) if CHECKOUT else ("tilescope",)  # the command that starts it


def started_again() -> tuple[list[str], Path | None]:
    """Return the command that starts Tilescope in a second process, and its working folder."""
    if BINARY:
        return [sys.executable], None
    return [sys.executable, "-m", PACKAGE], Path(__file__).resolve().parents[__name__.count(".")]


def with_extra(name: str) -> str:
    """Return the command that installs an extra."""
    return f"make run EXTRAS={name}" if CHECKOUT else f'pip install "tilescope[{name}]"'
