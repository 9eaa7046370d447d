"""The text of kernels for people: as it stands in the files, and as a fast build compiles it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache

from kernels.build.reading import readable
from kernels.build.sources import SourceLine, source_lines
from kernels.cuda.launch import build_options
from simulator.code.code_lines import CodeLine
from simulator.problem.workload import Workload


@cache
def kernel_lines(algorithm: str) -> tuple[CodeLine, ...]:
    """Return the lines of an algorithm's kernels, each with its file."""
    return tuple(map(_code_line, source_lines(algorithm)[:-1]))  # the last line is empty


def shown_lines(w: Workload, *, recording: bool) -> tuple[CodeLine, ...]:
    """Return the lines of a workload's kernels that people read.

    recording: whether the text is as in the files. Otherwise it is the text that the workload's
        fast build compiles, without code that records.
    """
    options = () if recording else build_options(w, trace=False)
    return _shown_lines(w.algorithm, options, recording=recording)


@lru_cache(maxsize=8)
def _shown_lines(
    algorithm: str, options: tuple[str, ...], *, recording: bool
) -> tuple[CodeLine, ...]:
    if recording:
        return tuple(_with_files(kernel_lines(algorithm)))
    return tuple(_with_files(map(_code_line, readable(algorithm, options))))


def _code_line(line: SourceLine) -> CodeLine:
    return CodeLine(line.number or 0, line.text, line.shown, line.file)


def _with_files(lines: Iterable[CodeLine]) -> Iterator[CodeLine]:
    """Add a line with the file's name where another file begins."""
    file = ""
    for line in lines:
        if file and line.file != file:
            yield CodeLine(0, f"// {line.file}", 0, line.file)
        file = line.file
        yield line
