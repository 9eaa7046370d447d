"""Writing files so that a failure leaves nothing half-written."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from simulator.base.errors import InputError, reason, refuse

_YOUNG = 2.0
"""Seconds for which a file beside may belong to one who has not locked it yet."""
_UNTOUCHED = 3600.0
"""Seconds after which a folder beside that nothing was put into is nobody's any more."""


def part_of(path: Path, token: str = "") -> Path:
    """Return a name beside `path`, for what is being written there.

    Parameters
    ----------
    path : Path
        Where it will be.
    token : str
        Eight hexadecimal digits by which somebody else knows the name; new ones without.
    """
    return path.with_name(f".{path.name}.{token or secrets.token_hex(4)}.part")


def clear_stale(path: Path) -> None:
    """Remove what a process that was killed has left beside `path`.

    What a living process writes is locked, where the system has locks; elsewhere a file that is
    open cannot be removed.
    """
    name = re.compile(re.escape(f".{path.name}.") + r"[0-9a-f]{8}\.part")
    try:
        parts = [part for part in path.parent.iterdir() if name.fullmatch(part.name)]
    except OSError:  # no such folder: the writing will tell
        return
    for part in parts:
        with suppress(OSError):
            age = time.time() - part.stat().st_mtime
            if part.is_dir() and age > _UNTOUCHED:
                shutil.rmtree(part)
            elif part.is_file() and age > _YOUNG:
                with part.open("r+b") as file:
                    _lock(file)
                part.unlink()


def _lock(file: IO[bytes]) -> None:
    """Lock a file until it is closed.

    Raises
    ------
    OSError
        Another process has locked it.
    """
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def write_atomically(path: Path, write: Callable[[IO[bytes]], object], token: str = "") -> None:
    """Write beside `path` and rename, so that it holds the old content or the new, never less.

    Parameters
    ----------
    path : Path
        The file.
    write : callable
        Told the open file.
    token : str
        For `part_of`.

    Raises
    ------
    InputError
        The folder is missing or not writable, or the disk is full; `path` is as it was.
    """
    try:
        clear_stale(path)
        beside = part_of(path, token)
        try:
            with beside.open("x+b") as out:
                with suppress(OSError):  # not every file system has locks
                    _lock(out)
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
