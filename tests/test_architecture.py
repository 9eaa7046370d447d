"""The rules of ARCHITECTURE.md that a machine can hold: who imports whom, and a few of style.

Imports are read from the source, not by importing: also those inside functions count, and a
folder that is not there yet is simply empty.
"""

import ast
import shlex
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.helpers.process import python

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("simulator", "kernels", "ui")
QT = ("PySide6", "shiboken6", "pyqtgraph")

BANNED = {
    "simulator": (*QT, "ui", "kernels", "tilescope", "cupy", "cupy_backends", "tests"),
    "kernels": (*QT, "ui", "tilescope", "tests"),
    "ui": ("tilescope", "tests"),
}
"""What no module of a package may import, not even inside a function."""

ENGINE_WORDS = {"NumpyEngine", "KernelEngine", "make_engine", "choose_engine", "simulate"}
ENGINE_MODULES = {
    "kernels",
    "kernels.cuda.engine",
    "kernels.cuda.launch",
    "kernels.devices.registry",
}
PICKS_ENGINES = {
    "ui/session/engines.py", "ui/app/cli.py", "ui/export/command.py", "ui/app/self_test.py",
    "ui/app/export_shards.py",
}  # fmt: skip
"""The session of the window, and the commands, which have no session."""

PAINTED = ("ui/look", "ui/widgets", "ui/kit", "ui/board", "ui/plots", "ui/panels")
"""Rooms of what is drawn, and of the widgets that draw it."""


def sources(folder: str) -> list[Path]:
    """Return the Python files of a folder of the checkout."""
    return sorted((ROOT / folder).rglob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imports(path: Path, *, module_level: bool = False) -> Iterator[tuple[str, str]]:
    """Yield (module, name) of what a file imports; the name is empty for a plain import."""
    nodes = module_level_nodes(tree(path)) if module_level else ast.walk(tree(path))
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}: relative import"
            yield from ((node.module or "", alias.name) for alias in node.names)


def module_level_nodes(module: ast.Module) -> Iterator[ast.AST]:
    """Yield what runs when a module is imported: all but the bodies of functions."""
    todo: list[ast.AST] = [module]
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            todo.extend(ast.iter_child_nodes(node))


def top(module: str) -> str:
    return module.partition(".")[0]


@pytest.mark.parametrize("package", PACKAGES)
def test_data_flows_left_to_right(package: str) -> None:
    wrong = {
        f"{name_of(path)} imports {module}"
        for path in sources(package)
        for module, _ in imports(path)
        if top(module) in BANNED[package]
    }
    assert not wrong


def test_simulator_needs_few_libraries() -> None:
    found = {top(module) for path in sources("simulator") for module, _ in imports(path)}
    known = {"numpy", "pydantic", "pydantic_core", "tomli_w", "safetensors", "psutil"}
    allowed = known | {"simulator", "threadpoolctl"}
    third_party = {name for name in found if name not in sys.stdlib_module_names}
    assert third_party <= allowed
    assert {"numpy", "simulator"} <= third_party  # or nothing was looked at


@pytest.mark.long
def test_cupy_is_imported_where_it_is_used() -> None:
    wrong = {
        name_of(path)
        for folder in ("simulator", "ui", "tests")
        for path in sources(folder)
        for module, _ in imports(path, module_level=True)
        if top(module) in ("cupy", "cupy_backends", "torch")
    }
    assert not {name for name in wrong if not name.startswith("tests/training/")}


def test_only_the_session_and_the_commands_pick_an_engine() -> None:
    pickers = {
        name_of(path)
        for path in sources("ui")
        for module, name in imports(path)
        if name in ENGINE_WORDS or module in ENGINE_MODULES
    }
    assert pickers <= PICKS_ENGINES
    assert "ui/session/engines.py" in pickers


def test_panels_and_painters_know_of_the_kernels_only_their_text_and_needs() -> None:
    found = {
        f"{module}.{name}" if module == "kernels" else module
        for folder in PAINTED
        for path in sources(folder)
        for module, name in imports(path)
        if top(module) == "kernels"
    }
    assert found == {
        "kernels.build.sources", "kernels.cuda.glossary", "kernels.cuda.needs", "kernels.cuda.text",
    }  # fmt: skip


@pytest.mark.long
def test_panels_and_painters_call_no_engine() -> None:
    calls = {
        f"{name_of(path)}:{node.lineno} .{node.attr}"
        for folder in PAINTED
        for path in sources(folder)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute) and node.attr in ("row_block", "row_blocks", "snapshot")
        if isinstance(node.ctx, ast.Load) and is_called(node, path)
    }
    assert not calls


def is_called(attribute: ast.Attribute, path: Path) -> bool:
    calls = (node for node in ast.walk(tree(path)) if isinstance(node, ast.Call))
    return any(call.func is attribute for call in calls)


PAINTING = "ui/safety/painting.py"


