"""Memory of the C library: few pools for it, and what is free is given back to the system.

Of itself glibc keeps a pool for each thread, up to eight for each core, and gives back only what
is free at the end of one: a window that has been used for an hour holds half as much again as is in
use. Of itself it also takes arrays of up to 32 MiB from these pools once one such has gone; small
things then come to stand far apart, and keep their pages. Elsewhere both calls do nothing.
"""

from __future__ import annotations

import ctypes
import linecache
import sys
from functools import cache
from typing import Any

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Of glibc's malloc.h."""
_POOLS = 2
_LARGE = 2 * 2**20
"""Bytes from which an array or picture is mapped by itself and goes when it ends. With less, runs
of large tiles would take a sixth longer, which is what mapping costs."""
_KEPT = 32 * 2**20
"""Bytes that may be free at the end of a pool before they go by themselves; glibc comes to as many
where it finds the size of large things out by itself."""


def share_pools() -> bool:
    """Let all threads share two pools, of what is not large; return whether that could be had."""
    library = _library()
    if not hasattr(library, "mallopt"):
        return False
    wanted = (_ARENA_MAX, _POOLS), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _KEPT)
    taken = [library.mallopt(name, value) == 1 for name, value in wanted]
    return all(taken)


def give_back() -> bool:
    """Give free memory back to the system; return whether that could be asked for.

    It takes a millisecond or few, so it is for after a large run has gone. The sources of all
    modules that use Qt go first, some 25 MiB of lines: PySide reads each as it is imported, in
    search of one word, and Python keeps what was read so.
    """
    linecache.clearcache()
    library = _library()
    if not hasattr(library, "malloc_trim"):
        return False
    library.malloc_trim(0)
    return True


@cache
def _library() -> Any:
    """Return the C library; None where it is not glibc, which alone has these calls."""
    return ctypes.CDLL(None) if sys.platform == "linux" else None
