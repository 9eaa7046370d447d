"""Reading regular files alone, and writing files so that a failure leaves none half-written."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from simulator.base.errors import InputError, refuse, unusable

_YOUNG = 2.0
"""Seconds during which a new part file may belong to a process that has not locked it yet."""
_NAME_BYTES = 200
"""Most bytes of a name to which more is added: file systems take 255."""
_UNTOUCHED = 3600.0
"""Seconds without a new file after which a folder of parts belongs to nobody any more."""


def open_regular(path: Path) -> IO[bytes]:
    """Open a file to read it; a pipe may never end, and opening one may already wait for ever.

    Raises OSError: the path cannot be read, or is neither a file nor a folder.
    Raises ValueError: no file can have this name.
    """
    return open(path, "rb", opener=regular)


def regular(path: str, flags: int) -> int:
    """Open a file for `open` without a wait, and refuse anything but a file or a folder.

    The path is checked before, because opening a device may do something, and again once it is
    open, because the name may belong to something else by then.
    """
    _check_regular(path, os.stat(path))
    try:
        number = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    except BlockingIOError:  # a file that a server has lent to others, who must give it back first
        number = os.open(path, flags)
    try:
        _check_regular(path, os.fstat(number))
    except OSError:
        os.close(number)
        raise
    return number


def _check_regular(path: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        raise OSError(errno.EINVAL, "it is a pipe, a socket or a device", path)


def check_target(
    command: str, path: Path, endings: Sequence[str], inputs: Sequence[Path], *beside: Path
) -> None:
    """Refuse a file to write, before anything is computed for it.

    command: the command whose option ``-o`` names the file.
    Raises InputError: the ending is not known, the folder is missing, or `path` or a file of
        `beside` is no regular file, or is an input.
    """
    if path.suffix not in endings:
        raise refuse(command, "-o", str(path), f"a file that ends in {', '.join(endings)}")
    if not path.parent.is_dir():
        raise refuse(command, "-o", str(path), f"a folder {path.parent} that exists")
    for file in (path, *beside):
        if not file.exists():
            continue
        if not file.is_file():
            kind = "a folder" if file.is_dir() else "a pipe, a socket or a device"
            raise refuse(command, "-o", str(path), f"{file} to be a file: it is {kind}")
        if any(each.exists() and file.samefile(each) for each in inputs):
            expected = f"another name: the input is read from {file}"
            raise refuse(command, "-o", str(path), expected)


def part_of(path: Path, token: str = "") -> Path:
    """Return another name in the folder of `path`, for the file while it is written.

    token: eight hexadecimal digits, by which another process knows the name; empty: new digits
        are drawn.
    """
    return path.with_name(f".{_short(path.name)}.{token or secrets.token_hex(4)}.part")


def _short(name: str) -> str:
    """Return a name, or its digest if a file system has no room for more letters."""
    stored = os.fsencode(name)
    return name if len(stored) <= _NAME_BYTES else hashlib.sha256(stored).hexdigest()


def clear_stale(path: Path) -> None:
    """Remove files and folders that killed processes have left in the folder of `path`.

    A running process locks the file that it writes, if the system has locks; on other systems an
    open file cannot be removed.
    """
    name = re.compile(re.escape(f".{_short(path.name)}.") + r"[0-9a-f]{8}\.part")
    try:
        parts = [part for part in path.parent.iterdir() if name.fullmatch(part.name)]
    except OSError:  # no such folder: the error comes when the file is written
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

    Raises OSError: another process has locked it.
    """
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def write_atomically(path: Path, write: Callable[[IO[bytes]], object], token: str = "") -> None:
    """Write under another name and rename: `path` has the old content or the new, never less.

    A device is never replaced by a file.

    token: for `part_of`.
    Raises InputError: the folder is missing or not writable, or the disk is full; `path` is as it
        was.
    """
    try:
        with suppress(FileNotFoundError):
            _check_regular(str(path), path.stat())
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
    except (OSError, ValueError) as error:  # ValueError: no file can have this name
        if isinstance(error, InputError):
            raise
        raise unusable(path, "a file that can be written", error) from None
