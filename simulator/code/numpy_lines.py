"""The lines of `simulator/program/ops.py` that an op runs, from the file's text.

The text is parsed, not imported: what is shown is what stands in the file, also in a packaged
program, which ships the file as data.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from simulator.program.ops import Op

SOURCE = Path(__file__).parents[1] / "program" / "ops.py"
HELPERS = ("exp_shift", "_over")
"""Functions that ops call, shown after them."""


@dataclass(frozen=True, slots=True)
class Section:
    """A class of ops, or a function that they call, in the file.

    Attributes
    ----------
    name : str
        Its name.
    lines : range
        Its lines in the file, counted from 1.
    body : range
        Those of them that run: of ``apply``, or of the function.
    """

    name: str
    lines: range
    body: range


@cache
def source() -> tuple[str, ...]:
    """Return the lines of the file."""
    return tuple(SOURCE.read_text(encoding="utf-8").splitlines())


@cache
def sections() -> dict[str, Section]:
    """Return the classes and the functions of the file by name."""
    found = {}
    for node in _tree().body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            first = node.body[0] if isinstance(node, ast.FunctionDef) else _apply(node)
            begin = _body_start(first) if first is not None else _end(node) + 1
            lines = range(node.lineno, _end(node) + 1)
            found[node.name] = Section(node.name, lines, range(begin, lines.stop))
    return found


def lines_run(op: Op) -> tuple[int, ...]:
    """Return the lines of the op's ``apply`` that it runs, counted from 1.

    Of an ``if`` these are the lines of the branch that the op's own attribute takes.
    """
    return tuple(sorted({n for node in _statements(op) for n in _lines_of(node)}))


def helpers_called(op: Op) -> frozenset[str]:
    """Return which `HELPERS` the op calls."""
    return frozenset(
        part.func.id
        for node in _statements(op)
        if not isinstance(node, ast.If | ast.For)
        for part in ast.walk(node)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)
        if part.func.id in HELPERS
    )


@cache
def _tree() -> ast.Module:
    return ast.parse("\n".join(source()))


def _end(node: ast.stmt) -> int:
    assert node.end_lineno is not None
    return node.end_lineno


def _apply(node: ast.ClassDef) -> ast.FunctionDef | None:
    methods = (part for part in node.body if isinstance(part, ast.FunctionDef))
    return next((part for part in methods if part.name == "apply"), None)


def _body_start(node: ast.stmt) -> int:
    """Return the first line of a method's body, or of a function after its docstring."""
    if isinstance(node, ast.FunctionDef):
        return node.body[0].lineno
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return _end(node) + 1 if is_docstring else node.lineno


def _statements(op: Op) -> Iterator[ast.stmt]:
    name = type(op).__name__
    node = next(n for n in _tree().body if isinstance(n, ast.ClassDef) and n.name == name)
    method = _apply(node)
    assert method is not None
    return _taken(op, method.body)


def _taken(op: Op, statements: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that the op runs."""
    for node in statements:
        yield node
        if isinstance(node, ast.If):
            yield from _taken(op, node.body if _holds(op, node.test) else node.orelse)
        elif isinstance(node, ast.For):
            yield from _taken(op, node.body)


def _holds(op: Op, test: ast.expr) -> bool:
    """Return whether a condition of ``apply`` holds: it is an attribute of the op."""
    if isinstance(test, ast.Attribute):
        return bool(getattr(op, test.attr))
    raise ValueError(f"{SOURCE.name}, line {test.lineno}: expected a condition on the op alone")


def _lines_of(node: ast.stmt) -> range:
    """Return the lines of a statement; of a loop or a branch its first one."""
    if isinstance(node, ast.If | ast.For):
        return range(node.lineno, node.body[0].lineno)
    return range(node.lineno, _end(node) + 1)