@pytest.mark.long
def test_a_painter_always_ends() -> None:
    """On widgets `painting` sees to that; on pictures, in panels and painters, `with` does."""
    wrong, count = set(), 0
    for path in sources("ui"):
        nodes = [node for node in ast.walk(tree(path)) if name_of(path) != PAINTING]
        items = [item for node in nodes if isinstance(node, ast.With) for item in node.items]
        kept = [item.context_expr for item in items]
        inside = name_of(path).startswith(PAINTED)
        for node in nodes:
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "QPainter":
                count += 1
                widget = any(ast.unparse(arg).startswith("self") for arg in node.args)
                if widget or (inside and node not in kept):
                    wrong.add(f"{name_of(path)}:{node.lineno}")
    assert not wrong
    assert count > 10


@pytest.mark.long
def test_nothing_that_is_raised_leaves_a_paint_event() -> None:
    wrong, count = set(), 0
    for path in sources("ui"):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef) and node.name == "paintEvent":
                count += 1
                lines = node.body[1:] if ast.get_docstring(node) else node.body
                if not all(is_contained(line) for line in lines):
                    wrong.add(f"{name_of(path)}:{node.lineno}")
    assert not wrong, "all of it but Qt's own goes inside `with painting(self) as painter:`"
    assert count > 20


def is_contained(line: ast.stmt) -> bool:
    if isinstance(line, ast.With):
        return ast.unparse(line.items[0].context_expr).startswith("painting(")
    return ast.unparse(line) == "super().paintEvent(event)"


def test_nothing_reaches_outside_the_checkout() -> None:
    outside = "../" + "shared"
    text_files = ("*.py", "*.toml", "*.md", "*.cu", "*.cuh", "*.spec", "Makefile", ".ci/*")
    checked = [
        path
        for pattern in text_files
        for path in ROOT.rglob(pattern)
        if path.is_file() and not {".venv", ".git", "build", "dist"} & set(path.parts)
    ]
    assert len(checked) > 30
    assert not [name_of(p) for p in checked if outside in p.read_text("utf-8", errors="replace")]


def test_every_module_says_what_it_is() -> None:
    silent = {
        name_of(path)
        for folder in (*PACKAGES, "tests")
        for path in sources(folder)
        if tree(path).body and not ast.get_docstring(tree(path))
    }
    assert not silent


# --- tests that cannot fail ----------------------------------------------------------------


WAITS = {"raises", "fail", "waitUntil", "waitSignal", "waitSignals"}
"""Calls that fail by themselves when what they wait for does not come."""


def asserts(function: ast.AST) -> bool:
    """Return whether a function compares anything, itself or by a helper that does."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name.lstrip("_").startswith(("assert", "check")) or name in WAITS:
                return True
    return False


def test_every_test_asserts_something() -> None:
    empty, count = set(), 0
    for path in sources("tests"):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                count += 1
                if not asserts(node):
                    empty.add(f"{name_of(path)}: {node.name}")
    assert not empty
    assert count > 100


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("assert x", True),
        ("check_close(a, b)", True),
        ("np.testing.assert_array_equal(a, b)", True),
        ("with pytest.raises(E):\n  f()", True),
        ("run(x)", False),
        ("print('assert x')", False),
    ],
)
def test_the_search_for_assertions(body: str, found: bool) -> None:
    assert asserts(ast.parse(body)) is found


@pytest.mark.long
@pytest.mark.parametrize("target", ["test-ptx", "test-races"])
def test_make_collects_what_the_suite_leaves_to_it(target: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("$(JOBS)", "0")
    recipe = makefile.partition(f"\n{target}:")[2].partition("\n\n")[0]
    given = shlex.split(recipe.partition("-m pytest ")[2].replace("$(ARGS)", ""))
    (folder,) = (each for each in given if each.startswith("tests/"))
    done = python("-m", "pytest", "--collect-only", "-q", *given)
    collected = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    assert {name_of(path) for path in (ROOT / folder).rglob("test_*.py")} == collected


PRODUCTS = {"np.matmul", "np.matvec", "np.vecmat", "np.vecdot"}
"""Functions of NumPy's that warn of flags which say nothing about the result."""


@pytest.mark.parametrize("package", PACKAGES)
def test_products_are_judged_by_their_result(package: str) -> None:
    wrong = [
        f"{name_of(path)}:{node.lineno}"
        for path in sources(package)
        if name_of(path) != "simulator/base/matmul.py"
        for node in ast.walk(tree(path))
        if (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult))
        or (isinstance(node, ast.Attribute) and ast.unparse(node) in PRODUCTS)
    ]
    assert not wrong, "for simulator.base.matmul.matmul"


@pytest.mark.long
def test_nobody_asks_whether_a_panel_can_do_something() -> None:
    """All that is asked of any panel is a method of `Panel`, and its model comes as what it is."""
    asks = {
        f"{name_of(path)}:{node.lineno}"
        for folder in ("ui/panels", "ui/window")
        for path in sources(folder)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("hasattr", "cast")
    }
    assert not asks
