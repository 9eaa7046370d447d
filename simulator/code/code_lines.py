"""Which lines of each text belong to an op: the paper's, NumPy's and the CUDA kernel's.

This module does not know the CUDA kernels: the caller gives the kernels' text and each op's lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any

from simulator.code import numpy_lines
from simulator.code.paper import PAPERS, Role, cited_lines
from simulator.problem.scenario import parse_scenario, with_values
from simulator.problem.scores import CHANGING
from simulator.problem.workload import Variant, resolve
from simulator.program.algorithms import ALGORITHMS, tile_program
from simulator.program.op import Op
from simulator.program.tile_program import TileProgram
from simulator.run.breakpoints import AtEnd, AtLine, AtTurn, Condition


class Tab(StrEnum):
    """The texts."""

    PAPER = "paper"
    NUMPY = "numpy"
    CUDA = "cuda"


@dataclass(frozen=True, slots=True)
class CodeLine:
    """One line of a text."""

    number: int  # the number that names the line, from 1; 0 for a gap in a text
    text: str  # the text of the line
    shown: int  # number of the line in its file
    file: str = ""  # name of that file, if a text comes from several


@lru_cache(maxsize=8)
def exemplars(algorithm: str, variant: frozenset[Variant] = frozenset()) -> tuple[TileProgram, ...]:
    """Return small runs in which every op of an algorithm occurs in all its forms.

    The runs are causal with more queries than keys, unless the algorithm says otherwise: row blocks
    that see nothing, skipped, partial and full tiles, several visits of a row block and of a column
    block. With a softmax, `variant` adds scores with a soft-cap and a bias, sink logits, skipped
    rescales, rounded P, gated O.
    """
    size = {"seqlen_q": 16, "seqlen_k": 9, "head_dim": 2, "heads": 1, "kv_heads": 1}
    scores: dict[str, Any] = {**CHANGING} if "changes" in variant else {}
    skips: dict[str, Any] = {"rescale_threshold": 8.0} if "threshold" in variant else {}
    if "rounding" in variant and ALGORITHMS[algorithm].softmax:
        skips |= {"dtype": "float16", "p_dtype": "storage"}
    scores |= {"sink_logits": [0.0]} if "sinks" in variant else {}
    usual = parse_scenario(
        {
            "attention": {"algorithm": algorithm, **size, **skips},
            "scores": scores if ALGORITHMS[algorithm].softmax else {},
            "mask": {"causal": True},
            "tiling": {"rows": 3, "cols": 2},
            "input": {"source": "random"},
        }
    )
    others = ALGORITHMS[algorithm].exemplars
    runs = (resolve(with_values(usual, change)) for change in others)
    return tuple(tile_program(replace(run, gated="gate" in variant)) for run in runs)


@lru_cache(maxsize=8)
def forms(algorithm: str, variant: frozenset[Variant] = frozenset()) -> tuple[Op, ...]:
    """Return one op of each form that the ops of an algorithm have: name, citation, tensors."""
    found: dict[tuple[object, ...], Op] = {}
    programs = exemplars(algorithm, variant)
    if "sinks" in variant and ALGORITHMS[algorithm].splits:  # all splits but the first have none
        programs += exemplars(algorithm, variant - {"sinks"})
    for program in programs:
        for index in range(len(program)):
            for op in program.ops(index):
                key = (op.name, op.cites, tuple(move.tensor for move in op.moves), op.makes)
                found.setdefault(key, op)
    return tuple(found.values())


class CodeLines:
    """The lines of an algorithm in its three texts.

    A line is named by a number: in the paper its place in `PAPERS`, from 0; in CUDA its number in
    the kernel's text; in NumPy a number that `numpy_lines.own_number` turns into the file's.
    """

    def __init__(
        self,
        algorithm: str,
        cuda: Sequence[CodeLine],
        cuda_lines: Callable[[Op], tuple[int, ...]],
        variant: frozenset[Variant] = frozenset(),
    ) -> None:
        self.algorithm = algorithm
        self.forms = forms(algorithm, variant)
        self.paper = PAPERS[algorithm]
        self._cuda_lines = cuda_lines
        self._cuda = tuple(cuda)
        self._anchored = {n for op in self.forms for n in cuda_lines(op)}
        classes = {type(op).__name__ for op in self.forms}
        called = {name for op in self.forms for name in numpy_lines.helpers_called(op)}
        found = numpy_lines.sections().values()
        self.sections = tuple(s for s in found if s.name in classes) + tuple(
            s for s in found if s.name in called
        )

    # --- from an op to lines ----------------------------------------------------------------

    def lines(self, tab: Tab, op: Op) -> tuple[int, ...]:
        """Return the lines of an op in a text, in order; none for an op before the tiles."""
        if op.before_tiles:
            return ()
        if tab is Tab.PAPER:
            return cited_lines(self.algorithm, op.cites)
        return numpy_lines.lines_run(op) if tab is Tab.NUMPY else self._cuda_lines(op)

    def texts(self, tab: Tab) -> tuple[CodeLine, ...]:
        """Return the text of NumPy or CUDA; for NumPy only the parts that the algorithm uses."""
        if tab is Tab.CUDA:
            return self._cuda
        out = []
        for section in self.sections:
            for n, text in ((section.lines.start, section.title), *section.shown()):
                out.append(CodeLine(n, text, numpy_lines.own_number(n)))
            out.append(CodeLine(0, "", 0))
        return tuple(out[:-1])

    # --- from a line to the condition that it runs ------------------------------------------

    def condition(self, tab: Tab, line: int) -> Condition | None:
        """Return the condition that waits for a line to run; None for a line that never runs.

        A line of a loop waits for the loop's next turn. A line of CUDA that belongs to no op counts
        as a line of its statement's op, or else of the next op below, as in a debugger.
        """
        if tab is Tab.PAPER:
            role = self.paper.lines[line].role
            if role is Role.SETUP:
                return None
            if role is Role.END:
                return AtEnd()
            if role is not Role.OP:
                return AtTurn(outer=role is Role.BLOCK)
        else:
            line = self._slid(line) if tab is Tab.CUDA else line
        if not any(self._runs(tab, line, op) for op in self.forms):
            return None
        return AtLine(
            self.algorithm,
            tab.value,
            line,
            f"{self.place(tab, line)}",
            lambda op: self._runs(tab, line, op),
            once=tab is Tab.PAPER,
        )

    def why_never(self, tab: Tab, line: int) -> str:
        """Return, in words, why `condition` is None."""
        if tab is Tab.PAPER:
            return f"{self.place(tab, line)} is done before the first step."
        if tab is Tab.CUDA:
            return f"{self.place(tab, line)}: no op stands at it or below it."
        return f"{self.place(tab, line)}: no step of this algorithm runs it."

    def place(self, tab: Tab, line: int) -> str:
        """Return a line in words: ``line 9 of the paper``, ``flash2.cu:84``."""
        if tab is Tab.PAPER:
            label = self.paper.lines[line].label
            if label.isdigit():
                return f"Line {label} of the paper"
            if label.startswith(("step", "lemma")):
                return f"{label.capitalize()} of the paper"
            if label.startswith("eq."):
                return f"Equation {label.removeprefix('eq. ')} of the paper"
            if label == "chunk":
                return "The paper's line on chunks"
            word = "masking" if label.startswith("§") else f"“{label}”"
            return f"The paper's line on {word}"
        if tab is Tab.NUMPY:
            return numpy_lines.place(line)
        return f"{self._cuda[line - 1].file}:{self._cuda[line - 1].shown}"

    def _runs(self, tab: Tab, line: int, op: Op) -> bool:
        """Return whether an op runs a line: its own, its class's head, or a called function's."""
        if line in self.lines(tab, op):
            return True
        if tab is not Tab.NUMPY or op.before_tiles:
            return False
        name, called = type(op).__name__, numpy_lines.helpers_called(op)
        for section in self.sections:
            if line in section.lines:
                head = line not in section.body and section.name == name
                return head or section.name in called
        return False

    def _slid(self, line: int) -> int:
        """Return the marked line of the statement at a line of CUDA, else the next one below."""
        if line in self._anchored:
            return line
        for anchored in sorted(self._anchored):
            if line in range(anchored, self._end_of_statement(anchored) + 1):
                return anchored
        return min((n for n in self._anchored if n > line), default=line)

    def _end_of_statement(self, line: int) -> int:
        """Return the last line of the statement that a line of CUDA is in."""
        while line < len(self._cuda) and not self._ends(line):
            line += 1
        return line

    def _ends(self, line: int) -> bool:
        """Return whether a line of CUDA ends a statement or has no part of one."""
        code = self._cuda[line - 1].text.partition("//")[0].strip()
        return not code or code[0] == "#" or code[-1] in ";{}"
