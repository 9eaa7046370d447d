"""The rules of ARCHITECTURE.md that a machine can hold: who imports whom, and a few of style.

Imports are read from the source, not by importing: those inside functions count, and what only
types need. Who gets something of a later room handed in says in a protocol of its own what it asks
of it.
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

ORDER = {
    "simulator": ("base", "language", "problem", "program", "engines", "timing", "run", "study",
                  "code", "lesson", "exercises"),
    "kernels": ("errors", "build", "cuda", "devices", "checks", "check"),
    "ui": ("look", "safety", "session", "widgets", "kit", "board", "plots", "panels", "talk",
           "export", "window", "app"),
}  # fmt: skip
"""The rooms of each package; none imports one that comes after it."""
FOR_TYPES = {
    f"ui.talk.presenter imports ui.window.{name}"
    for name in ("dock_sizes.Shares", "main_window.MainWindow")
}
"""Classes of a later room in signatures: none is to be added."""


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


@cache
def nodes(path: Path) -> list[ast.AST]:
    return [*ast.walk(tree(path))]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def imports(path: Path) -> list[tuple[str, str]]:
    """Return (module, name) of what a file imports; the name is empty for a plain import."""
    found = []
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}: relative import"
            found += [(node.module or "", alias.name) for alias in node.names]
    return found


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
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr in ("row_block", "row_blocks", "snapshot")
        if isinstance(node.ctx, ast.Load) and is_called(node, path)
    }
    assert not calls


def is_called(attribute: ast.Attribute, path: Path) -> bool:
    return any(isinstance(node, ast.Call) and node.func is attribute for node in nodes(path))


PAINTING = "ui/safety/painting.py"


@pytest.mark.long
def test_a_painter_always_ends() -> None:
    """On widgets `painting` sees to that; on pictures, in panels and painters, `with` does."""
    wrong, count = set(), 0
    for path in sources("ui"):
        if name_of(path) == PAINTING:
            continue
        items = [item for node in nodes(path) if isinstance(node, ast.With) for item in node.items]
        kept = [item.context_expr for item in items]
        inside = name_of(path).startswith(PAINTED)
        for node in nodes(path):
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
        for node in nodes(path):
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
        if path.is_file()
        and not {".venv", ".git", "build", "dist"} & set(path.relative_to(ROOT).parts)
    ]
    assert len(checked) > 30
    assert not [name_of(p) for p in checked if outside in p.read_text("utf-8", errors="replace")]


# --- rooms ---------------------------------------------------------------------------------


def place_of(module: str, package: str) -> int:
    """Return the place of a module's room in the order, -1 for what is of no room."""
    own, _, rest = module.partition(".")
    room = rest.partition(".")[0]
    return ORDER[package].index(room) if own == package and room in ORDER[package] else -1


def module_imports(package: str) -> Iterator[tuple[str, str]]:
    """Yield each module of a package with each module, or name of one, that it imports."""
    for path in sources(package):
        own = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for module, name in imports(path):
            yield own, f"{module}.{name}".removesuffix(".")


@pytest.mark.parametrize("package", ORDER)
def test_no_room_imports_one_that_comes_after_it(package: str) -> None:
    found = [*module_imports(package)]
    assert len(found) > 100
    wrong = {
        f"{module} imports {name}"
        for module, name in found
        if 0 <= place_of(module, package) < place_of(name, package)
    }
    assert not wrong - FOR_TYPES


@pytest.mark.parametrize("package", ORDER)
def test_every_room_has_its_place_in_the_order(package: str) -> None:
    found = {
        path.stem
        for path in (ROOT / package).iterdir()
        if (path / "__init__.py").is_file() or path.suffix == ".py"
    }
    assert found - {"__init__", "__main__"} == {*ORDER[package]}


def test_panels_do_not_import_each_other() -> None:
    panels = {path.parent.name for path in (ROOT / "ui/panels").glob("*/__init__.py")}
    assert len(panels) > 10
    wrong = []
    for module, name in module_imports("ui"):
        one, other = (each.removeprefix("ui.panels.").partition(".")[0] for each in (module, name))
        in_panels = module.startswith("ui.panels.") and name.startswith("ui.panels.")
        if in_panels and one != other and {one, other} <= panels:
            wrong.append(f"{module} imports {name}")
    assert not wrong


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


@pytest.mark.long
def test_every_test_asserts_something() -> None:
    empty, count = set(), 0
    for path in sources("tests"):
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                count += 1
                if not asserts(node):
                    empty.add(f"{name_of(path)}: {node.name}")
    assert not empty
    assert count > 100


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


PRODUCTS = {"matmul", "matvec", "vecmat", "vecdot"}
"""Functions of NumPy's that warn of flags which say nothing about the result."""


@pytest.mark.parametrize("package", PACKAGES)
def test_products_are_judged_by_their_result(package: str) -> None:
    wrong = [
        f"{name_of(path)}:{node.lineno}"
        for path in sources(package)
        if name_of(path) != "simulator/base/matmul.py"
        for node in nodes(path)
        if (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult))
        or (
            isinstance(node, ast.Attribute)
            and node.attr in PRODUCTS
            and ast.unparse(node.value) == "np"
        )
    ]
    assert not wrong, "for simulator.base.matmul.matmul"


@pytest.mark.long
def test_nobody_asks_whether_a_panel_can_do_something() -> None:
    """All that is asked of any panel is a method of `Panel`, and its model comes as what it is."""
    asks = {
        f"{name_of(path)}:{node.lineno}"
        for folder in ("ui/panels", "ui/window")
        for path in sources(folder)
        for node in nodes(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("hasattr", "cast")
    }
    assert not asks
