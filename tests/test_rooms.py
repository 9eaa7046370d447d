"""Who may import whom, room by room, as ARCHITECTURE.md says.

Imports inside functions count, and what only types need: who gets something of a later room handed
in says in a protocol of its own what it asks of it.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ORDER = {
    "simulator": ("base", "language", "problem", "program", "engines", "timing", "run", "study",
                  "code", "lesson", "exercises"),
    "kernels": ("errors", "build", "cuda", "devices", "checks", "check"),
    "ui": ("look", "safety", "session", "widgets", "kit", "board", "plots", "panels", "talk",
           "export", "window", "app"),
}  # fmt: skip
"""The rooms of each package; none imports one that comes after it."""
FOR_TYPES = ("ui.talk.presenter",)
"""Modules that may still name a class of a later room in a signature: none is to be added."""


Import = tuple[str, str, bool]
"""A module, what it imports, and whether for types alone."""


@cache
def imports_of(package: str) -> list[Import]:
    """Return all imports of a package's modules, each with those of names in it."""
    found: list[Import] = []
    for path in (ROOT / package).rglob("*.py"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for_types = {
            node
            for block in ast.walk(tree)
            if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
            for line in block.body
            for node in ast.walk(line)
        }
        for node in ast.walk(tree):
            names = [alias.name for alias in getattr(node, "names", []) if hasattr(alias, "name")]
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{name}" for name in names)]
            elif not isinstance(node, ast.Import):
                continue
            found += [(module, name, node in for_types) for name in names]
    return found


def place_of(module: str, package: str) -> int:
    """Return the place of a module's room in the order, -1 for what is of no room."""
    own, _, rest = module.partition(".")
    room = rest.partition(".")[0]
    return ORDER[package].index(room) if own == package and room in ORDER[package] else -1


@pytest.mark.parametrize("package", ORDER)
def test_no_room_imports_one_that_comes_after_it(package: str) -> None:
    wrong = [
        f"{module} imports {name}"
        for module, name, for_types in imports_of(package)
        if 0 <= place_of(module, package) < place_of(name, package)
        and not (for_types and module in FOR_TYPES)
    ]
    assert not wrong
    assert len(imports_of(package)) > 100


@pytest.mark.parametrize("package", ORDER)
def test_every_room_has_its_place_in_the_order(package: str) -> None:
    found = {
        path.stem
        for path in (ROOT / package).iterdir()
        if (path / "__init__.py").is_file() or path.suffix == ".py"
    }
    assert found - {"__init__", "__main__"} == set(ORDER[package])


def test_panels_do_not_import_each_other() -> None:
    panels = {path.parent.name for path in (ROOT / "ui/panels").glob("*/__init__.py")}
    assert len(panels) > 10
    wrong = []
    for module, name, _ in imports_of("ui"):
        one, other = (each.removeprefix("ui.panels.").partition(".")[0] for each in (module, name))
        in_panels = module.startswith("ui.panels.") and name.startswith("ui.panels.")
        if in_panels and one != other and {one, other} <= panels:
            wrong.append(f"{module} imports {name}")
    assert not wrong


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
