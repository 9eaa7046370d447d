"""The lines of the files of ops that an op runs, from their text.

The text is parsed, not imported: the panel shows statements of the files, without the classes
around them, also in a packaged program, which contains the files as data. A line's number is its
number in its file plus `APART` for each file before: so one number names a line in any file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from simulator.program.op import Op

_STATE = "state"  # the argument of ``apply``
_OWNER = re.compile(rf"\b(?:self|{_STATE})\.|(?<=\w): \w+(?= = )")
"""The parts that a shown line leaves out: the owner of a name, and its type."""
SOURCES = tuple(
    Path(__file__).parents[1] / "program" / name
    for name in ("ops.py", "gate_ops.py", "page_ops.py", "state_ops.py", "gradient_ops.py")
)
APART = 1000  # between the first lines of two files: every file is shorter
HELPERS = (
    "rounded", "exp_shift", "kept_unless_larger", "over", "log_sum_exp", "elu_plus_one",
    "positive_features", "lengths", "with_ones",
)  # fmt: skip
"""Functions that ops call; they are shown after the ops."""


@dataclass(frozen=True, slots=True)
class Section:
    """A class of ops, or a function that they call, in the file."""

    name: str  # its name
    lines: range  # its lines
    # the lines that run: the body of ``apply``, the last method of a class, or of the function
    body: range
    # the line above them: the class's purpose as a comment, or the function's head
    title: str = ""

    def shown(self) -> Iterator[tuple[int, str]]:
        """Yield number and text of the lines that run, as they are without their class."""
        indent = 8 if self.title.startswith("#") else 0
        for n in self.body:
            if not _unpacks(source()[n - 1]):
                yield n, _OWNER.sub("", source()[n - 1][indent:])


@cache
def source() -> tuple[str, ...]:
    """Return the lines of the files, each filled up to `APART` lines."""
    files = [path.read_text(encoding="utf-8").splitlines() for path in SOURCES]
    return tuple(line for lines in files for line in lines + [""] * (APART - len(lines)))


def own_number(line: int) -> int:
    """Return the number of a line in its file."""
    return (line - 1) % APART + 1


def place(line: int) -> str:
    """Return a line in words: ``ops.py:84``."""
    return f"{SOURCES[(line - 1) // APART].name}:{own_number(line)}"


@cache
def sections() -> dict[str, Section]:
    """Return the classes and the functions of the files by name."""
    found = {}
    for node in _tree().body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            first = node.body[0] if isinstance(node, ast.FunctionDef) else _apply(node)
            lines = range(node.lineno, _end(node) + 1)
            begin = _body_start(first) if first is not None else lines.stop
            title = _title(node)
            found[node.name] = Section(node.name, lines, range(begin, lines.stop), title)
    return found


def lines_run(op: Op) -> tuple[int, ...]:
    """Return the shown lines of ``apply`` that the op runs.

    Of an ``if`` only the branch that the op's attribute chooses counts.
    """
    ran = {n for node in _statements(op) for n in _lines_of(node)}
    return tuple(sorted(n for n in ran if not _unpacks(source()[n - 1])))


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


def _title(node: ast.ClassDef | ast.FunctionDef) -> str:
    """Return a class's docstring in one line, as a comment; a function's head without types."""
    if isinstance(node, ast.FunctionDef):
        return plain(node.name).partition("\n")[0]
    told = (ast.get_docstring(node) or "").partition("\n")[0]
    return f"# {told.replace('``', '').replace('`', '')}"


def _unpacks(line: str) -> bool:
    """Return whether a line only gives shorter names to parts of the state."""
    target, _, value = line.strip().partition(" = ")
    return bool(value) and target == value.replace(f"{_STATE}.", "")


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
    """Return whether a condition of ``apply`` holds: the condition is an attribute of the op."""
    if isinstance(test, ast.Attribute):
        return bool(getattr(op, test.attr))
    raise ValueError(f"{place(test.lineno)}: expected a condition on the op alone")


def _lines_of(node: ast.stmt) -> range:
    """Return the lines of a statement; of a loop or a branch only the first."""
    if isinstance(node, ast.If | ast.For):
        return range(node.lineno, node.body[0].lineno)
    return range(node.lineno, _end(node) + 1)


# --- the same text with an op's own values in it, to be run by itself ---------------------------


@dataclass(frozen=True, slots=True)
class Statements:
    """The work of an op, as statements on a dict ``chip``."""

    text: tuple[str, ...]  # the statements
    # read, made: the names in ``chip`` that the statements read before they make them, and the
    # names that they make
    read: tuple[str, ...]
    made: tuple[str, ...]


_GIVEN = {"self.mask.visible": "mask", "self.bias.of": "bias"}
"""Arrays of a script in the place of an op's calls of its attributes."""


class _WithValues(ast.NodeTransformer):
    """Replace ``self.`` by an op's own values, and ``state.`` by the script's names."""

    def __init__(self, op: Op) -> None:
        self._op = op

    def visit_Call(self, node: ast.Call) -> ast.AST:
        given = _GIVEN.get(ast.unparse(node.func))
        return ast.Name(given, ast.Load()) if given else self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        if owner == "self":
            return ast.Constant(getattr(self._op, node.attr))
        return ast.Name(node.attr, ast.Load()) if owner == _STATE else self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        assert isinstance(node.test, ast.Constant)
        return node.body if node.test.value else node.orelse


def statements_of(op: Op) -> Statements:
    """Return the statements of an op, with its own values in them."""
    text: list[str] = []
    read: dict[str, None] = {}
    made: dict[str, None] = {}
    for node in _statements(op):
        if isinstance(node, ast.If):
            continue  # its branch follows
        own = _WithValues(op).visit(ast.parse(ast.unparse(node)).body[0])
        line = ast.unparse(ast.fix_missing_locations(own))
        target, _, value = line.partition(" = ")
        if target.strip("()") == value.strip("()"):
            continue
        text.append(line.replace("'", '"'))
        uses = [part for part in ast.walk(ast.parse(line)) if isinstance(part, ast.Subscript)]
        for loads in (True, False):
            for part in uses:
                if ast.unparse(part.value) != "chip" or not isinstance(part.slice, ast.Constant):
                    continue
                name = str(part.slice.value)
                if loads and isinstance(part.ctx, ast.Load) and name not in made:
                    read[name] = None
                if not loads and isinstance(part.ctx, ast.Store):
                    made[name] = None
    return Statements(tuple(text), tuple(read), tuple(made))


def helpers_of(op: Op) -> frozenset[str]:
    """Return which `HELPERS` the op's statements call."""
    called = {
        part.func.id
        for line in statements_of(op).text
        for part in ast.walk(ast.parse(line))
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)
    }
    return frozenset(called & set(HELPERS))


def plain(name: str) -> str:
    """Return the text of one of the `HELPERS` without types."""
    node = next(n for n in _tree().body if isinstance(n, ast.FunctionDef) and n.name == name)
    node = next(n for n in ast.parse(ast.unparse(node)).body if isinstance(n, ast.FunctionDef))
    node.returns = None
    for argument in node.args.args:
        argument.annotation = None
    for n, part in enumerate(node.body):
        if isinstance(part, ast.AnnAssign) and part.value is not None:
            node.body[n] = ast.Assign([part.target], part.value)
    return ast.unparse(ast.fix_missing_locations(node))
