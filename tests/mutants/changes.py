"""Mutants: the small changes to a module that a test is to notice.

The operators are mutmut's, but for those of texts, and four of our own: a condition turned round, a
function that returns None, a call left out, a keyword argument left out. mutmut itself leaves
decorated functions and constants of modules alone, which here are many.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper
from mutmut.mutation import mutators

ERRORS = {"refuse", "InputError", "ValueError", "TypeError", "KeyError", "RuntimeError"}
"""What is said in an error is text."""
CACHES = {"BoundedCache"}
"""What a cache has forgotten is made again, the same: how much it keeps changes no result."""
PACES = {
    "exactness._APART", "exactness._STATES", "gradient_engine._APART", "op_engine.MOST_STATES",
    "op_engine.STRETCH", "positions.AT_ONCE", "split_walk.KEPT_BYTES", "state_engine._APART",
}  # fmt: skip
"""Constants that say how much is done at a time, or kept and not made again, the same: they change
time and memory alone."""
_REST = cst.UnaryOperation(cst.Minus(), cst.Integer("1"))
DECLARATIONS = {"Field", "ConfigDict", "TypeVar", "Signal", "cast", "field"}
"""Calls whose keyword arguments are no work of the module."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change to one module."""

    path: Path  # the module
    line: int  # where the change is, counted from 1
    kind: str  # what kind of change
    # before, after: the changed piece of source
    before: str
    after: str
    source: str  # the whole module, changed

    def __str__(self) -> str:
        one, two = (" ".join(text.split()) for text in (self.before, self.after))
        return f"{self.path}:{self.line}: {self.kind}: {one[:90]}  =>  {two[:90]}"


Change = tuple[cst.CSTNode, cst.CSTNode]
"""A piece of a module, and what stands in its place."""
Operator = Callable[[Any], Iterable[Change]]


def _negated(node: cst.BaseExpression) -> cst.BaseExpression:
    inner = node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.UnaryOperation(cst.Not(), inner)


def _condition(node: cst.If | cst.While | cst.CompIf) -> Iterable[Change]:
    if not isinstance(node.test, cst.UnaryOperation):  # mutmut drops a `not`
        yield node.test, _negated(node.test)


def _nothing_returned(node: cst.Return) -> Iterable[Change]:
    if node.value is not None and not node.value.deep_equals(cst.Name("None")):
        yield node, cst.Return(cst.Name("None"))


def _call_left_out(node: cst.Expr) -> Iterable[Change]:
    if isinstance(node.value, cst.Call):
        yield node, cst.Pass()


def _argument_left_out(node: cst.Call) -> Iterable[Change]:
    if isinstance(node.func, cst.Name) and node.func.value in DECLARATIONS:
        return
    for n, argument in enumerate(node.args):
        if argument.keyword is not None and argument.keyword.value not in GUARDS:
            kept = [*node.args[:n], *node.args[n + 1 :]]
            if kept:
                kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
            yield node, node.with_changes(args=kept)


def _mutmut(operator: Callable[[Any], Iterable[cst.CSTNode]]) -> Operator:
    return lambda node: ((node, new) for new in operator(node))


GUARDS = {"strict", "encoding", "copy"}
"""Arguments without which all goes the same here: zip's lengths are equal, Linux writes UTF-8, and
a copy that `astype` need not make takes time alone."""

OPERATORS = (
    ("number", cst.BaseNumber, _mutmut(mutators.operator_number)),
    ("truth", cst.Name, _mutmut(mutators.operator_name)),
    ("operator", cst.CSTNode, _mutmut(mutators.operator_swap_op)),
    ("keyword", cst.CSTNode, _mutmut(mutators.operator_keywords)),
    ("not", cst.UnaryOperation, _mutmut(mutators.operator_remove_unary_ops)),
    ("choice", cst.IfExp, _mutmut(mutators.operator_if_exp)),
    ("sum", cst.AugAssign, _mutmut(mutators.operator_augmented_assignment)),
    ("condition", (cst.If, cst.While, cst.CompIf), _condition),
    ("return", cst.Return, _nothing_returned),
    ("call left out", cst.Expr, _call_left_out),
    ("argument left out", cst.Call, _argument_left_out),
)


def _is_left_alone(node: cst.CSTNode) -> bool:
    """Whether nothing in `node` is to be changed: annotations, decorators, errors, imports."""
    if isinstance(node, cst.Annotation | cst.Decorator | cst.Raise | cst.Import | cst.ImportFrom):
        return True
    if isinstance(node, cst.Arg) and node.keyword is not None and node.keyword.value in GUARDS:
        return True
    if isinstance(node, cst.If) and node.test.deep_equals(cst.Name("TYPE_CHECKING")):
        return True
    return (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Name)
        and node.func.value in ERRORS | CACHES | {"cast"}
    )


def _is_rest(node: cst.CSTNode) -> bool:
    """Whether this is the -1 with which an array is told to find a length itself.

    NumPy takes any number below 0 as that.
    """
    return isinstance(node, cst.Arg) and node.value.deep_equals(_REST)


def _is_pace(node: cst.CSTNode, module: str) -> bool:
    """Whether this is the assignment of constants that are all `PACES`."""
    if not isinstance(node, cst.Assign):
        return False
    target = node.targets[0].target
    named = (each.value for each in target.elements) if isinstance(target, cst.Tuple) else (target,)
    return all(isinstance(n, cst.Name) and f"{module}.{n.value}" in PACES for n in named)


def _nodes(node: cst.CSTNode, module: str) -> Iterator[cst.CSTNode]:
    if not (_is_left_alone(node) or _is_pace(node, module)):
        yield node
        shapes = (
            isinstance(node, cst.Call)
            and isinstance(node.func, cst.Attribute)
            and node.func.attr.value == "reshape"
        )
        for child in node.children:
            if not (shapes and _is_rest(child)):
                yield from _nodes(child, module)


@dataclass(frozen=True, slots=True)
class Place:
    """Where something can be changed, with the text that then stands there."""

    path: Path
    start: int
    stop: int
    kind: str
    text: str


def places(path: Path) -> list[Place]:
    """Return every change of a module."""
    wrapper = MetadataWrapper(cst.parse_module(path.read_bytes()), unsafe_skip_copy=True)
    spans = wrapper.resolve(ByteSpanPositionProvider)
    found = []
    for node in _nodes(wrapper.module, path.stem):
        for kind, types, operator in OPERATORS:
            if isinstance(node, types):
                for old, new in operator(node):
                    text = wrapper.module.code_for_node(new).strip()
                    at = spans[old]
                    found.append(Place(path, at.start, at.start + at.length, kind, text))
    return found


def mutant(place: Place) -> Mutant | None:
    """Return one change made; None where it is no Python."""
    whole = place.path.read_bytes()
    changed = whole[: place.start] + place.text.encode() + whole[place.stop :]
    try:
        ast.parse(changed)
    except SyntaxError:
        return None
    before = whole[place.start : place.stop].decode()
    line = whole.count(b"\n", 0, place.start) + 1
    return Mutant(place.path, line, place.kind, before, place.text, changed.decode())
