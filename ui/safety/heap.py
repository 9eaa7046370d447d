"""Memory of the C library: few pools for it, and what is free is given back to the system.

Of itself glibc keeps a pool for each thread, up to eight for each core, and gives back only what
is free at the end of one: a window that has been used for an hour holds half as much again as is in
use. Elsewhere both calls do nothing.
"""

from __future__ import annotations

import ctypes
import linecache
import sys
from functools import cache
from typing import Any

_ARENA_MAX = -8
"""``M_ARENA_MAX`` of glibc's malloc.h."""
_POOLS = 2


def share_pools() -> bool:
    """Let all threads share two pools; return whether that could be had."""
    library = _library()
    return hasattr(library, "mallopt") and library.mallopt(_ARENA_MAX, _POOLS) == 1


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
