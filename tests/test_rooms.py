"""Who may import whom, room by room, as ARCHITECTURE.md says.

Imports inside functions count, and what only types need: who gets something of a later room handed
in says in a protocol of its own what it asks of it.
"""

import ast
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from pytest_archon import archrule

from simulator.program.algorithms import ALGORITHMS, TENSORS
from simulator.program.op import Op

ROOT = Path(__file__).resolve().parent.parent
ORDER = {
    "simulator": ("base", "problem", "program", "engines", "run", "study", "code", "lesson"),
    "kernels": ("errors", "build", "cuda", "devices", "checks", "check"),
    "ui": ("look", "safety", "session", "widgets", "board", "plots", "panels", "talk", "export",
           "window", "app"),
}  # fmt: skip
"""The rooms of each package; none imports one that comes after it."""
STEPS = [(package, a, b) for package, rooms in ORDER.items() for a, b in pairwise(rooms)]
MOST_FILES = 22
FOR_TYPES = ("ui.talk.presenter",)
"""Modules that may still name a class of a later room in a signature: none is to be added."""


def parts_of(*names: str) -> list[str]:
    """Return the patterns of modules, with all that is inside where they are packages."""
    return [pattern for name in names for pattern in (name, f"{name}.*")]


@pytest.mark.sweep(keep=6)
@pytest.mark.parametrize(("package", "before", "after"), STEPS)
def test_no_room_imports_one_that_comes_after_it(package: str, before: str, after: str) -> None:
    rooms = ORDER[package]
    upto = [f"{package}.{room}" for room in rooms[: rooms.index(after)]]
    (
        archrule(f"{before} before {after}")
        .match(*parts_of(*upto))
        .should_not_import(*parts_of(f"{package}.{after}"))
        .check(package, skip_type_checking=True, only_direct_imports=True)
    )
    (
        archrule(f"{before} before {after}, in types")
        .match(*parts_of(*upto))
        .exclude(*FOR_TYPES)
        .should_not_import(*parts_of(f"{package}.{after}"))
        .check(package, only_direct_imports=True)
    )


@pytest.mark.parametrize("package", ORDER)
def test_every_room_has_its_place_in_the_order(package: str) -> None:
    found = {
        path.stem
        for path in (ROOT / package).iterdir()
        if (path / "__init__.py").is_file() or path.suffix == ".py"
    }
    assert found - {"__init__", "__main__"} == set(ORDER[package])


PANELS = sorted(path.parent.name for path in (ROOT / "ui/panels").glob("*/__init__.py"))


@pytest.mark.parametrize("panel", PANELS)
def test_panels_do_not_import_each_other(panel: str) -> None:
    others = [f"ui.panels.{each}" for each in PANELS if each != panel]
    (
        archrule("a panel knows no other")
        .match(*parts_of(f"ui.panels.{panel}"))
        .should_not_import(*parts_of(*others))
        .check("ui", only_direct_imports=True)
    )


def test_the_panels_were_found() -> None:
    assert len(PANELS) > 10


def test_a_folder_is_a_room_that_can_be_looked_over() -> None:
    tops = ("simulator", "kernels", "ui", "tests")
    folders = {path.parent for top in tops for path in (ROOT / top).rglob("*.py")}
    large = {
        folder.relative_to(ROOT).as_posix(): count
        for folder in folders
        if (count := sum(path.name != "__init__.py" for path in folder.glob("*.py"))) > MOST_FILES
    }
    assert not large


@pytest.mark.parametrize("package", ORDER)
def test_every_room_says_what_belongs_there(package: str) -> None:
    rooms = {path.parent for path in (ROOT / package).rglob("*.py")}
    silent = {
        room.relative_to(ROOT).as_posix()
        for room in rooms
        if not (room / "__init__.py").is_file()
        or not ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8")))
    }
    assert len(rooms) > 3
    assert not silent


NAMES = {
    "naive", "flash1", "flash2", "split-kv", "split_kv", "paged", "mla", "linear",
    "linear-recurrent",
    "linear_recurrent", "gla", "deltanet", "flash2-backward", "flash2_backward", "naive-backward",
    "naive_backward",
}  # fmt: skip
THEIR_OWN = ("simulator/program/algorithms/", "kernels/cuda/")
"""Where an algorithm's name may stand: its modules, and its kernels."""
MOST_NAMES = 4
"""The usual one and that which packs heads; two are no algorithm: axes may be linear, too."""


MOST_TABLES = 5
"""In so many files of the program an algorithm may have rows: what a commit that brings one changes
beside its module, kernel, demo, tests and docs."""

AN_AXIS = ("linear", "ui/panels/cache/calculator.py")
"""A word that is the name of an algorithm, and names an axis there."""

