"""What the memory of this process is made of, as Linux, the C library and Python tell it."""

from __future__ import annotations

import ctypes
import os
import re
import sys
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

MIB = 2**20
_POOL = 64 * MIB
"""At multiples of it glibc reserves its pools for other threads than the first."""
_LINE = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \d+ *(.*)$")


class _MallInfo(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks",
                     "uordblks", "fordblks", "keepcost")
    ]  # fmt: skip


def parts() -> dict[str, float]:
    """Return MiB of resident memory by what it is for.

    Returns: ``heap``: the C library's first pool; ``pools``: its others; ``mapped``: what is mapped
        one by one, Python's arenas and large arrays and pictures; ``files``: libraries and fonts;
        ``stacks``. Of these ``python`` is in Python's arenas, ``python used`` in objects there,
        ``large`` in the C library's large pieces, ``used`` in small ones of its pools. ``free`` is
        what they have room for beside, most of it not in memory. Empty where this is not Linux with
        glibc.
    """
    library = _library()
    if library is None or not hasattr(library, "mallinfo2"):
        return {}
    out: Counter[str] = Counter()
    for kind, size in _mappings():
        out[kind] += size
    library.mallinfo2.restype = _MallInfo
    info = library.mallinfo2()
    arenas, used = _python()
    return {
        **{kind: out[kind] / MIB for kind in ("heap", "pools", "mapped", "files", "stacks")},
        "python": arenas / MIB,
        "python used": used / MIB,
        "large": info.hblkhd / MIB,
        "used": info.uordblks / MIB,
        "free": info.fordblks / MIB,
    }


def in_words(sizes: dict[str, float]) -> str:
    """Return the parts in one line."""
    return ", ".join(f"{kind} {size:.0f}" for kind, size in sizes.items())


def _mappings() -> list[tuple[str, int]]:
    """Return the kind and resident bytes of each mapping."""
    out: list[tuple[str, int]] = []
    kind, pool = "", 0
    guarded = False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        found = _LINE.match(line)
        if found:
            start, end, rights, name = int(found[1], 16), int(found[2], 16), found[3], found[4]
            if name == "[heap]":
                kind = "heap"
            elif name.startswith("[stack"):
                kind = "stacks"
            elif name and not name.startswith("[anon"):
                kind = "files"
            elif start % _POOL == 0 and end - start <= _POOL and rights.startswith("rw"):
                kind, pool = "pools", start
            elif guarded and MIB <= end - start <= 16 * MIB and rights.startswith("rw"):
                kind = "stacks"
            else:
                kind = "pools" if pool and start < pool + _POOL else "mapped"
            guarded = rights.startswith("---") and end - start == 4096
        elif line.startswith("Rss:"):
            out.append((kind, int(line.split()[1]) * 1024))
    return out


def _python() -> tuple[int, int]:
    """Return the bytes of Python's arenas, and those of the objects in them."""
    with tempfile.TemporaryFile() as told:
        sys.stderr.flush()
        before = os.dup(2)
        os.dup2(told.fileno(), 2)
        try:
            sys._debugmallocstats()
        finally:
            os.dup2(before, 2)
            os.close(before)
        told.seek(0)
        text = told.read().decode()
    arenas = re.search(r"^(\d+) arenas \* (\d+) bytes/arena", text, re.MULTILINE)
    used = re.search(r"^# bytes in allocated blocks\s*=\s*([\d,]+)", text, re.MULTILINE)
    assert arenas is not None
    assert used is not None
    return int(arenas[1]) * int(arenas[2]), int(used[1].replace(",", ""))


@cache
def _library() -> Any:
    return ctypes.CDLL(None) if sys.platform == "linux" else None
