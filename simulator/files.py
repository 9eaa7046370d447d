"""Writing files so that a failure leaves nothing half-written."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import IO

from simulator.errors import InputError, reason, refuse


def write_atomically(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write beside `path` and rename, so that it holds the old content or the new, never less.

    Raises
    ------
    InputError
        The folder is missing or not writable, or the disk is full; `path` is as it was.
    """
    try:
        beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        try:
            with beside.open("xb") as out:
                write(out)
                out.flush()
                os.fsync(out.fileno())
            os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)
    except (OSError, ValueError) as error:  # ValueError: no such name can be
        if isinstance(error, InputError):
            raise
        raise refuse(str(path), "", "", f"a file that can be written ({reason(error)})") from None
