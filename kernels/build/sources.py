"""The CUDA sources, and which of their lines belong to which op."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from simulator.program.op import Op

FOLDER = Path(__file__).parents[1] / "cuda"
INCLUDE = re.compile(r'^#include "(\w+\.cuh)"$', re.MULTILINE)
ANCHOR = re.compile(r"//.*?\[([a-z -]+)\] (?=[A-Z]\w+ (?:et al|\d{4}))")
"""An op's name before a citation: the author of the paper and its year."""
_CITED = re.compile(r"\d+(?:-\d+)?")
_PLACE = re.compile(r" (line|step|equation)s? (.*)")
_TENSOR = re.compile(r"\b(d?[A-Z]+(?:_partial|_acc)?|sink|gate)_(?:shared|hbm)\b")


def file_name(algorithm: str) -> str:
    """Return the name of the file of an algorithm's kernels."""
    return f"{algorithm.replace('-', '_')}.cu"


def _text(name: str) -> str:
    """Return the text of a file of the kernels."""
    return (FOLDER / name).read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of a kernel's text."""

    file: str  # such as ``flash2.cu``
    shown: int  # its number in the file, from 1
    # its number in `source`, from 1; 0 if it goes with the line before, None if `source` lacks it
    number: int | None
    text: str  # the text of the line


@cache
def source(algorithm: str) -> str:
    """Return an algorithm's kernels for people to read, with the headers that do its ops."""
    return "\n".join(line.text for line in source_lines(algorithm))


@cache
def source_lines(algorithm: str) -> tuple[SourceLine, ...]:
    """Return the lines of `source`, with the files that they are in."""
    lines = enumerate(_lines(file_name(algorithm), every=False), start=1)
    return tuple(SourceLine(file, shown, number, text) for number, (file, shown, text) in lines)


@cache
def whole_source(algorithm: str) -> str:
    """Return the kernel with all headers instead of their includes: this text is compiled."""
    return "\n".join(line.text for line in whole_lines(algorithm))


@cache
def whole_lines(algorithm: str) -> tuple[SourceLine, ...]:
    """Return the lines of `whole_source`, with the files that they are in."""
    numbers = {(line.file, line.shown): line.number for line in source_lines(algorithm)}
    lines = _lines(file_name(algorithm), every=True)
    return tuple(SourceLine(file, n, numbers.get((file, n)), text) for file, n, text in lines)


def _lines(name: str, *, every: bool) -> Iterator[tuple[str, int, str]]:
    """Yield file, number and text of each line, with headers in the place of their includes.

    Without `every`, headers that do no op stay as their includes.
    """
    for number, line in enumerate(_text(name).split("\n"), start=1):
        include = INCLUDE.match(line)
        if include and (every or ANCHOR.search(_text(include[1]))):
            yield from _lines(include[1], every=every)
        else:
            yield name, number, line


@cache
def anchors(algorithm: str) -> dict[str, tuple[int, ...]]:
    """Return the lines of `source` that belong to each op, by the op's name, counted from 1.

    A kernel marks them by a comment such as ``// [row max] Dao 2023, Algorithm 1, line 9``.
    """
    found: dict[str, list[int]] = {}
    for number, line in enumerate(source(algorithm).splitlines(), start=1):
        for match in ANCHOR.finditer(line):
            found.setdefault(match[1], []).append(number)
    return {name: tuple(lines) for name, lines in found.items()}


def op_lines(algorithm: str, op: Op) -> tuple[int, ...]:
    """Return the lines of `source` that belong to one op, in order, counted from 1.

    They are marked with the op's name, and cite a line of the paper that the op cites, too. If the
    op moves tiles, lines that name only other tensors are left out.
    """
    return _op_lines(algorithm, op.name, op.cites, frozenset(move.tensor for move in op.moves))


@lru_cache(maxsize=128)
def _op_lines(algorithm: str, name: str, cites: str, moved: frozenset[str]) -> tuple[int, ...]:
    text = source(algorithm).splitlines()
    marked = anchors(algorithm)[name]
    cited = _numbers(cites)
    same = [n for n in marked if cited & _numbers(_after(text[n - 1], name))] or marked
    named = {n: set(_TENSOR.findall(text[n - 1])) for n in same}
    own = [n for n in same if not moved or not named[n] or named[n] & moved]
    return tuple(own or same)


def _after(line: str, name: str) -> str:
    """Return the citation for an op in a line."""
    return line.partition(f"[{name}] ")[2]


def _numbers(cites: str) -> frozenset[tuple[str, int]]:
    """Return the lines, steps or equations of a citation, each with the word before its number."""
    place = _PLACE.search(cites)
    if place is None:  # such as a lemma: its name
        return frozenset({(cites.partition(", ")[2], 0)})
    found: set[tuple[str, int]] = set()
    for span in _CITED.findall(place[2]):
        first, _, last = span.partition("-")
        found |= {(place[1], number) for number in range(int(first), int(last or first) + 1)}
    return frozenset(found)
