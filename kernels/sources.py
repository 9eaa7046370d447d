"""The CUDA sources, and which of their lines stand for which op."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "cuda"
_INCLUDE = re.compile(r'^#include "(\w+\.cuh)"$', re.MULTILINE)
_ANCHOR = re.compile(r"//.*?\[([a-z ]+)\] (?=Dao)")


@cache
def source(algorithm: str) -> str:
    """Return the kernel of an algorithm as it stands in its file, which people read."""
    return (FOLDER / f"{algorithm}.cu").read_text(encoding="utf-8")


@cache
def whole_source(algorithm: str) -> str:
    """Return the kernel with common.cuh in the place of its include: what is compiled."""
    return _INCLUDE.sub(
        lambda found: (FOLDER / found[1]).read_text(encoding="utf-8"), source(algorithm)
    )


@cache
def anchors(algorithm: str) -> dict[str, tuple[int, ...]]:
    """Return the lines of `source` that stand for each op, by the op's name, counted from 1.

    A kernel marks them by a comment such as ``// [row max] Dao 2023, Algorithm 1, line 9``.
    """
    found: dict[str, list[int]] = {}
    for number, line in enumerate(source(algorithm).splitlines(), start=1):
        for match in _ANCHOR.finditer(line):
            found.setdefault(match[1], []).append(number)
    return {name: tuple(lines) for name, lines in found.items()}
