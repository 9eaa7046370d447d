"""A folder of the user that keeps compiled kernels, so that each is compiled once."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

KEPT = 2**30
"""Most bytes of the cache; the least recently used files go first."""
_ROOM = 2**20  # bytes that a cache must have room for: a kernel takes about a tenth of them


@cache
def cache_folder() -> Path:
    """Return the user's cache folder, or a folder for this process if that cannot be used."""
    home = Path(os.path.expanduser("~"))  # raises nothing, even if a user has no home
    base = home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"
    stated = os.environ.get("XDG_CACHE_HOME", "")
    folder = (Path(stated) if os.path.isabs(stated) else base) / "tilescope" / "kernels"
    try:
        if folder.is_absolute():  # the compiler works in another folder
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(bytes(_ROOM))  # a full disk still takes an empty file
            return folder
    except OSError:
        pass
    private = tempfile.mkdtemp(prefix="tilescope-kernels-")
    atexit.register(shutil.rmtree, private, ignore_errors=True)
    return Path(private)


def kept(name: str, make: Callable[[Path], None], *, again: bool = False, most: int = KEPT) -> Path:
    """Return a file of the cache; `make` writes to another path, so the file is always complete."""
    folder = cache_folder()
    path = folder / name
    if again or not path.exists():
        with tempfile.TemporaryDirectory(dir=folder, prefix="making-") as beside:
            made = Path(beside) / name
            make(made)
            os.replace(made, path)
        _forget_oldest(folder, most)
    else:
        with contextlib.suppress(OSError):  # gone, or of another user
            os.utime(path)  # used now: others are forgotten first
    return path


def _forget_oldest(folder: Path, most: int) -> None:
    """Keep the cache small; another process may be doing the same."""
    aged = []
    for path in folder.glob("*.*"):
        with contextlib.suppress(OSError):
            found = path.stat()
            aged.append((found.st_mtime, found.st_size, path))
    total = 0
    for _, size, path in sorted(aged, reverse=True):
        total += size
        if total > most:
            path.unlink(missing_ok=True)
