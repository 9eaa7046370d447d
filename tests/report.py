"""Sizes of the house, and how often its habits occur: `make report`.

Nothing here is a gate. Rules that a machine can hold stand in test_architecture.py; numbers that
ought to fall stand here, to be read before and after a change.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeVar

from simulator.program.algorithms import ALGORITHMS, TENSORS
from simulator.program.op import Op

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("simulator", "ui", "kernels")
N = TypeVar("N", bound=ast.AST)
LONG_FILE, LARGE_ROOM = 600, 22
KINDS = (
    "backward", "combines", "faults", "feature_map", "forms", "of_keys", "pages", "softmax",
    "splits", "stores_scores", "whole_rows",
)  # fmt: skip
"""Attributes by which code asks of which kind an algorithm is."""


@cache
def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(text(path))


def files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def docstring_lines(module: ast.Module) -> set[int]:
    """Return the numbers of all lines that docstrings take, those of attributes among them."""
    strings = (
        node.value
        for node in ast.walk(module)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
    return {n for each in strings for n in range(each.lineno, (each.end_lineno or 0) + 1)}


def sizes(paths: Iterable[Path]) -> Counter[str]:
    """Return lines in all, of docstrings and comments, blank ones, and what is left as code."""
    found: Counter[str] = Counter()
    for path in paths:
        docs = docstring_lines(tree(path))
        for n, line in enumerate(text(path).splitlines(), 1):
            kind = "docstrings" if n in docs else "blank" if not line.strip() else "code"
            found["comments" if kind == "code" and line.lstrip().startswith("#") else kind] += 1
            found["lines"] += 1
        found["files"] += 1
    return found


def nodes(
    paths: Iterable[Path], kind: type[ast.AST] | tuple[type[ast.AST], ...]
) -> Iterator[ast.AST]:
    return (node for path in paths for node in ast.walk(tree(path)) if isinstance(node, kind))


def doubled_classes(paths: Iterable[Path]) -> list[str]:
    count = Counter(
        node.name for node in nodes(paths, ast.ClassDef) if isinstance(node, ast.ClassDef)
    )
    return sorted(name for name, n in count.items() if n > 1)


def text_functions(paths: Iterable[Path]) -> int:
    """Return how many functions have text as their result, or several wordings of it."""
    returns = (
        ast.unparse(node.returns)
        for node in nodes(paths, ast.FunctionDef)
        if node.returns is not None
    )
    words = re.compile(
        r"(str|(tuple|list|Iterator|Iterable|Sequence)\[str(, (str|\.\.\.))*\])( \| None)?"
    )
    return sum(bool(words.fullmatch(each)) for each in returns)


def calls(paths: Iterable[Path], name: str) -> int:
    return sum(
        name in (getattr(node.func, "id", ""), getattr(node.func, "attr", ""))
        for node in nodes(paths, ast.Call)
    )


def kind_questions(paths: Iterable[Path]) -> Counter[str]:
    return Counter(node.attr for node in nodes(paths, ast.Attribute) if node.attr in KINDS)


def private_names(paths: Iterable[Path]) -> int:
    """Return how often code uses a private name of something other than itself.

    Python documents those of `os` and `sys`, IPython those that end in an underscore.
    """
    return sum(
        node.attr.startswith("_")
        and not node.attr.startswith("__")
        and not node.attr.endswith("_")
        and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls", "os", "sys"))
        for node in nodes(paths, ast.Attribute)
    )


def literals(node: ast.AST | None) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    for part in getattr(node, "elts", ()):  # of a tuple, list or set
        yield from literals(part)


def compared(paths: Iterable[Path], names: set[str]) -> int:
    """Return how often code compares with a literal name, or looks one up in a dict on the spot."""

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

    found = (case for node in nodes(paths, ast.AST) for case in cases(node))
    return sum(any(word in names for word in literals(case)) for case in found)


def algorithm_files(paths: Iterable[Path]) -> Iterator[tuple[str, int]]:
    """Yield each algorithm and how many files of the program name it, its own ones apart."""
    words = {path: set(literals(ast.List([*nodes([path], ast.Constant)]))) for path in paths}
    for name in ALGORITHMS:
        alike = {name, name.replace("-", "_")}
        yield (
            name,
            sum(
                bool(alike & found)
                for path, found in words.items()
                if path.parent.name != "algorithms"
            ),
        )


def named(found: Iterable[object]) -> str:
    return " ".join(map(str, found)) or "none"


def rows() -> Iterator[tuple[str, object]]:
    """Yield what is counted and its figure, in the order in which it is read."""
    product, tests, ui = files(*PRODUCT), files("tests"), files("ui")
    every = product + tests
    rooms: dict[Path, int] = defaultdict(int)
    for path in every:
        rooms[path.parent] += path.name != "__init__.py"
    for title, paths in (("product", product), ("tests", tests), ("docs/capture", files("docs"))):
        found = sizes(paths)
        yield f"{title}: lines", found["lines"]
        yield f"{title}: without docstrings and blank lines", found["code"] + found["comments"]
        yield (
            f"{title}: docstrings, comments, files",
            named(found[kind] for kind in ("docstrings", "comments", "files")),
        )
    doubled = doubled_classes(product)
    yield "class names defined twice or more", f"{len(doubled)}: {named(doubled)}"
    yield "functions that return text", text_functions(files("ui", "simulator"))
    yield "calls of px()", calls(ui, "px")
    yield "calls of first_that_fits()", calls(ui, "first_that_fits")
    layouts = [
        n
        for n in nodes(ui, ast.ClassDef)
        if isinstance(n, ast.ClassDef) and n.name.endswith("Layout")
    ]
    yield "classes *Layout", len(layouts)
    kinds = kind_questions(ui)
    yield (
        "questions about an algorithm's kind in ui",
        f"{kinds.total()}: " + named(f"{name} {n}" for name, n in kinds.most_common()),
    )
    ops = {op.name for op in Op.__subclasses__()}
    numbers = {*TENSORS, *(name for op in Op.__subclasses__() for name in op.recorded), "factor"}
    yield (
        "comparisons with the name of an op, of a number",
        named(compared(product, names) for names in (ops, numbers)),
    )
    yield "files that name an algorithm", named(f"{n} {k}" for n, k in algorithm_files(product))
    yield (
        f"files over {LONG_FILE} lines",
        named(path.relative_to(ROOT) for path in every if len(text(path).splitlines()) > LONG_FILE),
    )
    yield (
        f"rooms over {LARGE_ROOM} files",
        named(f"{room.relative_to(ROOT)} ({n})" for room, n in rooms.items() if n > LARGE_ROOM),
    )
    yield "private names of others in tests", private_names(tests)
    yield (
        "parts replaced in tests (setattr)",
        sum(
            isinstance(node, ast.Attribute) and node.attr == "setattr"
            for node in nodes(tests, ast.Attribute)
        ),
    )
    for page in (
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "docs/conventions.md",
        "docs/files.md",
        "docs/counting.md",
    ):
        yield f"{page}: words", len((ROOT / page).read_text("utf-8").split())
    unreleased = (ROOT / "CHANGELOG.md").read_text("utf-8").split("\n## ")[1]
    yield "CHANGELOG.md, unreleased: lines", len(unreleased.splitlines())


def main() -> int:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    print(f"Tilescope {version}")
    for what, figure in rows():
        print(f"{what:52} {figure}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