OPS = {op.name for op in Op.__subclasses__()}
NUMBERS = {*TENSORS, *(name for op in Op.__subclasses__() for name in op.recorded), "factor"}
MOST_COMPARED = {"op": 1, "number": 37}
"""Two are none: a key of lessons is "clear", and a curve in SVG "C". They may only become less."""


def rows(tree: ast.Module) -> set[int]:
    """Return the keys of a module's tables, and the list of names that a type allows."""
    values = [node.value for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    keys = [key for value in values if isinstance(value, ast.Dict) for key in value.keys]
    names = [
        name
        for value in values
        if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Tuple)
        for name in value.slice.elts
    ]
    return {id(node) for node in (*keys, *names)}


def named(tree: ast.Module) -> int:
    """Return how often code names an algorithm, by a string or a name of its own.

    The rows of a module's tables do not count.
    """
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)} | rows(tree)
    return sum(
        (isinstance(node, ast.Constant) and node.value in NAMES and id(node) not in said)
        or (isinstance(node, ast.Attribute) and node.attr in NAMES)
        or (isinstance(node, ast.Name) and node.id in NAMES)
        for node in ast.walk(tree)
    )


def compared(tree: ast.Module, is_name: Callable[[str], bool]) -> int:
    """Return how often code compares with a literal name, or looks one up in a dict on the spot."""

    def literals(node: ast.expr | None) -> Iterator[str]:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        for part in getattr(node, "elts", ()):  # of a tuple, list or set
            yield from literals(part)

    def cases(node: ast.AST) -> list[ast.expr | None]:
        match node:
            case ast.Compare():
                return [node.left, *node.comparators]
            case ast.BinOp(op=ast.BitAnd()):
                return [node.left, node.right]
            case ast.MatchValue():
                return [node.value]
            case ast.Subscript() | ast.Attribute() if isinstance(node.value, ast.Dict):
                return node.value.keys
        return []

    found = (case for node in ast.walk(tree) for case in cases(node))
    return sum(any(map(is_name, literals(case))) for case in found)


def counts(count_in: Callable[[ast.Module], int]) -> dict[str, int]:
    """Return what is counted in each file that is not an algorithm's own."""
    paths = [path for package in ORDER for path in (ROOT / package).rglob("*.py")]
    return {
        name: count
        for path in paths
        if not (name := path.relative_to(ROOT).as_posix()).startswith(THEIR_OWN)
        and (count := count_in(ast.parse(path.read_text(encoding="utf-8"))))
    }


def test_who_needs_to_know_an_algorithm_asks_it() -> None:
    found = counts(named)
    assert sum(found.values()) <= MOST_NAMES, found
    assert named(ast.parse("if w.algorithm == 'naive' or flash1: pass")) == 2
    assert named(ast.parse("A = {'naive': flash1}\nB = Literal['naive', 'flash2']")) == 1


def told(tree: ast.Module) -> set[str]:
    """Return the algorithms that code names, in the rows of its tables too, or imports."""
    nodes = [*ast.walk(tree)]
    words = {node.value for node in nodes if isinstance(node, ast.Constant)}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and str(node.module).endswith("algorithms"):
            words |= {each.name for each in node.names}
    return {name for name in ALGORITHMS if words & {name, name.replace("-", "_")}}


def test_an_algorithm_is_its_own_module_its_kernel_and_rows_of_few_files() -> None:
    files: dict[str, set[str]] = {name: set() for name in ALGORITHMS}
    for path in (path for package in ORDER for path in (ROOT / package).rglob("*.py")):
        where = path.relative_to(ROOT).as_posix()
        if path.parent.name != "algorithms" or path.name == "__init__.py":
            for name in told(ast.parse(path.read_text(encoding="utf-8"))):
                if (name, where) != AN_AXIS:
                    files[name].add(where)
    many = {name: found for name, found in files.items() if len(found) > MOST_TABLES}
    assert not many, many
    assert all("kernels/cuda/specs.py" in found for found in files.values())


def is_number(word: str) -> bool:
    """Return whether a word names a number of a run, or some of its tensors by their letters."""
    return word in NUMBERS or set() < set(word) <= set("QKVSPO")


@pytest.mark.parametrize(("kind", "is_name"), [("op", OPS.__contains__), ("number", is_number)])
def test_who_needs_to_know_an_op_or_a_tensor_asks_it(
    kind: str, is_name: Callable[[str], bool]
) -> None:
    found = counts(lambda tree: compared(tree, is_name))
    assert sum(found.values()) <= MOST_COMPARED[kind], found


def test_comparisons_are_counted() -> None:
    code = "a == 'S'; b in ('x', 'alpha'); {'m': 1}[c]; {'l': 1}.get(d); e('O'); f['P'] = 'Q'"
    assert compared(ast.parse(code), is_number) == 4
    assert compared(ast.parse("op.name in {'load', 'row max'} & done"), OPS.__contains__) == 1
