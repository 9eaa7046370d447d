"""Memory of the C library: one pool, and free memory is returned to the system.

By default glibc keeps a pool for each thread, up to eight for each core, and returns only memory
that is free at the end of a pool: after an hour of use, a window takes half as much memory again as
it needs. By default it also takes arrays of up to 32 MiB from these pools after the first such
array has been freed; small objects are then far apart, and their pages cannot be freed. With other
C libraries both calls do nothing.
"""

from __future__ import annotations

import ctypes
import linecache
import sys
from functools import cache
from typing import Any

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # from glibc's malloc.h
_POOLS = 1  # one for all threads: Python lets one of them run at a time, so they seldom wait for it
_LARGE = 2 * 2**20
"""Bytes from which an array or picture has its own mapping, which is freed with it. With a smaller
number, runs with large tiles would take a sixth longer, because mapping takes time."""
_KEPT = 32 * 2**20
"""Bytes that may be free at the end of a pool before they are returned; glibc uses as many when it
adapts the size of large arrays by itself."""


def share_pools() -> bool:
    """Let all threads share one pool for small objects; return whether this was possible."""
    library = _library()
    if not hasattr(library, "mallopt"):
        return False
    wanted = (_ARENA_MAX, _POOLS), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _KEPT)
    taken = [library.mallopt(name, value) == 1 for name, value in wanted]
    return all(taken)


def give_back() -> bool:
    """Give free memory back to the system; return whether this was possible.

    It takes a few milliseconds, so it is done after a large run has been forgotten. First the
    sources of all modules that use Qt are forgotten, some 25 MiB of lines: PySide reads each source
    when the module is imported, to search for one word, and Python keeps the lines.
    """
    linecache.clearcache()
    library = _library()
    if not hasattr(library, "malloc_trim"):
        return False
    library.malloc_trim(0)
    return True


@cache
def _library() -> Any:
    """Return the C library; None if it is not glibc, which alone has these calls."""
    return ctypes.CDLL(None) if sys.platform == "linux" else None
